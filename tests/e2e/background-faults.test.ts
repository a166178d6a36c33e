// Responses in the background while their model is silent, their database is away or their process is held up.
import { Database } from "bun:sqlite";
import { describe, expect, test } from "bun:test";
import { join } from "node:path";
import { SQL } from "bun";
import type OpenAI from "openai";
import { systemClock } from "../../src/base/clock.ts";
import { BackgroundRuns } from "../../src/responses/background/background-runs.ts";
import { openaiClient } from "../support/clients.ts";
import { startGatedUpstream } from "../support/gated-upstream.ts";
import { startHeadrace, until } from "../support/headrace.ts";
import { withinMs } from "../support/long.ts";
import { shiftedClock } from "../support/manual-clock.ts";
import { startPostgres } from "../support/postgres.ts";
import { startReplicas } from "../support/replicas.ts";
import { startUpstream, upstreamYaml } from "../support/scripted-upstream.ts";

const model = "upstream-model";
const asked = { model, input: "One", background: true } as const;
type Event = OpenAI.Responses.ResponseStreamEvent;

async function statusIs(client: OpenAI, id: string, status: string): Promise<OpenAI.Responses.Response> {
  return await until(async () => {
    const response = await client.responses.retrieve(id);
    return response.status === status ? response : undefined;
  }, `the response is ${status}`);
}

/** A model server that answers nothing at all. */
const silentUpstream = () => startUpstream(() => {});

test("announces a background response as queued to its subscriber at once if the model is silent", async () => {
  await using upstream = await silentUpstream();
  await using server = await startHeadrace({ yaml: upstreamYaml(upstream) });
  const client = openaiClient(server);
  const received: Event[] = [];
  const stream = await client.responses.create({ ...asked, stream: true });
  const following = (async () => {
    for await (const event of stream) received.push(event);
  })();
  await until(() => received.length === 2, "both are told");
  expect(received.map(({ type }) => type)).toEqual(["response.created", "response.queued"]);
  const [created] = received;
  if (created?.type !== "response.created") throw new Error("It was not created first.");
  // They were in the store before the model said anything.
  await Bun.sleep(1_500);
  await client.responses.cancel(created.response.id);
  await following;
  expect(received.map(({ sequence_number: number }) => number)).toEqual([0, 1, 2]);
});

test("completes a background response whose model finishes before its row is created", async () => {
  await using upstream = await startUpstream();
  await using replicas = await startReplicas({ count: 1, yaml: upstreamYaml(upstream) });
  const [server] = replicas.servers;
  if (!server) throw new Error("There is no server.");
  const client = openaiClient({ url: server.url, key: replicas.key });
  const { id: conversation } = await client.conversations.create({});
  const db = new SQL(String(replicas.env["HEADRACE_DATABASE_URL"]), { max: 1 });
  let creating: Promise<OpenAI.Responses.Response> | undefined;
  await db.begin(async (tx) => {
    await tx`LOCK TABLE stored_responses IN SHARE MODE`;
    creating = Promise.resolve(client.responses.create({ ...asked, conversation }));
    await until(() => upstream.requests.length === 1, "the model is asked");
    await Bun.sleep(300);
  });
  if (!creating) throw new Error("It was not asked for.");
  const { id } = await creating;
  const done = await statusIs(client, id, "completed");
  expect(done.output_text).toBe("Hello world");
  expect((await client.conversations.items.list(conversation)).data).toHaveLength(2);
  const row = async () =>
    (await db`SELECT seen_at, events_until FROM stored_responses WHERE id = ${id}`)[0] as Record<string, unknown>;
  expect(await row()).toEqual({ seen_at: null, events_until: expect.anything() });
  await db.close();
}, 60_000);

test("charges nothing for a background response whose row cannot be created after its model finished", async () => {
  await using upstream = await startGatedUpstream();
  await using replicas = await startReplicas({ count: 1, yaml: upstreamYaml(upstream) });
  const [server] = replicas.servers;
  if (!server) throw new Error("There is no server.");
  const db = new SQL(String(replicas.env["HEADRACE_DATABASE_URL"]), { max: 1 });
  let answer: Promise<Response> | undefined;
  await db.begin(async (tx) => {
    await tx`LOCK TABLE stored_responses IN SHARE MODE`;
    answer = fetch(`${server.url}/v1/responses`, {
      method: "POST",
      headers: { authorization: `Bearer ${replicas.key}`, "content-type": "application/json" },
      body: JSON.stringify(asked),
    });
    await until(() => upstream.open() === 1, "the model is asked");
    upstream.say("Hello");
    upstream.finish();
    await until(() => upstream.open() === 0, "the model is done");
    // By then the server has read what came before.
    for (let i = 0; i < 10; i++) await (await fetch(`${server.url}/livez`)).text();
    await tx`ALTER TABLE stored_responses RENAME TO hidden`;
  });
  expect((await answer)?.status).toBe(503);
  const rows = async () => {
    await server.governance.ledger.flush();
    const found = await db`
      SELECT outcome, CAST(prompt_tokens + completion_tokens AS INTEGER) AS tokens FROM usage_records`;
    return found.length > 0 ? [...found] : undefined;
  };
  expect(await until(rows, "it is on the ledger")).toEqual([{ outcome: "failed", tokens: 0 }]);
  await db.close();
}, 60_000);

test("sends rate limit headers with the queued background response", async () => {
  await using upstream = await startUpstream();
  const tier = "tiers: [{ name: enterprise, requests_per_minute: 10, tokens_per_minute: 10000 }]\n";
  const flags = { mode: "production", publicUrl: "http://127.0.0.1:7545" };
  await using server = await startHeadrace({ yaml: upstreamYaml(upstream, tier), flags });
  const [plain, background] = await Promise.all(
    [{}, { background: true }].map((more) =>
      server.request("/v1/responses", { body: { model, input: "One", ...more } }),
    ),
  );
  const limitsOf = (answer: Response | undefined) =>
    [...(answer?.headers.keys() ?? [])].filter((name) => name.startsWith("x-ratelimit-"));
  expect(limitsOf(plain)).not.toEqual([]);
  expect(limitsOf(background)).toEqual(limitsOf(plain));
});

describe("background responses while the database is away", () => {
  test("answers other requests while many background responses wait for the database, and completes those once it is back", async () => {
    await using upstream = await startGatedUpstream();
    await using server = await startHeadrace({ yaml: upstreamYaml(upstream) });
    const client = openaiClient(server);
    const many = 60;
    const ids = await Promise.all(Array.from({ length: many }, async () => (await client.responses.create(asked)).id));
    await until(() => upstream.open() === many, "all are asked");
    upstream.say("Hello");
    const lock = new Database(join(server.dataDir, "headrace.db"));
    lock.run("BEGIN IMMEDIATE");
    await Bun.sleep(1_500);
    const waits: number[] = [];
    for (let at = 0; at < 40; at++) {
      upstream.say(" more");
      const began = performance.now();
      await (await fetch(`${server.url}/healthz`)).text();
      waits.push(performance.now() - began);
      await Bun.sleep(50);
    }
    upstream.finish();
    await Bun.sleep(500);
    lock.run("COMMIT");
    lock.close();
    await Promise.all(ids.map((id) => statusIs(client, id, "completed")));
    waits.sort((a, b) => a - b);
    expect(waits[Math.floor(waits.length * 0.9)]).toBeLessThan(400);
  }, 60_000);

  test.each(["stopped", "held up"])(
    "loses no event of a background response with PostgreSQL that is %s for a while, and books it once",
    async (how) => {
      await using upstream = await startGatedUpstream();
      await using postgres = await startPostgres();
      const databaseUrl = await postgres.freshDatabase();
      await using replicas = await startReplicas({ count: 2, yaml: upstreamYaml(upstream), databaseUrl });
      const [one, other] = replicas.servers.map(({ url }) => openaiClient({ url, key: replicas.key }));
      if (!(one && other)) throw new Error("There are no two replicas.");
      const { id } = await one.responses.create(asked);
      await until(() => upstream.open() === 1, "the model is asked");
      const here = Array.fromAsync(await one.responses.retrieve(id, { stream: true }));
      upstream.say("0 ");
      await statusIs(other, id, "in_progress");
      await (how === "stopped" ? postgres.stop() : postgres.pause());
      const words = Array.from({ length: 40 }, (_, nth) => `${nth + 1} `);
      for (const word of words) {
        upstream.say(word);
        await Bun.sleep(100);
      }
      await (how === "stopped" ? postgres.start() : postgres.resume());
      upstream.say("end");
      await Bun.sleep(500);
      upstream.finish();
      const done = await until(
        () => statusIs(other, id, "completed").catch(() => undefined),
        "it is completed",
        20_000,
      );
      expect(done.output_text).toBe(`0 ${words.join("")}end`);
      const stored = await Array.fromAsync(await other.responses.retrieve(id, { stream: true }));
      expect(stored.map(({ sequence_number: number }) => number)).toEqual(stored.map((_, number) => number));
      expect(stored.at(-1)?.type).toBe("response.completed");
      // Who followed it where it was worked on noticed nothing.
      expect(await here).toEqual(stored);
      const db = new SQL(databaseUrl, { max: 1 });
      const booked = await until(async () => {
        const found: { outcome: string }[] = await db`SELECT outcome FROM usage_records`;
        return found.length > 0 ? found : undefined;
      }, "it is booked");
      await db.close();
      expect(booked.map(({ outcome }) => outcome)).toEqual(["completed"]);
    },
    90_000,
  );

  // long-lived: backgroundResponse.server
  test("stops promptly although a background response cannot be written to the database", async () => {
    await using upstream = await startGatedUpstream();
    const server = await startHeadrace({ yaml: upstreamYaml(upstream) });
    await openaiClient(server).responses.create(asked);
    await until(() => upstream.open() === 1, "the model is asked");
    const lock = new Database(join(server.dataDir, "headrace.db"));
    lock.run("BEGIN IMMEDIATE");
    const began = performance.now();
    const closing = server.close(200);
    await Promise.race([closing, Bun.sleep(15_000)]);
    const tookMs = performance.now() - began;
    lock.run("COMMIT");
    lock.close();
    await closing;
    expect(tookMs).toBeLessThan(12_000);
    // Nobody reads its end any more.
    expect(server.logged("response_not_stored")).toMatchObject([{ reason: "store_failed" }]);
  }, 90_000);
});

describe("ownership of a running background response", () => {
  test("does not treat a running background response as abandoned after its database was away for minutes", async () => {
    const clock = shiftedClock();
    await using upstream = await startGatedUpstream();
    await using server = await startHeadrace({ yaml: upstreamYaml(upstream), clock });
    const client = openaiClient(server);
    const { id } = await client.responses.create(asked);
    await until(() => upstream.open() === 1, "the model is asked");
    upstream.say("Hello");
    await statusIs(client, id, "in_progress");
    const { background, responses } = server.governance;
    const other = new BackgroundRuns({ responses, background, clock, log: server.log });
    // Nobody could write for so long; whoever looks may come before whoever works on it.
    clock.shift(300);
    await other.endAbandoned();
    expect((await client.responses.retrieve(id)).status).toBe("in_progress");
    const abandoned = () => background.abandoned(clock.nowSeconds() - 30, clock.nowSeconds(), 9);
    await until(async () => (await abandoned()).length === 0, "it says so again");
    await other.endAbandoned();
    await other.close();
    upstream.finish();
    expect((await statusIs(client, id, "completed")).output_text).toBe("Hello");
  });

  test("charges nothing for a background response that another process ended as failed, and its full price otherwise", async () => {
    const clock = shiftedClock();
    await using upstream = await startGatedUpstream();
    await using server = await startHeadrace({ yaml: upstreamYaml(upstream), clock });
    const client = openaiClient(server);
    const { background } = server.governance;
    const charged = async (isAbandoned: boolean) => {
      const { id } = await client.responses.create(asked);
      await until(() => upstream.open() === 1, "the model is asked");
      upstream.say("Hello");
      await statusIs(client, id, "in_progress");
      if (isAbandoned) {
        // It could not be seen for so long that another one took it for dead.
        const [row] = await background.abandoned(clock.nowSeconds() + 1_000, clock.nowSeconds(), 9);
        if (!row) throw new Error("It is not there.");
        const end = (response: object, number: number) => ({
          response: { ...response, status: "failed" },
          event: JSON.stringify({ type: "response.failed", sequence_number: number }),
        });
        expect(await background.endAbandoned(row, end, clock.nowSeconds())).toBe(true);
      }
      upstream.finish();
      await until(() => server.requests().open === 0 && upstream.open() === 0, "it is over");
      const { status } = await client.responses.retrieve(id);
      const log = async () => {
        await server.governance.ledger.flush();
        const answer = await server.request("/v1/requests?limit=1");
        const { data } = (await answer.json()) as { data: { outcome: string; completion_tokens: number }[] };
        return data[0];
      };
      const row = await until(log, "it is on the ledger");
      return { status, outcome: row.outcome, isCharged: row.completion_tokens > 0 };
    };
    expect(await charged(true)).toEqual({ status: "failed", outcome: "failed", isCharged: false });
    expect(await charged(false)).toEqual({ status: "completed", outcome: "completed", isCharged: true });
  });

  test("does not treat a running background response as abandoned if a replica's clock is half a minute ahead", async () => {
    const clock = shiftedClock();
    clock.jump(-30);
    await using upstream = await startGatedUpstream();
    await using server = await startHeadrace({ yaml: upstreamYaml(upstream), clock });
    const client = openaiClient(server);
    const { id } = await client.responses.create(asked);
    await until(() => upstream.open() === 1, "the model is asked");
    upstream.say("Hello");
    await statusIs(client, id, "in_progress");
    const { background, responses } = server.governance;
    const other = new BackgroundRuns({ responses, background, clock: systemClock, log: server.log });
    for (let look = 0; look < 3; look++) await other.endAbandoned();
    await other.close();
    expect((await client.responses.retrieve(id)).status).toBe("in_progress");
  });
});

test("ends all background responses of a killed process by the second poll, however many they are", async () => {
  const clock = shiftedClock();
  await using upstream = await startGatedUpstream();
  await using server = await startHeadrace({ yaml: upstreamYaml(upstream), clock });
  const client = openaiClient(server);
  const { id } = await client.responses.create(asked);
  const { background, responses } = server.governance;
  const { accountId, environment } = server.firstKey.record;
  const owner = { accountId, environment, appId: null, personId: null, madeBy: null };
  const row = await responses.find(owner, id, clock.nowSeconds());
  if (!row) throw new Error("It is not there.");
  await client.responses.cancel(id);
  const orphans = Array.from({ length: 70 }, (_, nth) => ({ ...row, id: `resp_orphan${nth}` }));
  await responses.insert(orphans);
  clock.shift(120);
  const other = new BackgroundRuns({ responses, background, clock, log: server.log });
  for (let look = 0; look < 2; look++) await other.endAbandoned();
  await other.close();
  const found = await Promise.all(orphans.map((orphan) => client.responses.retrieve(orphan.id)));
  expect(found.filter(({ status }) => status !== "failed")).toEqual([]);
});

test("stops a background response with a silent model promptly from another replica", async () => {
  await using upstream = await silentUpstream();
  await using replicas = await startReplicas({ yaml: upstreamYaml(upstream) });
  const [one, other] = replicas.servers.map(({ url }) => openaiClient({ url, key: replicas.key }));
  if (!(one && other)) throw new Error("There are no two replicas.");
  const { id } = await one.responses.create(asked);
  await until(() => upstream.requests.length === 1, "the model is asked");
  // What was new is written.
  await Bun.sleep(1_500);
  const began = performance.now();
  expect(await other.responses.cancel(id)).toMatchObject({ status: "cancelled" });
  expect(performance.now() - began).toBeLessThan(withinMs(3_500));
  await until(() => upstream.requests[0]?.abandoned, "the model is stopped", 1_000);
}, 60_000);
