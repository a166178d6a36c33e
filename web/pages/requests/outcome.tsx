// How a request ended, as a word with an icon, and what its error means.
import type { Request } from "../../api/types.ts";
import { State, type StateKind } from "../../parts/words/state.tsx";

type Ending = Request["outcome"];

interface Look {
  name: string;
  kind: StateKind;
  meaning: string;
}

export const outcomeLooks: Record<Ending, Look> = {
  completed: { name: "Completed", kind: "good", meaning: "It was answered in full." },
  failed: { name: "Failed", kind: "bad", meaning: "It ended with an error." },
  refused: {
    name: "Refused",
    kind: "warning",
    meaning: "It was answered with an error before it began, so it used nothing.",
  },
  cancelled: {
    name: "Cancelled",
    kind: "plain",
    meaning: "Its client left before the end. What was generated until then is counted.",
  },
  interrupted: {
    name: "Interrupted",
    kind: "warning",
    meaning: "The server's process ended before the answer did. What was delivered until then is counted.",
  },
};

export const outcomes = Object.keys(outcomeLooks) as Ending[];

export function Outcome({ outcome }: { outcome: Ending }) {
  const { name, kind } = outcomeLooks[outcome];
  return <State kind={kind}>{name}</State>;
}

/** What an error that ended a request means; undefined for what says all by its name. */
export function errorMeaning(code: string): string | undefined {
  return meanings[code];
}

/** What to do about an error with which a request was refused; `href`: the page where. */
export function remedyFor(code: string): { text: string; page?: { name: string; href: string } } | undefined {
  return remedies[code];
}

const limitsPage = { name: "Limits", href: "/settings/limits" };

const remedies: Readonly<Record<string, ReturnType<typeof remedyFor>>> = {
  invalid_request: { text: "Change what the message names in the request. The same request is refused again." },
  request_too_large: { text: "Send less at once, or ask an operator to raise limits.body_bytes." },
  unsupported_media_type: {
    text: "Send JSON in UTF-8, with Content-Type: application/json; compressed, if at all, by gzip, deflate, br or zstd.",
  },
  model_not_found: {
    text: "Ask for a model that this key may use, written as it is listed there.",
    page: { name: "Models", href: "/catalog" },
  },
  insufficient_scope: {
    text: "Use a key with the scope that the message names.",
    page: { name: "Keys", href: "/settings/api-keys" },
  },
  permission_denied: {
    text: "The message says what may not be done with this key.",
    page: { name: "Keys", href: "/settings/api-keys" },
  },
  rate_limit_exceeded: {
    text: "Send requests further apart, as the answer's Retry-After said; clients such as OpenAI's do so by themselves. What the limits are:",
    page: limitsPage,
  },
  insufficient_quota: {
    text: "Wait for the next month, or have the quota raised. How far it is used:",
    page: limitsPage,
  },
  service_unavailable: { text: "Try again later: clients such as OpenAI's do so by themselves." },
};

const meanings: Readonly<Record<string, string>> = {
  invalid_request: "The model server did not accept the request. Its answer named the field and what is allowed.",
  upstream_error: "Every model server that could answer failed. Models shows which of them work now.",
  upstream_timeout: "The model server did not answer in time. A shorter prompt or fewer tokens may help.",
  service_unavailable: "There was no free place at a model server, or a store could not be reached. Try again later.",
  rate_limit_exceeded: "A rate limit was reached. The answer's Retry-After said when to try again.",
  insufficient_quota: "The quota was used up.",
  quota_spent: "A quota with a hard stop was spent, which ended the answer.",
  model_not_found: "The model does not exist there, or this key may not use it.",
  internal_error:
    "A fault of the gateway. Whoever operates the server finds the reason in its log by the request's id.",
};
