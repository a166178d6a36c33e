// The HTTP/1.1 server: accepts connections, enforces their deadlines with one timer and stops cleanly.

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
  /** The port; 0 for any free one. */
  port: number;
  /**
   * Whether other processes listen on the port too, all with this option: the system distributes the connections. Only
   * on Linux. A port in use is then not reported.
   */
  shared?: boolean;
}

/**
 * The path of a Unix domain socket, which is created only for its owner and must not exist. Its clients are trusted:
 * the line before each request names its peer (peer-line.ts).
 */
export interface UnixAddress {
  unix: string;
}

export interface Http1ServerHandlers {
  /** Answers through `reply`, immediately or later. */
  onRequest(request: PassableRequest, reply: Reply): void;
  /** Returns the answer to invalid input, or to a connection beyond the limit (503). The connection ends after it. */
  onMalformed(fault: MalformedFault): { headers: HeaderFields; body: string };
  /** Receives errors thrown by `onRequest` or by a listener of a request. The connection was broken off. */
  onFault(error: unknown): void;
  /** Limits; the defaults apply if absent. */
  limits?: Partial<Http1Limits>;
}

export interface MalformedFault {
  status: number;
  /** A sentence for the client. */
  reason: string;
  peer: string;
}

export interface Http1Server {
  /** The port; 0 on a Unix socket, where the host is empty. */
  readonly port: number;
  readonly hostname: string;
  /** The number of requests without a complete answer. */
  readonly pendingRequests: number;
  /** The number of open connections, including upgraded ones, and their limit. */
  readonly connections: { open: number; limit: number };
  /**
   * Continues to serve, but each answer that begins from now on announces the end of its connection. Clients move to
   * other connections, and none of their requests meets a closing one.
   */
  leave(): void;
  /**
   * Accepts no more connections or requests and ends idle connections. Resolves once every open request was answered.
   * The code that took over upgraded connections ends them.
   */
  stop(): Promise<void>;
  /** Stops like `stop`, and breaks off open requests. */
  close(): void;
}

const maxSweepMs = 250;
/** The most refused connections that may wait until their answer arrives. Further ones are cut without an answer. */
const maxRefused = 64;

/**
 * Starts the server. Throws the system's error if it cannot listen, with `code` (`EADDRINUSE`, `EACCES`…) if there is
 * one.
 */
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
  /** The bytes that lingering connections discarded since the last sweep. */
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
    // A client that has closed its side waits for no answer, as nginx assumes too, so Bun closes ours.
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
    // Complete answers are still delivered.
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

/** Creates the socket with an umask, because it must never have other permissions, even for a moment. */
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
