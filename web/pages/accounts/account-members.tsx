// Who belongs to an account, and who is invited.
import { Button, Group, Stack, Text, Title } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { notifications } from "@mantine/notifications";
import { PlusIcon } from "@primer/octicons-react";
import { useState } from "react";
import { call } from "../../api/client.ts";
import { useChange, useList } from "../../api/queries.ts";
import type { Account, Invitation, Member } from "../../api/types.ts";
import { Ago } from "../../parts/ago.tsx";
import { Confirm } from "../../parts/confirm.tsx";
import { Empty } from "../../parts/empty.tsx";
import { type Column, LongTable } from "../../parts/long-table.tsx";
import { roleNames } from "../../parts/roles.ts";
import { useLast } from "../../parts/use-last.ts";
import { Invite } from "./invite.tsx";

const members: Column<Member>[] = [
  {
    name: "name",
    head: "Name",
    cell: ({ name, email }) => (
      <>
        <Text size="sm">{name}</Text>
        <Text size="xs" c="dimmed">
          {email}
        </Text>
      </>
    ),
  },
  { name: "role", head: "Role", cell: ({ role }) => roleNames[role] },
  {
    name: "seen",
    head: "Last seen",
    wideOnly: true,
    cell: ({ last_seen_at }) => <Ago seconds={last_seen_at} never="not lately" />,
  },
];

export function AccountMembers({ account }: { account: Account }) {
  const base = `/v1/admin/accounts/${account.id}`;
  const [inviting, { open, close }] = useDisclosure();
  const [leaving, setLeaving] = useState<Invitation>();
  const asked = useLast(leaving);
  const listing = useList<Member>(`${base}/members`, { limit: 100 });
  const invited = useList<Invitation>(`${base}/invitations`, { limit: 100 });
  const withdraw = useChange(({ id }: Invitation) => call("DELETE", `${base}/invitations/${id}`), {
    stale: [`${base}/invitations`],
    done(_answer, { email }) {
      setLeaving(undefined);
      notifications.show({ message: `The invitation of ${email} is taken back.` });
    },
  });
  const invitations: Column<Invitation>[] = [
    { name: "email", head: "E-mail", cell: ({ email }) => email },
    { name: "role", head: "Role", wideOnly: true, cell: ({ role }) => roleNames[role] },
    { name: "ends", head: "Ends", wideOnly: true, cell: ({ expires_at }) => <Ago seconds={expires_at} /> },
    {
      name: "withdraw",
      head: "Action",
      numeric: true,
      cell: (invitation) => (
        <Button
          size="xs"
          variant="default"
          onClick={() => {
            withdraw.reset();
            setLeaving(invitation);
          }}
          aria-label={`Take back the invitation of ${invitation.email}`}
        >
          Take back
        </Button>
      ),
    },
  ];
  const invite = (
    <Button leftSection={<PlusIcon />} onClick={open}>
      Invite
    </Button>
  );
  const hasInvited = invited.items.length > 0;
  return (
    <Stack>
      <Group justify="space-between">
        <Title order={2}>Members</Title>
        {listing.items.length > 0 && invite}
      </Group>
      <LongTable
        label={`Members of ${account.name}`}
        listing={listing}
        columns={members}
        keyOf={({ id }) => id}
        rowHeight={58}
        height="26rem"
        empty={
          <Empty title="No members yet" action={invite}>
            {hasInvited
              ? "Somebody is invited and has not followed the link yet."
              : "Invite its owner: they set a password by a link, and invite their colleagues themselves."}
          </Empty>
        }
      />
      {(hasInvited || invited.error) && (
        <>
          <Title order={2}>Open invitations</Title>
          <LongTable
            label={`Invitations into ${account.name}`}
            listing={invited}
            columns={invitations}
            keyOf={({ id }) => id}
            height="18rem"
            empty={null}
          />
        </>
      )}
      <Invite opened={inviting} close={close} account={account} />
      <Confirm
        opened={leaving !== undefined}
        title="Take the invitation back?"
        action="Take it back"
        busy={withdraw.isPending}
        error={withdraw.error}
        confirm={() => leaving && withdraw.mutate(leaving)}
        close={() => setLeaving(undefined)}
      >
        The link that {asked?.email} got no longer works. You can invite them again.
      </Confirm>
    </Stack>
  );
}
