// What is booked for requests that wait for a place at a model server: how long they waited, and nothing if that was all.
import { afterEach, expect, test } from "bun:test";
import { join } from "node:path";
import { SQL } from "bun";
import { SqlAccountStore } from "../../src/storage/tables/account-store.ts";
import { bookedUsage } from "../support/booked-usage.ts";
import { startHeadrace, type TestServer, until } from "../support/headrace.ts";
import { manualClock } from "../support/manual-clock.ts";
import { mintKey } from "../support/mint-key.ts";
import { accountFor } from "../support/principal.ts";
import { chatScript, startUpstream } from "../support/scripted-upstream.ts";

const stack: AsyncDisposable[] = [];
afterEach(async () => {
  for (const part of stack.splice(0).reverse()) await part[Symbol.asyncDispose]();
});

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

/** A server that takes one request at a time and holds it until `answer`; the clock stands still. */
async function start(limits: string) {
  const held: (() => void)[] = [];
  const answer = chatScript();
  const upstream = await startUpstream(async (request, res) => {
    await new Promise<void>((resolve) => held.push(resolve));
    await answer(request, res);
  });
  stack.push(upstream);
  const clock = manualClock();
  const yaml = `upstreams:\n  - { name: up, url: "${upstream.url}", max_concurrency: 1 }\nlimits: ${limits}\n`;
  const server = await startHeadrace({ clock, yaml });
  stack.push(server);
  const waiting = () => {
    const engine = server.catalog.find("upstream-model")?.deployments[0]?.engine;
    return engine ? server.capacity.figures(engine)[0]?.waiting : undefined;
  };
  return {
    server,
    upstream,
    clock,
    held: () => held.length,
    answer: () => held.shift()?.(),
    waits: (count: number) => until(() => waiting() === count, `${count} wait`),
    async ask(more: { key?: string; signal?: AbortSignal } = {}) {
      const response = await server.request("/v1/chat/completions", {
        body: { model: "upstream-model", messages: [{ role: "user", content: "x".repeat(400) }] },
        headers: { authorization: `Bearer ${more.key ?? server.key}` },
        ...(more.signal ? { signal: more.signal } : {}),
      });
      await response.text();
      return { status: response.status, id: response.headers.get("x-request-id") };
    },
    async booked() {
      await server.governance.ledger.flush();
      return bookedUsage(server.dataDir);
    },
  };
}

const nothing = { prompt_tokens: 0, completion_tokens: 0 };

test("charges nothing to a client that leaves the queue, and books its wait as for a served one", async () => {
  const { clock, upstream, held, answer, waits, ask, booked } = await start("{}");
  const first = ask();
  await until(() => held() === 1, "the first is at work");
  const client = new AbortController();
  const leaving = ask({ signal: client.signal }).catch((error: unknown) => error);
  await waits(1);
  clock.advance(250);
  client.abort();
  expect(await leaving).toBeInstanceOf(DOMException);
  await waits(0);
  const last = ask();
  await waits(1);
  clock.advance(40);
  answer();
  await first;
  await until(() => held() === 1, "the last is at work");
  clock.advance(1_000);
  answer();
  await last;
  const records = await booked();
  expect(records.map(({ outcome, queue_ms }) => [outcome, queue_ms])).toEqual([
    ["completed", 0],
    ["cancelled", 250],
    ["completed", 40],
  ]);
  expect(records[1]).toMatchObject(nothing);
  expect(upstream.requests).toHaveLength(2);
});

test("charges nothing to a request refused for lack of a slot, and books its wait if it queued", async () => {
  const { server, clock, held, answer, waits, ask, booked } = await start("{ queue: 2 }");
  const key = await otherAccountsKey(server);
  const first = ask();
  await until(() => held() === 1, "the first is at work");
  const second = ask();
  await waits(1);
  const displaced = ask();
  await waits(2);
  clock.advance(250);
  const atOnce = await ask();
  // The other account has fewer requests: the newest request of the first account gives way.
  const other = ask({ key });
  const afterWaiting = await displaced;
  expect([atOnce.status, afterWaiting.status]).toEqual([503, 503]);
  for (let i = 0; i < 3; i++) {
    await until(() => held() === 1, "the next is at work");
    answer();
  }
  await Promise.all([first, second, other]);
  const records = await booked();
  const refused = (id: string | null) => records.find((record) => record.request_id === id);
  const refusal = { outcome: "failed", error_code: "service_unavailable", ...nothing };
  expect(refused(atOnce.id)).toMatchObject({ ...refusal, queue_ms: 0 });
  expect(refused(afterWaiting.id)).toMatchObject({ ...refusal, queue_ms: 250 });
  expect(records.filter(({ outcome }) => outcome === "completed")).toHaveLength(3);
});
