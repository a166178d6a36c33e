// The places of a server: how many calls it works on at a time, and who waits for one.
import type { Cancellation } from "../../base/cancellation.ts";
import { GatewayError } from "../../base/errors.ts";

/** For each place. */
const mostWaiting = 10;

export class Places {
  readonly #server: string;
  readonly #most: number;
  readonly #waiting = new Set<() => void>();
  #taken = 0;

  constructor(server: string, most: number) {
    this.#server = server;
    this.#most = most;
  }

  /** Resolves once there is a place, which `leave` gives back. Rejects where there is none in time, or the caller left. */
  async take(waitMs: number, cancellation: Cancellation): Promise<void> {
    cancellation.throwIfCancelled();
    if (this.#taken < this.#most) {
      this.#taken++;
      return;
    }
    if (this.#waiting.size >= mostWaiting * this.#most) throw this.#full();
    await this.#wait(waitMs, cancellation);
  }

  leave(): void {
    const [next] = this.#waiting;
    // Who comes next has it at once: nobody else gets in between.
    if (next) next();
    else this.#taken--;
  }

  #wait(waitMs: number, cancellation: Cancellation): Promise<void> {
    return new Promise((resolve, reject) => {
      const over = (settle: () => void) => {
        clearTimeout(timer);
        cancellation.off(cancelled);
        this.#waiting.delete(given);
        settle();
      };
      const given = () => over(resolve);
      const cancelled = () => over(() => reject(cancellation.reason));
      const timer = setTimeout(() => over(() => reject(this.#full())), waitMs);
      this.#waiting.add(given);
      cancellation.onCancel(cancelled);
    });
  }

  #full(): GatewayError {
    const message = `The server of tools "${this.#server}" works on ${this.#most} calls, the most that it may at a time. Retry in 1 s.`;
    return new GatewayError("service_unavailable", message, { retryAfterSeconds: 1, refusal: "capacity" });
  }
}
