// Two processes on one PostgreSQL and one Redis: what both of them see is told once.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { randomBytes } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { until } from "../support/headrace.ts";
import { freshDatabase } from "../support/postgres.ts";
import { type RedisServer, startRedis } from "../support/redis.ts";
import { json, type ScriptedUpstream, startUpstream, upstreamYaml } from "../support/scripted-upstream.ts";
import { type ServerProcess, startServerProcess } from "../support/server-process.ts";
import { startWebhookReceiver, type WebhookReceiver } from "../support/webhook-receiver.ts";

const directory = mkdtempSync(join(tmpdir(), "headrace-replica-notices-"));
let redis: RedisServer;
let upstream: ScriptedUpstream;
let receiver: WebhookReceiver;
let servers: ServerProcess[] = [];

beforeAll(async () => {
  const [started, databaseUrl, scripted, receiving] = await Promise.all([
    startRedis(),
    freshDatabase(),
    startUpstream((_request, res) =>
      json(res, 200, {
        ...{ id: "c", object: "chat.completion", created: 1, model: "upstream-model" },
        choices: [{ index: 0, message: { role: "assistant", content: "Yes." }, finish_reason: "stop" }],
        usage: { prompt_tokens: 5, completion_tokens: 5, total_tokens: 10 },
      }),
    ),
    startWebhookReceiver(),
  ]);
  [redis, upstream, receiver] = [started, scripted, receiving];
  const config = join(directory, "headrace.yaml");
  writeFileSync(config, upstreamYaml(upstream, "webhook_loopback: true\n"));
  const env = {
    HEADRACE_DATABASE_URL: databaseUrl,
    HEADRACE_REDIS_URL: redis.url,
    HEADRACE_SECRET: randomBytes(32).toString("hex"),
  };
  servers = await Promise.all(
    [0, 1].map((index) => startServerProcess({ config, env, dataDir: join(directory, `data-${index}`) })),
  );
}, 60_000);

afterAll(async () => {
  await Promise.all(servers.map((server) => server[Symbol.asyncDispose]()));
  await Promise.all([redis.stop(), upstream[Symbol.asyncDispose](), receiver[Symbol.asyncDispose]()]);
  rmSync(directory, { recursive: true, force: true });
});

/** The first key is known to whichever of them made it. */
function firstKey(): string {
  const texts = servers.map(({ dataDir }) => {
    try {
      return JSON.parse(readFileSync(join(dataDir, "credentials.json"), "utf8")).api_key as string;
    } catch {
      return "";
    }
  });
  return texts.find((text) => text !== "") ?? "";
}

async function call(server: ServerProcess | undefined, key: string, path: string, body: unknown) {
  const response = await fetch(`${server?.url}${path}`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  return { status: response.status, body: (await response.json()) as { id: string; key: string; secret: string } };
}

// hardening: F37
test("notifies once of a threshold that requests to two replicas reach", async () => {
  const first = firstKey();
  const { body: webhook } = await call(servers[0], first, "/v1/webhooks", { url: receiver.url });
  const { body: made } = await call(servers[0], first, "/v1/keys", { name: "shared", monthly_tokens: 100 });
  const reached = () => receiver.received.map(({ body }) => body.data["threshold"]);
  const body = { model: "upstream-model", max_tokens: 5, messages: [{ role: "user", content: "Hi" }] };
  for (const [requests, expected] of [
    [5, [50]],
    [3, [50, 80]],
    [2, [50, 80, 100]],
  ] as const) {
    const statuses = await Promise.all(
      Array.from({ length: requests }, (_, i) => call(servers[i % 2], made.key, "/v1/chat/completions", body)),
    );
    expect(statuses.map(({ status }) => status)).toEqual(Array(requests).fill(200));
    await until(() => reached().at(-1) === expected.at(-1), `${expected.at(-1)} percent`, 15_000);
    // A look between the last two requests finds 90 reached, and tells it.
    expect(reached().filter((threshold) => threshold !== 90)).toEqual([...expected]);
  }
  // Both have looked again by then.
  await Bun.sleep(6_000);
  expect(reached().filter((threshold) => threshold !== 90)).toEqual([50, 80, 100]);
  expect(new Set(reached()).size).toBe(reached().length);
  expect(receiver.received.every((one) => receiver.verifies(one, webhook.secret))).toBe(true);
}, 90_000);
