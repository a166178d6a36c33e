// The limits of one account or key, with the counters that its requests use.
import type { CounterLocation, LimitGroup, LimitSet, RateLimit } from "../domain/limits/limits.ts";
import type { RequestBucket, TokenBucket } from "./memory/memory-buckets.ts";
import type { MonthCounter } from "./memory/quota-counters.ts";

/** All limits with the same id. They are in one object, because each memory access is slow with very many keys. */
export class CountedParty implements CounterLocation {
  requests: RateLimit | undefined = undefined;
  tokens: RateLimit | undefined = undefined;
  /** The id of the party's quota; undefined without a quota. */
  quotaId: string | undefined = undefined;
  /** The buckets that were used last. They may be outdated; the store checks that. */
  requestBucket: RequestBucket | undefined = undefined;
  tokenBucket: TokenBucket | undefined = undefined;
  counter: MonthCounter | undefined = undefined;
  /** The limits of the quota; infinite without a quota. */
  quotaTokens = Number.POSITIVE_INFINITY;
  quotaNanoUsd = Number.POSITIVE_INFINITY;
  /** The previous account or key of the same limit set. */
  readonly before: CountedParty | undefined;
  /** The limit store to which the buckets and counters belong. */
  readonly #store: object;
  /**
   * The limit set that this object was created for. A copy of the set may refer to this object too, with other limits.
   */
  #limits: LimitSet | undefined = undefined;

  private constructor(store: object, before: CountedParty | undefined) {
    this.#store = store;
    this.before = before;
  }

  /**
   * Returns the last account or key of a limit set; undefined if the set has no limits. The result is cached in the
   * set.
   */
  static lastOf(limits: LimitSet, store: object): CountedParty | undefined {
    const { counted } = limits;
    if (counted instanceof CountedParty && counted.#store === store && counted.#limits === limits) return counted;
    let last: CountedParty | undefined;
    for (const group of limits.groups ?? groupsIn(limits)) last = CountedParty.#of(group, store, last);
    if (last) last.#limits = limits;
    limits.counted = last;
    return last;
  }

  /** Returns the object for a group of limits. All keys of an account share the account's object. */
  static #of(
    { id, requests, tokens, quota }: LimitGroup,
    store: object,
    before: CountedParty | undefined,
  ): CountedParty {
    const known = quota?.counted;
    const quotaTokens = quota?.tokens ?? Number.POSITIVE_INFINITY;
    const quotaNanoUsd = quota?.nanoUsd ?? Number.POSITIVE_INFINITY;
    if (
      // A copy of the quota may refer to an object with other limits or after other quotas.
      known instanceof CountedParty &&
      known.#store === store &&
      known.before === before &&
      known.requests === requests &&
      known.tokens === tokens &&
      known.quotaId === id &&
      known.quotaTokens === quotaTokens &&
      known.quotaNanoUsd === quotaNanoUsd
    )
      return known;
    const party = new CountedParty(store, before);
    party.requests = requests;
    party.tokens = tokens;
    if (quota === undefined) return party;
    party.quotaId = id;
    party.quotaTokens = quotaTokens;
    party.quotaNanoUsd = quotaNanoUsd;
    quota.counted = party;
    return party;
  }

  /**
   * Returns false, so that this object is not kept for later sets. Computing a party again is faster than scanning very
   * many keys that keep one.
   */
  get lasts(): boolean {
    return false;
  }

  get isLimited(): boolean {
    return this.quotaTokens !== Number.POSITIVE_INFINITY || this.quotaNanoUsd !== Number.POSITIVE_INFINITY;
  }
}

/**
 * Returns the limits of a set, grouped by id, in the order of the quotas. The account's quota is the first one, so that
 * no other group precedes the one that all keys of the account share.
 */
function groupsIn({ requests, tokens, quotas }: LimitSet): LimitGroup[] {
  const groups: Writable<LimitGroup>[] = [];
  const group = (id: string, kind: "requests" | "tokens" | "quota"): Writable<LimitGroup> => {
    const known = groups.find((group) => group.id === id && group[kind] === undefined);
    if (known) return known;
    const group = { id };
    groups.push(group);
    return group;
  };
  for (const quota of quotas) group(quota.id, "quota").quota = quota;
  for (const rule of requests) group(rule.id, "requests").requests = rule;
  for (const rule of tokens) group(rule.id, "tokens").tokens = rule;
  return groups;
}

type Writable<Type> = { -readonly [Name in keyof Type]: Type[Name] };
