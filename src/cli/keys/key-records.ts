// API keys as the API describes them: finds the key that a person names.
import { z } from "zod";
import { environments, showsAs } from "../../domain/api-key.ts";
import { byWire, keyAmounts } from "../../domain/limits/amounts.ts";
import { requestList, understood } from "../login/api-request.ts";
import type { Connection } from "../login/connection.ts";
import { type Found, recordsOf } from "../login/records.ts";
import { formatTime } from "../terminal/figures.ts";
import type { CliInput } from "../terminal/input.ts";
import { CliError, exitCodes, printable } from "../terminal/terminal.ts";
import { givenQuota, usedQuota } from "./quota-view.ts";

const seconds = z.number().nullish();

export const keyRecord = z.object({
  id: z.string(),
  name: z.string(),
  prefix: z.string(),
  last4: z.string(),
  environment: z.string(),
  scopes: z.array(z.string()),
  status: z.string(),
  created_by: z.string().nullish(),
  created_at: z.number(),
  expires_at: seconds,
  last_used_at: seconds,
  revoked_at: seconds,
  allowed_ips: z.array(z.string()).nullish(),
  rate_limit: z.number().nullish(),
  rate_limit_window: z.number().nullish(),
  ...byWire(keyAmounts, () => z.number().nullish()),
  quotas: z.array(givenQuota).nullish(),
  models: z.array(z.string()).nullish(),
  tools: z.array(z.string()).nullish(),
  never_leaves: z.boolean().nullish(),
  priority: z.string().nullish(),
  response_cache: z.string().nullish(),
  tags: z.array(z.string()).nullish(),
  note: z.string().nullish(),
  quotas_used: z.array(usedQuota).nullish(),
});

export type ListedKey = z.infer<typeof keyRecord>;

export type FoundKey = Found<"key", typeof keyRecord>;
const records = recordsOf("key", keyRecord);
export const { path: keyPath, list: listKeys, withId: keyWithId } = records;

/** Returns the visible parts of a key: `sk_live_hr_…x7Qp`. */
export function shownKey({ prefix, last4 }: Pick<ListedKey, "prefix" | "last4">): string {
  return `${prefix}…${last4}`;
}

/** Reports whether the command itself uses this key. */
export function isOwnKey(connection: Connection, key: ListedKey): boolean {
  return showsAs(connection.apiKey, key);
}

const wholeKey = new RegExp(`sk_(?:${environments.join("|")})_hr_[0-9A-Za-z]{36}`);

/** Throws a CliError if an argument contains a whole key, without repeating it. */
export function refuseSecret(argument: string): void {
  if (!wholeKey.test(argument)) return;
  throw new CliError(
    "An argument holds a whole API key. Every user of this machine can read arguments, and your shell has written this one into its history: consider rotating that key. Name a key by its id, its name or its last four characters, or pass it on standard input, with - in its place.",
    exitCodes.usage,
  );
}

/** Returns the argument, or reads standard input if it is `-`. Refuses a whole key as an argument. */
export async function readKeyArgument(
  argument: string,
  input: CliInput,
  options: { apiKeyStdin?: boolean },
): Promise<string> {
  refuseSecret(argument);
  if (argument !== "-") return argument;
  if (options.apiKeyStdin) {
    throw new CliError(
      "Standard input cannot give both the key to look at (-) and the key to connect with (--api-key-stdin). Set HEADRACE_API_KEY for the latter.",
      exitCodes.usage,
    );
  }
  const line = (await input.readLine()).trim();
  if (line !== "") return line;
  throw new CliError("- stands for a key on standard input, and that is empty.", exitCodes.usage);
}

/**
 * Returns the one key that `wanted` identifies: by id, name, last four characters, or a whole key from standard input.
 * A whole key is compared by its visible part and never sent. Prefers a key of this status. Rejects with a CliError
 * that lists the candidates if several remain.
 */
export async function findKey(
  connection: Connection,
  wanted: string,
  signal: AbortSignal,
  status = "active",
): Promise<FoundKey> {
  const direct = wanted.startsWith("key_") ? await records.withId(connection, wanted, signal) : undefined;
  if (direct) return direct;
  return oneOf(await listKeys(connection, signal), wanted, status);
}

/** Returns the one key that `wanted` identifies in the list at `path`, such as that of an account. */
export async function findAccountKey(
  connection: Connection,
  path: string,
  wanted: string,
  signal: AbortSignal,
  status: string,
): Promise<ListedKey> {
  const listed = await requestList(connection, path, signal);
  return oneOf(
    listed.map((raw) => ({ raw, key: understood(keyRecord, raw, connection, "list of keys") })),
    wanted,
    status,
  ).key;
}

function oneOf(keys: readonly FoundKey[], wanted: string, status: string): FoundKey {
  const whole = wholeKey.test(wanted);
  const matches = keys.filter(({ key }) =>
    whole ? showsAs(wanted, key) : key.id === wanted || key.name === wanted || key.last4 === wanted,
  );
  if (matches.length === 0) throw new CliError(noSuchKey(whole ? undefined : wanted));
  const preferred = matches.filter(({ key }) => key.status === status);
  const [only, ...others] = preferred.length > 0 ? preferred : matches;
  if (only && others.length === 0) return only;
  const candidates = matches.map(({ key }) => {
    const until = key.status === "active" && key.revoked_at ? `, until ${formatTime(key.revoked_at)}` : "";
    return `  ${key.id}  ${shownKey(key)}  ${key.status}${until}  ${printable(key.name)}`;
  });
  throw new CliError(`Several keys match. Name the one you mean by its id:\n${candidates.join("\n")}`);
}

function noSuchKey(wanted: string | undefined): string {
  const what = wanted === undefined ? "the key on standard input" : `\`${printable(wanted)}\``;
  return `No key matches ${what}: neither an id, nor a name, nor last four characters. headrace keys list --all shows those that this key may see.`;
}
