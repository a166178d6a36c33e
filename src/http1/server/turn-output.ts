// Collects the bytes that connections send during one tick of the event loop, and writes them at the end of the tick.
import { sendAtTurnEnd } from "../../base/turn-end.ts";

/** A connection whose bytes are collected. */
export interface Sender {
  /** Writes the collected bytes to the kernel. The buffer is reused after this call. */
  sendGathered(bytes: Buffer, start: number, end: number): void;
  /** Called when this sender's bytes were written. */
  gatheredSent(): void;
}

/**
 * The reused buffer for collected bytes. Streamed answers call `reserve`, and then write their pieces directly into it.
 */
export const gatheredBytes = Buffer.allocUnsafeSlow(256 * 1024);
/** Maximum bytes of a piece that is collected. A longer piece is not copied, but written immediately. */
const maxGathered = 16 * 1024;
/** Maximum bytes that a sender can reserve at once. */
export const maxPlaced = 64 * 1024;

/**
 * Writes the bytes of several connections directly one after another. A single write wakes the receiving process, which
 * costs more than half of the write. If writes follow each other directly, the receiver is still awake. If only one
 * request is open, nothing is delayed.
 */
export class TurnOutput {
  readonly #bytes: Buffer;
  /** The senders in order. `#ends` has the offset at which each sender's bytes end in the buffer. */
  readonly #senders: (Sender | undefined)[] = [];
  readonly #ends: number[] = [];
  #count = 0;
  #used = 0;
  /**
   * The number of senders whose bytes are written. `#sentTo` is the end of these bytes, and `#notified` is the number
   * of senders that were notified.
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
   * Returns an offset in the buffer with room for `length` bytes (at most `maxPlaced`). The room must be used before
   * anything else is collected or sent.
   */
  reserve(length: number): number {
    if (this.#used + length > this.#bytes.length) this.send();
    return this.#used;
  }

  /**
   * Collects `bytes` from `start` to `end`. Bytes that are already at the reserved offset are not copied. Returns false
   * if nothing was collected. The sender must then write the bytes itself.
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

  /** Writes the collected bytes now. The senders are notified only at the end of the tick. */
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

  /** Writes the collected bytes and notifies the senders. Writes the bytes that they send in response too. */
  readonly flush = (): void => {
    try {
      while (this.#notified < this.#count) {
        // A notified sender may send more. So all bytes are written before the next sender is notified.
        this.send();
        this.#notifyNext();
      }
      this.#count = 0;
      this.#sent = 0;
      this.#notified = 0;
    } catch (error) {
      // If a sender throws, the remaining senders are still notified.
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

/** The instance that all servers of this process share, because they share the event loop. */
export const turnOutput = new TurnOutput(gatheredBytes);
