// Prices that change, clocks that jump and a month that ends while 40 clients ask all the time: nothing is lost, and each request has the
// price and the month of its own moment.
import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { join } from "node:path";
import { startHeadrace, type TestServer, until } from "../support/headrace.ts";
import { shiftedClock } from "../support/manual-clock.ts";
import { operated } from "../support/operated.ts";
import { json, startUpstream, upstreamYaml } from "../support/scripted-upstream.ts";

const clients = 40;
const model = "upstream-model";

/** What a client saw of a request that was served, by the real clock. */
interface Served {
  id: string;
  beganMs: number;
  endedMs: number;
}

function slowUpstream() {
  return startUpstream(async (_request, res) => {
    await Bun.sleep(Math.random() * 10);
    json(res, 200, {
      ...{ id: "c", object: "chat.completion", created: 1, model },
      choices: [{ index: 0, message: { role: "assistant", content: "Yes." }, finish_reason: "stop" }],
      usage: { prompt_tokens: 10, completion_tokens: 10, total_tokens: 20 },
    });
  });
}

/** Asks all the time until `work` is done. */
async function whileAsked(server: TestServer, key: string, work: () => Promise<void>): Promise<Served[]> {
  const served: Served[] = [];
  let isOver = false;
  const load = Array.from({ length: clients }, async () => {
    while (!isOver) {
      const beganMs = performance.now();
      const body = { model, max_tokens: 10, messages: [{ role: "user", content: "x" }] };
      const headers = { authorization: `Bearer ${key}` };
      const response = await server.request("/v1/chat/completions", { body, headers });
      expect([response.status, response.status === 200 ? "" : await response.text()]).toEqual([200, ""]);
      await response.text();
      served.push({ id: response.headers.get("x-request-id") ?? "", beganMs, endedMs: performance.now() });
    }
  });
  try {
    await work();
  } finally {
    isOver = true;
    await Promise.all(load);
  }
  return served;
}

interface Row {
  request_id: string;
  at: number;
  nano_usd: number;
}

async function rowsOf(server: TestServer, count: number): Promise<Map<string, Row>> {
  await server.governance.ledger.flush();
  using db = new Database(join(server.dataDir, "headrace.db"), { readonly: true });
  const rows = db.query("SELECT request_id, at, nano_usd FROM usage_records").all() as Row[];
  expect(rows.length).toBe(count);
  return new Map(rows.map((row) => [row.request_id, row]));
}

async function quotasOf(server: TestServer, key: string) {
  const response = await server.request("/v1/account", { headers: { authorization: `Bearer ${key}` } });
  return ((await response.json()) as { quotas: { unit: string; per: string; used: number }[] }).quotas;
}

test("charges each request the price of its moment while prices change under load, exactly in ledger and quotas", async () => {
  await using upstream = await slowUpstream();
  await using server = await startHeadrace({ yaml: upstreamYaml(upstream) });
  const { admin } = await operated(server);
  const price = async (usd: number) => {
    const { status } = await admin("PATCH", `/models/${model}`, { price: { input: usd, output: usd } });
    expect(status).toBe(200);
  };
  expect((await admin("POST", "/models", { id: model, price: { input: 1, output: 1 } })).status).toBe(200);
  const quotas = [{ unit: "usd", amount: 1_000, per: 31_622_400 }];
  const made = await server.request("/v1/keys", {
    body: { name: "x", scopes: ["chat:write", "usage:read"], quotas, monthly_spend: 1_000 },
  });
  const { key } = (await made.json()) as { key: string };
  const prices = [{ usd: 1, fromMs: 0, untilMs: 0 }];
  const served = await whileAsked(server, key, async () => {
    for (const usd of [3, 0.7, 11]) {
      await Bun.sleep(150);
      const last = prices.at(-1);
      const fromMs = performance.now();
      await price(usd);
      if (last) last.untilMs = performance.now();
      prices.push({ usd, fromMs, untilMs: Number.POSITIVE_INFINITY });
    }
    await Bun.sleep(150);
  });
  const rows = await rowsOf(server, served.length);
  let sum = 0;
  const seen = new Set<number>();
  for (const { id, beganMs, endedMs } of served) {
    const cost = rows.get(id)?.nano_usd ?? Number.NaN;
    // Those that held at some moment between its beginning and its end.
    const possible = prices.filter(({ fromMs, untilMs }) => fromMs <= endedMs && untilMs >= beganMs);
    expect(possible.map(({ usd }) => Math.round(usd * 20_000))).toContain(cost);
    sum += cost;
    seen.add(cost);
  }
  expect(seen.size).toBe(4);
  for (const { used } of await quotasOf(server, key)) expect(Math.round(used * 1e9)).toBe(sum);
});

test("assigns each request to its own window under load while the clock jumps and a month ends", async () => {
  await using upstream = await slowUpstream();
  const clock = shiftedClock();
  const end = Date.UTC(2027, 0, 1) / 1000;
  clock.jump(end - 3_700 - clock.nowSeconds());
  const windows = ["hour", "day", "week", "month"].map((per) => ({ unit: "requests", amount: 1e6, per }));
  const quotas = [...windows, { unit: "tokens", amount: 1e9, per: "5h" }];
  await using server = await startHeadrace({ clock, yaml: upstreamYaml(upstream) });
  const made = await server.request("/v1/keys", {
    body: { name: "x", scopes: ["chat:write", "usage:read"], quotas, monthly_tokens: 1e9 },
  });
  const { key } = (await made.json()) as { key: string };
  const served = await whileAsked(server, key, async () => {
    // Over the end and back, by an hour and by a day, and over the end for good.
    for (const seconds of [3_800, -3_800, 86_400, -2 * 86_400, 86_400, 3_800]) {
      await Bun.sleep(100);
      clock.jump(seconds);
    }
    await Bun.sleep(100);
  });
  const rows = [...(await rowsOf(server, served.length)).values()];
  expect(new Set(served.map(({ id }) => id)).size).toBe(served.length);
  const [hour, day, , month, rolling] = (await quotasOf(server, key)).map(({ used }) => used);
  const within = (from: number, to: number) => rows.filter(({ at }) => at >= from && at < to).length;
  expect([hour, day, month]).toEqual([
    within(end, end + 3_600),
    within(end, end + 86_400),
    within(end, end + 31 * 86_400),
  ]);
  expect(within(0, end)).toBeGreaterThan(0);
  expect(within(end, end + 3_600)).toBeGreaterThan(0);
  // It ends by the clock that no one sets.
  expect(rolling).toBe(20 * served.length);
  const report = async (start: number, to: number) => {
    const response = await server.request(`/v1/usage?start=${start}&end=${to}`);
    const { data } = (await response.json()) as { data: { requests: number }[] };
    return data.reduce((sum, { requests }) => sum + requests, 0);
  };
  await until(
    async () => (await report(end - 3 * 86_400, end + 3 * 86_400)) === served.length,
    "reports have all of it",
  );
  expect(await report(end, end + 3 * 86_400)).toBe(within(end, end + 3 * 86_400));
});
