// Bytes that connections send in one turn of the event loop: handed to the kernel at its end, one behind the other.
import { sendAtTurnEnd } from "../../base/turn-end.ts";

/** A connection, or whatever else sends. */
export interface Sender {
  /** Hands what was gathered of it to the kernel, in as many calls as it came in pieces; the bytes are others afterwards. */
  sendGathered(bytes: Buffer, start: number, end: number): void;
  /** Everybody's was handed over. */
  gatheredSent(): void;
}

/**
 * The buffer of what is gathered; used again and again. Pieces of streamed answers are put together here, at `place`.
 */
export const gatheredBytes = Buffer.allocUnsafeSlow(256 * 1024);
/** Larger ones are not worth a copy. */
const maxGathered = 16 * 1024;
/** The most bytes that are put together at `place`. */
export const maxPlaced = 64 * 1024;

/**
 * Each write wakes who waits for it, which is more than half of what the write costs; by the next one, with the work for
 * another chunk between, the other side sleeps again. Writes that follow at once find it awake. With one request alone
 * there is nothing to gather, and it does not wait.
 */
export class TurnOutput {
  readonly #bytes: Buffer;
  /**
   * Senders in the order in which they came, each with the end of its bytes; those of one begin where those before it
   * end.
   */
  readonly #senders: (Sender | undefined)[] = [];
  readonly #ends: number[] = [];
  #count = 0;
  #used = 0;
  /** Those whose bytes the kernel has, and where these end; of them, those who were told. */
  #sent = 0;
  #sentTo = 0;
  #told = 0;
  /** Requests that are being answered. */
  #open = 0;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  requestBegan(): void {
    this.#open++;
  }

  requestEnded(): void {
    this.#open--;
  }

  /**
   * A place in the gathered bytes for up to `length`, which is at most `maxPlaced`. They are safe there until anything
   * is gathered or sent, so that is to be done at once.
   */
  place(length: number): number {
    if (this.#used + length > this.#bytes.length) this.send();
    return this.#used;
  }

  /**
   * Whether `bytes` from `start` to `end` were taken, by a copy or where `place` said. If not, they are the sender's to
   * write; what of it was gathered before is with the kernel then.
   */
  gather(sender: Sender, bytes: Buffer, start: number, end: number): boolean {
    const length = end - start;
    const isWorthIt = this.#open > 1 && length <= maxGathered;
    if (!isWorthIt || this.#used + length > this.#bytes.length) this.send();
    if (!isWorthIt) return false;
    if (bytes !== this.#bytes) bytes.copy(this.#bytes, this.#used, start, end);
    this.#used += length;
    const last = this.#count - 1;
    if (last >= this.#sent && this.#senders[last] === sender) {
      this.#ends[last] = this.#used;
      return true;
    }
    if (this.#count === 0) sendAtTurnEnd(this.flush);
    this.#senders[this.#count] = sender;
    this.#ends[this.#count] = this.#used;
    this.#count++;
    return true;
  }

  /** Hands over what was gathered so far; those whose it is are told at the end of the turn, as without it. */
  send(): void {
    while (this.#sent < this.#count) {
      const nth = this.#sent++;
      const start = this.#sentTo;
      this.#sentTo = this.#ends[nth] ?? start;
      this.#senders[nth]?.sendGathered(this.#bytes, start, this.#sentTo);
    }
    this.#used = 0;
    this.#sentTo = 0;
  }

  /** Hands over all of it, and tells those whose it is; what they send then goes with it. */
  readonly flush = (): void => {
    try {
      while (this.#told < this.#count) {
        // Each time: whoever is told may send something, and nobody is told of what is not sent.
        this.send();
        this.#tellNext();
      }
      this.#count = 0;
      this.#sent = 0;
      this.#told = 0;
    } catch (error) {
      // The others must not wait for ever because one failed.
      sendAtTurnEnd(this.flush);
      throw error;
    }
  };

  #tellNext(): void {
    const nth = this.#told++;
    const sender = this.#senders[nth];
    this.#senders[nth] = undefined;
    sender?.gatheredSent();
  }
}

/** One for all servers, as they share the event loop. */
export const turnOutput = new TurnOutput(gatheredBytes);
