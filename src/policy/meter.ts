// Follows what one admitted request consumes, and accounts for it once, however it ends: ledger, limits, quotas.
import type { Clock } from "../base/clock.ts";
import type { MaybePromise } from "../base/deferred.ts";
import type { Granted, Lease } from "../domain/limits/limits.ts";
import type { Price } from "../domain/models/price.ts";
import type { Trail } from "../domain/usage/trail.ts";
import type { Ledger, LedgerEntry, TokenUsage, UsageBegin, UsageEnd, UsageOutcome } from "../domain/usage/usage.ts";
import { partsWithin } from "../domain/usage/usage-parts.ts";
import { AnswerStop } from "./answer-stop.ts";
import { believable, type UsageBounds } from "./believable-usage.ts";
import { nanoUsdOf, partOfPrice } from "./price.ts";

export interface MeterDeps {
  ledger: Pick<Ledger, "begin">;
  clock: Clock;
}

/** What else is known at the end. */
export interface MeterEnd {
  outcome: UsageOutcome;
  usage: TokenUsage;
  errorCode: string | null;
  upstream: string | null;
  queueMs: number;
  trail?: Trail | undefined;
}

const checkpointMs = 1_000;
/** A reservation that was outgrown is extended by a quarter more, so that a long stream seldom has to. */
const growth = 1.25;

/** What was booked at the end. */
export interface Settled {
  end: UsageEnd;
  /** Resolves when the figure survives `kill -9`, as in `LedgerEntry.settle`; never rejects. */
  kept: MaybePromise<void>;
}

export class Meter {
  /** Undefined where no quota ends the answer. */
  readonly stop: AnswerStop | undefined;
  readonly #clock: Clock;
  readonly #lease: Lease;
  readonly #entry: LedgerEntry;
  readonly #startedMs: number;
  /** Tokens that the request can use at most. */
  #mostTokens: number;
  /** The next piece after this moment is a checkpoint. */
  #checkpointDueMs = Number.NEGATIVE_INFINITY;
  #firstTokenMs: number | null = null;
  /** Unix seconds of its begin. */
  readonly #at: number;
  #price: Price | undefined;
  #bounds: UsageBounds;
  #reservedTokens: number;
  /** The part of its price that is charged for an answer which is given again; undefined: it is a new one. */
  #pricePart: number | undefined;

  /** Throws, with the reservation given back, where the ledger is closed. `price`, `bounds`: as the model has them. */
  constructor(
    { ledger, clock }: MeterDeps,
    { lease, reservedTokens, stop }: Pick<Granted, "lease" | "reservedTokens" | "stop">,
    begin: UsageBegin,
    price: Price | undefined,
    bounds: UsageBounds,
  ) {
    this.#clock = clock;
    this.#lease = lease;
    this.#reservedTokens = reservedTokens;
    this.#at = begin.at;
    this.#price = price;
    this.#bounds = bounds;
    this.#mostTokens = mostTokens(bounds);
    this.stop = stop && new AnswerStop(stop, price, begin.at);
    this.#startedMs = clock.monotonicMs();
    try {
      this.#entry = ledger.begin(begin, this.#startedMs);
    } catch (error) {
      lease.settle(0, 0);
      throw error;
    }
  }

  /** Monotonic milliseconds. */
  get startedMs(): number {
    return this.#startedMs;
  }

  /** The same as `LedgerEntry.begun`. Where it rejects, `settle` gives the reservation back, and nothing is booked. */
  get begun(): MaybePromise<void> {
    return this.#entry.begun;
  }

  /** Another model serves the request than the one that was asked for: what it uses is priced as that one's. */
  servedBy(price: Price | undefined, bounds: UsageBounds): void {
    this.#price = price;
    this.#bounds = bounds;
    this.#mostTokens = mostTokens(bounds);
    this.stop?.servedBy(price);
  }

  /** The answer is one that was kept: a part of what it would cost is charged, 0 to 1. */
  replays(pricePart: number): void {
    this.#pricePart = pricePart;
  }

  #costOf(usage: TokenUsage): number | null {
    const nanoUsd = nanoUsdOf(usage, this.#price, this.#at);
    return this.#pricePart === undefined || nanoUsd === null ? nanoUsd : partOfPrice(nanoUsd, this.#pricePart);
  }

  /** See `AnswerStop.look`; only where there is a stop. */
  checkStop(usage: TokenUsage): ReturnType<AnswerStop["check"]> {
    return this.stop?.check(believable(usage, this.#bounds)) ?? "goes_on";
  }

  /** When `delivered` is to be called again: monotonic milliseconds from which on, and the tokens beyond which. */
  get dueMs(): number {
    return this.#checkpointDueMs;
  }

  get dueTokens(): number {
    return this.#reservedTokens;
  }

  /**
   * What was delivered so far. Called for pieces of a stream: `usageSoFar` is asked only when it is needed, and should be
   * the same function each time.
   */
  delivered(approximateTokens: number, usageSoFar: () => TokenUsage): void {
    const now = this.#clock.monotonicMs();
    if (now < this.#checkpointDueMs && approximateTokens <= this.#reservedTokens) return;
    this.#deliveredMore(now, approximateTokens, usageSoFar);
  }

  #deliveredMore(now: number, approximateTokens: number, usageSoFar: () => TokenUsage): void {
    this.#firstTokenMs ??= now - this.#startedMs;
    const outgrown = approximateTokens > this.#reservedTokens;
    const due = now >= this.#checkpointDueMs;
    if (!outgrown && !due) return;
    // An engine may err or lie in the middle of a stream as well as at its end.
    const usage = believable(usageSoFar(), this.#bounds);
    const nanoUsd = this.#costOf(usage);
    if (due) {
      this.#checkpointDueMs = now + checkpointMs;
      const { promptTokens, completionTokens, parts } = usage;
      const bounded = parts && { ...usage, parts: partsWithin(parts, promptTokens, completionTokens) };
      this.#entry.progress(bounded ?? usage, nanoUsd);
    }
    if (outgrown) {
      const needed = Math.ceil(Math.max(approximateTokens, totalTokens(usage)) * growth);
      // Beyond what the request allows, only what was delivered counts.
      const isPast = approximateTokens >= this.#mostTokens;
      this.#reservedTokens = isPast ? needed : Math.min(this.#mostTokens, needed);
      this.#lease.extend(this.#reservedTokens, Math.ceil((nanoUsd ?? 0) * growth));
    }
  }

  /** Books what was used, once. */
  settle({ outcome, usage: reported, errorCode, upstream, queueMs, trail }: MeterEnd): Settled {
    const usage = believable(reported, this.#bounds);
    const nanoUsd = this.#costOf(usage);
    this.#lease.settle(totalTokens(usage), nanoUsd ?? 0);
    const end: UsageEnd = {
      promptTokens: usage.promptTokens,
      completionTokens: usage.completionTokens,
      parts: usage.parts && partsWithin(usage.parts, usage.promptTokens, usage.completionTokens),
      estimated: usage.estimated,
      outcome,
      errorCode,
      nanoUsd,
      capped: usage !== reported || reported.understated === true || reported.overstated === true,
      upstream,
      durationMs: this.#clock.monotonicMs() - this.#startedMs,
      // What is given again says nothing of how fast a model is.
      firstTokenMs: this.#pricePart === undefined ? this.#firstTokenMs : null,
      queueMs,
      trail,
    };
    return { end, kept: this.#entry.settle(end) };
  }
}

function mostTokens({ promptTokens, completionTokens }: UsageBounds): number {
  return promptTokens + completionTokens;
}

function totalTokens(usage: TokenUsage): number {
  return usage.promptTokens + usage.completionTokens;
}
