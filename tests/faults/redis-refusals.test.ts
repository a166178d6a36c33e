// A Redis that answers and takes no writes: requests go on by each replica's share, and readiness and the doctor say so.
import { afterEach, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { redisFacts } from "../../src/storage/redis/redis-facts.ts";
import { startHeadrace, type TestServer, until } from "../support/headrace.ts";
import { sharedPostgres } from "../support/postgres.ts";
import { type RedisServer, startRedis } from "../support/redis.ts";
import { startUpstream, upstreamYaml } from "../support/scripted-upstream.ts";

const stack: AsyncDisposable[] = [];
afterEach(async () => {
  for (const part of stack.splice(0).reverse()) await part[Symbol.asyncDispose]();
});

interface Refusal {
  /** What the server's answers begin with. */
  says: string;
  begin(redis: RedisServer, directory: string): Promise<unknown>;
  end(redis: RedisServer, directory: string): Promise<unknown>;
}

const set = (name: string, value: string) => (redis: RedisServer) => redis.command("CONFIG", "SET", name, value);

const refusals: Readonly<Record<string, Refusal>> = {
  "a replica of another server": {
    says: "READONLY",
    begin: (redis) => redis.command("REPLICAOF", "127.0.0.1", "1"),
    end: (redis) => redis.command("REPLICAOF", "NO", "ONE"),
  },
  "full, without eviction": { says: "OOM", begin: set("maxmemory", "1"), end: set("maxmemory", "0") },
  "without the replicas that its writes need": {
    says: "NOREPLICAS",
    begin: set("min-replicas-to-write", "1"),
    end: set("min-replicas-to-write", "0"),
  },
  "unable to save": {
    says: "MISCONF",
    async begin(redis, directory) {
      await redis.command("CONFIG", "SET", "save", "3600 1000000");
      rmSync(directory, { recursive: true });
      await redis.command("BGSAVE").catch(() => {});
      await until(
        async () => /rdb_last_bgsave_status:err/.test(String(await redis.command("INFO", "persistence"))),
        "a failed save",
      );
    },
    end: set("stop-writes-on-bgsave-error", "no"),
  },
};

async function readiness({ url }: TestServer): Promise<{ status: string; checks: Record<string, string> }> {
  return (await (await fetch(`${url}/readyz`)).json()) as { status: string; checks: Record<string, string> };
}

// hardening: F40
test.each(Object.keys(refusals))("serves requests with a Redis that is %s, and reports it", async (name) => {
  const { says, begin, end } = refusals[name] as Refusal;
  const directory = mkdtempSync(join(tmpdir(), "headrace-redis-"));
  const redis = await startRedis(directory);
  const upstream = await startUpstream();
  stack.push(redis, upstream);
  const env = {
    ...{ HEADRACE_SECRET: "6b".repeat(32), HEADRACE_REDIS_URL: redis.url },
    HEADRACE_DATABASE_URL: await (await sharedPostgres()).freshDatabase(),
  };
  const server = await startHeadrace({ yaml: upstreamYaml(upstream), env });
  stack.push(server);
  const chat = async () => {
    const body = { model: "upstream-model", messages: [{ role: "user", content: "x" }] };
    const response = await server.request("/v1/chat/completions", { body });
    await response.text();
    return response.status;
  };
  expect([await chat(), (await readiness(server)).checks["redis"]]).toEqual([200, "ok"]);
  await begin(redis, directory);
  const statuses: number[] = [];
  for (let i = 0; i < 20; i++) statuses.push(await chat());
  expect(new Set(statuses)).toEqual(new Set([200]));
  await until(async () => (await readiness(server)).checks["redis"] === "failed", "readiness without Redis");
  // It may answer everything else: no attempt to reach it again counts as success.
  for (let i = 0; i < 15; i++) {
    await Bun.sleep(100);
    expect((await readiness(server)).checks["redis"]).toBe("failed");
  }
  const facts = await redisFacts(redis.url, 1_000);
  expect(facts.writeRefusal).toStartWith(says);
  await end(redis, directory);
  expect((await redisFacts(redis.url, 1_000)).writeRefusal).toBeUndefined();
  expect(await redis.command("EXISTS", "headrace:doctor")).toBe(0);
  await until(async () => (await readiness(server)).checks["redis"] === "ok", "readiness with Redis");
  expect(await chat()).toBe(200);
  rmSync(directory, { recursive: true, force: true });
});
