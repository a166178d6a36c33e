// The policies of a model as sentences.
import type { ManagedModel } from "../../../api/types.ts";
import { count, money, span } from "../../../parts/words/figures.ts";
import type { CachedRequests, Policies } from "./policy-form.ts";

/** None where it has none. */
export function policySentences({
  settings,
  overflow_spend: spend,
}: Pick<ManagedModel, "settings" | "overflow_spend">): string[] {
  const { continuation, overflow, cache, guardrails, shadow, split } = settings?.policies ?? {};
  return [
    ...(continuation
      ? ["A stream that its server cuts goes on at another place, where it can be continued exactly."]
      : []),
    ...(overflow ? [overflowSentence(overflow)] : []),
    ...(spend ? [`Its overflow has cost ${money(spend.spent)} of ${money(spend.limit)} this ${spend.per}.`] : []),
    ...(cache ? [cacheSentence(cache)] : []),
    ...(guardrails?.length ? [`Its requests and answers are looked at by ${listed(guardrails)}.`] : []),
    ...(shadow
      ? [`${shadow.percent} % of its requests go to ${shadow.model} as well; nobody sees those answers.`]
      : []),
    ...(split ?? []).map(({ model, percent }) => `${percent} % of its requests are answered by ${model}.`),
  ];
}

function overflowSentence(overflow: NonNullable<Policies["overflow"]>): string {
  const { to, after_seconds: after, prompt_tokens_above: tokens, hours, most_usd_per_request: most, spend } = overflow;
  const reasons = [
    ...(after == null ? [] : [`where the others would keep a request waiting for ${after} s`]),
    ...(tokens == null ? [] : [`for prompts of more than ${count(tokens)} tokens`]),
    ...(hours == null ? [] : [`at ${listed(hours)} (UTC)`]),
  ];
  const bounds = [
    ...(most == null ? [] : [`${money(most)} a request`]),
    ...(spend == null ? [] : [`${money(spend.usd)} a ${spend.per}`]),
  ];
  const isOne = to.length === 1;
  const asked =
    reasons.length > 0
      ? `${isOne ? "is" : "are"} asked ${listed(reasons, "or")}`
      : `${isOne ? "comes" : "come"} behind all others`;
  const places = to.map(({ upstream }) => upstream);
  return `${listed(places)} ${asked}${bounds.length > 0 ? `, for ${listed(bounds)} at most` : ""}.`;
}

export const cachedWords: Readonly<Record<CachedRequests, string>> = {
  deterministic: "Temperature 0, or asked for",
  asked: "Only where a request asks for it",
  all: "Every request",
};

const which: Readonly<Record<CachedRequests, string>> = {
  deterministic: "of temperature 0, or that asks for it",
  asked: "that asks for it",
  all: "of any kind",
};

function cacheSentence(cache: NonNullable<Policies["cache"]>): string {
  const { requests, ttl_seconds: seconds, price_factor: factor, semantic } = cache;
  const price = factor ? `at ${Number((factor * 100).toFixed(6))} % of the price` : "for nothing";
  const alike = semantic ? ` So is one that means the same, by ${semantic.model} from ${semantic.threshold} on.` : "";
  const time = span(seconds ?? 0);
  return `The same request of an account, ${which[requests ?? "deterministic"]}, is answered again for ${time}, ${price}.${alike}`;
}

function listed(words: readonly string[], last = "and"): string {
  return words.length < 2 ? words.join("") : `${words.slice(0, -1).join(", ")} ${last} ${words.at(-1)}`;
}
