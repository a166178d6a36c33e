// Notices that another process changed upstreams, nodes or MCP servers, and reloads what this process knows of them.

import type { Log } from "../../base/log.ts";
import type { ChangeFeed } from "../../domain/change-feed.ts";
import type { UpstreamStore } from "../../domain/models/upstream.ts";
import { withDeadline } from "../../policy/deadline.ts";

export interface RoutingWatcherOptions {
  store: Pick<UpstreamStore, "routingRevision">;
  feed: Pick<ChangeFeed, "onChange">;
  /** Loads the stored state. If it rejects, it is called again at the next poll. */
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

  /** The first poll reloads everything: something may have changed since this process read it. */
  start(): void {
    const { feed, pollMs = defaultPollMs } = this.#options;
    this.#timer = setInterval(() => void this.poll(), pollMs);
    this.#timer.unref();
    feed.onChange("routing", () => void this.poll());
    void this.poll();
  }

  /** Adds another callback for the same revision, from the next poll on. */
  also(reload: () => Promise<void>): void {
    this.#others.push(reload);
  }

  /** Resolves when the store is no longer used. */
  async close(): Promise<void> {
    clearInterval(this.#timer);
    this.#timer = undefined;
    await this.#polling;
  }

  /** Resolves when changes before the call are known here, or cannot be read now. Never rejects. */
  poll(): Promise<void> {
    this.#again = true;
    this.#polling ??= this.#pollUntilQuiet().finally(() => {
      this.#polling = undefined;
    });
    return this.#polling;
  }

  /** A change that is reported during a poll may be newer than the poll's result. */
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
