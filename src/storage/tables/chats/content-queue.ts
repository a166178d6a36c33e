// Writes content to its store off the request path: a bounded queue, written in batches, kept while the store is away.
import { bufferedBytes } from "../../../base/bytes/buffered-bytes.ts";
import type { Log } from "../../../base/log.ts";

export interface ContentQueueOptions<Content> {
  /** The log's name for one entry. */
  what: "chat" | "tool_content";
  /** Inserts all or none. Existing rows stay unchanged. */
  store: { insert(contents: readonly Content[]): Promise<void> };
  log: Log;
  /**
   * Returns the days to keep an entry. Called for each entry, because a reload may change them. 0: nothing is stored.
   */
  retentionDays(): number;
}

const writeAfterMs = 200;
const retryAfterMs = 2_000;
/**
 * Maximum number and size of waiting entries. Beyond them the newest entries are dropped, so that an unavailable store
 * cannot exhaust memory.
 */
const maxPending = 1_000;
const maxPendingSize = 64_000_000;
/** Share of the process's memory limit, which requests need as well. */
const maxPendingPart = 1 / 2;
/** Maximum number and size of the entries of a batch. Serializing a batch blocks all requests. */
const maxBatch = 100;
const maxBatchSize = 4_000_000;

interface Pending<Content> {
  content: Content;
  size: number;
}

export class ContentQueue<Content> {
  readonly #options: ContentQueueOptions<Content>;
  #pending: Pending<Content>[] = [];
  #pendingSize = 0;
  #dropped = 0;
  #droppedInAll = 0;
  #failing = false;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #writing: Promise<void> | undefined;
  #closed = false;

  constructor(options: ContentQueueOptions<Content>) {
    this.#options = options;
  }

  get retentionDays(): number {
    return this.#options.retentionDays();
  }

  /** Numbers of waiting entries, of their approximate bytes, and of dropped entries. */
  get figures(): { pending: number; bytes: number; dropped: number } {
    return { pending: this.#pending.length, bytes: this.#pendingSize, dropped: this.#droppedInAll + this.#dropped };
  }

  notStored(accountId: string, reason: string): void {
    this.#options.log.warn(`${this.#options.what}_not_stored`, { account: accountId, reason });
  }

  add(content: Content, size: number): void {
    if (
      this.#closed ||
      this.#pending.length >= maxPending ||
      this.#pendingSize + size > Math.min(maxPendingSize, bufferedBytes.maxBytes * maxPendingPart)
    ) {
      this.#dropped++;
    } else {
      this.#pending.push({ content, size });
      this.#count(size);
    }
    if (this.#closed) this.#reportDropped();
    else this.#timer ??= setTimeout(() => void this.#onTimer(), writeAfterMs);
  }

  flush(): Promise<void> {
    if (this.#pending.length > 0) this.#writing ??= this.#write();
    return this.#writing ?? Promise.resolve();
  }

  /** Stores the waiting entries as far as possible. Entries that cannot be stored are lost, which is logged. */
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
    bufferedBytes.add("chats", size);
  }

  async #onTimer(): Promise<void> {
    this.#timer = undefined;
    await this.flush();
    this.#reportDropped();
  }

  async #write(): Promise<void> {
    const { what, store, log } = this.#options;
    try {
      while (this.#pending.length > 0) {
        const batch = this.#nextBatch();
        await store.insert(batch.map(({ content }) => content));
        this.#pending.splice(0, batch.length);
        for (const { size } of batch) this.#count(-size);
        if (this.#failing) log.info(`${what}_write_recovered`);
        this.#failing = false;
        await new Promise(setImmediate);
      }
    } catch (error) {
      // The error may quote the content.
      const { detail } = error as { detail?: unknown };
      if (!this.#failing) {
        log.error(`${what}_write_failed`, { pending: this.#pending.length, detail: String(detail ?? "unknown") });
      }
      this.#failing = true;
      if (!this.#closed) this.#timer ??= setTimeout(() => void this.#onTimer(), retryAfterMs);
    } finally {
      this.#writing = undefined;
    }
  }

  #nextBatch(): Pending<Content>[] {
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
    this.#options.log.error(`${this.#options.what}s_not_stored`, {
      count: this.#dropped,
      pending: this.#pending.length,
    });
    this.#droppedInAll += this.#dropped;
    this.#dropped = 0;
  }
}
