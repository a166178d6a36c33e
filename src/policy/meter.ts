// Follows what one admitted request consumes, and accounts for it once, however it ends: ledger, limits, quotas.
import type { Clock } from "../domain/clock.ts";
import type { Lease } from "../domain/limits.ts";
import type { Price } from "../domain/model.ts";
import type { Ledger, LedgerEntry, TokenUsage, UsageBegin, UsageEnd, UsageOutcome } from "../domain/usage.ts";
import { believable, type UsageBounds } from "./believable-usage.ts";
import { nanoUsdOf } from "./price.ts";

export interface MeterOptions {
  ledger: Ledger;
  clock: Clock;
  lease: Lease;
  /** Tokens that were set aside. */
  reservedTokens: number;
  begin: UsageBegin;
  price: Price | undefined;
  bounds: UsageBounds;
}

/** What else is known at the end. */
export interface MeterEnd {
  outcome: UsageOutcome;
  usage: TokenUsage;
  errorCode: string | null;
  upstream: string | null;
  queueMs: number;
}

const checkpointMs = 1_000;
/** A reservation that was outgrown is extended by a quarter more, so that a long stream seldom has to. */
const growth = 1.25;

export class Meter {
  readonly #options: MeterOptions;
  readonly #entry: LedgerEntry;
  readonly #startedMs: number;
  #checkpointAtMs = Number.NEGATIVE_INFINITY;
  #firstTokenMs: number | null = null;
  #reservedTokens: number;

  /** Throws, with the reservation given back, where the ledger cannot take the request. */
  constructor(options: MeterOptions) {
    this.#options = options;
    this.#reservedTokens = options.reservedTokens;
    this.#startedMs = options.clock.monotonicMs();
    try {
      this.#entry = options.ledger.begin(options.begin);
    } catch (error) {
      options.lease.settle(0, 0);
      throw error;
    }
  }

  /** What was delivered so far; called for every piece of a stream, so `usageSoFar` is asked only when it is needed. */
  delivered(approximateTokens: number, usageSoFar: () => TokenUsage): void {
    const now = this.#options.clock.monotonicMs();
    this.#firstTokenMs ??= now - this.#startedMs;
    const { bounds } = this.#options;
    const needed = Math.min(approximateTokens, bounds.promptTokens + bounds.completionTokens);
    const outgrown = needed > this.#reservedTokens;
    if (!outgrown && now - this.#checkpointAtMs < checkpointMs) return;
    // An engine may err or lie in the middle of a stream as well as at its end.
    const { usage } = believable(usageSoFar(), bounds);
    const nanoUsd = nanoUsdOf(usage, this.#options.price);
    if (now - this.#checkpointAtMs >= checkpointMs) {
      this.#checkpointAtMs = now;
      this.#entry.progress(usage, nanoUsd);
    }
    if (outgrown) {
      const most = bounds.promptTokens + bounds.completionTokens;
      this.#reservedTokens = Math.min(most, Math.ceil(Math.max(needed, totalTokens(usage)) * growth));
      this.#options.lease.extend(this.#reservedTokens, Math.ceil((nanoUsd ?? 0) * growth));
    }
  }

  /** Gives the usage that was booked. When it returns, the figure survives `kill -9`. */
  settle({ outcome, usage: reported, errorCode, upstream, queueMs }: MeterEnd): TokenUsage {
    const { clock, lease, price, bounds } = this.#options;
    const { usage, capped } = believable(reported, bounds);
    const nanoUsd = nanoUsdOf(usage, price);
    lease.settle(totalTokens(usage), nanoUsd ?? 0);
    const end: UsageEnd = {
      promptTokens: usage.promptTokens,
      completionTokens: usage.completionTokens,
      estimated: usage.estimated,
      outcome,
      errorCode,
      nanoUsd,
      capped,
      upstream,
      durationMs: clock.monotonicMs() - this.#startedMs,
      firstTokenMs: this.#firstTokenMs,
      queueMs,
    };
    this.#entry.settle(end);
    return usage;
  }
}

function totalTokens(usage: TokenUsage): number {
  return usage.promptTokens + usage.completionTokens;
}
