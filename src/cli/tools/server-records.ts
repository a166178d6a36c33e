// Reads and prints MCP servers as operators see them.
import { type McpServerWire, mcpServerShape } from "../../wire/tools/mcp-servers.ts";
import { understood } from "../login/api-request.ts";
import type { Connection } from "../login/connection.ts";
import { formatCount, formatTime, formatUsd } from "../terminal/figures.ts";
import { formatFacts, printable, type Terminal } from "../terminal/terminal.ts";

export const serversPath = "/admin/tool-servers";
export const serverArgument = ["<name>", "name of the server, as headrace tools lists it"] as const;

export function serverPath(name: string): string {
  return `${serversPath}/${encodeURIComponent(name)}`;
}

export function understoodServer(answer: unknown, connection: Connection): McpServerWire {
  return understood(mcpServerShape, answer, connection, "MCP server");
}

export function placeText({ place, url, node }: McpServerWire): string {
  if (node) return `${node.server} at node ${node.node}`;
  return url ?? (place === "command" ? "a process of the server's machine" : "-");
}

const credentialNames: Record<McpServerWire["credentials"], string> = {
  none: "none",
  headers: "headers",
  person: "each person's own",
};
export function stateText({ enabled, credentials_unreadable: isUnreadable }: McpServerWire): string {
  if (!enabled) return "disabled";
  return isUnreadable ? "without its credentials" : "enabled";
}

export const credentialsText = ({ credentials }: McpServerWire) => credentialNames[credentials];

const approvalMeanings: Record<McpServerWire["approval"], string> = {
  first: "first: what changes or comes later waits for an operator",
  each: "each: nothing is offered that no operator has approved",
  all: "all: whatever it says is offered",
};

export function printServer(terminal: Terminal, server: McpServerWire): void {
  const { name, title, description, waiting, tools, environments, accounts } = server;
  const { timeout_seconds: seconds, max_result_bytes: bytes, max_concurrency: calls, price_per_call: price } = server;
  terminal.print(`${terminal.out.bold(printable(name))}${title === null ? "" : `  ${printable(title)}`}\n`);
  const facts: [string, string][] = [
    ...(description === null ? [] : [["For", description] as [string, string]]),
    ["State", stateText(server)],
    ["Place", placeText(server)],
    ...credentialFacts(server),
    ["Local", server.local ? "yes: keys that never leave may use it" : "no"],
    ["Approval", approvalMeanings[server.approval]],
    ["Waiting", waiting === 0 ? "nothing" : `${waiting}: headrace tools changes ${name}`],
    ["Connections", server.sharing === "all" ? "shared by all" : "one for each person"],
    ["Revision", server.protocol_version ?? "the newest that it knows"],
    ["Offers", tools?.join(", ") ?? "all of its tools"],
    ["Environments", environments?.join(", ") ?? "all"],
    ["Accounts", accounts?.join(", ") ?? "all"],
    ["One call", `${seconds} s, ${formatCount(bytes)} bytes of result, ${price === null ? "free" : formatUsd(price)}`],
    ["At a time", `${formatCount(calls)} calls`],
    ["Comes from", sourceText(server)],
  ];
  terminal.print(formatFacts(facts, terminal.out));
}

function credentialFacts(server: McpServerWire): [string, string][] {
  const { header_names: headers, oauth } = server;
  if (server.credentials_unreadable) {
    return [["Credentials", "sealed with a secret that is not here any more: give --header or --oauth again"]];
  }
  if (oauth === null) {
    const names = headers.length === 0 ? "" : `: ${headers.join(", ")}`;
    return [["Credentials", `${credentialsText(server)}${names}`]];
  }
  const secret = oauth.has_client_secret ? "with a secret" : "without a secret";
  return [
    ["Credentials", "each person's own account there, by OAuth"],
    ["Authorization server", oauth.issuer ?? "the one that it names"],
    ["Client", oauth.client_id === null ? "made by this server" : `${oauth.client_id}, ${secret}`],
    ["Scopes", oauth.scopes?.join(" ") ?? "those that it asks for"],
  ];
}

function sourceText({ source, overrides_database: hidesOne, created_at: at }: McpServerWire): string {
  if (source === "database") return `added at the server, ${formatTime(at)}`;
  const hidden = hidesOne ? "; one that was added at the server does not count beside it" : "";
  return `headrace.yaml, where alone it can be changed${hidden}`;
}
