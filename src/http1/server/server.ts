// The HTTP/1.1 server: accepts connections, watches their deadlines with one timer, stops in order.

import { duringEvent, type ExactClock, systemClock } from "../../base/clock.ts";
import { IndexedSet } from "../../base/indexed-set.ts";
import type { HeaderFields, PassableRequest, Reply } from "../message.ts";
import { Connection, type ConnectionServer, type ServerConnection } from "./connection.ts";
import { defaultLimits, type Http1Limits } from "./server-limits.ts";
import { turnOutput } from "./turn-output.ts";
import type { UpgradedConnection } from "./upgraded-connection.ts";

export type Http1ServerOptions = Http1ServerHandlers & (TcpPlace | UnixPlace);

export interface TcpPlace {
  hostname: string;
  /** 0: a free one. */
  port: number;
  /**
   * Whether other processes listen there as well, all of which say so: the system gives each connection to one of them. On
   * Linux alone. Nobody is told that a port is in use then.
   */
  shared?: boolean;
}

/**
 * Path of a Unix domain socket, which is made for its owner alone and must not exist. Whoever may connect to it is
 * believed: the peer of each request is what the line before it tells (peer-line.ts).
 */
export interface UnixPlace {
  unix: string;
}

export interface Http1ServerHandlers {
  /** Answers by `reply`, at once or later. */
  onRequest(request: PassableRequest, reply: Reply): void;
  /** Gives the answer to what is no request, or comes when no more can be taken (503); the connection ends behind it. */
  onMalformed(fault: MalformedFault): { headers: HeaderFields; body: string };
  /** Told what `onRequest`, or a listener of a request, threw. Its connection was broken off. */
  onFault(error: unknown): void;
  /** Those left out have their defaults. */
  limits?: Partial<Http1Limits>;
}

export interface MalformedFault {
  status: number;
  /** A sentence for the client. */
  reason: string;
  peer: string;
}

export interface Http1Server {
  /** 0 and empty on a Unix socket. */
  readonly port: number;
  readonly hostname: string;
  /** Requests that were not answered in full yet. */
  readonly pendingRequests: number;
  /** Connections that are open, upgraded ones included, and how many are taken at most. */
  readonly connections: { open: number; limit: number };
  /**
   * Goes on as before, but each answer that begins from now on says that its connection ends with it, and is kept to that:
   * clients move to other connections without any of their requests meeting one that is being closed.
   */
  leave(): void;
  /**
   * Takes no more connections and requests, ends idle connections; resolves when every open request was answered. Those
   * that were upgraded are ended by whoever took them over.
   */
  stop(): Promise<void>;
  /** Stops like `stop`, and breaks off what is open. */
  close(): void;
}

const maxSweepMs = 250;
/** Refused connections that may wait for their answer to arrive; those beyond are cut without one. */
const maxRefused = 64;

/** Throws the system's error where it cannot listen, with `code` (`EADDRINUSE`, `EACCES`…) where there is one. */
export function startHttp1Server(options: Http1ServerOptions): Http1Server {
  return new ListeningServer(options);
}

class ListeningServer implements Http1Server, ConnectionServer {
  readonly port: number;
  readonly hostname: string;
  readonly limits: Http1Limits;
  readonly tellsPeers: boolean;
  readonly clock: ExactClock = systemClock;
  readonly #options: Http1ServerHandlers;
  readonly #listener: Bun.SocketListener<ServerConnection>;
  readonly #connections = new IndexedSet<ServerConnection>();
  readonly #sweepMs: number;
  #sweepTimer: ReturnType<typeof setInterval> | undefined;
  /** Since the last sweep, by connections that are at their end. */
  #discardedBytes = 0;
  #pending = 0;
  #leaving = false;
  #stopping = false;
  #stopped: PromiseWithResolvers<void> | undefined;

  constructor(options: Http1ServerOptions) {
    this.#options = options;
    const limits = { ...defaultLimits(), ...options.limits };
    this.limits = limits;
    this.tellsPeers = "unix" in options;
    const minMs = Math.min(limits.headMs, limits.idleMs, limits.bodyIdleMs, limits.unsentMs, limits.lingerMs);
    this.#sweepMs = Math.min(maxSweepMs, Math.max(1, minMs / 4));
    const socket: Bun.SocketHandler<ServerConnection> = {
      open: (opened) => this.#accept(opened),
      data: (from, bytes) => duringEvent(onData, from.data, bytes),
      drain: (drained) => drained.data.drain(),
      close: (closed) => {
        this.#connections.delete(closed.data);
        closed.data.didClose();
      },
      error: (failed, error) => {
        failed.data.destroy();
        this.onFault(error);
      },
    };
    // A client that has closed its side waits for no answer, as nginx sees it too: Bun closes ours then.
    const common = { socket, allowHalfOpen: false };
    if ("unix" in options) {
      this.#listener = listenPrivately(() => Bun.listen({ ...common, unix: options.unix }));
      this.port = 0;
      this.hostname = "";
      return;
    }
    const { hostname, port, shared = false } = options;
    const listener = Bun.listen({ ...common, hostname, port, ...(shared ? { reusePort: true } : { exclusive: true }) });
    this.#listener = listener;
    this.port = listener.port;
    this.hostname = listener.hostname;
  }

  get leaving(): boolean {
    return this.#leaving;
  }

  get stopping(): boolean {
    return this.#stopping;
  }

  get pendingRequests(): number {
    return this.#pending;
  }

  get connections(): { open: number; limit: number } {
    return { open: this.#connections.size, limit: this.limits.connections };
  }

  onRequest(request: PassableRequest, reply: Reply): void {
    this.#options.onRequest(request, reply);
  }

  onMalformed(fault: MalformedFault): { headers: HeaderFields; body: string } {
    return this.#options.onMalformed(fault);
  }

  onFault(error: unknown): void {
    this.#options.onFault(error);
  }

  requestBegan(): void {
    this.#pending++;
    turnOutput.requestBegan();
  }

  requestEnded(): void {
    this.#pending--;
    turnOutput.requestEnded();
    if (this.#pending === 0) this.#stopped?.resolve();
  }

  discards(bytes: number): boolean {
    this.#discardedBytes += bytes;
    return this.#discardedBytes < this.limits.allLingerBytes;
  }

  handOver(from: Connection, to: UpgradedConnection): void {
    this.#connections.delete(from);
    this.#connections.add(to);
  }

  leave(): void {
    this.#leaving = true;
  }

  stop(): Promise<void> {
    if (this.#stopped) return this.#stopped.promise;
    this.#stopped = Promise.withResolvers<void>();
    this.leave();
    this.#stopping = true;
    this.#listener.stop();
    for (const connection of [...this.#connections]) connection.closeIfIdle();
    if (this.#pending === 0) this.#stopped.resolve();
    return this.#stopped.promise;
  }

  close(): void {
    void this.stop();
    // Answers that are complete are not taken back.
    turnOutput.flush();
    for (const connection of [...this.#connections]) connection.close();
  }

  #accept(socket: Bun.Socket<ServerConnection>): void {
    const connection = new Connection(this, socket);
    socket.data = connection;
    const { size } = this.#connections;
    const limit = this.limits.connections;
    const hasLeft = connection.peer === "" && !this.tellsPeers;
    if (this.#stopping || hasLeft || size >= limit + Math.min(maxRefused, limit)) {
      connection.destroy();
      return;
    }
    this.#connections.add(connection);
    this.#sweepTimer ??= setInterval(() => this.#sweep(), this.#sweepMs);
    socket.setNoDelay(true);
    if (size >= limit)
      connection.refuse(503, "Too many connections are open; try again shortly.", { "retry-after": "1" });
  }

  #sweep(): void {
    const nowMs = this.clock.exactMs();
    this.#discardedBytes = 0;
    for (const connection of this.#connections) connection.checkDeadline(nowMs);
    if (this.#connections.size > 0) return;
    clearInterval(this.#sweepTimer);
    this.#sweepTimer = undefined;
  }
}

/** The socket must never be there with other rights, were it for a moment. */
function listenPrivately<Listener>(listen: () => Listener): Listener {
  const mask = process.umask(0o177);
  try {
    return listen();
  } finally {
    process.umask(mask);
  }
}

function onData(connection: ServerConnection, bytes: Buffer): void {
  connection.data(bytes);
}
