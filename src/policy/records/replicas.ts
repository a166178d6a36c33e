// Registers this process in the shared database, and tracks the other processes that use the database.
import type { Log } from "../../base/log.ts";
import { type Replica, type ReplicaStore, replicaBeatSeconds } from "../../domain/replica.ts";
import type { AttemptReport } from "../../domain/usage/attempt-health.ts";
import { withDeadline } from "../deadline.ts";

export interface ReplicasOptions {
  store: ReplicaStore;
  advertiseUrl: string | null;
  version: string;
  log: Log;
  /** True if several processes can use the database. */
  isShared: boolean;
  /** True if limits are counted in one place for all replicas; otherwise several replicas cause a warning. */
  sharesLimits: boolean;
  beatMs?: number;
}

/** Timeout of a heartbeat in milliseconds. The next heartbeat may get another database connection. */
const patienceMs = 4_000;
const farewellMs = 1_000;
const retryMs = 1_000;

export class Replicas {
  readonly id = `rep_${Bun.randomUUIDv7()}`;
  /** Returns the report of this process on failing upstreams, for the other replicas. */
  attempts: () => readonly AttemptReport[] = () => [];
  readonly #options: ReplicasOptions;
  #timer: ReturnType<typeof setInterval> | undefined;
  #live: readonly Replica[] = [];
  #beating: Promise<void> | undefined;
  /** Number of consecutive failed heartbeats. */
  #failures = 0;
  #retry: ReturnType<typeof setTimeout> | undefined;
  #isUncoordinated = false;
  #isClosing = false;

  constructor(options: ReplicasOptions) {
    this.#options = options;
  }

  /** Registers this process. Rejects if the database cannot be written. */
  async start(): Promise<void> {
    await this.#beat();
    this.#timer = setInterval(() => void this.refresh(), this.#options.beatMs ?? replicaBeatSeconds * 1000);
    this.#timer.unref();
  }

  /** Returns the replicas at the last successful heartbeat, this one included, oldest first. */
  live(): readonly Replica[] {
    return this.#live;
  }

  /** Returns the reports of the other live replicas on failing upstreams. */
  get othersAttempts(): readonly AttemptReport[] {
    return this.#live.flatMap(({ id, attempts }) => (id === this.id ? [] : (attempts ?? [])));
  }

  /**
   * Number of replicas that share limits, at least 1. If the database is unavailable, the number stays: the other
   * replicas probably still run.
   */
  get count(): number {
    return Math.max(1, this.#live.length);
  }

  /** True if several replicas count the same limits separately. */
  get isUncoordinated(): boolean {
    return this.#isUncoordinated;
  }

  /**
   * True if the database accepts writes, as every heartbeat is a write. A single failed heartbeat does not count,
   * because another program may have held the lock.
   */
  get canWrite(): boolean {
    return this.#failures < 2;
  }

  /** Sends a heartbeat now. Never rejects. */
  refresh(): Promise<void> {
    const { log } = this.#options;
    this.#beating ??= this.#beat()
      .then(() => {
        if (this.#failures > 0) log.info("replica_beats_again");
        this.#failures = 0;
      })
      .catch((error) => {
        if (this.#failures === 0) log.warn("replica_beat_failed", { detail: detailOf(error) });
        this.#failures++;
        if (!this.#isClosing) this.#retry ??= setTimeout(() => this.#again(), retryMs);
      })
      .finally(() => {
        this.#beating = undefined;
      });
    return this.#beating;
  }

  /** Removes this replica from the database, so that other replicas need not wait until it counts as gone. */
  async close(): Promise<void> {
    this.#isClosing = true;
    clearInterval(this.#timer);
    clearTimeout(this.#retry);
    await this.#beating;
    const { store, log } = this.#options;
    await withDeadline(store.remove(this.id), farewellMs).catch((error) =>
      log.warn("replica_not_removed", { detail: detailOf(error) }),
    );
  }

  #again(): void {
    this.#retry = undefined;
    void this.refresh();
  }

  async #beat(): Promise<void> {
    const { store, advertiseUrl, version, isShared } = this.#options;
    const live = await withDeadline(
      store.beat({ id: this.id, advertiseUrl, version, attempts: this.attempts() }, !isShared),
      patienceMs,
    );
    if (this.#isClosing) return;
    this.#live = live;
    this.#judge();
  }

  /**
   * Count only replicas with a heartbeat since this process started: a killed process stays listed for some more
   * seconds.
   */
  #judge(): void {
    const own = this.#live.find(({ id }) => id === this.id);
    const others = this.#live.filter(({ id, seenAt }) => id !== this.id && own && seenAt > own.startedAt);
    const isUncoordinated = !this.#options.sharesLimits && others.length > 0;
    if (isUncoordinated && !this.#isUncoordinated) {
      this.#options.log.warn("limits_are_not_shared", {
        replicas: others.length + 1,
        detail:
          "Several replicas run without HEADRACE_REDIS_URL, so each counts limits for itself and a client gets as many times as much. Give all of them the same Redis or Valkey.",
      });
    }
    this.#isUncoordinated = isUncoordinated;
  }
}

function detailOf(error: unknown): string {
  const { detail } = error as { detail?: unknown };
  return String(detail ?? error);
}
