// When windows began that roll, kept in a file: the ledger does not say it, and a restart must not begin others.
import { appendFileSync, existsSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import type { Log } from "../../base/log.ts";

interface Start {
  /** Unix seconds. */
  at: number;
  /** How long the window is. */
  seconds: number;
}

/** Lines from which on those that say nothing any more are taken out, where they are most of it. */
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
    // The last line may be torn after a power cut.
    for (const line of lines.slice(0, -1)) {
      const [, at, seconds, id] = /^(\d+) (\d+) (.+)$/.exec(line) ?? [];
      if (id !== undefined) this.#starts.set(id, { at: Number(at), seconds: Number(seconds) });
    }
    if (lines.length > 1) this.#write(nowSeconds);
  }

  /** When the last window began, in Unix seconds; undefined where that is not known, or cannot be, as the clock was set back. */
  lastOf(id: string, nowSeconds: number): number | undefined {
    const start = this.#starts.get(id);
    return start && start.at <= nowSeconds ? start.at : undefined;
  }

  /** A window begins. The death of the process loses nothing of it, a power cut may. */
  add(id: string, at: number, seconds: number): void {
    this.#starts.set(id, { at, seconds });
    if (this.#lines > manyLines && this.#lines > 2 * this.#starts.size) {
      this.#write(at);
      return;
    }
    this.#attempt(() => appendFileSync(this.#path, lineOf(id, { at, seconds }), { mode: 0o600 }));
    this.#lines++;
  }

  /** What ended longer than a window ago says nothing any more. */
  #write(nowSeconds: number): void {
    for (const [id, { at, seconds }] of this.#starts) if (at + 2 * seconds <= nowSeconds) this.#starts.delete(id);
    const text = Array.from(this.#starts, ([id, start]) => lineOf(id, start)).join("");
    this.#attempt(() => {
      writeFileSync(`${this.#path}.new`, text, { mode: 0o600 });
      renameSync(`${this.#path}.new`, this.#path);
    });
    this.#lines = this.#starts.size;
  }

  /** Where the disk takes nothing, a restart goes by what the ledger has. */
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
