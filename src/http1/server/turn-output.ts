// Gathers the bytes that connections send in one tick of the event loop, and writes them to the kernel one after
// another at its end.
import { sendAtTurnEnd } from "../../base/turn-end.ts";

/** A connection, or anything else that sends. */
export interface Sender {
  /**
   * Writes the sender's gathered bytes to the kernel, in as many calls as there were pieces. The buffer is reused
   * afterwards.
   */
  sendGathered(bytes: Buffer, start: number, end: number): void;
  /** Called when the bytes of all senders were written. */
  gatheredSent(): void;
}

/** The reused buffer of the gathered bytes. Pieces of streamed answers are composed here, at `reserve`. */
export const gatheredBytes = Buffer.allocUnsafeSlow(256 * 1024);
/** The most bytes that are gathered by copying; copying more is not worthwhile. */
const maxGathered = 16 * 1024;
/** The most bytes composed at `reserve`. */
export const maxPlaced = 64 * 1024;

/**
 * Gathers writes: each write wakes its receiver, which is more than half of the write's cost, and by the next write,
 * after the work on another chunk, the receiver sleeps again. Writes in direct succession find it awake. A single
 * request has nothing to gather and does not wait.
 */
export class TurnOutput {
  readonly #bytes: Buffer;
  /** The senders in order, each with the end of its bytes, which begin where the previous sender's end. */
  readonly #senders: (Sender | undefined)[] = [];
  readonly #ends: number[] = [];
  #count = 0;
  #used = 0;
  /**
   * The number of senders whose bytes the kernel has, the end of these bytes, and the number of senders notified of
   * that.
   */
  #sent = 0;
  #sentTo = 0;
  #notified = 0;
  /** The number of requests that are being answered. */
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
   * Reserves space in the gathered bytes for up to `length`, which is at most `maxPlaced`. The space is safe only until
   * anything is gathered or sent, so use it immediately.
   */
  reserve(length: number): number {
    if (this.#used + length > this.#bytes.length) this.send();
    return this.#used;
  }

  /**
   * Gathers `bytes` from `start` to `end`, by a copy, or in place if they are at `reserve`. If it returns false, the
   * sender must write them itself; the kernel then has the sender's bytes that were gathered earlier.
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

  /** Writes the gathered bytes. Their senders are notified at the end of the tick, as usual. */
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

  /** Writes everything and notifies the senders. Bytes that they send in response are written too. */
  readonly flush = (): void => {
    try {
      while (this.#notified < this.#count) {
        // The loop repeats, because a notified sender may send more, and must not be notified of unsent bytes.
        this.send();
        this.#notifyNext();
      }
      this.#count = 0;
      this.#sent = 0;
      this.#notified = 0;
    } catch (error) {
      // If one sender fails, the others must not wait forever.
      sendAtTurnEnd(this.flush);
      throw error;
    }
  };

  #notifyNext(): void {
    const nth = this.#notified++;
    const sender = this.#senders[nth];
    this.#senders[nth] = undefined;
    sender?.gatheredSent();
  }
}

/** One instance for all servers, because they share the event loop. */
export const turnOutput = new TurnOutput(gatheredBytes);
