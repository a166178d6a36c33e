// Tests counts of refused requests: correct, bounded in memory during a flood, and not lost while the database fails.
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { type ManualClock, manualClock } from "../../../tests/support/manual-clock.ts";
import { accountFor, keyRecordFor, principalFor } from "../../../tests/support/principal.ts";
import { GatewayError, type RefusalReason } from "../../base/errors.ts";
import type { Log } from "../../base/log.ts";
import type { RefusalCount } from "../../domain/limits/refusal.ts";
import { RefusalCounts } from "./refusal-counts.ts";

const noon = Date.UTC(2026, 8, 1, 12) / 1000;

/** The counts that the store received, added up as the database does. */
let stored: Map<string, RefusalCount>;
let clock: ManualClock;
let counts: RefusalCounts;
let logged: unknown[];
const note = (event: string, fields?: object) => void logged.push({ event, ...fields });
const log: Log = { info: note, warn: note, error: note };
/** The number of the first batch that fails. All later ones fail too. */
let failFrom: number;
let batches: number;

beforeEach(() => {
  stored = new Map();
  clock = manualClock(noon);
  logged = [];
  failFrom = Number.POSITIVE_INFINITY;
  batches = 0;
  counts = make();
});

afterEach(() => counts.close());

function make(options: { maxPending?: number; flushMs?: number } = {}): RefusalCounts {
  const add = async (rows: readonly RefusalCount[]) => {
    await new Promise(setImmediate);
    if (++batches >= failFrom) throw new Error("disk full");
    for (const { requests, lastAt, ...group } of rows) {
      const name = JSON.stringify(group);
      const before = stored.get(name)?.requests ?? 0;
      stored.set(name, { ...group, requests: before + requests, lastAt });
    }
  };
  return new RefusalCounts({ store: { add }, clock, log, flushMs: 60_000, ...options });
}

const by = (id: string) => principalFor({ keys: [keyRecordFor({ id })] });
const refusal = (reason: RefusalReason) => new GatewayError("rate_limit_exceeded", "No.", { refusal: reason });

function refuse(times: number, key = "key_1", reason: RefusalReason = "key_requests", model = "m"): void {
  const principal = by(key);
  for (let i = 0; i < times; i++) counts.count(principal, model, refusal(reason));
}

const total = () => [...stored.values()].reduce((sum, { requests }) => sum + requests, 0);

test("counts refusals by credential, model, reason and hour, and adds later ones", async () => {
  refuse(3);
  refuse(1, "key_2");
  refuse(1, "key_1", "account_tokens");
  refuse(1, "key_1", "key_requests", "other");
  await counts.flush();
  clock.advance(120_000);
  refuse(2);
  clock.advance(3_600_000);
  refuse(1);
  await counts.flush();
  const rows = [...stored.values()].map(({ start, keyId, model, reason, requests, lastAt }) =>
    [start - noon, keyId, model, reason, requests, lastAt - noon].join(" "),
  );
  expect(rows).toEqual([
    "0 key_1 m key_requests 5 120",
    "0 key_2 m key_requests 1 0",
    "0 key_1 m account_tokens 1 0",
    "0 key_1 other key_requests 1 0",
    "3600 key_1 m key_requests 1 3720",
  ]);
});

test("does not count errors that are no refusal of a limit", async () => {
  counts.count(by("key_1"), "m", new GatewayError("service_unavailable", "The disk is full."));
  counts.count(by("key_1"), "m", new Error("broken"));
  expect(counts.pending).toBe(0);
});

test("writes the counts in the background, and at shutdown at the latest", async () => {
  counts = make({ flushMs: 1 });
  refuse(2);
  while (total() < 2) await Bun.sleep(1);
  counts = make();
  refuse(1);
  await counts.close();
  expect(total()).toBe(3);
});

describe("a flood of refusals", () => {
  test("bounds the memory for a flood of many credentials with one sum for each account and reason", async () => {
    counts = make({ maxPending: 10 });
    for (let round = 0; round < 2; round++) for (let i = 0; i < 1_000; i++) refuse(1, `key_${i}`);
    expect(counts.pending).toBe(11);
    await counts.flush();
    const rows = [...stored.values()];
    expect(rows).toHaveLength(11);
    expect(rows.at(-1)).toMatchObject({ keyId: null, appId: null, model: null, requests: 2 * 990 });
    expect(total()).toBe(2_000);
  });

  test("counts up to ten thousand credentials separately", () => {
    for (let i = 0; i < 10_100; i++) refuse(1, `key_${i}`);
    expect(counts.pending).toBe(10_001);
  });

  test("bounds the sums for a flood of many accounts, and logs the dropped counts once", async () => {
    counts = make({ maxPending: 10 });
    for (let i = 0; i < 1_000; i++) {
      const principal = { ...by(`key_${i}`), account: accountFor({ id: `acct_${i}` }) };
      counts.count(principal, "m", refusal("account_requests"));
    }
    expect(counts.pending).toBe(20);
    await counts.flush();
    expect(logged).toEqual([{ event: "refusals_not_counted", requests: 980 }]);
  });
});

describe("a failing database", () => {
  test("loses and duplicates no count while the database fails, and logs once", async () => {
    failFrom = 1;
    refuse(3);
    await counts.flush();
    refuse(2);
    await counts.flush();
    expect([counts.pending, total()]).toEqual([1, 0]);
    expect(logged).toMatchObject([{ event: "refusals_not_written", rows: 1 }]);
    failFrom = Number.POSITIVE_INFINITY;
    await counts.flush();
    expect(total()).toBe(5);
    await counts.flush();
    expect(total()).toBe(5);
  });

  test("keeps the written counts and later ones if the database fails in the middle", async () => {
    for (let i = 0; i < 500; i++) refuse(1, `key_${i}`);
    failFrom = 2;
    const flushing = counts.flush();
    refuse(1, "key_499");
    await flushing;
    expect(total()).toBe(200);
    failFrom = Number.POSITIVE_INFINITY;
    await counts.flush();
    expect(total()).toBe(501);
  });

  test("bounds the waiting counts during a long failure by adding further ones to the sums", async () => {
    counts = make({ maxPending: 10 });
    failFrom = 1;
    for (let round = 0; round < 5; round++) {
      for (let i = 0; i < 30; i++) refuse(1, `key_${round}_${i}`);
      await counts.flush();
      expect(counts.pending).toBeLessThanOrEqual(20);
    }
    failFrom = Number.POSITIVE_INFINITY;
    await counts.flush();
    expect(total()).toBe(150);
  });

  test("drops counts that not even the sums can take, and logs how many requests", async () => {
    counts = make({ maxPending: 2 });
    failFrom = 1;
    for (let i = 0; i < 10; i++) {
      const account = accountFor({ id: `acct_${i}` });
      const principal = principalFor({ account, keys: [keyRecordFor({ id: `key_${i}`, accountId: account.id })] });
      for (let time = 0; time < 3; time++) counts.count(principal, "m", refusal("key_requests"));
    }
    await counts.flush();
    failFrom = Number.POSITIVE_INFINITY;
    await counts.flush();
    const given = (logged as { event: string; requests: number }[]).filter(
      ({ event }) => event === "refusals_not_counted",
    );
    const requests = given.reduce((sum, one) => sum + one.requests, 0);
    expect(requests).toBeGreaterThan(given.length);
    expect(requests + total()).toBe(30);
  });
});

test("writes once for many concurrent flushes", async () => {
  failFrom = 1;
  refuse(5);
  await Promise.all(Array.from({ length: 100 }, () => counts.flush()));
  expect(batches).toBe(1);
  failFrom = Number.POSITIVE_INFINITY;
  const first = counts.flush();
  await new Promise(setImmediate);
  refuse(2);
  await Promise.all([first, counts.flush(), counts.flush()]);
  expect([total(), counts.pending]).toEqual([7, 0]);
  expect(batches).toBe(3);
});
