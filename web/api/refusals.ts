// Loads the requests that limits refused, and explains each reason and its remedy in plain words.
import { useRead } from "./queries.ts";
import { nowSeconds } from "./server-time.ts";
import type { Refusal, RefusalList } from "./types.ts";

export type RefusalReason = Refusal["reason"];

/** Maximum number of refusals that the server returns in one answer. */
export const maxRefusals = 1000;

interface Words {
  title: string;
  why: string;
  todo: string;
  /** The page where the user can act on the advice. */
  place: { title: string; path: string };
}

const atKeys = { title: "API keys", path: "/settings/api-keys" };
const atLimits = { title: "Limits", path: "/settings/limits" };

export const refusalWords: Readonly<Record<RefusalReason, Words>> = {
  key_requests: {
    title: "Request rate of a key",
    why: "A key sent more requests than its own rate limit allows.",
    todo: "Send requests less often, wait for the time in the Retry-After header, or raise the limit of the key.",
    place: atKeys,
  },
  key_tokens: {
    title: "Token rate of a key",
    why: "A key used more tokens in a minute than its own limit allows.",
    todo: "Send shorter prompts, lower max_tokens, or spread requests over several keys.",
    place: atKeys,
  },
  key_quota: {
    title: "Monthly quota of a key",
    why: "A key has used up its tokens or spend for this month.",
    todo: "Raise or remove the quota of the key, or wait for the month to end.",
    place: atKeys,
  },
  account_requests: {
    title: "Request rate of the account",
    why: "All keys of the account together sent more requests in a minute than its tier allows.",
    todo: "Send requests less often, or ask an operator of this server for a higher tier.",
    place: atLimits,
  },
  account_tokens: {
    title: "Token rate of the account",
    why: "All keys of the account together used more tokens in a minute than its tier allows.",
    todo: "Send shorter prompts, lower max_tokens, or ask an operator for a higher tier.",
    place: atLimits,
  },
  account_quota: {
    title: "Monthly quota of the account",
    why: "The account has used up its tokens or spend for this month.",
    todo: "Ask an operator of this server for a higher tier, or wait for the month to end.",
    place: atLimits,
  },
  member_quota: {
    title: "Quota of a member",
    why: "A member has used up the quota that an owner of the account set for them. All of their keys and apps count.",
    todo: "Ask an owner of the account for a higher quota, or wait until the quota resets.",
    place: { title: "Members", path: "/settings/members" },
  },
  app_quota: {
    title: "Quota of an app",
    why: "An app has used up the quota that was set when access was allowed.",
    todo: "Raise or remove the quota under Apps, Apps I allowed, or wait until it resets.",
    place: { title: "Apps", path: "/apps" },
  },
  tag_quota: {
    title: "Quota of a tag",
    why: "The requests with one tag have used up the quota for this tag.",
    todo: "Ask the owner of the quota for more, send requests with another tag, or wait until the quota resets.",
    place: atLimits,
  },
  organization_quota: {
    title: "Quota of the organization",
    why: "The accounts of the organization have used up the quota that they share.",
    todo: "Ask an operator of this server for a higher quota, or wait until the quota resets.",
    place: atLimits,
  },
  end_user_quota: {
    title: "Quota of an end user",
    why: "A user of your application has used up their budget. The request named this user.",
    todo: "Ask an owner of the account for a higher budget for this user, or wait until the quota resets.",
    place: atLimits,
  },
  capacity: {
    title: "All model servers were busy",
    why: "Every server of the model was busy, and the request waited too long.",
    todo: "Try again later or use another model. An operator can add upstreams or allow more concurrent requests.",
    place: { title: "Models", path: "/catalog" },
  },
};

export const refusalReasons = Object.keys(refusalWords) as RefusalReason[];

/** All refusals for one reason. `lines` has an entry per key and model, with the most requests first. */
export interface RefusalsOfReason {
  reason: RefusalReason;
  requests: number;
  /** The time of the last refusal, in Unix seconds. */
  lastAt: number;
  lines: { id: string; first: Refusal; requests: number }[];
}

/** Groups refusals by reason, the most frequent reason first. */
export function refusalsByReason(refusals: readonly Refusal[]): RefusalsOfReason[] {
  return [...Map.groupBy(refusals, ({ reason }) => reason)]
    .map(([reason, all]) => ({
      ...{ reason, requests: refusedIn(all), lastAt: Math.max(...all.map(({ last_at }) => last_at)) },
      lines: linesOf(all),
    }))
    .sort((a, b) => b.requests - a.requests);
}

function linesOf(refusals: readonly Refusal[]): RefusalsOfReason["lines"] {
  return [...Map.groupBy(refusals, ({ key, model }) => `${key} ${model}`)]
    .flatMap(([id, same]) => {
      const [first] = same;
      return first ? [{ id, first, requests: refusedIn(same) }] : [];
    })
    .sort((a, b) => b.requests - a.requests);
}

/** Counts the refused requests. */
export function refusedIn(refusals: readonly Refusal[]): number {
  return refusals.reduce((sum, { requests }) => sum + requests, 0);
}

/** The refusals of the last `days` days, the newest first. */
export function useRefusals(days: number, everyMs: number | undefined) {
  // The start is rounded to whole hours, so that the query stays the same and is found in the cache.
  const start = Math.floor(nowSeconds() / 3_600) * 3_600 - days * 86_400 + 3_600;
  return useRead<RefusalList>("/v1/refusals", { start }, { keep: true, ...(everyMs ? { everyMs } : {}) });
}
