// Events of leases on their way to the shared store: numbered, in order, each carried out once however often it is
// sent.
import type { RedisConnection } from "../storage/redis/redis-connection.ts";

/** Name and arguments. */
export type LimitOperation = readonly [name: string, ...args: string[]];

export interface LimitOperationsOptions {
  connection: Pick<RedisConnection, "giveUp">;
  /** Sends some of them; resolves when they are carried out. */
  apply(firstNumber: number, operations: readonly LimitOperation[]): Promise<unknown>;
}

const operationsPerCall = 64;

export class LimitOperations {
  readonly #options: LimitOperationsOptions;
  #open: LimitOperation[] = [];
  /** Number of the first of them. */
  #first = 1;
  /** Number of them that are on their way. */
  #sent = 0;
  #isRunning = false;
  #isDue = false;
  /** Answers to what was sent before the last `resume` mean nothing any more. */
  #epoch = 0;
  /** Called once the operation with this number is carried out. */
  #awaited: { number: number; told: () => void } | undefined;

  constructor(options: LimitOperationsOptions) {
    this.#options = options;
  }

  get waiting(): number {
    return this.#open.length;
  }

  /** Those that are not known to be carried out. */
  get open(): readonly LimitOperation[] {
    return this.#open;
  }

  /** Calls it once all that was added so far is carried out, or is about nothing any more; in place of what waited for that before. */
  onceTold(told: () => void): void {
    this.#awaited = { number: this.#first + this.#open.length - 1, told };
    this.#drop(0);
  }

  /** Sent with all others of this turn of the event loop; while nobody can be told, it waits. */
  add(...operation: LimitOperation): void {
    this.#open.push(operation);
    if (!this.#isRunning || this.#isDue) return;
    this.#isDue = true;
    queueMicrotask(() => {
      this.#isDue = false;
      this.flush();
    });
  }

  /** Stops sending: nothing can be told from here on. */
  pause(): void {
    this.#isRunning = false;
  }

  /** Told again from the one after `lastDone` on. */
  resume(lastDone: number): void {
    this.#epoch++;
    const done = Math.min(this.#open.length, Math.max(0, lastDone - this.#first + 1));
    this.#drop(done);
    // The server may know of more than this, where what it has is from another time.
    this.#first = Math.max(this.#first, lastDone + 1);
    this.#sent = 0;
    this.#isRunning = true;
    this.flush();
  }

  /** Forgets everything, as what it was about is gone. */
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
    awaited.told();
  }
}
