// Machines that join a gateway: what operators approve of what they announce is served through them, metered as anything else.
import { afterEach, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import OpenAI from "openai";
import type { JoinTokenWire } from "../../src/domain/node-wire.ts";
import { startHeadrace, until } from "../support/headrace.ts";
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
import {
  chatScript,
  type Script,
  type ScriptedUpstream,
  startUpstream,
  upstreamYaml,
} from "../support/scripted-upstream.ts";
import { startTcpProxy } from "../support/tcp-proxy.ts";

const backWithinMs = 5_000;
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

test("a streamed request of the openai SDK goes through the node, and is metered under the node's name", async () => {
  const { gateway, upstream } = await network({ script: chatScript(["Hello", " from", " afar"]) });
  const client = new OpenAI({ apiKey: gateway.key, baseURL: gateway.baseUrl });
  const stream = await client.chat.completions.create({ model, messages, stream: true });
  let text = "";
  for await (const part of stream) text += part.choices[0]?.delta.content ?? "";
  expect(text).toBe("Hello from afar");
  expect(upstream.requests).toHaveLength(1);
  await usageRow(gateway, { model, upstream: "gpu-1", outcome: "completed", prompt_tokens: 7, completion_tokens: 2 });
  const whole = await client.chat.completions.create({ model, messages });
  expect(whole.choices[0]?.message.content).toBe("Hello from afar");
  const upstreams = (await gateway.admin("GET", "/upstreams")).body.data;
  expect(upstreams).toContainEqual(expect.objectContaining({ name: "gpu-1", source: "node", state: "ok", models: 1 }));
  const status = (await (await gateway.request("/v1/model-status")).json()) as { data: { deployments: unknown[] }[] };
  expect(status.data[0]?.deployments).toMatchObject([{ upstream: "gpu-1", kind: "node", state: "ok" }]);
});

test("the built-in engine of a node serves as well, and announces how much it takes at once", async () => {
  const gateway = await started(startGateway());
  const { token } = await gateway.token(["*"]);
  expect(token).toMatch(/^hrn_[0-9A-Za-z]{30,}$/);
  await started(joinNode(gateway, { demo: true, models: ["*"] }));
  expect(await modelIds(gateway)).toEqual(["tiny-demo"]);
  const body = { model: "tiny-demo", messages, max_tokens: 3 };
  const response = await gateway.request("/v1/chat/completions", { body });
  expect(response.status).toBe(200);
  const { usage } = (await response.json()) as { usage: { completion_tokens: number } };
  expect(usage.completion_tokens).toBe(3);
  const node = await gateway.node("gpu-1");
  expect(node?.concurrency).toBeGreaterThan(0);
});

test("what is announced is no model of the gateway before it is approved, and none any more once it is not", async () => {
  const { gateway, node } = await network({ models: [] });
  expect((await gateway.node("gpu-1"))?.status).toBe("pending");
  expect(await modelIds(gateway)).toEqual([]);
  const refused = await ask(gateway);
  expect([refused.status, (await errorOf(refused)).code]).toEqual([404, "model_not_found"]);

  const approve = (models: string[]) => gateway.admin("PATCH", `/nodes/${node.id}`, { approved_models: models });
  expect((await approve([model])).body).toMatchObject({
    status: "online",
    announced_models: [{ id: model, approved: true }],
  });
  expect((await ask(gateway)).status).toBe(200);
  await until(() => node.network.uplink.view()?.models[0]?.approved, "the node knows that it was approved");
  await approve(["another"]);
  expect((await ask(gateway)).status).toBe(404);
  await until(() => node.network.uplink.view()?.models[0]?.approved === false, "and that it no longer is");
  await gateway.admin("PATCH", `/nodes/${node.id}`, { approved_models: ["*"], environments: ["live"] });
  expect((await ask(gateway)).status, "a key of another environment").toBe(404);
});

test("what a node begins to serve, and what it serves no more, is known at the gateway at once", async () => {
  const { gateway, node, upstream } = await network({ models: ["*"] });
  upstream.serves([{ id: "another", object: "model", created: 1, owned_by: "scripted" }]);
  await node.catalog.refresh();
  await until(async () => (await modelIds(gateway)).join() === "another", "the other model is listed", 3_000);
  expect((await ask(gateway)).status).toBe(404);
});

test("a link that is cut in the middle of an answer is an error event, the ledger has what came, and it is back in 5 s", async () => {
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

test("a node whose process is gone is away, and one that starts again on its data serves again by itself", async () => {
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

test("a gateway that starts again has its nodes back, and until then says 503 and not 404", async () => {
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

test("a drained node finishes what it has and gets nothing new, also after a new connection", async () => {
  const { script, release } = endless();
  const { gateway, node } = await network({ script });
  const answer = await reading(await ask(gateway, { stream: true }), 3);
  const drained = (await gateway.admin("PATCH", `/nodes/${node.id}`, { draining: true })).body;
  expect(drained).toMatchObject({ status: "draining", draining: true, running: 1 });
  const refused = await ask(gateway);
  expect(refused.status).toBe(503);
  expect(refused.headers.get("retry-after")).not.toBeNull();
  release();
  expect(await answer.whole).toEndWith("data: [DONE]\n\n");
  expect((await gateway.admin("PATCH", `/nodes/${node.id}`, { draining: false })).body.status).toBe("online");
});

test("a node that is stopped finishes what it has: nothing is cut, nothing new comes", async () => {
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

test("a removed node is cut off at once with what it works on, and is never let in again", async () => {
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

test("a second connection of the same node takes the place of the first", async () => {
  const { script } = endless();
  const { gateway, node, upstream } = await network({ script });
  const answer = await reading(await ask(gateway, { stream: true }), 3);
  const copy = await started(startHeadrace({ yaml: upstreamYaml(upstream) }));
  const { readNodeIdentity, writeNodeIdentity } = await import("../../src/storage/node-files.ts");
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

test("a node that leaves is forgotten by its machine, and its requests end", async () => {
  const { gateway, node } = await network();
  node.leave();
  await until(async () => (await gateway.node("gpu-1"))?.status === "offline", "it is away");
  expect(node.network.uplink.view()).toBeUndefined();
});

test("a node learns of a request no more than what is asked of which model", async () => {
  const { gateway, node, upstream } = await network();
  const headers = { authorization: `Bearer ${gateway.key}`, cookie: "canary-cookie=1", "x-canary": "canary-header" };
  const body = { model, messages, user: "somebody" };
  const response = await gateway.request("/v1/chat/completions", { body, headers });
  expect(response.status).toBe(200);
  const sent = JSON.stringify(upstream.requests.map(({ headers: own, text }) => [own, text]));
  const seen = sent + node.logText();
  const account = (await (await gateway.request("/v1/account")).json()) as { id: string };
  for (const secret of [gateway.key, gateway.operator, "canary-cookie", "canary-header", account.id]) {
    expect(seen).not.toContain(secret);
  }
  expect(seen).toContain(response.headers.get("x-request-id") ?? "no id");
});

test("a join token works once, in time, and as long as nobody deleted it; the answer never says which", async () => {
  const gateway = await started(startGateway());
  const key = () => Buffer.from(crypto.getRandomValues(new Uint8Array(32))).toString("base64url");
  const enrol = async (token: string, name: string) => {
    const answer = await fetch(`${gateway.url}/v1/nodes`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ token, name, public_key: key() }),
    });
    return { status: answer.status, text: await answer.text() };
  };
  const used = await gateway.token();
  const outcomes = await Promise.all(Array.from({ length: 12 }, (_, index) => enrol(used.token, `gpu-${index}`)));
  expect(outcomes.filter(({ status }) => status === 200)).toHaveLength(1);
  const deleted = await gateway.token();
  expect((await gateway.admin("DELETE", `/node-tokens/${deleted.id}`)).status).toBe(200);
  const texts = [...outcomes.filter(({ status }) => status !== 200)];
  texts.push(await enrol(deleted.token, "gpu-x"), await enrol("hrn_nonsense", "gpu-x"));
  texts.push(await enrol(`hrn_${"0".repeat(32)}`, "gpu-x"), await enrol(gateway.key, "gpu-x"));
  expect(new Set(texts.map(({ status, text }) => `${status} ${text}`)).size).toBe(1);
  expect(texts[0]?.status).toBe(403);

  const taken = await enrol((await gateway.token()).token, "built-in");
  expect([taken.status, taken.text]).toEqual([400, expect.stringContaining("name")]);
  const list = (await gateway.admin("GET", "/node-tokens")).body.data as JoinTokenWire[];
  expect(list.map(({ status }) => status).sort()).toEqual(["active", "used"]);
  expect(JSON.stringify(list)).not.toContain(used.token);
  const audit = JSON.stringify((await gateway.admin("GET", "/audit?limit=50")).body);
  for (const action of ["node.joined", "node_token.created", "node_token.deleted"]) expect(audit).toContain(action);
  expect(audit + gateway.logText()).not.toContain(used.token);
});

test("the name of an upstream is no node's, and that of a node no upstream's", async () => {
  const upstream = await started(startUpstream());
  const gateway = await started(startGateway({ yaml: upstreamYaml(upstream) }));
  const { token } = await gateway.token();
  const body = JSON.stringify({ token, name: "up", public_key: Buffer.alloc(32, 7).toString("base64url") });
  const join = (text: string) =>
    fetch(`${gateway.url}/v1/nodes`, { method: "POST", headers: { "content-type": "application/json" }, body: text });
  expect((await join(body)).status).toBe(400);
  expect((await join(body.replace('"up"', '"gpu-1"'))).status).toBe(200);
  const added = await gateway.admin("POST", "/upstreams", { name: "gpu-1", url: upstream.url });
  expect([added.status, added.body.error.message]).toEqual([400, expect.stringContaining("gpu-1")]);
});

test("machines of one address may not try to join without end", async () => {
  const gateway = await started(startGateway());
  const body = JSON.stringify({ token: "hrn_no", name: "gpu-1", public_key: Buffer.alloc(32).toString("base64url") });
  const headers = { "content-type": "application/json" };
  const statuses = await Promise.all(
    Array.from(
      { length: 70 },
      async () => (await fetch(`${gateway.url}/v1/nodes`, { method: "POST", headers, body })).status,
    ),
  );
  expect(statuses.filter((status) => status === 403)).toHaveLength(60);
  expect(statuses.filter((status) => status === 429)).toHaveLength(10);
});

test("an upstream of the configuration file that takes the name of a node is served in its place, and that is told", async () => {
  const { gateway, node, upstream } = await network();
  const yaml = `upstreams:\n  - { name: gpu-1, url: "${upstream.url}" }\n`;
  await gateway.reconfigure(yaml);
  expect((await gateway.admin("GET", "/upstreams/gpu-1")).body).toMatchObject({ source: "file" });
  expect(gateway.logged("node_name_taken")).toMatchObject([{ node: "gpu-1" }]);
  expect((await ask(gateway)).status).toBe(200);
  expect((await gateway.admin("PATCH", `/nodes/${node.id}`, { name: "gpu-2" })).body.name).toBe("gpu-2");
  const names = (await gateway.admin("GET", "/upstreams")).body.data.map((one: { name: string }) => one.name);
  expect(names).toEqual(["built-in", "gpu-1", "gpu-2"]);
});
