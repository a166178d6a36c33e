// Limits by the real clock under 200 clients that stream, leave and meet errors: never more than the formula, nothing lost.
import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { join } from "node:path";
import { startHeadrace, type TestServer, until } from "../support/headrace.ts";
import { long } from "../support/long.ts";
import { chunk, json, type Script, startUpstream } from "../support/scripted-upstream.ts";

const clients = 200;
const loadMs = long ? 30_000 : 3_000;
const promptTokens = 10;
const prompt = "x".repeat(40);

/** Mostly answers, whole or in pieces; one of five fails, in one of several ways. Uses at most what was asked for. */
const mixedScript: Script = async (request, res) => {
  const most = Number(request.body["max_tokens"]);
  const completionTokens = 1 + Math.floor(Math.random() * most);
  const usage = {
    prompt_tokens: promptTokens,
    completion_tokens: completionTokens,
    total_tokens: promptTokens + completionTokens,
  };
  const luck = Math.random();
  if (luck < 0.1) return json(res, 500, { error: { message: "broken" } });
  if (luck < 0.15) return void res.destroy();
  await Bun.sleep(Math.random() * 20);
  if (request.body["stream"] !== true) {
    const choices = [
      { index: 0, message: { role: "assistant", content: "word ".repeat(completionTokens) }, finish_reason: "stop" },
    ];
    return json(res, 200, { id: "c", object: "chat.completion", created: 1, model: "upstream-model", choices, usage });
  }
  res.writeHead(200, { "content-type": "text/event-stream" });
  for (let token = 0; token < completionTokens && !res.destroyed; token++) {
    res.write(chunk({ content: "word " }));
    if (luck < 0.2 && token > completionTokens / 2) return void res.destroy();
    await Bun.sleep(Math.random() * 6);
  }
  res.write(chunk({}, "stop"));
  res.write(
    `data: ${JSON.stringify({ id: "c", object: "chat.completion.chunk", created: 1, model: "upstream-model", choices: [], usage })}\n\n`,
  );
  res.end("data: [DONE]\n\n");
};

interface Overview {
  rate: Record<"requests" | "tokens", { limit: number; remaining: number; reset_seconds: number } | null>;
  quota: { tokens: { used: number } };
}

async function overview(server: TestServer): Promise<Overview> {
  const response = await server.request("/v1/account");
  expect(response.status).toBe(200);
  return (await response.json()) as Overview;
}

interface Sums {
  requests: number;
  tokens: number;
  outcomes: Record<string, number>;
}

function ledger(server: TestServer): Sums {
  using db = new Database(join(server.dataDir, "headrace.db"), { readonly: true });
  const rows = db
    .query(
      "SELECT outcome, count(*) AS requests, sum(prompt_tokens + completion_tokens) AS tokens FROM usage_records GROUP BY outcome",
    )
    .all() as { outcome: string; requests: number; tokens: number }[];
  return {
    requests: rows.reduce((sum, row) => sum + row.requests, 0),
    tokens: rows.reduce((sum, row) => sum + row.tokens, 0),
    outcomes: Object.fromEntries(rows.map((row) => [row.outcome, row.requests])),
  };
}

/** 200 clients without a pause, until one was refused; statuses by how often, 0 for those that left. */
async function storm(server: TestServer, maxTokens: number) {
  const statuses: Record<number, number> = {};
  const late: string[] = [];
  const end = performance.now() + loadMs;
  // A busy machine takes longer to come to the limit.
  const latest = end + 4 * loadMs;
  const isOver = () => performance.now() > (statuses[429] ? end : latest);
  let firstAnswerMs = Number.POSITIVE_INFINITY;
  const startedMs = performance.now();
  await Promise.all(
    Array.from({ length: clients }, async () => {
      while (!isOver()) {
        const leave = Math.random() < 0.15 ? AbortSignal.timeout(Math.random() * 60) : undefined;
        let status = 0;
        try {
          const body = {
            model: "upstream-model",
            messages: [{ role: "user", content: prompt }],
            max_tokens: maxTokens,
            stream: Math.random() < 0.5,
          };
          const response = await server.request("/v1/chat/completions", { body, ...(leave ? { signal: leave } : {}) });
          firstAnswerMs = Math.min(firstAnswerMs, performance.now());
          if (response.status === 429 && !(Number(response.headers.get("retry-after-ms")) > 0))
            late.push("no time to wait");
          await response.text();
          status = response.status;
        } catch {
          // It left, or the stream broke: `status` says so.
        }
        statuses[status] = (statuses[status] ?? 0) + 1;
        await Bun.sleep(Math.random() * 10);
      }
    }),
  );
  return { statuses, late, startedMs, firstAnswerMs };
}

// hardening: L1
test.each([
  // So low that a machine which does much else as well comes to them.
  { what: "200 requests a minute", tier: { requests_per_minute: 200, tokens_per_minute: null } },
  { what: "20,000 tokens a minute", tier: { requests_per_minute: null, tokens_per_minute: 20_000 } },
  { what: "both, close to each other", tier: { requests_per_minute: 300, tokens_per_minute: 20_000 } },
])(
  "admits within burst + rate x time and agrees with the ledger under load: $what",
  async ({ tier }) => {
    await using upstream = await startUpstream(mixedScript);
    await using server = await startHeadrace({
      flags: { mode: "production", publicUrl: "http://127.0.0.1:7545" },
      yaml: `upstreams:\n  - { name: up, url: "${upstream.url}", max_concurrency: 1000 }\ntiers: [${JSON.stringify({ name: "enterprise", monthly_tokens: 1e12, ...tier })}]\n`,
    });
    const { statuses, late, startedMs, firstAnswerMs } = await storm(server, 90);
    const admittedUntilMs = performance.now();
    await until(
      async () => {
        const sums = ledger(server);
        const logged = server.logged("request").filter((line) => line["outcome"] !== undefined).length;
        await Bun.sleep(50);
        return sums.requests > 0 && sums.requests === ledger(server).requests && logged === sums.requests;
      },
      "everything has ended and is in the ledger",
      20_000,
    );

    const sums = ledger(server);
    console.log(
      JSON.stringify({
        statuses,
        ...sums,
        upstream: upstream.requests.length,
        seconds: (admittedUntilMs - startedMs) / 1000,
      }),
    );
    expect(late).toEqual([]);
    expect(statuses[429] ?? 0).toBeGreaterThan(0);
    expect(Object.keys(statuses).filter((status) => !["0", "200", "429", "502"].includes(status))).toEqual([]);
    for (const kind of ["requests", "tokens"] as const) {
      const limit = tier[`${kind}_per_minute`];
      if (limit === null) continue;
      const perMs = limit / 60_000;
      expect([kind, sums[kind] <= limit + perMs * (admittedUntilMs - startedMs)]).toEqual([kind, true]);
      const beforeMs = performance.now();
      const state = (await overview(server)).rate[kind];
      const afterMs = performance.now();
      // From the first admission on, the bucket was never full again.
      const refilled = (state?.remaining ?? Number.NaN) + sums[kind] - limit;
      const least = Math.floor(perMs * (beforeMs - firstAnswerMs)) - 1;
      const most = Math.ceil(perMs * (afterMs - startedMs)) + 1;
      expect([kind, refilled, refilled >= least && refilled <= most, least, most]).toEqual([
        kind,
        refilled,
        true,
        least,
        most,
      ]);
    }
    expect((await overview(server)).quota.tokens.used).toBe(sums.tokens);
    if (!long) return;
    await until(
      async () => {
        const { rate } = await overview(server);
        return [rate.requests, rate.tokens].every((state) => state === null || state.remaining === state.limit);
      },
      "the buckets are whole again",
      90_000,
    );
  },
  200_000,
);

// hardening: L1, F1
test("returns reservations of failed requests in full", async () => {
  let failing: Script = (_request, res) => json(res, 500, { error: { message: "broken" } });
  await using upstream = await startUpstream((request, res) => failing(request, res));
  await using server = await startHeadrace({
    flags: { mode: "production", publicUrl: "http://127.0.0.1:7545" },
    yaml: `upstreams:\n  - { name: up, url: "${upstream.url}", max_concurrency: 1000, timeout_seconds: 1 }\ntiers: [{ name: enterprise, requests_per_minute: 100000, tokens_per_minute: 1000000, monthly_tokens: 1000000 }]\n`,
  });
  const kinds: Record<string, Script> = {
    "an error": failing,
    "a broken connection": (_request, res) => void res.destroy(),
    "no JSON": (_request, res) => void res.end("<html>"),
    "an error in the stream": (_request, res) => {
      res.writeHead(200, { "content-type": "text/event-stream" });
      res.end('data: {"error":{"message":"broken"}}\n\n');
    },
    "no first byte": () => {},
  };
  for (const [kind, script] of Object.entries(kinds)) {
    failing = script;
    await Promise.all(
      Array.from({ length: 40 }, async (_, client) => {
        const body = {
          model: "upstream-model",
          messages: [{ role: "user", content: prompt }],
          max_tokens: 5_000,
          stream: client % 2 === 0,
        };
        const signal = kind === "no first byte" && client % 4 < 2 ? { signal: AbortSignal.timeout(100) } : {};
        await server.request("/v1/chat/completions", { body, ...signal }).then(
          (response) => response.text().catch(() => ""),
          () => "",
        );
      }),
    );
    const used = () => ledger(server).tokens;
    await until(
      async () => {
        const { rate, quota } = await overview(server);
        return rate.tokens?.remaining === 1_000_000 && quota.tokens.used === used();
      },
      `after ${kind} everything is there again`,
      3_000,
    );
  }
  await until(() => ledger(server).requests >= 200, "all are in the ledger");
  expect(ledger(server).requests).toBe(200);
  expect((await overview(server)).rate.requests?.remaining).toBeGreaterThan(99_700);
}, 60_000);
