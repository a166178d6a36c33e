// Why a request ended as it did: the trail of what was tried, and the requests that were refused before anything was.
import { Database } from "bun:sqlite";
import { afterEach, describe, expect, test } from "bun:test";
import { join } from "node:path";
import { startHeadrace, type TestServer, until } from "../support/headrace.ts";
import { mintKey, mintKeyRecord } from "../support/mint-key.ts";
import { chatScript, chunk, json, type Script, startUpstream, usage } from "../support/scripted-upstream.ts";

const stack: AsyncDisposable[] = [];
afterEach(async () => {
  for (const part of stack.splice(0).reverse()) await part[Symbol.asyncDispose]();
});

const upstreamKey = "sk-upstream-secret-0123456789";

/** A server with these model servers, `up0`, `up1` and so on; `more`: of each of them in the configuration. */
async function start(scripts: readonly Script[], { more = "", yaml = "" } = {}): Promise<TestServer> {
  const lines = [];
  for (const [i, script] of scripts.entries()) {
    const upstream = await startUpstream(script);
    stack.push(upstream);
    lines.push(`  - { name: up${i}, url: "${upstream.url}", api_key: ${upstreamKey}${more} }\n`);
  }
  const server = await startHeadrace({ yaml: `upstreams:\n${lines.join("")}${yaml}` });
  stack.push(server);
  return server;
}

async function ask(server: TestServer, body: object = {}, { path = "/v1/chat/completions", key = server.key } = {}) {
  const response = await server.request(path, {
    body: { model: "upstream-model", messages: [{ role: "user", content: "CANARY of a prompt" }], ...body },
    headers: { authorization: `Bearer ${key}` },
  });
  const text = await response.text();
  return { status: response.status, text, id: response.headers.get("x-request-id") ?? "" };
}

const operators = new WeakMap<TestServer, string>();

interface Step {
  upstream: string | null;
  reason: string | null;
  started_ms: number;
  duration_ms: number;
  [member: string]: unknown;
}

interface Looked {
  id: string;
  outcome: string;
  upstream: string | null;
  attempts: number;
  duration_ms: number;
  error_message: string | null;
  trail: Step[];
}

/** The request as it is looked up by its id: by an operator, or by whom `key` is. */
async function lookUp(server: TestServer, id: string, key?: string): Promise<Looked> {
  const scopes = ["usage:read", "admin:manage"] as const;
  const by = key ?? operators.get(server) ?? (await mintKey(server.dataDir, { scopes }));
  if (key === undefined) operators.set(server, by);
  const response = await server.request(`/v1/requests/${id}`, { headers: { authorization: `Bearer ${by}` } });
  expect([id, response.status]).toEqual([id, 200]);
  return (await response.json()) as Looked;
}

async function listed(server: TestServer, query = ""): Promise<Looked[]> {
  const { data } = (await (await server.request(`/v1/requests${query}`)).json()) as { data: Looked[] };
  return data;
}

describe("the trail of a request", () => {
  // hardening: O9
  test("records a model server's failure with its reason and the next one's answer in the trail", async () => {
    let asked = 0;
    const script: Script = (request, response) => {
      const said = `out of memory for "CANARY of a prompt" with ${upstreamKey}`;
      if (++asked === 1) json(response, 500, { error: { message: said } });
      else return chatScript()(request, response);
    };
    const server = await start([script, script]);
    const answer = await ask(server);
    expect(answer.status).toBe(200);
    const request = await lookUp(server, answer.id);
    expect(request).toMatchObject({ outcome: "completed", attempts: 2, error_status: null });
    expect(request.trail).toMatchObject([
      { server: 1, result: "refused", status: 500, model: "upstream-model", upstream_model: "upstream-model" },
      { server: 2, result: "answered", status: null, reason: null, upstream: request.upstream },
    ]);
    const [first, second] = request.trail as [Step, Step];
    expect(first.upstream).toMatch(/^up[01]$/);
    expect(first.reason).toBe("out of memory for[…] with [redacted]");
    expect(second.started_ms).toBeGreaterThanOrEqual(first.started_ms + first.duration_ms);
    expect(second.started_ms + second.duration_ms).toBeLessThanOrEqual(request.duration_ms + 1);

    const member = await lookUp(server, answer.id, await mintKey(server.dataDir, { scopes: ["usage:read"] }));
    expect(member.trail).toMatchObject([
      { server: 1, result: "refused", status: 500, upstream: null, upstream_model: null, reason: null },
      { server: 2, result: "answered", upstream: null },
    ]);
    expect(member.trail[0]?.duration_ms).toBe(first.duration_ms);
  });

  test("records every server asked in the trail of an unanswered request", async () => {
    const server = await start([
      (_request, response) => json(response, 500, { error: "the first is broken" }),
      (_request, response) => void response.socket?.destroy(),
    ]);
    const answer = await ask(server);
    expect(answer.status).toBe(502);
    const { outcome, upstream, attempts, trail } = await lookUp(server, answer.id);
    expect([outcome, upstream, attempts]).toEqual(["failed", null, 2]);
    const byName = Object.fromEntries(trail.map((step) => [step.upstream, step]));
    expect(byName["up0"]).toMatchObject({ result: "refused", status: 500, reason: "the first is broken" });
    expect(byName["up1"]).toMatchObject({ result: "unreachable", status: null });
    expect(byName["up1"]?.reason).toBeString();
    expect(byName["up1"]?.reason).not.toContain("up1");
  });

  test("records in the trail a refusal's cause and a timeout of the model server", async () => {
    let script: Script = (_request, response) => json(response, 400, { error: { message: "no such parameter" } });
    const server = await start([(request, response) => script(request, response)], { more: ", timeout_seconds: 1" });
    const refused = await lookUp(server, (await ask(server)).id);
    expect(refused.trail).toMatchObject([{ result: "refused", status: 400, reason: "no such parameter" }]);
    script = () => {};
    const late = await lookUp(server, (await ask(server)).id);
    expect(late).toMatchObject({ error_code: "upstream_timeout", error_status: 504 });
    expect(late.trail).toMatchObject([{ result: "timed_out", status: null }]);
    expect(late.trail[0]?.duration_ms).toBeGreaterThan(900);
  });

  test("records in the trail where and when a stream broke off", async () => {
    const server = await start([
      (_request, response) => {
        response.writeHead(200, { "content-type": "text/event-stream" });
        response.write(chunk({ content: "Hello" }), () => response.socket?.destroy());
      },
    ]);
    const answer = await ask(server, { stream: true });
    expect(answer.text).toContain('"error"');
    const { outcome, trail } = await lookUp(server, answer.id);
    expect([outcome, trail.length]).toEqual(["failed", 1]);
    expect(trail[0]).toMatchObject({ server: 1, result: "broke_off", upstream: "up0" });
  });

  test("records in the trail the fallback model and why the requested one was skipped the second time", async () => {
    const models = `models:
  - { id: large, fallbacks: [small], deployments: [{ upstream: up0, model: upstream-model }] }
  - { id: small, deployments: [{ upstream: up1, model: upstream-model }] }
`;
    const fails: Script = (_request, response) => json(response, 500, { error: "broken" });
    const server = await start([fails, chatScript()], { yaml: models });
    const first = await lookUp(server, (await ask(server, { model: "large" })).id);
    expect(first).toMatchObject({ model: "large", outcome: "completed", attempts: 2 });
    expect(first.trail).toMatchObject([
      { model: "large", upstream: "up0", result: "refused", status: 500 },
      { model: "small", upstream: "up1", result: "answered" },
    ]);
    const second = await lookUp(server, (await ask(server, { model: "large" })).id);
    expect(second).toMatchObject({ outcome: "completed", attempts: 1 });
    expect(second.trail).toMatchObject([
      { model: "large", upstream: "up0", result: "resting", duration_ms: 0 },
      { model: "small", upstream: "up1", result: "answered" },
    ]);
  });

  test("records in the trail that no slot was free and the request could not wait", async () => {
    const held = Promise.withResolvers<void>();
    const server = await start(
      [
        async (request, response) => {
          await held.promise;
          await chatScript()(request, response);
        },
      ],
      { more: ", max_concurrency: 1", yaml: "limits: { queue: 0 }\n" },
    );
    const first = ask(server);
    await until(() => server.governance.ledger.figures.open === 1, "the first is under way");
    const second = await ask(server);
    expect(second.status).toBe(503);
    held.resolve();
    expect((await first).status).toBe(200);
    const { outcome, attempts, trail } = await lookUp(server, second.id);
    expect([outcome, attempts]).toEqual(["failed", 0]);
    expect(trail).toMatchObject([{ result: "queue_full", server: null, upstream: null, model: "upstream-model" }]);
  });

  test("derives the trail of a request that one server answered without storing the trail", async () => {
    const server = await start([chatScript()]);
    const answer = await ask(server);
    expect((await lookUp(server, answer.id)).trail).toMatchObject([{ server: 1, result: "answered", upstream: "up0" }]);
    const db = new Database(join(server.dataDir, "headrace.db"), { readonly: true });
    expect(db.query("SELECT request_id, trail FROM usage_records").all()).toEqual([
      { request_id: answer.id, trail: null },
    ]);
    db.close();
  });
});

describe("a refused request", () => {
  // hardening: O9
  test("finds a refused request by its x-request-id with the client's error, however it was refused", async () => {
    const server = await start([chatScript()], { yaml: "limits: { body_bytes: 5000 }\n" });
    const scopes = ["chat:write", "usage:read"] as const;
    const slow = await mintKeyRecord(server.dataDir, { scopes, rateLimit: 1, rateLimitWindow: 3600 });
    const poor = await mintKey(server.dataDir, { scopes, monthlyTokens: 1 });
    const reader = await mintKey(server.dataDir, { scopes: ["usage:read"] });
    await ask(server, {}, { key: slow.key });
    const cases: [status: number, code: string, answer: Awaited<ReturnType<typeof ask>>][] = [
      [429, "rate_limit_exceeded", await ask(server, {}, { key: slow.key })],
      [403, "insufficient_quota", await ask(server, {}, { key: poor })],
      [403, "insufficient_scope", await ask(server, {}, { key: reader })],
      [404, "model_not_found", await ask(server, { model: "nope" })],
      [400, "invalid_request", await ask(server, { temperature: 9 })],
      [400, "invalid_request", await ask(server, {}, { path: "/v1/embeddings" })],
      [413, "request_too_large", await ask(server, { user: "x".repeat(6_000) })],
    ];
    for (const [status, code, answer] of cases) {
      const { error } = JSON.parse(answer.text) as { error: { message: string } };
      expect([answer.status, await lookUp(server, answer.id)]).toMatchObject([
        status,
        {
          ...{ outcome: "refused", error_code: code, error_status: status, error_message: error.message },
          ...{ total_tokens: 0, cost: null, trail: [], chat: null },
        },
      ]);
    }
    expect(await lookUp(server, cases[0]?.[2].id ?? "")).toMatchObject({ key: slow.record.id, stream: false });
    expect(await lookUp(server, cases[2]?.[2].id ?? "")).toMatchObject({ model: null, stream: null });
    expect(await lookUp(server, cases[3]?.[2].id ?? "")).toMatchObject({ model: "nope" });
    expect(await lookUp(server, cases[5]?.[2].id ?? "")).toMatchObject({ operation: "embedding" });
  });

  // hardening: O9
  test("lists refused requests without counting them in usage, limits or error rates", async () => {
    const server = await start([chatScript()]);
    await ask(server);
    for (let i = 0; i < 3; i++) await ask(server, { temperature: 9 });
    const data = await listed(server);
    expect(data.map(({ outcome }) => outcome)).toEqual(["refused", "refused", "refused", "completed"]);
    const report = (await (await server.request("/v1/usage")).json()) as { data: unknown[] };
    expect(report.data).toMatchObject([{ requests: 1, errors: 0, total_tokens: usage.total_tokens }]);
  });

  test("keeps no refused request without a known key, and no second copy of one in the ledger", async () => {
    const server = await start([(_request, response) => json(response, 400, { error: { message: "no" } })]);
    const unknown = await ask(server, {}, { key: "hr_dev_unknown" });
    expect(unknown.status).toBe(401);
    const failed = await ask(server);
    expect(failed.status).toBe(400);
    const data = await listed(server);
    expect(data).toMatchObject([{ id: failed.id, outcome: "failed" }]);
  });

  // hardening: O9
  test("omits names that the client invented from a refused request, since they may be a prompt", async () => {
    const server = await start([chatScript()]);
    const bodies = [
      { logit_bias: { "CANARY of a name": 7 } },
      { metadata: { "CANARY of a name": 7 }, store: true },
      { messages: [{ role: "CANARY of a name", content: 7 }] },
    ];
    for (const body of bodies) {
      const answer = await ask(server, body);
      expect(answer.status).toBe(400);
      const { error_message } = await lookUp(server, answer.id);
      expect(error_message).not.toContain("CANARY");
      expect(error_message).toContain(Object.keys(body)[0] ?? "");
    }
    for (const body of [
      { "CANARY of a name": 1, "canary OF a name": 2 },
      { "a`CANARY of a name`b": 1, "A`canary OF a name`b": 2 },
      { model: "sk_live_hr_CANARY0000000000000000000000000000000000" },
    ]) {
      const answer = await ask(server, body);
      expect(answer.status).toBeWithin(400, 405);
      expect(JSON.stringify(await lookUp(server, answer.id)).toLowerCase()).not.toContain("canary");
    }
  });

  test("keeps refused requests of a flood up to a bound, counts the rest, and answers as fast as ever", async () => {
    const server = await start([chatScript()]);
    for (let i = 0; i < 130; i++) expect((await ask(server, { temperature: 9 })).status).toBe(400);
    const data = await listed(server, "?outcome=refused&limit=200");
    expect(data.length).toBeWithin(100, 103);
    expect(server.governance.refusedRequests.figures).toEqual({ pending: 0, leftOut: 130 - data.length, lost: 0 });
  });
});
