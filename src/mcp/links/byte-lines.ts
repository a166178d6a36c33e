// Lines out of bytes as they come: none longer than may be, and what waits for its end is on the ledger of held bytes.
import { heldBytes } from "../../base/bytes/held-bytes.ts";

const lineFeed = 10;

export interface LineTaker {
  /** False: nothing more is taken. */
  line(bytes: Buffer): boolean;
  /** It has more bytes than may be: nothing more is taken. */
  tooLong(): void;
}

export class ByteLines {
  readonly #mostBytes: number;
  readonly #taker: LineTaker;
  #pieces: Uint8Array[] = [];
  #length = 0;

  constructor(mostBytes: number, taker: LineTaker) {
    this.#mostBytes = mostBytes;
    this.#taker = taker;
  }

  /** Keeps `bytes`, which must not change. False once nothing more is taken. */
  push(bytes: Uint8Array): boolean {
    let from = 0;
    for (let end = bytes.indexOf(lineFeed); end >= 0; end = bytes.indexOf(lineFeed, from)) {
      this.#pieces.push(bytes.subarray(from, end));
      const line = Buffer.concat(this.#pieces);
      this.end();
      if (line.length > this.#mostBytes) return this.#tooLong();
      if (!this.#taker.line(line)) return false;
      from = end + 1;
    }
    const rest = bytes.subarray(from);
    if (rest.length === 0) return true;
    this.#pieces.push(rest);
    this.#length += rest.length;
    heldBytes.bounded.take("answers", rest.length);
    return this.#length <= this.#mostBytes || this.#tooLong();
  }

  /** What waits for its end is let go of. */
  end(): void {
    heldBytes.bounded.release("answers", this.#length);
    this.#pieces = [];
    this.#length = 0;
  }

  #tooLong(): false {
    this.end();
    this.#taker.tooLong();
    return false;
  }
}
