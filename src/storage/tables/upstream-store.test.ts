// Upstreams in real databases of both kinds: stored values are read back, each change has its audit event, and a change
// without effect has none.
import { afterEach, beforeEach, expect, test } from "bun:test";
import { onEachDatabase, type TestDatabase } from "../../../tests/support/databases.ts";
import type { AuditAction, AuditEvent } from "../../domain/audit.ts";
import type { StoredUpstream } from "../../domain/models/upstream.ts";
import { usualSpeech } from "../../domain/models/upstream-speech.ts";
import type { Database } from "../sql/database.ts";
import { SqlAuditLog } from "./audit-log.ts";
import { SqlUpstreamStore } from "./upstream-store.ts";

let opened: TestDatabase;
let db: Database;
let store: SqlUpstreamStore;

onEachDatabase((databases) => {
  beforeEach(async () => {
    opened = await databases.open();
    ({ db } = opened);
    store = new SqlUpstreamStore(db);
  });

  afterEach(async () => {
    await opened.close();
  });

  const upstream = (name: string, more: Partial<StoredUpstream> = {}): StoredUpstream => ({
    ...{
      name,
      url: "http://10.0.0.5:8000/v1",
      sealedApiKey: "v1.sealed",
      discover: true,
      environments: ["live", "dev"],
    },
    ...{ timeoutSeconds: 600, idleSeconds: 900, maxConcurrency: null, local: false, createdAt: 10, ...usualSpeech },
    ...more,
  });

  const event = (action: AuditAction): AuditEvent => ({
    ...{ id: `audit_${Bun.randomUUIDv7()}`, at: 20, action, actor: { type: "operator" }, accountId: null },
    ...{ targetId: null, clientAddress: null, requestId: null, detail: {} },
  });

  const actions = async () =>
    (await new SqlAuditLog(db).list({}, { after: undefined, limit: 10 })).map((e) => e.action);

  test("reads back an upstream as stored, by name", async () => {
    const odd = upstream("b", {
      ...{ url: "https://ü'\"/v1", sealedApiKey: null, discover: false, local: true, maxConcurrency: 8 },
      ...{ apis: ["responses"], keyHeader: "api-key", query: { "api-version": "preview" } },
    });
    expect(await store.insertUpstream(odd, event("upstream.created"))).toBe(true);
    expect(await store.insertUpstream(upstream("a"), event("upstream.created"))).toBe(true);
    expect(await store.listUpstreams()).toEqual([upstream("a"), odd]);
    expect(await actions()).toEqual(["upstream.created", "upstream.created"]);
  });

  test("applies the former API settings to an upstream stored by an older version", async () => {
    const { name, url, sealedApiKey, createdAt, ...rest } = upstream("old");
    const { discover, environments, timeoutSeconds, idleSeconds, maxConcurrency } = rest;
    const settings = JSON.stringify({ discover, environments, timeoutSeconds, idleSeconds, maxConcurrency });
    await db`
      INSERT INTO upstreams (name, url, sealed_api_key, settings, created_at)
      VALUES (${name}, ${url}, ${sealedApiKey}, ${settings}, ${createdAt})`;
    expect(await store.listUpstreams()).toEqual([upstream("old")]);
  });

  test("raises the routing revision for each change, and for nothing else", async () => {
    const revisions = [await store.routingRevision()];
    const after = async (change: Promise<boolean>) => {
      await change;
      revisions.push(await store.routingRevision());
    };
    await after(store.insertUpstream(upstream("a"), event("upstream.created")));
    await after(store.insertUpstream(upstream("a"), event("upstream.created")));
    await after(store.changeUpstream("a", { draining: true }, event("upstream.updated")));
    await after(store.deleteUpstream("a", { draining: false }, event("upstream.deleted")));
    await after(store.deleteUpstream("a", { draining: false }, event("upstream.deleted")));
    const [first = 0] = revisions;
    expect(revisions.map((revision) => revision - first)).toEqual([0, 1, 1, 2, 3, 3]);
  });

  test("refuses an upstream with a used name, without an audit event", async () => {
    await store.insertUpstream(upstream("a"), event("upstream.created"));
    const second = upstream("a", { url: "http://elsewhere/v1" });
    expect(await store.insertUpstream(second, event("upstream.created"))).toBe(false);
    expect(await store.listUpstreams()).toEqual([upstream("a")]);
    expect(await actions()).toHaveLength(1);
  });

  test("changes settings and draining in one step, and keeps unnamed settings", async () => {
    await store.insertUpstream(upstream("a"), event("upstream.created"));
    const changed = upstream("a", { url: "http://10.0.0.6/v1", sealedApiKey: null, timeoutSeconds: 5 });
    const change = { upstream: changed, draining: true };
    expect(await store.changeUpstream("a", change, event("upstream.updated"))).toBe(true);
    expect(await store.listUpstreams()).toEqual([changed]);
    expect(await store.listDrained()).toEqual(["a"]);
    expect(await store.changeUpstream("a", { draining: false }, event("upstream.updated"))).toBe(true);
    expect(await store.listUpstreams()).toEqual([changed]);
    expect(await store.listDrained()).toEqual([]);
  });

  test("drains an upstream that is not stored, but does not change it", async () => {
    for (let i = 0; i < 2; i++) {
      expect(await store.changeUpstream("built-in", { draining: true }, event("upstream.updated"))).toBe(true);
    }
    expect(await store.listDrained()).toEqual(["built-in"]);
    const change = { upstream: upstream("gone"), draining: true };
    expect(await store.changeUpstream("gone", change, event("upstream.updated"))).toBe(false);
    expect(await store.listDrained()).toEqual(["built-in"]);
    expect(await actions()).toHaveLength(2);
  });

  test("clears the drained mark of a deleted upstream, unless it remains under that name", async () => {
    const add = () => store.insertUpstream(upstream("a"), event("upstream.created"));
    const drain = () => store.changeUpstream("a", { draining: true }, event("upstream.updated"));
    const remove = (draining: boolean) => store.deleteUpstream("a", { draining }, event("upstream.deleted"));
    await add();
    await drain();
    expect(await remove(false)).toBe(true);
    expect(await store.listDrained()).toEqual([]);
    await add();
    await drain();
    expect(await remove(true)).toBe(true);
    expect(await store.listDrained()).toEqual(["a"]);
    expect(await remove(false)).toBe(false);
    await add();
    expect(await store.listDrained()).toEqual([]);
  });

  test("refuses a change of upstreams by an actor that lost its right", async () => {
    const late: AuditEvent = { ...event("upstream.created"), actor: { type: "key", id: "key_gone" } };
    await expect(store.insertUpstream(upstream("a"), late)).rejects.toMatchObject({ code: "invalid_api_key" });
    expect(await store.listUpstreams()).toEqual([]);
  });
});
