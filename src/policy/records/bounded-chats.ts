// Stores chats of accounts that are below their storage limit.
import type { Log } from "../../base/log.ts";
import type { ChatStore, NewChat } from "../../domain/models/stored-chat.ts";
import { roughSizeOf, type StoredRoom } from "./stored-room.ts";

export interface BoundedChatsOptions {
  chats: Pick<ChatStore, "insert">;
  room: Pick<StoredRoom, "take" | "giveBack">;
  log: Log;
}

export class BoundedChats implements Pick<ChatStore, "insert"> {
  readonly #options: BoundedChatsOptions;

  constructor(options: BoundedChatsOptions) {
    this.#options = options;
  }

  /** Stores chats. Rejects if the store is unavailable; the caller may then pass all chats again. */
  async insert(chats: readonly NewChat[]): Promise<void> {
    const { room, log } = this.#options;
    const kept: NewChat[] = [];
    const taken: [accountId: string, size: number][] = [];
    for (const chat of chats) {
      const { accountId, messages, completion, parameters } = chat;
      const size = roughSizeOf([messages, completion, parameters]);
      if (await room.take(accountId, size)) {
        kept.push(chat);
        taken.push([accountId, size]);
      } else {
        log.warn("chat_not_stored", { account: accountId, reason: "account_full" });
      }
    }
    try {
      await this.#options.chats.insert(kept);
    } catch (error) {
      for (const [accountId, size] of taken) room.giveBack(accountId, size);
      throw error;
    }
  }
}
