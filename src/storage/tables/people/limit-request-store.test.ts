// Requests for more of a limit in real databases of both kinds: a raise can be ended as long as it runs, and never after.
import { afterEach, beforeEach, expect, test } from "bun:test";
import { onEachDatabase, type TestDatabase } from "../../../../tests/support/databases.ts";
import type { AuditEvent } from "../../../domain/audit.ts";
import type { LimitRequest } from "../../../domain/limits/limit-requests.ts";
import { SqlAccountStore } from "../account-store.ts";
import { SqlLimitRequestStore } from "./limit-request-store.ts";

const now = 1_800_000_000;
const day = 86_400;
let opened: TestDatabase;
let accounts: SqlAccountStore;
let store: SqlLimitRequestStore;
let events = 0;

const event = (at: number): AuditEvent => ({
  ...{ id: `audit_${++events}`, at, action: "limit.requested", actor: { type: "operator" }, accountId: "acct_1" },
  ...{ targetId: null, clientAddress: null, requestId: null, detail: {} },
});

const request = (id: string, createdAt: number): LimitRequest => ({
  ...{ id, accountId: "acct_1", environment: "live", owner: "member", ownerId: "mem_1:live", membershipId: "mem_1" },
  ...{ personId: `usr_${id}`, quota: { unit: "usd", per: "day", window: "calendar" }, amount: 5, reason: "x" },
  ...{ status: "open", createdAt, decision: null },
});

const grant = (id: string, at: number, days: number) =>
  store.decide(id, { by: "usr_1", at, amount: 5, until: at + days * day }, event(at));
const refuse = (id: string, at: number) => store.decide(id, { by: "usr_2", at, amount: null, until: null }, event(at));
const raises = async () => (await accounts.findAccount("acct_1"))?.raises ?? [];

onEachDatabase((databases) => {
  beforeEach(async () => {
    opened = await databases.open();
    accounts = new SqlAccountStore(opened.db);
    store = new SqlLimitRequestStore(opened.db);
    const account = { id: "acct_1", name: "Shop", tier: "pro", overrides: {}, storeChats: false, tools: null } as const;
    await accounts.insertAccount({ ...account, status: "active", createdAt: now }, event(now));
  });

  afterEach(() => opened.close());

  test("ends a raise of a year although its request is older than the list", async () => {
    await store.open(request("lrq_a", now), event(now));
    expect(await grant("lrq_a", now, 365)).toBe("done");
    await store.open(request("lrq_b", now), event(now));
    expect(await grant("lrq_b", now, 1)).toBe("done");
    const later = now + 100 * day;
    await store.open(request("lrq_c", later), event(later));
    expect(await store.find("lrq_b")).toBeUndefined();
    expect(await refuse("lrq_a", later)).toBe("done");
    expect(await raises()).toEqual([]);
  });

  test("grants no more once the raises of an account name very many models", async () => {
    const models = Array.from({ length: 32 }, (_, i) => `${i}`.padEnd(256, "m"));
    const outcomes: string[] = [];
    for (let i = 0; i < 20; i++) {
      const asked = request(`lrq_${i}`, now);
      await store.open({ ...asked, quota: { ...asked.quota, models } }, event(now));
      outcomes.push(await grant(asked.id, now, 1));
    }
    expect(outcomes).toEqual([...Array(16).fill("done"), ...Array(4).fill("too_many")]);
  });

  test("leaves a decision as it was made once its raise has ended", async () => {
    await store.open(request("lrq_a", now), event(now));
    await grant("lrq_a", now, 1);
    expect(await refuse("lrq_a", now + 2 * day)).toBe("stale");
    expect(await store.find("lrq_a")).toMatchObject({ status: "granted", decision: { by: "usr_1", amount: 5 } });
    await store.open(request("lrq_b", now), event(now));
    expect(await refuse("lrq_b", now)).toBe("done");
    expect(await refuse("lrq_b", now)).toBe("stale");
  });
});
