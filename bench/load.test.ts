import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type LoadGenerator, startLoadGenerator } from "./load.ts";
import { type MockUpstream, startMock } from "./mock.ts";
import { chatRequest, completionTokens, eventsOf, promptTokens, upstreamModel } from "./workload.ts";

let mock: MockUpstream;
let load: LoadGenerator;

beforeAll(async () => {
  mock = await startMock();
  load = startLoadGenerator();
});

afterAll(async () => {
  await load[Symbol.asyncDispose]();
  await mock[Symbol.asyncDispose]();
});

const requestsSeen = async () => (await mock.counters()).sources[""]?.requests ?? 0;

const job = (plan?: { chunks: number; paceMs: number }, events = plan ? eventsOf(plan) : 0) => ({
  port: mock.port,
  key: "unused",
  body: chatRequest(upstreamModel, plan),
  connections: 3,
  windowMs: 30_000,
  maxRequests: 30,
  events,
});

test("sends at most the allowed requests, and counts what the upstream counted", async () => {
  const before = await requestsSeen();
  const result = await load.run(job());
  expect(result).toMatchObject({ requests: 30, errors: {} });
  expect((await requestsSeen()) - before).toBe(30);
  expect(result.p99Ms).toBeGreaterThanOrEqual(result.p50Ms);
});

test("receives streams whole, at full speed and paced", async () => {
  for (const paceMs of [0, 1]) {
    const plan = { chunks: 20, paceMs };
    const result = await load.run(job(plan));
    expect(result).toMatchObject({ requests: 30, events: 30 * eventsOf(plan), errors: {} });
    // Ten streams one after another, at least 19 pauses each.
    if (paceMs > 0) expect(result.seconds).toBeGreaterThan(0.19);
  }
});

test("reports a stream with missing events as an error instead of a figure", async () => {
  const result = await load.run(job({ chunks: 20, paceMs: 0 }, 24));
  expect(result).toMatchObject({ requests: 0, errors: { "23 events for 24": 30 } });
});

test("reports an unreachable target as an error instead of a figure", async () => {
  const result = await load.run({ ...job(), port: 1 });
  expect(result).toMatchObject({ requests: 0, errors: { "cannot connect": 3 } });
});

test("counts the mock upstream's requests by path, and the tokens that it reported", async () => {
  const result = await load.run({ ...job(), path: "/someone/v1/chat/completions" });
  expect(result).toMatchObject({ requests: 30, errors: {} });
  const { sources } = await mock.counters();
  expect(sources["someone"]).toEqual({
    requests: 30,
    streams: 0,
    promptTokens: 30 * promptTokens,
    completionTokens: 30 * completionTokens,
  });
});

test("sends a body of a megabyte whole", async () => {
  const body = chatRequest(upstreamModel, undefined, 1_000_000);
  expect(Math.abs(body.length - 1_000_000)).toBeLessThan(100);
  expect(await load.run({ ...job(), body })).toMatchObject({ requests: 30, errors: {} });
});

test("receives paced chunks one by one, and chunks at full speed together", async () => {
  const paced = await load.run(job({ chunks: 20, paceMs: 5 }));
  expect(paced.reads / paced.requests).toBeGreaterThan(5);
  const whole = await load.run(job({ chunks: 20, paceMs: 0 }));
  expect(whole.reads).toBeGreaterThanOrEqual(whole.requests);
  expect(whole.reads).toBeLessThan(whole.events / 2);
});

test("rotates keys and models, or uses each once on request", async () => {
  const directory = mkdtempSync(join(tmpdir(), "headrace-bench-load-"));
  const keysFile = join(directory, "keys.txt");
  const seen: string[] = [];
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    async fetch(request) {
      const { model } = (await request.json()) as { model: string };
      seen.push(`${request.headers.get("authorization")} ${model}`);
      return Response.json({ model });
    },
  });
  try {
    writeFileSync(keysFile, "key-1\nkey-2\nkey-3");
    const models = ["model-1", "model-2", "model-3"];
    const body = chatRequest("model-1");
    const common = { ...job(), port: server.port ?? 0, key: "key-1", keysFile, models, body };
    expect(await load.run({ ...common, inOrder: true, maxRequests: 3 })).toMatchObject({ requests: 3, errors: {} });
    expect(seen.toSorted()).toEqual([1, 2, 3].map((n) => `Bearer key-${n} model-${n}`));
    seen.length = 0;
    await load.run({ ...common, maxRequests: 200 });
    expect(new Set(seen).size).toBe(9);
  } finally {
    await server.stop(true);
    rmSync(directory, { recursive: true });
  }
});

test("holds streams open while other jobs run", async () => {
  const body = chatRequest(upstreamModel, { chunks: 1, paceMs: 0, hold: true });
  expect(await load.hold({ ...job(), body, connections: 50 })).toBe(50);
  expect(await load.run(job())).toMatchObject({ requests: 30, errors: {} });
  await load.release();
});
