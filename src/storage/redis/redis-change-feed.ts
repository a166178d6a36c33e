// Notifies replicas of changes through the pub/sub of Valkey or Redis.

import type { Log } from "../../base/log.ts";
import type { ChangeFeed, ChangeTopic } from "../../domain/change-feed.ts";
import { RedisAwayError, RedisConnection } from "./redis-connection.ts";
import { maxAnnouncedIds, UnannouncedChanges } from "./unannounced-changes.ts";

export interface RedisChangeFeedOptions {
  /** The URL may contain a password, so it is never shown. */
  url: string;
  log: Log;
  /** Prefix of the channel's name. */
  prefix?: string;
}

/** Deadlines of the connection. They are long, because no request waits for these answers. */
const patience = { deadlineMs: 1_000, pingMs: 5_000 };
/** Milliseconds until a retry after a connected server refused a publication. */
const retryMs = 1_000;
/** Logs nothing, because the connection of the limits logs the same outage. */
const silent: Log = { info() {}, warn() {}, error() {} };

export class RedisChangeFeed implements ChangeFeed {
  readonly #channel: string;
  readonly #log: Log;
  /** Prefix of this process's messages. */
  readonly #sender = crypto.randomUUID();
  readonly #listeners = new Map<ChangeTopic, Set<(ids?: readonly string[]) => void>>();
  readonly #speaker: RedisConnection;
  /** A separate connection, because a subscribed one cannot send commands. */
  readonly #listener: RedisConnection;
  readonly #unannounced = new UnannouncedChanges();
  #retry: ReturnType<typeof setTimeout> | undefined;
  #isRefused = false;

  /** Resolves after the first attempt to connect. If that attempt fails, the connection keeps trying. */
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
      onConnect: async () => this.#announceMissed(),
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
        this.#unannounced.add(topic, ids);
        if (!(error instanceof RedisAwayError)) this.#refused(error);
        // The connection may be back already.
        else if (this.#speaker.isUp) this.#announceMissed();
      },
    );
  }

  #refused(error: unknown): void {
    if (!this.#isRefused) this.#log.warn("change_feed_refused", { detail: String(error) });
    this.#isRefused = true;
    this.#retry ??= setTimeout(() => {
      this.#retry = undefined;
      this.#announceMissed();
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
    // Changes may have been missed while this process was not subscribed, so every listener is called.
    for (const topic of this.#listeners.keys()) this.#changed(topic);
  }

  #announceMissed(): void {
    for (const [topic, ids] of this.#unannounced.take()) this.announce(topic, ids);
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

/** Reports whether ids fit into a message: they must have no blanks or commas. */
function isSayable(ids: readonly string[] | undefined): ids is readonly string[] {
  return ids !== undefined && ids.length <= maxAnnouncedIds && ids.every((id) => /^[\w-]+$/.test(id));
}
