// Keys that name models, and keys whose requests never leave: on every path that asks a model or shows one.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { startHeadrace, type TestServer, until } from "../support/headrace.ts";
import { mintKey } from "../support/mint-key.ts";
import { chatScript, json, type ScriptedUpstream, startUpstream } from "../support/scripted-upstream.ts";

let here: ScriptedUpstream;
let there: ScriptedUpstream;
let server: TestServer;

const yaml = () => `
upstreams:
  - { name: here, url: "${here.url}", local: true, discover: false }
  - { name: there, url: "${there.url}", discover: false }
models:
  - id: near
    deployments: [{ upstream: here, model: upstream-model }]
    aliases: [near-alias]
  - id: far
    deployments: [{ upstream: there, model: upstream-model }]
    aliases: [near-too, "near-by-*"]
  - id: near-failing
    deployments: [{ upstream: here, model: failing }]
    fallbacks: [far]
  - id: near-both
    deployments: [{ upstream: here, model: failing, weight: 100 }, { upstream: there, model: upstream-model, weight: 100 }]
`;

beforeAll(async () => {
  [here, there] = await Promise.all([startUpstream(), startUpstream()]);
  server = await startHeadrace({ yaml: yaml() });
});
afterAll(async () => {
  await server[Symbol.asyncDispose]();
  await Promise.all([here[Symbol.asyncDispose](), there[Symbol.asyncDispose]()]);
});
beforeEach(() => {
  const answers = chatScript();
  here.script((request, response) =>
    request.body["model"] === "failing"
      ? json(response, 500, { error: { message: "out of order" } })
      : answers(request, response),
  );
  for (const upstream of [here, there]) upstream.requests.length = 0;
});

const scopes = ["chat:read", "chat:write", "models:read", "keys:manage"] as const;
const bounded = () => mintKey(server.dataDir, { scopes, models: ["near*"] });
const staying = () => mintKey(server.dataDir, { scopes, neverLeaves: true });

function ask(key: string, path: string, body?: unknown, headers: Record<string, string> = {}): Promise<Response> {
  return server.request(path, {
    ...(body === undefined ? {} : { body }),
    headers: { ...headers, authorization: `Bearer ${key}` },
  });
}

const messages = [{ role: "user", content: "Hi" }];
const chat = (key: string, model: string, more: object = {}) =>
  ask(key, "/v1/chat/completions", { model, messages, ...more });
/** Each way to ask a model for something. */
const ways: readonly [path: string, body: object][] = [
  ["/v1/chat/completions", { messages }],
  ["/v1/chat/completions", { messages, stream: true }],
  ["/v1/completions", { prompt: "Hi" }],
  ["/v1/embeddings", { input: "Hi" }],
  ["/v1/responses", { input: "Hi" }],
  ["/v1/responses", { input: "Hi", stream: true }],
  ["/v1/responses", { input: "Hi", background: true }],
  ["/v1/responses/compact", { input: "Hi" }],
  ["/v1/responses/input_tokens", { input: "Hi" }],
  ["/v1/messages", { max_tokens: 9, messages }],
  ["/v1/messages/count_tokens", { messages }],
];

/** Status and code of a refusal, in whichever form; of what goes on in the background, of how it ended. */
async function refusalOf(key: string, path: string, body: object): Promise<unknown[]> {
  const response = await ask(key, path, body);
  const answer = (await response.json()) as Record<string, unknown>;
  const error = (answer["error"] ?? {}) as { code?: string; type?: string };
  return [response.status, error.code ?? error.type];
}

interface Refusal {
  what: string;
  key: () => Promise<string>;
  status: number;
  code: string;
  anthropic: string;
}

describe.each<Refusal>([
  { what: "of models", key: bounded, status: 404, code: "model_not_found", anthropic: "not_found_error" },
  { what: "that stays", key: staying, status: 403, code: "permission_denied", anthropic: "permission_error" },
])("a key $what", ({ key: make, status, code, anthropic }) => {
  test.each(ways)(
    "refuses %s %j for a model outside the key's access policy, by name and by alias",
    async (path, body) => {
      const key = await make();
      for (const model of ["far", "near-too", "near-by-night"]) {
        const expected = path.startsWith("/v1/messages") ? anthropic : code;
        expect(await refusalOf(key, path, { model, ...body })).toEqual([status, expected]);
      }
      expect(there.requests).toEqual([]);
    },
  );

  test("refuses models outside the key's access policy over a WebSocket, and serves allowed ones", async () => {
    const key = await make();
    const socket = new WebSocket(`${server.url.replace("http", "ws")}/v1/responses`, {
      headers: { authorization: `Bearer ${key}` },
    } as never);
    const events: { type: string; status?: number; error?: { code: string } }[] = [];
    socket.onmessage = ({ data }) => void events.push(JSON.parse(String(data)));
    await new Promise((resolve) => {
      socket.onopen = resolve;
    });
    const send = (model: string, more: object = {}) =>
      socket.send(JSON.stringify({ type: "response.create", model, input: "Hi", store: false, ...more }));
    send("far");
    send("near-too", { generate: false });
    send("near");
    await until(() => events.some(({ type }) => type === "response.completed"), "the answer");
    const refused = events.filter(({ type }) => type === "error");
    expect(refused.map(({ status: reported, error }) => [reported, error?.code])).toEqual([
      [status, code],
      [status, code],
    ]);
    socket.close();
    expect([here.requests.length, there.requests.length]).toEqual([1, 0]);
  });

  test("serves allowed models by name and alias, and continues the key's stored responses only with them", async () => {
    const key = await make();
    expect((await chat(key, "near-alias")).status).toBe(200);
    const first = (await (await ask(key, "/v1/responses", { model: "near", input: "Hi" })).json()) as { id: string };
    const next = { input: "And?", previous_response_id: first.id };
    expect((await ask(key, "/v1/responses", { model: "near", ...next })).status).toBe(200);
    expect(await refusalOf(key, "/v1/responses", { model: "far", ...next })).toEqual([status, code]);
    expect(await refusalOf(key, "/v1/responses/compact", { model: "far", ...next })).toEqual([status, code]);
    expect([here.requests.length, there.requests.length]).toEqual([3, 0]);
  });

  test("shows a key its allowed models in every list, and no others", async () => {
    const key = await make();
    const own = ["near", "near-alias", "near-failing", "near-both"];
    const lists = [
      await ask(key, "/v1/models"),
      await ask(key, "/v1/models?limit=100", undefined, { "anthropic-version": "2023-06-01" }),
      await ask(key, "/v1/model-status"),
    ];
    for (const [index, response] of lists.entries()) {
      const { data } = (await response.json()) as { data: { id: string }[] };
      const listed = index === 2 ? own.filter((id) => id !== "near-alias") : own;
      expect(data.map(({ id }) => id).sort()).toEqual([...listed].sort());
    }
    const codex = (await (await ask(key, "/v1/models?client_version=1.0.0")).json()) as { models: { slug: string }[] };
    expect(codex.models.map(({ slug }) => slug)).not.toContain("far");
    for (const [id, reported] of [
      ["near", 200],
      ["near-alias", 200],
      ["far", 404],
      ["near-too", 404],
      ["near-by-night", 404],
    ] as const) {
      expect([id, (await ask(key, `/v1/models/${id}`)).status]).toEqual([id, reported]);
    }
  });

  test("uses no fallback outside the key's access policy", async () => {
    expect((await chat(await make(), "near-failing")).status).toBe(502);
    expect(there.requests).toEqual([]);
    expect((await chat(server.key, "near-failing")).status).toBe(200);
    expect(there.requests).toHaveLength(1);
  });

  test("prevents a key from widening its access by a new key, a token or its own rotation", async () => {
    const key = await make();
    const post = async (path: string, body: object = {}) =>
      (await (await ask(key, path, body)).json()) as { id: string; key: string; access_token: string };
    const child = await post("/v1/keys", { name: "child" });
    const { access_token: token } = await post("/v1/auth/token", { api_key: key });
    const self = (await (await ask(key, "/v1/keys?search=Made+by+a+test&limit=100")).json()) as {
      data: { id: string; last4: string }[];
    };
    const id = self.data.find(({ last4 }) => key.endsWith(last4))?.id ?? "";
    const successor = await post(`/v1/keys/${id}/rotate`);
    for (const made of [child.key, token, successor.key]) {
      expect(await refusalOf(made, "/v1/chat/completions", { model: "far", messages })).toEqual([status, code]);
      expect((await chat(made, "near")).status).toBe(200);
    }
    expect(there.requests).toEqual([]);
  });
});

test("sends a request that must stay local to no other deployment, however often the local ones fail", async () => {
  const key = await staying();
  for (let i = 0; i < 6; i++) expect((await chat(key, "near-both", { stream: i % 2 === 0 })).status).toBe(502);
  expect(there.requests).toEqual([]);
  expect(here.requests.length).toBeGreaterThan(0);
  expect((await chat(server.key, "near-both")).status).toBe(200);
  expect(there.requests).toHaveLength(1);
});

test("applies a changed access policy of a key or mark of an upstream once the change is answered", async () => {
  const { id, key } = (await (
    await server.request("/v1/keys", { body: { name: "changing", scopes: ["chat:write", "models:read"] } })
  ).json()) as { id: string; key: string };
  const change = (body: object) => server.request(`/v1/keys/${id}`, { method: "PATCH", body });
  const states = async () => Promise.all(["near", "far"].map(async (model) => (await chat(key, model)).status));
  expect(await states()).toEqual([200, 200]);
  await change({ models: ["far"] });
  expect(await states()).toEqual([404, 200]);
  await change({ models: null, never_leaves: true });
  expect(await states()).toEqual([200, 403]);
  await server.reconfigure(yaml().replace(", local: true", ""));
  expect(await states()).toEqual([403, 403]);
  await server.reconfigure(yaml());
  expect(await states()).toEqual([200, 403]);
  await change({ never_leaves: false });
  expect(await states()).toEqual([200, 200]);
});

test("counts a prompt that must stay local only with local deployments, even if they cannot count", async () => {
  here.script((_request, response) => json(response, 500, { error: { message: "out of order" } }));
  there.script((_request, response) => json(response, 200, { input_tokens: 9 }));
  const body = { model: "near-both", messages };
  const count = async (key: string) => (await ask(key, "/v1/messages/count_tokens", body)).json();
  expect(await count(await staying())).not.toEqual({ input_tokens: 9 });
  expect([here.requests.length > 0, there.requests.length]).toEqual([true, 0]);
  expect(await count(server.key)).toEqual({ input_tokens: 9 });
  there.script(chatScript());
});
