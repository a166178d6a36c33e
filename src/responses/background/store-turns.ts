// When the responses in the background of this process write to the store: a few at once, and while it is away one now and then.
import type { Clock } from "../../base/clock.ts";

/** PostgreSQL takes so many at once; SQLite one, whatever it is asked. */
const atOnce = 4;
/** Between two tries while it is away. */
const retryMs = 500;

/** SQLite waits for a lock in the thread that serves everybody: hundreds that wait for it one behind the other stop all. */
export class StoreTurns {
  readonly #clock: Pick<Clock, "monotonicMs">;
  readonly #waiting: (() => void)[] = [];
  #working = 0;
  /** Since a try failed, the moment before which there is no other. */
  #awayUntilMs: number | undefined;

  constructor(clock: Pick<Clock, "monotonicMs">) {
    this.#clock = clock;
  }

  /** Rejects where `work` does, and without it while the store is away. */
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
      // Who comes while this one tries waits for what becomes of it.
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
