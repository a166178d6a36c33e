// The page Audit log: what concerns the account, for those who manage it.
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
      about={`Who changed a key, a member, an app or the account ${session.account.name} itself, and which of its credentials were refused. All environments, newest first.`}
    >
      {isManager ? (
        <AuditList path="/v1/audit" />
      ) : (
        <Empty
          title="For owners and admins of the account"
          action={
            <LinkButton href="/settings/security" mt="xs">
              Your own sign-ins
            </LinkButton>
          }
        >
          They see who changed what in {session.account.name}. Where you are signed in yourself is under Profile and
          sign-in.
        </Empty>
      )}
    </Page>
  );
}
