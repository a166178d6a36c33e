// The limits of a principal's requests, and the port that decides about all of them in one atomic step.
import type { GatewayError } from "../../base/errors.ts";
import type { Period, QuotaWindow } from "./quota-rules.ts";

/**
 * A rate limit: at most `limit` at once, refilled at `limit` per `windowSeconds`: admitted <= limit + limit / window *
 * time.
 */
export interface RateLimit {
  /** The id under which requests are counted together, e.g. `key:key_…` or `account:acct_…:live`. */
  readonly id: string;
  /** The owner that messages name. */
  owner: "key" | "account";
  readonly limit: number;
  readonly windowSeconds: number;
}

/** Amounts per calendar month (UTC), or per window of another kind. */
export interface Quota {
  id: string;
  owner: "key" | "account";
  /** The owner's name in messages, if the owner is a member or an app. */
  called?: "member" | "app" | undefined;
  /** The key or account whose usage of the environment counts. */
  ownerId: string;
  environment: string;
  /** null: no limit, but usage is still counted. */
  readonly tokens: number | null;
  /** Nano-USD (10^-9). */
  readonly nanoUsd: number | null;
  /** null and undefined: no limit of requests. Only quotas with a window limit requests. */
  readonly requests?: number | null;
  /** undefined: the calendar month. */
  readonly window?: QuotaWindow;
  /** The requests that the quota counts. Undefined: all requests of its owner. */
  readonly filter?: QuotaFilter;
  /** The amounts of the quota that end an answer when they are used up. Undefined: none. */
  readonly stops?: StoppingAmounts | undefined;
  /** The entry in which a store counts this quota's id, cached here as in `LimitSet`. */
  counted?: object | undefined;
}

export interface StoppingAmounts {
  readonly tokens: boolean;
  readonly nanoUsd: boolean;
}

/** A filter by model and tag. A request must match each member that is present. */
export interface QuotaFilter {
  /** Model ids, or prefixes ending in `*`. */
  readonly models?: readonly string[];
  readonly tag?: string;
}

export interface LimitSet {
  /**
   * Sets with the same name belong to the same key or account, and the later set is the current one. Undefined: the set
   * is never replaced.
   */
  readonly name?: string | undefined;
  requests: readonly RateLimit[];
  tokens: readonly RateLimit[];
  quotas: readonly Quota[];
  /** Quotas with a window. Undefined: none. */
  windows?: readonly Quota[] | undefined;
  /** The limits without a window, grouped by id, in the order of the quotas. Undefined: computed when needed. */
  readonly groups?: readonly LimitGroup[] | undefined;
  /** The entry in which a store counts this set. Only the store that cached it reads it. */
  counted?: CounterLocation | undefined;
}

export interface CounterLocation {
  /** True if the entry is worth keeping for a new set with the same limits. */
  readonly lasts: boolean;
}

/** The limits that are counted under the same id. */
export interface LimitGroup {
  readonly id: string;
  readonly requests?: RateLimit | undefined;
  readonly tokens?: RateLimit | undefined;
  readonly quota?: Quota | undefined;
}

/** The amount that is reserved for a request until its actual usage is known. */
export interface Reservation {
  tokens: number;
  nanoUsd: number;
  /** The request is refused if less than this is left. If less than `tokens` is left, only the rest is reserved. */
  minTokens: number;
  minNanoUsd: number;
  /** The requested model. Undefined: quotas of certain models do not count the request. */
  model?: string;
  /** The tags of the request. Undefined: quotas of a tag do not count the request. */
  tags?: readonly string[] | undefined;
  /** The request's id in the ledger, for a store that may have to settle the request by its ledger entry. */
  requestId?: string | undefined;
  /**
   * The reservation in quotas that end answers, in place of `tokens`, `nanoUsd` and their minima. Undefined: quotas
   * that end answers work like other quotas.
   */
  stop?: StopReservation | undefined;
}

export interface StopReservation {
  tokens: number;
  nanoUsd: number;
  minTokens: number;
  minNanoUsd: number;
  /** True if the reservation can grow during the answer, so that several answers share the remainder. */
  grows: boolean;
}

/** State of the tightest limit of a kind, for headers. */
export interface LimitState {
  limit: number;
  remaining: number;
  /** Milliseconds until the limit is full again. */
  resetMs: number;
}

/** The states of the tightest limits of requests and of tokens. Undefined: unlimited. */
export interface LimitStatus {
  requests: LimitState | undefined;
  tokens: LimitState | undefined;
}

/** A granted reservation. If its process dies, the reservation ends within 60 s. */
export interface Lease {
  /** Raises the reservation to at least this much. What the buckets cannot cover becomes debt. Never shrinks. */
  extend(tokens: number, nanoUsd: number): void;
  /** Replaces the reservation by the actual usage. Later calls do nothing. */
  settle(tokens: number, nanoUsd: number): void;
}

/** The reservation of one answer in quotas that end answers. It ends with its lease. */
export interface StopLease {
  /** The amount reserved so far. Infinite if no quota of the unit ends the answer. */
  readonly tokens: number;
  readonly nanoUsd: number;
  /** The remainder when the answer began, including its own reservation. Infinite if no quota ends the answer. */
  readonly mostTokens: number;
  readonly mostNanoUsd: number;
  /** The quota with the smallest relative remainder at the last check. */
  readonly tightest: StoppedBy | undefined;
  /**
   * Reserves more, or the remainder if that is less. As less is left, smaller amounts are reserved, because several
   * answers share the remainder. Returns a promise only if another process is asked. Never rejects.
   */
  grow(moreTokens: number, moreNanoUsd: number): void | Promise<void>;
}

/** A quota that ended an answer. */
export interface StoppedBy {
  readonly quota: Quota;
  readonly unit: "tokens" | "nanoUsd";
  /** undefined: the window begins with the first use. */
  readonly period: Period | undefined;
}

export interface Granted {
  readonly lease: Lease;
  /** Undefined if no quota ends the answer. */
  readonly stop?: StopLease | undefined;
  /** Number of tokens that are reserved. */
  readonly reservedTokens: number;
  readonly status: LimitStatus;
}

export type Admission =
  | Granted
  /** `rate_limit_exceeded` or `insufficient_quota`, with message, delay and whether a retry helps. */
  | { refusal: GatewayError; status: LimitStatus };

/** The usage of a quota. */
export interface QuotaUse {
  requests: number;
  tokens: number;
  nanoUsd: number;
}

/** The usage of a quota in its current window, without reservations. */
export interface WindowUse extends QuotaUse {
  /** undefined: a rolling window begins with the next use. */
  period: Period | undefined;
}

export interface LimitStore {
  /**
   * Counts the request against all `limits` or none. Returns a promise only if another process is asked or usage is
   * loaded.
   */
  admit(limits: LimitSet, reservation: Reservation): Admission | Promise<Admission>;
  /** Returns the same figures without counting. */
  peek(limits: LimitSet): LimitStatus | Promise<LimitStatus>;
  /** Returns the usage of a quota's owner this month, without reservations. Loads it if it is unknown. */
  used(quota: Quota): Promise<{ tokens: number; nanoUsd: number }>;
  /** Returns the usage of a quota with a window. */
  usedInWindow(quota: Quota): Promise<WindowUse>;
  /**
   * Makes quotas with a window load their usage from the ledger at their next use. Until then their usage is not
   * counted.
   */
  forgetQuotas(quotas: Iterable<Quota>): void;
}
