// Who makes a request, as established by a credential.
import type { Environment } from "./api-key.ts";
import type { Scope } from "./scope.ts";

export interface Principal {
  accountId: string;
  keyId: string;
  environment: Environment;
  scopes: ReadonlySet<Scope>;
}

/** An API key as stored: never the secret, only its digest. Times in Unix seconds. */
export interface ApiKeyRecord {
  id: string;
  accountId: string;
  name: string;
  environment: Environment;
  /** Hex HMAC-SHA-256 of the whole key under the installation's pepper. */
  digest: string;
  prefix: string;
  last4: string;
  scopes: readonly Scope[];
  createdAt: number;
  expiresAt: number | null;
  revokedAt: number | null;
}

export interface KeyStore {
  /** One indexed read by full digest. */
  findKeyByDigest(digest: string): Promise<ApiKeyRecord | undefined>;
  /** The oldest key of an environment, whatever its state. */
  firstKey(environment: Environment): Promise<ApiKeyRecord | undefined>;
  insertKey(key: ApiKeyRecord): Promise<void>;
}
