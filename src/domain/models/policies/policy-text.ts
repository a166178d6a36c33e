// Converts the policies of models between two formats: that of the API and headrace.yaml, and that of the code.
import { nanoOfUsd, usdOf } from "../../../base/money.ts";
import { hoursFromText, hoursToText, type PriceWire, priceFromWire, priceToWire } from "../price-text.ts";
import { type CachePolicy, type cachedRequests, defaultCachePolicy } from "./cache.ts";
import type { ModelPolicies } from "./model-policies.ts";
import type { OverflowPolicy, overflowSpans } from "./overflow.ts";
import type { SplitPart } from "./traffic.ts";

export const maxOverflowTargets = 16;
export const maxSplitParts = 8;
export const maxModelGuardrails = 16;
/** Maximum amount in USD. */
export const maxSpend = 1_000_000;
export const maxWaitSeconds = 86_400;
export const maxPromptTokens = 1_000_000_000;
export const maxCacheSeconds = 2_592_000;

/** Descriptions of the policies' members, for the references of headrace.yaml and the API. */
export const policyDocs = {
  policies: "Policies for requests to the model. Default: none.",
  continuation:
    "True if another deployment continues a stream that its upstream cut. The deployment must be able to continue the text exactly.",
  overflow:
    "Deployments that are used only if the others would keep a request waiting, or under the conditions given here.",
  to: "Upstreams whose deployments of the model come last, the cheapest first.",
  upstream: "Name of an upstream or node that has a deployment of the model.",
  cost: "The operator's costs for this upstream, with the keys of a model's `price`. The cheapest upstream comes first. Default: the price of `cost_of`, else the model's price.",
  cost_of: "A model in the price list, as `headrace prices` names it. Its price is your cost if `cost` is not set.",
  after_seconds:
    "Overflow if a request is expected to wait this long for the other deployments. Default: no overflow because of waiting.",
  prompt_tokens_above: "Overflow if the prompt has more tokens than this. Default: no overflow because of length.",
  hours:
    "Parts of a day (UTC) in which these deployments are used like any other, such as `18:00-08:00`. Default: none.",
  most_usd_per_request: "Maximum expected cost of one request there, in USD. Default: no limit.",
  spend: "Maximum cost of all requests there. Default: no limit.",
  usd: "Maximum cost in each span, in USD.",
  per: "Span of the calendar, in UTC. A week begins on Monday.",
  cache: "Response cache, separate for each account.",
  requests:
    "The requests that use the cache: `deterministic` for requests with temperature 0 and those that ask for it, `asked` only for those that ask for it, or `all`.",
  ttl_seconds: "Lifetime of a cached answer.",
  price_factor: "Factor of the price that a cached answer costs.",
  semantic: "Semantic cache: requests with the same meaning share an answer. Default: only identical requests do.",
  embedding: "Id of the embedding model that compares requests.",
  threshold: "Minimum cosine similarity of two requests that share an answer.",
  guardrails: "Names of `guardrails` that check requests and answers of the model, in this order.",
  shadow: "A second model that also receives a share of the requests. Clients never see its answers.",
  shadow_model: "Id of the second model.",
  split: "Other models that answer a share of the requests. The model itself answers the rest.",
  split_model: "Id of the model that answers this share.",
  percent: "Share of the requests in percent, above 0.",
} as const;

type Said<Value> = Value | null | undefined;

interface OverflowWire {
  to: { upstream: string; cost?: Said<PriceWire>; cost_of?: Said<string> }[];
  after_seconds?: Said<number>;
  prompt_tokens_above?: Said<number>;
  hours?: Said<string[]>;
  most_usd_per_request?: Said<number>;
  spend?: Said<{ usd: number; per: (typeof overflowSpans)[number] }>;
}

interface CacheWire {
  requests?: Said<(typeof cachedRequests)[number]>;
  ttl_seconds?: Said<number>;
  price_factor?: Said<number>;
  semantic?: Said<{ model: string; threshold: number }>;
}

/** The policies in the format of the API and headrace.yaml. A missing or null policy is off. */
export interface PoliciesWire {
  continuation?: Said<boolean>;
  overflow?: Said<OverflowWire>;
  cache?: Said<CacheWire>;
  guardrails?: Said<string[]>;
  shadow?: Said<SplitPart>;
  split?: Said<SplitPart[]>;
}

/** Converts policies to the format of the code. Returns undefined if all are off. */
export function policiesFromWire(said: PoliciesWire): ModelPolicies | undefined {
  const { continuation, overflow, cache, guardrails, shadow, split } = said;
  const policies: ModelPolicies = {
    ...(continuation ? { continuation } : {}),
    ...(overflow ? { overflow: overflowFromWire(overflow) } : {}),
    ...(cache ? { cache: cacheFromWire(cache) } : {}),
    ...(guardrails && guardrails.length > 0 ? { guardrails } : {}),
    ...(shadow ? { shadow } : {}),
    ...(split && split.length > 0 ? { split } : {}),
  };
  return Object.keys(policies).length > 0 ? policies : undefined;
}

export function policiesToWire(policies: ModelPolicies): PoliciesWire {
  const { continuation, overflow, cache, guardrails, shadow, split } = policies;
  return {
    ...(continuation ? { continuation } : {}),
    ...(overflow ? { overflow: overflowToWire(overflow) } : {}),
    ...(cache ? { cache: cacheToWire(cache) } : {}),
    ...(guardrails ? { guardrails: [...guardrails] } : {}),
    ...(shadow ? { shadow: { ...shadow } } : {}),
    ...(split ? { split: split.map((part) => ({ ...part })) } : {}),
  };
}

function overflowFromWire(said: OverflowWire): OverflowPolicy {
  const { most_usd_per_request: maxUsd = null, spend } = said;
  return {
    to: said.to.map(({ upstream, cost, cost_of }) => ({
      upstream,
      cost: cost ? priceFromWire(cost) : null,
      costOf: cost_of ?? null,
    })),
    afterSeconds: said.after_seconds ?? null,
    promptTokensAbove: said.prompt_tokens_above ?? null,
    hours: said.hours?.map(hoursFromText) ?? null,
    mostNanoUsdPerRequest: maxUsd === null ? null : nanoOfUsd(maxUsd),
    spend: spend ? { nanoUsd: nanoOfUsd(spend.usd), per: spend.per } : null,
  };
}

function overflowToWire({ to, hours, mostNanoUsdPerRequest: mostNanoUsd, spend, ...said }: OverflowPolicy) {
  return {
    to: to.map(({ upstream, cost, costOf }) => ({ upstream, cost: cost && priceToWire(cost), cost_of: costOf })),
    after_seconds: said.afterSeconds,
    prompt_tokens_above: said.promptTokensAbove,
    hours: hours?.map(hoursToText) ?? null,
    most_usd_per_request: mostNanoUsd === null ? null : usdOf(mostNanoUsd),
    spend: spend && { usd: usdOf(spend.nanoUsd), per: spend.per },
  };
}

function cacheFromWire({ requests, ttl_seconds, price_factor, semantic }: CacheWire): CachePolicy {
  return {
    requests: requests ?? defaultCachePolicy.requests,
    ttlSeconds: ttl_seconds ?? defaultCachePolicy.ttlSeconds,
    priceFactor: price_factor ?? defaultCachePolicy.priceFactor,
    semantic: semantic ? { embeddingModel: semantic.model, threshold: semantic.threshold } : null,
  };
}

function cacheToWire({ requests, ttlSeconds, priceFactor, semantic }: CachePolicy) {
  return {
    ...{ requests, ttl_seconds: ttlSeconds, price_factor: priceFactor },
    semantic: semantic && { model: semantic.embeddingModel, threshold: semantic.threshold },
  };
}
