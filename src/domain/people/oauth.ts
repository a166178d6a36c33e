// Records of the authorization server: codes, refresh tokens, device codes, and grants.
import type { Environment } from "../api-key.ts";
import type { Acting, AuditEvent } from "../audit.ts";
import type { QuotaRule } from "../limits/quota-rules.ts";
import type { ApiKeyRecord, KeyChain } from "../principal.ts";
import type { Scope } from "../scope.ts";

/**
 * A person's permission for an app. All times are Unix seconds, all digests hex SHA-256 of a token with 256 random
 * bits.
 */
export interface Authorization {
  appId: string;
  personId: string;
  /** The account, one of the person's, for which the permission holds. */
  accountId: string;
  membershipId: string;
  environment: Environment;
  scopes: readonly Scope[];
  /** The tools that the person chose, as in `ToolAccess`; null: all that the person may use. */
  tools: readonly string[] | null;
}

/** Paths of the allowed resources (RFC 8707). */
interface Targeted {
  resources: readonly string[];
}

/** RFC 6749, 4.1. */
export interface AuthorizationCode extends Authorization, Targeted {
  digest: string;
  /** The redirect URI as sent, to be repeated when the code is redeemed; null if it was omitted (one is registered). */
  redirectUri: string | null;
  /** RFC 7636, S256; null where none was sent. */
  codeChallenge: string | null;
  createdAt: number;
  expiresAt: number;
  /** The grant for which the code was redeemed, or null. A second redemption ends that grant. */
  grantId: string | null;
}

/** A refresh token of a chain: each use replaces it. All tokens of a chain belong to one grant. */
export interface RefreshToken extends Targeted {
  digest: string;
  grantId: string;
  createdAt: number;
  /** Idle expiry: each successor has a new one. */
  expiresAt: number;
  usedAt: number | null;
  /** The answer to the token's use, sealed under a key that only the presented token yields. */
  sealedAnswer: string | null;
}

export type DeviceState = "pending" | "approved" | "denied" | "redeemed";

/** RFC 8628. */
export interface DeviceCode extends Targeted {
  digest: string;
  /** The code in the form of `normalizedUserCode` of oauth/. */
  userCode: string;
  appId: string;
  environment: Environment;
  scopes: readonly Scope[];
  /** The tools chosen at the approval; null: all, or not approved yet. */
  tools: readonly string[] | null;
  createdAt: number;
  expiresAt: number;
  /** Seconds between two polls; each early poll adds 5. */
  intervalSeconds: number;
  polledAt: number | null;
  state: DeviceState;
  /** The person who approved the device code. */
  personId: string | null;
  accountId: string | null;
  membershipId: string | null;
  grantId: string | null;
}

/** An app that a person allowed: the person's grants for the app in one account, taken together. */
export interface AllowedApp {
  appId: string;
  appName: string;
  publisher: string;
  homepageUrl: string | null;
  accountId: string;
  accountName: string;
  environment: Environment;
  /** Scopes of all grants together. */
  scopes: readonly Scope[];
  /** Tools of all grants that allow any; null: all that the person may use. */
  tools: readonly string[] | null;
  /** Quotas per window of all grants together. */
  quotas: readonly QuotaRule[];
  /** The id under which the quotas are counted. */
  limitId: string;
  /** Unix seconds of the first current grant, and of the last use. */
  allowedAt: number;
  lastUsedAt: number | null;
}

/** Changes to a person's grants; undefined members stay unchanged. */
export interface GrantBounds {
  quotas?: readonly QuotaRule[] | undefined;
  tools?: readonly string[] | null | undefined;
}

/**
 * A grant is a credential record of the kind `grant`, bounded by the membership of its person: it is cached and revoked
 * like keys.
 */
export interface OAuthStore {
  /**
   * Returns false without a change if the app, or the membership that would bound the grant, does not exist any more.
   */
  insertCode(code: AuthorizationCode, by: Acting): Promise<boolean>;
  findCode(digest: string): Promise<AuthorizationCode | undefined>;
  /**
   * Redeems a code in one transaction: adds the grant and its first refresh token. `replayed` if it was redeemed
   * before; then its grant is revoked in the same transaction. `refused` without a change if the code, the app or the
   * membership does not exist any more.
   */
  redeemCode(
    digest: string,
    issued: { grant: ApiKeyRecord; refreshToken: RefreshToken },
    events: { issued: AuditEvent; replayed: AuditEvent },
  ): Promise<"issued" | "replayed" | "refused">;

  /** Finds a refresh token and the credential chain of its grant. */
  findRefreshToken(digest: string): Promise<{ token: RefreshToken; grant: KeyChain } | undefined>;
  /**
   * Marks the token as used, with its sealed answer, and adds the successor, in one transaction. If it was used before,
   * or its grant has ended, writes nothing and returns the current token.
   */
  rotateRefreshToken(
    digest: string,
    successor: RefreshToken,
    used: { at: number; sealedAnswer: string },
    event: AuditEvent,
  ): Promise<"rotated" | RefreshToken | undefined>;

  /** Returns false if the grant is missing or has ended. */
  revokeGrant(grantId: string, event: AuditEvent): Promise<boolean>;

  insertDeviceCode(code: DeviceCode): Promise<boolean>;
  /** Finds a pending code that has not expired. */
  findByUserCode(userCode: string, nowSeconds: number): Promise<DeviceCode | undefined>;
  /** Records a poll, and raises the interval if it came too early. Returns the code as it was before. */
  pollDeviceCode(digest: string, nowSeconds: number): Promise<{ code: DeviceCode; tooEarly: boolean } | undefined>;
  /**
   * Approves or denies a device code. Returns false if the code is not pending, or `redeemDeviceCode` would refuse the
   * approval.
   */
  decideDeviceCode(
    userCode: string,
    decision: { state: "denied" } | { state: "approved"; authorization: Authorization },
    event: AuditEvent,
  ): Promise<boolean>;
  /**
   * Redeems a device code in one transaction, as `redeemCode`. Returns false if the code is not approved or was
   * redeemed, or if `redeemCode` would refuse such a grant.
   */
  redeemDeviceCode(
    digest: string,
    issued: { grant: ApiKeyRecord; refreshToken: RefreshToken },
    event: AuditEvent,
  ): Promise<boolean>;

  /** Lists apps by current grants, including logins of the command line tool. */
  listAllowedApps(personId: string, nowSeconds: number): Promise<AllowedApp[]>;
  /** Returns what the person's current grants allow the app for the account, all together. */
  allowedBefore(
    authorization: Omit<Authorization, "scopes" | "tools">,
    nowSeconds: number,
  ): Promise<Pick<AllowedApp, "scopes" | "tools">>;
  /**
   * Revokes all grants of the person for the app, in one account or in all, and unredeemed codes. Returns the number of
   * grants.
   */
  revokeAllowedApp(personId: string, appId: string, accountId: string | undefined, event: AuditEvent): Promise<number>;
  /**
   * Limits all grants of the person for the app in one account, which count together from then on. Returns their
   * number.
   */
  limitAllowedApp(
    allowed: Pick<AllowedApp, "appId" | "accountId"> & { personId: string },
    bounds: GrantBounds,
    event: AuditEvent,
  ): Promise<number>;

  /**
   * Deletes records that ended a day ago, device codes after an hour, and ends grants after their last refresh token;
   * in steps of some hundred rows, so that no query waits for long.
   */
  prune(nowSeconds: number): Promise<void>;
}
