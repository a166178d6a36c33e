// A request body in several pieces: buffers a small window of it until it is requested, then all of it.
import type { BodySink } from "../../base/bytes/body-source.ts";
import { ByteSpan, noBytes } from "../../base/bytes/byte-span.ts";
import { freeBytes } from "../../base/bytes/free-bytes.ts";
import type { GatewayError } from "../../base/errors.ts";
import { ChunkedDecoder, type ChunkTaker } from "../chunked.ts";
import { HeadError } from "../head.ts";
import { type BodyFault, RequestBodyError } from "../message.ts";

/** The smallest growth of a body's buffer, so that many small pieces are not copied for each. */
const minGrowthBytes = 16 * 1024;
/**
 * Once this many bytes of a body have arrived, its whole declared length is allocated. The system provides that memory
 * as it is written.
 */
const trustedFromBytes = 128 * 1024;

/** The memory account of a body's bytes. */
export interface BodyMemoryAccount {
  /** Takes this many more bytes, or returns the refusal. A negative number returns bytes. */
  hold(bytes: number): GatewayError | undefined;
}

export class ConnectionBody implements ChunkTaker {
  readonly #windowBytes: number;
  /** The chunk decoder; undefined if the length was declared. */
  readonly #decoder: ChunkedDecoder | undefined;
  /** The missing bytes of a declared length. */
  #remaining: number;
  #buffered: ByteSpan = noBytes;
  /** A chunked body as it arrived, until it is requested, for a taker that passes it on with its framing. */
  #raw: ByteSpan[] | undefined;
  /** Receives the raw bytes as they arrive, which are then not buffered. */
  #sink: BodySink | undefined;
  /** Receives the content as it arrives, without framing. */
  #reader: BodySink | undefined;
  #flowedBytes = 0;
  #isStopped = false;
  /** The capacity of the buffer, if this object owns it. */
  #room = 0;
  #memoryAccount: BodyMemoryAccount | undefined;
  /** The bytes that are counted in the memory account. */
  #countedBytes = 0;
  #receivedBytes = 0;
  #complete = false;
  #fault: RequestBodyError | GatewayError | undefined;
  #maxBytes = Number.POSITIVE_INFINITY;
  #resolve: ((bytes: ByteSpan) => void) | undefined;
  #reject: ((error: RequestBodyError | GatewayError) => void) | undefined;

  /** `length` is the declared length; undefined for chunks. */
  constructor(length: number | undefined, windowBytes: number) {
    this.#remaining = length ?? 0;
    this.#decoder = length === undefined ? new ChunkedDecoder() : undefined;
    this.#raw = length === undefined ? [] : undefined;
    this.#windowBytes = windowBytes;
  }

  get complete(): boolean {
    return this.#complete;
  }

  /** Reports whether the pushed bytes may be reused: this object or the receiver has copied them. */
  get isCopied(): boolean {
    return this.#reader !== undefined || (this.#room > 0 && this.#raw === undefined && this.#sink === undefined);
  }

  /** Reports whether a reader waits for the rest. */
  get awaited(): boolean {
    return this.#resolve !== undefined || this.isFlowing;
  }

  /** Reports whether the body is forwarded as it arrives instead of being buffered. */
  get isFlowing(): boolean {
    return this.#reader !== undefined && !this.#complete;
  }

  /** Reports whether the receiver asked for a pause. */
  get isStopped(): boolean {
    return this.#isStopped;
  }

  /** Reports whether reading from the connection should stop for now. */
  get full(): boolean {
    if (this.#fault !== undefined || this.#isStopped) return true;
    return !this.awaited && this.#bufferedBytes > this.#windowBytes;
  }

  /** Returns the buffered bytes that no account counts, because the body was not requested yet. */
  get unaskedBytes(): number {
    return this.#memoryAccount ? 0 : this.#bufferedBytes;
  }

  /** Returns the number of received bytes, with framing. */
  get receivedBytes(): number {
    return this.#receivedBytes;
  }

  /** Takes the bytes of the body from `offset` on, and returns the offset after them. */
  push(bytes: Buffer, offset: number): number {
    if (this.#fault) return bytes.length;
    let end: number;
    if (this.#decoder) {
      try {
        end = this.#decoder.push(bytes, offset, this);
      } catch (error) {
        if (!(error instanceof HeadError)) throw error;
        this.#pass(bytes, offset, bytes.length);
        this.fail("malformed", error.message);
        return bytes.length;
      }
      this.#complete = this.#decoder.done;
    } else {
      end = Math.min(bytes.length, offset + this.#remaining);
      this.#remaining -= end - offset;
      this.#append(new ByteSpan(bytes, offset, end));
      this.#complete = this.#remaining === 0;
    }
    this.#receivedBytes += end - offset;
    this.#pass(bytes, offset, end);
    if (this.#complete && !this.#fault) {
      this.#endSoon();
      this.#settle()?.(this.#take());
    }
    return end;
  }

  /** Called by the chunk decoder with decoded bytes. */
  chunkData(bytes: Buffer, start: number, end: number): void {
    this.#append(new ByteSpan(bytes, start, end));
  }

  /** Forwards the whole body to `sink` as it arrives, with framing, instead of reading it. Call it once. */
  passTo(sink: BodySink): void {
    const came = this.#raw ?? [this.#buffered];
    this.#letGo();
    this.#raw = undefined;
    this.#sink = sink;
    for (const piece of came) if (piece.length > 0) sink.data(piece);
    if (this.#complete) sink.end();
    else if (this.#fault) sink.fail(this.#fault);
  }

  /**
   * Forwards the content to `reader` as it arrives, instead of reading it. Bytes are valid until `data` returns. Fails
   * with a RequestBodyError, also beyond `maxBytes`. Call it once.
   */
  flowTo(reader: BodySink, maxBytes: number): void {
    this.#raw = undefined;
    this.#maxBytes = maxBytes;
    this.#reader = reader;
    if (this.#fault) {
      reader.fail(this.#fault);
      return;
    }
    const isOurs = this.#room > 0;
    const came = this.#letGo();
    if (came.length + this.#remaining > maxBytes) this.#fail(tooLarge(maxBytes));
    else this.#flow(came);
    if (isOurs) freeBytes(came.buffer);
    if (this.#complete && !this.#fault) this.#endSoon();
  }

  /**
   * Ends the body after the current work on the received bytes, because an immediate answer would end the request
   * within that work.
   */
  #endSoon(): void {
    const reader = this.#reader;
    if (reader) queueMicrotask(() => reader.end());
  }

  /** Pauses a forwarded body: the connection reads no more of it until `go`. */
  stop(): void {
    this.#isStopped = true;
  }

  go(): void {
    this.#isStopped = false;
  }

  /** Sets the memory account that counts the buffered bytes from now on. */
  setMemoryAccount(memoryAccount: BodyMemoryAccount): void {
    this.#memoryAccount = memoryAccount;
    this.#count(this.#room > 0 ? this.#room : this.#buffered.length);
  }

  /**
   * Reads the whole body. Throws, or rejects with, a RequestBodyError or the refusal of its memory account. Call it
   * once.
   */
  read(maxBytes: number): ByteSpan | Promise<ByteSpan> {
    this.#raw = undefined;
    if (this.#fault) throw this.#fault;
    this.#maxBytes = maxBytes;
    if (this.#buffered.length + this.#remaining > maxBytes) this.#fail(tooLarge(maxBytes));
    else this.#refuseEarly();
    if (this.#fault) throw this.#fault;
    if (this.#complete) return this.#take();
    return new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
  }

  /** Ends the body: no more of it arrives or is taken. */
  fail(fault: BodyFault, message: string): void {
    if (!this.#complete) this.#fail(new RequestBodyError(fault, message));
  }

  /** Refuses a declared length for which the memory account has no room, before more is read. */
  #refuseEarly(): void {
    const memoryAccount = this.#memoryAccount;
    // The allocated buffer may already have room for the rest.
    const more = this.#buffered.length + this.#remaining - this.#countedBytes;
    if (!memoryAccount || this.#remaining === 0 || more <= 0) return;
    const refusal = memoryAccount.hold(more);
    if (refusal) this.#fail(refusal);
    else memoryAccount.hold(-more);
  }

  #count(bytes: number): void {
    const more = bytes - this.#countedBytes;
    if (!this.#memoryAccount || more === 0) return;
    const refusal = this.#memoryAccount.hold(more);
    if (refusal) this.#fail(refusal);
    else this.#countedBytes = bytes;
  }

  #fail(error: RequestBodyError | GatewayError): void {
    if (this.#fault) return;
    this.#fault = error;
    this.#freeOwn();
    this.#buffered = noBytes;
    this.#room = 0;
    if (this.#countedBytes > 0) this.#memoryAccount?.hold(-this.#countedBytes);
    this.#countedBytes = 0;
    const reject = this.#reject;
    this.#settle();
    reject?.(error);
    this.#sink?.fail(error);
    this.#reader?.fail(error);
  }

  /**
   * Returns the buffered bytes, including a raw copy of a chunked body that was not requested yet, which is seldom much
   * longer than its content.
   */
  get #bufferedBytes(): number {
    return this.#raw ? this.#receivedBytes : this.#buffered.length;
  }

  #pass(bytes: Buffer, start: number, end: number): void {
    this.#raw?.push(new ByteSpan(bytes, start, end));
    const sink = this.#sink;
    if (!sink) return;
    if (end > start) sink.data(new ByteSpan(bytes, start, end));
    if (this.#complete) sink.end();
  }

  #settle(): ((bytes: ByteSpan) => void) | undefined {
    const resolve = this.#resolve;
    this.#resolve = undefined;
    this.#reject = undefined;
    return resolve;
  }

  #flow(piece: ByteSpan): void {
    this.#flowedBytes += piece.length;
    if (this.#flowedBytes > this.#maxBytes) this.#fail(tooLarge(this.#maxBytes));
    else if (piece.length > 0) this.#reader?.data(piece);
  }

  #append(piece: ByteSpan): void {
    if (this.#fault || this.#sink || piece.length === 0) return;
    if (this.#reader) {
      this.#flow(piece);
      return;
    }
    const length = this.#buffered.length + piece.length;
    if (length > this.#maxBytes) {
      this.#fail(tooLarge(this.#maxBytes));
      return;
    }
    if (this.#buffered.length === 0) {
      // A single piece needs no copy, and nothing is written after it.
      this.#buffered = piece;
      this.#count(length);
      return;
    }
    const buffer = length > this.#room ? this.#grown(length) : this.#buffered.buffer;
    if (!buffer) return;
    piece.copyTo(buffer, this.#buffered.length);
    this.#buffered = new ByteSpan(buffer, 0, length);
  }

  /**
   * Returns a larger buffer that begins with the buffered bytes. A declared length is trusted once part of it has
   * arrived, because memory grows only with arrived bytes, and repeated copies also use memory until they are
   * collected. Undefined if the memory account is full.
   */
  #grown(length: number): Buffer | undefined {
    const doubled = Math.min(Math.max(length, 2 * this.#buffered.length, minGrowthBytes), this.#maxBytes);
    const whole = length + this.#remaining;
    const isTrusted = !this.#decoder && length >= trustedFromBytes;
    const room = isTrusted ? whole : this.#decoder ? doubled : Math.min(doubled, whole);
    this.#count(room);
    if (this.#fault) return undefined;
    const buffer = Buffer.allocUnsafeSlow(room);
    this.#buffered.copyTo(buffer, 0);
    // The first piece of a declared length can be freed: nobody uses any later bytes of its read of the socket.
    if (this.#room > 0 || !this.#decoder) freeBytes(this.#buffered.buffer);
    this.#room = room;
    return buffer;
  }

  /** Frees the buffer if this object owns it. */
  #freeOwn(): void {
    if (this.#room > 0) freeBytes(this.#buffered.buffer);
  }

  /** Returns the received bytes and gives up the ownership of their buffer. */
  #letGo(): ByteSpan {
    this.#room = 0;
    return this.#take();
  }

  #take(): ByteSpan {
    const buffered = this.#buffered;
    this.#buffered = noBytes;
    return buffered;
  }
}

export function tooLarge(maxBytes: number): RequestBodyError {
  return new RequestBodyError("too_large", `The body is larger than the limit of ${maxBytes} bytes.`);
}
