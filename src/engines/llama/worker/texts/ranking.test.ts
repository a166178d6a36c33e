import { afterAll, beforeAll, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { rankingModel } from "../../../../../tests/support/llama/ranking-model.ts";
import { temporaryDirectory, WorkerProcess } from "../../../../../tests/support/llama/worker-process.ts";

const directory = temporaryDirectory();
let ranker: WorkerProcess;
let chatter: WorkerProcess;

beforeAll(async () => {
  const modelPath = join(directory.path, "ranker.gguf");
  writeFileSync(modelPath, rankingModel());
  [ranker, chatter] = await Promise.all([
    WorkerProcess.start(directory.path, { modelPath, modelId: "ranker" }),
    WorkerProcess.start(directory.path),
  ]);
});

afterAll(async () => {
  await Promise.all([ranker.stop(), chatter.stop()]);
  directory.dispose();
});

type Json = Record<string, unknown>;

async function asked(worker: WorkerProcess, path: string, body: Json): Promise<Json> {
  const response = await worker.post(path, body);
  expect(response.status).toBe(200);
  return (await response.json()) as Json;
}

const documents = ["one", "two!", "three", "four!"];

test("sorts documents by the model's score, each with its index", async () => {
  const { results, model, usage } = await asked(ranker, "/rerank", { query: "which?", documents });
  const reported = results as { index: number; relevance_score: number }[];
  expect(model).toBe("ranker");
  expect(reported.map(({ index }) => index)).toEqual([1, 3, 0, 2]);
  expect(reported[0]?.relevance_score).toBeGreaterThan(0.99);
  expect(reported[2]?.relevance_score).toBeCloseTo(0.5, 3);
  // Each document counts the query, the separator and the document, with one token for each byte.
  const tokens = documents.reduce((sum, { length }) => sum + "which?|".length + length, 0);
  expect(usage).toEqual({ prompt_tokens: tokens, total_tokens: tokens });
});

test("returns only as many documents as requested, with texts if requested", async () => {
  const { results } = await asked(ranker, "/rerank", {
    query: "which?",
    documents: ["one", { text: "two!" }],
    top_n: 1,
    return_documents: true,
  });
  expect(results).toMatchObject([{ index: 1, document: { text: "two!" } }]);
});

test("truncates a document on request, and else refuses a too long one by its position", async () => {
  const cut = await asked(ranker, "/rerank", {
    query: "q",
    documents: ["four!", `${"x".repeat(90_000)}!`],
    max_tokens_per_doc: 4,
  });
  expect((cut["results"] as { relevance_score: number }[])[0]?.relevance_score).toBeCloseTo(0.5, 3);
  const long = { query: "q", documents: ["a", "x".repeat(600)] };
  expect(await ranker.refusal("/rerank", long)).toStartWith(
    "documents[1] comes to 600 tokens; this model takes at most 512",
  );
});

test("scores pairs in order, one with each or each with its own", async () => {
  const scoresOf = async (body: Json) =>
    ((await asked(ranker, "/score", body))["data"] as { index: number; score: number }[]).map(({ score }) => score);
  expect(await scoresOf({ text_1: "q", text_2: ["a!", "b"] })).toEqual([expect.closeTo(1, 2), expect.closeTo(0.5, 3)]);
  expect(await scoresOf({ queries: ["q", "r"], documents: ["a", "b!"] })).toEqual([
    expect.closeTo(0.5, 3),
    expect.closeTo(1, 2),
  ]);
});

test("scores by the angle of embeddings with an embedding model", async () => {
  const text = "How do I rotate a key?";
  const { data, usage } = await asked(chatter, "/score", { text_1: text, text_2: [text, "Which scopes exist?"] });
  const [same, other] = (data as { score: number }[]).map(({ score }) => score);
  expect(same).toBeCloseTo(1, 4);
  expect(other).toBeLessThan(0.999);
  expect(Number((usage as Json)["prompt_tokens"])).toBeGreaterThan(0);
});

const refusals: [name: string, body: Json, message: RegExp][] = [
  ["no query", { documents }, /^query must be a text/],
  ["no documents", { query: "q", documents: [] }, /^documents must hold 1 to 10000 texts/],
  ["an image", { query: "q", documents: [{ image: "data:," }] }, /^documents\[0\] must be a text/],
  ["a negative top_n", { query: "q", documents, top_n: -1 }, /^top_n must be a whole number/],
];
for (const [name, body, message] of refusals) {
  test(`refuses a request to rank with a message that names the field: ${name}`, async () => {
    expect(await ranker.refusal("/rerank", body)).toMatch(message);
  });
}

test("requires one text, or equally many on both sides", async () => {
  const message = await ranker.refusal("/score", { text_1: ["a", "b"], text_2: ["c", "d", "e"] });
  expect(message).toBe("text_1 must be one text, or as many as text_2 (got 2 and 3).");
});

test("refuses ranking by a model that was not made for it, and chat and embedding by a ranking model", async () => {
  expect(await chatter.refusal("/rerank", { query: "q", documents })).toStartWith("`tiny` was not made to rank.");
  const described = await ranker.get<{ data: { capabilities: Json }[] }>("/models");
  expect(described.data[0]?.capabilities).toEqual({
    ...{ chat: false, completion: false, embeddings: false },
    ...{ rerank: true, tokenize: true },
  });
  expect(await ranker.refusal("/embeddings", { input: "a" })).toStartWith("This model makes no embeddings.");
  expect(await ranker.chatRefusal({})).toStartWith("This model writes no text.");
});
