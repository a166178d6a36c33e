// What is set aside for a request and what is booked in the end: all that a model is shown, and nothing that cannot be.

import { afterEach, describe, expect, test } from "bun:test";
import { bufferedBytes } from "../../src/base/bytes/buffered-bytes.ts";
import { Cancellation } from "../../src/base/cancellation.ts";
import { Router } from "../../src/inference/routing/route.ts";
import { run } from "../../src/inference/run.ts";
import { Stopping } from "../../src/inference/stopping.ts";
import { type BookedUsage, bookedUsage } from "../support/booked-usage.ts";
import { decodedRequest } from "../support/decoded-request.ts";
import { startHeadrace, type TestServer, until } from "../support/headrace.ts";
import { type ManualClock, manualClock } from "../support/manual-clock.ts";
import { noSeal } from "../support/no-seal.ts";
import {
  chunk,
  json,
  type Script,
  type ScriptedUpstream,
  startUpstream,
  upstreamYaml,
} from "../support/scripted-upstream.ts";

const stack: AsyncDisposable[] = [];
afterEach(async () => {
  for (const part of stack.splice(0).reverse()) await part[Symbol.asyncDispose]();
});

interface Setup {
  upstream: ScriptedUpstream;
  server: TestServer;
  clock: ManualClock;
}

/** The first account's tier with these limits, in production: in development they do not hold. */
async function start(tier: Record<string, number>, script?: Script): Promise<Setup> {
  const upstream = await startUpstream(script);
  stack.push(upstream);
  const clock = manualClock();
  const limits = { requests_per_minute: null, tokens_per_minute: null, ...tier };
  const server = await startHeadrace({
    clock,
    flags: { mode: "production", publicUrl: "http://127.0.0.1:7545" },
    yaml: upstreamYaml(upstream, `tiers: [${JSON.stringify({ name: "enterprise", ...limits })}]\n`),
  });
  stack.push(server);
  return { upstream, server, clock };
}

/** Ten tokens by estimate. */
const question = { role: "user", content: "x".repeat(40) };
const promptTokens = 10;

function chat(server: TestServer, body: object = {}, more: { key?: string; signal?: AbortSignal } = {}) {
  return server.request("/v1/chat/completions", {
    body: { model: "upstream-model", messages: [question], ...body },
    ...(more.key === undefined ? {} : { headers: { authorization: `Bearer ${more.key}` } }),
    ...(more.signal ? { signal: more.signal } : {}),
  });
}

function answering(prompt_tokens: number, completion_tokens: number): Script {
  const usage = { prompt_tokens, completion_tokens, total_tokens: prompt_tokens + completion_tokens };
  const head = { id: "c", created: 1, model: "upstream-model", usage };
  return ({ path }, res) => {
    if (path.endsWith("/embeddings")) {
      const data = [{ object: "embedding", index: 0, embedding: [0.5] }];
      json(res, 200, {
        object: "list",
        data,
        model: "upstream-model",
        usage: { ...usage, completion_tokens: undefined },
      });
    } else if (path.endsWith("/chat/completions")) {
      const choices = [{ index: 0, message: { role: "assistant", content: "Yes." }, finish_reason: "stop" }];
      json(res, 200, { ...head, object: "chat.completion", choices });
    } else {
      json(res, 200, {
        ...head,
        object: "text_completion",
        choices: [{ index: 0, text: "Yes.", finish_reason: "stop" }],
      });
    }
  };
}

async function booked(server: TestServer): Promise<BookedUsage[]> {
  await server.governance.ledger.flush();
  return bookedUsage(server.dataDir);
}

const remainingTokens = ({ headers }: Response) => Number(headers.get("x-ratelimit-remaining-tokens"));

/** Reads until the text has come `count` times; the stream stays open. */
async function readPieces({ body }: Response, text: string, count: number): Promise<void> {
  const reader = (body as ReadableStream<Uint8Array>).getReader();
  const decoder = new TextDecoder();
  let seen = "";
  while (seen.split(text).length <= count) {
    const { value, done } = await reader.read();
    if (done) throw new Error(`The stream ended after ${seen.length} characters`);
    seen += decoder.decode(value, { stream: true });
  }
}

const long = "x".repeat(200_000);
/** Some 50,000 tokens each, and next to none of them in a message's content. */
const large = {
  tools: { tools: [{ type: "function", function: { name: "f", description: long } }] },
  response_format: {
    response_format: { type: "json_schema", json_schema: { name: "s", schema: { type: "object", description: long } } },
  },
  documents: { documents: [{ text: long }] },
  "parts that are not known": {
    messages: [{ role: "user", content: [{ type: "memory", memory: long }] }],
  },
  reasoning: {
    messages: [question, { role: "assistant", content: "Yes.", reasoning_content: long }, question],
  },
  "messages of a role that is not known": { messages: [{ role: "context", content: null, facts: [long] }] },
  tool_calls: {
    messages: [
      question,
      {
        role: "assistant",
        content: null,
        tool_calls: [{ id: "call_1", type: "function", function: { name: "f", arguments: long } }],
      },
      { role: "tool", tool_call_id: "call_1", content: "4" },
    ],
  },
};

describe.each(Object.entries(large))("reservation of a prompt of 200 KB in its %s", (_name, body) => {
  test.each([
    ["monthly_tokens", 403],
    ["tokens_per_minute", 429],
  ])(
    "reserves a prompt of 200 KB in its %s so that 50 concurrent requests do not overrun %s",
    async (limit, refusal) => {
      const decided = Promise.withResolvers<void>();
      const answer = answering(50_050, 1);
      const { server, upstream } = await start({ [limit]: 200_000 }, async (request, res) => {
        await decided.promise;
        await answer(request, res);
      });
      const statuses: Record<number, number> = {};
      const all = Array.from({ length: 50 }, async () => {
        const response = await chat(server, { ...body, max_tokens: 1 });
        await response.text();
        statuses[response.status] = (statuses[response.status] ?? 0) + 1;
      });
      await until(() => upstream.requests.length + (statuses[refusal] ?? 0) === 50, "every request is decided about");
      decided.resolve();
      await Promise.all(all);
      expect(statuses).toEqual({ 200: 3, [refusal]: 47 });
      const used = (await booked(server)).reduce((sum, one) => sum + one.prompt_tokens + one.completion_tokens, 0);
      expect(used).toBe(3 * 50_051);
    },
  );
});

describe("usage of a billion tokens reported in the middle of a stream", () => {
  /** Goes on for ever behind 80 pieces; answers whole requests. */
  const lying: Script = (request, res) => {
    if (request.body["stream"] !== true) return answering(promptTokens, 1)(request, res);
    const usage = { prompt_tokens: 1e9, completion_tokens: 1e9, total_tokens: 2e9 };
    res.writeHead(200, { "content-type": "text/event-stream" });
    for (let i = 0; i < 80; i++) res.write(chunk({ content: " w" }, null, { usage }));
  };

  test.each(["monthly_tokens", "tokens_per_minute"])(
    "does not use up %s during or after a stream whose usage report claims a billion tokens",
    async (limit) => {
      const { server } = await start({ [limit]: 10_000 }, lying);
      const client = new AbortController();
      // Outgrown by what is delivered, which is when the reservation is extended.
      const stream = await chat(server, { stream: true, max_tokens: 50 }, { signal: client.signal });
      await readPieces(stream, '" w"', 80);
      expect((await chat(server, { max_tokens: 10 })).status).toBe(200);
      client.abort();
      const cut = await until(
        async () => (await booked(server)).find(({ outcome }) => outcome === "cancelled"),
        "the stream is booked",
      );
      // It was told 50 and has delivered 80.
      expect(cut).toMatchObject({ completion_tokens: 80, capped: 1 });
      // The bytes of its body, and what a chat template may add.
      expect(cut.prompt_tokens).toBeLessThan(5_000);
      expect((await chat(server, { max_tokens: 10 })).status).toBe(200);
    },
  );
});

test("books the delivered tokens of a cancelled stream if the engine reported usage only at its start", async () => {
  const { server } = await start({}, (_request, res) => {
    res.writeHead(200, { "content-type": "text/event-stream" });
    const usage = { prompt_tokens: 7, completion_tokens: 0, total_tokens: 7 };
    res.write(chunk({ role: "assistant", content: "" }, null, { usage }));
    for (let i = 0; i < 100; i++) res.write(chunk({ content: " w" }));
  });
  const client = new AbortController();
  await readPieces(await chat(server, { stream: true }, { signal: client.signal }), '" w"', 100);
  client.abort();
  const record = await until(async () => (await booked(server))[0], "it is booked");
  expect(record).toMatchObject({ outcome: "cancelled", prompt_tokens: 7, completion_tokens: 100, estimated: 1 });
});

test("reserves tokens for all generations of best_of and books the reported usage", async () => {
  const { server } = await start({ tokens_per_minute: 10_000 }, answering(promptTokens, 2_000));
  const body = { model: "upstream-model", prompt: question.content, best_of: 20, max_tokens: 100 };
  const response = await server.request("/v1/completions", { body });
  expect(response.status).toBe(200);
  expect(remainingTokens(response)).toBe(10_000 - promptTokens - 2_000);
  expect(await booked(server)).toMatchObject([{ prompt_tokens: promptTokens, completion_tokens: 2_000, capped: 0 }]);
});

test.each([
  ["a chat", "/v1/chat/completions", { messages: [question], max_tokens: -1 }],
  ["a chat with three choices", "/v1/chat/completions", { messages: [question], max_completion_tokens: -1, n: 3 }],
  [
    "a completion that is the best of four",
    "/v1/completions",
    { prompt: question.content, max_tokens: -1, best_of: 4 },
  ],
  [
    "a completion with both names",
    "/v1/completions",
    { prompt: question.content, max_completion_tokens: -1, max_tokens: -1 },
  ],
])("treats max_tokens -1 as no limit and reserves as much as without a limit: %s", async (_what, path, body) => {
  const { max_tokens: _, max_completion_tokens: __, ...without } = body as Record<string, unknown>;
  const remaining: number[] = [];
  for (const sent of [without, body]) {
    const { server } = await start({ tokens_per_minute: 100_000 }, answering(promptTokens, 1));
    const response = await server.request(path, { body: { model: "upstream-model", ...sent } });
    expect(response.status).toBe(200);
    remaining.push(remainingTokens(response));
  }
  expect(remaining[1]).toBe(remaining[0] as number);
  expect(remaining[0]).toBeLessThan(100_000 - promptTokens);
});

test("counts usage while a key's monthly quota is off, and applies it when the quota is on again", async () => {
  const { server } = await start({}, answering(promptTokens, 40));
  const ofKeys = { name: "limited", scopes: ["chat:write"], monthly_tokens: 100 };
  const created = (await (await server.request("/v1/keys", { body: ofKeys })).json()) as { id: string; key: string };
  const { id, key } = created;
  const setQuota = async (monthly_tokens: number | null) => {
    const changed = await server.request(`/v1/keys/${id}`, { method: "PATCH", body: { monthly_tokens } });
    expect(await changed.json()).toMatchObject({ monthly_tokens });
  };
  const status = async () => (await chat(server, { max_tokens: 40 }, { key })).status;
  expect(await status()).toBe(200);
  await setQuota(null);
  for (let i = 0; i < 3; i++) expect(await status()).toBe(200);
  // 200 are used by now; a request needs 50.
  await setQuota(249);
  expect(await status()).toBe(403);
  await setQuota(250);
  expect([await status(), await status()]).toEqual([200, 403]);
});

test("estimates output without max_tokens only from answers that no token limit ended", async () => {
  const { server, clock } = await start({ tokens_per_minute: 100_000 }, answering(promptTokens, 20));
  const reservedFor = async () => {
    clock.advance(60_000);
    const response = await chat(server);
    return 100_000 - remainingTokens(response) - promptTokens;
  };
  for (let i = 0; i < 20; i++) {
    clock.advance(60_000);
    expect((await chat(server, { max_tokens: 20 })).status).toBe(200);
    expect((await chat(server, { max_completion_tokens: 20 })).status).toBe(200);
    const embedding = await server.request("/v1/embeddings", { body: { model: "upstream-model", input: "x" } });
    expect(embedding.status).toBe(200);
  }
  // The first guess, as before any answer.
  expect(await reservedFor()).toBe(256);
  for (let i = 0; i < 40; i++) await reservedFor();
  expect(await reservedFor()).toBeLessThan(200);
});

test("ends a request whose client left before it began, without calling a model server", async () => {
  const { server, upstream, clock } = await start({});
  const { governance, catalog, capacity, key } = server;
  const principal = await governance.authenticator.authenticate({
    authorization: `Bearer ${key}`,
    apiKey: null,
    clientAddress: "127.0.0.1",
    requestId: "req_left",
    whyNotLocal: () => undefined,
  });
  const ends: string[] = [];
  const gone = new Cancellation();
  gone.cancel();
  const left = run(
    {
      request: decodedRequest({ model: "upstream-model", messages: [question] }),
      principal,
      requestId: "req_left",
      tagHeader: null,
      clientGone: gone,
      memoryAccount: bufferedBytes.visitors,
      renderError: String,
      onLimits: () => {},
      onServedBy: () => {},
      onIgnored: () => {},
      onCapped: () => {},
      onLedger: () => {},
      onEnd: (outcome) => void ends.push(outcome),
      answer: (answer) => answer,
    },
    {
      ...governance,
      catalog,
      capacity,
      router: new Router(clock),
      clock,
      stopping: new Stopping(),
      heartbeatMs: 10_000,
      sealFor: () => noSeal,
      requestTags: { of: () => undefined },
    },
  );
  await expect((async () => await left)()).rejects.toBeInstanceOf(DOMException);
  expect(ends).toEqual(["cancelled"]);
  expect(await booked(server)).toMatchObject([{ outcome: "cancelled", prompt_tokens: 0, completion_tokens: 0 }]);
  expect(upstream.requests).toHaveLength(0);
});
