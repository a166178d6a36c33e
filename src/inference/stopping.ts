// Notifies open requests and streams that the server stops and no longer waits for them.

import { GatewayError } from "../base/errors.ts";
import { type IndexedItem, IndexedSet } from "../base/indexed-set.ts";

/** A request or stream that can be stopped. */
export interface Stoppable extends IndexedItem {
  /** Called once. */
  stop(): void;
}

/** Used instead of an AbortSignal, which is slow with thousands of listeners: adding one visits all of them. */
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

  /** Adds an object. It is stopped immediately if the server is already stopping. */
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
