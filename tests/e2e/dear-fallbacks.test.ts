// Fallbacks that cost more than the model that was asked for: a quota in USD has to have what they cost before they are asked.
import { afterEach, describe, expect, test } from "bun:test";
import { startHeadrace, type TestServer } from "../support/headrace.ts";
import { json, type ScriptedUpstream, startUpstream } from "../support/scripted-upstream.ts";

type Json = Record<string, unknown>;

const stack: AsyncDisposable[] = [];
afterEach(async () => {
  for (const part of stack.splice(0).reverse()) await part[Symbol.asyncDispose]();
});

/** Tokens of each answer. */
const answerTokens = 1_000;
/** USD of an answer of the dear fallback. */
const dearCost = 0.03;
const body = { model: "cheap", messages: [{ role: "user", content: "Hello" }], max_tokens: answerTokens };

async function start({ fallbacks, workers }: { fallbacks: string; workers?: number }) {
  const broken = await startUpstream((_request, res) => json(res, 500, { error: { message: "broken" } }));
  const upstream = await startUpstream(async (_request, res) => {
    // All that are admitted run side by side.
    await Bun.sleep(100);
    json(res, 200, {
      ...{ id: "chatcmpl-up", object: "chat.completion", created: 1_700_000_001, model: "m" },
      choices: [{ index: 0, message: { role: "assistant", content: "word ".repeat(1_000) }, finish_reason: "stop" }],
      usage: { prompt_tokens: 0, completion_tokens: answerTokens, total_tokens: answerTokens },
    });
  });
  stack.push(broken, upstream);
  const server = await startHeadrace({
    ...(workers === undefined ? {} : { workers }),
    yaml: `upstreams:
  - { name: broken, url: "${broken.url}", discover: false }
  - { name: up, url: "${upstream.url}", discover: false }
models:
  - { id: cheap, price: { input: 0, output: 0.0001 }, fallbacks: [${fallbacks}], deployments: [{ upstream: broken, model: m }] }
  - { id: dear, price: { input: 0, output: 30 }, deployments: [{ upstream: up, model: dear }] }
  - { id: middling, price: { input: 0, output: 1 }, deployments: [{ upstream: up, model: middling }] }
`,
  });
  stack.push(server);
  return { server, upstream };
}

async function keyWith(server: TestServer, limits: Json): Promise<{ id: string; key: string }> {
  const made = await server.request("/v1/keys", { body: { name: "Bounded", ...limits } });
  return (await made.json()) as { id: string; key: string };
}

async function requestsOf(server: TestServer, id: string): Promise<Json[]> {
  await server.governance.ledger.flush();
  const { data } = (await (await server.request(`/v1/requests?key=${id}&limit=200`)).json()) as { data: Json[] };
  return data;
}

const spent = (requests: readonly Json[]) => requests.reduce((sum, one) => sum + Number(one["cost"] ?? 0), 0);
const askedFor = (upstream: ScriptedUpstream, model: string) =>
  upstream.requests.filter((one) => one.body["model"] === model).length;

describe.each([
  ["a monthly quota", (usd: number) => ({ monthly_spend: usd })],
  ["a quota of a day", (usd: number) => ({ quotas: [{ unit: "usd", amount: usd, per: "day" }] })],
])("an expensive fallback under %s", (_name, limitsOf) => {
  test.each([undefined, 2])(
    "does not overrun the limit with 60 concurrent requests to an expensive fallback (workers: %p)",
    async (workers) => {
      const { server, upstream } = await start({ fallbacks: "dear", ...(workers && { workers }) });
      const { id, key } = await keyWith(server, limitsOf(3.5 * dearCost));
      const headers = { authorization: `Bearer ${key}` };
      const answers = await Promise.all(
        Array.from({ length: 60 }, () => server.request("/v1/chat/completions", { body, headers })),
      );
      const served = answers.filter(({ status }) => status === 200).length;
      expect(served).toBeGreaterThan(0);
      expect(served).toBeLessThanOrEqual(3);
      expect(askedFor(upstream, "dear")).toBe(served);
      const requests = await requestsOf(server, id);
      expect(spent(requests)).toBeCloseTo(served * dearCost, 6);
    },
  );
});

test("asks the next fallback that the quota can pay, and records the skipped one in the trail", async () => {
  const { server, upstream } = await start({ fallbacks: "dear, middling" });
  const { id, key } = await keyWith(server, { monthly_spend: dearCost / 2 });
  const headers = { authorization: `Bearer ${key}` };
  const answered = await server.request("/v1/chat/completions", { body, headers });
  expect([answered.status, answered.headers.get("x-headrace-model")]).toEqual([200, "middling"]);
  expect(askedFor(upstream, "dear")).toBe(0);
  const [request] = await requestsOf(server, id);
  const detail = (await (await server.request(`/v1/requests/${String(request?.["id"])}`)).json()) as { trail: Json[] };
  expect(detail.trail.map(({ result, model }) => [model, result])).toEqual([
    ["cheap", "refused"],
    ["dear", "over_quota"],
    ["middling", "answered"],
  ]);
});

test("releases the reservation for a fallback when its answer ends", async () => {
  const { server } = await start({ fallbacks: "dear" });
  const { key } = await keyWith(server, { monthly_spend: 4 * dearCost });
  const headers = { authorization: `Bearer ${key}` };
  const statuses: number[] = [];
  for (let i = 0; i < 5; i++) {
    const answered = await server.request("/v1/chat/completions", { body, headers });
    await answered.text();
    statuses.push(answered.status);
  }
  // The quota has nothing left for the fifth, and the model that it asks for fails.
  expect(statuses.slice(0, 4)).toEqual([200, 200, 200, 200]);
  expect(statuses[4]).not.toBe(200);
});
