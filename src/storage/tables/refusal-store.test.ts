// Counts of refused requests in the database: by owner, newest first, up to the limit.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { onEachDatabase, type TestDatabase } from "../../../tests/support/databases.ts";
import type { RefusalCount } from "../../domain/limits/refusal.ts";
import type { Database } from "../sql/database.ts";
import { SqlRefusalStore } from "./refusal-store.ts";

const hour = 3_600;
const start = Date.UTC(2026, 8, 1) / 1000;
let opened: TestDatabase;
let db: Database;
let store: SqlRefusalStore;

const count = (more: Partial<RefusalCount> = {}): RefusalCount => ({
  accountId: "acct_1",
  environment: "live",
  start,
  keyId: "key_1",
  appId: null,
  model: "m",
  reason: "key_requests",
  requests: 1,
  lastAt: start + 1,
  ...more,
});

const list = (more: object = {}, limit = 1_000) =>
  store.list({ accountId: "acct_1", environment: "live", start, end: start + 100 * 24 * hour, ...more }, limit);

onEachDatabase((databases) => {
  beforeAll(async () => {
    opened = await databases.open();
    ({ db } = opened);
    store = new SqlRefusalStore(db);
    await store.add([
      count({ start: start + 50 * 24 * hour, keyId: "grt_1", appId: "app_1" }),
      count(),
      count({ start: start + hour, keyId: null, model: null }),
      count({ accountId: "acct_2" }),
      count({ environment: "test" }),
    ]);
  });

  afterAll(async () => {
    await opened.close();
  });

  test("lists the refusals of an account and environment, newest hour first, across any gap", async () => {
    expect(await list()).toEqual([
      count({ start: start + 50 * 24 * hour, keyId: "grt_1", appId: "app_1" }),
      count({ start: start + hour, keyId: null, model: null }),
      count(),
    ]);
  });

  test("lists an app's own refusals, before the end of the range and up to the limit", async () => {
    expect((await list({ appId: "app_1" })).map(({ keyId }) => keyId)).toEqual(["grt_1"]);
    expect(await list({ start: start + hour, end: start + 2 * hour })).toHaveLength(1);
    expect(await list({ end: start + hour })).toEqual([count()]);
    expect((await list({}, 2)).map(({ keyId }) => keyId)).toEqual(["grt_1", null]);
  });

  test("adds repeated refusal counts, and never moves the last time back", async () => {
    const own = { accountId: "acct_3" };
    await store.add([count({ ...own, requests: 2, lastAt: start + 9 })]);
    await store.add([count({ ...own, requests: 3, lastAt: start + 5 })]);
    expect(await list(own)).toEqual([count({ ...own, requests: 5, lastAt: start + 9 })]);
  });

  databases.only("sqlite", "reads the newest of many refusals in primary-key order, without sorting", async () => {
    const plan: { detail: string }[] = await db`
    EXPLAIN QUERY PLAN SELECT * FROM refusals WHERE account_id = 'a' AND environment = 'live' AND start >= 1 AND start < 2
    ORDER BY start DESC, key_id DESC, app_id DESC, model DESC, reason DESC LIMIT 5`;
    expect(plan).toHaveLength(1);
    expect(plan[0]?.detail).toStartWith("SEARCH refusals USING INDEX");
  });
});
