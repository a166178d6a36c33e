// Apps in real databases of both kinds: how many secrets work, and what ends with a deleted app.
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { testEvent } from "../../../../tests/support/credentials.ts";
import { onEachDatabase, type TestDatabase } from "../../../../tests/support/databases.ts";
import { keyRecordFor } from "../../../../tests/support/principal.ts";
import type { App, AppSecret } from "../../../domain/people/app.ts";
import type { ApiKeyRecord } from "../../../domain/principal.ts";
import type { Database } from "../../sql/database.ts";
import { SqlAccountStore } from "../account-store.ts";
import { SqlAuditLog } from "../audit-log.ts";
import { SqlKeyStore } from "../key-store.ts";
import { SqlAppStore } from "./app-store.ts";

const now = 1_800_000_000;

let opened: TestDatabase;
let db: Database;
let apps: SqlAppStore;
let keys: SqlKeyStore;
let accounts: SqlAccountStore;
let accountId: string;

onEachDatabase((databases) => {
  beforeEach(async () => {
    opened = await databases.open();
    ({ db } = opened);
    apps = new SqlAppStore(db);
    keys = new SqlKeyStore(db);
    accounts = new SqlAccountStore(db);
    accountId = await accounts.ensureFirstAccount(now);
  });

  afterEach(async () => {
    await opened.close();
  });

  const secret = (id: string, createdAt = now, expiresAt: number | null = null): AppSecret => ({
    id,
    digest: `digest of ${id}`,
    last4: "abcd",
    createdAt,
    expiresAt,
  });

  function app(more: Partial<App> = {}): App {
    return {
      id: "app_1",
      accountId,
      personId: null,
      name: "an app with 'quotes' and ünïcode",
      homepageUrl: "https://app.example/",
      type: "confidential",
      redirectUris: ["https://app.example/callback?a=1,2", "com.example.app:/callback"],
      scopes: ["chat:write", "models:read"],
      environment: "live",
      tools: null,
      requirePkce: false,
      suspendedBy: null,
      secrets: [secret("sec_1")],
      createdBy: "usr_1",
      createdAt: now,
      ...more,
    };
  }

  const event = (at = now) => testEvent(at);
  const revision = () => keys.credentialRevision();
  const grant = (id: string, more: Partial<ApiKeyRecord> = {}) =>
    keyRecordFor({ id, kind: "grant", accountId, appId: "app_1", personId: "usr_1", ...more });
  const secretIds = async (id = "app_1") => (await apps.findApp(id))?.secrets.map((one) => one.id);

  describe("a stored app", () => {
    test("finds an app as stored, with the name of its publishing account", async () => {
      await apps.insertApp(app(), event());
      const account = await accounts.findAccount(accountId);
      expect(await apps.findApp("app_1")).toEqual({ ...app(), publisher: account?.name ?? "" });
    });

    test("stores an app without secrets, addresses and home page", async () => {
      const bare = app({ type: "public", secrets: [], redirectUris: [], homepageUrl: null, requirePkce: true });
      await apps.insertApp(bare, event());
      expect(await apps.findApp("app_1")).toMatchObject(bare);
    });

    test("finds no unknown app and none of a suspended account", async () => {
      await apps.insertApp(app(), event());
      expect(await apps.findApp("app_2")).toBeUndefined();
      await accounts.updateAccount(accountId, { status: "suspended" }, event());
      expect(await apps.findApp("app_1")).toBeUndefined();
    });

    test("keeps an operator's suspension of an app when its account suspends or resumes it", async () => {
      await apps.insertApp(app(), event());
      expect(await apps.setSuspended("app_1", { by: "operator", isSuspended: true }, event())).toBe("operator");
      const before = await revision();
      for (const isSuspended of [true, false]) {
        expect(await apps.setSuspended("app_1", { by: "account", isSuspended }, event())).toBe("operator");
      }
      expect([(await apps.findApp("app_1"))?.suspendedBy, await revision()]).toEqual(["operator", before]);
      expect(await apps.setSuspended("app_1", { by: "operator", isSuspended: false }, event())).toBeNull();
      expect(await apps.setSuspended("app_9", { by: "operator", isSuspended: true }, event())).toBeUndefined();
    });

    test("writes an app with its audit event or not at all", async () => {
      await apps.insertApp(app(), { ...event(), id: "audit_1" });
      const audit = new SqlAuditLog(db);
      const page = { after: undefined, limit: 100 };
      const before = await audit.list({}, page);
      expect(before.map(({ id }) => id)).toContain("audit_1");
      await expect(apps.insertApp(app({ id: "app_2" }), { ...event(), id: "audit_1" })).rejects.toThrow();
      await expect(apps.deleteApp("app_1", { ...event(), id: "audit_1" })).rejects.toThrow();
      expect(await apps.findApp("app_2")).toBeUndefined();
      expect(await secretIds()).toEqual(["sec_1"]);
      await apps.updateApp("app_9", { name: "nothing" }, { ...event(), id: "audit_9" });
      expect(await audit.list({}, page)).toEqual(before);
    });

    test("refuses a change of an app by a user outside its account", async () => {
      await apps.insertApp(app(), event());
      const foreign = { ...event(), accountId, actor: { type: "person", id: "usr_9" } as const };
      await expect(apps.updateApp("app_1", { name: "taken" }, foreign)).rejects.toMatchObject({
        code: "invalid_api_key",
      });
      expect((await apps.findApp("app_1"))?.name).toBe(app().name);
    });
  });

  describe("the list of apps", () => {
    beforeEach(async () => {
      await accounts.insertAccount(
        {
          id: "acct_2",
          name: "Other",
          tier: "free",
          status: "active",
          overrides: {},
          storeChats: false,
          tools: null,
          createdAt: now,
        },
        event(),
      );
      await apps.insertApp(app(), event());
      await apps.insertApp(app({ id: "app_2", personId: "usr_1", secrets: [secret("sec_2")] }), event());
      await apps.insertApp(app({ id: "app_3", environment: "dev", secrets: [secret("sec_3")] }), event());
      await apps.insertApp(app({ id: "app_4", accountId: "acct_2", secrets: [] }), event());
      await apps.insertApp(app({ id: "app_5", secrets: [] }), event());
    });

    const list = async (filter: { personId?: string } = {}, after?: string, limit = 10) =>
      (await apps.listApps({ accountId, environment: "live", ...filter }, { after, limit })).map(({ id, secrets }) => [
        id,
        ...secrets.map((one) => one.id),
      ]);

    test("lists the apps of an account and environment, newest first, each with its own secrets", async () => {
      expect(await list()).toEqual([["app_5"], ["app_2", "sec_2"], ["app_1", "sec_1"]]);
    });

    test("continues the list after an app", async () => {
      expect(await list({}, undefined, 1)).toEqual([["app_5"]]);
      expect(await list({}, "app_5", 1)).toEqual([["app_2", "sec_2"]]);
      expect(await list({}, "app_1")).toEqual([]);
    });

    test("lists only the member's own apps for a member", async () => {
      expect(await list({ personId: "usr_1" })).toEqual([["app_2", "sec_2"]]);
    });
  });

  test("keeps unnamed fields of an app in a change", async () => {
    await apps.insertApp(app(), event());
    const updated = await apps.updateApp("app_1", { redirectUris: ["https://b.example/"], homepageUrl: null }, event());
    const expected = app({ redirectUris: ["https://b.example/"], homepageUrl: null });
    expect(updated).toEqual(expected);
    expect(await apps.findApp("app_1")).toMatchObject(expected);
    expect(await apps.updateApp("app_2", { name: "x" }, event())).toBeUndefined();
  });

  describe("the rotation of an app's secret", () => {
    beforeEach(() => apps.insertApp(app(), event()));

    test("adds a secret and ends the previous one at the given time", async () => {
      const rotated = await apps.rotateSecret("app_1", secret("sec_2", now + 1), now + 100, event(now + 1));
      expect(rotated?.secrets).toEqual([secret("sec_1", now, now + 100), secret("sec_2", now + 1)]);
      expect((await apps.findApp("app_1"))?.secrets).toEqual(rotated?.secrets ?? []);
    });

    test("keeps only the new secret without an overlap", async () => {
      await apps.rotateSecret("app_1", secret("sec_2", now + 1), now + 1, event(now + 1));
      expect(await secretIds()).toEqual(["sec_2"]);
    });

    test("ends a secret that an earlier rotation had kept", async () => {
      await apps.rotateSecret("app_1", secret("sec_2", now + 1), now + 100, event(now + 1));
      await apps.rotateSecret("app_1", secret("sec_3", now + 2), now + 100, event(now + 2));
      expect(await secretIds()).toEqual(["sec_2", "sec_3"]);
    });

    test("keeps the secret in use in a rotation after the clock was set back", async () => {
      await apps.rotateSecret("app_1", secret("sec_2", now - 3_600), now + 100, event(now - 3_600));
      await apps.rotateSecret("app_1", secret("sec_3", now - 3_500), now + 100, event(now - 3_500));
      const left = (await apps.findApp("app_1"))?.secrets ?? [];
      expect(left.map(({ id, expiresAt }) => [id, expiresAt])).toEqual([
        ["sec_2", now + 100],
        ["sec_3", null],
      ]);
    });

    test("leaves two secrets after many concurrent rotations, one of which ends", async () => {
      const ids = Array.from({ length: 20 }, (_, i) => `sec_n${String(i).padStart(2, "0")}`);
      await Promise.all(ids.map((id) => apps.rotateSecret("app_1", secret(id, now + 1), now + 100, event(now + 1))));
      const left = (await apps.findApp("app_1"))?.secrets ?? [];
      expect(left.map(({ expiresAt }) => expiresAt)).toEqual([now + 100, null]);
    });

    test("writes nothing for the rotation of a missing app", async () => {
      expect(await apps.rotateSecret("app_2", secret("sec_2"), now, event())).toBeUndefined();
      expect(await secretIds()).toEqual(["sec_1"]);
    });
  });

  describe("the deletion of an app", () => {
    const code = (digest: string, appId: string) => ({
      ...{ digest, app_id: appId, person_id: "usr_1", account_id: accountId, membership_id: "mbr_1" },
      ...{ environment: "live", scopes: "chat:write", redirect_uri: null, code_challenge: null },
      ...{ created_at: now, expires_at: now + 60, grant_id: null },
    });
    const deviceCode = (digest: string, appId: string, state: string) => ({
      ...{ digest, user_code: digest, app_id: appId, environment: "live", scopes: "", created_at: now },
      ...{ expires_at: now + 600, interval_seconds: 5, polled_at: null, state },
      ...{ person_id: null, account_id: null, membership_id: null, grant_id: null },
    });

    beforeEach(async () => {
      await apps.insertApp(app(), event());
      await apps.insertApp(app({ id: "app_2", secrets: [secret("sec_2")] }), event());
      for (const one of [
        grant("grt_1"),
        grant("grt_due", { revokedAt: now + 500 }),
        grant("grt_past", { revokedAt: now - 500 }),
        grant("grt_2", { appId: "app_2" }),
        keyRecordFor({ id: "key_1", accountId }),
      ]) {
        await keys.insertKey(one, event());
      }
      await db`INSERT INTO authorization_codes ${db([code("c1", "app_1"), code("c2", "app_2")])}`;
      await db`INSERT INTO device_codes ${db([
        deviceCode("d1", "app_1", "pending"),
        deviceCode("d2", "app_1", "approved"),
        deviceCode("d3", "app_2", "pending"),
      ])}`;
    });

    test("ends every grant of a deleted app, and no other, in the same transaction", async () => {
      const before = await revision();
      expect(await apps.deleteApp("app_1", event(now + 9))).toBe(true);
      expect(await revision()).toBe(before + 1);
      const state = async (id: string) => {
        const key = (await keys.findChainById(id))?.keys[0];
        return [key?.revoked, key?.revokedAt];
      };
      expect(await state("grt_1")).toEqual([true, now + 9]);
      expect(await state("grt_due")).toEqual([true, now + 9]);
      expect(await state("grt_past")).toEqual([true, now - 500]);
      expect(await state("grt_2")).toEqual([false, null]);
      expect(await state("key_1")).toEqual([false, null]);
    });

    test("deletes an app's codes and secrets with it, and keeps those of other apps", async () => {
      await apps.deleteApp("app_1", event());
      const left = async (table: string, column: string) =>
        (await db.unsafe(`SELECT ${column} AS name FROM ${table} ORDER BY 1`)).map(
          ({ name }: { name: string }) => name,
        );
      expect(await left("authorization_codes", "digest")).toEqual(["c2"]);
      expect(await left("device_codes", "digest")).toEqual(["d3"]);
      expect(await left("app_secrets", "id")).toEqual(["sec_2"]);
      expect(await left("apps", "id")).toEqual(["app_2"]);
    });

    test("reports the deletion of a missing app", async () => {
      const before = await revision();
      expect(await apps.deleteApp("app_9", event())).toBe(false);
      expect(await revision()).toBe(before);
    });
  });
});
