// The operators' endpoints for nodes, and for the tokens with which machines join.
import type { Nodes } from "../../../nodes/manage-nodes.ts";
import {
  createdJoinTokenShape,
  createJoinTokenRequest,
  joinTokenShape,
  nodeShape,
  updateNodeRequest,
} from "../../../wire/nodes.ts";
import { deletedShape } from "../../../wire/parts.ts";
import type { ScopedRoute } from "../../exchange/route.ts";
import type { EndpointDeps } from "../endpoint.ts";
import { wholeListOf } from "../list.ts";
import { adminEndpoints } from "./admin-endpoint.ts";

export interface AdminNodeDeps extends EndpointDeps {
  nodes: Pick<Nodes, "list" | "get" | "change" | "remove" | "createToken" | "listTokens" | "removeToken">;
}

const nodeParameter = [{ name: "id", in: "path", description: "Id of the node, `node_…`." }] as const;
const tokenParameter = [{ name: "id", in: "path", description: "Id of the join token, `njt_…`." }] as const;
const nodeList = wholeListOf(nodeShape, "NodeList");
const tokenList = wholeListOf(joinTokenShape, "NodeJoinTokenList");
const deletedNode = deletedShape("node", "DeletedNode");
const deletedToken = deletedShape("node_join_token", "DeletedNodeJoinToken");

const endpoint = adminEndpoints<AdminNodeDeps>();

export function adminNodeRoutes(deps: AdminNodeDeps): ScopedRoute[] {
  return [
    list(deps),
    retrieve(deps),
    update(deps),
    remove(deps),
    createToken(deps),
    listTokens(deps),
    removeToken(deps),
  ];
}

const list = endpoint("GET", "/v1/admin/nodes", {
  operationId: "listNodes",
  summary: "List the nodes, with their announced models and state",
  description: "Sorted by name. `running`, `waiting` and `concurrency` describe the process that answers.",
  response: { description: "The nodes.", json: nodeList },
  answer: ({ deps: { nodes } }) => ({ object: "list", data: nodes.list() }),
});

const retrieve = endpoint("GET", "/v1/admin/nodes/:id", {
  operationId: "retrieveNode",
  summary: "Retrieve one node",
  parameters: nodeParameter,
  response: { description: "The node.", json: nodeShape },
  answer: ({ deps: { nodes }, id }) => nodes.get(id),
});

const update = endpoint("PATCH", "/v1/admin/nodes/:id", {
  operationId: "updateNode",
  summary: "Approve models of a node, drain it, rename it, or limit its requests",
  description:
    "Approved models that the node announces are offered immediately, under the ids of the node. While a node is draining, it finishes its requests and gets no new ones.",
  parameters: nodeParameter,
  requestBody: updateNodeRequest,
  example: { approved_models: ["qwen3-8b"], environments: ["live", "dev"] },
  response: { description: "The node.", json: nodeShape },
  answer: ({ deps, principal, id, body, origin }) => deps.nodes.change(principal, id, body, origin),
});

const remove = endpoint("DELETE", "/v1/admin/nodes/:id", {
  operationId: "deleteNode",
  summary: "Remove a node",
  description:
    "The connection is cut, and requests at the node end with an error. The node needs a new join token to return. Drain it first to let its requests finish.",
  parameters: nodeParameter,
  response: { description: "The node is removed.", json: deletedNode },
  async answer({ deps, principal, id, origin }) {
    await deps.nodes.remove(principal, id, origin);
    return { object: "node", id, deleted: true };
  },
});

const createToken = endpoint("POST", "/v1/admin/node-tokens", {
  operationId: "createNodeJoinToken",
  summary: "Create a token with which one machine joins as a node",
  description:
    "The token works once, within an hour by default. Run `headrace node join <this gateway's address> --token <token>` on the machine. Approve the node's models here with `approved_models`, or later.",
  requestBody: createJoinTokenRequest,
  example: { approved_models: ["qwen3-8b"], expires_in: 3600 },
  response: { description: "The token. It is shown only in this response.", json: createdJoinTokenShape },
  showsSecret: true,
  answer: ({ deps, principal, body, origin }) => deps.nodes.createToken(principal, body, origin),
});

const listTokens = endpoint("GET", "/v1/admin/node-tokens", {
  operationId: "listNodeJoinTokens",
  summary: "List the join tokens, newest first",
  description: "Used and expired tokens are listed for a week.",
  response: { description: "The tokens, without their secrets.", json: tokenList },
  answer: async ({ deps }) => ({ object: "list", data: await deps.nodes.listTokens(deps.clock.nowSeconds()) }),
});

const removeToken = endpoint("DELETE", "/v1/admin/node-tokens/:id", {
  operationId: "deleteNodeJoinToken",
  summary: "Delete a join token",
  description: "No machine can join with the token any more. A node that joined with it stays.",
  parameters: tokenParameter,
  response: { description: "The token is deleted.", json: deletedToken },
  async answer({ deps, principal, id, origin }) {
    await deps.nodes.removeToken(principal, id, origin);
    return { object: "node_join_token", id, deleted: true };
  },
});
