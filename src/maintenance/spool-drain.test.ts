// `headrace spool drain`: usage of a server that never returns is in the database, once, and in the right one.
import { afterEach, beforeEach, expect, test } from "bun:test";
import { cpSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { runCommand } from "../../tests/fixtures/command-line.ts";
import { ledgerWith, quotaOf } from "../../tests/support/limits-contract.ts";
import { startRedis } from "../../tests/support/redis.ts";
import { systemClock } from "../base/clock.ts";
import type { UsageBegin, UsageEnd } from "../domain/usage/usage.ts";
import { SpoolLedger } from "../ledger/ledger.ts";
import { SharedLimits } from "../limits/shared/shared-limits.ts";
import { lockDataDirectory } from "../storage/files/data-directory-lock.ts";
import { type Database, openDatabase } from "../storage/sql/database.ts";
import { SqlAccountStore } from "../storage/tables/account-store.ts";

let root: string;
let dataDir: string;
/** The data directory of the server that is gone. */
let lost: string;
let db: Database;
let accountId: string;

beforeEach(async () => {
  root = mkdtempSync(join(tmpdir(), "headrace-drain-"));
  [dataDir, lost] = [join(root, "data"), join(root, "lost")];
  for (const path of [dataDir, lost]) mkdirSync(path);
  db = await openDatabase(join(dataDir, "headrace.db"));
  accountId = await new SqlAccountStore(db).ensureFirstAccount(1_800_000_000);
});

afterEach(async () => {
  await db.close();
  rmSync(root, { recursive: true, force: true });
});

const log = { info() {}, warn() {}, error() {} };
const end: UsageEnd = {
  ...{ promptTokens: 10, completionTokens: 5, estimated: false, outcome: "completed", errorCode: null, nanoUsd: 25 },
  ...{ capped: false, upstream: "up", durationMs: 9, firstTokenMs: 1, queueMs: 0 },
};
const begin = (requestId: string, keyId = "key_1"): UsageBegin => ({
  ...{ requestId, at: 1_800_000_000, accountId, keyId, appId: null, environment: "live" },
  ...{ operation: "chat", model: "m", stream: true },
});

/** Leaves the spool of a server that was killed: `settled` requests that had ended, and one that had not. */
async function leaveSpool(settled: number, keyOf?: (i: number) => string): Promise<void> {
  const alive = join(root, "alive");
  const ledger = await SpoolLedger.open({ db, directory: alive, log, clock: systemClock, drainMs: 3_600_000 });
  const entries = Array.from({ length: settled + 1 }, (_, i) => ledger.begin(begin(`req_${i}`, keyOf?.(i))));
  await Promise.all(entries.map(({ begun }) => begun));
  await Promise.all(entries.slice(1).map((entry) => entry.settle(end)));
  cpSync(alive, join(lost, "spool"), { recursive: true });
  rmSync(alive, { recursive: true });
}

const drain = (directory: string, ...args: string[]) =>
  runCommand(["spool", "drain", directory, "--data-dir", dataDir, ...args]);
const drainWith = (env: Record<string, string>) => runCommand(["spool", "drain", lost, "--data-dir", dataDir], { env });
const outcomes = async (): Promise<Record<string, number>> => {
  const rows: { outcome: string; n: number }[] =
    await db`SELECT outcome, count(*) AS n FROM usage_records GROUP BY outcome ORDER BY outcome`;
  const [rolled] = await db`SELECT coalesce(sum(requests), 0) AS n FROM usage_rollups WHERE span = 'hour'`;
  expect(Number(rolled?.n)).toBe(rows.reduce((sum, { n }) => sum + Number(n), 0));
  return Object.fromEntries(rows.map(({ outcome, n }) => [outcome, Number(n)]));
};

test("drains the whole spool, cut-off requests by their last figures, and deletes the files", async () => {
  await leaveSpool(30);
  const { code, stdout } = await drain(lost);
  expect(stdout).toBe(`The usage of 31 requests was taken over from ${join(lost, "spool")}, 1 of them cut off.\n`);
  expect(code).toBe(0);
  expect(await outcomes()).toEqual({ completed: 30, interrupted: 1 });
  expect(readdirSync(join(lost, "spool")).filter((name) => name.endsWith(".spool"))).toEqual([]);
});

test("counts nothing twice in a repeated drain or a drain of a copy", async () => {
  await leaveSpool(5);
  const copy = join(root, "copy");
  cpSync(join(lost, "spool"), copy, { recursive: true });
  expect(JSON.parse((await drain(lost, "--json")).stdout)).toEqual({
    ...{ spool: join(lost, "spool"), settled: 5, interrupted: 1, damaged: 0, unknown: 0, too_old: 0 },
  });
  const nothing = `There was nothing in ${join(lost, "spool")} that the database did not have.\n`;
  expect((await drain(lost)).stdout).toBe(nothing);
  expect(JSON.parse((await drain(copy, "--json")).stdout)).toMatchObject({ settled: 0, interrupted: 0 });
  expect(await outcomes()).toEqual({ completed: 5, interrupted: 1 });
});

test("counts each request once in a drain beside a running server", async () => {
  await leaveSpool(300, (i) => `key_${i}`);
  const server = await SpoolLedger.open({ db, directory: join(dataDir, "spool"), log, clock: systemClock, drainMs: 1 });
  const serve = async (name: string) => {
    const entries = Array.from({ length: 300 }, (_, i) => server.begin(begin(`${name}_${i}`, `key_${i}`)));
    await Promise.all(entries.map((entry) => entry.settle(end)));
    while (server.figures.pending > 0) await Bun.sleep(1);
  };
  await serve("before");
  expect((await db`SELECT batch FROM usage_unrolled`).length).toBe(1);
  expect((await drain(lost)).code).toBe(0);
  expect((await db`SELECT batch FROM usage_unrolled`).length).toBe(1);
  await serve("after");
  await server.close();
  expect(await outcomes()).toEqual({ completed: 900, interrupted: 1 });
});

test("fails if the shared counters cannot be updated, and updates them when repeated", async () => {
  await using redis = await startRedis();
  await db`
    INSERT INTO api_keys (id, account_id, name, environment, digest, prefix, last4, scopes, created_at, limit_id)
    VALUES ('key_1', ${accountId}, 'x', 'live', 'd', '', '', '', 1, 'key_1')`;
  const quota = { ...quotaOf(1_000), id: `account:${accountId}:live` };
  const ledger = ledgerWith();
  const limits = await SharedLimits.open({ url: redis.url, clock: systemClock, ledger, directory: dataDir, log });
  await limits.used(quota);
  await leaveSpool(5);
  ledger.totals.tokens = 75;
  const env = { HEADRACE_REDIS_URL: redis.url };
  const keys = ["replicas", "leases:*", "born", "run"].map((name) => `~headrace:${name}`);
  await redis.command("ACL", "SETUSER", "default", "resetkeys", ...keys);
  const { code, stderr } = await drainWith(env);
  expect([code, stderr]).toEqual([1, expect.stringContaining("Run the same command again")]);
  expect(await outcomes()).toEqual({ completed: 5, interrupted: 1 });
  await redis.command("ACL", "SETUSER", "default", "allkeys");
  expect(await drainWith(env)).toMatchObject({ code: 0, stdout: expect.stringContaining("There was nothing") });
  expect(await limits.used(quota)).toMatchObject({ tokens: 75 });
  expect(readdirSync(join(lost, "spool"))).toEqual([]);
  await limits.close();
});

test("does not drain the directory of a running server", async () => {
  await leaveSpool(1);
  const release = lockDataDirectory(lost);
  for (const directory of [lost, join(lost, "spool")]) {
    const { code, stderr } = await drain(directory);
    expect([code, stderr]).toEqual([1, expect.stringContaining("A Headrace that runs uses")]);
  }
  expect(await outcomes()).toEqual({});
  release();
  expect((await drain(lost)).code).toBe(0);
});

test("keeps usage of another installation in place, and tells what to set", async () => {
  await leaveSpool(1);
  const other = join(root, "other");
  mkdirSync(other);
  const otherDb = await openDatabase(join(other, "headrace.db"));
  await new SqlAccountStore(otherDb).ensureFirstAccount(1_800_000_000);
  await otherDb.close();
  const { code, stderr } = await runCommand(["spool", "drain", lost, "--data-dir", other]);
  expect(code).toBe(1);
  expect(stderr).toContain("another installation");
  expect(stderr).toContain("HEADRACE_DATABASE_URL");
  expect((await drain(lost)).stdout).toContain("2 requests");
});

test("reports a missing spool or directory", async () => {
  for (const [path, text] of [
    [join(root, "nowhere"), "There is no directory"],
    [lost, "There is no spool in"],
  ] as const) {
    const { code, stderr } = await drain(path);
    expect([code, stderr]).toEqual([1, expect.stringContaining(text)]);
  }
});
