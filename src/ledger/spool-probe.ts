// Tells whether the spool can be written: its disk is asked, as a disk to which nothing is written at the moment does
// not tell.
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

/** A disk with less room than this has none for a busy turn. */
const probeBytes = 64 * 1024;
/** However many monitors ask. */
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

  /** The result of the last write, or the last look. */
  get isWritable(): boolean {
    return !this.#failed && !this.#options.journal.failing;
  }

  /** Looks, unless that was a moment ago; resolves with what is known then. Never rejects. */
  async ask(): Promise<boolean> {
    const nowMs = this.#options.clock.monotonicMs();
    if (!this.#asking && nowMs - this.#askedMs >= askAgainMs) {
      this.#askedMs = nowMs;
      this.#asking = this.#look().finally(() => {
        this.#asking = undefined;
      });
    }
    await this.#asking;
    return this.isWritable;
  }

  async #look(): Promise<void> {
    const { journal, log } = this.#options;
    try {
      await writeFile(this.#file, Buffer.alloc(probeBytes), { mode: 0o600 });
      await rm(this.#file);
      journal.retry();
      if (this.#failed) log.info("spool_has_room");
      this.#failed = false;
    } catch (error) {
      // A part of it must not take the room that there is.
      await rm(this.#file, { force: true }).catch(() => {});
      if (!this.#failed) log.error("spool_has_no_room", { detail: String(error) });
      this.#failed = true;
    }
  }
}
