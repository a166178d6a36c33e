// What counts against rate limits after a restart: the windows that have not passed, and nothing from the future.
import { afterEach, beforeEach, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { keyRecordFor } from "../../tests/support/principal.ts";
import type { UsageRecord } from "../domain/usage.ts";
import { SqlAccountStore } from "./account-store.ts";
import { type Database, openDatabase } from "./database.ts";
import { SqlKeyStore } from "./key-store.ts";
import { recentUsage } from "./recent-usage.ts";
import { insertUsage } from "./usage-rows.ts";

const now = 1_800_000_000;

let directory: string;
let db: Database;
let accountId: string;

beforeEach(async () => {
  directory = mkdtempSync(join(tmpdir(), "headrace-recent-"));
  db = await openDatabase(join(directory, "headrace.db"));
  accountId = await new SqlAccountStore(db).ensureFirstAccount(now);
});

afterEach(async () => {
  await db.close();
  rmSync(directory, { recursive: true, force: true });
});

/** One request for each time, of 10 and 5 tokens. */
async function use(...times: readonly number[]): Promise<void> {
  const record = (at: number, index: number): UsageRecord => ({
    requestId: `req_${at}_${index}`,
    at,
    accountId,
    keyId: "key_1",
    appId: null,
    environment: "live",
    operation: "chat",
    model: "m",
    stream: false,
    promptTokens: 10,
    completionTokens: 5,
    estimated: false,
    outcome: "completed",
    errorCode: null,
    nanoUsd: null,
    capped: false,
    upstream: null,
    durationMs: 1,
    firstTokenMs: null,
    queueMs: 0,
  });
  await insertUsage(db, times.map(record));
}

async function timesAt(nowSeconds: number): Promise<number[]> {
  return (await recentUsage(db, nowSeconds)).map(({ at }) => at - now).sort((a, b) => a - b);
}

test("is the last minute, by key and second, and a second more, as only whole seconds are known", async () => {
  await use(now, now, now - 61, now - 62, now - 3_600);
  expect((await recentUsage(db, now)).sort((a, b) => a.at - b.at)).toEqual([
    { keyId: "key_1", at: now - 61, requests: 1, tokens: 15 },
    { keyId: "key_1", at: now, requests: 2, tokens: 30 },
  ]);
});

test("reaches as far back as the longest window of a key of the account", async () => {
  const key = keyRecordFor({ accountId, rateLimit: 5, rateLimitWindow: 3_600 });
  await new SqlKeyStore(db).insertKey(key, {
    id: "audit_1",
    at: now,
    action: "key.created",
    actor: { type: "operator" },
    accountId,
    targetId: key.id,
    clientAddress: null,
    requestId: null,
    detail: {},
  });
  await use(now, now - 3_601, now - 3_602);
  expect(await timesAt(now)).toEqual([-3_601, 0]);
});

test("leaves out what lies in the future, as the clock was set back since: it delays nobody", async () => {
  await use(now - 30, now, now + 1, now + 30, now + 86_400);
  expect(await timesAt(now)).toEqual([-30, 0]);
  expect(await timesAt(now + 30)).toEqual([-30, 0, 1, 30]);
});
