// Writes the answer to one request, complete or streamed.
import { ByteSpan, type Bytes } from "../../base/bytes/byte-span.ts";
import type { ClientStream } from "../../base/bytes/client-stream.ts";
import type { PausableChannel } from "../byte-channel.ts";
import type { AnswerFields, Reply } from "../message.ts";
import { type AnswerConnection, type AnswerFraming, putHead, scratch } from "./outgoing.ts";
import { gatheredBytes, maxPlaced, turnOutput } from "./turn-output.ts";

/** The parts of the connection that an answer uses. */
export interface ReplyConnection {
  /** True if the connection will be closed after this answer. */
  readonly closesAfterAnswer: boolean;
  /** True if some of the written bytes wait for the client. */
  readonly behind: boolean;
  /**
   * Sends `bytes` from `start` to `end`. Bytes that cannot be sent yet are buffered, and copied if they are in a reused
   * buffer.
   */
  write(bytes: Buffer, start: number, end: number): void;
  /** Does the same as `write`, but at the end of the event loop tick, together with other bytes. This is cheaper. */
  writeSoon(bytes: Buffer, start: number, end: number): void;
  /** Sets the number of bytes that are not written yet because the client is slow. They count on the memory account. */
  waits(bytes: number): void;
  /** Sends `bytes` up to offset `end`, and then switches the connection to another protocol. */
  upgrade(bytes: Buffer, end: number): PausableChannel;
  /** Called when the answer was written completely. */
  answered(closes: boolean): void;
  /**
   * Called when the answer broke off. `looksComplete` is true if the client could not tell that the answer is
   * incomplete.
   */
  brokeOff(looksComplete: boolean): void;
}

/** Bytes that wait for the end of the task are sent immediately if there are at least this many. */
const eagerBytes = 16 * 1024;
const lastChunk = "0\r\n\r\n";
/** Maximum bytes that chunked encoding adds to a piece: eight digits, two line ends, and the last chunk. */
const maxFraming = 8 + 2 + 2 + lastChunk.length;
const hexDigits = "0123456789abcdef";

export class OutgoingReply implements Reply {
  readonly #isHead: boolean;
  readonly #isOld: boolean;
  #connection: ReplyConnection | undefined;
  #begun = false;
  #stream: OutgoingStream | undefined;

  constructor(connection: ReplyConnection, method: string, version: string) {
    this.#connection = connection;
    this.#isHead = method === "HEAD";
    this.#isOld = version === "1.0";
  }

  get begun(): boolean {
    return this.#begun;
  }

  send(status: number, headers: AnswerFields, answer: string | Uint8Array | Bytes): void {
    this.#refuseSecond();
    const body = answer instanceof Uint8Array ? ByteSpan.of(answer) : answer;
    const length = typeof body === "string" ? Buffer.byteLength(body) : body.length;
    const connection = this.#connection;
    const closes = this.#closes(headers);
    let end = putHead(status, headers, status === 204 ? "none" : length, this.#connectionField(closes));
    this.#begun = true;
    this.#connection = undefined;
    if (!connection) return;
    let rest: ByteSpan | undefined;
    if (!this.#isHead && length > 0 && hasBody(status)) {
      const room = scratch.length - end;
      if (length <= room) {
        if (typeof body === "string") scratch.write(body, end);
        else body.copyTo(scratch, end);
        end += length;
      } else {
        const all = typeof body === "string" ? ByteSpan.of(body) : body.solid;
        const split = all.start + room;
        all.buffer.copy(scratch, end, all.start, split);
        rest = new ByteSpan(all.buffer, split, all.end);
        end = scratch.length;
      }
    }
    connection.write(scratch, 0, end);
    if (rest) connection.write(rest.buffer, rest.start, rest.end);
    connection.answered(closes);
  }

  stream(status: number, headers: AnswerFields, length?: number): ClientStream {
    this.#refuseSecond();
    const framing = status === 204 ? "none" : (length ?? (this.#isOld ? "close" : "chunked"));
    const closes = framing === "close" || this.#closes(headers);
    const end = putHead(status, headers, framing, this.#connectionField(closes));
    const head = scratch.toString("latin1", 0, end);
    this.#begun = true;
    const mode = this.#isHead || !hasBody(status) ? "bodyless" : framing;
    this.#stream = new OutgoingStream(this.#connection, head, mode, closes);
    this.#connection = undefined;
    return this.#stream;
  }

  upgrade(headers: AnswerFields): PausableChannel {
    this.#refuseSecond();
    // An HTTP/1.0 connection cannot switch protocols (RFC 9110, 7.8).
    if (this.#isOld) throw new Error("A connection of HTTP/1.0 cannot be upgraded.");
    if (!this.#connection) throw new Error("The client left before its connection was upgraded.");
    const end = putHead(101, headers, "none", "upgrade");
    const channel = this.#connection.upgrade(scratch, end);
    this.#begun = true;
    this.#connection = undefined;
    return channel;
  }

  /** Called when the client has accepted everything that was waiting for it. */
  drained(): void {
    this.#stream?.drained();
  }

  /** Called when the connection is closed. Calls of `write` then do nothing. */
  detach(): void {
    this.#connection = undefined;
    this.#stream?.detach();
  }

  #refuseSecond(): void {
    if (this.#begun) throw new Error("The request was answered already.");
  }

  #closes(headers: AnswerFields): boolean {
    return headers["connection"] === "close" || this.#connection === undefined || this.#connection.closesAfterAnswer;
  }

  #connectionField(closes: boolean): AnswerConnection {
    if (closes) return "close";
    return this.#isOld ? "keep_1.0" : "keep";
  }
}

class OutgoingStream implements ClientStream {
  onDrain: (() => void) | undefined;
  readonly #mode: AnswerFraming | "bodyless";
  readonly #closes: boolean;
  #connection: ReplyConnection | undefined;
  #head: string;
  /** Text of the answer that was not passed to the connection yet. */
  #waiting = "";
  /** The text of the trailers. */
  #trailer = "";
  #ended = false;
  /** True while the headers wait for the end of the current task. */
  #scheduled = false;
  /** True from the time when `write` returned false until `onDrain` is called. */
  #isBehind = false;

  constructor(
    connection: ReplyConnection | undefined,
    head: string,
    mode: AnswerFraming | "bodyless",
    closes: boolean,
  ) {
    this.#connection = connection;
    this.#head = head;
    this.#mode = mode;
    this.#closes = closes;
    this.#schedule();
  }

  write(bytes: string): boolean {
    const connection = this.#connection;
    if (!connection || this.#ended) return true;
    if (this.#mode !== "bodyless") this.#waiting += bytes;
    if (connection.behind) connection.waits(this.#waiting.length);
    // Pieces that are written in the same task as the headers are sent together with the headers.
    if (!this.#scheduled || this.#waiting.length >= eagerBytes) this.#flush();
    return this.#keepsUp(connection);
  }

  writeAround(before: string, bytes: Buffer, start: number, end: number, after: string): boolean {
    const connection = this.#connection;
    if (!connection || this.#ended) return true;
    const length = before.length + end - start + after.length;
    // An empty chunk would end the body, so nothing is sent.
    if (length === 0) return this.#keepsUp(connection);
    if (this.#scheduled || connection.behind || this.#mode === "bodyless" || length + maxFraming > maxPlaced) {
      return this.write(before + bytes.toString("latin1", start, end) + after);
    }
    const isChunked = this.#mode === "chunked";
    const offset = turnOutput.reserve(length + maxFraming);
    let at = isChunked ? putChunkSize(gatheredBytes, length, offset) : offset;
    if (before !== "") at += gatheredBytes.write(before, at, "latin1");
    at += bytes.copy(gatheredBytes, at, start, end);
    if (after !== "") at += gatheredBytes.write(after, at, "latin1");
    connection.writeSoon(gatheredBytes, offset, isChunked ? putLineEnd(gatheredBytes, at) : at);
    return this.#keepsUp(connection);
  }

  end(last = ""): void {
    if (this.#ended) return;
    this.#ended = true;
    if (this.#mode !== "bodyless") this.#waiting += last;
    if (!this.#scheduled) this.#flush();
  }

  abort(trailer?: string): void {
    if (this.#ended) return;
    if (trailer !== undefined && this.#mode === "chunked") {
      this.#trailer = trailer;
      this.end();
      return;
    }
    this.#flush();
    const connection = this.#connection;
    this.detach();
    connection?.brokeOff(this.#mode === "close" || this.#mode === "bodyless");
  }

  drained(): void {
    this.#connection?.waits(0);
    this.#flush();
    if (!this.#isBehind || this.#ended || this.#connection?.behind !== false) return;
    this.#isBehind = false;
    this.onDrain?.();
  }

  detach(): void {
    this.#connection = undefined;
    this.#ended = true;
    this.#waiting = "";
    this.#head = "";
  }

  #keepsUp(connection: ReplyConnection): boolean {
    if (!connection.behind) return true;
    this.#isBehind = true;
    return false;
  }

  /**
   * Schedules sending the headers for the end of this task, so that they go into the same packet as the first pieces.
   */
  #schedule(): void {
    if (!this.#connection) return;
    this.#scheduled = true;
    queueMicrotask(() => {
      this.#scheduled = false;
      this.#flush();
    });
  }

  #flush(): void {
    const connection = this.#connection;
    // While the client is behind, the text stays here. It is sent once the client has received the earlier bytes.
    if (!connection || connection.behind) return;
    const head = this.#head;
    const waiting = this.#waiting;
    this.#head = "";
    this.#waiting = "";
    const room = head.length + waiting.length + maxFraming + this.#trailer.length + 2;
    if (room > maxPlaced) {
      const bytes = Buffer.allocUnsafeSlow(room);
      connection.writeSoon(bytes, 0, this.#put(bytes, 0, head, waiting));
    } else {
      const offset = turnOutput.reserve(room);
      connection.writeSoon(gatheredBytes, offset, this.#put(gatheredBytes, offset, head, waiting));
    }
    if (!this.#ended) return;
    this.#connection = undefined;
    connection.answered(this.#closes);
  }

  /** Writes the parts directly into the buffer, because joining them as text first would be another copy. */
  #put(bytes: Buffer, start: number, head: string, waiting: string): number {
    const isChunked = this.#mode === "chunked";
    let at = head === "" ? start : start + bytes.write(head, start, "latin1");
    if (waiting !== "") {
      if (isChunked) at = putChunkSize(bytes, waiting.length, at);
      at += bytes.write(waiting, at, "latin1");
      if (isChunked) at = putLineEnd(bytes, at);
    }
    if (this.#ended && isChunked) {
      at += bytes.write(this.#trailer === "" ? lastChunk : `0\r\n${this.#trailer}\r\n\r\n`, at, "latin1");
    }
    return at;
  }
}

function putChunkSize(bytes: Buffer, size: number, start: number): number {
  let at = start;
  let shift = 0;
  while (size >>> shift > 0xf) shift += 4;
  for (; shift >= 0; shift -= 4) bytes[at++] = hexDigits.charCodeAt((size >>> shift) & 0xf);
  return putLineEnd(bytes, at);
}

function putLineEnd(bytes: Buffer, at: number): number {
  bytes[at] = 0x0d;
  bytes[at + 1] = 0x0a;
  return at + 2;
}

function hasBody(status: number): boolean {
  return status !== 204 && status !== 304;
}
