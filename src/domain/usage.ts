// What one inference request consumed, and where that is recorded.
import type { Environment } from "./api-key.ts";
import type { Operation } from "./engine.ts";

export interface TokenUsage {
  promptTokens: number;
  completionTokens: number;
  /** True where the engine did not report and the figures come from the length of the text. */
  estimated: boolean;
}

/** How a request ended: served whole, failed, or left by the client. */
export type UsageOutcome = "completed" | "failed" | "cancelled";

export interface UsageRecord extends TokenUsage {
  requestId: string;
  /** Unix seconds of the start. */
  at: number;
  accountId: string;
  keyId: string;
  environment: Environment;
  operation: Operation;
  /** Public model id. */
  model: string;
  outcome: UsageOutcome;
  /** USD; null where the model has no price. */
  cost: number | null;
  durationMs: number;
}

export interface UsageStore {
  /** Takes a record at once and writes it in the background; a record with a known request id is written once. */
  record(usage: UsageRecord): void;
}
