// Whether this process still fits the installation that it is part of: its secret is among those in use, its clock is that of the database.
import { type Clock, mostClockOffsetSeconds } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import type { KeyRing } from "../domain/key-ring.ts";
import type { Database } from "../storage/sql/database.ts";
import { secondsAheadOf } from "../storage/sql/database-clock.ts";
import { secretInUse } from "../upkeep/installation-secret.ts";

export interface InstallationWatchOptions {
  db: Database;
  secrets: KeyRing;
  clock: Clock;
  log: Log;
}

/** However many monitors ask: neither changes from one second to the next. */
const askAgainMs = 10_000;

export class InstallationWatch {
  readonly #options: InstallationWatchOptions;
  #askedMs: number;
  #asking: Promise<void> | undefined;
  #isForeign = false;
  #isOff = false;

  /** Made at a start, which refuses another secret. */
  constructor(options: InstallationWatchOptions) {
    this.#options = options;
    this.#askedMs = options.clock.monotonicMs();
  }

  /** `failed`: another secret took the place of this process's, which finds hardly a key under its own any more. */
  get secret(): "ok" | "failed" {
    return this.#isForeign ? "failed" : "ok";
  }

  /** `degraded`: what other processes sign may be refused here, and the other way round. */
  get clock(): "ok" | "degraded" {
    return this.#isOff ? "degraded" : "ok";
  }

  /** Looks, unless that was a moment ago. Never rejects: without its database it stays with what was seen last. */
  reach(): Promise<void> {
    const nowMs = this.#options.clock.monotonicMs();
    if (!this.#asking && nowMs - this.#askedMs >= askAgainMs) {
      this.#askedMs = nowMs;
      this.#asking = this.#look()
        .catch(() => {})
        .finally(() => {
          this.#asking = undefined;
        });
    }
    return this.#asking ?? Promise.resolve();
  }

  async #look(): Promise<void> {
    const { db, secrets, clock, log } = this.#options;
    const isForeign = (await secretInUse(db, secrets, clock.nowSeconds())) === undefined;
    if (isForeign && !this.#isForeign) {
      log.error("secret_replaced", {
        detail:
          "The secret of this installation was replaced by one that this process does not have, so it refuses keys. Give it the HEADRACE_SECRET of the others, and start it again.",
      });
    }
    this.#isForeign = isForeign;
    const ahead = await secondsAheadOf(db, clock);
    const isOff = ahead !== undefined && Math.abs(ahead) > mostClockOffsetSeconds;
    if (isOff && !this.#isOff) log.warn("clock_is_off", { ahead_of_database_seconds: ahead });
    this.#isOff = isOff;
  }
}
