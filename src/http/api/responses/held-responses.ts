// Responses that a connection alone holds, as they are not kept: what is asked next over it may go on from them.
import type { Holder } from "../../../base/bytes/held-bytes.ts";
import type { StoredItem } from "../../../domain/models/stored-response.ts";

/** The last few: a client goes on from the last, or from one that it forks from. */
const mostHeld = 4;

export class HeldResponses {
  readonly #holder: Holder;
  /** The oldest first; JSON, as a tree takes many times as much. */
  readonly #byId = new Map<string, Buffer>();

  constructor(holder: Holder) {
    this.#holder = holder;
  }

  /** The items of all of its conversation. */
  find(id: string): readonly StoredItem[] | undefined {
    const held = this.#byId.get(id);
    return held && (JSON.parse(held.toString()) as StoredItem[]);
  }

  /** Nothing is held where there is no room for it: going on from it is refused then, as it is after a reconnect. */
  add(id: string, items: readonly StoredItem[]): void {
    this.drop(id);
    const json = Buffer.from(JSON.stringify(items));
    if (this.#holder.take("chats", json.length)) return;
    this.#byId.set(id, json);
    if (this.#byId.size <= mostHeld) return;
    const [oldest] = this.#byId.keys();
    if (oldest !== undefined) this.drop(oldest);
  }

  /** The connection has ended. */
  release(): void {
    for (const id of [...this.#byId.keys()]) this.drop(id);
  }

  /** Forgets a response; no response by that id is no fault. */
  drop(id: string): void {
    const held = this.#byId.get(id);
    if (!held) return;
    this.#byId.delete(id);
    this.#holder.release("chats", held.length);
  }
}
