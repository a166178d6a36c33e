// `headrace connect`: prints what an agent or an SDK is to be told to use this server, or writes it into its configuration.
import { maskKeys } from "../../domain/api-key.ts";
import { type MaybeOutcome, printRows } from "../command.ts";
import type { Connection } from "../login/connection.ts";
import { type ServerCall, serverCommand } from "../login/server-command.ts";
import { readModels } from "../models/models.ts";

import { CliError, exitCodes, printable } from "../terminal/terminal.ts";
import { pathOf, readClientFile, removeClientFile, understandingFile, writeClientFile } from "./client-file.ts";
import { type Client, clients, type Target } from "./clients.ts";
import { configurationOf } from "./configuration.ts";
import { ConnectedFiles, rememberedOf, undone } from "./connected.ts";
import { lineChanges } from "./line-changes.ts";
import { settingsFormats, withSettings } from "./settings-text.ts";

interface ConnectOptions {
  model?: string;
  write?: boolean;
  undo?: boolean;
  printKey?: boolean;
}
type ConnectCall = ServerCall<ConnectOptions>;

/** Tokens of instructions and tools that agents begin with: Codex sends some 6,000, Claude Code 13,000. */
const usualPrompt = 16_000;

export const connectCommand = serverCommand({
  name: "connect",
  summary: "make an agent such as Codex or Claude Code use this server",
  description: "Show what an agent or SDK is to be told to use this server, or write it into its configuration.",
  arguments: [["[client]", `one of ${clients.map(({ id }) => id).join(", ")}; without one, all are listed`]],
  options: {
    model: ["--model <id>", "the model, or an alias of one; needed where the key may use several"],
    write: ["--write", "write it into the client's configuration, after showing the change"],
    undo: ["--undo", "take out of the client's configuration what was written there"],
    printKey: ["--print-key", "print the key alone, for a variable of a shell"],
    yes: ["-y, --yes", "write without asking"],
    json: ["--json", "print one JSON object"],
  },
  examples: [
    "headrace connect                              which clients there are",
    "headrace connect codex                        what Codex is to be told",
    "headrace connect claude --model gpt-oss --write",
    "headrace connect claude --undo",
    'export HEADRACE_API_KEY="$(headrace connect --print-key)"',
  ],
  help: [
    `\
A key that a client can read from its environment is written into no file. What was in a
file before stays beside it, as NAME.before-headrace; --undo takes out only what was
written, and leaves what somebody has changed since.`,
  ],
  run: (call, id) => connectClient(call, id),
});

async function connectClient(call: ConnectCall, id: string | undefined): Promise<MaybeOutcome> {
  const { options, terminal } = call;
  if (options.printKey) {
    const { key } = await usable(call);
    return { json: { key }, show: () => terminal.print(key) };
  }
  if (id === undefined) return list(call);
  const client = clients.find((one) => one.id === id);
  if (!client) {
    const known = clients.map((one) => one.id).join(", ");
    throw new CliError(
      `There is no client "${printable(id)}" that is known here: give one of ${known}.`,
      exitCodes.usage,
    );
  }
  if (options.undo) return undo(call, client);
  const target = await targetOf(call);
  return options.write ? write(call, client, target) : tell(call, client, target);
}

function list({ context, terminal }: ConnectCall): MaybeOutcome {
  const connected = new ConnectedFiles(context.configFolder).read();
  const rows = clients.map(({ id, name, program, file }) => ({
    ...{ id, name, file: file === undefined ? null : pathOf(file, context.env) },
    found: program === undefined ? null : Bun.which(program, { PATH: context.env["PATH"] ?? "" }) !== null,
    connected: connected.has(id),
  }));
  const show = () => {
    printRows(terminal, rows, [
      ["CLIENT", ({ id }) => id],
      ["NAME", ({ name }) => name],
      ["HERE", ({ found }) => (found === null ? "-" : found ? "yes" : "no")],
      ["CONNECTED", ({ connected: isConnected }) => (isConnected ? "yes" : "-")],
      ["CONFIGURATION", ({ file }) => file ?? "variables alone"],
    ]);
    terminal.note("\nWhat one is to be told: headrace connect CLIENT; add --write to have it written.");
  };
  return { json: rows, show };
}

/** A client's key lasts as long as it is used; what a login has ends within the hour. */
async function usable({ connect }: ConnectCall): Promise<{ connection: Connection; key: string }> {
  const connection = await connect();
  if (!connection.login) return { connection, key: connection.apiKey };
  throw new CliError(
    "Your login is for commands, and ends while an agent works. Make the agent a key of its own, such as with headrace keys create --name agent, and set HEADRACE_API_KEY to it.",
  );
}

async function targetOf(call: ConnectCall): Promise<Target> {
  const { connection, key } = await usable(call);
  const models = await call.ask(readModels);
  const wanted = call.options.model;
  const own = models.filter(({ alias_of: of, capabilities }) => of === undefined && capabilities?.chat !== false);
  const model = wanted === undefined ? onlyOf(own) : models.find(({ id }) => id === wanted);
  if (!model) {
    const ids = own.map(({ id }) => printable(id)).join(", ") || "none";
    throw new CliError(
      wanted === undefined
        ? `Say which model: --model ID. The key may use ${ids}.`
        : `--model: the key may use no model "${printable(wanted)}". It may use ${ids}.`,
      exitCodes.usage,
    );
  }
  const served = models.find(({ id }) => id === model.alias_of) ?? model;
  return { baseUrl: connection.baseUrl, model: model.id, key, context: served.context_length ?? undefined };
}

function onlyOf<Item>(items: readonly Item[]): Item | undefined {
  return items.length === 1 ? items[0] : undefined;
}

function tell(call: ConnectCall, client: Client, target: Target): MaybeOutcome {
  const { terminal, context } = call;
  const { file } = client;
  const path = file && pathOf(file, context.env);
  const text = file && maskKeys(configurationOf(file, target));
  const show = () => {
    if (path !== undefined && text !== undefined) {
      terminal.note(`In ${path}, or with --write:\n`);
      terminal.print(text.trimEnd());
      terminal.note("");
    }
    tellVariables(call, client, target);
  };
  const masked = Object.fromEntries(
    Object.entries(client.environment(target)).map(([name, value]) => [name, maskKeys(value)]),
  );
  const json = { client: client.id, model: target.model, base_url: target.baseUrl, file: path ?? null };
  return { json: { ...json, text: text ?? null, environment: masked }, show };
}

/** The key itself is not shown: the shell asks for it. */
function tellVariables({ terminal }: ConnectCall, { environment, start, program }: Client, target: Target): void {
  const variables = Object.entries(environment(target));
  if (variables.length > 0) {
    terminal.note("In the shell that starts it:\n");
    for (const [name, value] of variables) {
      terminal.print(`export ${name}=${value === target.key ? '"$(headrace connect --print-key)"' : shellWord(value)}`);
    }
    terminal.note("");
  }
  terminal.note(`Then start ${start}.`);
  if (program !== undefined && target.context !== undefined && target.context < usualPrompt) {
    const [has, wants] = [target.context, usualPrompt].map((tokens) => tokens.toLocaleString("en-US"));
    terminal.note(
      `${printable(target.model)} takes ${has} tokens; agents send some ${wants} before the first question.`,
    );
  }
}

function shellWord(text: string): string {
  return /^[\w./:@%+,=-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}

async function write(call: ConnectCall, client: Client, target: Target): Promise<MaybeOutcome> {
  const { terminal, context, confirm } = call;
  const { file } = client;
  if (!file) {
    throw new CliError(
      `${client.name} read variables alone, and no file. headrace connect ${client.id} shows them.`,
      exitCodes.usage,
    );
  }
  const path = pathOf(file, context.env);
  const before = readClientFile(path);
  const format = settingsFormats[file.format];
  const settings = file.settings(target);
  const after = understandingFile(path, () => withSettings(format, before ?? "", settings));
  const isDone = after === before;
  if (!isDone) {
    showChange(call, path, before ?? "", after);
    await confirm({ question: `Write this to ${path}`, canBeUndone: true });
    const connected = new ConnectedFiles(context.configFolder);
    const remembered = rememberedOf(format, { text: before, file: path, settings }, connected.read().get(client.id));
    // First: what is written and not remembered could not be taken back.
    connected.put(client.id, remembered);
    writeClientFile(path, after, before);
  }
  const show = () => {
    terminal.note(
      isDone ? `${path} says so already.\n` : `Written to ${path}. Undo: headrace connect ${client.id} --undo\n`,
    );
    tellVariables(call, client, target);
  };
  return { json: { client: client.id, model: target.model, file: path, written: !isDone }, show };
}

async function undo(call: ConnectCall, client: Client): Promise<MaybeOutcome> {
  const { terminal, context, confirm } = call;
  const connected = new ConnectedFiles(context.configFolder);
  const written = connected.read().get(client.id);
  if (!written || !client.file)
    throw new CliError(`Nothing was written for ${client.name} by headrace connect --write.`);
  const { file: path } = written;
  const before = readClientFile(path);
  const format = settingsFormats[client.file.format];
  const { text, kept } = understandingFile(path, () => undone(format, before ?? "", written));
  const isEmpty = Object.keys(understandingFile(path, () => format.parse(text))).length === 0;
  const isGone = written.isNew && isEmpty && !/[#/]/.test(text);
  if (before !== undefined && text !== before) {
    showChange(call, path, before, isGone ? "" : text);
    await confirm({ question: isGone ? `Remove ${path}` : `Write this to ${path}`, canBeUndone: true });
    if (isGone) removeClientFile(path);
    else writeClientFile(path, text, undefined);
  }
  connected.put(client.id, undefined);
  const show = () => {
    for (const name of kept) terminal.note(`${printable(name)} was changed since, and stays.`);
    terminal.note(before === undefined ? `${path} is gone already.` : `${client.name} is as it was before.`);
  };
  return { json: { client: client.id, file: path, removed: isGone, kept }, show };
}

function showChange({ terminal }: ConnectCall, path: string, before: string, after: string): void {
  const { err } = terminal;
  terminal.note(path);
  for (const { sign, line } of lineChanges(before, after)) {
    const shown = `  ${sign} ${printable(maskKeys(line).replaceAll("\t", "  "))}`;
    terminal.note(sign === "+" ? err.green(shown) : sign === "-" ? err.red(shown) : err.dim(shown));
  }
  terminal.note("");
}
