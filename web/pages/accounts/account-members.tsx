// The members of an account, and its open invitations.
import { Group, Stack, Text, Title } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { useList } from "../../api/queries.ts";
import type { Account, Invitation, Member } from "../../api/types.ts";
import { Invitations } from "../../parts/membership/invitations.tsx";
import { Invite } from "../../parts/membership/invite.tsx";
import { usePeopleList } from "../../parts/membership/people-list.tsx";
import { roleNames } from "../../parts/membership/roles.ts";
import { AddButton } from "../../parts/page/buttons.tsx";
import { Empty } from "../../parts/page/empty.tsx";
import type { Column } from "../../parts/table/column.ts";
import { LongTable } from "../../parts/table/long-table.tsx";
import { SmallNote } from "../../parts/words/note.tsx";

export function AccountMembers({ account }: { account: Account }) {
  const base = `/v1/admin/accounts/${account.id}`;
  const path = `${base}/invitations`;
  const [inviting, { open, close }] = useDisclosure();
  const { listing, status, nameHead, usageColumns } = usePeopleList<Member>(`${base}/members`);
  const invited = useList<Invitation>(path, { limit: 100 });
  const invite = <AddButton onClick={open}>Invite</AddButton>;
  const hasInvited = invited.items.length > 0;
  const columns: Column<Member>[] = [
    {
      name: "name",
      ...nameHead,
      cell: ({ name, email }) => (
        <>
          <Text size="sm">{name}</Text>
          <SmallNote>{email}</SmallNote>
        </>
      ),
    },
    { name: "role", head: "Role", cell: ({ role }) => roleNames[role] },
    ...usageColumns,
  ];
  return (
    <Stack>
      <Group justify="space-between">
        <Title order={2}>Members</Title>
        {listing.items.length > 0 && invite}
      </Group>
      <LongTable
        label={`Members of ${account.name}`}
        listing={listing}
        columns={columns}
        keyOf={({ id }) => id}
        rowHeight={58}
        height="26rem"
        status={status}
        empty={
          <Empty title="No members yet" action={invite}>
            {hasInvited
              ? "An invitation is pending."
              : "Invite the owner of the account. The owner signs up through a link and can then invite others."}
          </Empty>
        }
      />
      {(hasInvited || invited.error) && <Invitations path={path} listing={invited} mayTakeBack={() => true} />}
      <Invite {...{ path, into: account.name, usual: "owner", opened: inviting, close }} />
    </Stack>
  );
}
