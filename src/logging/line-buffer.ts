// Gathers lines of the log as bytes, in a buffer that is used again: as text they would be put together, and encoded, anew.

import type { LogFields, LogLevel } from "../domain/log.ts";
import { mostOfNumber, mostOfText, putJsonNumber, putJsonText } from "../domain/put-json.ts";

/** Some hundred lines of requests. */
const defaultBytes = 64 * 1024;
/** Bytes of UTF-8 for each unit of a string, at most. */
const mostBytesPerUnit = 3;
const [comma, colon, closing, lineFeed] = [0x2c, 0x3a, 0x7d, 0x0a];
const [timeName, levelName, eventName] = ['{"time":', ',"level":', ',"event":'];
/** More than a line's own names, or what is around a field and ends its line, take. */
const mostBesides = 64;

export class LineBuffer {
  readonly #write: (bytes: Uint8Array) => void;
  readonly #size: number;
  #bytes: Buffer | undefined;
  #length = 0;

  /** `write` is done with the bytes, or has copied them, when it returns. */
  constructor(write: (bytes: Uint8Array) => void, size = defaultBytes) {
    this.#write = write;
    this.#size = size;
  }

  /** Text that ends with its line. */
  put(text: string): void {
    const most = mostBytesPerUnit * text.length;
    const bytes = this.#bytesFor(most);
    if (bytes) this.#length += bytes.write(text, this.#length);
    else this.#write(Buffer.from(text));
  }

  /** As JSON.stringify writes `{ time, level, event, ...fields }`, without making that object, or text of it. */
  putJson(time: string, level: LogLevel, event: string, fields: LogFields): void {
    // Such a field would take the place of the line's own.
    const isOwn = "time" in fields || "level" in fields || "event" in fields;
    if (isOwn || !this.#putFields(time, level, event, fields)) {
      this.put(`${JSON.stringify({ time, level, event, ...fields })}\n`);
    }
  }

  flush(): void {
    const length = this.#length;
    this.#length = 0;
    if (this.#bytes && length > 0) this.#write(this.#bytes.subarray(0, length));
  }

  /** Returns whether there was room for all of the line; where there was none, nothing was put. */
  #putFields(time: string, level: LogLevel, event: string, fields: LogFields): boolean {
    this.#bytes ??= Buffer.allocUnsafeSlow(this.#size);
    const bytes = this.#bytes;
    const { length } = bytes;
    let at = this.#length;
    if (at + mostOfText(time) + mostOfText(level) + mostOfText(event) + mostBesides > length) return false;
    at = putJsonText(bytes, time, putPlain(bytes, timeName, at));
    at = putJsonText(bytes, level, putPlain(bytes, levelName, at));
    at = putJsonText(bytes, event, putPlain(bytes, eventName, at));
    for (const name in fields) {
      const value = fields[name];
      if (value === undefined) continue;
      const most = mostOfText(name) + (typeof value === "string" ? mostOfText(value) : mostOfNumber) + mostBesides;
      if (at + most > length) return false;
      bytes[at] = comma;
      at = putJsonText(bytes, name, at + 1);
      bytes[at++] = colon;
      if (typeof value === "string") at = putJsonText(bytes, value, at);
      else if (typeof value === "number") at = putJsonNumber(bytes, value, at);
      else at = putPlain(bytes, String(value), at);
    }
    bytes[at] = closing;
    bytes[at + 1] = lineFeed;
    this.#length = at + 2;
    return true;
  }

  /** With room for so many, after a flush where there was none; undefined where there never is. */
  #bytesFor(most: number): Buffer | undefined {
    if (this.#length + most > this.#size) this.flush();
    if (most > this.#size) return undefined;
    this.#bytes ??= Buffer.allocUnsafeSlow(this.#size);
    return this.#bytes;
  }
}

function putPlain(bytes: Buffer, text: string, at: number): number {
  const { length } = text;
  for (let index = 0; index < length; index++) bytes[at + index] = text.charCodeAt(index);
  return at + length;
}
