// Nodes in real databases of both kinds: a token lets one machine join, changes are announced and have audit events,
// and connections end with their processes.
import { afterEach, beforeEach, expect, test } from "bun:test";
import { onEachDatabase, type TestDatabase } from "../../../tests/support/databases.ts";
import type { AuditAction, AuditEvent } from "../../domain/audit.ts";
import type { ChangeTopic } from "../../domain/change-feed.ts";
import type { NodeJoinToken, NodeRecord } from "../../domain/models/node.ts";
import { usualSpeech } from "../../domain/models/upstream-speech.ts";
import { replicaGoneSeconds } from "../../domain/replica.ts";
import type { Database } from "../sql/database.ts";
import { SqlAuditLog } from "./audit-log.ts";
import { SqlNodeStore } from "./node-store.ts";
import { SqlReplicaStore } from "./replica-store.ts";
import { SqlUpstreamStore } from "./upstream-store.ts";

let opened: TestDatabase;
let db: Database;
let store: SqlNodeStore;
let received: ChangeTopic[];

onEachDatabase((databases) => {
  beforeEach(async () => {
    opened = await databases.open();
    ({ db } = opened);
    received = [];
    store = new SqlNodeStore(db, { announce: (topic) => received.push(topic) });
  });

  afterEach(async () => {
    await opened.close();
  });

  const node = (name: string, more: Partial<NodeRecord> = {}): NodeRecord => ({
    ...{ id: `node_${name}`, name, publicKey: `key of ${name}`, approvedModels: [], environments: ["live", "dev"] },
    ...{
      maxConcurrency: null,
      local: false,
      announced: [],
      toolServers: [],
      version: null,
      createdAt: 100,
      lastSeenAt: null,
    },
    ...more,
  });

  const token = (digest: string, more: Partial<NodeJoinToken> = {}): NodeJoinToken => ({
    ...{ id: `njt_${digest}`, digest, last4: "abcd", approvedModels: ["a", "b"], environments: ["test"] },
    ...{ createdBy: "key_1", createdAt: 100, expiresAt: 200, usedAt: null, nodeId: null },
    ...more,
  });

  const event = (action: AuditAction): AuditEvent => ({
    ...{ id: `audit_${Bun.randomUUIDv7()}`, at: 120, action, actor: { type: "operator" }, accountId: null },
    ...{ targetId: null, clientAddress: null, requestId: null, detail: {} },
  });

  const addToken = (one: NodeJoinToken) => store.insertToken(one, event("node_token.created"));
  const enrol = (one: NodeRecord, digest: string, at = 150, isFree = true) =>
    store.enrol(one, { digests: [digest], at, isFree }, () => event("node.joined"));
  const actions = async () =>
    (await new SqlAuditLog(db).list({}, { after: undefined, limit: 50 })).map((e) => e.action);
  const revision = () => new SqlUpstreamStore(db).routingRevision();

  /** Adds a node, and forgets the announcements so far. */
  async function joined(name: string): Promise<NodeRecord> {
    await addToken(token(name));
    expect(await enrol(node(name), name)).toBe("enrolled");
    received = [];
    return (await store.findNode(`node_${name}`)) as NodeRecord;
  }

  const seen = (version = "1.0.0", models: readonly string[] = ["m"]) => ({
    ...{ announced: models.map((id) => ({ id, concurrency: { chat: 2 } })), toolServers: [], version, at: 160 },
  });

  test("creates one node from a token with the approved settings, for any number of concurrent uses", async () => {
    await addToken(token("digest"));
    const before = await revision();
    const names = ["n1", "n2", "n3", "n4", "n5", "n6"];
    const outcomes = await Promise.all(names.map((name) => enrol(node(name), "digest")));
    expect(outcomes.filter((outcome) => outcome === "enrolled")).toHaveLength(1);
    expect(outcomes.filter((outcome) => outcome === "used")).toHaveLength(5);
    const [record, ...others] = await store.listNodes();
    expect(others).toEqual([]);
    expect(record).toMatchObject({ approvedModels: ["a", "b"], environments: ["test"], lastSeenAt: null });
    expect(await store.listTokens()).toEqual([token("digest", { usedAt: 150, nodeId: record?.id ?? "none" })]);
    expect(await actions()).toEqual(["node.joined", "node_token.created"]);
    expect(await revision()).toBe(before + 1);
    expect(received).toEqual(["routing"]);
  });

  test("stores no node for an unknown, late or deleted token or for a used name", async () => {
    await joined("first");
    await new SqlUpstreamStore(db).insertUpstream(
      {
        ...{ name: "vllm", url: "http://10.0.0.5/v1", sealedApiKey: null, discover: true, environments: ["live"] },
        ...{ timeoutSeconds: 1, idleSeconds: 1, maxConcurrency: null, local: false, createdAt: 1, ...usualSpeech },
      },
      event("upstream.created"),
    );
    await addToken(token("good"));
    expect(await enrol(node("n"), "unknown")).toBe("unknown");
    expect(await enrol(node("n"), "good", 200)).toBe("expired");
    for (const taken of ["first", "vllm"])
      expect(await enrol(node(taken, { id: "node_x" }), "good")).toBe("name_taken");
    expect(await enrol(node("n"), "good", 150, false)).toBe("name_taken");
    expect(await enrol(node("n", { publicKey: "key of first" }), "good")).toBe("unknown");
    expect(await store.deleteToken("njt_good", event("node_token.deleted"))).toBe(true);
    expect(await store.deleteToken("njt_good", event("node_token.deleted"))).toBe(false);
    expect(await enrol(node("n"), "good")).toBe("unknown");
    expect((await store.listNodes()).map(({ name }) => name)).toEqual(["first"]);
    expect(received).toEqual([]);
  });

  test("keeps unnamed fields of a node in a change, and changes no missing node", async () => {
    const before = await joined("n");
    const change = { approvedModels: ["*"], maxConcurrency: 7, local: true };
    expect(await store.changeNode("node_n", change, event("node.updated"))).toBe(true);
    expect(await store.findNode("node_n")).toEqual({ ...before, ...change });
    expect(received).toEqual(["routing"]);
    const revisionBefore = await revision();
    expect(await store.changeNode("node_other", change, event("node.updated"))).toBe(false);
    expect(await revision()).toBe(revisionBefore);
    expect((await actions()).filter((action) => action === "node.updated")).toHaveLength(1);
  });

  test("keeps a node drained when it is renamed, and removes the mark with the node", async () => {
    await joined("n");
    await joined("other");
    const drained = () => new SqlUpstreamStore(db).listDrained();
    await store.changeNode("node_n", { draining: true }, event("node.updated"));
    expect(await store.changeNode("node_n", { name: "other" }, event("node.updated"))).toBe(false);
    expect(await store.changeNode("node_n", { name: "renamed" }, event("node.updated"))).toBe(true);
    expect(await drained()).toEqual(["renamed"]);
    expect(await store.deleteNode("node_n", event("node.deleted"))).toBe(true);
    expect(await drained()).toEqual([]);
    expect(await store.deleteNode("node_n", event("node.deleted"))).toBe(false);
    expect((await actions())[0]).toBe("node.deleted");
  });

  test("replaces an earlier connection of a node, which only its own end removes", async () => {
    await joined("n");
    const replicas = new SqlReplicaStore(db);
    const replica = { id: "rep_1", advertiseUrl: "http://10.0.0.1:7545", version: "1" };
    await replicas.beat(replica, false);
    const connect = (connectionId: string, replicaId = "rep_1", nodeId = "node_n") =>
      store.connected({ nodeId, replicaId, connectionId, clientAddress: "10.9.9.9", connectedAt: 155 }, seen());
    expect(await connect("one")).toBe(true);
    expect(await connect("two")).toBe(true);
    expect(await connect("three", "rep_1", "node_gone")).toBe(false);
    const connection = { nodeId: "node_n", replicaId: "rep_1", connectionId: "two", clientAddress: "10.9.9.9" };
    const shown = [{ ...connection, connectedAt: 155, advertiseUrl: replica.advertiseUrl }];
    expect(await store.listConnections()).toEqual(shown);
    await store.disconnected("node_n", "one", 170);
    expect(await store.listConnections()).toEqual(shown);
    expect(received).toEqual(["connections", "connections"]);
    await store.disconnected("node_n", "two", 170);
    expect(await store.listConnections()).toEqual([]);
    expect(await store.findNode("node_n")).toMatchObject({ lastSeenAt: 170, version: "1.0.0" });
    expect(received).toEqual(["connections", "connections", "connections"]);
  });

  test("ignores a node's connection at a replica that is gone", async () => {
    await joined("n");
    await new SqlReplicaStore(db).beat({ id: "rep_1", advertiseUrl: null, version: "1" }, false);
    const connection = {
      nodeId: "node_n",
      replicaId: "rep_1",
      connectionId: "c",
      clientAddress: "::1",
      connectedAt: 1,
    };
    await store.connected(connection, seen());
    expect(await store.listConnections()).toHaveLength(1);
    await db`UPDATE replicas SET seen_at = seen_at - ${replicaGoneSeconds + 1}`;
    expect(await store.listConnections()).toEqual([]);
    await store.connected({ ...connection, replicaId: "rep_unknown" }, seen());
    expect(await store.listConnections()).toEqual([]);
  });

  test("announces what a node newly reports, and otherwise only updates its time", async () => {
    await joined("n");
    const before = await revision();
    await store.seen("node_n", seen());
    await store.seen("node_n", { ...seen(), at: 161 });
    expect(await store.findNode("node_n")).toMatchObject({
      announced: seen().announced,
      version: "1.0.0",
      lastSeenAt: 161,
    });
    expect([received, await revision()]).toEqual([["routing"], before + 1]);
    await store.seen("node_gone", seen("2.0.0"));
    await store.touch(["node_n", "node_gone"], 300);
    await store.touch([], 301);
    expect((await store.findNode("node_n"))?.lastSeenAt).toBe(300);
    expect([received, await revision()]).toEqual([["routing"], before + 1]);
  });

  test("lists tokens newest first, until a week after their end", async () => {
    await addToken(token("1"));
    await addToken(token("2", { approvedModels: [] }));
    expect((await store.listTokens()).map(({ digest }) => digest)).toEqual(["2", "1"]);
    const later = { ...event("node_token.created"), at: 200 + 604_801 };
    await store.insertToken(token("3"), later);
    expect((await store.listTokens()).map(({ digest }) => digest)).toEqual(["3"]);
  });
});
