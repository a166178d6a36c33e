// Pending sign-in flows in databases of both kinds: taken once, bounded in number, and gone when they expire.
import { afterEach, beforeEach, expect, test } from "bun:test";
import { onEachDatabase, type TestDatabase } from "../../../../tests/support/databases.ts";
import type { Database } from "../../sql/database.ts";
import { SqlPendingStore } from "./pending-store.ts";

onEachDatabase((databases) => {
  let opened: TestDatabase;
  let db: Database;
  let store: SqlPendingStore;

  beforeEach(async () => {
    opened = await databases.open();
    ({ db } = opened);
    store = new SqlPendingStore(db);
  });

  afterEach(() => opened.close());

  const put = (kind: string, digest: string, value: string, expiresAt: number) =>
    store.put({ kind, digest, value, expiresAt });
  const left = async (): Promise<string[]> => {
    const rows: { digest: string }[] = await db`SELECT digest FROM pending_entries ORDER BY digest`;
    return rows.map(({ digest }) => digest);
  };

  test("gives a pending entry to one of many concurrent callers, and replaces it by a later one", async () => {
    await put("a", "d", "first", 100);
    await put("a", "d", "second", 100);
    await put("b", "d", "of another kind", 100);
    expect(await store.has("a", "d", 99)).toBe(true);
    const taken = await Promise.all(Array.from({ length: 12 }, () => store.take("a", "d", 99)));
    expect(taken.filter((value) => value !== undefined)).toEqual(["second"]);
    expect(await store.has("a", "d", 99)).toBe(false);
    expect(await store.take("b", "d", 99)).toBe("of another kind");
  });

  test("returns no expired pending entry, and deletes it in the background", async () => {
    await put("a", "old", "x", 100);
    await put("a", "new", "x", 101);
    expect(await store.has("a", "old", 100)).toBe(false);
    await store.prune(100);
    expect(await left()).toEqual(["new"]);
    expect(await store.take("a", "new", 101)).toBeUndefined();
  });

  test("drops the pending entries that end first beyond the bound of their kind", async () => {
    for (let i = 0; i < 10; i++) await put("a", `a${i}`, "x", 100 + i);
    await put("b", "b", "x", 1);
    await store.trim("a", 3);
    expect(await left()).toEqual(["a7", "a8", "a9", "b"]);
  });
});
