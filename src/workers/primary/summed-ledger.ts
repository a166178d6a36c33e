// What an owner has used over all processes of this server, at one moment: the database, and what each of them has settled and not written there.
import { isCounted, isQuotaOf } from "../../domain/limits/quota-filter.ts";
import type { Ledger, SpanTotals, TotalsOwner } from "../../domain/usage/usage.ts";
import type { SettledLease } from "./rpc-server.ts";

export interface SummedLedgerOptions {
  ledger: Pick<Ledger, "readTotals" | "flush">;
  /** Whether all that workers settled is in the database: resolves once it is, or it cannot be helped. */
  flush(): Promise<boolean>;
  /**
   * Asks the workers what they settled that the database does not have; `told` is called as each of them tells it. From then
   * on it writes nothing there, until `release` is called, which this resolves to once all of them have told. Rejects
   * where one of them cannot tell in time.
   */
  hold(owner: TotalsOwner, told: (worker: object, waiting: SpanTotals) => void): Promise<() => void>;
}

/** An owner whose totals are being read. */
interface Reading {
  readonly owner: TotalsOwner;
  /** Those that have told, as their later settlements are told one by one. */
  readonly told: Set<object>;
  /** All that workers settled and the database does not have. */
  readonly waiting: SpanTotals;
}

export class SummedLedger implements Pick<Ledger, "readTotals" | "flush"> {
  readonly #options: SummedLedgerOptions;
  readonly #readings = new Set<Reading>();

  constructor(options: SummedLedgerOptions) {
    this.#options = options;
  }

  /** Rejects where one of the processes could not write all that it has settled. */
  async flush(): Promise<void> {
    const [areWritten] = await Promise.all([this.#options.flush(), this.#options.ledger.flush()]);
    if (!areWritten) throw new Error("What a worker has settled is not in the database.");
  }

  async readTotals(owner: TotalsOwner, use: (totals: SpanTotals) => void): Promise<void> {
    const waiting: SpanTotals = { requests: 0, tokens: 0, nanoUsd: 0, firstAt: undefined };
    const reading: Reading = { owner, told: new Set(), waiting };
    this.#readings.add(reading);
    let release = () => {};
    try {
      release = await this.#options.hold(owner, (worker, more) => {
        reading.told.add(worker);
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

  /** A request of a worker was settled in the limits: where its owner is being read, it is not among what that worker told. */
  settled(worker: object, { limits, reservation, tokens, nanoUsd }: SettledLease): void {
    for (const { owner, told, waiting } of this.#readings) {
      if (!told.has(worker)) continue;
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
