// Polls the store for responses of other replicas. Subscribers of the same response at the same event share one poll.
import type { Clock } from "../../base/clock.ts";
import type { BackgroundStore, EventBatch, RunState } from "../../domain/models/stored-response.ts";

/** Maximum characters of events in one read. */
export const pageSize = 256 * 1024;
/** Milliseconds for which the result of a poll is shared. */
const goodMs = 250;

export interface Poll {
  readonly state: RunState;
  /** Events after the given one. If the response had ended and the list is empty, the subscriber has all events. */
  readonly batches: readonly EventBatch[];
}

export class SharedPolls {
  readonly #background: Pick<BackgroundStore, "events" | "state">;
  readonly #clock: Pick<Clock, "nowSeconds">;
  readonly #polls = new Map<string, Promise<Poll>>();

  constructor(background: Pick<BackgroundStore, "events" | "state">, clock: Pick<Clock, "nowSeconds">) {
    this.#background = background;
    this.#clock = clock;
  }

  poll(id: string, after: number): Promise<Poll> {
    const key = `${id} ${after}`;
    let poll = this.#polls.get(key);
    if (!poll) {
      poll = this.#ask(id, after);
      this.#polls.set(key, poll);
      const forget = () => this.#polls.delete(key);
      poll.then(() => setTimeout(forget, goodMs), forget);
    }
    return poll;
  }

  /** Reads the response's state before its events: if the state shows an end, all events are in the store by then. */
  async #ask(id: string, after: number): Promise<Poll> {
    const state = await this.#background.state(id, this.#clock.nowSeconds());
    return { state, batches: await this.#background.events(id, after, pageSize) };
  }
}
