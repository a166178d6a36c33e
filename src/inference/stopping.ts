// Tells everything that is open that the server ends and can wait for it no longer.
import { GatewayError } from "../domain/errors.ts";

/** What is open. */
export interface Stoppable {
  /** Called once. */
  stop(): void;
  /** Where it is among all that is open: kept by `Stopping` alone, `nowhere` at first. */
  place: number;
}

export const nowhere = -1;

/**
 * An AbortSignal walks through all of its listeners for each new one: with thousands of open streams that is felt. A set
 * would be costlier in another way: it moves to new tables as requests come and go, each old table leads to the next,
 * and once the collector has come to regard one of them as old, every request in those behind it stays until the next
 * full collection.
 */
export class Stopping {
  readonly #open: Stoppable[] = [];
  #begun = false;

  get begun(): boolean {
    return this.#begun;
  }

  /** Once. */
  begin(): void {
    this.#begun = true;
    for (let one = this.#open.pop(); one !== undefined; one = this.#open.pop()) {
      one.place = nowhere;
      one.stop();
    }
  }

  /** One that is not in yet; it is stopped at once where that has begun. */
  add(one: Stoppable): void {
    if (this.#begun) one.stop();
    else one.place = this.#open.push(one) - 1;
  }

  /** Does nothing where it is not in. The last one takes its place. */
  remove(one: Stoppable): void {
    const { place } = one;
    if (place === nowhere) return;
    one.place = nowhere;
    const last = this.#open.pop();
    if (last === undefined || last === one) return;
    last.place = place;
    this.#open[place] = last;
  }
}

export function stoppingError(): GatewayError {
  return new GatewayError("service_unavailable", "The server is being stopped; send the request again.", {
    retryAfterSeconds: 5,
  });
}
