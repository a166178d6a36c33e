// Quotas with `hard_stop` over three servers with one Redis, and what of one may be overshot, in tokens.
import { afterEach, expect, test } from "bun:test";
import { openaiClient } from "../support/clients.ts";
import { startEndlessUpstream } from "../support/endless-upstream.ts";
import { startHeadrace, type TestServer, until } from "../support/headrace.ts";
import { freshDatabase } from "../support/postgres.ts";
import { startRedis } from "../support/redis.ts";
import { chunk, type ScriptedUpstream, startUpstream } from "../support/scripted-upstream.ts";

const stack: AsyncDisposable[] = [];
afterEach(async () => {
  for (const part of stack.splice(0).reverse()) await part[Symbol.asyncDispose]();
});

function opened<Part extends AsyncDisposable>(part: Part): Part {
  stack.push(part);
  return part;
}

const messages = [{ role: "user" as const, content: "Go on for ever." }];

function start(upstream: ScriptedUpstream, env: Record<string, string> = {}): Promise<TestServer> {
  const yaml = `upstreams: [{ name: up, url: "${upstream.url}", discover: false }]
models: [{ id: m, price: { input: 1, output: 10 }, deployments: [{ upstream: up }] }]\n`;
  return startHeadrace({ yaml, env }).then(opened);
}

async function limitedKey(server: TestServer, amount: number): Promise<{ id: string; key: string }> {
  const quotas = [{ unit: "tokens", amount, per: "day", hard_stop: true }];
  return (await (await server.request("/v1/keys", { body: { name: "Stopped", quotas } })).json()) as never;
}

async function used(server: TestServer, id: string): Promise<number> {
  const { quotas_used: quotas } = (await (await server.request(`/v1/keys/${id}`)).json()) as {
    quotas_used: { used: number }[];
  };
  return quotas[0]?.used ?? Number.NaN;
}

test("lets 30 concurrent streams at three replicas exceed one quota by at most one token each", async () => {
  const upstream = opened(await startEndlessUpstream());
  const redis = opened(await startRedis());
  const env = {
    HEADRACE_DATABASE_URL: await freshDatabase(),
    HEADRACE_REDIS_URL: redis.url,
    HEADRACE_SECRET: "7b".repeat(32),
  };
  const servers: TestServer[] = [];
  for (let i = 0; i < 3; i++) servers.push(await start(upstream, env));
  const [first] = servers as [TestServer];
  const { id, key } = await limitedKey(first, 20_000);
  const ended = await Promise.all(
    Array.from({ length: 30 }, async (_, i) => {
      const client = openaiClient({ url: (servers[i % 3] as TestServer).url, key });
      const stream = await client.chat.completions.create({ model: "m", messages, stream: true, max_tokens: 10_000 });
      return (await Array.fromAsync(stream)).at(-1)?.choices[0]?.finish_reason;
    }),
  );
  expect(new Set(ended)).toEqual(new Set(["length"]));
  await until(async () => (await used(first, id)) > 20_000 - 30 * 16, "all of it is booked");
  expect(await used(first, id)).toBeLessThanOrEqual(20_000 + 30);
  await until(() => upstream.requests.every(({ abandoned }) => abandoned), "the model server was stopped");
}, 90_000);

test("exceeds a quota by at most the last piece if a piece has several tokens", async () => {
  // Forty bytes: ten tokens by estimate.
  const piece = "abcd".repeat(10);
  const upstream = opened(
    await startUpstream((_, res) => {
      res.writeHead(200, { "content-type": "text/event-stream" });
      const timer = setInterval(() => res.write(chunk({ content: piece })), 1);
      res.on("close", () => clearInterval(timer));
    }),
  );
  const server = await start(upstream);
  const { id, key } = await limitedKey(server, 1_007);
  const client = openaiClient({ url: server.url, key });
  const chunks = await Array.fromAsync(await client.chat.completions.create({ model: "m", messages, stream: true }));
  expect(chunks.at(-1)?.choices[0]?.finish_reason).toBe("length");
  await server.governance.ledger.flush();
  expect(await used(server, id)).toBeGreaterThanOrEqual(1_007);
  expect(await used(server, id)).toBeLessThan(1_007 + 10);
});

test("exceeds a quota with undelivered tokens by no more than was left when the answer began", async () => {
  const most: unknown[] = [];
  const allAsked = Promise.withResolvers<void>();
  const upstream = opened(
    await startUpstream(async (request, res) => {
      most.push(request.body["max_tokens"]);
      // Whoever came once one has ended would be refused.
      if (most.length === 5) allAsked.resolve();
      await allAsked.promise;
      // It thinks in secret for as long as it may, and says a word.
      const completion_tokens = Number(request.body["max_tokens"]);
      res.writeHead(200, { "content-type": "text/event-stream" });
      res.write(chunk({ role: "assistant", content: "Yes." }));
      res.write(
        chunk({}, "stop", { usage: { prompt_tokens: 5, completion_tokens, total_tokens: 5 + completion_tokens } }),
      );
      res.end("data: [DONE]\n\n");
    }),
  );
  const server = await start(upstream);
  const { id, key } = await limitedKey(server, 1_000);
  const client = openaiClient({ url: server.url, key });
  await Promise.all(
    Array.from({ length: 5 }, async () => {
      const stream = await client.chat.completions.create({ model: "m", messages, stream: true, max_tokens: 50_000 });
      await Array.fromAsync(stream);
    }),
  );
  expect(Math.max(...most.map(Number))).toBeLessThanOrEqual(1_000);
  await server.governance.ledger.flush();
  expect(await used(server, id)).toBeLessThanOrEqual(1_000 + 5 * 1_000);
});
