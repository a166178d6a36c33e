// Joins byte text (one character for each byte) that arrives in pieces, however long it becomes.
import { freeBytes } from "./free-bytes.ts";

/**
 * Maximum length of the pieces that are held as strings. Longer text is copied into a buffer, which can be freed
 * immediately. A string would stay in memory until the next garbage collection.
 */
const maxAsText = 256 * 1024;

export class LongText {
  length: number;
  #pieces: string[];
  /** The buffer for earlier pieces, after the pieces became too long for strings. */
  #room: Buffer | undefined;
  #roomUsed = 0;
  #piecesLength: number;

  constructor(first: string) {
    this.#pieces = [first];
    this.length = this.#piecesLength = first.length;
  }

  get endsInCr(): boolean {
    const last = this.#pieces.at(-1);
    return last === undefined ? this.#room?.[this.#roomUsed - 1] === 0x0d : last.endsWith("\r");
  }

  /** Adds `piece`, which has at least one byte. */
  add(piece: string): void {
    this.#pieces.push(piece);
    this.length += piece.length;
    this.#piecesLength += piece.length;
    if (this.#piecesLength > maxAsText) this.#copyPieces();
  }

  /** Returns the whole text and clears the collector. */
  take(): string {
    let text = this.#pieces.length === 1 && !this.#room ? (this.#pieces[0] ?? "") : this.#pieces.join("");
    if (this.#room) text = this.#room.toString("latin1", 0, this.#roomUsed) + text;
    this.drop();
    return text;
  }

  drop(): void {
    if (this.#room) freeBytes(this.#room);
    this.#room = undefined;
    this.#pieces = [];
    this.length = this.#roomUsed = this.#piecesLength = 0;
  }

  #copyPieces(): void {
    const used = this.#roomUsed;
    if (!this.#room || this.length > this.#room.length) {
      const room = Buffer.allocUnsafeSlow(2 * this.length);
      if (this.#room) {
        this.#room.copy(room, 0, 0, used);
        freeBytes(this.#room);
      }
      this.#room = room;
    }
    for (const piece of this.#pieces) this.#roomUsed += this.#room.write(piece, this.#roomUsed, "latin1");
    this.#pieces = [];
    this.#piecesLength = 0;
  }
}
