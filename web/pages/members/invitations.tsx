// Invitations that nobody has followed yet, and taking them back.
import { Button, Stack, Text, Title } from "@mantine/core";
import { notifications } from "@mantine/notifications";
import { useState } from "react";
import { call } from "../../api/client.ts";
import { useChange, useList } from "../../api/queries.ts";
import type { Invitation } from "../../api/types.ts";
import { Ago } from "../../parts/ago.tsx";
import { Confirm } from "../../parts/confirm.tsx";
import { type Column, LongTable } from "../../parts/long-table.tsx";
import { roleNames } from "../../parts/roles.ts";
import { useLast } from "../../parts/use-last.ts";
import { mayActOn, type Standing } from "./rights.ts";

export function Invitations({ standing }: { standing: Standing }) {
  const listing = useList<Invitation>("/v1/invitations", { limit: 100 });
  const [leaving, setLeaving] = useState<Invitation>();
  const asked = useLast(leaving);
  const withdraw = useChange(({ id }: Invitation) => call("DELETE", `/v1/invitations/${id}`), {
    stale: ["/v1/invitations"],
    done(_answer, { email }) {
      setLeaving(undefined);
      notifications.show({ message: `The invitation of ${email} is taken back.` });
    },
  });
  const columns: Column<Invitation>[] = [
    {
      name: "email",
      head: "E-mail address",
      cell: ({ email, role, expires_at: expires }) => (
        <>
          <Text size="sm" style={{ overflowWrap: "anywhere" }}>
            {email}
          </Text>
          <Text size="xs" c="dimmed" hiddenFrom="sm">
            {roleNames[role]}, ends <Ago seconds={expires} />
          </Text>
        </>
      ),
    },
    { name: "role", head: "Role", cell: ({ role }) => roleNames[role], wideOnly: true, width: "7rem" },
    {
      name: "sent",
      head: "Invited",
      cell: ({ created_at: created }) => <Ago seconds={created} />,
      wideOnly: true,
      width: "10rem",
    },
    {
      name: "ends",
      head: "Ends",
      cell: ({ expires_at: expires }) => <Ago seconds={expires} />,
      wideOnly: true,
      width: "10rem",
    },
    {
      name: "withdraw",
      head: "Action",
      numeric: true,
      width: "7rem",
      cell: (invitation) =>
        mayActOn(standing, invitation.role) ? (
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
        ) : (
          <Text size="xs" c="dimmed">
            An owner's to take back
          </Text>
        ),
    },
  ];
  return (
    <Stack gap="sm">
      <Title order={2}>Open invitations</Title>
      <LongTable
        label="Open invitations"
        listing={listing}
        columns={columns}
        keyOf={({ id }) => id}
        rowHeight={58}
        height="24rem"
        empty={
          <Text size="sm" c="dimmed">
            None. Whoever is invited is listed here until they follow their link, for a week at most.
          </Text>
        }
      />
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
