// Machines that join a gateway: what operators approve of what they announce is served through them, metered as anything else.
import { afterEach, expect, test } from "bun:test";
import OpenAI from "openai";
import { until } from "../support/headrace.ts";
import { mintKey } from "../support/mint-key.ts";
import { ask, endless, messages, model, reading, usageRow } from "../support/node-requests.ts";
import { type Gateway, type JoinOptions, joinNode, startGateway, type TestNode } from "../support/nodes.ts";
import {
  chatScript,
  type Script,
  type ScriptedUpstream,
  startUpstream,
  upstreamYaml,
} from "../support/scripted-upstream.ts";

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

test("streams a request of the openai SDK through a node, and meters it under the node's name", async () => {
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

test("serves a node's built-in engine and uses its announced concurrency", async () => {
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

test("offers announced models only while they are approved", async () => {
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

test("refuses fields that control a node's servers, whatever its gateway passes, unless the owner allows them", async () => {
  const gateway = await started(startGateway({ yaml: "limits: { refused_members: [] }\n" }));
  const { upstream } = await network({ gateway });
  const ask = (more: object) => gateway.request("/v1/chat/completions", { body: { model, messages, ...more } });
  for (const ruling of [
    { kv_transfer_params: { host: "10.0.0.1" } },
    { chat_template_kwargs: { chat_template: "x" } },
  ]) {
    const refused = await ask(ruling);
    expect(refused.status).toBe(400);
    expect((await errorOf(refused)).message).toContain("is not passed on to model servers");
  }
  expect(upstream.requests).toEqual([]);
  expect((await ask({ chat_template_kwargs: { enable_thinking: false } })).status).toBe(200);
});

test("passes on fields that control a node's servers if its owner allows them", async () => {
  const gateway = await started(startGateway({ yaml: "limits: { refused_members: [] }\n" }));
  const upstream = await started(startUpstream());
  const yaml = upstreamYaml(upstream, "limits: { refused_members: [] }\n");
  await started(joinNode(gateway, { yaml, models: [model] }));
  const body = { model, messages, kv_transfer_params: { host: "10.0.0.1" } };
  expect((await gateway.request("/v1/chat/completions", { body })).status).toBe(200);
  expect(upstream.requests[0]?.body).toMatchObject({ kv_transfer_params: { host: "10.0.0.1" } });
});

test("sends a node requests that must stay local only while an operator marks it as local", async () => {
  const { gateway, node, upstream } = await network();
  const key = await mintKey(gateway.dataDir, { scopes: ["chat:write"], neverLeaves: true });
  const stays = async () => {
    const headers = { authorization: `Bearer ${key}` };
    return (await gateway.request("/v1/chat/completions", { body: { model, messages }, headers })).status;
  };
  const mark = async (local: boolean) => (await gateway.admin("PATCH", `/nodes/${node.id}`, { local })).body.local;
  expect([(await gateway.node("gpu-1"))?.local, await stays(), upstream.requests.length]).toEqual([false, 403, 0]);
  expect([await mark(true), await stays(), upstream.requests.length]).toEqual([true, 200, 1]);
  expect([await mark(false), await stays(), upstream.requests.length]).toEqual([false, 403, 1]);
  const audit = await gateway.admin("GET", "/audit?action=node.updated");
  expect(audit.body.data[0]).toMatchObject({ detail: { local: { before: true, after: false } } });
});

test("runs a model declared at a node only as far as the node is approved, in its environments", async () => {
  const { gateway, node } = await network();
  const { body } = await gateway.admin("POST", "/models", {
    ...{ id: "team/alias", environments: ["live", "test", "dev"], price: { input: 1, output: 1 } },
    deployments: [{ upstream: "gpu-1", model }],
  });
  expect(body).toMatchObject({
    ...{ status: "ok", environments: ["live", "dev"] },
    deployments: [{ upstream: "gpu-1", state: "ok", listed: true }],
  });
  expect((await ask(gateway, { model: "team/alias" })).status).toBe(200);
  const change = (body: object) => gateway.admin("PATCH", `/nodes/${node.id}`, body);
  await change({ approved_models: [] });
  expect((await gateway.admin("GET", "/models/team/alias")).body).toMatchObject({ deployments: [{ listed: false }] });
  expect((await ask(gateway, { model: "team/alias" })).status).toBe(404);
  await change({ approved_models: [model], environments: ["live"] });
  expect((await ask(gateway, { model: "team/alias" })).status, "a key of another environment").toBe(404);
  await change({ environments: ["dev"] });
  expect((await ask(gateway, { model: "team/alias" })).status).toBe(200);
});

test("updates the gateway at once when a node starts or stops serving a model", async () => {
  const { gateway, node, upstream } = await network({ models: ["*"] });
  upstream.serves([{ id: "another", object: "model", created: 1, owned_by: "scripted" }]);
  await node.catalog.refresh();
  await until(async () => (await modelIds(gateway)).join() === "another", "the other model is listed", 3_000);
  expect((await ask(gateway)).status).toBe(404);
});

test("finishes a drained node's requests and sends no new ones, also after a reconnect", async () => {
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

test("sends a node no key, header or account of a request's client", async () => {
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

test("gives a request the same priority at its node as at the gateway", async () => {
  const upstream = await started(startUpstream());
  const gateway = await started(startGateway());
  const yaml = `upstreams: [{ name: up, url: "${upstream.url}", priority: true }]`;
  await started(joinNode(gateway, { yaml, models: [model] }));
  for (const priority of ["low", "normal"]) {
    const headers = { authorization: `Bearer ${gateway.key}`, "x-headrace-priority": priority };
    expect((await gateway.request("/v1/chat/completions", { body: { model, messages }, headers })).status).toBe(200);
  }
  expect(upstream.requests.map(({ body }) => body["priority"])).toEqual([1, 0]);
});

test("prefers a configured upstream that takes a node's name, and reports it", async () => {
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
