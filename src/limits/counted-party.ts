// The limits of one account or key that a request counts against, with where they are counted beside them.
import type { CountedPlace, LimitGroup, LimitSet, RateLimit } from "../domain/limits/limits.ts";
import type { RequestBucket, TokenBucket } from "./memory/memory-buckets.ts";
import type { MonthCounter } from "./memory/quota-counters.ts";

/**
 * Everything that is counted under the same id, in one object: of a key among very many each place in memory is one to
 * wait for.
 */
export class CountedParty implements CountedPlace {
  requests: RateLimit | undefined = undefined;
  tokens: RateLimit | undefined = undefined;
  /** The id of its quota; undefined: none counts for it. */
  quotaId: string | undefined = undefined;
  /** The buckets as they were last found; those who hold them say whether they still are. */
  requestBucket: RequestBucket | undefined = undefined;
  tokenBucket: TokenBucket | undefined = undefined;
  counter: MonthCounter | undefined = undefined;
  /** The amounts of the quota; infinite where there is none. */
  quotaTokens = Number.POSITIVE_INFINITY;
  quotaNanoUsd = Number.POSITIVE_INFINITY;
  /** The one before it in its set. */
  readonly before: CountedParty | undefined;
  /** The store whose buckets and counters these are. */
  readonly #store: object;
  /** The set of which it is the last: a copy of that set leads here as well, and may have other limits. */
  #limits: LimitSet | undefined = undefined;

  private constructor(store: object, before: CountedParty | undefined) {
    this.#store = store;
    this.before = before;
  }

  /** The last of a set, worked out once for the store that is asked about it. Undefined where nothing is limited. */
  static lastOf(limits: LimitSet, store: object): CountedParty | undefined {
    const { counted } = limits;
    if (counted instanceof CountedParty && counted.#store === store && counted.#limits === limits) return counted;
    let last: CountedParty | undefined;
    for (const group of limits.groups ?? groupsIn(limits)) last = CountedParty.#of(group, store, last);
    if (last) last.#limits = limits;
    limits.counted = last;
    return last;
  }

  /** Keys share that of their account, as they share its quota. */
  static #of(
    { id, requests, tokens, quota }: LimitGroup,
    store: object,
    before: CountedParty | undefined,
  ): CountedParty {
    const known = quota?.counted;
    const quotaTokens = quota?.tokens ?? Number.POSITIVE_INFINITY;
    const quotaNanoUsd = quota?.nanoUsd ?? Number.POSITIVE_INFINITY;
    if (
      // A copy of a quota leads here as well, and may have other amounts, or stand behind others.
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

  /** It is found out anew faster than very many keys are looked through that keep one. */
  get lasts(): boolean {
    return false;
  }

  get isLimited(): boolean {
    return this.quotaTokens !== Number.POSITIVE_INFINITY || this.quotaNanoUsd !== Number.POSITIVE_INFINITY;
  }
}

/**
 * Each limit once, also where several of one kind have the same id. In the order of the quotas, of which all have one: the
 * account's is the first, so that no other comes before the one that its keys share.
 */
function groupsIn({ requests, tokens, quotas }: LimitSet): LimitGroup[] {
  const groups: Writable<LimitGroup>[] = [];
  const place = (id: string, kind: "requests" | "tokens" | "quota"): Writable<LimitGroup> => {
    const known = groups.find((group) => group.id === id && group[kind] === undefined);
    if (known) return known;
    const group = { id };
    groups.push(group);
    return group;
  };
  for (const quota of quotas) place(quota.id, "quota").quota = quota;
  for (const rule of requests) place(rule.id, "requests").requests = rule;
  for (const rule of tokens) place(rule.id, "tokens").tokens = rule;
  return groups;
}

type Writable<Type> = { -readonly [Name in keyof Type]: Type[Name] };
