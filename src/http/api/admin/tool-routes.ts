// The operators' endpoints for MCP servers, the definitions of their tools, and approvals.
import { z } from "zod";
import { invalidRequest } from "../../../base/errors.ts";
import { definitionKinds, type ToolDefinition } from "../../../domain/tools/tool-definition.ts";
import { digestOf } from "../../../mcp/registry/definition-record.ts";
import type { Definitions } from "../../../mcp/registry/definitions.ts";
import type { ManagedServers } from "../../../mcp/registry/managed-servers.ts";
import type { ServerTests } from "../../../mcp/registry/server-tests.ts";
import {
  createMcpServerRequest,
  type DefinitionWire,
  decideDefinitionRequest,
  definitionShape,
  mcpServerShape,
  mcpServerTestRequest,
  mcpServerTestShape,
  updateMcpServerRequest,
} from "../../../wire/tools/mcp-servers.ts";
import type { ScopedRoute } from "../../exchange/route.ts";
import type { EndpointDeps } from "../endpoint.ts";
import { listOf, pageOf, pageQuery, wholeListOf } from "../list.ts";
import { adminEndpoints } from "./admin-endpoint.ts";

export interface AdminToolDeps extends EndpointDeps {
  mcpServers: Pick<ManagedServers, "list" | "get" | "known" | "add" | "change" | "remove">;
  mcpServerTests: Pick<ServerTests, "run">;
  toolDefinitions: Pick<Definitions, "page" | "decide">;
}

const nameParameter = [{ name: "name", in: "path", description: "Name of the server, such as `github`." }] as const;
const deletedMcpServer = z
  .object({ object: z.literal("tool_server"), name: z.string(), deleted: z.literal(true) })
  .meta({ id: "DeletedMcpServer" });
const definitionQuery = z.object({
  ...pageQuery,
  after: z
    .string()
    .min(1)
    .max(300)
    .optional()
    .meta({ description: "the id of the last definition of the previous page, to get the next page" }),
  search: z
    .string()
    .trim()
    .min(1)
    .max(100)
    .optional()
    .meta({ description: "1 to 100 characters: words in the name, title or description, in any case" }),
  waiting: z
    .stringbool({ truthy: ["true"], falsy: ["false"], case: "sensitive" })
    .default(false)
    .meta({ description: "`true`: only definitions that wait for an operator; `false`: all definitions" }),
});
const endpoint = adminEndpoints<AdminToolDeps>();

export function adminToolRoutes(deps: AdminToolDeps): ScopedRoute[] {
  return [
    ...[list(deps), create(deps), retrieve(deps), update(deps), remove(deps), test(deps)],
    ...[listDefinitions(deps), decide(deps)],
  ];
}

const list = endpoint("GET", "/v1/admin/tool-servers", {
  operationId: "listMcpServers",
  summary: "List the MCP servers",
  description: "Servers in headrace.yaml first, then those added by this API.",
  response: { description: "The servers.", json: wholeListOf(mcpServerShape, "McpServerList") },
  answer: async ({ deps: { mcpServers } }) => ({ object: "list" as const, data: await mcpServers.list() }),
});

const create = endpoint("POST", "/v1/admin/tool-servers", {
  operationId: "createMcpServer",
  summary: "Add an MCP server",
  description:
    "The server is available immediately. The gateway does not contact it before a client requests its tools. To test it, use POST /v1/admin/tool-server-tests.",
  requestBody: createMcpServerRequest,
  example: { name: "weather", url: "https://tools.example.com/mcp", headers: { authorization: "Bearer …" } },
  response: { description: "The server.", json: mcpServerShape },
  answer: ({ deps, principal, body, origin }) => deps.mcpServers.add(principal, body, origin),
});

const retrieve = endpoint("GET", "/v1/admin/tool-servers/:name", {
  operationId: "retrieveMcpServer",
  summary: "Retrieve one MCP server",
  parameters: nameParameter,
  response: { description: "The server.", json: mcpServerShape },
  answer: ({ deps: { mcpServers }, id }) => mcpServers.get(id),
});

const update = endpoint("PATCH", "/v1/admin/tool-servers/:name", {
  operationId: "updateMcpServer",
  summary: "Change an MCP server that was added by this API",
  description:
    "Connections to the server are reopened, and running calls fail. If `url` changes its scheme, host or port, send the headers and the client secret again. The connections of users' accounts then end.",
  parameters: nameParameter,
  requestBody: updateMcpServerRequest,
  example: { approval: "each" },
  response: { description: "The server.", json: mcpServerShape },
  answer: ({ deps, principal, id: name, body, origin }) => deps.mcpServers.change(principal, name, body, origin),
});

const remove = endpoint("DELETE", "/v1/admin/tool-servers/:name", {
  operationId: "deleteMcpServer",
  summary: "Delete an MCP server that was added by this API",
  description: "Running calls fail. Approvals and connections of users' accounts are deleted with the server.",
  parameters: nameParameter,
  response: { description: "The server is deleted.", json: deletedMcpServer },
  async answer({ deps, principal, id: name, origin }) {
    await deps.mcpServers.remove(principal, name, origin);
    return { object: "tool_server" as const, name, deleted: true as const };
  },
});

const test = endpoint("POST", "/v1/admin/tool-server-tests", {
  operationId: "testMcpServer",
  summary: "Test an MCP server, without a change",
  description:
    "Tests an existing server by `name`, or any server by `url` or `node`. A server with per-user accounts is tested with the account of the person who tests it. Faults of the server are in `error` of the answer, with status 200. The test takes at most 20 s.",
  requestBody: mcpServerTestRequest,
  example: { url: "https://tools.example.com/mcp" },
  response: { description: "Result of the test.", json: mcpServerTestShape },
  errors: ["not_found"],
  answer: ({ deps, principal, body }) => deps.mcpServerTests.run(principal, body),
});

const listDefinitions = endpoint("GET", "/v1/admin/tool-servers/:name/definitions", {
  operationId: "listToolDefinitions",
  summary: "List the tool and prompt definitions of a server",
  description:
    "Returns the last definitions seen and the approved ones, sorted by kind and name. Definitions that are neither approved nor refused wait, and are not offered.",
  parameters: nameParameter,
  query: definitionQuery,
  response: { description: "One page of definitions.", json: listOf(definitionShape, "ToolDefinitionList") },
  errors: ["not_found"],
  async answer({ deps: { mcpServers, toolDefinitions }, id: name, query }) {
    mcpServers.known(name);
    const { limit, search = "", waiting } = query;
    const page = { after: cursorOf(query.after), limit: limit + 1, search, isWaiting: waiting };
    return pageOf((await toolDefinitions.page(name, page)).map(definitionToWire), limit);
  },
});

const decide = endpoint("POST", "/v1/admin/tool-servers/:name/definitions", {
  operationId: "decideToolDefinition",
  summary: "Approve or refuse the definition of a tool or prompt",
  description:
    "`digest` identifies the definition that you reviewed. If the definition has changed since, nothing is decided. A server with per-user accounts may describe a tool differently to each person. Refusing a waiting version keeps the approved versions, and the definition returns to those. Refusing an approved version withdraws all approved versions.",
  parameters: nameParameter,
  requestBody: decideDefinitionRequest,
  example: { name: "search_issues", digest: "0".repeat(64), decision: "approved" },
  response: { description: "The definition.", json: definitionShape },
  errors: ["not_found", "invalid_request"],
  async answer({ deps: { mcpServers, toolDefinitions }, principal, id, body, origin }) {
    const server = mcpServers.known(id);
    const { kind = "tool", name, digest, decision: state } = body;
    return definitionToWire(await toolDefinitions.decide(principal, { server, kind, name, digest, state }, origin));
  },
});

function idOf({ kind, name }: Pick<ToolDefinition, "kind" | "name">): string {
  return `${kind}/${name}`;
}

/** Parses the paging cursor, which is the `kind/name` of a definition. Throws `invalid_request` for any other text. */
function cursorOf(after: string | undefined): Pick<ToolDefinition, "kind" | "name"> | undefined {
  if (after === undefined) return undefined;
  const slash = after.indexOf("/");
  const kind = definitionKinds.find((one) => one === after.slice(0, slash));
  if (kind) return { kind, name: after.slice(slash + 1) };
  throw invalidRequest("after: must be the id of a definition of this list, such as the last one shown.");
}

function definitionToWire(one: ToolDefinition): DefinitionWire {
  const parsed = (text: string) => JSON.parse(text) as Record<string, unknown>;
  return {
    ...{
      object: "tool_definition",
      id: idOf(one),
      server: one.server,
      kind: one.kind,
      name: one.name,
      state: one.state,
    },
    digest: digestOf(one.seen),
    definition: parsed(one.seen),
    approved: one.approved === null ? null : parsed(one.approved),
    approved_others: one.approvedOthers.length,
    ...{ seen_at: one.seenAt, decided_at: one.decidedAt, decided_by: one.decidedBy },
  };
}
