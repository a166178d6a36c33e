// One limit, three processes behind nginx, three hundred clients over HTTP: together they get what the formula allows, and no quota is overrun.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { randomBytes } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { SQL } from "bun";
import { findNginx } from "../../bench/nginx.ts";
import { runCommand } from "../fixtures/command-line.ts";
import { until } from "../support/headrace.ts";
import { long } from "../support/long.ts";
import { freshDatabase } from "../support/postgres.ts";
import { type RedisServer, startRedis } from "../support/redis.ts";
import {
  chunk,
  type Script,
  type ScriptedUpstream,
  startUpstream,
  upstreamYaml,
} from "../support/scripted-upstream.ts";
import { type ServerProcess, startServerProcess } from "../support/server-process.ts";

const directory = mkdtempSync(join(tmpdir(), "headrace-exact-"));
const loadMs = long ? 30_000 : 1_500;
const clients = 300;
let redis: RedisServer;
let upstream: ScriptedUpstream;
let servers: ServerProcess[] = [];
let nginx: Bun.Subprocess;
let url: string;
let operator: string;
let db: SQL;

beforeAll(async () => {
  const [databaseUrl] = await Promise.all([
    freshDatabase(),
    startRedis().then((started) => {
      redis = started;
    }),
    startUpstream().then((started) => {
      upstream = started;
    }),
  ]);
  db = new SQL(databaseUrl, { max: 1 });
  const config = join(directory, "headrace.yaml");
  writeFileSync(
    config,
    upstreamYaml(
      upstream,
      "tiers: [{ name: enterprise, requests_per_minute: null, tokens_per_minute: null }, { name: tokens, requests_per_minute: null, tokens_per_minute: 1500 }, { name: small, requests_per_minute: 200, tokens_per_minute: null }]\n",
    ),
  );
  const env = {
    HEADRACE_DATABASE_URL: databaseUrl,
    HEADRACE_REDIS_URL: redis.url,
    HEADRACE_SECRET: randomBytes(32).toString("hex"),
  };
  const args = ["--mode", "production", "--public-url", "http://localhost:7545"];
  servers = await Promise.all(
    [0, 1, 2].map((index) => startServerProcess({ config, env, args, dataDir: join(directory, `data-${index}`) })),
  );
  operator = (
    await runCommand(["operator-key", "--data-dir", join(directory, "data-0"), "--quiet"], { env })
  ).stdout.trim();
  const free = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: () => new Response() });
  const { port } = free;
  await free.stop(true);
  const temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"];
  const file = join(directory, "nginx.conf");
  writeFileSync(
    file,
    `daemon off; pid ${directory}/pid; error_log ${directory}/error.log warn;
${process.getuid?.() === 0 ? "user root;" : ""} worker_processes 1; events { worker_connections 4096; }
http { access_log off; ${temporary.map((kind) => `${kind}_temp_path ${directory}/${kind};`).join(" ")}
upstream headrace { ${servers.map((server) => `server 127.0.0.1:${new URL(server.url).port} max_fails=0;`).join(" ")} keepalive 300; }
server { listen 127.0.0.1:${port}; location / { proxy_pass http://headrace; proxy_http_version 1.1; proxy_set_header Connection ""; proxy_buffering off; proxy_next_upstream off; } } }`,
  );
  nginx = Bun.spawn([findNginx() ?? "nginx", "-c", file, "-p", directory, "-e", join(directory, "error.log")], {
    stderr: "inherit",
  });
  url = `http://127.0.0.1:${port}`;
  await until(
    () =>
      fetch(`${url}/healthz`).then(
        ({ ok }) => ok,
        () => false,
      ),
    "nginx answers",
  );
}, 60_000);

afterAll(async () => {
  nginx.kill("SIGTERM");
  await Promise.all([nginx.exited, ...servers.map((server) => server[Symbol.asyncDispose]())]);
  await Promise.all([db.close(), redis.stop(), upstream[Symbol.asyncDispose]()]);
  rmSync(directory, { recursive: true, force: true });
});

async function post(path: string, key: string, body: unknown): Promise<{ status: number; text: string }> {
  const response = await fetch(url + path, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  return { status: response.status, text: await response.text() };
}

async function made(path: string, body: unknown): Promise<Record<string, string>> {
  const { status, text } = await post(path, operator, body);
  if (status !== 200) throw new Error(text);
  return JSON.parse(text);
}

const scopes = ["chat:write", "usage:read"];
const chat = (key: string, more: object = {}) =>
  post("/v1/chat/completions", key, {
    model: "upstream-model",
    max_tokens: 9,
    messages: [{ role: "user", content: "x" }],
    ...more,
  });

/** Ten tokens, whatever was reserved; of a stream one after the other. */
const tenTokens: Script = async ({ body }, res) => {
  const usage = { prompt_tokens: 1, completion_tokens: 9, total_tokens: 10 };
  if (!body["stream"]) {
    res.setHeader("content-type", "application/json");
    const choices = [{ index: 0, message: { role: "assistant", content: "a b c d e f g h i" }, finish_reason: "stop" }];
    res.end(JSON.stringify({ id: "c", object: "chat.completion", created: 1, model: "m", choices, usage }));
    return;
  }
  res.setHeader("content-type", "text/event-stream");
  for (let i = 0; i < 9; i++) {
    res.write(chunk({ content: "a " }));
    await Bun.sleep(3);
  }
  res.write(chunk({}, "stop"));
  res.write(chunk({}, null, { choices: [], usage }));
  res.end("data: [DONE]\n\n");
};

/** Asks all the time with as many clients; statuses, and how long it took. */
async function load(keys: readonly string[], forMs: number, more: () => object = () => ({})) {
  const statuses: Record<number, number> = {};
  const begun = performance.now();
  await Promise.all(
    Array.from({ length: clients }, async (_, i) => {
      while (performance.now() - begun < forMs) {
        const { status } = await chat(keys[i % keys.length] as string, more());
        statuses[status] = (statuses[status] ?? 0) + 1;
      }
    }),
  );
  return { statuses, tookMs: performance.now() - begun };
}

/**
 * Asks until `expected` tokens are used: what is reserved in one round is free for the next, and a slow machine has fewer
 * rounds in the same time. Ten times as long at most.
 */
async function loadUpTo(
  expected: number,
  { key, id, forMs, more }: { key: string; id: string; forMs: number; more: () => object },
): Promise<{ statuses: Record<number, number>; tokens: number; tookMs: number }> {
  const statuses: Record<number, number> = {};
  const begun = performance.now();
  for (let round = 1; ; round++) {
    const { statuses: ofRound } = await load([key], forMs, more);
    const tookMs = performance.now() - begun;
    for (const [status, count] of Object.entries(ofRound))
      statuses[Number(status)] = (statuses[Number(status)] ?? 0) + count;
    await until(async () => (await booked(id)).rows === statuses[200], "all is booked");
    const { tokens } = await booked(id);
    if (tokens > expected || round === 10) return { statuses, tokens, tookMs };
  }
}

/**
 * Times that a server had to do without Redis, and goes by its share, or without the ledger for longer than a request waits: both
 * are other tests'.
 */
const timesAlone = () =>
  servers.reduce((sum, server) => sum + server.log().split(/"redis_away"|no answer in time/).length - 1, 0);

/** Once more where the machine stood still for longer than Redis may take. */
async function undisturbed(check: () => Promise<void>): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    const before = timesAlone();
    try {
      return await check();
    } catch (error) {
      if (attempt === 3 || timesAlone() === before) throw error;
      const redisStates = () =>
        Promise.all(servers.map(async (server) => (await (await fetch(`${server.url}/readyz`)).json()) as Ready));
      await until(async () => (await redisStates()).every(({ checks }) => checks["redis"] === "ok"), "Redis again");
    }
  }
}

interface Ready {
  checks: Record<string, string>;
}

function expectFormula(
  { statuses, tookMs }: { statuses: Record<number, number>; tookMs: number },
  limit: number,
  windowSeconds: number,
  forMs: number,
) {
  const admitted = statuses[200] ?? 0;
  const perMs = limit / (windowSeconds * 1_000);
  console.log({ statuses, tookMs: Math.round(tookMs), allowed: limit + perMs * tookMs });
  expect(Object.keys(statuses).sort()).toEqual(["200", "429"]);
  expect(admitted).toBeLessThanOrEqual(Math.floor(limit + perMs * tookMs));
  expect(admitted).toBeGreaterThanOrEqual(Math.floor(limit + perMs * forMs) - 2);
}

async function booked(keyId: string): Promise<{ tokens: number; rows: number }> {
  const [row] = await db`
    SELECT coalesce(sum(prompt_tokens + completion_tokens), 0) AS tokens, count(*) AS n
    FROM usage_records WHERE key_id = ${keyId}`;
  return { tokens: Number(row.tokens), rows: Number(row.n) };
}

// hardening: L2
test(
  "admits a key's requests exactly by burst + rate x time over replicas",
  () =>
    undisturbed(async () => {
      const { key = "" } = await made("/v1/keys", { name: "x", scopes, rate_limit: 100, rate_limit_window: 10 });
      expectFormula(await load([key], loadMs), 100, 10, loadMs);
    }),
  90_000,
);

// hardening: L2
test(
  "admits an account's requests exactly by burst + rate x time over several keys and replicas",
  () =>
    undisturbed(async () => {
      const { id = "" } = await made("/v1/admin/accounts", { name: "Shop", tier: "small" });
      const keys = await Promise.all(
        [1, 2, 3, 4].map(() => made(`/v1/admin/accounts/${id}/keys`, { name: "x", environment: "live", scopes })),
      );
      expectFormula(
        await load(
          keys.map(({ key = "" }) => key),
          loadMs,
        ),
        200,
        60,
        loadMs,
      );
    }),
  90_000,
);

test(
  "exceeds a quota over all replicas only by the last estimate, streams included",
  () =>
    undisturbed(async () => {
      const { key = "", id = "" } = await made("/v1/keys", { name: "x", scopes, monthly_tokens: 2_000 });
      upstream.script(tenTokens);
      const more = () => ({ stream: Math.random() < 0.5 });
      const { statuses, tokens } = await loadUpTo(1_980, { key, id, forMs: 1_500, more });
      console.log({ statuses, tokens });
      expect(tokens).toBeLessThanOrEqual(2_000);
      expect(tokens).toBeGreaterThan(1_980);
      expect(Object.keys(statuses).sort()).toEqual(["200", "403"]);
    }),
  60_000,
);

for (const quotas of [
  [{ unit: "requests", amount: 120, per: "hour" }],
  [{ unit: "requests", amount: 120, per: "week", models: ["upstream-*"] }],
  [{ unit: "requests", amount: 120, per: "5h" }],
  [
    { unit: "requests", amount: 200, per: "month" },
    { unit: "requests", amount: 120, per: 900, models: ["upstream-model", "other"] },
  ],
  [
    { unit: "requests", amount: 120, per: "5h", tag: "team-a" },
    { unit: "requests", amount: 10, per: "day", tag: "team-b" },
  ],
]) {
  const shown = quotas.map(
    ({ amount, per, ...which }) => `${amount} per ${per}${"tag" in which ? ` of ${which.tag}` : ""}`,
  );
  const name = shown.join(" and ");
  test(
    `admits exactly a key's requests per window for 300 clients on three replicas, ${name}`,
    () =>
      undisturbed(async () => {
        const { key = "", id = "" } = await made("/v1/keys", { name: "x", scopes, quotas, tags: ["team-a"] });
        const { statuses } = await load([key], loadMs);
        console.log({ statuses });
        // A calendar hour that ends meanwhile grants as many again.
        const most = quotas[0]?.per === "hour" && statuses[200] !== 120 ? 240 : 120;
        expect(statuses[200]).toBe(most);
        expect(Object.keys(statuses).sort()).toEqual(["200", "403"]);
        await until(async () => (await booked(id)).rows === statuses[200], "all is booked");
      }),
    90_000,
  );
}

test(
  "exceeds a windowed token limit over all replicas only by the last estimate",
  () =>
    undisturbed(async () => {
      const quotas = [
        { unit: "tokens", amount: 2_000, per: "5h" },
        { unit: "tokens", amount: 90_000, per: "day" },
      ];
      const { key = "", id = "" } = await made("/v1/keys", { name: "x", scopes, quotas });
      upstream.script(tenTokens);
      const more = () => ({ stream: Math.random() < 0.5 });
      const { statuses, tokens } = await loadUpTo(1_980, { key, id, forMs: 1_500, more });
      console.log({ statuses, tokens });
      expect(tokens).toBeLessThanOrEqual(2_000);
      expect(tokens).toBeGreaterThan(1_980);
      expect(Object.keys(statuses).sort()).toEqual(["200", "403"]);
    }),
  60_000,
);

// hardening: L2
test(
  "uses an account's tokens exactly by burst + rate x time, though five times as many are reserved",
  () =>
    undisturbed(async () => {
      const account = await made("/v1/admin/accounts", { name: "Shop", tier: "tokens" });
      const { key = "", id = "" } = await made(`/v1/admin/accounts/${account["id"]}/keys`, {
        name: "x",
        environment: "live",
        scopes,
      });
      upstream.script(tenTokens);
      // What is left is less than one reservation, but for those who come too late to ask for it.
      const expected = 1_500 + loadMs / 40 - 200;
      const more = () => ({ stream: Math.random() < 0.5, max_tokens: 49 });
      const { statuses, tokens, tookMs } = await loadUpTo(expected, { key, id, forMs: loadMs, more });
      console.log({ statuses, tokens, allowed: 1_500 + tookMs / 40 });
      expect(tokens).toBeLessThanOrEqual(1_500 + tookMs / 40);
      expect(tokens).toBeGreaterThan(expected);
      expect(Object.keys(statuses).sort()).toEqual(["200", "429"]);
    }),
  90_000,
);
