// The limits of a principal's requests, and the port that checks all of them in one atomic step.
import type { GatewayError } from "../../base/errors.ts";
import type { Period, QuotaWindow } from "./quota-rules.ts";

/**
 * A rate limit. Up to `limit` can be used at once, and `limit` per `windowSeconds` is refilled: admitted <= limit +
 * limit / window * time.
 */
export interface RateLimit {
  /** The id under which requests are counted together, e.g. `key:key_…` or `account:acct_…:live`. */
  readonly id: string;
  /** The owner of the limit, for error messages. */
  owner: "key" | "account";
  readonly limit: number;
  readonly windowSeconds: number;
}

/** Maximum usage in each calendar month (UTC), or in each window of another kind. */
export interface Quota {
  id: string;
  owner: "key" | "account" | "organization";
  /** Used in place of `owner` in error messages, if the owner is a member or an app, or one end user of an account. */
  called?: "member" | "app" | "end_user" | undefined;
  /** The key, account or organization whose usage counts, in `environment` only. */
  ownerId: string;
  environment: string;
  /** Maximum tokens. Null means no limit, but the usage is still counted. */
  readonly tokens: number | null;
  /** Nano-USD (10^-9). */
  readonly nanoUsd: number | null;
  /** Maximum requests. Null or undefined means no limit. Only quotas with a window limit requests. */
  readonly requests?: number | null;
  /** The window of the quota. Undefined means the calendar month. */
  readonly window?: QuotaWindow;
  /** The requests that the quota counts. Undefined means all requests of the owner. */
  readonly filter?: QuotaFilter;
  /** The amounts that end a running answer when they are used up. Undefined means none. */
  readonly stops?: StoppingAmounts | undefined;
  /**
   * A number that changes whenever the set of accounts whose usage counts changes. Undefined if the set never changes.
   */
  readonly membersRevision?: number | undefined;
  /** The limit store's counter of this quota, cached here. Only the store uses it. */
  counted?: object | undefined;
}

export interface StoppingAmounts {
  readonly tokens: boolean;
  readonly nanoUsd: boolean;
}

/** A filter by model and tag. A request must match each condition that is present. */
export interface QuotaFilter {
  /** Model ids, or prefixes ending in `*`. */
  readonly models?: readonly string[];
  readonly tag?: string;
}

export interface LimitSet {
  /**
   * The name of the key or account that the set belongs to. A later set with the same name replaces an earlier one.
   * Undefined means that the set is never replaced.
   */
  readonly name?: string | undefined;
  requests: readonly RateLimit[];
  tokens: readonly RateLimit[];
  quotas: readonly Quota[];
  /** The quotas with a window. Undefined means none. */
  windows?: readonly Quota[] | undefined;
  /**
   * The limits without a window, grouped by id in the order of the quotas. If undefined, the store computes the groups.
   */
  readonly groups?: readonly LimitGroup[] | undefined;
  /** The limit store's counter of this set, cached here. Only the store that cached the counter uses it. */
  counted?: CounterLocation | undefined;
}

export interface CounterLocation {
  /** True if the counter should be kept and reused when the same limits are built again. */
  readonly lasts: boolean;
}

/** The limits that are counted under the same id. */
export interface LimitGroup {
  readonly id: string;
  readonly requests?: RateLimit | undefined;
  readonly tokens?: RateLimit | undefined;
  readonly quota?: Quota | undefined;
}

/** The amount to reserve for a request until its actual usage is known. */
export interface Reservation {
  tokens: number;
  nanoUsd: number;
  /**
   * If less than this is left, the request is refused. If at least this but less than `tokens` is left, all of it is
   * reserved.
   */
  minTokens: number;
  minNanoUsd: number;
  /** The requested model. If undefined, quotas of certain models do not count the request. */
  model?: string;
  /** The request's tags. If undefined, quotas of a tag do not count the request. */
  tags?: readonly string[] | undefined;
  /** The request's id in the ledger. A store may need it to settle the request by its ledger entry. */
  requestId?: string | undefined;
  /**
   * The reservation in quotas that can end a running answer. It replaces `tokens`, `nanoUsd` and their minima there. If
   * undefined, such quotas work like other quotas.
   */
  stop?: StopReservation | undefined;
}

export interface StopReservation {
  tokens: number;
  nanoUsd: number;
  minTokens: number;
  minNanoUsd: number;
  /** True if the reservation can grow during the answer. Several answers can then share what is left. */
  grows: boolean;
}

/** The state of the tightest request limit or token limit, for response headers. */
export interface LimitState {
  limit: number;
  remaining: number;
  /** Milliseconds until the limit is full again. */
  resetMs: number;
}

/** The states of the tightest request limit and the tightest token limit. Undefined means unlimited. */
export interface LimitStatus {
  requests: LimitState | undefined;
  tokens: LimitState | undefined;
}

/** A granted reservation. If its process dies, the reservation ends within 60 s. */
export interface Lease {
  /**
   * Raises the reservation to at least these amounts. An amount that a rate limit cannot cover becomes debt. Never
   * lowers the reservation.
   */
  extend(tokens: number, nanoUsd: number): void;
  /** Replaces the reservation by the actual usage. Later calls have no effect. */
  settle(tokens: number, nanoUsd: number): void;
}

/**
 * The reservation of one answer in the quotas that can end this answer. The reservation ends with the answer's lease.
 */
export interface StopLease {
  /** The amount reserved so far. Infinite if no quota of this unit can end the answer. */
  readonly tokens: number;
  readonly nanoUsd: number;
  /**
   * The amount that remained when the answer began, including the answer's own reservation. Infinite if no quota can
   * end the answer.
   */
  readonly mostTokens: number;
  readonly mostNanoUsd: number;
  /** The quota with the smallest part left at the last check. */
  readonly tightest: StoppedBy | undefined;
  /**
   * Reserves more, or all that is left. When little is left, smaller amounts are reserved, because several answers
   * share the quota. Returns a promise only if another process must be asked. Never rejects.
   */
  grow(moreTokens: number, moreNanoUsd: number): void | Promise<void>;
}

/** A quota that ended an answer. */
export interface StoppedBy {
  readonly quota: Quota;
  readonly unit: "tokens" | "nanoUsd";
  /** The window of the quota. Undefined if the window begins with the first use. */
  readonly period: Period | undefined;
}

export interface Granted {
  readonly lease: Lease;
  /** Undefined if no quota can end the answer. */
  readonly stop?: StopLease | undefined;
  /** Number of tokens that are reserved. */
  readonly reservedTokens: number;
  readonly status: LimitStatus;
}

export type Admission =
  | Granted
  /**
   * The error is `rate_limit_exceeded` or `insufficient_quota`. It has a message, a delay, and whether a retry helps.
   */
  | { refusal: GatewayError; status: LimitStatus };

/** The usage of a quota. */
export interface QuotaUse {
  requests: number;
  tokens: number;
  nanoUsd: number;
}

/** The usage of a quota in its current window. Reservations are not included. */
export interface WindowUse extends QuotaUse {
  /** The current window. Undefined if a rolling window begins with the next use. */
  period: Period | undefined;
}

export interface LimitStore {
  /**
   * Counts the request against all `limits`, or refuses it and counts nothing. Returns a promise only if another
   * process must be asked or usage must be loaded.
   */
  admit(limits: LimitSet, reservation: Reservation): Admission | Promise<Admission>;
  /** Returns the states of the limits without counting a request. */
  peek(limits: LimitSet): LimitStatus | Promise<LimitStatus>;
  /** Returns this month's usage of the quota's owner, without reservations. Loads the usage if it is not in memory. */
  used(quota: Quota): Promise<{ tokens: number; nanoUsd: number }>;
  /** Returns the usage of a quota with a window, without reservations. */
  usedInWindow(quota: Quota): Promise<WindowUse>;
  /** Discards the usage of quotas. At the next use of a quota, its usage is loaded from the ledger. */
  forgetQuotas(quotas: Iterable<Quota>): void;
}
