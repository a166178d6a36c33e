// The policies of a model as sentences.
import type { ManagedModel } from "../../../api/types.ts";
import { count, money, span } from "../../../parts/words/figures.ts";
import type { CachedRequests, Policies } from "./policy-form.ts";

/** Returns a sentence for each policy; an empty list if the model has no policies. */
export function policySentences({
  settings,
  overflow_spend: spend,
}: Pick<ManagedModel, "settings" | "overflow_spend">): string[] {
  const { continuation, overflow, cache, guardrails, shadow, split } = settings?.policies ?? {};
  return [
    ...(continuation
      ? ["If a server cuts a stream, another server continues it, where an exact continuation is possible."]
      : []),
    ...(overflow ? [overflowSentence(overflow)] : []),
    ...(spend ? [`Overflow has cost ${money(spend.spent)} of ${money(spend.limit)} this ${spend.per}.`] : []),
    ...(cache ? [cacheSentence(cache)] : []),
    ...(guardrails?.length ? [`Guardrails check requests and answers: ${listed(guardrails)}.`] : []),
    ...(shadow ? [`${shadow.percent} % of the requests are also sent to ${shadow.model}, for comparison only.`] : []),
    ...(split ?? []).map(({ model, percent }) => `${model} answers ${percent} % of the requests.`),
  ];
}

function overflowSentence(overflow: NonNullable<Policies["overflow"]>): string {
  const { to, after_seconds: after, prompt_tokens_above: tokens, hours, most_usd_per_request: most, spend } = overflow;
  const reasons = [
    ...(after == null ? [] : [`if other servers would make a request wait for ${after} s`]),
    ...(tokens == null ? [] : [`for prompts of more than ${count(tokens)} tokens`]),
    ...(hours == null ? [] : [`at ${listed(hours)} (UTC)`]),
  ];
  const bounds = [
    ...(most == null ? [] : [`${money(most)} per request`]),
    ...(spend == null ? [] : [`${money(spend.usd)} per ${spend.per}`]),
  ];
  const isOne = to.length === 1;
  const asked =
    reasons.length > 0
      ? `${isOne ? "is" : "are"} used ${listed(reasons, "or")}`
      : `${isOne ? "is" : "are"} used after all other servers`;
  const upstreams = to.map(({ upstream }) => upstream);
  return `${listed(upstreams)} ${asked}${bounds.length > 0 ? `, for at most ${listed(bounds)}` : ""}.`;
}

export const cachedWords: Readonly<Record<CachedRequests, string>> = {
  deterministic: "Temperature 0, or if the request asks for it",
  asked: "Only if the request asks for it",
  all: "Every request",
};

const which: Readonly<Record<CachedRequests, string>> = {
  deterministic: "with temperature 0 or asking for the cache",
  asked: "asking for the cache",
  all: "of any kind",
};

function cacheSentence(cache: NonNullable<Policies["cache"]>): string {
  const { requests, ttl_seconds: seconds, price_factor: factor, semantic } = cache;
  const price = factor ? `at ${Number((factor * 100).toFixed(6))} % of the price` : "for free";
  const alike = semantic
    ? ` Requests with the same meaning match as well (${semantic.model}, similarity from ${semantic.threshold}).`
    : "";
  const time = span(seconds ?? 0);
  return `A repeated request of an account, ${which[requests ?? "deterministic"]}, gets the cached response for ${time}, ${price}.${alike}`;
}

function listed(words: readonly string[], last = "and"): string {
  return words.length < 2 ? words.join("") : `${words.slice(0, -1).join(", ")} ${last} ${words.at(-1)}`;
}
