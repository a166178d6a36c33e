// Tells other replicas what changed, and hears it from them, by publications of Valkey or Redis.
import type { ChangeFeed, ChangeTopic } from "../domain/change-feed.ts";
import type { Log } from "../domain/log.ts";
import { RedisConnection } from "./redis-connection.ts";

export interface RedisChangeFeedOptions {
  /** Has a password; never told to anybody. */
  url: string;
  log: Log;
  /** Before the name of the channel. */
  prefix?: string;
}

/** Nobody waits for these answers. */
const patience = { deadlineMs: 1_000, pingMs: 5_000 };
/** Spares the log what the connection of the limits tells already. */
const silent: Log = { info() {}, warn() {}, error() {} };

export class RedisChangeFeed implements ChangeFeed {
  readonly #channel: string;
  readonly #log: Log;
  /** What this process says begins with it. */
  readonly #sender = crypto.randomUUID();
  readonly #listeners = new Map<ChangeTopic, Set<() => void>>();
  readonly #speaker: RedisConnection;
  /** Apart, as a connection that listens may not speak. */
  readonly #listener: RedisConnection;
  /** Changed while nobody could be told. */
  readonly #untold = new Set<ChangeTopic>();

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

  announce(topic: ChangeTopic): void {
    this.#speaker.send("PUBLISH", [this.#channel, `${this.#sender} ${topic}`]).catch(() => {
      this.#untold.add(topic);
      // It may be there again already.
      if (this.#speaker.isUp) this.#tellUntold();
    });
  }

  onChange(topic: ChangeTopic, listener: () => void): void {
    const listeners = this.#listeners.get(topic) ?? new Set();
    listeners.add(listener);
    this.#listeners.set(topic, listeners);
  }

  close(): void {
    this.#speaker.close();
    this.#listener.close();
  }

  async #listen(): Promise<void> {
    await this.#listener.subscribe(this.#channel, (message) => {
      const [sender, topic] = message.split(" ");
      if (sender !== this.#sender) this.#changed(topic as ChangeTopic);
    });
    // Whatever changed while nobody listened here.
    for (const topic of this.#listeners.keys()) this.#changed(topic);
  }

  #tellUntold(): void {
    const topics = [...this.#untold];
    this.#untold.clear();
    for (const topic of topics) this.announce(topic);
  }

  #changed(topic: ChangeTopic): void {
    for (const listener of this.#listeners.get(topic) ?? []) {
      try {
        listener();
      } catch (error) {
        this.#log.error("change_listener_failed", { topic, detail: String(error) });
      }
    }
  }
}
