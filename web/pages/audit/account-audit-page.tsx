// The page AccountAudit.
import { Page } from "../../parts/page.tsx";

export function AccountAuditPage() {
  return <Page title="AccountAudit">{null}</Page>;
}
