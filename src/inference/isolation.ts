// Separates accounts that share a model server, by cache salts, priorities and pseudonyms of users.

import type { IsolatedMember, Isolation } from "../domain/models/isolation.ts";
import type { Priority } from "../domain/models/policies/priority.ts";
import type { AccountSeal } from "../domain/seal.ts";
import type { DecodedRequest } from "../requests/decoded-request.ts";
import type { Hints } from "../requests/dialects/conversation/conversation.ts";

/** Members of the request body as JSON text. They replace the client's members. The value null removes a member. */
export type IsolatedEdits = Readonly<Record<string, string | null>>;

/** Priorities in vLLM's numbers: a lower number runs earlier. vLLM's default is 0. */
const ranks: Readonly<Record<Priority, number>> = { high: -1, normal: 0, low: 1 };

/**
 * Returns the members of the body that are changed for the model server, or undefined if there are none. A client's
 * `cache_salt` is hashed together with its account, even if accounts get no salt of their own, so that no client can
 * reach the cache of another account. The client's `priority` is removed, because it would apply across accounts.
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
  // On a node the account is unknown, so the salt is empty. vLLM would refuse an empty salt.
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
 * Returns a pseudonym of a value. All members that name the user give the same pseudonym, so a user keeps it in another
 * API format.
 */
function pseudonymOf(name: IsolatedMember["name"], value: unknown, seal: AccountSeal): string {
  const use = name === "prompt_cache_key" || name === "cache_salt" ? name : "user";
  return seal.pseudonym(use, typeof value === "string" ? value : JSON.stringify(value));
}

/**
 * Returns a conversation's user and cache hints with pseudonyms, for a request that is translated to another format.
 */
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
