// The printable statement: scope, lines and notes.
import { Group, Paper, Stack, Text, Title } from "@mantine/core";
import type { Statement, StatementOfAccounts } from "../../api/types.ts";
import { environmentNames } from "../../parts/words/environments.ts";
import { Facts } from "../../parts/words/facts.tsx";
import { at, count, usdColumn } from "../../parts/words/figures.ts";
import { Note } from "../../parts/words/note.tsx";
import { monthName } from "./statement-ask.ts";
import { nameOf, StatementTable } from "./statement-table.tsx";

interface StatementPaperProps {
  statement: Statement | StatementOfAccounts;
  columns: readonly string[];
}

export function StatementPaper({ statement, columns }: StatementPaperProps) {
  const { month, installation, environment, is_over: isOver, start, end, created_at: made, total } = statement;
  const ofOne = "account" in statement ? statement : undefined;
  const part = ofOne ? partOf(ofOne.of) : [];
  return (
    <Paper withBorder className="statement" component="section" aria-label="Statement">
      <Stack gap="md">
        <Group justify="space-between" align="start" gap="md">
          <div>
            <Title order={2}>Statement of {monthName(month)}</Title>
            <Text mt={4}>
              {"account" in statement ? statement.account.name : (statement.organization?.name ?? "All accounts")}
            </Text>
          </div>
          <div className="statement-total">
            <Text size="sm" c="dimmed">
              {isOver ? "Total" : "To date"}
            </Text>
            <Text fw={700} fz="xl" className="numeric">
              {usdColumn([total.cost])(total.cost)} USD
            </Text>
          </div>
        </Group>
        <Facts
          facts={[
            ...(ofOne ? ([["Account", ofOne.account.id]] as const) : []),
            ...part,
            ["Server", installation],
            ["Environment", environmentNames[environment]],
            ["Time", `${utc(start)} to ${utc(end - 1)}, UTC`],
            ["Created", `${utc(made)}, UTC`],
          ]}
        />
        <StatementTable columns={columns} lines={statement.lines} others={ofOne?.others ?? null} total={total} />
        <Notes {...{ statement }} />
      </Stack>
    </Paper>
  );
}

function Notes({ statement }: { statement: Statement | StatementOfAccounts }) {
  const { is_over: isOver, unpriced_since: since, total } = statement;
  const overlaps = "overlaps" in statement && statement.overlaps;
  const notes = [
    ...(isOver ? [] : ["The month is not over. Further usage will be added."]),
    ...(overlaps
      ? [
          "A request with several tags appears in several lines, so the lines can add up to more than the total. The total counts each request once.",
        ]
      : ["The lines add up exactly to the total, and the total matches the ledger."]),
    ...(total.unpriced_requests > 0
      ? [
          `Requests to models without a price, not included in the cost: ${count(total.unpriced_requests)} of ${count(total.requests)}.`,
        ]
      : []),
    ...(since === null
      ? []
      : [`Requests without a price are counted since ${at(since)}. Earlier ones may be missing.`]),
    "A request belongs to the month in which it started. Input tokens include cached and written tokens. Output tokens include reasoning tokens.",
  ];
  return (
    <Stack gap={2}>
      {notes.map((note) => (
        <Note key={note}>{note}</Note>
      ))}
    </Stack>
  );
}

const partNames = { key: "Of the key", person: "Of", app: "Through the app", tag: "With the tag" } as const;

function partOf(of: Statement["of"]): [string, string][] {
  return (Object.keys(partNames) as (keyof typeof partNames)[]).flatMap((name): [string, string][] => {
    if (of[name] === undefined) return [];
    const { name: called, id } = nameOf(of, name);
    return [[partNames[name], id === undefined ? called : `${called}, ${id}`]];
  });
}

function utc(seconds: number): string {
  return new Date(seconds * 1000)
    .toISOString()
    .replace("T", " ")
    .replace(/:\d\d\.000Z$/, "");
}
