// Notifies everything that is open that the server stops and can no longer wait.

import { GatewayError } from "../base/errors.ts";
import { type IndexedItem, IndexedSet } from "../base/indexed-set.ts";

/** An open object that can be stopped. */
export interface Stoppable extends IndexedItem {
  /** Called once. */
  stop(): void;
}

/**
 * Replaces an AbortSignal, which visits all of its listeners for each new one; with thousands of open streams that is
 * slow.
 */
export class Stopping {
  readonly #open = new IndexedSet<Stoppable>();
  #begun = false;

  get begun(): boolean {
    return this.#begun;
  }

  /** Stops all objects; call once. */
  begin(): void {
    this.#begun = true;
    for (const one of this.#open) {
      this.#open.delete(one);
      one.stop();
    }
  }

  /** Adds an object that was not added yet. It is stopped immediately if stopping has begun. */
  add(one: Stoppable): void {
    if (this.#begun) one.stop();
    else this.#open.add(one);
  }

  /** Removes an object. Does nothing if it was not added. */
  remove(one: Stoppable): void {
    this.#open.delete(one);
  }
}

export function stoppingError(): GatewayError {
  return new GatewayError("service_unavailable", "The server is being stopped; send the request again.", {
    retryAfterSeconds: 5,
  });
}
