// Limits how many tasks run at the same time. Accounts take turns, and each account has a maximum of running and
// waiting tasks.
import type { Cancellation } from "../base/cancellation.ts";
import { monotonicMs } from "../base/clock.ts";
import { GatewayError } from "../base/errors.ts";

export interface AccountTurnsOptions {
  maxRunning: number;
  /** Maximum running and waiting tasks of one account. */
  maxOfAccount: number;
  /** Name of the tasks in the plural, for the error message of a refusal. */
  what: string;
  /**
   * If true, a slot stays unused after a task for as long as the task took, up to a second. Set it for tasks that block
   * the event loop.
   */
  rests?: boolean;
}

const maxRestMs = 1_000;

interface OfAccount {
  /** Number of running and waiting tasks. */
  open: number;
  readonly waiting: Set<() => void>;
}

export class AccountTurns {
  readonly #options: AccountTurnsOptions;
  readonly #accounts = new Map<string, OfAccount>();
  /** Accounts with a waiting task, in the order of their turns. */
  readonly #turns = new Set<OfAccount>();
  #running = 0;

  constructor(options: AccountTurnsOptions) {
    this.#options = options;
  }

  /**
   * Runs a task when the account has its turn. Throws `rate_limit_exceeded` if the account has its maximum of tasks.
   * `clientGone` is cancelled when the client disconnects. A waiting task is then dropped, so that the account's other
   * tasks do not wait for it.
   */
  async run<Value>(
    accountId: string,
    task: () => Value | PromiseLike<Value>,
    clientGone?: Pick<Cancellation, "onCancel" | "off">,
  ): Promise<Value> {
    const { maxRunning, maxOfAccount, what } = this.#options;
    const own = this.#accounts.get(accountId) ?? { open: 0, waiting: new Set() };
    if (own.open >= maxOfAccount) {
      const message = `${maxOfAccount} ${what} of this account are under way. Retry in 1 s, or when one of them has ended.`;
      throw new GatewayError("rate_limit_exceeded", message, { retryAfterSeconds: 1 });
    }
    own.open++;
    this.#accounts.set(accountId, own);
    try {
      if (this.#running < maxRunning) this.#running++;
      else await this.#turn(own, clientGone);
      const began = monotonicMs();
      try {
        return await task();
      } finally {
        if (this.#options.rests) setTimeout(() => this.#next(), Math.min(monotonicMs() - began, maxRestMs));
        else this.#next();
      }
    } finally {
      if (--own.open === 0) this.#accounts.delete(accountId);
    }
  }

  /** Waits for the account's turn. Rejects as soon as the client leaves. */
  async #turn(own: OfAccount, clientGone: Pick<Cancellation, "onCancel" | "off"> | undefined): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const leave = () => {
      own.waiting.delete(resolve);
      if (own.waiting.size === 0) this.#turns.delete(own);
      reject(new GatewayError("service_unavailable", "The client left before its turn."));
    };
    own.waiting.add(resolve);
    this.#turns.add(own);
    clientGone?.onCancel(leave);
    try {
      await promise;
    } finally {
      clientGone?.off(leave);
    }
    // SQLite runs in the thread that serves requests, so other requests run between two tasks.
    await new Promise(setImmediate);
  }

  /** The slot goes to the account that has waited longest for one. */
  #next(): void {
    const [account] = this.#turns;
    const [begin] = account?.waiting ?? [];
    if (!account || !begin) {
      this.#running--;
      return;
    }
    account.waiting.delete(begin);
    this.#turns.delete(account);
    if (account.waiting.size > 0) this.#turns.add(account);
    begin();
  }
}
