// Quotas per window over HTTP: 300 clients at once against each kind, a month's end and a restart in between, and the refusal.
import { afterEach, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { GivenQuotaRule } from "../../src/domain/limits/quota-rules.ts";
import { startHeadrace, type TestServer } from "../support/headrace.ts";
import { manualClock } from "../support/manual-clock.ts";
import { json, startUpstream, upstreamYaml } from "../support/scripted-upstream.ts";

const stack: AsyncDisposable[] = [];
afterEach(async () => {
  for (const part of stack.splice(0).reverse()) await part[Symbol.asyncDispose]();
});

/** Twelve seconds before a month, a week and a day end, all on a Sunday. */
const begin = Date.UTC(2026, 10, 30) / 1000 - 12;

async function start(quotas: readonly GivenQuotaRule[], at = begin) {
  const directory = mkdtempSync(join(tmpdir(), "headrace-windows-"));
  stack.push({ [Symbol.asyncDispose]: async () => rmSync(directory, { recursive: true, force: true }) });
  const usage = { prompt_tokens: 1, completion_tokens: 9, total_tokens: 10 };
  const upstream = await startUpstream((_request, res) =>
    json(res, 200, {
      ...{ id: "c", object: "chat.completion", created: 1, model: "upstream-model", usage },
      choices: [{ index: 0, message: { role: "assistant", content: "Yes." }, finish_reason: "stop" }],
    }),
  );
  stack.push(upstream);
  const clock = manualClock(at);
  const tier = { name: "enterprise", requests_per_minute: null, tokens_per_minute: null, quotas };
  const model = { id: "upstream-model", price: { input: 1, output: 1 }, deployments: [{ upstream: "up" }] };
  const yaml = upstreamYaml(upstream, `tiers: [${JSON.stringify(tier)}]\nmodels: [${JSON.stringify(model)}]\n`);
  let key = "";
  const open = async (): Promise<TestServer> => {
    const flags = { mode: "production", publicUrl: "http://127.0.0.1:7545" };
    const server = await startHeadrace({ clock, dataDir: join(directory, "data"), flags, yaml });
    stack.push(server);
    key ||= server.key;
    return server;
  };
  const server = await open();
  const restart = async () => {
    await stack.pop()?.[Symbol.asyncDispose]();
    return open();
  };
  const ask = (from: TestServer, more: object = {}, headers: Record<string, string> = {}) =>
    from.request("/v1/chat/completions", {
      headers: { authorization: `Bearer ${key}`, ...headers },
      body: { model: "upstream-model", max_tokens: 9, messages: [{ role: "user", content: "x" }], ...more },
    });
  const volley = async (from: TestServer, count = 300) => {
    const statuses: Record<number, number> = {};
    await Promise.all(
      Array.from({ length: count }, async () => {
        const response = await ask(from);
        await response.text();
        statuses[response.status] = (statuses[response.status] ?? 0) + 1;
      }),
    );
    return statuses;
  };
  const used = async (from: TestServer) => {
    const response = await from.request("/v1/account", { headers: { authorization: `Bearer ${key}` } });
    return ((await response.json()) as { quotas: { used: number; resets_at: number | null }[] }).quotas;
  };
  return { clock, server, restart, ask, volley, used };
}

for (const rule of [
  { unit: "requests", amount: 40, per: "hour" },
  { unit: "requests", amount: 40, per: "day" },
  { unit: "requests", amount: 40, per: "week" },
  { unit: "requests", amount: 40, per: 12 * 60, models: ["upstream-*"] },
] as const) {
  test(`admits exactly ${rule.amount} requests per ${rule.per} for 300 clients, over a restart, and again in the next window`, async () => {
    const { clock, server, restart, volley, used } = await start([rule]);
    expect(await volley(server)).toEqual({ 200: 40, 403: 260 });
    const again = await restart();
    expect(await used(again)).toMatchObject([{ used: 40 }]);
    expect(await volley(again, 20)).toEqual({ 403: 20 });
    clock.advance(typeof rule.per === "number" ? rule.per * 1_000 : 12_000);
    expect(await volley(again)).toEqual({ 200: 40, 403: 260 });
  });
}

test("admits exactly two tags' quotas for 300 clients with some of three tags, over a restart, and limits no others", async () => {
  const { server, restart, ask, used } = await start([
    { unit: "requests", amount: 30, per: "day", tag: "a" },
    { unit: "requests", amount: 50, per: "week", tag: "b" },
  ]);
  const volley = async (from: TestServer) => {
    const served = { a: 0, b: 0, c: 0 };
    await Promise.all(
      Array.from({ length: 300 }, async (_, i) => {
        const tag = (["a", "b", "c"] as const)[i % 3] ?? "c";
        const response = await ask(from, {}, { "x-headrace-tags": `${tag},all` });
        await response.text();
        if (response.status === 200) served[tag]++;
      }),
    );
    return served;
  };
  expect(await volley(server)).toEqual({ a: 30, b: 50, c: 100 });
  const again = await restart();
  expect(await used(again)).toMatchObject([{ used: 30 }, { used: 50 }]);
  expect(await volley(again)).toEqual({ a: 0, b: 0, c: 100 });
});

test("uses a windowed token and money quota fully without exceeding it, with 300 clients", async () => {
  const { server, volley, used } = await start([
    { unit: "tokens", amount: 600, per: "5h" },
    { unit: "usd", amount: 0.0005, per: "week" },
  ]);
  // Ten tokens of a micro-USD each are reserved and used.
  for (let round = 0; round < 3; round++) await volley(server);
  const [tokens, money] = await used(server);
  expect(tokens?.used).toBe(500);
  expect(money?.used).toBe(0.0005);
});

test("counts usage in the month, week and day in which it began, under load at their end", async () => {
  const { clock, server, volley, used } = await start([
    { unit: "requests", amount: 100_000, per: "month" },
    { unit: "requests", amount: 100_000, per: "day" },
    { unit: "requests", amount: 150, per: "5h" },
  ]);
  const load = [volley(server, 100)];
  await Bun.sleep(5);
  clock.advance(12_000);
  load.push(volley(server, 100));
  const statuses = await Promise.all(load);
  const served = statuses.reduce((sum, { 200: ok = 0 }) => sum + ok, 0);
  expect(served).toBe(150);
  const [month, day, rolling] = await used(server);
  expect(rolling).toMatchObject({ used: 150 });
  expect(month?.used).toBe(served);
  expect(day?.used).toBeLessThanOrEqual(served);
  expect(day?.used).toBeGreaterThanOrEqual(50);
});

test("refuses a spent quota with 403, its name and reset in text and data, and no retry", async () => {
  const { server, ask } = await start([{ unit: "requests", amount: 1, per: "5h", models: ["upstream-*"] }]);
  expect((await ask(server)).status).toBe(200);
  const refused = await ask(server);
  expect([refused.status, refused.headers.get("x-should-retry")]).toEqual([403, "false"]);
  expect(await refused.json()).toEqual({
    error: {
      message:
        "This request is more than the quota of the account for upstream-* per 5 hours has left: 1 request of 1 request are used since 2026-11-29T23:59:48Z. The quota resets at 2026-11-30T04:59:48Z. Ask an operator of this server for more.",
      ...{ type: "insufficient_quota", code: "insufficient_quota" },
    },
    quota: {
      ...{ reason: "account_quota", ask: "an operator of this server" },
      ...{ owner: "account", unit: "requests", limit: 1, used: 1, reserved: 0, needed: 1, per: "5h" },
      ...{ window: "rolling", models: ["upstream-*"], tag: null, starts_at: begin, resets_at: begin + 18_000 },
    },
  });
});
