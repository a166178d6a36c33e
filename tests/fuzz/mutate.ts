// Makes new inputs of old ones: bytes changed, put in, taken out and repeated, and parts of other inputs.

/** Longer inputs find nothing that these do not, and take longer. */
export const maxInputLength = 4_096;
/** At which parsers turn off. */
const telling = [
  ...'\r\n\0 \t:;,="\\{}[]09afAFe+-.\x7f\x80\xff\xc3\xed',
  "\r\n",
  "\r\n\r\n",
  "\n\n",
  "\\u",
  "0000",
  "ffff",
].map((text) => Buffer.from(text, "latin1"));

export class Mutator {
  readonly #random: () => number;

  constructor(random: () => number) {
    this.#random = random;
  }

  /** Another input; `others` are those that parts are taken from. */
  mutated(input: Buffer, others: readonly Buffer[]): Buffer {
    let bytes = input;
    for (let count = 1 + this.#below(2) * this.#below(4); count > 0; count--) bytes = this.#once(bytes, others);
    return Buffer.from(bytes.subarray(0, maxInputLength));
  }

  #once(bytes: Buffer, others: readonly Buffer[]): Buffer {
    const at = this.#below(bytes.length + 1);
    const end = Math.min(bytes.length, at + 1 + this.#below(this.#below(2) === 0 ? 4 : 64));
    switch (this.#below(8)) {
      case 0:
        return put(bytes, at, at + 1, Buffer.of(this.#below(256)));
      case 1:
        return put(bytes, at, at + 1, Buffer.of((bytes[at] ?? 0) ^ (1 << this.#below(8))));
      case 2:
        return put(bytes, at, at + 1, Buffer.of((bytes[at] ?? 0) + (this.#below(2) === 0 ? 1 : 255)));
      case 3:
        return put(bytes, at, end, Buffer.alloc(0));
      case 4:
        return put(bytes, at, at, this.#one(telling));
      case 5:
        return put(bytes, at, end, this.#one(telling));
      case 6:
        return put(bytes, at, at, repeated(bytes.subarray(at, end), 1 + this.#below(this.#below(8) === 0 ? 200 : 3)));
      default:
        return put(bytes, at, this.#below(2) === 0 ? at : end, this.#part(this.#one(others)));
    }
  }

  #part(bytes: Buffer): Buffer {
    const start = this.#below(bytes.length + 1);
    return bytes.subarray(start, start + this.#below(bytes.length - start + 1));
  }

  #one(from: readonly Buffer[]): Buffer {
    return from[this.#below(from.length)] ?? Buffer.alloc(0);
  }

  #below(limit: number): number {
    return Math.floor(this.#random() * limit);
  }
}

function put(bytes: Buffer, start: number, end: number, between: Buffer): Buffer {
  return Buffer.concat([bytes.subarray(0, start), between, bytes.subarray(end)]);
}

function repeated(bytes: Buffer, times: number): Buffer {
  return Buffer.concat(Array<Buffer>(times).fill(bytes)).subarray(0, maxInputLength);
}
