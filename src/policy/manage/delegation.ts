// Delegation: a key creates, changes, rotates and revokes only keys within its own authority, and no key widens itself.
import { forbidden } from "../../base/errors.ts";
import { formatRange, type IpRange, parseRange, rangeCovers } from "../../base/text/ip-range.ts";
import { keyAmounts } from "../../domain/limits/amounts.ts";
import { isWithinRule, spanText } from "../../domain/limits/quota-rules.ts";
import { commonPatterns, coversPattern } from "../../domain/models/model-patterns.ts";
import type { ResponseCache } from "../../domain/models/policies/cache.ts";
import { defaultPriority, isWithinPriority, type Priority } from "../../domain/models/policies/priority.ts";
import { type ChainKey, type KeyChain, type KeyChanges, keyOf, type Principal } from "../../domain/principal.ts";
import type { Scope } from "../../domain/scope.ts";
import { commonTools, coversTools } from "../../domain/tools/tool-access.ts";
import { requireScope } from "../authorize.ts";

/** Maximum length of a chain of keys, from a key without a maker to the last. */
export const maxChainDepth = 8;

/** The attributes of a key that must not exceed those of its makers. Scopes are checked separately. */
export type Authority = Required<Omit<KeyChanges, "name" | "note" | "scopes" | "revokedAt">>;

/** A field that exceeds what a key allows. */
interface Excess {
  field: string;
  /** The requirement, such as `at most 5, the quota`. The error message continues with the owner of that quota. */
  must: string;
}

/** Throws for an app: apps act for an account, but never manage its keys and apps. */
export function requireKeyManager(principal: Principal): void {
  if (principal.appId === null) return;
  throw forbidden("Apps cannot manage keys or apps; use an API key of the account, or sign in.");
}

/**
 * Returns when the credential ends, by expiry or by a revocation that is already set, in Unix seconds; null for never.
 * Null for a person, because keys that a person creates do not end with the session or login.
 */
export function endOf(principal: Principal): number | null {
  if (principal.person) return null;
  return earliest([...principal.keys.map(keyEnd), principal.tokenExpiresAt ?? null]);
}

/** Returns the normalised address ranges that all keys of the principal allow; undefined allows all. */
export function addressesOf(principal: Principal): string[] | undefined {
  const lists = principal.keys.map((key) => key.allowedIps).filter((list) => list.length > 0);
  if (lists.length === 0) return undefined;
  return lists.map(parseRanges).reduce(common).map(formatRange);
}

/** Returns the model ids and patterns that all keys of the principal allow; undefined allows all of its environment. */
export function modelsOf({ modelAccess }: Principal): string[] | undefined {
  if (!modelAccess || modelAccess.models.length === 0) return undefined;
  return [...modelAccess.models.reduce(commonPatterns)].sort();
}

/**
 * Returns the tools that all keys of the principal allow, as in their lists; undefined allows all. The account's
 * current list is not included, because it applies at each use.
 */
export function toolsOf({ keys }: Principal): string[] | undefined {
  const lists = keys.flatMap(({ tools }) => (tools ? [tools] : []));
  return lists.length === 0 ? undefined : [...lists.reduce(commonTools, ["*"])].sort();
}

/** Returns the highest priority that the keys of the principal allow, if any of them sets one; null if none does. */
export function priorityOf({ keys, priority = defaultPriority }: Principal): Priority | null {
  return keys.some((key) => key.priority !== null) ? priority : null;
}

/** Throws if a key of the principal would make the chain of makers too long. */
export function requireDepth(principal: Principal): void {
  if (principal.keys.length < maxChainDepth) return;
  throw forbidden(
    `At most ${maxChainDepth} keys may stand one behind the other; make this key with one that was made earlier.`,
  );
}

type KeyVerb = "change" | "rotate" | "revoke" | "suspend" | "resume";

/**
 * Throws if the principal must not act on this key. For each key that restricts the principal, one of two must hold:
 * the key is a maker of the target, and so restricts the target too, or the target's attributes do not exceed the
 * key's. A key never acts on its own makers.
 */
export function requireWithin(principal: Principal, target: KeyChain, verb: KeyVerb): void {
  const [key, ...makers] = target.keys;
  if (principal.person) {
    requireRole(principal, key, verb);
    // The successor's secret is shown, so it must not give access to more tools than the person has.
    if (verb === "rotate") requireToolsWithin(principal, key.tools, makers);
    return;
  }
  // Keys of a rotation have the same limit id: a maker that was rotated is still a maker, although its children went to
  // its successor.
  if (principal.keys.slice(1).some((maker) => maker.limitId === key.limitId)) {
    throw forbidden(`A key cannot ${verb} a key that bounds it.`);
  }
  const inChain = target.keys.some((one) => one.id === keyOf(principal).id);
  requireScopes(principal, inChain ? commonScopes(target) : key.scopes);
  const bounds = principal.keys.filter((one) => one.id !== key.id && !makers.some((maker) => maker.id === one.id));
  // Tags are no authority: the principal may act on keys with other tags.
  const { tags: _, ...authority } = key;
  const excess = firstExcess({ ...authority, expiresAt: keyEnd(key) }, principal, bounds);
  if (excess) {
    throw forbidden(
      `The key in the request may not ${verb} this one, which reaches further: its ${excess.field} would have to be ${excess.must} of the key in the request.`,
    );
  }
  // The rotating key gets the successor's secret. If the target does not end with the rotating key, that secret would
  // outlive the rotating key.
  if (verb === "rotate" && !inChain && !principal.scopes.has("admin:manage")) {
    throw forbidden(
      "A key may rotate itself and the keys that were made with it; revoke another one, and create a key in its place.",
    );
  }
  // An access token must not create a credential that outlives the token.
  const { tokenExpiresAt } = principal;
  if (verb === "rotate" && tokenExpiresAt !== undefined && (key.expiresAt === null || key.expiresAt > tokenExpiresAt)) {
    throw forbidden("An access token cannot rotate a key that outlives it; use an API key instead of the token.");
  }
}

/**
 * Requires that the principal may give a key these values. The keys in `makers` restrict that key anyway: if it has no
 * limits and quotas of its own, theirs apply. Only the fields in `granted` are checked.
 */
export function requireGrantable(
  principal: Principal,
  makers: readonly ChainKey[],
  granted: Partial<Authority> & { scopes?: readonly Scope[] },
  verb: "makes" | "changes",
): void {
  if (granted.scopes) requireScopes(principal, granted.scopes);
  if (granted.priority) requirePriority(principal, granted.priority);
  if (principal.person) {
    requireWithinMakers(granted.scopes ?? [], makers, verb);
    requireToolsWithin(principal, granted.tools);
    return;
  }
  const excess = firstExcess(granted, principal, principal.keys, makers);
  if (!excess) return;
  throw forbidden(`${excess.field}: must be ${excess.must} of the key that ${verb} it.`);
}

/**
 * Requires that the principal may use these tools itself. Keys among `makers` are not compared, because they restrict
 * the new key anyway. Throws `permission_denied`.
 */
export function requireToolsWithin(
  { keys }: Principal,
  wanted: readonly string[] | null | undefined,
  makers: readonly ChainKey[] = [],
): void {
  const bounds = keys.filter((bound) => !makers.some((maker) => maker.id === bound.id));
  const excess = bounds.map((bound) => toolExcess(wanted, bound)).find((one) => one !== undefined);
  if (excess) throw forbidden(`${excess.field}: must be ${excess.must} that you may use yourself.`);
}

/**
 * Throws if the wanted priority exceeds the principal's own maximum. The account's tier limits it for keys and people
 * alike.
 */
function requirePriority({ priority: most = defaultPriority, account }: Principal, wanted: Priority): void {
  if (isWithinPriority(wanted, most)) return;
  throw forbidden(
    `priority: must be at most ${most}, the highest that you may have yourself. An operator raises that of the tier ${account.tier} (PUT /v1/admin/tiers/${account.tier}).`,
  );
}

/** Requires that a person's role permits the action. `requireKey` has already decided which keys are visible. */
function requireRole(principal: Principal, key: ChainKey, verb: KeyVerb): void {
  if (key.scopes.includes("admin:manage") && !principal.scopes.has("admin:manage")) {
    throw forbidden(`Only an operator may ${verb} an operator's key.`);
  }
  // The successor's secret is shown. A login with fewer rights than the person must not get more by it.
  if (verb === "rotate") requireScopes(principal, key.scopes);
}

/** Requires that the makers have all wanted scopes, because the key could never use other scopes. */
function requireWithinMakers(wanted: readonly Scope[], makers: readonly ChainKey[], verb: "makes" | "changes"): void {
  const lacking = wanted.find((scope) => makers.some((maker) => !maker.scopes.includes(scope)));
  if (lacking === undefined) return;
  const whose = verb === "makes" ? "a member's membership" : "what this key was made with";
  throw forbidden(`scopes: ${lacking} is not among the scopes of ${whose}.`);
}

function requireScopes(principal: Principal, wanted: readonly Scope[]): void {
  for (const scope of wanted) requireScope(principal, scope);
}

function commonScopes({ keys: [key, ...makers] }: KeyChain): Scope[] {
  return key.scopes.filter((scope) => makers.every((maker) => maker.scopes.includes(scope)));
}

/**
 * Returns the first field that exceeds the bounds. An undefined field is not checked; a limit or quota of null is
 * fine if a maker restricts it.
 */
function firstExcess(
  wanted: Partial<Authority>,
  principal: Principal,
  bounds: readonly ChainKey[],
  makers: readonly ChainKey[] = [],
): Excess | undefined {
  if (wanted.expiresAt !== undefined) {
    const ends = bounds.map(keyEnd);
    // The expiry of an access token is a bound, like the expiry of the key that the token stands for.
    if (bounds.includes(keyOf(principal))) ends.push(principal.tokenExpiresAt ?? null);
    const most = earliest(ends);
    if (most !== null && (wanted.expiresAt ?? Number.POSITIVE_INFINITY) > most) {
      return { field: "expires_at", must: `at most ${most}, the expiry` };
    }
  }
  for (const bound of bounds) {
    const bounded = makers.some((maker) => maker.id === bound.id);
    const excess =
      addressExcess(wanted.allowedIps, bound) ??
      rateExcess(wanted, bound, bounded) ??
      quotaExcess(wanted, bound, bounded) ??
      windowExcess(wanted, bound, bounded) ??
      modelExcess(wanted.models, bound) ??
      toolExcess(wanted.tools, bound) ??
      leavingExcess(wanted.neverLeaves, bound) ??
      priorityExcess(wanted.priority, bound, bounded) ??
      cacheExcess(wanted.responseCache, bound) ??
      tagExcess(wanted.tags, bound, bounded);
    if (excess) return excess;
  }
  return undefined;
}

function addressExcess(wanted: readonly string[] | undefined, bound: ChainKey): Excess | undefined {
  if (wanted === undefined || bound.allowedIps.length === 0) return undefined;
  const outer = parseRanges(bound.allowedIps);
  const within = (text: string) => {
    const inner = parseRange(text);
    return inner !== undefined && outer.some((range) => rangeCovers(range, inner));
  };
  const outside = wanted.findIndex((text) => !within(text));
  if (outside < 0 && wanted.length > 0) return undefined;
  const shown = bound.allowedIps.slice(0, 5).join(", ") + (bound.allowedIps.length > 5 ? ", …" : "");
  return {
    field: outside < 0 ? "allowed_ips" : `allowed_ips[${outside}]`,
    must: `within ${shown}, the addresses`,
  };
}

/** Checks a rate limit. It is within another if it allows neither a larger burst nor a faster refill. */
function rateExcess(wanted: Partial<Authority>, bound: ChainKey, bounded: boolean): Excess | undefined {
  const { rateLimit, rateLimitWindow } = wanted;
  if (rateLimit === undefined || bound.rateLimit === null || bound.rateLimitWindow === null) return undefined;
  if (rateLimit === null && bounded) return undefined;
  const limit = rateLimit ?? Number.POSITIVE_INFINITY;
  const windowSeconds = rateLimitWindow ?? 1;
  if (limit <= bound.rateLimit && limit * bound.rateLimitWindow <= bound.rateLimit * windowSeconds) return undefined;
  return {
    field: "rate_limit",
    must: `at most ${bound.rateLimit} and no more than ${bound.rateLimit} per ${bound.rateLimitWindow} seconds, the limit`,
  };
}

function quotaExcess(wanted: Partial<Authority>, bound: ChainKey, bounded: boolean): Excess | undefined {
  for (const { name, wire } of keyAmounts) {
    const amount = wanted[name];
    const most = bound[name];
    if (amount === undefined || most === null || (amount === null && bounded)) continue;
    if (amount === null || amount > most) return { field: wire, must: `at most ${most}, the quota` };
  }
  return undefined;
}

/**
 * For each quota of `bound`, the key must have the same quota or a smaller one, unless `bound` restricts the key
 * anyway.
 */
function windowExcess({ quotas }: Partial<Authority>, bound: ChainKey, bounded: boolean): Excess | undefined {
  if (quotas === undefined || bounded) return undefined;
  const missing = bound.quotas.find((outer) => !quotas.some((inner) => isWithinRule(inner, outer)));
  if (missing === undefined) return undefined;
  const { unit, amount, per, window, models, tag } = missing;
  const ofTag = tag === undefined ? "" : ` with the tag ${tag}`;
  const of = (models === undefined ? "" : ` for ${models.join(", ")}`) + ofTag;
  return { field: "quotas", must: `at most ${amount} ${unit} per ${spanText(per)} (${window})${of}, a quota` };
}

function modelExcess(wanted: readonly string[] | null | undefined, bound: ChainKey): Excess | undefined {
  return listExcess("models", wanted, bound.models, coversPattern);
}

function toolExcess(wanted: readonly string[] | null | undefined, bound: ChainKey): Excess | undefined {
  return listExcess("tools", wanted, bound.tools, coversTools);
}

/** Compares lists of names and patterns; null allows all. */
function listExcess(
  field: string,
  wanted: readonly string[] | null | undefined,
  outer: readonly string[] | null,
  covers: (outer: string, inner: string) => boolean,
): Excess | undefined {
  if (wanted === undefined || outer === null) return undefined;
  const outside = wanted === null ? -1 : wanted.findIndex((inner) => !outer.some((one) => covers(one, inner)));
  if (outside < 0 && wanted !== null) return undefined;
  const shown = outer.slice(0, 5).join(", ") + (outer.length > 5 ? ", …" : "");
  return { field: outside < 0 ? field : `${field}[${outside}]`, must: `within ${shown || "none"}, the ${field}` };
}

function leavingExcess(wanted: boolean | undefined, bound: ChainKey): Excess | undefined {
  return wanted === false && bound.neverLeaves ? { field: "never_leaves", must: "true, as that" } : undefined;
}

/** Checks a priority. Null means the priority of the tier, as far as the makers allow it. */
function priorityExcess(wanted: Priority | null | undefined, bound: ChainKey, bounded: boolean): Excess | undefined {
  if (wanted === undefined || bound.priority === null || (wanted === null && bounded)) return undefined;
  if (wanted !== null && isWithinPriority(wanted, bound.priority)) return undefined;
  return { field: "priority", must: `at most ${bound.priority}, the priority` };
}

/**
 * Checks the cache setting. A key may not turn the cache on if its maker has it off, because the key's answers would
 * not be cached anyway.
 */
function cacheExcess(wanted: ResponseCache | null | undefined, bound: ChainKey): Excess | undefined {
  return wanted === "on" && bound.responseCache === "off"
    ? { field: "response_cache", must: "off, as that" }
    : undefined;
}

/**
 * Checks tags. A key's requests also have the tags of its makers. A key cannot remove its own tags, just as it cannot
 * remove its own quotas.
 */
function tagExcess(wanted: readonly string[] | undefined, bound: ChainKey, bounded: boolean): Excess | undefined {
  if (wanted === undefined || bounded || bound.tags.every((tag) => wanted.includes(tag))) return undefined;
  return { field: "tags", must: `with ${bound.tags.join(", ")} among them, the tags` };
}

function keyEnd(key: ChainKey): number | null {
  return earliest([key.expiresAt, key.revokedAt]);
}

function earliest(times: readonly (number | null)[]): number | null {
  const ends = times.filter((time) => time !== null);
  return ends.length === 0 ? null : Math.min(...ends);
}

/**
 * Returns the common part of two lists. Two CIDR ranges are disjoint or one contains the other, so their common part is
 * the inner one.
 */
function common(some: readonly IpRange[], others: readonly IpRange[]): IpRange[] {
  return some.flatMap((a) =>
    others.flatMap((b) => {
      if (rangeCovers(a, b)) return [b];
      return rangeCovers(b, a) ? [a] : [];
    }),
  );
}

function parseRanges(texts: readonly string[]): IpRange[] {
  return texts.map(parseRange).filter((range) => range !== undefined);
}
