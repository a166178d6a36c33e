// The consumption of one inference request, and the ledger that no death of the process makes lose or double it.

import type { MaybePromise } from "../../base/deferred.ts";
import type { Environment } from "../api-key.ts";
import type { BookedOperation } from "../models/operation.ts";
import type { Trail } from "./trail.ts";
import type { UsageParts } from "./usage-parts.ts";

export interface TokenUsage {
  promptTokens: number;
  completionTokens: number;
  /** True where the engine did not report, or was not believed, and figures come from the length of the text. */
  estimated: boolean;
  /** True where it reported fewer tokens than it delivered, or was sent. */
  understated?: boolean;
  /** True where it reported more tokens than the delivered text can have. */
  overstated?: boolean;
  /** True where the delivered text proves more tokens than the request, or the context of its model, allows. */
  pastLimit?: boolean;
  /** Undefined where the engine told of none. */
  parts?: UsageParts | undefined;
}

export const usageOutcomes = ["completed", "failed", "cancelled", "interrupted"] as const;
/** How a request ended: served whole, failed, left by the client, or cut off by the end of the server's process. */
export type UsageOutcome = (typeof usageOutcomes)[number];

/** Facts of a request before it is sent to an engine. */
/** In place of an app's id: what the gateway asked for itself, which no quota counts. */
export const ownAppId = "gateway";

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
  /** What it is counted under beside all this, each once; undefined: nothing. */
  tags?: readonly string[] | undefined;
}

/** Facts of a request at its end. */
export interface UsageEnd extends TokenUsage {
  outcome: UsageOutcome;
  /** Code of the error that ended it. */
  errorCode: string | null;
  /** Nano-USD (10^-9), whole; null where the model has no price. */
  nanoUsd: number | null;
  /** The engine reported more than the request can have used, or less, and was not believed. */
  capped: boolean;
  /** Name of the engine that answered; null where none did. */
  upstream: string | null;
  durationMs: number;
  /** Milliseconds from the start to the first byte of the answer's content, and those spent waiting for capacity. */
  firstTokenMs: number | null;
  queueMs: number;
  /** Missing where the first model server that was asked answered, or none was asked: then the rest says all. */
  trail?: Trail | undefined;
}

export interface UsageRecord extends UsageBegin, UsageEnd {}

export interface LedgerEntry {
  /**
   * Resolves when the request survives `kill -9`: were nothing else to come, the next start settles it at its last
   * checkpoint. Rejects with `service_unavailable` where that cannot be promised (disk full); the entry is void then.
   * Nothing may be sent to an engine before it resolves. All requests of one turn of the event loop share one write; one
   * that runs alone has no one to wait for.
   */
  readonly begun: MaybePromise<void>;
  /** A checkpoint of what was delivered so far; the caller sends at most one a second. */
  progress(usage: TokenUsage, nanoUsd: number | null): void;
  /**
   * Once; later calls do nothing. Resolves when the figure survives `kill -9`, or cannot be made to for now (the
   * database gets it from memory); never rejects. The client gets the end of its answer after that.
   */
  settle(end: UsageEnd): MaybePromise<void>;
}

/**
 * Tokens after the first one, and the time in which they came; null where the first was not timed. What came all at once
 * tells nothing of the speed, and would make any mean of it too high.
 */
export function generationOf(
  end: Pick<UsageEnd, "completionTokens" | "durationMs" | "firstTokenMs">,
): { tokens: number; ms: number } | null {
  if (end.firstTokenMs === null) return null;
  const ms = Math.max(0, end.durationMs - end.firstTokenMs);
  return { tokens: ms === 0 ? 0 : Math.max(0, end.completionTokens - 1), ms };
}

/** Tokens per second; null where too little came to tell. */
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
  /** Unix seconds of the first request; undefined where there was none. */
  firstAt: number | undefined;
}

/** Whose usage is summed up, and from when to when. */
export interface TotalsOwner {
  type: "key" | "account";
  id: string;
  environment: string;
  /** Unix seconds: from `since`, before `until`. */
  since: number;
  until: number;
  /** Ids of models, and beginnings of ids with an asterisk; undefined: all. */
  models?: readonly string[];
  /** Only requests that have this tag. */
  tag?: string;
}

export interface Ledger {
  /** `startedMs`: by the monotonic clock; now where it is missing. Throws `service_unavailable` when it is closed. */
  begin(request: UsageBegin, startedMs?: number): LedgerEntry;
  /**
   * Resolves when the records of everything settled so far are in the database; what adds them up may lack some of it.
   * Rejects when the database cannot be written.
   */
  flush(): Promise<void>;
  /**
   * All that an owner settled from `since` and before `until`: `use` is called at a moment when no settlement lies between
   * what it is given and what comes after. Where `since` is within an hour, some of that hour's usage from before it may be
   * among it, where it was too much to be read one by one; never is anything missing.
   */
  readTotals(owner: TotalsOwner, use: (totals: SpanTotals) => void): Promise<void>;
}

/** A request that has several tags is in the row of each; `null` is the row of those that have none. */
export const usageGroups = ["model", "key", "environment", "app", "tag"] as const;
export type UsageGroup = (typeof usageGroups)[number];

export const usageBuckets = ["hour", "day", "month"] as const;
export type UsageBucket = (typeof usageBuckets)[number];

export interface UsageQuery {
  /** null: of all accounts, which is for the publisher of an app, with `appId`. */
  accountId: string | null;
  environment: Environment;
  keyId?: string;
  /** Only what this OAuth app used. */
  appId?: string;
  /** Only what this person did: signed in, with keys of their own, and through apps that they allowed. */
  personId?: string;
  model?: string;
  /** Only what has this tag. */
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
  /** Tokens of the prompts that were read from a cache, and written to one. */
  cachedTokens: number;
  cacheWriteTokens: number;
  completionTokens: number;
  /** Tokens of the answers that models thought. */
  reasoningTokens: number;
  nanoUsd: number;
  /** Requests whose model had no price: they are in all sums but that of money. */
  unpriced: number;
  /** Requests that failed. */
  errors: number;
  /** Answers whose first token was timed: those that were streamed, in more than one piece. The sums below are theirs. */
  timed: number;
  firstTokenMs: number;
  generatedTokens: number;
  generationMs: number;
}

export interface UsageRow extends UsageSums {
  /** `nanoUsd` to the last digit, also where a double has fewer. */
  exactNanoUsd: bigint;
  /** Unix seconds of the bucket. */
  start: number;
  end: number;
  /** Values of the groups that were asked for. */
  groups: Partial<Record<UsageGroup, string | null>>;
}

/** The members that tell a row from the others of a report. */
export type UsagePosition = Pick<UsageRow, "start" | "groups">;

export interface UsageReports {
  /** Rows in the order of start, then of the groups; those after `after`, which is the last row of the page before. */
  report(query: UsageQuery, page: { after: UsagePosition | undefined; limit: number }): Promise<UsageRow[]>;
}
