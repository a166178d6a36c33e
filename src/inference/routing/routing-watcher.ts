// Polls whether another process has changed upstreams, nodes or MCP servers. If so, reloads them.

import type { Log } from "../../base/log.ts";
import type { ChangeFeed } from "../../domain/change-feed.ts";
import type { UpstreamStore } from "../../domain/models/upstream.ts";
import { withDeadline } from "../../policy/deadline.ts";

export interface RoutingWatcherOptions {
  store: Pick<UpstreamStore, "routingRevision">;
  feed: Pick<ChangeFeed, "onChange">;
  /** Reads upstreams, nodes and MCP servers from the database. If it rejects, it is called again at the next poll. */
  reload(): Promise<void>;
  log: Log;
  pollMs?: number;
}

const defaultPollMs = 1_000;
const patienceMs = 10_000;

export class RoutingWatcher {
  readonly #options: RoutingWatcherOptions;
  #timer: ReturnType<typeof setInterval> | undefined;
  #revision: number | undefined;
  #polling: Promise<void> | undefined;
  #again = false;
  #isFailing = false;
  readonly #others: (() => Promise<void>)[] = [];

  constructor(options: RoutingWatcherOptions) {
    this.#options = options;
  }

  /** Starts polling. The first poll reloads everything, because data that was read earlier may have changed since. */
  start(): void {
    const { feed, pollMs = defaultPollMs } = this.#options;
    this.#timer = setInterval(() => void this.poll(), pollMs);
    this.#timer.unref();
    feed.onChange("routing", () => void this.poll());
    void this.poll();
  }

  /** Adds a callback, which is also called when the revision has changed. */
  also(reload: () => Promise<void>): void {
    this.#others.push(reload);
  }

  /** Stops polling. Resolves when this object no longer uses the database. */
  async close(): Promise<void> {
    clearInterval(this.#timer);
    this.#timer = undefined;
    await this.#polling;
  }

  /** Polls now. Resolves when all earlier changes are loaded, or when they cannot be read. Never rejects. */
  poll(): Promise<void> {
    this.#again = true;
    this.#polling ??= this.#pollUntilQuiet().finally(() => {
      this.#polling = undefined;
    });
    return this.#polling;
  }

  /** Polls. If a change was reported meanwhile, polls again, because the poll may have missed the change. */
  async #pollUntilQuiet(): Promise<void> {
    const { log } = this.#options;
    while (this.#again && this.#timer !== undefined) {
      this.#again = false;
      try {
        await withDeadline(this.#poll(), patienceMs);
        if (this.#isFailing) log.info("routing_changes_seen_again");
        this.#isFailing = false;
      } catch (error) {
        const { detail } = error as { detail?: unknown };
        if (!this.#isFailing) log.warn("routing_changes_unseen", { detail: String(detail ?? error) });
        this.#isFailing = true;
      }
    }
  }

  async #poll(): Promise<void> {
    const { store, reload } = this.#options;
    const revision = await store.routingRevision();
    if (revision === this.#revision) return;
    await reload();
    for (const other of this.#others) await other();
    this.#revision = revision;
  }
}
