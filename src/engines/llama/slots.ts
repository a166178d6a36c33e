// Limits how many requests a model processes at once. Requests rarely wait here, because the gateway's scheduler
// has the same limit.
import { GatewayError } from "../../base/errors.ts";

interface Waiter {
  width: number;
  /** Called when the request gets its slots, with their number. */
  start(taken: number): void;
  fail(error: unknown): void;
}

const maxWaitMs = 5 * 60_000;
const maxWaiting = 512;

export class Slots {
  #free: number;
  #total: number;
  #waiting: Waiter[] = [];

  constructor(total: number) {
    this.#total = total;
    this.#free = total;
  }

  get total(): number {
    return this.#total;
  }

  get busy(): number {
    return this.#total - this.#free;
  }

  get waiting(): number {
    return this.#waiting.length;
  }

  /** Changes the number of slots: a reloaded model may have another number of sequences. */
  resize(total: number): void {
    this.#free += total - this.#total;
    this.#total = total;
    this.#next();
  }

  /**
   * Waits in order of arrival for `width` slots, or for all if there are fewer. Call the returned function to
   * release them. Rejects with `service_unavailable` if the queue is full or the wait too long.
   */
  async acquire(width: number, signal: AbortSignal): Promise<() => void> {
    signal.throwIfAborted();
    let taken = Math.min(width, this.#total);
    if (this.#waiting.length === 0 && this.#free >= taken) this.#free -= taken;
    else taken = await this.#wait(width, signal);
    let held = true;
    return () => {
      if (!held) return;
      held = false;
      this.#free += taken;
      this.#next();
    };
  }

  #wait(width: number, signal: AbortSignal): Promise<number> {
    if (this.#waiting.length >= maxWaiting) {
      throw new GatewayError("service_unavailable", "Too many requests wait for this model. Retry in 5 s.", {
        retryAfterSeconds: 5,
      });
    }
    return new Promise((resolve, reject) => {
      const leave = () => {
        clearTimeout(timer);
        signal.removeEventListener("abort", onAbort);
        const index = this.#waiting.indexOf(waiter);
        if (index >= 0) this.#waiting.splice(index, 1);
      };
      const fail = (error: unknown) => {
        leave();
        reject(error);
        this.#next();
      };
      const waiter: Waiter = {
        width,
        start(taken) {
          leave();
          resolve(taken);
        },
        fail,
      };
      const onAbort = () => fail(signal.reason);
      const timer = setTimeout(() => {
        fail(
          new GatewayError("service_unavailable", "The model stayed busy for too long. Retry in 10 s.", {
            retryAfterSeconds: 10,
          }),
        );
      }, maxWaitMs);
      signal.addEventListener("abort", onAbort, { once: true });
      this.#waiting.push(waiter);
    });
  }

  #next(): void {
    for (let first = this.#waiting[0]; first; first = this.#waiting[0]) {
      const taken = Math.min(first.width, this.#total);
      if (this.#free < taken) return;
      this.#free -= taken;
      first.start(taken);
    }
  }
}
