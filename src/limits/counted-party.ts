// The limits of one account or key that a request counts against, with where they are counted beside them.
import type { LimitSet, Quota, RateLimit } from "../domain/limits/limits.ts";
import type { RequestBucket, TokenBucket } from "./memory/memory-buckets.ts";
import type { MonthCounter } from "./memory/quota-counters.ts";

/**
 * Everything that is counted under the same id, in one object: of a key among very many each place in memory is one to
 * wait for.
 */
export class CountedParty {
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
    const last = partiesIn(limits).reduce<CountedParty | undefined>(
      (before, party) => CountedParty.#of(party, store, before),
      undefined,
    );
    if (last) last.#limits = limits;
    limits.counted = last;
    return last;
  }

  /** Keys share that of their account, as they share its quota. */
  static #of({ requests, tokens, quota }: Party, store: object, before: CountedParty | undefined): CountedParty {
    const known = quota?.counted;
    const party = new CountedParty(store, before);
    party.requests = requests;
    party.tokens = tokens;
    if (quota === undefined) return party;
    // One text in place of several that are equal.
    party.quotaId = requests?.id ?? tokens?.id ?? quota.id;
    party.quotaTokens = quota.tokens ?? Number.POSITIVE_INFINITY;
    party.quotaNanoUsd = quota.nanoUsd ?? Number.POSITIVE_INFINITY;
    if (known instanceof CountedParty && known.#isAs(party)) return known;
    quota.counted = party;
    return party;
  }

  /** Whether it has the same limits, behind the same ones: a copy of a quota leads here as well, and may have other amounts. */
  #isAs(other: CountedParty): boolean {
    return (
      this.#store === other.#store &&
      this.before === other.before &&
      this.requests === other.requests &&
      this.tokens === other.tokens &&
      this.quotaId === other.quotaId &&
      this.quotaTokens === other.quotaTokens &&
      this.quotaNanoUsd === other.quotaNanoUsd
    );
  }

  get isLimited(): boolean {
    return this.quotaTokens !== Number.POSITIVE_INFINITY || this.quotaNanoUsd !== Number.POSITIVE_INFINITY;
  }
}

interface Party {
  id: string;
  requests?: RateLimit;
  tokens?: RateLimit;
  quota?: Quota;
}

/**
 * Each limit once, also where several of one kind have the same id. In the order of the quotas, of which all have one: the
 * account's is the first, so that no other comes before the one that its keys share.
 */
function partiesIn({ requests, tokens, quotas }: LimitSet): Party[] {
  const parties: Party[] = [];
  const place = (id: string, kind: "requests" | "tokens" | "quota"): Party => {
    const known = parties.find((party) => party.id === id && party[kind] === undefined);
    if (known) return known;
    const party = { id };
    parties.push(party);
    return party;
  };
  for (const quota of quotas) place(quota.id, "quota").quota = quota;
  for (const rule of requests) place(rule.id, "requests").requests = rule;
  for (const rule of tokens) place(rule.id, "tokens").tokens = rule;
  return parties;
}
