// The port by which each call of a tool is admitted, and put on the ledger with what became of it.
import type { Cancellation } from "../../base/cancellation.ts";
import type { MaybePromise } from "../../base/deferred.ts";
import type { Principal } from "../principal.ts";
import type { RequestTrace } from "../usage/trace.ts";
import type { McpServer } from "./mcp-server.ts";

export interface ToolUse {
  /** Unique: of several calls that come with one request of HTTP, each has its own. */
  readonly requestId: string;
  readonly principal: Principal;
  readonly server: McpServer;
  /** `tools/call`, `prompts/get`, `resources/read` or another method that a server answers. */
  readonly method: string;
  /** The server's own name of the tool or prompt, or the address of a resource; null: the method has none. */
  readonly name: string | null;
  /** JSON text of what it is asked with, of which the length is noted. */
  readonly content: () => string;
  /** Ends the wait for a place at the server; left out: nothing does. */
  readonly cancellation?: Cancellation | undefined;
  /** Where it is traced. */
  readonly trace?: RequestTrace | undefined;
}

export interface OpenToolUse {
  /** Gives its place at the server back, which goes on by itself: it stays on record until it has `ended`. */
  rest(): void;
  /** Once. `isError`: the tool said of its own result that it failed. Resolves once it survives `kill -9`. */
  ended(end: {
    outcome: "completed" | "failed" | "cancelled";
    code: string | null;
    isError: boolean;
    content(): string;
  }): MaybePromise<void>;
}

export interface ToolUses {
  /**
   * Rejects with the refusal where nothing is left of what limits the principal, or it asks too often beside calls; else
   * nothing is taken. To be asked before a server is reached, which may start a process. The refusal is put on record where
   * there is a server that it is of.
   */
  permit(asked: Pick<ToolUse, "requestId" | "principal" | "method" | "name"> & Partial<ToolUse>): Promise<void>;
  /**
   * Rejects with the refusal of a limit, or of want of a place at the server, and counts it. Once it resolves it has its place
   * until it has `ended`, and is on the ledger where its method is one that is: lists, completion and the like are only held
   * to limits.
   */
  begin(use: ToolUse): Promise<OpenToolUse>;
}

/** `tool_error`: it was answered, with a result that says of itself that it failed. `refused`: before it began. */
export const toolOutcomes = ["completed", "tool_error", "failed", "cancelled", "refused"] as const;
export type ToolOutcome = (typeof toolOutcomes)[number];

/** Told of each call, for metrics: it is quick, and never throws. */
export interface ToolObserver {
  toolEnded(call: { server: string; method: string; outcome: ToolOutcome; durationMs: number }): void;
}

/** Runs one of the gateway's own models for a server that asks for a sample, as a request of the principal. */
export interface ToolSampler {
  /**
   * `params` of `sampling/createMessage`; gives its result. Rejects with a GatewayError. `signal`: of the call of a tool within
   * which the server asks, the same for all that it asks within it, by which they are bounded.
   */
  sample(
    principal: Principal,
    params: Readonly<Record<string, unknown>>,
    signal: AbortSignal,
  ): Promise<Readonly<Record<string, unknown>>>;
}
