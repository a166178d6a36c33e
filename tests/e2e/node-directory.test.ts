// Who knows the nodes: connections come, go and are replaced, here and elsewhere, also while the database is away.
import { afterEach, beforeEach, expect, test } from "bun:test";
import { bufferedBytes } from "../../src/base/bytes/buffered-bytes.ts";
import { Cancellation } from "../../src/base/cancellation.ts";
import { GatewayError } from "../../src/base/errors.ts";
import type { NodeConnection, NodeStore } from "../../src/domain/models/node.ts";
import { NodeDirectory } from "../../src/nodes/node-directory.ts";
import type { GatewayEnd, GatewayEndListener } from "../../src/nodes/tunnel/contract.ts";
import { SqlNodeStore } from "../../src/storage/tables/node-store.ts";
import { SqlReplicaStore } from "../../src/storage/tables/replica-store.ts";
import { sqliteDatabases, type TestDatabase } from "../support/databases.ts";
import { until } from "../support/headrace.ts";
import { manualClock } from "../support/manual-clock.ts";

const nodeId = "node_1";
const request = {
  ...({ requestId: "req_1", operation: "chat", model: "m", body: "{}", stream: false, width: 1 } as const),
  memoryAccount: bufferedBytes.visitors,
};
const silent = { info() {}, warn() {}, error() {} };

let opened: TestDatabase;
let store: SqlNodeStore;
let clock: ReturnType<typeof manualClock>;
let isAway: boolean;
let changes: number;
let directory: NodeDirectory;
let forwarded: string[];

beforeEach(async () => {
  opened = await sqliteDatabases().open();
  store = new SqlNodeStore(opened.db, { announce() {} });
  clock = manualClock();
  isAway = false;
  changes = 0;
  forwarded = [];
  const token = { id: "njt_1", digest: "d", last4: "abcd", approvedModels: ["*"], environments: ["live"] } as const;
  const times = { createdBy: null, createdAt: 1, expiresAt: 9, usedAt: null, nodeId: null };
  await store.insertToken({ ...token, ...times }, event("node_token.created"));
  const node = { id: nodeId, name: "gpu", publicKey: "k", approvedModels: [], environments: ["live"] } as const;
  const more = {
    maxConcurrency: null,
    local: false,
    announced: [],
    toolServers: [],
    version: null,
    createdAt: 1,
    lastSeenAt: null,
  };
  await store.enrol({ ...node, ...more }, { digests: ["d"], at: 2, isFree: true }, () => event("node.joined"));
  const replicas = new SqlReplicaStore(opened.db);
  for (const id of ["rep_1", "rep_2"]) await replicas.beat({ id, advertiseUrl: `http://${id}`, version: "1" }, false);
  directory = new NodeDirectory({
    store: sometimesAway(store),
    feed: { onChange() {} },
    replicaId: "rep_1",
    forwarder: { send, keep() {} },
    audit: { append: async () => {} },
    ...{ clock, log: silent },
    onChange: () => void changes++,
    pollMs: 20,
  });
  await directory.load();
  directory.start();
});

afterEach(async () => {
  isAway = false;
  await directory.close();
  await opened.close();
});

async function send({ replicaId }: NodeConnection): Promise<"not_there"> {
  forwarded.push(replicaId);
  return "not_there";
}

function event(action: "node.joined" | "node_token.created" | "node.deleted") {
  const actor = { type: "operator" } as const;
  const about = { accountId: null, targetId: null, clientAddress: null, requestId: null, detail: {} };
  return { id: `audit_${Bun.randomUUIDv7()}`, at: 2, action, actor, ...about };
}

function sometimesAway(real: NodeStore): NodeStore {
  return new Proxy(real, {
    get: (target, name) => {
      const value: unknown = Reflect.get(target, name);
      if (typeof value !== "function") return value;
      return (...args: unknown[]) => {
        if (isAway) return Promise.reject(new GatewayError("service_unavailable", "The database is away."));
        return Reflect.apply(value, target, args);
      };
    },
  });
}

interface FakeEnd extends GatewayEnd {
  listener: GatewayEndListener | undefined;
  code: number | undefined;
  received: unknown[];
}

/** Connected, and announced unless it is told otherwise. */
function connect(connectionId: string): FakeEnd {
  const announcement = { version: "1.0.0", models: [{ id: "m" }] };
  const state = { closed: false, draining: false };
  const end: FakeEnd = {
    ...{ nodeId, connectionId, clientAddress: "10.0.0.9", announcement, openStreams: 0, roundTripMs: 1 },
    ...{ listener: undefined, code: undefined, received: [] },
    get closed() {
      return state.closed;
    },
    get draining() {
      return state.draining;
    },
    send: () => Promise.reject(new GatewayError("upstream_error", connectionId)),
    sendStatus: (status) => void end.received.push(status),
    drain() {
      state.draining = true;
      return Promise.resolve();
    },
    close(code, reason) {
      if (state.closed) return;
      state.closed = true;
      end.code = code;
      end.listener?.closed(code, reason);
    },
  };
  end.listener = directory.connected(end);
  end.listener.announced(announcement);
  return end;
}

const stands = (connectionId: string) => async () =>
  (await store.listConnections()).some((connection) => connection.connectionId === connectionId);

test("makes a node available at once, returns its status, and stores it a moment later", async () => {
  expect([directory.isReachable(nodeId), directory.isGone(nodeId)]).toEqual([false, true]);
  const end = connect("one");
  expect(directory.isReachable(nodeId)).toBe(true);
  expect(end.received).toEqual([{ name: "gpu", approvedModels: ["*"] }]);
  await until(stands("one"), "it stands there");
  await until(() => directory.record(nodeId)?.announced.length === 1, "what it announces is known");
  expect(await directory.engines()[0]?.engine.models()).toEqual([{ id: "m", environments: ["live"] }]);
  expect(changes).toBeGreaterThan(0);
});

test("admits a known node while the database is away, and stores it afterwards", async () => {
  connect("one").close(1006, "cut");
  await until(async () => (await store.findNode(nodeId))?.lastSeenAt !== null, "it was seen");
  await directory.refresh();
  isAway = true;
  expect(await directory.findKey(nodeId)).toEqual({ publicKey: "k" });
  const end = connect("two");
  await Bun.sleep(60);
  expect([directory.isReachable(nodeId), end.closed]).toEqual([true, false]);
  isAway = false;
  await until(stands("two"), "it stands there");
});

// long-lived: nodeTunnel.credential
test("disconnects a deleted node, and refuses it while the database answers", async () => {
  const end = connect("one");
  await until(stands("one"), "it stands there");
  await store.deleteNode(nodeId, event("node.deleted"));
  await directory.refresh();
  expect([end.closed, end.code]).toEqual([true, 4403]);
  expect(await directory.findKey(nodeId)).toEqual({ refused: "unknown" });
  const again = connect("two");
  await until(() => again.closed, "it is not kept");
  expect(await store.listConnections()).toEqual([]);
});

// long-lived: nodeTunnel.key
test("keeps the later of two connections of a node, also across processes, and lets a draining one end", async () => {
  const first = connect("one");
  const second = connect("two");
  expect([first.code, second.closed]).toEqual([4409, false]);
  await until(stands("two"), "the second stands there");
  const elsewhere = { nodeId, replicaId: "rep_2", connectionId: "three", clientAddress: "::1", connectedAt: 5 };
  const seen = { announced: [{ id: "m" }], toolServers: [], version: "1.0.0", at: 5 };
  void second.drain();
  await store.connected(elsewhere, seen);
  await directory.refresh();
  expect(second.closed).toBe(false);
  expect(directory.isReachable(nodeId), "nothing new goes to one that is leaving").toBe(false);
  second.close(1000, "done");
  expect(await stands("three")()).toBe(true);
  await until(() => directory.isReachable(nodeId), "the other process is known");
  expect(directory.locate(nodeId)).toMatchObject({ replicaId: "rep_2" });
  const fourth = connect("four");
  await until(stands("four"), "the fourth stands there");
  await store.connected({ ...elsewhere, connectionId: "five" }, seen);
  await directory.refresh();
  expect(fourth.code).toBe(4409);
});

test("retries a request where the node may have moved, and returns a retry hint if it is nowhere", async () => {
  const elsewhere = { nodeId, replicaId: "rep_2", connectionId: "one", clientAddress: "::1", connectedAt: 5 };
  await store.connected(elsewhere, { announced: [], toolServers: [], version: "1.0.0", at: 5 });
  await directory.refresh();
  const sent = directory.send(nodeId, request, new Cancellation());
  expect(await sent.catch((error) => error)).toMatchObject({ code: "service_unavailable", retryAfterSeconds: 2 });
  expect(forwarded).toEqual(["rep_2", "rep_2"]);
  await store.disconnected(nodeId, "one", 6);
  const again = directory.send(nodeId, request, new Cancellation());
  expect(await again.catch((error) => error)).toMatchObject({ code: "service_unavailable" });
  expect(forwarded).toEqual(["rep_2", "rep_2", "rep_2"]);
});

test("offers the models of a disconnected node for ten minutes", async () => {
  const end = connect("one");
  await until(() => directory.record(nodeId)?.announced.length === 1, "what it announces is known");
  end.close(1006, "cut");
  const engine = directory.engines()[0]?.engine;
  expect(engine?.accepts).toBe(false);
  expect(await engine?.models().catch((error) => error)).toMatchObject({ code: "upstream_error" });
  expect(engine?.lastModels()).toHaveLength(1);
  clock.advance(600_000);
  expect(engine?.lastModels()).toHaveLength(1);
  const before = changes;
  clock.advance(2_000);
  expect(engine?.lastModels()).toEqual([]);
  await until(() => changes > before, "the catalog is told");
});

test("shows a node that just left as seen a moment ago, connected here or elsewhere", async () => {
  const lastSeen = () => directory.record(nodeId)?.lastSeenAt;
  const end = connect("one");
  await until(stands("one"), "it stands there");
  clock.advance(19 * 60_000);
  end.close(1006, "cut");
  expect(lastSeen()).toBe(clock.nowSeconds());
  await until(async () => !(await stands("one")()), "it stands there no more");

  const seen = { announced: [{ id: "m" }], toolServers: [], version: "1.0.0", at: clock.nowSeconds() };
  const elsewhere = { nodeId, replicaId: "rep_2", connectionId: "two", clientAddress: "", connectedAt: seen.at };
  await store.connected(elsewhere, seen);
  await directory.refresh();
  expect(directory.isReachable(nodeId)).toBe(true);
  clock.advance(19 * 60_000);
  await store.disconnected(nodeId, "two", clock.nowSeconds());
  await until(() => lastSeen() === clock.nowSeconds(), "what the other process saw is known here");
});
