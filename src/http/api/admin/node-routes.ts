// The operators' endpoints for nodes, and for the tokens with which machines join.
import { z } from "zod";
import type { Principal } from "../../../domain/principal.ts";
import type { Nodes } from "../../../nodes/manage-nodes.ts";
import {
  createdJoinTokenShape,
  createJoinTokenRequest,
  joinTokenShape,
  nodeShape,
  updateNodeRequest,
} from "../../../wire/nodes.ts";
import { readStrictBody } from "../../decode/strict-body.ts";
import type { Exchange, ScopedRoute } from "../../exchange/route.ts";
import { bodyErrors, noStore, originOf } from "../changes.ts";
import { type AdminBaseDeps, type AdminDoc, adminRouter } from "./admin-route.ts";

export interface AdminNodeDeps extends AdminBaseDeps {
  nodes: Pick<Nodes, "list" | "get" | "change" | "remove" | "createToken" | "listTokens" | "removeToken">;
}

const nodeParameter = [{ name: "id", in: "path", description: "Id of the node, `node_…`." }] as const;
const tokenParameter = [{ name: "id", in: "path", description: "Id of the join token, `njt_…`." }] as const;
const nodeList = z.object({ object: z.literal("list"), data: z.array(nodeShape) }).meta({ id: "NodeList" });
const tokenList = z
  .object({ object: z.literal("list"), data: z.array(joinTokenShape) })
  .meta({ id: "NodeJoinTokenList" });
const deletedNode = z
  .object({ object: z.literal("node"), id: z.string(), deleted: z.literal(true) })
  .meta({ id: "DeletedNode" });
const deletedToken = z
  .object({ object: z.literal("node_join_token"), id: z.string(), deleted: z.literal(true) })
  .meta({ id: "DeletedNodeJoinToken" });

export function adminNodeRoutes(deps: AdminNodeDeps): ScopedRoute[] {
  const route = adminRouter(deps);
  return [
    route("GET", "/v1/admin/nodes", listDoc, list),
    route("GET", "/v1/admin/nodes/:id", retrieveDoc, retrieve),
    route("PATCH", "/v1/admin/nodes/:id", updateDoc, update),
    route("DELETE", "/v1/admin/nodes/:id", deleteDoc, remove),
    route("POST", "/v1/admin/node-tokens", createTokenDoc, createToken),
    route("GET", "/v1/admin/node-tokens", listTokensDoc, listTokens),
    route("DELETE", "/v1/admin/node-tokens/:id", deleteTokenDoc, removeToken),
  ];
}

const listDoc: AdminDoc = {
  operationId: "listNodes",
  summary: "List the nodes, with what they announce and how they do",
  description: "By name. `running`, `waiting` and `concurrency` are of the process that answers.",
  response: { description: "The nodes.", json: nodeList },
};

function list(_exchange: Exchange, _principal: Principal, { nodes }: AdminNodeDeps): Response {
  return Response.json({ object: "list", data: nodes.list() } satisfies z.infer<typeof nodeList>);
}

const retrieveDoc: AdminDoc = {
  operationId: "retrieveNode",
  summary: "Retrieve one node",
  parameters: nodeParameter,
  response: { description: "The node.", json: nodeShape },
  errors: ["not_found"],
};

function retrieve(exchange: Exchange, _principal: Principal, { nodes }: AdminNodeDeps): Response {
  return Response.json(nodes.get(exchange.params["id"] ?? ""));
}

const updateDoc: AdminDoc = {
  operationId: "updateNode",
  summary: "Approve models of a node, drain it, rename it, or bound what it gets",
  description:
    "Models that it announces and that are approved are on offer from the answer on, under the ids that the node has for them. While it is draining, it finishes what it has and gets nothing new.",
  parameters: nodeParameter,
  requestBody: updateNodeRequest,
  example: { approved_models: ["qwen3-8b"], environments: ["live", "dev"] },
  response: { description: "The node.", json: nodeShape },
  errors: [...bodyErrors, "not_found", "service_unavailable"],
};

async function update(exchange: Exchange, principal: Principal, deps: AdminNodeDeps): Promise<Response> {
  const request = await readStrictBody(updateNodeRequest, exchange.req, deps.requestLimits());
  const id = exchange.params["id"] ?? "";
  return Response.json(await deps.nodes.change(principal, id, request, originOf(exchange, deps)));
}

const deleteDoc: AdminDoc = {
  operationId: "deleteNode",
  summary: "Remove a node",
  description:
    "Its connection is cut, and its requests end with an error. It can only come back with a new join token. Drain it first to let requests end.",
  parameters: nodeParameter,
  response: { description: "It is removed.", json: deletedNode },
  errors: ["not_found", "service_unavailable"],
};

async function remove(exchange: Exchange, principal: Principal, deps: AdminNodeDeps): Promise<Response> {
  const id = exchange.params["id"] ?? "";
  await deps.nodes.remove(principal, id, originOf(exchange, deps));
  return Response.json({ object: "node", id, deleted: true } satisfies z.infer<typeof deletedNode>);
}

const createTokenDoc: AdminDoc = {
  operationId: "createNodeJoinToken",
  summary: "Make a token with which one machine joins as a node",
  description:
    "It works once, for an hour unless it says otherwise. On the machine: `headrace node join <this gateway's address> --token <token>`. What the node serves has to be approved, here with `approved_models` or later.",
  requestBody: createJoinTokenRequest,
  example: { approved_models: ["qwen3-8b"], expires_in: 3600 },
  response: { description: "The token, shown in this answer alone.", json: createdJoinTokenShape },
  errors: [...bodyErrors, "service_unavailable"],
};

async function createToken(exchange: Exchange, principal: Principal, deps: AdminNodeDeps): Promise<Response> {
  const request = await readStrictBody(createJoinTokenRequest, exchange.req, deps.requestLimits());
  const token = await deps.nodes.createToken(principal, request, originOf(exchange, deps));
  return Response.json(token, { headers: noStore });
}

const listTokensDoc: AdminDoc = {
  operationId: "listNodeJoinTokens",
  summary: "List the join tokens, newest first",
  description: "Those that let nobody in any more are listed for a week.",
  response: { description: "The tokens, without what they are.", json: tokenList },
  errors: ["service_unavailable"],
};

async function listTokens(_exchange: Exchange, _principal: Principal, deps: AdminNodeDeps): Promise<Response> {
  const data = await deps.nodes.listTokens(deps.clock.nowSeconds());
  return Response.json({ object: "list", data } satisfies z.infer<typeof tokenList>);
}

const deleteTokenDoc: AdminDoc = {
  operationId: "deleteNodeJoinToken",
  summary: "Delete a join token",
  description: "It lets nobody in any more. A node that joined with it stays.",
  parameters: tokenParameter,
  response: { description: "It is deleted.", json: deletedToken },
  errors: ["not_found", "service_unavailable"],
};

async function removeToken(exchange: Exchange, principal: Principal, deps: AdminNodeDeps): Promise<Response> {
  const id = exchange.params["id"] ?? "";
  await deps.nodes.removeToken(principal, id, originOf(exchange, deps));
  return Response.json({ object: "node_join_token", id, deleted: true } satisfies z.infer<typeof deletedToken>);
}
