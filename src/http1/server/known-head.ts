// Recognises headers that are the same as in the last message, so that they need not be parsed again. On one
// connection, headers usually differ only in Content-Length.

/** The parsed headers of a message, with at most one Content-Length. */
export interface ReadHead<Self> {
  /** The value of Content-Length, or a negative number if there is none. */
  readonly bodyLength: number;
  /** Called when the parsed headers are stored for reuse. */
  kept(): void;
  /** Returns the same headers with another Content-Length. `digits` is the number as text. */
  withLength(bodyLength: number, digits: string): Self;
}

/** Maximum length of headers that are stored. Longer headers are not, because each connection stores some. */
const maxKnownLength = 2 * 1024;
/** The most digits of a Content-Length that is recognized. */
const maxDigits = 16;
/** Matches the header line whose value may differ. */
const lengthLine = /\r\ncontent-length:[ \t]*(\d+)[ \t]*\r\n/di;
/** Maximum number of messages that a connection skips, if its headers keep changing, before it stores headers again. */
const maxApart = 64;

/**
 * Stored headers that several connections share, because clients with the same program send the same headers. The
 * references are weak: an API key in a header must not stay in memory once no connection uses it.
 */
export class SharedHeads<Read extends ReadHead<Read>> {
  readonly #known: (WeakRef<KnownHead<Read>> | undefined)[] = new Array(256).fill(undefined);

  of(text: string, read: Read): KnownHead<Read> {
    const whole = `${text}\r\n\r\n`;
    const [from, to] = lengthLine.exec(whole)?.indices?.[1] ?? [whole.length, whole.length];
    const start = whole.slice(0, from);
    const rest = from < to ? whole.slice(to) : undefined;
    const slot = Bun.hash.xxHash32(start) % this.#known.length;
    let known = this.#known[slot]?.deref();
    if (!known?.is(start, rest)) {
      known = new KnownHead(read, start, to - from, rest);
      this.#known[slot] = new WeakRef(known);
    }
    return known;
  }
}

/** Stores the last headers of a connection for reuse, unless each message has different ones. */
export class HeadMemory<Read extends ReadHead<Read>> {
  readonly #shared: SharedHeads<Read>;
  readonly #headBytes: number;
  #known: KnownHead<Read> | undefined;
  /**
   * The number of messages to skip before headers are stored. Not 0 at first, because a connection may have only one
   * message. `#apart` is the number to skip the next time.
   */
  #untilKept = 1;
  #apart = 1;

  /** `headBytes` is the maximum length of headers that are accepted. */
  constructor(shared: SharedHeads<Read>, headBytes: number) {
    this.#shared = shared;
    this.#headBytes = headBytes;
  }

  /** The offset of the body, after the headers that the last call of `find` found. */
  get bodyStart(): number {
    return this.#known?.bodyStart ?? 0;
  }

  /** Returns the stored headers if `bytes` begins with them. Undefined otherwise. */
  find(bytes: Buffer): Read | undefined {
    const found = this.#known?.find(bytes);
    if (found) this.#apart = 1;
    return found;
  }

  /**
   * Call this with parsed headers that `find` did not recognise. Stores them in place of the earlier headers. If
   * headers change often, skips some messages first.
   */
  keep(text: string, read: Read): void {
    if (this.#known) {
      this.#known = undefined;
      this.#untilKept = this.#apart;
      this.#apart = Math.min(2 * this.#apart, maxApart);
    }
    if (this.#untilKept > 0) this.#untilKept--;
    else if (text.length <= maxKnownLength && text.length + maxDigits <= this.#headBytes) {
      this.#known = this.#shared.of(text, read);
    }
  }

  clear(): void {
    this.#known = undefined;
  }
}

class KnownHead<Read extends ReadHead<Read>> {
  /** The offset of the body, after the headers that the last call of `find` found. */
  bodyStart = 0;
  readonly #read: Read;
  /**
   * The bytes before the digits of Content-Length. The bytes after the digits are in `#rest`. Without a Content-Length,
   * `#start` has all bytes.
   */
  readonly #start: Buffer;
  readonly #rest: Buffer | undefined;
  /** The number of digits in the stored Content-Length. */
  readonly #digits: number;

  constructor(read: Read, start: string, digits: number, rest: string | undefined) {
    read.kept();
    this.#read = read;
    this.#digits = digits;
    this.#start = Buffer.from(start, "latin1");
    this.#rest = rest === undefined ? undefined : Buffer.from(rest, "latin1");
  }

  /** Reports whether the stored headers have these bytes before and after the digits of Content-Length. */
  is(start: string, rest: string | undefined): boolean {
    return this.#start.equals(Buffer.from(start, "latin1")) && this.#rest?.toString("latin1") === rest;
  }

  /** Returns the headers if `bytes` begins with them. Undefined otherwise. */
  find(bytes: Buffer): Read | undefined {
    const start = this.#start;
    const rest = this.#rest;
    if (!isAt(bytes, 0, start)) return undefined;
    let at = start.length;
    if (!rest) {
      this.bodyStart = at;
      return this.#read;
    }
    let length = 0;
    const latest = Math.min(bytes.length, at + maxDigits);
    for (; at < latest; at++) {
      const digit = (bytes[at] as number) - 0x30;
      if (digit < 0 || digit > 9) break;
      length = length * 10 + digit;
    }
    if (at === start.length || !isAt(bytes, at, rest) || !Number.isSafeInteger(length)) return undefined;
    this.bodyStart = at + rest.length;
    if (length === this.#read.bodyLength && at - start.length === this.#digits) return this.#read;
    return this.#read.withLength(length, bytes.toString("latin1", start.length, at));
  }
}

function isAt(bytes: Buffer, at: number, expected: Buffer): boolean {
  const end = at + expected.length;
  return end <= bytes.length && bytes.compare(expected, 0, expected.length, at, end) === 0;
}
