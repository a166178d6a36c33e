// A further API key for a test server, written straight to its database: this version has no endpoint that makes keys.
import { join } from "node:path";
import { displayParts, type Environment, generateApiKey } from "../../src/domain/api-key.ts";
import type { Scope } from "../../src/domain/scope.ts";
import { keyDigest } from "../../src/policy/key-digest.ts";
import { openDatabase } from "../../src/storage/database.ts";
import { SqlKeyStore } from "../../src/storage/key-store.ts";
import { deriveKey, loadSecret } from "../../src/storage/secret-file.ts";

export interface MintOptions {
  scopes: readonly Scope[];
  environment?: Environment;
  /** Unix seconds. */
  expiresAt?: number;
  /** Unix seconds. */
  revokedAt?: number;
}

/** The secret of a key that the server of this data directory accepts, unless it is expired or revoked. */
export async function mintKey(dataDir: string, options: MintOptions): Promise<string> {
  const { scopes, environment = "dev", expiresAt = null, revokedAt = null } = options;
  const createdAt = Math.floor(Date.now() / 1000);
  const key = generateApiKey(environment);
  const db = await openDatabase(join(dataDir, "headrace.db"));
  try {
    const store = new SqlKeyStore(db);
    await store.insertKey({
      id: `key_${Bun.randomUUIDv7()}`,
      accountId: await store.ensureFirstAccount(createdAt),
      name: "Made by a test",
      environment,
      digest: keyDigest(key, deriveKey(loadSecret(dataDir, undefined), "api-key-pepper-v1")),
      ...displayParts(key),
      scopes,
      createdAt,
      expiresAt,
      revokedAt,
    });
  } finally {
    await db.close();
  }
  return key;
}
