// Third-party applications: OAuth clients that people allow to act for their account.
import type { Environment } from "../api-key.ts";
import type { AuditEvent } from "../audit.ts";
import type { Suspender, SuspensionChange } from "../principal.ts";
import type { Scope } from "../scope.ts";

/** RFC 6749, 2.1. A confidential client can keep a secret, a public one cannot. */
export const appTypes = ["confidential", "public"] as const;
export type AppType = (typeof appTypes)[number];

export interface AppSecret {
  /** `sec_…`; no secret. */
  id: string;
  /** HMAC-SHA-256 of the secret, keyed with the installation's pepper, in hex. */
  digest: string;
  last4: string;
  /** Unix seconds. */
  createdAt: number;
  /** Unix seconds. Set when a new secret replaces this one. Null for the newest secret. */
  expiresAt: number | null;
}

export interface App {
  /** The app's id, which is also its `client_id`: `app_…`. */
  id: string;
  /** The account that owns the app. Its name is shown as the app's publisher. */
  accountId: string;
  /** The member who owns the app. Null if the account owns it. */
  personId: string | null;
  name: string;
  homepageUrl: string | null;
  type: AppType;
  /** Allowed redirect URIs, compared byte by byte. Only the port of a loopback address may differ. */
  redirectUris: readonly string[];
  /** The most scopes that people can grant to the app. Never `keys:manage` or `admin:manage`. */
  scopes: readonly Scope[];
  /** The most tools that people can allow the app to use, in the syntax of `ToolAccess`. Null means no restriction. */
  tools: readonly string[] | null;
  /** The environment in which the app's access tokens work. */
  environment: Environment;
  /** True if PKCE is required (RFC 7636). Always true for public apps. */
  requirePkce: boolean;
  secrets: readonly AppSecret[];
  /** The suspender of the app. Null means that it is not suspended. */
  suspendedBy: Suspender | null;
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
  /** Set only for a client that no account registered. `documentUrl` is null if the client registered itself. */
  unverified?: { documentUrl: string | null };
}

/** Every method that writes also writes the audit event, in the same transaction. */
export interface AppStore {
  /** Returns the app. Returns undefined if the app is unknown or deleted, or its account is suspended. */
  findApp(id: string): Promise<PublishedApp | undefined>;
  /** Lists apps of an account and environment, newest first. With `personId`, lists only apps of this member. */
  listApps(
    filter: { accountId: string; environment: Environment; personId?: string },
    page: { after: string | undefined; limit: number },
  ): Promise<App[]>;
  insertApp(app: App, event: AuditEvent): Promise<void>;
  updateApp(id: string, changes: AppChanges, event: AuditEvent): Promise<App | undefined>;
  /** Adds the secret. Earlier secrets end at `oldEndAt` or before. */
  rotateSecret(id: string, secret: AppSecret, oldEndAt: number, event: AuditEvent): Promise<App | undefined>;
  /**
   * Suspends or resumes an app, which may also be a client that no account registered. A suspension by a higher rank
   * stays as it is. Returns the app's suspender after the change, and undefined if the app does not exist.
   */
  setSuspended(id: string, change: SuspensionChange, event: AuditEvent): Promise<Suspender | null | undefined>;
  /** Deletes the app and its grants, so that its tokens end. Returns false if the app does not exist. */
  deleteApp(id: string, event: AuditEvent): Promise<boolean>;
}

/**
 * The client id of the `headrace` command line tool: a public client that every installation knows. It is no
 * third-party app.
 */
export const commandLineAppId = "headrace-cli";
export const commandLineName = "Headrace command line";
export const commandLinePublisher = "Headrace";

/** The scopes that an app can have at most. */
export const appScopes = [
  "chat:read",
  "chat:write",
  "models:read",
  "usage:read",
  "tools:use",
] as const satisfies readonly Scope[];

/** The default scopes of an app. */
export const defaultAppScopes = ["chat:write", "models:read"] as const satisfies readonly (typeof appScopes)[number][];

/** Default number of seconds for which the previous secret still works after a rotation. */
export const defaultSecretOverlapSeconds = 86_400;
