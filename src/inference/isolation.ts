// Keeps accounts apart at one model server: its cache, its queue, and the names that clients tell it of their users.

import type { IsolatedMember, Isolation } from "../domain/models/isolation.ts";
import type { Priority } from "../domain/models/policies/priority.ts";
import type { AccountSeal } from "../domain/seal.ts";
import type { DecodedRequest } from "../requests/decoded-request.ts";
import type { Hints } from "../requests/dialects/conversation/conversation.ts";

/** JSON of members in place of the client's, or beside them; null: left out. */
export type IsolatedEdits = Readonly<Record<string, string | null>>;

/** In the terms of vLLM: lower is earlier, and 0 what a request has that says nothing. */
const ranks: Readonly<Record<Priority, number>> = { high: -1, normal: 0, low: 1 };

/**
 * What the server gets otherwise than the client said it; undefined where that is nothing, as for most requests.
 *
 * A client's own `cache_salt` is its part of the cache within that of its account: it is hashed with the account, whether the
 * server is told one for each or not, so that nobody reaches by a salt what another account asked. Its `priority` would be
 * one before other accounts: it is left out.
 */
export function isolated(
  request: DecodedRequest,
  isolation: Isolation | undefined,
  seal: AccountSeal,
  priority: Priority | undefined,
): IsolatedEdits | undefined {
  if (isolation === undefined) return undefined;
  const { isolating } = request;
  const isRanked = isolation.priority && priority !== undefined;
  if (isolating === undefined && !isolation.cacheSalt && !isRanked) return undefined;
  const edits: Record<string, string | null> = {};
  const salt = isolation.cacheSalt ? seal.pseudonym("cache_salt", "") : "";
  // A node knows nobody's account, and an empty one would be refused.
  if (salt !== "") edits["cache_salt"] = JSON.stringify(salt);
  if (isolating) for (const member of isolating) isolate(member, request, isolation, seal, edits);
  if (isRanked) edits["priority"] = String(ranks[priority]);
  return Object.keys(edits).length === 0 ? undefined : edits;
}

function isolate(
  member: IsolatedMember,
  request: DecodedRequest,
  { identifiers }: Isolation,
  seal: AccountSeal,
  edits: Record<string, string | null>,
): void {
  const { name } = member;
  if (name === "priority") {
    edits[name] = null;
    return;
  }
  if (name !== "cache_salt" && identifiers === "as_sent") return;
  if (name === "metadata" && !request.dialect.namesUserInMetadata) return;
  const value = request.valueOf(member);
  if (name === "metadata") {
    const { user_id: user, ...others } = (value ?? {}) as { user_id?: unknown };
    if (user === undefined || user === null) return;
    const kept = identifiers === "removed" ? others : { ...others, user_id: pseudonymOf(name, user, seal) };
    edits[name] = JSON.stringify(kept);
  } else if (value !== null) {
    const isRemoved = name !== "cache_salt" && identifiers === "removed";
    edits[name] = isRemoved ? null : JSON.stringify(pseudonymOf(name, value, seal));
  }
}

/**
 * A user has one name, whichever member tells it: who goes on in another format is the same one there. What is no text where
 * one should be, such as a number, tells as much.
 */
function pseudonymOf(name: IsolatedMember["name"], value: unknown, seal: AccountSeal): string {
  const use = name === "prompt_cache_key" || name === "cache_salt" ? name : "user";
  return seal.pseudonym(use, typeof value === "string" ? value : JSON.stringify(value));
}

/** The same of a conversation that is written in another format. */
export function isolatedHints(hints: Hints, isolation: Isolation | undefined, seal: AccountSeal): Hints {
  const { user, promptCacheKey: key } = hints;
  if (!isolation || isolation.identifiers === "as_sent" || (user === undefined && key === undefined)) return hints;
  if (isolation.identifiers === "removed") return { ...hints, user: undefined, promptCacheKey: undefined };
  return {
    ...hints,
    user: user && pseudonymOf("user", user, seal),
    promptCacheKey: key && pseudonymOf("prompt_cache_key", key, seal),
  };
}
