// Checks whether this process still fits its installation: its secret is in use, and its clock agrees with the
// database's.
import { type Clock, maxClockOffsetSeconds } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import type { KeyRing } from "../domain/key-ring.ts";
import { secretInUse } from "../maintenance/installation-secret.ts";
import type { Database } from "../storage/sql/database.ts";
import { secondsAheadOf } from "../storage/sql/database-clock.ts";
import { readInstallation } from "../storage/sql/installation.ts";
import { isMissingTable } from "../storage/sql/postgres-errors.ts";

export interface InstallationWatchOptions {
  db: Database;
  secrets: KeyRing;
  /** The id of the database at the start; undefined if it had none. */
  id: string | undefined;
  clock: Clock;
  log: Log;
}

/** The shortest time between two checks, however many monitors ask. */
const askAgainMs = 1_000;

export class InstallationWatch {
  readonly #options: InstallationWatchOptions;
  #askedMs: number;
  #asking: Promise<void> | undefined;
  #isForeign = false;
  #isOff = false;
  #isAnother = false;

  /** The start has just refused a wrong secret, so the first check may wait. */
  constructor(options: InstallationWatchOptions) {
    this.#options = options;
    this.#askedMs = options.clock.monotonicMs();
  }

  /** The id of the installation at the start; undefined if the database had none. */
  get id(): string | undefined {
    return this.#options.id;
  }

  /** `failed` if another secret has replaced this process's, which then finds hardly any key. */
  get secret(): "ok" | "failed" {
    return this.#isForeign ? "failed" : "ok";
  }

  /**
   * True if the database was emptied or belongs to another installation, so that its keys and accounts differ from
   * those of the start.
   */
  get isAnother(): boolean {
    return this.#isAnother;
  }

  /**
   * `degraded` if processes may refuse each other's signatures, because this clock differs too much from the
   * database's. Also `degraded` if this clock is earlier than the installation, as on a machine that boots in 1970:
   * usage would then be counted in past months.
   */
  get clock(): "ok" | "degraded" {
    return this.#isOff ? "degraded" : "ok";
  }

  /** Checks the installation unless that was just done. Never rejects: without the database, the last result stays. */
  checkNow(): Promise<void> {
    const nowMs = this.#options.clock.monotonicMs();
    if (!this.#asking && nowMs - this.#askedMs >= askAgainMs) {
      this.#askedMs = nowMs;
      this.#asking = this.#check()
        // The database check reports the outage; the last result stays.
        .catch(() => {})
        .finally(() => {
          this.#asking = undefined;
        });
    }
    return this.#asking ?? Promise.resolve();
  }

  async #check(): Promise<void> {
    const { db, secrets, id, clock, log } = this.#options;
    const isAnother = id !== undefined && (await installationIdOf(db)) !== id;
    if (isAnother && !this.#isAnother) {
      log.error("database_replaced", {
        detail:
          "The database was emptied, or another one took its place: every API key is refused. Put the database back, or restore a backup and start this process again.",
      });
    }
    this.#isAnother = isAnother;
    const isForeign = (await secretInUse(db, secrets, clock.nowSeconds())) === undefined;
    if (isForeign && !this.#isForeign) {
      log.error("secret_replaced", {
        detail:
          "The secret of this installation was replaced by one that this process does not have, so it refuses keys. Give it the HEADRACE_SECRET of the others, and start it again.",
      });
    }
    this.#isForeign = isForeign;
    const ahead = await secondsAheadOf(db, clock);
    const isOff = ahead !== undefined && Math.abs(ahead) > maxClockOffsetSeconds;
    if (isOff && !this.#isOff) log.warn("clock_is_off", { ahead_of_database_seconds: ahead });
    this.#isOff = isOff;
  }
}

/** Returns undefined for a database without the id, such as one with a dropped schema. */
async function installationIdOf(db: Database): Promise<string | undefined> {
  try {
    return await readInstallation(db, "id");
  } catch (error) {
    if (isMissingTable(error)) return undefined;
    throw error;
  }
}
