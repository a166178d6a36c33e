// Makes the frames of the spool: the lines of one write, behind their length and checksum.
import type { UsageBegin, UsageRecord } from "../domain/usage.ts";
import { frameHeader, frameHeaderLength, type UsageProgress, wholeOf } from "./spool-format.ts";
import { TextCache } from "./text-cache.ts";

const firstCapacity = 64 * 1024;
/** A buffer that had to grow beyond it is not kept. */
const keptCapacity = 1024 * 1024;
/** More than a line takes beside its texts: seven numbers, their commas and the rest. */
const lineOverhead = 256;
const [newline, quote, comma, zero, opening, closing] = [0x0a, 0x22, 0x2c, 0x30, 0x5b, 0x5d];
const [kindBegin, kindProgress, kindSettle] = [0x62, 0x70, 0x73];
/** An id that is the same in JSON, as ours are. */
const plainId = /^[\w-]+$/;
const nothing = Buffer.from("null");
const [no, yes] = [Buffer.from("false"), Buffer.from("true")];

/**
 * Lines are put together byte by byte in one buffer that is used again and again: two are written for each request, and
 * strings of that many parts cost several times as much.
 */
export class SpoolEncoder {
  #bytes = Buffer.allocUnsafe(firstCapacity);
  #length = frameHeaderLength;

  /** Bytes of the lines since the last `take`. */
  get length(): number {
    return this.#length - frameHeaderLength;
  }

  begin(begin: UsageBegin): void {
    const request = requestTexts.of(begin);
    this.#open(kindBegin, begin.requestId, request.length);
    this.#next(wholeOf(begin.at));
    this.#text(request);
    this.#close();
  }

  progress(progress: UsageProgress): void {
    this.#open(kindProgress, progress.requestId, 0);
    this.#text(progress.estimated ? yes : no);
    this.#next(progress.promptTokens);
    this.#next(progress.completionTokens);
    this.#next(progress.nanoUsd);
    this.#next(progress.elapsedMs);
    this.#close();
  }

  settle(record: UsageRecord): void {
    const request = requestTexts.of(record);
    const end = endTexts.of(record);
    this.#open(kindSettle, record.requestId, request.length + end.length);
    this.#next(record.at);
    this.#text(request);
    this.#text(end);
    this.#next(record.promptTokens);
    this.#next(record.completionTokens);
    this.#next(record.nanoUsd);
    this.#next(record.durationMs);
    this.#next(record.firstTokenMs);
    this.#next(record.queueMs);
    this.#close();
  }

  /** All lines since the last call, as one frame; it holds until the next line. */
  take(): Uint8Array {
    const bytes = this.#bytes;
    const frame = bytes.subarray(0, this.#length);
    bytes.write(frameHeader(frame.subarray(frameHeaderLength)), 0, "latin1");
    if (bytes.length > keptCapacity) this.#bytes = Buffer.allocUnsafe(firstCapacity);
    this.#length = frameHeaderLength;
    return frame;
  }

  /** `textLength`: bytes of what is given to `#text` later. */
  #open(kind: number, requestId: string, textLength: number): void {
    const isPlain = plainId.test(requestId);
    const id = isPlain ? requestId : JSON.stringify(requestId);
    // At most three bytes of UTF-8 for each unit of UTF-16.
    this.#reserve(id.length * 3 + textLength + lineOverhead);
    const bytes = this.#bytes;
    let at = this.#length;
    bytes[at++] = opening;
    bytes[at++] = quote;
    bytes[at++] = kind;
    bytes[at++] = quote;
    bytes[at++] = comma;
    if (isPlain) {
      bytes[at++] = quote;
      at += bytes.write(id, at, "latin1");
      bytes[at++] = quote;
    } else {
      at += bytes.write(id, at);
    }
    this.#length = at;
  }

  #close(): void {
    this.#bytes[this.#length++] = closing;
    this.#bytes[this.#length++] = newline;
  }

  #text(text: Uint8Array): void {
    this.#bytes[this.#length++] = comma;
    this.#bytes.set(text, this.#length);
    this.#length += text.length;
  }

  /** A whole number that is not negative. */
  #next(value: number | null): void {
    if (value === null) {
      this.#text(nothing);
      return;
    }
    const bytes = this.#bytes;
    bytes[this.#length++] = comma;
    // Beyond it the bits of a division by ten would be lost.
    if (value > 0x7fffffff) {
      this.#length += bytes.write(String(value), this.#length, "latin1");
      return;
    }
    const end = this.#length + digitsOf(value);
    this.#length = end;
    let rest = value | 0;
    let at = end;
    do {
      const tenth = (rest / 10) | 0;
      bytes[--at] = zero + rest - tenth * 10;
      rest = tenth;
    } while (rest > 0);
  }

  #reserve(length: number): void {
    if (this.#length + length <= this.#bytes.length) return;
    const larger = Buffer.allocUnsafe(Math.max(this.#bytes.length * 2, this.#length + length));
    larger.set(this.#bytes.subarray(0, this.#length));
    this.#bytes = larger;
  }
}

function digitsOf(value: number): number {
  let digits = 1;
  for (let limit = 10; value >= limit; limit *= 10) digits++;
  return digits;
}

/** In the order of the lines, from the account on. */
const requestTexts = new TextCache<UsageBegin>({
  keyOf: ({ keyId }) => keyId,
  isAlike: (a, b) =>
    a.model === b.model &&
    a.stream === b.stream &&
    a.operation === b.operation &&
    a.environment === b.environment &&
    a.appId === b.appId &&
    a.accountId === b.accountId,
  textOf: ({ accountId, keyId, appId, environment, operation, model, stream }) =>
    JSON.stringify([accountId, keyId, appId, environment, operation, model, stream]).slice(1, -1),
});

/** What of the end is no number. */
const endTexts = new TextCache<UsageRecord>({
  keyOf: ({ upstream }) => upstream ?? "",
  isAlike: (a, b) =>
    a.outcome === b.outcome &&
    a.errorCode === b.errorCode &&
    a.estimated === b.estimated &&
    a.capped === b.capped &&
    a.upstream === b.upstream,
  textOf: ({ outcome, errorCode, estimated, capped, upstream }) =>
    JSON.stringify([outcome, errorCode, estimated, capped, upstream]).slice(1, -1),
});
