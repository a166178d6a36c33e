// OAuth clients that no account registered. They publish a metadata document, or registered themselves.
import type { Environment } from "../api-key.ts";
import type { Suspender } from "../principal.ts";
import type { Scope } from "../scope.ts";
import type { PublishedApp } from "./app.ts";

/** A client's description of itself. The name is not verified. */
export interface DescribedClient {
  /** The name, or an empty text if the client gave none. */
  name: string;
  homepageUrl: string | null;
  redirectUris: readonly string[];
}

/** A stored client that no account registered. Times in Unix seconds. */
export interface OutsideClient extends DescribedClient {
  /** `app_…`: the id by which grants and usage refer to the client. */
  id: string;
  /**
   * The URL of the client's metadata document, which is its client_id. Null for a client that registered itself; its
   * client_id is `id`.
   */
  documentUrl: string | null;
  createdAt: number;
  /** When a person last allowed the client, in Unix seconds. Null if nobody has. */
  allowedAt: number | null;
  /** The suspender of the client. Null means that it is not suspended. */
  suspendedBy: Suspender | null;
}

export interface OutsideClientStore {
  /**
   * Adds a client that registers itself. If there are too many clients that nobody has allowed, the oldest of these are
   * replaced. Returns false if none is old enough to be replaced.
   */
  register(client: OutsideClient): Promise<boolean>;
  /** Stores a client, with its current metadata, before a person allows it. */
  allowed(client: OutsideClient): Promise<void>;
  /** Deletes clients that nobody allowed within a day. Also deletes clients that have had no grants for a long time. */
  prune(nowSeconds: number): Promise<void>;
}

/**
 * The most scopes that a client can get if no account registered it. Only registered clients may use models, because
 * their account is responsible for them.
 */
export const outsideScopes: readonly Scope[] = ["tools:use"];

/**
 * Returns the app record of a client that no account registered. The app is public and requires PKCE, because the
 * client is not verified.
 */
export function outsideApp(client: Omit<OutsideClient, "allowedAt">, environment: Environment): PublishedApp {
  const { id, documentUrl, name, homepageUrl, redirectUris, suspendedBy, createdAt } = client;
  const publisher = publisherOf(documentUrl);
  return {
    ...{ id, accountId: "", personId: null, name: name === "" ? publisher : name, publisher, homepageUrl },
    ...{
      type: "public",
      redirectUris,
      scopes: outsideScopes,
      tools: null,
      environment,
      requirePkce: true,
      secrets: [],
    },
    ...{ suspendedBy, createdBy: null, createdAt, unverified: { documentUrl } },
  };
}

/** Returns the publisher name for a client that no account registered. */
export function publisherOf(documentUrl: string | null): string {
  return documentUrl === null ? "itself (not verified)" : new URL(documentUrl).host;
}
