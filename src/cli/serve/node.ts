// `headrace node`: makes this machine a node of a gateway, shows the state of its connection, and leaves again.
import { hostname } from "node:os";
import { InvalidArgumentError } from "commander";
import { StartError } from "../../base/errors.ts";
import { trimSlashes } from "../../base/text/http-url.ts";
import { loadConfig } from "../../config/config.ts";
import { nodeNamePattern } from "../../domain/models/node.ts";
import type { NodeIdentity, NodeLinkReport } from "../../domain/models/node-identity.ts";
import { JoinRefused, joinGateway } from "../../nodes/join-gateway.ts";
import { proxyFor } from "../../nodes/outbound-proxy.ts";
import { DataDirectoryInUse, lockDataDirectory } from "../../storage/files/data-directory-lock.ts";
import {
  deleteNodeIdentity,
  prepareNodeDirectory,
  readNodeIdentity,
  readNodeReport,
  writeNodeIdentity,
} from "../../storage/files/node-files.ts";
import { command, dataDirOption, type OptionValues } from "../command.ts";
import type { CliContext } from "../terminal/context.ts";
import { formatTimeAndRelative } from "../terminal/figures.ts";
import { CliError, exitCodes, formatFacts, interruptible, printable } from "../terminal/terminal.ts";
import { showNode } from "./node-face.ts";
import { serveOptions, startServer } from "./serve.ts";

/** The time that a running server may take to connect before the command reports that it has not connected yet. */
const connectWaitMs = 10_000;
const pollMs = 200;

const joinHelp = `\
An operator of the gateway makes the token: headrace nodes token. It works once; from then
on this machine proves who it is with a key that it makes and keeps. It only opens one
connection to the gateway, and serves what the operator approves: its own models, model
servers found here, and those of headrace.yaml.

Where a Headrace runs on this data directory already, that one connects. Otherwise this
command goes on as the server, with the options of headrace serve; later, headrace serve
connects by itself.`;

const joinOptions = {
  token: ["--token <token>", "join token, from headrace nodes token"],
  tokenStdin: ["--token-stdin", "read the token from standard input"],
  name: ["--name <name>", "name of this machine at the gateway (default: its host name)", parseName],
} as const;
type JoinFlags = OptionValues<typeof joinOptions>;

const joinCommand = command({
  name: "join",
  summary: "join a gateway with a token from its operator",
  description: "Join a gateway as a node, and serve it.",
  arguments: [["<gateway>", "address of the gateway", parseGateway]],
  options: { ...joinOptions, ...serveOptions() },
  examples: [
    "headrace node join https://ai.example.com --token hrn_…",
    "headrace node join https://ai.example.com --token hrn_… --name gpu-1 --model ./qwen3.gguf",
    "headrace node join https://ai.example.com --token-stdin < token.txt",
  ],
  help: [joinHelp],
  keepsRunning: true,
  run: ({ context, options }, gateway) => joinAndServe(context, gateway, options as JoinFlags),
});

const statusCommand = command({
  name: "status",
  summary: "show whether this machine is a connected node",
  description: "Show which gateway this machine serves, and the state of the connection.",
  options: { ...dataDirOption, json: ["--json", "print one JSON object"] },
  examples: ["headrace node status"],
  help: ["Exit code 1 if it is not connected."],
  async run({ context, options, terminal, nowSeconds }) {
    const dataDir = await context.dataDir(options.dataDir);
    const identity = readNodeIdentity(dataDir);
    const report = identity && isServed(dataDir) ? readNodeReport(dataDir) : undefined;
    return {
      json: { node: identity ? shownOf(identity) : null, link: report ?? null },
      show() {
        if (identity) terminal.print(formatFacts(factsOf(identity, report, nowSeconds()), terminal.out));
      },
      failure: failureOf(identity, report),
    };
  },
});

function failureOf(identity: NodeIdentity | undefined, report: NodeLinkReport | undefined): string | undefined {
  if (!identity) return "This machine is not a node. To join a gateway: headrace node join <gateway> --token …";
  if (report?.status === "connected") return undefined;
  return report ? printable(report.message) : "No server runs here. Start it with: headrace serve";
}

const leaveCommand = command({
  name: "leave",
  summary: "stop being a node",
  description: "Delete the gateway's address and this machine's key for it. A running server disconnects.",
  options: { ...dataDirOption, yes: ["-y, --yes", "do not ask"] },
  examples: ["headrace node leave"],
  async run({ context, options, terminal, confirm }) {
    const dataDir = await context.dataDir(options.dataDir);
    const identity = readNodeIdentity(dataDir);
    if (!identity) throw new CliError("This machine is not a node.");
    await confirm({
      question: `Leave ${identity.gateway_url}`,
      consequence: "Its requests end with an error. To come back, this machine needs a new token.",
    });
    deleteNodeIdentity(dataDir);
    terminal.print("This machine is not a node now.");
    terminal.note(
      `The gateway still lists it. Its operator removes it with: headrace nodes remove ${printable(identity.name)}`,
    );
  },
});

export const nodeCommand = command({
  name: "node",
  summary: "serve the models of this machine to a gateway",
  description: "Make this machine a node. It opens a connection to a gateway and serves its models there.",
  examples: ["headrace node join https://ai.example.com --token hrn_…", "headrace node status", "headrace node leave"],
  commands: [joinCommand, statusCommand, leaveCommand],
});

async function joinAndServe(context: CliContext, gatewayUrl: string, flags: JoinFlags): Promise<void> {
  const { terminal } = context;
  const { token: _, tokenStdin: __, name = defaultName(), ...serveOptions } = flags;
  // The configuration is checked first, so that an error in it does not use up the token.
  const { dataDir } = await loadConfig({ flags: serveOptions as never, env: context.env });
  const joined = readNodeIdentity(dataDir);
  if (joined) {
    throw new CliError(
      `This machine has joined ${printable(joined.gateway_url)} as ${printable(joined.name)} already. headrace serve connects it; to join anew, first: headrace node leave`,
    );
  }
  const token = await tokenOf(context, flags);
  const proxy = proxyFor(gatewayUrl, context.env);
  const undo = prepareNodeDirectory(dataDir);
  const identity = await interruptible((signal) => joinGateway({ gatewayUrl, token, name, proxy, signal })).catch(
    (error: unknown) => {
      undo();
      throw explainJoin(error, gatewayUrl);
    },
  );
  writeNodeIdentity(dataDir, identity);
  terminal.note(`This machine is the node ${identity.name} of ${gatewayUrl} now.`);
  if (isServed(dataDir)) {
    await waitForServer(context, dataDir, identity);
    return;
  }
  try {
    await startServer(serveOptions, context, {
      quiet: terminal.interactive,
      show: (server, stop) => showNode(terminal, () => server.network.uplink.view(), stop),
    });
  } catch (error) {
    terminal.note(
      "The machine has joined, but its server did not start. headrace serve connects it at its next start.",
    );
    throw error;
  }
}

async function tokenOf({ input }: CliContext, { token, tokenStdin }: JoinFlags): Promise<string> {
  const given = tokenStdin ? await input.readLine() : (token ?? "");
  if (given.trim() !== "") return given.trim();
  throw new CliError(
    "--token: is needed. An operator of the gateway makes one with: headrace nodes token",
    exitCodes.usage,
  );
}

function explainJoin(error: unknown, gatewayUrl: string): unknown {
  if (error instanceof JoinRefused) return new CliError(`${gatewayUrl}: ${printable(error.message)} (${error.status})`);
  if (error instanceof CliError || !(error instanceof Error)) return error;
  const code = "code" in error ? ` (${String(error.code)})` : "";
  return new CliError(
    `No gateway answers at ${gatewayUrl}${code}. Is the address right, and can it be reached from here?`,
  );
}

/** Reports whether a server is running on this data directory. */
function isServed(dataDir: string): boolean {
  try {
    lockDataDirectory(dataDir)();
    return false;
  } catch (error) {
    if (error instanceof DataDirectoryInUse) return true;
    throw error;
  }
}

async function waitForServer(context: CliContext, dataDir: string, identity: NodeIdentity): Promise<void> {
  const { terminal } = context;
  terminal.note("A Headrace runs here already: that one connects.");
  const until = context.nowMs() + connectWaitMs;
  await interruptible(async (signal) => {
    while (context.nowMs() < until) {
      const report = readNodeReport(dataDir);
      if (report?.node_id === identity.node_id && report.status === "connected") {
        terminal.print(`Connected. ${modelsText(report)}`);
        return;
      }
      if (report?.node_id === identity.node_id && report.status === "refused")
        throw new CliError(printable(report.message));
      await context.pause(pollMs, signal);
    }
    throw new CliError("It has not connected yet, and goes on trying: headrace node status");
  });
}

/** Returns the identity without its secrets: the key and the proxy's password. */
function shownOf({ private_key: _, proxy, ...shown }: NodeIdentity) {
  if (proxy === undefined) return shown;
  const url = URL.canParse(proxy) ? new URL(proxy) : undefined;
  return { ...shown, proxy: url ? `${url.protocol}//${url.host}` : "(no URL)" };
}

function factsOf(identity: NodeIdentity, report: NodeLinkReport | undefined, nowSeconds: number): [string, string][] {
  const facts: [string, string][] = [
    ["Gateway", identity.gateway_url],
    ["Name", identity.name],
    ["Node", identity.node_id],
    ["Joined", formatTimeAndRelative(identity.joined_at, nowSeconds)],
    ["Link", report ? `${report.status}, since ${formatTimeAndRelative(report.since, nowSeconds)}` : "no server runs"],
  ];
  if (report) facts.push(["Models", modelsText(report)]);
  return facts;
}

function modelsText({ models }: Pick<NodeLinkReport, "models">): string {
  const ids = (approved: boolean | null) =>
    models.filter((model) => model.approved === approved).map(({ id }) => printable(id));
  const parts = [
    [ids(true), "approved"],
    [ids(false), "waiting for the operator's approval"],
    [ids(null), "offered"],
  ] as const;
  const shown = parts.filter(([names]) => names.length > 0).map(([names, what]) => `${names.join(", ")} (${what})`);
  return shown.join("; ") || "none: this machine serves nothing";
}

function parseGateway(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const isPlain = url?.username === "" && url.password === "" && url.search === "" && url.hash === "";
  if (!url || !isPlain || !["http:", "https:"].includes(url.protocol)) {
    throw new InvalidArgumentError("It must be an http or https address, such as https://ai.example.com.");
  }
  return trimSlashes(url.href).replace(/\/v1$/, "");
}

function parseName(text: string): string {
  if (nodeNamePattern.test(text)) return text;
  throw new InvalidArgumentError(
    "It must be 1 to 63 lower-case letters, digits, dots, underscores or hyphens, beginning with a letter or digit.",
  );
}

function defaultName(): string {
  const name = hostname()
    .toLowerCase()
    .split(".")[0]
    ?.replace(/[^a-z0-9._-]+/g, "-")
    .replace(/^[._-]+/, "")
    .slice(0, 63);
  if (name && nodeNamePattern.test(name)) return name;
  throw new StartError("The host name cannot be the node's name; give one with --name.");
}
