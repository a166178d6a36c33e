// Deletes what is stored for clients once it has expired, in the background and in small pieces.
import type { Log } from "../../base/log.ts";

/** The result of one piece of a sweep. */
export interface Swept {
  deleted: number;
  /** True if no other row is left to try. */
  isOver: boolean;
  /** Ends the sweep, and is logged. */
  fault?: unknown;
}

export interface ExpirySweepOptions {
  /** What the log calls it. */
  what: "chat" | "tool_content" | "approved_call" | "response" | "notice" | "file" | "batch";
  store: {
    /** Deletes up to `limit`; gives how many, and, where some may have to stay, whether the sweep is over. */
    deleteExpired(nowSeconds: number, limit: number): Promise<number | Swept>;
  };
  /** The clock by which it deletes: what has expired by another one is not found any more, but still there. */
  deletionClock: { nowSeconds(): Promise<number> };
  log: Log;
  /** One minute unless told otherwise. */
  everyMs?: number;
}

/** Few enough that no request notices; in between, others have their turn. */
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

  /** Deletes all that has expired by now. Never rejects: a failure is logged, and the next sweep goes on from there. */
  sweep(): Promise<void> {
    this.#sweeping ??= this.#sweep();
    return this.#sweeping;
  }

  /** Resolves when it no longer uses the store. */
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
