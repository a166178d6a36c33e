// Holds the unstored responses of one connection, so that later requests on the connection can continue a response.
import type { MemoryAccount } from "../base/bytes/buffered-bytes.ts";
import type { StoredItem } from "../domain/models/stored-response.ts";

/** Maximum responses to keep. Clients continue the latest response, or fork from a recent one. */
const maxRecent = 4;

export class RecentResponses {
  readonly #memoryAccount: MemoryAccount;
  /** Responses as JSON, the oldest first. Parsed objects would take many times the memory. */
  readonly #byId = new Map<string, Buffer>();

  constructor(memoryAccount: MemoryAccount) {
    this.#memoryAccount = memoryAccount;
  }

  /** Returns all items of the response's conversation. */
  find(id: string): readonly StoredItem[] | undefined {
    const recent = this.#byId.get(id);
    return recent && (JSON.parse(recent.toString()) as StoredItem[]);
  }

  /**
   * Keeps a response in memory, and drops older ones if memory is short. A response that does not fit is not kept. The
   * client cannot continue it then, as after a reconnect.
   */
  add(id: string, items: readonly StoredItem[]): void {
    this.drop(id);
    const json = Buffer.from(JSON.stringify(items));
    while (this.#memoryAccount.take("chats", json.length)) if (!this.#dropOldest()) return;
    this.#byId.set(id, json);
    if (this.#byId.size > maxRecent) this.#dropOldest();
  }

  /** Drops the oldest response; reports whether there was one. */
  #dropOldest(): boolean {
    const [oldest] = this.#byId.keys();
    if (oldest !== undefined) this.drop(oldest);
    return oldest !== undefined;
  }

  /** Drops all responses when the connection has ended. */
  release(): void {
    for (const id of [...this.#byId.keys()]) this.drop(id);
  }

  /** Drops a response. An unknown id has no effect. */
  drop(id: string): void {
    const recent = this.#byId.get(id);
    if (!recent) return;
    this.#byId.delete(id);
    this.#memoryAccount.release("chats", recent.length);
  }
}
