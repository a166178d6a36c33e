// Batches: made, followed, read and cancelled by OpenAI's and Anthropic's SDKs; each line answered and charged once, and only on places that nobody else wants.
import { Database } from "bun:sqlite";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { mkdirSync, readdirSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import Anthropic from "@anthropic-ai/sdk";
import type OpenAI from "openai";
import { toFile } from "openai";
import { bookedUsage } from "../support/booked-usage.ts";
import { openaiClient } from "../support/clients.ts";
import { startHeadrace, type TestServer, until } from "../support/headrace.ts";
import { json, type Script, type ScriptedUpstream, startUpstream, upstreamYaml } from "../support/scripted-upstream.ts";
import { taskAnswers } from "../support/task-answers.ts";

type Json = Record<string, unknown>;

const models = `models:
  - id: chatter
    price: { input: 1000, output: 2000 }
    deployments: [{ upstream: up, model: upstream-model }]
  - id: ranker
    capabilities: { chat: false, rerank: true }
    deployments: [{ upstream: up, model: engines-own-name }]
  - id: embedder
    deployments: [{ upstream: up, model: engines-own-name }]
batches: { price_factor: 0.5, max_requests: 500, open_batches: 3 }
`;

/** Answers with what it was asked. */
const echo: Script = ({ path, body }, res) => {
  const task = taskAnswers[path];
  if (task) return json(res, 200, task(body));
  if (path === "/v1/embeddings") {
    const data = [{ object: "embedding", index: 0, embedding: [0.5] }];
    return json(res, 200, { object: "list", model: "m", data, usage: { prompt_tokens: 3, total_tokens: 3 } });
  }
  json(res, 200, completion(textOf(body)));
};

function textOf(body: Json): string {
  return String((body["messages"] as { content: unknown }[] | undefined)?.at(-1)?.content);
}

function completion(content: string): Json {
  return {
    ...{ id: "c", object: "chat.completion", created: 1, model: "upstream-model" },
    choices: [{ index: 0, message: { role: "assistant", content }, finish_reason: "stop" }],
    usage: { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 },
  };
}

let upstream: ScriptedUpstream;
let server: TestServer;
let client: OpenAI;

beforeAll(async () => {
  upstream = await startUpstream(echo);
  server = await startHeadrace({ yaml: upstreamYaml(upstream, models), batchTimes: { pollMs: 50 } });
  client = openaiClient(server);
});
beforeEach(() => upstream.script(echo));
afterAll(async () => {
  await server[Symbol.asyncDispose]();
  await upstream[Symbol.asyncDispose]();
});

const chat = (content: string, more: Json = {}) => ({
  model: "chatter",
  messages: [{ role: "user", content }],
  ...more,
});
const line = (id: string, body: Json, url = "/v1/chat/completions") => ({ custom_id: id, method: "POST", url, body });

async function upload(lines: readonly unknown[], to = client): Promise<string> {
  const text = lines.map((one) => (typeof one === "string" ? one : JSON.stringify(one))).join("\n");
  return (await to.files.create({ file: await toFile(Buffer.from(text), "in.jsonl"), purpose: "batch" })).id;
}

async function begin(lines: readonly unknown[], endpoint = "/v1/chat/completions", to = client) {
  const input_file_id = await upload(lines, to);
  return await to.batches.create({
    ...{ input_file_id, completion_window: "24h", metadata: { topic: "test" } },
    endpoint: endpoint as OpenAI.BatchCreateParams["endpoint"],
  });
}

const openStates = new Set(["validating", "in_progress", "finalizing", "cancelling"]);

async function ended(id: string, from = client): Promise<OpenAI.Batch> {
  return await until(
    async () => {
      const batch = await from.batches.retrieve(id);
      return openStates.has(batch.status) ? undefined : batch;
    },
    "the batch has ended",
    20_000,
  );
}

async function linesOf(file: string | undefined | null, from = client): Promise<Json[]> {
  if (!file) return [];
  const text = await (await from.files.content(file)).text();
  return text
    .trimEnd()
    .split("\n")
    .map((one) => JSON.parse(one) as Json);
}

async function refusal(asked: PromiseLike<unknown>): Promise<string> {
  try {
    await asked;
    return "no error";
  } catch (error) {
    return String(error);
  }
}

describe("batches with OpenAI's SDK", () => {
  test("answers a batch line by line in order, with its counts, usage and charge", async () => {
    const wrong = line("no-model", chat("x", { model: "nobody" }));
    const made = await begin([...Array.from({ length: 20 }, (_, n) => line(`id-${n}`, chat(`text\n${n}`))), wrong, ""]);
    expect(made).toMatchObject({ object: "batch", status: "validating", endpoint: "/v1/chat/completions" });
    const batch = await ended(made.id);
    expect(batch).toMatchObject({
      status: "completed",
      metadata: { topic: "test" },
      request_counts: { total: 21, completed: 20, failed: 1 },
      usage: { input_tokens: 200, output_tokens: 100, total_tokens: 300 },
    });
    const answers = await linesOf(batch.output_file_id);
    expect(answers.map(({ custom_id }) => custom_id)).toEqual(Array.from({ length: 20 }, (_, n) => `id-${n}`));
    expect(answers[3]).toMatchObject({
      id: expect.stringMatching(/^batch_req_/),
      response: { status_code: 200, body: { choices: [{ message: { content: "text\n3" } }] } },
      error: null,
    });
    expect(await linesOf(batch.error_file_id)).toMatchObject([
      { custom_id: "no-model", response: { status_code: 404, body: { error: { code: "model_not_found" } } } },
    ]);
    await server.governance.ledger.flush();
    const ids = new Set(answers.map(({ response }) => (response as Json)["request_id"]));
    const booked = bookedUsage(server.dataDir).filter(({ request_id }) => ids.has(request_id));
    expect(booked.length).toBe(20);
    const requestId = String([...ids][0]);
    const record = (await (await server.request(`/v1/requests/${requestId}`)).json()) as Json;
    // Half of 10 tokens at 1000 and 5 at 2000 USD a million.
    expect(record).toMatchObject({ prompt_tokens: 10, completion_tokens: 5, cost: 0.01, operation: "chat" });
    const listed = await Array.fromAsync(client.batches.list({ limit: 1 }));
    expect(listed.map(({ id }) => id)).toContain(made.id);
  });

  test("reports each wrong line of a batch with its line number and field", async () => {
    const made = await begin([
      line("a", chat("x")),
      "{no json",
      line("b", { model: "chatter" }),
      line("a", chat("x")),
      { ...line("c", chat("x")), url: "/v1/embeddings" },
      { ...line("d", chat("x")), method: "GET" },
      line("e", chat("x", { stream: true })),
      { method: "POST", url: "/v1/chat/completions", body: chat("x") },
    ]);
    const batch = await ended(made.id);
    expect(batch.status).toBe("failed");
    expect(batch.errors?.data?.map(({ line, param }) => [line, param])).toEqual([
      [2, null],
      [3, "body.messages"],
      [4, "custom_id"],
      [5, "url"],
      [6, "method"],
      [7, "body.stream"],
      [8, "custom_id"],
    ]);
    expect(upstream.requests.filter(({ body }) => textOf(body) === "x").length).toBe(0);
  });

  test("returns 404 for a batch line whose model name no database can store, and refuses such a custom_id", async () => {
    const odd = ["chatter\0", "chatter\ud800"].map((model, n) => line(`${n}`, chat("x", { model })));
    const batch = await ended((await begin([...odd, line("good", chat("x"))])).id);
    expect(batch.request_counts).toEqual({ total: 3, completed: 1, failed: 2 });
    for (const { response } of await linesOf(batch.error_file_id)) expect(response).toMatchObject({ status_code: 404 });
    const refused = await ended((await begin([line("a\ud800", chat("x")), line("a\0", chat("x"))])).id);
    expect(refused.errors?.data?.map(({ param }) => param)).toEqual(["custom_id", "custom_id"]);
  });

  test.each([
    ["has no requests", ["", "  "], /no requests/],
    ["has too many", Array.from({ length: 501 }, (_, n) => line(`${n}`, chat("x"))), /at most 500/],
  ])("fails a batch whose file %s", async (_, lines, message) => {
    const batch = await ended((await begin(lines)).id);
    expect([batch.status, batch.errors?.data?.[0]?.message]).toEqual(["failed", expect.stringMatching(message)]);
  });

  // long-lived: batch.account
  test("refuses a batch with a missing file, an unsupported endpoint, or too many open batches", async () => {
    const create = (input_file_id: string, endpoint: string) =>
      client.batches.create({
        ...{ input_file_id, completion_window: "24h" },
        endpoint: endpoint as OpenAI.BatchCreateParams["endpoint"],
      });
    expect(await refusal(create("file-none", "/v1/chat/completions"))).toMatch(/404 .*no file/);
    const file = await upload([line("a", chat("x"))]);
    expect(await refusal(create(file, "/v1/videos"))).toMatch(/400 .*endpoint: must be one of/);
    const silent = Promise.withResolvers<void>();
    upstream.script(async (request, res) => {
      await silent.promise;
      await echo(request, res);
    });
    const made = [];
    for (let n = 0; n < 3; n++) made.push((await create(file, "/v1/chat/completions")).id);
    expect(await refusal(create(file, "/v1/chat/completions"))).toMatch(/429 .*3 batches/);
    silent.resolve();
    for (const id of made) expect((await ended(id)).status).toBe("completed");
  });

  test("cancels a batch, keeps its finished lines, and neither runs nor charges the rest", async () => {
    const gate = Promise.withResolvers<void>();
    upstream.script(async (request, res) => {
      if (textOf(request.body) !== "0") await gate.promise;
      if (!request.abandoned) await echo(request, res);
    });
    const made = await begin(Array.from({ length: 30 }, (_, n) => line(`${n}`, chat(String(n)))));
    await until(
      async () => (await client.batches.retrieve(made.id)).request_counts?.completed === 1,
      "one is answered",
    );
    expect(["cancelling", "cancelled"]).toContain((await client.batches.cancel(made.id)).status);
    const batch = await ended(made.id);
    expect(batch).toMatchObject({ status: "cancelled", request_counts: { total: 30, completed: 1, failed: 0 } });
    expect((await linesOf(batch.output_file_id)).map(({ custom_id }) => custom_id)).toEqual(["0"]);
    const left = await linesOf(batch.error_file_id);
    expect(left.length).toBe(29);
    expect(left[0]).toMatchObject({ response: null, error: { code: "batch_cancelled" } });
    gate.resolve();
    await server.governance.ledger.flush();
    const booked = bookedUsage(server.dataDir);
    const charged = new Set(booked.map(({ request_id: id }) => id.replace("req_", "batch_req_").replaceAll("-", "")));
    expect(left.filter(({ id }) => charged.has(String(id)))).toEqual([]);
  });

  test.each([
    ["/v1/embeddings", { model: "embedder", input: "x" }, { object: "list" }],
    ["/v1/rerank", { model: "ranker", query: "q", documents: ["a", "b", "c"] }, { results: expect.anything() }],
    ["/v1/responses", { model: "chatter", input: [{ role: "user", content: "hello" }] }, { object: "response" }],
    ["/v1/messages", chat("hello", { max_tokens: 9 }), { type: "message" }],
  ])("answers batch requests of %s", async (endpoint, body, answer) => {
    const batch = await ended((await begin([line("one", body, endpoint)], endpoint)).id);
    expect(batch.status).toBe("completed");
    expect(await linesOf(batch.output_file_id)).toMatchObject([{ custom_id: "one", response: { body: answer } }]);
  });

  test("retries a batch line after a failure of the model server, and returns only lasting failures", async () => {
    const seen = new Map<string, number>();
    upstream.script((request, res) => {
      const text = textOf(request.body);
      seen.set(text, (seen.get(text) ?? 0) + 1);
      if (text === "once" && seen.get(text) === 1) return json(res, 500, { error: { message: "broken" } });
      if (text === "bad") return json(res, 400, { error: { message: "not like that" } });
      return echo(request, res);
    });
    const batch = await ended((await begin([line("a", chat("once")), line("b", chat("bad"))])).id);
    expect(batch.request_counts).toEqual({ total: 2, completed: 1, failed: 1 });
    expect(await linesOf(batch.error_file_id)).toMatchObject([{ custom_id: "b", response: { status_code: 400 } }]);
    expect([seen.get("once"), seen.get("bad")]).toEqual([2, 1]);
  });
});

test("pauses a batch while the disk of its files is away, without failing lines", async () => {
  await using own = await startHeadrace({ yaml: upstreamYaml(upstream, models), batchTimes: { pollMs: 50 } });
  const of = openaiClient(own);
  const input_file_id = await upload([line("a", chat("x"))], of);
  const directory = join(own.dataDir, "files");
  renameSync(directory, `${directory}.away`);
  const { id } = await of.batches.create({
    ...{ input_file_id, completion_window: "24h", endpoint: "/v1/chat/completions" },
  });
  await until(() => own.logged("batch_step_failed").length > 0, "the log says that the file cannot be read");
  expect((await of.batches.retrieve(id)).status).toBe("validating");
  renameSync(`${directory}.away`, directory);
  expect(await ended(id, of)).toMatchObject({ request_counts: { total: 1, completed: 1, failed: 0 } });
});

test("does not repeat a batch line that finished while the database was locked, and records it afterwards", async () => {
  const gate = Promise.withResolvers<void>();
  let asked = 0;
  upstream.script(async (request, res) => {
    if (textOf(request.body) === "held" && ++asked === 1) await gate.promise;
    else await Bun.sleep(100);
    return echo(request, res);
  });
  // With the usual lease the lines of the other batch would keep this one claimed for as long as they come.
  await using own = await startHeadrace({
    ...{ yaml: upstreamYaml(upstream, models), batchTimes: { pollMs: 50 } },
  });
  const of = openaiClient(own);
  const held = await begin([line("a", chat("held"))], undefined, of);
  await until(() => asked === 1, "the model is asked");
  const many = Array.from({ length: 400 }, (_, n) => line(`b${n}`, chat("other")));
  const other = await begin(many, undefined, of);
  await until(async () => ((await of.batches.retrieve(other.id)).request_counts?.completed ?? 0) > 0, "it is begun");
  {
    using db = new Database(join(own.dataDir, "headrace.db"));
    db.run("BEGIN IMMEDIATE");
    gate.resolve();
    await until(() => own.logged("batch_look_failed").length > 0, "the lock is felt", 20_000);
    db.run("ROLLBACK");
  }
  expect(await ended(held.id, of)).toMatchObject({ status: "completed", request_counts: { completed: 1 } });
  expect((await of.batches.retrieve(other.id)).status).toBe("in_progress");
  expect(asked).toBe(1);
  await of.batches.cancel(other.id);
});

test("runs other batches while the file of one cannot be read", async () => {
  const input_file_id = await upload([line("a", chat("x"))]);
  const path = join(server.dataDir, "files", input_file_id.slice(-2), input_file_id);
  rmSync(path);
  mkdirSync(path);
  const stuck = await client.batches.create({
    ...{ input_file_id, completion_window: "24h", endpoint: "/v1/chat/completions" },
  });
  const batch = await ended((await begin([line("a", chat("x"))])).id);
  expect(batch.status).toBe("completed");
  expect((await client.batches.retrieve(stuck.id)).status).toBe("validating");
  await client.batches.cancel(stuck.id);
  rmSync(path, { recursive: true });
});

describe("batches with Anthropic's SDK", () => {
  const anthropic = () => new Anthropic({ baseURL: server.url, apiKey: server.key, maxRetries: 0, logLevel: "off" });
  const params = (content: string, more: Json = {}) =>
    ({ model: "chatter", max_tokens: 9, messages: [{ role: "user", content }], ...more }) as never;

  test("creates, polls, lists, reads and deletes a Messages batch", async () => {
    const { batches } = anthropic().messages;
    const made = await batches.create({
      requests: [
        { custom_id: "a", params: params("hello") },
        { custom_id: "b", params: params("x", { max_tokens: "nine" }) },
      ],
    });
    expect(made).toMatchObject({ type: "message_batch", processing_status: "in_progress", results_url: null });
    expect(made.request_counts).toEqual({ processing: 2, succeeded: 0, errored: 0, canceled: 0, expired: 0 });
    const batch = await until(async () => {
      const one = await batches.retrieve(made.id);
      return one.processing_status === "ended" ? one : undefined;
    }, "it has ended");
    expect(batch.request_counts).toEqual({ processing: 0, succeeded: 1, errored: 1, canceled: 0, expired: 0 });
    const results = await Array.fromAsync(await batches.results(made.id));
    expect(results).toMatchObject([
      { custom_id: "a", result: { type: "succeeded", message: { content: [{ type: "text", text: "hello" }] } } },
      { custom_id: "b", result: { type: "errored", error: { error: { type: "invalid_request_error" } } } },
    ]);
    expect((await Array.fromAsync(batches.list({ limit: 1 }))).map(({ id }) => id)).toContain(made.id);
    const deleted = await until(async () => {
      try {
        return await batches.delete(made.id);
      } catch {
        return undefined;
      }
    }, "it is deleted");
    expect(deleted).toEqual({ id: made.id, type: "message_batch_deleted" });
    expect(await refusal(batches.retrieve(made.id))).toMatch(/not_found_error/);
  });

  test("refuses a Messages batch at once if it could never have results", async () => {
    const create = (requests: { custom_id: string; params: never }[]) =>
      refusal(anthropic().messages.batches.create({ requests }));
    const many = (count: number) =>
      Array.from({ length: count }, (_, n) => ({ custom_id: `${n}`, params: params("x", { model: `m${n}` }) }));
    const same = Array.from({ length: 501 }, (_, n) => ({ custom_id: `${n}`, params: params("x") }));
    expect(await create(same)).toMatch(/400 .*at most 500 \(batches.max_requests/);
    expect(await create(many(101))).toMatch(/400 .*at most 100 models/);
    expect(await create([{ custom_id: "a\ud800", params: params("x") }])).toMatch(/400 .*requests\[0\].custom_id/);
  });

  test("leaves no file behind after refusing a Messages batch", async () => {
    const gate = Promise.withResolvers<void>();
    upstream.script(() => gate.promise);
    await using own = await startHeadrace({ yaml: upstreamYaml(upstream, "batches: { open_batches: 1 }\n") });
    const { batches } = new Anthropic({ baseURL: own.url, apiKey: own.key, maxRetries: 0, logLevel: "off" }).messages;
    const requests = [{ custom_id: "a", params: params("x", { model: "upstream-model" }) }];
    const { id } = await batches.create({ requests });
    expect(await refusal(batches.create({ requests }))).toMatch(/429/);
    expect(await refusal(batches.delete(id))).toMatch(/400 .*has not ended/);
    await own.sweepFiles();
    const kept = readdirSync(join(own.dataDir, "files"), { recursive: true, withFileTypes: true });
    expect(kept.filter((one) => one.isFile()).length).toBe(1);
    gate.resolve();
  });

  test("completes a repeated deletion of a Messages batch after the first one failed halfway", async () => {
    const { batches } = anthropic().messages;
    const { id } = await batches.create({ requests: [{ custom_id: "a", params: params("x") }] });
    await until(async () => (await batches.retrieve(id)).processing_status === "ended", "it has ended");
    const files = async () => (await client.files.list()).data.filter(({ filename }) => filename.startsWith(id));
    expect(await files()).toHaveLength(1);
    using db = new Database(join(server.dataDir, "headrace.db"));
    db.run("CREATE TRIGGER refusing BEFORE UPDATE ON stored_files BEGIN SELECT RAISE(ABORT, 'refused'); END");
    expect(await refusal(batches.delete(id))).toMatch(/50[03]/);
    db.run("DROP TRIGGER refusing");
    expect(await batches.delete(id)).toMatchObject({ id, type: "message_batch_deleted" });
    expect(await files()).toEqual([]);
  });

  test("cancels a Messages batch", async () => {
    const gate = Promise.withResolvers<void>();
    upstream.script(() => gate.promise);
    const { batches } = anthropic().messages;
    const made = await batches.create({ requests: [{ custom_id: "a", params: params("hello") }] });
    await batches.cancel(made.id);
    const batch = await until(async () => {
      const one = await batches.retrieve(made.id);
      return one.processing_status === "ended" ? one : undefined;
    }, "it has ended");
    expect(batch.request_counts).toMatchObject({ canceled: 1, processing: 0 });
    expect(await Array.fromAsync(await batches.results(made.id))).toEqual([
      { custom_id: "a", result: { type: "canceled" } },
    ]);
    gate.resolve();
  });
});

describe("batch requests use idle capacity", () => {
  test("runs batch lines in free slots, yields to live requests at once, and charges repeated lines once", async () => {
    const yaml = upstreamYaml(upstream, "batches: { concurrency: 50 }\n").replace(
      "name: up",
      "name: up, max_concurrency: 2",
    );
    const metricsToken = "metrics-token-0123456789";
    const env = { HEADRACE_METRICS_TOKEN: metricsToken };
    await using own = await startHeadrace({ yaml, env, batchTimes: { pollMs: 50 } });
    const ownClient = openaiClient(own);
    const open = new Map<string, () => void>();
    upstream.script(async (request, res) => {
      const text = textOf(request.body);
      const { promise, resolve } = Promise.withResolvers<void>();
      open.set(text, resolve);
      res.on("close", () => open.delete(text));
      await promise;
      await echo(request, res);
    });
    const lines = Array.from({ length: 6 }, (_, n) => line(`${n}`, chat(`idle ${n}`, { model: "upstream-model" })));
    const { id } = await begin(lines, undefined, ownClient);
    await until(() => open.size === 2, "both places have a line");
    const live = (name: string) =>
      own.request("/v1/chat/completions", { body: chat(name, { model: "upstream-model" }) });
    const first = live("live 1");
    await until(() => open.has("live 1"), "a live request has its place at once", 1_000);
    expect(open.size).toBe(2);
    const second = live("live 2");
    await until(() => open.has("live 2"), "so has the next one", 1_000);
    expect([...open.keys()].toSorted()).toEqual(["live 1", "live 2"]);
    // Nothing of the batch goes before a live request that waits.
    const third = live("live 3");
    await until(() => own.capacity.waiting === 1, "one waits");
    open.get("live 1")?.();
    await until(() => open.has("live 3"), "it is the next");
    expect((await first).status).toBe(200);
    for (const name of ["live 2", "live 3"]) open.get(name)?.();
    expect([(await second).status, (await third).status]).toEqual([200, 200]);
    const going = setInterval(() => {
      for (const go of open.values()) go();
    }, 5);
    const batch = await ended(id, ownClient);
    clearInterval(going);
    expect(batch.request_counts).toEqual({ total: 6, completed: 6, failed: 0 });
    await own.governance.ledger.flush();
    const booked = bookedUsage(own.dataDir);
    expect(booked.length).toBe(9);
    expect(booked.every(({ outcome }) => outcome === "completed")).toBe(true);
    const asked = upstream.requests.filter(({ body }) => textOf(body).startsWith("idle"));
    expect(asked.length).toBeGreaterThanOrEqual(8);
    // Whoever alerts on failures sees none in what gave way.
    const headers = { authorization: `Bearer ${metricsToken}` };
    const metrics = await (await own.request("/metrics", { headers })).text();
    expect(metrics).toMatch(/headrace_inference_requests_total\{.*outcome="cancelled"/);
    expect(metrics).not.toMatch(/headrace_inference_requests_total\{.*outcome="failed"/);
    expect(metrics).not.toMatch(/headrace_upstream_attempts_total\{.*service_unavailable/);
    expect(metrics).toContain('headrace_batch_line_attempts_total{result="answered"} 6\n');
    expect(metrics).toMatch(/^headrace_batch_line_attempts_total\{result="gave_way"\} [2-9]$/m);
  });

  test("bounds concurrent batch lines for a server of unknown capacity", async () => {
    await using own = await startHeadrace({
      yaml: upstreamYaml(upstream, "batches: { unbounded_concurrency: 3 }\n"),
      batchTimes: { pollMs: 50 },
    });
    const ownClient = openaiClient(own);
    let [most, now] = [0, 0];
    upstream.script(async (request, res) => {
      most = Math.max(most, ++now);
      await Bun.sleep(5);
      now--;
      await echo(request, res);
    });
    const lines = Array.from({ length: 40 }, (_, n) => line(`${n}`, chat(`${n}`, { model: "upstream-model" })));
    expect((await ended((await begin(lines, undefined, ownClient)).id, ownClient)).status).toBe("completed");
    expect(most).toBe(3);
  });
});

test("returns an error for a batch line that exceeds a rate limit for good, and runs the other lines", async () => {
  const tier = { name: "enterprise", requests_per_minute: null, tokens_per_minute: 300 };
  await using own = await startHeadrace({
    flags: { mode: "production", publicUrl: "http://127.0.0.1:7545" },
    yaml: upstreamYaml(upstream, `tiers: [${JSON.stringify(tier)}]\n`).replace(
      "name: up",
      "name: up, max_concurrency: 1",
    ),
    batchTimes: { pollMs: 50 },
  });
  const ownClient = openaiClient(own);
  const of = (content: string) => chat(content, { model: "upstream-model", max_tokens: 5 });
  const { id } = await begin([line("long", of("word ".repeat(1_000))), line("a", of("x"))], undefined, ownClient);
  const batch = await ended(id, ownClient);
  expect(batch).toMatchObject({ status: "completed", request_counts: { total: 2, completed: 1, failed: 1 } });
  const [refused] = await linesOf(batch.error_file_id, ownClient);
  expect(refused).toMatchObject({ custom_id: "long", response: { status_code: 429 } });
});

test("does not rerun a batch line in the process that still runs it after its lease expired", async () => {
  const gate = Promise.withResolvers<void>();
  const asked: string[] = [];
  upstream.script(async (request, res) => {
    asked.push(textOf(request.body));
    await gate.promise;
    await echo(request, res);
  });
  const { id } = await begin([line("a", chat("held"))]);
  await until(() => asked.length > 0, "it is asked");
  using db = new Database(join(server.dataDir, "headrace.db"));
  db.run("UPDATE batch_lines SET claimed_until = 0 WHERE batch_id = ?", [id]);
  const isClaimed = () => db.query("SELECT 1 FROM batch_lines WHERE batch_id = ? AND claimed_until > 0").get(id);
  await until(() => isClaimed() !== null, "it is claimed anew");
  await Bun.sleep(200);
  expect(asked).toEqual(["held"]);
  gate.resolve();
  expect((await ended(id)).request_counts).toEqual({ total: 1, completed: 1, failed: 0 });
});

// long-lived: batch.credential
test("refuses the remaining lines of a batch whose key is revoked", async () => {
  const made = (await (
    await server.request("/v1/keys", { body: { name: "short", scopes: ["chat:read", "chat:write"] } })
  ).json()) as { id: string; key: string };
  const gate = Promise.withResolvers<void>();
  upstream.script(async (request, res) => {
    await gate.promise;
    await echo(request, res);
  });
  const own = openaiClient({ url: server.url, key: made.key });
  const lines = Array.from({ length: 20 }, (_, n) => line(`${n}`, chat(`${n}`)));
  const { id } = await begin(lines, undefined, own);
  await until(async () => (await own.batches.retrieve(id)).status === "in_progress", "it is in progress");
  await server.request(`/v1/keys/${made.id}`, { method: "DELETE" });
  gate.resolve();
  const batch = await ended(id);
  expect(batch.request_counts?.failed).toBeGreaterThan(0);
  expect((await linesOf(batch.error_file_id))[0]).toMatchObject({ response: { status_code: 401 } });
});

// long-lived: batch.age
test("waits for a quota that resets before the batch expires, and returns an error for one that does not", async () => {
  const keyWith = async (per: string) => {
    const quotas = [{ unit: "requests", amount: 2, per, window: "rolling" }];
    const made = await server.request("/v1/keys", { body: { name: per, scopes: ["chat:read", "chat:write"], quotas } });
    return openaiClient({ url: server.url, key: ((await made.json()) as { key: string }).key });
  };
  const lines = Array.from({ length: 4 }, (_, n) => line(`${n}`, chat(`${n}`)));
  const hourly = await keyWith("hour");
  const { id } = await begin(lines, undefined, hourly);
  await until(async () => (await hourly.batches.retrieve(id)).request_counts?.completed === 2, "the quota is spent");
  const monthly = await keyWith("month");
  const other = await ended((await begin(lines, undefined, monthly)).id, monthly);
  expect(other.request_counts).toEqual({ total: 4, completed: 2, failed: 2 });
  expect(await linesOf(other.error_file_id, monthly)).toMatchObject(
    Array.from({ length: 2 }, () => ({ response: { body: { error: { code: "insufficient_quota" } } } })),
  );
  expect(await hourly.batches.retrieve(id)).toMatchObject({
    status: "in_progress",
    request_counts: { total: 4, completed: 2, failed: 0 },
  });
  await hourly.batches.cancel(id);
});

test("runs the lines of other end users behind those whose own budget is used up", async () => {
  const quotas = [{ unit: "requests", amount: 1, per: "day" }];
  const budget = { method: "PUT", body: { quotas } };
  expect((await server.request("/v1/account/end-users/spent", budget)).status).toBe(200);
  const users = [...Array<string>(40).fill("spent"), "ann", "bob"];
  const { id } = await begin(users.map((user, n) => line(`${n}`, chat(`${n}`, { user }))));
  await until(async () => (await client.batches.retrieve(id)).request_counts?.completed === 3, "the others ran");
  await client.batches.cancel(id);
});

test("runs the lines of one model while the quota for another model of the batch is used up", async () => {
  const quotas = [{ unit: "requests", amount: 1, per: "day", window: "calendar", models: ["embedder"] }];
  const made = await server.request("/v1/keys", { body: { name: "k", scopes: ["chat:read", "chat:write"], quotas } });
  const limited = openaiClient({ url: server.url, key: ((await made.json()) as { key: string }).key });
  const spent = Array.from({ length: 40 }, (_, n) => line(`spent ${n}`, { ...chat(`${n}`), model: "embedder" }));
  const others = Array.from({ length: 60 }, (_, n) => line(`other ${n}`, chat(`${n}`)));
  const { id } = await begin([...spent, ...others], undefined, limited);
  const counts = async () => (await limited.batches.retrieve(id)).request_counts;
  await until(async () => (await counts())?.completed === 61, "the other model ran");
  await limited.batches.cancel(id);
});
