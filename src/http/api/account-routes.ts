// Endpoints for the limits of the caller's account, the unused part of each limit, and the available tiers.

import { z } from "zod";
import { calendarMonthOf } from "../../base/calendar-month.ts";
import { forbidden } from "../../base/errors.ts";
import { usdOf } from "../../base/money.ts";
import type { Tier, TierSource } from "../../domain/account.ts";
import { environments } from "../../domain/api-key.ts";
import { endUserTag } from "../../domain/end-users.ts";
import { amounts, byWire } from "../../domain/limits/amounts.ts";
import type { LimitState, LimitStore, Quota } from "../../domain/limits/limits.ts";
import { priorities } from "../../domain/models/policies/priority.ts";
import { type Principal, seesUsageOf } from "../../domain/principal.ts";
import type { UsageTotals } from "../../domain/usage/usage.ts";
import { withEndUsers } from "../../policy/end-user-limits.ts";
import { monthUse, quotaUse } from "../../policy/quota-use.ts";
import { shownAmount } from "../../wire/amounts.ts";
import { unixSeconds } from "../../wire/parts.ts";
import { rulesOnWire, shownQuotas, usedQuotas } from "../../wire/quotas.ts";
import type { ScopedRoute } from "../exchange/route.ts";
import { type EndpointDeps, scopedEndpoints } from "./endpoint.ts";
import { wholeListOf } from "./list.ts";

type SourcedTier = Tier & { source: TierSource };

export interface AccountRouteDeps extends EndpointDeps {
  limits: Pick<LimitStore, "peek" | "used" | "usedInWindow">;
  tiers: { find(name: string): SourcedTier; list(): readonly SourcedTier[] };
}

const perMinute = z.number().nullable().describe("null: no limit.");

const rateState = z
  .object({
    limit: z.number(),
    remaining: z.number(),
    reset_seconds: z.number().describe("Seconds until the full limit is available again."),
  })
  .nullable()
  .describe("The tightest limit that applies to this credential, including the key's own. null: no limit.");

const allowance = z.object({
  limit: z.number().nullable().describe("null: no limit."),
  used: z
    .number()
    .describe(
      "Usage since the period began, without running requests. With a limit it is the account's usage. Without one, a member without further rights sees their own usage.",
    ),
});

export const accountShape = z
  .object({
    object: z.literal("account"),
    id: z.string(),
    name: z.string(),
    tier: z.string(),
    environment: z
      .enum(environments)
      .describe("Environment of the credential. Limits and quota apply to this environment only."),
    limits: z.object({ requests_per_minute: perMinute, tokens_per_minute: perMinute }),
    rate: z.object({ requests: rateState, tokens: rateState }),
    quota: z.object({
      period_start: unixSeconds,
      period_end: unixSeconds,
      usage_of: z
        .enum(["account", "caller"])
        .describe("Owner of the usage in `used` if `limit` is null. With a limit it is the account's usage."),
      tokens: allowance,
      spend: allowance.describe("USD."),
    }),
    quotas: usedQuotas.describe(
      "Quotas per window that apply to this credential, with their usage. The account's quotas come first.",
    ),
    store_chats: z.boolean().describe("True to store chat completions of requests that do not set `store`."),
  })
  .meta({ id: "AccountOverview" });

const limitsShape = z
  .object({
    object: z.literal("limits"),
    environment: z.enum(environments).describe("Environment of the credential."),
    rate: z.object({ requests: rateState, tokens: rateState }),
    quotas: usedQuotas.describe(
      "Quotas that apply to this credential: the account's, the key's, and those of its creators. Monthly quotas come first.",
    ),
  })
  .meta({ id: "Limits" });

const tierShape = z
  .object({
    object: z.literal("tier"),
    name: z.string(),
    ...byWire(amounts, shownAmount),
    quotas: shownQuotas,
    environments: z
      .array(z.enum(environments))
      .describe("Environments in which the limits apply. The other environments have no limits."),
    priority: z.enum(priorities).describe("Highest priority of requests of its accounts, in all environments."),
    source: z.enum(["built-in", "file", "database"]),
    current: z.boolean().describe("True if this is the tier of the account."),
  })
  .meta({ id: "TierOverview" });

const tierList = wholeListOf(tierShape, "TierOverviewList");

const endpoint = scopedEndpoints<AccountRouteDeps>("usage:read", { tag: "Usage" });
/**
 * Declares endpoints that need the scope `chat:write`. Such callers may read the limits, because these apply to their
 * requests.
 */
const userEndpoint = scopedEndpoints<AccountRouteDeps>("chat:write", { tag: "Usage" });

export function accountRoutes(deps: AccountRouteDeps): ScopedRoute[] {
  return [retrieve(deps), limitsOfCaller(deps), listTiers(deps)];
}

const retrieve = endpoint("GET", "/v1/account", {
  operationId: "getAccount",
  summary: "Retrieve tier, limits and quotas of the account, with the remaining amounts",
  description: "This request counts against no limit.",
  response: { description: "The account.", json: accountShape },
  answer: ({ deps, principal }) => accountToWire(deps, principal),
});

const limitsOfCaller = userEndpoint("GET", "/v1/limits", {
  operationId: "getLimits",
  summary: "Retrieve limits and quotas of the credential, with the remaining amounts",
  description:
    "Available to every credential that may use models, even without `usage:read`. This request counts against no limit. Quotas without a limit are omitted.",
  query: z.object({
    end_user: z.string().min(1).max(512).optional().meta({
      description:
        "the id of an end user; adds the quotas of this end user. Not for credentials that see only their own usage",
    }),
  }),
  response: { description: "The limits.", json: limitsShape },
  async answer({ deps: { limits }, principal, query: { end_user: endUser }, origin }) {
    if (endUser !== undefined && seesUsageOf(principal) !== null) {
      throw forbidden("end_user: you see your own usage alone; leave it out.");
    }
    const limited = endUser === undefined ? principal.limits : withEndUsers(principal, [endUserTag(endUser)]);
    const { quotas, windows = [] } = limited;
    const rate = await limits.peek(principal.limits);
    const used = [...(await monthUse(quotas, limits, origin.nowSeconds)), ...(await quotaUse(windows, limits))];
    return {
      object: "limits",
      environment: principal.environment,
      rate: { requests: stateToWire(rate.requests), tokens: stateToWire(rate.tokens) },
      quotas: used,
    };
  },
});

const listTiers = endpoint("GET", "/v1/tiers", {
  operationId: "listTiers",
  summary: "List the tiers",
  response: { description: "The tiers.", json: tierList },
  answer({ deps: { tiers }, principal }) {
    const current = tiers.find(principal.account.tier).name;
    // Other tiers from the database are hidden, because an operator may have made one for a single customer.
    const shown = tiers.list().filter(({ name, source }) => source !== "database" || name === current);
    return { object: "list", data: shown.map((tier) => tierToWire(tier, current)) };
  },
});

export async function accountToWire(
  { limits, tiers, clock }: Omit<AccountRouteDeps, "requestLimits">,
  principal: Principal,
): Promise<z.infer<typeof accountShape>> {
  const { account, environment } = principal;
  const tier = tiers.find(account.tier);
  const holds = tier.environments.includes(environment);
  const rate = await limits.peek(principal.limits);
  const month = calendarMonthOf(clock.nowSeconds());
  const quota = accountQuota(principal);
  const used = await limits.used(quota);
  const own = await ownUse(principal, limits);
  return {
    object: "account",
    id: account.id,
    name: account.name,
    tier: tier.name,
    environment,
    limits: {
      requests_per_minute: holds ? tier.requestsPerMinute : null,
      tokens_per_minute: holds ? tier.tokensPerMinute : null,
    },
    rate: { requests: stateToWire(rate.requests), tokens: stateToWire(rate.tokens) },
    quota: {
      period_start: month.start,
      period_end: month.end,
      usage_of: own === undefined ? "account" : "caller",
      tokens: { limit: quota.tokens, used: (quota.tokens === null ? (own ?? used) : used).tokens },
      spend: {
        limit: quota.nanoUsd === null ? null : usdOf(quota.nanoUsd),
        used: usdOf((quota.nanoUsd === null ? (own ?? used) : used).nanoUsd),
      },
    },
    quotas: await quotaUse(principal.limits.windows ?? [], limits),
    store_chats: account.storeChats,
  };
}

/** Returns the caller's own usage, or undefined if the caller may see the whole account's usage. */
async function ownUse(principal: Principal, limits: Pick<LimitStore, "used">): Promise<UsageTotals | undefined> {
  if (seesUsageOf(principal) === null) return undefined;
  const { keys, appId } = principal;
  const own = (appId === null ? keys.find(({ kind }) => kind === "membership") : undefined) ?? keys[0];
  const quota = principal.limits.quotas.find(({ owner, ownerId }) => owner === "key" && ownerId === own.limitId);
  return quota ? limits.used(quota) : { tokens: 0, nanoUsd: 0 };
}

/** Returns the account's quota. Even an account without a limit has one, because usage is always counted. */
function accountQuota({ limits, account }: Principal): Quota {
  const quota = limits.quotas.find(({ owner }) => owner === "account");
  if (!quota) throw new Error(`No quota counts for the account ${account.id}.`);
  return quota;
}

function stateToWire(state: LimitState | undefined): z.infer<typeof rateState> {
  return state
    ? { limit: state.limit, remaining: state.remaining, reset_seconds: Math.ceil(state.resetMs / 1000) }
    : null;
}

function tierToWire(tier: SourcedTier, current: string): z.infer<typeof tierShape> {
  return {
    object: "tier",
    name: tier.name,
    ...byWire(amounts, ({ name }) => tier[name]),
    quotas: rulesOnWire(tier.quotas ?? []),
    environments: [...tier.environments],
    priority: tier.priority,
    source: tier.source,
    current: tier.name === current,
  };
}
