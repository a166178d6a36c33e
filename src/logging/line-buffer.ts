// Collects log lines as bytes, in a buffer that is reused.
import type { LogFields, LogLevel } from "../base/log.ts";

/** Size of the buffer, enough for several hundred request lines. */
const defaultBytes = 64 * 1024;
/** Maximum UTF-8 bytes of a UTF-16 code unit. */
const maxBytesPerUnit = 3;
const [comma, lineFeed] = [0x2c, 0x0a];

export class LineBuffer {
  readonly #write: (bytes: Uint8Array) => void;
  readonly #size: number;
  #bytes: Buffer | undefined;
  #length = 0;
  /** The last line's beginning with time, level and event. */
  #begin = "";
  #time = "";
  #level: LogLevel | undefined;
  #event = "";

  /** `write` must not keep the bytes after it returns, because the buffer is reused. */
  constructor(write: (bytes: Uint8Array) => void, size = defaultBytes) {
    this.#write = write;
    this.#size = size;
  }

  /** Adds text that ends with a line end. */
  put(text: string): void {
    const most = maxBytesPerUnit * text.length;
    const bytes = this.#bytesFor(most);
    if (bytes) this.#length += bytes.write(text, this.#length);
    else this.#write(Buffer.from(text));
  }

  /** Writes `{ time, level, event, ...fields }` as a JSON line, usually without creating that object. */
  putJson(time: string, level: LogLevel, event: string, fields: LogFields): void {
    const begin = this.#beginOf(time, level, event);
    const text = JSON.stringify(fields);
    // A field with one of these names replaces the line's own member.
    const isOwn = "time" in fields || "level" in fields || "event" in fields;
    const isPlain = !isOwn && text !== "{}";
    const bytes = isPlain ? this.#bytesFor(maxBytesPerUnit * (begin.length + text.length) + 1) : undefined;
    if (!bytes) {
      this.put(`${JSON.stringify({ time, level, event, ...fields })}\n`);
      return;
    }
    const at = this.#length + bytes.write(begin, this.#length);
    const end = at + bytes.write(text, at);
    // The comma replaces the opening brace of the fields.
    bytes[at] = comma;
    bytes[end] = lineFeed;
    this.#length = end + 1;
  }

  /** Writes complete lines unchanged. */
  pass(lines: Uint8Array): void {
    const bytes = this.#bytesFor(lines.length);
    if (!bytes) {
      this.#write(lines);
      return;
    }
    bytes.set(lines, this.#length);
    this.#length += lines.length;
  }

  flush(): void {
    const length = this.#length;
    this.#length = 0;
    if (this.#bytes && length > 0) this.#write(this.#bytes.subarray(0, length));
  }

  /** Returns the JSON of time, level and event without the closing brace. Cached for lines of the same millisecond. */
  #beginOf(time: string, level: LogLevel, event: string): string {
    if (time !== this.#time || level !== this.#level || event !== this.#event) {
      this.#time = time;
      this.#level = level;
      this.#event = event;
      this.#begin = JSON.stringify({ time, level, event }).slice(0, -1);
    }
    return this.#begin;
  }

  /** Returns the buffer with space for `most` bytes, after a flush if needed; undefined if the buffer is too small. */
  #bytesFor(most: number): Buffer | undefined {
    if (this.#length + most > this.#size) this.flush();
    if (most > this.#size) return undefined;
    this.#bytes ??= Buffer.allocUnsafeSlow(this.#size);
    return this.#bytes;
  }
}
