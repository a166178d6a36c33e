// Records of the OAuth authorization server: authorization codes, refresh tokens, device codes, and grants.
import type { Environment } from "../api-key.ts";
import type { Acting, AuditEvent } from "../audit.ts";
import type { QuotaRule } from "../limits/quota-rules.ts";
import type { ApiKeyRecord, KeyChain } from "../principal.ts";
import type { Scope } from "../scope.ts";

/**
 * A person's permission for an app. All times are Unix seconds. All digests are hex SHA-256 of a token with 256 random
 * bits.
 */
export interface Authorization {
  appId: string;
  personId: string;
  /** The account in which the app may act. The person is a member of it. */
  accountId: string;
  membershipId: string;
  environment: Environment;
  scopes: readonly Scope[];
  /** The tools that the person allowed, in the syntax of `ToolAccess`. Null means all that the person may use. */
  tools: readonly string[] | null;
  /** The quotas that the person set for the app. Null keeps those of earlier grants. */
  quotas: readonly QuotaRule[] | null;
}

/** The resources (RFC 8707) for which a token is valid, as URL paths. */
interface Targeted {
  resources: readonly string[];
}

/** RFC 6749, 4.1. */
export interface AuthorizationCode extends Authorization, Targeted {
  digest: string;
  /**
   * The redirect URI that the client sent, which it must repeat when it redeems the code. Null if it sent none, because
   * only one is registered.
   */
  redirectUri: string | null;
  /** The PKCE code challenge (RFC 7636, S256). Null if the client sent none. */
  codeChallenge: string | null;
  createdAt: number;
  expiresAt: number;
  /**
   * The grant that was made when the code was redeemed. Null before. A second attempt to redeem the code ends this
   * grant.
   */
  grantId: string | null;
}

/** A refresh token. Each use replaces it by a new one, and all of these belong to one grant. */
export interface RefreshToken extends Targeted {
  digest: string;
  grantId: string;
  createdAt: number;
  /** Expiry if the token is not used. The token that replaces it has a later expiry. */
  expiresAt: number;
  usedAt: number | null;
  /**
   * The answer to the use of this token, to be repeated if the answer was lost. Sealed under a key that only the
   * presented token yields.
   */
  sealedAnswer: string | null;
}

export type DeviceState = "pending" | "approved" | "denied" | "redeemed";

/** RFC 8628. */
export interface DeviceCode extends Targeted {
  digest: string;
  /** The code that the person types, in the form that `normalizedUserCode` returns. */
  userCode: string;
  appId: string;
  environment: Environment;
  scopes: readonly Scope[];
  /** The tools that the person chose when they approved. Null means all tools, or that nobody has approved yet. */
  tools: readonly string[] | null;
  /** The quotas that the person set when they approved. Null means none. */
  quotas: readonly QuotaRule[] | null;
  createdAt: number;
  expiresAt: number;
  /** Seconds between two polls. Each poll that comes too early adds 5. */
  intervalSeconds: number;
  polledAt: number | null;
  state: DeviceState;
  /** The person who approved the request of the device. */
  personId: string | null;
  accountId: string | null;
  membershipId: string | null;
  grantId: string | null;
}

/** An app that a person allowed in one account. It sums up the person's grants for the app. */
export interface AllowedApp {
  appId: string;
  appName: string;
  publisher: string;
  homepageUrl: string | null;
  accountId: string;
  accountName: string;
  environment: Environment;
  /** The scopes that any of the grants has. */
  scopes: readonly Scope[];
  /** The tools that any of the grants allows. Null means all that the person may use. */
  tools: readonly string[] | null;
  /** The quotas with a window that all grants share. */
  quotas: readonly QuotaRule[];
  /** The id under which the usage of the quotas is counted. */
  limitId: string;
  /** Unix seconds of the first grant that has not ended. */
  allowedAt: number;
  lastUsedAt: number | null;
}

/** Changes to a person's grants. Undefined members stay unchanged. */
export interface GrantBounds {
  quotas?: readonly QuotaRule[] | undefined;
  tools?: readonly string[] | null | undefined;
}

/**
 * Stores OAuth records. A grant is stored as a credential of the kind `grant`, so that it is cached and revoked like a
 * key. The person's membership bounds the grant.
 */
export interface OAuthStore {
  /** Stores a code. Returns false and changes nothing if the app or the person's membership does not exist any more. */
  insertCode(code: AuthorizationCode, by: Acting): Promise<boolean>;
  findCode(digest: string): Promise<AuthorizationCode | undefined>;
  /**
   * Redeems a code: adds the grant and its first refresh token in one transaction. `replayed`: the code was redeemed
   * before, so its grant is revoked in the same transaction. `refused`: the code, the app or the membership does not
   * exist any more, so nothing changes.
   */
  redeemCode(
    digest: string,
    issued: { grant: ApiKeyRecord; refreshToken: RefreshToken },
    events: { issued: AuditEvent; replayed: AuditEvent },
  ): Promise<"issued" | "replayed" | "refused">;

  /** Finds a refresh token, together with its grant and the credentials that bound the grant. */
  findRefreshToken(digest: string): Promise<{ token: RefreshToken; grant: KeyChain } | undefined>;
  /**
   * Marks the token as used, with its sealed answer, and adds its successor, in one transaction. If the token was used
   * before, or its grant has ended, changes nothing and returns the stored token.
   */
  rotateRefreshToken(
    digest: string,
    successor: RefreshToken,
    used: { at: number; sealedAnswer: string },
    event: AuditEvent,
  ): Promise<"rotated" | RefreshToken | undefined>;

  /** Revokes a grant. Returns false if the grant does not exist or has ended. */
  revokeGrant(grantId: string, event: AuditEvent): Promise<boolean>;

  insertDeviceCode(code: DeviceCode): Promise<boolean>;
  /** Finds a device code that nobody has decided on and that has not expired. */
  findByUserCode(userCode: string, nowSeconds: number): Promise<DeviceCode | undefined>;
  /** Records a poll. If it came too early, raises the polling interval. Returns the device code as it was before. */
  pollDeviceCode(digest: string, nowSeconds: number): Promise<{ code: DeviceCode; tooEarly: boolean } | undefined>;
  /**
   * Approves or denies a device code. Returns false if the code was decided before or has expired, or the app or
   * membership does not exist any more.
   */
  decideDeviceCode(
    userCode: string,
    decision: { state: "denied" } | { state: "approved"; authorization: Authorization },
    event: AuditEvent,
  ): Promise<boolean>;
  /**
   * Redeems a device code: adds the grant and its first refresh token in one transaction. Returns false if the code is
   * not approved, was redeemed before, or its app or membership does not exist any more.
   */
  redeemDeviceCode(
    digest: string,
    issued: { grant: ApiKeyRecord; refreshToken: RefreshToken },
    event: AuditEvent,
  ): Promise<boolean>;

  /** Lists the apps for which the person has grants that have not ended, including the command line tool. */
  listAllowedApps(personId: string, nowSeconds: number): Promise<AllowedApp[]>;
  /** Returns the scopes and tools that the person's grants already allow the app in this account. */
  allowedBefore(
    authorization: Omit<Authorization, "scopes" | "tools" | "quotas">,
    nowSeconds: number,
  ): Promise<Pick<AllowedApp, "scopes" | "tools">>;
  /**
   * Revokes the person's grants for the app, and codes that are not redeemed yet. Without `accountId`, does so in all
   * accounts. Returns the number of grants.
   */
  revokeAllowedApp(personId: string, appId: string, accountId: string | undefined, event: AuditEvent): Promise<number>;
  /**
   * Changes the quotas or tools of the person's grants for the app in one account. From then on, these grants share the
   * quotas. Returns the number of grants.
   */
  limitAllowedApp(
    allowed: Pick<AllowedApp, "appId" | "accountId"> & { personId: string },
    bounds: GrantBounds,
    event: AuditEvent,
  ): Promise<number>;

  /**
   * Deletes records that ended a day ago, and device codes that ended an hour ago. Ends grants whose last refresh token
   * has ended. Works in steps of some hundred rows, so that no query waits for long.
   */
  prune(nowSeconds: number): Promise<void>;
}
