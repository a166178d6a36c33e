// The invitations into an account that nobody has followed yet, and taking them back.
import { Button, Stack, Text, Title } from "@mantine/core";
import { notifications } from "@mantine/notifications";
import { useState } from "react";
import { call } from "../../api/client.ts";
import { type Listing, useChange } from "../../api/queries.ts";
import type { Invitation } from "../../api/types.ts";
import { Confirm } from "../editing/confirm.tsx";
import { useLast } from "../editing/use-last.ts";
import type { Column } from "../table/column.ts";
import { LongTable } from "../table/long-table.tsx";
import { Ago } from "../words/ago.tsx";
import { type Role, roleNames } from "./roles.ts";

interface InvitationsProps {
  /** Of the account's invitations. */
  path: string;
  listing: Listing<Invitation>;
  mayTakeBack(role: Role): boolean;
}

export function Invitations({ path, listing, mayTakeBack }: InvitationsProps) {
  const [asking, setAsking] = useState<Invitation>();
  const asked = useLast(asking);
  const removal = useChange(({ id }: Invitation) => call("DELETE", `${path}/${id}`), {
    stale: [path],
    done(_answer, { email }) {
      setAsking(undefined);
      notifications.show({ message: `The invitation of ${email} is taken back.` });
    },
  });
  const ask = (invitation: Invitation) => {
    removal.reset();
    setAsking(invitation);
  };
  return (
    <Stack gap="sm">
      <Title order={2}>Open invitations</Title>
      <LongTable
        label="Open invitations"
        listing={listing}
        columns={columnsOf(mayTakeBack, ask)}
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
        opened={asking !== undefined}
        title="Take the invitation back?"
        action="Take it back"
        busy={removal.isPending}
        error={removal.error}
        confirm={() => asking && removal.mutate(asking)}
        close={() => setAsking(undefined)}
      >
        The link that {asked?.email} got no longer works. You can invite them again.
      </Confirm>
    </Stack>
  );
}

function columnsOf(
  mayTakeBack: InvitationsProps["mayTakeBack"],
  ask: (invitation: Invitation) => void,
): Column<Invitation>[] {
  return [
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
      name: "take-back",
      head: "Action",
      numeric: true,
      width: "7rem",
      cell: (invitation) =>
        mayTakeBack(invitation.role) ? (
          <Button
            size="xs"
            variant="default"
            onClick={() => ask(invitation)}
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
}
