// The port that admits each tool call and records its result in the ledger.
import type { Cancellation } from "../../base/cancellation.ts";
import type { MaybePromise } from "../../base/deferred.ts";
import type { Principal } from "../principal.ts";
import type { RequestTrace } from "../usage/trace.ts";
import type { McpServer } from "./mcp-server.ts";

export interface ToolUse {
  /** The call's own id. An HTTP request with several calls has several ids. */
  readonly requestId: string;
  readonly principal: Principal;
  readonly server: McpServer;
  /** `tools/call`, `prompts/get`, `resources/read` or another method that an MCP server answers. */
  readonly method: string;
  /** The name of the tool or prompt at its server, or the URI of a resource. Null if the method has none. */
  readonly name: string | null;
  /** Returns the arguments as JSON text. Their length is recorded. */
  readonly content: () => string;
  /** Ends the wait for a slot at the server. If missing, the wait cannot be cancelled. */
  readonly cancellation?: Cancellation | undefined;
  /** Present if the call is traced. */
  readonly trace?: RequestTrace | undefined;
}

export interface OpenToolUse {
  /**
   * Releases the call's slot at the server, although the call has not ended. In the ledger, the call stays open until
   * `ended`.
   */
  rest(): void;
  /**
   * Ends the call. Call this once. `isError` is true if the tool reported an error. Resolves when the record would
   * survive `kill -9`.
   */
  ended(end: {
    outcome: "completed" | "failed" | "cancelled";
    code: string | null;
    isError: boolean;
    content(): string;
  }): MaybePromise<void>;
}

export interface ToolUses {
  /**
   * Checks the limits before the MCP server is contacted, and perhaps its process started. Counts nothing. Rejects if a
   * limit is used up, or after too many requests that the ledger does not record, such as lists. Such a refusal is
   * recorded if the server is known.
   */
  permit(asked: Pick<ToolUse, "requestId" | "principal" | "method" | "name"> & Partial<ToolUse>): Promise<void>;
  /**
   * Begins a call. If a limit or the lack of a slot refuses the call, rejects and counts the refusal. Otherwise the
   * call has a slot until `ended`, and is in the ledger. Lists, completion and similar methods are only limited and not
   * recorded.
   */
  begin(use: ToolUse): Promise<OpenToolUse>;
}

/** `tool_error`: the tool reported an error in its result. `refused`: the call did not begin. */
export const toolOutcomes = ["completed", "tool_error", "failed", "cancelled", "refused"] as const;
export type ToolOutcome = (typeof toolOutcomes)[number];

/** Observes each call for metrics. The method must be fast and never throw. */
export interface ToolObserver {
  toolEnded(call: { server: string; method: string; outcome: ToolOutcome; durationMs: number }): void;
}

/** Runs a model for a sampling request of an MCP server. The request counts as one of the principal's. */
export interface ToolSampler {
  /**
   * Runs the model with the `params` of `sampling/createMessage` and returns the result. Rejects with a GatewayError.
   * `signal` is that of the tool call, so it ends all of the call's sampling requests.
   */
  sample(
    principal: Principal,
    params: Readonly<Record<string, unknown>>,
    signal: AbortSignal,
  ): Promise<Readonly<Record<string, unknown>>>;
}
