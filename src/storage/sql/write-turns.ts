// One writer of this process at a time, so that those who wait hold no connection that others could read by.
import { GatewayError } from "../../base/errors.ts";

const maxWaitMs = 5_000;
const maxWaiting = 1_000;

interface Waiting {
  begin(): void;
}

export class WriteTurns {
  readonly #waiting = new Set<Waiting>();
  #busy = false;

  /** Works are done in the order in which they came. Throws `service_unavailable` where that takes too long; the work is not begun then. */
  async take<Result>(work: () => Promise<Result>): Promise<Result> {
    if (this.#busy) await this.#turn();
    this.#busy = true;
    try {
      return await work();
    } finally {
      this.#next();
    }
  }

  #turn(): Promise<void> {
    if (this.#waiting.size >= maxWaiting) return Promise.reject(tooMany());
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const waiting: Waiting = {
      begin() {
        clearTimeout(timer);
        resolve();
      },
    };
    const timer = setTimeout(() => {
      this.#waiting.delete(waiting);
      reject(tooMany());
    }, maxWaitMs);
    this.#waiting.add(waiting);
    return promise;
  }

  /** It stays busy until the next one takes over: nobody who comes in between may overtake. */
  #next(): void {
    const [next] = this.#waiting;
    if (next === undefined) {
      this.#busy = false;
      return;
    }
    this.#waiting.delete(next);
    next.begin();
  }
}

function tooMany(): GatewayError {
  return new GatewayError("service_unavailable", "The database cannot be written at the moment. Retry in 1 s.", {
    detail: "database: too many writers wait",
    retryAfterSeconds: 1,
  });
}
