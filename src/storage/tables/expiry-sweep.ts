// Deletes expired content of clients in the background, in small steps.
import type { Log } from "../../base/log.ts";

/** The result of one step of a sweep. */
export interface Swept {
  deleted: number;
  /** True if no other row is left to try. */
  isOver: boolean;
  /** An error that ends the sweep, and is logged. */
  fault?: unknown;
}

export interface ExpirySweepOptions {
  /** The log's name for the content. */
  what:
    | "chat"
    | "tool_content"
    | "approved_call"
    | "response"
    | "notice"
    | "file"
    | "batch"
    | "idempotent_request"
    | "export";
  store: {
    /**
     * Deletes up to `limit` rows and returns their number. If some rows may have to stay, returns a `Swept` instead.
     */
    deleteExpired(nowSeconds: number, limit: number): Promise<number | Swept>;
  };
  /** The clock that decides deletions. Content that has expired only by another clock is hidden but still stored. */
  deletionClock: { nowSeconds(): Promise<number> };
  log: Log;
  /** Default: one minute. */
  everyMs?: number;
}

/** Rows per step, few enough that no request is delayed noticeably. */
const batch = 20;
const pauseMs = 10;

export class ExpirySweep {
  readonly #options: ExpirySweepOptions;
  readonly #timer: ReturnType<typeof setInterval>;
  #sweeping: Promise<void> | undefined;
  #closed = false;

  constructor(options: ExpirySweepOptions) {
    this.#options = options;
    this.#timer = setInterval(() => void this.sweep(), options.everyMs ?? 60_000);
  }

  /** Deletes everything that has expired. Never rejects: a failure is logged, and the next sweep continues. */
  sweep(): Promise<void> {
    this.#sweeping ??= this.#sweep();
    return this.#sweeping;
  }

  /** Ends the sweeps. Resolves when the store is not used any more. */
  async close(): Promise<void> {
    this.#closed = true;
    clearInterval(this.#timer);
    await this.#sweeping;
  }

  async #sweep(): Promise<void> {
    const { what, store, deletionClock, log } = this.#options;
    let count = 0;
    try {
      while (!this.#closed) {
        const swept = await store.deleteExpired(await deletionClock.nowSeconds(), batch);
        const { deleted, isOver, fault } =
          typeof swept === "number" ? { deleted: swept, isOver: swept < batch, fault: undefined } : swept;
        count += deleted;
        if (fault !== undefined) throw fault;
        if (isOver) break;
        await Bun.sleep(pauseMs);
      }
    } catch (error) {
      const { detail } = error as { detail?: unknown };
      log.error(`${what}_retention_failed`, { detail: String(detail ?? "unknown") });
    } finally {
      this.#sweeping = undefined;
    }
    if (count > 0) log.info(`${what === "batch" ? "batche" : what}s_expired`, { count });
  }
}
