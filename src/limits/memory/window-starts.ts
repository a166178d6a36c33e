// Stores the start times of rolling windows in a file: the ledger does not have them, and a restart must not begin new
// windows.
import { appendFileSync, existsSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import type { Log } from "../../base/log.ts";

interface Start {
  /** Start of the window in Unix seconds. */
  at: number;
  /** Length of the window in seconds. */
  seconds: number;
}

/** Number of lines from which on the file is rewritten without obsolete lines, if these are the majority. */
const manyLines = 10_000;

export class WindowStarts {
  readonly #path: string;
  readonly #log: Pick<Log, "error">;
  readonly #starts = new Map<string, Start>();
  #lines = 0;
  #isFailing = false;

  constructor(path: string, nowSeconds: number, log: Pick<Log, "error">) {
    this.#path = path;
    this.#log = log;
    const lines = existsSync(path) ? readFileSync(path, "utf8").split("\n") : [];
    // A power cut may leave an incomplete last line, so it is left out.
    for (const line of lines.slice(0, -1)) {
      const [, at, seconds, id] = /^(\d+) (\d+) (.+)$/.exec(line) ?? [];
      if (id !== undefined) this.#starts.set(id, { at: Number(at), seconds: Number(seconds) });
    }
    if (lines.length > 1) this.#write(nowSeconds);
  }

  /**
   * Returns the start of the last window in Unix seconds. Undefined if unknown, or if the start is in the future
   * because the clock was set back.
   */
  lastOf(id: string, nowSeconds: number): number | undefined {
    const start = this.#starts.get(id);
    return start && start.at <= nowSeconds ? start.at : undefined;
  }

  /** Records the start of a window. The record survives a crash of the process, but not always a power cut. */
  add(id: string, at: number, seconds: number): void {
    this.#starts.set(id, { at, seconds });
    if (this.#lines > manyLines && this.#lines > 2 * this.#starts.size) {
      this.#write(at);
      return;
    }
    this.#attempt(() => appendFileSync(this.#path, lineOf(id, { at, seconds }), { mode: 0o600 }));
    this.#lines++;
  }

  /** Rewrites the file without windows that ended longer ago than their length. */
  #write(nowSeconds: number): void {
    for (const [id, { at, seconds }] of this.#starts) if (at + 2 * seconds <= nowSeconds) this.#starts.delete(id);
    const text = Array.from(this.#starts, ([id, start]) => lineOf(id, start)).join("");
    this.#attempt(() => {
      writeFileSync(`${this.#path}.new`, text, { mode: 0o600 });
      renameSync(`${this.#path}.new`, this.#path);
    });
    this.#lines = this.#starts.size;
  }

  /** A failed write is ignored: after a restart, the start is derived from the ledger. */
  #attempt(write: () => void): void {
    try {
      write();
      this.#isFailing = false;
    } catch (error) {
      if (!this.#isFailing) this.#log.error("window_starts_failed", { detail: String(error) });
      this.#isFailing = true;
    }
  }
}

function lineOf(id: string, { at, seconds }: Start): string {
  return `${at} ${seconds} ${id}\n`;
}
