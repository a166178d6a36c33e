// Queue of operations on leases for the shared limit store. The store runs each operation once and in order, even if it
// is sent again.
import type { RedisConnection } from "../storage/redis/redis-connection.ts";

/** The name of an operation, then its arguments. */
export type LimitOperation = readonly [name: string, ...args: string[]];

export interface LimitOperationsOptions {
  connection: Pick<RedisConnection, "giveUp">;
  /** Sends operations to the store. Resolves when all have run. */
  apply(firstNumber: number, operations: readonly LimitOperation[]): Promise<unknown>;
}

const operationsPerCall = 64;

export class LimitOperations {
  readonly #options: LimitOperationsOptions;
  #open: LimitOperation[] = [];
  /** Number of the first operation that may not have run. */
  #first = 1;
  /** Number of operations that were sent and not answered. */
  #sent = 0;
  #isRunning = false;
  #isDue = false;
  /** Counts calls of `resume`, so that answers to earlier operations are ignored. */
  #epoch = 0;
  /** Called when the operation with this number has run. */
  #awaited: { number: number; callback: () => void } | undefined;

  constructor(options: LimitOperationsOptions) {
    this.#options = options;
  }

  get waiting(): number {
    return this.#open.length;
  }

  /** Returns the operations that may not have run yet. */
  get open(): readonly LimitOperation[] {
    return this.#open;
  }

  /** Calls `callback` once all current operations have run or were cleared. Replaces an earlier callback. */
  onceDone(callback: () => void): void {
    this.#awaited = { number: this.#first + this.#open.length - 1, callback };
    this.#drop(0);
  }

  /** Adds an operation. It is sent at the end of this tick, or once the server is reachable again. */
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

  /** Resumes sending. The server reports `lastDone` as the number of the last operation that has run. */
  resume(lastDone: number): void {
    this.#epoch++;
    const done = Math.min(this.#open.length, Math.max(0, lastDone - this.#first + 1));
    this.#drop(done);
    // `lastDone` may be higher than expected if the server's data comes from another time.
    this.#first = Math.max(this.#first, lastDone + 1);
    this.#sent = 0;
    this.#isRunning = true;
    this.flush();
  }

  /** Drops all operations, because the server has lost the leases that they concern. */
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
