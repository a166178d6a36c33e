// MCP servers at nodes: the shared servers of a node, and one exchange with such a server.

import type { MemoryAccount } from "../../base/bytes/buffered-bytes.ts";
import type { Bytes } from "../../base/bytes/byte-span.ts";
import type { Cancellation } from "../../base/cancellation.ts";
import type { EngineResponse } from "../models/engine.ts";
import type { McpServer, ServerLocation } from "./mcp-server.ts";

/**
 * `http`: each exchange is one HTTP request. `command`: one exchange is a process, whose output it streams; the others
 * are its input.
 */
export const offeredKinds = ["http", "command"] as const satisfies readonly ServerLocation["kind"][];

/** A server in the configuration of a node that its owner shares with the gateway. */
export interface OfferedMcpServer {
  readonly name: string;
  readonly title: string | null;
  readonly kind: (typeof offeredKinds)[number];
}

export const maxOfferedMcpServers = 100;

export const toolMethods = ["POST", "GET", "DELETE"] as const;

/** An exchange with an MCP server at a node. */
export interface NodeToolRequest {
  readonly requestId: string;
  /** Name of the server at the node. */
  readonly server: string;
  readonly method: (typeof toolMethods)[number];
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | Bytes;
  readonly memoryAccount: MemoryAccount;
}

/**
 * Reports whether a request belongs to running work: an answer to a server's request in a call, a notification, or the
 * end of a session. A draining node still accepts these.
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

/** The header that identifies a process that an exchange has started, and sessions of HTTP servers. */
export const sessionField = "mcp-session-id";

const passed = new Set([
  ...["accept", "content-type", "last-event-id", "mcp-method", "mcp-name", "mcp-protocol-version", sessionField],
]);
const mirrored = /^mcp-param-[!#$%&'*+.^_`|~0-9a-z-]{1,128}$/;

/** Returns the protocol headers that are sent to a node. A node gets no credential. */
export function passedToolHeaders(headers: Readonly<Record<string, unknown>>): Record<string, string> {
  const kept: Record<string, string> = {};
  for (const [name, value] of Object.entries(headers)) {
    const isOf = passed.has(name) || mirrored.test(name);
    if (isOf && typeof value === "string" && /^[\t -~]*$/.test(value)) kept[name] = value;
  }
  return kept;
}

/** A node as callers of its MCP servers see it. */
export interface ToolNode {
  readonly id: string;
  readonly name: string;
  /** False while the node is not connected, or takes no new requests. */
  readonly isThere: boolean;
  /** True if an operator marked the node as local. */
  readonly isLocal: boolean;
  readonly offers: readonly OfferedMcpServer[];
}

export interface ToolNodes {
  /** Finds a node by id or name. */
  find(node: string): ToolNode | undefined;
  /** Sends a request to a node's MCP server. Resolves and rejects like `Engine.send`. */
  send(nodeId: string, request: NodeToolRequest, cancellation: Cancellation): Promise<EngineResponse>;
  /** Calls `listener` after nodes connect, disconnect or change. Returns a function that unsubscribes. */
  onChange(listener: () => void): () => void;
}

/**
 * Returns a text that identifies the node and shared server behind a server's location. Another text means that
 * connections are obsolete. All servers without a node have the same text; undefined: unreachable.
 */
export function nodeRouteOf({ place }: Pick<McpServer, "place">, nodes: Pick<ToolNodes, "find">): string | undefined {
  if (place.kind !== "node") return "";
  const node = nodes.find(place.nodeId);
  const offered = node?.isThere ? node.offers.find(({ name }) => name === place.server) : undefined;
  return node && offered && `${node.id} ${offered.kind}`;
}

/** The answers of a node's own MCP servers. */
export interface OfferedTools {
  offers(): readonly OfferedMcpServer[];
  /** Rejects with a GatewayError. */
  handle(request: Omit<NodeToolRequest, "memoryAccount">, cancellation: Cancellation): Promise<EngineResponse>;
}
