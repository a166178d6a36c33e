// Lists all members of the account with their roles. Each row opens the member's dialog.
import { Badge, Group, Text } from "@mantine/core";
import { type ReactNode, useCallback, useMemo, useState } from "react";
import { useList, useRead } from "../../api/queries.ts";
import { useSession } from "../../api/session.tsx";
import type { Member, Statement } from "../../api/types.ts";
import { useLast } from "../../parts/editing/use-last.ts";
import { roleNames } from "../../parts/membership/roles.ts";
import { SmallButton } from "../../parts/page/buttons.tsx";
import { Empty } from "../../parts/page/empty.tsx";
import type { Column } from "../../parts/table/column.ts";
import { LongTable } from "../../parts/table/long-table.tsx";
import { sortable } from "../../parts/table/sort-head.tsx";
import { timeColumn } from "../../parts/table/time-column.tsx";
import { type SortValue, useWholeList } from "../../parts/table/whole-list.ts";
import { day, money } from "../../parts/words/figures.ts";
import { SmallNote } from "../../parts/words/note.tsx";
import { quotasInWords } from "../../parts/words/quotas.ts";
import { ManageMember } from "./manage-member.tsx";
import { RemoveMember } from "./remove-member.tsx";
import { type ActorRole, whyNoOtherRole, whyNoQuotas, whyNoRemoval, whyNoSight, whyNoTools } from "./rights.ts";

export function MemberList({ actorRole, below }: { actorRole: ActorRole; below: ReactNode }) {
  const { session } = useSession();
  const first = useList<Member>("/v1/members", { limit: 100 });
  const spend = useSpend();
  const [order, setOrder] = useState("");
  const orderOf = useCallback((name: string) => sortValueOf(name, spend), [spend]);
  const sorted = useWholeList<Member>("/v1/members", {}, order, orderOf);
  const listing = order === "" ? first : sorted.listing;
  const [managed, setManaged] = useState<Member>();
  const [removed, setRemoved] = useState<Member>();
  const chosen = useLast(managed);
  // The dialog shows the member from the list, which is loaded again after each change made in the dialog.
  const shown = listing.items.find(({ id }) => id === chosen?.id) ?? chosen;
  const isSelf = ({ person_id: personId }: Member) => personId === session.person.id;
  const owners = listing.items.filter(({ role }) => role === "owner").length;
  const questionOf = (member: Member) => ({
    ...{ member, actorRole, isSelf: isSelf(member) },
    isLastOwner: member.role === "owner" && owners === 1 && !listing.hasNextPage && sorted.isAll,
  });
  const head = (name: string, text: string, falls: boolean) =>
    sortable({ name, text, order, first: falls ? "falls" : "rises", change: setOrder });
  const columns: Column<Member>[] = [
    {
      name: "name",
      ...head("name", "Name", false),
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
    {
      name: "spend",
      ...head("spend", "Spend, month", true),
      cell: ({ person_id: id }) => (spend ? money(spend.get(id) ?? 0) : ""),
      wideOnly: "middle",
      width: "9rem",
      numeric: true,
    },
    timeColumn({
      name: "seen",
      ...head("seen", "Last seen", true),
      width: "8rem",
      at: (row) => row.last_seen_at,
      never: "not recently",
    }),
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

type Spend = ReadonlyMap<string, number>;

/** Loads the spend of this month by person; undefined until it is known. */
function useSpend(): Spend | undefined {
  const { data } = useRead<Statement>("/v1/statement", { group_by: "person" });
  return useMemo(() => data && new Map(data.lines.map(({ person, cost }) => [person ?? "", Number(cost)])), [data]);
}

function sortValueOf(name: string, spend: Spend | undefined): SortValue<Member> {
  if (name === "name") return (member) => member.name;
  return name === "seen" ? (member) => member.last_seen_at ?? 0 : ({ person_id: id }) => spend?.get(id) ?? 0;
}
