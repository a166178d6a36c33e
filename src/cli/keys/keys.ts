// `headrace keys`: lists, shows and revokes API keys; making and changing them is in key-changes.ts.
import { accountId, accountPath } from "../admin/accounts.ts";
import { suspensionCommands } from "../admin/suspension.ts";
import { command, printRows } from "../command.ts";
import { type ServerCall, serverCommand } from "../login/server-command.ts";
import { CliError, printable } from "../terminal/terminal.ts";
import { usageCommand } from "../usage/usage.ts";
import { createCommand, rotateCommand, updateCommand } from "./key-changes.ts";
import {
  findAccountKey,
  findKey,
  isOwnKey,
  keyPath,
  keyWithId,
  type ListedKey,
  listKeys,
  readKeyArgument,
  shownKey,
} from "./key-records.ts";
import { scheduleCommand } from "./key-schedule.ts";
import { keyArgument, keyArgumentHelp, keyColumns, narrowKeys, printKey } from "./key-view.ts";

const listCommand = serverCommand({
  name: "list",
  summary: "list the keys",
  description: "List the keys that this key may see.",
  options: {
    all: ["--all", "include revoked keys"],
    json: ["--json", "print all of them as the API gives them, revoked ones included"],
  },
  examples: ["headrace keys list", "headrace keys list --all", "headrace keys list --json"],
  async run({ ask, options, terminal, nowSeconds }) {
    const found = await ask(listKeys);
    const show = () => {
      const shown = found.filter(({ key }) => options.all || key.status !== "revoked");
      const keys = shown.map(({ key }) => key);
      if (keys.length > 0) printRows(terminal, keys, keyColumns(nowSeconds()), [], narrowKeys);
      const hidden = found.length - shown.length;
      if (hidden > 0) terminal.note(`${hidden} revoked ${hidden === 1 ? "key is" : "keys are"} not shown; see --all.`);
      else if (shown.length === 0) terminal.note("There is no key yet. Make one with: headrace keys create <name>");
    };
    return { json: found.map(({ raw }) => raw), show };
  },
});

const showCommand = serverCommand({
  name: "show",
  summary: "show one key",
  description: "Show one key without its secret.",
  arguments: [keyArgument],
  options: { json: ["--json", "print the key as the API gives it"] },
  examples: ["headrace keys show ci", "headrace keys show - < key.txt"],
  help: [keyArgumentHelp],
  async run({ ask, context, options, terminal }, wanted) {
    const name = await readKeyArgument(wanted, context.input, options);
    const { raw, key } = await ask(async (connection, signal) => {
      const found = await findKey(connection, name, signal);
      const { id, quotas, quotas_used: used } = found.key;
      // The list of keys lacks the quotas' usage, so the key is read by its id.
      const isMore = quotas?.length && used == null;
      return (isMore ? await keyWithId(connection, id, signal) : undefined) ?? found;
    });
    return { json: raw, show: () => printKey(terminal, key, context.nowMs()) };
  },
});

const accountOption = [
  "--account <account>",
  "name or id of the key's account, for operators; not needed with the id of a key",
] as const;

const revokeCommand = serverCommand({
  name: "revoke",
  summary: "revoke a key permanently",
  description: "Revoke a key immediately and permanently. For keys of other accounts it takes an operator's key.",
  arguments: [keyArgument],
  options: {
    account: accountOption,
    yes: ["-y, --yes", "do not ask"],
    json: ["--json", "print the key as the API gives it"],
  },
  examples: [
    "headrace keys revoke ci",
    "headrace keys revoke x7Qp --yes",
    "headrace keys revoke ci --account 'Web shop'",
  ],
  help: [keyArgumentHelp],
  async run(call, wanted) {
    const { connect, request, confirm, terminal } = call;
    const { key, raw, path, name } = await keyOfAny(call, wanted);
    const show = (what: string) => () => terminal.print(`${printable(name)} ${what}.`);
    if (key?.status === "revoked") return { json: raw, show: show("was revoked already") };
    const own = key && isOwnKey(await connect(), key) ? " It is the key that this command itself uses." : "";
    await confirm({
      question: `Revoke ${name.replace(/^Key/, "key")}`,
      consequence: `The keys that were made with it end too.${own}`,
    });
    return { json: await request(path, { method: "DELETE" }), show: show("is revoked") };
  },
});

const suspension = suspensionCommands({
  group: "keys",
  argument: keyArgument,
  options: {
    account: accountOption,
  },
  example: "ci",
  refuses: "a key, and the keys that it made,",
  needs: "For keys of other accounts it takes an operator's key.",
  find: (call, wanted, verb) => keyOfAny(call, wanted, verb === "resume" ? "suspended" : "active"),
});

const keyUsageCommand = usageCommand({
  summary: "what a key has used",
  description: "Show what one key has used.",
  arguments: [keyArgument],
  examples: [
    "headrace keys usage ci",
    "headrace keys usage ci --days 7 --group-by model",
    "headrace keys usage ci --csv > ci.csv",
  ],
  notes: [keyArgumentHelp],
  async path({ ask, context, options }, wanted) {
    const name = await readKeyArgument(wanted, context.input, options);
    const { key } = await ask((connection, signal) => findKey(connection, name, signal));
    return `${keyPath(key.id)}/usage`;
  },
});

export const keysCommand = command({
  name: "keys",
  summary: "list, create, change, suspend and revoke API keys",
  description: "Manage the API keys of a running Headrace. Needs a key with the scope keys:manage.",
  examples: [
    "headrace keys list",
    "headrace keys create ci --scopes chat:write,models:read --expires 30d",
    "headrace keys rotate ci --overlap 12h",
    "headrace keys suspend ci                          at once, and resume later",
    "headrace keys revoke ci",
  ],
  commands: [
    ...[listCommand, showCommand, createCommand, rotateCommand, updateCommand],
    ...[scheduleCommand, ...suspension, revokeCommand, keyUsageCommand],
  ],
});

/**
 * Finds a key of the own account, or of any account for operators. `key` is undefined if `wanted` is the id of another
 * account's key.
 */
async function keyOfAny(
  { connect, ask, context, options }: ServerCall<{ account?: string; apiKeyStdin?: boolean }>,
  wanted: string,
  status: "active" | "suspended" = "active",
): Promise<{ path: string; name: string; key: ListedKey | undefined; raw: unknown }> {
  const which = await readKeyArgument(wanted, context.input, options);
  const connection = await connect();
  const { account } = options;
  const found = await ask(async (_, signal) => {
    if (account !== undefined) {
      const list = `${accountPath(await accountId(connection, account, signal))}/keys`;
      const key = await findAccountKey(connection, list, which, signal, status);
      return { key, raw: key, isOwn: false };
    }
    const own = await findKey(connection, which, signal, status).catch((error: unknown) => {
      // Operators can change a key of any account by its id alone. The server's log shows only key ids.
      if (error instanceof CliError && which.startsWith("key_")) return undefined;
      throw error;
    });
    return { key: own?.key, raw: own?.raw, isOwn: own !== undefined };
  });
  const id = found.key?.id ?? which;
  const name = found.key ? `Key "${found.key.name}" (${shownKey(found.key)})` : id;
  return { path: found.isOwn ? keyPath(id) : `/admin${keyPath(id)}`, name, key: found.key, raw: found.raw };
}
