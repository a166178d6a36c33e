// The page Audit log: the events of the account, for its managers.
import { useSession } from "../../api/session.tsx";
import { Empty } from "../../parts/page/empty.tsx";
import { LinkButton } from "../../parts/page/links.tsx";
import { Page } from "../../parts/page/page.tsx";
import { AuditList } from "./audit-list.tsx";

export function AccountAuditPage() {
  const { isManager, session } = useSession();
  return (
    <Page
      title="Audit log"
      about={`Changes to the keys, members, apps and settings of ${session.account.name}, and its refused credentials. All environments, newest first.`}
    >
      {isManager ? (
        <AuditList path="/v1/audit" />
      ) : (
        <Empty
          title="Only for owners and admins of the account"
          action={
            <LinkButton href="/settings/security" mt="xs">
              See your own sign-ins
            </LinkButton>
          }
        >
          Owners and admins see who changed what in {session.account.name}. Your own sign-ins are listed under Profile
          and sign-in.
        </Empty>
      )}
    </Page>
  );
}
