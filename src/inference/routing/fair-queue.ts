// Who is next for an engine's free place: the account with the least in flight, in order of arrival within an account.

export interface Waiter {
  readonly accountId: string;
  /** Rises with arrival; a request that comes back keeps it, and with it its turn. */
  readonly order: number;
}

interface Share<W> {
  /** Places that it holds. */
  inFlight: number;
  /** When it was last given one, counted in places given. */
  lastGiven: number;
  /** By `order`; undefined: nobody did yet. */
  waiting: W[] | undefined;
}

/**
 * Max-min fairness: whatever one account asks for, another gets its turn before that account holds one place more.
 * Between accounts that hold as many, the one that was served longer ago is next; a newcomer counts as served just
 * before the last one, so that neither a crowd of newcomers nor a long queue can starve anybody.
 */
export class FairQueue<W extends Waiter> {
  readonly #shares = new Map<string, Share<W>>();
  #waiting = 0;
  #given = 0;

  get waiting(): number {
    return this.#waiting;
  }

  /** Requests that wait, by account. */
  get waitingByAccount(): ReadonlyMap<string, number> {
    const entries = [...this.#shares].flatMap(([id, { waiting }]): [string, number][] =>
      waiting && waiting.length > 0 ? [[id, waiting.length]] : [],
    );
    return new Map(entries);
  }

  /** Accounts that wait or hold places. */
  get accounts(): number {
    return this.#shares.size;
  }

  /** The account was given places, waiting or not. */
  took(accountId: string, places: number): void {
    const share = this.#share(accountId);
    share.inFlight += places;
    share.lastGiven = ++this.#given;
  }

  gaveBack(accountId: string, places: number): void {
    const share = this.#share(accountId);
    share.inFlight -= places;
    this.#forgetIfIdle(accountId, share);
  }

  add(waiter: W): void {
    const share = this.#share(waiter.accountId);
    share.waiting ??= [];
    share.waiting.splice(indexOf(share.waiting, waiter.order), 0, waiter);
    this.#waiting++;
  }

  /** Whether it was there. */
  remove(waiter: W): boolean {
    const share = this.#shares.get(waiter.accountId);
    if (!share?.waiting) return false;
    const index = indexOf(share.waiting, waiter.order);
    if (share.waiting[index] !== waiter) return false;
    share.waiting.splice(index, 1);
    this.#waiting--;
    this.#forgetIfIdle(waiter.accountId, share);
    return true;
  }

  next(): W | undefined {
    if (this.#waiting === 0) return undefined;
    let best: Share<W> | undefined;
    for (const share of this.#shares.values()) {
      if (isWaiting(share) && (!best || isBefore(share, best))) best = share;
    }
    return best?.waiting?.[0];
  }

  /** How many are served before one that this account would add: each account at most as many as it has itself. */
  ahead(accountId: string): number {
    const own = this.#shares.get(accountId)?.waiting?.length ?? 0;
    let ahead = own;
    for (const [id, { waiting }] of this.#shares) {
      if (waiting && id !== accountId) ahead += Math.min(waiting.length, own + 1);
    }
    return ahead;
  }

  /**
   * Whose place in a full queue goes to this account: the last request of the account with the most, provided that it
   * still has more than this one afterwards or as many. Undefined: this account has its share, and is refused.
   */
  yielding(accountId: string): W | undefined {
    const own = this.#shares.get(accountId)?.waiting?.length ?? 0;
    let longest: readonly W[] = [];
    for (const { waiting } of this.#shares.values()) if (waiting && waiting.length > longest.length) longest = waiting;
    return longest.length > own + 1 ? longest.at(-1) : undefined;
  }

  #share(accountId: string): Share<W> {
    let share = this.#shares.get(accountId);
    if (!share) {
      share = { inFlight: 0, lastGiven: this.#given - 0.5, waiting: undefined };
      this.#shares.set(accountId, share);
    }
    return share;
  }

  #forgetIfIdle(accountId: string, share: Share<W>): void {
    if (share.inFlight === 0 && !isWaiting(share)) this.#shares.delete(accountId);
  }
}

function isWaiting<W>({ waiting }: Share<W>): boolean {
  return waiting !== undefined && waiting.length > 0;
}

function isBefore<W extends Waiter>(a: Share<W>, b: Share<W>): boolean {
  if (a.inFlight !== b.inFlight) return a.inFlight < b.inFlight;
  if (a.lastGiven !== b.lastGiven) return a.lastGiven < b.lastGiven;
  return (a.waiting?.[0]?.order ?? 0) < (b.waiting?.[0]?.order ?? 0);
}

/** Where `order` stands, or belongs, in a list that is sorted by it. */
function indexOf(waiting: readonly Waiter[], order: number): number {
  let low = 0;
  let high = waiting.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((waiting[middle]?.order ?? Number.POSITIVE_INFINITY) < order) low = middle + 1;
    else high = middle;
  }
  return low;
}
