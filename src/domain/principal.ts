// The caller of a request, as identified by a credential, with the API keys that the credential depends on.
import type { Account } from "./account.ts";
import type { Environment } from "./api-key.ts";
import type { AuditEvent } from "./audit.ts";
import { type ByName, byName, type KeyAmount, keyAmounts } from "./limits/amounts.ts";
import type { LimitSet } from "./limits/limits.ts";
import type { QuotaRule } from "./limits/quota-rules.ts";
import type { ResponseCache } from "./models/policies/cache.ts";
import type { Priority } from "./models/policies/priority.ts";
import type { Person } from "./people/person.ts";
import type { Role } from "./people/role.ts";
import type { Scope } from "./scope.ts";
import type { ToolAccess } from "./tools/tool-access.ts";

export interface Principal {
  account: Account;
  /** The chain of keys: the presented key (or the key behind a token), then the key that made it, and so on. */
  keys: readonly [ChainKey, ...ChainKey[]];
  environment: Environment;
  /** The scopes that every key of the chain has. For an access token, only those that the token has too. */
  scopes: ReadonlySet<Scope>;
  /**
   * When the access token expires, in Unix seconds. Objects made with the token must not outlive it. Undefined for
   * other credentials.
   */
  tokenExpiresAt?: number;
  /** The id of the key that signed the access token. Undefined for other credentials. */
  tokenSignedBy?: string;
  /** The third-party app that makes the request. Null for keys, tokens made from keys, and people. */
  appId: string | null;
  /** The person who is signed in with a browser or with `headrace login`. Undefined for keys and third-party apps. */
  person?: SignedInPerson | undefined;
  /** The limits and quotas that the principal's requests count against. */
  limits: LimitSet;
  /**
   * The models that the principal may use, in addition to the environment's restriction. Undefined means no
   * restriction.
   */
  modelAccess?: ModelAccess | undefined;
  /** The tools that the principal may use. Undefined means no restriction. */
  tools?: ToolAccess | undefined;
  /**
   * The highest priority that the principal's requests may have: bounded by all keys of the chain and the account's
   * tier. Default: normal.
   */
  priority?: Priority | undefined;
  /**
   * The tags of all keys of the chain, without duplicates. Those of the presented key come first. Undefined means none.
   */
  tags?: readonly string[] | undefined;
  /**
   * The response cache setting: off if any key of the chain turns it off. Undefined means that each model's policy
   * applies.
   */
  responseCache?: ResponseCache | undefined;
}

export interface SignedInPerson extends Pick<Person, "id" | "isOperator"> {
  /** The person's role in the account. */
  role: Role;
  /** The browser session; null for `headrace login`. */
  sessionId: string | null;
}

/** The models that a chain of keys may use. */
export interface ModelAccess {
  /** Model patterns of each key that restricts models. A model must match a pattern in every list. */
  readonly models: readonly (readonly string[])[];
  /** True if only deployments that an operator marked as local may be used. */
  readonly neverLeaves: boolean;
}

/**
 * `key`: an API key. `membership`: a person as a member of an account. `grant`: an app that a person allowed. Only keys
 * have a secret. Each kind bounds the keys that are made with it.
 */
export type CredentialKind = "key" | "membership" | "grant";

/**
 * A stored credential. For an API key, its digest is stored and never the secret. Memberships and grants have the same
 * members, so that caching and revocation work alike. Times are Unix seconds. An amount is null if the key has none of
 * its own.
 */
export interface ApiKeyRecord extends ByName<KeyAmount, number | null> {
  id: string;
  kind: CredentialKind;
  /** The person of a membership, grant or member's own key. Null for a key of the account. */
  personId: string | null;
  /** The app of a grant. Null for other kinds. */
  appId: string | null;
  /** The role of a membership. Null for other kinds. */
  role: Role | null;
  /** True if the member of this membership sees the usage and requests of the whole account. False for other kinds. */
  seesAllUsage: boolean;
  accountId: string;
  name: string;
  environment: Environment;
  /** HMAC-SHA-256 of the whole key, keyed with the installation's pepper, in hex. */
  digest: string;
  prefix: string;
  last4: string;
  scopes: readonly Scope[];
  /** Id of the key, person or operator that made the key. Null for the first key and for keys made on the console. */
  createdBy: string | null;
  /**
   * Id of the parent key, which has the same account and environment. The parent's restrictions apply to this key too,
   * and this key ends with the parent. Null means no parent.
   */
  parentId: string | null;
  /**
   * The id under which usage of the key's own limits is counted. After a rotation, the new key has the same id, so that
   * both share the limits.
   */
  limitId: string;
  createdAt: number;
  expiresAt: number | null;
  /** When the key is revoked. A time in the future is a scheduled revocation, as after a rotation. */
  revokedAt: number | null;
  /** True once the key is revoked permanently, regardless of the clock. False while a revocation is only scheduled. */
  revoked: boolean;
  lastUsedAt: number | null;
  /**
   * The suspender of the credential. In a chain, `person` or `app` if the person or app that the credential belongs to
   * is suspended. Null means that it is not suspended. A suspended credential is refused until it is resumed.
   */
  suspendedBy: SuspendedBy | null;
  /** Addresses and CIDR ranges from which the key may be used. Empty means any address. */
  allowedIps: readonly string[];
  /** Maximum requests in each `rateLimitWindow`. Null means that the key has no limit of its own. */
  rateLimit: number | null;
  /** The window of `rateLimit` in seconds. Null if `rateLimit` is null. */
  rateLimitWindow: number | null;
  /** The key's own quotas with a window. */
  quotas: readonly QuotaRule[];
  /** Model ids, or prefixes ending in `*`, that the key may use. Null means all models of its environment. */
  models: readonly string[] | null;
  /** Tools that the key may use, in the syntax of `ToolAccess`. Null means all, and an empty list none. */
  tools: readonly string[] | null;
  /** True if the key's requests go only to deployments that an operator marked as local. */
  neverLeaves: boolean;
  /** The highest priority that the key's requests may have. Null means that of the account's tier. */
  priority: Priority | null;
  /** The key's response cache setting. Null means that each model's policy applies. */
  responseCache: ResponseCache | null;
  /** Tags under which the key's usage is counted. */
  tags: readonly string[];
  /** A note for people. */
  note: string | null;
}

/** In ascending order of rank. A suspension ends only by a suspender of the same or a higher rank. */
export const suspenders = ["member", "account", "operator"] as const;
export type Suspender = (typeof suspenders)[number];

export interface SuspensionChange {
  by: Suspender;
  /** False resumes the key or app. */
  isSuspended: boolean;
}

/** Returns the suspender after the change. A suspension by a higher rank stays as it is. */
export function suspenderAfter(stored: Suspender | null, { by, isSuspended }: SuspensionChange): Suspender | null {
  if (stored !== null && suspenders.indexOf(stored) > suspenders.indexOf(by)) return stored;
  return isSuspended ? by : null;
}

export type SuspendedBy = Suspender | "person" | "app";

/** A key with only the members that its requests need: without names, digests and notes. */
export type ChainKey = Omit<
  ApiKeyRecord,
  "name" | "digest" | "prefix" | "last4" | "createdBy" | "createdAt" | "lastUsedAt" | "note"
>;

/** Default members of a new credential that has no restrictions. */
export const newAndUnbounded = {
  seesAllUsage: false,
  expiresAt: null,
  revokedAt: null,
  revoked: false,
  lastUsedAt: null,
  suspendedBy: null,
  allowedIps: [],
  rateLimit: null,
  rateLimitWindow: null,
  quotas: [],
  models: null,
  tools: null,
  neverLeaves: false,
  priority: null,
  responseCache: null,
  tags: [],
  note: null,
  ...byName(keyAmounts, () => null),
} as const satisfies Partial<ApiKeyRecord>;

/** Returns the suspender of the key itself; null if only the key's person or app is suspended. */
export function ownSuspender({ suspendedBy }: Pick<ApiKeyRecord, "suspendedBy">): Suspender | null {
  return suspendedBy === "person" || suspendedBy === "app" ? null : suspendedBy;
}

export type KeyStatus = "active" | "expired" | "revoked" | "suspended";

/**
 * A key, the keys that bound it, and its account. The first of `keys` is the key itself, each next one the parent of
 * the one before.
 */
export interface KeyChain {
  keys: readonly [ApiKeyRecord, ...ApiKeyRecord[]];
  account: Account;
}

export type KeyChanges = Partial<
  Pick<
    ApiKeyRecord,
    | "name"
    | "scopes"
    | "expiresAt"
    | "allowedIps"
    | "rateLimit"
    | "rateLimitWindow"
    | "quotas"
    | "models"
    | "tools"
    | "neverLeaves"
    | "priority"
    | "responseCache"
    | "tags"
    | "note"
    | "revokedAt"
    | KeyAmount["name"]
  >
>;

/**
 * Stores credentials. Every method that writes also writes its audit event and raises the credential revision, in the
 * same transaction.
 */
export interface KeyStore {
  /**
   * Finds a key by its digest, together with its parent keys. `older` are the key's digests under older secrets. Each
   * look-up is one indexed read.
   */
  findChainByDigest(digest: string, ...older: string[]): Promise<KeyChain | undefined>;
  findChainById(id: string): Promise<KeyChain | undefined>;
  /** Returns the keys with these ids, in any order. Their parent keys and people are not included. */
  findKeys(ids: readonly string[]): Promise<ApiKeyRecord[]>;
  /**
   * Returns the oldest API key of an environment that neither a key nor a person created and that is no operator's. If
   * that key was rotated, returns its successor.
   */
  firstKey(environment: Environment): Promise<ApiKeyRecord | undefined>;
  /**
   * Lists API keys of an account and environment, newest first, beginning after the key `after`. With `personId`, lists
   * only keys of this member.
   */
  listKeys(
    filter: { accountId: string; environment: Environment; personId?: string },
    page: { after: string | undefined; limit: number },
  ): Promise<ApiKeyRecord[]>;
  insertKey(key: ApiKeyRecord, event: AuditEvent): Promise<void>;
  /** Stores the first key of an environment, unless one exists. Returns the existing or the new key. */
  insertFirstKey(key: ApiKeyRecord, event: AuditEvent): Promise<ApiKeyRecord>;
  /** Changes a key. Returns undefined if the key does not exist. A revocation that has taken effect stays as it is. */
  updateKey(id: string, changes: KeyChanges, event: AuditEvent): Promise<ApiKeyRecord | undefined>;
  /**
   * Suspends or resumes a key, unless the key has ended or a higher rank suspended it. Returns the key as it is then.
   * Returns undefined if the key does not exist.
   */
  setSuspended(id: string, change: SuspensionChange, event: AuditEvent): Promise<ApiKeyRecord | undefined>;
  /**
   * Stores the successor and revokes the old key at `revokeAt`. Keys that the old key made get the successor as their
   * parent. Returns the successor, with the old key's current settings. Returns undefined if the old key is missing,
   * has ended or was rotated before.
   */
  rotateKey(
    id: string,
    successor: ApiKeyRecord,
    revokeAt: number,
    event: AuditEvent,
  ): Promise<ApiKeyRecord | undefined>;
  /** Makes revocations whose time has come permanent, so that they no longer depend on a clock. */
  endDue(nowSeconds: number): Promise<void>;
  /** Stores when keys were last used: Unix seconds by key id. Never moves a time back. */
  touchKeys(lastUsed: ReadonlyMap<string, number>): Promise<void>;
  /** Reports whether the person made one of these keys, directly or through other keys. */
  descendFrom(ids: readonly string[], personId: string): Promise<boolean>;
  /**
   * Returns the ids of suspended accounts and people, and of the keys and apps that were suspended last. Ended keys are
   * left out.
   */
  listSuspended(): Promise<string[]>;
  /** Returns a number that rises with each change of a key, account or tier, by any process. */
  credentialRevision(): Promise<number>;
}

/** Returns the presented key, or the key behind a token. */
export function keyOf(principal: Principal): ChainKey {
  return principal.keys[0];
}

/**
 * Returns the id by which callers of an account take turns: of the person whose key this is, or else of the key. All
 * keys of a person count as one caller.
 */
export function partyOf({ keys }: Pick<Principal, "keys">): string {
  const [own] = keys;
  if (own.personId === null) return own.limitId;
  return (keys.find(({ kind }) => kind === "membership") ?? own).limitId;
}

/** Returns who acts, in the form of the audit log and of `created_by`. */
export function actorOf({ person, appId, keys }: Principal): { type: "key" | "person" | "app"; id: string } {
  if (person) return { type: "person", id: person.id };
  return appId === null ? { type: "key", id: keys[0].id } : { type: "app", id: appId };
}

/**
 * Returns the limit id of the key that made the presented key; null if no key made it. Keys of the same maker have the
 * same value, even after a rotation of the maker.
 */
export function makerOf({ keys }: Pick<Principal, "keys">): string | null {
  return keys[1]?.limitId ?? null;
}

/**
 * Returns the member to whose own keys, apps and chats the principal is restricted. Returns null for signed-in owners
 * and admins and for keys of the account. They see those of the whole account.
 */
export function ownOnly({ person, keys }: Principal): string | null {
  if (person) return person.role === "member" ? person.id : null;
  return keys[0].personId;
}

/**
 * Returns the person to whose usage and requests the principal is restricted. Returns null if the principal sees those
 * of the whole account: owners, admins, members with an owner's permission, and keys of the account. A member's key
 * sees what the member sees. An app sees only what it did for the person who allowed it.
 */
export function seesUsageOf(principal: Principal): string | null {
  const [{ personId }] = principal.keys;
  if (principal.appId !== null || personId === null) return personId;
  const membership = principal.keys.find(({ kind }) => kind === "membership");
  // If the chain has no membership, a member's key sees only the member's own usage.
  const seesAll = membership !== undefined && (membership.role !== "member" || membership.seesAllUsage);
  return seesAll ? null : personId;
}

/** Reports whether the key has ended for good. A suspended key can be resumed, so it has not ended. */
export function hasEnded(key: Parameters<typeof keyStatus>[0], nowSeconds: number): boolean {
  const status = keyStatus(key, nowSeconds);
  return status === "revoked" || status === "expired";
}

export function keyStatus(
  key: Pick<ApiKeyRecord, "revoked" | "revokedAt" | "expiresAt" | "suspendedBy">,
  nowSeconds: number,
): KeyStatus {
  if (key.revoked) return "revoked";
  if (key.revokedAt !== null && key.revokedAt <= nowSeconds) return "revoked";
  if (key.expiresAt !== null && key.expiresAt <= nowSeconds) return "expired";
  return key.suspendedBy === null ? "active" : "suspended";
}
