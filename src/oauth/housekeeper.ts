// Deletes expired records in the background: codes, tokens, sessions, links.
import type { Log } from "../base/log.ts";

export interface HousekeeperOptions {
  /** Tasks by name for the log. Each does a limited amount at a time. */
  tasks: Readonly<Record<string, (nowSeconds: number) => Promise<void>>>;
  /**
   * The clock for deletions. It does not follow a system clock that is wrong, because that would delete, for example,
   * the refresh tokens of all apps.
   */
  deletionClock: { nowSeconds(): Promise<number> };
  log: Log;
  /** The interval. Default one minute. */
  everyMs?: number;
}

export class Housekeeper {
  readonly #options: HousekeeperOptions;
  readonly #timer: ReturnType<typeof setInterval>;
  #sweeping: Promise<void> | undefined;

  constructor(options: HousekeeperOptions) {
    this.#options = options;
    this.#timer = setInterval(() => void this.sweep(), options.everyMs ?? 60_000);
  }

  /** Runs the tasks. Never rejects: a failure is logged, does not stop the other tasks, and is retried next time. */
  sweep(): Promise<void> {
    this.#sweeping ??= this.#sweep().finally(() => {
      this.#sweeping = undefined;
    });
    return this.#sweeping;
  }

  /** Resolves once no task uses a store. */
  async close(): Promise<void> {
    clearInterval(this.#timer);
    await this.#sweeping;
  }

  async #sweep(): Promise<void> {
    const { tasks, deletionClock, log } = this.#options;
    for (const [task, run] of Object.entries(tasks)) {
      try {
        await run(await deletionClock.nowSeconds());
      } catch (error) {
        const { detail } = error as { detail?: unknown };
        log.error("housekeeping_failed", { task, detail: String(detail ?? "unknown") });
      }
    }
  }
}
