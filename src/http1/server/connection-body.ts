// A request body that arrives in pieces. Until the body is requested, only a small window of it is buffered.
import type { BodySink } from "../../base/bytes/body-source.ts";
import { ByteSpan, noBytes } from "../../base/bytes/byte-span.ts";
import { freeBytes } from "../../base/bytes/free-bytes.ts";
import type { GatewayError } from "../../base/errors.ts";
import { ChunkedDecoder, type ChunkTaker } from "../chunked.ts";
import { HeadError } from "../head.ts";
import { type BodyFault, RequestBodyError } from "../message.ts";

/** Minimum growth of the buffer in bytes, so that small pieces do not cause a copy each. */
const minGrowthBytes = 16 * 1024;
/**
 * Once this many bytes have arrived, memory for the whole declared length is allocated. The operating system provides
 * the memory only when it is written.
 */
const trustedFromBytes = 128 * 1024;

/** The memory account on which a body counts. */
export interface BodyMemoryAccount {
  /** Counts bytes on the account, or returns an error if the account is full. A negative number releases bytes. */
  hold(bytes: number): GatewayError | undefined;
}

export class ConnectionBody implements ChunkTaker {
  readonly #windowBytes: number;
  /** The chunk decoder. Undefined for a body with a declared length. */
  readonly #decoder: ChunkedDecoder | undefined;
  /** The number of bytes of the declared length that are still missing. */
  #remaining: number;
  #buffered: ByteSpan = noBytes;
  /** The raw bytes of a chunked body so far. Undefined once the body can no longer be forwarded with its framing. */
  #raw: ByteSpan[] | undefined;
  /** Receives the raw bytes as they arrive, so that they are not buffered. */
  #sink: BodySink | undefined;
  /** Receives the decoded bytes as they arrive. */
  #reader: BodySink | undefined;
  #flowedBytes = 0;
  #isStopped = false;
  /** The size of the buffer, or 0 if the buffer belongs to the caller of `push`. */
  #room = 0;
  #memoryAccount: BodyMemoryAccount | undefined;
  /** The number of bytes that count on the memory account. */
  #countedBytes = 0;
  #receivedBytes = 0;
  #complete = false;
  #fault: RequestBodyError | GatewayError | undefined;
  #maxBytes = Number.POSITIVE_INFINITY;
  #resolve: ((bytes: ByteSpan) => void) | undefined;
  #reject: ((error: RequestBodyError | GatewayError) => void) | undefined;

  /** `length` is the declared length, or undefined for a chunked body. */
  constructor(length: number | undefined, windowBytes: number) {
    this.#remaining = length ?? 0;
    this.#decoder = length === undefined ? new ChunkedDecoder() : undefined;
    this.#raw = length === undefined ? [] : undefined;
    this.#windowBytes = windowBytes;
  }

  get complete(): boolean {
    return this.#complete;
  }

  /** Reports whether the caller of `push` may reuse the bytes, because they were copied or already delivered. */
  get isCopied(): boolean {
    return this.#reader !== undefined || (this.#room > 0 && this.#raw === undefined && this.#sink === undefined);
  }

  /** Reports whether some code is waiting for the rest of the body. */
  get awaited(): boolean {
    return this.#resolve !== undefined || this.isFlowing;
  }

  /** Reports whether the decoded body is delivered as it arrives, without buffering. */
  get isFlowing(): boolean {
    return this.#reader !== undefined && !this.#complete;
  }

  /** Reports whether the receiver of the body has paused it. */
  get isStopped(): boolean {
    return this.#isStopped;
  }

  /** Reports whether no more bytes of the body should be read from the connection for now. */
  get full(): boolean {
    if (this.#fault !== undefined || this.#isStopped) return true;
    return !this.awaited && this.#bufferedBytes > this.#windowBytes;
  }

  /** Returns the number of buffered bytes that do not count on a memory account yet. */
  get unaskedBytes(): number {
    return this.#memoryAccount ? 0 : this.#bufferedBytes;
  }

  /** Returns the number of received bytes, including framing. */
  get receivedBytes(): number {
    return this.#receivedBytes;
  }

  /** Adds received bytes, beginning at `offset`. Returns the offset after the last byte of the body. */
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

  /** Called by the chunk decoder with a piece of the body. */
  chunkData(bytes: Buffer, start: number, end: number): void {
    this.#append(new ByteSpan(bytes, start, end));
  }

  /** Forwards the raw body with its framing to `sink` as it arrives. Call it once, instead of `read`. */
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
   * Delivers the decoded body to `reader` as it arrives. The bytes are valid until `data` returns. Fails with a
   * RequestBodyError, also if the body exceeds `maxBytes`. Call it once, instead of `read`.
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

  /** Reports the end in a microtask. The end may finish the request, while the caller is still processing its bytes. */
  #endSoon(): void {
    const reader = this.#reader;
    if (reader) queueMicrotask(() => reader.end());
  }

  /** Pauses the delivery of the body until `go` is called. */
  stop(): void {
    this.#isStopped = true;
  }

  go(): void {
    this.#isStopped = false;
  }

  /** Sets the memory account. From now on the buffered bytes count on it. */
  setMemoryAccount(memoryAccount: BodyMemoryAccount): void {
    this.#memoryAccount = memoryAccount;
    this.#count(this.#room > 0 ? this.#room : this.#buffered.length);
  }

  /**
   * Reads the whole body. May be called only once. Fails with a RequestBodyError, or with a GatewayError if the memory
   * account is full.
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

  /** Makes the body fail, unless it is already complete. Later bytes are dropped. */
  fail(fault: BodyFault, message: string): void {
    if (!this.#complete) this.#fail(new RequestBodyError(fault, message));
  }

  /** Makes the body fail immediately if the memory account has no room for the declared length. */
  #refuseEarly(): void {
    const memoryAccount = this.#memoryAccount;
    // Part of the remaining bytes may already count on the account, because the buffer is larger than what has arrived.
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

  /** Returns the number of buffered bytes, including the framing for a raw chunked body. */
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
      // The first piece is kept without copying, and its memory is never written to.
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
   * Returns a larger buffer with the bytes so far. If enough of the declared length has arrived, memory for all of it
   * is allocated, because repeated copies would take memory too. Returns undefined if the memory account is full.
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
    // The first piece of a body with a declared length can be freed too, because no other code uses its memory.
    if (this.#room > 0 || !this.#decoder) freeBytes(this.#buffered.buffer);
    this.#room = room;
    return buffer;
  }

  /** Frees the buffer, if this object allocated it. */
  #freeOwn(): void {
    if (this.#room > 0) freeBytes(this.#buffered.buffer);
  }

  /** Returns the bytes so far. Their buffer now belongs to the caller, so this object no longer frees it. */
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
