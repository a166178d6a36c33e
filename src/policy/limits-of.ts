// Determines the limits and quotas that the requests of a principal count against.
import { nanoOfUsd } from "../base/money.ts";
import { type Account, defaultTierEnvironments, type Tier } from "../domain/account.ts";
import type { Environment } from "../domain/api-key.ts";
import { budgetOf } from "../domain/end-users.ts";
import { type LimitRaise, raisedRules, raisesOf } from "../domain/limits/limit-requests.ts";
import type { CounterLocation, LimitGroup, LimitSet, Quota, RateLimit } from "../domain/limits/limits.ts";
import { type QuotaRule, windowOf } from "../domain/limits/quota-rules.ts";
import type { Organization } from "../domain/organization.ts";
import type { ApiKeyRecord, ChainKey, KeyChain, KeyStore } from "../domain/principal.ts";

export interface LimitedParty {
  /** The key and its makers: usage of a key counts against its makers too. */
  keys: readonly ChainKey[];
  account: Account;
  environment: Environment;
  /** The account's tier. */
  tier: Tier;
}

const minuteSeconds = 60;

/** The limits of an account by its tier and overrides, which all its keys share. */
export interface AccountLimits {
  readonly requests: readonly RateLimit[];
  readonly tokens: readonly RateLimit[];
  readonly quota: Quota;
  /** The monthly quota of the account's organization. Undefined without an organization. */
  readonly ofOrganization?: Quota | undefined;
  /** The quotas with a window of the account, then those of its organization. */
  readonly windows: readonly Quota[];
  /** Amounts that were granted to the account or its members for a time. */
  readonly raises?: readonly LimitRaise[] | undefined;
}

/**
 * The account's limits come first; all keys of an account in one environment share them. Limit objects of keys are
 * created on demand: most requests do not need them, and those of very many keys would take much memory.
 */
export class ChainLimits implements LimitSet {
  readonly ofAccount: AccountLimits;
  readonly windows: readonly Quota[] | undefined;
  counted: CounterLocation | undefined = undefined;
  readonly #keys: readonly ChainKey[];

  constructor(ofAccount: AccountLimits, keys: readonly ChainKey[]) {
    let { windows } = ofAccount;
    for (const key of keys) {
      if (key.quotas.length > 0) windows = [...windows, ...windowsOfKey(key, ofAccount.raises)];
    }
    this.ofAccount = ofAccount;
    this.windows = windows.length > 0 ? windows : undefined;
    this.#keys = keys;
  }

  get name(): string | undefined {
    return this.#keys[0]?.id;
  }

  /** The limits grouped by account and key. */
  get groups(): readonly LimitGroup[] {
    const { requests, tokens, quota, ofOrganization } = this.ofAccount;
    const groups: LimitGroup[] = [{ id: quota.id, requests: requests[0], tokens: tokens[0], quota }];
    if (ofOrganization) groups.push({ id: ofOrganization.id, quota: ofOrganization });
    for (const key of this.#keys) groups.push(ownLimits(key));
    return groups;
  }

  get requests(): readonly RateLimit[] {
    const ofKeys = this.#keys.map((key) => ownLimits(key).requests);
    return [...this.ofAccount.requests, ...ofKeys.filter((rule) => rule !== undefined)];
  }

  get tokens(): readonly RateLimit[] {
    return this.ofAccount.tokens;
  }

  get quotas(): readonly Quota[] {
    const { quota, ofOrganization } = this.ofAccount;
    const shared = ofOrganization ? [quota, ofOrganization] : [quota];
    return [...shared, ...this.#keys.map((key) => ownLimits(key).quota)];
  }
}

export function limitsOf({ keys, account, environment, tier }: LimitedParty): ChainLimits {
  const holds = tier.environments.includes(environment);
  const id = `account:${account.id}:${environment}`;
  const ofTier = (limit: number | null): RateLimit[] =>
    holds && limit !== null ? [{ id, owner: "account", limit, windowSeconds: minuteSeconds }] : [];
  const amounts = { ...tier, ...account.overrides };
  const raises = raisesOf(account.raises, account.id, environment);
  const ofMonth = (unit: "tokens" | "usd", amount: number | null): number | null =>
    amount === null
      ? null
      : (raisedRules([{ unit, amount, per: "month", window: "calendar" }], raises)[0]?.amount ?? 0);
  const quota: Quota = {
    id,
    owner: "account",
    ownerId: account.id,
    environment,
    tokens: holds ? ofMonth("tokens", amounts.monthlyTokens) : null,
    nanoUsd: holds ? nanoUsdOf(ofMonth("usd", amounts.monthlySpend)) : null,
    counted: undefined,
  };
  const organization = account.organization && organizationLimits(account.organization, environment);
  const windows = holds ? windowsOf(quota, raisedRules(amounts.quotas ?? [], raises)) : [];
  const ofAccount = {
    requests: ofTier(tier.requestsPerMinute),
    tokens: ofTier(tier.tokensPerMinute),
    quota,
    ...(organization && { ofOrganization: organization.quota }),
    windows: organization ? [...windows, ...organization.windows] : windows,
    ...(account.raises && { raises: account.raises }),
  };
  return new ChainLimits(ofAccount, keys);
}

/** Returns the quotas that the accounts of an organization share. Environments without limits still count usage. */
export function organizationLimits(
  { id: ownerId, monthlyTokens, monthlySpend, quotas, membersRevision }: Organization,
  environment: Environment,
): Pick<AccountLimits, "quota" | "windows"> {
  const holds = defaultTierEnvironments.includes(environment);
  const quota: Quota = {
    id: `organization:${ownerId}:${environment}`,
    owner: "organization",
    ownerId,
    environment,
    tokens: holds ? monthlyTokens : null,
    nanoUsd: holds ? nanoUsdOf(monthlySpend) : null,
    membersRevision,
    counted: undefined,
  };
  return { quota, windows: holds ? windowsOf(quota, quotas) : [] };
}

/**
 * Returns the quotas that count the usage of these keys, and the quotas of the end users that `endUsers` lists by key.
 */
export async function quotasOf(
  { keyIds, endUsers }: { keyIds: Iterable<string>; endUsers: ReadonlyMap<string, Iterable<string>> },
  keys: Pick<KeyStore, "findChainById">,
  limitsOfChain: (chain: KeyChain) => Pick<LimitSet, "quotas" | "windows">,
): Promise<Iterable<Quota>> {
  const found = new Map<string, Quota>();
  for (const keyId of keyIds) {
    const chain = await keys.findChainById(keyId);
    if (!chain) continue;
    const { quotas, windows = [] } = limitsOfChain(chain);
    const ofUsers = quotasOfEndUsers(chain.account, chain.keys[0].environment, endUsers.get(keyId) ?? []);
    for (const quota of [...quotas, ...windows, ...ofUsers]) found.set(quota.id, quota);
  }
  return found.values();
}

/**
 * Returns a key's own limits under its limit id: keys of a rotation share one budget, and a rotation does not restart
 * the month. Usage is counted even without a limit, so that a limit set later covers the whole month.
 */
function ownLimits(key: ChainKey): Required<LimitGroup> & { quota: Quota } {
  const { kind, limitId, environment, rateLimit: limit, monthlyTokens: tokens, monthlySpend } = key;
  const id = `key:${limitId}`;
  const windowSeconds = key.rateLimitWindow ?? minuteSeconds;
  const nanoUsd = nanoUsdOf(monthlySpend);
  return {
    id,
    requests: limit === null ? undefined : { id, owner: "key", limit, windowSeconds },
    tokens: undefined,
    quota: {
      id,
      owner: "key",
      called: callings[kind],
      ownerId: limitId,
      environment,
      tokens,
      nanoUsd,
      counted: undefined,
    },
  };
}

/** Returns a key's own quotas with a window. `raises` are those of its account. */
export function windowsOfKey(
  { kind, limitId, environment, quotas }: Pick<ApiKeyRecord, "kind" | "limitId" | "environment" | "quotas">,
  raises?: readonly LimitRaise[],
): Quota[] {
  if (quotas.length === 0) return [];
  const owner = { id: `key:${limitId}`, owner: "key", called: callings[kind], ownerId: limitId, environment } as const;
  return windowsOf(owner, raisedRules(quotas, raisesOf(raises, limitId, environment)));
}

/** The names by which error messages call the owners of limits. */
const callings = { key: undefined, membership: "member", grant: "app" } as const;

/**
 * Returns one quota for each combination of window, models and tag, with all of its amounts. The id does not contain
 * the amounts, so a changed amount keeps the usage. Amounts that can end answers are in separate quotas, because a
 * request reserves different amounts from these.
 */
function windowsOf(
  { id, owner, called, ownerId, environment }: Pick<Quota, "id" | "owner" | "called" | "ownerId" | "environment">,
  rules: readonly QuotaRule[],
): Quota[] {
  const windows = new Map<string, Quota>();
  for (const rule of rules) {
    const { per, window, models, tag, unit, amount, hardStop } = rule;
    const span = `${window}${hardStop ? "!" : ""}${tag === undefined ? "" : `@${tag}`}`;
    const name = [id, per, span, ...(models ?? [])].join(" ");
    const known = windows.get(name);
    const filter = (models || tag !== undefined) && { ...(models && { models }), ...(tag !== undefined && { tag }) };
    const none = { requests: null, tokens: null, nanoUsd: null, window: windowOf(rule), ...(filter && { filter }) };
    const quota = known ?? { id: name, owner, called, ownerId, environment, ...none, counted: undefined };
    const limit = unit === "usd" ? { nanoUsd: nanoUsdOf(amount) } : { [unit]: amount };
    const { tokens = false, nanoUsd = false } = quota.stops ?? {};
    const stops = hardStop && { tokens: tokens || unit === "tokens", nanoUsd: nanoUsd || unit === "usd" };
    windows.set(name, { ...quota, ...limit, ...(stops && { stops }) });
  }
  return [...windows.values()];
}

/**
 * Returns the quotas of one end user of an account. Their ids differ from the id of an account's quota for the same
 * tag.
 */
export function endUserQuotas(ownerId: string, environment: string, tag: string, rules: readonly QuotaRule[]): Quota[] {
  const id = `end_user:${ownerId}:${environment}`;
  const tagged = rules.map((rule) => ({ ...rule, tag }));
  return windowsOf({ id, owner: "account", called: "end_user", ownerId, environment }, tagged);
}

/** Returns the quotas of the end users with these tags. Other tags, and end users without a budget, have none. */
export function quotasOfEndUsers(
  { id, endUsers }: Pick<Account, "id" | "endUsers">,
  environment: string,
  tags: Iterable<string>,
): Quota[] {
  return [...tags].flatMap((tag) => {
    const rules = endUsers && budgetOf(endUsers, tag);
    return rules ? endUserQuotas(id, environment, tag, rules) : [];
  });
}

function nanoUsdOf(usd: number | null): number | null {
  return usd === null ? null : nanoOfUsd(usd);
}
