// `kill -9` of a server that gathers the roll-ups of very many keys: afterwards they are what the records say, each of them.
import { Database } from "bun:sqlite";
import { afterAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { until } from "../support/headrace.ts";
import { long } from "../support/long.ts";
import { rollupsIn, sumsOfRecords, unrolledIn } from "../support/rolled-up.ts";
import { startServerProcess } from "../support/server-process.ts";

const cycles = long ? 60 : 2;
/** More than there must be in a batch for its sums to be gathered; with the models so many that moving them takes a while. */
const keyCount = 300;
const models = Array.from({ length: 20 }, (_, i) => `m${i}`);
const directory = mkdtempSync(join(tmpdir(), "headrace-kill-keys-"));
afterAll(() => rmSync(directory, { recursive: true, force: true }));

function inDatabase<Found>(dataDir: string, look: (db: Database) => Found): Found {
  const db = new Database(join(dataDir, "headrace.db"));
  try {
    return look(db);
  } finally {
    db.close();
  }
}

const isMoving = (db: Database) => db.query("SELECT 1 FROM usage_unrolled WHERE batch < 0").get() !== null;

const headersOf = (key: string) => ({ authorization: `Bearer ${key}`, "content-type": "application/json" });

async function makeKey(baseUrl: string, by: string): Promise<string> {
  const body = JSON.stringify({ name: "one of many", scopes: ["chat:write"] });
  const answer = await fetch(`${baseUrl}/keys`, { method: "POST", headers: headersOf(by), body });
  if (!answer.ok) throw new Error(`${answer.status} ${await answer.text()}`);
  return ((await answer.json()) as { key: string }).key;
}

test(`records every answer of ${keyCount} keys over ${cycles} kills, with roll-ups that equal their records`, async () => {
  using upstream = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch: (request) =>
      request.method === "GET"
        ? Response.json({
            object: "list",
            data: models.map((id) => ({ id, object: "model", created: 1, owned_by: "t" })),
          })
        : Response.json({
            ...{ id: "c", object: "chat.completion", created: 1, model: "m" },
            choices: [{ index: 0, message: { role: "assistant", content: "word" }, finish_reason: "stop" }],
            usage: { prompt_tokens: 11, completion_tokens: 1, total_tokens: 12 },
          }),
  });
  const config = join(directory, "headrace.yaml");
  const dataDir = join(directory, "data");
  writeFileSync(config, `upstreams: [{ name: up, url: "http://127.0.0.1:${upstream.port}/v1" }]\n`);
  const bodies = models.map((model) => JSON.stringify({ model, messages: [{ role: "user", content: "Hi" }] }));
  const keys: string[] = [];
  const answered: string[] = [];
  /** Deaths while the roll-ups lacked something. */
  let behind = 0;
  for (let cycle = 0; cycle < cycles; cycle++) {
    await using server = await startServerProcess({ dataDir, config });
    const { api_key: first } = await Bun.file(join(dataDir, "credentials.json")).json();
    while (keys.length < keyCount) {
      keys.push(...(await Promise.all(Array.from({ length: 50 }, () => makeKey(server.baseUrl, first)))));
    }
    const load = Promise.allSettled(
      keys.map(async (key) => {
        for (let i = 0; ; i++) {
          const body = bodies[i % bodies.length] ?? "";
          const answer = await fetch(`${server.baseUrl}/chat/completions`, {
            ...{ method: "POST", headers: headersOf(key), body },
          });
          await answer.text();
          if (answer.ok) answered.push(answer.headers.get("x-request-id") ?? "");
        }
      }),
    );
    await until(() => inDatabase(dataDir, unrolledIn) > 0, "a batch of many keys is written");
    // Who reads them has them brought up to date: every other time it dies in the middle of that.
    const readers = Promise.allSettled(
      (cycle % 2 === 1 ? [first] : []).map(async (key) => {
        for (;;) await fetch(`${server.baseUrl}/usage`, { headers: headersOf(key) });
      }),
    );
    if (cycle % 2 === 1) await until(() => inDatabase(dataDir, isMoving), "some of it is moved");
    else await Bun.sleep(Math.random() * (long ? 400 : 40));
    server.process.kill("SIGKILL");
    await Promise.allSettled([server.process.exited, load, readers]);
    if (inDatabase(dataDir, unrolledIn) > 0) behind++;
  }
  await using last = await startServerProcess({ dataDir, config });
  const [records, rollups, sums, unrolled] = inDatabase(dataDir, (db) => [
    new Set(db.query("SELECT request_id FROM usage_records").values().flat()),
    ...[rollupsIn(db), sumsOfRecords(db), unrolledIn(db)],
  ]);
  expect(answered.filter((id) => !records.has(id))).toEqual([]);
  expect(answered.length).toBeGreaterThan(keyCount);
  expect(rollups).toEqual(sums);
  expect(unrolled).toBe(0);
  expect(behind).toBeGreaterThan(0);
  last.process.kill("SIGTERM");
  expect(await last.process.exited).toBe(0);
}, 600_000);
