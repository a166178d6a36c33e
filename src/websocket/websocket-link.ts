// One WebSocket after its handshake, at either end: messages over a connection, and its end by RFC 6455.
import type { MemoryAccount } from "../base/bytes/buffered-bytes.ts";
import type { MessageLinkListener, PausableLink } from "../base/bytes/message-link.ts";
import type { ByteChannelListener, PausableChannel } from "../http1/byte-channel.ts";
import { closeCodes, FrameError, maxControlBytes, mayBeSent, opcodes } from "./frame-format.ts";
import { type FrameListener, FrameReader, type MessageKind } from "./frame-reader.ts";
import { FrameWriter } from "./frame-writer.ts";

export interface WebSocketLinkOptions {
  role: "server" | "client";
  /** Maximum bytes of one message. The limit can be changed later. */
  maxMessageBytes: number;
  /** The kind of the messages; binary by default. */
  kind?: MessageKind;
  /** The account of an incomplete message. Without it nothing is counted. */
  memoryAccount?: MemoryAccount;
  /** Creates the listener of the link. Nothing is read before it returns. */
  listen(link: WebSocketLink): MessageLinkListener;
}

/** Milliseconds that the other end has to answer a close frame, or to close the connection after one. */
const closeMs = 2_000;
/**
 * Unsent bytes above which a ping gets no answer. A peer that does not read must not make this process buffer pongs.
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
  /** The close frame of this end, once sent. */
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

  /** Sets the most bytes of an incoming message. A longer one fails the connection with 1009. */
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
    // The close frame is written at once, because the caller may end the process next.
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
    // The server closes the connection, so that the client's side does not linger (RFC 6455, 7.1.1).
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

/** Returns the reason in UTF-8. A reason that is too long is cut between two characters. */
function reasonBytes(reason: string): Uint8Array {
  const bytes = new TextEncoder().encode(reason);
  let end = Math.min(bytes.length, maxControlBytes - 2);
  while (end < bytes.length && end > 0 && ((bytes[end] as number) & 0xc0) === 0x80) end--;
  return bytes.subarray(0, end);
}
