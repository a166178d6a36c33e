// Tells everything that is open that the server ends and can wait for it no longer.

import { GatewayError } from "../base/errors.ts";
import { type IndexedItem, IndexedSet } from "../base/indexed-set.ts";

/** What is open. */
export interface Stoppable extends IndexedItem {
  /** Called once. */
  stop(): void;
}

/** An AbortSignal walks through all of its listeners for each new one: with thousands of open streams that is felt. */
export class Stopping {
  readonly #open = new IndexedSet<Stoppable>();
  #begun = false;

  get begun(): boolean {
    return this.#begun;
  }

  /** Once. */
  begin(): void {
    this.#begun = true;
    for (const one of this.#open) {
      this.#open.delete(one);
      one.stop();
    }
  }

  /** One that is not in yet; it is stopped at once where that has begun. */
  add(one: Stoppable): void {
    if (this.#begun) one.stop();
    else this.#open.add(one);
  }

  /** Does nothing where it is not in. */
  remove(one: Stoppable): void {
    this.#open.delete(one);
  }
}

export function stoppingError(): GatewayError {
  return new GatewayError("service_unavailable", "The server is being stopped; send the request again.", {
    retryAfterSeconds: 5,
  });
}
