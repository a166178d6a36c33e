// MCP servers at nodes of the network: what a node offers of its own, and one exchange with such a server.

import type { MemoryAccount } from "../../base/bytes/buffered-bytes.ts";
import type { Bytes } from "../../base/bytes/byte-span.ts";
import type { Cancellation } from "../../base/cancellation.ts";
import type { EngineResponse } from "../models/engine.ts";
import type { McpServer, ServerLocation } from "./mcp-server.ts";

/** `http`: each exchange is one of HTTP. `command`: one exchange is a process, whose output it streams; the others are its input. */
export const offeredKinds = ["http", "command"] as const satisfies readonly ServerLocation["kind"][];

/** A server in the configuration of a node, which its owner offers to the gateway. */
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
 * Whether it belongs to what is under way already: an answer to what a server asked in the middle of a call, in whichever way of
 * its revision, a notification, or the leave that a session takes. A node that takes nothing new is sent that still.
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

/** The field by which a process is known that an exchange has started, and by which servers over HTTP know their sessions. */
export const sessionField = "mcp-session-id";

const passed = new Set([
  ...["accept", "content-type", "last-event-id", "mcp-method", "mcp-name", "mcp-protocol-version", sessionField],
]);
const mirrored = /^mcp-param-[!#$%&'*+.^_`|~0-9a-z-]{1,128}$/;

/** Those fields of the protocol that go to a node, and no others: it gets no credential, and cannot be given one. */
export function passedToolHeaders(headers: Readonly<Record<string, unknown>>): Record<string, string> {
  const kept: Record<string, string> = {};
  for (const [name, value] of Object.entries(headers)) {
    const isOf = passed.has(name) || mirrored.test(name);
    if (isOf && typeof value === "string" && /^[\t -~]*$/.test(value)) kept[name] = value;
  }
  return kept;
}

/** A node, as whoever asks a server there sees it. */
export interface ToolNode {
  readonly id: string;
  readonly name: string;
  /** False while it is not connected, or takes nothing new. */
  readonly isThere: boolean;
  /** Whether an operator marked it as local. */
  readonly isLocal: boolean;
  readonly offers: readonly OfferedMcpServer[];
}

export interface ToolNodes {
  /** By its id or its name. */
  find(node: string): ToolNode | undefined;
  /** Like `Engine.send`. */
  send(nodeId: string, request: NodeToolRequest, cancellation: Cancellation): Promise<EngineResponse>;
  /** Calls `listener` after nodes came or went, or say something else of themselves; gives what ends that. */
  onChange(listener: () => void): () => void;
}

/**
 * Where requests for a server go now: which node, and what it offers by that name. Another text says that whatever it was
 * connected to is something else by now; the same for all that are at none; undefined: they go nowhere.
 */
export function standingOf({ place }: Pick<McpServer, "place">, nodes: Pick<ToolNodes, "find">): string | undefined {
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
