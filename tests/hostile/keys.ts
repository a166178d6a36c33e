// Puts API keys of any kind into the database of a running test server.
import { join } from "node:path";
import { displayParts, type Environment, generateApiKey } from "../../src/domain/api-key.ts";
import { scopes as allScopes, type Scope } from "../../src/domain/scope.ts";
import { keyDigest } from "../../src/policy/key-digest.ts";
import { openDatabase } from "../../src/storage/database.ts";
import { SqlKeyStore } from "../../src/storage/key-store.ts";
import { deriveKey, loadSecret } from "../../src/storage/secret-file.ts";
import type { TestServer } from "../support/headrace.ts";

export interface KeyOptions {
  environment?: Environment;
  scopes?: readonly Scope[];
  /** Unix seconds. */
  expiresAt?: number;
  /** Unix seconds. */
  revokedAt?: number;
}

/** Stores a key of the first account and gives the secret. */
export async function addKey(server: TestServer, options: KeyOptions = {}): Promise<string> {
  const { environment = "dev", scopes = allScopes, expiresAt = null, revokedAt = null } = options;
  const key = generateApiKey(environment);
  const db = await openDatabase(join(server.dataDir, "headrace.db"));
  try {
    await new SqlKeyStore(db).insertKey({
      id: `key_${Bun.randomUUIDv7()}`,
      accountId: server.firstKey.record.accountId,
      name: "of a test",
      environment,
      digest: keyDigest(key, deriveKey(loadSecret(server.dataDir, undefined), "api-key-pepper-v1")),
      ...displayParts(key),
      scopes,
      createdAt: 1_700_000_000,
      expiresAt,
      revokedAt,
    });
  } finally {
    await db.close();
  }
  return key;
}

/** Marks a key as revoked, as another process would. */
export async function revokeKey(server: TestServer, key: string): Promise<void> {
  const digest = keyDigest(key, deriveKey(loadSecret(server.dataDir, undefined), "api-key-pepper-v1"));
  const db = await openDatabase(join(server.dataDir, "headrace.db"));
  try {
    await db`UPDATE api_keys SET revoked_at = ${1_700_000_001} WHERE digest = ${digest}`;
  } finally {
    await db.close();
  }
}
