// Decides who gets an engine's next free slot: priorities by their shares, then accounts, people and keys by the slots
// they hold.
import { type Priority, priorities, priorityShares } from "../../domain/models/policies/priority.ts";

/** The party that holds a slot or wants one. */
export interface Sharer {
  readonly priority: Priority;
  readonly accountId: string;
  /** Id of the person or key within the account; no other account has the same. */
  readonly partyId: string;
}

export interface Waiter extends Sharer {
  /** Increases with arrival. A request that has to wait again keeps its order and so its turn. */
  readonly order: number;
}

/** The figures by which accounts are compared, and the people and keys of an account. */
interface Share {
  /** Number of slots held. */
  inFlight: number;
  /** When a slot was last assigned, counted in assignments, however many slots each. */
  lastGiven: number;
  /** The order of the earliest request since waiting began; infinite if none waits. */
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
  /** Waiting requests by `order`; undefined if there never were any. */
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
  /** Waiting people and keys; undefined if there never were any. */
  lined: Set<Party<W>> | undefined;

  constructor(id: string, lastGiven: number) {
    this.id = id;
    this.lastGiven = lastGiven;
  }
}

/** All parties of one priority. */
class Rank<W> {
  readonly priority: Priority;
  readonly share: number;
  readonly accounts = new Map<string, Account<W>>();
  readonly parties = new Map<string, Party<W>>();
  /** Waiting accounts. */
  readonly lined = new Set<Account<W>>();
  /** Number of parties that neither wait nor hold a slot. A few are kept for their next request. */
  idle = 0;
  inFlight = 0;
  waiting = 0;
  /** Turns taken while any request waited, divided by the priority's share. */
  used = 0;

  constructor(priority: Priority) {
    this.priority = priority;
    this.share = priorityShares[priority];
  }

  /** Returns `used` after this many more turns. A priority without a waiting request starts from `now` at least. */
  usedAfter(turns: number, now: number): number {
    return (this.waiting > 0 ? this.used : Math.max(this.used, now)) + turns / this.share;
  }
}

/**
 * Shares slots fairly. Between priorities by weight: while all of them wait, each has turns by its share, so that the
 * lowest is served as well. Within a priority, max-min fairness between accounts, and within an account between its
 * people and keys: whoever holds fewer slots is next. Between equal holders, the one served longer ago is next; a
 * newcomer counts as served just before the last one, so that neither many newcomers nor a long queue can starve
 * others.
 */
export class FairQueue<W extends Waiter> {
  /** The highest priority first: it is next if two would have used the same. */
  readonly #ranks: readonly Rank<W>[] = [...priorities].reverse().map((priority) => new Rank<W>(priority));
  #waiting = 0;
  #given = 0;
  /**
   * The highest `used` at which a priority was served so far. A priority that begins to wait starts from at least this
   * value, so that it cannot claim earlier turns.
   */
  #now = 0;
  /** Number of the current round. A round ends when nobody waits, and owed turns expire with it. */
  #round = 1;

  get waiting(): number {
    return this.#waiting;
  }

  waitingOf(priority: Priority): number {
    return this.#rank(priority).waiting;
  }

  /** Returns the number of held slots. */
  inFlightOf(priority: Priority): number {
    return this.#rank(priority).inFlight;
  }

  /** Waiting requests by account. */
  get waitingByAccount(): ReadonlyMap<string, number> {
    const counts = new Map<string, number>();
    for (const { lined } of this.#ranks)
      for (const { id, waiting } of lined) counts.set(id, (counts.get(id) ?? 0) + waiting);
    return counts;
  }

  /** Number of people and keys that wait or hold slots, counted once for each priority. */
  get busy(): number {
    return this.#ranks.reduce((sum, { parties, idle }) => sum + parties.size - idle, 0);
  }

  /** Number of people and keys in memory, idle ones included, counted once for each priority. */
  get known(): number {
    return this.#ranks.reduce((sum, { parties }) => sum + parties.size, 0);
  }

  /**
   * Records assigned slots. Returns the round in which they count as turns; 0 if nobody waits, so that they do not
   * count.
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
   * Releases slots. `moreTurns` is the difference to the usual holding time, in turns beyond those counted in
   * `round`. It applies only to that round.
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

  /** Removes a waiting request. Returns whether it was in the queue. */
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
   * Returns the next request. `isHeldBack` reports whether a request must not take a slot that is reserved for the
   * highest priority; absent if no slots are reserved. If the next request is held back, only the highest priority goes
   * before it: otherwise a wide request would never find enough slots.
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
   * Returns how many requests are served before a new one of this sharer, or before its `waiter`: of each other
   * person, key and account as many as of its own, and of other priorities as many as they have turns meanwhile.
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
      // The higher priority is first if both would have used the same.
      const before = other.share > rank.share ? Math.floor(turns) : Math.ceil(turns) - 1;
      ahead += Math.min(other.waiting, Math.max(0, before));
    }
    return ahead;
  }

  /**
   * Returns the request whose place in a full queue goes to this sharer: the last request of the party with the most
   * waiting ones, by priority shares, then accounts, then people and keys. Afterwards that party must still have at
   * least as many as this sharer. Undefined if this sharer already has its part and is refused.
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

  /** Resets turns when nobody waits, so that later requests neither owe nor claim any. */
  #forgetTurns(): void {
    this.#round++;
    this.#now = 0;
    for (const rank of this.#ranks) rank.used = 0;
  }
}

/**
 * Number of idle parties that are kept for each priority, or as many as are busy, so that parties are not created for
 * each request.
 */
const maxIdle = 64;

function isIdle({ inFlight, waiting }: Share): boolean {
  return inFlight === 0 && waiting === 0;
}

/** Call when a party may have become idle. */
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

/** Returns the requests of the others that are served before the one with `before` own requests in front of it. */
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

/** Returns the index of `order`, or where it belongs, in a list sorted by `order`. */
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
