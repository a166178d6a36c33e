// Keeps responses while their clients wait for their end: those of the same moment in one write, each with a deadline.
import type { Log } from "../../base/log.ts";
import type { NotKept, ResponseKeeper } from "../../domain/models/response-keeper.ts";
import type { ResponseStore, StoredResponse } from "../../domain/models/stored-response.ts";

export interface ResponseWriterOptions {
  responses: Pick<ResponseStore, "insert">;
  log: Log;
  /** Is read for every response: a reload may change it. */
  retentionDays(): number;
  /** How long a client waits for it at most. Default 5 s. */
  mostMs?: number;
}

const usualMostMs = 5_000;
/** A batch becomes JSON and rows in one go, for which all requests wait. */
const maxBatch = 32;

interface Waiting {
  response: StoredResponse;
  timer: ReturnType<typeof setTimeout>;
  done(): void;
}

/**
 * Whoever is answered may go on from the response at once, at another replica: so its row comes first, and a client whose
 * store is away gets its answer all the same, a little later.
 */
export class ResponseWriter implements ResponseKeeper {
  readonly #options: ResponseWriterOptions;
  #waiting: Waiting[] = [];
  #writing: Promise<void> | undefined;

  constructor(options: ResponseWriterOptions) {
    this.#options = options;
  }

  get retentionDays(): number {
    return this.#options.retentionDays();
  }

  keep(response: StoredResponse): Promise<void> {
    return new Promise((resolve) => {
      const waiting: Waiting = {
        response,
        done: resolve,
        timer: setTimeout(() => {
          // One whose write has begun may be kept all the same; nobody can tell.
          this.#waiting = this.#waiting.filter((other) => other !== waiting);
          this.notStored(response.accountId, "too_slow");
          resolve();
        }, this.#options.mostMs ?? usualMostMs),
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
    while (this.#waiting.length > 0) await this.#writeBatch(this.#waiting.splice(0, maxBatch));
    this.#writing = undefined;
  }

  async #writeBatch(batch: readonly Waiting[]): Promise<void> {
    let isKept = true;
    try {
      await this.#options.responses.insert(batch.map(({ response }) => response));
    } catch (error) {
      isKept = false;
      // The error itself may quote what was to be stored.
      const { detail } = error as { detail?: unknown };
      this.#options.log.error("response_write_failed", { count: batch.length, detail: String(detail ?? "unknown") });
    }
    for (const { response, timer, done } of batch) {
      clearTimeout(timer);
      if (!isKept) this.notStored(response.accountId, "store_failed");
      done();
    }
  }
}
