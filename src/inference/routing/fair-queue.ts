// Who is next for an engine's free place: priorities by their shares, then accounts, people and keys by what they hold.
import { type Priority, priorities, priorityShares } from "../../domain/models/policies/priority.ts";

/** Whose place it is, or would be. */
export interface Sharer {
  readonly priority: Priority;
  readonly accountId: string;
  /** The person or key within the account; no other account has the same. */
  readonly partyId: string;
}

export interface Waiter extends Sharer {
  /** Rises with arrival; a request that comes back keeps it, and with it its turn. */
  readonly order: number;
}

/** What accounts are compared by, and the people and keys within one. */
interface Share {
  /** Places that it holds. */
  inFlight: number;
  /** When it was last given one, counted in places given. */
  lastGiven: number;
  /** The order of its earliest request since it began to wait; infinite while it does not. */
  firstOrder: number;
  /** Requests that wait. */
  readonly waiting: number;
}

class Party<W> implements Share {
  readonly id: string;
  readonly account: Account<W>;
  inFlight = 0;
  lastGiven: number;
  firstOrder = Number.POSITIVE_INFINITY;
  /** By `order`; undefined: nobody did yet. */
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
  /** Those of its people and keys that wait; undefined: none did yet. */
  lined: Set<Party<W>> | undefined;

  constructor(id: string, lastGiven: number) {
    this.id = id;
    this.lastGiven = lastGiven;
  }
}

/** All that have one priority. */
class Rank<W> {
  readonly priority: Priority;
  readonly share: number;
  readonly accounts = new Map<string, Account<W>>();
  readonly parties = new Map<string, Party<W>>();
  /** Accounts that wait. */
  readonly lined = new Set<Account<W>>();
  /** Parties that neither wait nor hold a place: they are kept for the next request, as long as they are few. */
  idle = 0;
  inFlight = 0;
  waiting = 0;
  /** Turns that it had while somebody waited, divided by its share. */
  used = 0;

  constructor(priority: Priority) {
    this.priority = priority;
    this.share = priorityShares[priority];
  }

  /** What it will have used once it had so many turns more, where it waits since `now` at the earliest. */
  usedAfter(turns: number, now: number): number {
    return (this.waiting > 0 ? this.used : Math.max(this.used, now)) + turns / this.share;
  }
}

/**
 * Weighted fairness between priorities: while all of them wait, each has turns by its share, so that the lowest is served as
 * well. Within one, max-min fairness between accounts, and within an account between its people and keys: whatever one asks
 * for, another gets its turn before that one holds one place more. Between those that hold as many, the one that was served
 * longer ago is next; a newcomer counts as served just before the last one, so that neither a crowd of newcomers nor a long
 * queue can starve anybody.
 */
export class FairQueue<W extends Waiter> {
  /** The highest priority first: it is next where two would have used as much. */
  readonly #ranks: readonly Rank<W>[] = [...priorities].reverse().map((priority) => new Rank<W>(priority));
  #waiting = 0;
  #given = 0;
  /** What whoever was served last had used before: who begins to wait has used as much, and can claim no time of before. */
  #now = 0;
  /** Ends when nobody waits any more, and with it what was owed. */
  #round = 1;

  get waiting(): number {
    return this.#waiting;
  }

  waitingOf(priority: Priority): number {
    return this.#rank(priority).waiting;
  }

  /** Places held. */
  inFlightOf(priority: Priority): number {
    return this.#rank(priority).inFlight;
  }

  /** Requests that wait, by account. */
  get waitingByAccount(): ReadonlyMap<string, number> {
    const counts = new Map<string, number>();
    for (const { lined } of this.#ranks)
      for (const { id, waiting } of lined) counts.set(id, (counts.get(id) ?? 0) + waiting);
    return counts;
  }

  /** People and keys that wait or hold places, each for every priority. */
  get busy(): number {
    return this.#ranks.reduce((sum, { parties, idle }) => sum + parties.size - idle, 0);
  }

  /** The same, and those that did a moment ago. */
  get known(): number {
    return this.#ranks.reduce((sum, { parties }) => sum + parties.size, 0);
  }

  /** They were given places, waiting or not. The round in which these count as turns; 0: nobody waits, so that they are none. */
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
   * `moreTurns`: where places were held longer than usual, or shorter: what that was beyond the turns that were counted in
   * `round`. It counts in that one alone: what was not charged in this one is not given back in it.
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

  /** Whether it was there. */
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
   * `isHeldBack`: whether one may not have a place now that the highest priority may have; left out: none. Where that is so of
   * the one whose turn it is, nobody else of the lower ones goes before it: a wide one would never find its places.
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

  /**
   * How many are served before one that this sharer would add, or before `waiter`, which it has: of each person or key, and of
   * each account, as many as of its own, and of other priorities as many as they have turns meanwhile.
   */
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
      // The higher one is first where both would have used as much.
      const before = other.share > rank.share ? Math.floor(turns) : Math.ceil(turns) - 1;
      ahead += Math.min(other.waiting, Math.max(0, before));
    }
    return ahead;
  }

  /**
   * Whose place in a full queue goes to this sharer: the last request of whoever waits with the most, by share of the
   * priorities, by accounts within one and by people and keys within an account, provided that it still has more than this one
   * afterwards or as many. Undefined: this one has its share, and is refused.
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

  /** Nobody waits: whoever does next owes nothing, and is owed nothing. */
  #forgetTurns(): void {
    this.#round++;
    this.#now = 0;
    for (const rank of this.#ranks) rank.used = 0;
  }
}

/** So many that are idle are kept of each priority, or as many as are not: then none is made for each request. */
const maxIdle = 64;

function isIdle({ inFlight, waiting }: Share): boolean {
  return inFlight === 0 && waiting === 0;
}

/** To be called when a party may have become idle by that. */
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

/** Requests of the others that are served before the one that has `before` of its own in front of it. */
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
