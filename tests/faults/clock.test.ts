// A wall clock that jumps by an hour, a day or forty days, either way: nobody is locked out or let in, nothing counts twice.
import { afterEach, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startHeadrace, type TestServer, until } from "../support/headrace.ts";
import { type ManualClock, manualClock } from "../support/manual-clock.ts";
import { json, type ScriptedUpstream, startUpstream, upstreamYaml } from "../support/scripted-upstream.ts";
import { recordedUsage } from "../support/usage-records.ts";

const hour = 3_600;
const day = 86_400;
const jumps = [hour, -hour, -hour, day, -day, -day, 40 * day, -40 * day, -40 * day, 40 * day, day, hour];
/** Prompt and answer of each request here. */
const tokensEach = 50;

const stack: AsyncDisposable[] = [];
afterEach(async () => {
  for (const part of stack.splice(0).reverse()) await part[Symbol.asyncDispose]();
});

interface Setup {
  clock: ManualClock;
  server: TestServer;
  upstream: ScriptedUpstream;
  /** The same data directory, a new process as far as memory goes. */
  restart(): Promise<TestServer>;
}

async function start(tier: Record<string, number | null> = {}): Promise<Setup> {
  const directory = mkdtempSync(join(tmpdir(), "headrace-clock-"));
  stack.push({ [Symbol.asyncDispose]: async () => rmSync(directory, { recursive: true, force: true }) });
  const upstream = await startUpstream((_request, res) =>
    json(res, 200, {
      id: "c",
      object: "chat.completion",
      created: 1,
      model: "upstream-model",
      choices: [{ index: 0, message: { role: "assistant", content: "Yes." }, finish_reason: "stop" }],
      usage: { prompt_tokens: 10, completion_tokens: tokensEach - 10, total_tokens: tokensEach },
    }),
  );
  stack.push(upstream);
  const clock = manualClock();
  const limits = { requests_per_minute: null, tokens_per_minute: null, ...tier };
  const yaml = upstreamYaml(upstream, `tiers: [${JSON.stringify({ name: "enterprise", ...limits })}]\n`);
  let key = "";
  const open = async () => {
    const server = await startHeadrace({
      clock,
      dataDir: join(directory, "data"),
      flags: { mode: "production", publicUrl: "http://127.0.0.1:7545" },
      yaml,
    });
    stack.push(server);
    key ||= server.key;
    const request: TestServer["request"] = (path, init = {}) =>
      server.request(path, { ...init, headers: { authorization: `Bearer ${key}`, ...init.headers } });
    return { ...server, key, request };
  };
  const server = await open();
  return {
    clock,
    server,
    upstream,
    async restart() {
      await stack.pop()?.[Symbol.asyncDispose]();
      return open();
    },
  };
}

function chat(server: TestServer, key = server.key, more: Record<string, unknown> = {}): Promise<Response> {
  const body = {
    model: "upstream-model",
    messages: [{ role: "user", content: "x".repeat(40) }],
    max_tokens: 40,
    ...more,
  };
  return server.request("/v1/chat/completions", { body, headers: { authorization: `Bearer ${key}` } });
}

async function status(response: Promise<Response>): Promise<number> {
  const settled = await response;
  await settled.text();
  return settled.status;
}

async function made<Answer>(response: Promise<Response>): Promise<Answer> {
  const settled = await response;
  expect(settled.status).toBe(200);
  return (await settled.json()) as Answer;
}

interface Key {
  id: string;
  key: string;
  status: string;
}

const makeKey = (server: TestServer, body: Record<string, unknown> = {}) =>
  made<Key>(server.request("/v1/keys", { body: { name: "x", ...body } }));
const tokenOf = async (server: TestServer, key: string) =>
  (await made<{ access_token: string }>(server.request("/v1/auth/token", { body: { api_key: key } }))).access_token;

// hardening: L5
test("serves keys, new tokens and every endpoint without negative numbers through clock jumps", async () => {
  const { clock, server } = await start({
    requests_per_minute: 100_000,
    tokens_per_minute: 10_000_000,
    monthly_tokens: 1_000_000,
  });
  let requests = 0;
  for (const jump of jumps) {
    clock.jump(jump);
    clock.advance(1_500);
    expect([jump, await status(chat(server))]).toEqual([jump, 200]);
    requests++;
    const token = await tokenOf(server, server.key);
    expect([jump, await status(chat(server, token))]).toEqual([jump, 200]);
    requests++;
    const { id } = await makeKey(server, { expires_in: 60 });
    for (const path of [
      "/v1/account",
      "/v1/usage",
      "/v1/usage?bucket=hour&group_by=key,model",
      "/v1/keys",
      `/v1/keys/${id}/usage`,
      "/v1/tiers",
      "/v1/chat/completions",
      "/.well-known/jwks.json",
    ]) {
      const response = await server.request(path);
      const text = await response.text();
      expect([jump, path, response.status]).toEqual([jump, path, 200]);
      expect(text).not.toMatch(/:-\d|NaN|Infinity/);
    }
    const { keys } = await made<{ keys: unknown[] }>(server.request("/.well-known/jwks.json"));
    expect(keys.length).toBeGreaterThanOrEqual(1);
    expect(keys.length).toBeLessThanOrEqual(3);
  }
  await until(async () => (await recordedUsage(server.dataDir)).length === requests, "usage is written");
  const since = clock.nowSeconds() - 100 * day;
  const report = await made<{ data: { requests: number; total_tokens: number }[] }>(
    server.request(`/v1/usage?start=${since}&end=${since + 200 * day}`),
  );
  expect(report.data.reduce((sum, row) => sum + row.requests, 0)).toBe(requests);
  expect(report.data.reduce((sum, row) => sum + row.total_tokens, 0)).toBe(requests * tokensEach);
  expect(server.logged("request").filter((line) => Number(line["status"]) >= 500 || Number(line["ms"]) < 0)).toEqual(
    [],
  );
});

test("keeps a revoked key revoked whichever way the clock jumps", async () => {
  const { clock, server } = await start();
  const key = await makeKey(server);
  const token = await tokenOf(server, key.key);
  expect(await status(chat(server, key.key))).toBe(200);
  expect(await status(server.request(`/v1/keys/${key.id}`, { method: "DELETE" }))).toBe(200);
  for (const jump of jumps) {
    clock.jump(jump);
    clock.advance(1_500);
    expect([jump, await status(chat(server, key.key))]).toEqual([jump, 401]);
    expect([jump, await status(chat(server, token))]).toEqual([jump, 401]);
  }
});

test.each([-hour, -day, -40 * day])(
  "keeps a key revoked after a restart if the clock is corrected by %d s after its revocation",
  async (jump) => {
    const { clock, server, restart } = await start();
    const key = await makeKey(server);
    expect(await status(server.request(`/v1/keys/${key.id}`, { method: "DELETE" }))).toBe(200);
    clock.jump(jump);
    const again = await restart();
    expect(await status(chat(again, key.key))).toBe(401);
  },
);

test("shows a revoked key as revoked after the clock was set back", async () => {
  const { clock, server } = await start();
  const key = await makeKey(server);
  expect(await status(server.request(`/v1/keys/${key.id}`, { method: "DELETE" }))).toBe(200);
  clock.jump(-hour);
  const shown = await made<Key>(server.request(`/v1/keys/${key.id}`));
  expect(shown.status).toBe("revoked");
});

test("expires keys by the clock, neither early nor late", async () => {
  const { clock, server } = await start();
  const key = await makeKey(server, { expires_in: 2 * day });
  const token = await tokenOf(server, key.key);
  for (const [jump, expected] of [
    [-day, 200],
    [2 * day, 200],
    [day, 401],
    [40 * day, 401],
  ] as const) {
    clock.jump(jump);
    expect([jump, await status(chat(server, key.key))]).toEqual([jump, expected]);
  }
  const refused = await chat(server, token);
  expect(await refused.json()).toMatchObject({
    error: { code: expect.stringMatching(/token_expired|invalid_api_key/) },
  });
});

test("does not extend a rotated key's overlap if the clock jumps ahead and back", async () => {
  const { clock, server } = await start();
  const old = await makeKey(server);
  await made(server.request(`/v1/keys/${old.id}/rotate`, { body: { overlap_seconds: 600 } }));
  expect(await status(chat(server, old.key))).toBe(200);
  clock.jump(hour);
  expect(await status(chat(server, old.key))).toBe(401);
  clock.jump(-hour);
  expect(await status(chat(server, old.key))).toBe(401);
});

test("keeps a key rotated without overlap revoked after the clock was set back, with or without a restart", async () => {
  const { clock, server, restart } = await start();
  const old = await makeKey(server);
  await made(server.request(`/v1/keys/${old.id}/rotate`, { body: { overlap_seconds: 0 } }));
  expect(await status(chat(server, old.key))).toBe(401);
  clock.jump(-day);
  expect(await status(chat(server, old.key))).toBe(401);
  const again = await restart();
  expect(await status(chat(again, old.key))).toBe(401);
});

interface Quota {
  quota: { period_start: number; tokens: { used: number } };
}
const usedNow = async (server: TestServer) => (await made<Quota>(server.request("/v1/account"))).quota;

// hardening: L5
test("keeps each month's quota usage through a clock jump, with nothing counted twice", async () => {
  const { clock, server } = await start({ monthly_tokens: 10 * tokensEach });
  const expected = new Map<number, number>();
  for (const jump of [0, ...jumps, 0]) {
    clock.jump(jump);
    const before = await usedNow(server);
    expect([jump, before.tokens.used]).toEqual([jump, expected.get(before.period_start) ?? 0]);
    const code = await status(chat(server));
    if ((expected.get(before.period_start) ?? 0) + tokensEach <= 10 * tokensEach) {
      expect([jump, code]).toEqual([jump, 200]);
      expected.set(before.period_start, (expected.get(before.period_start) ?? 0) + tokensEach);
    } else expect([jump, code]).toEqual([jump, 403]);
    expect((await usedNow(server)).tokens.used).toBe(expected.get(before.period_start) ?? 0);
  }
  expect(expected.size).toBeGreaterThan(1);
});

test("ignores usage booked in a future month after a restart", async () => {
  const { clock, server, restart } = await start({ monthly_tokens: 10 * tokensEach });
  expect(await status(chat(server))).toBe(200);
  clock.jump(40 * day);
  for (let i = 0; i < 10; i++) expect(await status(chat(server))).toBe(200);
  expect(await status(chat(server))).toBe(403);
  clock.jump(-40 * day);
  expect((await usedNow(server)).tokens.used).toBe(tokensEach);
  const again = await restart();
  expect((await usedNow(again)).tokens.used).toBe(tokensEach);
  expect(await status(chat(again))).toBe(200);
});

test.each([-hour, -day, -40 * day])(
  "limits waits to one window after a restart with the clock set back by %d s",
  async (jump) => {
    const { clock, server, restart } = await start({ requests_per_minute: 60, tokens_per_minute: 10 * tokensEach });
    for (let minute = 0; minute < 20; minute++) {
      for (let i = 0; i < 10; i++) expect(await status(chat(server))).toBe(200);
      clock.advance(60_000);
    }
    clock.jump(jump);
    const again = await restart();
    clock.advance(60_000);
    expect(await status(chat(again))).toBe(200);
  },
);

test("grants no limit twice in a process after a restart with the clock set ahead, and locks out no key", async () => {
  const { clock, server, restart } = await start({ requests_per_minute: 10 });
  for (let i = 0; i < 10; i++) expect(await status(chat(server))).toBe(200);
  expect(await status(chat(server))).toBe(429);
  for (const jump of [hour, -hour, day]) {
    clock.jump(jump);
    expect(await status(chat(server))).toBe(429);
  }
  const again = await restart();
  expect(await status(chat(again))).toBe(200);
});

test("expires stored chats by the clock's time, not by the direction of its jumps", async () => {
  const { clock, server } = await start();
  const { id } = await made<{ id: string }>(chat(server, server.key, { store: true, metadata: { a: "b" } }));
  const path = `/v1/chat/completions/${id}`;
  const listed = async () =>
    (await made<{ data: unknown[] }>(server.request("/v1/chat/completions?metadata[a]=b"))).data.length;
  for (const [jump, there] of [
    [-hour, true],
    [-40 * day, true],
    [40 * day + hour, true],
    [day, true],
    [40 * day, false],
    [-40 * day, true],
  ] as const) {
    clock.jump(jump);
    expect([jump, await status(server.request(path))]).toEqual([jump, there ? 200 : 404]);
    expect([jump, await listed()]).toEqual([jump, there ? 1 : 0]);
  }
  clock.jump(-hour);
  expect(await status(server.request(path, { method: "DELETE" }))).toBe(200);
  clock.jump(40 * day);
  expect(await status(server.request(path))).toBe(404);
  clock.jump(-80 * day);
  expect(await status(server.request(path))).toBe(404);
  expect(await listed()).toBe(0);
});

test("books requests once during clock jumps, with durations unaffected by the jump", async () => {
  const { clock, server, upstream } = await start({ tokens_per_minute: 1_000_000, monthly_tokens: 1_000_000 });
  let release = Promise.withResolvers<void>();
  upstream.script(async (_request, res) => {
    await release.promise;
    json(res, 200, {
      id: "c",
      object: "chat.completion",
      created: 1,
      model: "upstream-model",
      choices: [{ index: 0, message: { role: "assistant", content: "Yes." }, finish_reason: "stop" }],
      usage: { prompt_tokens: 10, completion_tokens: 40, total_tokens: 50 },
    });
  });
  for (const [round, jump] of jumps.entries()) {
    const running = Array.from({ length: 5 }, () => status(chat(server)));
    await until(() => upstream.requests.length === 5 * (round + 1), "all are on their way");
    clock.jump(jump);
    release.resolve();
    expect(await Promise.all(running)).toEqual([200, 200, 200, 200, 200]);
    release = Promise.withResolvers<void>();
  }
  await until(async () => (await recordedUsage(server.dataDir)).length === 5 * jumps.length, "usage is written");
  const { Database } = await import("bun:sqlite");
  using db = new Database(join(server.dataDir, "headrace.db"), { readonly: true });
  expect(db.query("SELECT min(duration_ms) AS least, max(duration_ms) AS most FROM usage_records").get()).toEqual({
    least: 0,
    most: 0,
  });
  const rate = await made<{ rate: { tokens: { remaining: number } } }>(server.request("/v1/account"));
  expect(rate.rate.tokens.remaining).toBe(1_000_000 - 5 * jumps.length * tokensEach);
});
