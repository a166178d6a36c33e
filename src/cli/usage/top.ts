// `headrace top`: the spend, the busiest keys and the slowest models of the last five minutes, live.

import { z } from "zod";
import { nanoOfUsd, usdOf } from "../../base/money.ts";
import { percentilesOfCounts, type TimeCounts } from "../../domain/usage/time-counts.ts";
import { existingAccountId } from "../admin/accounts.ts";
import { type Column, printRows } from "../command.ts";
import { requestJson, understood } from "../login/api-request.ts";
import type { Connection } from "../login/connection.ts";
import { serverCommand } from "../login/server-command.ts";
import { operatorNeeds } from "../models/model-records.ts";
import { formatCount, formatUsd } from "../terminal/figures.ts";
import type { Terminal } from "../terminal/terminal.ts";
import { withAllNames } from "./all-accounts.ts";
import { timesOfRows, timesSentence } from "./percentiles.ts";
import { readPages } from "./usage.ts";
import { usageRow } from "./usage-table.ts";

const spanSeconds = 300;
const refreshMs = 2_000;
const shownRows = 8;
const clearScreen = "\x1b[H\x1b[2J";

const row = usageRow.extend({
  first_token_ms: z.number().nullish(),
  tokens_per_second: z.number().nullish(),
});
type Row = z.infer<typeof row>;
const ownAccount = z.object({ id: z.string() });

/** The sums of one key or model. The mean times are weighted by the requests of each minute. */
interface Sums {
  name: string;
  requests: number;
  errors: number;
  tokens: number;
  nanoUsd: number;
  firstTokenMs: number | null;
  tokensPerSecond: number | null;
  times: TimeCounts | undefined;
}

export const topCommand = serverCommand({
  name: "top",
  summary: "show spend, busy keys and slow models of the last five minutes",
  description: `Show the spend, the busiest keys and the slowest models of the last five minutes, renewed every two seconds on a terminal until Ctrl-C. ${operatorNeeds}`,
  options: {
    allAccounts: ["--all-accounts", "show all accounts instead of the key's own"],
    account: ["--account <account>", "show one account: name or id"],
    once: ["--once", "print once and end, as without a terminal"],
    json: ["--json", "print the rows by minute, key and model as the API gives them, once"],
  },
  examples: ["headrace top --all-accounts", "headrace top --all-accounts --json"],
  async run({ connect, ask, context, options, terminal, nowSeconds }) {
    const connection = await connect();
    const account = await ask((_, signal) => accountOf(connection, options, signal));
    const read = (signal: AbortSignal) => readRows(connection, account, nowSeconds(), signal);
    if (options.json) return { json: (await ask((_, signal) => read(signal))).rows, show() {} };
    const isLive = terminal.stdout.isTTY === true && !options.once;
    await ask(async (_, signal) => {
      for (;;) {
        const { rows, names } = await read(signal);
        const shown = rows.map((one) => understood(row, one, connection, "usage report"));
        if (isLive) terminal.stdout.write(clearScreen);
        print(terminal, shown, names);
        if (!isLive) return;
        await context.pause(refreshMs, signal);
      }
    });
    return undefined;
  },
});

/** Returns the id of the account to show; undefined for all accounts. */
async function accountOf(
  connection: Connection,
  { account, allAccounts }: { account?: string | undefined; allAccounts?: boolean | undefined },
  signal: AbortSignal,
): Promise<string | undefined> {
  if (account !== undefined) return existingAccountId(connection, account, signal);
  if (allAccounts) return undefined;
  const answer = await requestJson(connection, "/account", signal);
  return understood(ownAccount, answer, connection, "account").id;
}

function readRows(connection: Connection, account: string | undefined, nowSeconds: number, signal: AbortSignal) {
  const query = new URLSearchParams({
    ...{ bucket: "minute", start: String(nowSeconds - spanSeconds), group_by: "account,key,model" },
    ...(account === undefined ? {} : { account }),
  });
  return readPages(connection, "/admin/usage", query, signal);
}

function print(terminal: Terminal, rows: readonly Row[], names: Readonly<Record<string, string>>): void {
  const { bold, dim } = terminal.out;
  const total = sum("", rows);
  const failed = total.requests === 0 ? "" : ` (${((total.errors / total.requests) * 100).toFixed(1)} %)`;
  terminal.print(
    `${bold("Last 5 minutes")}  ${formatCount(total.requests)} requests, ${formatCount(total.errors)} failed${failed}, ${formatCount(total.tokens)} tokens, ${formatUsd(usdOf(total.nanoUsd))}`,
  );
  terminal.print(`${timesSentence(total.times) ?? ""}\n`.trimStart());
  if (rows.length === 0) {
    terminal.print(dim("No request ended in this time."));
    return;
  }
  const keys = sumsBy(rows, (one) => withAllNames(one, names).key ?? "-");
  printTop(
    terminal,
    "KEY",
    keys.toSorted((a, b) => b.requests - a.requests || b.nanoUsd - a.nanoUsd),
  );
  terminal.print("");
  const models = sumsBy(rows, (one) => one.model ?? "-");
  printTop(
    terminal,
    "MODEL",
    models.toSorted((a, b) => (b.firstTokenMs ?? -1) - (a.firstTokenMs ?? -1)),
  );
}

const nameWidth = 26;

function printTop(terminal: Terminal, title: string, sums: readonly Sums[]): void {
  const columns: Column<Sums>[] = [
    [title, ({ name }) => (name.length > nameWidth ? `${name.slice(0, nameWidth - 1)}~` : name)],
    ["REQUESTS", ({ requests }) => formatCount(requests)],
    ["FAILED", ({ errors }) => formatCount(errors)],
    title === "MODEL"
      ? ["1ST P95", ({ times }) => p95Text(times)]
      : ["SPEND", ({ nanoUsd }) => formatUsd(usdOf(nanoUsd), 4)],
    ["1ST TOKEN", ({ firstTokenMs }) => (firstTokenMs === null ? "-" : `${formatCount(Math.round(firstTokenMs))} ms`)],
    ["TOKENS/S", ({ tokensPerSecond }) => formatCount(tokensPerSecond && Math.round(tokensPerSecond))],
  ];
  printRows(
    terminal,
    sums.slice(0, shownRows),
    columns,
    columns.slice(1).map(([name]) => name),
  );
  if (sums.length > shownRows) terminal.print(terminal.out.dim(`and ${sums.length - shownRows} more`));
}

function p95Text(times: TimeCounts | undefined): string {
  const found = times && percentilesOfCounts(times.firstToken);
  return found ? `${formatCount(found.p95)} ms` : "-";
}

function sumsBy(rows: readonly Row[], nameOf: (row: Row) => string): Sums[] {
  return [...Map.groupBy(rows, nameOf)].map(([name, of]) => sum(name, of));
}

function sum(name: string, rows: readonly Row[]): Sums {
  const total = (of: (row: Row) => number) => rows.reduce((all, one) => all + of(one), 0);
  const mean = (of: (row: Row) => number | null | undefined) => {
    const measured = rows.filter((one) => of(one) != null);
    const weight = measured.reduce((all, { requests }) => all + requests, 0);
    return weight === 0 ? null : measured.reduce((all, one) => all + (of(one) ?? 0) * one.requests, 0) / weight;
  };
  return {
    name,
    requests: total(({ requests }) => requests),
    errors: total(({ errors }) => errors),
    tokens: total(({ total_tokens: tokens }) => tokens),
    nanoUsd: total(({ cost }) => nanoOfUsd(cost ?? 0)),
    firstTokenMs: mean(({ first_token_ms: ms }) => ms),
    tokensPerSecond: mean(({ tokens_per_second: speed }) => speed),
    times: timesOfRows(rows),
  };
}
