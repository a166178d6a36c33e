// Keys in real databases of both kinds, changed together with the audit log and the revision.
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { onEachDatabase, type TestDatabase } from "../../../tests/support/databases.ts";
import { explained } from "../../../tests/support/query-plans.ts";
import type { AuditActor, AuditEvent } from "../../domain/audit.ts";
import {
  type ApiKeyRecord,
  type KeyChanges,
  keyStatus,
  newAndUnbounded,
  type Suspender,
} from "../../domain/principal.ts";
import type { Database } from "../sql/database.ts";
import { SqlAccountStore } from "./account-store.ts";
import { SqlAuditLog } from "./audit-log.ts";
import { SqlKeyStore } from "./key-store.ts";
import { SqlDeclaredMarks } from "./operations/declared-marks.ts";

const now = 1_800_000_000;

let opened: TestDatabase;
let db: Database;
let keys: SqlKeyStore;
let audit: SqlAuditLog;
let accountId: string;

onEachDatabase((databases) => {
  beforeEach(async () => {
    opened = await databases.open();
    ({ db } = opened);
    keys = new SqlKeyStore(db);
    audit = new SqlAuditLog(db);
    accountId = await new SqlAccountStore(db).ensureFirstAccount(now);
  });

  afterEach(async () => {
    await opened.close();
  });

  function record(more: Partial<ApiKeyRecord> = {}): ApiKeyRecord {
    const { id = "key_1" } = more;
    return {
      id,
      kind: "key",
      personId: null,
      appId: null,
      role: null,
      accountId,
      name: "a name with 'quotes' and ünïcode",
      environment: "dev",
      digest: `d-${id}`,
      prefix: "sk_dev_hr_",
      last4: "abcd",
      scopes: ["chat:read", "keys:manage"],
      createdBy: null,
      parentId: null,
      limitId: id,
      createdAt: now,
      ...newAndUnbounded,
      ...more,
    };
  }

  let events = 0;
  function event(more: Partial<AuditEvent> = {}): AuditEvent {
    events += 1;
    return {
      id: `audit_${String(events).padStart(6, "0")}`,
      at: now,
      action: "key.updated",
      actor: { type: "operator" },
      accountId,
      targetId: "key_1",
      clientAddress: null,
      requestId: null,
      detail: {},
      ...more,
    };
  }

  const by = (id: string): AuditActor => ({ type: "key", id });

  async function add(more: Partial<ApiKeyRecord> = {}): Promise<ApiKeyRecord> {
    const key = record(more);
    await keys.insertKey(key, event({ action: "key.created", targetId: key.id }));
    return key;
  }

  async function read(id: string): Promise<ApiKeyRecord | undefined> {
    return (await keys.findChainById(id))?.keys[0];
  }

  /** Returns how many audit events an action adds, and how often it raises the revision. */
  async function recorded(action: () => Promise<unknown>): Promise<{ events: number; revisions: number }> {
    const count = async () => (await audit.list({}, { after: undefined, limit: 1000 })).length;
    const before = { events: await count(), revision: await keys.credentialRevision() };
    await action();
    return { events: (await count()) - before.events, revisions: (await keys.credentialRevision()) - before.revision };
  }

  describe("stored keys", () => {
    // hardening: K9
    test("finds a key by its whole digest, with every stored field and its account", async () => {
      const stored = await add({
        createdBy: "key_0",
        limitId: "key_0",
        expiresAt: 1_900_000_000,
        revokedAt: 1_850_000_000,
        lastUsedAt: 1_800_000_001,
        allowedIps: ["192.0.2.0/24", "2001:db8::1"],
        rateLimit: 10,
        rateLimitWindow: 60,
        monthlyTokens: 5_000_000_000,
        monthlySpend: 12.5,
        models: ["llama-*", "org/model:7b"],
        neverLeaves: true,
        tags: ["env:prod", "team-a"],
        note: "for the 'batch'\nof every night",
      });
      const chain = await keys.findChainByDigest("d-key_1");
      expect(chain?.keys).toEqual([stored]);
      expect(chain?.account).toMatchObject({ id: accountId, tier: "enterprise", status: "active", overrides: {} });
      expect(await keys.findChainById("key_1")).toEqual(chain);
      for (const digest of ["d", "d-key_11", "D-KEY_1", "%", "", "d-key_1' OR '1'='1"]) {
        expect(await keys.findChainByDigest(digest)).toBeUndefined();
      }
    });

    test("returns a key with the chain above it, nearest first, and none if the chain is incomplete", async () => {
      const top = await add({ id: "key_1" });
      const middle = await add({ id: "key_2", parentId: "key_1" });
      const leaf = await add({ id: "key_3", parentId: "key_2" });
      expect((await keys.findChainByDigest("d-key_3"))?.keys).toEqual([leaf, middle, top]);
      await db`UPDATE api_keys SET parent_id = 'key_none' WHERE id = 'key_1'`;
      expect(await keys.findChainByDigest("d-key_3")).toBeUndefined();
      await db`UPDATE api_keys SET parent_id = 'key_3' WHERE id = 'key_1'`;
      expect(await keys.findChainByDigest("d-key_3")).toBeUndefined();
    });

    test("finds many keys by their ids, and none for ids that no key has", async () => {
      const all = [await add({ id: "key_1" }), await add({ id: "key_2", parentId: "key_1" })];
      const missing = Array.from({ length: 1_200 }, (_, index) => `key_none_${index}`);
      const found = await keys.findKeys(["key_2", ...missing, "key_1"]);
      expect(found.toSorted((one, other) => one.id.localeCompare(other.id))).toEqual(all);
      expect(await keys.findKeys([])).toEqual([]);
    });

    test("stores a key without scopes", async () => {
      await add({ scopes: [] });
      expect((await read("key_1"))?.scopes).toEqual([]);
    });

    test("refuses a second key with the same digest, and audits nothing", async () => {
      await add();
      const refused = () => add({ id: "key_2", digest: "d-key_1" }).catch((error: Error) => error.message);
      expect(await recorded(async () => expect(await refused()).toMatch(/unique/i))).toEqual({
        events: 0,
        revisions: 0,
      });
    });

    test("returns the oldest key as the first key of an environment, whatever its status", async () => {
      await add({ id: "key_2", createdAt: 20 });
      await add({ id: "key_1", createdAt: 10, revokedAt: 15 });
      await add({ id: "key_0", createdAt: 5, environment: "live" });
      expect((await keys.firstKey("dev"))?.id).toBe("key_1");
      expect((await keys.firstKey("live"))?.id).toBe("key_0");
      expect(await keys.firstKey("test")).toBeUndefined();
    });

    test("returns the successor of a rotated first key", async () => {
      await add({ id: "key_1", createdAt: 10 });
      await add({ id: "key_2", createdAt: 20 });
      await keys.rotateKey("key_1", record({ id: "key_3", digest: "d-new", createdAt: 30 }), now + 60, event());
      expect((await keys.firstKey("dev"))?.id).toBe("key_3");
    });

    test("lists the keys of one account and environment, newest first, page by page", async () => {
      for (const id of ["key_1", "key_2", "key_3", "key_4"]) await add({ id });
      await add({ id: "key_5", environment: "live" });
      const list = async (limit: number, after?: string) =>
        (await keys.listKeys({ accountId, environment: "dev" }, { after, limit })).map((key) => key.id);
      expect(await list(3)).toEqual(["key_4", "key_3", "key_2"]);
      expect(await list(3, "key_2")).toEqual(["key_1"]);
      expect(
        await keys.listKeys({ accountId: "acct_other", environment: "dev" }, { after: undefined, limit: 9 }),
      ).toEqual([]);
    });

    databases.only(
      "sqlite",
      "reads a member's keys by their own index in order, however many the account has",
      async () => {
        await add({ id: "key_1", personId: "usr_1" });
        const plans = new Set<string>();
        const of = { accountId, environment: "dev", personId: "usr_1" } as const;
        const found = await new SqlKeyStore(explained(db, plans)).listKeys(of, { after: "key_9", limit: 20 });
        expect(found.map(({ id }) => id)).toEqual(["key_1"]);
        expect([...plans]).toEqual([
          "SEARCH api_keys USING INDEX api_keys_of_person (account_id=? AND environment=? AND person_id=? AND id>? AND id<?)",
        ]);
      },
    );

    databases.only("sqlite", "reads suspensions by indexes, and no more events than it returns", async () => {
      const plans = new Set<string>();
      await new SqlKeyStore(explained(db, plans)).listSuspended();
      const scans = [...plans].filter((step) => step.startsWith("SCAN") && !step.includes("_suspended"));
      expect(scans).toEqual(["SCAN newest"]);
      expect([...plans]).toContain("SEARCH audit_log USING INDEX audit_log_by_action (action=?)");
    });

    test("lists only the keys that were suspended last, and none that was resumed", async () => {
      const few = new SqlKeyStore(db, { maxSuspended: 3 });
      const set = (id: string, isSuspended: boolean) => {
        const action = isSuspended ? "key.suspended" : "key.resumed";
        return keys.setSuspended(id, { by: "account", isSuspended }, event({ action, targetId: id }));
      };
      for (const id of ["key_1", "key_2", "key_3", "key_4"]) {
        await add({ id });
        await set(id, true);
      }
      expect((await few.listSuspended()).sort()).toEqual(["key_2", "key_3", "key_4"]);
      await set("key_3", false);
      expect((await few.listSuspended()).sort()).toEqual(["key_2", "key_4"]);
    });

    test("finds the person behind a key that was rotated or made by keys", async () => {
      await add({ id: "key_1", createdBy: "usr_1" });
      await add({ id: "key_2", createdBy: "key_1" });
      await add({ id: "key_3", createdBy: "key_2" });
      expect(await keys.descendFrom(["key_3"], "usr_1")).toBe(true);
      expect(await keys.descendFrom(["key_3"], "usr_2")).toBe(false);
    });

    test("writes the last uses of hundreds of keys, each its own", async () => {
      const ids = Array.from({ length: 450 }, (_, i) => `key_${i}`);
      for (const id of ids) await add({ id, limitId: id, digest: id });
      await keys.touchKeys(new Map(ids.map((id, i) => [id, now + i])));
      expect(await Promise.all(ids.map(async (id) => (await read(id))?.lastUsedAt))).toEqual(
        ids.map((_, i) => now + i),
      );
    });

    test("never moves the time of last use back", async () => {
      await add();
      await keys.touchKeys(new Map([["key_1", now + 5]]));
      await keys.touchKeys(new Map([["key_1", now + 3]]));
      await keys.touchKeys(new Map());
      expect((await read("key_1"))?.lastUsedAt).toBe(now + 5);
      expect(await recorded(() => keys.touchKeys(new Map([["key_1", now + 9]])))).toEqual({ events: 0, revisions: 0 });
    });
  });

  describe("a change of a key", () => {
    test("writes a change of a key with its event and a new revision", async () => {
      await add();
      const change = event({ detail: { name: { before: "a", after: "b" } } });
      const changes = {
        name: "b",
        scopes: [],
        expiresAt: now + 9,
        allowedIps: ["::1"],
        rateLimit: 1,
        rateLimitWindow: 2,
      };
      expect(await recorded(() => keys.updateKey("key_1", changes, change))).toEqual({ events: 1, revisions: 1 });
      expect(await read("key_1")).toEqual(record({ ...changes, scopes: [] }));
      expect(await audit.list({ action: "key.updated" }, { after: undefined, limit: 9 })).toEqual([change]);
    });

    test("stores every member that a change may have", async () => {
      await add();
      const changes: Required<KeyChanges> = {
        ...{ name: "b", scopes: ["chat:write"], expiresAt: now + 9, revokedAt: now + 8, allowedIps: ["::1"] },
        ...{ rateLimit: 1, rateLimitWindow: 2, monthlyTokens: 3, monthlySpend: 4 },
        quotas: [{ unit: "usd", amount: 5, per: "day", window: "calendar" }],
        ...{ models: ["m"], tools: ["s/t"], neverLeaves: true, priority: "low", responseCache: "off" },
        ...{ tags: ["t"], note: "n" },
      };
      await keys.updateKey("key_1", changes, event());
      expect(await read("key_1")).toEqual(record(changes));
    });

    test("suspends and resumes a key, and keeps a suspension by a higher rank", async () => {
      await add();
      const set = (by: Suspender, isSuspended: boolean) => keys.setSuspended("key_1", { by, isSuspended }, event());
      const after: (string | null | undefined)[] = [];
      for (const [by, isSuspended] of [
        ...[["member", true] as const, ["account", true] as const, ["member", false] as const],
        ...[["operator", true] as const, ["account", false] as const, ["account", true] as const],
      ]) {
        after.push((await set(by, isSuspended))?.suspendedBy);
      }
      expect(after).toEqual(["member", "account", "account", "operator", "operator", "operator"]);
      expect(await recorded(() => set("account", false))).toEqual({ events: 0, revisions: 0 });
      expect((await read("key_1"))?.suspendedBy).toBe("operator");
      expect(await recorded(() => set("operator", false))).toEqual({ events: 1, revisions: 1 });
      expect((await read("key_1"))?.suspendedBy).toBeNull();
      expect(await keys.setSuspended("key_9", { by: "operator", isSuspended: true }, event())).toBeUndefined();
    });

    test("changes a suspended key, which stays suspended", async () => {
      await add();
      await keys.setSuspended("key_1", { by: "operator", isSuspended: true }, event());
      await keys.updateKey("key_1", { scopes: ["models:read"] }, event());
      expect(await read("key_1")).toMatchObject({ scopes: ["models:read"], suspendedBy: "operator" });
    });

    test("does not suspend an ended key", async () => {
      await add({ revokedAt: now, revoked: true });
      const suspend = () => keys.setSuspended("key_1", { by: "operator", isSuspended: true }, event());
      expect(await recorded(suspend)).toEqual({ events: 0, revisions: 0 });
    });

    test("writes nothing for a change of a missing key", async () => {
      expect(
        await recorded(async () => expect(await keys.updateKey("key_9", { name: "b" }, event())).toBeUndefined()),
      ).toEqual({ events: 0, revisions: 0 });
    });

    test("never lifts a revocation, moves an expiry or revives an ended key", async () => {
      await add({ id: "key_1", revokedAt: now, revoked: true });
      await add({ id: "key_2", expiresAt: now });
      const revive = { revokedAt: null, expiresAt: null, name: "again" };
      for (const id of ["key_1", "key_2"]) {
        const before = await read(id);
        expect(await recorded(() => keys.updateKey(id, revive, event()))).toEqual({ events: 0, revisions: 0 });
        expect(await keys.updateKey(id, { revokedAt: now + 99 }, event())).toEqual(before);
        expect(await read(id)).toEqual(before);
      }
    });

    test("makes a due revocation final by a change", async () => {
      await add({ revokedAt: now });
      expect(await keys.updateKey("key_1", { name: "again" }, event())).toMatchObject({ revoked: false });
      expect(await keys.updateKey("key_1", { revokedAt: now }, event())).toMatchObject({
        revoked: true,
        revokedAt: now,
      });
    });

    test("only moves a scheduled revocation forward", async () => {
      await add({ revokedAt: now + 100 });
      expect((await keys.updateKey("key_1", { revokedAt: now + 200 }, event()))?.revokedAt).toBe(now + 100);
      expect((await keys.updateKey("key_1", { revokedAt: null }, event()))?.revokedAt).toBe(now + 100);
      expect((await keys.updateKey("key_1", { revokedAt: now + 1 }, event()))?.revokedAt).toBe(now + 1);
    });

    test("refuses a change by a key that ended since its authentication", async () => {
      await add({ id: "key_1" });
      await add({ id: "key_2", parentId: "key_1" });
      await add({ id: "key_3" });
      await keys.updateKey("key_1", { revokedAt: now + 1 }, event({ at: now + 1 }));
      // The request was authenticated a moment before the revocation.
      const late = event({ actor: by("key_2") });
      const attempts = [
        () => keys.insertKey(record({ id: "key_9" }), late),
        () => keys.updateKey("key_3", { name: "taken" }, late),
        () => keys.rotateKey("key_3", record({ id: "key_9" }), now + 60, late),
      ];
      for (const attempt of attempts) {
        const run = async () => expect(await attempt().catch((error) => error.code)).toBe("invalid_api_key");
        expect(await recorded(run)).toEqual({ events: 0, revisions: 0 });
      }
      expect(await read("key_9")).toBeUndefined();
      expect(await read("key_3")).toEqual(record({ id: "key_3" }));
    });

    test("refuses a change by a key that ends within five seconds of the request", async () => {
      await add({ id: "key_1", expiresAt: now + 5 });
      await add({ id: "key_2", expiresAt: now + 6 });
      const inserted = (by_: string) => keys.insertKey(record({ id: `${by_}_made` }), event({ actor: by(by_) }));
      await expect(inserted("key_1")).rejects.toThrow("Invalid API key");
      await inserted("key_2");
      expect([await read("key_1_made"), (await read("key_2_made"))?.id]).toEqual([undefined, "key_2_made"]);
    });

    test("refuses a change by a key of a suspended account", async () => {
      await add();
      await new SqlAccountStore(db).updateAccount(accountId, { status: "suspended" }, event());
      await expect(keys.insertKey(record({ id: "key_2" }), event({ actor: by("key_1") }))).rejects.toThrow(
        "Invalid API key",
      );
    });

    databases.only(
      "sqlite",
      "reports service_unavailable for a change while another program locks the database",
      async () => {
        await db.unsafe("PRAGMA busy_timeout = 1");
        const other = await opened.openAgain();
        await other.begin("IMMEDIATE", async () => {
          expect(await add().catch((error) => error.code)).toBe("service_unavailable");
        });
        await add();
      },
    );

    test("applies twenty concurrent changes of a key, each with its event", async () => {
      const many = Array.from({ length: 20 }, (_, i) => `key_${i + 10}`);
      expect(await recorded(() => Promise.all(many.map((id) => add({ id }))))).toEqual({ events: 20, revisions: 0 });
    });
  });

  describe("stored revocations", () => {
    const statusAt = async (id: string, atSeconds: number) => {
      const key = await read(id);
      return key && keyStatus(key, atSeconds);
    };

    test("makes a scheduled revocation final when it is due, and raises the revision", async () => {
      await add({ id: "key_1", revokedAt: now + 10 });
      await add({ id: "key_2", revokedAt: now + 11 });
      await add({ id: "key_3" });
      await add({ id: "key_4", expiresAt: now });
      const finals = async () => {
        const all = await Promise.all(["key_1", "key_2", "key_3", "key_4"].map(read));
        return all.filter((key) => key?.revoked).map((key) => key?.id);
      };
      expect(await recorded(() => keys.endDue(now + 9))).toEqual({ events: 0, revisions: 0 });
      expect(await finals()).toEqual([]);
      expect(await recorded(() => keys.endDue(now + 10))).toEqual({ events: 0, revisions: 1 });
      expect(await finals()).toEqual(["key_1"]);
      expect(await recorded(() => keys.endDue(now + 10))).toEqual({ events: 0, revisions: 0 });
      expect(await recorded(() => keys.endDue(now + 99))).toEqual({ events: 0, revisions: 1 });
      expect(await finals()).toEqual(["key_1", "key_2"]);
    });

    test("keeps a final revocation for reading, changing and rotating when the clock is set back", async () => {
      await add({ id: "key_1", revokedAt: now + 10 });
      expect(await statusAt("key_1", now)).toBe("active");
      await keys.endDue(now + 10);
      expect(await statusAt("key_1", now)).toBe("revoked");
      expect(await statusAt("key_1", 0)).toBe("revoked");
      const before = await read("key_1");
      const attempts = [
        () => keys.updateKey("key_1", { name: "again", revokedAt: null }, event({ at: now - 999 })),
        () => keys.rotateKey("key_1", record({ id: "key_2" }), now + 60, event({ at: now - 999 })),
      ];
      for (const attempt of attempts) expect(await recorded(attempt)).toEqual({ events: 0, revisions: 0 });
      expect(await read("key_1")).toEqual(before);
      expect(await read("key_2")).toBeUndefined();
      await keys.endDue(now - 999);
      expect(await statusAt("key_1", now)).toBe("revoked");
    });

    test("makes an immediate revocation final at once, but not a scheduled one", async () => {
      for (const id of ["key_1", "key_2", "key_3", "key_4"]) await add({ id });
      await keys.updateKey("key_1", { revokedAt: now }, event());
      await keys.updateKey("key_2", { revokedAt: now + 1 }, event());
      await keys.rotateKey("key_3", record({ id: "key_5" }), now, event());
      await keys.rotateKey("key_4", record({ id: "key_6" }), now + 1, event());
      const finals = await Promise.all(
        ["key_1", "key_2", "key_3", "key_4"].map(async (id) => (await read(id))?.revoked),
      );
      expect(finals).toEqual([true, false, true, false]);
      expect([(await read("key_5"))?.revoked, (await read("key_6"))?.revoked]).toEqual([false, false]);
    });
  });

  describe("stored rotations", () => {
    test("gives the old key's attributes, budget and children to its successor, and ends the old key", async () => {
      await add({ id: "key_1" });
      const old = await add({
        id: "key_2",
        parentId: "key_1",
        expiresAt: now + 999,
        rateLimit: 5,
        rateLimitWindow: 60,
      });
      await add({ id: "key_3", parentId: "key_2" });
      const wanted = record({ id: "key_4", digest: "d-new", last4: "wxyz", createdAt: now + 1, createdBy: "key_1" });
      let added: ApiKeyRecord | undefined;
      const rotation = async () => {
        added = await keys.rotateKey("key_2", wanted, now + 60, event({ action: "key.rotated" }));
      };
      expect(await recorded(rotation)).toEqual({ events: 1, revisions: 1 });
      const { id, digest, last4, createdAt, createdBy } = wanted;
      expect(added).toEqual({ ...old, id, digest, last4, createdAt, createdBy });
      expect(await read("key_4")).toEqual(added);
      expect(added?.limitId).toBe("key_2");
      expect(await read("key_2")).toEqual({ ...old, revokedAt: now + 60 });
      expect((await keys.findChainById("key_3"))?.keys.map((key) => key.id)).toEqual(["key_3", "key_4", "key_1"]);
    });

    test("moves the external name and manager of a declared key to its successor", async () => {
      await add();
      const marks = new SqlDeclaredMarks(db);
      const mark = { kind: "key", name: "ci", targetId: "key_1", managedBy: "headrace", changedAt: now - 9 } as const;
      await marks.put(mark, undefined, event());
      await keys.rotateKey("key_1", record({ id: "key_2", digest: "d2" }), now + 60, event());
      expect(await marks.list()).toEqual([{ ...mark, targetId: "key_2", changedAt: now }]);
    });

    test("creates a successor that was never used, however recently the old key was", async () => {
      const old = await add();
      await keys.touchKeys(new Map([["key_1", now]]));
      await keys.rotateKey("key_1", { ...old, id: "key_2", digest: "d2" }, now + 60, event());
      expect([(await read("key_1"))?.lastUsedAt, (await read("key_2"))?.lastUsedAt]).toEqual([now, null]);
    });

    test("keeps changes of a key that were made after its rotation was requested", async () => {
      const seen = await add();
      await keys.updateKey("key_1", { scopes: ["chat:read"] }, event());
      const added = await keys.rotateKey("key_1", { ...seen, id: "key_2", digest: "d2" }, now, event());
      expect(added?.scopes).toEqual(["chat:read"]);
    });

    test("rotates a key once for two concurrent rotations, and not if it has ended", async () => {
      await add();
      const rotate = (id: string) => keys.rotateKey("key_1", record({ id }), now + 60, event());
      const results = await Promise.all([rotate("key_2"), rotate("key_3")]);
      expect(results.map((key) => key?.id)).toEqual(["key_2", undefined]);
      expect(await read("key_3")).toBeUndefined();
      await add({ id: "key_4", expiresAt: now });
      expect(await keys.rotateKey("key_4", record({ id: "key_5" }), now, event())).toBeUndefined();
      expect(await keys.rotateKey("key_9", record({ id: "key_6" }), now, event())).toBeUndefined();
    });
  });
});
