// The page Members: members and invitations, or the user's own membership for users who may not list them.
import { useSearchParams } from "wouter";
import { useList } from "../../api/queries.ts";
import { useSession } from "../../api/session.tsx";
import type { Invitation } from "../../api/types.ts";
import { Invitations } from "../../parts/membership/invitations.tsx";
import { Invite } from "../../parts/membership/invite.tsx";
import { AddButton } from "../../parts/page/buttons.tsx";
import { Page } from "../../parts/page/page.tsx";
import { LimitRequests } from "../../parts/quotas/limit-requests.tsx";
import { MemberList } from "./member-list.tsx";
import { OwnMembership } from "./own-membership.tsx";
import { type ActorRole, actorRoleOf, invitableRoles, mayActOn } from "./rights.ts";

const path = "/v1/invitations";

export function MembersPage() {
  const actorRole = actorRoleOf(useSession());
  return actorRole === "member" ? <OwnMembership /> : <AllMembers actorRole={actorRole} />;
}

function AllMembers({ actorRole }: { actorRole: ActorRole }) {
  const { account } = useSession().session;
  const [parameters, setParameters] = useSearchParams();
  const invitations = useList<Invitation>(path, { limit: 100 });
  return (
    <Page
      title="Members"
      about={`People with access to ${account.name}. Roles apply to all environments.`}
      actions={<AddButton onClick={() => setParameters({ invite: "1" }, { replace: true })}>Invite</AddButton>}
    >
      <LimitRequests
        path="/v1/limit-requests"
        mayDecide={({ owner }) => owner === "member" || actorRole === "operator"}
      />
      <MemberList
        actorRole={actorRole}
        below={<Invitations path={path} listing={invitations} mayTakeBack={(role) => mayActOn(actorRole, role)} />}
      />
      <Invite
        {...{ path, into: account.name, usual: "member", allowed: invitableRoles(actorRole) }}
        opened={parameters.has("invite")}
        close={() => setParameters({}, { replace: true })}
      />
    </Page>
  );
}
