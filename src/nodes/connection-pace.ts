// Limits how often one node may connect: a few times at once, as after an outage, and then at the rate of an unstable
// link.
import type { Clock } from "../base/clock.ts";

const burst = 20;
const everyMs = 1_000;

export class ConnectionPace {
  readonly #clock: Pick<Clock, "monotonicMs">;
  /** The monotonic time at which each node has its whole burst again, in milliseconds. */
  readonly #fullAtMs = new Map<string, number>();

  constructor(clock: Pick<Clock, "monotonicMs">) {
    this.#clock = clock;
  }

  /** Reports whether a node may connect now. A refused attempt does not prolong the wait. */
  take(nodeId: string): boolean {
    const nowMs = this.#clock.monotonicMs();
    const fullAtMs = Math.max(nowMs, this.#fullAtMs.get(nodeId) ?? 0) + everyMs;
    if (fullAtMs > nowMs + burst * everyMs) return false;
    // A node with its whole burst is removed, so that the map holds only nodes that have connected lately.
    for (const [other, atMs] of this.#fullAtMs) if (atMs <= nowMs) this.#fullAtMs.delete(other);
    this.#fullAtMs.set(nodeId, fullAtMs);
    return true;
  }
}
