// Recent speeds of models: means of completed streams, by model and upstream.
import { afterAll, afterEach, beforeAll, expect, test } from "bun:test";
import { onEachDatabase, type TestDatabase } from "../../../tests/support/databases.ts";
import type { Database } from "../sql/database.ts";
import { SqlSpeeds } from "./speeds.ts";

const now = 1_790_000_000;
let opened: TestDatabase;
let db: Database;
let speeds: SqlSpeeds;
let records = 0;

onEachDatabase((databases) => {
  beforeAll(async () => {
    opened = await databases.open();
    ({ db } = opened);
    speeds = new SqlSpeeds(db);
  });

  afterEach(async () => {
    await db`DELETE FROM usage_records`;
  });

  afterAll(async () => {
    await opened.close();
  });

  const record = (more: object = {}) => ({
    request_id: `req_${records++}`,
    at: now,
    account_id: "acct_1",
    key_id: "key_1",
    environment: "live",
    operation: "chat",
    model: "m",
    outcome: "completed",
    prompt_tokens: 1,
    completion_tokens: 11,
    estimated: 0,
    duration_ms: 1_100,
    upstream: "up",
    first_token_ms: 100,
    ...more,
  });

  async function have(...rows: ReturnType<typeof record>[]): Promise<void> {
    await db`INSERT INTO usage_records ${db(rows)}`;
  }

  test("computes the speed from the tokens after the first one, for each model and upstream", async () => {
    await have(
      record(),
      record({ at: now - 14 * 60, first_token_ms: 300, duration_ms: 800, completion_tokens: 21 }),
      record({ upstream: "other", first_token_ms: 5 }),
      record({ model: "n", completion_tokens: 1 }),
    );
    const found = (await speeds.recent(now)).sort((a, b) => (a.model + a.upstream < b.model + b.upstream ? -1 : 1));
    expect(found).toMatchObject([
      { model: "m", upstream: "other", firstTokenMs: 5, tokensPerSecond: 10_000 / 1_095 },
      { model: "m", upstream: "up", firstTokenMs: 200, tokensPerSecond: 30_000 / 1_500 },
      { model: "n", upstream: "up", firstTokenMs: 100, tokensPerSecond: null },
    ]);
  });

  test("computes percentiles of the first token and the total over all minutes", async () => {
    const times = Array.from({ length: 100 }, (_, i) => i + 1);
    await have(...times.map((i) => record({ at: now - (i % 10) * 60, first_token_ms: i, duration_ms: 10 * i })));
    expect(await speeds.recent(now)).toMatchObject([
      {
        firstTokenMs: 50.5,
        firstTokenPercentiles: { p50: 50, p95: 95, p99: 99 },
        totalPercentiles: { p50: 500, p95: 950, p99: 990 },
      },
    ]);
  });

  test("counts answers that were not streamed in the percentiles of the total alone", async () => {
    await have(record({ first_token_ms: null, duration_ms: 700 }));
    expect(await speeds.recent(now)).toMatchObject([
      { firstTokenMs: null, tokensPerSecond: null, totalPercentiles: { p50: 700, p95: 700, p99: 700 } },
    ]);
    await have(record());
    expect(await speeds.recent(now)).toMatchObject([
      { firstTokenMs: 100, firstTokenPercentiles: { p50: 100 }, totalPercentiles: { p50: 700, p99: 1_100 } },
    ]);
  });

  test("ignores old, failed and instant answers in the speed", async () => {
    await have(record({ at: now - 15 * 60 - 1 }), record({ outcome: "failed" }), record({ upstream: null }));
    expect(await speeds.recent(now)).toEqual([]);
    await have(record({ duration_ms: 100 }));
    expect(await speeds.recent(now)).toMatchObject([
      { model: "m", upstream: "up", firstTokenMs: 100, tokensPerSecond: null },
    ]);
  });

  test("reads only the newest answers of a busy minute, and leaves room for other minutes", async () => {
    const busy = Array.from({ length: 700 }, (_, i) =>
      record({ at: now - (i < 200 ? 59 : 1), first_token_ms: i < 200 ? 900 : 10 }),
    );
    for (let from = 0; from < busy.length; from += 100) await have(...busy.slice(from, from + 100));
    await have(record({ at: now - 300, model: "rare" }));
    const found = await speeds.recent(now);
    expect(found.find(({ model }) => model === "m")?.firstTokenMs).toBe(10);
    expect(found.find(({ model }) => model === "rare")?.firstTokenMs).toBe(100);
  });
});
