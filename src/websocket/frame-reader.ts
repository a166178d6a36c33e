// Reads messages from the bytes of a WebSocket. The reader is strict: if the bytes break RFC 6455, the connection
// fails.
import { isUtf8 } from "node:buffer";
import type { MemoryAccount } from "../base/bytes/buffered-bytes.ts";
import {
  applyMask,
  closeCodes,
  FrameError,
  maxControlBytes,
  maxHeaderBytes,
  mayBeSent,
  opcodes,
} from "./frame-format.ts";

export interface FrameListener {
  /**
   * Called with a whole message, which may be a part of the pushed bytes. If the message is a text, it is valid UTF-8.
   */
  message(bytes: Buffer): void;
  ping(payload: Buffer): void;
  pong(payload: Buffer): void;
  /** Called when a close frame has arrived. After it, nothing more is read. */
  closeFrame(code: number, reason: string): void;
}

/** The kind that all messages on a connection have. */
export type MessageKind = "binary" | "text";

const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
const nothing = Buffer.alloc(0);

export class FrameReader {
  /**
   * Maximum size in bytes of a message, whole or in fragments. If a message is longer, the connection fails with code
   * 1009.
   */
  maxMessageBytes: number;
  readonly #listener: FrameListener;
  /**
   * True if the other end is a client, because a client must mask its frames. False for a server, because a server must
   * not.
   */
  readonly #masked: boolean;
  readonly #kind: MessageKind;
  readonly #head = Buffer.alloc(maxHeaderBytes);
  #headLength = 0;
  /** Number of bytes that the frame's head has, as far as the bytes that arrived show. */
  #headNeeds = 2;
  /** The payload of a frame whose head has arrived but whose payload is not complete yet. */
  #payload: Buffer | undefined;
  #payloadLength = 0;
  /** The fragments of the current message that have arrived. */
  #fragments: Buffer | undefined;
  #fragmentsLength = 0;
  readonly #memoryAccount: MemoryAccount | undefined;
  /** Number of bytes that are counted in the memory account. */
  #bufferedBytes = 0;
  #ended = false;

  /** `memoryAccount` counts the bytes of an incomplete message. If it is undefined, nothing is counted. */
  constructor(
    listener: FrameListener,
    masked: boolean,
    maxMessageBytes: number,
    kind: MessageKind = "binary",
    memoryAccount?: MemoryAccount,
  ) {
    this.#listener = listener;
    this.#memoryAccount = memoryAccount;
    this.#kind = kind;
    this.#masked = masked;
    this.maxMessageBytes = maxMessageBytes;
  }

  /**
   * Reads bytes. The caller must not use these bytes afterwards, because the reader owns them and unmasks them in
   * place. Throws a FrameError, after which nothing more is read.
   */
  push(bytes: Buffer): void {
    try {
      let at = 0;
      while (at < bytes.length && !this.#ended) {
        if (this.#payload) at = this.#fill(this.#payload, bytes, at);
        else at = this.#readHead(bytes, at);
      }
    } catch (error) {
      this.stop();
      throw error;
    }
  }

  /** Stops reading, and releases all bytes that are buffered. */
  stop(): void {
    this.#ended = true;
    this.#payload = undefined;
    this.#fragments = undefined;
    this.#hold(-this.#bufferedBytes);
  }

  /** Counts this number of further bytes in the memory account. If the number is negative, releases bytes. */
  #hold(bytes: number): void {
    if (!this.#memoryAccount || bytes === 0) return;
    if (bytes < 0) this.#memoryAccount.release("requests", -bytes);
    else if (this.#memoryAccount.take("requests", bytes)) {
      throw new FrameError(closeCodes.tryAgainLater, "too much is held for this key; send the message in a moment");
    }
    this.#bufferedBytes += bytes;
  }

  #readHead(bytes: Buffer, start: number): number {
    const head = this.#head;
    let at = start;
    while (this.#headLength < this.#headNeeds && at < bytes.length) {
      head[this.#headLength++] = bytes[at++] as number;
      if (this.#headLength === 2) this.#headNeeds = this.#headSize();
    }
    if (this.#headLength < this.#headNeeds) return at;
    const length = this.#length();
    this.#checkSize(length);
    if (bytes.length - at < length) {
      // The whole payload is allocated at once, because the sender may split it into any number of pieces. Its length
      // is bounded by the message limit.
      this.#hold(length);
      this.#payload = Buffer.allocUnsafeSlow(length);
      this.#payloadLength = 0;
      return this.#fill(this.#payload, bytes, at);
    }
    this.#take(bytes.subarray(at, at + length));
    return at + length;
  }

  /** Returns how many bytes the head has. Its first two bytes determine this, and they are checked when they arrive. */
  #headSize(): number {
    const [first, second] = this.#head as unknown as [number, number];
    const opcode = first & 0x0f;
    const final = (first & 0x80) !== 0;
    const length = second & 0x7f;
    if ((first & 0x70) !== 0) throw violation("a reserved bit is set, and no extension was agreed on");
    if ((opcode > opcodes.binary && opcode < opcodes.close) || opcode > opcodes.pong) {
      throw violation(`the opcode ${opcode} is reserved`);
    }
    if (((second & 0x80) !== 0) !== this.#masked) {
      throw violation(this.#masked ? "a client must mask its frames" : "a server must not mask its frames");
    }
    if (opcode >= opcodes.close) {
      if (!final) throw violation("a control frame must not be fragmented");
      if (length > maxControlBytes) throw violation(`a control frame must be at most ${maxControlBytes} bytes`);
    } else if (opcode === opcodes.continuation) {
      if (!this.#fragments) throw violation("a continuation frame continues nothing");
    } else {
      if (this.#fragments) throw violation("a message began in the middle of another");
      if (opcode !== opcodes[this.#kind]) {
        throw new FrameError(closeCodes.unsupportedData, `only ${this.#kind} messages are taken here`);
      }
    }
    const extended = length < 126 ? 0 : length === 126 ? 2 : 8;
    return 2 + extended + (this.#masked ? 4 : 0);
  }

  #length(): number {
    const head = this.#head;
    const short = (head[1] as number) & 0x7f;
    if (short < 126) return short;
    if (short === 126) {
      const length = head.readUInt16BE(2);
      if (length < 126) throw violation("a length must be as short as possible");
      return length;
    }
    const [high, low] = [head.readUInt32BE(2), head.readUInt32BE(6)];
    if (high >= 0x80000000) throw violation("a length must not be negative");
    if (high === 0 && low < 0x10000) throw violation("a length must be as short as possible");
    return high * 2 ** 32 + low;
  }

  #checkSize(length: number): void {
    const before = this.#isControl() ? 0 : this.#fragmentsLength;
    if (before + length > this.maxMessageBytes && !this.#isControl()) {
      throw new FrameError(closeCodes.tooBig, `a message must be at most ${this.maxMessageBytes} bytes`);
    }
  }

  #isControl(): boolean {
    return ((this.#head[0] as number) & 0x08) !== 0;
  }

  #fill(payload: Buffer, bytes: Buffer, at: number): number {
    const end = Math.min(bytes.length, at + payload.length - this.#payloadLength);
    bytes.copy(payload, this.#payloadLength, at, end);
    this.#payloadLength += end - at;
    if (this.#payloadLength === payload.length) {
      this.#payload = undefined;
      this.#hold(-payload.length);
      this.#take(payload);
    }
    return end;
  }

  /** Handles a frame that has arrived completely. */
  #take(payload: Buffer): void {
    const head = this.#head;
    if (this.#masked) applyMask(payload, 0, payload.length, head, this.#headNeeds - 4);
    const final = ((head[0] as number) & 0x80) !== 0;
    const opcode = (head[0] as number) & 0x0f;
    this.#headLength = 0;
    this.#headNeeds = 2;
    if (opcode === opcodes.ping) this.#listener.ping(payload);
    else if (opcode === opcodes.pong) this.#listener.pong(payload);
    else if (opcode === opcodes.close) this.#takeClose(payload);
    else if (final && opcode === opcodes.binary) this.#listener.message(payload);
    else this.#takeFragment(payload, final);
  }

  #takeFragment(payload: Buffer, final: boolean): void {
    const length = this.#fragmentsLength + payload.length;
    let all = this.#fragments ?? nothing;
    if (length > all.length) {
      const room = Math.min(this.maxMessageBytes, Math.max(2 * all.length, length));
      this.#hold(room - all.length);
      all = Buffer.allocUnsafeSlow(room);
      this.#fragments?.copy(all, 0, 0, this.#fragmentsLength);
    }
    payload.copy(all, this.#fragmentsLength);
    this.#fragments = final ? undefined : all;
    this.#fragmentsLength = final ? 0 : length;
    if (!final) return;
    this.#hold(-all.length);
    const message = all.subarray(0, length);
    if (this.#kind === "text" && !isUtf8(message)) throw new FrameError(closeCodes.invalidText, "a text is no UTF-8");
    this.#listener.message(message);
  }

  #takeClose(payload: Buffer): void {
    this.stop();
    if (payload.length === 0) {
      this.#listener.closeFrame(closeCodes.noStatus, "");
      return;
    }
    if (payload.length === 1) throw violation("a close frame has a code of two bytes");
    const code = payload.readUInt16BE(0);
    if (!mayBeSent(code)) throw violation(`the close code ${code} must not be sent`);
    let reason: string;
    try {
      reason = utf8.decode(payload.subarray(2));
    } catch {
      throw new FrameError(closeCodes.invalidText, "the reason of a close frame is no UTF-8");
    }
    this.#listener.closeFrame(code, reason);
  }
}

function violation(message: string): FrameError {
  return new FrameError(closeCodes.protocolError, message);
}
