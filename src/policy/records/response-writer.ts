// Stores responses before their clients get the end of the answer. Responses that end together share one write; each
// has a deadline.
import type { Log } from "../../base/log.ts";
import type { NotKept, ResponseKeeper } from "../../domain/models/response-keeper.ts";
import type { ResponseStore, StoredResponse } from "../../domain/models/stored-response.ts";
import { roughSizeOf, type StoredRoom } from "./stored-room.ts";

export interface ResponseWriterOptions {
  responses: Pick<ResponseStore, "insert">;
  /** Limits the storage of each account; absent if accounts have no limit. */
  room?: Pick<StoredRoom, "take" | "require"> | undefined;
  log: Log;
  /** Called for every response, because a reload may change the value. */
  retentionDays(): number;
  /** Maximum milliseconds that a client waits. Default 5 s. */
  maxMs?: number;
}

const defaultMaxMs = 5_000;
/** Maximum milliseconds to wait for the sum of an account's stored data. */
const maxRoomMs = 1_000;
/**
 * Milliseconds between a failed write and the next attempt: a locked database or a failover recovers within moments.
 */
const retryMs = 100;
/** Maximum responses, and maximum items of these, in one transaction. Other writers wait during a transaction. */
const maxBatch = 32;
const maxBatchItems = 10_000;

interface Waiting {
  response: StoredResponse;
  timer: ReturnType<typeof setTimeout>;
  /** True once the client is told `store: false` for this response. */
  isOver: boolean;
  done(isStored: boolean): void;
}

/**
 * Stores responses before their clients get the end of the answer: a client may continue from the response immediately,
 * at another replica. If the store is unavailable, the client still gets its answer, a little later.
 */
export class ResponseWriter implements ResponseKeeper {
  readonly #options: ResponseWriterOptions;
  #waiting: Waiting[] = [];
  #writing: Promise<void> | undefined;
  /** True if the last write failed, which was logged. */
  #isFailing = false;

  constructor(options: ResponseWriterOptions) {
    this.#options = options;
  }

  get retentionDays(): number {
    return this.#options.retentionDays();
  }

  async requireRoom(accountId: string, size: number): Promise<void> {
    await this.#options.room?.require(accountId, size);
  }

  async keep(response: StoredResponse): Promise<boolean> {
    if (await this.#hasRoom(response)) return await this.#keep(response);
    this.notStored(response.accountId, "account_full");
    return false;
  }

  /**
   * Reports whether the account has storage left. True if the sum cannot be read in time: the store is then
   * unavailable, and the write has its own deadline.
   */
  async #hasRoom({ accountId, conversationId, input, response }: StoredResponse): Promise<boolean> {
    const { room } = this.#options;
    if (!room) return true;
    const size = roughSizeOf(input) + roughSizeOf(response);
    const { promise: isLate, resolve: late } = Promise.withResolvers<boolean>();
    const timer = setTimeout(late, maxRoomMs, true);
    // Items of a conversation are stored twice: in the response and in the conversation.
    const hasRoom = room.take(accountId, conversationId === null ? size : 2 * size).catch(() => true);
    return await Promise.race([hasRoom, isLate]).finally(() => clearTimeout(timer));
  }

  #keep(response: StoredResponse): Promise<boolean> {
    return new Promise((resolve) => {
      const waiting: Waiting = {
        response,
        done: resolve,
        isOver: false,
        timer: setTimeout(() => {
          // Prevents the commit of a write that has begun.
          waiting.isOver = true;
          this.#waiting = this.#waiting.filter((other) => other !== waiting);
          this.notStored(response.accountId, this.#isFailing ? "store_failed" : "too_slow");
          resolve(false);
        }, this.#options.maxMs ?? defaultMaxMs),
      };
      this.#waiting.push(waiting);
      this.#writing ??= this.#write();
    });
  }

  notStored(accountId: string, reason: NotKept): void {
    this.#options.log.warn("response_not_stored", { account: accountId, reason });
  }

  /** Resolves when nothing is being written any more. */
  async close(): Promise<void> {
    await this.#writing;
  }

  async #write(): Promise<void> {
    // Responses of the same event-loop tick are written together.
    await new Promise(setImmediate);
    while (this.#waiting.length > 0) {
      // After a failure, responses are written one by one, so that one which the database refuses does not block the
      // others.
      const batch = this.#waiting.splice(0, this.#isFailing ? 1 : this.#nextBatch());
      if (await this.#isWritten(batch)) continue;
      this.#waiting.push(...batch.filter(({ isOver }) => !isOver));
      await new Promise((resolve) => setTimeout(resolve, retryMs));
    }
    this.#writing = undefined;
  }

  /** Returns the number of waiting responses to write next, at least one. */
  #nextBatch(): number {
    let items = 0;
    for (const [count, { response }] of this.#waiting.slice(0, maxBatch).entries()) {
      const output = response.response["output"];
      items += response.input.length + (Array.isArray(output) ? output.length : 0);
      if (count > 0 && items > maxBatchItems) return count;
    }
    return Math.min(this.#waiting.length, maxBatch);
  }

  async #isWritten(batch: readonly Waiting[]): Promise<boolean> {
    const { responses, log } = this.#options;
    let isTooLate = false;
    const mayCommit = () => {
      isTooLate = batch.some(({ isOver }) => isOver);
      return !isTooLate;
    };
    try {
      await responses.insert(
        batch.map(({ response }) => response),
        mayCommit,
      );
    } catch (error) {
      if (isTooLate) return false;
      // The error itself may quote stored content, so only its detail is logged.
      const { detail } = error as { detail?: unknown };
      if (!this.#isFailing) {
        log.error("response_write_failed", { count: batch.length, detail: String(detail ?? "unknown") });
      }
      this.#isFailing = true;
      return false;
    }
    this.#isFailing = false;
    for (const { timer, done } of batch) {
      clearTimeout(timer);
      done(true);
    }
    return true;
  }
}
