// A socket to a server. The connection goes through a proxy if there is one, and uses TLS if requested.
import { getCACertificates } from "node:tls";
import type { Socket, SocketHandler } from "bun";
import { GatheredBytes } from "../base/bytes/gathered-bytes.ts";
import { checkPartialResponse, HeadError, parseResponseHead, type ResponseHead } from "../http1/head.ts";
import { probePeer } from "../http1/probe-peer.ts";

/** The part of Bun's socket that is used after the socket has opened. */
export interface ClientSocket {
  write(bytes: Buffer, byteOffset: number, byteLength: number): number;
  end(): void;
  terminate(): void;
  pause(): void;
  resume(): void;
}

export interface SocketTarget {
  hostname: string;
  port: number;
  /** True to connect with TLS. The certificate must be valid for `hostname`. */
  secure: boolean;
  /** The address of the proxy: `http://[user:password@]host:port`. The proxy gets a CONNECT request. */
  proxy?: URL | undefined;
  /** Certificates (PEM) that are trusted instead of the well-known ones and the system's. */
  ca?: string | undefined;
}

export interface SocketListener {
  /** Called when the server is connected. With TLS, its certificate has been verified by then. */
  opened(socket: ClientSocket): void;
  data(bytes: Buffer): void;
  drain(): void;
  /** Called once when the socket ends, even if it never opened. `problem` is only for the log. */
  closed(problem: string | undefined): void;
}

interface Wire {
  opened(socket: Socket<Wire>): void;
  secured(socket: Socket<Wire>, problem: string | undefined): void;
  data(socket: Socket<Wire>, bytes: Buffer): void;
  drain(socket: Socket<Wire>): void;
  closed(problem: string | undefined): void;
}

const maxHeadBytes = 16 * 1024;
const emptyLine = Buffer.from("\r\n\r\n");
let trusted: string[] | undefined;

/** Opens a socket. Returns a function that ends the socket immediately, whatever its state is. Never throws. */
export function openClientSocket(target: SocketTarget, listener: SocketListener): () => void {
  const opening = new OpeningSocket(target, listener);
  opening.start();
  return () => opening.abandon();
}

/** Reads the head of an answer from bytes while they arrive. Throws a HeadError if the head is invalid. */
export class AnswerHead {
  readonly #gathered = new GatheredBytes();

  /** Returns the head and the bytes that follow it, or undefined while the head is incomplete. */
  push(piece: Buffer): { head: ResponseHead; rest: Buffer } | undefined {
    // The bytes that were searched before contain no end of the head. They may end with the beginning of the empty
    // line.
    const from = Math.max(0, this.#gathered.length - emptyLine.length + 1);
    this.#gathered.add(piece);
    const { bytes } = this.#gathered;
    const end = bytes.indexOf(emptyLine, from);
    if (end > maxHeadBytes || (end < 0 && bytes.length > maxHeadBytes)) {
      throw new HeadError(400, `the head of an answer must be at most ${maxHeadBytes} bytes`);
    }
    if (end < 0) {
      checkPartialResponse(bytes, 0, from);
      return undefined;
    }
    const head = parseResponseHead(bytes.toString("latin1", 0, end));
    return { head, rest: bytes.subarray(end + emptyLine.length) };
  }
}

class OpeningSocket implements Wire {
  readonly #target: SocketTarget;
  readonly #listener: SocketListener;
  readonly #proxyAnswer = new AnswerHead();
  /**
   * The socket that must be ended. Without TLS, this is the connection to the proxy or server. With TLS, it is the TLS
   * socket on top of that connection.
   */
  #socket: Socket<Wire> | undefined;
  #open = false;
  #tunnelled = false;
  #closed = false;

  constructor(target: SocketTarget, listener: SocketListener) {
    this.#target = target;
    this.#listener = listener;
  }

  start(): void {
    const { proxy, hostname, port, secure } = this.#target;
    try {
      if (proxy && proxy.protocol !== "http:") {
        throw new Error(`the proxy must be given as http://host:port (got ${proxy.protocol}//…)`);
      }
      const opening = Bun.connect<Wire>({
        hostname: proxy ? bareName(proxy) : hostname,
        port: proxy ? Number(proxy.port || 80) : port,
        data: this,
        socket: secure && !proxy ? secureHandlers : handlers,
        ...(secure && !proxy ? { tls: this.#tls() } : {}),
      });
      opening.catch((error: unknown) => this.closed(problemOf(error)));
    } catch (error) {
      this.closed(problemOf(error));
    }
  }

  abandon(): void {
    this.#closed = true;
    this.#socket?.terminate();
  }

  opened(socket: Socket<Wire>): void {
    this.#socket = socket;
    if (this.#closed) {
      socket.terminate();
      return;
    }
    socket.setNoDelay(true);
    probePeer(socket);
    const { proxy, secure } = this.#target;
    if (proxy && !this.#tunnelled) this.#askProxy(socket, proxy);
    else if (!secure) this.#begin(socket);
  }

  secured(socket: Socket<Wire>, problem: string | undefined): void {
    if (this.#closed) return;
    if (problem === undefined) this.#begin(socket);
    else this.#refuse(problem);
  }

  data(socket: Socket<Wire>, bytes: Buffer): void {
    // With TLS, the bytes of the socket below it are encrypted, and only TLS reads them.
    if (this.#closed || socket !== this.#socket) return;
    if (this.#open) this.#listener.data(bytes);
    else if (this.#target.proxy && !this.#tunnelled) this.#readProxyAnswer(bytes);
  }

  drain(socket: Socket<Wire>): void {
    if (this.#open && !this.#closed && socket === this.#socket) this.#listener.drain();
  }

  closed(problem: string | undefined): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#listener.closed(problem ?? (this.#open ? undefined : "the connection was closed while it was being opened"));
  }

  #begin(socket: Socket<Wire>): void {
    if (this.#open) return;
    this.#open = true;
    this.#socket = socket;
    this.#listener.opened(socket);
  }

  #refuse(problem: string): void {
    this.closed(problem);
    this.#socket?.terminate();
  }

  #askProxy(socket: Socket<Wire>, proxy: URL): void {
    const { hostname, port } = this.#target;
    const authority = `${hostname.includes(":") ? `[${hostname}]` : hostname}:${port}`;
    const user = `${decodeURIComponent(proxy.username)}:${decodeURIComponent(proxy.password)}`;
    const credentials =
      proxy.username === "" ? "" : `proxy-authorization: Basic ${Buffer.from(user).toString("base64")}\r\n`;
    socket.write(`CONNECT ${authority} HTTP/1.1\r\nhost: ${authority}\r\n${credentials}\r\n`);
  }

  #readProxyAnswer(bytes: Buffer): void {
    try {
      const answer = this.#proxyAnswer.push(bytes);
      if (!answer) return;
      const { head, rest } = answer;
      if (head.status < 200 || head.status > 299) this.#refuse(`the proxy answered ${head.status}`);
      // The client sends first, with or without TLS. Bytes that follow the proxy's answer therefore cannot come from
      // the server.
      else if (rest.length > 0) this.#refuse("the proxy sent more than its answer");
      else this.#tunnel();
    } catch (error) {
      if (!(error instanceof HeadError)) throw error;
      this.#refuse(`the proxy's answer is no HTTP: ${error.message}`);
    }
  }

  #tunnel(): void {
    this.#tunnelled = true;
    const socket = this.#socket as Socket<Wire>;
    if (!this.#target.secure) {
      this.#begin(socket);
      return;
    }
    const [, secure] = socket.upgradeTLS<Wire>({ data: this, tls: this.#tls(), socket: secureHandlers });
    this.#socket = secure;
  }

  #tls() {
    const { hostname, ca } = this.#target;
    trusted ??= [...new Set([...getCACertificates("default"), ...getCACertificates("system")])];
    return { serverName: hostname, rejectUnauthorized: true, ca: ca ?? trusted };
  }
}

const handlers: SocketHandler<Wire> = {
  open: (socket) => socket.data.opened(socket),
  data: (socket, bytes) => socket.data.data(socket, bytes),
  drain: (socket) => socket.data.drain(socket),
  close: (socket, error) => socket.data.closed(error ? problemOf(error) : undefined),
  error(socket, error) {
    socket.terminate();
    socket.data.closed(problemOf(error));
  },
  connectError: (socket, error) => socket.data.closed(problemOf(error)),
};

const secureHandlers: SocketHandler<Wire> = {
  ...handlers,
  // Before the certificate is verified, no byte may be written.
  handshake(socket, success, error) {
    const right = success && !error && socket.authorized;
    socket.data.secured(socket, right ? undefined : problemOf(error ?? "the certificate is not trusted"));
  },
};

function bareName(url: URL): string {
  return url.hostname.replace(/^\[|\]$/g, "");
}

function problemOf(error: unknown): string {
  const code = (error as { code?: unknown } | null)?.code;
  const message = error instanceof Error ? error.message : String(error);
  return typeof code === "string" && !message.includes(code) ? `${message} (${code})` : message;
}
