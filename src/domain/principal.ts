// Who makes a request, as established by a credential, and the API keys behind it.
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
  /** The key that was presented, or from which the token was made, behind it the key that made it, and so on. */
  keys: readonly [ChainKey, ...ChainKey[]];
  environment: Environment;
  /** The scopes that all of `keys` have, and the token where there is one. */
  scopes: ReadonlySet<Scope>;
  /** Unix seconds; only of an access token: what it makes must not outlive it. */
  tokenExpiresAt?: number;
  /** The id of the key that signed the access token; undefined for other credentials. */
  tokenSignedBy?: string;
  /** The third-party app that acts for the account; null for keys, their tokens, and people. */
  appId: string | null;
  /** Who is signed in, at a browser or with `headrace login`; not for keys and third-party apps. */
  person?: SignedInPerson | undefined;
  /** Everything that a request of this principal counts against. */
  limits: LimitSet;
  /** What bounds the models that it may use beyond its environment; undefined: nothing. */
  reach?: ModelAccess | undefined;
  /** What bounds the tools that it may use; undefined: nothing. */
  tools?: ToolAccess | undefined;
  /** The highest that its requests may have: of all of `keys`, and of the account's tier. Left out: normal. */
  priority?: Priority | undefined;
  /** Tags of all of `keys`, each once, its own first; undefined: none. */
  tags?: readonly string[] | undefined;
  /** The response cache setting of its keys: off if any key turns it off; undefined: as each model. */
  responseCache?: ResponseCache | undefined;
}

export interface SignedInPerson extends Pick<Person, "id" | "isOperator"> {
  /** The person's role in the account of the principal. */
  role: Role;
  /** The browser session; null for `headrace login`. */
  sessionId: string | null;
}

/** Which models the keys of a chain leave. */
export interface ModelAccess {
  /** The ids and patterns of each key that names models: each list has to have the model. */
  readonly models: readonly (readonly string[])[];
  /** Whether only deployments count that an operator marked as local. */
  readonly neverLeaves: boolean;
}

/**
 * `key`: an API key; `membership`: a person as a member of an account; `grant`: an app that a person allowed. Only keys have
 * a secret; all of them bound what comes behind them in the same way.
 */
export type CredentialKind = "key" | "membership" | "grant";

/**
 * An API key as stored: never the secret, only its digest. Times in Unix seconds. Memberships and grants are records of the
 * same form: one cache, one chain, one way to end. Its amounts are null where it has none of its own.
 */
export interface ApiKeyRecord extends ByName<KeyAmount, number | null> {
  id: string;
  kind: CredentialKind;
  /** The person of a membership or grant; for a key, the member whose own it is, null where it is the account's. */
  personId: string | null;
  /** The app of a grant; null for others. */
  appId: string | null;
  /** The role of a membership; null for others. */
  role: Role | null;
  /** Whether the member of a membership sees the usage and requests of the whole account. False for others. */
  seesAllUsage: boolean;
  accountId: string;
  name: string;
  environment: Environment;
  /** Hex HMAC-SHA-256 of the whole key under the installation's pepper. */
  digest: string;
  prefix: string;
  last4: string;
  scopes: readonly Scope[];
  /** Id of the key or person that made it, an operator's included; null for the first key and those made at the console. */
  createdBy: string | null;
  /** The key whose authority bounds this one's and with which it dies; null for none. Same account and environment. */
  parentId: string | null;
  /**
   * The id under which its own limit counts: kept when a key is rotated, so that the overlap has one budget and not
   * two.
   */
  limitId: string;
  createdAt: number;
  expiresAt: number | null;
  /** The time of its revocation; one in the future is scheduled, as after a rotation. */
  revokedAt: number | null;
  /** Revoked for good: whatever a clock says later. False while a revocation is only scheduled. */
  revoked: boolean;
  lastUsedAt: number | null;
  /** Addresses and CIDR ranges; empty: from anywhere. */
  allowedIps: readonly string[];
  /** Requests per `rateLimitWindow`; null: none of its own. */
  rateLimit: number | null;
  /** Seconds; null with `rateLimit`. */
  rateLimitWindow: number | null;
  /** Quotas per window of its own. */
  quotas: readonly QuotaRule[];
  /** Ids of models that it may use, and beginnings of ids with an asterisk; null: all of its environment. */
  models: readonly string[] | null;
  /** Tools that it may use, as in `ToolAccess`; null: all, and an empty list: none. */
  tools: readonly string[] | null;
  /** Whether its requests go only to deployments that an operator marked as local. */
  neverLeaves: boolean;
  /** The highest priority that its requests may have; null: that of its account's tier. */
  priority: Priority | null;
  /** Whether its requests get answers that are kept; null: as each model says. */
  responseCache: ResponseCache | null;
  /** What its usage is counted under; see `key-tags.ts`. */
  tags: readonly string[];
  /** What people wrote down about it. */
  note: string | null;
}

/** What of a key its requests have to do with: all that bounds them, and nothing that only people look at. */
export type ChainKey = Omit<
  ApiKeyRecord,
  "name" | "digest" | "prefix" | "last4" | "createdBy" | "createdAt" | "lastUsedAt" | "note"
>;

/** The members of a record that is new and bounds nobody by itself. */
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

/** A key and those that bound it (`parentId`), itself first, and its account. */
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

/** Every write puts its event into the audit log, and raises the credential revision, in the same transaction. */
export interface KeyStore {
  /** One indexed read by full digest, or those under older secrets, and one for each ancestor. */
  findChainByDigest(digest: string, ...older: string[]): Promise<KeyChain | undefined>;
  findChainById(id: string): Promise<KeyChain | undefined>;
  /** The oldest key of an environment that no key made and no operator's is, or what it was rotated into. */
  firstKey(environment: Environment): Promise<ApiKeyRecord | undefined>;
  /** API keys of one account and environment, of one member where named, newest first; those after the key `after`. */
  listKeys(
    filter: { accountId: string; environment: Environment; personId?: string },
    page: { after: string | undefined; limit: number },
  ): Promise<ApiKeyRecord[]>;
  insertKey(key: ApiKeyRecord, event: AuditEvent): Promise<void>;
  /** Unless its environment has a first key already; gives the one that there is then. */
  insertFirstKey(key: ApiKeyRecord, event: AuditEvent): Promise<ApiKeyRecord>;
  /** Undefined where there is no such key. A revocation that already took effect is final: it is never moved or lifted. */
  updateKey(id: string, changes: KeyChanges, event: AuditEvent): Promise<ApiKeyRecord | undefined>;
  /**
   * Adds the successor, revokes the old key at `revokeAt`, and moves the old key's children to the successor. Gives the
   * successor, which has the old key's attributes of that moment; undefined where the old key is not there, has ended or
   * was rotated before.
   */
  rotateKey(
    id: string,
    successor: ApiKeyRecord,
    revokeAt: number,
    event: AuditEvent,
  ): Promise<ApiKeyRecord | undefined>;
  /** Makes revocations final whose time has come: from then on no clock is asked about them. */
  endDue(nowSeconds: number): Promise<void>;
  /** Unix seconds by key id; never moves a time back. */
  touchKeys(lastUsed: ReadonlyMap<string, number>): Promise<void>;
  /** A number that every change of a key, account or tier raises, by whichever process. */
  credentialRevision(): Promise<number>;
}

/** The key that was presented. */
export function keyOf(principal: Principal): ChainKey {
  return principal.keys[0];
}

/** The person or key that it is within its account: people share with others as one, whatever keys they have. */
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
 * The limit id of the key that made the presented one, which a rotation keeps: what such a key makes is for keys of the same
 * maker. Null where no key made it.
 */
export function makerOf({ keys }: Pick<Principal, "keys">): string | null {
  return keys[1]?.limitId ?? null;
}

/**
 * The member whose own keys, apps and chats are all that the principal sees and manages; null for the account's. That of
 * owners and admins who are signed in, and of the account's own keys, is the account's.
 */
export function ownOnly({ person, keys }: Principal): string | null {
  if (person) return person.role === "member" ? person.id : null;
  return keys[0].personId;
}

/**
 * The person whose usage and requests are all that the principal sees; null for those of the account. Owners and admins see
 * the account's, and so do members to whom an owner allowed it. A key sees what whoever it belongs to sees: one of the
 * account all of it. An app sees what it did for whoever allowed it.
 */
export function seesUsageOf(principal: Principal): string | null {
  const [{ personId }] = principal.keys;
  if (principal.appId !== null || personId === null) return personId;
  const membership = principal.keys.find(({ kind }) => kind === "membership");
  // A key whose maker is not behind it is nobody's to widen.
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
