// Warns of model servers that report fewer tokens than they delivered: once in a while for each, as it may be every answer.
import type { Clock } from "../../base/clock.ts";
import type { Log } from "../../base/log.ts";

const againMs = 600_000;
/** Upstreams and nodes come and go; who was warned of longest ago is forgotten first. */
const mostKnown = 1_000;

export class UsageDoubts {
  readonly #clock: Clock;
  readonly #log: Log;
  /** Monotonic milliseconds of the last warning, by the name of the upstream. */
  readonly #warned = new Map<string, number>();

  constructor({ clock, log }: { clock: Clock; log: Log }) {
    this.#clock = clock;
    this.#log = log;
  }

  understated(upstream: string, model: string): void {
    const now = this.#clock.monotonicMs();
    const before = this.#warned.get(upstream);
    if (before !== undefined && now - before < againMs) return;
    this.#warned.delete(upstream);
    const [oldest] = this.#warned.keys();
    if (oldest !== undefined && this.#warned.size >= mostKnown) this.#warned.delete(oldest);
    this.#warned.set(upstream, now);
    const detail = "fewer tokens were reported than were delivered; an estimate is recorded in their place";
    this.#log.warn("usage_understated", { upstream, model, detail });
  }
}
