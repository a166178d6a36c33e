// The outcome of a request, as a word with an icon, and the meaning of its error.
import type { Request } from "../../api/types.ts";
import { State, type StateKind } from "../../parts/words/state.tsx";

type Ending = Request["outcome"];

interface Look {
  name: string;
  kind: StateKind;
  meaning: string;
}

export const outcomeLooks: Record<Ending, Look> = {
  completed: { name: "Completed", kind: "good", meaning: "The request was answered completely." },
  failed: { name: "Failed", kind: "bad", meaning: "The request ended with an error." },
  refused: {
    name: "Refused",
    kind: "warning",
    meaning: "The request was refused before it started, so it used nothing.",
  },
  cancelled: {
    name: "Cancelled",
    kind: "plain",
    meaning: "The client disconnected before the end. Tokens generated until then are counted.",
  },
  interrupted: {
    name: "Interrupted",
    kind: "warning",
    meaning: "The server stopped before the answer was complete. Tokens delivered until then are counted.",
  },
};

export const outcomes = Object.keys(outcomeLooks) as Ending[];

export function Outcome({ outcome }: { outcome: Ending }) {
  const { name, kind } = outcomeLooks[outcome];
  return <State kind={kind}>{name}</State>;
}

/** Returns the meaning of an error code; undefined if the code explains itself. */
export function errorMeaning(code: string): string | undefined {
  return meanings[code];
}

/** Returns the remedy for the error of a refused request; `href` is the page for it. */
export function remedyFor(code: string): { text: string; page?: { name: string; href: string } } | undefined {
  return remedies[code];
}

const limitsPage = { name: "Limits", href: "/settings/limits" };

const remedies: Readonly<Record<string, ReturnType<typeof remedyFor>>> = {
  invalid_request: {
    text: "Change the part of the request that the message names. The same request would be refused again.",
  },
  request_too_large: { text: "Send a smaller request, or ask an operator to raise limits.body_bytes." },
  unsupported_media_type: {
    text: "Send JSON in UTF-8 with Content-Type: application/json. The supported compressions are gzip, deflate, br and zstd.",
  },
  model_not_found: {
    text: "Use the exact id of a model that this key may use. The list is under",
    page: { name: "Models", href: "/catalog" },
  },
  insufficient_scope: {
    text: "Use a key with the scope that the message names.",
    page: { name: "Keys", href: "/settings/api-keys" },
  },
  permission_denied: {
    text: "The message says what this key may not do.",
    page: { name: "Keys", href: "/settings/api-keys" },
  },
  rate_limit_exceeded: {
    text: "Wait for the time in the Retry-After header before you try again. Clients such as OpenAI's do so automatically. See the limits under",
    page: limitsPage,
  },
  insufficient_quota: {
    text: "Wait until the quota resets, or ask for a higher quota. See its usage under",
    page: limitsPage,
  },
  service_unavailable: { text: "Try again later. Clients such as OpenAI's do so automatically." },
};

const meanings: Readonly<Record<string, string>> = {
  invalid_request: "The model server rejected the request. Its answer names the field and the allowed values.",
  upstream_error: "All model servers for this model failed. The page Models shows which servers work now.",
  upstream_timeout: "The model server did not answer in time. A shorter prompt or fewer tokens may help.",
  service_unavailable: "All model servers were busy, or a database could not be reached. Try again later.",
  rate_limit_exceeded: "A rate limit was reached. The Retry-After header says when to try again.",
  insufficient_quota: "The quota was used up.",
  quota_spent: "A quota with a hard stop was used up and ended the answer.",
  model_not_found: "The model server does not have this model, or its key may not use it.",
  internal_error: "The gateway has a fault. An operator can find the reason in the server log under the request id.",
};
