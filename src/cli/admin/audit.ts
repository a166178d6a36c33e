// `headrace audit`: shows who changed what, from the audit log of all accounts. For operators.
import { z } from "zod";
import { auditActions } from "../../domain/audit.ts";
import { keyRecord } from "../keys/key-records.ts";
import { parseCount } from "../keys/key-settings.ts";
import { requestJson, requestList, understood } from "../login/api-request.ts";
import type { Connection } from "../login/connection.ts";
import { serverCommand } from "../login/server-command.ts";
import { operatorNeeds } from "../models/model-records.ts";
import { formatTimeWithSeconds } from "../terminal/figures.ts";
import { wrapped } from "../terminal/fitted-text.ts";
import { CliError, printable, type Terminal } from "../terminal/terminal.ts";
import { parseEnd, parseStart } from "../terminal/when.ts";
import { namesOfKeys } from "../usage/usage-names.ts";
import { accountPath, existingAccountId, findAccountId } from "./accounts.ts";

const text = z.string().nullish();
const event = z.object({
  id: z.string(),
  at: z.number(),
  action: z.string(),
  actor: z.object({ type: z.string(), id: text }),
  account_id: text,
  target_id: text,
  client_address: text,
  request_id: text,
  detail: z.record(z.string(), z.unknown()),
});
type Event = z.infer<typeof event>;

const page = z.object({ data: z.array(z.unknown()), last_id: text, has_more: z.boolean() });
const pageSize = 100;
/** Maximum number of pages. A page of a filtered log scans 20,000 events and may be empty. */
const maxPages = 50;

export const auditCommand = serverCommand({
  name: "audit",
  summary: "show who changed what, from the audit log",
  description: `Show the audit log of all accounts, newest first. ${operatorNeeds}`,
  options: {
    limit: ["--limit <number>", "how many events (default: 20)", parseCount],
    action: ["--action <action>", "only this action, such as key.revoked", auditActions],
    target: ["--target <target>", "only changes of this key, account, person, tier, upstream, …"],
    account: ["--account <account>", "only events about this account: name or id"],
    start: ["--start <when>", "first day or time", parseStart],
    end: ["--end <when>", "last day, or time (default: now)", parseEnd],
    json: ["--json", "print the events as the API gives them"],
  },
  examples: [
    "headrace audit --target key_01a1fa87-aec2-73b0-a423-ec670cceb9ca",
    "headrace audit --action account.updated --account 'Web shop'",
    "headrace audit --start 2026-11-20 --limit 100",
    "headrace audit --action key.suspended             leaves views and refusals out",
  ],
  help: [
    `A target is an id (key_…, acct_…, usr_…), the name of an account, tier, upstream or model,
or with --account the name of a key of this account.`,
    "Times are of this machine's zone, dates alone whole days of UTC.",
  ],
  async run({ connect, ask, options, terminal }) {
    const { limit = 20, action, target, account, start, end } = options;
    const connection = await connect();
    const { entries, isCut } = await ask(async (_, signal) => {
      const id = account === undefined ? undefined : await existingAccountId(connection, account, signal);
      const targetId = target === undefined ? undefined : await findTarget(connection, target, id, signal);
      const given = Object.entries({ action, target: targetId ?? target, account: id, start, end }).filter(
        ([, value]) => value !== undefined,
      );
      const query = new URLSearchParams(given.map(([name, value]) => [name, String(value)]));
      const found = await readEvents(connection, query, limit, signal);
      if (target === undefined || targetId !== undefined || found.entries.length > 0) return found;
      throw new CliError(
        `No event is about \`${printable(target)}\`, and no account has this name. A target is an id (key_…, acct_…, usr_…), the name of an account, tier, upstream or model, or with --account the name of a key of this account.`,
      );
    });
    const show = async () => {
      const events = entries.map((raw) => understood(event, raw, connection, "list of events"));
      if (events.length === 0)
        terminal.note(isCut ? "No such event among the newest ones." : "There is no such event.");
      const hasKeys = events.some(({ actor }) => actor.type === "key");
      const names = hasKeys ? await ask((_, signal) => namesOfKeys(connection, signal)) : new Map<string, string>();
      for (const one of events) printEvent(terminal, one, names);
      if (isCut) terminal.note("There may be older events: give --end, or a larger --limit.");
    };
    return { json: entries, show };
  },
});

const isId = /^[a-z]+_[0-9a-f]{8}-/;

/**
 * Returns `target` if it is an id, or else the id of the account or key with this name. Undefined if neither the
 * accounts nor the account's keys have this name.
 */
async function findTarget(
  connection: Connection,
  target: string,
  account: string | undefined,
  signal: AbortSignal,
): Promise<string | undefined> {
  if (isId.test(target)) return target;
  const found = await findAccountId(connection, target, signal);
  if (found !== undefined || account === undefined) return found;
  const listed = await requestList(connection, `${accountPath(account)}/keys`, signal);
  const keys = listed.map((raw) => understood(keyRecord, raw, connection, "list of keys"));
  const [only, ...others] = keys.filter(({ name }) => name === target);
  if (others.length === 0) return only?.id;
  throw new CliError(`Several keys have this name. \`headrace accounts keys ${account}\` lists their ids.`);
}

/** Reads the newest events. `isCut` is true if older ones were not read. */
async function readEvents(
  connection: Connection,
  query: URLSearchParams,
  limit: number,
  signal: AbortSignal,
): Promise<{ entries: unknown[]; isCut: boolean }> {
  const entries: unknown[] = [];
  for (let pages = 0; pages < maxPages; pages++) {
    query.set("limit", String(Math.min(pageSize, limit - entries.length)));
    const answer = await requestJson(connection, `/admin/audit?${query}`, signal);
    const { data, last_id: last, has_more: isMore } = understood(page, answer, connection, "list of events");
    entries.push(...data);
    if (!isMore || !last) return { entries, isCut: false };
    if (entries.length >= limit) break;
    query.set("after", last);
  }
  return { entries, isCut: true };
}

/** Prints an event in a few lines, because its ids are too long for columns. */
function printEvent(
  { print, out }: Terminal,
  { at, action, actor, ...one }: Event,
  names: ReadonlyMap<string, string>,
): void {
  const width = out.columns === undefined ? Number.POSITIVE_INFINITY : Math.max(20, out.columns - 4);
  const origin = [one.client_address && `from ${one.client_address}`, one.request_id].filter(Boolean).join(", ");
  const name = names.get(actor.id ?? "");
  const lines = [
    `by ${actor.type}${actor.id ? ` ${actor.id}` : ""}${name === undefined ? "" : ` ${name}`}`,
    ...(origin === "" ? [] : [origin]),
    ...(one.account_id && one.account_id !== one.target_id ? [`account ${one.account_id}`] : []),
    ...Object.entries(one.detail).flatMap(([name, value]) => (value === null ? [] : [`${name}: ${valueText(value)}`])),
  ];
  print(
    `${formatTimeWithSeconds(at)}  ${out.bold(printable(action))}${one.target_id ? `  ${printable(one.target_id)}` : ""}`,
  );
  for (const line of lines.flatMap((whole) => wrapped(printable(whole), width))) print(`    ${line}`);
}

const change = z.strictObject({ before: z.unknown().optional(), after: z.unknown() });

/**
 * Returns an array with the value, or an empty array if there is none: an event that creates something has no earlier
 * value.
 */
const given = (value: unknown) => (value === undefined ? [] : [value]);

function valueText(value: unknown): string {
  const changed = change.safeParse(value).data;
  if (changed) return [changed.before, changed.after].flatMap(given).map(valueText).join(" → ");
  return typeof value === "string" ? value : JSON.stringify(value);
}
