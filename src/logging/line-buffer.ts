// Collects log lines as bytes, in a buffer that is reused.
import type { LogFields, LogLevel } from "../base/log.ts";

/** Enough for several hundred lines of requests. */
const defaultBytes = 64 * 1024;
/** Maximum bytes of UTF-8 for one unit of a string. */
const maxBytesPerUnit = 3;
const [comma, lineFeed] = [0x2c, 0x0a];

export class LineBuffer {
  readonly #write: (bytes: Uint8Array) => void;
  readonly #size: number;
  #bytes: Buffer | undefined;
  #length = 0;
  /** The beginning of the last line, which contains its time. */
  #begin = "";
  #time = "";
  #level: LogLevel | undefined;
  #event = "";

  /** `write` must have used or copied the bytes when it returns. */
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

  /**
   * Writes a line as JSON.stringify would write `{ time, level, event, ...fields }`, in most cases without creating
   * that object.
   */
  putJson(time: string, level: LogLevel, event: string, fields: LogFields): void {
    const begin = this.#beginOf(time, level, event);
    const text = JSON.stringify(fields);
    // A field of this name replaces the member of the line.
    const isOwn = "time" in fields || "level" in fields || "event" in fields;
    const isPlain = !isOwn && text !== "{}";
    const bytes = isPlain ? this.#bytesFor(maxBytesPerUnit * (begin.length + text.length) + 1) : undefined;
    if (!bytes) {
      this.put(`${JSON.stringify({ time, level, event, ...fields })}\n`);
      return;
    }
    const at = this.#length + bytes.write(begin, this.#length);
    const end = at + bytes.write(text, at);
    // Replaces the opening brace by a comma.
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

  /** Returns the beginning of a line without its closing brace. Lines of the same millisecond share it. */
  #beginOf(time: string, level: LogLevel, event: string): string {
    if (time !== this.#time || level !== this.#level || event !== this.#event) {
      this.#time = time;
      this.#level = level;
      this.#event = event;
      this.#begin = JSON.stringify({ time, level, event }).slice(0, -1);
    }
    return this.#begin;
  }

  /** Returns the buffer with space for `most` bytes, after a flush if necessary; undefined if they never fit. */
  #bytesFor(most: number): Buffer | undefined {
    if (this.#length + most > this.#size) this.flush();
    if (most > this.#size) return undefined;
    this.#bytes ??= Buffer.allocUnsafeSlow(this.#size);
    return this.#bytes;
  }
}
