// The operators' endpoints for MCP servers: which there are, what they say of their tools, and what of it is approved.
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
    .meta({ description: "the id of the last definition of the page before, to get the next page" }),
  search: z
    .string()
    .trim()
    .min(1)
    .max(100)
    .optional()
    .meta({ description: "1 to 100 characters: words that are in its name, title or description, in whatever case" }),
  waiting: z
    .stringbool({ truthy: ["true"], falsy: ["false"], case: "sensitive" })
    .default(false)
    .meta({ description: "`true`: only those that wait for an operator; `false` otherwise" }),
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
  description: "Those of headrace.yaml, then those added here.",
  response: { description: "The servers.", json: wholeListOf(mcpServerShape, "McpServerList") },
  answer: async ({ deps: { mcpServers } }) => ({ object: "list" as const, data: await mcpServers.list() }),
});

const create = endpoint("POST", "/v1/admin/tool-servers", {
  operationId: "createMcpServer",
  summary: "Add an MCP server",
  description:
    "It holds from the answer on; nothing is asked of it before a client wants its tools. POST /v1/admin/tool-server-tests asks it.",
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
  summary: "Change an MCP server that was added here",
  description:
    "Connections to it begin anew, and calls that are under way there fail. Where `url` moves to another scheme, host or port, its headers and the secret of its client have to be given again, and the accounts that people connected there end.",
  parameters: nameParameter,
  requestBody: updateMcpServerRequest,
  example: { approval: "each" },
  response: { description: "The server.", json: mcpServerShape },
  answer: ({ deps, principal, id: name, body, origin }) => deps.mcpServers.change(principal, name, body, origin),
});

const remove = endpoint("DELETE", "/v1/admin/tool-servers/:name", {
  operationId: "deleteMcpServer",
  summary: "Delete an MCP server that was added here",
  description:
    "Calls that are under way there fail. What was approved of it, and the accounts that people connected there, go with it.",
  parameters: nameParameter,
  response: { description: "It is deleted.", json: deletedMcpServer },
  async answer({ deps, principal, id: name, origin }) {
    await deps.mcpServers.remove(principal, name, origin);
    return { object: "tool_server" as const, name, deleted: true as const };
  },
});

const test = endpoint("POST", "/v1/admin/tool-server-tests", {
  operationId: "testMcpServer",
  summary: "Ask an MCP server what it has, without a change",
  description:
    "Either a server that there is, by `name`, or any by `url` or `node`. One that is asked as each person is asked as the person who tests it. What goes wrong there is in `error` of the answer, which is a 200. It takes 20 s at most.",
  requestBody: mcpServerTestRequest,
  example: { url: "https://tools.example.com/mcp" },
  response: { description: "What came of it.", json: mcpServerTestShape },
  errors: ["not_found"],
  answer: ({ deps, principal, body }) => deps.mcpServerTests.run(principal, body),
});

const listDefinitions = endpoint("GET", "/v1/admin/tool-servers/:name/definitions", {
  operationId: "listToolDefinitions",
  summary: "List what a server says of its tools and prompts",
  description:
    "As it was seen last, beside what was approved; by kind and name. What is neither approved nor refused waits, and is not offered.",
  parameters: nameParameter,
  query: definitionQuery,
  response: { description: "One page of them.", json: listOf(definitionShape, "ToolDefinitionList") },
  errors: ["not_found"],
  async answer({ deps: { mcpServers, toolDefinitions }, id: name, query }) {
    mcpServers.known(name);
    const { limit, search = "", waiting } = query;
    const page = { after: placeOf(query.after), limit: limit + 1, search, isWaiting: waiting };
    return pageOf((await toolDefinitions.page(name, page)).map(definitionToWire), limit);
  },
});

const decide = endpoint("POST", "/v1/admin/tool-servers/:name/definitions", {
  operationId: "decideToolDefinition",
  summary: "Approve or refuse what a server says of a tool or prompt",
  description:
    "`digest` is of what was looked at: where the server says something else by now, nothing is decided. A server that is asked as each person may say something else to each: to refuse what waits leaves what is approved, and the definition is that again; to refuse what is approved takes back all of it.",
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

/** Throws `invalid_request`. */
function placeOf(after: string | undefined): Pick<ToolDefinition, "kind" | "name"> | undefined {
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
