// Changes that could not be announced to other replicas, by topic, in the form of a message.
import type { ChangeTopic } from "../../domain/change-feed.ts";

/** Maximum ids of a message. Beyond it, only the topic is announced. */
export const maxAnnouncedIds = 100;

export class UnannouncedChanges {
  /** The affected ids by topic, if all are known and not too many. */
  readonly #byTopic = new Map<ChangeTopic, readonly string[] | undefined>();

  /**
   * Adds a change. `ids` are the affected ids; undefined means that any id may be affected. Memory stays within one
   * message per topic, however often this is called.
   */
  add(topic: ChangeTopic, ids: readonly string[] | undefined): void {
    const before = this.#byTopic.has(topic) ? this.#byTopic.get(topic) : [];
    const isSayable = before && ids && before.length + ids.length <= maxAnnouncedIds;
    this.#byTopic.set(topic, isSayable ? [...before, ...ids] : undefined);
  }

  /** Returns and clears everything. */
  take(): [topic: ChangeTopic, ids: readonly string[] | undefined][] {
    const changes = [...this.#byTopic];
    this.#byTopic.clear();
    return changes;
  }
}
