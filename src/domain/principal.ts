// The caller of a request, as established by a credential, and the API keys behind it.
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
  /** The presented key, or the key of the token, then the key that made it, and so on. */
  keys: readonly [ChainKey, ...ChainKey[]];
  environment: Environment;
  /** The scopes that all of `keys` have, and also the access token if there is one. */
  scopes: ReadonlySet<Scope>;
  /** Unix seconds, only for an access token. Objects that the token makes must not outlive it. */
  tokenExpiresAt?: number;
  /** The id of the key that signed the access token. Undefined for other credentials. */
  tokenSignedBy?: string;
  /** The third-party app that acts for the account; null for keys, their tokens, and people. */
  appId: string | null;
  /** The signed-in person, in a browser or with `headrace login`. Undefined for keys and third-party apps. */
  person?: SignedInPerson | undefined;
  /** The limits and quotas that requests of this principal count against. */
  limits: LimitSet;
  /** Restrictions on the models that the principal may use, besides the environment. Undefined: none. */
  modelAccess?: ModelAccess | undefined;
  /** Restrictions on the tools that the principal may use. Undefined: none. */
  tools?: ToolAccess | undefined;
  /** The highest priority of its requests, bounded by all of `keys` and the account's tier. Default: normal. */
  priority?: Priority | undefined;
  /** Tags of all of `keys` without duplicates, the presented key's first. Undefined: none. */
  tags?: readonly string[] | undefined;
  /** The response cache setting of its keys: off if any key turns it off. Undefined: as each model is configured. */
  responseCache?: ResponseCache | undefined;
}

export interface SignedInPerson extends Pick<Person, "id" | "isOperator"> {
  /** The person's role in the account of the principal. */
  role: Role;
  /** The browser session; null for `headrace login`. */
  sessionId: string | null;
}

/** The models that a chain of keys allows. */
export interface ModelAccess {
  /** The patterns of each key that restricts models. Every list has to allow the model. */
  readonly models: readonly (readonly string[])[];
  /** True if only deployments count that an operator marked as local. */
  readonly neverLeaves: boolean;
}

/**
 * `key`: an API key; `membership`: a person as a member of an account; `grant`: an app that a person allowed. Only keys
 * have a secret. All of them bound the keys that they make in the same way.
 */
export type CredentialKind = "key" | "membership" | "grant";

/**
 * An API key as stored: only its digest, never the secret. Times in Unix seconds. Memberships and grants have the same
 * form, so that cache, chain and revocation work alike. Amounts are null if the key has none of its own.
 */
export interface ApiKeyRecord extends ByName<KeyAmount, number | null> {
  id: string;
  kind: CredentialKind;
  /** The person of a membership or grant. For a member's own key, the member; null for a key of the account. */
  personId: string | null;
  /** The app of a grant; null for others. */
  appId: string | null;
  /** The role of a membership; null for others. */
  role: Role | null;
  /** True if a membership's member sees the usage and requests of the whole account. False for other kinds. */
  seesAllUsage: boolean;
  accountId: string;
  name: string;
  environment: Environment;
  /** Hex HMAC-SHA-256 of the whole key under the installation's pepper. */
  digest: string;
  prefix: string;
  last4: string;
  scopes: readonly Scope[];
  /**
   * Id of the key or person (or operator) that made the key. null for the first key and for keys made on the console.
   */
  createdBy: string | null;
  /**
   * Id of the parent key, which bounds this key: when the parent ends, this key ends too. The parent has the same
   * account and environment. null: no parent.
   */
  parentId: string | null;
  /**
   * The id under which the key's own limit is counted. A rotation keeps the id, so that the old and the new key share
   * one budget.
   */
  limitId: string;
  createdAt: number;
  expiresAt: number | null;
  /** The time of the key's revocation. A time in the future means a scheduled revocation, as after a rotation. */
  revokedAt: number | null;
  /** True if the key is revoked permanently, regardless of the clock. False while a revocation is only scheduled. */
  revoked: boolean;
  lastUsedAt: number | null;
  /** Addresses and CIDR ranges; empty: from anywhere. */
  allowedIps: readonly string[];
  /** Requests per `rateLimitWindow`; null: no own limit. */
  rateLimit: number | null;
  /** Seconds; null if `rateLimit` is null. */
  rateLimitWindow: number | null;
  /** The key's own quotas per window. */
  quotas: readonly QuotaRule[];
  /** Model ids or prefixes ending in `*` that the key may use; null: all models of its environment. */
  models: readonly string[] | null;
  /** Tools that the key may use, as in `ToolAccess`; null: all, and an empty list: none. */
  tools: readonly string[] | null;
  /** True if the key's requests go only to deployments that an operator marked as local. */
  neverLeaves: boolean;
  /** The highest priority that the key's requests may have; null: that of the account's tier. */
  priority: Priority | null;
  /** The response cache setting; null: as each model is configured. */
  responseCache: ResponseCache | null;
  /** Tags under which the key's usage is counted; see `key-tags.ts`. */
  tags: readonly string[];
  /** A note for people. */
  note: string | null;
}

/** The members of a key that its requests need: all restrictions, without members that only people read. */
export type ChainKey = Omit<
  ApiKeyRecord,
  "name" | "digest" | "prefix" | "last4" | "createdBy" | "createdAt" | "lastUsedAt" | "note"
>;

/** The members of a new record without restrictions. */
export const newAndUnbounded = {
  seesAllUsage: false,
  expiresAt: null,
  revokedAt: null,
  revoked: false,
  lastUsedAt: null,
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

export type KeyStatus = "active" | "expired" | "revoked";

/** A key and the keys that bound it (`parentId`), itself first, and its account. */
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

/** Every write adds its event to the audit log and raises the credential revision in the same transaction. */
export interface KeyStore {
  /** Finds a key by its digest, or its digests under older secrets, and its ancestors. One indexed read each. */
  findChainByDigest(digest: string, ...older: string[]): Promise<KeyChain | undefined>;
  findChainById(id: string): Promise<KeyChain | undefined>;
  /**
   * Returns the oldest API key of an environment that no key or person created and that is not an operator's, or its
   * successor after rotations.
   */
  firstKey(environment: Environment): Promise<ApiKeyRecord | undefined>;
  /** Lists API keys of one account and environment, optionally of one member, newest first, after the key `after`. */
  listKeys(
    filter: { accountId: string; environment: Environment; personId?: string },
    page: { after: string | undefined; limit: number },
  ): Promise<ApiKeyRecord[]>;
  insertKey(key: ApiKeyRecord, event: AuditEvent): Promise<void>;
  /** Inserts the first key of an environment, unless one exists. Returns the existing or new key. */
  insertFirstKey(key: ApiKeyRecord, event: AuditEvent): Promise<ApiKeyRecord>;
  /** Returns undefined for an unknown key. A revocation in effect is final: it is never moved or undone. */
  updateKey(id: string, changes: KeyChanges, event: AuditEvent): Promise<ApiKeyRecord | undefined>;
  /**
   * Adds the successor, revokes the old key at `revokeAt`, and moves the old key's children to the successor. Returns
   * the successor, which has the old key's current attributes. Returns undefined if the old key is missing, has ended
   * or was rotated before.
   */
  rotateKey(
    id: string,
    successor: ApiKeyRecord,
    revokeAt: number,
    event: AuditEvent,
  ): Promise<ApiKeyRecord | undefined>;
  /** Makes due revocations final, so that they no longer depend on a clock. */
  endDue(nowSeconds: number): Promise<void>;
  /** Sets the last use of keys, in Unix seconds by key id. Never moves a time back. */
  touchKeys(lastUsed: ReadonlyMap<string, number>): Promise<void>;
  /** Returns a number that every process raises with each change of a key, account or tier. */
  credentialRevision(): Promise<number>;
}

/** The key that was presented. */
export function keyOf(principal: Principal): ChainKey {
  return principal.keys[0];
}

/**
 * Returns the party that takes turns with others of its account: the person whose key it is, or else the key. All keys
 * of a person count as that person.
 */
export function partyOf({ keys }: Pick<Principal, "keys">): string {
  const [own] = keys;
  if (own.personId === null) return own.limitId;
  return (keys.find(({ kind }) => kind === "membership") ?? own).limitId;
}

/** The actor as the audit log and `created_by` name it. */
export function actorOf({ person, appId, keys }: Principal): { type: "key" | "person" | "app"; id: string } {
  if (person) return { type: "person", id: person.id };
  return appId === null ? { type: "key", id: keys[0].id } : { type: "app", id: appId };
}

/**
 * Returns the limit id of the key that made the presented one, which a rotation keeps: keys of the same maker share it.
 * null if no key made it.
 */
export function makerOf({ keys }: Pick<Principal, "keys">): string | null {
  return keys[1]?.limitId ?? null;
}

/**
 * Returns the member to whose own keys, apps and chats the principal is restricted. Returns null for signed-in owners
 * and admins and for keys of the account, which see all of the account's.
 */
export function ownOnly({ person, keys }: Principal): string | null {
  if (person) return person.role === "member" ? person.id : null;
  return keys[0].personId;
}

/**
 * Returns the person to whose usage and requests the principal is restricted, or null for the whole account. Owners,
 * admins and members with an owner's permission see the account's. A key of the account sees everything, a member's key
 * what the member sees. An app sees its activity for the person who allowed it.
 */
export function seesUsageOf(principal: Principal): string | null {
  const [{ personId }] = principal.keys;
  if (principal.appId !== null || personId === null) return personId;
  const membership = principal.keys.find(({ kind }) => kind === "membership");
  // A key without its maker's membership gets no wider view.
  const seesAll = membership !== undefined && (membership.role !== "member" || membership.seesAllUsage);
  return seesAll ? null : personId;
}

export function keyStatus(
  key: Pick<ApiKeyRecord, "revoked" | "revokedAt" | "expiresAt">,
  nowSeconds: number,
): KeyStatus {
  if (key.revoked) return "revoked";
  if (key.revokedAt !== null && key.revokedAt <= nowSeconds) return "revoked";
  return key.expiresAt !== null && key.expiresAt <= nowSeconds ? "expired" : "active";
}
