// Gathers lines of the log as bytes, in a buffer that is used again.
import type { LogFields, LogLevel } from "../base/log.ts";

/** Some hundred lines of requests. */
const defaultBytes = 64 * 1024;
/** Bytes of UTF-8 for each unit of a string, at most. */
const maxBytesPerUnit = 3;
const [comma, lineFeed] = [0x2c, 0x0a];

export class LineBuffer {
  readonly #write: (bytes: Uint8Array) => void;
  readonly #size: number;
  #bytes: Buffer | undefined;
  #length = 0;
  /** The beginning of the last line, and the time in it. */
  #begin = "";
  #time = "";
  #level: LogLevel | undefined;
  #event = "";

  /** `write` is done with the bytes, or has copied them, when it returns. */
  constructor(write: (bytes: Uint8Array) => void, size = defaultBytes) {
    this.#write = write;
    this.#size = size;
  }

  /** Text that ends with its line. */
  put(text: string): void {
    const most = maxBytesPerUnit * text.length;
    const bytes = this.#bytesFor(most);
    if (bytes) this.#length += bytes.write(text, this.#length);
    else this.#write(Buffer.from(text));
  }

  /**
   * Writes a line as JSON.stringify would write `{ time, level, event, ...fields }`; for most lines that object is not
   * made.
   */
  putJson(time: string, level: LogLevel, event: string, fields: LogFields): void {
    const begin = this.#beginOf(time, level, event);
    const text = JSON.stringify(fields);
    // Such a field takes the place of the line's own.
    const isOwn = "time" in fields || "level" in fields || "event" in fields;
    const isPlain = !isOwn && text !== "{}";
    const bytes = isPlain ? this.#bytesFor(maxBytesPerUnit * (begin.length + text.length) + 1) : undefined;
    if (!bytes) {
      this.put(`${JSON.stringify({ time, level, event, ...fields })}\n`);
      return;
    }
    const at = this.#length + bytes.write(begin, this.#length);
    const end = at + bytes.write(text, at);
    // A comma in place of the opening brace.
    bytes[at] = comma;
    bytes[end] = lineFeed;
    this.#length = end + 1;
  }

  /** Whole lines as they are. */
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

  /**
   * The beginning of a line, without its closing brace. Where lines are many it is that of the line before, of the same
   * millisecond.
   */
  #beginOf(time: string, level: LogLevel, event: string): string {
    if (time !== this.#time || level !== this.#level || event !== this.#event) {
      this.#time = time;
      this.#level = level;
      this.#event = event;
      this.#begin = JSON.stringify({ time, level, event }).slice(0, -1);
    }
    return this.#begin;
  }

  /** The buffer with room for `most` bytes, after a flush where there was none; undefined where there never is. */
  #bytesFor(most: number): Buffer | undefined {
    if (this.#length + most > this.#size) this.flush();
    if (most > this.#size) return undefined;
    this.#bytes ??= Buffer.allocUnsafeSlow(this.#size);
    return this.#bytes;
  }
}
