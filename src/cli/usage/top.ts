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
import { allNames, withAllNames } from "./all-accounts.ts";
import { timesOfRows, timesSentence } from "./percentiles.ts";
import { readPages } from "./usage.ts";
import { usageRow } from "./usage-table.ts";

const spanSeconds = 300;
const refreshMs = 2_000;
const shownRows = 8;
/** Replaces the key's name for requests without a key, and for refusals that belong to too many keys to list. */
const noKey = "-";
const clearScreen = "\x1b[H\x1b[2J";

const row = usageRow.extend({ tokens_per_second: z.number().nullish() });
type Row = z.infer<typeof row>;
const refusedOfKey = z.object({
  ...{ key: z.string().nullable(), account: z.string(), requests: z.number(), last_at: z.number() },
});
type Refused = z.infer<typeof refusedOfKey>;
const refusedList = z.object({ data: z.array(refusedOfKey), names: allNames });
const ownAccount = z.object({ id: z.string() });

/** The sums of one key or model. The mean speed is weighted by the requests of each minute. */
interface Sums {
  /** The id of the key, or the model. */
  id: string;
  name: string;
  requests: number;
  /**
   * Refused requests. The server counts refusals by hour, so all hours that overlap the last five minutes are included.
   */
  refused: number;
  errors: number;
  tokens: number;
  nanoUsd: number;
  tokensPerSecond: number | null;
  times: TimeCounts | undefined;
}

interface Read {
  rows: unknown[];
  refused: Refused[];
  names: Readonly<Record<string, string>>;
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
        const { rows, ...others } = await read(signal);
        const shown = rows.map((one) => understood(row, one, connection, "usage report"));
        if (isLive) terminal.stdout.write(clearScreen);
        print(terminal, { ...others, rows: shown });
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

/**
 * Reads the usage by minute, and the refusals of keys that were refused since the start of the span. The server counts
 * refusals by hour.
 */
async function readRows(
  connection: Connection,
  account: string | undefined,
  nowSeconds: number,
  signal: AbortSignal,
): Promise<Read> {
  const start = nowSeconds - spanSeconds;
  const query = new URLSearchParams({ start: String(start), ...(account === undefined ? {} : { account }) });
  const [answer, usage] = await Promise.all([
    requestJson(connection, `/admin/refusals?${query}`, signal),
    readPages(
      connection,
      "/admin/usage",
      new URLSearchParams([["bucket", "minute"], ["group_by", "account,key,model"], ...query]),
      signal,
    ),
  ]);
  const { data, names } = understood(refusedList, answer, connection, "list of refusals");
  return { ...usage, refused: data.filter(({ last_at: at }) => at >= start), names: { ...names, ...usage.names } };
}

function print(terminal: Terminal, { rows, refused, names }: Omit<Read, "rows"> & { rows: readonly Row[] }): void {
  const { bold, dim } = terminal.out;
  const total = sum("", rows);
  const failed = total.requests === 0 ? "" : ` (${((total.errors / total.requests) * 100).toFixed(1)} %)`;
  terminal.print(
    `${bold("Last 5 minutes")}  ${formatCount(total.requests)} requests, ${formatCount(total.errors)} failed${failed}, ${formatCount(total.tokens)} tokens, ${formatUsd(usdOf(total.nanoUsd))}`,
  );
  terminal.print(`${timesSentence(total.times) ?? ""}\n`.trimStart());
  if (rows.length === 0 && refused.length === 0) {
    terminal.print(dim("No request ended in this time, and limits refused none."));
    return;
  }
  const keys = sumsOfKeys(rows, refused, names).toSorted(
    (a, b) => b.requests + b.refused - a.requests - a.refused || b.nanoUsd - a.nanoUsd,
  );
  printTop(terminal, keys, [
    ["KEY", ({ name }) => cut(name)],
    ["REQUESTS", ({ requests }) => formatCount(requests)],
    ["FAILED", ({ errors }) => formatCount(errors)],
    ["REFUSED/H", ({ refused: count }) => formatCount(count)],
    ["TOKENS", ({ tokens }) => formatCount(tokens)],
    ["SPEND", ({ nanoUsd }) => formatUsd(usdOf(nanoUsd), 4)],
  ]);
  for (const { id, name } of keys.filter((one) => one.id !== noKey).slice(0, namedKeys))
    terminal.print(dim(`  ${id}  ${cut(name)}`));
  terminal.print("");
  const slowness = ({ times }: Sums) => p95Of(times?.total) ?? -1;
  const models = sumsBy(rows, (one) => one.model ?? "-").toSorted((a, b) => slowness(b) - slowness(a));
  printTop(terminal, models, [
    ["MODEL", ({ name }) => cut(name)],
    ["REQUESTS", ({ requests }) => formatCount(requests)],
    ["FAILED", ({ errors }) => formatCount(errors)],
    ["1ST P95", ({ times }) => p95Text(times?.firstToken)],
    ["WHOLE P95", ({ times }) => p95Text(times?.total)],
    ["TOKENS/S", ({ tokensPerSecond }) => formatCount(tokensPerSecond && Math.round(tokensPerSecond))],
  ]);
}

function sumsOfKeys(rows: readonly Row[], refused: readonly Refused[], names: Read["names"]): Sums[] {
  const used = sumsBy(rows, ({ key }) => key ?? noKey);
  const accounts = new Map([...rows, ...refused].map(({ key, account }) => [key ?? noKey, account]));
  const counts = Map.groupBy(refused, ({ key }) => key ?? noKey);
  const unused = [...counts.keys()].filter((id) => used.every((one) => one.id !== id)).map((id) => sum(id, []));
  return [...used, ...unused].map((one) => ({
    ...one,
    name: one.id === noKey ? noKey : withAllNames({ key: one.id, account: accounts.get(one.id) }, names).key,
    refused: (counts.get(one.id) ?? []).reduce((all, { requests }) => all + requests, 0),
  }));
}

const nameWidth = 26;
/** Number of keys whose ids are printed, because a command that suspends a key needs its id. */
const namedKeys = 3;

function cut(name: string): string {
  return name.length > nameWidth ? `${name.slice(0, nameWidth - 1)}~` : name;
}

function printTop(terminal: Terminal, sums: readonly Sums[], columns: readonly Column<Sums>[]): void {
  printRows(
    terminal,
    sums.slice(0, shownRows),
    columns,
    columns.slice(1).map(([name]) => name),
  );
  if (sums.length > shownRows) terminal.print(terminal.out.dim(`and ${sums.length - shownRows} more`));
}

function p95Of(counts: readonly number[] | undefined): number | undefined {
  return counts && percentilesOfCounts(counts)?.p95;
}

function p95Text(counts: readonly number[] | undefined): string {
  const p95 = p95Of(counts);
  return p95 === undefined ? "-" : `${formatCount(p95)} ms`;
}

function sumsBy(rows: readonly Row[], idOf: (row: Row) => string): Sums[] {
  return [...Map.groupBy(rows, idOf)].map(([id, of]) => sum(id, of));
}

function sum(id: string, rows: readonly Row[]): Sums {
  const total = (of: (row: Row) => number) => rows.reduce((all, one) => all + of(one), 0);
  const measured = rows.filter(({ tokens_per_second: speed }) => speed != null);
  const weight = measured.reduce((all, { requests }) => all + requests, 0);
  const weighted = measured.reduce((all, one) => all + (one.tokens_per_second ?? 0) * one.requests, 0);
  return {
    ...{ id, name: id, refused: 0 },
    requests: total(({ requests }) => requests),
    errors: total(({ errors }) => errors),
    tokens: total(({ total_tokens: tokens }) => tokens),
    nanoUsd: total(({ cost }) => nanoOfUsd(cost ?? 0)),
    tokensPerSecond: weight === 0 ? null : weighted / weight,
    times: timesOfRows(rows),
  };
}
