// Answers that are given again: to whom, how they look, what they cost, and what is never kept.
import { afterAll, beforeAll, beforeEach, expect, test } from "bun:test";
import Anthropic from "@anthropic-ai/sdk";
import OpenAI from "openai";
import { startHeadrace, type TestServer } from "../support/headrace.ts";
import { type ManualClock, manualClock } from "../support/manual-clock.ts";
import { mintKey } from "../support/mint-key.ts";
import { makeOperatorKey } from "../support/operator-key.ts";
import {
  chatScript,
  chunk,
  json,
  type ScriptedUpstream,
  startUpstream,
  upstreamYaml,
} from "../support/scripted-upstream.ts";
import { openServerPeople } from "../support/server-people.ts";

let upstream: ScriptedUpstream;
let server: TestServer;
let clock: ManualClock;

const models = `
models:
  - id: kept
    price: { input: 1, output: 10 }
    deployments: [{ upstream: up, model: upstream-model }]
    policies: { cache: { requests: deterministic, ttl_seconds: 60, price_factor: 0.5 } }
  - id: if-asked
    deployments: [{ upstream: up, model: upstream-model }]
    policies: { cache: { requests: asked } }
  - id: by-meaning
    deployments: [{ upstream: up, model: upstream-model }]
    policies: { cache: { requests: all, semantic: { model: embedder, threshold: 0.9 } } }
  - id: embedder
    deployments: [{ upstream: up, model: upstream-embedder }]
  - id: plain
    deployments: [{ upstream: up, model: upstream-model }]
cache: { max_answer_bytes: 16384 }
`;

beforeAll(async () => {
  clock = manualClock();
  upstream = await startUpstream();
  server = await startHeadrace({ yaml: upstreamYaml(upstream, models), clock });
});
afterAll(async () => {
  await server[Symbol.asyncDispose]();
  await upstream[Symbol.asyncDispose]();
});
beforeEach(() => {
  upstream.script(chatScript());
  upstream.requests.length = 0;
});

let question = 0;
/** One that nobody has asked before. */
const asked = (more: Record<string, unknown> = {}) => ({
  model: "kept",
  temperature: 0,
  messages: [{ role: "user" as const, content: `Question ${++question}` }],
  ...more,
});

const ask = (body: unknown, headers: Record<string, string> = {}, path = "/v1/chat/completions") =>
  server.request(path, { body, headers });

/** What came of looking for an answer, of each request in turn. */
async function resultsOf(...requests: readonly [body: unknown, headers?: Record<string, string>][]) {
  const results: (string | null)[] = [];
  for (const [body, headers] of requests) {
    const response = await ask(body, headers);
    await response.text();
    results.push(response.headers.get("x-headrace-cache"));
  }
  return results;
}

test("serves a repeated request from the cache, marked and with a new id, without calling a model", async () => {
  const body = asked();
  const first = await ask(body);
  const { id, ...whole } = (await first.json()) as Record<string, unknown>;
  clock.advance(7_000);
  const second = await ask({ ...body, user: "somebody", metadata: { a: "b" } });
  const { id: ownId, ...again } = (await second.json()) as Record<string, unknown>;
  expect(upstream.requests).toHaveLength(1);
  expect([first.headers.get("x-headrace-cache"), second.headers.get("x-headrace-cache")]).toEqual(["miss", "hit"]);
  expect([first.headers.get("age"), second.headers.get("age")]).toEqual([null, "7"]);
  expect(again).toEqual(whole);
  expect(ownId).not.toBe(id);
  // 7 tokens of a dollar and 2 of ten for a million: 27 millionths; half of that.
  expect(first.headers.get("x-headrace-usage")).toContain("nano_usd=27000");
  expect(second.headers.get("x-headrace-usage")).toBe("prompt_tokens=7, completion_tokens=2, nano_usd=13500");
  await server.governance.ledger.flush();
  const requestId = second.headers.get("x-request-id");
  const record = (await (await server.request(`/v1/requests/${requestId}`)).json()) as Record<string, unknown>;
  expect(record).toMatchObject({ from_cache: true, prompt_tokens: 7, completion_tokens: 2, upstream: null });
  expect(record).toMatchObject({ attempts: 0, cost: 0.0000135, usage_details: { replayed: 1 }, trail: [] });
  expect(server.logText()).toMatch(new RegExp(`${requestId}.*"cache":"hit"`));
  const operator = await makeOperatorKey(server.dataDir);
  const scraped = await server.request("/metrics", { headers: { authorization: `Bearer ${operator}` } });
  const metrics = await scraped.text();
  expect(metrics).toContain('headrace_cache_requests_total{model="kept",result="hit"} 1');
  expect(metrics).toMatch(/headrace_held_bytes\{kind="cache"\} [1-9]/);
});

test("expires cached answers", async () => {
  const body = asked();
  expect(await resultsOf([body])).toEqual(["miss"]);
  clock.advance(59_000);
  expect(await resultsOf([body])).toEqual(["hit"]);
  clock.advance(1_000);
  expect(await resultsOf([body], [body])).toEqual(["miss", "hit"]);
});

test("caches only deterministic answers unless the client opts in, and lets clients refresh or bypass the cache", async () => {
  const warm = asked({ temperature: 0.7 });
  expect(await resultsOf([warm], [warm])).toEqual([null, null]);
  const use = { "x-headrace-cache": "use" };
  expect(await resultsOf([warm, use], [warm, use], [warm])).toEqual(["miss", "hit", null]);
  const cold = asked({ model: "if-asked" });
  expect(await resultsOf([cold], [cold, use], [cold, use])).toEqual([null, "miss", "hit"]);
  const refresh = { "x-headrace-cache": "refresh" };
  upstream.script(chatScript(["another"]));
  expect(await resultsOf([cold, refresh], [cold, { "x-headrace-cache": "off" }])).toEqual(["refresh", null]);
  expect(await (await ask(cold, use)).text()).toContain('"another"');
  expect(await resultsOf([asked({ model: "plain" }), use])).toEqual([null]);
  const refused = await ask(cold, { "x-headrace-cache": "always" });
  expect(refused.status).toBe(400);
  expect(await refused.text()).toContain("`refresh`");
});

test("replays a cached stream event by event, with a new id and its usage", async () => {
  const body = { ...asked(), stream: true, stream_options: { include_usage: true } };
  const first = await (await ask(body)).text();
  const response = await ask(body);
  const again = await response.text();
  expect(response.headers.get("x-headrace-cache")).toBe("hit");
  expect(upstream.requests).toHaveLength(1);
  const idOf = (text: string) => /"id":"([^"]+)"/.exec(text)?.[1] ?? "";
  expect(idOf(again)).not.toBe(idOf(first));
  expect(again.replaceAll(idOf(again), idOf(first))).toBe(first);
  // Without the usage at its end it is another stream, and a whole answer is none.
  const { stream_options: _, ...without } = body;
  expect(await resultsOf([without], [without], [{ ...without, stream: false }])).toEqual(["miss", "hit", "miss"]);
});

test("replays cached answers that the SDKs of OpenAI and Anthropic can read in every format", async () => {
  const openai = new OpenAI({ baseURL: `${server.url}/v1`, apiKey: server.key, maxRetries: 0 });
  // Its newest version has no temperature: its clients say in a header that they want what is kept.
  const defaultHeaders = { "x-headrace-cache": "use" };
  const anthropic = new Anthropic({ baseURL: server.url, apiKey: server.key, maxRetries: 0, defaultHeaders });
  const { messages } = asked();
  const chat = async () => {
    let said = "";
    const stream = await openai.chat.completions.create({ model: "kept", temperature: 0, messages, stream: true });
    for await (const { choices } of stream) said += choices[0]?.delta.content ?? "";
    return said;
  };
  const response = async () => {
    const asking = { model: "kept", temperature: 0, input: "Hello", store: false } as const;
    const { id, output_text: text, usage } = await openai.responses.create(asking);
    const stream = openai.responses.stream(asking);
    const { output_text: streamed } = await stream.finalResponse();
    return { id, all: [text, streamed, usage?.total_tokens] };
  };
  const message = async () => {
    const asking = { model: "kept", max_tokens: 20, messages };
    const whole = await anthropic.messages.create(asking);
    const streamed = await anthropic.messages.stream(asking).finalMessage();
    return { id: whole.id, all: [whole.content, streamed.content, whole.usage.output_tokens] };
  };
  const [firstChat, firstResponse, firstMessage] = [await chat(), await response(), await message()];
  // Beside them the tokens of prompts are counted.
  const asks = () => upstream.requests.filter(({ path }) => path.endsWith("/completions")).length;
  expect(asks()).toBe(5);
  expect(await chat()).toBe(firstChat);
  const [secondResponse, secondMessage] = [await response(), await message()];
  expect(secondResponse.all).toEqual(firstResponse.all);
  expect(secondMessage.all).toEqual(firstMessage.all);
  expect(secondResponse.id).not.toBe(firstResponse.id);
  expect(secondMessage.id).not.toBe(firstMessage.id);
  expect(asks()).toBe(5);
});

test("replays reasoning sealed for an account unchanged, so that the account can still send it back", async () => {
  upstream.script((request, res) => {
    const reasoning_content = "A secret thought.";
    const choices = [
      { index: 0, message: { role: "assistant", content: "Yes.", reasoning_content }, finish_reason: "stop" },
    ];
    const usage = { prompt_tokens: 7, completion_tokens: 3, total_tokens: 10 };
    json(res, 200, { id: "c", object: "chat.completion", created: 1, choices, usage, asked: request.path });
  });
  const body = { model: "kept", temperature: 0, input: `Think ${++question}`, store: false };
  const asking = { ...body, include: ["reasoning.encrypted_content"] };
  const answers = [];
  for (let i = 0; i < 2; i++) answers.push(await (await ask(asking, {}, "/v1/responses")).json());
  const [first, second] = answers as { output: { type: string; encrypted_content?: string }[] }[];
  expect(first?.output[0]?.encrypted_content).toBeString();
  expect(second?.output.map(({ encrypted_content: sealed }) => sealed)).toEqual(
    first?.output.map(({ encrypted_content: sealed }) => sealed) ?? [],
  );
  upstream.requests.length = 0;
  const input = [{ role: "user", content: "Think" }, ...(second?.output ?? []), { role: "user", content: "And?" }];
  expect((await ask({ ...asking, input }, {}, "/v1/responses")).status).toBe(200);
  expect(JSON.stringify(upstream.requests.map(({ body: sent }) => sent))).toContain("A secret thought.");
});

test("caches embeddings, but neither stored nor background responses", async () => {
  const embeddings = (_: unknown, res: Parameters<typeof json>[0]) =>
    json(res, 200, {
      object: "list",
      model: "upstream-model",
      data: [{ object: "embedding", index: 0, embedding: [0.1, 0.2] }],
      usage: { prompt_tokens: 3, total_tokens: 3 },
    });
  upstream.script(embeddings);
  const embed = async () => {
    const response = await ask({ model: "kept", input: "text" }, {}, "/v1/embeddings");
    return [response.headers.get("x-headrace-cache"), ((await response.json()) as { usage: unknown }).usage];
  };
  const usage = { prompt_tokens: 3, total_tokens: 3 };
  expect([await embed(), await embed()]).toEqual([
    ["miss", usage],
    ["hit", usage],
  ]);
  upstream.script(chatScript());
  const stored = asked({ store: true });
  expect(await resultsOf([stored], [stored])).toEqual([null, null]);
});

test("does not cache answers that failed, broke off, lacked an end or are too long", async () => {
  const body = asked();
  upstream.script((_, res) => json(res, 400, { error: { message: "no" } }));
  expect((await ask(body)).status).toBe(400);
  upstream.script((_, res) => {
    res.writeHead(200, { "content-type": "text/event-stream" });
    res.write(chunk({ content: "half" }));
    res.destroy();
  });
  const stream = { ...body, stream: true };
  await (await ask(stream)).text();
  upstream.script((_, res) => {
    res.writeHead(200, { "content-type": "text/event-stream" });
    res.write(chunk({ content: "unfinished" }));
    res.end("data: [DONE]\n\n");
  });
  await (await ask(stream)).text();
  upstream.script(chatScript(["x".repeat(20_000)]));
  const long = asked();
  expect(await resultsOf([long], [long], [{ ...long, stream: true }], [{ ...long, stream: true }])).toEqual([
    ...["miss", "miss", "miss", "miss"],
  ]);
  upstream.script(chatScript());
  expect(await resultsOf([body], [stream], [body], [stream])).toEqual(["miss", "miss", "hit", "hit"]);
});

test("caches no answer that is empty or refused by its model", async () => {
  const whole = (content: string, finish_reason: string, completion_tokens: number) => {
    const choices = [{ index: 0, message: { role: "assistant", content }, finish_reason }];
    const usage = { prompt_tokens: 7, completion_tokens, total_tokens: 7 + completion_tokens };
    upstream.script((_, res) => json(res, 200, { id: "c", object: "chat.completion", created: 1, choices, usage }));
  };
  const body = asked();
  for (const [content, reason, tokens] of [
    ["", "stop", 0],
    ["I", "content_filter", 1],
  ] as const) {
    whole(content, reason, tokens);
    expect(await resultsOf([body])).toEqual(["miss"]);
  }
  upstream.script((_, res) => {
    res.writeHead(200, { "content-type": "text/event-stream" });
    res.end(`${chunk({ content: "I" })}${chunk({}, "content_filter")}data: [DONE]\n\n`);
  });
  const stream = { ...body, stream: true };
  expect(await resultsOf([stream], [stream])).toEqual(["miss", "miss"]);
  for (const content of ["", "I"]) {
    whole(content, "length", 5);
    const [first, second] = [asked(), { ...asked(), stream: true }];
    expect(await resultsOf([first], [first])).toEqual(["miss", content === "" ? "miss" : "hit"]);
    upstream.script((_, res) => {
      res.writeHead(200, { "content-type": "text/event-stream" });
      res.end(`${chunk({ reasoning_content: "Hm", content })}${chunk({}, "length")}data: [DONE]\n\n`);
    });
    expect(await resultsOf([second], [second])).toEqual(["miss", content === "" ? "miss" : "hit"]);
  }
  const message = { role: "assistant", content: "", reasoning_content: "Hm" };
  const choices = [{ index: 0, message, finish_reason: "length" }];
  const usage = { prompt_tokens: 7, completion_tokens: 5, total_tokens: 12 };
  const thoughtOnly = { id: "c", object: "chat.completion", created: 1, choices, usage };
  upstream.script((_, res) => json(res, 200, thoughtOnly));
  const { messages, ...others } = asked();
  const response = { ...others, input: "Think.", store: false };
  for (const [path, one] of [
    ["/v1/responses", response],
    ["/v1/messages", { ...others, messages, max_tokens: 50 }],
  ] as const) {
    const results: (string | null)[] = [];
    for (let i = 0; i < 2; i++) {
      const answered = await ask(one, {}, path);
      expect(answered.status).toBe(200);
      await answered.text();
      results.push(answered.headers.get("x-headrace-cache"));
    }
    expect(results).toEqual(["miss", "miss"]);
  }
  whole("done", "stop", 1);
  expect(await resultsOf([body], [body])).toEqual(["miss", "hit"]);
});

test("keeps a stream that its limit ended, whatever separates lines in its text", async () => {
  upstream.script((_, res) => {
    res.writeHead(200, { "content-type": "text/event-stream" });
    res.end(`${chunk({ content: "a\u2028b" })}${chunk({}, "length")}data: [DONE]\n\n`);
  });
  const stream = { ...asked(), stream: true };
  expect(await resultsOf([stream], [stream])).toEqual(["miss", "hit"]);
});

test("does not serve cached answers older than the model's max age, or from before the clock was set back", async () => {
  const [body, later] = [asked(), asked()];
  expect(await resultsOf([body], [body], [later])).toEqual(["miss", "hit", "miss"]);
  clock.jump(-3_600);
  expect(await resultsOf([body], [body])).toEqual(["miss", "hit"]);
  clock.jump(3_600);
  expect(await resultsOf([later])).toEqual(["hit"]);
});

test("does not cache an answer that a hard stop ended, and serves cached answers only within the rest of a quota", async () => {
  const keyWith = async (amount: number) => {
    const quotas = [{ unit: "tokens", amount, per: "day", hard_stop: true }];
    const made = await server.request("/v1/keys", { body: { name: "stopped", quotas } });
    return { authorization: `Bearer ${((await made.json()) as { key: string }).key}` };
  };
  const body = { ...asked(), stream: true };
  upstream.script(chatScript(Array.from({ length: 90 }, () => " word")));
  expect(await (await ask(body, await keyWith(40))).text()).toContain("stopped_by");
  upstream.script(chatScript());
  expect(await resultsOf([body], [body])).toEqual(["miss", "hit"]);
  const long = asked();
  const [choices, usage] = [
    [{ index: 0, message: { role: "assistant", content: "word ".repeat(60) }, finish_reason: "stop" }],
    { prompt_tokens: 7, completion_tokens: 60, total_tokens: 67 },
  ];
  upstream.script((_, res) => json(res, 200, { id: "c", object: "chat.completion", created: 1, choices, usage }));
  expect(await resultsOf([long], [long, await keyWith(500)], [long, await keyWith(40)])).toEqual([
    "miss",
    "hit",
    "miss",
  ]);
});

test("shares cached answers among keys of one account and environment only", async () => {
  const body = asked();
  await (await ask(body)).text();
  const of = async (key: string) => {
    const response = await ask(body, { authorization: `Bearer ${key}` });
    await response.text();
    return response.headers.get("x-headrace-cache");
  };
  const scopes = ["chat:write"] as const;
  const colleague = await mintKey(server.dataDir, { scopes });
  const live = await mintKey(server.dataDir, { scopes, environment: "live" });
  const operator = await makeOperatorKey(server.dataDir);
  const made = await server.request("/v1/admin/accounts", {
    ...{ body: { name: "Strangers" }, headers: { authorization: `Bearer ${operator}` } },
  });
  const { id: accountId } = (await made.json()) as { id: string };
  const stranger = await mintKey(server.dataDir, { scopes, accountId });
  expect([await of(colleague), await of(stranger), await of(live)]).toEqual(["hit", "miss", "miss"]);
});

test("applies the cache setting of a key over its model's, also for the keys that it creates", async () => {
  const make = async (body: Record<string, unknown>, key = server.key) => {
    const headers = { authorization: `Bearer ${key}` };
    return (await (await server.request("/v1/keys", { body, headers })).json()) as Record<string, unknown>;
  };
  const on = await make({ name: "on", response_cache: "on" });
  const off = await make({
    ...{ name: "off", response_cache: "off" },
    scopes: ["keys:manage", "chat:write", "models:read"],
  });
  const results = (key: unknown, body: unknown) => {
    const headers = { authorization: `Bearer ${key}` };
    return resultsOf([body, headers], [body, headers]);
  };
  expect(await results(on["key"], asked({ model: "plain" }))).toEqual(["miss", "hit"]);
  expect(await results(off["key"], asked())).toEqual([null, null]);
  expect(on["response_cache"]).toBe("on");
  expect(await make({ name: "child", response_cache: "on" }, String(off["key"]))).toMatchObject({
    error: { code: "permission_denied" },
  });
  const child = await make({ name: "child" }, String(off["key"]));
  expect(await results(child["key"], asked())).toEqual([null, null]);
});

test("lets an operator clear the cache by model, account or as a whole, and audits it", async () => {
  const body = asked();
  const kept = () => resultsOf([body]);
  const operator = await makeOperatorKey(server.dataDir);
  const clear = async (query: string) => {
    const headers = { authorization: `Bearer ${operator}` };
    return (await server.request(`/v1/admin/cache${query}`, { method: "DELETE", headers })).status;
  };
  expect(await kept()).toEqual(["miss"]);
  expect(await clear("?model=plain")).toBe(200);
  expect(await clear("?account=acct_other")).toBe(200);
  expect(await kept()).toEqual(["hit"]);
  expect(await clear("?model=kept")).toBe(200);
  expect(await kept()).toEqual(["miss"]);
  expect(await clear("")).toBe(200);
  expect(await kept()).toEqual(["miss"]);
  const headers = { authorization: `Bearer ${operator}` };
  const audit = await (await server.request("/v1/admin/audit?action=cache.cleared", { headers })).text();
  expect(audit).toContain('"cache.cleared"');
});

test("drops cached answers of an account that is suspended or whose member is deleted", async () => {
  const operator = await makeOperatorKey(server.dataDir);
  const asOperator = async (method: string, path: string, body?: unknown) => {
    const headers = { authorization: `Bearer ${operator}` };
    return (await (await server.request(path, { method, headers, ...(body ? { body } : {}) })).json()) as {
      id: string;
    };
  };
  const { id: accountId } = await asOperator("POST", "/v1/admin/accounts", { name: "Leaving" });
  const key = await mintKey(server.dataDir, { scopes: ["chat:write"], accountId });
  const [body, other] = [asked(), asked()];
  const results = (one: unknown) => resultsOf([one, { authorization: `Bearer ${key}` }]);
  expect([await results(body), await resultsOf([other])]).toEqual([["miss"], ["miss"]]);
  await asOperator("PATCH", `/v1/admin/accounts/${accountId}`, { name: "Left" });
  expect(await results(body)).toEqual(["hit"]);
  await asOperator("PATCH", `/v1/admin/accounts/${accountId}`, { status: "suspended" });
  await asOperator("PATCH", `/v1/admin/accounts/${accountId}`, { status: "active" });
  expect(await results(body)).toEqual(["miss"]);
  const people = openServerPeople(server);
  const { person } = await people.addMember("member", { account: accountId });
  await people.close();
  expect(await results(body)).toEqual(["hit"]);
  await asOperator("DELETE", `/v1/admin/people/${person.id}`);
  expect([await results(body), await resultsOf([other])]).toEqual([["miss"], ["hit"]]);
});

test("serves a cached answer for a message with the same meaning if all earlier messages are equal", async () => {
  const vectors: Record<string, number[]> = {
    "what time is it": [1, 0.1],
    "which hour is it": [1, 0.2],
    "who?": [0, 1],
  };
  upstream.script((request, res) => {
    if (!request.path.endsWith("/embeddings")) return chatScript()(request, res);
    json(res, 200, {
      object: "list",
      model: "upstream-embedder",
      data: [{ object: "embedding", index: 0, embedding: vectors[String(request.body["input"])] ?? [0, 0] }],
      usage: { prompt_tokens: 3, total_tokens: 3 },
    });
  });
  const say = (text: string, system = "Be brief.") => ({
    model: "by-meaning",
    messages: [
      { role: "system", content: system },
      { role: "user", content: text },
    ],
  });
  expect(
    await resultsOf(
      [say("what time is it")],
      [say("which hour is it")],
      [say("who?")],
      [say("which hour is it", "Be long.")],
      [{ ...say("which hour is it"), max_tokens: 5 }],
      [say("nothing of a vector")],
    ),
  ).toEqual(["miss", "similar", "miss", "miss", "miss", "miss"]);
});
