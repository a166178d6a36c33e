// Lets few tasks run at a time. The accounts take turns, and an account has only so many tasks running and waiting.
import type { Cancellation } from "../base/cancellation.ts";
import { monotonicMs } from "../base/clock.ts";
import { GatewayError } from "../base/errors.ts";

export interface AccountTurnsOptions {
  maxRunning: number;
  /** The most that one account may have running and waiting. */
  maxOfAccount: number;
  /** Names the tasks in the plural, for a refusal. */
  what: string;
  /** Leaves a slot unused, after a task, for as long as the task took, up to a second. For tasks that hold the event loop. */
  rests?: boolean;
}

const maxRestMs = 1_000;

interface OfAccount {
  /** Running and waiting. */
  open: number;
  readonly waiting: Set<() => void>;
}

export class AccountTurns {
  readonly #options: AccountTurnsOptions;
  readonly #accounts = new Map<string, OfAccount>();
  /** Accounts with a task that waits, in the order of their turns. */
  readonly #turns = new Set<OfAccount>();
  #running = 0;

  constructor(options: AccountTurnsOptions) {
    this.#options = options;
  }

  /**
   * Throws `rate_limit_exceeded` where the account has as many as it may. A task whose client leaves while it waits is
   * dropped, so that the others of the account do not wait for it. `clientGone`: is cancelled when the client leaves.
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

  /** Rejects as soon as the client leaves. */
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
    // SQLite works in the thread that serves all requests: others get it between two tasks.
    await new Promise(setImmediate);
  }

  /** The place goes on to the account that had none for longest. */
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
