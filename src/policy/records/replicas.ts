// This process among those that share its database: says that it is there, and knows who else is.
import type { Log } from "../../base/log.ts";
import { type Replica, type ReplicaStore, replicaBeatSeconds } from "../../domain/replica.ts";
import { withDeadline } from "../deadline.ts";

export interface ReplicasOptions {
  store: ReplicaStore;
  advertiseUrl: string | null;
  version: string;
  log: Log;
  /** Whether the database can be shared at all. */
  isShared: boolean;
  /** Whether limits are counted in one place for all; otherwise several of them are worth a warning. */
  sharesLimits: boolean;
  beatMs?: number;
}

/** A beat that takes longer is given up: the next one may find another connection. */
const patienceMs = 4_000;
const farewellMs = 1_000;
const retryMs = 1_000;

export class Replicas {
  readonly id = `rep_${Bun.randomUUIDv7()}`;
  readonly #options: ReplicasOptions;
  #timer: ReturnType<typeof setInterval> | undefined;
  #live: readonly Replica[] = [];
  #beating: Promise<void> | undefined;
  /** Beats in a row that failed. */
  #failures = 0;
  #retry: ReturnType<typeof setTimeout> | undefined;
  #isUncoordinated = false;
  #isClosing = false;

  constructor(options: ReplicasOptions) {
    this.#options = options;
  }

  /** Rejects where the database cannot be written. */
  async start(): Promise<void> {
    await this.#beat();
    this.#timer = setInterval(() => void this.refresh(), this.#options.beatMs ?? replicaBeatSeconds * 1000);
    this.#timer.unref();
  }

  /** Those that were there at the last beat that succeeded, this one included, oldest first. */
  live(): readonly Replica[] {
    return this.#live;
  }

  /** How many share what is shared out; at least 1. A database that is away changes nothing: they are probably still there. */
  get count(): number {
    return Math.max(1, this.#live.length);
  }

  /** Whether several of them count the same limits, each for itself. */
  get isUncoordinated(): boolean {
    return this.#isUncoordinated;
  }

  /**
   * Whether the database takes writes, as each beat is one. One that fails alone says nothing: another program may have had
   * the lock for a moment.
   */
  get canWrite(): boolean {
    return this.#failures < 2;
  }

  /** Says now that it is there. Never rejects. */
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

  /** Others need not wait until it counts as gone. */
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
    const live = await withDeadline(store.beat({ id: this.id, advertiseUrl, version }, !isShared), patienceMs);
    if (this.#isClosing) return;
    this.#live = live;
    this.#judge();
  }

  /** Only one that was seen since this one started is surely there: a process that was killed counts on for some seconds. */
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
