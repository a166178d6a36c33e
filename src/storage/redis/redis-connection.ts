// A connection to Valkey or Redis with a deadline for each answer and automatic reconnects. It is either up or known to
// be away.

import { RedisClient } from "bun";
import { exactMs } from "../../base/clock.ts";
import { type IndexedItem, IndexedSet, noIndex } from "../../base/indexed-set.ts";
import type { Log } from "../../base/log.ts";

export interface RedisConnectionOptions {
  /** The URL may contain a password, which never leaves this class. */
  url: string;
  log: Log;
  /** The purpose of the connection, for the log. */
  purpose: string;
  /**
   * Called for a new connection, on which `send` already works. The connection counts as up once this resolves. A
   * rejection closes the connection.
   */
  onConnect(): Promise<void>;
  /** Called when the connection is lost, before pending commands are rejected. */
  onAway(): void;
  /** Maximum time for an answer in milliseconds. */
  deadlineMs?: number | undefined;
  /** Time between two attempts. */
  retryMs?: number | undefined;
  /** Interval of pings without other traffic, because a cut cable is silent. */
  pingMs?: number;
}

/** Thrown if the connection is away. The outcome of the command is unknown: it may have run. */
export class RedisAwayError extends Error {
  override readonly name: string = "RedisAwayError";
}

/** Returns the id of the server process from its answer to INFO. A server that was restarted has another id. */
export function runIdOf(info: string): string | undefined {
  return /^run_id:(\w+)/m.exec(info)?.[1];
}

interface Waiting extends IndexedItem {
  sentMs: number;
  reject(error: unknown): void;
}

const defaultDeadlineMs = 250;
const defaultRetryMs = 1_000;
const connectMs = 1_000;
const secondCheckMs = 10;
/** If a check is this many milliseconds late, this process was busy, and has not read the answers either. */
const busyMs = 30;
const maxBusyMs = 1_000;
/** If a connection lasted this many milliseconds, it is reestablished at once after a loss. */
const steadyMs = 2_000;

export class RedisConnection {
  readonly #options: RedisConnectionOptions;
  readonly #deadlineMs: number;
  readonly #retryMs: number;
  #client: RedisClient | undefined;
  #isUp = false;
  #isClosed = false;
  #upSinceMs = 0;
  #reportedState: "up" | "away" | undefined;
  #retry: ReturnType<typeof setTimeout> | undefined;
  #watch: ReturnType<typeof setTimeout> | undefined;
  #pings: ReturnType<typeof setInterval> | undefined;
  readonly #waiting = new IndexedSet<Waiting>();
  #reason = "not tried yet";

  constructor(options: RedisConnectionOptions) {
    this.#options = options;
    this.#deadlineMs = options.deadlineMs ?? defaultDeadlineMs;
    this.#retryMs = options.retryMs ?? defaultRetryMs;
  }

  get isUp(): boolean {
    return this.#isUp;
  }

  /** The reason why the connection is not up, without secrets. */
  get reason(): string {
    return this.#reason;
  }

  /** Resolves after the first attempt to connect, even if it failed. Further attempts follow automatically. */
  start(): Promise<void> {
    return this.#connect();
  }

  /** Rejects if the connection is away, if no answer comes in time, and with the server's error. */
  send(command: string, args: string[]): Promise<unknown> {
    const client = this.#client;
    if (!client) return Promise.reject(new RedisAwayError(this.#reason));
    return this.#inOrder(client.send(command, args));
  }

  /** Subscribes until the connection is lost. Requires a connection that is used for nothing else. */
  async subscribe(channel: string, listener: (message: string) => void): Promise<void> {
    const client = this.#client;
    if (!client) throw new RedisAwayError(this.#reason);
    await this.#inOrder(client.subscribe(channel, listener));
  }

  /**
   * Closes the connection, because the caller has found a fault. A new attempt to connect follows, as after any loss.
   */
  giveUp(reason: string): void {
    this.#lose(this.#client, reason);
  }

  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#retry);
    this.#lose(this.#client, "closed");
  }

  async #connect(): Promise<void> {
    const { url, onConnect } = this.#options;
    // Bun's automatic reconnect would lose subscriptions, and repeat commands that were already reported as failed.
    const client = new RedisClient(url, {
      autoReconnect: false,
      enableOfflineQueue: false,
      connectionTimeout: connectMs,
    });
    try {
      await this.#inTime(client.connect());
      if (this.#isClosed) return client.close();
      this.#client = client;
      client.onclose = () => this.#lose(client, "the connection was closed");
      await onConnect();
    } catch (error) {
      client.onclose = null;
      client.close();
      return this.#lose(this.#client === client ? client : undefined, reasonOf(error));
    }
    if (this.#client !== client) return;
    this.#isUp = true;
    this.#upSinceMs = exactMs();
    const { pingMs } = this.#options;
    if (pingMs) {
      // A failed ping closes the connection.
      this.#pings = setInterval(() => this.#inOrder(client.ping()).catch(() => {}), pingMs);
      this.#pings.unref();
    }
    if (this.#reportedState !== "up") this.#options.log.info("redis_connected", { purpose: this.#options.purpose });
    this.#reportedState = "up";
  }

  #lose(client: RedisClient | undefined, reason: string): void {
    // The connection was closed before.
    if (client !== this.#client) return;
    this.#reason = reason;
    const { log, purpose, onAway } = this.#options;
    const wasUp = this.#isUp;
    this.#isUp = false;
    this.#client = undefined;
    clearTimeout(this.#watch);
    this.#watch = undefined;
    clearInterval(this.#pings);
    if (client) onAway();
    // Rejects the commands in the order in which they were sent: the first caller gets the share that this process may
    // still grant without Redis.
    for (const waiting of [...this.#waiting].sort((a, b) => a.sentMs - b.sentMs)) {
      this.#waiting.delete(waiting);
      waiting.reject(new RedisAwayError(reason));
    }
    if (client) {
      client.onclose = null;
      client.close();
    }
    if (this.#isClosed) return;
    if (this.#reportedState !== "away") log.warn("redis_away", { purpose, reason });
    this.#reportedState = "away";
    const isSteady = wasUp && exactMs() - this.#upSinceMs > steadyMs;
    clearTimeout(this.#retry);
    this.#retry = setTimeout(() => void this.#connect(), isSteady ? 0 : this.#retryMs);
    this.#retry.unref();
  }

  /** Checks whether the oldest command has waited for too long. */
  #check(): void {
    this.#watch = undefined;
    let oldest: Waiting | undefined;
    for (const waiting of this.#waiting) if (!oldest || waiting.sentMs < oldest.sentMs) oldest = waiting;
    if (!oldest) return;
    const leftMs = oldest.sentMs + this.#deadlineMs - exactMs();
    if (leftMs > 0) this.#watch = setTimeout(() => this.#check(), Math.ceil(leftMs));
    else this.#checkAgain(oldest);
  }

  /**
   * Waits once more before the connection counts as lost. If this process was busy or asleep, it has to read the
   * answers that have arrived meanwhile.
   */
  #checkAgain(oldest: Waiting): void {
    const dueMs = exactMs() + secondCheckMs;
    const lastMs = oldest.sentMs + this.#deadlineMs + maxBusyMs;
    this.#watch = setTimeout(() => {
      this.#watch = undefined;
      if (oldest.setIndex === noIndex) this.#check();
      else if (exactMs() > dueMs + busyMs && exactMs() < lastMs) this.#checkAgain(oldest);
      else this.#lose(this.#client, `no answer within ${this.#deadlineMs} ms`);
    }, secondCheckMs);
  }

  /** Waits for the answer to a command that was just sent, and watches its deadline. */
  #inOrder<Result>(answer: Promise<Result>): Promise<Result> {
    return new Promise((resolve, reject) => {
      const waiting: Waiting = { setIndex: noIndex, sentMs: exactMs(), reject };
      this.#waiting.add(waiting);
      this.#watch ??= setTimeout(() => this.#check(), this.#deadlineMs);
      const answered = () => this.#waiting.delete(waiting);
      answer.then(
        (result) => {
          answered();
          resolve(result);
        },
        (error: unknown) => {
          answered();
          reject(error);
        },
      );
    });
  }

  #inTime<Result>(work: Promise<Result>): Promise<Result> {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => reject(new RedisAwayError("no answer in time")), connectMs);
      work.then(resolve, reject).finally(() => clearTimeout(timer));
    });
  }
}

/** Returns the error message of the server or socket. Neither contains the URL. */
function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : "unknown";
}
