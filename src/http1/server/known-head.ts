// Heads that came before: the next one of a connection is mostly the same but for the length of its body, and is known by its bytes.

/** The result of reading a head that has Content-Length at most once. */
export interface ReadHead<Self> {
  /** Bytes of the body; negative where that is told otherwise. */
  readonly bodyLength: number;
  /** Called once the same head is expected again and again. */
  kept(): void;
  /** The same head with another length, which is `bodyLength` as it is written in `digits`. */
  withLength(bodyLength: number, digits: string): Self;
}

/** Longer ones are read each time: what is known is memory of each connection. */
const maxKnownLength = 2 * 1024;
/** Most digits by which a head may grow by its length alone. */
const maxDigits = 16;
/** Finds the line whose value may differ. */
const lengthLine = /\r\ncontent-length:[ \t]*(\d+)[ \t]*\r\n/di;
/** A connection whose heads are all different tries again after so many to know the next one. */
const maxApart = 64;

/**
 * Connections with the same program have the same heads. By a hash of them; one takes the place of another. Held by the
 * connections alone: a key that came in a head is not to be in memory for longer than there is a use for it.
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

/** Heads of one connection: the one that came last, unless each is another. */
export class HeadMemory<Read extends ReadHead<Read>> {
  readonly #shared: SharedHeads<Read>;
  readonly #headBytes: number;
  #known: KnownHead<Read> | undefined;
  /** Heads to be read before one is kept, and how many there were before that: the first may be the only one. */
  #untilKept = 1;
  #apart = 1;

  /** `headBytes`: heads are no longer. */
  constructor(shared: SharedHeads<Read>, headBytes: number) {
    this.#shared = shared;
    this.#headBytes = headBytes;
  }

  /** Start of the body behind the head that was found last. */
  get bodyStart(): number {
    return this.#known?.bodyStart ?? 0;
  }

  /** Reads the head that `bytes` begin with, if it is known; undefined where it is not, or not complete. */
  find(bytes: Buffer): Read | undefined {
    const found = this.#known?.find(bytes);
    if (found) this.#apart = 1;
    return found;
  }

  /** Another head than the one that is known was read: it takes its place. */
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
  /** Start of the body behind the head that was found last. */
  bodyStart = 0;
  readonly #read: Read;
  /** All of it, or what stands before the digits of Content-Length, and behind them. */
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
