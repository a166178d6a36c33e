// Looks into the store for a response that another replica works on: one for all who follow it from the same event on.
import type { Clock } from "../../base/clock.ts";
import type { BackgroundStore, EventBatch, RunState } from "../../domain/models/stored-response.ts";

/** Characters of events that are read at once. */
export const pageSize = 256 * 1024;
/** So long a look is good for others as well. */
const goodMs = 250;

export interface Look {
  readonly state: RunState;
  /** Events behind the one that was named: all of them, where there is none, and it had ended. */
  readonly batches: readonly EventBatch[];
}

export class SharedPolls {
  readonly #background: Pick<BackgroundStore, "events" | "state">;
  readonly #clock: Pick<Clock, "nowSeconds">;
  readonly #looks = new Map<string, Promise<Look>>();

  constructor(background: Pick<BackgroundStore, "events" | "state">, clock: Pick<Clock, "nowSeconds">) {
    this.#background = background;
    this.#clock = clock;
  }

  look(id: string, after: number): Promise<Look> {
    const key = `${id} ${after}`;
    let look = this.#looks.get(key);
    if (!look) {
      look = this.#ask(id, after);
      this.#looks.set(key, look);
      const forget = () => this.#looks.delete(key);
      look.then(() => setTimeout(forget, goodMs), forget);
    }
    return look;
  }

  /** The state first: what had ended by then has all of its events there. */
  async #ask(id: string, after: number): Promise<Look> {
    const state = await this.#background.state(id, this.#clock.nowSeconds());
    return { state, batches: await this.#background.events(id, after, pageSize) };
  }
}
