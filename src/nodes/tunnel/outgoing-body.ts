// The body of a request that the gateway sends to a node, in pieces and only as far as the node has granted bytes.
import type { Bytes } from "../../base/bytes/byte-span.ts";
import { pieceBytes } from "./messages.ts";

export class OutgoingBody {
  readonly length: number;
  /** Pieces that were not sent yet. */
  readonly #pieces: Uint8Array[];
  #creditBytes: number;

  /** `creditBytes` is the number of bytes that may be sent without a further grant. */
  constructor(body: Bytes, creditBytes: number) {
    this.length = body.length;
    // A small body is copied into one piece. A longer one is not copied, so that its memory is counted once.
    this.#pieces = (body.length <= pieceBytes ? body.solid : body).pieces;
    this.#creditBytes = creditBytes;
  }

  get complete(): boolean {
    return this.#pieces.length === 0;
  }

  grant(bytes: number): void {
    this.#creditBytes = Math.min(this.#creditBytes + bytes, Number.MAX_SAFE_INTEGER);
  }

  /** Returns the next piece that may be sent now; undefined if none may. */
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
