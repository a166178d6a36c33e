// Keeps responses while their clients wait for their end: those of the same moment in one write, each with a deadline.
import type { Log } from "../../base/log.ts";
import type { NotKept, ResponseKeeper } from "../../domain/models/response-keeper.ts";
import type { ResponseStore, StoredResponse } from "../../domain/models/stored-response.ts";
import { roughSizeOf, type StoredRoom } from "./stored-room.ts";

export interface ResponseWriterOptions {
  responses: Pick<ResponseStore, "insert">;
  /** Bounds each account; left out: an account stores as much as it likes. */
  room?: Pick<StoredRoom, "take" | "require"> | undefined;
  log: Log;
  /** Is read for every response: a reload may change it. */
  retentionDays(): number;
  /** Milliseconds that a client waits at most. Default 5 s. */
  maxMs?: number;
}

const defaultMaxMs = 5_000;
/** The longest wait for the sum of all that an account has stored. */
const maxRoomMs = 1_000;
/** Between a write that failed and the next try: a database that is locked or changes hands is back within moments. */
const retryMs = 100;
/** What is written in one transaction, for which other writers wait: responses, and the items of all of them. */
const maxBatch = 32;
const maxBatchItems = 10_000;

interface Waiting {
  response: StoredResponse;
  timer: ReturnType<typeof setTimeout>;
  /** True once the answer says `store: false` for this response. */
  isOver: boolean;
  done(isStored: boolean): void;
}

/**
 * Whoever is answered may go on from the response at once, at another replica: so its row comes first, and a client whose
 * store is away gets its answer all the same, a little later.
 */
export class ResponseWriter implements ResponseKeeper {
  readonly #options: ResponseWriterOptions;
  #waiting: Waiting[] = [];
  #writing: Promise<void> | undefined;
  /** The last write failed, which was logged. */
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

  /** A store that does not tell is away: then the write waits for it, and ends in time. */
  async #hasRoom({ accountId, conversationId, input, response }: StoredResponse): Promise<boolean> {
    const { room } = this.#options;
    if (!room) return true;
    const size = roughSizeOf(input) + roughSizeOf(response);
    const { promise: isLate, resolve: late } = Promise.withResolvers<boolean>();
    const timer = setTimeout(late, maxRoomMs, true);
    // Items of a conversation are stored in the conversation as well.
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
          // A write that has begun is not committed any more.
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

  /** Resolves when nothing is written any more. */
  async close(): Promise<void> {
    await this.#writing;
  }

  async #write(): Promise<void> {
    // Those of the same turn of the event loop are one write.
    await new Promise(setImmediate);
    while (this.#waiting.length > 0) {
      // One that the database does not take must not keep the others out.
      const batch = this.#waiting.splice(0, this.#isFailing ? 1 : this.#nextBatch());
      if (await this.#isWritten(batch)) continue;
      this.#waiting.push(...batch.filter(({ isOver }) => !isOver));
      await new Promise((resolve) => setTimeout(resolve, retryMs));
    }
    this.#writing = undefined;
  }

  /** How many of those that wait; one at least. */
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
      // The error itself may quote what was to be stored.
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
