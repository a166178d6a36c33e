// The page FullAudit.
import { Page } from "../../parts/page.tsx";

export function FullAuditPage() {
  return <Page title="FullAudit">{null}</Page>;
}
