// A request's body on its way to the node: as much of it as was granted, in pieces.
import type { Bytes } from "../../base/bytes/byte-span.ts";
import { pieceBytes } from "./messages.ts";

export class OutgoingBody {
  readonly length: number;
  /** Pieces that are not sent yet. */
  readonly #pieces: Uint8Array[];
  #creditBytes: number;

  /** `creditBytes` is the number of bytes that may be sent without a grant. */
  constructor(body: Bytes, creditBytes: number) {
    this.length = body.length;
    // A body in one message is copied into one piece. A longer one counts on its sender's account only once.
    this.#pieces = (body.length <= pieceBytes ? body.solid : body).pieces;
    this.#creditBytes = creditBytes;
  }

  get complete(): boolean {
    return this.#pieces.length === 0;
  }

  grant(bytes: number): void {
    this.#creditBytes = Math.min(this.#creditBytes + bytes, Number.MAX_SAFE_INTEGER);
  }

  /** Returns the bytes that may be sent now, at most one piece, or undefined for none. */
  next(): Uint8Array | undefined {
    const [first] = this.#pieces;
    if (!first || this.#creditBytes === 0) return undefined;
    const length = Math.min(pieceBytes, this.#creditBytes, first.byteLength);
    this.#creditBytes -= length;
    if (length === first.byteLength) {
      this.#pieces.shift();
      return first;
    }
    this.#pieces[0] = first.subarray(length);
    return first.subarray(0, length);
  }
}
