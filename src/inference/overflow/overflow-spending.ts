// Reserves money before a request goes to an overflow deployment, and later corrects the reservation to the actual
// cost. So no spending cap is exceeded.
import type { Clock } from "../../base/clock.ts";
import type { Log } from "../../base/log.ts";
import { calendarPeriod, windowOf } from "../../domain/limits/quota-rules.ts";
import {
  type OverflowSpend,
  type OverflowSpendStore,
  type SpendChange,
  type SpendPeriod,
  SpendUnchanged,
} from "../../domain/models/policies/overflow.ts";

export interface OverflowSpendingOptions {
  store: OverflowSpendStore;
  clock: Clock;
  log: Pick<Log, "warn">;
}

/** Money that is reserved for one request. */
export interface SetAside extends SpendPeriod {
  readonly nanoUsd: number;
}

interface Asked {
  readonly change: SpendChange;
  /**
   * Called with true if the money is reserved, with false if it would exceed the cap, and with undefined if the store
   * failed.
   */
  answer(made: boolean | undefined): void;
}

interface Known {
  readonly period: SpendPeriod;
  spentNanoUsd: number;
  /** Time in monotonic milliseconds at which the spending was read. */
  atMs: number;
}

/** Milliseconds for which the last read spending is used. Other processes may return reserved money at any time. */
const capCacheMs = 1_000;
/** Milliseconds after a failure of the store in which nothing is reserved and no correction is written. */
const retryMs = 1_000;

export class OverflowSpending {
  readonly #options: OverflowSpendingOptions;
  /** The last read spending of each model. */
  readonly #known = new Map<string, Known>();
  #asked: Asked[] = [];
  /** Corrections that are not written yet, summed by model and period. */
  #corrections = new Map<string, SpendChange>();
  #writing: Promise<void> | undefined;
  #failedUntilMs = Number.NEGATIVE_INFINITY;
  #retry: ReturnType<typeof setTimeout> | undefined;

  constructor(options: OverflowSpendingOptions) {
    this.#options = options;
  }

  /**
   * True shortly after the store failed. Nothing is reserved then, and requests that need a reservation do not
   * overflow.
   */
  get isUnknown(): boolean {
    return this.#options.clock.monotonicMs() < this.#failedUntilMs;
  }

  /**
   * Returns the nano-USD that are left under the cap in this period. Returns undefined if the last read spending is too
   * old.
   */
  remaining(model: string, spend: OverflowSpend): number | undefined {
    if (this.isUnknown) return 0;
    const known = this.#known.get(model);
    const { per, start } = this.periodOf(model, spend);
    if (!known || known.period.start !== start || known.period.per !== per) return undefined;
    return this.#options.clock.monotonicMs() - known.atMs < capCacheMs ? spend.nanoUsd - known.spentNanoUsd : undefined;
  }

  periodOf(model: string, { per }: OverflowSpend): SpendPeriod {
    return { model, per, start: this.#period(per).start };
  }

  /** Returns the time in Unix seconds at which the next period begins. */
  opensAt({ per }: OverflowSpend): number {
    return this.#period(per).end;
  }

  #period(per: OverflowSpend["per"]): { start: number; end: number } {
    return calendarPeriod(windowOf({ per, window: "calendar" }), this.#options.clock.nowSeconds());
  }

  /** Reserves money. Resolves to undefined if this would exceed the cap or if the store failed. Never rejects. */
  setAside(model: string, spend: OverflowSpend, nanoUsd: number): Promise<SetAside | undefined> {
    const period = this.periodOf(model, spend);
    return new Promise((resolve) => {
      const answer = (made: boolean | undefined) => resolve(made ? { ...period, nanoUsd } : undefined);
      this.#asked.push({ change: { ...period, nanoUsd, most: spend.nanoUsd }, answer });
      this.#write();
    });
  }

  /** Replaces a reservation by the actual cost. Must be called once. */
  settle({ model, per, start, nanoUsd }: SetAside, costNanoUsd: number): void {
    if (costNanoUsd === nanoUsd) return;
    this.#correct({ model, per, start, nanoUsd: costNanoUsd - nanoUsd, most: null });
    this.#write();
  }

  #correct(change: SpendChange): void {
    const { model, per, start } = change;
    const name = `${start} ${per} ${model}`;
    const nanoUsd = change.nanoUsd + (this.#corrections.get(name)?.nanoUsd ?? 0);
    this.#corrections.set(name, { ...change, nanoUsd });
  }

  /** Returns the current spending of all processes, for display. */
  async spent(model: string, spend: OverflowSpend): Promise<number> {
    await this.#writing;
    return await this.#options.store.spent(this.periodOf(model, spend));
  }

  /** Returns the last read spending of each model in the current period, without a query to the database. */
  figures(): { model: string; spentNanoUsd: number }[] {
    return [...this.#known.values()]
      .filter(({ period }) => this.#period(period.per).start === period.start)
      .map(({ period: { model }, spentNanoUsd }) => ({ model, spentNanoUsd }));
  }

  async close(): Promise<void> {
    clearTimeout(this.#retry);
    await this.#writing;
    if (this.#corrections.size > 0) await this.#writeAll();
  }

  /** Starts a write unless one is running. Changes that arrive during a write are written together in the next one. */
  #write(): void {
    this.#writing ??= this.#writeAll();
  }

  /**
   * Writes until nothing is left. `#writing` must be cleared in the same tick, because otherwise a new change would
   * start no write.
   */
  async #writeAll(): Promise<void> {
    while (this.#asked.length + this.#corrections.size > 0) {
      const asked = this.#asked;
      const corrections = [...this.#corrections.values()];
      this.#asked = [];
      this.#corrections = new Map();
      try {
        await this.#change(corrections, asked);
      } catch (error) {
        this.#failed(corrections, asked, error);
        break;
      }
    }
    this.#writing = undefined;
  }

  /**
   * Writes changes in one transaction. Corrections come before reservations, because returned money makes space under
   * the cap.
   */
  async #change(corrections: readonly SpendChange[], asked: readonly Asked[]): Promise<void> {
    const changes = [...corrections, ...asked.map(({ change }) => change)];
    const answers = await this.#options.store.change(changes);
    const atMs = this.#options.clock.monotonicMs();
    for (const [index, { spentNanoUsd }] of answers.entries()) {
      const change = changes[index];
      if (change) this.#know(change, spentNanoUsd, atMs);
    }
    for (const [index, { answer }] of asked.entries()) answer(answers[corrections.length + index]?.made);
  }

  /** Stores the spending if it is of the current period, because a correction may concern an earlier one. */
  #know({ model, per, start }: SpendPeriod, spentNanoUsd: number, atMs: number): void {
    if (this.#period(per).start !== start) return;
    this.#known.set(model, { period: { model, per, start }, spentNanoUsd, atMs });
  }

  /**
   * Keeps corrections for a retry. If the transaction may have succeeded, corrections that return money are dropped, so
   * that it is not returned twice.
   */
  #failed(corrections: readonly SpendChange[], asked: readonly Asked[], error: unknown): void {
    const { clock, log } = this.#options;
    log.warn("overflow_spend_unwritten", { error: error instanceof Error ? error.message : String(error) });
    this.#failedUntilMs = clock.monotonicMs() + retryMs;
    const isUndone = error instanceof SpendUnchanged;
    for (const correction of corrections) if (isUndone || correction.nanoUsd > 0) this.#correct(correction);
    for (const { answer } of [...asked, ...this.#asked]) answer(undefined);
    this.#asked = [];
    if (this.#corrections.size === 0) return;
    clearTimeout(this.#retry);
    this.#retry = setTimeout(() => this.#write(), retryMs);
    this.#retry.unref();
  }
}
