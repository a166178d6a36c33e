// `headrace keys create`, `update` and `rotate`: what makes or changes a key.
import { type Command, InvalidArgumentError } from "commander";
import { z } from "zod";
import { readCredentials, writeCredentials } from "../../storage/files/credentials-file.ts";
import { requestJson, understood } from "../login/api-request.ts";
import { addConnectionOptions, type ConnectionOptions, connectionHelp, findConnection } from "../login/client.ts";
import type { Connection } from "../login/connection.ts";
import type { CliContext } from "../terminal/context.ts";
import { formatTimeAndRelative, parseSpan } from "../terminal/figures.ts";
import { confirm } from "../terminal/input.ts";
import { CliError, exitCodes, interruptible, printable } from "../terminal/terminal.ts";
import {
  findKey,
  isOwnKey,
  keyRecord,
  type ListedKey,
  readKeyArgument,
  refuseSecret,
  shownKey,
} from "./key-records.ts";
import { addKeySettings, changeFields, creationFields, type KeySettings, scopesHelp } from "./key-settings.ts";
import { keyArgument, keyArgumentHelp, printKey } from "./key-view.ts";

interface NewKeyOptions extends ConnectionOptions {
  json?: boolean;
  quiet?: boolean;
}

interface UpdateOptions extends ConnectionOptions, KeySettings {
  name?: string;
  json?: boolean;
}

interface RotateOptions extends NewKeyOptions {
  /** Seconds. */
  overlap?: number;
  yes?: boolean;
}

const newKey = keyRecord.extend({ key: z.string(), replaces: z.string().nullish() });
type NewKey = z.infer<typeof newKey>;

const newKeyHelp = `
The key itself is printed once, alone on standard output; everything else goes to
standard error. Its secret cannot be shown again.`;

export function registerKeyChanges(keys: Command, context: CliContext): void {
  const create = keys
    .command("create")
    .summary("make a key")
    .description("Make a key, within what this key may do itself.");
  addConnectionOptions(
    addKeySettings(create.argument("<name>", "for people, to tell it apart"), { clearable: false })
      .option("-q, --quiet", "print the key and nothing else")
      .option("--json", "print what the API gives, the key included"),
  )
    .addHelpText(
      "after",
      `
Examples:
  headrace keys create laptop
  headrace keys create ci --scopes chat:write,models:read --expires 30d --rate-limit 100
  headrace keys create office --allowed-ips 192.0.2.0/24,2001:db8::/32
  export OPENAI_API_KEY="$(headrace keys create app --quiet)"

${scopesHelp}
${newKeyHelp}
${connectionHelp}`,
    )
    .action((name: string, options: NewKeyOptions & KeySettings) => createKey(context, name, options));

  const rotate = keys
    .command("rotate")
    .summary("replace a key by a new one")
    .description("Make a new key in place of one that stays valid for a while, and is then revoked.");
  addConnectionOptions(
    rotate
      .argument(...keyArgument)
      .option(
        "--overlap <span>",
        "how long the old key stays valid, such as 12h; 0: not at all (default: 24h)",
        parseOverlap,
      )
      .option("-y, --yes", "do not ask; it only asks with --overlap 0")
      .option("-q, --quiet", "print the new key and nothing else")
      .option("--json", "print what the API gives, the new key included"),
  )
    .addHelpText(
      "after",
      `\nExamples:\n  headrace keys rotate ci\n  headrace keys rotate ci --overlap 7d --quiet\n  headrace keys rotate ci --overlap 0 --yes\n${newKeyHelp}\n${keyArgumentHelp}\n${connectionHelp}`,
    )
    .action((wanted: string, options: RotateOptions) => rotateKey(context, wanted, options));

  const update = keys.command("update").summary("change what a key may do").description("Change what a key may do.");
  addConnectionOptions(
    addKeySettings(update.argument(...keyArgument).option("--name <name>", "another name"), { clearable: true }).option(
      "--json",
      "print the key as the API gives it",
    ),
  )
    .addHelpText(
      "after",
      `
Examples:
  headrace keys update ci --allowed-ips 192.0.2.7,10.0.0.0/8
  headrace keys update ci --rate-limit 100 --rate-limit-window 60
  headrace keys update ci --rate-limit none --expires never

${scopesHelp}
${keyArgumentHelp}
${connectionHelp}`,
    )
    .action((wanted: string, options: UpdateOptions) => updateKey(context, wanted, options));
}

async function createKey(context: CliContext, name: string, options: NewKeyOptions & KeySettings): Promise<void> {
  context.begin();
  refuseSecret(name);
  const connection = await findConnection(context, options);
  const body = { name, ...creationFields(options) };
  const answer = await interruptible((signal) => requestJson(connection, "/keys", signal, { method: "POST", body }));
  const made = understood(newKey, answer, connection, "new key");
  tellNewKey(context, connection, options, { answer, made, what: `Key "${printable(made.name)}" is made` });
}

async function rotateKey(context: CliContext, wanted: string, options: RotateOptions): Promise<void> {
  context.begin();
  const { input, terminal } = context;
  const name = await readKeyArgument(wanted, input, options);
  const connection = await findConnection(context, options);
  const { key: old } = await interruptible((signal) => findKey(connection, name, signal));
  if (options.overlap === 0) {
    await confirm(input, {
      question: `Replace key "${old.name}" (${shownKey(old)}) and revoke it at once`,
      yes: options.yes,
    });
  }
  const body = options.overlap === undefined ? {} : { overlap_seconds: options.overlap };
  const answer = await interruptible((signal) =>
    requestJson(connection, `/keys/${encodeURIComponent(old.id)}/rotate`, signal, { method: "POST", body }),
  );
  const made = understood(newKey, answer, connection, "new key");
  tellNewKey(context, connection, options, { answer, made, what: `Key "${printable(made.name)}" has a new secret` });
  const kept = isOwnKey(connection, old) ? keepOwnKey(connection, made.key) : undefined;
  if (options.quiet || options.json) return;
  const until = Math.floor(context.nowMs() / 1000) + (options.overlap ?? defaultOverlapSeconds);
  terminal.note(
    options.overlap === 0
      ? `The old key (${shownKey(old)}) is revoked.`
      : `The old key (${shownKey(old)}) is valid until ${formatTimeAndRelative(until, Math.floor(context.nowMs() / 1000))}.`,
  );
  if (kept) terminal.note(kept);
}

const defaultOverlapSeconds = 86_400;

/** The tool's own key was replaced: where it was read from, the next command must find the new one. */
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

async function updateKey(context: CliContext, wanted: string, options: UpdateOptions): Promise<void> {
  context.begin();
  const { terminal, input } = context;
  const name = await readKeyArgument(wanted, input, options);
  const { name: newName, ...settings } = options;
  if (newName !== undefined) refuseSecret(newName);
  const body = { ...(newName === undefined ? {} : { name: newName }), ...changeFields(settings, context.nowMs()) };
  if (Object.keys(body).length === 0) {
    throw new CliError(
      "Nothing to change: give at least one option, such as --rate-limit 100. See --help.",
      exitCodes.usage,
    );
  }
  const connection = await findConnection(context, options);
  const answer = await interruptible(async (signal) => {
    const { key } = await findKey(connection, name, signal);
    return requestJson(connection, `/keys/${encodeURIComponent(key.id)}`, signal, { method: "PATCH", body });
  });
  if (options.json) terminal.print(JSON.stringify(answer, undefined, 2));
  else printKey(terminal, understood(keyRecord, answer, connection, "key"), context.nowMs());
}

/** The secret goes to standard output alone, so that a script can take it; people read the rest on standard error. */
function tellNewKey(
  { terminal, nowMs }: CliContext,
  { baseUrl }: Connection,
  options: NewKeyOptions,
  { answer, made, what }: { answer: unknown; made: NewKey; what: string },
): void {
  if (options.json) {
    terminal.print(JSON.stringify(answer, undefined, 2));
    return;
  }
  const { bold, dim } = terminal.err;
  if (!options.quiet) terminal.note(`${what} (${made.id}): ${summary(made, nowMs())}.`);
  terminal.print(terminal.out.bold(printable(made.key)));
  if (options.quiet) return;
  terminal.note(bold("This is the only time it is shown: store it now."));
  terminal.note(dim("For a program in this shell, without a trace in its history:"));
  terminal.note(dim(`  export OPENAI_BASE_URL=${printable(baseUrl)}`));
  terminal.note(dim("  read -rs OPENAI_API_KEY && export OPENAI_API_KEY   # then paste the key"));
}

function summary(key: ListedKey, nowMs: number): string {
  const expiry = key.expires_at
    ? `expires ${formatTimeAndRelative(key.expires_at, Math.floor(nowMs / 1000))}`
    : "never expires";
  return printable(`${key.environment}, ${key.scopes.join(", ")}, ${expiry}`);
}

export function parseOverlap(text: string): number {
  const seconds = parseSpan(text);
  if (seconds === undefined) throw new InvalidArgumentError("Give a span such as 30m, 12h or 7d, or 0.");
  return seconds;
}
