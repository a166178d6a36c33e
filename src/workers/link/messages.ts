// The messages between a worker and the primary process.
import { deserialize, serialize } from "bun:jsc";
import { type ErrorCode, GatewayError, type GatewayErrorOptions } from "../../base/errors.ts";
import type { Environment } from "../../domain/api-key.ts";
import type { LimitSet, LimitState, LimitStatus, Reservation, StoppedBy } from "../../domain/limits/limits.ts";
import type { RefusalCount } from "../../domain/limits/refusal.ts";
import type { KeyChain } from "../../domain/principal.ts";
import type { AttemptDelta } from "../../domain/usage/attempt-health.ts";
import type { RefusedRequest } from "../../domain/usage/refused-request.ts";
import type { TotalsOwner } from "../../domain/usage/usage.ts";

/**
 * Messages that a worker sends to the primary process, each name with the types of its values. Each question has a new
 * number.
 */
export interface ToPrimary {
  /** Sent first: the worker's number. */
  hello: [worker: number];
  /** The worker accepts requests. */
  listening: [];
  /** Limits that the worker names by a number from now on. */
  limits: [set: number, limits: LimitSet];
  /** The numbers that the worker no longer uses. */
  forget: [sets: readonly number[]];
  /**
   * Asks for an admission, whose lease gets the number of the question. Answered by an `AdmissionText`. Usually sent as
   * numbers (`figures.ts`).
   */
  admit: [question: number, set: number, ...reservation: ReservationText];
  /** Asks for a `LimitStatus`. */
  peek: [question: number, set: number];
  /** Asks for more of a stop lease. Answered by a `StopText`. */
  grow: [question: number, lease: number, moreTokens: number, moreNanoUsd: number];
  /** Usage of requests that the previous worker had left in its spool. Further such messages may follow. */
  recovered: [requests: readonly (readonly [requestId: string, tokens: number, nanoUsd: number])[]];
  /**
   * The number of requests that ended since the last message, and how many of them failed through no fault of their
   * clients.
   */
  outcomes: [
    counts: readonly (readonly [accountId: string, environment: Environment, requests: number, failed: number])[],
    took: readonly string[],
    /** Attempts since the last message, by upstream and model. */
    attempts: readonly (readonly [upstream: string, model: string, attempts: AttemptDelta])[],
  ];
  /** Asks for a key's chain. Answered by a `KeyChain`, or null. */
  chain: [question: number, digests: readonly string[]];
  /** Asks for the number that each change of a credential increases. */
  revision: [question: number];
  /** Asks for the tiers of the database, as the primary process knows them. */
  tiers: [question: number];
  /** The times when keys were last used, in Unix seconds. Answered without a value once written. */
  touch: [question: number, uses: readonly (readonly [keyId: string, seconds: number])[]];
  refused: [request: RefusedRequest];
  refusal: [refusal: CountedRefusal];
  /** Answers a question of the primary process. */
  answer: [question: number, value: unknown];
}

/** Messages that the primary process sends to a worker. */
export interface ToWorker {
  /** Sent first: everything that the worker needs to serve, packed, and the number of changes that it includes. */
  setup: [setup: string, changes: number];
  /** The models that the worker serves, packed. */
  models: [models: string];
  configure: [config: string];
  /** Tells the worker that its cached credentials and limits are no longer valid. */
  drop: [];
  /** Stops running requests. `ids`: the accounts, people, apps and keys that were suspended lately. */
  suspended: [ids: readonly string[]];
  /** Follows the message of a change, so that the worker counts the change as applied. */
  changed: [];
  /** Asks for an answer without a value, which shows that the worker is alive. */
  confirm: [question: number];
  /** Asks for its metrics. */
  figures: [question: number];
  /** Asks the worker to write everything settled to the database. Answered by whether that succeeded. */
  flush: [question: number];
  /**
   * Asks for an owner's settled usage that is not in the database yet. Answered by `SpanTotals`, or null if unknown.
   * Then the worker writes nothing to the database until `release` arrives, or some seconds have passed.
   */
  hold: [question: number, owner: TotalsOwner];
  release: [question: number];
  /** Tells the worker to continue, but to end each connection with its answer. */
  leave: [];
  /** Refuses requests from now on, with 503. */
  turnAway: [];
  /**
   * Tells the worker to accept no more requests. The worker ends by itself once all are answered, or after `drainMs`.
   */
  stop: [drainMs: number];
  /** Answers a question. */
  answer: [question: number, value: unknown];
  refuse: [question: number, error: ErrorText];
}

/** A refusal by a limit, which must be counted. */
export type CountedRefusal = Omit<RefusalCount, "start" | "requests" | "lastAt" | "keyId" | "model"> & {
  keyId: string;
  model: string;
};

export interface StopText {
  tokens: number | null;
  nanoUsd: number | null;
  mostTokens: number | null;
  mostNanoUsd: number | null;
  /** The quota by its id. */
  tightest: { id: string; unit: StoppedBy["unit"]; period: StoppedBy["period"] } | undefined;
}

/** A reservation as plain values in order. */
export type ReservationText = readonly [
  tokens: number,
  nanoUsd: number,
  minTokens: number,
  minNanoUsd: number,
  model: string | null,
  requestId: string | null,
  tags: readonly string[] | null,
  stop: Reservation["stop"] | null,
];

/** The reserved tokens, then the state of the tightest limits of requests and of tokens; null for no limit. */
export type GrantText = readonly [
  reservedTokens: number,
  ...requests: readonly [limit: number | null, remaining: number | null, resetMs: number | null],
  ...tokens: readonly [limit: number | null, remaining: number | null, resetMs: number | null],
  stop?: StopText,
];

export type AdmissionText = GrantText | { status: LimitStatus; refusal: ErrorText };

export function reservationText(reservation: Reservation): ReservationText {
  const {
    tokens,
    nanoUsd,
    minTokens,
    minNanoUsd,
    model = null,
    requestId = null,
    tags = null,
    stop = null,
  } = reservation;
  return [tokens, nanoUsd, minTokens, minNanoUsd, model, requestId, tags, stop];
}

export function reservationOf([
  tokens,
  nanoUsd,
  minTokens,
  minNanoUsd,
  model,
  requestId,
  tags,
  stop,
]: ReservationText): Reservation {
  const reservation: Reservation = { tokens, nanoUsd, minTokens, minNanoUsd };
  if (model !== null) reservation.model = model;
  if (requestId !== null) reservation.requestId = requestId;
  if (tags !== null) reservation.tags = tags;
  if (stop !== null) reservation.stop = stop;
  return reservation;
}

export function grantText(reservedTokens: number, { requests, tokens }: LimitStatus, stop: StopText): GrantText {
  const states = [
    ...[requests?.limit ?? null, requests?.remaining ?? null, requests?.resetMs ?? null],
    ...[tokens?.limit ?? null, tokens?.remaining ?? null, tokens?.resetMs ?? null],
  ] as const;
  return [reservedTokens, ...states, stop] as GrantText;
}

export function statusOf([
  ,
  limit,
  remaining,
  resetMs,
  tokenLimit,
  tokensRemaining,
  tokensResetMs,
]: GrantText): LimitStatus {
  return {
    requests: stateOf(limit, remaining, resetMs),
    tokens: stateOf(tokenLimit, tokensRemaining, tokensResetMs),
  };
}

function stateOf(limit: number | null, remaining: number | null, resetMs: number | null): LimitState | undefined {
  return limit === null ? undefined : { limit, remaining: remaining ?? 0, resetMs: resetMs ?? 0 };
}

export type ChainText = KeyChain | null;

/** An error in a form that another process can read. */
export interface ErrorText extends Omit<GatewayErrorOptions, "cause"> {
  code: ErrorCode;
  message: string;
}

export function errorText(error: unknown): ErrorText {
  if (!(error instanceof GatewayError))
    return { code: "internal_error", message: "Internal error", detail: String(error) };
  const { code, message, detail, retryAfterSeconds, shouldRetry, engineLimited } = error;
  const { refusal, quota, param, engineCode } = error;
  const options = { detail, retryAfterSeconds, shouldRetry, engineLimited, refusal, quota, param, engineCode };
  return { code, message, ...(options as Omit<GatewayErrorOptions, "cause">) };
}

export function errorOf({ code, message, ...options }: ErrorText): GatewayError {
  return new GatewayError(code, message, options);
}

/** Serializes plain data, including values that JSON lacks, such as infinity and undefined. */
export function packed(value: unknown): string {
  return Buffer.from(serialize(value)).toString("base64");
}

/** Returns the value of a text of `packed`. */
export function unpacked<Value>(text: string): Value {
  return deserialize(Buffer.from(text, "base64")) as Value;
}

/** Returns the number, or null for infinity, which JSON lacks. */
export function finite(amount: number): number | null {
  return amount === Number.POSITIVE_INFINITY ? null : amount;
}

export function amountOf(text: number | null): number {
  return text ?? Number.POSITIVE_INFINITY;
}
