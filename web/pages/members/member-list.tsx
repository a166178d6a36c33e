// Lists all members of the account with their roles. Each row opens the member's dialog.
import { Badge, Group, Text } from "@mantine/core";
import { type ReactNode, useState } from "react";
import { useSession } from "../../api/session.tsx";
import type { Member } from "../../api/types.ts";
import { useLast } from "../../parts/editing/use-last.ts";
import { usePeopleList } from "../../parts/membership/people-list.tsx";
import { roleNames } from "../../parts/membership/roles.ts";
import { SmallButton } from "../../parts/page/buttons.tsx";
import { Empty } from "../../parts/page/empty.tsx";
import type { Column } from "../../parts/table/column.ts";
import { LongTable } from "../../parts/table/long-table.tsx";
import { day } from "../../parts/words/figures.ts";
import { SmallNote } from "../../parts/words/note.tsx";
import { quotasInWords } from "../../parts/words/quotas.ts";
import { ManageMember } from "./manage-member.tsx";
import { RemoveMember } from "./remove-member.tsx";
import { type ActorRole, whyNoOtherRole, whyNoQuotas, whyNoRemoval, whyNoSight, whyNoTools } from "./rights.ts";

export function MemberList({ actorRole, below }: { actorRole: ActorRole; below: ReactNode }) {
  const { session } = useSession();
  const { listing, isAll, status, nameHead, usageColumns } = usePeopleList<Member>("/v1/members");
  const [managed, setManaged] = useState<Member>();
  const [removed, setRemoved] = useState<Member>();
  const chosen = useLast(managed);
  // The dialog shows the member from the list, which is loaded again after each change made in the dialog.
  const shown = listing.items.find(({ id }) => id === chosen?.id) ?? chosen;
  const isSelf = ({ person_id: personId }: Member) => personId === session.person.id;
  const owners = listing.items.filter(({ role }) => role === "owner").length;
  const questionOf = (member: Member) => ({
    ...{ member, actorRole, isSelf: isSelf(member) },
    isLastOwner: member.role === "owner" && owners === 1 && !listing.hasNextPage && isAll,
  });
  const columns: Column<Member>[] = [
    {
      name: "name",
      ...nameHead,
      cell: (member) => (
        <>
          <Group gap="xs">
            <Text size="sm" fw={600} style={{ overflowWrap: "anywhere" }}>
              {member.name}
            </Text>
            {isSelf(member) && (
              <Badge variant="light" tt="none">
                You
              </Badge>
            )}
          </Group>
          <SmallNote style={{ overflowWrap: "anywhere" }}>{member.email}</SmallNote>
          <Text size="xs" hiddenFrom="sm">
            {roleNames[member.role]}
          </Text>
        </>
      ),
    },
    {
      name: "role",
      head: "Role",
      cell: ({ role, sees_all_usage: all }) =>
        `${roleNames[role]}${role === "member" && all ? ", sees all usage" : ""}`,
      wideOnly: true,
      width: "7rem",
    },
    {
      name: "quotas",
      head: "Quotas",
      cell: ({ quotas }) => (
        <Text size="xs" lineClamp={2} c={quotas.length === 0 ? "dimmed" : ""}>
          {quotasInWords(quotas)}
        </Text>
      ),
      wideOnly: true,
      width: "12rem",
    },
    { name: "since", head: "Member since", cell: (member) => day(member.created_at), wideOnly: true, width: "8rem" },
    ...usageColumns,
    {
      name: "manage",
      head: "Action",
      numeric: true,
      width: "7rem",
      cell: (member) => (
        <SmallButton onClick={() => setManaged(member)} aria-label={`Manage ${member.name}, ${member.email}`}>
          Manage
        </SmallButton>
      ),
    },
  ];
  return (
    <>
      <LongTable
        label="Members"
        listing={listing}
        columns={columns}
        keyOf={({ id }) => id}
        rowHeight={58}
        height="36rem"
        choose={setManaged}
        status={status}
        empty={<Empty title="No members">Invite a person. They receive a link to set up their sign-in.</Empty>}
        below={below}
      />
      {shown && (
        <ManageMember
          key={shown.id}
          opened={managed !== undefined}
          member={shown}
          isSelf={isSelf(shown)}
          whyNoRole={whyNoOtherRole(questionOf(shown))}
          whyNoSight={whyNoSight(questionOf(shown))}
          whyNoQuotas={whyNoQuotas(questionOf(shown))}
          whyNoTools={whyNoTools(questionOf(shown))}
          whyNoRemoval={whyNoRemoval(questionOf(shown))}
          remove={() => {
            setManaged(undefined);
            setRemoved(shown);
          }}
          close={() => setManaged(undefined)}
        />
      )}
      <RemoveMember
        member={removed}
        isSelf={removed !== undefined && isSelf(removed)}
        close={() => setRemoved(undefined)}
      />
    </>
  );
}
