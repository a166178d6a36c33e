// Deletes expired records in the background, in pieces short enough not to delay requests.
import type { Clock } from "../../base/clock.ts";
import type { Log } from "../../base/log.ts";
import {
  type KeptFrom,
  type PurgeCursor,
  type RetainedKind,
  type RetentionSetting,
  type RetentionSettings,
  type RetentionStore,
  retainedKinds,
} from "../../domain/usage/retention.ts";
import { auditEvent } from "./audit.ts";
import type { DeletionClock } from "./deletion-clock.ts";

export interface RetentionOptions {
  store: RetentionStore;
  /**
   * Adds requests to the sums of usage. Resolves when these include all requests that exist at the call. Rejects if
   * that is not possible.
   */
  rollUp(): Promise<void>;
  /** Called at each sweep, because a reload may change the settings. */
  settings(): RetentionSettings;
  clock: Clock;
  /** The clock by which records expire, which does not follow a clock that jumped ahead. */
  deletionClock: Pick<DeletionClock, "nowSeconds">;
  log: Log;
  /** Milliseconds between sweeps. Default ten minutes. */
  everyMs?: number;
  /** The target duration of a piece in milliseconds, default 4: meanwhile SQLite serves no other query. */
  pieceMs?: number;
  /** Milliseconds before the first sweep. Default half a minute. */
  firstMs?: number;
}

const daySeconds = 86_400;
/** Delay in seconds between the first start of a version with a new default retention and the first deletion. */
const notificationSeconds = 14 * daySeconds;
const defaultPieceMs = 4;
const fewest = 20;
const most = 1_000;
/** Pause after each piece, as a multiple of its duration, so that deleting takes at most a fifth of the time. */
const restFactor = 4;
const minRestMs = 10;

export class Retention {
  readonly #options: RetentionOptions;
  readonly #timers: ReturnType<typeof setTimeout>[];
  #keptFrom: KeptFrom = {};
  #rows = 100;
  /** For each kind, the time before which this process has deleted all records. */
  readonly #cleared = new Map<RetainedKind, number>();
  #isReported = false;
  #isNotificationOver = false;
  #sweeping: Promise<void> | undefined;
  #closed = false;

  constructor(options: RetentionOptions) {
    this.#options = options;
    this.#timers = [
      setInterval(() => void this.sweep(), options.everyMs ?? 600_000),
      setTimeout(() => void this.sweep(), options.firstMs ?? 30_000),
    ];
    for (const timer of this.#timers) timer.unref();
  }

  /** Loads the times before which records were deleted. Call before `keptSince`. */
  async load(): Promise<void> {
    this.#keptFrom = await this.#options.store.keptFrom();
  }

  /** Returns the Unix seconds before which no record is kept; null if nothing was deleted. */
  keptSince(kind: RetainedKind): number | null {
    return this.#keptFrom[kind] ?? null;
  }

  /** Deletes expired records. Never rejects: a failure is logged, and the next sweep continues there. */
  sweep(): Promise<void> {
    this.#sweeping ??= this.#sweep().finally(() => {
      this.#sweeping = undefined;
    });
    return this.#sweeping;
  }

  /** Resolves when the store is no longer used. */
  async close(): Promise<void> {
    this.#closed = true;
    for (const timer of this.#timers) clearTimeout(timer);
    await this.#sweeping;
  }

  async #sweep(): Promise<void> {
    const { log, settings } = this.#options;
    const wanted = settings();
    for (const kind of retainedKinds) {
      if (this.#closed) return;
      try {
        // Load again for each kind, because the time for hourly sums depends on the time for requests.
        await this.load();
        const before = await this.#due(kind, wanted);
        if (before !== undefined) await this.#keepFrom(kind, before, wanted[kind]);
        await this.#clear(kind);
      } catch (error) {
        const { detail } = error as { detail?: unknown };
        log.error("retention_failed", { kind, detail: String(detail ?? error) });
      }
    }
  }

  /**
   * Returns the Unix seconds before which records are deleted: the start of a day (UTC), so that a day is kept or
   * deleted as a whole. Undefined if nothing is to be deleted.
   */
  async #due(kind: RetainedKind, settings: RetentionSettings): Promise<number | undefined> {
    const { days, isDefault } = settings[kind];
    if (days === null) return undefined;
    const now = await this.#options.deletionClock.nowSeconds();
    const before = now - (now % daySeconds) - days * daySeconds;
    if (isDefault && !(await this.#defaultsHold(settings, now))) return undefined;
    if (kind !== "hourly_usage") return before;
    const requests = this.#keptFrom.requests;
    return requests === undefined ? undefined : Math.min(before, requests);
  }

  /**
   * Reports whether default retention applies. Operators are notified for two weeks before a default deletes records.
   */
  async #defaultsHold(settings: RetentionSettings, now: number): Promise<boolean> {
    if (this.#isNotificationOver) return true;
    const { store } = this.#options;
    let from = await store.defaultsFrom();
    if (from === undefined || from > now) {
      const concerned = await this.#isConcerned(settings, now);
      from ??= await store.beginDefaults(concerned ? now + notificationSeconds : now);
      if (concerned && from > now) this.#report(settings, from);
    }
    this.#isNotificationOver = from <= now;
    return this.#isNotificationOver;
  }

  async #isConcerned(settings: RetentionSettings, now: number): Promise<boolean> {
    for (const kind of ["requests", "refusals"] as const) {
      const { days, isDefault } = settings[kind];
      if (!isDefault || days === null) continue;
      if (await this.#options.store.hasOlder(kind, now - days * daySeconds)) return true;
    }
    return false;
  }

  #report(settings: RetentionSettings, from: number): void {
    if (this.#isReported) return;
    this.#isReported = true;
    this.#options.log.warn("retention_begins", {
      at: new Date(from * 1000).toISOString(),
      requests_days: settings.requests.days,
      refusals_days: settings.refusals.days,
      detail:
        "From then on, older requests and counts of refusals are deleted; sums of usage by hour and day stay. To keep them, set retention.requests_days and retention.refusals_days in headrace.yaml: a number of days, or null for good.",
    });
  }

  async #keepFrom(kind: RetainedKind, before: number, { days }: RetentionSetting): Promise<void> {
    if ((this.#keptFrom[kind] ?? Number.NEGATIVE_INFINITY) >= before) return;
    const { store, clock } = this.#options;
    const origin = { nowSeconds: clock.nowSeconds(), clientAddress: null, requestId: null };
    const event =
      kind === "audit"
        ? auditEvent("audit.purged", { type: "system" }, origin, {
            accountId: null,
            targetId: null,
            detail: { before, retention_days: days },
          })
        : undefined;
    await store.keepFrom(kind, before, event);
    await this.load();
  }

  /** Deletes records of a kind, including records that another process left behind. */
  async #clear(kind: RetainedKind): Promise<void> {
    const before = this.#keptFrom[kind];
    if (before === undefined || this.#cleared.get(kind) === before) return;
    const { store, clock, log, rollUp } = this.#options;
    // No older record can arrive now. The remaining ones are added to the sums before they are deleted.
    if (kind === "requests") await rollUp();
    let count = 0;
    for (let cursor: PurgeCursor | undefined | null; cursor !== null && !this.#closed; ) {
      const startedMs = clock.monotonicMs();
      const { deleted, next } = await store.purge(kind, before, { cursor, limit: this.#rows });
      const tookMs = clock.monotonicMs() - startedMs;
      if (deleted === this.#rows) this.#adapt(tookMs);
      count += deleted;
      cursor = next;
      // A piece that deleted nothing took almost no time, so the next account follows immediately.
      if (cursor !== null) await (deleted > 0 ? Bun.sleep(Math.max(minRestMs, tookMs * restFactor)) : immediate());
    }
    if (!this.#closed) this.#cleared.set(kind, before);
    if (count > 0) log.info("records_purged", { kind, count, before: new Date(before * 1000).toISOString() });
  }

  #adapt(tookMs: number): void {
    const { pieceMs = defaultPieceMs } = this.#options;
    if (tookMs > pieceMs) this.#rows = Math.max(fewest, Math.floor(this.#rows / 2));
    else if (tookMs < pieceMs / 2) this.#rows = Math.min(most, this.#rows + 20);
  }
}

function immediate(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
