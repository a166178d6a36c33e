// Records the usage of quotas while the shared store is unreachable, in time slots.
import type { QuotaUse } from "../../domain/limits/limits.ts";

/** Usage of a time slot, which ends at the monotonic time `endMs`. */
export interface UseSlot extends QuotaUse {
  endMs: number;
}

const slotMs = 100;
/** Maximum time slots of one quota. Beyond that, the two oldest slots are merged. */
const maxSlots = 64;

export class OutageUse {
  readonly #slots = new Map<string, UseSlot[]>();

  /** Adds usage. `key` is the quota's key in the shared store. */
  add(key: string, nowMs: number, { requests, tokens, nanoUsd }: QuotaUse): void {
    let slots = this.#slots.get(key);
    if (!slots) {
      slots = [];
      this.#slots.set(key, slots);
    }
    const last = slots.at(-1);
    if (last && Math.floor(last.endMs / slotMs) === Math.floor(nowMs / slotMs)) {
      addTo(last, { requests, tokens, nanoUsd, endMs: nowMs });
      return;
    }
    slots.push({ requests, tokens, nanoUsd, endMs: nowMs });
    if (slots.length <= maxSlots) return;
    const [first, second] = slots.splice(0, 2);
    if (first && second) slots.unshift(addTo(first, second));
  }

  [Symbol.iterator](): Iterator<[key: string, slots: UseSlot[]]> {
    return this.#slots.entries();
  }
}

function addTo(slot: UseSlot, { requests, tokens, nanoUsd, endMs }: UseSlot): UseSlot {
  slot.requests += requests;
  slot.tokens += tokens;
  slot.nanoUsd += nanoUsd;
  slot.endMs = endMs;
  return slot;
}
