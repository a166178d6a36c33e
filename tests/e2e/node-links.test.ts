// Connections of nodes that break, end, are replaced or taken away: what clients see of it, and how soon they are back.
import { afterEach, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startHeadrace, until } from "../support/headrace.ts";
import { withinMs } from "../support/long.ts";
import { ask, endless, messages, model, reading, usageRow } from "../support/node-requests.ts";
import {
  connected,
  type Gateway,
  type JoinOptions,
  joinNode,
  operate,
  startGateway,
  type TestNode,
} from "../support/nodes.ts";
import { type Script, type ScriptedUpstream, startUpstream, upstreamYaml } from "../support/scripted-upstream.ts";
import { startTcpProxy } from "../support/tcp-proxy.ts";

const backWithinMs = withinMs(5_000);
const stack: AsyncDisposable[] = [];
afterEach(async () => {
  for (const part of stack.splice(0).reverse()) await part[Symbol.asyncDispose]();
});

async function started<Part extends AsyncDisposable>(part: Promise<Part>): Promise<Part> {
  const ready = await part;
  stack.push(ready);
  return ready;
}

interface World {
  gateway: Gateway;
  node: TestNode;
  upstream: ScriptedUpstream;
}

async function network(options: JoinOptions & { script?: Script; gateway?: Gateway } = {}): Promise<World> {
  const { script, gateway = await started(startGateway()), ...join } = options;
  const upstream = await started(startUpstream(script));
  const node = await started(joinNode(gateway, { yaml: upstreamYaml(upstream), models: [model], ...join }));
  return { gateway, node, upstream };
}

const errorOf = async (response: Response) =>
  ((await response.json()) as { error: { message: string; code: string } }).error;

const modelIds = async (gateway: Gateway) => {
  const list = (await (await gateway.request("/v1/models")).json()) as { data: { id: string }[] };
  return list.data.map(({ id }) => id);
};

test("reports a cut node connection as an error event, books the delivered part, and reconnects in 5 s", async () => {
  const { script, left } = endless();
  const gateway = await started(startGateway());
  const wire = await started(startTcpProxy(gateway.port));
  await network({ gateway, script, through: wire.url });
  const answer = await reading(await ask(gateway, { stream: true }), 10);
  wire.cut();
  const text = await answer.whole;
  expect(text).toContain('data: {"error":');
  expect(text).not.toContain("[DONE]");
  const delivered = text.split('"word "').length - 1;
  const row = await usageRow(gateway, { outcome: "failed", upstream: "gpu-1" });
  expect(Number(row["completion_tokens"])).toBeGreaterThanOrEqual(delivered - 1);
  await until(left, "the node's model server was told to stop", 3_000);

  const away = await ask(gateway);
  expect([away.status, away.headers.get("retry-after")]).toEqual([503, "2"]);
  expect((await errorOf(away)).message).toContain("not connected");
  expect(await modelIds(gateway), "it stays on offer for a while").toEqual([model]);
  expect((await gateway.node("gpu-1"))?.status).toBe("offline");
  expect((await gateway.admin("GET", "/upstreams/gpu-1")).body.state).toBe("unreachable");
  await Bun.sleep(1_000);
  wire.mend();
  const mendedMs = performance.now();
  await connected(gateway, "gpu-1");
  expect(performance.now() - mendedMs).toBeLessThan(backWithinMs);
  const again = await reading(await ask(gateway, { stream: true }), 3);
  expect(again.text()).toContain("word");
  wire.cut();
  await again.whole;
});

test("shows a node without its process as away, and serves again once it restarts on its data", async () => {
  const dataDir = mkdtempSync(join(tmpdir(), "headrace-node-"));
  try {
    const { gateway, node, upstream } = await network({ dataDir });
    await node[Symbol.asyncDispose]();
    await until(async () => (await gateway.node("gpu-1"))?.status === "offline", "it is away");
    expect((await ask(gateway)).status).toBe(503);
    await started(startHeadrace({ dataDir, yaml: upstreamYaml(upstream) }));
    await connected(gateway, "gpu-1");
    expect((await ask(gateway)).status).toBe(200);
  } finally {
    rmSync(dataDir, { recursive: true, force: true });
  }
});

test("gets its nodes back after a gateway restart, and answers 503 instead of 404 until then", async () => {
  const dataDir = mkdtempSync(join(tmpdir(), "headrace-gateway-"));
  try {
    const first = await startGateway({ dataDir });
    const { port } = first;
    const { node } = await network({ gateway: first });
    const { key } = first;
    await first[Symbol.asyncDispose]();
    const second = await started(operate(await startHeadrace({ dataDir, flags: { port: String(port) } })));
    const asked = async () => {
      const headers = { authorization: `Bearer ${key}` };
      return await second.request("/v1/chat/completions", { body: { model, messages }, headers });
    };
    expect([200, 503]).toContain((await asked()).status);
    const startedMs = performance.now();
    await until(async () => (await asked()).status === 200, "it is back");
    expect(performance.now() - startedMs).toBeLessThan(backWithinMs);
    expect(node.network.uplink.view()?.status).toBe("connected");
  } finally {
    rmSync(dataDir, { recursive: true, force: true });
  }
});

test("finishes a stopped node's requests without cuts, and sends no new ones", async () => {
  const { script, release } = endless();
  const { gateway, node } = await network({ script });
  const answer = await reading(await ask(gateway, { stream: true }), 3);
  const closed = node.close(10_000);
  await until(async () => (await gateway.node("gpu-1"))?.status === "draining", "the gateway knows that it leaves");
  expect((await ask(gateway)).status).toBe(503);
  release();
  expect(await answer.whole).toEndWith("data: [DONE]\n\n");
  await closed;
  await until(async () => (await gateway.node("gpu-1"))?.status === "offline", "it is gone");
});

test("disconnects a removed node at once with its work, and never admits it again", async () => {
  const { script } = endless();
  const { gateway, node } = await network({ script });
  const answer = await reading(await ask(gateway, { stream: true }), 3);
  expect((await gateway.admin("DELETE", `/nodes/${node.id}`)).status).toBe(200);
  expect(await answer.whole).toContain('data: {"error":');
  expect((await ask(gateway)).status).toBe(404);
  await until(() => node.network.uplink.view()?.status === "refused", "the node knows");
  expect(node.network.uplink.view()?.message).toContain("join again");
  expect(await gateway.node("gpu-1")).toBeUndefined();
});

test("replaces the first connection of a node by a second", async () => {
  const { script } = endless();
  const { gateway, node, upstream } = await network({ script });
  const answer = await reading(await ask(gateway, { stream: true }), 3);
  const copy = await started(startHeadrace({ yaml: upstreamYaml(upstream) }));
  const { readNodeIdentity, writeNodeIdentity } = await import("../../src/storage/files/node-files.ts");
  const identity = readNodeIdentity(node.dataDir);
  if (!identity) throw new Error("The node has no identity.");
  writeNodeIdentity(copy.dataDir, identity);
  expect(await answer.whole).toContain('data: {"error":');
  await until(() => node.network.uplink.view()?.status === "refused", "the first one gave way");
  expect(copy.network.uplink.view()?.status).toBe("connected");
  const again = await reading(await ask(gateway, { stream: true }), 3);
  expect(again.text()).toContain("word");
  await copy[Symbol.asyncDispose]();
  await again.whole;
});

test("forgets a gateway on the node's machine after leaving, and ends the node's requests", async () => {
  const { gateway, node } = await network();
  node.leave();
  await until(async () => (await gateway.node("gpu-1"))?.status === "offline", "it is away");
  expect(node.network.uplink.view()).toBeUndefined();
});
