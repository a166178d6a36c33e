// Records of the authorization server: codes, refresh tokens, device codes, and the grants that they lead to.
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
  /** The person's account for which it holds. */
  accountId: string;
  membershipId: string;
  environment: Environment;
  scopes: readonly Scope[];
  /** The tools that the person chose, as in `ToolReach`; null: all that the person may use. */
  tools: readonly string[] | null;
}

/** Paths of the resources for which tokens may be had (RFC 8707). */
interface Targeted {
  resources: readonly string[];
}

/** RFC 6749, 4.1. */
export interface AuthorizationCode extends Authorization, Targeted {
  digest: string;
  /**
   * The address as it was sent, to be repeated when the code is redeemed; null where it was left out (one is
   * registered).
   */
  redirectUri: string | null;
  /** RFC 7636, S256; null where none was sent. */
  codeChallenge: string | null;
  createdAt: number;
  expiresAt: number;
  /** The grant that it was redeemed for; a second redemption ends it. */
  grantId: string | null;
}

/** One of a chain: each use puts another in its place. All of a chain belong to one grant. */
export interface RefreshToken extends Targeted {
  digest: string;
  grantId: string;
  createdAt: number;
  /** Idle: counted anew for each successor. */
  expiresAt: number;
  usedAt: number | null;
  /** The answer to its use, sealed under a key that only the presented token gives. */
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
  /** Those that were chosen as it was approved; null: all, or nobody has approved it. */
  tools: readonly string[] | null;
  createdAt: number;
  expiresAt: number;
  /** Seconds between two polls; grows by 5 with each that comes too early. */
  intervalSeconds: number;
  polledAt: number | null;
  state: DeviceState;
  /** The person who approved it. */
  personId: string | null;
  accountId: string | null;
  membershipId: string | null;
  grantId: string | null;
}

/** An app that a person allowed, all of its grants for one account together. */
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
  /** Tools of all grants together that may use any; null: all that the person may use. */
  tools: readonly string[] | null;
  /** Quotas per window of all grants together. */
  quotas: readonly QuotaRule[];
  /** What they count under. */
  limitId: string;
  /** Unix seconds: of the first grant that still is, and of the last use. */
  allowedAt: number;
  lastUsedAt: number | null;
}

/** What a person may change of what was allowed; what is undefined stays as it is. */
export interface GrantBounds {
  quotas?: readonly QuotaRule[] | undefined;
  tools?: readonly string[] | null | undefined;
}

/**
 * A grant is a credential record of the kind `grant`, bounded by the membership of whoever allowed it: it is in the same
 * cache as keys are, and its end is noticed as theirs is.
 */
export interface OAuthStore {
  /** False, with nothing written, where the app, or the membership that would bound the grant, is there no more. */
  insertCode(code: AuthorizationCode, by: Acting): Promise<boolean>;
  findCode(digest: string): Promise<AuthorizationCode | undefined>;
  /**
   * One transaction: takes the code, adds the grant and its first refresh token. `replayed` where the code was taken before;
   * then the grant that it was redeemed for is revoked, in the same transaction, with `replayed`. `refused`, with nothing
   * written, where the code, the app, or the membership that bounds the grant is there no more.
   */
  redeemCode(
    digest: string,
    issued: { grant: ApiKeyRecord; refreshToken: RefreshToken },
    events: { issued: AuditEvent; replayed: AuditEvent },
  ): Promise<"issued" | "replayed" | "refused">;

  /** The token with the grant's chain. */
  findRefreshToken(digest: string): Promise<{ token: RefreshToken; grant: KeyChain } | undefined>;
  /**
   * One transaction: marks the token used with its sealed answer and adds the successor. Where it was used before, or its
   * grant has ended, nothing is written, and the token as it is now is given.
   */
  rotateRefreshToken(
    digest: string,
    successor: RefreshToken,
    used: { at: number; sealedAnswer: string },
    event: AuditEvent,
  ): Promise<"rotated" | RefreshToken | undefined>;

  /** False where it is not there or has ended. */
  revokeGrant(grantId: string, event: AuditEvent): Promise<boolean>;

  insertDeviceCode(code: DeviceCode): Promise<boolean>;
  /** Pending ones that have not expired. */
  findByUserCode(userCode: string, nowSeconds: number): Promise<DeviceCode | undefined>;
  /** Records a poll: gives the code as it was before, with the interval raised where the poll came too early. */
  pollDeviceCode(digest: string, nowSeconds: number): Promise<{ code: DeviceCode; tooEarly: boolean } | undefined>;
  /** False where it is no longer pending, or what is approved would be refused by `redeemDeviceCode`. */
  decideDeviceCode(
    userCode: string,
    decision: { state: "denied" } | { state: "approved"; authorization: Authorization },
    event: AuditEvent,
  ): Promise<boolean>;
  /** One transaction, as `redeemCode`; false where it is not approved, was redeemed, or would be refused. */
  redeemDeviceCode(
    digest: string,
    issued: { grant: ApiKeyRecord; refreshToken: RefreshToken },
    event: AuditEvent,
  ): Promise<boolean>;

  /** Apps by grants that have not ended; the command line tool's logins are among them. */
  listAllowedApps(personId: string, nowSeconds: number): Promise<AllowedApp[]>;
  /** What the person allowed the app for the account, by grants that have not ended, all of them together. */
  allowedBefore(
    authorization: Omit<Authorization, "scopes" | "tools">,
    nowSeconds: number,
  ): Promise<Pick<AllowedApp, "scopes" | "tools">>;
  /** All grants of the person for the app, in one account or in all, and codes not yet redeemed; how many grants there were. */
  revokeAllowedApp(personId: string, appId: string, accountId: string | undefined, event: AuditEvent): Promise<number>;
  /** Bounds all grants of the person for the app in one account, which count together from then on; how many there were. */
  limitAllowedApp(
    allowed: Pick<AllowedApp, "appId" | "accountId"> & { personId: string },
    bounds: GrantBounds,
    event: AuditEvent,
  ): Promise<number>;

  /**
   * Forgets what ended a day ago, device codes after an hour, and ends grants whose last refresh token it was; in steps of
   * some hundreds, so that nobody waits for long.
   */
  prune(nowSeconds: number): Promise<void>;
}
