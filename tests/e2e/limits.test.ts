// Limits under many clients at once: exactly what the formula allows, told in headers, undisturbed by clocks that jump.
import { afterEach, expect, test } from "bun:test";
import { allWorkers, startHeadrace, type TestServer, until } from "../support/headrace.ts";
import { type ManualClock, manualClock } from "../support/manual-clock.ts";
import { json, type Script, type ScriptedUpstream, startUpstream, upstreamYaml } from "../support/scripted-upstream.ts";

const stack: AsyncDisposable[] = [];
afterEach(async () => {
  for (const part of stack.splice(0).reverse()) await part[Symbol.asyncDispose]();
});

interface Setup {
  upstream: ScriptedUpstream;
  server: TestServer;
  clock: ManualClock;
}

const production = { mode: "production", publicUrl: "http://127.0.0.1:7545" };

/** The first account's tier with these limits; live, as development has none. */
async function start(tier: Record<string, number | null>, script?: Script, more = ""): Promise<Setup> {
  const upstream = await startUpstream(script);
  stack.push(upstream);
  const clock = manualClock();
  const limits = { requests_per_minute: null, tokens_per_minute: null, ...tier };
  const server = await startHeadrace({
    clock,
    flags: production,
    yaml: upstreamYaml(upstream, `tiers: [${JSON.stringify({ name: "enterprise", ...limits })}]\n${more}`),
  });
  stack.push(server);
  return { upstream, server, clock };
}

const prompt = "x".repeat(40);

function chat(server: TestServer, body: Record<string, unknown> = {}): Promise<Response> {
  const messages = [{ role: "user", content: prompt }];
  return server.request("/v1/chat/completions", { body: { model: "upstream-model", messages, ...body } });
}

/** `count` requests at the same time, by as many clients; how many came to which status, told in `statuses` as they come. */
async function volley(
  server: TestServer,
  count: number,
  body?: Record<string, unknown>,
  statuses: Record<number, number> = {},
) {
  await Promise.all(
    Array.from({ length: count }, async () => {
      const response = await chat(server, body);
      await response.text();
      statuses[response.status] = (statuses[response.status] ?? 0) + 1;
    }),
  );
  return statuses;
}

function answering(promptTokens: number, completionTokens: number): Script {
  return (_request, res) =>
    json(res, 200, {
      id: "c",
      object: "chat.completion",
      created: 1,
      model: "upstream-model",
      choices: [{ index: 0, message: { role: "assistant", content: "Yes." }, finish_reason: "stop" }],
      usage: {
        prompt_tokens: promptTokens,
        completion_tokens: completionTokens,
        total_tokens: promptTokens + completionTokens,
      },
    });
}

// hardening: L1
test("admits exactly 100 of 200 concurrent requests at 100 a minute, and then exactly as many as refill", async () => {
  const { server, clock, upstream } = await start({ requests_per_minute: 100 });
  expect(await volley(server, 200)).toEqual({ 200: 100, 429: 100 });
  clock.advance(599);
  expect(await volley(server, 200)).toEqual({ 429: 200 });
  clock.advance(1);
  expect(await volley(server, 200)).toEqual({ 200: 1, 429: 199 });
  clock.advance(30_000);
  expect(await volley(server, 200)).toEqual({ 200: 50, 429: 150 });
  clock.advance(3_600_000);
  expect(await volley(server, 200)).toEqual({ 200: 100, 429: 100 });
  expect(upstream.requests).toHaveLength(251);
});

// hardening: L1
test("keeps concurrent reservations within a token limit, and settles by actual usage", async () => {
  const gate = Promise.withResolvers<void>();
  const answer = answering(10, 20);
  const { server, clock, upstream } = await start({ tokens_per_minute: 10_000 }, async (request, res) => {
    await gate.promise;
    await answer(request, res);
  });
  // 10 tokens of prompt by estimate and up to 490: 20 of them fill the bucket.
  const statuses: Record<number, number> = {};
  const first = volley(server, 200, { max_tokens: 490 }, statuses);
  await until(() => upstream.requests.length === 20, "20 requests at the upstream");
  // A client that came only after the first answers would find room again.
  await until(() => statuses[429] === 180, "180 refusals");
  expect(await volley(server, 50, { max_tokens: 490 })).toEqual({ 429: 50 });
  gate.resolve();
  expect(await first).toEqual({ 200: 20, 429: 180 });
  // 20 x 30 were used: 9,400 are left, for 18 at a time; each leaves 470 behind.
  expect(await volley(server, 18, { max_tokens: 490 })).toEqual({ 200: 18 });
  let served = 38;
  for (;;) {
    const status = (await chat(server, { max_tokens: 490 })).status;
    if (status !== 200) break;
    served++;
  }
  // The last needed 500 to be there: 10,000 - 30 n >= 500.
  expect(served).toBe(317);
  clock.advance(60_000);
  expect((await chat(server, { max_tokens: 9_990 })).status).toBe(200);
});

// hardening: L3
test("serves a request without max_tokens under a limit of 1,000 tokens, and again after the refill", async () => {
  const { server, clock } = await start({ tokens_per_minute: 1_000 }, answering(10, 300));
  for (let round = 0; round < 5; round++) {
    expect((await chat(server)).status).toBe(200);
    clock.advance(60_000);
  }
});

test("carries usage beyond a reservation as debt against later requests", async () => {
  const { server, clock } = await start({ tokens_per_minute: 1_000 }, answering(10, 2_990));
  expect((await chat(server)).status).toBe(200);
  const refused = await chat(server, { max_tokens: 10 });
  expect(refused.status).toBe(429);
  // 2,000 below zero, and 20 to come by.
  expect(refused.headers.get("retry-after")).toBe("122");
  clock.advance(121_000);
  expect((await chat(server, { max_tokens: 10 })).status).toBe(429);
  clock.advance(1_000);
  expect((await chat(server, { max_tokens: 10 })).status).toBe(200);
});

test("refuses a request larger than the whole bucket permanently and says so", async () => {
  const { server } = await start({ tokens_per_minute: 1_000 });
  const refused = await chat(server, { max_tokens: 2_000 });
  expect(refused.status).toBe(429);
  expect(refused.headers.get("x-should-retry")).toBe("false");
  expect(await refused.json()).toMatchObject({ error: { type: "rate_limit_error", code: "rate_limit_exceeded" } });
});

test("refunds tokens but not the request after a failure before the first token", async () => {
  const { server } = await start({ requests_per_minute: 5, tokens_per_minute: 1_000 }, (_request, res) =>
    json(res, 500, { error: { message: "broken" } }),
  );
  for (let i = 0; i < 5; i++) expect((await chat(server, { max_tokens: 900 })).status).toBe(502);
  const refused = await chat(server, { max_tokens: 900 });
  expect(refused.status).toBe(429);
  expect(refused.headers.get("x-ratelimit-remaining-tokens")).toBe("1000");
});

test("counts nothing for a request refused before admission", async () => {
  const { server } = await start({ requests_per_minute: 3 });
  for (let i = 0; i < 10; i++) {
    expect((await chat(server, { temperature: 9 })).status).toBe(400);
    expect((await chat(server, { model: "none" })).status).toBe(404);
  }
  expect(await volley(server, 10)).toEqual({ 200: 3, 429: 7 });
});

test("sends rate limit headers on answers, streams and refusals, with the wait time", async () => {
  const { server } = await start({ requests_per_minute: 2, tokens_per_minute: 6_000 });
  const first = await chat(server, { max_tokens: 90, stream: true });
  expect(Object.fromEntries([...first.headers].filter(([name]) => name.startsWith("x-ratelimit")))).toEqual({
    "x-ratelimit-limit-requests": "2",
    "x-ratelimit-remaining-requests": "1",
    "x-ratelimit-reset-requests": "30s",
    "x-ratelimit-limit-tokens": "6000",
    "x-ratelimit-remaining-tokens": "5900",
    "x-ratelimit-reset-tokens": "1s",
  });
  await first.text();
  await (await chat(server)).text();
  const refused = await chat(server);
  expect(refused.status).toBe(429);
  expect(refused.headers.get("x-ratelimit-remaining-requests")).toBe("0");
  expect(refused.headers.get("x-ratelimit-reset-requests")).toBe("1m0s");
  expect(refused.headers.get("retry-after")).toBe("30");
  expect(refused.headers.get("retry-after-ms")).toBe("30000");
  const { error } = (await refused.json()) as { error: { message: string } };
  expect(error.message).toMatch(/2 requests/);
});

test("refuses an exhausted quota with 403 insufficient_quota and no retry until the month ends", async () => {
  const { server, clock } = await start({ monthly_tokens: 100 }, answering(10, 40));
  expect((await chat(server, { max_tokens: 40 })).status).toBe(200);
  expect((await chat(server, { max_tokens: 40 })).status).toBe(200);
  const refused = await chat(server, { max_tokens: 1 });
  expect(refused.status).toBe(403);
  expect(refused.headers.get("x-should-retry")).toBe("false");
  expect(await refused.json()).toMatchObject({ error: { type: "insufficient_quota", code: "insufficient_quota" } });
  clock.advance(31 * 86_400_000);
  expect((await chat(server, { max_tokens: 40 })).status).toBe(200);
});

test("never exceeds a quota in tokens or money with concurrent requests", async () => {
  const models = `models: [{ id: priced, price: { input: 1000, output: 1000 }, deployments: [{ upstream: up, model: upstream-model }] }]\n`;
  const { server, upstream } = await start({ monthly_spend: 1 }, answering(10, 40), models);
  // A request is 50 tokens of 0.001 USD: 20 of them are a dollar.
  const statuses = await volley(server, 200, { model: "priced", max_tokens: 40 });
  for (;;) {
    const { status } = await chat(server, { model: "priced", max_tokens: 40 });
    if (status !== 200) break;
    statuses[200] = (statuses[200] ?? 0) + 1;
  }
  expect(statuses[200]).toBe(20);
  expect(upstream.requests).toHaveLength(20);
});

// hardening: L5
test("keeps limits exact if the wall clock jumps an hour or a day in either direction", async () => {
  const { server, clock } = await start({
    requests_per_minute: 10,
    tokens_per_minute: 10_000,
    monthly_tokens: 1_000_000,
  });
  for (const seconds of [3_600, -3_600, 86_400, -86_400, -86_400, 86_400]) {
    expect(await volley(server, 20)).toEqual({ 200: 10, 429: 10 });
    clock.jump(seconds);
    expect(await volley(server, 20)).toEqual({ 429: 20 });
    clock.advance(60_000);
  }
});

// Workers go by the time of the machine, and this one is set.
test.skipIf(allWorkers !== undefined)("continues limits after a restart", async () => {
  const { server, clock, upstream } = await start({ requests_per_minute: 100 });
  expect(await volley(server, 120)).toEqual({ 200: 100, 429: 20 });
  const { config, key } = server;
  await server.close();
  const again = await startHeadrace({
    clock,
    dataDir: config.dataDir,
    flags: production,
    yaml: upstreamYaml(upstream, "tiers: [{ name: enterprise, requests_per_minute: 100, tokens_per_minute: null }]\n"),
  });
  stack.push(again);
  const status = async () => {
    const response = await fetch(`${again.url}/v1/chat/completions`, {
      method: "POST",
      headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
      body: JSON.stringify({ model: "upstream-model", messages: [{ role: "user", content: "x" }] }),
    });
    await response.text();
    return response.status;
  };
  const served = (await Promise.all(Array.from({ length: 20 }, status))).filter((code) => code === 200).length;
  // The ledger knows seconds: at most one second's refill may be granted twice.
  expect(served).toBeLessThanOrEqual(2);
});
