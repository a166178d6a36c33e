// `headrace keys`: lists, shows and revokes API keys; making and changing them is in key-changes.ts.
import type { Command } from "commander";
import { requestJson } from "../login/api-request.ts";
import { addConnectionOptions, type ConnectionOptions, connectionHelp, findConnection } from "../login/client.ts";
import type { CliContext } from "../terminal/context.ts";
import { formatRelative } from "../terminal/figures.ts";
import { confirm } from "../terminal/input.ts";
import { formatTable, interruptible, printable, type Terminal } from "../terminal/terminal.ts";
import { addUsageOptions, showUsage, type UsageOptions, usageHelp } from "../usage/usage.ts";
import { registerKeyChanges } from "./key-changes.ts";
import {
  type FoundKey,
  findKey,
  isOwnKey,
  keyRecord,
  type ListedKey,
  listKeys,
  readKeyArgument,
  shownKey,
} from "./key-records.ts";
import { endsAs, keyArgument, keyArgumentHelp, printKey } from "./key-view.ts";

export interface KeysOptions extends ConnectionOptions {
  json?: boolean;
  all?: boolean;
  yes?: boolean;
}

/** Columns that are shown at any width: name, key, status, last used, end. */
const narrowestTable = 5;

export function registerKeys(program: Command, context: CliContext): void {
  const keys = program
    .command("keys")
    .summary("list, create, change and revoke API keys")
    .description("Manage the API keys of a running Headrace. Needs a key with the scope keys:manage.")
    .addHelpText(
      "after",
      `
Examples:
  headrace keys list
  headrace keys create ci --scopes chat:write,models:read --expires 30d
  headrace keys rotate ci --overlap 12h
  headrace keys revoke ci`,
    );
  const list = keys.command("list").summary("list the keys").description("List the keys that this key may see.");
  addConnectionOptions(
    list
      .option("--all", "also those that are revoked")
      .option("--json", "print all of them as the API gives them, revoked ones included"),
  )
    .addHelpText(
      "after",
      `\nExamples:\n  headrace keys list\n  headrace keys list --all\n  headrace keys list --json\n${connectionHelp}`,
    )
    .action((options: KeysOptions) => listAll(context, options));

  const show = keys
    .command("show")
    .summary("show one key")
    .description("Show everything about one key but its secret.");
  addConnectionOptions(show.argument(...keyArgument).option("--json", "print the key as the API gives it"))
    .addHelpText(
      "after",
      `\nExamples:\n  headrace keys show ci\n  headrace keys show - < key.txt\n${keyArgumentHelp}\n${connectionHelp}`,
    )
    .action((wanted: string, options: KeysOptions) => showOne(context, wanted, options));

  registerKeyChanges(keys, context);

  const revoke = keys
    .command("revoke")
    .summary("end a key for good")
    .description("Revoke a key: from then on it is refused, for good.");
  addConnectionOptions(
    revoke
      .argument(...keyArgument)
      .option("-y, --yes", "do not ask")
      .option("--json", "print the key as the API gives it"),
  )
    .addHelpText(
      "after",
      `\nExamples:\n  headrace keys revoke ci\n  headrace keys revoke x7Qp --yes\n${keyArgumentHelp}\n${connectionHelp}`,
    )
    .action((wanted: string, options: KeysOptions) => revokeOne(context, wanted, options));

  const usage = keys.command("usage").summary("what a key has used").description("Show what one key has used.");
  addUsageOptions(usage.argument(...keyArgument))
    .addHelpText(
      "after",
      `\nExamples:\n  headrace keys usage ci\n  headrace keys usage ci --days 7 --group-by model\n  headrace keys usage ci --csv > ci.csv\n${usageHelp}\n${keyArgumentHelp}\n${connectionHelp}`,
    )
    .action((wanted: string, options: UsageOptions) => usageOfOne(context, wanted, options));
}

async function listAll(context: CliContext, options: KeysOptions): Promise<void> {
  context.begin();
  const { terminal } = context;
  const connection = await findConnection(context, options);
  const found = await interruptible((signal) => listKeys(connection, signal));
  if (options.json) {
    terminal.print(
      JSON.stringify(
        found.map(({ raw }) => raw),
        undefined,
        2,
      ),
    );
    return;
  }
  const shown = found.filter(({ key }) => options.all || key.status !== "revoked");
  const nowSeconds = Math.floor(context.nowMs() / 1000);
  const columns = (key: ListedKey) => ({
    NAME: key.name,
    KEY: shownKey(key),
    STATUS: key.status,
    "LAST USED": formatRelative(key.last_used_at, nowSeconds),
    ENDS: endsAs(key, nowSeconds),
    SCOPES: key.scopes.join(","),
    ID: key.id,
  });
  if (shown.length > 0)
    terminal.print(
      fittingTable(
        terminal,
        shown.map(({ key }) => columns(key)),
      ),
    );
  const hidden = found.length - shown.length;
  if (hidden > 0) terminal.note(`${hidden} revoked ${hidden === 1 ? "key is" : "keys are"} not shown; see --all.`);
  else if (shown.length === 0) terminal.note("There is no key yet. Make one with: headrace keys create <name>");
}

/** The last columns are left out where a terminal is too narrow for them; `keys show` has them. */
function fittingTable(terminal: Terminal, rows: readonly Record<string, string>[]): string {
  const names = Object.keys(rows[0] ?? {});
  const { isTTY, columns = 80 } = terminal.stdout;
  for (let count = names.length; ; count--) {
    const header = names.slice(0, count);
    const cells = rows.map((row) => header.map((name) => row[name] ?? ""));
    const whole = formatTable(header, cells, { ...terminal.out, columns: undefined });
    const fits = isTTY !== true || whole.split("\n").every((line) => Bun.stringWidth(line) <= columns);
    if (fits || count <= narrowestTable) return formatTable(header, cells, terminal.out);
  }
}

async function showOne(context: CliContext, wanted: string, options: KeysOptions): Promise<void> {
  context.begin();
  const { terminal } = context;
  const name = await readKeyArgument(wanted, context.input, options);
  const connection = await findConnection(context, options);
  const found = await interruptible((signal) => findKey(connection, name, signal));
  if (options.json) terminal.print(JSON.stringify(found.raw, undefined, 2));
  else printKey(terminal, found.key, context.nowMs());
}

async function revokeOne(context: CliContext, wanted: string, options: KeysOptions): Promise<void> {
  context.begin();
  const { terminal, input } = context;
  const name = await readKeyArgument(wanted, input, options);
  const connection = await findConnection(context, options);
  const { raw, key } = await interruptible((signal) => findKey(connection, name, signal));
  if (key.status === "revoked") {
    printRevoked(terminal, { raw, key }, "was revoked already", options);
    return;
  }
  const own = isOwnKey(connection, key) ? " It is the key that this command itself uses." : "";
  await confirm(input, {
    question: `Revoke key "${key.name}" (${shownKey(key)})`,
    consequence: `The keys that were made with it end too.${own}`,
    yes: options.yes,
  });
  const answer = await interruptible((signal) =>
    requestJson(connection, `/keys/${encodeURIComponent(key.id)}`, signal, { method: "DELETE" }),
  );
  const revoked = keyRecord.safeParse(answer).data ?? key;
  printRevoked(terminal, { raw: answer, key: revoked }, "is revoked", options);
}

function printRevoked(terminal: Terminal, { raw, key }: FoundKey, what: string, options: KeysOptions): void {
  if (options.json) terminal.print(JSON.stringify(raw, undefined, 2));
  else terminal.print(`Key "${printable(key.name)}" (${shownKey(key)}) ${what}.`);
}

async function usageOfOne(context: CliContext, wanted: string, options: UsageOptions): Promise<void> {
  context.begin();
  const name = await readKeyArgument(wanted, context.input, options);
  const connection = await findConnection(context, options);
  const { key } = await interruptible((signal) => findKey(connection, name, signal));
  await showUsage(context, connection, `/keys/${encodeURIComponent(key.id)}/usage`, options);
}
