// Reads large input in slices, so that all slices of one turn of the event loop together stay within a time limit.
import { exactMs } from "../clock.ts";
import type { GatewayError } from "../errors.ts";
import { bufferedBytes, type MemoryAccount } from "./buffered-bytes.ts";

/** Receives the slices, and controls the sender. */
export interface BulkTaker {
  /** Reads a slice. May stop or clear the rest of the input. */
  takeSlice(bytes: Buffer): void;
  /** Makes the sender stop until `unhush` is called, because the input that has arrived must be read first. */
  hush(): void;
  unhush(): void;
}

/** Initial maximum length of a slice. Most events have a few hundred bytes, so they are read as a whole. */
export const sliceBytes = 64 * 1024;
/**
 * Maximum length of a slice. Longer slices take fewer system calls, and delay other work only if they are read slowly.
 */
const maxSliceBytes = 4 * sliceBytes;
/**
 * If a slice took less than `quickMs`, the next slice is twice as long. If it took more than `slowMs`, the next is half
 * as long.
 */
const [quickMs, slowMs] = [0.5, 2];
/**
 * Maximum milliseconds that all slices together may take in one turn of the event loop, because they delay all other
 * work.
 */
const maxMsOfTurn = 4;

export class BulkInput {
  readonly #taker: BulkTaker;
  #pieces: Buffer[] = [];
  /** Number of bytes of the first piece that were read. */
  #readBytes = 0;
  #bytes = 0;
  #sliceBytes = sliceBytes;
  #isHushed = false;
  #isStopped = false;
  /** The memory account that the unread bytes count on while reading is stopped. Otherwise undefined. */
  #memoryAccount: MemoryAccount | undefined;
  #inLine = false;

  constructor(taker: BulkTaker) {
    this.#taker = taker;
  }

  /** True if some bytes are still unread. */
  get waits(): boolean {
    return this.#bytes > 0;
  }

  /** True from `hush` until `unhush`. */
  get isHushed(): boolean {
    return this.#isHushed;
  }

  /**
   * Reads the bytes now, or queues them behind other inputs. Returns a refusal if reading is stopped and the memory
   * account is full.
   */
  add(bytes: Buffer): GatewayError | undefined {
    const refusal = this.#memoryAccount?.take("received", bytes.length);
    if (refusal) return refusal;
    if (!this.#memoryAccount) bufferedBytes.received(bytes.length);
    this.#pieces.push(bytes);
    this.#bytes += bytes.length;
    if (this.#mayLine()) turnShare.read(this);
    // If all bytes were read immediately, the sender need not stop.
    if (this.waits && !this.#isHushed) {
      this.#isHushed = true;
      this.#taker.hush();
    }
    return undefined;
  }

  /**
   * Stops reading until `goOn` is called. `goOn` returns before any byte is read. Meanwhile the unread bytes count on
   * `memoryAccount`. If the account is full, returns the refusal, and the caller must then call `clear`.
   */
  stop(memoryAccount: MemoryAccount): GatewayError | undefined {
    if (this.#isStopped) return undefined;
    this.#isStopped = true;
    const refusal = this.waits ? memoryAccount.take("received", this.#bytes) : undefined;
    if (refusal) return refusal;
    this.#memoryAccount = memoryAccount;
    bufferedBytes.received(-this.#bytes);
    return undefined;
  }

  goOn(): void {
    this.#isStopped = false;
    if (this.#memoryAccount) {
      this.#release(this.#bytes);
      this.#memoryAccount = undefined;
      bufferedBytes.received(this.#bytes);
    }
    if (this.#mayLine()) turnShare.readSoon(this);
  }

  /** Discards the unread bytes. */
  clear(): void {
    this.#pieces = [];
    this.#readBytes = 0;
    this.#release(this.#bytes);
    this.#bytes = 0;
  }

  /** Reads all remaining bytes now, because no more input follows. */
  finish(): void {
    while (this.readSlice());
  }

  /** Reads one slice. Returns true if unread bytes remain and reading is not stopped. */
  readSlice(): boolean {
    const [piece] = this.#pieces;
    if (!piece || this.#isStopped) return false;
    const start = this.#readBytes;
    const end = Math.min(piece.length, start + this.#sliceBytes);
    if (end === piece.length) {
      this.#pieces.shift();
      this.#readBytes = 0;
    } else {
      this.#readBytes = end;
    }
    this.#bytes -= end - start;
    this.#release(end - start);
    const last = !this.waits;
    this.#taker.takeSlice(piece.subarray(start, end));
    if (last && !this.waits && this.#isHushed) {
      this.#isHushed = false;
      this.#taker.unhush();
    }
    return this.waits && !this.#isStopped;
  }

  /** Changes the length of the next slice according to the duration of the last slice. */
  tookMs(ms: number): void {
    if (ms < quickMs) this.#sliceBytes = Math.min(maxSliceBytes, 2 * this.#sliceBytes);
    else if (ms > slowMs) this.#sliceBytes = Math.max(sliceBytes, this.#sliceBytes / 2);
  }

  /** Reports whether the input must enter the queue now, and marks it as queued. */
  #mayLine(): boolean {
    if (this.#inLine || this.#isStopped || !this.waits) return false;
    this.#inLine = true;
    return true;
  }

  /** Called when the input is removed from the queue. */
  leftLine(): void {
    this.#inLine = false;
  }

  #release(bytes: number): void {
    if (this.#memoryAccount) this.#memoryAccount.release("received", bytes);
    else bufferedBytes.received(-bytes);
  }
}

/** Reads slices of all inputs in turn, within a time limit for each tick of the event loop. */
class TurnShare {
  #line: BulkInput[] = [];
  #spentMs = 0;
  #endIsDue = false;

  read(input: BulkInput): void {
    this.readSoon(input);
    if (this.#line.length === 1) this.#spend();
  }

  readSoon(input: BulkInput): void {
    this.#line.push(input);
    this.#awaitEnd();
  }

  #spend(): void {
    while (this.#spentMs < maxMsOfTurn) {
      const input = this.#line.shift();
      if (!input) return;
      const startedMs = exactMs();
      let goesOn = false;
      try {
        goesOn = input.readSlice();
      } finally {
        const ms = exactMs() - startedMs;
        this.#spentMs += ms;
        input.tookMs(ms);
        if (goesOn) this.#line.push(input);
        else input.leftLine();
      }
    }
  }

  #awaitEnd(): void {
    if (this.#endIsDue) return;
    this.#endIsDue = true;
    // The remaining slices wait, so that input of other sockets is handled first.
    setImmediate(() => {
      this.#endIsDue = false;
      this.#spentMs = 0;
      if (this.#line.length === 0) return;
      this.#awaitEnd();
      this.#spend();
    });
  }
}

/** One share for all input, because all input uses the same event loop. */
const turnShare = new TurnShare();
