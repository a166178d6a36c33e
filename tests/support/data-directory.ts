// A data directory with records in it, and no server: as one leaves it that was stopped, or killed.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { SQL } from "bun";
import { systemClock } from "../../src/base/clock.ts";
import type { UsageBegin, UsageEnd } from "../../src/domain/usage/usage.ts";
import { SpoolLedger } from "../../src/ledger/ledger.ts";
import { claimSecret } from "../../src/maintenance/installation-secret.ts";
import { loadSecrets } from "../../src/storage/files/secret-file.ts";
import { type Database, openDatabase } from "../../src/storage/sql/database.ts";
import { bringUpToDate } from "../../src/storage/sql/schema.ts";
import { SqlAccountStore } from "../../src/storage/tables/account-store.ts";

export interface FilledDirectory {
  /** For whatever the test needs. */
  root: string;
  dataDir: string;
  db: Database;
  accountId: string;
  /** Its drain writes nothing by itself. */
  ledger: SpoolLedger;
  /** Adds a request that has ended: from then on it is on the spool. */
  settle(requestId: string): Promise<void>;
  /** Leaves it as a server that is killed does. */
  leave(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

export const silentLog = { info() {}, warn() {}, error() {} };
const end: UsageEnd = {
  ...{ promptTokens: 10, completionTokens: 5, estimated: false, outcome: "completed", errorCode: null, nanoUsd: 25 },
  ...{ capped: false, upstream: "up", durationMs: 9, firstTokenMs: 1, queueMs: 0 },
};

export async function filledDirectory(): Promise<FilledDirectory> {
  const root = mkdtempSync(join(tmpdir(), "headrace-records-"));
  const dataDir = join(root, "data");
  mkdirSync(dataDir, { mode: 0o700 });
  const db = await openDatabase(join(dataDir, "headrace.db"));
  await claimSecret(db, loadSecrets(dataDir, undefined), systemClock.nowSeconds());
  const accountId = await new SqlAccountStore(db).ensureFirstAccount(systemClock.nowSeconds());
  writeFileSync(join(dataDir, "credentials.json"), "{}");
  const ledger = await SpoolLedger.open({
    ...{ db, directory: join(dataDir, "spool"), log: silentLog, clock: systemClock },
    drainMs: 3_600_000,
  });
  const begin = (requestId: string): UsageBegin => ({
    ...{ requestId, at: 1_800_000_000, accountId, keyId: "key_1", appId: null, environment: "live" },
    ...{ operation: "chat", model: "m", stream: true },
  });
  let left = false;
  const leave = async () => {
    if (!left) await db.close();
    left = true;
  };
  return {
    ...{ root, dataDir, db, accountId, ledger, leave },
    async settle(requestId) {
      const entry = ledger.begin(begin(requestId));
      await entry.begun;
      await entry.settle(end);
    },
    async [Symbol.asyncDispose]() {
      await leave();
      rmSync(root, { recursive: true, force: true });
    },
  };
}

/** A database as a Headrace that knew only the first `steps` of the schema leaves it, with an account in it. */
export async function makeOldDatabase(file: string, steps: number): Promise<void> {
  const db = new SQL({ adapter: "sqlite", filename: file, create: true });
  try {
    await db.unsafe("PRAGMA journal_mode = WAL");
    await db.begin("IMMEDIATE", (tx) => bringUpToDate(tx, "sqlite", steps));
    await db`INSERT INTO accounts (id, name, tier, created_at) VALUES ('acct_old', 'From before', 'pro', 1800000000)`;
  } finally {
    await db.close();
  }
}
