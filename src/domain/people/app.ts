// Third-party applications: OAuth clients that people allow to act for their account.
import type { Environment } from "../api-key.ts";
import type { AuditEvent } from "../audit.ts";
import type { Scope } from "../scope.ts";

/** RFC 6749, 2.1: whether the client can keep a secret. */
export const appTypes = ["confidential", "public"] as const;
export type AppType = (typeof appTypes)[number];

export interface AppSecret {
  /** `sec_…`; no secret. */
  id: string;
  /** Hex HMAC-SHA-256 under the installation's pepper. */
  digest: string;
  last4: string;
  /** Unix seconds. */
  createdAt: number;
  /** Unix seconds; set when another secret replaces this secret. */
  expiresAt: number | null;
}

export interface App {
  /** The app's id, which is also its `client_id`: `app_…`. */
  id: string;
  /** The owning account, whose name is shown as the publisher. */
  accountId: string;
  /** The member who owns the app; null: the account. */
  personId: string | null;
  name: string;
  homepageUrl: string | null;
  type: AppType;
  /** Compared byte by byte; the port of a loopback address may vary. */
  redirectUris: readonly string[];
  /** The maximum scopes. Never `keys:manage` or `admin:manage`. */
  scopes: readonly Scope[];
  /** The tools that it may use at most, as in `ToolAccess`; null: all that people allow it. */
  tools: readonly string[] | null;
  /** The environment in which the app's access tokens work. */
  environment: Environment;
  /** True if PKCE is required (RFC 7636). Always true for public apps. */
  requirePkce: boolean;
  secrets: readonly AppSecret[];
  /** Id of the person or key that registered the app. */
  createdBy: string | null;
  createdAt: number;
}

export type AppChanges = Partial<
  Pick<App, "name" | "homepageUrl" | "redirectUris" | "scopes" | "tools" | "requirePkce">
>;

/** An app with the name of the account that publishes it. */
export interface PublishedApp extends App {
  publisher: string;
  /** Only for clients that no account registered: the URL of their document, or null if they registered themselves. */
  unverified?: { documentUrl: string | null };
}

/** Every write puts its event into the audit log in the same transaction. */
export interface AppStore {
  /** Returns undefined for an unknown or deleted app, or one of a suspended account. */
  findApp(id: string): Promise<PublishedApp | undefined>;
  /** Lists apps of an account and environment, newest first; with `personId`, only that member's own. */
  listApps(
    filter: { accountId: string; environment: Environment; personId?: string },
    page: { after: string | undefined; limit: number },
  ): Promise<App[]>;
  insertApp(app: App, event: AuditEvent): Promise<void>;
  updateApp(id: string, changes: AppChanges, event: AuditEvent): Promise<App | undefined>;
  /** Adds the secret. Earlier ones end at `oldEndAt` at the latest. */
  rotateSecret(id: string, secret: AppSecret, oldEndAt: number, event: AuditEvent): Promise<App | undefined>;
  /** Deletes the app with its grants, which ends its tokens. Returns false if there is no such app. */
  deleteApp(id: string, event: AuditEvent): Promise<boolean>;
}

/** The id of the command line tool: a public client that every installation knows, and not a third party. */
export const commandLineAppId = "headrace-cli";
export const commandLineName = "Headrace command line";
export const commandLinePublisher = "Headrace";

/** The maximum scopes of an app. */
export const appScopes = [
  "chat:read",
  "chat:write",
  "models:read",
  "usage:read",
  "tools:use",
] as const satisfies readonly Scope[];

/** The default scopes of an app. */
export const defaultAppScopes = ["chat:write", "models:read"] as const satisfies readonly (typeof appScopes)[number][];

/** Default overlap in seconds, for which a rotated secret still works. */
export const defaultSecretOverlapSeconds = 86_400;
