// Creates request ids: UUIDs of version 7 (RFC 9562, 5.7), which always increase.
import { wallMs } from "../../base/clock.ts";

const digits = Buffer.from("0123456789abcdef");
/** Positions of the changing parts in the text of the id. */
const at = { timeHigh: 4, timeLow: 13, counter: 19, variant: 23, node: 28 } as const;

export class RequestIds {
  /** The text of the previous id, which `next` overwrites. */
  readonly #text = Buffer.from("req_00000000-0000-7000-8000-000000000000");
  readonly #random = new Uint32Array(1_024);
  #nextRandom = this.#random.length;
  #lastMs = 0;
  /** A 12-bit counter after the time (RFC 9562, 6.2, method 1). */
  #counter = 0;

  /**
   * Returns the next id. If the clock goes back, or if the counter overflows within a millisecond, the time in the id
   * runs ahead of the clock.
   */
  next(nowMs: number): string {
    if (nowMs > this.#lastMs) this.#begin(nowMs);
    else if (this.#counter === 0xfff) this.#begin(this.#lastMs + 1);
    else this.#counter++;
    const first = this.#word();
    this.#put(this.#counter, at.counter, 3);
    // The two highest bits are the UUID variant.
    this.#put(0x8000 | (first & 0x3fff), at.variant, 4);
    this.#put(first >>> 16, at.node, 4);
    this.#put(this.#word(), at.node + 4, 8);
    return this.#text.toString("latin1");
  }

  /**
   * Starts a new millisecond. The counter starts at a random value in the lower half of its range, so that it can count
   * up.
   */
  #begin(ms: number): void {
    this.#lastMs = ms;
    this.#counter = this.#word() & 0x7ff;
    this.#put(Math.floor(ms / 0x1_0000), at.timeHigh, 8);
    this.#put(ms % 0x1_0000, at.timeLow, 4);
  }

  #put(value: number, start: number, length: number): void {
    let rest = value;
    for (let index = start + length - 1; index >= start; index--) {
      this.#text[index] = digits[rest & 0xf] as number;
      rest >>>= 4;
    }
  }

  #word(): number {
    if (this.#nextRandom === this.#random.length) {
      crypto.getRandomValues(this.#random);
      this.#nextRandom = 0;
    }
    return this.#random[this.#nextRandom++] as number;
  }
}

const ids = new RequestIds();

export function newRequestId(): string {
  return ids.next(wallMs());
}
