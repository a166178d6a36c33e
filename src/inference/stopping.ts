// Stops open requests and streams if the server stops or if their caller is suspended.

import { GatewayError } from "../base/errors.ts";
import { type IndexedItem, IndexedSet } from "../base/indexed-set.ts";
import type { Principal } from "../domain/principal.ts";
import type { SuspendedCheck } from "../policy/credentials/suspensions.ts";

/** A request or stream that can be stopped. */
export interface Stoppable extends IndexedItem {
  /**
   * The caller whose suspension stops the object. Undefined if the object itself checks whether its caller is
   * suspended.
   */
  readonly caller?: Pick<Principal, "account" | "keys"> | undefined;
  /** Called once. `error` tells the client the reason. */
  stop(error: GatewayError): void;
}

/**
 * Stops many objects at once. An AbortSignal would be slow with thousands of listeners, because adding one visits all
 * of them.
 */
export class Stopping {
  readonly #open = new IndexedSet<Stoppable>();
  #begun = false;
  #suspended: SuspendedCheck | undefined;

  get begun(): boolean {
    return this.#begun;
  }

  /** Stops all objects, because the server stops. Must be called once. */
  begin(): void {
    this.#begun = true;
    for (const one of this.#open) this.#stop(one, stoppingError());
  }

  /** Stops the objects of suspended callers. Objects that such callers add later are stopped too. */
  suspend(suspended: SuspendedCheck): void {
    this.#suspended = suspended;
    for (const one of this.#open) {
      const error = one.caller && suspended(one.caller);
      if (error) this.#stop(one, error);
    }
  }

  /**
   * Adds an object. If the server is already stopping, or if the caller is suspended, the object is stopped
   * immediately.
   */
  add(one: Stoppable): void {
    const error = this.#begun ? stoppingError() : this.#suspended && one.caller && this.#suspended(one.caller);
    if (error) one.stop(error);
    else this.#open.add(one);
  }

  /** Removes an object. Does nothing if the object was not added. */
  remove(one: Stoppable): void {
    this.#open.delete(one);
  }

  #stop(one: Stoppable, error: GatewayError): void {
    this.#open.delete(one);
    one.stop(error);
  }
}

export function stoppingError(): GatewayError {
  return new GatewayError("service_unavailable", "The server is being stopped; send the request again.", {
    retryAfterSeconds: 5,
  });
}
