// A session with an MCP server that survives its connections: requests continue on a new connection if the old one has
// ended.
import { bufferedBytes } from "../../base/bytes/buffered-bytes.ts";
import { Cancellation } from "../../base/cancellation.ts";
import type { Clock } from "../../base/clock.ts";
import { GatewayError } from "../../base/errors.ts";
import type { ClientSession, JsonObject, ToolAnswer, ToolExchange } from "../../domain/tools/client-session.ts";
import type { Connection } from "./connection.ts";
import { SessionLost, unsupportedRevision } from "./transport.ts";

export interface PooledSessionOptions {
  readonly server: string;
  readonly clock: Pick<Clock, "monotonicMs">;
  /** Opens a connection. Rejects with a GatewayError. */
  connect(onNotification: (method: string, params: JsonObject) => void, signal: AbortSignal): Promise<Connection>;
  /** Called if the server may have changed its protocol revision. */
  onDoubt(): void;
}

const [firstRestMs, maxRestMs, shortRestMs] = [250, 30_000, 1_000];
/** Milliseconds after which a connection counts as stable; the next one is then opened without delay. */
const stableMs = 60_000;
/** Maximum resource subscriptions in one session, for all clients together. Each client may have 100. */
const maxWatched = 1_000;
const listChanges = ["tools", "prompts", "resources"].map((kind) => `notifications/${kind}/list_changed`);

export class PooledSession implements ClientSession {
  readonly #options: PooledSessionOptions;
  readonly #listeners = new Set<(method: string, params: JsonObject) => void>();
  #connection: Connection | undefined;
  #connecting: Promise<Connection> | undefined;
  #connectedMs = 0;
  #failures = 0;
  #notBeforeMs = 0;
  #inFlight = 0;
  #usedMs: number;
  readonly #closing = new AbortController();
  /** URIs of subscribed resources, for subscribing again on each new connection. */
  readonly #watched = new Set<string>();

  constructor(options: PooledSessionOptions) {
    this.#options = options;
    this.#usedMs = options.clock.monotonicMs();
  }

  get isLegacy(): boolean {
    return this.#connection?.isLegacy ?? true;
  }

  get revision(): string {
    return this.#connection?.revision ?? "";
  }

  get capabilities(): JsonObject {
    return this.#connection?.capabilities ?? {};
  }

  get serverInfo(): JsonObject {
    return this.#connection?.serverInfo ?? {};
  }

  get instructions(): string | undefined {
    return this.#connection?.instructions;
  }

  /** Monotonic milliseconds since which the session is idle; undefined while it is in use. */
  get idleSinceMs(): number | undefined {
    return this.#inFlight > 0 || this.#connecting || this.#listeners.size > 0 ? undefined : this.#usedMs;
  }

  /** Resolves when a connection exists. All waiting callers share it. */
  async ready(): Promise<void> {
    await this.#connected();
    this.#usedMs = this.#options.clock.monotonicMs();
  }

  async request(method: string, params: JsonObject, exchange: ToolExchange): Promise<ToolAnswer> {
    if (method === "resources/unsubscribe") {
      this.#watched.delete(String(params["uri"]));
      // If the connection has ended, the subscription has ended too, so no new connection is opened for this.
      if (!this.#connection || this.#connection.hasEnded) return { result: {} };
    }
    this.#inFlight++;
    try {
      const answer = await this.#ask(method, params, exchange);
      if ("result" in answer) this.#watch(method, params);
      return answer;
    } finally {
      this.#inFlight--;
      this.#usedMs = this.#options.clock.monotonicMs();
    }
  }

  onChange(listener: (method: string, params: JsonObject) => void): () => void {
    // Each registration has its own entry, even if the same function is registered twice.
    const entry = (method: string, params: JsonObject) => listener(method, params);
    this.#listeners.add(entry);
    this.#connection?.notifications?.want(true);
    return () => {
      this.#listeners.delete(entry);
      this.#usedMs = this.#options.clock.monotonicMs();
      this.#connection?.notifications?.want(this.#listeners.size > 0);
    };
  }

  /**
   * Called when the server's node is connected again, or with `isLost` when the node has gone or was replaced. Open
   * requests continue, and lists are read again.
   */
  moved(isLost: boolean): void {
    if (isLost) {
      this.#connection?.retire();
      // Ignore a connection attempt that failed.
      this.#connecting?.then((connection) => connection.retire()).catch(() => {});
    }
    for (const method of listChanges) this.#onNotification(method, {});
  }

  /** Closes the connection; open and later requests fail. Never rejects. */
  async close(): Promise<void> {
    this.#closing.abort();
    // Ignore the error: the caller that is connecting gets it.
    await this.#connecting?.catch(() => {});
    await this.#connection?.close();
  }

  /**
   * Sends a request. If the session was lost, sends it once more on a new connection, because the server did not
   * process it.
   */
  async #ask(method: string, params: JsonObject, exchange: ToolExchange): Promise<ToolAnswer> {
    try {
      const first = await this.#connected();
      return this.#checked(await first.request(method, params, exchange));
    } catch (error) {
      if (!(error instanceof SessionLost)) throw error;
    }
    try {
      const second = await this.#connected();
      return this.#checked(await second.request(method, params, exchange));
    } catch (error) {
      if (!(error instanceof SessionLost)) throw error;
      const { otherwise } = error;
      // The server has answered, so this does not count as a failed connection.
      if (otherwise) this.#failures = 0;
      if (otherwise && !(otherwise instanceof GatewayError)) return otherwise;
      throw otherwise ?? this.#ended("forgets its sessions");
    }
  }

  #watch(method: string, { uri }: JsonObject): void {
    if (method === "resources/subscribe" && this.#watched.size < maxWatched) this.#watched.add(String(uri));
  }

  #connected(): Promise<Connection> {
    if (this.#closing.signal.aborted) return Promise.reject(this.#ended("was changed or stopped meanwhile"));
    if (this.#connection && !this.#connection.hasEnded) return Promise.resolve(this.#connection);
    this.#connecting ??= this.#connect().finally(() => {
      this.#connecting = undefined;
    });
    return this.#connecting;
  }

  async #connect(): Promise<Connection> {
    const { clock } = this.#options;
    const last = this.#connection;
    if (last && clock.monotonicMs() - this.#connectedMs >= stableMs) this.#failures = 0;
    const restMs = this.#notBeforeMs - clock.monotonicMs();
    if (this.#failures > 0 && restMs > shortRestMs) {
      const retryAfterSeconds = Math.ceil(restMs / 1000);
      throw this.#ended(`has failed ${this.#failures} times in a row`, retryAfterSeconds);
    }
    if (this.#failures > 0 && restMs > 0) await Bun.sleep(restMs);
    // Count a failure even before the attempt succeeds, so that connections that end soon are delayed too.
    this.#failures++;
    this.#notBeforeMs = clock.monotonicMs() + Math.min(firstRestMs * 2 ** (this.#failures - 1), maxRestMs);
    last?.retire();
    const connection = await this.#options
      .connect(this.#onNotification, this.#closing.signal)
      .catch((error: unknown) => {
        // If the user's account is missing or no slot is free, the server is not at fault.
        const isServers = !(error instanceof GatewayError) || error.code.startsWith("upstream_");
        if (!isServers) this.#failures--;
        throw error;
      });
    this.#connection = connection;
    this.#connectedMs = clock.monotonicMs();
    if (this.#closing.signal.aborted) await connection.close();
    for (const uri of this.#watched) {
      const nobody = { memoryAccount: bufferedBytes.bounded, cancellation: new Cancellation() };
      // Ignore the error: the next connection subscribes again.
      connection.request("resources/subscribe", { uri }, nobody).catch(() => {});
    }
    connection.notifications?.want(this.#listeners.size > 0);
    return connection;
  }

  readonly #onNotification = (method: string, params: JsonObject) => {
    for (const listener of [...this.#listeners]) listener(method, params);
  };

  #checked(answer: ToolAnswer): ToolAnswer {
    this.#failures = 0;
    if ("error" in answer && answer.error.code === unsupportedRevision) {
      this.#options.onDoubt();
      this.#connection?.retire();
    }
    return answer;
  }

  #ended(what: string, retryAfterSeconds = 2): GatewayError {
    const message = `The MCP server "${this.#options.server}" ${what}. Retry in ${retryAfterSeconds} s.`;
    return new GatewayError("service_unavailable", message, { retryAfterSeconds });
  }
}
