// The usage of one inference request, and the ledger that neither loses nor doubles it if the process dies.

import type { MaybePromise } from "../../base/deferred.ts";
import type { Environment } from "../api-key.ts";
import type { BookedOperation } from "../models/operation.ts";
import type { Trail } from "./trail.ts";
import type { UsageParts } from "./usage-parts.ts";

export interface TokenUsage {
  promptTokens: number;
  completionTokens: number;
  /** True if the figures are estimated from the text, because the engine's report is missing or was not accepted. */
  estimated: boolean;
  /** True if the engine reported fewer tokens than it delivered or received. Cached answers and batches store this name. */
  understated?: boolean;
  /** True if the engine reported more tokens than the delivered text can have. */
  overstated?: boolean;
  /** True if the delivered text proves more tokens than the request, or the model's context, allows. */
  pastLimit?: boolean;
  /** Parts of the tokens that have their own rates. Undefined if the engine reported none. */
  parts?: UsageParts | undefined;
}

export const usageOutcomes = ["completed", "failed", "cancelled", "interrupted"] as const;
/**
 * The outcome of a request: completed, failed, cancelled by the client, or interrupted by the end of the server's
 * process.
 */
export type UsageOutcome = (typeof usageOutcomes)[number];

/** Replaces an app's id for the gateway's own requests, which no quota counts. */
export const ownAppId = "gateway";

/** Facts of a request before it is sent to an engine. */
export interface UsageBegin {
  requestId: string;
  /** Unix seconds of the start. */
  at: number;
  accountId: string;
  keyId: string;
  appId: string | null;
  environment: Environment;
  operation: BookedOperation;
  /** Public model id. */
  model: string;
  stream: boolean;
  /** Tags for usage, without duplicates. Undefined: none. */
  tags?: readonly string[] | undefined;
}

/** Facts of a request at its end. */
export interface UsageEnd extends TokenUsage {
  outcome: UsageOutcome;
  /** Code of the error that ended it. */
  errorCode: string | null;
  /** Nano-USD (10^-9), whole; null for a model without a price. */
  nanoUsd: number | null;
  /** True if the engine's report was outside of the possible range and was replaced. */
  capped: boolean;
  /** Name of the engine that answered; null if none did. */
  upstream: string | null;
  durationMs: number;
  /** Milliseconds from the start to the first byte of the answer's content, and those spent waiting for capacity. */
  firstTokenMs: number | null;
  queueMs: number;
  /** The attempt log. Missing if the first model server that was asked answered, or none was asked. */
  trail?: Trail | undefined;
}

export interface UsageRecord extends UsageBegin, UsageEnd {}

export interface LedgerEntry {
  /**
   * Resolves when the request survives `kill -9`: the next start would settle it at its last checkpoint. Rejects with
   * `service_unavailable` if that is impossible (disk full); the entry is void then. No engine may be asked before it
   * resolves. All requests of one turn of the event loop share one write.
   */
  readonly begun: MaybePromise<void>;
  /** Records a checkpoint of the delivered usage. The caller sends at most one a second. */
  progress(usage: TokenUsage, nanoUsd: number | null): void;
  /**
   * Settles once; later calls do nothing. Resolves when the figure survives `kill -9`, or if that is impossible for now
   * (the database gets it from memory). Never rejects. The client gets the end of its answer after that.
   */
  settle(end: UsageEnd): MaybePromise<void>;
}

/**
 * Returns the tokens after the first and the time in which they arrived; null if the first was not timed. Answers that
 * arrived at once are left out, because they would make the mean too high.
 */
export function generationOf(
  end: Pick<UsageEnd, "completionTokens" | "durationMs" | "firstTokenMs">,
): { tokens: number; ms: number } | null {
  if (end.firstTokenMs === null) return null;
  const ms = Math.max(0, end.durationMs - end.firstTokenMs);
  return { tokens: ms === 0 ? 0 : Math.max(0, end.completionTokens - 1), ms };
}

/** Returns tokens per second; null if there were too few to measure. */
export function tokensPerSecond(tokens: number, ms: number): number | null {
  return tokens > 0 && ms > 0 ? (tokens * 1000) / ms : null;
}

export interface UsageTotals {
  tokens: number;
  nanoUsd: number;
}

/** The totals of a span of time. */
export interface SpanTotals extends UsageTotals {
  requests: number;
  /** Unix seconds of the first request. Undefined without requests. */
  firstAt: number | undefined;
}

/** The owner and the time span of summed usage. */
export interface TotalsOwner {
  type: "key" | "account";
  id: string;
  environment: string;
  /** Unix seconds: from `since`, before `until`. */
  since: number;
  until: number;
  /** Model ids, or prefixes ending in `*`. Undefined: all. */
  models?: readonly string[];
  /** Counts only requests with this tag. */
  tag?: string;
}

export interface Ledger {
  /** `startedMs` is monotonic; the default is now. Throws `service_unavailable` after the ledger was closed. */
  begin(request: UsageBegin, startedMs?: number): LedgerEntry;
  /**
   * Resolves when all settled records are in the database, though not yet in all sums. Rejects if the database cannot
   * be written.
   */
  flush(): Promise<void>;
  /**
   * Reads the usage that an owner settled from `since` and before `until`. Calls `use` at a moment when the totals
   * contain everything that is settled, so that the caller can count later settlements itself. If `since` is within an
   * hour with too many records to read, the totals include earlier usage of that hour; usage is never missing.
   */
  readTotals(owner: TotalsOwner, use: (totals: SpanTotals) => void): Promise<void>;
}

/** A request with several tags is in the row of each; `null` is the row of requests without tags. */
export const usageGroups = ["model", "key", "environment", "app", "tag"] as const;
export type UsageGroup = (typeof usageGroups)[number];

export const usageBuckets = ["hour", "day", "month"] as const;
export type UsageBucket = (typeof usageBuckets)[number];

export interface UsageQuery {
  /** null: all accounts, for the publisher of an app, with `appId`. */
  accountId: string | null;
  environment: Environment;
  keyId?: string;
  /** Restricts to this OAuth app. */
  appId?: string;
  /** Restricts to the activity of this person: sessions, their own keys, and apps that they allowed. */
  personId?: string;
  model?: string;
  /** Restricts to this tag. */
  tag?: string;
  /** Unix seconds: from `start`, before `end`; whole buckets. */
  start: number;
  end: number;
  bucket: UsageBucket;
  groupBy: readonly UsageGroup[];
}

export interface UsageSums {
  requests: number;
  promptTokens: number;
  /** Prompt tokens that were read from a cache, and written to one. */
  cachedTokens: number;
  cacheWriteTokens: number;
  completionTokens: number;
  /** Reasoning tokens of the answers. */
  reasoningTokens: number;
  nanoUsd: number;
  /** Requests to models without a price: they are in all sums except that of money. */
  unpriced: number;
  /** Requests that failed. */
  errors: number;
  /** Answers whose first token was timed: streams of more than one event. The sums below cover only these. */
  timed: number;
  firstTokenMs: number;
  generatedTokens: number;
  generationMs: number;
}

export interface UsageRow extends UsageSums {
  /** `nanoUsd` exactly, even if a double cannot hold it. */
  exactNanoUsd: bigint;
  /** Unix seconds of the bucket. */
  start: number;
  end: number;
  /** Values of the requested groups. */
  groups: Partial<Record<UsageGroup, string | null>>;
}

/** The members that identify a row of a report. */
export type UsagePosition = Pick<UsageRow, "start" | "groups">;

export interface UsageReports {
  /** Returns rows ordered by start and groups, after the row `after`, the last of the previous page. */
  report(query: UsageQuery, page: { after: UsagePosition | undefined; limit: number }): Promise<UsageRow[]>;
}
