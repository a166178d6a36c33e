// Stops open requests and streams when the server stops, or when their caller is suspended.

import { GatewayError } from "../base/errors.ts";
import { type IndexedItem, IndexedSet } from "../base/indexed-set.ts";
import type { Principal } from "../domain/principal.ts";
import type { SuspendedCheck } from "../policy/credentials/suspensions.ts";

/** A request or stream that can be stopped. */
export interface Stoppable extends IndexedItem {
  /** The caller. Undefined if the object's own checks end it when its caller is suspended. */
  readonly caller?: Pick<Principal, "account" | "keys"> | undefined;
  /** Called once. `error` is the reason for the client. */
  stop(error: GatewayError): void;
}

/** Used instead of an AbortSignal, which is slow with thousands of listeners: adding one visits all of them. */
export class Stopping {
  readonly #open = new IndexedSet<Stoppable>();
  #begun = false;
  #suspended: SuspendedCheck | undefined;

  get begun(): boolean {
    return this.#begun;
  }

  /** Stops all objects; call once. */
  begin(): void {
    this.#begun = true;
    for (const one of this.#open) this.#stop(one, stoppingError());
  }

  /** Stops the objects of suspended callers, and those that such callers add later. */
  suspend(suspended: SuspendedCheck): void {
    this.#suspended = suspended;
    for (const one of this.#open) {
      const error = one.caller && suspended(one.caller);
      if (error) this.#stop(one, error);
    }
  }

  /** Adds an object. It is stopped immediately if the server is already stopping, or its caller is suspended. */
  add(one: Stoppable): void {
    const error = this.#begun ? stoppingError() : this.#suspended && one.caller && this.#suspended(one.caller);
    if (error) one.stop(error);
    else this.#open.add(one);
  }

  /** Removes an object. Does nothing if it was not added. */
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
