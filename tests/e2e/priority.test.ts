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

const yamlOf = (url: string, places: number, priority: Priority) => `
upstreams:
  - { name: up, url: "${url}", max_concurrency: ${places} }
  - { name: idle, url: "${url}", max_concurrency: ${places}, discover: false }
models:
  - { id: beside, deployments: [{ upstream: idle, model: upstream-model }] }
tiers:
  - { name: enterprise, requests_per_minute: null, tokens_per_minute: null, priority: ${priority} }
`;

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
  const server = await startHeadrace({ yaml: yamlOf(upstream.url, places, "high"), ...options });
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

/** Clients that ask again as soon as they are answered, until `isOver`, when they may leave; how many answers they got. */
function clients(count: number, isOver: () => boolean, one: () => Promise<Response>): Promise<number> {
  let answers = 0;
  const client = async () => {
    while (!isOver()) {
      try {
        const response = await one();
        await response.text();
        if (response.status === 200 && !isOver()) answers++;
      } catch (error) {
        if (!isOver()) throw error;
      }
    }
  };
  return Promise.all(Array.from({ length: count }, client)).then(() => answers);
}

/** A clock that begins to run now. */
function forMs(ms: number): () => boolean {
  const endMs = performance.now() + ms;
  return () => performance.now() >= endMs;
}

/**
 * Requests of high priority that come by chance, so many a second, each for all of the models; milliseconds until each one's
 * answer. A machine that has no time for a moment has it for none of them.
 */
async function arrivals(
  server: TestServer,
  perSecond: number,
  models: readonly string[],
  isOver: () => boolean,
): Promise<number[][]> {
  const times = models.map((): number[] => []);
  const asked: Promise<void>[] = [];
  let seed = 7;
  const chance = () => {
    seed = (Math.imul(seed, 1_664_525) + 1_013_904_223) >>> 0;
    return (seed + 1) / 2 ** 32;
  };
  while (!isOver()) {
    const since = performance.now();
    for (const [i, model] of models.entries()) {
      const one = async () => {
        const response = await ask(server, { priority: "high", body: { model } });
        times[i]?.push(performance.now() - since);
        await response.text();
        expect(response.status).toBe(200);
      };
      asked.push(one());
    }
    await Bun.sleep((-Math.log(chance()) * 1_000) / perSecond);
  }
  await Promise.all(asked);
  return times;
}

function percentile(times: readonly number[], part: number): number {
  return times.toSorted((a, b) => a - b)[Math.ceil(times.length * part) - 1] ?? Number.NaN;
}

test("keeps waits of high priorities as in an idle system at twice the capacity, and still serves low ones", async () => {
  const { server } = await start(8, 200);
  // What is wanted at once is learned as they come.
  await arrivals(server, 10, ["upstream-model"], forMs(2_000));
  const isOver = forMs(8_000);
  // Fourteen that always want a place, and two on average of high priority: sixteen for eight places.
  const [normal, low] = (["normal", "low"] as const).map((priority) =>
    clients(7, isOver, () => ask(server, { priority })),
  );
  await Bun.sleep(500);
  const [busy = [], idle = []] = await arrivals(server, 10, ["upstream-model", "beside"], isOver);
  expect(idle.length).toBeGreaterThan(40);
  expect(percentile(busy, 0.99) / percentile(idle, 0.99)).toBeLessThan(1.2);
  expect(await low).toBeGreaterThan(0);
  expect(await normal).toBeGreaterThan((await low) ?? 0);
}, 30_000);

test("gives each priority its share of slots when all exceed the capacity", async () => {
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

/** A key of another account, and two of the first one. */
async function keysOf(server: TestServer): Promise<{ other: string; one: string; many: string }> {
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
  return { other, one, many };
}

/** Answers that so many clients of a key get, of those that a hundred of another get beside them. */
async function besideAHundred(server: TestServer, count: number, key: string, many: string): Promise<number> {
  // Then all of them leave: the last of a hundred would wait for long.
  const signal = AbortSignal.timeout(4_000);
  const [few, hundred] = await Promise.all([
    clients(
      count,
      () => signal.aborted,
      () => ask(server, { key, signal }),
    ),
    clients(
      100,
      () => signal.aborted,
      () => ask(server, { key: many, signal }),
    ),
  ]);
  return few / hundred;
}

// Answers take far longer than a client needs to ask again, also where the machine is busy.
test("gives an account with one client as many answers as one with a hundred, and likewise keys", async () => {
  const { server } = await start(1, 100);
  const { other, one, many } = await keysOf(server);
  for (const single of [other, one]) {
    const ratio = await besideAHundred(server, 1, single, many);
    expect(ratio).toBeGreaterThan(0.8);
    expect(ratio).toBeLessThan(1.25);
  }
}, 30_000);

test("gives one of two slots to an account beside another's hundred clients, and the next free one to a single client", async () => {
  const { server } = await start(2, 100);
  const { other, many } = await keysOf(server);
  const ofTwo = await besideAHundred(server, 2, other, many);
  expect(ofTwo).toBeGreaterThan(0.8);
  expect(ofTwo).toBeLessThan(1.25);
  // It waits for at most one answer before its own: two of its answers while there are eight in all.
  expect(await besideAHundred(server, 1, other, many)).toBeGreaterThan((0.8 * 2) / 6);
}, 30_000);

test("applies the priority header in every format, up to the key's priority", async () => {
  const upstream = await startUpstream();
  stack.push(upstream);
  const server = await startHeadrace({
    yaml: `upstreams: [{ name: up, url: "${upstream.url}", priority: true }]`,
  });
  stack.push(server);
  const messages = [{ role: "user", content: "Hi" }];
  const model = "upstream-model";
  for (const [path, body] of [
    ["chat/completions", { model, messages }],
    ["completions", { model, prompt: "Hi" }],
    ["responses", { model, input: "Hi", store: false }],
    ["messages", { model, messages, max_tokens: 5 }],
    ["embeddings", { model, input: "Hi" }],
  ] as const) {
    const statusOf = async (priority: string) => {
      const headers = { authorization: `Bearer ${server.key}`, "x-headrace-priority": priority };
      return (await server.request(`/v1/${path}`, { body, headers })).status;
    };
    const before = upstream.requests.length;
    await statusOf("low");
    expect(upstream.requests.slice(before).map((request) => request.body["priority"])).toEqual([1]);
    expect([await statusOf("high"), await statusOf("urgent")]).toEqual([403, 400]);
    expect(upstream.requests).toHaveLength(before + 1);
  }
});

test("caps a request's priority at that of its key and tier, and says how to raise it", async () => {
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

test("applies a tier's changed priority to the next request, and grants no key more", async () => {
  const { server, upstream } = await start(1, 0);
  const key = await mintKey(server.dataDir, { scopes: ["chat:write", "keys:manage"], priority: "high" });
  expect((await ask(server, { key, priority: "high" })).status).toBe(200);
  const make = (priority: string) =>
    server.request("/v1/keys", {
      body: { name: "made", scopes: ["chat:write"], priority },
      headers: { authorization: `Bearer ${key}` },
    });
  const made = await make("high");
  expect(made.status).toBe(200);
  const { key: child } = (await made.json()) as { key: string };
  await server.reconfigure(yamlOf(upstream.url, 1, "low"));
  expect((await ask(server, { key, priority: "normal" })).status).toBe(403);
  expect((await ask(server, { key: child, priority: "normal" })).status).toBe(403);
  expect((await ask(server, { key: child })).status).toBe(200);
  const refused = await make("high");
  expect(refused.status).toBe(403);
  expect(await refused.json()).toMatchObject({
    error: {
      message: expect.stringContaining("priority: must be at most low, the highest that you may have yourself."),
    },
  });
});

test("reports the wait to a waiting client, and the queue position in a stream", async () => {
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
  expect(text).toStartWith(": queued, place 2 of 2, about 1 s\n");
  expect(text).toContain(": queued, place 1 of 1, about 1 s\n");
  expect(text).toEndWith("data: [DONE]\n\n");
});
