// A further API key for a test server, of whatever kind, written straight to its database.
import { join } from "node:path";
import { SQL } from "bun";
import { GatewayError } from "../../src/base/errors.ts";
import { displayParts, type Environment, generateApiKey } from "../../src/domain/api-key.ts";
import { type ApiKeyRecord, newAndUnbounded } from "../../src/domain/principal.ts";
import type { Scope } from "../../src/domain/scope.ts";
import { keyDigest } from "../../src/policy/credentials/key-digest.ts";
import { auditEvent } from "../../src/policy/records/audit.ts";
import { deriveKey, loadSecret } from "../../src/storage/files/secret-file.ts";
import type { Database } from "../../src/storage/sql/database.ts";
import { SqlAccountStore } from "../../src/storage/tables/account-store.ts";
import { SqlKeyStore } from "../../src/storage/tables/key-store.ts";

export interface MintOptions extends Partial<Omit<ApiKeyRecord, "id" | "digest" | "prefix" | "last4" | "limitId">> {
  scopes: readonly Scope[];
  /** `dev` unless said otherwise. */
  environment?: Environment;
}

/** The secret of a key of the first account that the server of this data directory accepts, unless it has ended. */
export async function mintKey(dataDir: string, options: MintOptions): Promise<string> {
  return (await mintKeyRecord(dataDir, options)).key;
}

export async function mintKeyRecord(
  dataDir: string,
  options: MintOptions,
): Promise<{ key: string; record: ApiKeyRecord }> {
  const { environment = "dev" } = options;
  const createdAt = nowSeconds();
  const key = generateApiKey(environment);
  const id = `key_${Bun.randomUUIDv7()}`;
  return withDatabase(dataDir, async (db) => {
    const record: ApiKeyRecord = {
      kind: "key",
      personId: null,
      appId: null,
      role: null,
      accountId: options.accountId ?? (await new SqlAccountStore(db).ensureFirstAccount(createdAt)),
      name: "Made by a test",
      createdBy: null,
      parentId: null,
      createdAt,
      ...newAndUnbounded,
      ...options,
      environment,
      ...displayParts(key),
      id,
      limitId: id,
      digest: keyDigest(key, pepperOf(dataDir)),
    };
    await new SqlKeyStore(db).insertKey(record, operatorEvent("key.created", record));
    return { key, record };
  });
}

/** Revokes a key as another process would. */
export async function revokeMinted(dataDir: string, key: string): Promise<void> {
  await withDatabase(dataDir, async (db) => {
    const store = new SqlKeyStore(db);
    const record = (await store.findChainByDigest(keyDigest(key, pepperOf(dataDir))))?.keys[0];
    if (!record) throw new Error("There is no such key");
    await store.updateKey(record.id, { revokedAt: nowSeconds() }, operatorEvent("key.revoked", record));
  });
}

/** The server of the same process may be writing: SQLite's own waiting would keep it from ever finishing. */
async function withDatabase<Result>(dataDir: string, work: (db: Database) => Promise<Result>): Promise<Result> {
  const db = new SQL({ adapter: "sqlite", filename: join(dataDir, "headrace.db") });
  await db.unsafe("PRAGMA busy_timeout = 0");
  try {
    for (;;) {
      try {
        return await work(db);
      } catch (error) {
        if (!(error instanceof GatewayError) || error.code !== "service_unavailable") throw error;
        await Bun.sleep(5);
      }
    }
  } finally {
    await db.close();
  }
}

function operatorEvent(action: "key.created" | "key.revoked", { id, accountId }: ApiKeyRecord) {
  const origin = { nowSeconds: nowSeconds(), clientAddress: null, requestId: null };
  return auditEvent(action, { type: "operator" }, origin, { accountId, targetId: id, detail: {} });
}

function pepperOf(dataDir: string): Uint8Array {
  return deriveKey(loadSecret(dataDir, undefined), "api-key-pepper-v1");
}

function nowSeconds(): number {
  return Math.floor(Date.now() / 1000);
}
