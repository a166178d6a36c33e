// `headrace nodes`: lists, approves, drains and removes nodes, and makes the tokens with which machines join.

import { InvalidArgumentError, Option } from "commander";
import { type Environment, environments } from "../../domain/api-key.ts";
import { everyModel } from "../../domain/models/node.ts";
import { createdJoinTokenShape, type NodeWire, nodeShape } from "../../wire/nodes.ts";
import { type Column, type CommandEntry, command, type Outcome, printRows } from "../command.ts";
import { requestJson, requestWholeList, understood } from "../login/api-request.ts";
import type { Connection } from "../login/connection.ts";
import { type ServerCall, serverCommand } from "../login/server-command.ts";
import { operatorNeeds } from "../models/model-records.ts";
import { formatRelative, formatTimeAndRelative, parseSpan } from "../terminal/figures.ts";
import { CliError, exitCodes, printable } from "../terminal/terminal.ts";

const nodesPath = "/admin/nodes";
const whichArgument = ["<node>", "name or id"] as const;

const listCommand = serverCommand({
  name: "list",
  isDefault: true,
  summary: "list the nodes (the default)",
  description: "List the nodes, with the models that they announce and those that are approved.",
  options: { json: ["--json", "print the list as the API gives it"] },
  examples: ["headrace nodes list", "headrace nodes --json"],
  async run({ connect, ask, terminal, nowSeconds }) {
    const connection = await connect();
    const raw = await ask((_, signal) => requestWholeList(connection, nodesPath, "list of nodes", signal));
    const show = () => {
      if (raw.length === 0) {
        return terminal.note("There are no nodes yet. To let a machine join: headrace nodes token");
      }
      const columns: Column<NodeWire>[] = [
        ["NAME", (node) => node.name],
        ["STATUS", (node) => node.status],
        ["MODELS", modelsText],
        ["TOOLS", ({ tool_servers: servers }) => servers.map(({ name }) => name).join(", ") || "-"],
        ["LOCAL", (node) => (node.local ? "yes" : "-")],
        ["RUNNING", (node) => `${node.running}`],
        ["VERSION", (node) => node.version ?? "-"],
        ["FROM", (node) => node.client_address ?? "-"],
        ["SEEN", (node) => (node.connected_at ? "now" : formatRelative(node.last_seen_at, nowSeconds()))],
      ];
      const nodes = raw.map((entry) => understood(nodeShape, entry, connection, "list of nodes"));
      printRows(terminal, nodes, columns, ["RUNNING"]);
    };
    return { json: raw, show };
  },
});

const tokenCommand = serverCommand({
  name: "token",
  summary: "make a join token, and print the command for the machine",
  description: "Make a join token. One machine can join with it, once.",
  options: {
    models: ["--models <ids>", "models to approve immediately, separated by commas", parseIds],
    allModels: new Option("--all-models", "all models that it announces, now and later").conflicts("models"),
    environments: [
      "--environments <names>",
      `environments that may use them: ${environments.join(", ")}`,
      parseEnvironments,
    ],
    expires: ["--expires <span>", "how long the token is valid, such as 15m or 1d (default: 1h)", parseLife],
    quiet: ["-q, --quiet", "print nothing but the token"],
    json: ["--json", "print what the API gives, the token included"],
  },
  examples: ["headrace nodes token --models qwen3-8b", "headrace nodes token --all-models --expires 15m"],
  help: [
    `Without --models or --all-models, what the node announces has to be approved once it is
there. The command for the machine is printed on standard output, everything else on
standard error.`,
  ],
  async run({ connect, request, options, terminal, nowSeconds }) {
    const connection = await connect();
    const models = options.allModels ? [everyModel] : options.models;
    const body = {
      ...(models ? { approved_models: models } : {}),
      ...(options.environments ? { environments: options.environments } : {}),
      ...(options.expires === undefined ? {} : { expires_in: options.expires }),
    };
    const answer = await request("/admin/node-tokens", { method: "POST", body });
    const show = () => {
      const made = understood(createdJoinTokenShape, answer, connection, "join token");
      if (options.quiet) return terminal.print(made.token);
      const until = formatTimeAndRelative(made.expires_at, nowSeconds());
      terminal.note(`On the machine that is to join, until ${until}, once:`);
      terminal.note("");
      terminal.print(terminal.out.bold(`headrace node join ${printable(made.gateway_url)} --token ${made.token}`));
      terminal.note("");
      terminal.note(onOffer(made.approved_models));
    };
    return { json: answer, show };
  },
});

function onOffer(approved: readonly string[]): string {
  if (approved.length === 0) {
    return "What it announces is on offer once you approve it: headrace nodes approve <node> …";
  }
  if (approved.includes(everyModel)) return "Whatever it announces is on offer at once.";
  return `On offer at once, where it announces them: ${approved.map(printable).join(", ")}.`;
}

const approveCommand = serverCommand({
  name: "approve",
  summary: "approve models of a node",
  description: "Approve models of a node. This replaces earlier approvals.",
  arguments: [whichArgument, ["[models...]", "ids of models, as the node announces them"]],
  options: {
    all: ["--all", "all models that it announces, now and later"],
    none: ["--none", "nothing"],
    json: ["--json", "print the node as the API gives it"],
  },
  examples: ["headrace nodes approve gpu-1 qwen3-8b llama-3", "headrace nodes approve gpu-1 --all"],
  async run(call, which, models) {
    const { all, none } = call.options;
    const ways = [models.length > 0, all, none].filter(Boolean).length;
    if (ways !== 1) throw new CliError("Name the models, or give --all, or --none.", exitCodes.usage);
    const approved = all ? [everyModel] : models;
    return change(call, which, { approved_models: approved }, (node) => {
      const offered = node.announced_models.filter((model) => model.approved).map(({ id }) => id);
      const missing = approved.filter((id) => id !== everyModel && !offered.includes(id));
      const text = offered.length === 0 ? "offers nothing now" : `offers ${offered.map(printable).join(", ")}`;
      const later =
        missing.length === 0 ? "" : ` It does not announce ${missing.map(printable).join(", ")} at the moment.`;
      return `${printable(node.name)} ${text}.${later}`;
    });
  },
});

const drainCommand = drainingCommand(true, {
  name: "drain",
  alias: "suspend",
  summary: "stop sending new requests to a node",
  description: "Stop sending new requests to a node. Running requests finish. Undo it with headrace nodes undrain.",
  outcome: ({ running }) =>
    `gets nothing new. ${running === 0 ? "It has no requests from here." : `It still has ${running} from here.`}`,
});

const undrainCommand = drainingCommand(false, {
  name: "undrain",
  alias: "resume",
  summary: "send requests to a drained node again",
  description: "Send requests to a drained node again.",
  outcome: () => "gets requests again.",
});

interface DrainingFields extends Pick<CommandEntry, "name" | "alias" | "summary" | "description"> {
  outcome(node: NodeWire): string;
}

function drainingCommand(draining: boolean, { outcome, ...fields }: DrainingFields): CommandEntry {
  return serverCommand({
    ...fields,
    arguments: [whichArgument],
    options: { json: ["--json", "print the node as the API gives it"] },
    examples: [`headrace nodes ${fields.name} gpu-1`],
    run: (call, which) => change(call, which, { draining }, (node) => `${printable(node.name)} ${outcome(node)}`),
  });
}

const markCommand = markingCommand(true, {
  name: "mark-local",
  summary: "mark a node as local",
  description:
    "Mark a node as local: requests of keys with never_leaves may go there. Do this only if none of its models sends requests further.",
  outcome: "is marked as local.",
});

const unmarkCommand = markingCommand(false, {
  name: "unmark-local",
  summary: "mark a node as not local",
  description: "Mark a node as not local: requests of keys with never_leaves do not go there.",
  outcome: "is not marked as local.",
});

interface MarkingFields {
  name: string;
  summary: string;
  description: string;
  outcome: string;
}

function markingCommand(local: boolean, { outcome, ...fields }: MarkingFields): CommandEntry {
  return serverCommand({
    ...fields,
    arguments: [whichArgument],
    options: { json: ["--json", "print the node as the API gives it"] },
    examples: [`headrace nodes ${fields.name} gpu-1`],
    run: (call, which) => change(call, which, { local }, (node) => `${printable(node.name)} ${outcome}`),
  });
}

const removeCommand = serverCommand({
  name: "remove",
  summary: "remove a node permanently",
  description: "Remove a node. Its running requests fail; drain it first to let them finish.",
  arguments: [whichArgument],
  options: { yes: ["-y, --yes", "do not ask"], json: ["--json", "print what the API gives"] },
  examples: ["headrace nodes remove gpu-1"],
  async run({ ask, request, confirm, terminal }, which) {
    const { id, name, running } = await ask((connection, signal) => findNode(connection, which, signal));
    const has = running === 0 ? "" : ` It has ${running} requests from here, which end with an error.`;
    await confirm({
      question: `Remove the node ${name}`,
      consequence: `It is cut off and needs a new token to come back.${has}`,
    });
    const answer = await request(`${nodesPath}/${encodeURIComponent(id)}`, { method: "DELETE" });
    return { json: answer, show: () => terminal.print(`${printable(name)} is removed.`) };
  },
});

export const nodesCommand = command({
  name: "nodes",
  summary: "manage the machines that serve this gateway",
  description: `Manage the nodes of a gateway: machines that serve their models to it. ${operatorNeeds}`,
  examples: [
    "headrace nodes                                   list them",
    "headrace nodes token --models qwen3-8b           a token, and the command for the machine",
    "headrace nodes approve gpu-1 qwen3-8b llama-3",
    "headrace nodes drain gpu-1",
    "headrace nodes remove gpu-1",
  ],
  commands: [
    ...[listCommand, tokenCommand, approveCommand, markCommand, unmarkCommand],
    ...[drainCommand, undrainCommand, removeCommand],
  ],
});

function modelsText({ announced_models: models }: NodeWire): string {
  const approved = models
    .filter((model) => model.approved)
    .map(({ id, process }) => (process === null ? id : `${id} (${process})`));
  const pending = models.length - approved.length;
  const shown = approved.slice(0, 3).join(", ") + (approved.length > 3 ? ` and ${approved.length - 3} more` : "");
  return [shown, pending > 0 ? `${pending} not approved` : ""].filter((part) => part !== "").join("; ") || "-";
}

async function change(
  { connect, ask, terminal }: ServerCall<unknown>,
  which: string,
  body: Readonly<Record<string, unknown>>,
  outcome: (node: NodeWire) => string,
): Promise<Outcome> {
  const connection = await connect();
  const answer = await ask(async (_, signal) => {
    const { id } = await findNode(connection, which, signal);
    return await requestJson(connection, `${nodesPath}/${encodeURIComponent(id)}`, signal, { method: "PATCH", body });
  });
  return { json: answer, show: () => terminal.print(outcome(understood(nodeShape, answer, connection, "node"))) };
}

async function findNode(connection: Connection, which: string, signal: AbortSignal): Promise<NodeWire> {
  const raw = await requestWholeList(connection, nodesPath, "list of nodes", signal);
  const nodes = raw.map((entry) => understood(nodeShape, entry, connection, "list of nodes"));
  const found = nodes.find(({ id, name }) => id === which || name === which);
  if (found) return found;
  throw new CliError(`There is no node \`${printable(which)}\`. headrace nodes lists them.`);
}

function parseIds(text: string): string[] {
  const ids = text
    .split(",")
    .map((id) => id.trim())
    .filter((id) => id !== "");
  if (ids.length > 0) return ids;
  throw new InvalidArgumentError("It must name at least one model.");
}

function parseEnvironments(text: string): Environment[] {
  const names = text.split(",").map((name) => name.trim());
  const known = environments.filter((environment) => names.includes(environment));
  if (known.length > 0 && known.length === new Set(names).size) return known;
  throw new InvalidArgumentError(`It must be one or more of ${environments.join(", ")}, separated by commas.`);
}

function parseLife(text: string): number {
  const seconds = parseSpan(text);
  if (seconds !== undefined && seconds > 0) return seconds;
  throw new InvalidArgumentError("Give a span such as 15m, 1h or 1d.");
}
