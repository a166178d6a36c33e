// The audit log in real databases of both kinds: appended events are listed completely, newest first, filtered and in
// pages.
import { afterEach, beforeEach, expect, test } from "bun:test";
import { onEachDatabase, type TestDatabase } from "../../../tests/support/databases.ts";
import type { AuditEvent, AuditFilter } from "../../domain/audit.ts";
import type { Database } from "../sql/database.ts";
import { SqlAuditLog } from "./audit-log.ts";

let opened: TestDatabase;
let db: Database;
let audit: SqlAuditLog;

onEachDatabase((databases) => {
  beforeEach(async () => {
    opened = await databases.open();
    ({ db } = opened);
    audit = new SqlAuditLog(db);
  });

  afterEach(async () => {
    await opened.close();
  });

  function event(n: number, more: Partial<AuditEvent> = {}): AuditEvent {
    return {
      id: `audit_${String(n).padStart(6, "0")}`,
      at: 1_800_000_000 + n,
      action: "key.updated",
      actor: { type: "key", id: "key_1" },
      accountId: "acct_1",
      targetId: "key_2",
      clientAddress: "2001:db8::1",
      requestId: "req_1",
      detail: { name: { before: "it's", after: 'a "name"' } },
      ...more,
    };
  }

  const all = async (filter: AuditFilter = {}, after?: string, limit = 100) =>
    (await audit.list(filter, { after, limit })).map((found) => Number(found.id.slice(6)));

  test("reads back every field of an audit event, for every kind of actor", async () => {
    const events = [
      event(3),
      event(2, { actor: { type: "operator" }, clientAddress: null, requestId: null, detail: {} }),
      event(1, { actor: { type: "system" }, accountId: null, targetId: null }),
    ];
    await audit.append(events);
    expect(await audit.list({}, { after: undefined, limit: 10 })).toEqual(events);
  });

  test("combines filters of the audit log: account, action, target, and time from start to before the end", async () => {
    await audit.append([
      event(1),
      event(2, { accountId: "acct_2" }),
      event(3, { action: "key.revoked" }),
      event(4, { targetId: "key_9" }),
      event(5),
    ]);
    expect(await all()).toEqual([5, 4, 3, 2, 1]);
    expect(await all({ accountId: "acct_2" })).toEqual([2]);
    expect(await all({ action: "key.revoked" })).toEqual([3]);
    expect(await all({ targetId: "key_9" })).toEqual([4]);
    expect(await all({ start: 1_800_000_002, end: 1_800_000_004 })).toEqual([3, 2]);
    expect(await all({ accountId: "acct_1", action: "key.updated", targetId: "key_2", start: 1_800_000_002 })).toEqual([
      5,
    ]);
    expect(await all({ accountId: "acct_1' OR '1'='1" })).toEqual([]);
  });

  test("lists audit pages without gap or repetition, with a filter too", async () => {
    await audit.append(Array.from({ length: 7 }, (_, i) => event(i + 1)));
    expect(await all({}, undefined, 3)).toEqual([7, 6, 5]);
    expect(await all({}, "audit_000005", 3)).toEqual([4, 3, 2]);
    expect(await all({ targetId: "key_2" }, "audit_000002", 3)).toEqual([1]);
  });

  test("finds rare events in a long audit log while other work goes on", async () => {
    const isRare = (n: number) => n % 2_500 === 1;
    await audit.append(
      Array.from({ length: 9_000 }, (_, i) => event(i + 1, isRare(i + 1) ? { action: "key.revoked" } : {})),
    );
    let turns = 0;
    let next = setImmediate(function turn() {
      turns += 1;
      next = setImmediate(turn);
    });
    expect(await all({ accountId: "acct_1", action: "key.revoked" })).toEqual([7_501, 5_001, 2_501, 1]);
    clearImmediate(next);
    expect(turns).toBeGreaterThanOrEqual(4);
    expect(await all({ accountId: "acct_1", action: "key.revoked" }, "audit_005001", 1)).toEqual([2_501]);
    expect(await all({ end: 1_800_000_003 })).toEqual([2, 1]);
    expect(await all({ targetId: "key_2", action: "key.created" })).toEqual([]);
  });

  test("scans at most 20,000 audit events for a request, and returns where the next one continues", async () => {
    await audit.append(
      Array.from({ length: 20_003 }, (_, i) => event(i + 1, i === 0 || i === 20_000 ? { action: "key.revoked" } : {})),
    );
    const filter: AuditFilter = { accountId: "acct_1", action: "key.revoked", targetId: "key_2" };
    const downTo = await audit.lastScannedId(filter, undefined);
    expect(downTo).toBe("audit_000004");
    expect(await audit.list(filter, { after: undefined, downTo, limit: 10 })).toHaveLength(1);
    expect(await audit.list({}, { after: "audit_000006", downTo, limit: 10 })).toHaveLength(2);
    expect(await audit.lastScannedId(filter, downTo)).toBeUndefined();
    expect(await all(filter, downTo)).toEqual([1]);
    expect(await audit.lastScannedId({ end: 1_800_000_001 }, undefined)).toBe("audit_000004");
    // With a filter that an index serves completely, all rows are listed, so the scan has no bound.
    for (const one of [{}, { accountId: "acct_1" }, { action: "key.created" as const }]) {
      expect(await audit.lastScannedId(one, undefined)).toBeUndefined();
    }
  });

  test("keeps the end of each audit page when events are added between pages", async () => {
    await audit.append(Array.from({ length: 20_000 }, (_, i) => event(i + 1)));
    const filter: AuditFilter = { accountId: "acct_1", action: "key.revoked" };
    const downTo = await audit.lastScannedId(filter, undefined);
    expect(downTo).toBe("audit_000001");
    await audit.append([event(20_001), event(0, { action: "key.revoked" })]);
    expect(await audit.list(filter, { after: undefined, downTo, limit: 10 })).toEqual([]);
    expect(await all(filter, downTo)).toEqual([0]);
  });

  test("stores an audit batch that is appended twice once, and a large batch as a whole", async () => {
    const events = Array.from({ length: 1_201 }, (_, i) => event(i + 1));
    await audit.append(events);
    await audit.append([...events, event(1_202)]);
    await audit.append([]);
    expect(await all({}, undefined, 5_000)).toHaveLength(1_202);
  });

  databases.only(
    "sqlite",
    "reports service_unavailable for an added event while another program locks the database",
    async () => {
      await db.unsafe("PRAGMA busy_timeout = 1");
      const other = await opened.openAgain();
      await other.begin("IMMEDIATE", async () => {
        expect(await audit.append([event(1)]).catch((error) => error.code)).toBe("service_unavailable");
      });
    },
  );
});
