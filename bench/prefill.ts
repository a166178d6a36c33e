// Fills a stopped Headrace's database: many keys, or a ledger with a past.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { displayParts, generateApiKey } from "../src/domain/api-key.ts";
import { newAndUnbounded } from "../src/domain/principal.ts";
import { keyDigest } from "../src/policy/credentials/key-digest.ts";
import { deriveKey, loadSecret } from "../src/storage/files/secret-file.ts";
import { type Database, openDatabase } from "../src/storage/sql/database.ts";
import { keyToRow } from "../src/storage/tables/credential-rows.ts";
import { keyLimits } from "./governance.ts";
import { addUsageRows } from "./usage-rows.ts";

/**
 * Adds so many live keys of the first account, each with limits of its own; their secrets go into `keysFile`, one a
 * line.
 */
export async function addKeys(dataDir: string, count: number, keysFile: string): Promise<void> {
  const pepper = deriveKey(loadSecret(dataDir, undefined), "api-key-pepper-v1");
  const createdAt = Math.floor(Date.now() / 1000);
  const secrets: string[] = [];
  await withDatabase(dataDir, async (db, accountId) => {
    await db.begin("IMMEDIATE", async (tx) => {
      const rowsOfStatement = 1_000;
      for (let from = 0; from < count; from += rowsOfStatement) {
        const rows = Array.from({ length: Math.min(rowsOfStatement, count - from) }, () => {
          const key = generateApiKey("live");
          secrets.push(key);
          return rowOf(key, { accountId, createdAt, digest: keyDigest(key, pepper) });
        });
        await tx`INSERT INTO api_keys ${tx(rows)}`;
      }
    });
  });
  writeFileSync(keysFile, secrets.join("\n"));
}

/** Adds so many requests of the first account within the last days, by keys and models that are no more. */
export async function addPast(dataDir: string, requests: number): Promise<void> {
  const end = Math.floor(Date.now() / 1000);
  await withDatabase(dataDir, (db, accountId) =>
    addUsageRows(db, { accountId, requests, start: end - 20 * 86_400, end, keys: 50, models: 8 }),
  );
}

function rowOf(
  key: string,
  { accountId, createdAt, digest }: { accountId: string; createdAt: number; digest: string },
) {
  const id = `key_${Bun.randomUUIDv7()}`;
  return keyToRow({
    id,
    kind: "key",
    personId: null,
    appId: null,
    role: null,
    limitId: id,
    accountId,
    digest,
    ...displayParts(key),
    name: "Benchmark",
    environment: "live",
    scopes: ["chat:write", "models:read"],
    createdBy: null,
    parentId: null,
    createdAt,
    ...newAndUnbounded,
    rateLimit: keyLimits.rate_limit,
    rateLimitWindow: keyLimits.rate_limit_window,
    monthlyTokens: keyLimits.monthly_tokens,
    monthlySpend: keyLimits.monthly_spend,
  });
}

async function withDatabase(dataDir: string, work: (db: Database, accountId: string) => Promise<void>): Promise<void> {
  const db = await openDatabase(join(dataDir, "headrace.db"));
  try {
    const [account]: { id: string }[] = await db`SELECT id FROM accounts ORDER BY created_at, id LIMIT 1`;
    if (!account) throw new Error("The start made no account.");
    await work(db, account.id);
  } finally {
    await db.close();
  }
}
