// Types for the usage of one inference request, and for the ledger that counts each request once, even after a crash.

import type { MaybePromise } from "../../base/deferred.ts";
import type { Environment } from "../api-key.ts";
import type { BookedOperation } from "../models/operation.ts";
import type { TimeCounts } from "./time-counts.ts";
import type { Trail } from "./trail.ts";
import type { UsageParts } from "./usage-parts.ts";

export interface TokenUsage {
  promptTokens: number;
  completionTokens: number;
  /** True if the figures are estimated from the text, because the engine's report is missing or was not accepted. */
  estimated: boolean;
  /**
   * True if the engine reported fewer tokens than the prompt or the delivered text must have. Cached answers and
   * batches store this name, so do not change it.
   */
  understated?: boolean;
  /** True if the engine reported more tokens than the delivered text can have. */
  overstated?: boolean;
  /** True if the delivered text must have more tokens than the request, or the model's context, allows. */
  pastLimit?: boolean;
  /** Cached and other tokens that have their own rates. Undefined if the engine reported none. */
  parts?: UsageParts | undefined;
}

export const usageOutcomes = ["completed", "failed", "cancelled", "interrupted"] as const;
/** The outcome of a request. `interrupted` means that the server process ended first. */
export type UsageOutcome = (typeof usageOutcomes)[number];

/** The app id of requests that the gateway itself makes, which no quota counts. */
export const ownAppId = "gateway";

/** Facts of a request, known before it is sent to an engine. */
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

/** Facts of a request, known at its end. */
export interface UsageEnd extends TokenUsage {
  outcome: UsageOutcome;
  /** Code of the error that ended the request. */
  errorCode: string | null;
  /** Cost in nano-USD (10^-9), a whole number. Null for a model without a price. */
  nanoUsd: number | null;
  /** True if the token counts that the engine reported were impossible and were replaced. */
  capped: boolean;
  /** Name of the engine that answered; null if none did. */
  upstream: string | null;
  durationMs: number;
  /** Milliseconds from the start to the first content byte. `queueMs` is the part spent waiting for capacity. */
  firstTokenMs: number | null;
  queueMs: number;
  /** The attempt log. Undefined if the first model server answered, or if none was asked. */
  trail?: Trail | undefined;
}

export interface UsageRecord extends UsageBegin, UsageEnd {}

export interface LedgerEntry {
  /**
   * Resolves once the request is stored durably, so that a restart after a crash settles it at its last
   * checkpoint. Rejects with `service_unavailable` if it cannot be stored, for example on a full disk; the
   * entry is then void. Send the request to an engine only after this has resolved.
   */
  readonly begun: MaybePromise<void>;
  /** Records a checkpoint of the delivered usage. The caller sends at most one a second. */
  progress(usage: TokenUsage, nanoUsd: number | null): void;
  /**
   * Settles the request once; later calls do nothing. Resolves once the usage is stored durably, or is queued in
   * memory if the disk fails. Never rejects. Wait for it before you end the client's answer.
   */
  settle(end: UsageEnd): MaybePromise<void>;
}

/**
 * Returns the number of tokens after the first and the milliseconds in which they arrived. Returns null if the
 * first token was not timed, and no tokens if all arrived at once.
 */
export function generationOf(
  end: Pick<UsageEnd, "completionTokens" | "durationMs" | "firstTokenMs">,
): { tokens: number; ms: number } | null {
  if (end.firstTokenMs === null) return null;
  const ms = Math.max(0, end.durationMs - end.firstTokenMs);
  return { tokens: ms === 0 ? 0 : Math.max(0, end.completionTokens - 1), ms };
}

/** Returns tokens per second, or null without tokens or without elapsed time. */
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
  /** Unix seconds of the first request. Undefined if there was no request. */
  firstAt: number | undefined;
}

/** The party whose usage is summed, and for which time span. */
export interface TotalsOwner {
  type: "key" | "account" | "organization";
  id: string;
  environment: string;
  /** Start of the time span in Unix seconds. `until` is its end, which is excluded. */
  since: number;
  until: number;
  /** Model ids, or prefixes ending in `*`. Undefined: all. */
  models?: readonly string[];
  /** Counts only requests with this tag. */
  tag?: string;
}

export interface Ledger {
  /**
   * Opens the entry of a request. `startedMs` is a monotonic time, by default now. Throws `service_unavailable`
   * if the ledger is closed.
   */
  begin(request: UsageBegin, startedMs?: number): LedgerEntry;
  /**
   * Resolves once all settled records are in the database, though perhaps not yet in the sums. Rejects if
   * the database cannot be written.
   */
  flush(): Promise<void>;
  /**
   * Reads the usage of an owner in a time span. Calls `use` when the totals contain every settled
   * request, so that the caller can add later ones. If too many records lie in the hour of `since`, the totals
   * include that whole hour.
   */
  readTotals(owner: TotalsOwner, use: (totals: SpanTotals) => void): Promise<void>;
}

/**
 * The columns to group a usage report by. A request with several tags counts in the row of each tag. Requests without
 * tags have a row with the tag null.
 */
export const usageGroups = ["model", "key", "environment", "app", "tag"] as const;
/** All groups that operators may use. A deployment is a model at a model server. */
export const operatorGroups = [
  ...usageGroups,
  ...(["account", "organization", "person", "upstream", "deployment", "outcome"] as const),
] as const;
export type UsageGroup = (typeof operatorGroups)[number];

export const usageBuckets = ["hour", "day", "month"] as const;
/** Only operators get sums by minute, which are read from the requests. */
export const operatorBuckets = ["minute", ...usageBuckets] as const;
export type UsageBucket = (typeof operatorBuckets)[number];

export interface UsageQuery {
  /** The account to report. Null for all accounts: an operator asks, or a publisher asks about the app `appId`. */
  accountId: string | null;
  /** Restricts to the accounts that belong to this organization now. */
  organizationId?: string;
  environment: Environment;
  keyId?: string;
  /** Restricts to this OAuth app. */
  appId?: string;
  /** Restricts to the activity of this person: sessions, their own keys, and apps that they allowed. */
  personId?: string;
  model?: string;
  /** Restricts to this tag. */
  tag?: string;
  /** Restricts to the requests that this model server answered. */
  upstream?: string;
  outcome?: UsageOutcome;
  /** Start in Unix seconds; `end` is excluded. Both must be bucket boundaries. */
  start: number;
  end: number;
  bucket: UsageBucket;
  groupBy: readonly UsageGroup[];
}

export interface UsageSums {
  requests: number;
  promptTokens: number;
  /** Prompt tokens that were read from a cache; `cacheWriteTokens` were written to a cache. */
  cachedTokens: number;
  cacheWriteTokens: number;
  completionTokens: number;
  /** Reasoning tokens of the answers. */
  reasoningTokens: number;
  nanoUsd: number;
  /** The number of requests to models without a price. They count in every sum except `nanoUsd`. */
  unpriced: number;
  /** Requests that failed. */
  errors: number;
  /** The number of streams with more than one event. The sums below cover only these streams. */
  timed: number;
  firstTokenMs: number;
  generatedTokens: number;
  generationMs: number;
  /**
   * The counts of answers by time. Undefined if no counts are stored for the groups, the filters or the time of the
   * report.
   */
  times?: TimeCounts | undefined;
}

export interface UsageRow extends UsageSums {
  /** `nanoUsd` as an exact integer, because a double may round it. */
  exactNanoUsd: bigint;
  /** Start of the bucket in Unix seconds. */
  start: number;
  end: number;
  /** The value of each column that the report is grouped by. */
  groups: Partial<Record<UsageGroup, string | null>>;
}

/** The members that identify a row of a report, for paging. */
export type UsagePosition = Pick<UsageRow, "start" | "groups">;

export interface UsageReports {
  /** Returns rows ordered by start and groups. `after` is the last row of the previous page. */
  report(query: UsageQuery, page: { after: UsagePosition | undefined; limit: number }): Promise<UsageRow[]>;
}
