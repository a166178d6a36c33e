// What usage, account and limits say over HTTP after real requests: the figures that the model server reported, at once, or believable ones where it lied.
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { join } from "node:path";
import { openDatabase } from "../../src/storage/sql/database.ts";
import { openaiClient } from "../support/clients.ts";
import { startHeadrace, type TestServer, until } from "../support/headrace.ts";
import { type ManualClock, manualClock } from "../support/manual-clock.ts";
import { mintKey } from "../support/mint-key.ts";
import {
  chunk,
  json,
  type Script,
  type ScriptedUpstream,
  startUpstream,
  upstreamYaml,
} from "../support/scripted-upstream.ts";

const hour = 3_600;
const day = 24 * hour;
/** 15 September 2026, 12:00 UTC. */
const noon = Date.UTC(2026, 8, 15, 12) / 1000;
const messages = [{ role: "user" as const, content: "Hi" }];
const chat = { model: "upstream-model", messages };

let upstream: ScriptedUpstream;
let server: TestServer;
let clock: ManualClock;

beforeEach(async () => {
  upstream = await startUpstream(answering({ prompt_tokens: 1234, completion_tokens: 56, total_tokens: 1290 }));
  clock = manualClock(noon);
});
afterEach(async () => {
  await server[Symbol.asyncDispose]();
  await upstream[Symbol.asyncDispose]();
});

async function start(yaml = ""): Promise<void> {
  server = await startHeadrace({
    clock,
    flags: { mode: "production", publicUrl: "https://ai.example.com" },
    yaml: upstreamYaml(upstream, yaml),
  });
}

/** Reports this usage whatever was asked; a stream has it in its last chunk. */
function answering(usage: unknown, words: readonly string[] = ["Hello", " world"]): Script {
  return (request, res) => {
    if (request.body["input"] !== undefined) {
      const data = [{ object: "embedding", index: 0, embedding: [0.5, 0.25] }];
      json(res, 200, { object: "list", model: "upstream-model", data, usage });
      return;
    }
    const head = { id: "chatcmpl-up", created: 1_700_000_001, model: "upstream-model" };
    if (request.body["stream"] === true) {
      res.writeHead(200, { "content-type": "text/event-stream" });
      for (const word of words) res.write(chunk({ content: word }));
      res.write(chunk({}, "stop"));
      const last = { ...head, object: "chat.completion.chunk", choices: [], usage };
      res.end(`data: ${JSON.stringify(last)}\n\ndata: [DONE]\n\n`);
      return;
    }
    const text = words.join("");
    const choice =
      request.body["prompt"] === undefined
        ? { index: 0, message: { role: "assistant", content: text }, finish_reason: "stop" }
        : { index: 0, text, finish_reason: "stop" };
    const object = request.body["prompt"] === undefined ? "chat.completion" : "text_completion";
    json(res, 200, { ...head, object, choices: [choice], usage });
  };
}

interface Row {
  start: number;
  end: number;
  model?: string;
  key?: string;
  environment?: string;
  app?: string | null;
  requests: number;
  prompt_tokens: number;
  completion_tokens: number;
  total_tokens: number;
  cost: number;
  unpriced_requests: number;
  errors: number;
  first_token_ms: number | null;
  percentiles: unknown;
  tokens_per_second: number | null;
}

interface Report {
  object: string;
  data: Row[];
  next: string | null;
}

async function usage(search = "", by = server.key): Promise<Report> {
  const response = await server.request(`/v1/usage${search}`, { headers: { authorization: `Bearer ${by}` } });
  const body = (await response.json()) as Report;
  expect({ search, status: response.status, body: response.ok ? "" : body }).toEqual({ search, status: 200, body: "" });
  return body;
}

const figures = ({ requests, prompt_tokens, completion_tokens, total_tokens, errors }: Row) => ({
  requests,
  prompt_tokens,
  completion_tokens,
  total_tokens,
  errors,
});

/** The sums of everything so far. */
async function sums() {
  const { data } = await usage("?bucket=month");
  return data[0] ? figures(data[0]) : undefined;
}

interface AccountAnswer {
  limits: { requests_per_minute: number | null; tokens_per_minute: number | null };
  rate: Record<"requests" | "tokens", { limit: number; remaining: number; reset_seconds: number } | null>;
  quota: {
    period_start: number;
    period_end: number;
    tokens: { limit: number | null; used: number };
    spend: { limit: number | null; used: number };
  };
}

const account = async () => (await (await server.request("/v1/account")).json()) as AccountAnswer;

describe("usage figures equal those of the model server", () => {
  test("reports the model server's figures for whole answers, streams, completions and embeddings at once", async () => {
    await start();
    const client = openaiClient(server);
    await client.chat.completions.create(chat);
    expect(await sums()).toEqual({
      requests: 1,
      prompt_tokens: 1234,
      completion_tokens: 56,
      total_tokens: 1290,
      errors: 0,
    });
    await Array.fromAsync(await client.chat.completions.create({ ...chat, stream: true }));
    expect(await sums()).toMatchObject({ requests: 2, prompt_tokens: 2468, completion_tokens: 112 });
    const streamed = await client.chat.completions.create({
      ...chat,
      stream: true,
      stream_options: { include_usage: true },
    });
    const last = (await Array.fromAsync(streamed)).at(-1);
    expect(last?.usage).toEqual({ prompt_tokens: 1234, completion_tokens: 56, total_tokens: 1290 });
    expect(await sums()).toMatchObject({ requests: 3, prompt_tokens: 3702, completion_tokens: 168 });
    await client.completions.create({ model: "upstream-model", prompt: "Hi" });
    expect(await sums()).toMatchObject({ requests: 4, prompt_tokens: 4936, completion_tokens: 224 });
    upstream.script(answering({ prompt_tokens: 7, total_tokens: 7 }));
    await client.embeddings.create({ model: "upstream-model", input: "Hi" });
    expect(await sums()).toEqual({
      requests: 5,
      prompt_tokens: 4943,
      completion_tokens: 224,
      total_tokens: 5167,
      errors: 0,
    });
  });

  test("reports usage as soon as the client has its answer, fifty times and concurrently", async () => {
    await start();
    for (let i = 1; i <= 50; i++) {
      const response = await server.request("/v1/chat/completions", { body: { ...chat, stream: i % 2 === 0 } });
      await response.text();
      expect((await sums())?.requests).toBe(i);
    }
    await Promise.all(
      Array.from({ length: 50 }, async () => (await server.request("/v1/chat/completions", { body: chat })).text()),
    );
    expect((await sums())?.requests).toBe(100);
  });

  test("charges a client that leaves for what it was sent, without an error", async () => {
    await start();
    const gone = Promise.withResolvers<void>();
    upstream.script(async (_request, res) => {
      res.writeHead(200, { "content-type": "text/event-stream" });
      for (let i = 0; i < 5; i++) res.write(chunk({ content: ` word${i}` }));
      res.on("close", () => gone.resolve());
      await gone.promise;
    });
    const stream = await openaiClient(server).chat.completions.create({ ...chat, stream: true });
    let pieces = 0;
    for await (const _piece of stream) if (++pieces === 5) break;
    await gone.promise;
    const seen = await until(sums, "the usage of the cancelled request");
    expect(seen).toMatchObject({ requests: 1, completion_tokens: 5, errors: 0 });
    expect(seen.prompt_tokens).toBeGreaterThan(0);
  });

  test("charges nothing for a failure before the first token, the delivered part after it, and counts both as errors", async () => {
    await start();
    const client = openaiClient(server);
    upstream.script((_request, res) => json(res, 500, { error: { message: "broken" } }));
    await client.chat.completions.create(chat).catch(() => {});
    expect(await sums()).toEqual({ requests: 1, prompt_tokens: 0, completion_tokens: 0, total_tokens: 0, errors: 1 });
    const arrived = Promise.withResolvers<void>();
    upstream.script(async (_request, res) => {
      res.writeHead(200, { "content-type": "text/event-stream" });
      res.write(chunk({ content: "one" }));
      res.write(chunk({ content: " two" }));
      await arrived.promise;
      res.destroy();
    });
    const stream = await client.chat.completions.create({ ...chat, stream: true });
    let text = "";
    const broken = (async () => {
      for await (const piece of stream) {
        text += piece.choices[0]?.delta.content ?? "";
        if (text === "one two") arrived.resolve();
      }
    })();
    expect(await broken.catch(() => "raised")).toBe("raised");
    expect(await sums()).toMatchObject({ requests: 2, completion_tokens: 2, errors: 2 });
  });

  test("counts no request refused before admission", async () => {
    await start("tiers: [{ name: enterprise, requests_per_minute: 1, tokens_per_minute: null }]\n");
    const status = async (body: Record<string, unknown>, headers = {}) =>
      (await server.request("/v1/chat/completions", { body, headers })).status;
    expect(await status({ ...chat, temperature: 9 })).toBe(400);
    expect(await status({ ...chat, model: "none" })).toBe(404);
    expect(await status(chat, { authorization: "Bearer nonsense" })).toBe(401);
    expect(await status(chat)).toBe(200);
    expect(await status(chat)).toBe(429);
    expect(await sums()).toMatchObject({ requests: 1, errors: 0 });
  });
});

test("shows whole steps up to now, the previous period, and each limit's refusals in the overview", async () => {
  await start("tiers: [{ name: enterprise, requests_per_minute: 1, tokens_per_minute: null }]\n");
  const overview = async (range: string) => await (await server.request(`/v1/overview?range=${range}`)).json();
  const send = async () => (await server.request("/v1/chat/completions", { body: chat })).status;
  expect([await send(), await send()]).toEqual([200, 429]);
  const seen = { sum: { requests: 1, total_tokens: 1_290 }, before: { requests: 0 }, is_new: false };
  for (const [range, start, step] of [
    ["24h", noon - 23 * hour, hour],
    ["7d", noon - 27 * 6 * hour, 6 * hour],
    ["30d", noon - 12 * hour - 29 * day, day],
  ] as const) {
    expect(await overview(range)).toMatchObject({
      range,
      usage: { ...seen, start, step },
      throttled: [{ requests: 1 }],
    });
  }
  clock.advance(25 * hour * 1_000);
  expect(await overview("24h")).toMatchObject({ usage: { sum: { requests: 0 }, before: { requests: 1 } } });
});

describe("the usage report", () => {
  const models = (count: number) =>
    `models:\n${Array.from({ length: count }, (_, i) => `  - { id: "m${String(i).padStart(2, "0")}", deployments: [{ upstream: up, model: upstream-model }] }\n`).join("")}`;

  const use = async (model = "upstream-model", by = server.key) => {
    const response = await server.request("/v1/chat/completions", {
      body: { ...chat, model },
      headers: { authorization: `Bearer ${by}` },
    });
    expect(response.status).toBe(200);
    await response.text();
  };

  test("groups the report by model, key, environment and app, alone and together", async () => {
    await start(models(2));
    const other = await mintKey(server.dataDir, { scopes: ["chat:write"], environment: "live" });
    await use("m00");
    await use("m01");
    await use("m01", other);
    await use("m01", other);
    const grouped = async (groups: string) => (await usage(`?group_by=${groups}`)).data;
    expect((await grouped("model")).map(({ model, requests }) => [model, requests])).toEqual([
      ["m00", 1],
      ["m01", 3],
    ]);
    const byKey = await grouped("key");
    expect(byKey.map(({ requests }) => requests).sort()).toEqual([2, 2]);
    expect(byKey.every(({ key }) => key?.startsWith("key_"))).toBe(true);
    expect(await grouped("environment")).toMatchObject([{ environment: "live", requests: 4 }]);
    expect(await grouped("app")).toMatchObject([{ app: null, requests: 4, total_tokens: 4 * 1290 }]);
    const [first, second] = byKey.map(({ key }) => key);
    const requestsOf = async (query: string) => (await usage(`?${query}`)).data.map(({ requests }) => requests);
    expect(await requestsOf("model=m01")).toEqual([3]);
    expect(
      (await requestsOf(`model=m01&key=${first}`)).concat(await requestsOf(`model=m01&key=${second}`)).sort(),
    ).toEqual([1, 2]);
    expect(await requestsOf("key=key_of_another_account")).toEqual([]);
    expect(await requestsOf("app=app_1")).toEqual([]);
    const all = await grouped("key,model,environment,app");
    expect(all.map(({ requests }) => requests).sort()).toEqual([1, 1, 2]);
    expect(Object.keys(all[0] ?? {}).sort()).toEqual(
      [
        "start",
        "end",
        "key",
        "model",
        "environment",
        "app",
        "requests",
        "prompt_tokens",
        ...["cached_tokens", "cache_write_tokens", "completion_tokens", "reasoning_tokens"],
        "total_tokens",
        "cost",
        "unpriced_requests",
        "errors",
        "first_token_ms",
        "tokens_per_second",
        "percentiles",
      ].sort(),
    );
    const [plain] = (await usage()).data;
    expect(plain).toEqual({
      start: noon - 12 * hour,
      end: noon + 12 * hour,
      requests: 4,
      ...{ cached_tokens: 0, cache_write_tokens: 0, reasoning_tokens: 0 },
      prompt_tokens: 4 * 1234,
      completion_tokens: 4 * 56,
      total_tokens: 4 * 1290,
      cost: 0,
      unpriced_requests: 4,
      errors: 0,
      first_token_ms: null,
      tokens_per_second: null,
      percentiles: {
        first_token_ms: null,
        total_ms: expect.objectContaining({ counts: [{ up_to_ms: 20, answers: 4 }] }),
      },
    });
  });

  test("reports the time to the first token and the speed of streams", async () => {
    await start();
    await use();
    const first = Promise.withResolvers<void>();
    upstream.script(async (_request, res) => {
      clock.advance(250);
      res.writeHead(200, { "content-type": "text/event-stream" });
      res.write(chunk({ content: "Hello" }));
      await first.promise;
      res.write(chunk({}, "stop"));
      const usage = { prompt_tokens: 1234, completion_tokens: 56, total_tokens: 1290 };
      const last = { id: "x", object: "chat.completion.chunk", model: "upstream-model", choices: [], usage };
      res.end(`data: ${JSON.stringify(last)}\n\ndata: [DONE]\n\n`);
    });
    const stream = await openaiClient(server).chat.completions.create({ ...chat, stream: true });
    for await (const piece of stream) {
      if (piece.choices[0]?.delta.content !== "Hello") continue;
      clock.advance(2_000);
      first.resolve();
    }
    const timings = ({ requests, first_token_ms, tokens_per_second }: Row) => [
      requests,
      first_token_ms,
      tokens_per_second,
    ];
    expect((await usage()).data.map(timings)).toEqual([[2, 250, 27.5]]);
    const csv = await server.request("/v1/usage", { headers: { accept: "text/csv" } });
    expect(await csv.text()).toEndWith(",250,27.5,0,0,0,2,278,348,354,20,3401,3526\r\n");
  });

  test("accepts Unix seconds and ISO dates, and reports by hour, day and month", async () => {
    await start();
    // 12:00 and 13:59:59 on the 15th, 00:00 on the 16th, 00:00:01 on 1 October.
    await use();
    clock.advance((2 * hour - 1) * 1000);
    await use();
    clock.advance((10 * hour + 1) * 1000);
    await use();
    clock.advance((15 * day + 1) * 1000);
    await use();
    const hours = (await usage("?bucket=hour&start=2026-09-15&end=2026-09-17")).data;
    expect(hours.map(({ start, requests }) => [start, requests])).toEqual([
      [noon, 1],
      [noon + hour, 1],
      [noon + 12 * hour, 1],
    ]);
    const starts = async (search: string) => (await usage(search)).data.map(({ requests }) => requests);
    expect(await starts("?bucket=day")).toEqual([2, 1, 1]);
    expect(await starts("?bucket=month")).toEqual([3, 1]);
    expect(await starts("?start=2026-09-16&end=2026-09-17")).toEqual([1]);
    expect(await starts("?start=2026-09-15T13:00:00Z&end=2026-09-15T14:00:00Z&bucket=hour")).toEqual([1]);
    expect(await starts(`?start=${noon}&end=${noon + 1}&bucket=hour`)).toEqual([1]);
    expect(await starts(`?start=${noon - hour}&end=${noon}&bucket=hour`)).toEqual([]);
    expect(await starts("?start=2026-09-15T15:00:00%2B02:00&end=2026-09-15T16:00:00%2B02:00&bucket=hour")).toEqual([1]);
    expect(await starts("?start=2026-09-15T15:00:00+02:00&end=2026-09-15T16:00:00+02:00&bucket=hour")).toEqual([1]);
    expect(await starts("?start=2026-10-01")).toEqual([1]);
    expect(await starts("?start=2025-01-01&end=2026-01-01")).toEqual([]);
  });

  test.each(["hour", "day", "month"])(
    "includes a request at the very second in which a new %s begins in the report",
    async (bucket) => {
      await start();
      clock.advance((Date.UTC(2026, 9, 1) / 1000 - noon) * 1000);
      await use();
      expect((await usage(`?bucket=${bucket}`)).data).toMatchObject([{ requests: 1 }]);
    },
  );

  test.each([
    ["start=yesterday", /^start: must be Unix seconds or an ISO 8601 date/],
    ["start=2026-09-31", /^start: must be/],
    ["start=1790000000000", /^start: must be/],
    ["start=2026-09-16&end=2026-09-15", /^start: must be before end/],
    ["start=2027-01-01", /^start: must be before end, which is now by default/],
    ["bucket=week", /^bucket: must be hour, day or month/],
    ["bucket=hour&start=2020-01-01", /^start: must be at most 366 days before end/],
    ["group_by=user", /^group_by: must be one or several of model, key, environment, app/],
    ["group_by=model,model", /^group_by: must be/],
    ["group_by=model&group_by=key", /^group_by: appears twice/],
    ["cursor=abc", /^cursor: must be the `next` of a page/],
    ["limit=0", /^limit: must be a whole number from 1 to 1000/],
    ["from=2026-09-01", /^from: is no parameter of this endpoint; known are start, end, bucket, group_by/],
  ])("refuses %s in a report by its name", async (search, message) => {
    await start();
    const response = await server.request(`/v1/usage?${search}`);
    expect(response.status).toBe(400);
    const { error } = (await response.json()) as { error: { message: string; code: string } };
    expect(error.code).toBe("invalid_request");
    expect(error.message).toMatch(message);
  });

  test("pages the report consistently over many groups while usage grows", async () => {
    await start(models(30));
    for (let round = 0; round < 3; round++) {
      for (let i = 0; i < 30; i++) await use(`m${String(i).padStart(2, "0")}`);
      clock.advance(day * 1000);
    }
    const path = "?group_by=model,key&bucket=day";
    const whole = (await usage(path)).data;
    expect(whole).toHaveLength(90);
    for (const limit of [1, 7, 30, 89, 90]) {
      const seen: Row[] = [];
      let next: string | null = null;
      let pages = 0;
      do {
        const report: Report = await usage(`${path}&limit=${limit}${next === null ? "" : `&cursor=${next}`}`);
        expect(report.data.length).toBeLessThanOrEqual(limit);
        seen.push(...report.data);
        next = report.next;
        pages++;
      } while (next !== null);
      expect(pages).toBe(Math.ceil(90 / limit));
      expect(seen).toEqual(whole);
    }
    const first = await usage(`${path}&limit=50`);
    const wrong = await server.request(`/v1/usage?group_by=model&cursor=${first.next}`);
    expect(wrong.status).toBe(400);
    await use("m00");
    const rest = await usage(`${path}&limit=50&cursor=${first.next}`);
    expect(rest.data.length).toBe(41);
  });

  test("returns the whole report as CSV with the same figures", async () => {
    const formula = `  - { id: "=cmd|calc!A0", deployments: [{ upstream: up, model: upstream-model }] }\n`;
    await start(`${models(12)}${formula}`);
    for (let i = 0; i < 12; i++) await use(`m${String(i).padStart(2, "0")}`);
    await use("=cmd|calc!A0");
    const response = await server.request("/v1/usage?group_by=model&limit=5", { headers: { accept: "text/csv" } });
    expect(response.headers.get("content-type")).toBe("text/csv; charset=utf-8");
    const [head, ...lines] = (await response.text()).trimEnd().split("\r\n");
    expect(head).toBe(
      "start,end,model,requests,prompt_tokens,completion_tokens,total_tokens,cost,errors,first_token_ms,tokens_per_second,cached_tokens,cache_write_tokens,reasoning_tokens,unpriced_requests,first_token_p50_ms,first_token_p95_ms,first_token_p99_ms,total_p50_ms,total_p95_ms,total_p99_ms",
    );
    expect(lines).toHaveLength(13);
    expect(lines).toContain("2026-09-15T00:00:00Z,2026-09-16T00:00:00Z,m03,1,1234,56,1290,0,0,,,0,0,0,1,,,,10,19,20");
    expect(lines.some((line) => line.includes(",'=cmd|calc!A0,"))).toBe(true);
    const wrong = await server.request("/v1/usage?bucket=week", { headers: { accept: "text/csv" } });
    expect(wrong.status).toBe(400);
    expect(wrong.headers.get("content-type")).toStartWith("application/json");
  });

  test("reports exact cost at the model's price without exponents", async () => {
    await start(`models:
  - { id: cheap, price: { input: 0.15, output: 0.6 }, deployments: [{ upstream: up, model: upstream-model }] }
  - { id: dear, price: { input: 15, output: 75 }, deployments: [{ upstream: up, model: upstream-model }] }
  - { id: free, deployments: [{ upstream: up, model: upstream-model }] }
`);
    for (const model of ["cheap", "cheap", "dear", "free"]) await use(model);
    const { data } = await usage("?group_by=model");
    // 1,234 tokens of prompt and 56 of answer, by the million.
    expect(data.map(({ model, cost }) => [model, cost])).toEqual([
      ["cheap", 0.000_437_4],
      ["dear", 0.022_71],
      ["free", 0],
    ]);
    expect((await usage()).data[0]?.cost).toBe(0.023_147_4);
    const csv = await (await server.request("/v1/usage?group_by=model", { headers: { accept: "text/csv" } })).text();
    expect(csv).toContain(",cheap,2,2468,112,2580,0.0004374,0,,,0,0,0,0,,,,10,19,20\r\n");
    expect((await account()).quota.spend).toEqual({ limit: null, used: 0.023_147_4 });
  });

  test("reports the account's whole environment for a key with usage:read, and 403 without", async () => {
    await start();
    await use();
    const reader = await mintKey(server.dataDir, { scopes: ["usage:read"], environment: "live" });
    expect((await usage("", reader)).data).toMatchObject([{ requests: 1 }]);
    const writer = await mintKey(server.dataDir, { scopes: ["chat:write"], environment: "live" });
    for (const path of ["/v1/usage", "/v1/account", "/v1/tiers"]) {
      const refused = await server.request(path, { headers: { authorization: `Bearer ${writer}` } });
      expect(refused.status).toBe(403);
    }
  });
});

describe("GET /v1/account", () => {
  const tier =
    "tiers: [{ name: enterprise, requests_per_minute: 10, tokens_per_minute: 60000, monthly_tokens: 5000, monthly_spend: 1 }]\n";

  test("updates GET /v1/account with every request and over time", async () => {
    await start(tier);
    const before = await account();
    expect(before).toMatchObject({
      limits: { requests_per_minute: 10, tokens_per_minute: 60_000 },
      rate: {
        requests: { limit: 10, remaining: 10, reset_seconds: 0 },
        tokens: { limit: 60_000, remaining: 60_000, reset_seconds: 0 },
      },
      quota: {
        period_start: Date.UTC(2026, 8, 1) / 1000,
        period_end: Date.UTC(2026, 9, 1) / 1000,
        usage_of: "account",
        tokens: { limit: 5000, used: 0 },
        spend: { limit: 1, used: 0 },
      },
    });
    const use = async () => {
      const response = await server.request("/v1/chat/completions", { body: { ...chat, max_tokens: 100 } });
      await response.text();
      return response.status;
    };
    expect(await use()).toBe(200);
    expect(await use()).toBe(200);
    expect(await account()).toMatchObject({
      rate: {
        requests: { limit: 10, remaining: 8, reset_seconds: 12 },
        tokens: { limit: 60_000, remaining: 60_000 - 2580, reset_seconds: 3 },
      },
      quota: { tokens: { used: 2580 } },
    });
    clock.advance(6_000);
    expect(await account()).toMatchObject({
      rate: { requests: { remaining: 9, reset_seconds: 6 }, tokens: { remaining: 60_000 } },
      quota: { tokens: { used: 2580 } },
    });
    expect([await use(), await use(), await use()]).toEqual([200, 200, 403]);
    expect((await account()).quota.tokens).toEqual({ limit: 5000, used: 5160 });
    clock.advance(16 * day * 1000);
    expect((await account()).quota).toMatchObject({ period_start: Date.UTC(2026, 9, 1) / 1000, tokens: { used: 0 } });
    expect(await use()).toBe(200);
  });

  test("agrees with the last answer's headers in GET /v1/account", async () => {
    await start(tier);
    const { response } = await openaiClient(server)
      .chat.completions.create({ ...chat, max_tokens: 100 })
      .withResponse();
    const { rate } = await account();
    expect(String(rate.requests?.remaining)).toBe(response.headers.get("x-ratelimit-remaining-requests") ?? "");
    expect(String(rate.requests?.limit)).toBe(response.headers.get("x-ratelimit-limit-requests") ?? "");
  });

  test("refunds a failed request's tokens, but not the request, in GET /v1/account", async () => {
    await start(tier);
    upstream.script((_request, res) => json(res, 500, { error: { message: "broken" } }));
    await (await server.request("/v1/chat/completions", { body: { ...chat, max_tokens: 4000 } })).text();
    expect(await account()).toMatchObject({
      rate: { requests: { remaining: 9 }, tokens: { remaining: 60_000 } },
      quota: { tokens: { used: 0 } },
    });
  });

  test("continues GET /v1/account after a restart", async () => {
    await start(tier);
    await (await server.request("/v1/chat/completions", { body: chat })).text();
    const { dataDir, key } = server;
    await server.close();
    const again = await startHeadrace({
      clock,
      dataDir,
      flags: { mode: "production", publicUrl: "https://ai.example.com" },
      yaml: upstreamYaml(upstream, tier),
    });
    const headers = { authorization: `Bearer ${key}` };
    const answer = (await (await again.request("/v1/account", { headers })).json()) as AccountAnswer;
    await again.close();
    expect(answer.quota.tokens.used).toBe(1290);
    expect(answer.rate.requests?.remaining).toBeLessThanOrEqual(9);
  });
});

describe("a model server that reports impossible usage", () => {
  const tier =
    "tiers: [{ name: enterprise, requests_per_minute: null, tokens_per_minute: 10000, monthly_tokens: 50000 }]\n";
  interface Recorded {
    prompt_tokens: number;
    completion_tokens: number;
    estimated: number;
    capped: number;
  }

  async function recorded(): Promise<Recorded[]> {
    await usage();
    const db = await openDatabase(join(server.dataDir, "headrace.db"));
    const rows: Recorded[] =
      await db`SELECT prompt_tokens, completion_tokens, estimated, capped FROM usage_records ORDER BY request_id`;
    await db.close();
    return rows.map((row) => ({
      prompt_tokens: Number(row.prompt_tokens),
      completion_tokens: Number(row.completion_tokens),
      estimated: Number(row.estimated),
      capped: Number(row.capped),
    }));
  }

  const ways: [name: string, body: Record<string, unknown>, path: string][] = [
    ["whole", { ...chat, max_tokens: 20 }, "/v1/chat/completions"],
    ["streamed", { ...chat, max_tokens: 20, stream: true }, "/v1/chat/completions"],
    [
      "streamed with usage",
      { ...chat, max_tokens: 20, stream: true, stream_options: { include_usage: true } },
      "/v1/chat/completions",
    ],
    ["completion", { model: "upstream-model", prompt: "Hi", max_tokens: 20 }, "/v1/completions"],
    ["embedding", { model: "upstream-model", input: "Hi" }, "/v1/embeddings"],
  ];

  test.each(ways)("caps and flags too large reported usage: %s", async (name, body, path) => {
    await start(tier);
    for (const huge of [1e12, 9_007_199_254_740_991]) {
      upstream.script(answering({ prompt_tokens: huge, completion_tokens: huge, total_tokens: 2 * huge }));
      const response = await server.request(path, { body });
      expect(response.status).toBe(200);
      await response.text();
      const row = (await recorded()).at(-1);
      expect(row).toMatchObject({ completion_tokens: name === "embedding" ? 0 : 20, estimated: 0, capped: 1 });
      // The bytes of the body, and what a template may add.
      expect(row?.prompt_tokens).toBeWithin(1, JSON.stringify(body).length + 4_097);
    }
    const { rate, quota } = await account();
    expect(quota.tokens.used).toBeLessThan(10_000);
    expect(rate.tokens?.remaining).toBeGreaterThan(0);
    clock.advance(60_000);
    upstream.script(answering({ prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 }));
    expect((await server.request(path, { body })).status).toBe(200);
  });

  const nonsense: [name: string, reported: unknown][] = [
    ["negative", { prompt_tokens: -1000, completion_tokens: -1000, total_tokens: -2000 }],
    ["fractions", { prompt_tokens: 1.5, completion_tokens: 2.5, total_tokens: 4 }],
    ["strings", { prompt_tokens: "12", completion_tokens: "1000000", total_tokens: "1000012" }],
    ["beyond whole numbers", { prompt_tokens: 1e300, completion_tokens: 1e300, total_tokens: 1e300 }],
    ["null", { prompt_tokens: null, completion_tokens: null, total_tokens: null }],
    ["objects", { prompt_tokens: {}, completion_tokens: [], total_tokens: true }],
    ["no object", "lots"],
    ["a list", [1, 2]],
    ["nothing", undefined],
  ];

  test.each(nonsense)(
    "estimates usage from the text if the server reports unusable counts: %s",
    async (_name, reported) => {
      await start(tier);
      upstream.script(answering(reported));
      for (const [, body, path] of ways) {
        const response = await server.request(path, { body });
        expect(response.status).toBe(200);
        await response.text();
      }
      const rows = await recorded();
      expect(rows).toHaveLength(ways.length);
      for (const row of rows) {
        expect(row).toMatchObject({ estimated: 1, capped: 0 });
        expect(row.prompt_tokens).toBeWithin(1, 10);
        expect(row.completion_tokens).toBeWithin(0, 10);
      }
      expect((await account()).quota.tokens.used).toBeWithin(5, 100);
    },
  );

  test("rejects an impossible completion count beside a sound prompt, and a negative one refunds nothing", async () => {
    await start(tier);
    upstream.script(answering({ prompt_tokens: 5, completion_tokens: -9_999_999, total_tokens: -9_999_994 }));
    for (const [, body, path] of ways) await (await server.request(path, { body })).text();
    const { rate, quota } = await account();
    expect(quota.tokens.used).toBeGreaterThan(0);
    expect(rate.tokens?.remaining).toBeLessThan(10_000);
    for (const { data } of [await usage()]) for (const row of data) expect(row.total_tokens).toBeGreaterThan(0);
  });

  test("reports to the client the booked usage, or marks an estimate", async () => {
    await start(tier);
    upstream.script(answering({ prompt_tokens: -5, completion_tokens: 1.5, total_tokens: 1 }));
    const response = await server.request("/v1/chat/completions", { body: { ...chat, max_tokens: 20 } });
    const reported = ((await response.json()) as { usage: Record<string, unknown> }).usage;
    const [row] = await recorded();
    expect(reported).toEqual({
      prompt_tokens: row?.prompt_tokens,
      completion_tokens: row?.completion_tokens,
      total_tokens: (row?.prompt_tokens ?? 0) + (row?.completion_tokens ?? 0),
      estimated: true,
    });
  });

  test("bounds and passes a false report without max_tokens and context", async () => {
    await start(tier);
    upstream.script(answering({ prompt_tokens: 1, completion_tokens: 1e12, total_tokens: 1e12 }));
    await (await server.request("/v1/chat/completions", { body: chat })).text();
    const [row] = await recorded();
    expect(row).toMatchObject({ completion_tokens: 262_144, capped: 1 });
    const { rate } = await account();
    expect(rate.tokens).toMatchObject({ remaining: 0 });
    expect(rate.tokens?.reset_seconds).toBeLessThan(30 * 60);
  });

  test("ignores impossible cost figures of a model server", async () => {
    const price = "price: { input: 1, output: 1 }";
    await start(
      `models: [{ id: priced, context: 8192, ${price}, deployments: [{ upstream: up, model: upstream-model }] }]\n`,
    );
    upstream.script(answering({ prompt_tokens: 1e12, completion_tokens: 1e12, total_tokens: 2e12 }));
    await (await server.request("/v1/chat/completions", { body: { ...chat, model: "priced" } })).text();
    const [row] = (await usage("?group_by=model")).data;
    expect(row?.cost).toBeLessThan(0.02);
    expect((await account()).quota.spend.used).toBe(row?.cost ?? -1);
  });
});
