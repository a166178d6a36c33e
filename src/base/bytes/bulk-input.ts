// Reads large input in slices, so that one turn of the event loop does not take longer than all slices together may
// take.
import { exactMs } from "../clock.ts";
import type { GatewayError } from "../errors.ts";
import { bufferedBytes, type MemoryAccount } from "./buffered-bytes.ts";

/** Receives and reads the input. */
export interface BulkTaker {
  /** Reads a slice. May stop the rest, or clear it. */
  takeSlice(bytes: Buffer): void;
  /** Asks the sender to stop until `unhush`, since the input that is here is read first. */
  hush(): void;
  unhush(): void;
}

/**
 * Input up to this length is read at once, since events are usually some hundred bytes. The first slice has this
 * length.
 */
export const sliceBytes = 64 * 1024;
/** Longer slices take fewer system calls, and while they are read quickly they do not delay others. */
const maxSliceBytes = 4 * sliceBytes;
/**
 * After a slice that took less time than the first number, the next is twice as long; after one that took longer than
 * the second, half as long.
 */
const [quickMs, slowMs] = [0.5, 2];
/** The most that all slices together may take of one turn, which delays all other work. */
const maxMsOfTurn = 4;

export class BulkInput {
  readonly #taker: BulkTaker;
  #pieces: Buffer[] = [];
  /** How many bytes of the first piece were read. */
  #readBytes = 0;
  #bytes = 0;
  #sliceBytes = sliceBytes;
  #isHushed = false;
  #isStopped = false;
  /** The account of the bytes that wait, or undefined while they are read. */
  #memoryAccount: MemoryAccount | undefined;
  #inLine = false;

  constructor(taker: BulkTaker) {
    this.#taker = taker;
  }

  /** Whether unread bytes are here. */
  get waits(): boolean {
    return this.#bytes > 0;
  }

  /** Whether the taker was told to hush and will be told to go on. */
  get isHushed(): boolean {
    return this.#isHushed;
  }

  /** Reads the bytes now, or after those of others. While it is stopped it may return a refusal, as `stop` does. */
  add(bytes: Buffer): GatewayError | undefined {
    const refusal = this.#memoryAccount?.take("received", bytes.length);
    if (refusal) return refusal;
    if (!this.#memoryAccount) bufferedBytes.received(bytes.length);
    this.#pieces.push(bytes);
    this.#bytes += bytes.length;
    if (this.#mayLine()) turnShare.read(this);
    // Bytes that are read completely now kept nobody waiting.
    if (this.waits && !this.#isHushed) {
      this.#isHushed = true;
      this.#taker.hush();
    }
    return undefined;
  }

  /**
   * Reads nothing until `goOn`, which returns before it reads. Bytes that wait are counted on `memoryAccount`. If it
   * may hold no more, this returns the refusal, and the caller must clear the input.
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

  /** Reads everything, since no more input follows. */
  finish(): void {
    while (this.readSlice());
  }

  /** Reads one slice. Returns whether there is more to read now. */
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

  /** Tells how long the last slice took. */
  tookMs(ms: number): void {
    if (ms < quickMs) this.#sliceBytes = Math.min(maxSliceBytes, 2 * this.#sliceBytes);
    else if (ms > slowMs) this.#sliceBytes = Math.max(sliceBytes, this.#sliceBytes / 2);
  }

  /** Whether the input belongs in the queue and was not in it. */
  #mayLine(): boolean {
    if (this.#inLine || this.#isStopped || !this.waits) return false;
    this.#inLine = true;
    return true;
  }

  /** Called by the caller of `readSlice` once the input leaves the queue. */
  leftLine(): void {
    this.#inLine = false;
  }

  #release(bytes: number): void {
    if (this.#memoryAccount) this.#memoryAccount.release("received", bytes);
    else bufferedBytes.received(-bytes);
  }
}

/** The part of each turn in which slices are read. Inputs with unread bytes take turns. */
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
    // The input of other sockets comes before the rest.
    setImmediate(() => {
      this.#endIsDue = false;
      this.#spentMs = 0;
      if (this.#line.length === 0) return;
      this.#awaitEnd();
      this.#spend();
    });
  }
}

/** One for all input, as it shares the event loop. */
const turnShare = new TurnShare();
