// Quotas per window that replicas share, when the server hangs, forgets or has its clock set, and when a replica dies.
import { afterAll, expect, test } from "bun:test";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { until } from "../../../tests/support/headrace.ts";
import {
  account,
  admittedOf,
  granted,
  ledgerWith,
  none,
  refusal,
  reserve,
} from "../../../tests/support/limits-contract.ts";
import { manualClock } from "../../../tests/support/manual-clock.ts";
import { startRedis } from "../../../tests/support/redis.ts";
import { windowQuota, withWindows } from "../../../tests/support/windows-contract.ts";
import { systemClock } from "../../base/clock.ts";
import { SharedLimits, type SharedLimitsOptions } from "./shared-limits.ts";

const redis = await startRedis();
const opened: SharedLimits[] = [];
afterAll(async () => {
  await Promise.all(opened.map((limits) => limits.close()));
  await redis[Symbol.asyncDispose]();
});

let worlds = 0;
const world = () => `windows${++worlds}:`;

async function open(prefix: string, options: Partial<SharedLimitsOptions> = {}): Promise<SharedLimits> {
  const limits = await SharedLimits.open({
    ...{ url: redis.url, clock: systemClock, ledger: ledgerWith(), prefix, retryMs: 50 },
    log: { info() {}, warn() {}, error() {} },
    directory: mkdtempSync(join(tmpdir(), "headrace-limits-")),
    ...options,
  });
  opened.push(limits);
  return limits;
}

/** Replicas by a clock of the test's own, also the server's. */
async function openTimed(count: number) {
  const prefix = world();
  const clock = manualClock();
  const ledger = ledgerWith();
  let aheadMicros = 0;
  const time = { micros: () => clock.monotonicMs() * 1000 + aheadMicros, seconds: () => clock.nowSeconds() };
  const replicas: SharedLimits[] = [];
  for (let i = 0; i < count; i++) replicas.push(await open(prefix, { clock, time, ledger, deadlineMs: 5_000 }));
  const setServer = (seconds: number) => {
    aheadMicros += seconds * 1_000_000;
    clock.jump(seconds);
  };
  return { prefix, clock, ledger, replicas: replicas as [SharedLimits, ...SharedLimits[]], setServer };
}

const fiveHours = windowQuota({ unit: "requests", amount: 30, per: "5h", window: "rolling" });
const today = windowQuota({ unit: "requests", amount: 30, per: "day", window: "calendar" });

for (const quota of [fiveHours, today]) {
  const { kind } = quota.window ?? {};

  test(`gives each replica its share of a ${kind} quota while Redis hangs, and reports the usage afterwards`, async () => {
    const prefix = world();
    const ledger = ledgerWith({ tokens: 0, nanoUsd: 0, requests: 0 });
    const replicas = [await open(prefix, { ledger }), await open(prefix, { ledger }), await open(prefix, { ledger })];
    for (const replica of replicas) await replica.beat();
    const set = withWindows(quota);
    const settled = async (replica: SharedLimits | undefined, count: number) => {
      const answers = await Promise.all(Array.from({ length: count }, () => replica?.admit(set, reserve(1))));
      const leases = answers.flatMap((answer) => (answer && "lease" in answer ? [answer.lease] : []));
      for (const lease of leases) lease.settle(1, 0);
      // What other replicas settled is in the ledger.
      ledger.totals.requests = (ledger.totals.requests ?? 0) + leases.length;
      ledger.totals.firstAt ??= systemClock.nowSeconds();
      return leases.length;
    };
    expect(await settled(replicas[0], 6)).toBe(6);
    redis.pause();
    try {
      for (const replica of replicas) await replica.peek({ ...none, requests: [account] });
      expect(replicas.every((replica) => replica.state().status === "degraded")).toBe(true);
      expect(await settled(replicas[0], 50)).toBe(8);
    } finally {
      redis.resume();
    }
    await until(() => replicas.every((replica) => replica.state().status === "ok"), "all are back");
    expect(await settled(replicas[1], 50)).toBe(16);
    // What is settled goes on its way at once, but is waited for by nobody.
    const third = replicas[2] as SharedLimits;
    const reported = async () => (await refusal(third.admit(set, reserve(1)))).quota;
    await until(async () => (await reported())?.reserved === 0, "all is settled");
    expect(await reported()).toMatchObject({ used: 30, limit: 30 });
  });
}

test("frees a dead replica's reservations of windowed quotas at a later heartbeat of another", async () => {
  const { replicas, clock } = await openTimed(2);
  const [dying, living] = replicas;
  const tokens = { ...fiveHours, requests: 10, tokens: 1_000 };
  const set = withWindows(tokens);
  for (let i = 0; i < 10; i++) await granted(dying.admit(set, reserve(100)));
  expect((await refusal((living as SharedLimits).admit(set, reserve(1)))).quota).toMatchObject({ reserved: 10 });
  for (let beat = 0; beat < 8; beat++) {
    clock.advance(5_000);
    await living?.beat();
  }
  expect(await admittedOf(20, () => (living as SharedLimits).admit(set, reserve(100)))).toBe(10);
});

test("restores an open window with all its usage from the ledger after Redis lost its memory", async () => {
  const { replicas, clock, ledger, prefix } = await openTimed(1);
  const [limits] = replicas;
  const begun = clock.nowSeconds();
  const set = withWindows(fiveHours);
  (await granted(limits.admit(set, reserve(1)))).lease.settle(1, 0);
  clock.advance(3_600_000);
  await limits.beat();
  ledger.totals = { requests: 29, tokens: 29, nanoUsd: 0, firstAt: begun };
  const keys = (await redis.command("KEYS", `${prefix}quota:*`)) as string[];
  expect(keys).toHaveLength(2);
  await redis.command("DEL", ...keys);
  expect(await admittedOf(5, () => limits.admit(set, reserve(1)))).toBe(1);
  expect((await limits.usedInWindow(fiveHours)).period).toEqual({ start: begun, end: begun + 18_000 });
});

test("reads an open window from its start again after forgotten quotas", async () => {
  const { replicas, clock, ledger } = await openTimed(1);
  const [limits] = replicas;
  const begun = clock.nowSeconds();
  const set = withWindows(fiveHours, today);
  await granted(limits.admit(set, reserve(1)));
  clock.advance(60_000);
  ledger.totals = { requests: 20, tokens: 0, nanoUsd: 0, firstAt: begun + 7 };
  const before = ledger.reads.length;
  limits.forgetQuotas([fiveHours, today]);
  expect(await admittedOf(50, () => limits.admit(set, reserve(1)))).toBe(9);
  expect(ledger.reads.slice(before).map(({ since }) => since)).toContain(begun);
  expect((await limits.usedInWindow(fiveHours)).period?.start).toBe(begun);
});

test("keeps a rolling window's usage for its duration when Redis's clock is set back", async () => {
  const { replicas, clock, setServer } = await openTimed(1);
  const [limits] = replicas;
  const set = withWindows(fiveHours);
  expect(await admittedOf(40, () => limits.admit(set, reserve(1)))).toBe(30);
  setServer(-400);
  expect(await admittedOf(40, () => limits.admit(set, reserve(1)))).toBe(0);
  clock.advance(17_999_000);
  await limits.beat();
  expect(await admittedOf(40, () => limits.admit(set, reserve(1)))).toBe(0);
  clock.advance(1_000);
  expect(await admittedOf(40, () => limits.admit(set, reserve(1)))).toBe(30);
});
