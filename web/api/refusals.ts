// What limits refused, and the words that people understand for why, with what to do about it.
import { useRead } from "./queries.ts";
import { nowSeconds } from "./server-time.ts";
import type { Refusal, RefusalList } from "./types.ts";

export type RefusalReason = Refusal["reason"];

/** The server gives no more of them at once. */
export const mostRefusals = 1000;

interface Words {
  title: string;
  why: string;
  todo: string;
  /** Where that is done. */
  place: { title: string; path: string };
}

const atKeys = { title: "API keys", path: "/settings/api-keys" };
const atLimits = { title: "Limits", path: "/settings/limits" };

export const refusalWords: Readonly<Record<RefusalReason, Words>> = {
  key_requests: {
    title: "Request rate of a key",
    why: "A key sent more requests than its own rate limit allows.",
    todo: "Space requests out, wait as long as the answer's Retry-After says, or raise the limit of the key.",
    place: atKeys,
  },
  key_tokens: {
    title: "Token rate of a key",
    why: "A key used more tokens in a minute than it may.",
    todo: "Send shorter prompts, ask for fewer tokens (max_tokens), or spread requests over keys with limits of their own.",
    place: atKeys,
  },
  key_quota: {
    title: "Monthly quota of a key",
    why: "A key has used up the tokens or the spend that it has for this month.",
    todo: "Raise or remove the quota of the key, or wait for the month to end.",
    place: atKeys,
  },
  account_requests: {
    title: "Request rate of the account",
    why: "All keys together sent more requests in a minute than the tier allows.",
    todo: "Space requests out, or ask the operator of this server for a higher tier.",
    place: atLimits,
  },
  account_tokens: {
    title: "Token rate of the account",
    why: "All keys together used more tokens in a minute than the tier allows.",
    todo: "Send shorter prompts, ask for fewer tokens (max_tokens), or ask the operator for a higher tier.",
    place: atLimits,
  },
  account_quota: {
    title: "Monthly quota of the account",
    why: "The account has used up the tokens or the spend of this month.",
    todo: "Ask the operator of this server for a higher tier, or wait for the month to end.",
    place: atLimits,
  },
  member_quota: {
    title: "Quota of a member",
    why: "A person has used up what an owner of the account allows them, over all of their keys and apps.",
    todo: "Ask an owner of the account for a higher quota, or wait until the quota resets.",
    place: { title: "Members", path: "/settings/members" },
  },
  app_quota: {
    title: "Quota of an app",
    why: "An app has used up what the person who allowed it lets it use.",
    todo: "Raise or remove the quota where the app was allowed, or wait until the quota resets.",
    place: { title: "Apps", path: "/apps" },
  },
  capacity: {
    title: "No free model server",
    why: "Every server of the model was busy, and none had a place in time.",
    todo: "Try again a little later or with another model; an operator can add upstreams or let them run more at once.",
    place: { title: "Models", path: "/catalog" },
  },
};

export const refusalReasons = Object.keys(refusalWords) as RefusalReason[];

/** What was refused for one reason: `lines` by key and model, that of the most requests first, each with one of its kind. */
export interface RefusalsOfReason {
  reason: RefusalReason;
  requests: number;
  /** Unix seconds. */
  lastAt: number;
  lines: { id: string; first: Refusal; requests: number }[];
}

/** The reason for which most was refused first. */
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

/** How many requests. */
export function refusedIn(refusals: readonly Refusal[]): number {
  return refusals.reduce((sum, { requests }) => sum + requests, 0);
}

/** The refusals of the last `days` days, the newest first. */
export function useRefusals(days: number, everyMs: number | undefined) {
  // To whole hours: what is asked stays the same for a while, and is found again.
  const start = Math.floor(nowSeconds() / 3_600) * 3_600 - days * 86_400 + 3_600;
  return useRead<RefusalList>("/v1/refusals", { start }, { keep: true, ...(everyMs ? { everyMs } : {}) });
}
