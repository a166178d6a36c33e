import { afterAll, beforeAll, expect, test } from "bun:test";
import { type LoadGenerator, startLoadGenerator } from "./load.ts";
import { type MockUpstream, startMock } from "./mock.ts";
import { chatRequest, eventsOf, upstreamModel } from "./workload.ts";

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

const job = (plan?: { chunks: number; paceMs: number }, events = plan ? eventsOf(plan) : 0) => ({
  port: mock.port,
  key: "unused",
  body: chatRequest(upstreamModel, plan),
  connections: 3,
  windowMs: 30_000,
  maxRequests: 30,
  events,
});

test("sends no more requests than it may, and counts what the upstream counted", async () => {
  const before = await mock.counters();
  const result = await load.run(job());
  expect(result).toMatchObject({ requests: 30, errors: {} });
  expect((await mock.counters()).requests - before.requests).toBe(30);
  expect(result.p99Ms).toBeGreaterThanOrEqual(result.p50Ms);
});

test("streams arrive whole, at full speed and paced", async () => {
  for (const paceMs of [0, 1]) {
    const plan = { chunks: 20, paceMs };
    const result = await load.run(job(plan));
    expect(result).toMatchObject({ requests: 30, events: 30 * eventsOf(plan), errors: {} });
    // Ten streams one after another, at least 19 pauses each.
    if (paceMs > 0) expect(result.seconds).toBeGreaterThan(0.19);
  }
});

test("a stream with events missing is an error, not a figure", async () => {
  const result = await load.run(job({ chunks: 20, paceMs: 0 }, 24));
  expect(result).toMatchObject({ requests: 0, errors: { "23 events for 24": 30 } });
});

test("a target that does not listen is an error, not a figure", async () => {
  const result = await load.run({ ...job(), port: 1 });
  expect(result).toMatchObject({ requests: 0, errors: { "cannot connect": 3 } });
});
