// The body of a request at the node, collected until its announced length. The node limits the memory for all bodies.

import { bufferedBytes } from "../../base/bytes/buffered-bytes.ts";
import { GatheredBytes } from "../../base/bytes/gathered-bytes.ts";
import { ProtocolError } from "./messages.ts";

/** Limits the memory for all request bodies at a node together. */
export class BodyBudget {
  readonly #maxBytes: number;
  #bufferedBytes = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  get bufferedBytes(): number {
    return this.#bufferedBytes;
  }

  take(bytes: number): boolean {
    if (this.#bufferedBytes + bytes > this.#maxBytes || !bufferedBytes.takeFree("requests", bytes)) return false;
    this.#bufferedBytes += bytes;
    return true;
  }

  release(bytes: number): void {
    this.#bufferedBytes -= bytes;
    bufferedBytes.add("requests", -bytes);
  }
}

export class IncomingBody {
  readonly #budget: BodyBudget;
  readonly #windowBytes: number;
  readonly #length: number;
  #pieces: Buffer[] = [];
  /** Small pieces, which are copied, because each may belong to a larger buffer. */
  readonly #small = new GatheredBytes();
  #bytes: Buffer | undefined;
  #receivedBytes = 0;
  /** Number of bytes that the gateway may still send. */
  #grantedBytes: number;

  /** `length` is the length that the gateway announced. */
  constructor(length: number, windowBytes: number, budget: BodyBudget) {
    this.#length = length;
    this.#windowBytes = windowBytes;
    this.#grantedBytes = windowBytes;
    this.#budget = budget;
  }

  get complete(): boolean {
    return this.#receivedBytes === this.#length;
  }

  /** Number of bytes that the gateway may still send. */
  get expectedBytes(): number {
    return Math.min(this.#grantedBytes, this.#length - this.#receivedBytes);
  }

  /**
   * Adds a piece. Returns false if the node's memory for bodies is full. Throws a ProtocolError if more bytes came than
   * were announced or granted.
   */
  push(piece: Buffer): boolean {
    if (piece.length > this.expectedBytes) throw new ProtocolError("more of a body came than was announced or granted");
    if (!this.#budget.take(piece.length)) return false;
    this.#receivedBytes += piece.length;
    this.#grantedBytes -= piece.length;
    if (this.complete && piece.length === this.#receivedBytes) {
      this.#bytes = piece;
      return true;
    }
    this.#append(piece);
    return true;
  }

  /** Returns how many more bytes to grant; 0 if too few to be worth a message. */
  grant(): number {
    const due = this.#windowBytes - this.#grantedBytes;
    if (due < this.#windowBytes / 2 || this.#receivedBytes + this.#grantedBytes >= this.#length) return 0;
    this.#grantedBytes += due;
    return due;
  }

  /** Returns the whole body. Call this once. */
  take(): Uint8Array {
    this.#endSmall();
    const pieces = this.#pieces;
    const bytes = this.#bytes;
    this.#pieces = [];
    this.#bytes = undefined;
    return bytes ?? Buffer.concat(pieces, this.#receivedBytes);
  }

  /** Frees the held bytes. */
  release(): void {
    this.#pieces = [];
    this.#small.take();
    this.#bytes = undefined;
    this.#budget.release(this.#receivedBytes);
    this.#receivedBytes = 0;
  }

  #append(piece: Buffer): void {
    if (piece.length < smallBytes) this.#small.add(piece);
    if (piece.length >= smallBytes || this.#small.length >= smallBytes) this.#endSmall();
    if (piece.length >= smallBytes) this.#pieces.push(piece);
  }

  #endSmall(): void {
    if (this.#small.length > 0) this.#pieces.push(this.#small.take());
  }
}

const smallBytes = 16 * 1024;
