// The HTTP/1.1 server. It accepts connections, checks their deadlines with one timer, and stops gracefully.

import { duringEvent, type ExactClock, systemClock } from "../../base/clock.ts";
import { IndexedSet } from "../../base/indexed-set.ts";
import type { HeaderFields, PassableRequest, Reply } from "../message.ts";
import { probePeer } from "../probe-peer.ts";
import { Connection, type ConnectionServer, type ServerConnection } from "./connection.ts";
import { defaultLimits, type Http1Limits } from "./server-limits.ts";
import { turnOutput } from "./turn-output.ts";
import type { UpgradedConnection } from "./upgraded-connection.ts";

export type Http1ServerOptions = Http1ServerHandlers & (TcpAddress | UnixAddress);

export interface TcpAddress {
  hostname: string;
  /** The port to listen on. The value 0 means any free port. */
  port: number;
  /**
   * True to share the port with other processes that set this too (SO_REUSEPORT, Linux only). If they already use the
   * port, that is no error.
   */
  shared?: boolean;
}

/**
 * The path of a Unix domain socket. No file may exist at this path, and only its owner may connect. Processes that
 * connect are trusted to name their client's address (see peer-line.ts).
 */
export interface UnixAddress {
  unix: string;
}

export interface Http1ServerHandlers {
  /** Handles a request, and answers it through `reply` now or later. */
  onRequest(request: PassableRequest, reply: Reply): void;
  /**
   * Returns the answer to invalid HTTP, or to a connection above the limit (503). The connection is closed after this
   * answer.
   */
  onMalformed(fault: MalformedFault): { headers: HeaderFields; body: string };
  /** Called with an error that `onRequest` or a listener threw. The connection has been closed. */
  onFault(error: unknown): void;
  /** Limits that differ from the defaults. */
  limits?: Partial<Http1Limits>;
}

export interface MalformedFault {
  status: number;
  /** The error message for the client. */
  reason: string;
  peer: string;
}

export interface Http1Server {
  /** The port that the server listens on. The value is 0 for a Unix domain socket. */
  readonly port: number;
  readonly hostname: string;
  /** The number of requests that are not answered completely. */
  readonly pendingRequests: number;
  /** The number of open connections, including upgraded ones, and the maximum. */
  readonly connections: { open: number; limit: number };
  /**
   * Lets each connection announce in its next answer that it will be closed, so that clients move to other connections
   * and no request meets a closing one. Requests are still served.
   */
  leave(): void;
  /**
   * Stops gracefully: accepts no connections or requests, and closes idle connections. Resolves once all
   * requests are answered. Upgraded connections must be closed by their own code.
   */
  stop(): Promise<void>;
  /** Stops immediately. Running requests are broken off. */
  close(): void;
}

const maxSweepMs = 250;
/**
 * Maximum refused connections that get an error answer at the same time. Further connections are cut without an answer.
 */
const maxRefused = 64;

/** Starts the server. Throws the system's error if it cannot listen, usually with a `code` such as `EADDRINUSE`. */
export function startHttp1Server(options: Http1ServerOptions): Http1Server {
  return new ListeningServer(options);
}

class ListeningServer implements Http1Server, ConnectionServer {
  readonly port: number;
  readonly hostname: string;
  readonly limits: Http1Limits;
  readonly reportsPeers: boolean;
  readonly clock: ExactClock = systemClock;
  readonly #options: Http1ServerHandlers;
  readonly #listener: Bun.SocketListener<ServerConnection>;
  readonly #connections = new IndexedSet<ServerConnection>();
  readonly #sweepMs: number;
  #sweepTimer: ReturnType<typeof setInterval> | undefined;
  /** Bytes that all connections discarded since the last check of deadlines. */
  #discardedBytes = 0;
  #pending = 0;
  #leaving = false;
  #stopping = false;
  #stopped: PromiseWithResolvers<void> | undefined;

  constructor(options: Http1ServerOptions) {
    this.#options = options;
    const limits = { ...defaultLimits(), ...options.limits };
    this.limits = limits;
    this.reportsPeers = "unix" in options;
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
    // If a client closes its sending side, the connection is closed, as nginx does too.
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
    // Answers that are already complete are sent before the connections are closed.
    turnOutput.flush();
    for (const connection of [...this.#connections]) connection.close();
  }

  #accept(socket: Bun.Socket<ServerConnection>): void {
    const connection = new Connection(this, socket);
    socket.data = connection;
    const { size } = this.#connections;
    const limit = this.limits.connections;
    const isClientGone = connection.peer === "" && !this.reportsPeers;
    if (this.#stopping || isClientGone || size >= limit + Math.min(maxRefused, limit)) {
      connection.destroy();
      return;
    }
    this.#connections.add(connection);
    this.#sweepTimer ??= setInterval(() => this.#sweep(), this.#sweepMs);
    socket.setNoDelay(true);
    probePeer(socket);
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

/** Creates the socket under a umask, so that it has no other permissions even for a moment. */
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
