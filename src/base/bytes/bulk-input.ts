// What comes in one go and is long to read: read a slice at a time, no longer in a turn of the event loop than all may take together.
import { exactMs } from "../clock.ts";
import type { GatewayError } from "../errors.ts";
import { bufferedBytes, type MemoryAccount } from "./buffered-bytes.ts";

/** Whoever receives and reads. */
export interface BulkTaker {
  /** Reads it. May stop the rest, or clear it. */
  takeSlice(bytes: Buffer): void;
  /** Asks the sender to stop until `unhush`: what is here is read first. */
  hush(): void;
  unhush(): void;
}

/** Input up to this length is read at once: events are usually some hundred bytes. The first slice is as long. */
export const sliceBytes = 64 * 1024;
/** Longer ones are handed on at fewer calls of the kernel, and are as good to others while they are quickly read. */
const maxSliceBytes = 4 * sliceBytes;
/** A slice that took less may be followed by one of twice its length, one that took longer by one of half of it. */
const [quickMs, slowMs] = [0.5, 2];
/** The most that all inputs together may take of one turn: everybody else waits for as long. */
const maxMsOfTurn = 4;

export class BulkInput {
  readonly #taker: BulkTaker;
  #pieces: Buffer[] = [];
  /** How much of the first piece was read. */
  #readBytes = 0;
  #bytes = 0;
  #sliceBytes = sliceBytes;
  #isHushed = false;
  #isStopped = false;
  /** Has what waits on its account: undefined while that is read. */
  #memoryAccount: MemoryAccount | undefined;
  #inLine = false;

  constructor(taker: BulkTaker) {
    this.#taker = taker;
  }

  /** Whether something is here that was not read. */
  get waits(): boolean {
    return this.#bytes > 0;
  }

  /** Whether its taker was told to hush, and will be told otherwise. */
  get isHushed(): boolean {
    return this.#isHushed;
  }

  /** Reads it now, or behind what others have. While it is stopped it may give a refusal, as `stop` does. */
  add(bytes: Buffer): GatewayError | undefined {
    const refusal = this.#memoryAccount?.take("received", bytes.length);
    if (refusal) return refusal;
    if (!this.#memoryAccount) bufferedBytes.received(bytes.length);
    this.#pieces.push(bytes);
    this.#bytes += bytes.length;
    if (this.#mayLine()) turnShare.read(this);
    // What was all read now kept nobody waiting.
    if (this.waits && !this.#isHushed) {
      this.#isHushed = true;
      this.#taker.hush();
    }
    return undefined;
  }

  /**
   * Reads nothing until `goOn`, which reads nothing before it returns. What waits meanwhile is on the account of `memoryAccount`;
   * where that may hold no more this gives the refusal, and all of it is to be cleared.
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

  /** Throws away what was not read. */
  clear(): void {
    this.#pieces = [];
    this.#readBytes = 0;
    this.#release(this.#bytes);
    this.#bytes = 0;
  }

  /** Reads all of it, as nothing follows. */
  finish(): void {
    while (this.readSlice());
  }

  /** Whether there is more to read now. */
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

  /** The last slice took so long to read. */
  tookMs(ms: number): void {
    if (ms < quickMs) this.#sliceBytes = Math.min(maxSliceBytes, 2 * this.#sliceBytes);
    else if (ms > slowMs) this.#sliceBytes = Math.max(sliceBytes, this.#sliceBytes / 2);
  }

  /** Whether it belongs into the line, and was not there. */
  #mayLine(): boolean {
    if (this.#inLine || this.#isStopped || !this.waits) return false;
    this.#inLine = true;
    return true;
  }

  /** Called by whoever calls `readSlice`. */
  leftLine(): void {
    this.#inLine = false;
  }

  #release(bytes: number): void {
    if (this.#memoryAccount) this.#memoryAccount.release("received", bytes);
    else bufferedBytes.received(-bytes);
  }
}

/** The part of each turn in which slices are read, those who wait for theirs by turns. */
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
    // What other sockets have comes before the rest.
    setImmediate(() => {
      this.#endIsDue = false;
      this.#spentMs = 0;
      if (this.#line.length === 0) return;
      this.#awaitEnd();
      this.#spend();
    });
  }
}

/** One for all that is received, as it shares the event loop. */
const turnShare = new TurnShare();
