// The port that admits each tool call and records its result in the ledger.
import type { Cancellation } from "../../base/cancellation.ts";
import type { MaybePromise } from "../../base/deferred.ts";
import type { Principal } from "../principal.ts";
import type { RequestTrace } from "../usage/trace.ts";
import type { McpServer } from "./mcp-server.ts";

export interface ToolUse {
  /** Unique: each of several calls in one HTTP request has its own. */
  readonly requestId: string;
  readonly principal: Principal;
  readonly server: McpServer;
  /** `tools/call`, `prompts/get`, `resources/read` or another method that a server answers. */
  readonly method: string;
  /** The server's own name of the tool or prompt, or the URI of a resource; null: the method has none. */
  readonly name: string | null;
  /** Returns the arguments as JSON text, whose length is recorded. */
  readonly content: () => string;
  /** Ends the wait for a slot at the server. Missing: the wait cannot be cancelled. */
  readonly cancellation?: Cancellation | undefined;
  /** Present if the call is traced. */
  readonly trace?: RequestTrace | undefined;
}

export interface OpenToolUse {
  /**
   * Releases the call's slot at the server although the call goes on without it. The call stays open in the ledger
   * until `ended`.
   */
  rest(): void;
  /** Ends the call once. `isError`: the tool reported an error. Resolves when the record survives `kill -9`. */
  ended(end: {
    outcome: "completed" | "failed" | "cancelled";
    code: string | null;
    isError: boolean;
    content(): string;
  }): MaybePromise<void>;
}

export interface ToolUses {
  /**
   * Checks limits before a server, and possibly its process, is reached. Rejects with the refusal of a limit that is
   * used up, or of too many requests that are not recorded in the ledger (such as lists). Otherwise counts nothing.
   * Records the refusal if the server is known.
   */
  permit(asked: Pick<ToolUse, "requestId" | "principal" | "method" | "name"> & Partial<ToolUse>): Promise<void>;
  /**
   * Begins a call. Rejects with the refusal of a limit or of a missing slot, and counts it. When it resolves, the call
   * has its slot until `ended` and is in the ledger, unless its method is only limited (lists, completion and the
   * like).
   */
  begin(use: ToolUse): Promise<OpenToolUse>;
}

/** `tool_error`: the tool's result reports an error. `refused`: before the start. */
export const toolOutcomes = ["completed", "tool_error", "failed", "cancelled", "refused"] as const;
export type ToolOutcome = (typeof toolOutcomes)[number];

/** Observes each call for metrics. Quick, and never throws. */
export interface ToolObserver {
  toolEnded(call: { server: string; method: string; outcome: ToolOutcome; durationMs: number }): void;
}

/** Runs one of the gateway's models for a server's sampling request, as a request of the principal. */
export interface ToolSampler {
  /**
   * Runs `params` of `sampling/createMessage` and returns its result. Rejects with a GatewayError. `signal` belongs to
   * the tool call, and bounds all its sampling requests.
   */
  sample(
    principal: Principal,
    params: Readonly<Record<string, unknown>>,
    signal: AbortSignal,
  ): Promise<Readonly<Record<string, unknown>>>;
}
