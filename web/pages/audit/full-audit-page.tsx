// The page Server audit log: what concerns any account or the installation, for operators.
import { operatorsOnly } from "../../parts/page/operators-only.tsx";
import { Page } from "../../parts/page/page.tsx";
import { AuditList } from "./audit-list.tsx";

const title = "Server audit log";

export const FullAuditPage = operatorsOnly(title, () => (
  <Page
    title={title}
    about="Who changed what in any account or in the installation, who signed in, and which credentials were refused. Newest first."
  >
    <AuditList path="/v1/admin/audit" isOfAll />
  </Page>
));
