// The form of a model's policies, and its API request.
import type { CreateManagedModelRequest } from "../../../api/types.ts";
import { numberOf, type TypedNumber } from "../../../parts/editing/typed-number.ts";

export type Policies = NonNullable<CreateManagedModelRequest["policies"]>;
type Overflow = NonNullable<Policies["overflow"]>;
type Target = Overflow["to"][number];
type Cost = NonNullable<Target["cost"]>;
export type Span = NonNullable<Overflow["spend"]>["per"];
export type CachedRequests = NonNullable<NonNullable<Policies["cache"]>["requests"]>;

export interface FormTarget {
  /** The React key of the target. */
  key: number;
  upstream: string;
  input: TypedNumber;
  output: TypedNumber;
  /** Rates that only the API can set; the form keeps them. */
  otherRates: Omit<Cost, "input" | "output">;
  /** An entry of the price list, which only the API can set; the form keeps it. */
  costOf: string | null;
}

/** The fields of the overflow policy. An empty field means no condition, or no limit. */
export interface OverflowForm {
  to: FormTarget[];
  afterSeconds: TypedNumber;
  promptTokens: TypedNumber;
  hours: string[];
  maxUsd: TypedNumber;
  spendUsd: TypedNumber;
  spendPer: Span;
}

export interface CacheForm {
  requests: CachedRequests;
  ttlSeconds: TypedNumber;
  /** A percentage of the price. */
  price: TypedNumber;
  /** The embedding model that finds similar requests; empty means that only identical requests match. */
  embedder: string;
  threshold: TypedNumber;
}

export interface FormShare {
  /** The React key of the share. */
  key: number;
  /** The id of the other model; empty while none is chosen. */
  model: string;
  percent: TypedNumber;
}

/** The fields of all policies. A policy that is off is null, false or empty. */
export interface PoliciesForm {
  continuation: boolean;
  overflow: OverflowForm | null;
  cache: CacheForm | null;
  guardrails: string[];
  shadow: FormShare | null;
  split: FormShare[];
}

export const newOverflow: OverflowForm = {
  ...{ to: [], afterSeconds: 5, promptTokens: "", hours: [], maxUsd: "", spendUsd: "", spendPer: "day" },
};
export const newCache: CacheForm = {
  ...{ requests: "deterministic", ttlSeconds: 3_600, price: 0, embedder: "", threshold: 0.95 },
};

export function policiesFormOf(policies: Policies | null | undefined): PoliciesForm {
  const { continuation, overflow, cache, guardrails, shadow, split } = policies ?? {};
  return {
    continuation: continuation ?? false,
    overflow: overflow ? overflowFormOf(overflow) : null,
    cache: cache ? cacheFormOf(cache) : null,
    guardrails: [...(guardrails ?? [])],
    shadow: shadow ? { key: 0, ...shadow } : null,
    split: (split ?? []).map((share, key) => ({ key, ...share })),
  };
}

/** Returns each policy for the API; null if it is off. */
export function policiesToWire(form: PoliciesForm) {
  const { continuation, overflow, cache, guardrails, shadow, split } = form;
  return {
    continuation: continuation ? true : null,
    overflow: overflow && overflowToWire(overflow),
    cache: cache && cacheToWire(cache),
    guardrails: guardrails.length > 0 ? guardrails : null,
    shadow: shadow && shareToWire(shadow),
    split: split.length > 0 ? split.map(shareToWire) : null,
  };
}

function overflowFormOf({ to, spend, ...said }: Overflow): OverflowForm {
  return {
    to: to.map(({ upstream, cost, cost_of }, key) => {
      const { input = "", output = "", ...otherRates } = cost ?? {};
      return { key, upstream, input, output, otherRates, costOf: cost_of ?? null };
    }),
    afterSeconds: said.after_seconds ?? "",
    promptTokens: said.prompt_tokens_above ?? "",
    hours: [...(said.hours ?? [])],
    maxUsd: said.most_usd_per_request ?? "",
    spendUsd: spend?.usd ?? "",
    spendPer: spend?.per ?? "day",
  };
}

function overflowToWire(form: OverflowForm): Overflow {
  const spend = numberOf(form.spendUsd);
  return {
    to: form.to.map(targetToWire),
    after_seconds: numberOf(form.afterSeconds),
    prompt_tokens_above: numberOf(form.promptTokens),
    hours: form.hours.length > 0 ? form.hours : null,
    most_usd_per_request: numberOf(form.maxUsd),
    spend: spend === null ? null : { usd: spend, per: form.spendPer },
  };
}

function targetToWire({ upstream, costOf, otherRates, ...typed }: FormTarget): Target {
  const [input, output] = [numberOf(typed.input), numberOf(typed.output)];
  const isPriced = input !== null || output !== null;
  // The server refuses an incomplete price, and the form shows the error beside its field.
  return { upstream, cost: isPriced ? ({ ...otherRates, ...said({ input, output }) } as Cost) : null, cost_of: costOf };
}

function said<Values extends object>(values: Values): Partial<Values> {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== null)) as Partial<Values>;
}

function cacheFormOf({ requests, ttl_seconds, price_factor, semantic }: NonNullable<Policies["cache"]>): CacheForm {
  return {
    requests: requests ?? newCache.requests,
    ttlSeconds: ttl_seconds ?? newCache.ttlSeconds,
    price: inDecimals((price_factor ?? 0) * 100),
    embedder: semantic?.model ?? "",
    threshold: semantic?.threshold ?? newCache.threshold,
  };
}

function cacheToWire({ requests, ttlSeconds, price, embedder, threshold }: CacheForm) {
  const percent = numberOf(price);
  return {
    requests,
    ttl_seconds: numberOf(ttlSeconds),
    price_factor: percent === null ? null : inDecimals(percent / 100),
    semantic: embedder === "" ? null : { model: embedder, threshold: numberOf(threshold) ?? 0 },
  };
}

/** Rounds away floating-point errors: 0.07 times 100 is slightly more than 7. */
function inDecimals(value: number): number {
  return Number(value.toFixed(6));
}

function shareToWire({ model, percent }: FormShare) {
  return { model, percent: numberOf(percent) ?? 0 };
}
