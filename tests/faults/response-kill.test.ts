// Whatever kills the server: a response whose client has heard its end is kept, and can be gone on from.

import { Database } from "bun:sqlite";
import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { SQL } from "bun";
import type OpenAI from "openai";
import { bookedUsage } from "../support/booked-usage.ts";
import { openaiClient } from "../support/clients.ts";
import { orderText, startCountingUpstream, word } from "../support/counting-upstream.ts";
import { startGatedUpstream } from "../support/gated-upstream.ts";
import { until } from "../support/headrace.ts";
import { long } from "../support/long.ts";
import { freshDatabase } from "../support/postgres.ts";
import { saidIn } from "../support/response-script.ts";
import { type ScriptedUpstream, startUpstream, upstreamYaml } from "../support/scripted-upstream.ts";
import { startServerProcess } from "../support/server-process.ts";

const model = "upstream-model";
const directory = mkdtempSync(join(tmpdir(), "headrace-response-kill-"));
const config = join(directory, "headrace.yaml");
const dataDir = join(directory, "data");
let upstream: ScriptedUpstream;

beforeAll(async () => {
  upstream = await startUpstream();
  writeFileSync(config, upstreamYaml(upstream));
});
afterAll(async () => {
  await upstream[Symbol.asyncDispose]();
  rmSync(directory, { recursive: true, force: true });
});

test("keeps every answered response and conversation item after kill -9 under concurrent requests", async () => {
  const answered: string[] = [];
  {
    await using server = await startServerProcess({ config, dataDir });
    const client = openaiClient({ url: server.url, key: firstKey() });
    const ask = async (n: number) => {
      for (let turn = 0; ; turn++) {
        const asked = { model, input: `Turn ${turn} of ${n}` };
        if (turn % 2 === 0) answered.push((await client.responses.create(asked)).id);
        else {
          for await (const event of await client.responses.create({ ...asked, stream: true })) {
            if (event.type === "response.completed") answered.push(event.response.id);
          }
        }
        // The last of them has only just heard its end.
        if (answered.length >= 150) server.process.kill("SIGKILL");
      }
    };
    await Promise.allSettled(Array.from({ length: 8 }, (_, n) => ask(n)));
    await server.process.exited;
  }
  expect(answered.length).toBeGreaterThanOrEqual(150);
  await using server = await startServerProcess({ config, dataDir });
  const client = openaiClient({ url: server.url, key: firstKey() });
  for (const id of answered) expect((await client.responses.retrieve(id)).status).toBe("completed");
  const previous = answered.at(-1) ?? "";
  await client.responses.create({ model, input: "Go on", previous_response_id: previous });
  const said = saidIn(upstream.requests.at(-1) ?? { body: {} });
  expect(said).toMatchObject([expect.stringMatching(/^user: Turn/), "assistant: Hello world", "user: Go on"]);
}, 60_000);

test("ends a background response once after kill -9, with each token booked once", async () => {
  await using counting = await startCountingUpstream();
  const own = join(directory, "background");
  const counted = join(directory, "counted.yaml");
  writeFileSync(counted, `upstreams: [{ name: a, url: "${counting.url("a")}" }]\n`);
  const ids: string[] = [];
  const received = new Set<string>();
  {
    await using server = await startServerProcess({ config: counted, dataDir: own });
    const client = openaiClient({ url: server.url, key: firstKey(own) });
    const ask = async (n: number) => {
      for (let turn = 0; ; turn++) {
        // Some seconds' worth of it, or a moment's.
        const tokens = n % 2 === 0 ? 10 + n : 200 + 25 * n;
        const input = orderText({ mark: `${n} ${turn}`, tokens });
        const stream = await client.responses.create({ model: "a-model", input, background: true, stream: true });
        for await (const event of stream) {
          if (event.type === "response.created") ids.push(event.response.id);
          if (event.type === "response.completed") received.add(event.response.id);
        }
        if (received.size >= 60) server.process.kill("SIGKILL");
      }
    };
    await Promise.allSettled(Array.from({ length: 24 }, (_, n) => ask(n)));
    await server.process.exited;
  }
  expect(received.size).toBeGreaterThanOrEqual(60);
  // Nobody waits in a test for the minute that has to pass before a process is taken for dead.
  const db = new Database(join(own, "headrace.db"));
  db.run("UPDATE stored_responses SET seen_at = seen_at - 120");
  db.close();
  await using server = await startServerProcess({ config: counted, dataDir: own });
  const client = openaiClient({ url: server.url, key: firstKey(own) });
  const running = new Set(["queued", "in_progress"]);
  const responses = await until(
    async () => {
      const all = await Promise.all(ids.map((id) => client.responses.retrieve(id)));
      return all.every(({ status }) => !running.has(String(status))) ? all : undefined;
    },
    "each has ended",
    30_000,
  );
  expect(responses.filter(({ status }) => status === "failed").length).toBeGreaterThan(0);
  expect(responses.filter(({ status }) => status !== "failed" && status !== "completed")).toEqual([]);
  const booked = bookedUsage(own);
  for (const response of responses) {
    const { id, status, output_text: text } = response;
    if (received.has(id)) expect(status).toBe("completed");
    const requestId = `req_${id.slice("resp_".length)}`;
    const generated = counting.generated.get(requestId);
    const [record, ...others] = booked.filter(({ request_id: one }) => one === requestId);
    expect([record !== undefined, others]).toEqual([true, []]);
    if (!generated) {
      expect([status, record?.completion_tokens]).toEqual(["failed", 0]);
      continue;
    }
    expect(generated.times).toBe(1);
    if (status === "completed") {
      expect(text).toBe(word.repeat(generated.completionTokens));
      expect(record).toMatchObject({ outcome: "completed", completion_tokens: generated.completionTokens });
    } else {
      expect(record?.completion_tokens).toBeLessThanOrEqual(generated.completionTokens);
      const events = await eventsOf(client, id);
      expect(events.map(({ sequence_number: number }) => number)).toEqual(events.map((_, number) => number));
      expect(events.at(-1)).toMatchObject({ type: "response.failed", response: { id, status: "failed" } });
    }
  }
}, 90_000);

test.skipIf(!long)(
  "leaves a response that another process ended unchanged and free of charge",
  async () => {
    await using talking = await startGatedUpstream();
    const gated = join(directory, "gated.yaml");
    writeFileSync(gated, upstreamYaml(talking));
    const databaseUrl = await freshDatabase();
    const env = { HEADRACE_DATABASE_URL: databaseUrl, HEADRACE_SECRET: "ab".repeat(32) };
    const args = ["--mode", "production", "--public-url", "http://127.0.0.1:7545"];
    const [own, others] = [join(directory, "one"), join(directory, "other")];
    await using still = await startServerProcess({ config: gated, dataDir: own, env, args });
    const key = firstKey(own);
    await using other = await startServerProcess({ config: gated, dataDir: others, env, args });
    const { id } = await openaiClient({ url: still.url, key }).responses.create({
      model,
      input: "One",
      background: true,
    });
    await until(() => talking.open() === 1, "the model is asked");
    talking.say("Hello");
    const client = openaiClient({ url: other.url, key });
    await until(async () => (await client.responses.retrieve(id)).status === "in_progress", "it is in progress");
    still.process.kill("SIGSTOP");
    const db = new SQL(databaseUrl);
    await db`UPDATE stored_responses SET seen_at = seen_at - 120`;
    await until(async () => (await client.responses.retrieve(id)).status === "failed", "it is taken for dead", 40_000);
    const before = [await client.responses.retrieve(id), await eventsOf(client, id)] as const;
    talking.say(" my");
    talking.say(" world");
    still.process.kill("SIGCONT");
    await until(() => talking.open() === 0, "the model is stopped");
    const records = await until(async () => {
      const found: { outcome: string; completion_tokens: number | string }[] =
        await db`SELECT outcome, completion_tokens FROM usage_records WHERE request_id = ${`req_${id.slice(5)}`}`;
      return found.length > 0 ? found : undefined;
    }, "it is booked");
    await Bun.sleep(1_500);
    expect([await client.responses.retrieve(id), await eventsOf(client, id)]).toEqual([...before]);
    const booked = records.map(({ outcome, completion_tokens: tokens }) => [outcome, Number(tokens)]);
    expect(booked).toEqual([["failed", 0]]);
    await db.close();
  },
  120_000,
);

async function eventsOf(client: OpenAI, id: string): Promise<OpenAI.Responses.ResponseStreamEvent[]> {
  return await Array.fromAsync(await client.responses.retrieve(id, { stream: true }));
}

function firstKey(ofDirectory = dataDir): string {
  return (JSON.parse(readFileSync(join(ofDirectory, "credentials.json"), "utf8")) as { api_key: string }).api_key;
}
