// The time by which records are deleted. It follows the clock unless the clock jumped ahead, because wrongly deleted
// records are lost.
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
/**
 * The difference between two readings, beyond the time that passed, that counts as a jump: the clock is wrong, or the
 * server was off.
 */
const jumpSeconds = daySeconds;
/**
 * Seconds after which a time is accepted although the clock jumped. An operator has this long to notice a wrong clock.
 */
const doubtSeconds = 3 * daySeconds;
/** A longer gap between two readings after a jump, in seconds, counts as another jump. */
const gapSeconds = 30 * daySeconds;

export class DeletionClock {
  readonly #options: DeletionClockOptions;
  #last: { atSeconds: number; monotonicMs: number } | undefined;
  #saved = Number.NEGATIVE_INFINITY;

  constructor(options: DeletionClockOptions) {
    this.#options = options;
  }

  /** Returns Unix seconds: records that expired by then may be deleted. Rejects if the store is unavailable. */
  async nowSeconds(): Promise<number> {
    const { clock, store } = this.#options;
    const now = clock.nowSeconds();
    if (this.#isInStep(now)) return this.#trust(now);
    const seen = await store.seenTimes();
    if (seen === undefined || now <= seen.trusted + jumpSeconds) return this.#trust(now);
    return this.#doubt(now, seen);
  }

  #isInStep(now: number): boolean {
    if (this.#last === undefined) return false;
    const { atSeconds, monotonicMs } = this.#last;
    return now <= atSeconds + (this.#options.clock.monotonicMs() - monotonicMs) / 1_000 + jumpSeconds;
  }

  async #trust(now: number): Promise<number> {
    this.#last = { atSeconds: now, monotonicMs: this.#options.clock.monotonicMs() };
    if (Math.abs(now - this.#saved) >= hourSeconds) {
      await this.#options.store.saveSeenTimes({ trusted: now, doubted: undefined });
      this.#saved = now;
    }
    return now;
  }

  /** Returns the last accepted time until the clock has run on for long enough after its jump. */
  async #doubt(now: number, { trusted, doubted }: SeenTimes): Promise<number> {
    const { store, log } = this.#options;
    const goesOn = doubted !== undefined && now >= doubted.from && now <= doubted.seen + gapSeconds;
    if (goesOn && now >= doubted.from + doubtSeconds) return this.#trust(now);
    if (!goesOn) {
      log.error("clock_jumped", {
        at: isoTime(now),
        last_seen: isoTime(trusted),
        deletes_from: isoTime(now + doubtSeconds),
        detail:
          "The clock is more than a day ahead of when the records were last seen. Nothing more is deleted by it for three days: set it right, or leave it where the server was off for so long.",
      });
    }
    if (!goesOn || now >= doubted.seen + hourSeconds) {
      await store.saveSeenTimes({ trusted, doubted: { from: goesOn ? doubted.from : now, seen: now } });
    }
    return trusted;
  }
}

function isoTime(unixSeconds: number): string {
  return new Date(unixSeconds * 1000).toISOString();
}
