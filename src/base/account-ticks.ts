// Lets each account begin one piece of work per tick of the event loop, so that the requests of one account never fill
// a tick.

export class AccountTicks {
  /** The accounts that began work in this tick. Each has a set of callbacks for its work that waits for later ticks. */
  readonly #waiting = new Map<string, Set<() => void>>();

  /** Returns undefined if the account may begin work now. Otherwise returns a promise that resolves in a later tick. */
  next(accountId: string): Promise<void> | undefined {
    const waiting = this.#waiting.get(accountId);
    if (waiting) return new Promise((resolve) => waiting.add(resolve));
    this.#waiting.set(accountId, new Set());
    this.#giveNext(accountId);
    return undefined;
  }

  #giveNext(accountId: string): void {
    setImmediate(() => {
      const waiting = this.#waiting.get(accountId);
      const [begin] = waiting ?? [];
      if (begin) {
        waiting?.delete(begin);
        this.#giveNext(accountId);
        begin();
      } else {
        this.#waiting.delete(accountId);
      }
    });
  }
}

/** The shared instance, for GET requests and for requests with large bodies. */
export const accountTicks = new AccountTicks();
