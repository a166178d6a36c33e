// The invitations into an account that nobody has followed yet, and taking them back.
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
  /** Where the API keeps the account's invitations. */
  path: string;
  listing: Listing<Invitation>;
  mayTakeBack(role: Role): boolean;
}

export function Invitations({ path, listing, mayTakeBack }: InvitationsProps) {
  const removal = useQuestion(({ id }: Invitation) => call("DELETE", `${path}/${id}`), {
    stale: [path],
    said: (_answer, { email }) => `The invitation of ${email} is taken back.`,
  });
  return (
    <Stack gap="sm">
      <Title order={2}>Open invitations</Title>
      <LongTable
        label="Open invitations"
        listing={listing}
        columns={columnsOf(mayTakeBack, removal.ask)}
        keyOf={({ id }) => id}
        rowHeight={58}
        height="24rem"
        empty={<Note>None. Whoever is invited is listed here until they follow their link, for a week at most.</Note>}
      />
      <Confirm {...removal.dialog} title="Take the invitation back?" action="Take it back">
        The link that {removal.about?.email} got no longer works. You can invite them again.
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
            {roleNames[role]}, ends <Ago seconds={expires} />
          </SmallNote>
        </>
      ),
    },
    { name: "role", head: "Role", cell: ({ role }) => roleNames[role], wideOnly: true, width: "7rem" },
    timeColumn({ name: "sent", head: "Invited", width: "10rem", at: ({ created_at }) => created_at }),
    timeColumn({ name: "ends", head: "Ends", width: "10rem", at: ({ expires_at }) => expires_at }),
    {
      name: "take-back",
      head: "Action",
      numeric: true,
      width: "7rem",
      cell: (invitation) =>
        mayTakeBack(invitation.role) ? (
          <SmallButton onClick={() => ask(invitation)} aria-label={`Take back the invitation of ${invitation.email}`}>
            Take back
          </SmallButton>
        ) : (
          <SmallNote>An owner's to take back</SmallNote>
        ),
    },
  ];
}
