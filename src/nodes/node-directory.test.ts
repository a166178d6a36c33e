// Tests the directory of nodes with the database: a later read counts, whichever answer arrives first.
import { expect, test } from "bun:test";
import { manualClock } from "../../tests/support/manual-clock.ts";
import type { NodeConnection, NodeRecord, NodeStore } from "../domain/models/node.ts";
import { NodeDirectory } from "./node-directory.ts";

const record: NodeRecord = {
  id: "node_1",
  name: "gpu-1",
  publicKey: "",
  approvedModels: ["*"],
  environments: ["live"],
  maxConcurrency: null,
  local: false,
  announced: [{ id: "m" }],
  toolServers: [],
  version: null,
  createdAt: 0,
  lastSeenAt: null,
};

function connectionAt(replicaId: string): NodeConnection {
  const advertiseUrl = `http://${replicaId}.example`;
  return { nodeId: "node_1", replicaId, connectionId: replicaId, clientAddress: "", connectedAt: 0, advertiseUrl };
}

test("ignores a late database answer that is older than a later read", async () => {
  const answers: PromiseWithResolvers<NodeConnection[]>[] = [];
  const store = {
    listNodes: async () => [record],
    listConnections: () => {
      const answer = Promise.withResolvers<NodeConnection[]>();
      answers.push(answer);
      return answer.promise;
    },
  } as Partial<NodeStore> as NodeStore;
  const directory = new NodeDirectory({
    store,
    feed: { onChange() {} },
    replicaId: "here",
    forwarder: { send: () => Promise.reject(new Error("nothing is sent")), keep() {} },
    audit: { append: async () => {} },
    clock: manualClock(),
    log: { info() {}, warn() {}, error() {} },
    onChange() {},
    pollMs: 50,
  });
  const asked = async (count: number) => {
    while (answers.length < count) await Bun.sleep(1);
  };
  const loaded = directory.load();
  await asked(1);
  answers[0]?.resolve([connectionAt("one")]);
  await loaded;
  // The timer polls, and then a change causes another poll.
  directory.start();
  await asked(2);
  const stale = answers.length;
  const refreshed = directory.refresh();
  await asked(stale + 1);
  for (const fresh of answers.slice(stale)) fresh.resolve([connectionAt("two")]);
  await refreshed;
  expect(directory.locate("node_1")?.replicaId).toBe("two");
  for (const late of answers.slice(1, stale)) late.resolve([]);
  await Bun.sleep(1);
  expect(directory.locate("node_1")?.replicaId).toBe("two");
  await directory.close();
});
