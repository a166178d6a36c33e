// The open invitations into an account, and their withdrawal.
import { Stack, Text, Title } from "@mantine/core";
import { call } from "../../api/client.ts";
import type { Listing } from "../../api/queries.ts";
import type { Invitation } from "../../api/types.ts";
import { Confirm } from "../editing/confirm.tsx";
import { useQuestion } from "../editing/question.ts";
import { SmallButton } from "../page/buttons.tsx";
import type { Column } from "../table/column.ts";
import { LongTable } from "../table/long-table.tsx";
import { timeColumn } from "../table/time-column.tsx";
import { Ago } from "../words/ago.tsx";
import { Note, SmallNote } from "../words/note.tsx";
import { type Role, roleNames } from "./roles.ts";

interface InvitationsProps {
  /** The API path of the account's invitations. */
  path: string;
  listing: Listing<Invitation>;
  mayTakeBack(role: Role): boolean;
}

export function Invitations({ path, listing, mayTakeBack }: InvitationsProps) {
  const removal = useQuestion(({ id }: Invitation) => call("DELETE", `${path}/${id}`), {
    stale: [path],
    said: (_answer, { email }) => `The invitation for ${email} was revoked.`,
  });
  return (
    <Stack gap="sm">
      <Title order={2}>Pending invitations</Title>
      <LongTable
        label="Pending invitations"
        listing={listing}
        columns={columnsOf(mayTakeBack, removal.ask)}
        keyOf={({ id }) => id}
        rowHeight={58}
        height="24rem"
        empty={
          <Note>
            No pending invitations. An invitation is listed here until the person accepts it, for at most a week.
          </Note>
        }
      />
      <Confirm {...removal.dialog} title="Revoke the invitation?" action="Revoke invitation">
        The link that was sent to {removal.about?.email} stops working. You can invite this person again.
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
          <SmallNote hiddenFrom="sm">
            {roleNames[role]}, expires <Ago seconds={expires} />
          </SmallNote>
        </>
      ),
    },
    { name: "role", head: "Role", cell: ({ role }) => roleNames[role], wideOnly: true, width: "7rem" },
    timeColumn({ name: "sent", head: "Invited", width: "10rem", at: ({ created_at }) => created_at }),
    timeColumn({ name: "ends", head: "Expires", width: "10rem", at: ({ expires_at }) => expires_at }),
    {
      name: "take-back",
      head: "Action",
      numeric: true,
      width: "7rem",
      cell: (invitation) =>
        mayTakeBack(invitation.role) ? (
          <SmallButton onClick={() => ask(invitation)} aria-label={`Revoke the invitation for ${invitation.email}`}>
            Revoke{" "}
          </SmallButton>
        ) : (
          <SmallNote>Only an owner can revoke</SmallNote>
        ),
    },
  ];
}
