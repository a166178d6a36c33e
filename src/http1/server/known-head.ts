// Recognizes repeated heads by their bytes: the next head of a connection usually differs only in the length of its
// body.

/** The result of reading a head with at most one Content-Length. */
export interface ReadHead<Self> {
  /** The length of the body, or negative if it is not declared by Content-Length. */
  readonly bodyLength: number;
  /** Called when the head is stored, because it is expected again. */
  kept(): void;
  /** Returns the same head with another length. `digits` is `bodyLength` as text. */
  withLength(bodyLength: number, digits: string): Self;
}

/** The longest head that is stored, because stored heads take memory for each connection. */
const maxKnownLength = 2 * 1024;
/** The most digits by which the length may make a head longer. */
const maxDigits = 16;
/** Matches the line whose value may differ. */
const lengthLine = /\r\ncontent-length:[ \t]*(\d+)[ \t]*\r\n/di;
/** After at most this many different heads, a connection tries again to store the next one. */
const maxApart = 64;

/**
 * Heads shared between connections, because those of the same program have the same. Stored by hash, one replacing
 * another. Only connections keep them alive: a key in a head must not stay in memory longer than it is used.
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

/** Stores the head that a connection sent last, unless each one differs. */
export class HeadMemory<Read extends ReadHead<Read>> {
  readonly #shared: SharedHeads<Read>;
  readonly #headBytes: number;
  #known: KnownHead<Read> | undefined;
  /**
   * How many more heads to read before one is stored, and how many the next time. Not 0 at first, because the first
   * head may be the only one.
   */
  #untilKept = 1;
  #apart = 1;

  /** `headBytes` is the longest possible head. */
  constructor(shared: SharedHeads<Read>, headBytes: number) {
    this.#shared = shared;
    this.#headBytes = headBytes;
  }

  /** The start of the body after the head that was found last. */
  get bodyStart(): number {
    return this.#known?.bodyStart ?? 0;
  }

  /** Finds a stored head at the beginning of `bytes`. Undefined if unknown or incomplete. */
  find(bytes: Buffer): Read | undefined {
    const found = this.#known?.find(bytes);
    if (found) this.#apart = 1;
    return found;
  }

  /** Called with a head that was not found. Forgets the stored one, and stores this one unless it is too early. */
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
  /** The start of the body after the head that was found last. */
  bodyStart = 0;
  readonly #read: Read;
  /** The whole head, or the parts before and after the digits of Content-Length. */
  readonly #start: Buffer;
  readonly #rest: Buffer | undefined;
  /** The number of digits in the stored head. */
  readonly #digits: number;

  constructor(read: Read, start: string, digits: number, rest: string | undefined) {
    read.kept();
    this.#read = read;
    this.#digits = digits;
    this.#start = Buffer.from(start, "latin1");
    this.#rest = rest === undefined ? undefined : Buffer.from(rest, "latin1");
  }

  /** Reports whether the head has these parts: `start` before and `rest` after the digits. */
  is(start: string, rest: string | undefined): boolean {
    return this.#start.equals(Buffer.from(start, "latin1")) && this.#rest?.toString("latin1") === rest;
  }

  /** Finds a head like `HeadMemory.find`. */
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
