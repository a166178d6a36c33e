// Limits how often a node may connect: a few times in a row, then only at the rate of an unstable link.
import type { Clock } from "../base/clock.ts";

const burst = 20;
const everyMs = 1_000;

export class ConnectionPace {
  readonly #clock: Pick<Clock, "monotonicMs">;
  /** For each node, the monotonic milliseconds from which the node may again connect a full burst of times in a row. */
  readonly #fullAtMs = new Map<string, number>();

  constructor(clock: Pick<Clock, "monotonicMs">) {
    this.#clock = clock;
  }

  /** Counts a connection and returns whether it is allowed. A refused attempt does not count. */
  take(nodeId: string): boolean {
    const nowMs = this.#clock.monotonicMs();
    const fullAtMs = Math.max(nowMs, this.#fullAtMs.get(nodeId) ?? 0) + everyMs;
    if (fullAtMs > nowMs + burst * everyMs) return false;
    // Forget nodes that may use a full burst again, so that the map stays small.
    for (const [other, atMs] of this.#fullAtMs) if (atMs <= nowMs) this.#fullAtMs.delete(other);
    this.#fullAtMs.set(nodeId, fullAtMs);
    return true;
  }
}
