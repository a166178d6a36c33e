// The time by which records are deleted: the clock's, unless that jumped ahead, as what a wrong clock deletes is gone.
import type { Clock } from "../../base/clock.ts";
import type { Log } from "../../base/log.ts";
import type { SeenTimes, SeenTimesStore } from "../../domain/usage/retention.ts";

export interface DeletionClockOptions {
  store: SeenTimesStore;
  clock: Clock;
  log: Log;
}

const hourSeconds = 3_600;
const daySeconds = 24 * hourSeconds;
/** By so much more than what has passed, as far as that is known: a wrong clock, or a server that was off. */
const jumpSeconds = daySeconds;
/** A time that was doubted is believed once it went on for so long: whoever set the clock wrong has that long to notice. */
const doubtSeconds = 3 * daySeconds;
/** It did not go on, but jumped again. */
const gapSeconds = 30 * daySeconds;

export class DeletionClock {
  readonly #options: DeletionClockOptions;
  #last: { atSeconds: number; monotonicMs: number } | undefined;
  #saved = Number.NEGATIVE_INFINITY;

  constructor(options: DeletionClockOptions) {
    this.#options = options;
  }

  /** Unix seconds: what was past its time by then may be deleted. Rejects where the store is away. */
  async nowSeconds(): Promise<number> {
    const { clock, store } = this.#options;
    const now = clock.nowSeconds();
    if (this.#isInStep(now)) return this.#believe(now);
    const seen = await store.seenTimes();
    if (seen === undefined || now <= seen.believed + jumpSeconds) return this.#believe(now);
    return this.#doubt(now, seen);
  }

  #isInStep(now: number): boolean {
    if (this.#last === undefined) return false;
    const { atSeconds, monotonicMs } = this.#last;
    return now <= atSeconds + (this.#options.clock.monotonicMs() - monotonicMs) / 1_000 + jumpSeconds;
  }

  async #believe(now: number): Promise<number> {
    this.#last = { atSeconds: now, monotonicMs: this.#options.clock.monotonicMs() };
    if (Math.abs(now - this.#saved) >= hourSeconds) {
      await this.#options.store.saveSeenTimes({ believed: now, doubted: undefined });
      this.#saved = now;
    }
    return now;
  }

  /** The time that was last believed, until the other one has gone on for long enough. */
  async #doubt(now: number, { believed, doubted }: SeenTimes): Promise<number> {
    const { store, log } = this.#options;
    const goesOn = doubted !== undefined && now >= doubted.from && now <= doubted.seen + gapSeconds;
    if (goesOn && now >= doubted.from + doubtSeconds) return this.#believe(now);
    if (!goesOn) {
      log.error("clock_jumped", {
        at: isoTime(now),
        last_seen: isoTime(believed),
        deletes_from: isoTime(now + doubtSeconds),
        detail:
          "The clock is more than a day ahead of when the records were last seen. Nothing more is deleted by it for three days: set it right, or leave it where the server was off for so long.",
      });
    }
    if (!goesOn || now >= doubted.seen + hourSeconds) {
      await store.saveSeenTimes({ believed, doubted: { from: goesOn ? doubted.from : now, seen: now } });
    }
    return believed;
  }
}

function isoTime(unixSeconds: number): string {
  return new Date(unixSeconds * 1000).toISOString();
}
