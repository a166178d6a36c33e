// The HTTP/1.1 client for one origin. It pools connections, queues requests and enforces timeouts.

import type { SocketHandler } from "bun";
import type { Cancellation } from "../../base/cancellation.ts";
import { duringEvent, monotonicMs } from "../../base/clock.ts";
import type { MaybePromise } from "../../base/deferred.ts";
import { IndexedSet } from "../../base/indexed-set.ts";
import { longLived } from "../../base/long-lived.ts";
import type { HeaderFields } from "../message.ts";
import { ClientConnection, type ConnectionOwner } from "./client-connection.ts";
import {
  type AnswerTimeouts,
  ClientError,
  type ClientErrorMap,
  type ClientRequest,
  type ClientResponse,
  type HttpClient,
  type PassedRequest,
  type PassedResponse,
  type RequestContent,
} from "./client-contract.ts";
import { type Carrier, ClientExchange } from "./client-exchange.ts";

export interface Origin {
  /** Host name or IP address. An IPv6 address has no brackets. */
  hostname: string;
  port: number;
  /** The IP address to connect to. If it is given, `hostname` is not resolved. */
  address?: string;
  /** Missing for connections without TLS. */
  tls?: OriginTls;
  /** The path of a Unix domain socket to connect to. `hostname` is then used only for the Host header. */
  unix?: string;
}

export interface OriginTls {
  /** The host name that the server's certificate must contain. */
  serverName: string;
  /** Certificates (PEM) to trust instead of the well-known ones. */
  ca?: string;
}

/** Returns the origin of a URL. `unix` is the path of a Unix domain socket to connect to instead. */
export function originOf(url: URL, unix?: string): Origin {
  // Removes the brackets of an IPv6 address, which only URLs need.
  const hostname = url.hostname.replace(/^\[|\]$/g, "");
  const secure = url.protocol === "https:";
  return {
    hostname,
    port: url.port === "" ? (secure ? 443 : 80) : Number(url.port),
    ...(secure ? { tls: { serverName: hostname } } : {}),
    ...(unix === undefined ? {} : { unix }),
  };
}

export interface Http1ClientOptions {
  /** The most connections. Default 10,000. */
  maxConnections?: number;
  /** Maximum number of requests that wait for a connection. Further requests are refused. Default 10,000. */
  maxWaiting?: number;
  /** The timeout for opening a connection, including TLS, in milliseconds. Default 10,000. */
  connectTimeoutMs?: number;
  /** Milliseconds after which an idle connection is closed, if the server announces no timeout. Default 4,000. */
  unusedTimeoutMs?: number;
  /** Converts the client's errors. Default: they stay ClientErrors. */
  errors?: ClientErrorMap;
}

interface CommonHead {
  method: string;
  path: string;
  text: string;
}

/**
 * Milliseconds that an idle connection is kept. This is less than the keep-alive timeout of common servers (5 s),
 * because otherwise a server might close a connection that is just being reused.
 */
const defaultUnusedMs = 4_000;
const maxUnusedMs = longLived.upstreamConnection.idleMs;
/** Milliseconds by which the client closes an idle connection before the server's announced timeout. */
const unusedMarginMs = 1_000;
/** Milliseconds between two checks of the deadlines of all connections. */
const sweepIntervalMs = 50;
const noTimeouts: AnswerTimeouts = {
  firstByteTimeoutMs: Number.POSITIVE_INFINITY,
  idleTimeoutMs: Number.POSITIVE_INFINITY,
};

export class Http1Client implements HttpClient, ConnectionOwner {
  readonly #origin: Origin;
  readonly #host: string;
  readonly #maxConnections: number;
  readonly #maxWaiting: number;
  readonly #connectTimeoutMs: number;
  readonly #unusedTimeoutMs: number;
  readonly #errors: ClientErrorMap;
  readonly #connections = new IndexedSet<ClientConnection>();
  /** Idle connections. The most recently used one is reused first, so that the others can expire. */
  readonly #free: ClientConnection[] = [];
  /** Caches the text of headers by the object that contains them. */
  readonly #heads = new WeakMap<HeaderFields, CommonHead>();
  readonly #waiting: ClientExchange[] = [];
  #sweeper: ReturnType<typeof setInterval> | undefined;
  /** True if the timer keeps the process alive. */
  #holding = false;
  #closed = false;

  constructor(origin: Origin, options: Http1ClientOptions = {}) {
    this.#origin = origin;
    const name = origin.hostname.includes(":") ? `[${origin.hostname}]` : origin.hostname;
    this.#host = origin.port === (origin.tls ? 443 : 80) ? name : `${name}:${origin.port}`;
    this.#maxConnections = options.maxConnections ?? longLived.upstreamConnection.bounds.total.most;
    this.#maxWaiting = options.maxWaiting ?? 10_000;
    this.#connectTimeoutMs = options.connectTimeoutMs ?? 10_000;
    this.#unusedTimeoutMs = options.unusedTimeoutMs ?? defaultUnusedMs;
    this.#errors = options.errors ?? ((fault) => fault);
  }

  /** Sends a request. Throws a TypeError if a header or the path contains a forbidden character. */
  send(request: ClientRequest, timeouts: AnswerTimeouts, cancellation: Cancellation): MaybePromise<ClientResponse> {
    if (cancellation.cancelled) return Promise.reject(cancellation.reason);
    return this.#begin(this.#headOf(request), request, timeouts, cancellation).response;
  }

  /** Forwards a request. No timeouts apply here, because the original client and the server enforce their own. */
  pass(request: PassedRequest, cancellation: Cancellation): MaybePromise<PassedResponse> {
    if (cancellation.cancelled) return Promise.reject(cancellation.reason);
    return this.#begin(request.head, request, noTimeouts, cancellation).response;
  }

  close(): void {
    this.#closed = true;
    for (const connection of this.#connections) connection.shut();
    for (const exchange of this.#waiting.splice(0)) exchange.fail(new ClientError("closed", "the client was closed"));
    this.#sweep();
  }

  /** Returns the numbers of connections and waiting requests, for tests. */
  get counts(): { connections: number; free: number; waiting: number } {
    return { connections: this.#connections.size, free: this.#free.length, waiting: this.#waiting.length };
  }

  free(connection: ClientConnection, announcedMs: number | undefined): void {
    const unusedMs =
      announcedMs === undefined ? this.#unusedTimeoutMs : Math.min(announcedMs - unusedMarginMs, maxUnusedMs);
    if (this.#closed || unusedMs <= 0) {
      connection.shut();
      return;
    }
    const next = this.#waiting.shift();
    if (next) {
      connection.take(next);
      return;
    }
    connection.deadline = monotonicMs() + unusedMs;
    this.#free.push(connection);
  }

  gone(connection: ClientConnection): void {
    this.#connections.delete(connection);
    const index = this.#free.lastIndexOf(connection);
    if (index >= 0) this.#free.splice(index, 1);
    const next = this.#closed ? undefined : this.#waiting.shift();
    if (next) this.#connect(next);
  }

  again(exchange: ClientExchange): void {
    // Another idle connection may be as stale as the one that failed, so the client opens a new connection.
    if (this.#connections.size < this.#maxConnections) this.#connect(exchange);
    else this.#wait(exchange);
  }

  #begin(head: string, request: RequestContent, timeouts: AnswerTimeouts, cancellation: Cancellation): ClientExchange {
    const nowMs = monotonicMs();
    const exchange = new ClientExchange(head, request, timeouts, cancellation, this.#errors, nowMs);
    if (!this.#holding) this.#hold();
    this.#start(exchange, nowMs);
    return exchange;
  }

  #start(exchange: ClientExchange, nowMs: number): void {
    if (this.#closed) {
      exchange.fail(new ClientError("closed", "the client was closed"));
      return;
    }
    let connection = this.#free.pop();
    while (connection && !this.#serves(connection, nowMs)) connection = this.#free.pop();
    if (connection) connection.take(exchange);
    else if (this.#connections.size < this.#maxConnections) this.#connect(exchange);
    else this.#wait(exchange);
  }

  /** Reports whether an idle connection can be reused. Checks the deadline itself, because the timer may be late. */
  #serves(connection: ClientConnection, nowMs: number): boolean {
    if (connection.usable && connection.deadline > nowMs) return true;
    connection.shut();
    return false;
  }

  #wait(exchange: ClientExchange): void {
    if (this.#waiting.length >= this.#maxWaiting) {
      exchange.fail(new ClientError("connect", `all ${this.#maxConnections} connections are in use`));
      return;
    }
    exchange.carrier = this.#carrierOf(exchange);
    this.#waiting.push(exchange);
  }

  #carrierOf(exchange: ClientExchange): Carrier {
    return {
      pause() {},
      resume() {},
      upload() {},
      abandon: () => {
        const index = this.#waiting.indexOf(exchange);
        if (index >= 0) this.#waiting.splice(index, 1);
      },
    };
  }

  #connect(exchange: ClientExchange): void {
    const { hostname, address, port, tls, unix } = this.#origin;
    const deadline = Math.min(exchange.answerBy, monotonicMs() + this.#connectTimeoutMs);
    const connection = new ClientConnection(this, exchange, deadline);
    this.#connections.add(connection);
    // A check of deadlines that is running does not see the new connection, so the timer must be kept alive here.
    if (!this.#holding) this.#hold();
    const common = {
      data: connection,
      socket: tls ? tlsHandlers : handlers,
      ...(tls
        ? { tls: { serverName: tls.serverName, rejectUnauthorized: true, ...(tls.ca ? { ca: tls.ca } : {}) } }
        : {}),
    };
    const open = (host: string) => Bun.connect({ ...common, hostname: host, port });
    const failed = (error: unknown) => {
      if (unix !== undefined || address !== undefined || !isUnreachable(error)) connection.connectFailed(error);
      else void openAnew(hostname, connection, open, error);
    };
    try {
      const opening = unix ? Bun.connect({ ...common, unix }) : open(address ?? hostname);
      opening.catch(failed);
    } catch (error) {
      connection.connectFailed(error);
    }
  }

  #headOf(request: ClientRequest): string {
    const { requestId, ownHeaders } = request;
    // A header must not contain a line break, so the request id must not either.
    if (requestId !== undefined && !/^[!-~]+$/.test(requestId)) throw new TypeError("the request id cannot be sent");
    const common = this.#commonHeadOf(request);
    return ownHeaders ? common + fieldLines(ownHeaders) : common;
  }

  #commonHeadOf({ method, path, headers }: ClientRequest): string {
    const known = this.#heads.get(headers);
    if (known?.path === path && known.method === method) return known.text;
    const text = this.#newHead(method, path, headers);
    this.#heads.set(headers, { method, path, text });
    return text;
  }

  #newHead(method: string, path: string, headers: HeaderFields): string {
    if (/[^!-~]/.test(path)) throw new TypeError("the path has a character that must be encoded");
    return `${method} ${path} HTTP/1.1\r\nhost: ${this.#host}\r\nconnection: keep-alive\r\n${fieldLines(headers)}`;
  }

  #hold(): void {
    this.#sweeper ??= setInterval(() => this.#sweep(), sweepIntervalMs);
    this.#holding = true;
    this.#sweeper.ref();
  }

  #sweep(): void {
    const now = monotonicMs();
    // A request that is sent during this check of deadlines sets this to true again.
    this.#holding = false;
    let busy = false;
    for (const connection of this.#connections) {
      if (connection.deadline <= now) connection.expire();
      else if (connection.exchange) busy = true;
    }
    for (const exchange of this.#waiting.filter((each) => each.answerBy <= now)) {
      const index = this.#waiting.indexOf(exchange);
      // The request may have left the queue while the loop was failing another request.
      if (index < 0) continue;
      this.#waiting.splice(index, 1);
      exchange.fail(new ClientError("first_byte_timeout", "no connection became free in time"));
    }
    if (busy || this.#waiting.length > 0) this.#holding = true;
    if (this.#holding) return;
    this.#sweeper?.unref();
    if (this.#connections.size > 0) return;
    clearInterval(this.#sweeper);
    this.#sweeper = undefined;
  }
}

function isUnreachable(error: unknown): boolean {
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  return code === "ECONNREFUSED" || code === "EHOSTUNREACH" || code === "ENETUNREACH" || code === "ETIMEDOUT";
}

/**
 * Resolves the host name again and connects to its first address. Bun caches an address for 30 s even if connecting
 * fails. Therefore a server that moved to another address would be unreachable.
 */
async function openAnew(
  hostname: string,
  connection: ClientConnection,
  open: (host: string) => Promise<unknown>,
  failure: unknown,
): Promise<void> {
  try {
    const [found] = await Bun.dns.lookup(hostname, { backend: "libc" });
    if (!connection.connecting) return;
    if (found === undefined || found.address === hostname) throw failure;
    await open(found.address);
  } catch {
    connection.connectFailed(failure);
  }
}

function fieldLines(headers: HeaderFields): string {
  let lines = "";
  for (const name in headers) {
    const value = headers[name] as string;
    // A line break would begin another header, or even another request.
    if (/[^\t -~]/.test(value)) throw new TypeError(`the header ${name} has a character that cannot be sent`);
    lines += `${name}: ${value}\r\n`;
  }
  return lines;
}

function onData(connection: ClientConnection, bytes: Buffer): void {
  connection.received(bytes);
}

const handlers: SocketHandler<ClientConnection> = {
  open(socket) {
    socket.data.attached(socket);
    socket.data.opened();
  },
  data: (socket, bytes) => duringEvent(onData, socket.data, bytes),
  drain: (socket) => socket.data.drained(),
  close: (socket, error) => socket.data.closed(error),
  error(socket, error) {
    socket.data.closed(error);
    socket.terminate();
  },
};

const tlsHandlers: SocketHandler<ClientConnection> = {
  ...handlers,
  // With TLS, nothing must be written before the certificate is verified.
  open: (socket) => socket.data.attached(socket),
  handshake(socket, success, error) {
    if (success && !error && socket.authorized) socket.data.opened();
    else socket.data.connectFailed(error ?? new Error("the certificate of the server is not trusted"));
  },
};
