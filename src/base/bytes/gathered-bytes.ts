// Joins bytes that arrive in any number of pieces.

/** Initial size of the buffer. */
const minBytes = 256;
const nothing = Buffer.alloc(0);

/**
 * Collects pieces in one buffer that doubles, so that each byte is copied about twice, however small the pieces are.
 */
export class GatheredBytes {
  #room: Buffer = nothing;
  #length = 0;

  get length(): number {
    return this.#length;
  }

  /** Returns all bytes so far. They do not change when more bytes are added. */
  get bytes(): Buffer {
    return this.#room.subarray(0, this.#length);
  }

  add(piece: Uint8Array): void {
    const length = this.#length + piece.byteLength;
    if (length > this.#room.length) {
      const room = Buffer.allocUnsafeSlow(Math.max(minBytes, 2 * length));
      this.#room.copy(room, 0, 0, this.#length);
      this.#room = room;
    }
    this.#room.set(piece, this.#length);
    this.#length = length;
  }

  /** Returns all bytes and starts with an empty buffer. */
  take(): Buffer {
    const { bytes } = this;
    this.#room = nothing;
    this.#length = 0;
    return bytes;
  }
}
