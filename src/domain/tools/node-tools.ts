// MCP servers on nodes: which servers a node shares, and requests to such a server.

import type { MemoryAccount } from "../../base/bytes/buffered-bytes.ts";
import type { Bytes } from "../../base/bytes/byte-span.ts";
import type { Cancellation } from "../../base/cancellation.ts";
import type { EngineResponse } from "../models/engine.ts";
import type { McpServer, ServerLocation } from "./mcp-server.ts";

/**
 * `http`: each exchange is one HTTP request. `command`: one exchange starts a process and streams its output; later
 * exchanges are the process's input.
 */
export const offeredKinds = ["http", "command"] as const satisfies readonly ServerLocation["kind"][];

/** An MCP server that a node shares with the gateway. */
export interface OfferedMcpServer {
  readonly name: string;
  readonly title: string | null;
  readonly kind: (typeof offeredKinds)[number];
}

export const maxOfferedMcpServers = 100;

export const toolMethods = ["POST", "GET", "DELETE"] as const;

/** One request to an MCP server on a node. */
export interface NodeToolRequest {
  readonly requestId: string;
  /** The MCP server's name on the node. */
  readonly server: string;
  readonly method: (typeof toolMethods)[number];
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | Bytes;
  readonly memoryAccount: MemoryAccount;
}

/**
 * Reports whether a request belongs to a call that is already running: it answers a server's request, is a
 * notification, or ends a session. A node accepts these even while it is draining.
 */
export function isOfOpen({ method, body }: Pick<NodeToolRequest, "method" | "body">): boolean {
  if (method !== "POST") return method === "DELETE";
  try {
    const message: unknown = JSON.parse(typeof body === "string" ? body : body.solid.text);
    if (!isFields(message) || Array.isArray(message)) return false;
    const { method: asked, id, params } = message;
    return asked === undefined || id === undefined || (isFields(params) && params["inputResponses"] !== undefined);
  } catch {
    return false;
  }
}

function isFields(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null;
}

/** The header with the session id of an HTTP server, or the id of a process that an exchange has started. */
export const sessionField = "mcp-session-id";

const passed = new Set([
  ...["accept", "content-type", "last-event-id", "mcp-method", "mcp-name", "mcp-protocol-version", sessionField],
]);
const mirrored = /^mcp-param-[!#$%&'*+.^_`|~0-9a-z-]{1,128}$/;

/** Returns the headers of the MCP protocol to send to a node. Credentials are left out. */
export function passedToolHeaders(headers: Readonly<Record<string, unknown>>): Record<string, string> {
  const kept: Record<string, string> = {};
  for (const [name, value] of Object.entries(headers)) {
    const isOf = passed.has(name) || mirrored.test(name);
    if (isOf && typeof value === "string" && /^[\t -~]*$/.test(value)) kept[name] = value;
  }
  return kept;
}

/** A node as the callers of its MCP servers see it. */
export interface ToolNode {
  readonly id: string;
  readonly name: string;
  /** False while the node is not connected or takes no new requests. */
  readonly isThere: boolean;
  /** True if an operator marked the node as local. */
  readonly isLocal: boolean;
  readonly offers: readonly OfferedMcpServer[];
}

export interface ToolNodes {
  /** Finds a node by id or name. */
  find(node: string): ToolNode | undefined;
  /**
   * Sends a request to an MCP server on a node. Rejects with a GatewayError if no response begins, or with the reason
   * of `cancellation`.
   */
  send(nodeId: string, request: NodeToolRequest, cancellation: Cancellation): Promise<EngineResponse>;
  /** Calls `listener` after a node has connected, disconnected or changed. Returns a function that unsubscribes. */
  onChange(listener: () => void): () => void;
}

/**
 * Returns a text for the node and shared server at which an MCP server is located. If the text changes, existing
 * connections are obsolete. Returns an empty text if the server is not on a node, and undefined if it cannot be
 * reached.
 */
export function nodeRouteOf({ place }: Pick<McpServer, "place">, nodes: Pick<ToolNodes, "find">): string | undefined {
  if (place.kind !== "node") return "";
  const node = nodes.find(place.nodeId);
  const offered = node?.isThere ? node.offers.find(({ name }) => name === place.server) : undefined;
  return node && offered && `${node.id} ${offered.kind}`;
}

/** The MCP servers that this machine offers as a node, and the handler of requests from the gateway. */
export interface OfferedTools {
  offers(): readonly OfferedMcpServer[];
  /** Sends a request to a server of this node. Rejects with a GatewayError. */
  handle(request: Omit<NodeToolRequest, "memoryAccount">, cancellation: Cancellation): Promise<EngineResponse>;
}
