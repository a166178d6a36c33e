// Money for overflows: set aside before a request goes there, and corrected by what it cost, so that no cap is overspent.
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

/** What was set aside for one request. */
export interface SetAside extends SpendPeriod {
  readonly nanoUsd: number;
}

interface Asked {
  readonly change: SpendChange;
  /** False where it would go beyond the cap; undefined where nobody can tell. */
  answer(made: boolean | undefined): void;
}

interface Known {
  readonly period: SpendPeriod;
  spentNanoUsd: number;
  /** Monotonic milliseconds. */
  atMs: number;
}

/** Other processes give back what they set aside: that nothing is left is believed for so long. */
const believedMs = 1_000;
/** After a failure of the store nothing is set aside for so long; what is to be corrected waits as well. */
const retryMs = 1_000;

export class OverflowSpending {
  readonly #options: OverflowSpendingOptions;
  /** By model. */
  readonly #known = new Map<string, Known>();
  #asked: Asked[] = [];
  /** Corrections by their place, those of many requests added up. */
  #corrections = new Map<string, SpendChange>();
  #writing: Promise<void> | undefined;
  #failedUntilMs = Number.NEGATIVE_INFINITY;
  #retry: ReturnType<typeof setTimeout> | undefined;

  constructor(options: OverflowSpendingOptions) {
    this.#options = options;
  }

  /** Whether the store failed a moment ago: then nothing is set aside, and nothing goes where that would be needed. */
  get isUnknown(): boolean {
    return this.#options.clock.monotonicMs() < this.#failedUntilMs;
  }

  /** Nano-USD that are left in this span; undefined where that is not known well enough to refuse anything by it. */
  remaining(model: string, spend: OverflowSpend): number | undefined {
    if (this.isUnknown) return 0;
    const known = this.#known.get(model);
    const { per, start } = this.periodOf(model, spend);
    if (!known || known.period.start !== start || known.period.per !== per) return undefined;
    return this.#options.clock.monotonicMs() - known.atMs < believedMs ? spend.nanoUsd - known.spentNanoUsd : undefined;
  }

  periodOf(model: string, { per }: OverflowSpend): SpendPeriod {
    return { model, per, start: this.#period(per).start };
  }

  /** When the next span begins: Unix seconds. */
  opensAt({ per }: OverflowSpend): number {
    return this.#period(per).end;
  }

  #period(per: OverflowSpend["per"]): { start: number; end: number } {
    return calendarPeriod(windowOf({ per, window: "calendar" }), this.#options.clock.nowSeconds());
  }

  /** Resolves to undefined where so much is not left, or nobody can tell; it never rejects. */
  setAside(model: string, spend: OverflowSpend, nanoUsd: number): Promise<SetAside | undefined> {
    const period = this.periodOf(model, spend);
    return new Promise((resolve) => {
      const answer = (made: boolean | undefined) => resolve(made ? { ...period, nanoUsd } : undefined);
      this.#asked.push({ change: { ...period, nanoUsd, most: spend.nanoUsd }, answer });
      this.#write();
    });
  }

  /** What it cost is known: once. */
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

  /** What is spent now, of all processes, for who looks. */
  async spent(model: string, spend: OverflowSpend): Promise<number> {
    await this.#writing;
    return await this.#options.store.spent(this.periodOf(model, spend));
  }

  /** What this process knows: of each model the span that it knew last, where that is not over. */
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

  /** All that comes while one transaction is under way is in the next one together. */
  #write(): void {
    this.#writing ??= this.#writeAll();
  }

  /** In the turn in which there is nothing more, whoever asks next begins anew: nobody is overheard. */
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

  /** What is given back comes first: it makes room. */
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

  /** A correction may be of a span that is over; and the clock may have been put back into the one before. */
  #know({ model, per, start }: SpendPeriod, spentNanoUsd: number, atMs: number): void {
    if (this.#period(per).start !== start) return;
    this.#known.set(model, { period: { model, per, start }, spentNanoUsd, atMs });
  }

  /** If nobody knows whether a transaction was made, what it gave back is not given back once more. */
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
