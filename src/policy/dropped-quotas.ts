// Notices when somebody's quotas per window are fewer than before: what is used from then on is counted under none of those.
import type { LimitSet, LimitStore, Quota } from "../domain/limits/limits.ts";

/** Accounts and keys of which is known what they had; of the others one that comes again goes on where it was. */
const maxKnown = 200_000;

export class DroppedQuotas {
  readonly #limits: Pick<LimitStore, "forgetQuotas">;
  /** By id of the month's quota, which each account and key has. */
  readonly #windows = new Map<string, readonly Quota[]>();

  constructor(limits: Pick<LimitStore, "forgetQuotas">) {
    this.#limits = limits;
  }

  /** The limits of a chain as it is from now on. Those that it had are read from the ledger, should it get them again. */
  seen(limits: LimitSet): LimitSet {
    const { quotas, windows = [] } = limits;
    if (windows.length === 0 && this.#windows.size === 0) return limits;
    for (const { id } of quotas) {
      const before = this.#windows.get(id);
      const own = windows.filter((window) => window.id.startsWith(`${id} `));
      if (before) {
        const dropped = before.filter((one) => own.every((other) => other.id !== one.id));
        if (dropped.length > 0) this.#limits.forgetQuotas(dropped);
      }
      if (own.length > 0) this.#remember(id, own);
      else this.#windows.delete(id);
    }
    return limits;
  }

  #remember(id: string, windows: readonly Quota[]): void {
    if (this.#windows.size >= maxKnown && !this.#windows.has(id)) this.#windows.clear();
    this.#windows.set(id, windows);
  }
}
