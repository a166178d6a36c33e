// Tasks: reranking, scores, moderations and decisions are governed as chat is, and counted as their servers tell, in units of their own.
import { afterAll, beforeAll, beforeEach, expect, test } from "bun:test";
import OpenAI from "openai";
import { startHeadrace, type TestServer, until } from "../support/headrace.ts";
import { json, type Script, type ScriptedUpstream, startUpstream, upstreamYaml } from "../support/scripted-upstream.ts";
import { taskAnswers } from "../support/task-answers.ts";

type Json = Record<string, unknown>;

const documents = ["A channel that brings water.", "A race.", "A race of heads."];
const query = "What is a headrace?";

const answering: Script = ({ path, body }, res) => {
  const answer = taskAnswers[path];
  json(res, answer ? 200 : 404, answer ? answer(body) : { error: { message: `no ${path}` } });
};

const models = `models:
  - id: ranker
    capabilities: { chat: false, rerank: true }
    price: { input: 1000, output: 0, document: 0.001, search_unit: 0.01 }
    deployments: [{ upstream: up, model: engines-own-name }]
  - id: chatter
    capabilities: { chat: true, rerank: false, moderation: false, decisions: false }
    deployments: [{ upstream: up, model: upstream-model }]
`;

let upstream: ScriptedUpstream;
let server: TestServer;

beforeAll(async () => {
  upstream = await startUpstream(answering);
  server = await startHeadrace({ yaml: upstreamYaml(upstream, models) });
});
beforeEach(() => upstream.script(answering));
afterAll(async () => {
  await server[Symbol.asyncDispose]();
  await upstream[Symbol.asyncDispose]();
});

const ask = (path: string, body: Json, headers: Record<string, string> = {}) => server.request(path, { body, headers });

/** The record of the last request. */
async function booked(requestId: string | null): Promise<Json> {
  return await until(async () => {
    const response = await server.request(`/v1/requests/${requestId}`);
    return response.status === 200 ? ((await response.json()) as Json) : undefined;
  }, `the request ${requestId} is booked`);
}

const asked: readonly { path: string; body: Json; operation: string; tokens: Json; details: Json }[] = [
  {
    path: "/v1/rerank",
    body: { query, documents, top_n: 2 },
    operation: "rerank",
    tokens: { prompt_tokens: 61, completion_tokens: 0, estimated: false },
    details: { documents: 3, search_units: 1 },
  },
  {
    path: "/v2/rerank",
    body: { query, documents, max_tokens_per_doc: 4096 },
    operation: "rerank",
    tokens: { prompt_tokens: 61, completion_tokens: 0, estimated: false },
    details: { documents: 3, search_units: 1 },
  },
  {
    path: "/v1/score",
    body: { text_1: query, text_2: documents },
    operation: "score",
    tokens: { prompt_tokens: 47, completion_tokens: 0, estimated: false },
    details: { documents: 3, search_units: 1 },
  },
  {
    path: "/v1/moderations",
    body: { input: "x".repeat(400) },
    operation: "moderation",
    tokens: { prompt_tokens: 100, completion_tokens: 0, estimated: true },
    details: {},
  },
  {
    path: "/v1/decisions",
    body: {
      input: "My card was charged twice.",
      questions: [{ type: "predicate", name: "billing", instructions: "Is it?" }],
    },
    operation: "decision",
    tokens: { prompt_tokens: 80, completion_tokens: 3, estimated: false, cached_tokens: 16 },
    details: {},
  },
];

for (const { path, body, operation, tokens, details } of asked) {
  test(`sends ${path} with the server's model id, returns the public id, and books the reported usage`, async () => {
    const response = await ask(path, { model: "ranker", user: "u", ...body });
    const answer = (await response.json()) as Json;
    expect([response.status, answer["model"]]).toEqual([200, "ranker"]);
    expect(response.headers.get("x-headrace-usage")).toContain(`prompt_tokens=${tokens["prompt_tokens"]}`);
    const sent = upstream.requests.at(-1);
    expect(sent?.body).toEqual({ model: "engines-own-name", user: expect.stringMatching(/^[\w-]{43}$/), ...body });
    const record = await booked(response.headers.get("x-request-id"));
    expect(record).toMatchObject({ operation, model: "ranker", stream: false, outcome: "completed", ...tokens });
    expect(record["usage_details"] ?? {}).toMatchObject(details);
  });
}

test("prices documents and search units separately from tokens", async () => {
  const response = await ask("/v1/rerank", { model: "ranker", query, documents });
  const { cost } = await booked(response.headers.get("x-request-id"));
  expect(cost).toBeCloseTo(61 * 0.001 + 3 * 0.001 + 0.01, 9);
});

test("books Cohere's billed search units and tokens from its meta", async () => {
  const meta = { api_version: { version: "2" }, billed_units: { search_units: 5 }, tokens: { input_tokens: 900 } };
  upstream.script((_, res) => json(res, 200, { id: "r", results: [{ index: 0, relevance_score: 1 }], meta }));
  const response = await ask("/v2/rerank", { model: "ranker", query, documents });
  expect(await response.json()).toEqual({ id: "r", results: [{ index: 0, relevance_score: 1 }], meta });
  const record = await booked(response.headers.get("x-request-id"));
  expect(record).toMatchObject({ prompt_tokens: 900, estimated: false });
  expect(record["usage_details"]).toMatchObject({ documents: 3, search_units: 5 });
});

test("believes a server that counts the query per document, but not one that reports far more", async () => {
  const many = Array.from({ length: 50 }, () => "short");
  const long = "word ".repeat(2_000);
  const reported = (tokens: number) =>
    upstream.script((_, res) =>
      json(res, 200, { results: [{ index: 0, relevance_score: 1 }], usage: { total_tokens: tokens } }),
    );
  reported(50 * 2_010);
  const honest = await ask("/v1/rerank", { model: "ranker", query: long, documents: many });
  expect(await booked(honest.headers.get("x-request-id"))).toMatchObject({ prompt_tokens: 50 * 2_010, capped: false });
  reported(50 * 2_010 * 1_000);
  const liar = await ask("/v1/rerank", { model: "ranker", query: long, documents: many });
  expect(await booked(liar.headers.get("x-request-id"))).toMatchObject({ capped: true });
});

test("applies token limits and quotas to tasks as to chats, and refunds them if the server fails", async () => {
  const made = await server.request("/v1/keys", { body: { name: "few", monthly_spend: 0.08 } });
  const { key } = (await made.json()) as { key: string };
  const headers = { authorization: `Bearer ${key}` };
  upstream.script((_, res) => json(res, 500, { error: { message: "broken" } }));
  expect((await ask("/v1/rerank", { model: "ranker", query, documents }, headers)).status).toBe(502);
  upstream.script(answering);
  expect((await ask("/v1/rerank", { model: "ranker", query, documents }, headers)).status).toBe(200);
  const refused = await ask("/v1/rerank", { model: "ranker", query, documents }, headers);
  expect(refused.status).toBe(403);
  expect(((await refused.json()) as { error: Json }).error["code"]).toBe("insufficient_quota");
});

test("refuses an unsupported task or invalid field by name before any call", async () => {
  const before = upstream.requests.length;
  const wrong: readonly [string, Json, string, string][] = [
    ["/v1/rerank", { model: "chatter", query, documents }, "model", "does not support reranking"],
    ["/v1/moderations", { model: "chatter", input: "x" }, "model", "does not support moderations"],
    ["/v1/decisions", { model: "chatter", input: "x", questions: [{ type: "predicate" }] }, "model", "decisions"],
    ["/v1/rerank", { query, documents }, "model", "model"],
    ["/v1/rerank", { model: "ranker", documents }, "query", "query"],
    ["/v1/rerank", { model: "ranker", query, documents: [] }, "documents", "documents"],
    ["/v1/decisions", { model: "ranker", input: "x", questions: [] }, "questions", "questions"],
    ["/v1/moderations", { model: "ranker" }, "input", "input"],
  ];
  for (const [path, body, param, words] of wrong) {
    const response = await ask(path, body);
    const { error } = (await response.json()) as { error: Json };
    expect([path, response.status, error["param"]]).toEqual([path, 400, param]);
    expect(String(error["message"])).toContain(words);
  }
  expect(upstream.requests.length).toBe(before);
});

test("treats a task answer without its list as a server error, without charge", async () => {
  for (const answer of [{ hello: 1 }, { results: "none" }, { error: { message: "overloaded" } }]) {
    upstream.script((_, res) => json(res, 200, answer));
    const response = await ask("/v1/rerank", { model: "ranker", query, documents });
    expect(response.status).toBe(502);
    expect(await booked(response.headers.get("x-request-id"))).toMatchObject({ outcome: "failed", cost: 0 });
  }
});

test("charges a client that leaves for the prompt once", async () => {
  const { promise: came, resolve: tell } = Promise.withResolvers<void>();
  upstream.script(() => tell());
  const aborting = new AbortController();
  const leaving = fetch(`${server.url}/v1/rerank`, {
    method: "POST",
    headers: { authorization: `Bearer ${server.key}`, "content-type": "application/json", "x-request-id": "left-1" },
    body: JSON.stringify({ model: "ranker", query, documents }),
    signal: aborting.signal,
  });
  await came;
  aborting.abort();
  await expect(leaving).rejects.toThrow();
  const record = await until(async () => {
    const listed = await server.request("/v1/requests?limit=1");
    const { data } = (await listed.json()) as { data: Json[] };
    return data[0]?.["outcome"] === "cancelled" ? data[0] : undefined;
  }, "it is booked");
  expect(record).toMatchObject({ operation: "rerank", estimated: true });
  expect(Number(record["prompt_tokens"])).toBeGreaterThan(0);
});

test("counts an image for moderation as one, not by its bytes", async () => {
  const url = `data:image/png;base64,${"A".repeat(400_000)}`;
  const input = [{ type: "image_url", image_url: { url } }];
  const response = await ask("/v1/moderations", { model: "ranker", input });
  expect(await booked(response.headers.get("x-request-id"))).toMatchObject({ prompt_tokens: 1_000, estimated: true });
});

test("serves the OpenAI SDK's unmodified moderations", async () => {
  const client = new OpenAI({ apiKey: server.key, baseURL: `${server.url}/v1` });
  const moderation = await client.moderations.create({ model: "ranker", input: "I want to hug them." });
  expect(moderation.results[0]?.flagged).toBe(false);
  const decision = await client.decisions.create({
    model: "ranker",
    input: "My card was charged twice.",
    questions: [{ type: "predicate", name: "billing", instructions: "Is it about money?" }],
  });
  expect(decision.answers[0]).toEqual({ type: "predicate", name: "billing", probability: 0.9 });
});
