// Counts the usage of one admitted request. At the request's end, however it ends, settles the usage once in the
// ledger, limits and quotas.
import type { Clock } from "../base/clock.ts";
import type { MaybePromise } from "../base/deferred.ts";
import type { Granted, Lease } from "../domain/limits/limits.ts";
import type { Price } from "../domain/models/price.ts";
import type { Trail } from "../domain/usage/trail.ts";
import type { Ledger, LedgerEntry, TokenUsage, UsageBegin, UsageEnd, UsageOutcome } from "../domain/usage/usage.ts";
import { partsWithin } from "../domain/usage/usage-parts.ts";
import { AnswerStop } from "./answer-stop.ts";
import { nanoUsdOf, partOfPrice } from "./price.ts";
import { clampUsage, type UsageBounds } from "./usage-bounds.ts";

export interface MeterDeps {
  ledger: Pick<Ledger, "begin">;
  clock: Clock;
}

/** The facts at the end of a request. */
export interface MeterEnd {
  outcome: UsageOutcome;
  usage: TokenUsage;
  errorCode: string | null;
  upstream: string | null;
  queueMs: number;
  trail?: Trail | undefined;
}

const checkpointMs = 1_000;
/** Factor by which an exceeded reservation is increased, so that a long stream seldom has to reserve again. */
const growth = 1.25;

/** The amounts that were settled. */
export interface Settled {
  end: UsageEnd;
  /** Resolves when the usage is stored so that it survives `kill -9`; never rejects. */
  kept: MaybePromise<void>;
}

export class Meter {
  /** Ends the answer when a quota is used up; undefined if no quota may end it. */
  readonly stop: AnswerStop | undefined;
  readonly #clock: Clock;
  readonly #lease: Lease;
  readonly #entry: LedgerEntry;
  readonly #startedMs: number;
  /** Maximum tokens that the request can use. */
  #mostTokens: number;
  /** Monotonic time from which on the next delivered piece writes a checkpoint. */
  #checkpointDueMs = Number.NEGATIVE_INFINITY;
  #firstTokenMs: number | null = null;
  /** Start of the request in Unix seconds. */
  readonly #at: number;
  #price: Price | undefined;
  #bounds: UsageBounds;
  #reservedTokens: number;
  /** The part of the price that is charged for a cached answer; undefined for a new answer. */
  #pricePart: number | undefined;

  /** Throws if the ledger is closed, after releasing the reservation. `price` and `bounds` are those of the model. */
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

  /** Start of the request in monotonic milliseconds. */
  get startedMs(): number {
    return this.#startedMs;
  }

  /**
   * Resolves when the ledger has recorded the request's beginning. If it rejects, `settle` releases the reservation and
   * nothing is recorded.
   */
  get begun(): MaybePromise<void> {
    return this.#entry.begun;
  }

  /** Call if another model than the requested one serves the request: usage is then priced at that model's rates. */
  servedBy(price: Price | undefined, bounds: UsageBounds): void {
    this.#price = price;
    this.#bounds = bounds;
    this.#mostTokens = mostTokens(bounds);
    this.stop?.servedBy(price);
  }

  /** Call for a cached answer. `pricePart`, 0 to 1, is the part of the answer's price that is charged. */
  replays(pricePart: number): void {
    this.#pricePart = pricePart;
  }

  #costOf(usage: TokenUsage): number | null {
    const nanoUsd = nanoUsdOf(usage, this.#price, this.#at);
    return this.#pricePart === undefined || nanoUsd === null ? nanoUsd : partOfPrice(nanoUsd, this.#pricePart);
  }

  /**
   * Reports whether the answer may continue after this usage. Returns a promise if that is not known yet; call again
   * when the promise resolves.
   */
  checkStop(usage: TokenUsage): ReturnType<AnswerStop["check"]> {
    return this.stop?.check(clampUsage(usage, this.#bounds)) ?? "goes_on";
  }

  /** The monotonic time at which `delivered` must be called again, or earlier if the answer exceeds `dueTokens`. */
  get dueMs(): number {
    return this.#checkpointDueMs;
  }

  get dueTokens(): number {
    return this.#reservedTokens;
  }

  /**
   * Reports the delivered part of a stream. `usageSoFar` is called only if needed, and should be the same function each
   * time.
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
    // The reported usage is limited here too, because an engine may err or lie in the middle of a stream.
    const usage = clampUsage(usageSoFar(), this.#bounds);
    const nanoUsd = this.#costOf(usage);
    if (due) {
      this.#checkpointDueMs = now + checkpointMs;
      const { promptTokens, completionTokens, parts } = usage;
      const bounded = parts && { ...usage, parts: partsWithin(parts, promptTokens, completionTokens) };
      this.#entry.progress(bounded ?? usage, nanoUsd);
    }
    if (outgrown) {
      const needed = Math.ceil(Math.max(approximateTokens, totalTokens(usage)) * growth);
      // Reserve more than the request allows only if the delivered tokens exceed that.
      const isPast = approximateTokens >= this.#mostTokens;
      this.#reservedTokens = isPast ? needed : Math.min(this.#mostTokens, needed);
      this.#lease.extend(this.#reservedTokens, Math.ceil((nanoUsd ?? 0) * growth));
    }
  }

  /** Settles the usage, once. */
  settle({ outcome, usage: reported, errorCode, upstream, queueMs, trail }: MeterEnd): Settled {
    const usage = clampUsage(reported, this.#bounds);
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
      // A cached answer does not show how fast a model is.
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
