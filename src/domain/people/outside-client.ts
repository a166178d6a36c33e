// Clients that no account registered: they use a metadata document, or registered themselves.
import type { Environment } from "../api-key.ts";
import type { Scope } from "../scope.ts";
import type { PublishedApp } from "./app.ts";

/** A client's description of itself; its name is not verified. */
export interface DescribedClient {
  /** Empty without a name. */
  name: string;
  homepageUrl: string | null;
  redirectUris: readonly string[];
}

/** A record of the database. Times in Unix seconds. */
export interface OutsideClient extends DescribedClient {
  /** `app_…`: the id by which grants and usage refer to the client. */
  id: string;
  /**
   * The client_id, which is the URL of the client's document; null for a client that registered itself, whose client_id
   * is its id.
   */
  documentUrl: string | null;
  createdAt: number;
  /** Unix seconds when a person last allowed the client; null: never. */
  allowedAt: number | null;
}

export interface OutsideClientStore {
  /**
   * Adds a client that registers itself. If too many clients have never been authorized, the oldest of them are
   * replaced. Returns false if none is old enough to be replaced.
   */
  register(client: OutsideClient): Promise<boolean>;
  /** Stores a client that a person is about to allow, as its document describes it now. */
  allowed(client: OutsideClient): Promise<void>;
  /** Deletes clients that were not allowed within a day, and those without remaining grants after a long time. */
  prune(nowSeconds: number): Promise<void>;
}

/** The maximum scopes: clients that use models must be registered by an account, which is responsible for them. */
export const outsideScopes: readonly Scope[] = ["tools:use"];

/** Makes the app of such a client: public and with PKCE, because the client's claims about itself are not verified. */
export function outsideApp(client: Omit<OutsideClient, "allowedAt">, environment: Environment): PublishedApp {
  const { id, documentUrl, name, homepageUrl, redirectUris, createdAt } = client;
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
    ...{ createdBy: null, createdAt, unverified: { documentUrl } },
  };
}

/** Returns the publisher to show instead of an account. */
export function publisherOf(documentUrl: string | null): string {
  return documentUrl === null ? "itself (not verified)" : new URL(documentUrl).host;
}
