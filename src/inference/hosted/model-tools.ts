// The port to MCP servers, for calls of models whose tools the gateway runs itself.
import type { MemoryAccount } from "../../base/bytes/buffered-bytes.ts";
import type { Cancellation } from "../../base/cancellation.ts";
import type { Principal } from "../../domain/principal.ts";
import type { MadeCall } from "../../domain/tools/approved-call.ts";
import type { RequestTrace } from "../../domain/usage/trace.ts";
import type { RequestLimits } from "../../requests/decode/decode-request.ts";
import type { AskedServer, HostedTool } from "../../requests/dialects/response/hosted/asked-servers.ts";
import type { CallResult } from "../../requests/dialects/response/hosted/hosted-items.ts";

/** For whom a server is asked. */
export interface ToolAsker {
  readonly principal: Principal;
  readonly memoryAccount: MemoryAccount;
  readonly clientGone: Cancellation;
  /** Where its calls are traced. */
  readonly trace: RequestTrace | undefined;
}

export interface ModelTools {
  /** Name of the server that is meant, by its label or its address; undefined where the principal reaches none such. */
  serverOf(principal: Principal, asked: Pick<AskedServer, "label" | "url">): string | undefined;
  /** What the principal may call of it. Rejects with a GatewayError. */
  list(server: string, asker: ToolAsker): Promise<readonly HostedTool[]>;
  /** Whether what was listed earlier in a conversation need not be listed again. */
  holds(listed: readonly HostedTool[]): boolean;
  /** Rejects with the refusal of a rate limit of which nothing is left: a call would not reach its server. */
  permit(server: string, tool: string, asker: Pick<ToolAsker, "principal" | "trace">): Promise<void>;
  /**
   * Calls one that was listed. What the server, or the way there, says against it is a result; rejects only where the
   * client has left.
   */
  call(server: string, tool: string, args: Readonly<Record<string, unknown>>, asker: ToolAsker): Promise<CallResult>;
}

/** Which approvals have made their call. */
export interface ApprovedCalls {
  /** Takes the call of an approval. Gives who took it before; undefined: nobody did, and it is to be made. */
  take(principal: Principal, approvalId: string, call: MadeCall): Promise<TakenCall | undefined>;
}

export interface TakenCall {
  readonly responseId: string;
  /** Its item, where that is kept for the principal. */
  readonly item: Readonly<Record<string, unknown>> | undefined;
}

/** What it takes to run tools of servers for models. */
export interface HostedTools {
  readonly tools: ModelTools;
  readonly approved: ApprovedCalls;
  /** What is left by now of the rights with which a request was admitted. Rejects with a GatewayError where nothing is. */
  still(principal: Principal): Promise<Principal>;
  /** The bounds of a client's request, which each turn keeps as well. */
  requestLimits(): RequestLimits;
}

export type { AskedServer, CallResult, HostedTool };
