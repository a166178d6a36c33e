// Stores the start times of rolling windows in a file, so that a restart does not begin new windows.
import { appendFileSync, existsSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import type { Log } from "../../base/log.ts";

interface Start {
  /** Start of the window in Unix seconds. */
  at: number;
  /** Length of the window in seconds. */
  seconds: number;
}

/** Number of lines from which the file is rewritten, if most of its lines are obsolete. */
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
    // The last line may be incomplete after a power cut, so it is ignored.
    for (const line of lines.slice(0, -1)) {
      const [, at, seconds, id] = /^(\d+) (\d+) (.+)$/.exec(line) ?? [];
      if (id !== undefined) this.#starts.set(id, { at: Number(at), seconds: Number(seconds) });
    }
    if (lines.length > 1) this.#write(nowSeconds);
  }

  /**
   * Returns the start of the last window in Unix seconds; undefined if it is unknown or lies in the future because the
   * clock was set back.
   */
  lastOf(id: string, nowSeconds: number): number | undefined {
    const start = this.#starts.get(id);
    return start && start.at <= nowSeconds ? start.at : undefined;
  }

  /** Stores the start of a window. It survives a crash of the process, but perhaps not a power cut. */
  add(id: string, at: number, seconds: number): void {
    this.#starts.set(id, { at, seconds });
    if (this.#lines > manyLines && this.#lines > 2 * this.#starts.size) {
      this.#write(at);
      return;
    }
    this.#attempt(() => appendFileSync(this.#path, lineOf(id, { at, seconds }), { mode: 0o600 }));
    this.#lines++;
  }

  /** Rewrites the file. Leaves out windows that ended longer ago than their length. */
  #write(nowSeconds: number): void {
    for (const [id, { at, seconds }] of this.#starts) if (at + 2 * seconds <= nowSeconds) this.#starts.delete(id);
    const text = Array.from(this.#starts, ([id, start]) => lineOf(id, start)).join("");
    this.#attempt(() => {
      writeFileSync(`${this.#path}.new`, text, { mode: 0o600 });
      renameSync(`${this.#path}.new`, this.#path);
    });
    this.#lines = this.#starts.size;
  }

  /** Runs a write. A failure is only logged: after a restart, the ledger shows when usage began. */
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
