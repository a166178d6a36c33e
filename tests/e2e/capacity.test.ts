// More requests than a model server takes: they wait their turn, fairly, not for ever, and the excess is told at once.
import { afterEach, expect, test } from "bun:test";
import { join } from "node:path";
import { SQL } from "bun";
import { SqlAccountStore } from "../../src/storage/tables/account-store.ts";
import { startHeadrace, type TestServer, type TestServerOptions, until } from "../support/headrace.ts";
import { mintKey } from "../support/mint-key.ts";
import { accountFor } from "../support/principal.ts";
import { chatScript, json, type Script, type ScriptedUpstream, startUpstream } from "../support/scripted-upstream.ts";

const stack: AsyncDisposable[] = [];
afterEach(async () => {
  for (const part of stack.splice(0).reverse()) await part[Symbol.asyncDispose]();
});

/** A gateway before one upstream; `limits` and `bound` are YAML. */
async function start(
  script: Script,
  { bound = "", limits = "", ...options }: { bound?: string; limits?: string } & TestServerOptions = {},
): Promise<{ upstream: ScriptedUpstream; server: TestServer }> {
  const upstream = await startUpstream(script);
  stack.push(upstream);
  const yaml = `upstreams:\n  - { name: up, identifiers: as_sent, url: "${upstream.url}"${bound} }\n${limits}`;
  const server = await startHeadrace({ yaml, ...options });
  stack.push(server);
  return { upstream, server };
}

function ask(server: TestServer, more: { key?: string; body?: object; signal?: AbortSignal } = {}): Promise<Response> {
  const { key = server.key, body = {}, signal } = more;
  return server.request("/v1/chat/completions", {
    body: { model: "upstream-model", messages: [{ role: "user", content: "Hi" }], ...body },
    headers: { authorization: `Bearer ${key}` },
    ...(signal ? { signal } : {}),
  });
}

/** A key of an account of its own. */
async function otherAccountsKey({ dataDir }: TestServer): Promise<string> {
  const db = new SQL({ adapter: "sqlite", filename: join(dataDir, "headrace.db") });
  try {
    await new SqlAccountStore(db).insertAccount(accountFor({ id: "acct_other", tier: "enterprise" }), {
      id: "evt_other",
      at: 1,
      actor: { type: "operator" },
      accountId: "acct_other",
      action: "account.created",
      targetId: "acct_other",
      clientAddress: null,
      requestId: null,
      detail: {},
    });
  } finally {
    await db.close();
  }
  return await mintKey(dataDir, { accountId: "acct_other", scopes: ["chat:write"] });
}

/** Answers after `ms`, and counts how many it works on at once. */
function busyScript(ms: number): { script: Script; most: () => number } {
  let [busy, most] = [0, 0];
  const answer = chatScript();
  return {
    most: () => most,
    async script(request, res) {
      most = Math.max(most, ++busy);
      await Bun.sleep(ms);
      busy--;
      await answer(request, res);
    },
  };
}

/** Answers whatever is open, once. */
function heldScript(): { script: Script; open: () => number; answerAll(): void } {
  const held: (() => void)[] = [];
  const answer = chatScript();
  return {
    open: () => held.length,
    answerAll() {
      for (const go of held.splice(0)) go();
    },
    async script(request, res) {
      await new Promise<void>((resolve) => held.push(resolve));
      await answer(request, res);
    },
  };
}

// hardening: F28
test("delays one account by about one answer, not 200, while another account floods 200 requests", async () => {
  const serviceMs = 40;
  const { script, most } = busyScript(serviceMs);
  const { server } = await start(script, { bound: ", max_concurrency: 4" });
  const key = await otherAccountsKey(server);
  await (await ask(server, { key })).text();
  const flood = Array.from({ length: 200 }, async () => {
    const response = await ask(server);
    await response.text();
    return response.status;
  });
  const waits: number[] = [];
  for (let i = 0; i < 5; i++) {
    await Bun.sleep(100);
    const startedMs = performance.now();
    const response = await ask(server, { key });
    await response.text();
    expect(response.status).toBe(200);
    waits.push(performance.now() - startedMs);
  }
  expect(await Promise.all(flood)).toEqual(Array(200).fill(200));
  expect(most()).toBe(4);
  // Its own answer, and a part of another; behind the flood the first would take nearly 2,000 ms.
  expect(Math.max(...waits)).toBeLessThan(20 * serviceMs);
});

// hardening: F28
test("refuses requests beyond the queue with 503 and Retry-After at once, and answers those admitted", async () => {
  const { script, open, answerAll } = heldScript();
  const { upstream, server } = await start(script, { bound: ", max_concurrency: 2", limits: "limits: { queue: 8 }\n" });
  const statuses: number[] = [];
  const all = Array.from({ length: 30 }, async () => {
    const response = await ask(server);
    statuses.push(response.status);
    return {
      status: response.status,
      headers: response.headers,
      body: (await response.json()) as Record<string, unknown>,
    };
  });
  // Nothing was answered yet, so all of these are refusals.
  await until(() => statuses.length === 20, "twenty are refused");
  expect(statuses).toEqual(Array(20).fill(503));
  expect(upstream.requests).toHaveLength(2);
  const answering = setInterval(() => open() > 0 && answerAll(), 5);
  const ends = await Promise.all(all);
  clearInterval(answering);
  expect(ends.filter(({ status }) => status === 200)).toHaveLength(10);
  const refusal = ends.find(({ status }) => status === 503);
  expect(refusal?.body).toEqual({
    error: {
      message: "The model `upstream-model` has no free capacity now (8 requests wait). Retry in 5 s.",
      type: "overloaded_error",
      code: "service_unavailable",
    },
  });
  expect(refusal?.headers.get("retry-after")).toBe("5");
  expect(refusal?.headers.get("x-should-retry")).toBe("true");
});

test("keeps a queued stream alive, reports its timeout, and never sends it to the model server", async () => {
  const { script, open, answerAll } = heldScript();
  const { upstream, server } = await start(script, {
    bound: ", max_concurrency: 1",
    limits: "limits: { queue_seconds: 1 }\n",
    heartbeatMs: 100,
  });
  const first = ask(server);
  await until(() => open() === 1, "the first is at work");
  const waiting = await ask(server, { body: { stream: true } });
  expect(waiting.status).toBe(200);
  const text = await waiting.text();
  expect(text).toStartWith(": queued, place 1 of 1\n");
  expect(text).toContain('"code":"service_unavailable"');
  expect(text).not.toContain("[DONE]");
  expect(upstream.requests).toHaveLength(1);
  answerAll();
  expect((await first).status).toBe(200);
});

test("drops a client that leaves the queue and serves the next one", async () => {
  const { script, open, answerAll } = heldScript();
  const { upstream, server } = await start(script, { bound: ", max_concurrency: 1" });
  const first = ask(server);
  await until(() => open() === 1, "the first is at work");
  const client = new AbortController();
  const leaving = ask(server, { body: { user: "leaving" }, signal: client.signal }).catch((error: unknown) => error);
  const last = ask(server, { body: { user: "last" } });
  await Bun.sleep(50);
  client.abort();
  expect(await leaving).toBeInstanceOf(DOMException);
  await until(() => server.logged("request").some((line) => line["outcome"] === "cancelled"), "it is gone");
  answerAll();
  expect((await first).status).toBe(200);
  await until(() => open() === 1, "the last is at work");
  answerAll();
  expect((await last).status).toBe(200);
  expect(upstream.requests.map(({ body }) => body["user"])).toEqual([undefined, "last"]);
});

test("answers a burst at a server that handles eight requests and announces no capacity", async () => {
  let busy = 0;
  const answer = chatScript();
  const { server } = await start(async (request, res) => {
    if (busy >= 8) return json(res, 429, { error: { message: "busy" } });
    busy++;
    await Bun.sleep(10);
    busy--;
    await answer(request, res);
  });
  const statuses = await Promise.all(
    Array.from({ length: 100 }, async () => {
      const response = await ask(server);
      await response.text();
      return response.status;
    }),
  );
  expect(statuses).toEqual(Array(100).fill(200));
});
