// Runs a limited number of tasks at the same time. Other tasks wait in order.
import { GatewayError } from "../base/errors.ts";

export class Turns {
  readonly #maxRunning: number;
  readonly #maxWaiting: number;
  #running = 0;
  readonly #waiting: (() => void)[] = [];

  constructor(maxRunning: number, maxWaiting: number) {
    this.#maxRunning = maxRunning;
    this.#maxWaiting = maxWaiting;
  }

  /** Runs a task. Returns undefined immediately if too many tasks wait. */
  run<Value>(task: () => Promise<Value>): Promise<Value> | undefined {
    if (this.#running < this.#maxRunning) {
      this.#running++;
      return this.#hold(task);
    }
    if (this.#waiting.length >= this.#maxWaiting) return undefined;
    return new Promise<void>((resolve) => this.#waiting.push(resolve)).then(() => this.#hold(task));
  }

  /**
   * Runs a task. If too many tasks wait, throws `service_unavailable` with the message `refusal` and the advice to
   * retry in a second.
   */
  runOrRefuse<Value>(task: () => Promise<Value>, refusal: string): Promise<Value> {
    const done = this.run(task);
    if (done) return done;
    throw new GatewayError("service_unavailable", `${refusal} Retry in 1 s.`, { retryAfterSeconds: 1 });
  }

  async #hold<Value>(task: () => Promise<Value>): Promise<Value> {
    try {
      return await task();
    } finally {
      // The slot goes to the task that has waited longest.
      const next = this.#waiting.shift();
      if (next) next();
      else this.#running--;
    }
  }
}
