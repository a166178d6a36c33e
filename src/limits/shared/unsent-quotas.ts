// Remembers quotas whose usage the shared store may lack, also in a file, so that a later process loads them again.
import { appendFileSync, existsSync, readFileSync, rmSync } from "node:fs";
import { open } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { Clock } from "../../base/clock.ts";
import type { Log } from "../../base/log.ts";

/** Milliseconds between two attempts while writes to the disk fail. */
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
   * `directory` must be kept, moved or lost together with the usage that the database lacks. `prefix` is the beginning
   * of all keys.
   */
  constructor(directory: string, prefix: string, log: Pick<Log, "error">, clock: Pick<Clock, "monotonicMs">) {
    this.#path = join(directory, "untold-quotas");
    this.#log = log;
    this.#clock = clock;
    const lines = existsSync(this.#path) ? readFileSync(this.#path, "utf8").split("\n") : [];
    // A power cut may leave an incomplete last line, so it is left out.
    this.#keys = new Set(lines.slice(0, -1).filter((line) => line.startsWith(prefix)));
  }

  get keys(): ReadonlySet<string> {
    return this.#keys;
  }

  /**
   * Adds keys. They survive a crash of the process immediately, and a power cut a moment later. A known key costs
   * only a lookup. A failed write is logged, and retried with later additions.
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
      // The line feed ends an incomplete line that a failed attempt may have left.
      appendFileSync(this.#path, this.#isFailing ? `\n${lines}` : lines, { mode: 0o600 });
      this.#unwritten = "";
      this.#isFailing = false;
      this.#syncing = this.#syncing.then(() => this.#sync()).catch((error: unknown) => this.#failed(error));
    } catch (error) {
      this.#failed(error);
    }
  }

  /** Clears all keys, because the store has their usage. */
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

  /** Syncs the file outside of the thread that serves requests. Keys that are cleared meanwhile need no sync. */
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
