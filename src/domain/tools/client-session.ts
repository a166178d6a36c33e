// The port for requests to an MCP server. A session is one connection and uses one protocol revision.

import type { MemoryAccount } from "../../base/bytes/buffered-bytes.ts";
import type { Cancellation } from "../../base/cancellation.ts";
import { GatewayError } from "../../base/errors.ts";
import type { Principal } from "../principal.ts";
import type { McpServer } from "./mcp-server.ts";

export type JsonObject = Readonly<Record<string, unknown>>;

/** An MCP server's answer: its unchanged result, or its JSON-RPC error. */
export type ToolAnswer =
  | { readonly result: JsonObject }
  | { readonly error: { readonly code: number; readonly message: string; readonly data?: unknown } };

/** The context of one request to an MCP server. */
export interface ToolExchange {
  /** The memory account that counts buffered bytes. */
  readonly memoryAccount: MemoryAccount;
  /** Cancelled when the client disconnects or cancels its request. */
  readonly cancellation: Cancellation;
  /** The client's capabilities, which are passed on to the server. Undefined means none. */
  readonly clientCapabilities?: JsonObject | undefined;
  /** The `mcp-param-*` headers of the client's request, for servers that get some arguments as headers too. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** Receives progress and log notifications during the request. Missing if the client wants none. */
  notified?(method: string, params: JsonObject): void;
  /**
   * Answers a request that the server makes meanwhile: elicitation, sampling or roots. Rejects with a JSON-RPC error.
   */
  asked?(method: string, params: JsonObject): Promise<JsonObject>;
  /**
   * After an intermediate result, returns the request that continues the exchange, or undefined. The request is sent
   * over the same connection, even if that connection takes no new requests any more. If `next` rejects, the whole
   * exchange rejects with the same error.
   */
  next?(result: JsonObject): Promise<{ readonly method: string; readonly params: JsonObject } | undefined>;
}

/**
 * Maximum number of requests that a server may make to the client during one call. Each restarts the call's timeout.
 */
export const maxAskedBack = 256;

export function asksTooOften(server: string): GatewayError {
  const message = `The MCP server "${server}" asked back more than ${maxAskedBack} times.`;
  return new GatewayError("upstream_error", message);
}

/** Thrown if the person has no connected account at the server, or the account has too few scopes. */
export class AccountMissing extends GatewayError {
  /** The page on which the person connects the account. */
  readonly connectAt: string;

  constructor(server: string, connectAt: string, what = "connect your account there first") {
    super("permission_denied", `The MCP server "${server}" is asked as each person: ${what}, at ${connectAt}`);
    this.connectAt = connectAt;
  }
}

export interface ClientSession {
  /** True if the server's protocol revision has sessions: those before 2026-07-28. */
  readonly isLegacy: boolean;
  readonly revision: string;
  readonly capabilities: JsonObject;
  readonly serverInfo: JsonObject;
  readonly instructions: string | undefined;
  /**
   * Sends a request and resolves with the server's answer. If no answer arrives, rejects with a GatewayError:
   * `upstream_error`, `upstream_timeout`, `service_unavailable`, or `AccountMissing` if the person must connect an
   * account first.
   */
  request(method: string, params: JsonObject, exchange: ToolExchange): Promise<ToolAnswer>;
  /**
   * Calls `listener` for notifications that belong to no request, such as changed lists or resources. Returns a
   * function that unsubscribes.
   */
  onChange(listener: (method: string, params: JsonObject) => void): () => void;
}

/** The party that makes the request. The limits and the connection depend on the party. */
export interface ToolCaller {
  readonly principal: Principal;
}

export interface ClientSessions {
  /** Returns an open session with the server, or opens a new one. Rejects with a GatewayError if that fails. */
  open(server: McpServer, caller: ToolCaller): Promise<ClientSession>;
  /** Closes all sessions of an MCP server, because the server was changed or deleted. Running requests fail. */
  close(server: string): void;
}
