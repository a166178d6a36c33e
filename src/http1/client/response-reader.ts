// Parses the responses on one connection. Interim responses are skipped, and bodies are delivered as they arrive.
import { ChunkedDecoder, type ChunkTaker, wholeChunkStart } from "../chunked.ts";
import { checkPartialResponse, type FieldLines, HeadError, parseResponseHead, type ResponseHead } from "../head.ts";
import { HeadMemory, SharedHeads } from "../server/known-head.ts";
import { hasKnownEnd, inChunks, ReadResponse, readResponse, untilClosed } from "./read-response.ts";

export interface ResponseTaker {
  /** The method of the request to which the response belongs. */
  readonly method: string;
  answered(head: ResponseHead): void;
  /** True if the request asked to switch protocols. After the switch, all bytes are delivered as the body. */
  readonly maySwitch?: boolean;
  /** Called for 100 Continue. */
  continued?(): void;
  /** Called with a piece of the body: `bytes` from `start` to `end`. */
  data(bytes: Buffer, start: number, end: number): void;
}

/** The end of the headers. It is a Buffer, because a search for a string would convert the string each time. */
const emptyLine = Buffer.from("\r\n\r\n");
/** The most bytes of a response's headers, including interim responses. */
const maxHeadBytes = 64 * 1024;
const sharedHeads = new SharedHeads<ReadResponse>();

export class ResponseReader implements ChunkTaker {
  /** The current response, once its headers are complete. */
  answer: ReadResponse | undefined;
  /** True if bytes arrived after the end of the response. */
  overrun = false;
  /** The incomplete headers so far. The buffer may have free space at its end. */
  #partial: Buffer | undefined;
  #partialLength = 0;
  #headBytes = 0;
  readonly #heads = new HeadMemory(sharedHeads, maxHeadBytes);
  /** The number of bytes of a body of known length that are still missing. */
  #remaining = 0;
  /**
   * The decoder for chunks that one read does not contain completely, and for the last chunk. Created when first
   * needed.
   */
  #chunks: ChunkedDecoder | undefined;
  /** True if the body is chunked and the next byte begins a chunk. */
  #betweenChunks = false;
  /**
   * Start and end of the decoded data within the received bytes. Data of several chunks is moved together, so that it
   * is contiguous.
   */
  #start = 0;
  #end = 0;

  /** Reports whether the body ends when the connection ends. */
  get endsWithConnection(): boolean {
    return this.answer?.bodyLength === untilClosed;
  }

  /** Returns the trailers of a complete response, if any. */
  get trailers(): FieldLines | undefined {
    return this.#chunks?.trailers;
  }

  /**
   * Parses received bytes. Returns true if the response is complete. Throws a HeadError for invalid bytes, after
   * delivering the valid data before them. Changes the bytes in place, so the caller must not use them again.
   */
  read(bytes: Buffer, taker: ResponseTaker): boolean {
    if (this.answer) return this.#readBody(bytes, 0, taker);
    const known = this.#isBegun || taker.method === "HEAD" ? undefined : this.#heads.find(bytes);
    return known ? this.#begin(known, bytes, this.#heads.bodyStart, taker) : this.#readHead(bytes, taker);
  }

  next(): void {
    this.answer = undefined;
    this.#chunks = undefined;
    this.#headBytes = 0;
  }

  /** Reports whether a part of the next headers has arrived. */
  get #isBegun(): boolean {
    return this.#partial !== undefined || this.#headBytes > 0;
  }

  #readHead(chunk: Buffer, taker: ResponseTaker): boolean {
    const bytes = this.#joined(chunk);
    let start = 0;
    // The last three bytes of the earlier search may be the beginning of the empty line.
    let from = Math.max(0, bytes.byteLength - chunk.byteLength - 3);
    for (;;) {
      const end = bytes.indexOf(emptyLine, from);
      if (this.#headBytes + (end < 0 ? bytes.byteLength : end) - start > maxHeadBytes) {
        throw new HeadError(431, `The head of the answer is longer than ${maxHeadBytes} bytes.`);
      }
      if (end < 0) {
        checkPartialResponse(bytes, start, from);
        this.#keep(bytes, start);
        return false;
      }
      const text = bytes.toString("latin1", start, end);
      const head = parseResponseHead(text);
      if (head.status >= 200) {
        const answer = readResponse(head, taker.method);
        if (taker.method !== "HEAD" && hasKnownEnd(answer)) this.#heads.keep(text, answer);
        return this.#begin(answer, bytes, end + 4, taker);
      }
      if (head.status === 101) {
        if (!taker.maySwitch) throw new HeadError(400, "The protocol was switched without being asked to.");
        return this.#begin(new ReadResponse(head, untilClosed, false, undefined), bytes, end + 4, taker);
      }
      if (head.status === 100) taker.continued?.();
      this.#headBytes += end + 4 - start;
      start = end + 4;
      from = start;
    }
  }

  /** Returns the earlier bytes of the incomplete headers, followed by the chunk. */
  #joined(chunk: Buffer): Buffer {
    const partial = this.#partial;
    if (!partial) return chunk;
    const length = this.#partialLength + chunk.byteLength;
    let whole = partial;
    // The buffer is doubled, so that headers which arrive byte by byte take linear time.
    if (length > partial.byteLength) {
      whole = Buffer.allocUnsafeSlow(2 * length);
      partial.copy(whole, 0, 0, this.#partialLength);
    }
    chunk.copy(whole, this.#partialLength);
    this.#partial = whole;
    this.#partialLength = length;
    return whole.subarray(0, length);
  }

  #keep(bytes: Buffer, start: number): void {
    if (start > 0 || !this.#partial) this.#partial = bytes.subarray(start);
    this.#partialLength = bytes.byteLength - start;
  }

  #begin(answer: ReadResponse, bytes: Buffer, offset: number, taker: ResponseTaker): boolean {
    this.answer = answer;
    this.overrun = false;
    this.#partial = undefined;
    this.#remaining = answer.bodyLength;
    this.#betweenChunks = answer.bodyLength === inChunks;
    taker.answered(answer.head);
    return this.#readBody(bytes, offset, taker);
  }

  #readBody(bytes: Buffer, offset: number, taker: ResponseTaker): boolean {
    let end = bytes.byteLength;
    let complete = false;
    if (this.#betweenChunks) {
      // No byte of the next chunk has arrived yet.
      if (offset === end) return false;
      const start = wholeChunkStart(bytes, offset);
      if (start >= 0) {
        taker.data(bytes, start, end - 2);
        return false;
      }
      this.#chunks ??= new ChunkedDecoder();
    }
    if (this.#chunks) {
      const chunks = this.#chunks;
      this.#start = this.#end = offset;
      try {
        end = chunks.push(bytes, offset, this);
      } finally {
        if (this.#end > this.#start) taker.data(bytes, this.#start, this.#end);
      }
      this.#betweenChunks = chunks.betweenChunks;
      complete = chunks.done;
    } else if (this.endsWithConnection) {
      if (end > offset) taker.data(bytes, offset, end);
    } else {
      // If the response has no body, `#remaining` is 0 and any further bytes are unexpected.
      end = Math.min(end, offset + this.#remaining);
      this.#remaining -= end - offset;
      complete = this.#remaining === 0;
      if (end > offset) taker.data(bytes, offset, end);
    }
    this.overrun = end < bytes.byteLength;
    return complete;
  }

  /** Called by the chunk decoder with a piece of the body. */
  chunkData(bytes: Buffer, start: number, end: number): void {
    if (this.#end === this.#start) {
      this.#start = start;
      this.#end = end;
    } else {
      bytes.copyWithin(this.#end, start, end);
      this.#end += end - start;
    }
  }
}
