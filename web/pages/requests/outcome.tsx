// How a request ended, as a word with an icon, and what its error means.
import type { Request } from "../../api/types.ts";
import { State, type StateKind } from "../../parts/state.tsx";

type Ending = Request["outcome"];

export const outcomes = ["completed", "failed", "cancelled", "interrupted"] as const satisfies readonly Ending[];

export const outcomeNames: Record<Ending, string> = {
  completed: "Completed",
  failed: "Failed",
  cancelled: "Cancelled",
  interrupted: "Interrupted",
};

export const outcomeMeanings: Record<Ending, string> = {
  completed: "It was answered in full.",
  failed: "It ended with an error.",
  cancelled: "Its client left before the end. What was generated until then is counted.",
  interrupted: "The server's process ended before the answer did. What was delivered until then is counted.",
};

const kinds: Record<Ending, StateKind> = {
  completed: "good",
  failed: "bad",
  cancelled: "plain",
  interrupted: "warning",
};

export function Outcome({ outcome }: { outcome: Ending }) {
  return <State kind={kinds[outcome]}>{outcomeNames[outcome]}</State>;
}

/** What to do about errors that end a request after it was let in; undefined for what says all by its name. */
export function errorMeaning(code: string): string | undefined {
  return meanings[code];
}

const meanings: Readonly<Record<string, string>> = {
  invalid_request: "The model server did not accept the request. Its answer named the field and what is allowed.",
  upstream_error: "Every model server that could answer failed. Models shows which of them work now.",
  upstream_timeout: "The model server did not answer in time. A shorter prompt or fewer tokens may help.",
  service_unavailable: "There was no free place at a model server, or a store could not be reached. Try again later.",
  rate_limit_exceeded: "A rate limit was reached. The answer's Retry-After said when to try again.",
  insufficient_quota: "The quota was used up.",
  model_not_found: "The model does not exist there, or this key may not use it.",
  internal_error:
    "A fault of the gateway. Whoever operates the server finds the reason in its log by the request's id.",
};
