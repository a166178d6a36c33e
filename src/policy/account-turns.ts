// Lets few tasks run at a time. The accounts take turns, and an account has only so many tasks running and waiting.
import { GatewayError } from "../base/errors.ts";

export interface AccountTurnsOptions {
  maxRunning: number;
  /** The most that one account may have running and waiting. */
  maxOfAccount: number;
  /** Names the tasks in the plural, for a refusal. */
  what: string;
}

interface OfAccount {
  /** Running and waiting. */
  open: number;
  readonly waiting: (() => void)[];
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

  /** Throws `rate_limit_exceeded` where the account has as many as it may. */
  async run<Value>(accountId: string, task: () => Value | PromiseLike<Value>): Promise<Value> {
    const { maxRunning, maxOfAccount, what } = this.#options;
    const own = this.#accounts.get(accountId) ?? { open: 0, waiting: [] };
    if (own.open >= maxOfAccount) {
      const message = `${maxOfAccount} ${what} of this account are under way. Retry in 1 s, or when one of them has ended.`;
      throw new GatewayError("rate_limit_exceeded", message, { retryAfterSeconds: 1 });
    }
    own.open++;
    this.#accounts.set(accountId, own);
    if (this.#running < maxRunning) this.#running++;
    else {
      await this.#turn(own);
      // SQLite works in the thread that serves all requests: others get it between two tasks.
      await new Promise(setImmediate);
    }
    try {
      return await task();
    } finally {
      if (--own.open === 0) this.#accounts.delete(accountId);
      this.#next();
    }
  }

  #turn(own: OfAccount): Promise<void> {
    this.#turns.add(own);
    return new Promise((resolve) => own.waiting.push(resolve));
  }

  /** The place goes on to the account that had none for longest. */
  #next(): void {
    const [account] = this.#turns;
    const begin = account?.waiting.shift();
    if (!account || !begin) {
      this.#running--;
      return;
    }
    this.#turns.delete(account);
    if (account.waiting.length > 0) this.#turns.add(account);
    begin();
  }
}
