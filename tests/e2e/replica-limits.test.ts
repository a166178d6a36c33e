// Three servers with one database and one Redis: a limit is one limit, a quota one quota, with Redis, without it, and with it again.
import { afterEach, expect, test } from "bun:test";
import { startHeadrace, type TestServer, until } from "../support/headrace.ts";
import { withinMs } from "../support/long.ts";
import { freshDatabase } from "../support/postgres.ts";
import { startRedis } from "../support/redis.ts";
import { startUpstream, upstreamYaml } from "../support/scripted-upstream.ts";

const stack: AsyncDisposable[] = [];
afterEach(async () => {
  for (const part of stack.splice(0).reverse()) await part[Symbol.asyncDispose]();
});

function opened<Part extends AsyncDisposable>(part: Part): Part {
  stack.push(part);
  return part;
}

async function replicas(redisUrl: string): Promise<[TestServer, TestServer, TestServer]> {
  const upstream = opened(await startUpstream());
  const env = {
    HEADRACE_DATABASE_URL: await freshDatabase(),
    HEADRACE_REDIS_URL: redisUrl,
    HEADRACE_SECRET: "7b".repeat(32),
  };
  const start = async () => opened(await startHeadrace({ yaml: upstreamYaml(upstream), env }));
  return [await start(), await start(), await start()];
}

async function createKey(server: TestServer, settings: object): Promise<string> {
  const response = await server.request("/v1/keys", { body: { name: "limited", scopes: ["chat:write"], ...settings } });
  expect(response.status).toBe(200);
  return ((await response.json()) as { key: string }).key;
}

function chat(server: TestServer, key: string): Promise<Response> {
  return server.request("/v1/chat/completions", {
    headers: { authorization: `Bearer ${key}` },
    body: { model: "upstream-model", max_tokens: 5, messages: [{ role: "user", content: "Hi" }] },
  });
}

/** How many of `count` requests at once, spread over the servers, ended with each status. */
async function volley(servers: readonly TestServer[], key: string, count: number): Promise<Record<number, number>> {
  const statuses: Record<number, number> = {};
  await Promise.all(
    Array.from({ length: count }, async (_, i) => {
      const response = await chat(servers[i % servers.length] as TestServer, key);
      await response.arrayBuffer();
      statuses[response.status] = (statuses[response.status] ?? 0) + 1;
    }),
  );
  return statuses;
}

const readiness = async (server: TestServer) =>
  (await (await fetch(`${server.url}/readyz`)).json()) as { status: string; checks: Record<string, string> };

// hardening: L4
test("admits exactly one limit's 300 requests at three servers, a share each while Redis hangs, and the whole afterwards", async () => {
  const redis = opened(await startRedis());
  const servers = await replicas(redis.url);
  const [one, two] = servers;
  expect(await readiness(one)).toMatchObject({ checks: { redis: "ok" } });
  const limited = { rate_limit: 60, rate_limit_window: 86_400 };
  expect(await volley(servers, await createKey(one, limited), 300)).toEqual({ 200: 60, 429: 240 });

  const key = await createKey(one, limited);
  redis.pause();
  let startMs: number;
  try {
    const { 200: admitted = 0, 429: refused = 0 } = await volley(servers, key, 120);
    expect(admitted + refused).toBe(120);
    // 20 at each; those that have not heard of the others yet, as they began a moment ago, know of fewer to share with.
    expect(admitted).toBeWithin(60, 60 + 30 + 20 + 1);
    expect(await readiness(two)).toMatchObject({ checks: { redis: "failed" } });
  } finally {
    redis.resume();
    startMs = performance.now();
  }
  await until(async () => {
    const states = await Promise.all(servers.map(readiness));
    return states.every(({ checks }) => checks["redis"] === "ok");
  }, "all count together again");
  expect(performance.now() - startMs).toBeLessThan(withinMs(5_000));
  // What was admitted meanwhile is owed.
  expect((await volley(servers, key, 6))[200] ?? 0).toBe(0);
});

test("shares a quota among servers, with usage at one known to the others at once", async () => {
  const redis = opened(await startRedis());
  const [one, two, three] = await replicas(redis.url);
  // An answer of the scripted server uses 9 tokens.
  const key = await createKey(one, { monthly_tokens: 30 });
  const statuses: number[] = [];
  for (const server of [one, two, three, one, two, three]) statuses.push((await chat(server, key)).status);
  expect(statuses).toEqual([200, 200, 200, 403, 403, 403]);
});
