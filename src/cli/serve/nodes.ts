// `headrace nodes`: lists, approves, drains and removes nodes, and makes the tokens with which machines join.
import { type Command, InvalidArgumentError, Option } from "commander";
import { z } from "zod";
import { type Environment, environments } from "../../domain/api-key.ts";
import { everyModel } from "../../domain/models/node.ts";
import { createdJoinTokenShape, type NodeWire, nodeShape } from "../../wire/nodes.ts";
import { requestJson, understood } from "../login/api-request.ts";
import { addConnectionOptions, type ConnectionOptions, connectionHelp, findConnection } from "../login/client.ts";
import type { Connection } from "../login/connection.ts";
import type { CliContext } from "../terminal/context.ts";
import { formatRelative, formatTimeAndRelative, parseSpan } from "../terminal/figures.ts";
import { confirm } from "../terminal/input.ts";
import { CliError, exitCodes, formatTable, interruptible, printable } from "../terminal/terminal.ts";

interface NodesOptions extends ConnectionOptions {
  json?: boolean;
  yes?: boolean;
}

interface TokenOptions extends NodesOptions {
  models?: string[];
  allModels?: boolean;
  environments?: Environment[];
  expires?: number;
  quiet?: boolean;
}

const nodeList = z.object({ data: z.array(z.unknown()) });
const whichArgument = ["<node>", "name or id"] as const;
const needs = "Needs a key with admin:manage, or an operator's headrace login.";

export function registerNodes(program: Command, context: CliContext): void {
  const nodes = program
    .command("nodes")
    .summary("list and manage the machines that serve this gateway")
    .description(`Manage the nodes of a gateway: machines that serve their models to it. ${needs}`)
    .addHelpText(
      "after",
      `
Examples:
  headrace nodes                                   list them
  headrace nodes token --models qwen3-8b           a token, and the command for the machine
  headrace nodes approve gpu-1 qwen3-8b llama-3
  headrace nodes drain gpu-1
  headrace nodes remove gpu-1`,
    );
  const list = nodes
    .command("list", { isDefault: true })
    .summary("list the nodes (the default)")
    .description("List the nodes, with what they announce and what of it they may serve.");
  addConnectionOptions(list.option("--json", "print the list as the API gives it"))
    .addHelpText("after", `\nExamples:\n  headrace nodes list\n  headrace nodes --json\n${connectionHelp}`)
    .action((options: NodesOptions) => listNodes(context, options));
  registerToken(nodes, context);
  registerApprove(nodes, context);
  for (const draining of [true, false]) registerDrain(nodes, context, draining);
  const remove = nodes
    .command("remove")
    .summary("remove a node: it is cut off, and cannot come back")
    .description("Remove a node. Its requests end with an error; drain it first to let them end.");
  addConnectionOptions(
    remove
      .argument(...whichArgument)
      .option("-y, --yes", "do not ask")
      .option("--json", "print what the API gives"),
  )
    .addHelpText("after", `\nExamples:\n  headrace nodes remove gpu-1\n${connectionHelp}`)
    .action((which: string, options: NodesOptions) => removeNode(context, which, options));
}

function registerToken(nodes: Command, context: CliContext): void {
  const token = nodes
    .command("token")
    .summary("make a token with which one machine joins, and print the command for it")
    .description("Make a join token: it lets one machine in, once.");
  addConnectionOptions(
    token
      .option("--models <ids>", "models that it may serve at once, separated by commas", parseIds)
      .addOption(new Option("--all-models", "whatever it announces, now and later").conflicts("models"))
      .option("--environments <names>", `whose keys may use them, of ${environments.join(", ")}`, parseEnvironments)
      .option("--expires <span>", "for how long it lets a machine in, such as 15m or 1d (default: 1h)", parseLife)
      .option("-q, --quiet", "print nothing but the token")
      .option("--json", "print what the API gives, the token included"),
  )
    .addHelpText(
      "after",
      `
Examples:
  headrace nodes token --models qwen3-8b
  headrace nodes token --all-models --expires 15m

Without --models or --all-models, what the node announces has to be approved once it is
there. The command for the machine is printed on standard output, everything else on
standard error.
${connectionHelp}`,
    )
    .action((options: TokenOptions) => makeToken(context, options));
}

function registerApprove(nodes: Command, context: CliContext): void {
  const approve = nodes
    .command("approve")
    .summary("say which models of a node are on offer")
    .description("Say which models a node may serve, in place of what was approved before.");
  addConnectionOptions(
    approve
      .argument(...whichArgument)
      .argument("[models...]", "ids of models, as the node announces them")
      .option("--all", "whatever it announces, now and later")
      .option("--none", "nothing")
      .option("--json", "print the node as the API gives it"),
  )
    .addHelpText(
      "after",
      `\nExamples:\n  headrace nodes approve gpu-1 qwen3-8b llama-3\n  headrace nodes approve gpu-1 --all\n${connectionHelp}`,
    )
    .action((which: string, models: string[], options: NodesOptions & { all?: boolean; none?: boolean }) =>
      approveModels(context, which, models, options),
    );
}

function registerDrain(nodes: Command, context: CliContext, draining: boolean): void {
  const name = draining ? "drain" : "undrain";
  const command = nodes
    .command(name)
    .summary(draining ? "send a node nothing new" : "send a drained node requests again")
    .description(
      draining
        ? "Send a node nothing new; what it has goes on. It holds until undrain."
        : "Send a drained node requests again.",
    );
  addConnectionOptions(command.argument(...whichArgument).option("--json", "print the node as the API gives it"))
    .addHelpText("after", `\nExamples:\n  headrace nodes ${name} gpu-1\n${connectionHelp}`)
    .action(async (which: string, options: NodesOptions) => {
      await change(context, which, { draining }, options, ({ name, running }) => {
        if (!draining) return `${printable(name)} gets requests again.`;
        return `${printable(name)} gets nothing new. ${running === 0 ? "It has no requests from here." : `It still has ${running} from here.`}`;
      });
    });
}

async function listNodes(context: CliContext, options: NodesOptions): Promise<void> {
  context.begin();
  const { terminal } = context;
  const connection = await findConnection(context, options);
  const raw = await interruptible((signal) => readNodes(connection, signal));
  if (options.json) {
    terminal.print(JSON.stringify(raw, undefined, 2));
    return;
  }
  if (raw.length === 0) {
    terminal.note("There are no nodes yet. To let a machine join: headrace nodes token");
    return;
  }
  const nowSeconds = Math.floor(context.nowMs() / 1000);
  const rows = raw
    .map((entry) => understood(nodeShape, entry, connection, "list of nodes"))
    .map((node) => [
      ...[node.name, node.status, modelsText(node), `${node.running}`, node.version ?? "-"],
      ...[node.client_address ?? "-", node.connected_at ? "now" : formatRelative(node.last_seen_at, nowSeconds)],
    ]);
  const header = ["NAME", "STATUS", "MODELS", "RUNNING", "VERSION", "FROM", "SEEN"];
  terminal.print(formatTable(header, rows, terminal.out, [3]));
}

function modelsText({ announced_models: models }: NodeWire): string {
  const approved = models.filter((model) => model.approved).map(({ id }) => id);
  const pending = models.length - approved.length;
  const shown = approved.slice(0, 3).join(", ") + (approved.length > 3 ? ` and ${approved.length - 3} more` : "");
  return [shown, pending > 0 ? `${pending} not approved` : ""].filter((part) => part !== "").join("; ") || "-";
}

async function makeToken(context: CliContext, options: TokenOptions): Promise<void> {
  context.begin();
  const { terminal } = context;
  const connection = await findConnection(context, options);
  const models = options.allModels ? [everyModel] : options.models;
  const body = {
    ...(models ? { approved_models: models } : {}),
    ...(options.environments ? { environments: options.environments } : {}),
    ...(options.expires === undefined ? {} : { expires_in: options.expires }),
  };
  const answer = await interruptible((signal) =>
    requestJson(connection, "/admin/node-tokens", signal, { method: "POST", body }),
  );
  if (options.json) {
    terminal.print(JSON.stringify(answer, undefined, 2));
    return;
  }
  const made = understood(createdJoinTokenShape, answer, connection, "join token");
  if (options.quiet) {
    terminal.print(made.token);
    return;
  }
  const until = formatTimeAndRelative(made.expires_at, Math.floor(context.nowMs() / 1000));
  terminal.note(`On the machine that is to join, until ${until}, once:`);
  terminal.note("");
  terminal.print(terminal.out.bold(`headrace node join ${printable(made.gateway_url)} --token ${made.token}`));
  terminal.note("");
  const approved = made.approved_models;
  terminal.note(
    approved.length === 0
      ? "What it announces is on offer once you approve it: headrace nodes approve <node> …"
      : approved.includes(everyModel)
        ? "Whatever it announces is on offer at once."
        : `On offer at once, where it announces them: ${approved.map(printable).join(", ")}.`,
  );
}

async function approveModels(
  context: CliContext,
  which: string,
  models: string[],
  options: NodesOptions & { all?: boolean; none?: boolean },
): Promise<void> {
  const ways = [models.length > 0, options.all, options.none].filter(Boolean).length;
  if (ways !== 1) throw new CliError("Name the models, or give --all, or --none.", exitCodes.usage);
  const approved = options.all ? [everyModel] : models;
  await change(context, which, { approved_models: approved }, options, (node) => {
    const offered = node.announced_models.filter((model) => model.approved).map(({ id }) => id);
    const missing = approved.filter((id) => id !== everyModel && !offered.includes(id));
    const text = offered.length === 0 ? "offers nothing now" : `offers ${offered.map(printable).join(", ")}`;
    const later =
      missing.length === 0 ? "" : ` It does not announce ${missing.map(printable).join(", ")} at the moment.`;
    return `${printable(node.name)} ${text}.${later}`;
  });
}

async function removeNode(context: CliContext, which: string, options: NodesOptions): Promise<void> {
  context.begin();
  const { terminal, input } = context;
  const connection = await findConnection(context, options);
  const { id, name, running } = await interruptible((signal) => findNode(connection, which, signal));
  const has = running === 0 ? "" : ` It has ${running} requests from here, which end with an error.`;
  await confirm(input, {
    question: `Remove the node ${name}`,
    consequence: `It is cut off and needs a new token to come back.${has}`,
    yes: options.yes,
  });
  const answer = await interruptible((signal) =>
    requestJson(connection, `/admin/nodes/${encodeURIComponent(id)}`, signal, { method: "DELETE" }),
  );
  if (options.json) terminal.print(JSON.stringify(answer, undefined, 2));
  else terminal.print(`${printable(name)} is removed.`);
}

async function change(
  context: CliContext,
  which: string,
  body: Readonly<Record<string, unknown>>,
  options: NodesOptions,
  tell: (node: NodeWire) => string,
): Promise<void> {
  context.begin();
  const { terminal } = context;
  const connection = await findConnection(context, options);
  const answer = await interruptible(async (signal) => {
    const { id } = await findNode(connection, which, signal);
    const path = `/admin/nodes/${encodeURIComponent(id)}`;
    return await requestJson(connection, path, signal, { method: "PATCH", body });
  });
  if (options.json) terminal.print(JSON.stringify(answer, undefined, 2));
  else terminal.print(tell(understood(nodeShape, answer, connection, "node")));
}

async function readNodes(connection: Connection, signal: AbortSignal): Promise<unknown[]> {
  return understood(nodeList, await requestJson(connection, "/admin/nodes", signal), connection, "list of nodes").data;
}

async function findNode(connection: Connection, which: string, signal: AbortSignal): Promise<NodeWire> {
  const nodes = (await readNodes(connection, signal)).map((entry) =>
    understood(nodeShape, entry, connection, "list of nodes"),
  );
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
