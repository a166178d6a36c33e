// One WebSocket after its handshake, at either end. It sends and receives messages, and closes the connection as RFC
// 6455 requires.
import type { MemoryAccount } from "../base/bytes/buffered-bytes.ts";
import type { MessageLinkListener, PausableLink } from "../base/bytes/message-link.ts";
import type { ByteChannelListener, PausableChannel } from "../http1/byte-channel.ts";
import { closeCodes, FrameError, maxControlBytes, mayBeSent, opcodes } from "./frame-format.ts";
import { type FrameListener, FrameReader, type MessageKind } from "./frame-reader.ts";
import { FrameWriter } from "./frame-writer.ts";

export interface WebSocketLinkOptions {
  role: "server" | "client";
  /** Maximum size in bytes of one message. The limit can be changed later. */
  maxMessageBytes: number;
  /** The kind of the messages. The default is binary. */
  kind?: MessageKind;
  /** The memory account that counts an incomplete message. If undefined, nothing is counted. */
  memoryAccount?: MemoryAccount;
  /** Creates the listener of the link. Before it returns, nothing is read. */
  listen(link: WebSocketLink): MessageLinkListener;
}

/**
 * Time in milliseconds that the other end has to answer a close frame, or to close the connection after a close frame.
 */
const closeMs = 2_000;
/**
 * If more bytes than this are unsent, a ping gets no answer. Otherwise a peer that does not read could make this
 * process buffer pongs.
 */
const maxUnsentForPong = 256 * 1024;
const nothing = new Uint8Array(0);

export class WebSocketLink implements PausableLink, ByteChannelListener, FrameListener {
  readonly peer: string;
  readonly #channel: PausableChannel;
  readonly #isServer: boolean;
  readonly #kind: MessageKind;
  readonly #reader: FrameReader;
  readonly #writer: FrameWriter;
  readonly #listener: MessageLinkListener;
  /** The close frame that this end has sent. Undefined before it is sent. */
  #closing: { code: number; reason: string } | undefined;
  #closeTimer: ReturnType<typeof setTimeout> | undefined;
  #isReported = false;

  constructor(channel: PausableChannel, options: WebSocketLinkOptions) {
    this.#channel = channel;
    this.peer = channel.peer;
    this.#isServer = options.role === "server";
    this.#kind = options.kind ?? "binary";
    this.#reader = new FrameReader(this, this.#isServer, options.maxMessageBytes, this.#kind, options.memoryAccount);
    this.#writer = new FrameWriter(channel, !this.#isServer);
    this.#listener = options.listen(this);
    channel.listen(this);
  }

  get unsentBytes(): number {
    return this.#writer.unsentBytes;
  }

  /**
   * Sets the maximum size in bytes of an incoming message. If a message is longer, the connection fails with code 1009.
   */
  set maxMessageBytes(bytes: number) {
    this.#reader.maxMessageBytes = bytes;
  }

  send(message: Uint8Array, rest?: Uint8Array): void {
    if (this.#closing || this.#channel.closed) return;
    this.#writer.add(opcodes[this.#kind], message, rest);
  }

  close(code: number, reason: string): void {
    if (this.#closing || this.#channel.closed) return;
    this.#sendClose(code, reason);
    // The close frame is written at once, because the caller may end the process directly after this.
    this.#writer.flush();
    this.#awaitEnd();
  }

  terminate(): void {
    this.#channel.terminate();
  }

  pause(): void {
    this.#channel.pause();
  }

  resume(): void {
    this.#channel.resume();
  }

  data(bytes: Buffer): void {
    try {
      this.#reader.push(bytes);
    } catch (error) {
      if (!(error instanceof FrameError)) throw error;
      this.#fail(error);
    }
  }

  drained(): void {
    if (!this.#closing) this.#listener.drained();
  }

  closed(): void {
    clearTimeout(this.#closeTimer);
    this.#reader.stop();
    this.#reportClosed(this.#closing?.code ?? closeCodes.abnormal, this.#closing?.reason ?? "the connection broke off");
  }

  message(bytes: Buffer): void {
    // After this end has sent its close frame, messages are ignored.
    if (!this.#closing) this.#listener.message(bytes);
  }

  ping(payload: Buffer): void {
    if (this.#closing || this.unsentBytes > maxUnsentForPong) return;
    this.#writer.add(opcodes.pong, payload, undefined);
  }

  pong(): void {}

  closeFrame(code: number, reason: string): void {
    const own = this.#closing;
    if (!own) this.#sendClose(code, reason);
    this.#writer.flush();
    // The server closes the connection first, so that the connection does not linger on the client's side (RFC 6455,
    // 7.1.1).
    if (this.#isServer) this.#channel.end();
    else this.#awaitEnd();
    this.#reportClosed(own?.code ?? code, own?.reason ?? reason);
  }

  #fail(error: FrameError): void {
    if (!this.#closing) this.#sendClose(error.closeCode, error.message);
    this.#writer.flush();
    this.#channel.end();
    this.#reportClosed(error.closeCode, error.message);
  }

  #sendClose(code: number, reason: string): void {
    this.#closing = { code, reason };
    if (code === closeCodes.noStatus) {
      this.#writer.add(opcodes.close, nothing, undefined);
      return;
    }
    const head = new Uint8Array(2);
    const sent = mayBeSent(code) ? code : closeCodes.normal;
    head[0] = sent >>> 8;
    head[1] = sent;
    this.#writer.add(opcodes.close, head, reasonBytes(reason));
  }

  #awaitEnd(): void {
    this.#closeTimer ??= setTimeout(() => this.#channel.terminate(), closeMs);
  }

  #reportClosed(code: number, reason: string): void {
    if (this.#isReported) return;
    this.#isReported = true;
    this.#listener.closed(code, reason);
  }
}

/** Returns the reason in UTF-8. If the reason is too long, it is cut between two characters. */
function reasonBytes(reason: string): Uint8Array {
  const bytes = new TextEncoder().encode(reason);
  let end = Math.min(bytes.length, maxControlBytes - 2);
  while (end < bytes.length && end > 0 && ((bytes[end] as number) & 0xc0) === 0x80) end--;
  return bytes.subarray(0, end);
}
