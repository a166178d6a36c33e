// The interface to MCP servers, for tools that the gateway calls on behalf of a model.
import type { MemoryAccount } from "../../base/bytes/buffered-bytes.ts";
import type { Cancellation } from "../../base/cancellation.ts";
import type { Principal } from "../../domain/principal.ts";
import type { MadeCall } from "../../domain/tools/approved-call.ts";
import type { RequestTrace } from "../../domain/usage/trace.ts";
import type { RequestLimits } from "../../requests/decode/decode-request.ts";
import type { AskedServer, HostedTool } from "../../requests/dialects/response/hosted/asked-servers.ts";
import type { CallResult } from "../../requests/dialects/response/hosted/hosted-items.ts";

/** The party that calls tools of an MCP server: the principal, its memory account, and its cancellation. */
export interface ToolAsker {
  readonly principal: Principal;
  readonly memoryAccount: MemoryAccount;
  readonly clientGone: Cancellation;
  /** The trace in which the tool calls appear. */
  readonly trace: RequestTrace | undefined;
}

export interface ModelTools {
  /**
   * Returns the name of the MCP server with this label or URL, or undefined if the principal can use no such server.
   */
  serverOf(principal: Principal, asked: Pick<AskedServer, "label" | "url">): string | undefined;
  /** Lists the tools that the principal may call. Rejects with a GatewayError. */
  list(server: string, asker: ToolAsker): Promise<readonly HostedTool[]>;
  /** Reports whether a tool list that an earlier response of the conversation contains is still valid. */
  holds(listed: readonly HostedTool[]): boolean;
  /** Rejects if the rate limit of this tool is used up. Must be called before an approval is used up. */
  permit(server: string, tool: string, asker: Pick<ToolAsker, "principal" | "trace">): Promise<void>;
  /** Calls a listed tool. If the call fails, resolves to an error result. Rejects only if the client has left. */
  call(server: string, tool: string, args: Readonly<Record<string, unknown>>, asker: ToolAsker): Promise<CallResult>;
}

/** Records which approvals of tool calls have been used. Each approval can be used only once. */
export interface ApprovedCalls {
  /**
   * Uses up an approval for this call. If the approval was already used, resolves to the earlier call. Otherwise
   * resolves to undefined, and the call may be made.
   */
  take(principal: Principal, approvalId: string, call: MadeCall): Promise<TakenCall | undefined>;
}

export interface TakenCall {
  readonly responseId: string;
  /** The output item of the earlier call, if it is stored for the principal. */
  readonly item: Readonly<Record<string, unknown>> | undefined;
}

/** The dependencies for running MCP tools for models. */
export interface HostedTools {
  readonly tools: ModelTools;
  readonly approved: ApprovedCalls;
  /** Returns the current rights of the principal. Rejects with a GatewayError if they were revoked. */
  still(principal: Principal): Promise<Principal>;
  /** Returns the limits of client requests, which also apply to each model call of the response. */
  requestLimits(): RequestLimits;
}

export type { AskedServer, CallResult, HostedTool };
