// Limits the writes of background responses to the store: a few at once, and a single try at a time while the store is
// unavailable.
import type { Clock } from "../../base/clock.ts";

/** Concurrent writes. PostgreSQL takes this many, and SQLite runs one at a time anyway. */
const atOnce = 4;
/** Milliseconds between two tries while the store is unavailable. */
const retryMs = 500;

/**
 * Queues writes. SQLite waits for locks in the thread that serves requests, so hundreds of waiting writes would block
 * the server.
 */
export class StoreTurns {
  readonly #clock: Pick<Clock, "monotonicMs">;
  readonly #waiting: (() => void)[] = [];
  #working = 0;
  /** Time of the next try after a failure; undefined: the store is available. */
  #awayUntilMs: number | undefined;

  constructor(clock: Pick<Clock, "monotonicMs">) {
    this.#clock = clock;
  }

  /**
   * Runs `work` when a slot is free. Rejects with the error of `work`. While the store is unavailable, rejects without
   * calling `work`.
   */
  async take<Result>(work: () => Promise<Result>): Promise<Result> {
    if (this.#working < atOnce) this.#working++;
    else await new Promise<void>((resolve) => this.#waiting.push(resolve));
    try {
      return await this.#tried(work);
    } finally {
      const next = this.#waiting.shift();
      if (next) next();
      else this.#working--;
    }
  }

  async #tried<Result>(work: () => Promise<Result>): Promise<Result> {
    const nowMs = this.#clock.monotonicMs();
    if (this.#awayUntilMs !== undefined) {
      if (nowMs < this.#awayUntilMs) throw new Error("The store is away.");
      // Only this caller tries the store. Other callers get an error until its result arrives or `retryMs` has passed.
      this.#awayUntilMs = nowMs + retryMs;
    }
    try {
      const result = await work();
      this.#awayUntilMs = undefined;
      return result;
    } catch (error) {
      this.#awayUntilMs = this.#clock.monotonicMs() + retryMs;
      throw error;
    }
  }
}
