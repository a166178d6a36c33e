// Responses that a connection alone holds, as they are not kept: what is asked next over it may go on from them.
import type { MemoryAccount } from "../base/bytes/buffered-bytes.ts";
import type { StoredItem } from "../domain/models/stored-response.ts";

/** The last few: a client goes on from the last, or from one that it forks from. */
const maxHeld = 4;

export class HeldResponses {
  readonly #memoryAccount: MemoryAccount;
  /** The oldest first; JSON, as a tree takes many times as much. */
  readonly #byId = new Map<string, Buffer>();

  constructor(memoryAccount: MemoryAccount) {
    this.#memoryAccount = memoryAccount;
  }

  /** The items of all of its conversation. */
  find(id: string): readonly StoredItem[] | undefined {
    const held = this.#byId.get(id);
    return held && (JSON.parse(held.toString()) as StoredItem[]);
  }

  /**
   * Older responses give way where there is no room. If there is none without them either, nothing is held: going on from
   * the response is refused then, as it is after a reconnect.
   */
  add(id: string, items: readonly StoredItem[]): void {
    this.drop(id);
    const json = Buffer.from(JSON.stringify(items));
    while (this.#memoryAccount.take("chats", json.length)) if (!this.#dropOldest()) return;
    this.#byId.set(id, json);
    if (this.#byId.size > maxHeld) this.#dropOldest();
  }

  /** Drops the oldest response; reports whether the connection held a response. */
  #dropOldest(): boolean {
    const [oldest] = this.#byId.keys();
    if (oldest !== undefined) this.drop(oldest);
    return oldest !== undefined;
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
    this.#memoryAccount.release("chats", held.length);
  }
}
