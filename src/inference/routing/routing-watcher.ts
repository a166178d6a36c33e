// Learns that upstreams, nodes or MCP servers were changed by another process, and has what this one knows of them read anew.

import type { Log } from "../../base/log.ts";
import type { ChangeFeed } from "../../domain/change-feed.ts";
import type { UpstreamStore } from "../../domain/models/upstream.ts";
import { withDeadline } from "../../policy/deadline.ts";

export interface RoutingWatcherOptions {
  store: Pick<UpstreamStore, "routingRevision">;
  feed: Pick<ChangeFeed, "onChange">;
  /** Takes over what is stored now. Where it rejects, it is called again at the next look. */
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

  /** The first look reads everything anew: something may have changed since this process read it. */
  start(): void {
    const { feed, pollMs = defaultPollMs } = this.#options;
    this.#timer = setInterval(() => void this.poll(), pollMs);
    this.#timer.unref();
    feed.onChange("routing", () => void this.poll());
    void this.poll();
  }

  /** Something else that hangs on the same revision, from the next look on. */
  also(reload: () => Promise<void>): void {
    this.#others.push(reload);
  }

  /** Resolves when it no longer uses the store. */
  async close(): Promise<void> {
    clearInterval(this.#timer);
    this.#timer = undefined;
    await this.#polling;
  }

  /** Resolves when what was changed before the call is known here, or cannot be found out now. Never rejects. */
  poll(): Promise<void> {
    this.#again = true;
    this.#polling ??= this.#pollUntilQuiet().finally(() => {
      this.#polling = undefined;
    });
    return this.#polling;
  }

  /** What is told during a look may be newer than what that look sees. */
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
