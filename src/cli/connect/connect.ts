// `headrace connect`: prints what an agent or an SDK is to be told to use this server, or writes it into its configuration.
import { resolve } from "node:path";
import { maskKeys } from "../../domain/api-key.ts";
import { type MaybeOutcome, printRows } from "../command.ts";
import type { ConnectionOptions } from "../login/client.ts";
import type { Connection } from "../login/connection.ts";
import { type ServerCall, serverCommand } from "../login/server-command.ts";
import { readModels } from "../models/models.ts";
import { CliError, exitCodes, printable } from "../terminal/terminal.ts";
import { pathOf } from "./client-file.ts";
import { type Client, clients, type Target } from "./clients.ts";
import { configurationOf } from "./configuration.ts";
import { ConnectedFiles } from "./connected.ts";
import { undo, write } from "./connected-client.ts";

interface ConnectOptions extends ConnectionOptions {
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
A key that a client can read from its environment is written into no file. A file as it
was before stays beside it, as NAME.before-headrace, until --undo. Where nobody has changed
the file since, that makes it what it was, to the byte; else it takes out what was written.`,
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
  const tellRest = () => tellVariables(call, client, target);
  return options.write ? write(call, client, target, tellRest) : tell(call, client, target);
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
      ["INSTALLED", ({ found }) => (found === null ? "-" : found ? "yes" : "no")],
      ["CONNECTED", ({ connected: isConnected }) => (isConnected ? "yes" : "-")],
      ["CONFIGURATION", ({ file }) => file ?? "variables alone"],
    ]);
    terminal.note("\nheadrace connect CLIENT shows what to set; with --write it is set for you, once you agree.");
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
      terminal.note(`Put this into ${path}, or have it put there with --write:\n`);
      terminal.print(text.trimEnd());
      terminal.note("");
      if (text !== configurationOf(file as NonNullable<typeof file>, target)) {
        terminal.note(`The key is not shown here: put in its place what this prints: ${keyCommand(call)}\n`);
      }
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
function tellVariables(call: ConnectCall, { environment, start, program }: Client, target: Target): void {
  const { terminal } = call;
  const variables = Object.entries(environment(target));
  if (variables.length > 0) {
    terminal.note("In the shell that starts it:\n");
    for (const [name, value] of variables) {
      terminal.print(`export ${name}=${value === target.key ? `"$(${keyCommand(call)})"` : shellWord(value)}`);
    }
    terminal.note("");
  }
  terminal.note(`Then start ${start}.`);
  if (program !== undefined && target.context !== undefined && target.context < usualPrompt) {
    const [has, wants] = [target.context, usualPrompt].map((tokens) => tokens.toLocaleString("en-US"));
    terminal.note(
      `${printable(target.model)} takes ${has} tokens, which is too few: agents send some ${wants} before the first question.`,
    );
  }
}

/** Asks for the same key again: by the options that this one was found with. */
function keyCommand({ options: { baseUrl, dataDir, apiKeyStdin } }: ConnectCall): string {
  if (apiKeyStdin) return "cat FILE_WITH_THE_KEY";
  const named = Object.entries({ "--base-url": baseUrl, "--data-dir": dataDir && resolve(dataDir) });
  const given = named.flatMap(([name, value]) => (value === undefined ? [] : [name, shellWord(value)]));
  return ["headrace connect --print-key", ...given].join(" ");
}

function shellWord(text: string): string {
  return /^[\w./:@%+,=-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}
