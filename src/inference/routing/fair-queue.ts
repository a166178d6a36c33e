// Decides which request gets the next free slot of an engine: first by the shares of priorities, then by the slots that
// accounts, people and keys hold.
import { type Priority, priorities, priorityShares } from "../../domain/models/policies/priority.ts";

/** A request that holds a slot or waits for a slot. */
export interface Sharer {
  readonly priority: Priority;
  readonly accountId: string;
  /** Id of the person or key, which is unique over all accounts. */
  readonly partyId: string;
}

export interface Waiter extends Sharer {
  /** Arrival number, which increases with each request. A request that has to wait again keeps its number. */
  readonly order: number;
}

/** The figures by which accounts are compared. People and keys of one account are compared in the same way. */
interface Share {
  /** Number of slots held. */
  inFlight: number;
  /** Number of the last assignment of slots to this account, person or key. */
  lastGiven: number;
  /** The lowest `order` of a request since waiting began. Infinite if no request waits. */
  firstOrder: number;
  /** Number of waiting requests. */
  readonly waiting: number;
}

class Party<W> implements Share {
  readonly id: string;
  readonly account: Account<W>;
  inFlight = 0;
  lastGiven: number;
  firstOrder = Number.POSITIVE_INFINITY;
  /** Waiting requests, sorted by `order`. Undefined if there have never been any. */
  line: W[] | undefined;

  constructor(id: string, account: Account<W>, lastGiven: number) {
    this.id = id;
    this.account = account;
    this.lastGiven = lastGiven;
  }

  get waiting(): number {
    return this.line === undefined ? 0 : this.line.length;
  }
}

class Account<W> implements Share {
  readonly id: string;
  inFlight = 0;
  lastGiven: number;
  firstOrder = Number.POSITIVE_INFINITY;
  waiting = 0;
  /** People and keys of the account that have waiting requests. Undefined if there have never been any. */
  lined: Set<Party<W>> | undefined;

  constructor(id: string, lastGiven: number) {
    this.id = id;
    this.lastGiven = lastGiven;
  }
}

/** The queue of one priority, with its accounts and parties. A party is a person or key. */
class Rank<W> {
  readonly priority: Priority;
  readonly share: number;
  readonly accounts = new Map<string, Account<W>>();
  readonly parties = new Map<string, Party<W>>();
  /** Accounts that have waiting requests. */
  readonly lined = new Set<Account<W>>();
  /** Number of parties without waiting requests and without slots. Some are kept in memory for later requests. */
  idle = 0;
  inFlight = 0;
  waiting = 0;
  /** Number of slots that were assigned while any request waited, divided by the share of this priority. */
  used = 0;

  constructor(priority: Priority) {
    this.priority = priority;
    this.share = priorityShares[priority];
  }

  /**
   * Returns what `used` will be after `turns` more slots were assigned. If no request of this priority waits, counting
   * starts at `now` or later.
   */
  usedAfter(turns: number, now: number): number {
    return (this.waiting > 0 ? this.used : Math.max(this.used, now)) + turns / this.share;
  }
}

/**
 * Shares slots fairly. Priorities get slots in proportion to their shares, so that even the lowest is served. Within a
 * priority, the account that holds the fewest slots is next. Within an account, the person or key that holds the fewest
 * is next. Among equals, the least recently served is next. A newcomer counts as served directly before the last one,
 * so that neither many newcomers nor a long queue can starve others.
 */
export class FairQueue<W extends Waiter> {
  /** The highest priority comes first, so that it is served first if several have the same `used`. */
  readonly #ranks: readonly Rank<W>[] = [...priorities].reverse().map((priority) => new Rank<W>(priority));
  #waiting = 0;
  #given = 0;
  /**
   * The highest `used` of any priority that was served. A priority that begins to wait starts here. Otherwise it could
   * claim slots for the time before.
   */
  #now = 0;
  /** Number of the current round. When no request waits, the round ends, and all debts of priorities end with it. */
  #round = 1;

  get waiting(): number {
    return this.#waiting;
  }

  waitingOf(priority: Priority): number {
    return this.#rank(priority).waiting;
  }

  /** Returns the number of slots that requests of this priority hold. */
  inFlightOf(priority: Priority): number {
    return this.#rank(priority).inFlight;
  }

  /** Number of waiting requests by account. */
  get waitingByAccount(): ReadonlyMap<string, number> {
    const counts = new Map<string, number>();
    for (const { lined } of this.#ranks)
      for (const { id, waiting } of lined) counts.set(id, (counts.get(id) ?? 0) + waiting);
    return counts;
  }

  /** Number of people and keys that wait or hold slots. A person who uses two priorities is counted twice. */
  get busy(): number {
    return this.#ranks.reduce((sum, { parties, idle }) => sum + parties.size - idle, 0);
  }

  /** Number of people and keys in memory, including idle ones. A person who uses two priorities is counted twice. */
  get known(): number {
    return this.#ranks.reduce((sum, { parties }) => sum + parties.size, 0);
  }

  /**
   * Records that slots were assigned. Returns the number of the round in which they count, or 0 if no request waits.
   */
  took(sharer: Sharer, slots: number): number {
    const rank = this.#rank(sharer.priority);
    const party = this.#party(rank, sharer);
    const given = ++this.#given;
    party.inFlight += slots;
    party.lastGiven = given;
    party.account.inFlight += slots;
    party.account.lastGiven = given;
    rank.inFlight += slots;
    if (this.#waiting === 0) return 0;
    const before = rank.usedAfter(0, this.#now);
    this.#now = Math.max(this.#now, before);
    rank.used = before + slots / rank.share;
    return this.#round;
  }

  /**
   * Releases slots. If they were held longer or shorter than usual, `moreTurns` corrects their count, but only within
   * the same round.
   */
  gaveBack(sharer: Sharer, slots: number, round = 0, moreTurns = 0): void {
    const rank = this.#rank(sharer.priority);
    const party = rank.parties.get(sharer.partyId);
    if (!party) return;
    party.inFlight -= slots;
    party.account.inFlight -= slots;
    rank.inFlight -= slots;
    if (round === this.#round) rank.used += moreTurns / rank.share;
    forgetIdle(rank, party);
  }

  add(waiter: W): void {
    const rank = this.#rank(waiter.priority);
    const party = this.#party(rank, waiter);
    const { account } = party;
    rank.used = rank.usedAfter(0, this.#now);
    party.line ??= [];
    party.line.splice(indexOf(party.line, waiter.order), 0, waiter);
    party.firstOrder = Math.min(party.firstOrder, waiter.order);
    account.firstOrder = Math.min(account.firstOrder, waiter.order);
    account.lined ??= new Set();
    account.lined.add(party);
    rank.lined.add(account);
    account.waiting++;
    rank.waiting++;
    this.#waiting++;
  }

  /** Removes a waiting request. Returns false if it was not in the queue. */
  remove(waiter: W): boolean {
    const rank = this.#rank(waiter.priority);
    const party = rank.parties.get(waiter.partyId);
    if (!party?.line) return false;
    const { account, line } = party;
    const index = indexOf(line, waiter.order);
    if (line[index] !== waiter) return false;
    line.splice(index, 1);
    account.waiting--;
    rank.waiting--;
    this.#waiting--;
    if (line.length === 0) {
      party.firstOrder = Number.POSITIVE_INFINITY;
      account.lined?.delete(party);
    }
    if (account.waiting === 0) {
      account.firstOrder = Number.POSITIVE_INFINITY;
      rank.lined.delete(account);
    }
    if (this.#waiting === 0) this.#forgetTurns();
    forgetIdle(rank, party);
    return true;
  }

  /**
   * Returns the next request. `isHeldBack` reports whether only reserved slots are left for a request. In this case
   * only a request of the highest priority may overtake it, because otherwise a request for several slots would wait
   * forever.
   */
  next(isHeldBack?: (waiter: W) => boolean): W | undefined {
    if (this.#waiting === 0) return undefined;
    let next: Rank<W> | undefined;
    let least = Number.POSITIVE_INFINITY;
    for (const rank of this.#ranks) {
      if (rank.waiting === 0) continue;
      const used = rank.usedAfter(1, this.#now);
      if (used >= least) continue;
      next = rank;
      least = used;
    }
    const first = firstIn(next);
    return first && isHeldBack?.(first) ? firstIn(this.#rank("high")) : first;
  }

  /** Returns how many requests will be served before `waiter`, a request of this sharer, or before a new one of it. */
  ahead(sharer: Sharer, waiter?: W): number {
    const rank = this.#rank(sharer.priority);
    const party = rank.parties.get(sharer.partyId);
    const account = rank.accounts.get(sharer.accountId);
    const line = party?.line ?? [];
    const own = waiter ? indexOf(line, waiter.order) : line.length;
    const inAccount = own + amongOthers(account?.lined, this.#busyOrNew(party), own);
    const inRank = inAccount + amongOthers(rank.lined, this.#busyOrNew(account), inAccount);
    const until = rank.usedAfter(inRank + 1, this.#now);
    let ahead = inRank;
    for (const other of this.#ranks) {
      if (other === rank || other.waiting === 0) continue;
      const turns = (until - other.used) * other.share;
      // If two priorities have the same `used`, the higher one is served first.
      const before = other.share > rank.share ? Math.floor(turns) : Math.ceil(turns) - 1;
      ahead += Math.min(other.waiting, Math.max(0, before));
    }
    return ahead;
  }

  /**
   * Returns the request that must leave a full queue to make space for this sharer: the last one of the person or key
   * with the most waiting requests, relative to its share. Returns undefined if this sharer already has its fair share.
   */
  yielding(sharer: Sharer): W | undefined {
    const rank = this.#rank(sharer.priority);
    const account = rank.accounts.get(sharer.accountId);
    const [fullest] = [...this.#ranks].sort((a, b) => b.waiting / b.share - a.waiting / a.share);
    if (fullest && fullest !== rank && (fullest.waiting - 1) / fullest.share >= (rank.waiting + 1) / rank.share) {
      return longestOf(longestOf(fullest.lined)?.lined)?.line?.at(-1);
    }
    const longest = longestOf(rank.lined);
    if (longest && longest !== account && longest.waiting > (account?.waiting ?? 0) + 1) {
      return longestOf(longest.lined)?.line?.at(-1);
    }
    const party = longestOf(account?.lined);
    const own = rank.parties.get(sharer.partyId)?.waiting ?? 0;
    return party && party.waiting > own + 1 ? party.line?.at(-1) : undefined;
  }

  #rank(priority: Priority): Rank<W> {
    return this.#ranks[rankIndex[priority]] as Rank<W>;
  }

  #busyOrNew(share: Share | undefined): Share {
    if (share && !isIdle(share)) return share;
    return { inFlight: 0, lastGiven: this.#given - 0.5, firstOrder: Number.POSITIVE_INFINITY, waiting: 0 };
  }

  #party(rank: Rank<W>, { accountId, partyId }: Sharer): Party<W> {
    const known = rank.parties.get(partyId);
    if (known && !isIdle(known)) return known;
    const lastGiven = this.#given - 0.5;
    if (known) {
      rank.idle--;
      known.lastGiven = lastGiven;
      if (isIdle(known.account)) known.account.lastGiven = lastGiven;
      return known;
    }
    let account = rank.accounts.get(accountId);
    if (!account) {
      account = new Account(accountId, lastGiven);
      rank.accounts.set(accountId, account);
    } else if (isIdle(account)) {
      account.lastGiven = lastGiven;
    }
    const party = new Party(partyId, account, lastGiven);
    rank.parties.set(partyId, party);
    return party;
  }

  /** Resets all counts if no request waits, so that no priority has a debt. */
  #forgetTurns(): void {
    this.#round++;
    this.#now = 0;
    for (const rank of this.#ranks) rank.used = 0;
  }
}

/**
 * Number of idle parties that are kept for each priority, to avoid allocations. If many parties are busy, more are
 * kept.
 */
const maxIdle = 64;

function isIdle({ inFlight, waiting }: Share): boolean {
  return inFlight === 0 && waiting === 0;
}

/** Removes idle parties if there are too many. Must be called when a party may have become idle. */
function forgetIdle<W extends Waiter>(rank: Rank<W>, party: Party<W>): void {
  if (!isIdle(party)) return;
  const { accounts, parties } = rank;
  rank.idle++;
  if (rank.idle <= maxIdle || 2 * rank.idle <= parties.size) return;
  for (const [id, one] of parties) if (isIdle(one)) parties.delete(id);
  for (const [id, one] of accounts) if (isIdle(one)) accounts.delete(id);
  rank.idle = 0;
}

const rankIndex = { high: 0, normal: 1, low: 2 } as const satisfies Record<Priority, number>;

function firstIn<W extends Waiter>(rank: Rank<W> | undefined): W | undefined {
  return firstOf(firstOf(rank?.lined)?.lined)?.line?.[0];
}

function firstOf<Each extends Share>(some: ReadonlySet<Each> | undefined): Each | undefined {
  let first: Each | undefined;
  for (const one of some ?? []) if (!first || isBefore(one, first)) first = one;
  return first;
}

function longestOf<Each extends Share>(some: ReadonlySet<Each> | undefined): Each | undefined {
  let longest: Each | undefined;
  for (const one of some ?? []) if (!longest || one.waiting > longest.waiting) longest = one;
  return longest;
}

/**
 * Returns how many requests of `others` are served before a request that has `before` requests of its own account or
 * party ahead of it.
 */
function amongOthers(others: ReadonlySet<Share> | undefined, own: Share, before: number): number {
  let ahead = 0;
  for (const other of others ?? []) {
    if (other !== own) ahead += Math.min(other.waiting, isBefore(other, own) ? before + 1 : before);
  }
  return ahead;
}

function isBefore(a: Share, b: Share): boolean {
  if (a.inFlight !== b.inFlight) return a.inFlight < b.inFlight;
  if (a.lastGiven !== b.lastGiven) return a.lastGiven < b.lastGiven;
  return a.firstOrder < b.firstOrder;
}

/** Returns the index of `order` in the sorted list, or the index at which to insert it. Uses binary search. */
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
