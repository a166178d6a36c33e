// `headrace keys create`, `update` and `rotate`: create or change a key.
import { InvalidArgumentError } from "commander";
import { z } from "zod";
import { readCredentials, writeCredentials } from "../../storage/files/credentials-file.ts";
import { refuseNoChange } from "../command.ts";
import { requestJson, understood } from "../login/api-request.ts";
import type { Connection } from "../login/connection.ts";
import { serverCommand } from "../login/server-command.ts";
import { formatTimeAndRelative, parseSpan } from "../terminal/figures.ts";
import { printable, type Terminal } from "../terminal/terminal.ts";
import {
  findKey,
  isOwnKey,
  keyPath,
  keyRecord,
  type ListedKey,
  readKeyArgument,
  refuseSecret,
  shownKey,
} from "./key-records.ts";
import { changeFields, creationFields, keySettings, scopesHelp } from "./key-settings.ts";
import { keyArgument, keyArgumentHelp, printKey } from "./key-view.ts";
import { quotasHelp } from "./quota-view.ts";

const newKey = keyRecord.extend({ key: z.string(), replaces: z.string().nullish() });
type NewKey = z.infer<typeof newKey>;

const newKeyHelp = `\
The key is printed once, alone on standard output. Everything else goes to
standard error. Its secret cannot be shown again.`;

export const createCommand = serverCommand({
  name: "create",
  summary: "make a key",
  description: "Make a key. It can do no more than the key or login that makes it.",
  arguments: [["<name>", "a label"]],
  options: {
    ...keySettings({ clearable: false }),
    quiet: ["-q, --quiet", "print the key and nothing else"],
    json: ["--json", "print what the API gives, the key included"],
  },
  examples: [
    "headrace keys create laptop",
    "headrace keys create ci --scopes chat:write,models:read --expires 30d --rate-limit 100",
    'headrace keys create agent --models "qwen3-*" --never-leaves yes --tags team-a --note "of the night batch"',
    "headrace keys create nightly --priority low",
    "headrace keys create office --allowed-ips 192.0.2.0/24,2001:db8::/32",
    `export OPENAI_API_KEY="$(headrace keys create app --quiet)"`,
  ],
  help: [scopesHelp, quotasHelp, newKeyHelp],
  async run({ connect, request, options, terminal, nowSeconds }, name) {
    for (const text of [name, options.note ?? ""]) refuseSecret(text);
    const connection = await connect();
    const answer = await request("/keys", { method: "POST", body: { name, ...creationFields(options) } });
    const made = understood(newKey, answer, connection, "new key");
    const { baseUrl } = connection;
    const show = () =>
      showNewKey(terminal, made, { what: "is made", quiet: options.quiet, baseUrl, nowSeconds: nowSeconds() });
    return { json: answer, show };
  },
});

export const rotateCommand = serverCommand({
  name: "rotate",
  summary: "replace a key with a new one",
  description: "Make a new key. The old one stays valid for a while and is then revoked.",
  arguments: [keyArgument],
  options: {
    overlap: [
      "--overlap <span>",
      "how long the old key stays valid, such as 12h; 0: not at all (default: 24h)",
      parseOverlap,
    ],
    yes: ["-y, --yes", "do not ask; it only asks with --overlap 0"],
    quiet: ["-q, --quiet", "print the new key and nothing else"],
    json: ["--json", "print what the API gives, the new key included"],
  },
  examples: [
    "headrace keys rotate ci",
    "headrace keys rotate ci --overlap 7d --quiet",
    "headrace keys rotate ci --overlap 0 --yes",
  ],
  help: [newKeyHelp, keyArgumentHelp],
  async run({ connect, ask, request, confirm, context, options, terminal, nowSeconds }, wanted) {
    const name = await readKeyArgument(wanted, context.input, options);
    const connection = await connect();
    const { key: old } = await ask((_, signal) => findKey(connection, name, signal));
    const { overlap, quiet } = options;
    if (overlap === 0) {
      await confirm({ question: `Replace key "${old.name}" (${shownKey(old)}) and revoke it at once` });
    }
    const body = overlap === undefined ? {} : { overlap_seconds: overlap };
    const answer = await request(`${keyPath(old.id)}/rotate`, { method: "POST", body });
    const made = understood(newKey, answer, connection, "new key");
    const show = () => {
      const now = nowSeconds();
      showNewKey(terminal, made, { what: "has a new secret", quiet, baseUrl: connection.baseUrl, nowSeconds: now });
      if (quiet) return;
      const end = Math.min(now + (overlap ?? defaultOverlapSeconds), old.revoked_at ?? Number.POSITIVE_INFINITY);
      const until = formatTimeAndRelative(end, now);
      terminal.note(`The old key (${shownKey(old)}) is ${overlap === 0 ? "revoked" : `valid until ${until}`}.`);
    };
    const after = () => {
      if (!isOwnKey(connection, old)) return;
      const kept = keepOwnKey(connection, made.key);
      if (!quiet && !options.json) terminal.note(kept);
    };
    return { json: answer, show, after };
  },
});

export const updateCommand = serverCommand({
  name: "update",
  summary: "change what a key may do",
  description: "Change what a key may do.",
  arguments: [keyArgument],
  options: {
    name: ["--name <name>", "another name"],
    ...keySettings({ clearable: true }),
    json: ["--json", "print the key as the API gives it"],
  },
  examples: [
    "headrace keys update ci --allowed-ips 192.0.2.7,10.0.0.0/8",
    "headrace keys update ci --rate-limit 100 --rate-limit-window 60",
    "headrace keys update ci --rate-limit none --expires never",
    "headrace keys update ci --models qwen3-8b,gpt-6 --tags none",
  ],
  help: [scopesHelp, keyArgumentHelp],
  async run({ connect, ask, context, options, terminal }, wanted) {
    const found = await readKeyArgument(wanted, context.input, options);
    const { name, ...settings } = options;
    for (const text of [name ?? "", options.note ?? ""]) refuseSecret(text);
    const body = { ...(name === undefined ? {} : { name }), ...changeFields(settings, context.nowMs()) };
    refuseNoChange(body, "--rate-limit 100");
    const connection = await connect();
    const answer = await ask(async (_, signal) => {
      const { key } = await findKey(connection, found, signal);
      return requestJson(connection, keyPath(key.id), signal, { method: "PATCH", body });
    });
    const show = () => printKey(terminal, understood(keyRecord, answer, connection, "key"), context.nowMs());
    return { json: answer, show };
  },
});

const defaultOverlapSeconds = 86_400;

/**
 * Stores the new key in place of the command's own key if this command has just replaced that key. The next command
 * needs the new key. Returns a note for the person.
 */
function keepOwnKey(connection: Connection, key: string): string {
  const { storedIn, keySource } = connection;
  const stored = storedIn === undefined ? undefined : readCredentials(storedIn);
  if (storedIn === undefined || stored === undefined) {
    return `It was the key that this command itself uses, from ${keySource}: put the new one there.`;
  }
  try {
    writeCredentials(storedIn, { ...stored, api_key: key });
  } catch {
    return `It was the key of ${keySource}, which cannot be written: put the new one there.`;
  }
  return `It was the key of ${keySource}, which has the new one now.`;
}

interface NewKeyView {
  what: string;
  quiet: boolean | undefined;
  baseUrl: string;
  nowSeconds: number;
}

/** Only the secret goes to standard output, so that a script can capture it. The rest goes to standard error. */
function showNewKey(terminal: Terminal, made: NewKey, { what, quiet, baseUrl, nowSeconds }: NewKeyView): void {
  const { bold, dim } = terminal.err;
  const named = `Key "${printable(made.name)}" ${what} (${made.id})`;
  if (!quiet) terminal.note(`${named}: ${summary(made, nowSeconds)}.`);
  terminal.print(terminal.out.bold(printable(made.key)));
  if (quiet) return;
  terminal.note(bold("This is the only time it is shown: store it now."));
  terminal.note(dim("For a program in this shell, without a trace in its history:"));
  terminal.note(dim(`  export OPENAI_BASE_URL=${printable(baseUrl)}`));
  terminal.note(dim("  read -rs OPENAI_API_KEY && export OPENAI_API_KEY   # then paste the key"));
}

function summary(key: ListedKey, nowSeconds: number): string {
  const expiry = key.expires_at ? `expires ${formatTimeAndRelative(key.expires_at, nowSeconds)}` : "never expires";
  return printable(`${key.environment}, ${key.scopes.join(", ")}, ${expiry}`);
}

export function parseOverlap(text: string): number {
  const seconds = parseSpan(text);
  if (seconds === undefined) throw new InvalidArgumentError("Give a span such as 30m, 12h or 7d, or 0.");
  return seconds;
}
