// Recognizes repeated heads: the next head of a connection usually differs only in the length of its body, and is
// recognized by its bytes.

/** The result of reading a head with at most one Content-Length. */
export interface ReadHead<Self> {
  /** The length of the body, or negative if the head tells it otherwise. */
  readonly bodyLength: number;
  /** Called once the same head is expected repeatedly. */
  kept(): void;
  /** The same head with another length. `digits` is `bodyLength` as text. */
  withLength(bodyLength: number, digits: string): Self;
}

/** Longer heads are read each time, since known heads take memory for each connection. */
const maxKnownLength = 2 * 1024;
/** The most digits by which the length may make a head longer. */
const maxDigits = 16;
/** Finds the line whose value may differ. */
const lengthLine = /\r\ncontent-length:[ \t]*(\d+)[ \t]*\r\n/di;
/** After this many different heads, a connection tries again to recognize the next one. */
const maxApart = 64;

/**
 * Connections of the same program have the same heads. Stored by hash, one replacing another. Only connections keep
 * them alive, since a key in a head must not stay in memory longer than it is used.
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

/** The head that a connection sent last, unless each one differs. */
export class HeadMemory<Read extends ReadHead<Read>> {
  readonly #shared: SharedHeads<Read>;
  readonly #headBytes: number;
  #known: KnownHead<Read> | undefined;
  /** How many heads to read before one is kept, and how many it was before: the first may be the only one. */
  #untilKept = 1;
  #apart = 1;

  /** `headBytes`: heads are no longer. */
  constructor(shared: SharedHeads<Read>, headBytes: number) {
    this.#shared = shared;
    this.#headBytes = headBytes;
  }

  /** Start of the body after the head that was found last. */
  get bodyStart(): number {
    return this.#known?.bodyStart ?? 0;
  }

  /** Reads the head at the beginning of `bytes` if it is known. Undefined if unknown or incomplete. */
  find(bytes: Buffer): Read | undefined {
    const found = this.#known?.find(bytes);
    if (found) this.#apart = 1;
    return found;
  }

  /** Replaces the known head by another one that was read. */
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
  /** Start of the body after the head that was found last. */
  bodyStart = 0;
  readonly #read: Read;
  /** The whole head, or the parts before and after the digits of Content-Length. */
  readonly #start: Buffer;
  readonly #rest: Buffer | undefined;
  /** Number of digits in the head that was read. */
  readonly #digits: number;

  constructor(read: Read, start: string, digits: number, rest: string | undefined) {
    read.kept();
    this.#read = read;
    this.#digits = digits;
    this.#start = Buffer.from(start, "latin1");
    this.#rest = rest === undefined ? undefined : Buffer.from(rest, "latin1");
  }

  /** `start` and `rest`: around the digits. */
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
