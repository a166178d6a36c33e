// The end of a month, whatever its length: quotas, statements and usage have each request in the month in which it began.
import { expect, test } from "bun:test";
import type { ServerResponse } from "node:http";
import { startHeadrace, type TestServer, until } from "../support/headrace.ts";
import { manualClock } from "../support/manual-clock.ts";
import { json, startUpstream, upstreamYaml } from "../support/scripted-upstream.ts";

const tokensEach = 20;
const models = `
models:
  - { id: m, price: { input: 1, output: 1 }, deployments: [{ upstream: up, model: upstream-model }] }
  - { id: guarded, price: { input: 1, output: 1 }, policies: { guardrails: [judge] }, deployments: [{ upstream: up, model: upstream-model }] }
  - { id: judge, deployments: [{ upstream: up, model: judge }] }
guardrails:
  - { name: judge, kind: judge, model: judge, policy: No secrets., sides: [request] }
`;

function answer(res: ServerResponse, content: string): void {
  json(res, 200, {
    ...{ id: "c", object: "chat.completion", created: 1, model: "upstream-model" },
    choices: [{ index: 0, message: { role: "assistant", content }, finish_reason: "stop" }],
    usage: { prompt_tokens: 5, completion_tokens: tokensEach - 5, total_tokens: tokensEach },
  });
}

function chat(server: TestServer, key: string, model = "m"): Promise<Response> {
  const body = { model, max_tokens: tokensEach - 5, messages: [{ role: "user", content: "x" }] };
  return server.request("/v1/chat/completions", { body, headers: { authorization: `Bearer ${key}` } });
}

interface Account {
  quotas: { unit: string; per: string; used: number; starts_at: number; resets_at: number }[];
  quota: object;
}

interface Statement {
  start: number;
  end: number;
  is_over: boolean;
  total: { requests: number; total_tokens: number; cost: string };
}

interface UsageRows {
  data: { start: number; end: number; requests: number }[];
}

async function got<Shape>(server: TestServer, path: string, key = server.key): Promise<Shape> {
  const response = await server.request(path, { headers: { authorization: `Bearer ${key}` } });
  expect([path, response.status]).toEqual([path, 200]);
  return (await response.json()) as Shape;
}

async function newKey(server: TestServer, limits: object): Promise<string> {
  const body = { name: "x", scopes: ["chat:write", "usage:read"], ...limits };
  return ((await (await server.request("/v1/keys", { body })).json()) as { key: string }).key;
}

test.each([
  ["2027-02", "2027-03-01", 28],
  ["2028-02", "2028-03-01", 29],
  ["2027-04", "2027-05-01", 30],
  ["2026-12", "2027-01-01", 31],
])("counts each request in the month in which it began when %s ends", async (month, nextDay, days) => {
  const after = new Date(`${nextDay}T00:00:00Z`);
  const end = after.getTime() / 1000;
  const clock = manualClock(end - 1);
  const waiting: ServerResponse[] = [];
  let waits = false;
  await using upstream = await startUpstream(({ body }, res) => {
    if (body["model"] === "judge" || waits) waiting.push(res);
    else answer(res, "Yes.");
  });
  await using server = await startHeadrace({ clock, yaml: upstreamYaml(upstream, models) });
  const quotas = [
    { unit: "tokens", amount: 1_000, per: "day" },
    { unit: "requests", amount: 1_000, per: "month" },
  ];
  const key = await newKey(server, { monthly_tokens: 1_000, monthly_spend: 1, quotas });
  const spent = await newKey(server, { monthly_tokens: tokensEach });
  expect((await chat(server, spent)).status).toBe(200);
  const refused = await chat(server, spent);
  expect(refused.status).toBe(403);
  expect(await refused.text()).toContain(`used in ${month} (UTC). The quota resets at ${nextDay}T00:00:00Z.`);
  expect((await chat(server, key)).status).toBe(200);
  // One waits for its model over the end of the month, and one for its guardrail.
  waits = true;
  const running = [chat(server, key), chat(server, key, "guarded")];
  await until(() => waiting.length === 2, "both wait");
  waits = false;
  clock.advance(1_000);
  expect((await chat(server, spent)).status).toBe(200);
  expect((await chat(server, key)).status).toBe(200);
  for (const res of waiting) answer(res, '{"pass":true,"reason":"ok"}');
  expect((await Promise.all(running)).map(({ status }) => status)).toEqual([200, 200]);

  const account = await got<Account>(server, "/v1/account", key);
  const used = account.quotas.map(({ unit, per, used, starts_at, resets_at }) => [
    ...[unit, per, used, starts_at, resets_at],
  ]);
  const nextEnd = Date.UTC(after.getUTCFullYear(), after.getUTCMonth() + 1, 1) / 1000;
  expect(used.sort()).toEqual([
    ["requests", "month", 1, end, nextEnd],
    ["tokens", "day", tokensEach, end, end + 86_400],
  ]);
  expect(account.quota).toMatchObject({ period_start: end, period_end: nextEnd, tokens: { used: 2 * tokensEach } });
  const totals = async (name: string, query: string) => {
    const { start, end, is_over, total } = await got<Statement>(server, `/v1/statement?month=${name}${query}`);
    return [start, end, is_over, total.requests, total.total_tokens, total.cost];
  };
  // The judge's request is one more, of the operator's own and without a price.
  const start = end - days * 86_400;
  expect(await totals(month, "")).toEqual([start, end, true, 5, 5 * tokensEach, "0.000080000"]);
  expect(await totals(nextDay.slice(0, 7), "")).toEqual([end, nextEnd, false, 2, 2 * tokensEach, "0.000040000"]);
  const byMonth = await got<UsageRows>(server, `/v1/usage?bucket=month&start=${start}&end=${nextEnd}`);
  expect(byMonth.data.map((row) => [row.start, row.end, row.requests])).toEqual([
    [start, end, 5],
    [end, nextEnd, 2],
  ]);
});
