// The cursors of exports in real databases of both kinds: every record once, in order, also for a second process.
import { afterEach, beforeEach, expect, test } from "bun:test";
import { onEachDatabase, type TestDatabase } from "../../../../tests/support/databases.ts";
import type { AuditEvent } from "../../../domain/audit.ts";
import { SqlAuditLog } from "../audit-log.ts";
import { SqlExportStore } from "./export-store.ts";

const wanted = { kinds: ["audit"], maxAuditLag: null } as const;
const lease = { seconds: 30, isAlone: false, maxAuditLag: null };
let opened: TestDatabase;
let audit: SqlAuditLog;
let store: SqlExportStore;

function event(n: number): AuditEvent {
  return {
    id: `audit_${String(n).padStart(6, "0")}`,
    at: 1_800_000_000 + n,
    action: "key.updated",
    actor: { type: "key", id: "key_1" },
    accountId: "acct_1",
    targetId: "key_2",
    clientAddress: null,
    requestId: null,
    detail: {},
  };
}

onEachDatabase((databases) => {
  beforeEach(async () => {
    opened = await databases.open();
    audit = new SqlAuditLog(opened.db);
    store = new SqlExportStore(opened.db);
  });

  afterEach(async () => {
    await opened.close();
  });

  const append = (from: number, to: number) =>
    audit.append(Array.from({ length: to - from + 1 }, (_, i) => event(from + i)));
  const idsOf = (batch: Awaited<ReturnType<SqlExportStore["next"]>>) =>
    batch?.records.map(({ seq, id }) => [seq, Number(id.slice(6))]);

  test("queues nothing before a receiver is registered, and gives a new one only later records", async () => {
    await append(1, 3);
    await store.register(["s3"], wanted);
    await append(4, 5);
    expect(await store.hold("a", ["s3"], lease)).toBe(true);
    expect(idsOf(await store.next("a", "s3", 10))).toEqual([
      [1, 4],
      [2, 5],
    ]);
  });

  test("repeats the same batch until it is confirmed, although further records arrive", async () => {
    await store.register(["s3"], wanted);
    await append(1, 3);
    await store.hold("a", ["s3"], lease);
    const first = await store.next("a", "s3", 10);
    await append(4, 9);
    expect(await store.next("a", "s3", 10)).toEqual(first);
    expect(await store.sent("a", "s3", 3)).toBe(true);
    expect(idsOf(await store.next("a", "s3", 4))?.map(([seq]) => seq)).toEqual([4, 5, 6, 7]);
  });

  test("keeps records until every receiver has them, and counts what each lacks", async () => {
    await store.register(["otlp", "s3"], wanted);
    await append(1, 2);
    await store.hold("a", ["otlp", "s3"], lease);
    await store.next("a", "otlp", 10);
    await store.sent("a", "otlp", 2);
    expect((await store.states()).map(({ name, waiting }) => [name, waiting])).toEqual([
      ["otlp", 0],
      ["s3", 2],
    ]);
    expect(idsOf(await store.next("a", "s3", 10))).toHaveLength(2);
    await store.sent("a", "s3", 2);
    expect(await opened.db`SELECT * FROM export_queue`).toEqual([]);
    // Numbers go on after the queue was empty, so that no name of an object is used twice.
    await append(3, 3);
    expect(idsOf(await store.next("a", "s3", 10))).toEqual([[3, 3]]);
  });

  test("lets one process export at a time, and ignores a process that lost its lease", async () => {
    await store.register(["s3"], wanted);
    await append(1, 2);
    expect(await store.hold("a", ["s3"], lease)).toBe(true);
    expect(await store.hold("b", ["s3"], lease)).toBe(false);
    const batch = await store.next("a", "s3", 10);
    await store.release("a");
    expect(await store.hold("b", ["s3"], lease)).toBe(true);
    expect(await store.next("a", "s3", 10)).toBeUndefined();
    expect(await store.sent("a", "s3", 2)).toBe(false);
    expect(await store.next("b", "s3", 10)).toEqual(batch);
    expect(await store.sent("b", "s3", 2)).toBe(true);
    expect(await store.sent("b", "s3", 2)).toBe(false);
  });

  test("leaves the export to processes that know all receivers while configurations differ", async () => {
    await store.register(["otlp"], wanted);
    expect(await store.hold("old", ["otlp"], lease)).toBe(true);
    await store.register(["otlp", "s3"], wanted);
    expect(await store.hold("old", ["otlp"], lease)).toBe(false);
    await store.release("old");
    expect(await store.hold("new", ["otlp", "s3"], lease)).toBe(true);
    // The receiver left the file of all processes.
    await opened.db`UPDATE export_sinks SET seen_at = seen_at - 121 WHERE name = 's3'`;
    await store.release("new");
    expect(await store.hold("newest", ["otlp"], lease)).toBe(true);
  });

  test("tells the lag of the oldest record of either kind", async () => {
    await store.register(["s3"], { kinds: ["audit", "requests"], maxAuditLag: null });
    await append(1, 1);
    await opened.db`
      INSERT INTO export_queue (record_id, kind, queued_at) SELECT 'req_1', 'requests', queued_at - 59 FROM export_queue`;
    const [state] = await store.states();
    expect(state?.waiting).toBe(2);
    expect(state?.lagSeconds).toBeGreaterThanOrEqual(59);
  });

  test("numbers as many records as a batch takes, however many wait", async () => {
    await store.register(["s3"], wanted);
    await append(1, 600);
    await store.hold("a", ["s3"], lease);
    expect((await store.next("a", "s3", 500))?.records).toHaveLength(500);
    await store.sent("a", "s3", 500);
    expect(idsOf(await store.next("a", "s3", 500))?.at(-1)).toEqual([600, 600]);
  });

  test("reports a record that retention deleted before it was sent, and keeps its number", async () => {
    await store.register(["s3"], wanted);
    await append(1, 3);
    await opened.db`DELETE FROM audit_log WHERE id = 'audit_000002'`;
    await store.hold("a", ["s3"], lease);
    const batch = await store.next("a", "s3", 10);
    expect(batch?.records.map(({ seq, record }) => [seq, record === null])).toEqual([
      [1, false],
      [2, true],
      [3, false],
    ]);
  });

  test("tells since when a receiver fails until it accepts a batch", async () => {
    await store.register(["s3"], wanted);
    await append(1, 1);
    await store.hold("a", ["s3"], lease);
    await store.failed("a", "s3", "503");
    const [failing] = await store.states();
    expect(failing).toMatchObject({ error: "503", sentAt: null, waiting: 1 });
    expect(failing?.failingSince).toBeGreaterThan(0);
    await store.next("a", "s3", 1);
    await store.sent("a", "s3", 1);
    expect((await store.states())[0]).toMatchObject({ error: null, failingSince: null, waiting: 0, lagSeconds: 0 });
  });

  test("refuses changes, but no revocation and no sign-in, while a required receiver fails for too long", async () => {
    await store.register(["s3"], { kinds: ["audit"], maxAuditLag: 300 });
    await append(1, 1);
    await store.hold("a", ["s3"], { ...lease, maxAuditLag: 300 });
    await store.failed("a", "s3", "503");
    await append(2, 2);
    await opened.db`UPDATE export_sinks SET failing_since = failing_since - 301`;
    expect(append(3, 3)).rejects.toThrow("Nothing was changed");
    await audit.append([
      { ...event(4), action: "key.revoked" },
      { ...event(5), action: "session.started" },
      { ...event(6), actor: { type: "system" } },
      { ...event(7), actor: { type: "operator" } },
    ]);
    const status = { before: "active", after: "suspended" };
    const resumed = { before: "suspended", after: "active" };
    expect(audit.append([{ ...event(3), action: "account.updated", detail: { status: resumed } }])).rejects.toThrow();
    await audit.append([{ ...event(70), action: "account.updated", detail: { status } }]);
    await store.next("a", "s3", 10);
    await store.sent("a", "s3", 7);
    await append(8, 8);
    expect((await audit.list({}, { after: undefined, limit: 20 })).map(({ id }) => Number(id.slice(6)))).toEqual([
      70, 8, 7, 6, 5, 4, 2, 1,
    ]);
    // A receiver to which no process exports any more counts as failing.
    await opened.db`UPDATE export_sinks SET seen_at = seen_at - 301`;
    expect(append(9, 9)).rejects.toThrow("Nothing was changed");
    // A server that starts without the receiver ends the requirement.
    await store.unrequire("s3");
    await append(9, 9);
  });

  test("forgets a receiver that no process has used for a week, with its records", async () => {
    await store.register(["s3"], wanted);
    await append(1, 3);
    const now = Math.floor(Date.now() / 1000);
    expect(await store.deleteExpired(now + 6 * 86_400, 20)).toBe(0);
    expect(await store.deleteExpired(now + 8 * 86_400, 20)).toBe(3);
    expect(await store.states()).toEqual([]);
  });
});
