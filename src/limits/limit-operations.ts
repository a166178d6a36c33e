// Queue of numbered lease events for the shared store. Each event runs once, in order, however often it is sent.
import type { RedisConnection } from "../storage/redis/redis-connection.ts";

/** The name of an operation, then its arguments. */
export type LimitOperation = readonly [name: string, ...args: string[]];

export interface LimitOperationsOptions {
  connection: Pick<RedisConnection, "giveUp">;
  /** Sends operations. Resolves when all of them have run. */
  apply(firstNumber: number, operations: readonly LimitOperation[]): Promise<unknown>;
}

const operationsPerCall = 64;

export class LimitOperations {
  readonly #options: LimitOperationsOptions;
  #open: LimitOperation[] = [];
  /** Number of the first pending operation. */
  #first = 1;
  /** Number of operations in transit. */
  #sent = 0;
  #isRunning = false;
  #isDue = false;
  /** Number of `resume` calls. Answers to operations from before the last call are ignored. */
  #epoch = 0;
  /** Called when the operation with this number has run. */
  #awaited: { number: number; callback: () => void } | undefined;

  constructor(options: LimitOperationsOptions) {
    this.#options = options;
  }

  get waiting(): number {
    return this.#open.length;
  }

  /** Returns the operations that may not have run. */
  get open(): readonly LimitOperation[] {
    return this.#open;
  }

  /** Calls `callback` once when all current operations have run or are obsolete. Replaces an earlier callback. */
  onceDone(callback: () => void): void {
    this.#awaited = { number: this.#first + this.#open.length - 1, callback };
    this.#drop(0);
  }

  /**
   * Sends the operation with all others of this turn of the event loop, or keeps the operation while the server is
   * away.
   */
  add(...operation: LimitOperation): void {
    this.#open.push(operation);
    if (!this.#isRunning || this.#isDue) return;
    this.#isDue = true;
    queueMicrotask(() => {
      this.#isDue = false;
      this.flush();
    });
  }

  /** Stops sending until `resume`. */
  pause(): void {
    this.#isRunning = false;
  }

  /** Resumes sending, from the operation after `lastDone`. */
  resume(lastDone: number): void {
    this.#epoch++;
    const done = Math.min(this.#open.length, Math.max(0, lastDone - this.#first + 1));
    this.#drop(done);
    // If the server's data is from another time, the server may report a higher number.
    this.#first = Math.max(this.#first, lastDone + 1);
    this.#sent = 0;
    this.#isRunning = true;
    this.flush();
  }

  /** Drops all operations, because the leases that they concern no longer exist. */
  clear(): void {
    this.#epoch++;
    this.#drop(this.#open.length);
    this.#sent = 0;
  }

  flush(): void {
    while (this.#isRunning && this.#sent < this.#open.length) {
      const batch = this.#open.slice(this.#sent, this.#sent + operationsPerCall);
      const epoch = this.#epoch;
      const number = this.#first + this.#sent;
      this.#sent += batch.length;
      this.#options.apply(number, batch).then(
        () => {
          if (epoch !== this.#epoch) return;
          this.#drop(batch.length);
          this.#sent -= batch.length;
        },
        (error: unknown) => {
          if (epoch === this.#epoch && this.#isRunning) this.#options.connection.giveUp(String(error));
        },
      );
    }
  }

  #drop(count: number): void {
    this.#open.splice(0, count);
    this.#first += count;
    const awaited = this.#awaited;
    if (awaited === undefined || this.#first <= awaited.number) return;
    this.#awaited = undefined;
    awaited.callback();
  }
}
