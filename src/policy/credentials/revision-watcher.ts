// Learns that a key, account or tier was changed, by whichever process, and whether the store can be asked at all.
import type { Clock } from "../../base/clock.ts";
import type { Log } from "../../base/log.ts";
import type { KeyStore } from "../../domain/principal.ts";
import { withDeadline } from "../deadline.ts";

export interface RevisionWatcherOptions {
  keys: Pick<KeyStore, "credentialRevision">;
  clock: Clock;
  log: Log;
  /**
   * Something may have changed since the last look: nothing that was read before holds any more; with `ids`, nothing that is
   * about one of these.
   */
  onChange(ids?: readonly string[]): void;
  /** Then: reads anew what is always at hand, such as tiers. Where it rejects, the next look counts as a change again. */
  reread?(): Promise<void>;
  pollMs?: number;
}

/** `fresh`: nothing changed up to a second ago; `overdue`: that has to be asked first; `away`: it cannot be asked. */
export type Freshness = "fresh" | "overdue" | "away";

const defaultPollMs = 500;
/** The bound on a revocation: what was confirmed longer ago is not believed while the store can be asked. */
const freshMs = 1_000;
/** A store that takes longer is as good as away: a warm key must not wait for it. Its answer counts when it comes. */
const patienceMs = 800;
const abandonMs = 10_000;
const wentBack =
  "The database is an older copy of itself, as after a failover that lost commits: API keys and sessions that were revoked since are valid again, and later keys and usage are gone. Revoke them anew.";

export class RevisionWatcher {
  readonly #options: RevisionWatcherOptions;
  #timer: ReturnType<typeof setInterval> | undefined;
  #revision: number | undefined;
  /** The older revision that the log names already. */
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

  /** Whether the last look failed, or took too long. */
  get isAway(): boolean {
    return this.#away;
  }

  /** Milliseconds since the start of the last look that succeeded. */
  unconfirmedMs(): number {
    return this.#options.clock.monotonicMs() - this.#confirmedMs;
  }

  /**
   * Another process says that something changed, and perhaps what: looks at once, and where the store cannot be asked, takes
   * it for true. Never rejects.
   */
  hint(ids?: readonly string[]): Promise<void> {
    const hintedMs = this.#options.clock.monotonicMs();
    if (this.#away) this.#options.onChange(ids);
    // What is told while it looks may be newer than what that look sees.
    const done = this.ask().then(() => (this.#confirmedMs < hintedMs ? this.ask() : undefined));
    return done.then(() => {
      if (this.#confirmedMs < hintedMs) this.#options.onChange(ids);
    });
  }

  /** Looks now, and waits a moment at most. Never rejects: afterwards `freshness` says how it went. */
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

  /** One at a time, so that no answer overtakes a later one. */
  async #poll(): Promise<void> {
    const { keys, clock, log, onChange, reread } = this.#options;
    const startedMs = clock.monotonicMs();
    const revision = await withDeadline(keys.credentialRevision(), abandonMs);
    const hasGoneBack = this.#revision !== undefined && revision < this.#revision;
    if (hasGoneBack && revision !== this.#wentBackTo) {
      this.#wentBackTo = revision;
      log.error("database_went_back", { detail: wentBack });
    }
    // The first look counts as a change as well: what was read before it may have changed in between.
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
