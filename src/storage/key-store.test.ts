// Accounts and keys in a real SQLite file, and a schema that is applied once and never backwards.
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { ApiKeyRecord } from "../domain/principal.ts";
import { type Database, openDatabase } from "./database.ts";
import { SqlKeyStore } from "./key-store.ts";
import { migrations } from "./migrations.ts";

let directory: string;
let db: Database;
let keys: SqlKeyStore;
let accountId: string;
const file = () => join(directory, "headrace.db");

beforeEach(async () => {
  directory = mkdtempSync(join(tmpdir(), "headrace-keys-"));
  db = await openDatabase(file());
  keys = new SqlKeyStore(db);
  accountId = await keys.ensureFirstAccount(1_800_000_000);
});

afterEach(async () => {
  await db.close();
  rmSync(directory, { recursive: true, force: true });
});

function record(more: Partial<ApiKeyRecord> = {}): ApiKeyRecord {
  return {
    id: "key_1",
    accountId,
    name: "a name with 'quotes' and ünïcode",
    environment: "dev",
    digest: "d1",
    prefix: "sk_dev_hr_",
    last4: "abcd",
    scopes: ["chat:read", "keys:manage"],
    createdAt: 1_800_000_000,
    expiresAt: null,
    revokedAt: null,
    ...more,
  };
}

describe("keys", () => {
  test("are found by their whole digest, with every field as it was stored", async () => {
    const stored = record({ expiresAt: 1_900_000_000, revokedAt: 1_850_000_000 });
    await keys.insertKey(stored);
    expect(await keys.findKeyByDigest("d1")).toEqual(stored);
    for (const digest of ["d", "d11", "D1", "%", "", "d1' OR '1'='1"]) {
      expect(await keys.findKeyByDigest(digest)).toBeUndefined();
    }
  });

  test("have one digest each: a second key with the same is refused", async () => {
    await keys.insertKey(record());
    await expect(keys.insertKey(record({ id: "key_2" }))).rejects.toThrow();
  });

  test("the first key of an environment is its oldest, whatever its state", async () => {
    await keys.insertKey(record({ id: "key_2", digest: "d2", createdAt: 20 }));
    await keys.insertKey(record({ id: "key_1", digest: "d1", createdAt: 10, revokedAt: 15 }));
    await keys.insertKey(record({ id: "key_0", digest: "d0", createdAt: 5, environment: "live" }));
    expect((await keys.firstKey("dev"))?.id).toBe("key_1");
    expect((await keys.firstKey("live"))?.id).toBe("key_0");
    expect(await keys.firstKey("test")).toBeUndefined();
  });
});

test("the first account is made once, in the Enterprise tier", async () => {
  expect(await keys.ensureFirstAccount(1_900_000_000)).toBe(accountId);
  expect([...(await db`SELECT id, tier FROM accounts`)]).toEqual([{ id: accountId, tier: "enterprise" }]);
});

describe("the schema", () => {
  test("is applied once: what was stored is there after another start", async () => {
    await keys.insertKey(record());
    await db.close();
    db = await openDatabase(file());
    keys = new SqlKeyStore(db);
    expect((await keys.findKeyByDigest("d1"))?.id).toBe("key_1");
    const [row] = await db`SELECT count(*) AS n FROM schema_migrations`;
    expect(Number(row.n)).toBe(migrations.length);
  });

  test("of a newer Headrace is refused with the way out, and left alone", async () => {
    await db`INSERT INTO schema_migrations (version, applied_at) VALUES (${migrations.length + 1}, 0)`;
    await db.close();
    await expect(openDatabase(file())).rejects.toThrow(/start the newer Headrace/);
    // The file is as it was: only the version is in the way.
    const { Database: Sqlite } = await import("bun:sqlite");
    const plain = new Sqlite(file());
    plain.run("DELETE FROM schema_migrations WHERE version = ?", [migrations.length + 1]);
    plain.close();
    db = await openDatabase(file());
    expect(await new SqlKeyStore(db).ensureFirstAccount(0)).toBe(accountId);
  });

  test("is not half applied: a step that fails leaves nothing of itself", async () => {
    await db.close();
    const broken = join(directory, "broken.db");
    const { Database: Sqlite } = await import("bun:sqlite");
    const plain = new Sqlite(broken);
    // Stands in the way of the last statements of the first step.
    plain.run("CREATE TABLE usage_records (x INTEGER)");
    plain.close();
    await expect(openDatabase(broken)).rejects.toThrow();
    const after = new Sqlite(broken);
    const tables = after.query<{ name: string }, []>("SELECT name FROM sqlite_master WHERE type = 'table'").all();
    expect(tables.map((table) => table.name)).toEqual(["usage_records"]);
    after.close();
    db = await openDatabase(file());
  });

  test("is applied once by several starts at once on a new file, and all of them succeed", async () => {
    const fresh = join(directory, "fresh.db");
    const script = `
      const { openDatabase } = await import(${JSON.stringify(join(import.meta.dir, "database.ts"))});
      const db = await openDatabase(${JSON.stringify(fresh)});
      await db.close();`;
    const starts = Array.from({ length: 8 }, () => Bun.spawn([process.execPath, "-e", script], { stderr: "pipe" }));
    const errors = await Promise.all(starts.map((start) => new Response(start.stderr).text()));
    expect(errors.map((text) => /error: .*/.exec(text)?.[0] ?? text)).toEqual(errors.map(() => ""));
    const opened = await openDatabase(fresh);
    const [row] = await opened`SELECT count(*) AS n FROM schema_migrations`;
    expect(Number(row.n)).toBe(migrations.length);
    await opened.close();
  });
});
