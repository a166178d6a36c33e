// Queues the writers of this process, so that waiting ones hold no connection that readers need.
import { GatewayError } from "../../base/errors.ts";

const maxWaitMs = 5_000;
const maxWaiting = 1_000;

interface Waiting {
  begin(): void;
}

export class WriteTurns {
  readonly #waiting = new Set<Waiting>();
  #busy = false;

  /**
   * Runs transactions in order of arrival. Throws `service_unavailable` if the wait is too long; `work` then does not
   * begin.
   */
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

  /** The queue stays busy until the next writer takes over, so that a new writer cannot overtake it. */
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
