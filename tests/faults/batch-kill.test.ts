// `kill -9` of servers at random moments of a batch: each line is answered once in the output, and charged once, with the usage of that very answer.
import { Database } from "bun:sqlite";
import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { SQL } from "bun";
import type OpenAI from "openai";
import { toFile } from "openai";
import { openaiClient } from "../support/clients.ts";
import { until } from "../support/headrace.ts";
import { long } from "../support/long.ts";
import { freshDatabase } from "../support/postgres.ts";
import { json, type ScriptedUpstream, startUpstream, upstreamYaml } from "../support/scripted-upstream.ts";
import { type ServerProcess, startServerProcess } from "../support/server-process.ts";

const kills = long ? 200 : 4;
const lineCount = long ? 10_000 : 500;
const directory = mkdtempSync(join(tmpdir(), "headrace-batch-kill-"));
const config = join(directory, "headrace.yaml");
const model = "upstream-model";
let upstream: ScriptedUpstream;

beforeAll(async () => {
  // No two answers have used the same: what is charged tells which of them it is for.
  let answers = 0;
  upstream = await startUpstream(async (_, res) => {
    const tokens = ++answers;
    await Bun.sleep(10 + Math.random() * 20);
    json(res, 200, {
      ...{ id: "c", object: "chat.completion", created: 1, model },
      choices: [{ index: 0, message: { role: "assistant", content: "word ".repeat(3) }, finish_reason: "stop" }],
      usage: { prompt_tokens: 11, completion_tokens: tokens, total_tokens: 11 + tokens },
    });
  });
  const limits = `tiers: [{ name: enterprise, requests_per_minute: null, tokens_per_minute: null, monthly_tokens: null, monthly_spend: null }]\n`;
  const files = `files: { directory: "${join(directory, "files")}" }\n`;
  writeFileSync(config, upstreamYaml(upstream, limits + files).replace("name: up", "name: up, max_concurrency: 8"));
});
afterAll(async () => {
  await upstream[Symbol.asyncDispose]();
  rmSync(directory, { recursive: true, force: true });
});

function firstKey(dataDir: string): string {
  return (JSON.parse(readFileSync(join(dataDir, "credentials.json"), "utf8")) as { api_key: string }).api_key;
}

async function begin(client: OpenAI): Promise<string> {
  const lines = Array.from({ length: lineCount }, (_, n) =>
    JSON.stringify({
      ...{ custom_id: `line ${n}`, method: "POST", url: "/v1/chat/completions" },
      // What an answer may have at most bounds what is believed of it.
      body: { model, max_tokens: 1_000_000, messages: [{ role: "user", content: String(n) }] },
    }),
  );
  const file = await client.files.create({ file: await toFile(Buffer.from(lines.join("\n")), "a"), purpose: "batch" });
  const made = await client.batches.create({
    ...{ input_file_id: file.id, completion_window: "24h", endpoint: "/v1/chat/completions" },
  });
  return made.id;
}

interface Answer {
  custom_id: string;
  response: { request_id: string; body: { usage: { completion_tokens: number } } };
}

async function outputOf(client: OpenAI, id: string): Promise<Answer[]> {
  const batch = await until(
    async () => {
      const one = await client.batches.retrieve(id);
      return one.status === "completed" ? one : undefined;
    },
    "the batch is completed",
    long ? 600_000 : 60_000,
  );
  expect(batch.request_counts).toEqual({ total: lineCount, completed: lineCount, failed: 0 });
  const text = await (await client.files.content(batch.output_file_id ?? "")).text();
  const answers = text
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line) as Answer);
  expect(answers.map(({ custom_id }) => custom_id)).toEqual(Array.from({ length: lineCount }, (_, n) => `line ${n}`));
  const tokens = answers.reduce((sum, { response }) => sum + response.body.usage.completion_tokens, 0);
  expect(batch.usage?.output_tokens).toBe(tokens);
  return answers;
}

interface Booked {
  request_id: string;
  outcome: string;
  completion_tokens: number | string;
}

/** Resolves once as many are booked as there are lines: the last of them may be on their way to the database. */
async function expectCharged(answers: readonly Answer[], read: () => Booked[] | Promise<Booked[]>): Promise<void> {
  const booked = await until(async () => {
    const found = await read();
    return found.length >= answers.length ? found : undefined;
  }, "all of it is booked");
  const charged = booked.map((one) => [one.request_id, one.outcome, Number(one.completion_tokens)]);
  const wanted = answers.map(({ response: { request_id, body } }) => {
    return [request_id, "completed", body.usage.completion_tokens];
  });
  expect(charged.toSorted()).toEqual(wanted.toSorted());
}

const hasBegun = async (client: OpenAI, id: string) =>
  ((await client.batches.retrieve(id)).request_counts?.completed ?? 0) > 0;

test(
  "answers and charges each batch line once although the server is killed repeatedly",
  async () => {
    const dataDir = join(directory, "one");
    let id: string | undefined;
    for (let cycle = 0; cycle < kills; cycle++) {
      await using server = await startServerProcess({ config, dataDir });
      const client = openaiClient({ url: server.url, key: firstKey(dataDir) });
      if (id === undefined) {
        id = await begin(client);
        const made = id;
        await until(() => hasBegun(client, made), "the first lines are answered");
      }
      await Bun.sleep(Math.random() * 300);
      server.process.kill("SIGKILL");
      await server.process.exited;
    }
    await using server = await startServerProcess({ config, dataDir });
    const answers = await outputOf(openaiClient({ url: server.url, key: firstKey(dataDir) }), id ?? "");
    await expectCharged(answers, () => {
      const db = new Database(join(dataDir, "headrace.db"));
      try {
        return db.query<Booked, []>("SELECT request_id, outcome, completion_tokens FROM usage_records").all();
      } finally {
        db.close();
      }
    });
  },
  long ? 1_800_000 : 120_000,
);

// long-lived: batch.server
test(
  "continues a killed replica's batch lines at the other replica, once",
  async () => {
    const databaseUrl = await freshDatabase();
    const env = { HEADRACE_DATABASE_URL: databaseUrl, HEADRACE_SECRET: "ab".repeat(32) };
    const args = ["--mode", "production", "--public-url", "http://127.0.0.1:7545"];
    const start = (name: string): Promise<ServerProcess> =>
      startServerProcess({ config, dataDir: join(directory, name), env, args });
    await using killed = await start("killed");
    const key = firstKey(join(directory, "killed"));
    await using other = await start("other");
    const client = openaiClient({ url: other.url, key });
    const id = await begin(client);
    const db = new SQL(databaseUrl);
    const claims = async () => {
      const rows: { claim: string }[] = await db`SELECT DISTINCT claim FROM batch_lines WHERE claim IS NOT NULL`;
      return rows.length;
    };
    await until(async () => (await claims()) === 2, "both work on it");
    killed.process.kill("SIGKILL");
    await killed.process.exited;
    // Nobody waits in a test for the time that has to pass before a process is taken for dead; one that lives says so again.
    await db`UPDATE batch_lines SET claimed_until = claimed_until - 30 WHERE done_at IS NULL`;
    const answers = await outputOf(client, id);
    await expectCharged(
      answers,
      async () => await db`SELECT request_id, outcome, completion_tokens FROM usage_records`,
    );
    await db.close();
  },
  long ? 900_000 : 120_000,
);
