// Detects that an account or key lost a quota with a window, or that accounts joined or left an organization. The
// counted usage is then wrong: usage is missing, or that of other accounts is included.
import type { LimitSet, LimitStore, Quota } from "../domain/limits/limits.ts";

/**
 * Maximum accounts and keys whose quotas are remembered. For others, a quota that was removed and is set again
 * continues with its old count.
 */
const maxKnown = 200_000;

export class DroppedQuotas {
  readonly #limits: Pick<LimitStore, "forgetQuotas">;
  /** Quotas with a window, by the id of the monthly quota, which every account and key has. */
  readonly #windows = new Map<string, readonly Quota[]>();

  /** The last revision of the accounts of each organization and environment, by the id of the monthly quota. */
  readonly #revisions = new Map<string, number>();

  constructor(limits: Pick<LimitStore, "forgetQuotas">) {
    this.#limits = limits;
  }

  /**
   * Compares the new limits of a key with the earlier ones, and returns the new limits. If a lost quota is set again,
   * its usage is read from the ledger.
   */
  seen(limits: LimitSet): LimitSet {
    const { quotas, windows = [] } = limits;
    for (const quota of quotas) if (quota.membersRevision !== undefined) this.#seenMembers(quota, windows);
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

  /**
   * Makes the organization's quotas read their usage again if its accounts changed since the last call. The first call
   * does so too, because the process that changed the accounts may have died before it did.
   */
  #seenMembers(quota: Quota, windows: readonly Quota[]): void {
    const { id, membersRevision = 0 } = quota;
    const known = this.#revisions.get(id);
    if (known !== undefined && known >= membersRevision) return;
    if (this.#revisions.size >= maxKnown) this.#revisions.clear();
    this.#revisions.set(id, membersRevision);
    this.#limits.forgetQuotas([quota, ...windows.filter((window) => window.id.startsWith(`${id} `))]);
  }

  #remember(id: string, windows: readonly Quota[]): void {
    if (this.#windows.size >= maxKnown && !this.#windows.has(id)) this.#windows.clear();
    this.#windows.set(id, windows);
  }
}
