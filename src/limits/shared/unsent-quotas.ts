// Remembers, also in a file, the quotas whose usage the shared store may lack, so that they are loaded from the ledger
// again.
import { appendFileSync, existsSync, readFileSync, rmSync } from "node:fs";
import { open } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { Clock } from "../../base/clock.ts";
import type { Log } from "../../base/log.ts";

/** Milliseconds between two attempts after a failed write. */
const againMs = 1_000;

export class UnsentQuotas {
  readonly #path: string;
  readonly #log: Pick<Log, "error">;
  readonly #clock: Pick<Clock, "monotonicMs">;
  readonly #keys: Set<string>;
  #isFailing = false;
  /** Lines that could not be written yet. */
  #unwritten = "";
  #triedMs = 0;
  #syncing: Promise<void> = Promise.resolve();

  /**
   * `directory` must be kept or lost together with the spool, which has usage that the database lacks. `prefix` is the
   * prefix of all Redis keys.
   */
  constructor(directory: string, prefix: string, log: Pick<Log, "error">, clock: Pick<Clock, "monotonicMs">) {
    this.#path = join(directory, "untold-quotas");
    this.#log = log;
    this.#clock = clock;
    const lines = existsSync(this.#path) ? readFileSync(this.#path, "utf8").split("\n") : [];
    // The last line may be incomplete after a power cut, so it is ignored.
    this.#keys = new Set(lines.slice(0, -1).filter((line) => line.startsWith(prefix)));
  }

  get keys(): ReadonlySet<string> {
    return this.#keys;
  }

  /**
   * Adds Redis keys. They survive a crash of the process at once, and a power cut a moment later. A failed write is
   * logged and repeated later.
   */
  add(keys: Iterable<string>): void {
    let lines = this.#unwritten;
    for (const key of keys) {
      if (this.#keys.has(key)) continue;
      this.#keys.add(key);
      lines += `${key}\n`;
    }
    if (lines === "") return;
    this.#unwritten = lines;
    const nowMs = this.#clock.monotonicMs();
    if (this.#isFailing && nowMs < this.#triedMs + againMs) return;
    this.#triedMs = nowMs;
    try {
      // Begin with a line feed, because a failed write may have left an incomplete line.
      appendFileSync(this.#path, this.#isFailing ? `\n${lines}` : lines, { mode: 0o600 });
      this.#unwritten = "";
      this.#isFailing = false;
      this.#syncing = this.#syncing.then(() => this.#sync()).catch((error: unknown) => this.#failed(error));
    } catch (error) {
      this.#failed(error);
    }
  }

  /** Removes all keys, because the shared store has their usage now. */
  clear(): void {
    if (this.#keys.size === 0) return;
    this.#keys.clear();
    this.#unwritten = "";
    try {
      rmSync(this.#path, { force: true });
      this.#isFailing = false;
    } catch (error) {
      this.#failed(error);
    }
  }

  /** Syncs the file to the disk in the background. */
  async #sync(): Promise<void> {
    for (const path of [this.#path, dirname(this.#path)]) {
      if (this.#keys.size === 0) return;
      const file = await open(path);
      await file.sync().finally(() => file.close());
    }
  }

  #failed(error: unknown): void {
    if (!this.#isFailing) this.#log.error("untold_quotas_failed", { detail: String(error) });
    this.#isFailing = true;
  }
}
