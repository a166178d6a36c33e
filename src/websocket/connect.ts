// Opens a WebSocket as a client. It connects, requests the upgrade and checks the answer, all within one deadline.
import type { MessageLinkListener } from "../base/bytes/message-link.ts";
import { HeadError } from "../http1/head.ts";
import type { HeaderFields } from "../http1/message.ts";
import { ClientChannel } from "./client-channel.ts";
import { AnswerHead, type ClientSocket, openClientSocket, type SocketListener } from "./client-socket.ts";
import type { MessageKind } from "./frame-reader.ts";
import { newKey, problemOfUpgradeAnswer, upgradeRequestFields } from "./handshake.ts";
import { WebSocketLink } from "./websocket-link.ts";

export interface ConnectOptions {
  /** The address, whose scheme is `http:`, `https:`, `ws:` or `wss:`. */
  url: URL;
  /** The only subprotocol that is offered. The server must choose it. If undefined, no subprotocol is offered. */
  protocol?: string | undefined;
  /** The kind of the messages. The default is binary. */
  kind?: MessageKind | undefined;
  /** More header fields for the request. */
  headers?: HeaderFields | undefined;
  /** Time in milliseconds within which the connection must open and the server must answer. */
  connectMs: number;
  maxMessageBytes: number;
  proxy?: URL | undefined;
  /** Certificates (PEM) that are trusted instead of the well-known ones and the system's. */
  ca?: string | undefined;
  listen(link: WebSocketLink): MessageLinkListener;
}

/** The error if the WebSocket could not be established. `message` is only for the log. */
export class ConnectError extends Error {
  override readonly name = "ConnectError";
  /** HTTP status of the server's answer, if the status was not 101. */
  readonly status: number | undefined;

  constructor(message: string, status?: number) {
    super(message);
    this.status = status;
  }
}

/** Opens a WebSocket. If this fails, rejects with a ConnectError. If a header cannot be sent, throws a TypeError. */
export function connectWebSocket(options: ConnectOptions): Promise<WebSocketLink> {
  for (const [name, value] of Object.entries(options.headers ?? {})) {
    // A line break in a value would begin another header field, or another request.
    if (/[^\t -~]/.test(value)) throw new TypeError(`the header ${name} has a character that cannot be sent`);
  }
  return new Promise((resolve, reject) => new Handshake(options, resolve, reject));
}

class Handshake implements SocketListener {
  readonly #options: ConnectOptions;
  readonly #resolve: (link: WebSocketLink) => void;
  readonly #reject: (error: ConnectError) => void;
  readonly #key = newKey();
  readonly #answer = new AnswerHead();
  readonly #timer: ReturnType<typeof setTimeout>;
  readonly #abandon: () => void;
  #socket: ClientSocket | undefined;
  #channel: ClientChannel | undefined;
  #failed = false;

  constructor(options: ConnectOptions, resolve: (link: WebSocketLink) => void, reject: (error: ConnectError) => void) {
    this.#options = options;
    this.#resolve = resolve;
    this.#reject = reject;
    const { url, connectMs, proxy, ca } = options;
    const secure = url.protocol === "https:" || url.protocol === "wss:";
    this.#timer = setTimeout(() => this.#fail(`no connection within ${connectMs} ms`), connectMs);
    this.#abandon = openClientSocket(
      {
        hostname: url.hostname.replace(/^\[|\]$/g, ""),
        port: url.port === "" ? (secure ? 443 : 80) : Number(url.port),
        secure,
        proxy,
        ca,
      },
      this,
    );
  }

  opened(socket: ClientSocket): void {
    this.#socket = socket;
    const { url, protocol, headers } = this.#options;
    const fields: HeaderFields = { host: url.host, ...headers, ...upgradeRequestFields(this.#key, protocol) };
    const lines = Object.entries(fields).map(([name, value]) => `${name}: ${value}\r\n`);
    const bytes = Buffer.from(`GET ${url.pathname}${url.search} HTTP/1.1\r\n${lines.join("")}\r\n`, "latin1");
    // On a new connection, the kernel accepts far more bytes at once than the request has.
    if (socket.write(bytes, 0, bytes.length) !== bytes.length) this.#fail("the request could not be sent");
  }

  data(bytes: Buffer): void {
    if (this.#channel) this.#channel.data(bytes);
    else if (!this.#failed) this.#readAnswer(bytes);
  }

  drain(): void {
    this.#channel?.drain();
  }

  closed(problem: string | undefined): void {
    if (this.#channel) this.#channel.didClose();
    else this.#fail(problem ?? "the server closed the connection without an answer");
  }

  #readAnswer(bytes: Buffer): void {
    try {
      const answer = this.#answer.push(bytes);
      if (!answer) return;
      const { head, rest } = answer;
      if (head.status !== 101) {
        this.#fail(`the server answered ${head.status} instead of 101`, head.status);
        return;
      }
      const problem = problemOfUpgradeAnswer(head.headers, this.#key, this.#options.protocol);
      if (problem === undefined) this.#begin(rest);
      else this.#fail(`the server's answer to the upgrade is wrong: ${problem}`);
    } catch (error) {
      if (!(error instanceof HeadError)) throw error;
      this.#fail(`the server's answer is no HTTP: ${error.message}`);
    }
  }

  #begin(rest: Buffer): void {
    clearTimeout(this.#timer);
    const channel = new ClientChannel(this.#socket as ClientSocket, this.#options.url.host, rest);
    this.#channel = channel;
    const { maxMessageBytes, kind = "binary", listen } = this.#options;
    this.#resolve(new WebSocketLink(channel, { role: "client", kind, maxMessageBytes, listen }));
  }

  #fail(problem: string, status?: number): void {
    if (this.#failed) return;
    this.#failed = true;
    clearTimeout(this.#timer);
    // If the connection fails immediately, `#abandon` is set only later in this task.
    queueMicrotask(() => this.#abandon());
    this.#reject(new ConnectError(problem, status));
  }
}
