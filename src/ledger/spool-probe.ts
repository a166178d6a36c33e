// Checks whether the spool's disk can be written, even without requests.
import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Clock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import type { LedgerJournal } from "./ledger-journal.ts";

export interface SpoolProbeOptions {
  directory: string;
  journal: Pick<LedgerJournal, "failing" | "retry">;
  clock: Pick<Clock, "monotonicMs">;
  log: Log;
}

/** Bytes of the test file: with less free space, the disk could not store the lines of a busy tick. */
const probeBytes = 64 * 1024;
/** Minimum milliseconds between two checks, however often readiness is asked for. */
const askAgainMs = 1_000;

export class SpoolProbe {
  readonly #options: SpoolProbeOptions;
  readonly #file: string;
  #askedMs = Number.NEGATIVE_INFINITY;
  #asking: Promise<void> | undefined;
  #failed = false;

  constructor(options: SpoolProbeOptions) {
    this.#options = options;
    this.#file = join(options.directory, "probe");
  }

  /** Returns the result of the last write or check. */
  get isWritable(): boolean {
    return !this.#failed && !this.#options.journal.failing;
  }

  /** Checks the disk, unless it was checked just now. Resolves to whether it can be written. Never rejects. */
  async ask(): Promise<boolean> {
    const nowMs = this.#options.clock.monotonicMs();
    if (!this.#asking && nowMs - this.#askedMs >= askAgainMs) {
      this.#askedMs = nowMs;
      this.#asking = this.#probe().finally(() => {
        this.#asking = undefined;
      });
    }
    await this.#asking;
    return this.isWritable;
  }

  async #probe(): Promise<void> {
    const { journal, log } = this.#options;
    try {
      await writeFile(this.#file, Buffer.alloc(probeBytes), { mode: 0o600 });
      await rm(this.#file);
      journal.retry();
      if (this.#failed) log.info("spool_has_room");
      this.#failed = false;
    } catch (error) {
      // Delete the incomplete file, so that it does not use up the remaining space.
      await rm(this.#file, { force: true }).catch(() => {});
      if (!this.#failed) log.error("spool_has_no_room", { detail: String(error) });
      this.#failed = true;
    }
  }
}
