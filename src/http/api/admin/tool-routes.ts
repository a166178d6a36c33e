// The operators' endpoints for servers of tools: which there are, what they say of their tools, and what of it is approved.
import { GatewayError } from "../../../base/errors.ts";
import { usdOf } from "../../../base/money.ts";
import type { ToolDefinition } from "../../../domain/tools/tool-definition.ts";
import type { ToolCredentials, ToolServer, ToolServers } from "../../../domain/tools/tool-server.ts";
import { type Definitions, digestOf } from "../../../mcp/servers/definitions.ts";
import {
  type DefinitionWire,
  decideDefinitionRequest,
  definitionShape,
  type ToolServerWire,
  toolServerShape,
} from "../../../wire/tools/tool-servers.ts";
import type { ScopedRoute } from "../../exchange/route.ts";
import type { EndpointDeps } from "../endpoint.ts";
import { wholeListOf } from "../list.ts";
import { adminEndpoints } from "./admin-endpoint.ts";

export interface AdminToolDeps extends EndpointDeps {
  toolServers: Pick<ToolServers, "all" | "find">;
  toolDefinitions: Pick<Definitions, "list" | "decide">;
}

const nameParameter = [{ name: "name", in: "path", description: "Name of the server, such as `github`." }] as const;
const endpoint = adminEndpoints<AdminToolDeps>();

export function adminToolRoutes(deps: AdminToolDeps): ScopedRoute[] {
  return [list(deps), listDefinitions(deps), decide(deps)];
}

const list = endpoint("GET", "/v1/admin/tool-servers", {
  operationId: "listToolServers",
  summary: "List the servers of tools",
  response: { description: "The servers.", json: wholeListOf(toolServerShape, "ToolServerList") },
  async answer({ deps: { toolServers, toolDefinitions } }) {
    const data = toolServers.all().map(async (server) => toWire(server, await toolDefinitions.list(server.name)));
    return { object: "list" as const, data: await Promise.all(data) };
  },
});

const listDefinitions = endpoint("GET", "/v1/admin/tool-servers/:name/definitions", {
  operationId: "listToolDefinitions",
  summary: "List what a server says of its tools and prompts",
  description:
    "As it was seen last, beside what was approved. What is neither approved nor refused waits, and is not offered.",
  parameters: nameParameter,
  response: { description: "The definitions.", json: wholeListOf(definitionShape, "ToolDefinitionList") },
  errors: ["not_found"],
  async answer({ deps, id: name }) {
    requireServer(deps, name);
    return { object: "list" as const, data: (await deps.toolDefinitions.list(name)).map(definitionToWire) };
  },
});

const decide = endpoint("POST", "/v1/admin/tool-servers/:name/definitions", {
  operationId: "decideToolDefinition",
  summary: "Approve or refuse what a server says of a tool or prompt",
  description: "`digest` is of what was looked at: where the server says something else by now, nothing is decided.",
  parameters: nameParameter,
  requestBody: decideDefinitionRequest,
  example: { name: "search_issues", digest: "0".repeat(64), decision: "approved" },
  response: { description: "The definition.", json: definitionShape },
  errors: ["not_found", "invalid_request"],
  async answer({ deps, principal, id: server, body, origin }) {
    requireServer(deps, server);
    const { kind = "tool", name, digest, decision: state } = body;
    return definitionToWire(
      await deps.toolDefinitions.decide(principal, { server, kind, name, digest, state }, origin),
    );
  },
});

function requireServer({ toolServers }: AdminToolDeps, name: string): void {
  if (!toolServers.find(name)) throw new GatewayError("not_found", "There is no server of tools by this name.");
}

function toWire(server: ToolServer, definitions: readonly ToolDefinition[]): ToolServerWire {
  const {
    name,
    title,
    description,
    place,
    credentials,
    approval,
    sharing,
    enabled,
    maxConcurrency,
    nanoUsdPerCall: nanoUsd,
  } = server;
  return {
    ...{ object: "tool_server", name, title, description, approval, sharing, enabled },
    ...{ source: server.isDeclared ? "file" : "database", overrides_database: false, created_at: null },
    ...{ place: place.kind, url: place.kind === "http" ? place.url : null, credentials: credentials.kind },
    node: place.kind === "node" ? { node: place.nodeId, server: place.server } : null,
    header_names: credentials.kind === "headers" ? Object.keys(credentials.headers) : [],
    oauth: credentials.kind === "person" ? oauthOf(credentials) : null,
    local: server.local,
    environments: server.environments && [...server.environments],
    accounts: server.accounts && [...server.accounts],
    tools: server.tools && [...server.tools],
    timeout_seconds: server.timeoutMs / 1_000,
    max_result_bytes: server.maxResultBytes,
    max_concurrency: maxConcurrency,
    price_per_call: nanoUsd === null ? null : usdOf(nanoUsd),
    waiting: definitions.filter(({ state }) => state === "pending" || state === "changed").length,
  };
}

function oauthOf({ clientId, clientSecret, scopes }: ToolCredentials & { kind: "person" }): ToolServerWire["oauth"] {
  return { client_id: clientId, has_client_secret: clientSecret !== null, scopes: scopes && [...scopes] };
}

function definitionToWire(one: ToolDefinition): DefinitionWire {
  const parsed = (text: string) => JSON.parse(text) as Record<string, unknown>;
  return {
    ...{ object: "tool_definition", server: one.server, kind: one.kind, name: one.name, state: one.state },
    digest: digestOf(one.seen),
    definition: parsed(one.seen),
    approved: one.approved === null ? null : parsed(one.approved),
    ...{ seen_at: one.seenAt, decided_at: one.decidedAt, decided_by: one.decidedBy },
  };
}
