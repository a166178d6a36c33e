// Limits how often one node may connect: a few times at once, as after an outage, then as often as a link that flaps.
import type { Clock } from "../base/clock.ts";

const burst = 20;
const everyMs = 1_000;

export class ConnectionPace {
  readonly #clock: Pick<Clock, "monotonicMs">;
  /** Monotonic milliseconds at which a node has all of its burst again. */
  readonly #fullAtMs = new Map<string, number>();

  constructor(clock: Pick<Clock, "monotonicMs">) {
    this.#clock = clock;
  }

  /** Whether it may now. One that may not does not have to wait the longer for having asked. */
  take(nodeId: string): boolean {
    const nowMs = this.#clock.monotonicMs();
    const fullAtMs = Math.max(nowMs, this.#fullAtMs.get(nodeId) ?? 0) + everyMs;
    if (fullAtMs > nowMs + burst * everyMs) return false;
    // A node whose allowance is whole need not be remembered: only nodes that connect are in it.
    for (const [other, atMs] of this.#fullAtMs) if (atMs <= nowMs) this.#fullAtMs.delete(other);
    this.#fullAtMs.set(nodeId, fullAtMs);
    return true;
  }
}
