// Tests nodes as hosts of MCP servers: which node is meant, and whether it accepts requests.
import { expect, test } from "bun:test";
import type { NodeRecord } from "../domain/models/node.ts";
import { DirectoryToolNodes } from "./tool-nodes.ts";

function record(id: string, name: string): NodeRecord {
  return {
    ...{ id, name, publicKey: "", approvedModels: [], environments: ["live"], maxConcurrency: null, local: false },
    ...{ announced: [], toolServers: [], version: null, createdAt: 0, lastSeenAt: null },
  };
}

function nodesOf(...records: NodeRecord[]): DirectoryToolNodes {
  const send = () => Promise.reject(new Error("Nobody is asked here."));
  return new DirectoryToolNodes({
    directory: { records: () => records, isReachable: () => true, send },
    router: { drained: new Set(["gpu-2"]) },
  });
}

const [gone, here] = [`node_${Bun.randomUUIDv7()}`, `node_${Bun.randomUUIDv7()}`];

test("finds a node by id or name, and not by a name that is another node's id", () => {
  const nodes = nodesOf(record(here, "gpu-1"));
  expect([nodes.find(here)?.name, nodes.find("gpu-1")?.id]).toEqual(["gpu-1", here]);
  expect(nodesOf(record(here, gone)).find(gone)).toBeUndefined();
});

test("treats a drained node as unavailable", () => {
  const nodes = nodesOf(record(here, "gpu-1"), record(gone, "gpu-2"));
  expect([nodes.find("gpu-1")?.isThere, nodes.find("gpu-2")?.isThere]).toEqual([true, false]);
});
