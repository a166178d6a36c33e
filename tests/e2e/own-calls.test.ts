// Calls of the gateway's own: metered, tagged, and on nobody's bill but the operator's.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { bufferedBytes } from "../../src/base/bytes/buffered-bytes.ts";
import { Cancellation } from "../../src/base/cancellation.ts";
import type { OwnCall } from "../../src/inference/own-calls.ts";
import { startHeadrace, type TestServer } from "../support/headrace.ts";
import { json, type ScriptedUpstream, startUpstream, upstreamYaml } from "../support/scripted-upstream.ts";

const models = `models:
  - id: judge
    price: { input: 1000, output: 2000 }
    deployments: [{ upstream: up, model: upstream-model }]
`;

let upstream: ScriptedUpstream;
let server: TestServer;

beforeAll(async () => {
  upstream = await startUpstream(({ body }, res) =>
    json(res, 200, {
      ...{ id: "c", object: "chat.completion", created: 1, model: body["model"] },
      choices: [{ index: 0, message: { role: "assistant", content: "yes" }, finish_reason: "stop" }],
      usage: { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 },
    }),
  );
  server = await startHeadrace({ yaml: upstreamYaml(upstream, models) });
});
afterAll(async () => {
  await server[Symbol.asyncDispose]();
  await upstream[Symbol.asyncDispose]();
});

function callOf(changes: Partial<OwnCall> = {}): OwnCall {
  return {
    purpose: "guardrail",
    operation: "chat",
    body: JSON.stringify({ model: "judge", messages: [{ role: "user", content: "May this pass?" }] }),
    memoryAccount: bufferedBytes.visitors,
    cancellation: new Cancellation(),
    neverLeaves: false,
    ...changes,
  };
}

test("answers the gateway's own call whole, and books it to the operator under its purpose's tag", async () => {
  const before = bufferedBytes.total;
  const answer = JSON.parse(await server.ownCalls.ask(callOf())) as { choices: { message: { content: string } }[] };
  expect(answer.choices[0]?.message.content).toBe("yes");
  expect(bufferedBytes.total).toBe(before);
  await server.governance.ledger.flush();
  const requests = await (await server.request("/v1/requests?tag=gateway:guardrail")).json();
  expect(requests.data).toHaveLength(1);
  const { record } = server.firstKey;
  expect(requests.data[0]).toMatchObject({
    model: "judge",
    key: record.id,
    tags: ["gateway:guardrail"],
    app: "gateway",
  });
});

test("gives the gateway's own call the priority of its request", async () => {
  const yaml = `upstreams: [{ name: up, url: "${upstream.url}", priority: true }]
tiers: [{ name: enterprise, requests_per_minute: null, tokens_per_minute: null, priority: high }]
models:
  - { id: judge, deployments: [{ upstream: up, model: upstream-model }] }
  - { id: judged, policies: { guardrails: [judged] }, deployments: [{ upstream: up, model: upstream-model }] }
  - { id: embedder, deployments: [{ upstream: up, model: embedder }] }
  - { id: similar, policies: { cache: { requests: all, semantic: { model: embedder, threshold: 0.9 } } }, deployments: [{ upstream: up, model: upstream-model }] }
guardrails: [{ name: judged, kind: judge, model: judge, policy: No talk of cheese., sides: [request] }]
`;
  await using urgent = await startHeadrace({ yaml });
  for (const [priority, rank] of [
    ["low", 1],
    ["high", -1],
  ] as const) {
    const messages = [{ role: "user", content: `How ${priority}?` }];
    for (const model of ["judged", "similar"]) {
      const before = upstream.requests.length;
      const headers = { authorization: `Bearer ${urgent.key}`, "x-headrace-priority": priority };
      await urgent.request("/v1/chat/completions", { body: { model, messages }, headers });
      const sent = upstream.requests.slice(before);
      expect(sent.length).toBeGreaterThan(model === "similar" ? 1 : 0);
      for (const { body } of sent) expect(body["priority"]).toBe(rank);
    }
  }
});

test("sends no byte of the gateway's own call if the client left or the request must stay local", async () => {
  const sent = upstream.requests.length;
  const clientGone = new Cancellation();
  clientGone.cancel();
  await expect(server.ownCalls.ask(callOf({ cancellation: clientGone }))).rejects.toThrow("cancelled");
  await expect(server.ownCalls.ask(callOf({ neverLeaves: true }))).rejects.toThrow("marked as local");
  expect(upstream.requests).toHaveLength(sent);
});

test("refuses an invalid body of the gateway's own call like a client's", async () => {
  await expect(server.ownCalls.ask(callOf({ body: '{"model":"judge"}' }))).rejects.toThrow("messages");
});
