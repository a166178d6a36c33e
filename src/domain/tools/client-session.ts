// The port to an MCP server: one connection, in whatever revision the server speaks.

import type { MemoryAccount } from "../../base/bytes/buffered-bytes.ts";
import type { Cancellation } from "../../base/cancellation.ts";
import { GatewayError } from "../../base/errors.ts";
import type { Principal } from "../principal.ts";
import type { McpServer } from "./mcp-server.ts";

export type JsonObject = Readonly<Record<string, unknown>>;

/** What a server answered: the result as it came, or the error of JSON-RPC. */
export type ToolAnswer =
  | { readonly result: JsonObject }
  | { readonly error: { readonly code: number; readonly message: string; readonly data?: unknown } };

/** What goes on while a server works at one request. */
export interface ToolExchange {
  /** On whose account bytes are held. */
  readonly memoryAccount: MemoryAccount;
  /** The client left, or cancelled it. */
  readonly cancellation: Cancellation;
  /** Capabilities of the client that asks, which the server is told; undefined: none. */
  readonly clientCapabilities?: JsonObject | undefined;
  /** Fields `mcp-param-*` of the client's request, for servers that have them mirrored. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** Whether the server may tell what it does while it works on it: progress and log lines. */
  notified?(method: string, params: JsonObject): void;
  /** The server asks back: for a form (elicitation), a model (sampling), or roots. Rejects with the error of JSON-RPC. */
  asked?(method: string, params: JsonObject): Promise<JsonObject>;
  /**
   * The request by which it goes on, where a result is not the last word of it: over the same connection, also where that takes
   * nothing new any more. What it rejects with is what all of it does.
   */
  next?(result: JsonObject): Promise<{ readonly method: string; readonly params: JsonObject } | undefined>;
}

/** Questions of a server in one call, in whichever way of its revision: each begins the wait for its answer anew. */
export const maxAskedBack = 256;

export function asksTooOften(server: string): GatewayError {
  const message = `The MCP server "${server}" asked back more than ${maxAskedBack} times.`;
  return new GatewayError("upstream_error", message);
}

/** The server is asked as each person, and this one has no account connected there, or gave it too few rights. */
export class AccountMissing extends GatewayError {
  /** The page on which it is connected. */
  readonly connectAt: string;

  constructor(server: string, connectAt: string, what = "connect your account there first") {
    super("permission_denied", `The MCP server "${server}" is asked as each person: ${what}, at ${connectAt}`);
    this.connectAt = connectAt;
  }
}

export interface ClientSession {
  /** Whether sessions are held with it (revisions before 2026-07-28). */
  readonly isLegacy: boolean;
  readonly revision: string;
  readonly capabilities: JsonObject;
  readonly serverInfo: JsonObject;
  readonly instructions: string | undefined;
  /**
   * Resolves with whatever the server answers, within the bounds of the server. Rejects with a GatewayError where none comes:
   * `upstream_error`, `upstream_timeout`, `service_unavailable`, or `AccountMissing` where an account has to be connected first.
   */
  request(method: string, params: JsonObject, exchange: ToolExchange): Promise<ToolAnswer>;
  /** Calls `listener` with what the server tells beside any request: that lists or resources have changed. Gives what ends that. */
  onChange(listener: (method: string, params: JsonObject) => void): () => void;
}

/** Who asks, for what bounds and shares connections. */
export interface ToolCaller {
  readonly principal: Principal;
}

export interface ClientSessions {
  /** One that is open already, or a new one. Rejects as `request` does. */
  open(server: McpServer, caller: ToolCaller): Promise<ClientSession>;
  /** Ends all of a server, which has changed or is gone; what is asked for at the moment fails. */
  close(server: string): void;
}
