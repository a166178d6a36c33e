// `headrace tools`: MCP servers as operators manage them. People's connections are in own-tools.ts.
import { command, printRows } from "../command.ts";
import { refuseSecret } from "../keys/key-records.ts";
import { requestJson, requestWholeList } from "../login/api-request.ts";
import { serverCommand } from "../login/server-command.ts";
import { operatorNeeds } from "../models/model-records.ts";
import { formatRelative } from "../terminal/figures.ts";
import { approveCommand, changesCommand, readDefinitions, refuseCommand } from "./decisions.ts";
import { unhidden } from "./definition-text.ts";
import { connectCommand, disconnectCommand, mineCommand } from "./own-tools.ts";
import { addCommand, removeCommand, setCommand } from "./server-changes.ts";
import {
  credentialsText,
  placeText,
  printServer,
  serverArgument,
  serverPath,
  serversPath,
  stateText,
  understoodServer,
} from "./server-records.ts";
import { testCommand } from "./server-test.ts";

const listCommand = serverCommand({
  name: "list",
  isDefault: true,
  summary: "list the MCP servers (the default)",
  description: `List the MCP servers. ${operatorNeeds}`,
  options: { json: ["--json", "print all of them as the API gives them"] },
  examples: ["headrace tools", "headrace tools list --json"],
  help: ["headrace tools mine lists the tools that you may use yourself."],
  async run({ ask, connect, terminal }) {
    const connection = await connect();
    const raw = await ask((_, signal) => requestWholeList(connection, serversPath, "list of MCP servers", signal));
    const show = () => {
      const servers = raw.map((one) => understoodServer(one, connection));
      if (servers.length === 0) {
        return terminal.note("There is no MCP server yet. Add one with: headrace tools add <name> --url <url>");
      }
      printRows(terminal, servers, [
        ["NAME", ({ name }) => name],
        ["PLACE", placeText],
        ["CREDENTIALS", credentialsText],
        ["APPROVAL", ({ approval }) => approval],
        ["WAITING", ({ waiting }) => (waiting === 0 ? "-" : String(waiting))],
        ["STATE", stateText],
        ["FROM", ({ source }) => (source === "file" ? "headrace.yaml" : "added")],
      ]);
    };
    return { json: raw, show };
  },
});

const showCommand = serverCommand({
  name: "show",
  summary: "show one MCP server and its tools",
  description: `Show one MCP server without its secrets, and the tools that it listed last. ${operatorNeeds}`,
  arguments: [serverArgument],
  options: { json: ["--json", "print the server as the API gives it, with its definitions"] },
  examples: ["headrace tools show weather"],
  async run({ ask, connect, terminal, nowSeconds }, name) {
    refuseSecret(name);
    const [server, { raw, definitions }] = await ask((connection, signal) =>
      Promise.all([
        requestJson(connection, serverPath(name), signal),
        readDefinitions(connection, name, "all", signal),
      ]),
    );
    const connection = await connect();
    const show = () => {
      printServer(terminal, understoodServer(server, connection));
      if (definitions.length === 0) {
        return terminal.note("\nIts tools appear once a client has listed them, for example with headrace tools mine.");
      }
      terminal.print("");
      const now = nowSeconds();
      printRows(terminal, definitions, [
        ["NAME", (one) => unhidden(one.name)],
        ["KIND", ({ kind }) => kind],
        ["STATE", ({ state }) => (state === "pending" ? "new" : state)],
        ["SEEN", ({ seen_at: at }) => formatRelative(at, now)],
        ["DECIDED", ({ decided_at: at }) => formatRelative(at, now)],
        ["BY", ({ decided_by: who }) => who ?? "-"],
      ]);
    };
    return { json: { ...(server as object), definitions: raw }, show };
  },
});

export const toolsCommand = command({
  name: "tools",
  summary: "manage MCP servers, approve their tools, connect accounts",
  description: "Manage the MCP servers of a running Headrace, and list the tools that you may use.",
  examples: [
    "headrace tools                               the servers, for operators",
    "headrace tools mine                          the tools that you may use",
    "headrace tools test --url https://tools.example.com/mcp",
    "headrace tools add weather --url https://tools.example.com/mcp",
    "headrace tools changes                       what waits for approval",
    "headrace tools approve weather forecast",
    "headrace tools connect crm                   your own account there",
  ],
  help: [
    "To limit the tools of a key: headrace keys update KEY --tools.\nTo limit the tools of a member: headrace members tools.",
  ],
  commands: [
    ...[listCommand, showCommand, testCommand, addCommand, setCommand, removeCommand],
    ...[changesCommand, approveCommand, refuseCommand],
    ...[mineCommand, connectCommand, disconnectCommand],
  ],
});
