// A link that outlives its connections: whoever has it asks on, whether a session was lost or a process ended meanwhile.
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
  /** Rejects with a GatewayError. */
  connect(onNews: (method: string, params: JsonObject) => void, signal: AbortSignal): Promise<Connection>;
  /** The revision that was remembered of it may be another by now. */
  onDoubt(): void;
}

const [firstRestMs, maxRestMs, shortRestMs] = [250, 30_000, 1_000];
/** One that was there for this long before it ended is tried again at once. */
const stableMs = 60_000;
/** Resources of all who share it: one of them may have 100. */
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
  /** Addresses of resources whose changes are wanted: each session has to be told of them. */
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

  /** Milliseconds of the clock since when nobody uses it; undefined: somebody does. */
  get idleSinceMs(): number | undefined {
    return this.#inFlight > 0 || this.#connecting || this.#listeners.size > 0 ? undefined : this.#usedMs;
  }

  /** Resolves once there is a connection, one for all who wait for it. */
  async ready(): Promise<void> {
    await this.#connected();
    this.#usedMs = this.#options.clock.monotonicMs();
  }

  async request(method: string, params: JsonObject, exchange: ToolExchange): Promise<ToolAnswer> {
    if (method === "resources/unsubscribe") {
      this.#watched.delete(String(params["uri"]));
      // A session that has ended knows of none: no other one is begun, and no process started, to say so.
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
    // Each has its own entry, also where the same function is given twice.
    const entry = (method: string, params: JsonObject) => listener(method, params);
    this.#listeners.add(entry);
    this.#connection?.news?.want(true);
    return () => {
      this.#listeners.delete(entry);
      this.#usedMs = this.#options.clock.monotonicMs();
      this.#connection?.news?.want(this.#listeners.size > 0);
    };
  }

  /** The server came back, or, where it `isLost`, went or is another one: what is under way goes on, and lists are asked for anew. */
  moved(isLost: boolean): void {
    if (isLost) {
      this.#connection?.retire();
      // A connection that was never made need not be retired.
      this.#connecting?.then((connection) => connection.retire()).catch(() => {});
    }
    for (const method of listChanges) this.#onNews(method, {});
  }

  /** Fails what is under way, and whatever comes. Never rejects. */
  async close(): Promise<void> {
    this.#closing.abort();
    // The caller that asked for the connection gets its failure.
    await this.#connecting?.catch(() => {});
    await this.#connection?.close();
  }

  /** Once more where the session was lost: nothing was done then. */
  async #ask(method: string, params: JsonObject, exchange: ToolExchange): Promise<ToolAnswer> {
    try {
      const first = await this.#connected();
      return this.#looked(await first.request(method, params, exchange));
    } catch (error) {
      if (!(error instanceof SessionLost)) throw error;
    }
    try {
      const second = await this.#connected();
      return this.#looked(await second.request(method, params, exchange));
    } catch (error) {
      if (!(error instanceof SessionLost)) throw error;
      const { otherwise } = error;
      // The server answers, and connecting to it again is no retry after a failure.
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
    // Whatever becomes of it, the next one is not tried at once again.
    this.#failures++;
    this.#notBeforeMs = clock.monotonicMs() + Math.min(firstRestMs * 2 ** (this.#failures - 1), maxRestMs);
    last?.retire();
    const connection = await this.#options.connect(this.#onNews, this.#closing.signal).catch((error: unknown) => {
      // An account that is not connected, and a place that is not free, say nothing of the server.
      const isServers = !(error instanceof GatewayError) || error.code.startsWith("upstream_");
      if (!isServers) this.#failures--;
      throw error;
    });
    this.#connection = connection;
    this.#connectedMs = clock.monotonicMs();
    if (this.#closing.signal.aborted) await connection.close();
    for (const uri of this.#watched) {
      const nobody = { memoryAccount: bufferedBytes.bounded, cancellation: new Cancellation() };
      // The next connection subscribes again.
      connection.request("resources/subscribe", { uri }, nobody).catch(() => {});
    }
    connection.news?.want(this.#listeners.size > 0);
    return connection;
  }

  readonly #onNews = (method: string, params: JsonObject) => {
    for (const listener of [...this.#listeners]) listener(method, params);
  };

  #looked(answer: ToolAnswer): ToolAnswer {
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
