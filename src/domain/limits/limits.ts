// What bounds the requests of a principal, and the port that decides about them in one atomic step.
import type { GatewayError } from "../../base/errors.ts";
import type { Period, QuotaWindow } from "./quota-rules.ts";

/** At most `limit` at once, refilled at `limit` per `windowSeconds`: admitted <= limit + limit / window * time. */
export interface RateLimit {
  /** Names what is counted together, e.g. `key:key_…` or `account:acct_…:live`. */
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
  /** What messages call the owner, where that is not a key or account of its own. */
  called?: "member" | "app" | undefined;
  /** The key or account whose usage of the environment counts. */
  ownerId: string;
  environment: string;
  /** null: no limit; it is counted all the same. */
  readonly tokens: number | null;
  /** Nano-USD (10^-9). */
  readonly nanoUsd: number | null;
  /** null and undefined: no limit. Only of a quota with a window. */
  readonly requests?: number | null;
  /** undefined: the calendar month. */
  readonly window?: QuotaWindow;
  /** Which requests it counts; undefined: all of its owner's. */
  readonly filter?: QuotaFilter;
  /** Which of its amounts end an answer where they are spent; undefined: none does. */
  readonly stops?: StoppingAmounts | undefined;
  /** The place where a store counts it and what has the same id, cached here as in `LimitSet`. */
  counted?: object | undefined;
}

export interface StoppingAmounts {
  readonly tokens: boolean;
  readonly nanoUsd: boolean;
}

/** All that is named has to fit. */
export interface QuotaFilter {
  /** Ids of models, and beginnings of ids with an asterisk. */
  readonly models?: readonly string[];
  readonly tag?: string;
}

export interface LimitSet {
  /** Sets of one name are of the same key or account, of which the later one is as it is now; undefined: nobody made it anew. */
  readonly name?: string | undefined;
  requests: readonly RateLimit[];
  tokens: readonly RateLimit[];
  quotas: readonly Quota[];
  /** Quotas that have a window; undefined where there is none. */
  windows?: readonly Quota[] | undefined;
  /** The same but for what has a window, by id, in the order of the quotas; undefined: whoever needs that finds it out. */
  readonly groups?: readonly LimitGroup[] | undefined;
  /** The place where a store counts it. The store that did so last has cached it here, and alone reads it. */
  counted?: CountedPlace | undefined;
}

export interface CountedPlace {
  /** Whether it is worth keeping for a set that is made anew of the same limits. */
  readonly lasts: boolean;
}

/** All that is counted under one id. */
export interface LimitGroup {
  readonly id: string;
  readonly requests?: RateLimit | undefined;
  readonly tokens?: RateLimit | undefined;
  readonly quota?: Quota | undefined;
}

/** The amount set aside for a request until its actual usage is known. */
export interface Reservation {
  tokens: number;
  nanoUsd: number;
  /**
   * The request is refused with less than this left of a limit or quota; with less than `tokens` only the rest is set
   * aside.
   */
  minTokens: number;
  minNanoUsd: number;
  /** The model that is asked for; undefined: no quota of certain models counts it. */
  model?: string;
  /** What it is counted under; undefined: no quota of a tag counts it. */
  tags?: readonly string[] | undefined;
  /** The request on the ledger, for a store that may have to settle it by what that has of it. */
  requestId?: string | undefined;
  /** What is set aside of quotas that end the answer, in place of the rest; undefined: they are as all others. */
  stop?: StopReservation | undefined;
}

export interface StopReservation {
  tokens: number;
  nanoUsd: number;
  minTokens: number;
  minNanoUsd: number;
  /** Whether more can be set aside as the answer goes on, so that several may share what is left; else this has to do. */
  grows: boolean;
}

/** State of the tightest limit of a kind, for headers. */
export interface LimitState {
  limit: number;
  remaining: number;
  /** Milliseconds until it is whole again. */
  resetMs: number;
}

/** Undefined where unlimited. */
export interface LimitStatus {
  requests: LimitState | undefined;
  tokens: LimitState | undefined;
}

/** A reservation that was granted; at most 60 s outlive a process that dies with it. */
export interface Lease {
  /** The request turns out to need at least this much: what the buckets cannot cover becomes debt. Never shrinks. */
  extend(tokens: number, nanoUsd: number): void;
  /** Replaces the reservation by what was used. Once; later calls do nothing. */
  settle(tokens: number, nanoUsd: number): void;
}

/** What quotas that end answers have for one of them. Its end is that of the lease beside it. */
export interface StopLease {
  /** Set aside so far; infinite where no quota of the unit ends it. */
  readonly tokens: number;
  readonly nanoUsd: number;
  /** What was left of them when it began, this one's included; infinite likewise. */
  readonly mostTokens: number;
  readonly mostNanoUsd: number;
  /** The one of these quotas of which the smallest part was left when it was looked last. */
  readonly tightest: StoppedBy | undefined;
  /**
   * Sets aside so much more, or what is left where that is less; as less is left, the pieces become smaller, as others share
   * it. A promise only where another process is asked; it never rejects.
   */
  grow(moreTokens: number, moreNanoUsd: number): void | Promise<void>;
}

/** A quota that ended an answer. */
export interface StoppedBy {
  readonly quota: Quota;
  readonly unit: "tokens" | "nanoUsd";
  /** undefined: it begins with its first use. */
  readonly period: Period | undefined;
}

export interface Granted {
  readonly lease: Lease;
  /** Undefined where no quota ends the answer. */
  readonly stop?: StopLease | undefined;
  /** Tokens that were set aside. */
  readonly reservedTokens: number;
  readonly status: LimitStatus;
}

export type Admission =
  | Granted
  /** `rate_limit_exceeded` or `insufficient_quota`, with message, delay and whether a retry helps. */
  | { refusal: GatewayError; status: LimitStatus };

/** What was used of a quota. */
export interface QuotaUse {
  requests: number;
  tokens: number;
  nanoUsd: number;
}

/** The same in the window that it is, reservations left out. */
export interface WindowUse extends QuotaUse {
  /** undefined: one that rolls begins with the next use. */
  period: Period | undefined;
}

export interface LimitStore {
  /** Either everything in `limits` is counted, or nothing. A promise only where something has to be asked or loaded first. */
  admit(limits: LimitSet, reservation: Reservation): Admission | Promise<Admission>;
  /** The same figures without counting anything. */
  peek(limits: LimitSet): LimitStatus | Promise<LimitStatus>;
  /** Usage of a quota's owner this month, reservations left out. Loaded where it is not known yet. */
  used(quota: Quota): Promise<{ tokens: number; nanoUsd: number }>;
  /** The same of a quota that has a window. */
  usedInWindow(quota: Quota): Promise<WindowUse>;
  /** Has what was used of quotas with a window read from the ledger at their next use, as it is not counted meanwhile. */
  forgetQuotas(quotas: Iterable<Quota>): void;
}
