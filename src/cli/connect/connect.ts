// `headrace connect`: prints the settings with which an agent or an SDK uses this server, or writes them into its
// configuration.
import { resolve } from "node:path";
import { maskKeys } from "../../domain/api-key.ts";
import { type MaybeOutcome, printRows } from "../command.ts";
import type { ConnectionOptions } from "../login/client.ts";
import type { Connection } from "../login/connection.ts";
import { type ServerCall, serverCommand } from "../login/server-command.ts";
import { readModels } from "../models/models.ts";
import { CliError, exitCodes, printable } from "../terminal/terminal.ts";
import { pathOf } from "./client-file.ts";
import { type Client, clients, keyVariable, type Target, type ToolsTarget } from "./clients.ts";
import { configurationOf } from "./configuration.ts";
import { ConnectedFiles } from "./connected.ts";
import { type ClientConfigFile, undo, write } from "./connected-client.ts";

interface ConnectOptions extends ConnectionOptions {
  model?: string;
  tools?: boolean;
  write?: boolean;
  undo?: boolean;
  printKey?: boolean;
}
type ConnectCall = ServerCall<ConnectOptions>;

/** Tokens that an agent's instructions and tools usually take: Codex sends some 6,000, Claude Code 13,000. */
const defaultPrompt = 16_000;

export const connectCommand = serverCommand({
  name: "connect",
  summary: "set up an agent such as Codex or Claude Code for this server",
  description: "Show the settings with which an agent or SDK uses this server, or write them into its configuration.",
  arguments: [["[client]", `one of ${clients.map(({ id }) => id).join(", ")}; without one, all are listed`]],
  options: {
    model: ["--model <id>", "the model or an alias; required if the key may use several models"],
    tools: ["--tools", "the MCP tools that you may use here, in place of a model"],
    write: ["--write", "write the settings into the client's configuration, after showing the change"],
    undo: ["--undo", "remove the settings from the client's configuration"],
    printKey: ["--print-key", "print only the key, for a shell variable"],
    yes: ["-y, --yes", "write without asking"],
    json: ["--json", "print one JSON object"],
  },
  examples: [
    "headrace connect                              which clients there are",
    "headrace connect codex                        the settings for Codex",
    "headrace connect claude --model gpt-oss --write",
    "headrace connect claude --undo",
    "headrace connect codex --tools --write        the tools of this server for Codex",
    'export HEADRACE_API_KEY="$(headrace connect --print-key)"',
  ],
  help: [
    `\
If a client can read the key from its environment, the key is not written into a file. A
copy of the earlier file stays beside it as NAME.before-headrace. If the file has not
changed since, --undo restores that copy. Otherwise it removes only the written settings.`,
    `\
With --tools and a login, the agent signs you in and uses your own accounts. With a key,
the agent uses the key, which needs the scope tools:use.`,
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
      `headrace connect cannot set up "${printable(id)}": it knows ${known}. Any agent that takes an OpenAI base URL works: "headrace connect openai" prints the base URL and the key, and the guide "Agents" says where Copilot CLI, Cline, Qwen Code, Continue, pi, Kilo, Mistral Vibe, OpenHands, Aider, gptme and mini-swe-agent take them.`,
      exitCodes.usage,
    );
  }
  if (options.undo) return undo(call, client, configFileOf(call, client));
  return options.tools ? connectTools(call, client) : connectModel(call, client);
}

async function connectModel(call: ConnectCall, client: Client): Promise<MaybeOutcome> {
  const target = await targetOf(call);
  const { file } = client;
  if (!call.options.write) return outcomeOf(call, client, target);
  const configFile = configFileOf(call, client);
  if (!file || !configFile) {
    throw new CliError(
      `${client.name} read variables alone, and no file. headrace connect ${client.id} shows them.`,
      exitCodes.usage,
    );
  }
  return write(call, configFile, {
    settings: file.settings(target),
    key: target.key,
    json: { client: client.id, model: target.model },
    showRest: () => showVariables(call, client, target),
  });
}

async function connectTools(call: ConnectCall, client: Client): Promise<MaybeOutcome> {
  const { terminal, options } = call;
  const { tools } = client;
  const configFile = configFileOf(call, client);
  if (!tools || !configFile) {
    throw new CliError(
      `${client.name} are told of tools in code: the page of tools in the dashboard has it for some.`,
      exitCodes.usage,
    );
  }
  const { listOffered } = await import("../tools/offered-tools.ts");
  const offered = await call.ask(listOffered);
  const { baseUrl, login } = await call.connect();
  const target: ToolsTarget = { url: `${baseUrl.replace(/\/v1$/, "")}/mcp`, sendsKey: login === undefined };
  const json = { client: client.id, url: target.url };
  const showRest = () => {
    if (target.sendsKey) {
      terminal.note("In the shell that starts it:\n");
      terminal.print(`export ${keyVariable}="$(${keyCommand(call)})"\n`);
    } else {
      terminal.note("Then have it sign you in, in a browser:\n");
      terminal.print(`${tools.signIn}\n`);
    }
    const count = offered.length === 1 ? "one tool" : `${offered.length} tools`;
    terminal.note(`It may use ${count}: headrace tools mine`);
  };
  if (options.write) return write(call, configFile, { settings: tools.file.settings(target), json, showRest });
  const text = configurationOf(tools.file, target);
  const show = () => {
    terminal.note(`Put this into ${configFile.path}, or have it put there with --write:\n`);
    terminal.print(text);
    showRest();
  };
  return { json: { ...json, file: configFile.path, text }, show };
}

/** Returns the client's configuration file for models, or for MCP servers with `--tools`; undefined if it has none. */
function configFileOf({ context, options }: ConnectCall, { id, file, tools }: Client): ClientConfigFile | undefined {
  const main = file && pathOf(file, context.env);
  const command = `headrace connect ${id}`;
  if (!options.tools) return file && main ? { path: main, format: file.format, record: id, command } : undefined;
  if (!tools) return undefined;
  const path = pathOf(tools.file, context.env);
  // A separate file for MCP servers gets a separate record, because each file is restored as a whole.
  const record = path === main ? id : `${id}-tools`;
  return { path, format: tools.file.format, record, command: `${command} --tools` };
}

function list({ context, terminal }: ConnectCall): MaybeOutcome {
  const connected = new ConnectedFiles(context.configFolder).read();
  const rows = clients.map(({ id, name, program, file }) => ({
    ...{ id, name, file: file === undefined ? null : pathOf(file, context.env) },
    found: program === undefined ? null : Bun.which(program, { PATH: context.env["PATH"] ?? "" }) !== null,
    connected: connected.has(id) || connected.has(`${id}-tools`),
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
    terminal.note('Other agents, such as Aider or Cline: the guide "Agents" lists their settings.');
  };
  return { json: rows, show };
}

/**
 * Returns the connection and its key. Throws for a login, whose token ends within the hour, because a client needs a
 * lasting key.
 */
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

function outcomeOf(call: ConnectCall, client: Client, target: Target): MaybeOutcome {
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
    showVariables(call, client, target);
  };
  const masked = Object.fromEntries(
    Object.entries(client.environment(target)).map(([name, value]) => [name, maskKeys(value)]),
  );
  const json = { client: client.id, model: target.model, base_url: target.baseUrl, file: path ?? null };
  return { json: { ...json, text: text ?? null, environment: masked }, show };
}

/** Prints a shell command that outputs the key instead of the key itself. */
function showVariables(call: ConnectCall, { environment, start, program }: Client, target: Target): void {
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
  if (program !== undefined && target.context !== undefined && target.context < defaultPrompt) {
    const [has, wants] = [target.context, defaultPrompt].map((tokens) => tokens.toLocaleString("en-US"));
    terminal.note(
      `${printable(target.model)} takes ${has} tokens, which is too few: agents send some ${wants} before the first question.`,
    );
  }
}

/** Returns the shell command that prints the same key. The command has the same connection options. */
function keyCommand({ options: { baseUrl, dataDir, apiKeyStdin } }: ConnectCall): string {
  if (apiKeyStdin) return "cat FILE_WITH_THE_KEY";
  const named = Object.entries({ "--base-url": baseUrl, "--data-dir": dataDir && resolve(dataDir) });
  const given = named.flatMap(([name, value]) => (value === undefined ? [] : [name, shellWord(value)]));
  return ["headrace connect --print-key", ...given].join(" ");
}

function shellWord(text: string): string {
  return /^[\w./:@%+,=-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}
