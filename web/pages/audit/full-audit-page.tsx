// The page Server audit log: the events of all accounts and of the installation, for operators.
import { operatorsOnly } from "../../parts/page/operators-only.tsx";
import { Page } from "../../parts/page/page.tsx";
import { AuditList } from "./audit-list.tsx";

const title = "Server audit log";

export const FullAuditPage = operatorsOnly(title, () => (
  <Page
    title={title}
    about="All changes to accounts and to the server, sign-ins, and refused credentials. Newest first."
  >
    <AuditList path="/v1/admin/audit" isOfAll />
  </Page>
));
