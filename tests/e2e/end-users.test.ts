// Budgets of the users whom an account's requests name: exact over replicas, with the true reason, and bounded in number.
import { afterEach, expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startHeadrace, type TestServer, until } from "../support/headrace.ts";
import { freshDatabase } from "../support/postgres.ts";
import { startRedis } from "../support/redis.ts";
import { chunk, startUpstream, upstreamYaml } from "../support/scripted-upstream.ts";
import { startServerProcess } from "../support/server-process.ts";

const stack: AsyncDisposable[] = [];
afterEach(async () => {
  for (const part of stack.splice(0).reverse()) await part[Symbol.asyncDispose]();
});

function opened<Part extends AsyncDisposable>(part: Part): Part {
  stack.push(part);
  return part;
}

// biome-ignore lint/suspicious/noExplicitAny: each test states what must be in the answer
type Body = any;

async function call(server: TestServer, method: string, path: string, body?: unknown, status = 200): Promise<Body> {
  const response = await server.request(`/v1${path}`, { method, ...(body === undefined ? {} : { body }) });
  const answer = (await response.json()) as Body;
  expect([path, response.status, answer]).toEqual([path, status, answer]);
  return answer;
}

function chat(server: TestServer, named: object, headers: Record<string, string> = {}): Promise<Response> {
  const messages = [{ role: "user", content: "Hi" }];
  const body = { model: "upstream-model", max_tokens: 5, messages, ...named };
  return server.request("/v1/chat/completions", { headers, body });
}

const requests = (amount: number) => [{ unit: "requests", amount, per: "day" }];

test("admits exactly each end user's budget for parallel requests at two replicas", async () => {
  const redis = opened(await startRedis());
  const env = {
    HEADRACE_DATABASE_URL: await freshDatabase(),
    HEADRACE_REDIS_URL: redis.url,
    HEADRACE_SECRET: "7b".repeat(32),
  };
  const yaml = upstreamYaml(opened(await startUpstream()));
  const start = async () => opened(await startHeadrace({ yaml, env }));
  const [one, two] = [await start(), await start()];
  const { key } = await call(one, "POST", "/keys", { name: "app", scopes: ["chat:write"] });
  const app = { authorization: `Bearer ${key}` };
  await call(one, "PUT", "/account/end-users", { default_quotas: requests(7) });
  await call(one, "PUT", "/account/end-users/bob", { quotas: requests(3) });
  const knows = async (server: TestServer) => {
    const response = await server.request("/v1/limits?end_user=bob", { headers: app });
    const { quotas } = (await response.json()) as Body;
    return quotas.some(({ reason, amount }: Body) => reason === "end_user_quota" && amount === 3);
  };
  await until(async () => (await knows(one)) && (await knows(two)), "both replicas know the budgets");
  const admitted: Record<string, number> = { alice: 0, bob: 0 };
  await Promise.all(
    Array.from({ length: 40 }, async (_, i) => {
      const user = i % 4 < 2 ? "alice" : "bob";
      const named = i % 3 === 0 ? { safety_identifier: user } : { user };
      const response = await chat([one, two][i % 2] as TestServer, named, app);
      await response.arrayBuffer();
      if (response.status === 200) admitted[user] = (admitted[user] ?? 0) + 1;
    }),
  );
  expect(admitted).toEqual({ alice: 7, bob: 3 });
  const refused = (await (await chat(two, { user: "bob" }, app)).json()) as Body;
  expect(refused.error.message).toContain("the quota of the end user with the tag user:bob per day");
  expect(refused.quota).toMatchObject({
    ...{ reason: "end_user_quota", owner: "end_user", tag: "user:bob", limit: 3, used: 3 },
    ...{ ask: "an owner or admin of the account", resets_at: expect.any(Number) },
  });
  // Requests that name nobody count against no end user's budget.
  expect((await chat(one, {}, app)).status).toBe(200);
  const { quotas_used: used } = await call(one, "GET", "/account/end-users/alice");
  expect(used).toMatchObject([{ reason: "end_user_quota", amount: 7, used: 7, left: 0 }]);
}, 240_000);

test("limits and records unknown end users only with a default budget, and bounds their number", async () => {
  const yaml = upstreamYaml(opened(await startUpstream()), "tags: { most_a_day: 3 }\n");
  const server = opened(await startHeadrace({ yaml }));
  const status = async (named: object, headers = {}) => (await chat(server, named, headers)).status;
  const tags = async () => {
    const { data } = await call(server, "GET", "/usage?group_by=tag&bucket=month");
    return data.map(({ tag }: Body) => tag ?? "none").sort();
  };
  await call(server, "PUT", "/account/end-users/bob", { quotas: requests(1) });
  expect([await status({ user: "bob" }), await status({ user: "bob" }), await status({ user: "eve" })]).toEqual([
    200, 403, 200,
  ]);
  expect(await status({}, { "x-headrace-tags": "user:bob" })).toBe(403);
  expect(await tags()).toEqual(["none", "user:bob"]);

  await call(server, "PUT", "/account/end-users", { default_quotas: requests(1) });
  const long = "é".repeat(200);
  for (const user of ["eve", "ada", long]) expect([await status({ user }), await status({ user })]).toEqual([200, 403]);
  const { id } = await call(server, "GET", `/account/end-users/${encodeURIComponent(long)}`);
  expect(id).toMatch(/^sha256:[0-9a-f]{64}$/);
  // Further end users of a day share one budget.
  expect([await status({ user: "mallory1" }), await status({ user: "mallory2" })]).toEqual([200, 403]);
  expect(await tags()).toHaveLength(6);
  expect(await tags()).toContain("user:other");

  const bob = await call(server, "DELETE", "/account/end-users/bob");
  expect(bob).toMatchObject({ is_default: true, quotas: requests(1) });
  await call(server, "DELETE", "/account/end-users/bob", undefined, 404);
  await call(server, "PUT", "/account/end-users", { default_quotas: null });
  expect(await call(server, "GET", "/account/end-users")).toMatchObject({ default_quotas: null, data: [] });
  expect(await status({ user: "ada" })).toBe(200);
}, 120_000);

test("refuses rolling windows, tags, too many budgets, and keys that another key made", async () => {
  const server = opened(await startHeadrace({ yaml: upstreamYaml(opened(await startUpstream())) }));
  const put = (quota: object, status = 400) =>
    call(server, "PUT", "/account/end-users/bob", { quotas: [{ unit: "usd", amount: 1, ...quota }] }, status);
  expect((await put({ per: "5h" })).error.message).toContain("quotas[0].window: must be calendar");
  expect((await put({ per: "day", tag: "a" })).error.message).toContain("quotas[0].tag: must be left out");
  const made = await call(server, "POST", "/keys", { name: "made", scopes: ["keys:manage", "chat:write"] });
  const response = await server.request("/v1/account/end-users", { headers: { authorization: `Bearer ${made.key}` } });
  expect(response.status).toBe(403);
  const models = Array.from({ length: 32 }, (_, i) => `${i}`.padEnd(250, "m"));
  const large = { quotas: [{ unit: "usd", amount: 1, per: "day", models }] };
  for (let i = 0; i < 16; i++) await call(server, "PUT", `/account/end-users/u${i}`, large);
  const refused = await call(server, "PUT", "/account/end-users/u16", large, 400);
  expect(refused.error.message).toContain("at most 131072 characters");
  for (let i = 0; i < 200; i++) await call(server, "PUT", `/account/end-users/u${i}`, { quotas: [] });
  expect((await put({ per: "day" })).error.message).toContain("at most 200 single end users");
}, 240_000);

test("counts an end user's requests that kill -9 cut, with Redis", async () => {
  const directory = mkdtempSync(join(tmpdir(), "headrace-end-users-"));
  opened({ [Symbol.asyncDispose]: async () => rmSync(directory, { recursive: true }) });
  const config = join(directory, "headrace.yaml");
  const upstream = opened(
    await startUpstream((_request, res) => {
      res.writeHead(200, { "content-type": "text/event-stream" });
      res.write(chunk({ role: "assistant", content: "One" }));
    }),
  );
  writeFileSync(config, upstreamYaml(upstream));
  const env = { HEADRACE_DATABASE_URL: await freshDatabase(), HEADRACE_REDIS_URL: opened(await startRedis()).url };
  const start = async () =>
    opened(
      await startServerProcess({
        config,
        dataDir: join(directory, "data"),
        env: { ...env, HEADRACE_SECRET: "7b".repeat(32) },
      }),
    );
  let server = await start();
  const { api_key: key } = await Bun.file(join(server.dataDir, "credentials.json")).json();
  const ask = async (method: string, path: string, body?: unknown) =>
    await fetch(`${server.url}/v1${path}`, {
      ...{ method, headers: { authorization: `Bearer ${key}`, "content-type": "application/json" } },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
  expect((await ask("PUT", "/account/end-users", { default_quotas: requests(5) })).status).toBe(200);
  const used = async () => ((await (await ask("GET", "/account/end-users/alice")).json()) as Body).quotas_used[0].used;
  expect(await used()).toBe(0);
  const body = { model: "upstream-model", stream: true, user: "alice", messages: [{ role: "user", content: "Hi" }] };
  const streams = await Promise.all([1, 2].map(() => ask("POST", "/chat/completions", body)));
  expect(streams.map(({ status }) => status)).toEqual([200, 200]);
  server.process.kill("SIGKILL");
  await server.process.exited;
  server = await start();
  await until(async () => (await used()) === 2, "the cut requests count");
}, 240_000);
