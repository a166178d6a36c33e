// Notices and their deliveries on both databases: told once whoever tells them, taken by one process at a time.
import { afterAll, beforeAll, beforeEach, expect, test } from "bun:test";
import { type Notification, notificationOf, type Tidings } from "../../src/domain/notifications/notification.ts";
import type { ClaimBounds, SecuredWebhook } from "../../src/domain/notifications/webhook.ts";
import { Deliverer } from "../../src/notifications/delivery/deliverer.ts";
import { newWebhookSecret } from "../../src/notifications/delivery/signature.ts";
import { auditEvent } from "../../src/policy/records/audit.ts";
import type { Database } from "../../src/storage/sql/database.ts";
import { SqlDeliveryStore } from "../../src/storage/tables/notifications/delivery-store.ts";
import { SqlIncidentStore } from "../../src/storage/tables/notifications/incident-store.ts";
import { SqlNotificationStore } from "../../src/storage/tables/notifications/notification-store.ts";
import { SqlWebhookStore } from "../../src/storage/tables/notifications/webhook-store.ts";
import { onEachDatabase, type TestDatabase } from "../support/databases.ts";
import { until } from "../support/headrace.ts";
import { type ManualClock, manualClock } from "../support/manual-clock.ts";
import { startWebhookReceiver, type WebhookReceiver } from "../support/webhook-receiver.ts";

const silent = { info() {}, warn() {}, error() {} };
const day = 86_400;
const secret = newWebhookSecret();
const bounds: ClaimBounds = {
  ...{ limit: 16, perTarget: 2, perOwner: 4, leaseSeconds: 60 },
  underWay: [],
};

let opened: TestDatabase;
let again: Database;
let clock: ManualClock;
let receiver: WebhookReceiver;

onEachDatabase((databases) => {
  beforeAll(async () => {
    opened = await databases.open();
    // A file of SQLite has one process, and two of its connections in one thread would wait for each other.
    again = opened.dialect === "sqlite" ? opened.db : await opened.openAgain();
    await opened.db`INSERT INTO accounts ${opened.db({ id: "acct_1", name: "One", tier: "free", created_at: 1 })}`;
    receiver = await startWebhookReceiver();
  });

  afterAll(async () => {
    await receiver[Symbol.asyncDispose]();
    if (again !== opened.db) await again.close();
    await opened.close();
  });

  beforeEach(async () => {
    for (const name of ["notices", "notice_deliveries", "webhooks", "incidents", "memberships", "people"]) {
      await opened.db.unsafe(`DELETE FROM ${name}`);
    }
    clock = manualClock();
    receiver.received.length = 0;
  });

  let made = 0;

  const tidings = (more: Partial<Tidings> = {}): Tidings =>
    ({
      ...{ type: "upstream.down", accountId: null, environment: null, once: `once ${made++}` },
      data: { upstream: "north", since: 1 },
      ...more,
    }) as Tidings;
  const notice = (more: Partial<Tidings> = {}): Notification => notificationOf(tidings(more), clock.nowSeconds());

  async function webhook(more: Partial<SecuredWebhook> = {}): Promise<string> {
    const id = `whk_${Bun.randomUUIDv7()}`;
    const origin = { nowSeconds: clock.nowSeconds(), clientAddress: null, requestId: null };
    const about = { accountId: null, targetId: id, detail: {} };
    const store = new SqlWebhookStore(opened.db);
    const one: SecuredWebhook = {
      ...{ id, accountId: null, environment: null, url: receiver.url, description: "", events: [], isEnabled: true },
      ...{ disabledReason: null, createdBy: null, createdAt: clock.nowSeconds(), format: "standard" },
      secrets: [{ sealed: secret, last4: "abcd", expiresAt: null }],
      ...more,
    };
    expect(await store.insert(one, auditEvent("webhook.created", { type: "system" }, origin, about))).toBe(true);
    return id;
  }

  function delivererOf(db: Database): Deliverer {
    return new Deliverer({
      ...{
        deliveries: new SqlDeliveryStore(db),
        notices: new SqlNotificationStore(db),
        webhooks: new SqlWebhookStore(db),
      },
      ...{ people: { findPerson: async () => undefined }, mail: undefined, clock, log: silent, everyMs: 5 },
      sealFor: () => ({ seal: (text) => text, open: (text) => text }),
      posting: { rules: { allowLoopback: true }, resolve: async () => [] },
      operatorRules: { allowLoopback: true },
      publicOrigin: () => "http://localhost",
    });
  }

  test("sends an event once to its recipients if several processes emit it at the same moment", async () => {
    const stores = [new SqlNotificationStore(opened.db), new SqlNotificationStore(again)];
    await webhook();
    await webhook({ events: ["node.away"] });
    await webhook({ isEnabled: false });
    await webhook({ accountId: "acct_1", environment: "live" });
    const same = tidings();
    const reported = await Promise.all(
      Array.from({ length: 10 }, (_, i) =>
        stores[i % 2]?.add(notificationOf(same, clock.nowSeconds()), { mails: true }),
      ),
    );
    expect(reported.filter((deliveries) => deliveries !== undefined)).toEqual([1]);
    const ofAccount = { type: "key.unused", accountId: "acct_1" } as const;
    expect(await stores[0]?.add(notice({ ...ofAccount, environment: "live" }), { mails: false })).toBe(1);
    expect(await stores[0]?.add(notice({ ...ofAccount, environment: "test" }), { mails: false })).toBe(0);
  });

  test("mails owners and admins, or operators, except those that opted out, up to a bound", async () => {
    const { db } = opened;
    const person = async (id: string, role: string, isOperator: number) => {
      const row = { id, email: `${id}@example.com`, name: id, email_proven: 1, is_operator: isOperator, created_at: 1 };
      await db`INSERT INTO people ${db(row)}`;
      await db`INSERT INTO memberships ${db({ id: `mbr_${id}`, account_id: "acct_1", person_id: id, role, created_at: 1 })}`;
    };
    await person("usr_owner", "owner", 0);
    await person("usr_admin", "admin", 0);
    await person("usr_member", "member", 0);
    await person("usr_quiet", "admin", 1);
    await person("usr_operator", "member", 1);
    await db`INSERT INTO notice_mutes ${db({ person_id: "usr_quiet" })}`;
    const store = new SqlNotificationStore(db);
    const writtenTo = async () => {
      const rows: { target: string }[] = await db`SELECT target FROM notice_deliveries ORDER BY target`;
      await db`DELETE FROM notice_deliveries`;
      return rows.map(({ target }) => target);
    };
    await store.add(notice({ type: "key.unused", accountId: "acct_1", environment: "live" }), { mails: true });
    expect(await writtenTo()).toEqual(["usr_admin", "usr_owner"]);
    await store.add(notice(), { mails: true });
    expect(await writtenTo()).toEqual(["usr_operator"]);
    for (let count = 0; count < 40; count++) await store.add(notice(), { mails: true });
    expect(await writtenTo()).toHaveLength(30);
  });

  test("keeps a delivery for the process that claimed it until the claim expires, and ignores later results", async () => {
    const [one, other] = [new SqlDeliveryStore(opened.db), new SqlDeliveryStore(again)];
    const id = await webhook();
    await new SqlNotificationStore(opened.db).add(notice(), { mails: false });
    const [first] = await one.claim(clock.nowSeconds(), bounds);
    expect(await other.claim(clock.nowSeconds(), bounds)).toEqual([]);
    clock.advance(60_000);
    const [second] = await other.claim(clock.nowSeconds(), bounds);
    if (!first || !second) throw new Error("it was not taken");
    expect(second.id).toBe(first.id);
    const lastTry = { at: clock.nowSeconds(), status: 500, error: null, durationMs: 1 };
    await one.tried(first, { state: "failed", lastTry, dueAt: 0 });
    await other.tried(second, { state: "delivered", lastTry: { ...lastTry, status: 200 }, dueAt: 0 });
    const [listed] = await one.list(id, { after: undefined, limit: 10 });
    expect(listed).toMatchObject({ state: "delivered", tries: [{ status: 200 }], type: "upstream.down" });
  });

  test("leaves delivery slots for every receiver and owner, counting claimed ones", async () => {
    const store = new SqlNotificationStore(opened.db);
    const live = { accountId: "acct_1", environment: "live" } as const;
    const targets = [await webhook(), await webhook(), await webhook(), await webhook(live)];
    for (let count = 0; count < 5; count++) await store.add(notice(), { mails: false });
    await store.add(notice({ ...live, type: "key.unused" }), { mails: false });
    const deliveries = new SqlDeliveryStore(opened.db);
    const taking = (from: SqlDeliveryStore, more: Partial<ClaimBounds>) =>
      from.claim(clock.nowSeconds(), { ...bounds, ...more });
    const counts = (some: { target: string }[]) => some.map(({ target }) => targets.indexOf(target)).sort();
    const taken = await taking(deliveries, {});
    expect([taken.length, taken.filter(({ owner }) => owner === "operators").length]).toEqual([5, 4]);
    for (const target of targets) expect(taken.filter((one) => one.target === target).length).toBeLessThan(3);
    expect(await taking(deliveries, { underWay: taken })).toEqual([]);
    // One has ended: there is one place for its owner, and one for its target at most.
    const left = taken.filter(({ owner }) => owner === "operators").slice(1);
    expect(await taking(deliveries, { underWay: left })).toHaveLength(1);
    const busy = { id: "dlv_other", target: targets[0] ?? "", owner: "operators" };
    const beside = await taking(deliveries, { underWay: [busy, { ...busy, id: "dlv_another" }, busy], limit: 9 });
    expect(counts(beside)).not.toContain(0);
    expect(beside).toHaveLength(1);
  });

  // long-lived: webhookDelivery.total
  test("runs at most 16 deliveries at once in a process", async () => {
    const store = new SqlNotificationStore(opened.db);
    const gate = Promise.withResolvers<void>();
    const slow = Array.from({ length: 12 }, () =>
      Bun.serve({ port: 0, fetch: () => gate.promise.then(() => new Response()) }),
    );
    for (let i = 1; i < slow.length; i++) {
      await opened.db`INSERT INTO accounts ${opened.db({ id: `acct_of_${i}`, name: "Of", tier: "free", created_at: 1 })}`;
      await webhook({ accountId: `acct_of_${i}`, environment: "live", url: `http://127.0.0.1:${slow[i]?.port}/` });
      for (let count = 0; count < 2; count++) {
        await store.add(notice({ accountId: `acct_of_${i}`, environment: "live", type: "key.unused" }), {
          mails: false,
        });
      }
    }
    const deliverer = delivererOf(opened.db);
    let most = 0;
    await until(() => {
      most = Math.max(most, deliverer.figures.underWay);
      return most >= 16;
    }, "as many as may are under way");
    await Bun.sleep(100);
    expect(deliverer.figures.underWay).toBe(16);
    gate.resolve();
    await deliverer.close();
    for (const one of slow) await one.stop(true);
    await opened.db`DELETE FROM accounts WHERE id LIKE 'acct_of_%'`;
  });

  test.each([
    [299, "delivered"],
    [300, "pending"],
  ] as const)("treats an answer with status %i as a delivery that is %s", async (status, state) => {
    const deliveries = new SqlDeliveryStore(opened.db);
    const id = await webhook();
    receiver.answer(status);
    await new SqlNotificationStore(opened.db).add(notice(), { mails: false });
    const deliverer = delivererOf(opened.db);
    const tried = async () => (await deliveries.list(id, { after: undefined, limit: 1 }))[0];
    await until(async () => ((await tried())?.tries.length ?? 0) > 0, "it was tried");
    await deliverer.close();
    receiver.answer(200);
    expect(await tried()).toMatchObject({ state, tries: [{ status }] });
  });

  test("deletes a webhook's earlier secret when its rotation ends", async () => {
    const store = new SqlWebhookStore(opened.db);
    const id = await webhook();
    const origin = { nowSeconds: clock.nowSeconds(), clientAddress: null, requestId: null };
    const about = { accountId: null, targetId: id, detail: {} };
    const event = auditEvent("webhook.secret_rotated", { type: "system" }, origin, about);
    const next = { sealed: newWebhookSecret(), last4: "next", expiresAt: null };
    expect((await store.rotateSecret(id, next, event.at, event))?.secrets).toEqual([next]);
  });

  // long-lived: webhookDelivery.credential
  test("deletes pending deliveries with their webhook", async () => {
    const store = new SqlNotificationStore(opened.db);
    const id = await webhook();
    await store.add(notice(), { mails: false });
    const origin = { nowSeconds: clock.nowSeconds(), clientAddress: null, requestId: null };
    const about = { accountId: null, targetId: id, detail: {} };
    const gone = auditEvent("webhook.deleted", { type: "system" }, origin, about);
    expect(await new SqlWebhookStore(opened.db).delete(id, gone)).toBe(true);
    expect(await new SqlDeliveryStore(opened.db).claim(clock.nowSeconds(), bounds)).toEqual([]);
    const deliverer = delivererOf(opened.db);
    await Bun.sleep(50);
    await deliverer.close();
    expect(receiver.received).toEqual([]);
  });

  // long-lived: webhookDelivery.account
  test("gives every receiver a turn, however many deliveries another has waiting", async () => {
    const store = new SqlNotificationStore(opened.db);
    for (let i = 0; i < 3; i++) await webhook();
    for (let count = 0; count < 20; count++) await store.add(notice(), { mails: false });
    clock.advance(60_000);
    const late = await webhook({ accountId: "acct_1", environment: "live" });
    await store.add(notice({ accountId: "acct_1", environment: "live", type: "key.unused" }), { mails: false });
    const deliveries = new SqlDeliveryStore(opened.db);
    const taken: string[] = [];
    for (let turn = 0; turn < 4; turn++) {
      const [one] = await deliveries.claim(clock.nowSeconds(), { ...bounds, limit: 1 });
      taken.push(one?.target ?? "");
    }
    expect(new Set(taken).size).toBe(4);
    expect(taken).toContain(late);
  });

  test("claims and emits at constant cost, however many deliveries wait", async () => {
    const { db, dialect } = opened;
    const store = new SqlNotificationStore(db);
    const deliveries = new SqlDeliveryStore(db);
    const targets = await Promise.all(Array.from({ length: 20 }, () => webhook()));
    await store.add(notice(), { mails: false });
    const taken: number[] = [];
    const measured = async () => {
      const times: number[] = [];
      for (let turn = 0; turn < 30; turn++) {
        const began = performance.now();
        await deliveries.claim(clock.nowSeconds(), { ...bounds, perTarget: 1, limit: 1 });
        await store.add(notice({ type: "node.away" }), { mails: false });
        times.push(performance.now() - began);
      }
      // The shortest turn: what other programs on the machine add to a turn is no cost of the statements.
      taken.push(Math.min(...times));
    };
    await measured();
    // For each receiver as many as may wait, nearly; all are due.
    const numbers =
      dialect === "sqlite"
        ? "WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < 4000) SELECT i FROM c"
        : "SELECT generate_series AS i FROM generate_series(1, 4000)";
    for (const target of targets) {
      await db.unsafe(`INSERT INTO notice_deliveries
        SELECT 'dlv_0' || i || '${target}', 'evt_1', '${target}', NULL, '${target}', 'operators', 'pending', '[]', 1, 1, NULL, NULL, 0
        FROM (${numbers}) AS many`);
    }
    if (dialect === "postgres") await db`ANALYZE notice_deliveries`;
    await measured();
    expect(taken[1]).toBeLessThan(5 * (taken[0] ?? 0) + 4);
    expect(await deliveries.length(clock.nowSeconds())).toMatchObject({ waiting: 10_000 });
  });

  // hardening: F37
  // long-lived: webhookDelivery.server
  test("delivers each event once with two processes, also events left by a dead one", async () => {
    const id = await webhook();
    const store = new SqlNotificationStore(opened.db);
    for (let count = 0; count < 30; count++) await store.add(notice(), { mails: false });
    // A process that takes two and dies.
    expect(await new SqlDeliveryStore(again).claim(clock.nowSeconds(), bounds)).toHaveLength(2);
    const deliverers = [delivererOf(opened.db), delivererOf(again)];
    await until(() => receiver.received.length === 28, "the others");
    clock.advance(61_000);
    await until(() => receiver.received.length === 30, "those of the dead one");
    for (const deliverer of deliverers) await deliverer.close();
    expect(new Set(receiver.received.map((one) => one.id)).size).toBe(30);
    expect(receiver.received.every((one) => receiver.verifies(one, secret))).toBe(true);
    const listed = await new SqlDeliveryStore(opened.db).list(id, { after: undefined, limit: 100 });
    expect(new Set(listed.map(({ state }) => state))).toEqual(new Set(["delivered"]));
  });

  test("deletes deliveries after 30 days and notifications after 100, then notifies again", async () => {
    const store = new SqlNotificationStore(opened.db);
    await webhook();
    const same = tidings();
    await store.add(notificationOf(same, clock.nowSeconds()), { mails: false });
    const [kept, now] = [{ mails: false }, () => clock.nowSeconds()];
    expect(await store.deleteExpired(now() + 29 * day, 10)).toBe(0);
    expect(await store.deleteExpired(now() + 31 * day, 10)).toBe(1);
    expect(await store.add(notificationOf(same, now()), kept)).toBeUndefined();
    expect(await store.deleteExpired(now() + 101 * day, 10)).toBe(1);
    expect(await store.add(notificationOf(same, now()), kept)).toBe(1);
  });

  test("opens an incident from one process and closes it only by its owner", async () => {
    const [one, other] = [new SqlIncidentStore(opened.db), new SqlIncidentStore(again)];
    const incident = { subject: "upstream:north", replicaId: "rep_1", since: 5 };
    const begun = await Promise.all([one.begin(incident), other.begin({ ...incident, replicaId: "rep_2" })]);
    expect(begun.toSorted()).toEqual([false, true]);
    const [{ replicaId } = incident] = await one.list();
    expect(await other.end(incident.subject, "rep_3")).toBe(false);
    await other.adopt(incident.subject, replicaId, "rep_3");
    expect(await other.end(incident.subject, "rep_3")).toBe(true);
    expect(await one.list()).toEqual([]);
  });
});
