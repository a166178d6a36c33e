// Validates the values of an MCP server in an operator's request, and converts them to the stored form.
import { fieldError, invalidRequest } from "../../base/errors.ts";
import { nanoOfUsd } from "../../base/money.ts";
import { parseHttpUrl } from "../../base/text/http-url.ts";
import { inUsualOrder } from "../../domain/api-key.ts";
import type { McpServer, ServerLocation, ToolCredentials } from "../../domain/tools/mcp-server.ts";
import { mcpServerDefaults } from "../../domain/tools/mcp-server-store.ts";
import {
  isToolIssuer,
  type TextRule,
  mcpServerTexts as texts,
  toolCredentialsFault,
  toolIssuerRule,
} from "../../domain/tools/server-rules.ts";
import type { CreateMcpServerRequest, UpdateMcpServerRequest } from "../../wire/tools/mcp-servers.ts";

/** Finds a node by id or name; undefined if no node matches. */
export type FindNode = (idOrName: string) => Promise<{ readonly id: string } | undefined>;

const maxHeaders = 64;
/** Characters that cannot be stored (U+0000) or are invisible. */
const unseen = /[\p{Cc}\p{Cs}]/u;

export function newServer(request: CreateMcpServerRequest, place: ServerLocation): McpServer {
  const { name } = request;
  requireText("name", name, texts.name);
  const blank: McpServer = {
    ...{ name, title: null, description: null, place, credentials: { kind: "none" } },
    ...{ environments: null, accounts: null, tools: null, approval: "first", sharing: "person" },
    ...mcpServerDefaults,
    ...{ nanoUsdPerCall: null, local: false, enabled: true, isDeclared: false },
  };
  return changedServer(blank, request, place);
}

/** Returns the server with the changes. Members that the request does not contain stay. Throws `invalid_request`. */
export function changedServer(current: McpServer, request: UpdateMcpServerRequest, place: ServerLocation): McpServer {
  const { title, description, environments, accounts, tools, price_per_call: price } = request;
  for (const [name, text] of Object.entries({ title, description })) {
    if (text && unseen.test(text)) throw fieldError(name, "must be a text of one line. Leave out what cannot be seen.");
  }
  for (const [index, id] of (accounts ?? []).entries()) requireText(`accounts[${index}]`, id, texts.account);
  for (const [index, tool] of (tools ?? []).entries()) requireText(`tools[${index}]`, tool, texts.tool);
  return {
    ...current,
    place,
    title: title === undefined ? current.title : title,
    description: description === undefined ? current.description : description,
    credentials: changedCredentials(current, request, place),
    // If the address changes, the server no longer counts as local.
    local: request.local ?? (originOf(place) === originOf(current.place) && current.local),
    environments: environments === undefined ? current.environments : environments && inUsualOrder(environments),
    accounts: accounts === undefined ? current.accounts : accounts,
    tools: tools === undefined ? current.tools : tools,
    approval: request.approval ?? current.approval,
    sharing: request.sharing ?? current.sharing,
    protocolVersion:
      request.protocol_version === undefined ? (current.protocolVersion ?? null) : request.protocol_version,
    timeoutMs: request.timeout_seconds === undefined ? current.timeoutMs : request.timeout_seconds * 1_000,
    maxResultBytes: request.max_result_bytes ?? current.maxResultBytes,
    maxConcurrency: request.max_concurrency ?? current.maxConcurrency,
    nanoUsdPerCall: price === undefined ? current.nanoUsdPerCall : price === null ? null : nanoOfUsd(price),
    enabled: request.enabled ?? current.enabled,
  };
}

/**
 * Returns where the server is: an HTTP address, a command or a node; undefined if the request does not say. Rejects
 * with `invalid_request`.
 */
export async function locationOf(
  { url, node }: Pick<UpdateMcpServerRequest, "url" | "node">,
  findNode: FindNode,
): Promise<ServerLocation | undefined> {
  if (url !== undefined && node !== undefined)
    throw fieldError("node", "cannot be set together with url. Keep one of them.");
  if (url !== undefined) return { kind: "http", url: serverUrl(url) };
  if (node === undefined) return undefined;
  requireText("node.server", node.server, texts.name);
  const found = unseen.test(node.node) ? undefined : await findNode(node.node);
  if (found) return { kind: "node", nodeId: found.id, server: node.server };
  throw fieldError("node.node", "there is no such node. GET /v1/admin/nodes lists the nodes.");
}

function serverUrl(text: string): string {
  // Do not show the refused URL, because it may contain a password.
  if (parseHttpUrl(text)) return text;
  throw fieldError(
    "url",
    text.includes("@") || text.includes("?")
      ? "must have no user, password, query or fragment; a credential goes into headers."
      : "must begin with http:// or https://, such as https://tools.example.com/mcp.",
  );
}

/** Returns the origin of a server. Credentials are sent only to the origin for which they were configured. */
export function originOf(place: ServerLocation): string {
  if (place.kind === "http") return new URL(place.url).origin;
  return place.kind === "node" ? `node ${place.nodeId}` : place.kind;
}

function changedCredentials(
  current: McpServer,
  request: UpdateMcpServerRequest,
  place: ServerLocation,
): ToolCredentials {
  const { headers, oauth } = request;
  const url = place.kind === "http" ? place.url : undefined;
  const fault = toolCredentialsFault({ url, headers, oauth: oauth && withClient(current.credentials, oauth) });
  if (fault) throw fieldError(fault.at, `${fault.message}. ${fault.fix}`);
  const isSameServer = originOf(place) === originOf(current.place);
  if (headers) return headersOf(headers);
  if (oauth) return personOf(current.credentials, oauth, isSameServer);
  const { credentials } = current;
  const isTaken = credentials.kind === "headers" ? headers === null : credentials.kind === "person" && oauth === null;
  if (isTaken || credentials.kind === "none") return { kind: "none" };
  const member = credentials.kind === "headers" ? "headers" : "oauth";
  if (url === undefined) throw fieldError(member, "is for servers with a url. Give null for none.");
  if (isSameServer || (credentials.kind === "person" && credentials.clientSecret === null)) return credentials;
  throw fieldError(member === "headers" ? member : "oauth.client_secret", secretMoves);
}

const secretMoves =
  "is required where url, or issuer, becomes that of another server, as what is stored is sent to no other; null for none.";

type OAuth = NonNullable<UpdateMcpServerRequest["oauth"]>;

function withClient(current: ToolCredentials, { client_id: id, client_secret: secret }: OAuth): OAuth {
  return { client_id: id === undefined && current.kind === "person" ? current.clientId : id, client_secret: secret };
}

const noPerson = { issuer: null, clientId: null, clientSecret: null, scopes: null } as const;

function personOf(before: ToolCredentials, given: OAuth, isSameServer: boolean): ToolCredentials {
  const current = before.kind === "person" ? before : noPerson;
  const {
    issuer = current.issuer,
    client_id: clientId = current.clientId,
    client_secret: secret,
    scopes = current.scopes,
  } = given;
  if (given.issuer && !isToolIssuer(given.issuer)) throw fieldError("oauth.issuer", textFault(toolIssuerRule));
  if (clientId) requireText("oauth.client_id", clientId, texts.clientId);
  if (secret) requireText("oauth.client_secret", secret, texts.clientSecret);
  for (const [index, scope] of (scopes ?? []).entries()) requireText(`oauth.scopes[${index}]`, scope, texts.scope);
  const isSameClient = clientId === current.clientId;
  const isSameLocation = isSameServer && issuer === current.issuer;
  if (secret === undefined && isSameClient && !isSameLocation && current.clientSecret !== null) {
    throw fieldError("oauth.client_secret", secretMoves);
  }
  const kept = isSameClient && isSameLocation ? current.clientSecret : null;
  return { kind: "person", issuer, clientId, clientSecret: secret === undefined ? kept : secret, scopes };
}

/** Checks header names and values. Throws `invalid_request`; the message contains no values. */
function headersOf(headers: Readonly<Record<string, string>>): ToolCredentials {
  const entries = Object.entries(headers);
  if (entries.length === 0) return { kind: "none" };
  if (entries.length > maxHeaders) throw fieldError("headers", `must be ${maxHeaders} headers at most.`);
  for (const [name, value] of entries) {
    if (!texts.headerName.pattern.test(name) || name.length > 128) {
      throw invalidRequest(`headers: each name must be ${texts.headerName.must}. ${texts.headerName.fix}`);
    }
    requireText(`headers.${name}`, value, texts.header);
  }
  const names = new Set(entries.map(([name]) => name.toLowerCase()));
  if (names.size === entries.length) return { kind: "headers", headers };
  throw fieldError("headers", "must have each name once, in whatever case. Leave one of them out.");
}

/** Throws unless the text matches the rule's pattern. Its length was checked before. */
function requireText(member: string, text: string, rule: TextRule): void {
  if (!rule.pattern.test(text)) throw fieldError(member, textFault(rule));
}

function textFault({ must, fix }: Pick<TextRule, "must" | "fix">): string {
  return `must be ${must}. ${fix}`;
}
