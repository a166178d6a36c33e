// Models that get a share of another one's requests: in its place, or beside it, unseen by clients and on nobody's bill.
import { Database } from "bun:sqlite";
import { afterEach, beforeEach, expect, test } from "bun:test";
import type { ServerResponse } from "node:http";
import { join } from "node:path";
import { partOf } from "../../src/inference/shadow/split.ts";
import type { ComparisonWire } from "../../src/wire/models.ts";
import { runCommand } from "../fixtures/command-line.ts";
import { startHeadrace, type TestServer, until } from "../support/headrace.ts";
import { mintKey } from "../support/mint-key.ts";
import { makeOperatorKey } from "../support/operator-key.ts";
import { startReplicas } from "../support/replicas.ts";
import { json, type Script, type ScriptedUpstream, startUpstream } from "../support/scripted-upstream.ts";

const metricsToken = "metrics-token-0123456789";

interface BookedRow {
  request_id: string;
  model: string;
  outcome: string;
  key_id: string;
  tags: string | null;
  prompt_tokens: number;
  nano_usd: number;
}

const answerOf =
  (promptTokens: number): Script =>
  ({ body }, res) =>
    json(res, 200, {
      ...{ id: "c", object: "chat.completion", created: 1, model: body["model"] },
      choices: [{ index: 0, message: { role: "assistant", content: "Hello" }, finish_reason: "stop" }],
      usage: { prompt_tokens: promptTokens, completion_tokens: 5, total_tokens: promptTokens + 5 },
    });

let first: ScriptedUpstream;
let second: ScriptedUpstream;
let server: TestServer;

beforeEach(async () => {
  first = await startUpstream(answerOf(10));
  second = await startUpstream(answerOf(20));
  server = await start();
});
afterEach(async () => {
  await server[Symbol.asyncDispose]();
  await first[Symbol.asyncDispose]();
  await second[Symbol.asyncDispose]();
});

async function start(policies = ""): Promise<TestServer> {
  return await startHeadrace({ yaml: yamlOf(policies), env: { HEADRACE_METRICS_TOKEN: metricsToken } });
}

function yamlOf(policies: string): string {
  return `upstreams:
  - { name: first, url: "${first.url}" }
  - { name: second, url: "${second.url}", max_concurrency: 2 }
models:
  - id: old
    price: { input: 1000, output: 2000 }
    deployments: [{ upstream: first, model: upstream-model }]
    policies: { ${policies} }
  - id: new
    price: { input: 500, output: 1000 }
    deployments: [{ upstream: second, model: upstream-model }]
`;
}

const shadowing = "shadow: { model: new, percent: 100 }";

function ask(
  content: string,
  { key = server.key, to = server, ...body }: Record<string, unknown> & { key?: string; to?: TestServer } = {},
) {
  return to.request("/v1/chat/completions", {
    headers: { authorization: `Bearer ${key}` },
    body: { model: "old", messages: [{ role: "user", content }], ...body },
  });
}

async function booked(): Promise<BookedRow[]> {
  await server.governance.ledger.flush();
  const db = new Database(join(server.dataDir, "headrace.db"), { readonly: true });
  try {
    return db.query<BookedRow, []>("SELECT * FROM usage_records ORDER BY at, request_id").all();
  } finally {
    db.close();
  }
}

async function shadows(result: string): Promise<number> {
  const text = await (
    await server.request("/metrics", { headers: { authorization: `Bearer ${metricsToken}` } })
  ).text();
  const line = text
    .split("\n")
    .find((one) => one.startsWith("headrace_shadow_requests_total") && one.includes(`"${result}"`));
  return Number(line?.split(" ").at(-1) ?? 0);
}

test("routes a split conversation to one model on every turn, and reports and prices it as that model", async () => {
  const split = [{ model: "new", percent: 50 }];
  await server.reconfigure(yamlOf("split: [{ model: new, percent: 50 }]"));
  const account = server.governance.accounts;
  const [{ id: accountId } = { id: "" }] = await account.listAccounts({ after: undefined, limit: 1 });
  const users = Array.from({ length: 12 }, (_, at) => `user-${at}`);
  for (const user of users) {
    const answers = [await ask("Hello", { user }), await ask("And now?", { user })];
    const expected = partOf("old", split, `${accountId} user ${user}`);
    for (const answer of answers) {
      expect(answer.status).toBe(200);
      expect(answer.headers.get("x-headrace-model")).toBe(expected === "old" ? null : "new");
    }
  }
  expect(first.requests.length + second.requests.length).toBe(2 * users.length);
  expect(second.requests.length).toBeGreaterThan(0);
  const rows = await booked();
  const moved = rows.filter(({ model }) => model === "new");
  expect(moved).toHaveLength(second.requests.length);
  for (const { tags, nano_usd, prompt_tokens } of moved) {
    expect(JSON.parse(tags ?? "[]")).toEqual(["asked:old"]);
    expect([prompt_tokens, nano_usd]).toEqual([20, 20 * 500_000 + 5 * 1_000_000]);
  }
  for (const { model, tags } of rows) if (model === "old") expect(JSON.parse(tags ?? "[]")).toEqual(["asked:old"]);
});

test("routes a conversation's turns to one model at two replicas, by its user and its beginning", async () => {
  const yaml = yamlOf("split: [{ model: new, percent: 50 }]").replaceAll(
    "  - id: ",
    "  - environments: [live]\n    id: ",
  );
  await using replicas = await startReplicas({ yaml });
  const headers = { authorization: `Bearer ${replicas.key}` };
  const begins = Array.from({ length: 12 }, (_, at) => `Question ${at}`);
  for (const [at, content] of begins.entries()) {
    const models = new Set<string | null>();
    for (const replica of replicas.servers) {
      for (const more of [
        [],
        [
          { role: "assistant", content: "Hello" },
          { role: "user", content: "And now?" },
        ],
      ]) {
        const messages =
          at % 2 === 0 ? [{ role: "user", content }, ...more] : [{ role: "user", content: `${more.length}` }, ...more];
        const body = { model: "old", messages, ...(at % 2 === 0 ? {} : { user: content }) };
        const answer = await replica.request("/v1/chat/completions", { headers, body });
        expect(answer.status).toBe(200);
        models.add(answer.headers.get("x-headrace-model"));
      }
    }
    expect(models.size).toBe(1);
  }
  expect(first.requests.length + second.requests.length).toBe(4 * begins.length);
  expect(Math.min(first.requests.length, second.requests.length)).toBeGreaterThan(0);
}, 60_000);

test("logs and does not serve a database model whose guardrail disappears at a reload", async () => {
  const operator = await mintKey(server.dataDir, { scopes: ["admin:manage"], name: "operator" });
  const guardrails = "guardrails: [{ name: no-secrets, kind: secrets }]\n";
  await server.reconfigure(yamlOf("") + guardrails);
  const made = await server.request("/v1/admin/models", {
    headers: { authorization: `Bearer ${operator}` },
    body: {
      id: "m",
      deployments: [{ upstream: "first", model: "upstream-model" }],
      policies: { guardrails: ["no-secrets"] },
    },
  });
  expect(made.status).toBe(200);
  expect((await ask("Hello", { model: "m" })).status).toBe(200);
  await server.reconfigure(yamlOf(""));
  expect(server.logText()).toMatch(/"policy_in_vain".*no-secrets/);
  expect((await ask("Hello", { model: "m" })).status).toBe(503);
  expect(first.requests).toHaveLength(1);
  await server.reconfigure(yamlOf("") + guardrails);
  expect((await ask("Hello", { model: "m" })).status).toBe(200);
});

test("sends a shadow the request too, meters it to the operator, and hides its answer", async () => {
  await server.reconfigure(yamlOf(shadowing));
  const key = await mintKey(server.dataDir, { scopes: ["chat:write"], name: "client" });
  const answer = await ask("Hello", { key, max_tokens: 7, user: "u" });
  expect(answer.headers.get("x-headrace-model")).toBeNull();
  expect((await answer.json()).usage.prompt_tokens).toBe(10);
  await until(() => shadows("answered"), "the shadow's answer");
  expect(second.requests[0]?.body).toMatchObject({ max_tokens: 7, model: "upstream-model" });
  // A server that others share is told nobody's own value.
  expect(second.requests[0]?.body["user"]).toBeString();
  expect(second.requests[0]?.body["user"]).not.toBe("u");
  const rows = await booked();
  expect(rows).toHaveLength(2);
  const own = rows.find(({ model }) => model === "old");
  const other = rows.find(({ model }) => model === "new");
  expect(own).toMatchObject({ tags: null, prompt_tokens: 10 });
  expect(other).toMatchObject({ request_id: `${own?.request_id}-shadow`, key_id: server.firstKey.record.id });
  expect(other).toMatchObject({ tags: '["gateway:shadow"]', outcome: "completed", prompt_tokens: 20 });
  expect(own?.key_id).not.toBe(other?.key_id);
});

test("shadows a stream by a whole answer", async () => {
  await server.reconfigure(yamlOf(shadowing));
  await (await ask("Hello", { stream: true, stream_options: { include_usage: true } })).text();
  await until(() => shadows("answered"), "the shadow's answer");
  expect(second.requests[0]?.body["stream"]).toBeUndefined();
  expect(second.requests[0]?.body["stream_options"]).toBeUndefined();
});

test("limits a hanging shadow to idle slots, drops the rest, and delays no client", async () => {
  const held: ServerResponse[] = [];
  const timed = async () => {
    const times: number[] = [];
    for (let at = 0; at < 100; at++) {
      const beginMs = performance.now();
      expect((await ask(`Hello ${at}`)).status).toBe(200);
      times.push(performance.now() - beginMs);
    }
    times.sort((a, b) => a - b);
    return { median: times[50] ?? 0, p99: times[98] ?? 0 };
  };
  await timed();
  const usual = await timed();
  await server.reconfigure(yamlOf(shadowing));
  second.script((_request, res) => void held.push(res));
  const beside = await timed();
  expect(beside.median).toBeLessThan(3 * usual.median + 5);
  // The shadow never answers: whoever waited for it would wait for minutes. The rest is what a busy machine takes.
  expect(beside.p99).toBeLessThan(3 * usual.p99 + 100);
  expect(held).toHaveLength(2);
  expect(await shadows("dropped")).toBe(98);
});

test("frees a shadow's slot for a live request at once", async () => {
  await server.reconfigure(yamlOf(shadowing));
  second.script(() => {});
  await ask("Hello 1");
  await ask("Hello 2");
  await until(() => second.requests.length === 2, "two shadows under way");
  await server.reconfigure(yamlOf(""));
  second.script(answerOf(20));
  expect((await ask("Live", { model: "new" })).status).toBe(200);
  expect(await shadows("gave_way")).toBe(1);
  await until(() => second.requests.filter(({ abandoned }) => abandoned).length === 1, "the shadow is broken off");
});

test("sends no byte of a key that must stay local to a shadow or split elsewhere", async () => {
  await server.reconfigure(yamlOf(`${shadowing}, split: [{ model: new, percent: 100 }]`));
  const key = await mintKey(server.dataDir, { scopes: ["chat:write"], name: "inner", neverLeaves: true });
  expect((await ask("Hello", { key })).status).toBe(403);
  expect([first.requests.length, second.requests.length]).toEqual([0, 0]);
});

test("applies a second model's guardrails to requests of another model sent to it", async () => {
  const guarded = (name: string) =>
    yamlOf(shadowing) +
    `    policies: { guardrails: [${name}] }
guardrails:
  - { name: masks, kind: patterns, action: mask, patterns: [{ name: number, pattern: "N-[0-9]+" }] }
  - { name: blocks, kind: patterns, action: block, patterns: [{ name: number, pattern: "N-[0-9]+" }] }
`;
  await server.reconfigure(guarded("masks"));
  expect((await ask("This is N-123")).status).toBe(200);
  await until(() => shadows("answered"), "the shadow's answer");
  expect(first.requests[0]?.body["messages"]).toEqual([{ role: "user", content: "This is N-123" }]);
  expect(second.requests[0]?.body["messages"]).toEqual([{ role: "user", content: "This is [number]" }]);
  await server.reconfigure(guarded("blocks"));
  expect((await ask("This is N-123")).status).toBe(200);
  await until(() => shadows("skipped"), "the shadow is blocked");
  expect(second.requests).toHaveLength(1);
});

test("applies a model's guardrails along with those of the split that answers", async () => {
  const guardrails = ["masks-a", "masks-b"].map(
    (name) =>
      `  - { name: ${name}, kind: patterns, action: mask, patterns: [{ name: ${name}, pattern: "${name.slice(-1).toUpperCase()}-[0-9]+" }] }\n`,
  );
  await server.reconfigure(
    `${yamlOf("guardrails: [masks-a], split: [{ model: new, percent: 100 }]")}    policies: { guardrails: [masks-b] }\nguardrails:\n${guardrails.join("")}`,
  );
  expect((await ask("A-1 and B-2")).status).toBe(200);
  expect(first.requests).toHaveLength(0);
  expect(second.requests[0]?.body["messages"]).toEqual([{ role: "user", content: "[masks-a] and [masks-b]" }]);
});

test("stops a running shadow with the server", async () => {
  await server.reconfigure(yamlOf(shadowing));
  second.script(() => {});
  await ask("Hello");
  await until(() => second.requests.length === 1, "the shadow under way");
  const beginMs = performance.now();
  await server.close();
  expect(performance.now() - beginMs).toBeLessThan(3_000);
  await until(() => second.requests[0]?.abandoned, "the shadow is broken off");
});

async function comparing(query: string): Promise<Response> {
  const key = await mintKey(server.dataDir, { scopes: ["admin:manage"], name: "operator" });
  await server.governance.ledger.flush();
  return await server.request(`/v1/admin/comparisons?${query}`, { headers: { authorization: `Bearer ${key}` } });
}

async function compared(query = ""): Promise<ComparisonWire[]> {
  const answer = await comparing(`model=old${query}`);
  expect(answer.status).toBe(200);
  return (await answer.json()).data;
}

test("compares only paired shadow answers, with the figures of their servers", async () => {
  await ask("Alone");
  await server.reconfigure(yamlOf(shadowing));
  for (let at = 0; at < 4; at++) {
    await ask(`Both ${at}`);
    await until(async () => (await shadows("answered")) === at + 1, "the shadow's answer");
  }
  second.script((_request, res) => json(res, 500, { error: { message: "broken" } }));
  await ask("Both, and one fails");
  await until(() => shadows("failed"), "the shadow's failure");
  const [comparison, ...others] = await compared();
  expect(others).toHaveLength(0);
  expect(comparison).toMatchObject({ kind: "shadow", percent: 100, partial: false });
  expect(comparison?.own).toMatchObject({
    model: "old",
    requests: 5,
    errors: 0,
    prompt_tokens: 50,
    completion_tokens: 25,
  });
  expect(comparison?.own).toMatchObject({ cost: 5 * 0.02, answer_tokens: 5, first_token_ms: { p50: null } });
  expect(comparison?.other).toMatchObject({
    model: "new",
    requests: 5,
    errors: 1,
    prompt_tokens: 80,
    completion_tokens: 20,
  });
  expect(comparison?.other.cost).toBeCloseTo(4 * 0.015, 9);
  for (const { duration_ms: times } of [comparison?.own ?? fail(), comparison?.other ?? fail()]) {
    expect(times.p50).toBeLessThanOrEqual(times.p95 ?? -1);
  }
});

test("compares only answers of each split side since the split began", async () => {
  await ask("Before", { user: "before" });
  await server.reconfigure(yamlOf("split: [{ model: new, percent: 50 }]"));
  const ownBefore = first.requests.length;
  for (let at = 0; at < 20; at++) await ask("Hello", { user: `user-${at}` });
  const [comparison] = await compared();
  expect(comparison).toMatchObject({ kind: "split", percent: 50 });
  expect(comparison?.own.requests).toBe(first.requests.length - ownBefore);
  expect(comparison?.other.requests).toBe(second.requests.length);
  expect(comparison?.own.prompt_tokens).toBe(10 * (first.requests.length - ownBefore));
  expect(await compared("&end=1000")).toMatchObject([{ own: { requests: 0 }, other: { requests: 0, cost: 0 } }]);
});

test("limits comparisons to operators, existing models and 31 days", async () => {
  const key = await mintKey(server.dataDir, { scopes: ["chat:write", "usage:read"], name: "client" });
  const headers = { authorization: `Bearer ${key}` };
  expect((await server.request("/v1/admin/comparisons?model=old", { headers })).status).toBe(403);
  expect((await comparing("model=none")).status).toBe(404);
  const long = await comparing("model=old&start=1&end=99999999");
  expect([long.status, (await long.json()).error.param]).toEqual([400, "start"]);
  expect(await compared()).toEqual([]);
});

function fail(): never {
  throw new Error("There is no comparison.");
}

test("prints both sides in headrace models compare, or says that there is nothing to compare", async () => {
  const operator = await makeOperatorKey(server.dataDir);
  const env = { HEADRACE_BASE_URL: server.baseUrl, HEADRACE_API_KEY: operator, LANG: "C.UTF-8" };
  const none = await runCommand(["models", "compare", "old"], { env });
  expect(none.stderr).toContain("neither a shadow nor a split");
  await server.reconfigure(yamlOf(shadowing));
  await ask("Hello");
  await until(() => shadows("answered"), "the shadow's answer");
  await server.governance.ledger.flush();
  const { stdout } = await runCommand(["models", "compare", "old"], { env });
  expect(stdout).toContain("100 % of old also go to new");
  expect(stdout).toMatch(/^old +1 +0 +/m);
  expect(stdout).toMatch(/^new +1 +0 +/m);
});
