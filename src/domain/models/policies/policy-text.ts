// Policies of models as the API and headrace.yaml write them, and how they are kept.
import { nanoOfUsd, usdOf } from "../../../base/money.ts";
import { hoursFromText, hoursToText, type PriceWire, priceFromWire, priceToWire } from "../price-text.ts";
import { type CachePolicy, type cachedRequests, defaultCachePolicy } from "./cache.ts";
import type { ModelPolicies } from "./model-policies.ts";
import type { OverflowPolicy, overflowSpans } from "./overflow.ts";
import type { SplitPart } from "./traffic.ts";

export const maxOverflowTargets = 16;
export const maxSplitParts = 8;
export const maxModelGuardrails = 16;
/** USD. */
export const maxSpend = 1_000_000;
export const maxWaitSeconds = 86_400;
export const maxPromptTokens = 1_000_000_000;
export const maxCacheSeconds = 2_592_000;

/** What each means, for the reference of the file and that of the API. */
export const policyDocs = {
  policies: "What is done with its requests beyond that they are answered. Left out: nothing.",
  continuation:
    "Whether a stream that its server cuts goes on at another deployment, where the text can be continued exactly.",
  overflow: "Deployments that are asked only where the others keep a request waiting, or as is said here.",
  to: "The upstreams whose deployments of the model come behind all others, the cheapest first.",
  upstream: "Name of an upstream or node that has a deployment of the model.",
  cost: "What its use costs you, by which the cheapest is asked first, in the keys of `price` of a model. Left out: as `cost_of` says, else as the model is priced.",
  cost_of:
    "A model of the price list, as `headrace prices` names it: what its use costs you where `cost` does not say it.",
  after_seconds:
    "They are asked where the others are expected to keep a request waiting for this long. Left out: a wait is no reason.",
  prompt_tokens_above:
    "They are asked for prompts of more tokens than this. Left out: the length of a prompt is no reason.",
  hours: "Parts of a day (UTC) at which they are asked as any other, such as `18:00-08:00`. Left out: none.",
  most_usd_per_request: "The most that one request may be expected to cost there, in USD. Left out: any.",
  spend: "What all requests together may cost there. Left out: any.",
  usd: "What may be spent in each span, in USD.",
  per: "The span, by the calendar in UTC; a week begins on Monday.",
  cache: "Answers that are kept, to be given again to the same account.",
  requests:
    "Which requests: `deterministic` for those of temperature 0 and those that ask for it, `asked` for those that ask for it alone, `all` for every one.",
  ttl_seconds: "How long an answer is kept.",
  price_factor: "The part of its price that an answer costs which is given again.",
  semantic: "Whether requests that mean the same get the same answer. Left out: only the same request does.",
  embedding: "Id of the embedding model by which they are compared.",
  threshold: "Cosine similarity from which on two requests count as the same.",
  guardrails: "Names of `guardrails` that look at its requests and answers, in this order.",
  shadow: "A second model that gets a share of its requests as well, its answers unseen.",
  shadow_model: "Id of the model that gets them as well.",
  split: "Models that answer a share of its requests in its place. What is left stays with the model itself.",
  split_model: "Id of the model that answers.",
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

/** A policy that is left out, or null, is off. */
export interface PoliciesWire {
  continuation?: Said<boolean>;
  overflow?: Said<OverflowWire>;
  cache?: Said<CacheWire>;
  guardrails?: Said<string[]>;
  shadow?: Said<SplitPart>;
  split?: Said<SplitPart[]>;
}

/** Undefined where all of them are off. */
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
