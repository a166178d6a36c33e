// Runs background work periodically, never twice at once, until the server stops.
import type { Log } from "../../base/log.ts";

export class PeriodicJob {
  readonly #work: () => Promise<void>;
  readonly #log: Log;
  readonly #name: string;
  readonly #timer: ReturnType<typeof setInterval>;
  #running: Promise<void> | undefined;
  #isFailing = false;
  #isClosed = false;

  /** Creates a job. `name` is the log message for a failed run. */
  constructor(work: () => Promise<void>, { everyMs, name, log }: { everyMs: number; name: string; log: Log }) {
    this.#work = work;
    this.#log = log;
    this.#name = name;
    this.#timer = setInterval(() => void this.round(), everyMs);
    this.#timer.unref();
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** Waits for the current run, or starts one. Resolves when it has ended. Never rejects. */
  round(): Promise<void> {
    if (this.#isClosed) return Promise.resolve();
    this.#running ??= this.#work()
      .then(() => {
        this.#isFailing = false;
      })
      .catch((error) => {
        const { detail } = error as { detail?: unknown };
        // Consecutive failures are logged once, because a database outage of an hour would fill the log.
        if (!this.#isFailing) this.#log.warn(this.#name, { detail: String(detail ?? error) });
        this.#isFailing = true;
      })
      .finally(() => {
        this.#running = undefined;
      });
    return this.#running;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    clearInterval(this.#timer);
    await this.#running;
  }
}
