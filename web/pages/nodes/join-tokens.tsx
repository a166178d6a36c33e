// The join tokens that are still valid, and the button that withdraws one.
import { Stack, Text, Title } from "@mantine/core";
import { call } from "../../api/client.ts";
import { useList } from "../../api/queries.ts";
import type { NodeJoinToken } from "../../api/types.ts";
import { Confirm } from "../../parts/editing/confirm.tsx";
import { useQuestion } from "../../parts/editing/question.ts";
import { SmallButton } from "../../parts/page/buttons.tsx";
import type { Column } from "../../parts/table/column.ts";
import { LongTable } from "../../parts/table/long-table.tsx";
import { Ago } from "../../parts/words/ago.tsx";
import { environmentList } from "../../parts/words/environments.ts";
import { SmallNote } from "../../parts/words/note.tsx";
import { approvalText } from "./approvals.ts";
import { tokensPath } from "./use-node-change.ts";

/** Renders nothing without tokens, because the dialog that creates tokens explains them. */
export function JoinTokens() {
  const listing = useList<NodeJoinToken>(tokensPath, {}, { everyMs: 5_000 });
  const withdrawal = useQuestion(({ id }: NodeJoinToken) => call("DELETE", `${tokensPath}/${encodeURIComponent(id)}`), {
    stale: [tokensPath],
    said: (_answer, { last4 }) => `The join token …${last4} was revoked.`,
  });
  const open = listing.items.filter(({ status }) => status === "active");
  if (open.length === 0 && !withdrawal.dialog.opened && !listing.error) return null;
  return (
    <Stack gap="sm">
      <Title order={2}>Pending join tokens</Title>
      <LongTable
        label="Pending join tokens"
        listing={{ ...listing, items: open }}
        columns={columnsOf(withdrawal.ask)}
        keyOf={({ id }) => id}
        rowHeight={58}
        height="24rem"
        empty={null}
      />
      <Confirm {...withdrawal.dialog} title="Revoke the join token?" action="Revoke token">
        The command with the token …{withdrawal.about?.last4} stops working. Existing nodes stay.
      </Confirm>
    </Stack>
  );
}

function columnsOf(ask: (token: NodeJoinToken) => void): Column<NodeJoinToken>[] {
  return [
    {
      name: "token",
      head: "Token",
      cell: ({ last4, expires_at: expires }) => (
        <>
          <Text size="sm" ff="monospace">
            …{last4}
          </Text>
          <SmallNote hiddenFrom="sm">
            Ends <Ago seconds={expires} />
          </SmallNote>
        </>
      ),
    },
    {
      name: "serves",
      head: "Models",
      cell: ({ approved_models: approved }) => <Text size="sm">{approvalText(approved)}</Text>,
    },
    {
      name: "environments",
      head: "Environments",
      wideOnly: true,
      cell: ({ environments }) => environmentList(environments),
    },
    { name: "made", head: "Created", wideOnly: true, cell: ({ created_at: made }) => <Ago seconds={made} /> },
    { name: "ends", head: "Expires", wideOnly: true, cell: ({ expires_at: expires }) => <Ago seconds={expires} /> },
    {
      name: "withdraw",
      head: "Action",
      numeric: true,
      width: "7rem",
      cell: (token) => (
        <SmallButton onClick={() => ask(token)} aria-label={`Revoke the token …${token.last4}`}>
          Revoke{" "}
        </SmallButton>
      ),
    },
  ];
}
