// An owner's total usage in all processes of this server at one moment. The total is the usage in the database and the
// settled usage that processes have not written yet.
import { isCounted, isQuotaOf } from "../../domain/limits/quota-filter.ts";
import type { Ledger, SpanTotals, TotalsOwner } from "../../domain/usage/usage.ts";
import type { SettledLease } from "./rpc-server.ts";

export interface SummedLedgerOptions {
  ledger: Pick<Ledger, "readTotals" | "flush">;
  /** Writes everything that workers settled to the database. Resolves with whether that succeeded. */
  flush(): Promise<boolean>;
  /**
   * Asks the workers for settled usage that is not in the database yet, and calls `report` for each answer. Resolves
   * once all have answered. Until the returned function is called, workers write nothing to the database. Rejects if
   * one of them cannot answer in time.
   */
  hold(owner: TotalsOwner, report: (worker: object, waiting: SpanTotals) => void): Promise<() => void>;
}

/** A running read of an owner's totals. */
interface Reading {
  readonly owner: TotalsOwner;
  /** The workers that have answered. Each later settlement of these workers is added separately. */
  readonly reported: Set<object>;
  /** Settled usage of all workers that is not in the database yet. */
  readonly waiting: SpanTotals;
}

export class SummedLedger implements Pick<Ledger, "readTotals" | "flush"> {
  readonly #options: SummedLedgerOptions;
  readonly #readings = new Set<Reading>();

  constructor(options: SummedLedgerOptions) {
    this.#options = options;
  }

  /** Writes all settled usage. Rejects if a process could not. */
  async flush(): Promise<void> {
    const [areWritten] = await Promise.all([this.#options.flush(), this.#options.ledger.flush()]);
    if (!areWritten) throw new Error("What a worker has settled is not in the database.");
  }

  async readTotals(owner: TotalsOwner, use: (totals: SpanTotals) => void): Promise<void> {
    const waiting: SpanTotals = { requests: 0, tokens: 0, nanoUsd: 0, firstAt: undefined };
    const reading: Reading = { owner, reported: new Set(), waiting };
    this.#readings.add(reading);
    let release = () => {};
    try {
      release = await this.#options.hold(owner, (worker, more) => {
        reading.reported.add(worker);
        add(waiting, more);
      });
      await this.#options.ledger.readTotals(owner, (totals) => {
        this.#readings.delete(reading);
        use(add(totals, waiting));
      });
    } finally {
      this.#readings.delete(reading);
      release();
    }
  }

  /**
   * Called when a worker's request was settled in the limits. If a read of the owner's totals is running, adds the
   * usage, because the worker's earlier answer lacks it.
   */
  settled(worker: object, { limits, reservation, tokens, nanoUsd }: SettledLease): void {
    for (const { owner, reported, waiting } of this.#readings) {
      if (!reported.has(worker)) continue;
      const quotas = [...limits.quotas, ...(limits.windows ?? [])];
      const isOwners = quotas.some((quota) => isQuotaOf(quota, owner) && isCounted(quota, reservation));
      if (isOwners) add(waiting, { requests: 1, tokens, nanoUsd, firstAt: undefined });
    }
  }
}

function add(totals: SpanTotals, { requests, tokens, nanoUsd, firstAt }: SpanTotals): SpanTotals {
  totals.requests += requests;
  totals.tokens += tokens;
  totals.nanoUsd += nanoUsd;
  if (firstAt !== undefined) totals.firstAt = Math.min(totals.firstAt ?? firstAt, firstAt);
  return totals;
}
