// However a response in the background ends: its place and its bytes are given back, and its usage is booked once.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { join } from "node:path";
import { SQL } from "bun";
import OpenAI from "openai";
import { bufferedBytes } from "../../src/base/bytes/buffered-bytes.ts";
import { type BookedUsage, bookedUsage } from "../support/booked-usage.ts";
import { openaiClient } from "../support/clients.ts";
import { type GatedUpstream, startGatedUpstream } from "../support/gated-upstream.ts";
import { startHeadrace, type TestServer, until } from "../support/headrace.ts";
import { raised } from "../support/openai-errors.ts";
import { json, upstreamYaml } from "../support/scripted-upstream.ts";

const model = "upstream-model";
const asked = { model, input: "One", background: true } as const;
/** Requests that the key may have open at once. */
const places = 2;

let upstream: GatedUpstream;
let server: TestServer;
let client: OpenAI;

beforeAll(async () => {
  upstream = await startGatedUpstream();
  server = await startHeadrace({
    yaml: upstreamYaml(upstream, `limits: { open_requests_per_key: ${places} }\n`),
  });
  client = openaiClient(server);
});
afterAll(async () => {
  await server[Symbol.asyncDispose]();
  await upstream[Symbol.asyncDispose]();
});

const asks = (count = 1) => until(() => upstream.open() === count, "the model is asked");
const ended = (id: string) =>
  until(async () => {
    const response = await client.responses.retrieve(id);
    return ["queued", "in_progress"].includes(String(response.status)) ? undefined : response;
  }, "it has ended");

/** What was booked for a response. */
async function bookedFor(id: string): Promise<BookedUsage[]> {
  await server.governance.ledger.flush();
  return bookedUsage(server.dataDir).filter((record) => id.endsWith(record.request_id.slice("req_".length)));
}

/** Nothing is held, and as many can be begun at once as there are places. */
async function expectNothingLeft(): Promise<void> {
  await until(() => upstream.open() === 0 && server.requests().open === 0, "nothing is open");
  await until(() => bufferedBytes.byKind.chats === 0 && bufferedBytes.byKind.requests === 0, "nothing is held");
  const ids = await Promise.all(Array.from({ length: places }, async () => (await client.responses.create(asked)).id));
  const { status } = await raised(() => client.responses.create(asked), OpenAI.RateLimitError);
  expect(status).toBe(429);
  await asks(places);
  upstream.finish();
  const other = openaiClient(server);
  await until(() => upstream.open() === 0, "the models are done");
  await Promise.all(
    ids.map((id) => until(async () => (await other.responses.retrieve(id)).status === "completed", id)),
  );
}

describe("a background response releases its slot and bytes and is booked once", () => {
  test("releases and books a background response that is refused before its ledger entry", async () => {
    await raised(() => client.responses.create({ ...asked, model: "none" }), OpenAI.NotFoundError);
    await raised(() => client.responses.create({ ...asked, store: false }), OpenAI.BadRequestError);
    await raised(() => client.responses.create({ ...asked, max_output_tokens: -5 }), OpenAI.BadRequestError);
    await expectNothingLeft();
  });

  test("releases and books a background response whose row cannot be created after its ledger entry", async () => {
    const db = new SQL({ adapter: "sqlite", filename: join(server.dataDir, "headrace.db") });
    await db`ALTER TABLE stored_responses RENAME TO hidden`;
    for (let time = 0; time < 3; time++) {
      const { headers } = await raised(() => client.responses.create(asked), OpenAI.InternalServerError);
      const id = String(headers?.get("x-request-id"));
      await until(async () => (await bookedFor(id)).length === 1, "it is booked");
      expect(await bookedFor(id)).toMatchObject([{ outcome: "failed", completion_tokens: 0 }]);
      const lines = server.logged("request").filter((line) => line["id"] === id);
      expect(lines).toMatchObject([{ status: 503, code: "service_unavailable" }]);
    }
    await db`ALTER TABLE hidden RENAME TO stored_responses`;
    await db.close();
    await expectNothingLeft();
  });

  test("releases and books a background response whose client leaves before the answer, at any moment", async () => {
    for (let time = 0; time < 25; time++) {
      const leaving = new AbortController();
      const answer = server.request("/v1/responses", {
        body: { ...asked, stream: time % 2 === 0 },
        signal: leaving.signal,
      });
      setTimeout(() => leaving.abort(), time);
      await answer.then((response) => response.text()).catch(() => {});
      await until(() => server.requests().open === 0, "it has left");
      await Bun.sleep(20);
      // It goes on, where it had begun.
      upstream.finish();
      await until(() => upstream.open() === 0, "the model is done");
    }
    await expectNothingLeft();
  });

  test.each([
    ["before a model is asked", 0],
    ["after a moment", 15],
    ["after its first words", 60],
  ])("releases and books a background response that is cancelled %s", async (_, afterMs) => {
    for (let time = 0; time < 5; time++) {
      const { id } = await client.responses.create(asked);
      await Bun.sleep(afterMs);
      if (afterMs > 50) upstream.say("Hello");
      const stopped = await client.responses.cancel(id);
      expect(stopped.status).toBe("cancelled");
      await until(async () => (await bookedFor(id)).length === 1, "it is booked");
      expect(await bookedFor(id)).toMatchObject([{ outcome: "cancelled" }]);
    }
    await expectNothingLeft();
  });

  test("releases and books a background response that is cancelled or deleted at the moment of its end", async () => {
    for (let time = 0; time < 30; time++) {
      const { id } = await client.responses.create(asked);
      await asks();
      upstream.say("Hello");
      const finishing = Bun.sleep(Math.random() * 6).then(() => upstream.finish());
      await Bun.sleep(Math.random() * 6);
      if (time % 2 === 0) {
        const stopped = await client.responses.cancel(id);
        expect(["completed", "cancelled"]).toContain(String(stopped.status));
        expect((await client.responses.retrieve(id)).status).toBe(stopped.status);
      } else {
        await client.responses.delete(id);
        await raised(() => client.responses.retrieve(id), OpenAI.NotFoundError);
      }
      await finishing;
      upstream.finish();
      await until(() => upstream.open() === 0, "the model is done");
      await until(async () => (await bookedFor(id)).length === 1, "it is booked");
    }
    await expectNothingLeft();
  });

  test("releases and books a background response whose model fails before or during its answer", async () => {
    const { id } = await client.responses.create(asked);
    await asks();
    upstream.say("Hello");
    upstream.breakOff();
    expect(await ended(id)).toMatchObject({ status: "failed" });
    expect(await bookedFor(id)).toMatchObject([{ outcome: "failed" }]);
    await expectNothingLeft();
    upstream.script((_, res) => json(res, 400, { error: { message: "no such thing" } }));
    const refused = await client.responses.create(asked);
    expect(await ended(refused.id)).toMatchObject({ status: "failed" });
    expect(await bookedFor(refused.id)).toMatchObject([{ outcome: "failed", completion_tokens: 0 }]);
    upstream.gated();
    await expectNothingLeft();
  });

  test("releases and books a background response that is cancelled while queued for a model server", async () => {
    await using busy = await startGatedUpstream();
    const yaml = `upstreams:\n  - { name: up, url: "${busy.url}", max_concurrency: 1 }\n`;
    await using queueing = await startHeadrace({ yaml });
    const other = openaiClient(queueing);
    const first = await other.responses.create(asked);
    await until(() => busy.open() === 1, "the model is asked");
    const waiting = await other.responses.create(asked);
    expect(await other.responses.cancel(waiting.id)).toMatchObject({ status: "cancelled" });
    await queueing.governance.ledger.flush();
    const booked = bookedUsage(queueing.dataDir).filter(({ request_id: id }) => waiting.id.endsWith(id.slice(4)));
    expect(booked).toMatchObject([{ outcome: "cancelled", prompt_tokens: 0, completion_tokens: 0 }]);
    busy.finish();
    await until(async () => (await other.responses.retrieve(first.id)).status === "completed", "the first is done");
    // The turn is free for the next one.
    await other.responses.create(asked);
    await until(() => busy.open() === 1, "the model is asked");
    expect(busy.requests).toHaveLength(2);
  });

  test("releases and books a background response whose unsaved events exceed the memory limit", async () => {
    await using talking = await startGatedUpstream();
    const yaml = upstreamYaml(talking, "limits: { held_bytes: 16777216, body_bytes: 1000000 }\n");
    await using small = await startHeadrace({ yaml });
    const other = openaiClient(small);
    const ids = await Promise.all(Array.from({ length: 12 }, async () => (await other.responses.create(asked)).id));
    await until(() => talking.open() === ids.length, "the model is asked");
    const db = new SQL({ adapter: "sqlite", filename: join(small.dataDir, "headrace.db") });
    await db`ALTER TABLE stored_responses RENAME TO hidden`;
    for (let time = 0; time < 8; time++) {
      talking.say("x".repeat(100_000));
      await Bun.sleep(50);
    }
    await db`ALTER TABLE hidden RENAME TO stored_responses`;
    await db.close();
    talking.finish();
    const done = await Promise.all(
      ids.map((id) =>
        until(async () => {
          const response = await other.responses.retrieve(id);
          return ["completed", "failed"].includes(String(response.status)) ? response : undefined;
        }, "it has ended"),
      ),
    );
    const failed = done.filter(({ status }) => status === "failed");
    expect(failed.length).toBeGreaterThan(0);
    expect(failed[0]?.error?.message).toContain("bytes");
    await until(() => bufferedBytes.byKind.chats === 0 && bufferedBytes.byKind.requests === 0, "nothing is held");
    await small.governance.ledger.flush();
    const outcomes = bookedUsage(small.dataDir).map(({ outcome }) => outcome);
    expect(outcomes.filter((outcome) => outcome === "failed")).toHaveLength(failed.length);
    expect(outcomes).toHaveLength(ids.length);
  });
});
