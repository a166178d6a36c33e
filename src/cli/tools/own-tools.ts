// `headrace tools mine`, `connect` and `disconnect`: the tools that a key or person may use, and the person's own
// accounts at MCP servers.
import { z } from "zod";
import { type ToolConnectionWire, toolConnectionShape } from "../../wire/tools/connections.ts";
import { printRows } from "../command.ts";
import { refuseSecret } from "../keys/key-records.ts";
import { ApiError, requestWholeList, understood } from "../login/api-request.ts";
import type { Connection } from "../login/connection.ts";
import { type ServerCall, serverCommand } from "../login/server-command.ts";
import { formatRelative } from "../terminal/figures.ts";
import { CliError, printable } from "../terminal/terminal.ts";
import { firstLine, unhidden } from "./definition-text.ts";

const connectionsPath = "/tools/connections";
const peopleNeed = "Needs a headrace login.";
/** The time that a person may take to sign in. The server has the same limit. */
const connectingMs = 15 * 60_000;
const pollMs = 2_000;

export const mineCommand = serverCommand({
  name: "mine",
  summary: "list the tools that you may use, and your own accounts at their servers",
  description: "List the tools that this key or login may use. Needs the scope tools:use.",
  options: { json: ["--json", "print one JSON object: tools, and your connections if you are signed in"] },
  examples: ["headrace tools mine", "headrace tools mine --json"],
  async run({ ask, terminal, nowSeconds }) {
    const { listOffered } = await import("./offered-tools.ts");
    const [tools, connections] = await ask((connection, signal) =>
      Promise.all([listOffered(connection, signal), ownConnections(connection, signal)]),
    );
    const show = () => {
      if (tools.length === 0) terminal.note("You have no tools yet. An operator decides who may use which tools.");
      else {
        printRows(terminal, tools, [
          ["TOOL", ({ name }) => unhidden(name)],
          ["DOES", ({ description }) => unhidden(firstLine(description ?? "-"))],
        ]);
      }
      if (connections.length === 0) return;
      terminal.print("");
      printRows(terminal, connections, [
        ["SERVER", ({ server }) => server],
        ["YOUR ACCOUNT", stateText],
        ["LAST USED", ({ last_used_at: at }) => formatRelative(at, nowSeconds())],
      ]);
    };
    return { json: { tools, connections }, show };
  },
});

export const connectCommand = serverCommand({
  name: "connect",
  summary: "connect your own account at an MCP server, in a browser",
  description: `Connect your own account at an MCP server. Its tools then act with your rights, and only for you. ${peopleNeed}`,
  arguments: [["<server>", "name of the server, as headrace tools mine lists it"]],
  options: { json: ["--json", "print the connection as the API gives it"] },
  examples: ["headrace tools connect crm"],
  help: ["It opens a page of the dashboard and waits until you have connected the account there."],
  async run(call, server) {
    refuseSecret(server);
    const { terminal, context, connect } = call;
    const before = await findOwn(call, server);
    if (before.state === "connected") {
      const done = `Your account at ${printable(server)} is connected. For another one: headrace tools disconnect ${printable(server)}`;
      return { json: before, show: () => terminal.note(done) };
    }
    const page = `${(await connect()).baseUrl.replace(/\/v1$/, "")}/tools?account=${encodeURIComponent(server)}`;
    terminal.note(`Sign in on this page, and connect your account at ${printable(server)}:\n`);
    terminal.note(`    ${terminal.err.bold(page)}\n`);
    if (terminal.interactive) context.openPage(page);
    const connected = await untilConnected(call, server);
    return { json: connected, show: () => terminal.print(`Your account at ${printable(server)} is connected.`) };
  },
});

export const disconnectCommand = serverCommand({
  name: "disconnect",
  summary: "disconnect your own account from an MCP server",
  description: `Disconnect your own account from an MCP server. ${peopleNeed}`,
  arguments: [["<server>", "name of the server, as headrace tools mine lists it"]],
  options: { yes: ["-y, --yes", "do not ask"], json: ["--json", "print what the API gives"] },
  examples: ["headrace tools disconnect crm"],
  async run({ request, confirm, connect, terminal }, server) {
    refuseSecret(server);
    await confirm({
      question: `Disconnect your account at ${server}`,
      consequence: "You can connect it again.",
      canBeUndone: true,
    });
    const answer = await request(`${connectionsPath}/${encodeURIComponent(server)}`, { method: "DELETE" });
    const { revoked } = understood(z.object({ revoked: z.boolean() }), answer, await connect(), "ended connection");
    const there = revoked ? "" : " What was allowed there may go on to count: end it there as well.";
    return {
      json: answer,
      show: () => terminal.print(`Your account at ${printable(server)} is disconnected.${there}`),
    };
  },
});

function stateText({ state, broken_because: reason }: ToolConnectionWire): string {
  if (state === "unused") return "stored but not used; remove it with headrace tools disconnect";
  if (state === "none") return "not connected: headrace tools connect";
  return state === "broken" ? `broken: ${reason ?? "connect it again"}` : state;
}

/** Returns the person's connections to MCP servers; empty for a key, which belongs to no person. */
async function ownConnections(connection: Connection, signal: AbortSignal): Promise<ToolConnectionWire[]> {
  try {
    const found = await requestWholeList(connection, connectionsPath, "list of accounts", signal);
    return found.map((one) => understood(toolConnectionShape, one, connection, "list of accounts"));
  } catch (error) {
    if (error instanceof ApiError && error.status === 403) return [];
    throw error;
  }
}

async function findOwn({ ask }: ServerCall<unknown>, server: string): Promise<ToolConnectionWire> {
  const own = await ask(async (connection, signal) => {
    const found = await requestWholeList(connection, connectionsPath, "list of accounts", signal);
    return found.map((one) => understood(toolConnectionShape, one, connection, "list of accounts"));
  });
  const one = own.find((each) => each.server === server);
  if (one) return one;
  const others = own.length === 0 ? "There is none." : `Those are: ${own.map((each) => each.server).join(", ")}.`;
  throw new CliError(`${server} is no MCP server at which you have an account of your own. ${others}`);
}

/** Waits until the person has connected. Rejects with a CliError if that takes too long. */
async function untilConnected(call: ServerCall<unknown>, server: string): Promise<ToolConnectionWire> {
  const { context } = call;
  const end = context.nowMs() + connectingMs;
  while (context.nowMs() < end) {
    await call.ask((_, signal) => context.pause(pollMs, signal));
    const now = await findOwn(call, server);
    if (now.state === "connected") return now;
  }
  throw new CliError(
    `Your account at ${server} was not connected within 15 minutes. Try again: headrace tools connect ${server}`,
  );
}
