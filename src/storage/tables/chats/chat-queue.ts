// Brings recorded chats to their store off the request path: a bounded queue, written in batches, kept while the store is away.
import { heldBytes } from "../../../base/bytes/held-bytes.ts";
import type { Log } from "../../../base/log.ts";
import type { ChatStore, ChatWriter, NewChat } from "../../../domain/models/stored-chat.ts";

export interface ChatQueueOptions {
  chats: ChatStore;
  log: Log;
  /** Is read for every chat: a reload may change it. */
  retentionDays(): number;
}

const writeAfterMs = 200;
const retryAfterMs = 2_000;
/** Beyond either of these the newest are not stored, so that a store that is away cannot exhaust memory. */
const maxPending = 1_000;
const maxPendingSize = 64_000_000;
/** Part of what the process may hold in all, which requests need as well. */
const maxPendingPart = 1 / 2;
/** A batch becomes JSON and rows in one go, for which all requests wait. */
const maxBatch = 100;
const maxBatchSize = 4_000_000;

interface Pending {
  chat: NewChat;
  size: number;
}

export class ChatQueue implements ChatWriter {
  readonly #options: ChatQueueOptions;
  #pending: Pending[] = [];
  #pendingSize = 0;
  #dropped = 0;
  #droppedInAll = 0;
  #failing = false;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #writing: Promise<void> | undefined;
  #closed = false;

  constructor(options: ChatQueueOptions) {
    this.#options = options;
  }

  get retentionDays(): number {
    return this.#options.retentionDays();
  }

  /** Chats that wait to be written, about their bytes, and how many were given up. */
  get figures(): { pending: number; bytes: number; dropped: number } {
    return { pending: this.#pending.length, bytes: this.#pendingSize, dropped: this.#droppedInAll + this.#dropped };
  }

  notStored(accountId: string, reason: string): void {
    this.#options.log.warn("chat_not_stored", { account: accountId, reason });
  }

  add(chat: NewChat, size: number): void {
    if (
      this.#closed ||
      this.#pending.length >= maxPending ||
      this.#pendingSize + size > Math.min(maxPendingSize, heldBytes.mostBytes * maxPendingPart)
    ) {
      this.#dropped++;
    } else {
      this.#pending.push({ chat, size });
      this.#count(size);
    }
    if (this.#closed) this.#reportDropped();
    else this.#timer ??= setTimeout(() => void this.#onTimer(), writeAfterMs);
  }

  flush(): Promise<void> {
    if (this.#pending.length > 0) this.#writing ??= this.#write();
    return this.#writing ?? Promise.resolve();
  }

  /** Stores what it can; what is left then is lost, which is logged. */
  async close(): Promise<void> {
    this.#closed = true;
    await this.flush();
    clearTimeout(this.#timer);
    this.#dropped += this.#pending.length;
    this.#pending = [];
    this.#count(-this.#pendingSize);
    this.#reportDropped();
  }

  #count(size: number): void {
    this.#pendingSize += size;
    heldBytes.add("chats", size);
  }

  async #onTimer(): Promise<void> {
    this.#timer = undefined;
    await this.flush();
    this.#reportDropped();
  }

  async #write(): Promise<void> {
    try {
      while (this.#pending.length > 0) {
        const batch = this.#nextBatch();
        await this.#options.chats.insert(batch.map(({ chat }) => chat));
        this.#pending.splice(0, batch.length);
        for (const { size } of batch) this.#count(-size);
        if (this.#failing) this.#options.log.info("chat_write_recovered");
        this.#failing = false;
        await new Promise(setImmediate);
      }
    } catch (error) {
      // The error itself may quote what was to be stored.
      const { detail } = error as { detail?: unknown };
      if (!this.#failing) {
        this.#options.log.error("chat_write_failed", {
          pending: this.#pending.length,
          detail: String(detail ?? "unknown"),
        });
      }
      this.#failing = true;
      if (!this.#closed) this.#timer ??= setTimeout(() => void this.#onTimer(), retryAfterMs);
    } finally {
      this.#writing = undefined;
    }
  }

  #nextBatch(): Pending[] {
    let size = 0;
    let count = 0;
    for (const pending of this.#pending) {
      size += pending.size;
      if (count === maxBatch || (count > 0 && size > maxBatchSize)) break;
      count++;
    }
    return this.#pending.slice(0, count);
  }

  #reportDropped(): void {
    if (this.#dropped === 0) return;
    this.#options.log.error("chats_not_stored", { count: this.#dropped, pending: this.#pending.length });
    this.#droppedInAll += this.#dropped;
    this.#dropped = 0;
  }
}
