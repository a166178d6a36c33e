// Lets few tasks of all accounts run at a time, in the order in which they came; an account has only so many at once.
import { GatewayError } from "../base/errors.ts";
import { Turns } from "./turns.ts";

export interface AccountTurnsOptions {
  maxRunning: number;
  /** The most that one account may have running and waiting. */
  maxOfAccount: number;
  /** Names the tasks in the plural, for a refusal. */
  what: string;
}

export class AccountTurns {
  readonly #options: AccountTurnsOptions;
  readonly #turns: Turns;
  readonly #open = new Map<string, number>();

  constructor(options: AccountTurnsOptions) {
    this.#options = options;
    this.#turns = new Turns(options.maxRunning, Number.POSITIVE_INFINITY);
  }

  /** Throws `rate_limit_exceeded` where the account has as many as it may. */
  async run<Value>(accountId: string, task: () => Promise<Value>): Promise<Value> {
    const { maxOfAccount, what } = this.#options;
    const open = this.#open.get(accountId) ?? 0;
    if (open >= maxOfAccount) {
      const message = `${maxOfAccount} ${what} of this account are under way. Retry in 1 s, or when one of them has ended.`;
      throw new GatewayError("rate_limit_exceeded", message, { retryAfterSeconds: 1 });
    }
    this.#open.set(accountId, open + 1);
    try {
      return await (this.#turns.run(task) as Promise<Value>);
    } finally {
      const left = (this.#open.get(accountId) ?? 1) - 1;
      if (left > 0) this.#open.set(accountId, left);
      else this.#open.delete(accountId);
    }
  }
}
