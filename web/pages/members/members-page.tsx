// The page Members: who belongs to the account and who is invited; whoever may not see that sees their own place in it.
import { Button } from "@mantine/core";
import { PlusIcon } from "@primer/octicons-react";
import { useSearchParams } from "wouter";
import { useSession } from "../../api/session.tsx";
import { Page } from "../../parts/page.tsx";
import { Invitations } from "./invitations.tsx";
import { Invite } from "./invite.tsx";
import { MemberList } from "./member-list.tsx";
import { OwnMembership } from "./own-membership.tsx";
import { standingOf } from "./rights.ts";

export function MembersPage() {
  const current = useSession();
  const { account } = current.session;
  const standing = standingOf(current);
  const [parameters, setParameters] = useSearchParams();
  if (standing === "member") return <OwnMembership />;
  const close = () => setParameters({}, { replace: true });
  return (
    <Page
      title="Members"
      about={`Who belongs to ${account.name}. A role holds in all environments.`}
      actions={
        <Button leftSection={<PlusIcon />} onClick={() => setParameters({ invite: "1" }, { replace: true })}>
          Invite
        </Button>
      }
    >
      <MemberList standing={standing} />
      <Invitations standing={standing} />
      <Invite opened={parameters.has("invite")} standing={standing} close={close} />
    </Page>
  );
}
