// Tells other replicas what changed, and hears it from them, by publications of Valkey or Redis.

import type { Log } from "../../base/log.ts";
import type { ChangeFeed, ChangeTopic } from "../../domain/change-feed.ts";
import { RedisAwayError, RedisConnection } from "./redis-connection.ts";
import { maxToldIds, UntoldChanges } from "./untold-changes.ts";

export interface RedisChangeFeedOptions {
  /** Has a password; never told to anybody. */
  url: string;
  log: Log;
  /** Before the name of the channel. */
  prefix?: string;
}

/** Nobody waits for these answers. */
const patience = { deadlineMs: 1_000, pingMs: 5_000 };
/** After a server that is there has refused to pass something on. */
const retryMs = 1_000;
/** Spares the log what the connection of the limits tells already. */
const silent: Log = { info() {}, warn() {}, error() {} };

export class RedisChangeFeed implements ChangeFeed {
  readonly #channel: string;
  readonly #log: Log;
  /** Begins whatever this process says. */
  readonly #sender = crypto.randomUUID();
  readonly #listeners = new Map<ChangeTopic, Set<(ids?: readonly string[]) => void>>();
  readonly #speaker: RedisConnection;
  /** Apart, as a connection that listens may not speak. */
  readonly #listener: RedisConnection;
  readonly #untold = new UntoldChanges();
  #retry: ReturnType<typeof setTimeout> | undefined;
  #isRefused = false;

  /** Resolves after the first try; where that fails it goes on trying. */
  static async open(options: RedisChangeFeedOptions): Promise<RedisChangeFeed> {
    const feed = new RedisChangeFeed(options);
    await Promise.all([feed.#speaker.start(), feed.#listener.start()]);
    return feed;
  }

  private constructor({ url, log, prefix = "headrace:" }: RedisChangeFeedOptions) {
    this.#log = log;
    this.#channel = `${prefix}changes`;
    this.#speaker = new RedisConnection({
      ...{ url, log: silent, purpose: "changes", ...patience },
      onConnect: async () => this.#tellUntold(),
      onAway() {},
    });
    this.#listener = new RedisConnection({
      ...{ url, log, purpose: "changes", ...patience },
      onConnect: () => this.#listen(),
      onAway() {},
    });
  }

  announce(topic: ChangeTopic, ids?: readonly string[]): void {
    const about = isSayable(ids) ? ` ${ids.join(",")}` : "";
    this.#speaker.send("PUBLISH", [this.#channel, `${this.#sender} ${topic}${about}`]).then(
      () => {
        this.#isRefused = false;
      },
      (error: unknown) => {
        this.#untold.add(topic, ids);
        if (!(error instanceof RedisAwayError)) this.#refused(error);
        // It may be there again already.
        else if (this.#speaker.isUp) this.#tellUntold();
      },
    );
  }

  #refused(error: unknown): void {
    if (!this.#isRefused) this.#log.warn("change_feed_refused", { detail: String(error) });
    this.#isRefused = true;
    this.#retry ??= setTimeout(() => {
      this.#retry = undefined;
      this.#tellUntold();
    }, retryMs);
    this.#retry.unref();
  }

  onChange(topic: ChangeTopic, listener: (ids?: readonly string[]) => void): void {
    const listeners = this.#listeners.get(topic) ?? new Set();
    listeners.add(listener);
    this.#listeners.set(topic, listeners);
  }

  close(): void {
    clearTimeout(this.#retry);
    this.#speaker.close();
    this.#listener.close();
  }

  async #listen(): Promise<void> {
    await this.#listener.subscribe(this.#channel, (message) => {
      const [sender, topic, about] = message.split(" ");
      if (sender !== this.#sender) this.#changed(topic as ChangeTopic, about?.split(","));
    });
    // Whatever changed while nobody listened here.
    for (const topic of this.#listeners.keys()) this.#changed(topic);
  }

  #tellUntold(): void {
    for (const [topic, ids] of this.#untold.take()) this.announce(topic, ids);
  }

  #changed(topic: ChangeTopic, ids?: readonly string[]): void {
    for (const listener of this.#listeners.get(topic) ?? []) {
      try {
        listener(ids);
      } catch (error) {
        this.#log.error("change_listener_failed", { topic, detail: String(error) });
      }
    }
  }
}

/** Ids of ours have no blank and no comma in them. */
function isSayable(ids: readonly string[] | undefined): ids is readonly string[] {
  return ids !== undefined && ids.length <= maxToldIds && ids.every((id) => /^[\w-]+$/.test(id));
}
