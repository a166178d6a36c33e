// Clients that no account registered, in both databases: bounded in number, and deleted when nobody uses them.
import { afterEach, beforeEach, expect, test } from "bun:test";
import { testEvent } from "../../../../tests/support/credentials.ts";
import { onEachDatabase, type TestDatabase } from "../../../../tests/support/databases.ts";
import { keyRecordFor } from "../../../../tests/support/principal.ts";
import type { OutsideClient } from "../../../domain/people/outside-client.ts";
import { SqlKeyStore } from "../key-store.ts";
import { SqlAppStore } from "./app-store.ts";
import { maxWaiting, SqlOutsideClientStore } from "./outside-client-store.ts";

const day = 86_400;
const now = 1_790_000_000;

onEachDatabase((databases) => {
  let opened: TestDatabase;
  let store: SqlOutsideClientStore;
  let apps: SqlAppStore;

  beforeEach(async () => {
    opened = await databases.open();
    store = new SqlOutsideClientStore(opened.db);
    apps = new SqlAppStore(opened.db, { environment: "dev" });
  });

  afterEach(() => opened.close());

  const client = (id: string, more: Partial<OutsideClient> = {}): OutsideClient => ({
    ...{ id, documentUrl: null, name: "Cli", homepageUrl: null, redirectUris: ["http://127.0.0.1/callback"] },
    ...{ createdAt: now, allowedAt: null, suspendedBy: null },
    ...more,
  });
  const isThere = async (id: string) => (await apps.findApp(id)) !== undefined;

  test("finds a client as an app with tool scopes only, as its document describes it", async () => {
    const documentUrl = "https://client.example/cli.json";
    await store.allowed(client("app_1", { documentUrl, allowedAt: now }));
    await store.allowed(client("app_1", { documentUrl, allowedAt: now + 1, name: "Cli 2" }));
    expect(await apps.findApp("app_1")).toMatchObject({
      ...{ name: "Cli 2", publisher: "client.example", scopes: ["tools:use"], type: "public", environment: "dev" },
      ...{ tools: null, requirePkce: true, redirectUris: ["http://127.0.0.1/callback"], unverified: { documentUrl } },
    });
    expect(await store.register(client("app_2", { name: "" }))).toBe(true);
    expect(await apps.findApp("app_2")).toMatchObject({
      name: "itself (not verified)",
      unverified: { documentUrl: null },
    });
    expect(await apps.findApp("app_3")).toBeUndefined();
  });

  test("keeps an operator's suspension of a client when an account suspends or resumes it", async () => {
    await store.register(client("app_1"));
    await apps.setSuspended("app_1", { by: "operator", isSuspended: true }, testEvent(now));
    for (const isSuspended of [true, false]) {
      expect(await apps.setSuspended("app_1", { by: "account", isSuspended }, testEvent(now))).toBe("operator");
    }
    expect((await apps.findApp("app_1"))?.suspendedBy).toBe("operator");
  });

  test("bounds waiting client registrations, and drops none of the last fifteen minutes", async () => {
    await opened.db`
      WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${maxWaiting})
      INSERT INTO outside_clients (id, name, redirect_uris, created_at)
      SELECT 'app_old_' || i, '', '[]', ${now - 901} + i FROM n`;
    const outcomes: boolean[] = [];
    for (let i = 0; i < 10; i++) outcomes.push(await store.register(client(`app_new_${i}`)));
    // Only the first of the old clients registered more than 15 minutes ago, so only it makes room.
    expect(outcomes).toEqual([true, ...Array.from({ length: 9 }, () => false)]);
    expect(await isThere("app_old_1")).toBe(false);
    expect(await isThere("app_old_2")).toBe(true);
    expect(await store.register(client("app_later", { createdAt: now + 900 }))).toBe(true);
    const [row]: { n: number | string }[] = await opened.db`SELECT count(*) AS n FROM outside_clients`;
    expect(Number(row?.n)).toBe(maxWaiting);
  });

  test("drops an unused client after a day, and an allowed one ninety days after its grants", async () => {
    const allowedAt = now;
    for (const id of ["app_waiting", "app_used", "app_unused"]) await store.register(client(id));
    for (const id of ["app_used", "app_unused"]) await store.allowed(client(id, { allowedAt }));
    await opened.db`INSERT INTO accounts (id, name, tier, status, overrides, store_chats, created_at)
      VALUES ('acct_1', 'A', 'free', 'active', '{}', 0, 0)`;
    const grant = keyRecordFor({ id: "grt_1", kind: "grant", accountId: "acct_1", appId: "app_used" });
    await new SqlKeyStore(opened.db).insertKey(grant, testEvent(now));
    await store.prune(now + day - 1);
    expect(await Promise.all(["app_waiting", "app_used", "app_unused"].map(isThere))).toEqual([true, true, true]);
    await store.prune(now + day);
    expect(await Promise.all(["app_waiting", "app_used", "app_unused"].map(isThere))).toEqual([false, true, true]);
    await store.prune(now + 90 * day);
    expect(await Promise.all(["app_used", "app_unused"].map(isThere))).toEqual([true, false]);
  });
});
