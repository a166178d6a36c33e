// The interface to MCP servers for tool calls that the gateway runs for a model.
import type { MemoryAccount } from "../../base/bytes/buffered-bytes.ts";
import type { Cancellation } from "../../base/cancellation.ts";
import type { Principal } from "../../domain/principal.ts";
import type { MadeCall } from "../../domain/tools/approved-call.ts";
import type { RequestTrace } from "../../domain/usage/trace.ts";
import type { RequestLimits } from "../../requests/decode/decode-request.ts";
import type { AskedServer, HostedTool } from "../../requests/dialects/response/hosted/asked-servers.ts";
import type { CallResult } from "../../requests/dialects/response/hosted/hosted-items.ts";

/** The party that a server is asked for. */
export interface ToolAsker {
  readonly principal: Principal;
  readonly memoryAccount: MemoryAccount;
  readonly clientGone: Cancellation;
  /** The trace of the calls. */
  readonly trace: RequestTrace | undefined;
}

export interface ModelTools {
  /**
   * Returns the name of the requested server, by its label or address; undefined if the principal can use no such
   * server.
   */
  serverOf(principal: Principal, asked: Pick<AskedServer, "label" | "url">): string | undefined;
  /** Lists the tools that the principal may call. Rejects with a GatewayError. */
  list(server: string, asker: ToolAsker): Promise<readonly HostedTool[]>;
  /** Reports whether an earlier list in a conversation is still valid. */
  holds(listed: readonly HostedTool[]): boolean;
  /** Rejects with the refusal of a used-up rate limit, because the call would not reach its server. */
  permit(server: string, tool: string, asker: Pick<ToolAsker, "principal" | "trace">): Promise<void>;
  /** Calls a listed tool. An error of the server or on the way is a result; rejects only if the client has left. */
  call(server: string, tool: string, args: Readonly<Record<string, unknown>>, asker: ToolAsker): Promise<CallResult>;
}

/** Records which approvals have been used for a call. */
export interface ApprovedCalls {
  /**
   * Uses an approval for a call. Resolves to the call that used it before, or to undefined if there is none, so that
   * the call is to be made.
   */
  take(principal: Principal, approvalId: string, call: MadeCall): Promise<TakenCall | undefined>;
}

export interface TakenCall {
  readonly responseId: string;
  /** The item of the call, if it is stored for the principal. */
  readonly item: Readonly<Record<string, unknown>> | undefined;
}

/** The dependencies for running MCP tools for models. */
export interface HostedTools {
  readonly tools: ModelTools;
  readonly approved: ApprovedCalls;
  /** Returns the current rights of an admitted request. Rejects with a GatewayError if it has no rights any more. */
  still(principal: Principal): Promise<Principal>;
  /** Returns the limits of client requests, which also apply to each turn. */
  requestLimits(): RequestLimits;
}

export type { AskedServer, CallResult, HostedTool };
