// The port to an MCP server: one connection, in the server's revision.

import type { MemoryAccount } from "../../base/bytes/buffered-bytes.ts";
import type { Cancellation } from "../../base/cancellation.ts";
import { GatewayError } from "../../base/errors.ts";
import type { Principal } from "../principal.ts";
import type { McpServer } from "./mcp-server.ts";

export type JsonObject = Readonly<Record<string, unknown>>;

/** A server's answer: the result unchanged, or the JSON-RPC error. */
export type ToolAnswer =
  | { readonly result: JsonObject }
  | { readonly error: { readonly code: number; readonly message: string; readonly data?: unknown } };

/** The context of one request to a server. */
export interface ToolExchange {
  /** The memory account of buffered bytes. */
  readonly memoryAccount: MemoryAccount;
  /** Cancelled when the client disconnects or cancels its request. */
  readonly cancellation: Cancellation;
  /** Capabilities of the client, which are passed to the server; undefined: none. */
  readonly clientCapabilities?: JsonObject | undefined;
  /** Headers `mcp-param-*` of the client's request, for servers with mirrored arguments. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** Receives notifications during the request: progress and log lines. Missing: none are wanted. */
  notified?(method: string, params: JsonObject): void;
  /** Answers a server request: elicitation, sampling or roots. Rejects with the JSON-RPC error. */
  asked?(method: string, params: JsonObject): Promise<JsonObject>;
  /**
   * Returns the request that continues after an intermediate result, over the same connection, even if that takes no
   * new requests any more. If it rejects, the whole exchange rejects with the same error.
   */
  next?(result: JsonObject): Promise<{ readonly method: string; readonly params: JsonObject } | undefined>;
}

/** Maximum number of server requests in one call. Each restarts the timeout. */
export const maxAskedBack = 256;

export function asksTooOften(server: string): GatewayError {
  const message = `The MCP server "${server}" asked back more than ${maxAskedBack} times.`;
  return new GatewayError("upstream_error", message);
}

/** The person has no connected account at the server, or one with too few scopes. */
export class AccountMissing extends GatewayError {
  /** The page on which the person connects the account. */
  readonly connectAt: string;

  constructor(server: string, connectAt: string, what = "connect your account there first") {
    super("permission_denied", `The MCP server "${server}" is asked as each person: ${what}, at ${connectAt}`);
    this.connectAt = connectAt;
  }
}

export interface ClientSession {
  /** True if the server has sessions (revisions before 2026-07-28). */
  readonly isLegacy: boolean;
  readonly revision: string;
  readonly capabilities: JsonObject;
  readonly serverInfo: JsonObject;
  readonly instructions: string | undefined;
  /**
   * Resolves with the server's answer, within its limits. Rejects with a GatewayError without one: `upstream_error`,
   * `upstream_timeout`, `service_unavailable`, or `AccountMissing` if an account has to be connected first.
   */
  request(method: string, params: JsonObject, exchange: ToolExchange): Promise<ToolAnswer>;
  /**
   * Calls `listener` with notifications outside of requests, such as changed lists or resources. Returns a function
   * that unsubscribes.
   */
  onChange(listener: (method: string, params: JsonObject) => void): () => void;
}

/** The caller, for limits and shared connections. */
export interface ToolCaller {
  readonly principal: Principal;
}

export interface ClientSessions {
  /** Returns an open session or a new one. Rejects as `request` does. */
  open(server: McpServer, caller: ToolCaller): Promise<ClientSession>;
  /** Closes all sessions of a server that was changed or deleted. Running requests fail. */
  close(server: string): void;
}
