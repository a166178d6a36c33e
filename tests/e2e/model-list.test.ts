// The models of a key as OpenAI's clients, Anthropic's and Codex read them, with aliases, and requests by those.

import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import Anthropic from "@anthropic-ai/sdk";
import { openaiClient } from "../support/clients.ts";
import { startHeadrace, type TestServer } from "../support/headrace.ts";
import { mintKey } from "../support/mint-key.ts";
import { type ScriptedUpstream, startUpstream } from "../support/scripted-upstream.ts";

let upstream: ScriptedUpstream;
let server: TestServer;

const version = { "anthropic-version": "2023-06-01" };

beforeAll(async () => {
  upstream = await startUpstream();
  const place = "deployments: [{ upstream: up, model: upstream-model }]";
  server = await startHeadrace({
    yaml: `upstreams:
  - { name: up, url: "${upstream.url}", discover: false }
models:
  - { id: big, context: 200000, price: { input: 1.5, output: 6 }, aliases: ["claude-*", gpt-5, small], ${place} }
  - { id: small, context: 8192, aliases: [claude-haiku-4-5, "claude-haiku-*"], ${place} }
  - { id: embedder, capabilities: { chat: false, embeddings: true }, ${place} }
  - { id: hidden, environments: [live], aliases: [hidden-too], ${place} }
`,
  });
});
afterAll(async () => {
  await server[Symbol.asyncDispose]();
  await upstream[Symbol.asyncDispose]();
});

const anthropic = () => new Anthropic({ baseURL: server.url, apiKey: server.key, maxRetries: 0 });
const get = async (path: string, headers: Record<string, string> = {}) => {
  const answer = await server.request(path, { headers: { authorization: `Bearer ${server.key}`, ...headers } });
  return { status: answer.status, headers: answer.headers, body: await answer.json() };
};
const everything = ["big", "gpt-5", "small", "claude-haiku-4-5", "embedder"];

describe("the list of models", () => {
  test("lists models for OpenAI and Anthropic clients in one body, with exact aliases as entries", async () => {
    const { body } = await get("/v1/models?limit=2&unknown=1");
    expect(body.data.map(({ id }: { id: string }) => id)).toEqual(everything);
    expect(body).toMatchObject({ object: "list", has_more: false, first_id: "big", last_id: "embedder" });
    expect(body.models).toBeUndefined();
    const [big, alias] = body.data;
    const created = big.created as number;
    expect(big).toEqual({
      ...{ id: "big", object: "model", created, owned_by: "scripted", context_length: 200000 },
      price: { input: 1.5, output: 6 },
      ...{ type: "model", display_name: "big", created_at: new Date(created * 1000).toISOString().replace(".000", "") },
      ...{ max_input_tokens: 200000, max_tokens: 200000 },
    });
    expect(alias).toEqual({ ...big, id: "gpt-5", display_name: "gpt-5", alias_of: "big" });
  });

  test("lists models for the openai package and finds one by id, by alias and not by a prefix", async () => {
    const client = openaiClient(server);
    const ids: string[] = [];
    for await (const { id } of client.models.list()) ids.push(id);
    expect(ids).toEqual(everything);
    for (const [name, model] of [
      ["small", undefined],
      ["gpt-5", "big"],
      ["claude-opus-5", "big"],
      ["claude-haiku-9", "small"],
    ] as const) {
      expect(await client.models.retrieve(name)).toMatchObject({ id: name, object: "model" });
      expect((await get(`/v1/models/${name}`)).body.alias_of).toBe(model);
    }
  });

  test("pages through the model list in both directions with Anthropic's package, with errors in its format", async () => {
    const walk = async (query: Anthropic.ModelListParams) => {
      const ids: string[] = [];
      for await (const { id } of anthropic().models.list(query)) ids.push(id);
      return ids;
    };
    for (const limit of [1, 2, 5, 1000]) expect(await walk({ limit })).toEqual(everything);
    expect(await walk({ limit: 2, after_id: "gpt-5" })).toEqual(everything.slice(2));
    expect(await walk({ limit: 2, before_id: "claude-haiku-4-5" })).toEqual(["gpt-5", "small", "big"]);
    const first = await anthropic().models.list({ limit: 2 });
    expect(first).toMatchObject({ has_more: true, first_id: "big", last_id: "gpt-5" });
    expect(await anthropic().models.retrieve("big")).toMatchObject({ type: "model", max_input_tokens: 200000 });
    const error = await anthropic()
      .models.retrieve("nope")
      .catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(Anthropic.NotFoundError);
    expect(error).toMatchObject({ error: { type: "error", error: { type: "not_found_error" } } });
    expect((error as InstanceType<typeof Anthropic.APIError>).requestID).toMatch(/^req_/);
  });

  test("refuses impossible pages in Anthropic's format, and ignores paging without its header", async () => {
    for (const [query, field] of [
      ["limit=0", "limit"],
      ["limit=1001", "limit"],
      ["limit=x", "limit"],
      ["after_id=nope", "after_id"],
      ["before_id=claude-opus-5", "before_id"],
      ["after_id=big&before_id=small", "before_id"],
    ]) {
      const { status, body, headers } = await get(`/v1/models?${query}&beta=true`, version);
      expect([query, status, body.type, body.error.type]).toEqual([query, 400, "error", "invalid_request_error"]);
      expect(body.error.message).toStartWith(`${field}: `);
      expect(headers.get("request-id")).toBe(body.request_id);
      expect((await get(`/v1/models?${query}`)).body.data).toHaveLength(everything.length);
    }
    const { body } = await get("/v1/models/nope");
    expect(body).toMatchObject({ error: { code: "model_not_found", param: "model" } });
  });

  test("reports a missing key in the format of the client", async () => {
    const answer = async (headers: Record<string, string>) =>
      (await fetch(`${server.url}/v1/models`, { headers })).json();
    expect(await answer(version)).toMatchObject({ type: "error", error: { type: "authentication_error" } });
    expect(await answer({})).toMatchObject({ error: { code: "invalid_api_key" } });
  });
});

test("gives Codex complete entries of all chat models, as releases since 0.144 expect", async () => {
  const { body } = await get("/v1/models?client_version=0.169.0");
  expect(body.data).toHaveLength(everything.length);
  const chatting = everything.slice(0, -1);
  expect(body.models.map(({ slug }: { slug: string }) => slug)).toEqual(chatting);
  // Without a default in `ModelInfo` of one release or another: one that lacks rejects the whole list.
  const required = [
    ...["slug", "display_name", "description", "supported_reasoning_levels", "shell_type", "visibility"],
    ...["supported_in_api", "priority", "availability_nux", "upgrade", "base_instructions", "support_verbosity"],
    ...["default_verbosity", "apply_patch_tool_type", "truncation_policy", "supports_parallel_tool_calls"],
    ...["supports_reasoning_summaries", "experimental_supported_tools"],
  ];
  for (const [index, model] of body.models.entries()) {
    expect(required.filter((name) => !(name in model))).toEqual([]);
    expect(model).toMatchObject({ priority: index + 1, visibility: "list", effective_context_window_percent: 95 });
    expect(model.base_instructions).toContain("*** Begin Patch");
    for (const level of model.supported_reasoning_levels) expect(Object.keys(level)).toEqual(["effort", "description"]);
  }
  expect(body.models[0]).toMatchObject({ context_window: 200000, truncation_policy: { mode: "tokens", limit: 10000 } });
  // A tenth of a small context.
  expect(body.models[2]).toMatchObject({ context_window: 8192, truncation_policy: { mode: "tokens", limit: 820 } });
});

describe("a request with a model's alias", () => {
  const ask = (model: string, more: object = {}, key = server.key) =>
    server.request("/v1/chat/completions", {
      body: { model, messages: [{ role: "user", content: "Hi" }], ...more },
      headers: { authorization: `Bearer ${key}` },
    });

  test("names the model, not its alias, in answer, header and usage, and the alias in the log", async () => {
    for (const [name, model] of [
      ["claude-opus-5", "big"],
      ["claude-haiku-4-5", "small"],
      ["claude-haiku-5", "small"],
    ] as const) {
      const whole = await ask(name);
      expect([whole.status, whole.headers.get("x-headrace-model")]).toEqual([200, model]);
      expect(await whole.json()).toMatchObject({ model });
      const streamed = await ask(name, { stream: true });
      expect(streamed.headers.get("x-headrace-model")).toBe(model);
      expect(await streamed.text()).toContain(`"model":"${model}"`);
      expect(upstream.requests.at(-1)?.body).toMatchObject({ model: "upstream-model" });
      expect(server.logged("request")).toContainEqual(expect.objectContaining({ model: name, served_by: model }));
    }
    // An alias that is the id of a model is never that of another one.
    const own = await ask("small");
    expect([own.headers.get("x-headrace-model"), (await own.json()).model]).toEqual([null, "small"]);
    await server.governance.ledger.flush();
    const { data } = (await get("/v1/requests")).body;
    const counts = Map.groupBy(data as { model: string; cost: number }[], ({ model }) => model);
    expect([...counts].map(([model, { length }]) => [model, length]).sort()).toEqual([
      ["big", 2],
      ["small", 5],
    ]);
    expect(counts.get("big")?.every(({ cost }) => cost > 0)).toBe(true);
  });

  test("stores a completion requested by alias under the model's name", async () => {
    const { id } = await (await ask("claude-sonnet-5", { store: true })).json();
    const stored = await get(`/v1/chat/completions?model=big`);
    expect(stored.body.data.map((one: { id: string }) => one.id)).toEqual([id]);
  });

  test("hides the alias of a model that the key may not use", async () => {
    const refused = await ask("hidden-too");
    expect([refused.status, (await refused.json()).error.code]).toEqual([404, "model_not_found"]);
    const live = await mintKey(server.dataDir, { environment: "live", scopes: ["models:read", "chat:write"] });
    expect((await ask("hidden-too", {}, live)).status).toBe(200);
    const listed = await get("/v1/models", { authorization: `Bearer ${live}` });
    expect(listed.body.data.map(({ id }: { id: string }) => id)).toContain("hidden-too");
  });
});
