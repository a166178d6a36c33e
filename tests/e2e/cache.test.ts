// Answers that are given again: to whom, how they look, what they cost, and what is never kept.
import { afterAll, beforeAll, beforeEach, expect, test } from "bun:test";
import OpenAI from "openai";
import { mintKey } from "../support/mint-key.ts";
import { type ManualClock, manualClock } from "../support/manual-clock.ts";
import { startHeadrace, type TestServer } from "../support/headrace.ts";
import { chatScript, json, type ScriptedUpstream, startUpstream, upstreamYaml } from "../support/scripted-upstream.ts";

let upstream: ScriptedUpstream;
let server: TestServer;
let clock: ManualClock;

const models = `
models:
  - id: kept
    price: { input: 1, output: 10 }
    deployments: [{ upstream: up, model: upstream-model }]
    policies: { cache: { requests: deterministic, ttl_seconds: 60, price_factor: 0.5 } }
  - id: plain
    deployments: [{ upstream: up, model: upstream-model }]
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
  messages: [{ role: "user", content: `Question ${++question}` }],
  ...more,
});

const ask = (body: unknown, headers: Record<string, string> = {}, path = "/v1/chat/completions") =>
  server.request(path, { body, headers });

test("the same request gets the same answer again, under an id of its own, marked, and no model is asked", async () => {
  const body = asked();
  const first = await ask(body);
  const whole = (await first.json()) as Record<string, unknown>;
  clock.advance(7_000);
  const second = await ask({ ...body, user: "somebody", metadata: { a: "b" } });
  const again = (await second.json()) as Record<string, unknown>;
  expect(upstream.requests).toHaveLength(1);
  expect([first.headers.get("x-headrace-cache"), second.headers.get("x-headrace-cache")]).toEqual(["miss", "hit"]);
  expect([first.headers.get("age"), second.headers.get("age")]).toEqual([null, "7"]);
  expect({ ...again, id: whole["id"] }).toEqual(whole);
  expect(again["id"]).not.toBe(whole["id"]);
  // 7 tokens of a dollar and 2 of ten for a million: 27 millionths; half of that.
  expect(first.headers.get("x-headrace-usage")).toContain("nano_usd=27000");
  expect(second.headers.get("x-headrace-usage")).toBe("prompt_tokens=7, completion_tokens=2, nano_usd=13500");
  await server.governance.ledger.flush();
  const id = second.headers.get("x-request-id");
  const record = (await (await server.request(`/v1/requests/${id}`)).json()) as Record<string, unknown>;
  expect(record).toMatchObject({ from_cache: true, prompt_tokens: 7, completion_tokens: 2, upstream: null, attempts: 0 });
  expect(record).toMatchObject({ cost: 0.0000135, usage_details: { replayed: 1 }, trail: [] });
});
