// What changed while no other replica could be told: by topic, and as little of it as one message would say.
import type { ChangeTopic } from "../../domain/change-feed.ts";

/** That one message names: of more than that, nobody needs to be told which. */
export const maxToldIds = 100;

export class UntoldChanges {
  /** What it was about, where that is known of all of it and is not too much to say. */
  readonly #byTopic = new Map<ChangeTopic, readonly string[] | undefined>();

  /** `ids`: as for `announce`. However often it is called, no more is kept than a message may name. */
  add(topic: ChangeTopic, ids: readonly string[] | undefined): void {
    const before = this.#byTopic.has(topic) ? this.#byTopic.get(topic) : [];
    const isSayable = before && ids && before.length + ids.length <= maxToldIds;
    this.#byTopic.set(topic, isSayable ? [...before, ...ids] : undefined);
  }

  /** All of it, which is forgotten. */
  take(): [topic: ChangeTopic, ids: readonly string[] | undefined][] {
    const untold = [...this.#byTopic];
    this.#byTopic.clear();
    return untold;
  }
}
