// The tokens of a text and the text of tokens, of servers that know them by vLLM's words or by llama-server's.
import { afterAll, beforeAll, beforeEach, expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startHeadrace, type TestServer, until } from "../support/headrace.ts";
import { rankingModel } from "../support/llama/ranking-model.ts";
import { joinNode, startGateway } from "../support/nodes.ts";
import { json, type Script, type ScriptedUpstream, startUpstream, upstreamYaml } from "../support/scripted-upstream.ts";

type Json = Record<string, unknown>;

/** What vLLM does (entrypoints/serve/tokenize): it refuses a request in other words than its own. */
const vllm: Script = ({ path, body }, res) => {
  const { prompt, messages, tokens, add_special_tokens: special } = body as Json;
  if (path === "/tokenize" && (typeof prompt === "string" || messages !== undefined)) {
    const made = special === false ? [7, 8] : [1, 7, 8];
    json(res, 200, { count: made.length, max_model_len: 4096, tokens: made, token_strs: null });
  } else if (path === "/detokenize" && Array.isArray(tokens)) json(res, 200, { prompt: "seven eight" });
  else json(res, 404, { error: { message: `no ${path} in these words` } });
};
/** What llama-server does (tools/server): a request that has no `content` is of an empty text. */
const llamaServer: Script = ({ path, body }, res) => {
  const { content = "", add_special: special, tokens } = body as Json;
  if (path === "/tokenize") json(res, 200, { tokens: content === "" ? [] : special ? [1, 7, 8] : [7, 8] });
  else if (path === "/detokenize" && Array.isArray(tokens)) json(res, 200, { content: "seven eight" });
  else json(res, 404, { error: { message: `no ${path}` } });
};

const models = `models:
  - id: writer
    context: 8192
    price: { input: 1000, output: 1000, request: 1 }
    deployments: [{ upstream: up, model: engines-own-name }]
  - id: deaf
    capabilities: { chat: true, tokenize: false }
    deployments: [{ upstream: up, model: upstream-model }]
`;

let upstream: ScriptedUpstream;
let server: TestServer;

beforeAll(async () => {
  upstream = await startUpstream(vllm);
  server = await startHeadrace({ yaml: upstreamYaml(upstream, models) });
});
beforeEach(() => upstream.script(vllm));
afterAll(async () => {
  await server[Symbol.asyncDispose]();
  await upstream[Symbol.asyncDispose]();
});

const ask = (path: string, body: Json, headers: Record<string, string> = {}) =>
  server.request(path, { body: { model: "writer", ...body }, headers });

async function answerOf(path: string, body: Json): Promise<Json> {
  const response = await ask(path, body);
  const answer = (await response.json()) as Json;
  expect([response.status, answer["error"]]).toEqual([200, undefined]);
  return answer;
}

for (const [name, script] of [
  ["vLLM", vllm],
  ["llama-server", llamaServer],
] as const) {
  test(`${name} tokenizes text under any field, with the server's default for special tokens`, async () => {
    upstream.script(script);
    expect(await answerOf("/v1/tokenize", { prompt: "x" })).toMatchObject({ tokens: [1, 7, 8], count: 3 });
    expect(await answerOf("/v1/tokenize", { content: "x" })).toMatchObject({ tokens: [7, 8], count: 2 });
    const without = { prompt: "x", add_special_tokens: false };
    expect(await answerOf("/v1/tokenize", without)).toMatchObject({ tokens: [7, 8], count: 2 });
    const withThem = { content: "x", add_special: true };
    expect(await answerOf("/v1/tokenize", withThem)).toMatchObject({ tokens: [1, 7, 8], count: 3 });
    expect(upstream.requests.at(-1)?.path).toBe("/tokenize");
    expect(upstream.requests.at(-1)?.body).toMatchObject({ model: "engines-own-name" });
  });

  test(`${name} detokenizes, and returns the text under both field names`, async () => {
    upstream.script(script);
    const answer = await answerOf("/v1/detokenize", { tokens: [7, 8] });
    expect(answer).toEqual({ prompt: "seven eight", content: "seven eight" });
    expect(upstream.requests.at(-1)?.path).toBe("/detokenize");
  });
}

test("limits a prompt by the server's reported maximum, or by the model's known context", async () => {
  expect((await answerOf("/v1/tokenize", { prompt: "x" }))["max_model_len"]).toBe(4096);
  upstream.script(llamaServer);
  expect((await answerOf("/v1/tokenize", { prompt: "x" }))["max_model_len"]).toBe(8192);
});

test("passes messages to the tokenizer unchanged, and distrusts a server that reads them as empty text", async () => {
  const messages = [{ role: "user", content: "x" }];
  expect((await answerOf("/v1/tokenize", { messages }))["count"]).toBe(3);
  expect(upstream.requests.at(-1)?.body).toEqual({ model: "engines-own-name", messages });
  upstream.script(llamaServer);
  expect((await ask("/v1/tokenize", { messages })).status).toBe(502);
});

test("charges nothing for tokenizing, but records it and counts it as a request", async () => {
  const made = await server.request("/v1/keys", {
    body: { name: "one", rate_limit: 2, rate_limit_window: 3600, monthly_tokens: 1 },
  });
  const { key } = (await made.json()) as { key: string };
  const headers = { authorization: `Bearer ${key}` };
  const response = await ask("/v1/tokenize", { prompt: "x".repeat(4_000) }, headers);
  expect([response.status, response.headers.get("x-headrace-usage")]).toEqual([
    200,
    "prompt_tokens=0, completion_tokens=0, nano_usd=0",
  ]);
  const id = response.headers.get("x-request-id");
  const record = await until(async () => {
    const found = await server.request(`/v1/requests/${id}`);
    return found.status === 200 ? ((await found.json()) as Json) : undefined;
  }, "it is booked");
  expect(record).toMatchObject({ operation: "tokenize", outcome: "completed", prompt_tokens: 0, cost: 0 });
  expect((await ask("/v1/detokenize", { tokens: [1] }, headers)).status).toBe(200);
  expect((await ask("/v1/detokenize", { tokens: [1] }, headers)).status).toBe(429);
});

test("refuses missing, duplicate or unsupported tokenizer fields by name before any call", async () => {
  const before = upstream.requests.length;
  const wrong: readonly [string, Json, string][] = [
    ["/v1/tokenize", {}, "prompt"],
    ["/v1/tokenize", { prompt: "x", messages: [{ role: "user", content: "x" }] }, "messages"],
    ["/v1/tokenize", { prompt: "x", content: "y" }, "content"],
    ["/v1/tokenize", { prompt: 5 }, "prompt"],
    ["/v1/detokenize", {}, "tokens"],
    ["/v1/detokenize", { tokens: [-1] }, "tokens"],
    ["/v1/tokenize", { model: "deaf", prompt: "x" }, "model"],
  ];
  for (const [path, body, param] of wrong) {
    const response = await ask(path, body);
    const { error } = (await response.json()) as { error: Json };
    expect([path, response.status, String(error["param"]).split("[")[0]]).toEqual([path, 400, param]);
  }
  expect(upstream.requests.length).toBe(before);
});

test("tokenizes and scores with the built-in engine, here and on a node, and refuses to rank with the demo model", async () => {
  await using gateway = await startGateway();
  await using node = await joinNode(gateway, { demo: true, models: ["tiny-demo"] });
  for (const at of [node, gateway]) {
    const post = async (path: string, body: Json) => {
      const response = await at.request(path, { body: { model: "tiny-demo", ...body } });
      return { status: response.status, answer: (await response.json()) as Json };
    };
    const { answer: reported } = await post("/v1/tokenize", { content: "What is a headrace?" });
    const { answer: text } = await post("/v1/detokenize", { tokens: reported["tokens"] });
    expect(text).toEqual({ prompt: "What is a headrace?", content: "What is a headrace?" });
    const { answer: scored } = await post("/v1/score", { text_1: "a key", text_2: ["a key", "a mill"] });
    expect((scored["data"] as { score: number }[])[0]?.score).toBeCloseTo(1, 3);
    const ranked = await post("/v1/rerank", { query: "a key", documents: ["a", "b"] });
    expect([ranked.status, (ranked.answer["error"] as Json)["param"]]).toEqual([400, "model"]);
  }
});

test("ranks with a reranking model file on the built-in engine, counted in documents, and refuses other tasks", async () => {
  const directory = mkdtempSync(join(tmpdir(), "headrace-ranker-"));
  try {
    const file = join(directory, "ranker.gguf");
    writeFileSync(file, rankingModel());
    await using at = await startHeadrace({ flags: { model: [file] } });
    const documents = ["one", "two!", "three"];
    const body = { model: "ranker", query: "which?", documents, top_n: 2 };
    const response = await at.request("/v1/rerank", { body });
    const { results } = (await response.json()) as { results: { index: number }[] };
    expect([response.status, results.map(({ index }) => index)]).toEqual([200, [1, 0]]);
    const id = response.headers.get("x-request-id");
    const record = await until(async () => {
      const found = await at.request(`/v1/requests/${id}`);
      return found.status === 200 ? ((await found.json()) as Json) : undefined;
    }, "it is booked");
    expect(record).toMatchObject({ operation: "rerank", prompt_tokens: 33, usage_details: { documents: 3 } });
    const chat = { model: "ranker", messages: [{ role: "user", content: "Hi" }] };
    expect((await at.request("/v1/chat/completions", { body: chat })).status).toBe(400);
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
});
