// Limits and quotas as the `openai` package meets them: its errors, its headers, and its own retries, which wait as long as they are told.
import { afterAll, afterEach, beforeAll, describe, expect, test } from "bun:test";
import type OpenAI from "openai";
import { type APIError, PermissionDeniedError, RateLimitError } from "openai";
import { openaiClient } from "../support/clients.ts";
import { startHeadrace, type TestServer } from "../support/headrace.ts";
import { type ManualClock, manualClock } from "../support/manual-clock.ts";
import { expectBody, raised } from "../support/openai-errors.ts";
import { embeddingScript } from "../support/scripted-answers.ts";
import { chatScript, json, type ScriptedUpstream, startUpstream, upstreamYaml } from "../support/scripted-upstream.ts";

const messages = [{ role: "user" as const, content: "Hi" }];
const request = { model: "upstream-model", messages };
const production = { mode: "production", publicUrl: "http://127.0.0.1:7545" };

let upstream: ScriptedUpstream;
const open: AsyncDisposable[] = [];

beforeAll(async () => {
  upstream = await startUpstream();
});
afterEach(async () => {
  for (const part of open.splice(0).reverse()) await part[Symbol.asyncDispose]();
  upstream.script(chatScript());
  upstream.requests.length = 0;
});
afterAll(() => upstream[Symbol.asyncDispose]());

/** Live, as development has no limits; the first account's tier has these figures. */
async function limited(tier: Record<string, number>, more = "", clock?: ManualClock): Promise<TestServer> {
  const figures = { name: "enterprise", requests_per_minute: null, tokens_per_minute: null, ...tier };
  const server = await startHeadrace({
    flags: production,
    yaml: upstreamYaml(upstream, `tiers: [${JSON.stringify(figures)}]\n${more}`),
    ...(clock ? { clock } : {}),
  });
  open.push(server);
  return server;
}

async function keyOf(server: TestServer, body: Record<string, unknown>): Promise<string> {
  const response = await server.request("/v1/keys", { body: { name: "limited", ...body } });
  expect(response.status).toBe(200);
  return ((await response.json()) as { key: string }).key;
}

/** A client that keeps every answer, those of its own retries too. */
function watched(server: TestServer, apiKey: string, maxRetries: number): { client: OpenAI; seen: Response[] } {
  const seen: Response[] = [];
  const client = openaiClient(server, {
    apiKey,
    maxRetries,
    async fetch(url: string | URL | Request, init?: RequestInit) {
      const response = await fetch(url, init);
      seen.push(response.clone());
      return response;
    },
  });
  return { client, seen };
}

describe("a rate limit", () => {
  test("raises a RateLimitError with the limit, its value and the wait time, in words and headers", async () => {
    const clock = manualClock();
    const server = await limited({ requests_per_minute: 1 }, "", clock);
    const client = openaiClient(server);
    await client.chat.completions.create(request);
    const calls: Record<string, () => PromiseLike<unknown>> = {
      chat: () => client.chat.completions.create(request),
      stream: () => client.chat.completions.create({ ...request, stream: true }),
      completion: () => client.completions.create({ model: "upstream-model", prompt: "Hi" }),
      embedding: () => client.embeddings.create({ model: "upstream-model", input: "Hi" }),
    };
    for (const call of Object.values(calls)) {
      const error = await raised(call, RateLimitError);
      await expectBody(server, error, 429, "rate_limit_exceeded", "rate_limit_error");
      expect(error.message).toBe(
        "429 The rate limit of the account is reached: 1 request per minute. Retry in 60 seconds.",
      );
      expect(error.headers.get("retry-after")).toBe("60");
      expect(error.headers.get("retry-after-ms")).toBe("60000");
      expect(error.headers.get("x-ratelimit-limit-requests")).toBe("1");
      expect(error.headers.get("x-ratelimit-remaining-requests")).toBe("0");
      expect(error.headers.get("x-ratelimit-reset-requests")).toBe("1m0s");
      expect(error.headers.get("x-ratelimit-limit-tokens")).toBeNull();
    }
    // What is no inference is not limited, nor does it count.
    for (let i = 0; i < 5; i++) await client.models.list();
    clock.advance(60_000);
    await client.chat.completions.create(request);
  });

  test("names the tokens that a request needs in a token rate limit's error", async () => {
    const server = await limited({ tokens_per_minute: 600 }, "", manualClock());
    const client = openaiClient(server);
    await client.chat.completions.create({ ...request, max_tokens: 500 });
    await client.chat.completions.create({ ...request, max_tokens: 500 });
    // 9 tokens each were used of the two.
    const error = await raised(
      () => client.chat.completions.create({ ...request, max_completion_tokens: 599 }),
      RateLimitError,
    );
    await expectBody(server, error, 429, "rate_limit_exceeded", "rate_limit_error");
    expect(error.message).toContain("600 tokens per minute. This request needs 600. Retry in 1.8 seconds.");
    expect(error.headers.get("x-ratelimit-remaining-tokens")).toBe("582");
    expect(error.headers.get("x-ratelimit-reset-tokens")).toBe("2s");
  });

  test("makes the SDK wait for retry-after-ms on a rate limit, then succeed", async () => {
    const server = await limited({});
    const key = await keyOf(server, { rate_limit: 2, rate_limit_window: 1 });
    const { client, seen } = watched(server, key, 2);
    const startedMs = performance.now();
    for (let i = 0; i < 3; i++) await client.chat.completions.create(request);
    const tookMs = performance.now() - startedMs;
    const refusals = seen.filter(({ status }) => status === 429);
    expect(seen.map(({ status }) => status)).toEqual([200, 200, 429, 200]);
    const waitMs = Number(refusals[0]?.headers.get("retry-after-ms"));
    expect(waitMs).toBeWithin(100, 501);
    expect(tookMs).toBeGreaterThanOrEqual(waitMs);
    expect(refusals[0]?.headers.get("x-should-retry")).not.toBe("false");
    expect(upstream.requests).toHaveLength(3);
  });

  test("makes the SDK wait out a rate limit for a stream and for embeddings", async () => {
    const server = await limited({});
    const key = await keyOf(server, { rate_limit: 4, rate_limit_window: 4 });
    const { client, seen } = watched(server, key, 2);
    await Promise.all(Array.from({ length: 4 }, () => client.chat.completions.create(request)));
    const stream = await client.chat.completions.create({ ...request, stream: true });
    const pieces = await Array.fromAsync(stream, (piece) => piece.choices[0]?.delta.content ?? "");
    expect(pieces.join("")).toBe("Hello world");
    upstream.script(embeddingScript("float"));
    expect((await client.embeddings.create({ model: "upstream-model", input: "Hi" })).data).toHaveLength(1);
    expect(seen.map(({ status }) => status)).toEqual([200, 200, 200, 200, 429, 200, 429, 200]);
  });

  test("serves every one of many clients that retry on a rate limit", async () => {
    const server = await limited({});
    const key = await keyOf(server, { rate_limit: 20, rate_limit_window: 1 });
    // All that are refused together are told the same time, at which one of them gets in: that makes ten rounds.
    const { client } = watched(server, key, 20);
    const answers = await Promise.all(Array.from({ length: 30 }, () => client.chat.completions.create(request)));
    expect(answers).toHaveLength(30);
    expect(upstream.requests).toHaveLength(30);
  });
});

describe("the SDK does not retry", () => {
  async function once(server: TestServer, body: Record<string, unknown>, of: typeof RateLimitError): Promise<APIError>;
  async function once(
    server: TestServer,
    body: Record<string, unknown>,
    of: typeof PermissionDeniedError,
  ): Promise<APIError>;
  async function once(
    server: TestServer,
    body: Record<string, unknown>,
    of: typeof RateLimitError | typeof PermissionDeniedError,
  ): Promise<APIError> {
    const { client, seen } = watched(server, server.key, 2);
    const error = await raised<APIError>(() => client.chat.completions.create({ ...request, ...body }), of);
    expect(seen).toHaveLength(1);
    expect(error.headers?.get("x-should-retry")).toBe("false");
    expect(error.headers?.get("retry-after")).toBeNull();
    return error;
  }

  test("does not retry a request larger than the whole bucket, and says what to change", async () => {
    const server = await limited({ tokens_per_minute: 1_000 });
    const error = await once(server, { max_tokens: 2_000 }, RateLimitError);
    await expectBody(server, error, 429, "rate_limit_exceeded", "rate_limit_error");
    expect(error.message).toMatch(
      /needs 2,00\d tokens, more than the rate limit of the account allows at once: 1,000 tokens per minute\. Send .*max_tokens/,
    );
    await openaiClient(server).chat.completions.create({ ...request, max_tokens: 900 });
    expect(upstream.requests).toHaveLength(1);
  });

  test("does not retry an exhausted token quota, a PermissionDeniedError with insufficient_quota", async () => {
    const server = await limited({ monthly_tokens: 12 });
    const client = openaiClient(server);
    await client.chat.completions.create({ ...request, max_tokens: 2 });
    for (const stream of [false, true]) {
      const error = await once(server, { max_tokens: 4, stream }, PermissionDeniedError);
      await expectBody(server, error, 403, "insufficient_quota", "insufficient_quota");
      expect(error.message).toMatch(/monthly quota of the account .* 9 tokens of 12 tokens are used in \d{4}-\d\d/);
      // It is no matter of scopes.
      expect(error.headers?.get("www-authenticate")).toBeNull();
    }
    expect(upstream.requests).toHaveLength(1);
    expect((await client.models.list()).data).toHaveLength(1);
  });

  test("does not retry an exhausted money quota", async () => {
    const price = "{ input: 1000000, output: 1000000 }";
    const models = `models: [{ id: dear, price: ${price}, deployments: [{ upstream: up, model: upstream-model }] }]\n`;
    const server = await limited({ monthly_spend: 9.5 }, models);
    const client = openaiClient(server);
    await client.chat.completions.create({ ...request, model: "dear", max_tokens: 2 });
    const error = await once(server, { model: "dear", max_tokens: 2 }, PermissionDeniedError);
    expect(error.message).toMatch(/9\.00 USD of 9\.50 USD are used/);
    await client.chat.completions.create(request);
  });

  test("does not retry an exhausted quota of one key, while the account's other keys work", async () => {
    const server = await limited({});
    const key = await keyOf(server, { monthly_tokens: 10 });
    const own = openaiClient(server, { apiKey: key, maxRetries: 2 });
    await own.chat.completions.create({ ...request, max_tokens: 2 });
    const error = await raised(() => own.chat.completions.create({ ...request, max_tokens: 2 }), PermissionDeniedError);
    expect(error.message).toContain("monthly quota of the key");
    await openaiClient(server).chat.completions.create(request);
    expect(upstream.requests).toHaveLength(2);
  });
});

describe("x-ratelimit headers", () => {
  const limitHeaders = (response: Response) =>
    Object.fromEntries([...response.headers].filter(([name]) => name.startsWith("x-ratelimit-")));

  test("sends rate limit headers with every kind of answer, streams included", async () => {
    const server = await limited({ requests_per_minute: 10, tokens_per_minute: 6_000 }, "", manualClock());
    const client = openaiClient(server);
    const plain = await client.chat.completions.create({ ...request, max_tokens: 99 }).withResponse();
    const figures = {
      "x-ratelimit-limit-requests": "10",
      "x-ratelimit-remaining-requests": "9",
      "x-ratelimit-reset-requests": "6s",
      "x-ratelimit-limit-tokens": "6000",
      // What is set aside, until the answer tells what was used.
      "x-ratelimit-remaining-tokens": "5900",
      "x-ratelimit-reset-tokens": "1s",
    };
    expect(limitHeaders(plain.response)).toEqual(figures);
    expect(plain.request_id).toMatch(/^req_/);
    const streamed = await client.chat.completions
      .create({ ...request, max_tokens: 99, stream: true, stream_options: { include_usage: true } })
      .withResponse();
    // The first took 9.
    expect(limitHeaders(streamed.response)).toEqual({
      ...figures,
      "x-ratelimit-remaining-requests": "8",
      "x-ratelimit-reset-requests": "12s",
      "x-ratelimit-remaining-tokens": "5891",
      "x-ratelimit-reset-tokens": "2s",
    });
    await Array.fromAsync(streamed.data);
    upstream.script(embeddingScript("float"));
    const embedded = await client.embeddings.create({ model: "upstream-model", input: "Hi there" }).withResponse();
    expect(embedded.response.headers.get("x-ratelimit-remaining-requests")).toBe("7");
    expect(embedded.response.headers.get("x-ratelimit-remaining-tokens")).toBe("5980");
  });

  test("sends rate limit headers with admitted requests that fail, and with no others", async () => {
    const server = await limited({ requests_per_minute: 10 }, "", manualClock());
    const client = openaiClient(server);
    upstream.script((_incoming, res) => json(res, 500, { error: { message: "broken" } }));
    const error = await client.chat.completions.create(request).catch((thrown: APIError) => thrown as APIError);
    expect((error as APIError).headers?.get("x-ratelimit-remaining-requests")).toBe("9");
    const list = await client.models.list().withResponse();
    expect(limitHeaders(list.response)).toEqual({});
  });

  test("describes the tighter of the key's and the account's limit in rate limit headers", async () => {
    const server = await limited({ requests_per_minute: 10 }, "", manualClock());
    const client = openaiClient(server, { apiKey: await keyOf(server, { rate_limit: 3, rate_limit_window: 30 }) });
    const { response } = await client.chat.completions.create(request).withResponse();
    expect(limitHeaders(response)).toEqual({
      "x-ratelimit-limit-requests": "3",
      "x-ratelimit-remaining-requests": "2",
      "x-ratelimit-reset-requests": "10s",
    });
    const others = openaiClient(server);
    for (let i = 0; i < 8; i++) await others.chat.completions.create(request);
    const last = await client.chat.completions.create(request).withResponse();
    expect(limitHeaders(last.response)).toEqual({
      "x-ratelimit-limit-requests": "10",
      "x-ratelimit-remaining-requests": "0",
      "x-ratelimit-reset-requests": "1m0s",
    });
    const error = await raised(() => client.chat.completions.create(request), RateLimitError);
    expect(error.message).toContain("The rate limit of the account is reached: 10 requests per minute.");
  });

  test("sends no rate limit headers without limits", async () => {
    await using server = await startHeadrace({ yaml: upstreamYaml(upstream) });
    const { response } = await openaiClient(server).chat.completions.create(request).withResponse();
    expect(limitHeaders(response)).toEqual({});
  });

  test("exposes rate limit headers to web pages of an allowed origin", async () => {
    const server = await limited({ requests_per_minute: 10 }, "cors: { origins: ['https://app.example.com'] }\n");
    const response = await server.request("/v1/chat/completions", {
      body: request,
      headers: { origin: "https://app.example.com" },
    });
    const exposed = response.headers.get("access-control-expose-headers") ?? "";
    for (const name of ["x-request-id", "retry-after", "retry-after-ms", "x-ratelimit-remaining-requests"]) {
      expect(exposed.toLowerCase().split(/, */)).toContain(name);
    }
  });
});
