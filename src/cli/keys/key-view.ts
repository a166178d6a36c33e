// Shows a key to a person.
import { type KeyAmount, keyAmounts } from "../../domain/limits/amounts.ts";
import type { Column } from "../command.ts";
import { formatCount, formatRelative, formatSpan, formatTimeAndRelative, formatUsd } from "../terminal/figures.ts";
import { formatFacts, printable, type Terminal } from "../terminal/terminal.ts";
import { type ListedKey, shownKey } from "./key-records.ts";
import { quotaFacts, quotaWords } from "./quota-view.ts";

/** `<key>` as a Commander argument: name and description. */
export const keyArgument = ["<key>", "id, name, last four characters, or - for standard input"] as const;

/** The help text about `<key>`, for every command that takes it. */
export const keyArgumentHelp = `\
<key> is an id, a name or the last four characters of a key, where those fit one
key only; with - it is read from standard input, and may be a whole key there.`;

/** Returns when a key ends or ended. A key may have several such times; the earliest is used. */
function endsAs(key: ListedKey, nowSeconds: number): string {
  const { expires_at: expires, revoked_at: revoked } = key;
  if (key.status === "revoked") return formatRelative(revoked, nowSeconds);
  if (revoked && (!expires || revoked < expires)) return `${formatRelative(revoked, nowSeconds)} (rotated)`;
  return expires ? formatRelative(expires, nowSeconds) : "never";
}

export const keyColumns = (nowSeconds: number): Column<ListedKey>[] => [
  ["NAME", ({ name }) => name],
  ["KEY", shownKey],
  ["STATUS", ({ status }) => status],
  ["LAST USED", (key) => formatRelative(key.last_used_at, nowSeconds)],
  ["ENDS", (key) => endsAs(key, nowSeconds)],
  ["SCOPES", ({ scopes }) => scopes.join(",")],
  ["ID", ({ id }) => id],
];

/** Columns to leave out on a narrow terminal. `keys show` has them. */
export const narrowKeys = ["ID", "SCOPES"];

/** Prints everything about a key, for a person. */
export function printKey(terminal: Terminal, key: ListedKey, nowMs: number): void {
  const nowSeconds = Math.floor(nowMs / 1000);
  const { bold, green, yellow, red } = terminal.out;
  const colour = key.status === "active" ? green : key.status === "expired" ? yellow : red;
  const time = (seconds: number | null | undefined, none: string) =>
    seconds ? formatTimeAndRelative(seconds, nowSeconds) : none;
  const maker = key.created_by ? ` with ${key.created_by}` : "";
  terminal.print(`${bold(printable(key.name))}  ${shownKey(key)}  ${colour(printable(key.status))}\n`);
  const facts: [string, string][] = [
    ["ID", key.id],
    ["Environment", key.environment],
    ["Scopes", key.scopes.join(", ") || "-"],
    ["Created", `${time(key.created_at, "-")}${maker}`],
    ["Last used", time(key.last_used_at, "never")],
    ["Expires", time(key.expires_at, "never")],
  ];
  if (key.revoked_at) facts.push(["Revoked", time(key.revoked_at, "-")]);
  if (key.note) facts.push(["Note", key.note.replaceAll(/\s+/g, " ")]);
  if (key.tags?.length) facts.push(["Tags", key.tags.join(", ")]);
  if (key.tools) facts.push(["Tools", key.tools.join(", ") || "none"]);
  if (key.response_cache) facts.push(["Response cache", key.response_cache]);
  facts.push(
    ["Models", modelsOf(key)],
    ["Allowed IPs", key.allowed_ips?.join(", ") || "from anywhere"],
    ["Priority", key.priority == null ? "that of the account's tier" : `at most ${printable(key.priority)}`],
    ["Rate limit", rateLimitOf(key)],
    ...Object.entries(quotaNames).map(([period, name]): [string, string] => [name, quotaOf(key, period)]),
    ...windowFacts(key, terminal.unicode, nowSeconds),
  );
  terminal.print(formatFacts(facts, terminal.out));
}

function modelsOf({ models, never_leaves: stays }: ListedKey): string {
  const which = models ? models.join(", ") || "none" : "all of its environment";
  return stays ? `${which}; only where they are marked as local` : which;
}

function rateLimitOf({ rate_limit: limit, rate_limit_window: window }: ListedKey): string {
  if (limit == null) return "none of its own: the account's tier counts";
  return `${formatCount(limit)} requests${window == null ? "" : ` in ${formatSpan(window)}`}`;
}

function windowFacts(key: ListedKey, unicode: boolean, nowSeconds: number): [string, string][] {
  const { quotas, quotas_used: used } = key;
  if (used) return quotaFacts(used, unicode, nowSeconds);
  return quotas?.length ? [["Quotas", quotaWords(quotas)]] : [];
}

const quotaNames: Record<KeyAmount["period"], string> = { month: "Monthly quota" };

function quotaOf(key: ListedKey, wanted: string): string {
  const parts = keyAmounts.flatMap(({ wire, unit, period }) => {
    const value = key[wire];
    if (value == null || period !== wanted) return [];
    return [unit === "USD" ? formatUsd(value) : `${formatCount(value)} ${unit}`];
  });
  return parts.join(", ") || "none of its own: the account's counts";
}
