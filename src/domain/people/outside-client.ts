// Clients that no account registered: they describe themselves by a document at an address of theirs, or registered by themselves.
import type { Environment } from "../api-key.ts";
import type { Scope } from "../scope.ts";
import type { PublishedApp } from "./app.ts";

/** What a client says of itself, checked; nobody has verified its name. */
export interface DescribedClient {
  /** Empty where it says none. */
  name: string;
  homepageUrl: string | null;
  redirectUris: readonly string[];
}

/** A record of the database. Times in Unix seconds. */
export interface OutsideClient extends DescribedClient {
  /** `app_…`, by which grants and usage know it. */
  id: string;
  /** Its client_id, where its document is; null for one that registered itself, whose client_id is its id. */
  documentUrl: string | null;
  createdAt: number;
  /** When a person allowed it last; null: nobody did. */
  allowedAt: number | null;
}

export interface OutsideClientStore {
  /** Adds one that registers itself. False where too many wait to be allowed by somebody: those that wait longest make room. */
  register(client: OutsideClient): Promise<boolean>;
  /** A person is about to allow it: it is kept from then on, as its document describes it now. */
  allowed(client: OutsideClient): Promise<void>;
  /** Forgets those that nobody allowed for a day, and those that were allowed long ago and have nothing left of it. */
  prune(nowSeconds: number): Promise<void>;
}

/** The most that it may be granted: who wants models is registered by an account, which answers for it. */
export const outsideScopes: readonly Scope[] = ["tools:use"];

/** Public, and held to PKCE: whatever it says of itself, nobody here knows it. */
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

/** What stands where the account is of which an app is. */
export function publisherOf(documentUrl: string | null): string {
  return documentUrl === null ? "itself (not verified)" : new URL(documentUrl).host;
}
