// A request's body on its way to the node: as much of it as was granted, in pieces.
import { pieceBytes } from "./messages.ts";

export class OutgoingBody {
  readonly #bytes: Uint8Array;
  #sentBytes = 0;
  #creditBytes: number;

  /** `creditBytes`: what may be sent at once. */
  constructor(bytes: Uint8Array, creditBytes: number) {
    this.#bytes = bytes;
    this.#creditBytes = creditBytes;
  }

  get length(): number {
    return this.#bytes.byteLength;
  }

  get complete(): boolean {
    return this.#sentBytes === this.#bytes.byteLength;
  }

  grant(bytes: number): void {
    this.#creditBytes = Math.min(this.#creditBytes + bytes, Number.MAX_SAFE_INTEGER);
  }

  /** What may be sent now, at most one piece; undefined where that is nothing. */
  next(): Uint8Array | undefined {
    const length = Math.min(pieceBytes, this.#creditBytes, this.#bytes.byteLength - this.#sentBytes);
    if (length === 0) return undefined;
    const piece = this.#bytes.subarray(this.#sentBytes, this.#sentBytes + length);
    this.#sentBytes += length;
    this.#creditBytes -= length;
    return piece;
  }
}
