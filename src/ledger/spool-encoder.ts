// Encodes lines of the spool into frames. A frame has a length, a checksum, and the lines of one write.
import { maxByDigits, putDigits } from "../base/bytes/put-digits.ts";
import type { UsageBegin } from "../domain/usage/usage.ts";
import { detailsText } from "../storage/tables/details-text.ts";
import { frameHeader, frameHeaderLength, type UsageProgress, wholeOf } from "./spool-format.ts";
import {
  at,
  cachedTokens,
  cacheWriteTokens,
  completionTokens,
  durationMs,
  firstTokenMs,
  nanoUsd,
  promptTokens,
  queueMs,
  reasoningTokens,
  type UsageColumns,
} from "./usage/usage-columns.ts";
import type { RequestKind } from "./usage/usage-kinds.ts";

const firstCapacity = 64 * 1024;
/** The largest buffer that is kept for reuse. */
const keptCapacity = 1024 * 1024;
/** Maximum length of a line without its texts: numbers, commas, quotes. */
const lineOverhead = 256;
/** Maximum bytes of a UTF-16 code unit in JSON, as `\uXXXX`. */
const bytesOfUnit = 6;
const [newline, quote, comma, opening, backslash, closing] = [0x0a, 0x22, 0x2c, 0x5b, 0x5c, 0x5d];
/** The range of ASCII characters that JSON does not escape, except `"` and `\`. */
const [firstPlain, lastPlain] = [0x20, 0x7e];
const [kindBegin, kindProgress, kindSettle] = [0x62, 0x70, 0x73];
const nothing = Buffer.from("null");
/** Number of values for token parts: three counts, and details. */
const partValues = 4;
const [no, yes] = [Buffer.from("false"), Buffer.from("true")];

/**
 * Writes lines byte by byte into one reused buffer. Each request has two lines, so this saves strings and garbage
 * collection that JSON.stringify would cost.
 */
export class SpoolEncoder {
  #bytes = Buffer.allocUnsafe(firstCapacity);
  #length = frameHeaderLength;

  /** Returns the number of bytes since the last `take`. */
  get length(): number {
    return this.#length - frameHeaderLength;
  }

  begin(begin: UsageBegin, { text }: RequestKind): void {
    const { requestId, accountId, keyId, appId, tags } = begin;
    const units = requestId.length + accountId.length + keyId.length + (appId?.length ?? 0);
    this.#open(kindBegin, units * bytesOfUnit + text.length);
    this.#text(requestId);
    this.#next(wholeOf(begin.at));
    this.#text(accountId);
    this.#text(keyId);
    this.#text(appId);
    this.#values(text);
    if (tags !== undefined) this.#json(JSON.stringify(tags));
    this.#close();
  }

  progress(progress: UsageProgress): void {
    this.#open(kindProgress, progress.requestId.length * bytesOfUnit);
    this.#text(progress.requestId);
    this.#values(progress.estimated ? yes : no);
    this.#next(progress.promptTokens);
    this.#next(progress.completionTokens);
    this.#next(progress.nanoUsd);
    this.#next(progress.elapsedMs);
    const { parts } = progress;
    if (parts) {
      this.#next(parts.cachedTokens);
      this.#next(parts.cacheWriteTokens);
      this.#next(parts.reasoningTokens);
      const details = detailsText(parts.details);
      if (details !== undefined) this.#json(details);
    }
    this.#close();
  }

  settle(usage: UsageColumns, row: number): void {
    const { text } = usage.kindAt(row);
    const requestId = usage.requestIds[row] ?? "";
    const accountId = usage.accountIds[row] ?? "";
    const keyId = usage.keyIds[row] ?? "";
    const appId = usage.appIds[row] ?? null;
    const units = requestId.length + accountId.length + keyId.length + (appId?.length ?? 0);
    this.#open(kindSettle, units * bytesOfUnit + text.length);
    this.#text(requestId);
    this.#next(usage.number(row, at));
    this.#text(accountId);
    this.#text(keyId);
    this.#text(appId);
    this.#values(text);
    this.#next(usage.number(row, promptTokens));
    this.#next(usage.number(row, completionTokens));
    this.#next(usage.numberOrNull(row, nanoUsd));
    this.#next(usage.number(row, durationMs));
    this.#next(usage.numberOrNull(row, firstTokenMs));
    this.#next(usage.number(row, queueMs));
    const trail = usage.trailAt(row);
    const hasParts = usage.hasParts(row);
    const tags = usage.tagsAt(row);
    if (trail !== undefined) this.#json(trail);
    else if (hasParts || tags !== undefined) this.#values(nothing);
    if (hasParts) this.#parts(usage, row, tags !== undefined);
    else if (tags !== undefined) for (let i = 0; i < partValues; i++) this.#values(nothing);
    if (tags !== undefined) this.#json(JSON.stringify(tags));
    this.#close();
  }

  #parts(usage: UsageColumns, row: number, isFollowed: boolean): void {
    this.#next(usage.number(row, cachedTokens));
    this.#next(usage.number(row, cacheWriteTokens));
    this.#next(usage.number(row, reasoningTokens));
    const details = usage.detailsAt(row);
    if (details !== undefined) this.#json(details);
    else if (isFollowed) this.#values(nothing);
  }

  /** Removes the lines that were added after the buffer had this length. */
  takeBack(length: number): void {
    this.#length = frameHeaderLength + length;
  }

  /** Returns all lines since the last call as one frame, valid until the next line. */
  take(): Uint8Array {
    const bytes = this.#bytes;
    const frame = bytes.subarray(0, this.#length);
    bytes.write(frameHeader(frame.subarray(frameHeaderLength)), 0, "latin1");
    if (bytes.length > keptCapacity) this.#bytes = Buffer.allocUnsafe(firstCapacity);
    this.#length = frameHeaderLength;
    return frame;
  }

  /** Begins a line. `textLength` is the maximum number of bytes of its texts. */
  #open(kind: number, textLength: number): void {
    this.#reserve(textLength + lineOverhead);
    const bytes = this.#bytes;
    bytes[this.#length++] = opening;
    bytes[this.#length++] = quote;
    bytes[this.#length++] = kind;
    bytes[this.#length++] = quote;
  }

  #close(): void {
    this.#bytes[this.#length++] = closing;
    this.#bytes[this.#length++] = newline;
  }

  /** Writes bytes that are already JSON values. */
  #values(text: Uint8Array): void {
    this.#bytes[this.#length++] = comma;
    this.#bytes.set(text, this.#length);
    this.#length += text.length;
  }

  /** Writes a text that is already JSON; it may be long. */
  #json(text: string): void {
    this.#reserve(text.length * bytesOfUnit + lineOverhead);
    this.#bytes[this.#length++] = comma;
    this.#length += this.#bytes.write(text, this.#length);
  }

  #text(text: string | null): void {
    if (text === null) {
      this.#values(nothing);
      return;
    }
    const bytes = this.#bytes;
    let end = this.#length;
    bytes[end++] = comma;
    bytes[end++] = quote;
    for (let i = 0; i < text.length; i++) {
      const unit = text.charCodeAt(i);
      if (unit < firstPlain || unit > lastPlain || unit === quote || unit === backslash) {
        this.#length += 1 + bytes.write(JSON.stringify(text), this.#length + 1);
        return;
      }
      bytes[end++] = unit;
    }
    bytes[end++] = quote;
    this.#length = end;
  }

  /** Writes a non-negative integer or null as the next value. */
  #next(value: number | null): void {
    if (value === null) {
      this.#values(nothing);
      return;
    }
    const bytes = this.#bytes;
    bytes[this.#length++] = comma;
    if (value > maxByDigits) {
      this.#length += bytes.write(String(value), this.#length, "latin1");
      return;
    }
    this.#length = putDigits(bytes, value, this.#length);
  }

  #reserve(length: number): void {
    if (this.#length + length <= this.#bytes.length) return;
    const larger = Buffer.allocUnsafe(Math.max(this.#bytes.length * 2, this.#length + length));
    larger.set(this.#bytes.subarray(0, this.#length));
    this.#bytes = larger;
  }
}
