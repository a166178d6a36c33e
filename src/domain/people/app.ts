// Third-party applications: OAuth clients that people allow to act for their account.
import type { Environment } from "../api-key.ts";
import type { AuditEvent } from "../audit.ts";
import type { Scope } from "../scope.ts";

/** RFC 6749, 2.1: whether it can keep a secret. */
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
  /** Set when another takes its place. */
  expiresAt: number | null;
}

export interface App {
  /** Its id, which is also its `client_id`: `app_…`. */
  id: string;
  /** The account that it belongs to; its name is shown as the publisher. */
  accountId: string;
  /** The member whose own it is; null: the account's. */
  personId: string | null;
  name: string;
  homepageUrl: string | null;
  type: AppType;
  /** Compared byte by byte; the port of a loopback address may vary. */
  redirectUris: readonly string[];
  /** The most it may ask for. Never `keys:manage` nor `admin:manage`. */
  scopes: readonly Scope[];
  /** The most of tools that it may use, as in `ToolReach`; null: all that people allow it. */
  tools: readonly string[] | null;
  /** The environment in which its access tokens work. */
  environment: Environment;
  /** Public apps always have to; RFC 7636. */
  requirePkce: boolean;
  secrets: readonly AppSecret[];
  /** Id of the person or key that registered it. */
  createdBy: string | null;
  createdAt: number;
}

export type AppChanges = Partial<
  Pick<App, "name" | "homepageUrl" | "redirectUris" | "scopes" | "tools" | "requirePkce">
>;

/** An app with the name of the account that publishes it. */
export interface PublishedApp extends App {
  publisher: string;
  /** Only clients that no account registered have it: where their document is, null where they registered by themselves. */
  unverified?: { documentUrl: string | null };
}

/** Every write puts its event into the audit log in the same transaction. */
export interface AppStore {
  /** Undefined for one that is unknown, deleted, or of an account that is suspended. */
  findApp(id: string): Promise<PublishedApp | undefined>;
  /** Apps of an account and environment, newest first; of one member's own where `personId` is given. */
  listApps(
    filter: { accountId: string; environment: Environment; personId?: string },
    page: { after: string | undefined; limit: number },
  ): Promise<App[]>;
  insertApp(app: App, event: AuditEvent): Promise<void>;
  updateApp(id: string, changes: AppChanges, event: AuditEvent): Promise<App | undefined>;
  /** Adds the secret; those before it end at `oldEndAt` at the latest. */
  rotateSecret(id: string, secret: AppSecret, oldEndAt: number, event: AuditEvent): Promise<App | undefined>;
  /** Deletes it with all that it was granted: its tokens end. False where there is none. */
  deleteApp(id: string, event: AuditEvent): Promise<boolean>;
}

/** The command line tool: known to every installation, public, and not a third party. */
export const commandLineAppId = "headrace-cli";
export const commandLineName = "Headrace command line";
export const commandLinePublisher = "Headrace";

/** The most that an app may be granted. */
export const appScopes = [
  "chat:read",
  "chat:write",
  "models:read",
  "usage:read",
  "tools:use",
] as const satisfies readonly Scope[];

/** The scopes of an app that is registered without any. */
export const defaultAppScopes = ["chat:write", "models:read"] as const satisfies readonly (typeof appScopes)[number][];

/** Seconds for which the secret before goes on where a rotation does not say. */
export const defaultSecretOverlapSeconds = 86_400;
