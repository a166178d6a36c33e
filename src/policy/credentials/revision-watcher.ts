// Detects changes of keys, accounts or tiers by any process, and whether the store can be reached.
import type { Clock } from "../../base/clock.ts";
import type { Log } from "../../base/log.ts";
import type { KeyStore } from "../../domain/principal.ts";
import { withDeadline } from "../deadline.ts";

export interface RevisionWatcherOptions {
  keys: Pick<KeyStore, "credentialRevision">;
  clock: Clock;
  log: Log;
  /**
   * Called if something may have changed since the last poll: everything read before is invalid or, with `ids`,
   * everything about these ids.
   */
  onChange(ids?: readonly string[]): void;
  /**
   * Called after `onChange`. Reads data again that is always in memory, such as tiers. If this fails, the next poll
   * counts as a change again.
   */
  reread?(): Promise<void>;
  pollMs?: number;
}

/**
 * `fresh`: nothing changed up to a second ago; `overdue`: the store must be asked first; `away`: the store cannot be
 * asked.
 */
export type Freshness = "fresh" | "overdue" | "away";

const defaultPollMs = 500;
/** Maximum delay of a revocation in milliseconds: an older confirmation is not trusted while the store can be asked. */
const freshMs = 1_000;
/**
 * Milliseconds after which a slow store counts as unavailable, so that requests with a cached key do not wait. A late
 * answer still counts.
 */
const patienceMs = 800;
const abandonMs = 10_000;
const wentBack =
  "The database is an older copy of itself, as after a failover that lost commits: API keys and sessions that were revoked since are valid again, and later keys and usage are gone. Revoke them anew.";

export class RevisionWatcher {
  readonly #options: RevisionWatcherOptions;
  #timer: ReturnType<typeof setInterval> | undefined;
  #revision: number | undefined;
  /** The lower revision of the store that was logged last, so that it is logged only once. */
  #wentBackTo: number | undefined;
  #confirmedMs = Number.NEGATIVE_INFINITY;
  #away = false;
  #asking: Promise<void> | undefined;
  #polling: Promise<void> | undefined;

  constructor(options: RevisionWatcherOptions) {
    this.#options = options;
  }

  start(): void {
    this.#timer ??= setInterval(() => void this.ask(), this.#options.pollMs ?? defaultPollMs);
    this.#timer.unref();
    void this.ask();
  }

  close(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  freshness(unconfirmedMs = this.unconfirmedMs()): Freshness {
    if (unconfirmedMs < freshMs) return "fresh";
    return this.#away ? "away" : "overdue";
  }

  /** True if the last poll failed or took too long. */
  get isAway(): boolean {
    return this.#away;
  }

  /** Milliseconds since the start of the last successful poll. */
  unconfirmedMs(): number {
    return this.#options.clock.monotonicMs() - this.#confirmedMs;
  }

  /**
   * Called when another process reports a change, perhaps with ids. Polls immediately. If the store cannot be asked,
   * the report is trusted. Never rejects.
   */
  hint(ids?: readonly string[]): Promise<void> {
    const hintedMs = this.#options.clock.monotonicMs();
    if (this.#away) this.#options.onChange(ids);
    // A report that arrives during a poll may be newer than the poll's result.
    const done = this.ask().then(() => (this.#confirmedMs < hintedMs ? this.ask() : undefined));
    return done.then(() => {
      if (this.#confirmedMs < hintedMs) this.#options.onChange(ids);
    });
  }

  /** Asks the store now and waits a moment at most. Never rejects; `freshness` then has the result. */
  ask(): Promise<void> {
    this.#polling ??= this.#poll().finally(() => {
      this.#polling = undefined;
    });
    this.#asking ??= withDeadline(this.#polling, patienceMs)
      .catch((error) => {
        if (!this.#away) this.#options.log.warn("key_store_unreachable", { detail: String(error) });
        this.#away = true;
      })
      .finally(() => {
        this.#asking = undefined;
      });
    return this.#asking;
  }

  /** Reads the revision. Polls run one at a time, so that an earlier answer cannot replace a later one. */
  async #poll(): Promise<void> {
    const { keys, clock, log, onChange, reread } = this.#options;
    const startedMs = clock.monotonicMs();
    const revision = await withDeadline(keys.credentialRevision(), abandonMs);
    const hasGoneBack = this.#revision !== undefined && revision < this.#revision;
    if (hasGoneBack && revision !== this.#wentBackTo) {
      this.#wentBackTo = revision;
      log.error("database_went_back", { detail: wentBack });
    }
    // The first poll counts as a change too, because data that was read before the poll may be out of date.
    if (revision !== this.#revision) {
      onChange();
      if (reread) await withDeadline(reread(), abandonMs);
    }
    this.#revision = revision;
    this.#confirmedMs = startedMs;
    if (!this.#away || clock.monotonicMs() - startedMs > patienceMs) return;
    this.#away = false;
    log.info("key_store_reachable");
  }
}
