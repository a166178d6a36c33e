// Whose turn it is where requests wait: priorities by their shares, accounts and keys alike, and what clients are told.
import { afterEach, expect, test } from "bun:test";
import { startHeadrace, type TestServer, type TestServerOptions, until } from "../support/headrace.ts";
import { mintKey } from "../support/mint-key.ts";
import { makeOperatorKey } from "../support/operator-key.ts";
import { chatScript, type ScriptedUpstream, startUpstream } from "../support/scripted-upstream.ts";

const stack: AsyncDisposable[] = [];
afterEach(async () => {
  for (const part of stack.splice(0).reverse()) await part[Symbol.asyncDispose]();
});

type Priority = "low" | "normal" | "high";

/** A gateway before one upstream with so many places and answers of so many milliseconds, whose first account may have any priority. */
async function start(
  places: number,
  ms: number,
  options: TestServerOptions = {},
): Promise<{ server: TestServer; upstream: ScriptedUpstream }> {
  const answer = chatScript();
  const upstream = await startUpstream(async (request, response) => {
    await Bun.sleep(ms);
    await answer(request, response);
  });
  stack.push(upstream);
  const yaml = `
upstreams:
  - { name: up, url: "${upstream.url}", max_concurrency: ${places} }
tiers:
  - { name: enterprise, requests_per_minute: null, tokens_per_minute: null, priority: high }
`;
  const server = await startHeadrace({ yaml, ...options });
  stack.push(server);
  return { server, upstream };
}

function ask(
  server: TestServer,
  more: { key?: string; priority?: string; body?: object; signal?: AbortSignal } = {},
): Promise<Response> {
  const { key = server.key, priority, body = {}, signal } = more;
  return server.request("/v1/chat/completions", {
    body: { model: "upstream-model", messages: [{ role: "user", content: "Hi" }], ...body },
    headers: { authorization: `Bearer ${key}`, ...(priority === undefined ? {} : { "x-headrace-priority": priority }) },
    ...(signal ? { signal } : {}),
  });
}

/** Clients that ask again as soon as they are answered, until `isOver`; how many answers they got. */
function clients(count: number, isOver: () => boolean, one: () => Promise<Response>): Promise<number> {
  let answers = 0;
  const client = async () => {
    while (!isOver()) {
      const response = await one();
      await response.text();
      if (response.status === 200 && !isOver()) answers++;
    }
  };
  return Promise.all(Array.from({ length: count }, client)).then(() => answers);
}

/** A clock that begins to run now. */
function forMs(ms: number): () => boolean {
  const endMs = performance.now() + ms;
  return () => performance.now() >= endMs;
}

/** Requests of high priority that come by chance, so many a second; milliseconds until each one's answer. */
async function arrivals(server: TestServer, perSecond: number, isOver: () => boolean): Promise<number[]> {
  const times: number[] = [];
  const asked: Promise<void>[] = [];
  let seed = 7;
  const chance = () => {
    seed = (Math.imul(seed, 1_664_525) + 1_013_904_223) >>> 0;
    return (seed + 1) / 2 ** 32;
  };
  while (!isOver()) {
    const since = performance.now();
    const one = async () => {
      const response = await ask(server, { priority: "high" });
      times.push(performance.now() - since);
      await response.text();
      expect(response.status).toBe(200);
    };
    asked.push(one());
    await Bun.sleep((-Math.log(chance()) * 1_000) / perSecond);
  }
  await Promise.all(asked);
  return times;
}

function percentile(times: readonly number[], part: number): number {
  return times.toSorted((a, b) => a - b)[Math.ceil(times.length * part) - 1] ?? Number.NaN;
}

test("under twice the capacity, high priorities wait as long as in an idle system, and what waits still gets its turns", async () => {
  const { server } = await start(8, 200);
  const idle = percentile(await arrivals(server, 10, forMs(2_000)), 0.99);
  const isOver = forMs(6_000);
  // Fourteen that always want a place, and two on average of high priority: sixteen for eight places.
  const [normal, low] = (["normal", "low"] as const).map((priority) =>
    clients(7, isOver, () => ask(server, { priority })),
  );
  await Bun.sleep(500);
  const busy = await arrivals(server, 10, isOver);
  expect(busy.length).toBeGreaterThan(30);
  expect(percentile(busy, 0.99) / idle).toBeLessThan(1.2);
  expect(await low).toBeGreaterThan(0);
  expect(await normal).toBeGreaterThan((await low) ?? 0);
}, 30_000);

test("where all priorities want more than there is, each has its share of the places", async () => {
  const { server } = await start(8, 60);
  const isOver = forMs(5_000);
  const [low, normal, high] = await Promise.all(
    (["low", "normal", "high"] as const).map((priority: Priority) =>
      clients(12, isOver, () => ask(server, { priority })),
    ),
  );
  const all = (low ?? 0) + (normal ?? 0) + (high ?? 0);
  expect((low ?? 0) / all).toBeGreaterThan((0.8 * 1) / 21);
  expect((normal ?? 0) / all).toBeGreaterThan((0.8 * 4) / 21);
  expect((high ?? 0) / all).toBeGreaterThan((0.8 * 16) / 21);
}, 30_000);

test("an account with one client has as many answers as one with a hundred, and so has a key beside another", async () => {
  const { server } = await start(1, 10);
  const scopes = ["chat:write"] as const;
  const made = await server.request("/v1/admin/accounts", {
    body: { name: "Other", tier: "enterprise" },
    headers: { authorization: `Bearer ${await makeOperatorKey(server.dataDir)}` },
  });
  expect(made.status).toBe(200);
  const { id: accountId } = (await made.json()) as { id: string };
  const [other, one, many] = await Promise.all([
    mintKey(server.dataDir, { scopes, accountId }),
    mintKey(server.dataDir, { scopes }),
    mintKey(server.dataDir, { scopes }),
  ]);
  for (const single of [other, one]) {
    const isOver = forMs(1_500);
    const [ofOne, ofMany] = await Promise.all([
      clients(1, isOver, () => ask(server, { key: single })),
      clients(100, isOver, () => ask(server, { key: many })),
    ]);
    expect(ofOne / ofMany).toBeGreaterThan(0.8);
    expect(ofOne / ofMany).toBeLessThan(1.25);
  }
}, 30_000);

test("a request has at most the priority of its key and tier, and is told how to have more", async () => {
  const { server } = await start(1, 0);
  const key = await mintKey(server.dataDir, { scopes: ["chat:write"], priority: "normal" });
  expect((await ask(server, { key, priority: "low" })).status).toBe(200);
  expect((await ask(server, { key, priority: "Normal" })).status).toBe(200);
  expect((await ask(server, { priority: "high" })).status).toBe(200);
  const more = await ask(server, { key, priority: "high" });
  expect(more.status).toBe(403);
  expect(await more.json()).toMatchObject({
    error: {
      code: "permission_denied",
      message: expect.stringContaining("x-headrace-priority: must be at most normal"),
    },
  });
  const wrong = await ask(server, { key, priority: "urgent" });
  expect(wrong.status).toBe(400);
  expect(await wrong.json()).toMatchObject({
    error: { param: "x-headrace-priority", message: expect.stringContaining("must be low, normal, high") },
  });
  const messages = await server.request("/v1/messages", {
    body: { model: "upstream-model", max_tokens: 5, messages: [{ role: "user", content: "Hi" }] },
    headers: { authorization: `Bearer ${key}`, "x-headrace-priority": "high" },
  });
  expect(messages.status).toBe(403);
});

test("a client that waited is told how long, and one whose stream begins while it waits, where it stands", async () => {
  const { server, upstream } = await start(1, 300, { heartbeatMs: 100 });
  expect((await ask(server)).headers.get("x-headrace-queue-ms")).toBeNull();
  const first = ask(server);
  await until(() => upstream.requests.length === 2, "the first is at work");
  const [whole, stream] = [ask(server), ask(server, { priority: "low", body: { stream: true } })];
  await first;
  const waited = Number((await whole).headers.get("x-headrace-queue-ms"));
  expect(waited).toBeGreaterThan(100);
  const { headers, body } = await stream;
  expect(headers.get("x-headrace-queue-place")).toBe("2/2");
  expect(Number(headers.get("x-headrace-queue-ms"))).toBeGreaterThan(50);
  expect(Number(headers.get("x-headrace-queue-expected-ms"))).toBeGreaterThan(100);
  const text = await new Response(body).text();
  expect(text).toStartWith(": queued, place 2 of 2, about 1 s\n\n");
  expect(text).toContain(": queued, place 1 of 1, about 1 s\n\n");
  expect(text).toEndWith("data: [DONE]\n\n");
});
