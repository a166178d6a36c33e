// Quotas of whose usage the shared store may lack some, kept in a file as well: whoever comes after this process has them read again.
import { appendFileSync, existsSync, readFileSync, rmSync } from "node:fs";
import { open } from "node:fs/promises";
import { dirname, join } from "node:path";
import { monotonicMs } from "../../base/clock.ts";
import type { Log } from "../../base/log.ts";

/** Milliseconds between two tries as long as the disk takes nothing. */
const againMs = 1_000;

export class UntoldQuotas {
  readonly #path: string;
  readonly #log: Log;
  readonly #keys: Set<string>;
  #isFailing = false;
  /** What the disk did not take. */
  #unwritten = "";
  #triedMs = 0;
  #syncing: Promise<void> = Promise.resolve();

  /** `directory`: one that goes where the usage goes that the database lacks. `prefix`: what each key begins with. */
  constructor(directory: string, prefix: string, log: Log) {
    this.#path = join(directory, "untold-quotas");
    this.#log = log;
    const lines = existsSync(this.#path) ? readFileSync(this.#path, "utf8").split("\n") : [];
    // The last line may be torn after a power cut.
    this.#keys = new Set(lines.slice(0, -1).filter((line) => line.startsWith(prefix)));
  }

  get keys(): ReadonlySet<string> {
    return this.#keys;
  }

  /**
   * Adds keys, which survive the death of the process from its return on, a power cut a moment later. Those that were
   * added before cost a look; where the file cannot be written, that is logged, and tried again with what is added
   * later.
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
    if (this.#isFailing && monotonicMs() < this.#triedMs + againMs) return;
    this.#triedMs = monotonicMs();
    try {
      // The line feed ends a line that an earlier try may have torn.
      appendFileSync(this.#path, this.#isFailing ? `\n${lines}` : lines, { mode: 0o600 });
      this.#unwritten = "";
      this.#isFailing = false;
      this.#syncing = this.#syncing.then(() => this.#sync()).catch((error: unknown) => this.#failed(error));
    } catch (error) {
      this.#failed(error);
    }
  }

  /** The store knows all of it. */
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

  /** Outside of the thread that serves requests. What was told meanwhile need not get to the disk. */
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
