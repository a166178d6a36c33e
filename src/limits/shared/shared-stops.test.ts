// Quotas that end answers and that replicas share: exact over all of them, also while the server hangs and when a replica dies.
import { afterAll, expect, test } from "bun:test";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { until } from "../../../tests/support/headrace.ts";
import {
  account,
  type Granted,
  granted,
  ledgerWith,
  none,
  refusal,
  reserve,
} from "../../../tests/support/limits-contract.ts";
import { manualClock } from "../../../tests/support/manual-clock.ts";
import { startRedis } from "../../../tests/support/redis.ts";
import { hardTokens, streaming, takeAll } from "../../../tests/support/stops-contract.ts";
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

/** Three replicas with shared limits. */
async function replicas(options: Partial<SharedLimitsOptions> = {}): Promise<[SharedLimits, ...SharedLimits[]]> {
  const prefix = `stops${++worlds}:`;
  const ledger = ledgerWith();
  const three: SharedLimits[] = [];
  for (let i = 0; i < 3; i++) {
    const limits = await SharedLimits.open({
      ...{ url: redis.url, clock: systemClock, ledger, prefix, retryMs: 50 },
      log: { info() {}, warn() {}, error() {} },
      directory: mkdtempSync(join(tmpdir(), "headrace-limits-")),
      ...options,
    });
    three.push(limits);
  }
  opened.push(...three);
  for (const replica of three) await replica.beat();
  return three as [SharedLimits, ...SharedLimits[]];
}

const set = withWindows(hardTokens(9_000));
const sum = (some: readonly number[]) => some.reduce((all, one) => all + one, 0);

test("shares a quota to the last token between 30 streams at three replicas", async () => {
  const three = await replicas();
  const streams = await Promise.all(
    Array.from({ length: 30 }, (_, i) => granted((three[i % 3] as SharedLimits).admit(set, streaming()))),
  );
  expect(sum(await Promise.all(streams.map(takeAll)))).toBe(9_000);
  for (const { lease } of streams) lease.settle(100, 0);
  const used = () => three[0].usedInWindow(hardTokens(9_000));
  await until(async () => (await used()).tokens === 3_000, "all of it is booked");
  expect(await takeAll(await granted(three[0].admit(set, streaming())))).toBe(6_000);
});

test("gives streams this replica's share while Redis hangs, and reports their usage afterwards", async () => {
  const three = await replicas();
  const running: Granted[] = [];
  for (const replica of three) running.push(await granted(replica.admit(set, streaming())));
  redis.pause();
  let taken: number[];
  try {
    for (const replica of three) await replica.peek({ ...none, requests: [account] });
    expect(three.every((replica) => replica.state().status === "degraded")).toBe(true);
    running.push(await granted(three[0].admit(set, streaming())));
    taken = await Promise.all(running.map(takeAll));
    expect(Math.min(...taken)).toBeGreaterThan(20);
    // Its part is by what the ledger knows; the 20 of each that ran before were set aside by the server.
    expect(sum(taken)).toBeLessThanOrEqual(9_000 + 3 * 20);
  } finally {
    redis.resume();
  }
  await until(() => three.every((replica) => replica.state().status === "ok"), "all are back");
  const refused = async () =>
    (await refusal((three[2] as SharedLimits).admit(set, streaming({ minTokens: 9_000 })))).quota;
  await until(async () => (await refused())?.reserved === sum(taken), "what is set aside is known");
  for (const { lease } of running) lease.settle(10, 0);
  await until(async () => (await refused())?.reserved === 0, "all of it was given back");
  expect(await refused()).toMatchObject({ used: 40 });
});

/** Cuts the server off until `during` has ended, then waits until all are back. */
async function inOutage(three: readonly SharedLimits[], during: () => Promise<void>): Promise<void> {
  redis.pause();
  try {
    for (const replica of three) await replica.peek({ ...none, requests: [account] });
    expect(three.every((replica) => replica.state().status === "degraded")).toBe(true);
    await during();
  } finally {
    redis.resume();
  }
  await until(() => three.every((replica) => replica.state().status === "ok"), "all are back");
}

for (const [what, rule] of [
  ["rolls", { unit: "tokens", amount: 9_000, per: "5h", window: "rolling" }],
  ["is of some models", { unit: "tokens", amount: 9_000, per: "day", window: "calendar", models: ["big-*"] }],
  ["is of a tag", { unit: "tokens", amount: 9_000, per: "day", window: "calendar", tag: "team" }],
] as const) {
  const quota = windowQuota(rule, { stops: { tokens: true, nanoUsd: false } });
  const stream = () => ({ ...streaming(), model: "big-one", tags: ["team"] });
  const unlike = { ...reserve(100), model: "small", tags: ["other"] };

  test(`continues a stream under a quota that ${what} through an outage and beyond`, async () => {
    const three = await replicas();
    const [replica] = three;
    const set = withWindows(quota);
    const before = await granted(replica.admit(set, stream()));
    let during: Granted | undefined;
    await inOutage(three, async () => {
      await before.stop?.grow(50, 0);
      expect(before.stop?.tokens).toBe(70);
      during = await granted(replica.admit(set, stream()));
      await during.stop?.grow(50, 0);
      expect(during.stop?.tokens).toBe(70);
    });
    for (const { stop } of [before, during as Granted]) {
      await stop?.grow(50, 0);
      expect(stop?.tokens).toBe(120);
    }
    expect(three.map((one) => one.state().status)).toEqual(["ok", "ok", "ok"]);
    for (const { lease } of [before, during as Granted]) lease.settle(100, 0);
    await until(async () => (await replica.usedInWindow(quota)).tokens === 200, "all of it is booked");
    expect(await takeAll(await granted((three[1] as SharedLimits).admit(set, stream())))).toBe(8_800);
  });

  test(`counts only its own unit in an outage for a quota that ${what}, after an older stream grew too`, async () => {
    const three = await replicas();
    const [replica] = three;
    const set = withWindows(quota);
    const before = await granted(replica.admit(set, stream()));
    await inOutage(three, async () => {
      await before.stop?.grow(50, 0);
      const known = (await replica.usedInWindow(quota)).tokens;
      (await granted(replica.admit(set, unlike))).lease.settle(100, 0);
      expect((await replica.usedInWindow(quota)).tokens - known).toBe(what === "rolls" ? 100 : 0);
    });
    before.lease.settle(0, 0);
  });
}

test("tells a fixed answer no more than this replica's share of the remainder in an outage", async () => {
  const three = await replicas();
  await inOutage(three, async () => {
    const whole = await granted(three[0].admit(set, streaming({ grows: false, tokens: 9_000 })));
    expect(whole.stop?.mostTokens).toBe(3_000);
    const stream = await granted((three[1] as SharedLimits).admit(set, streaming()));
    expect(stream.stop?.mostTokens).toBe(3_000);
    whole.lease.settle(0, 0);
    stream.lease.settle(0, 0);
  });
});

test("grants nothing to a stream that has ended", async () => {
  const three = await replicas();
  const ended = await granted(three[0].admit(set, streaming()));
  const { stop, lease } = ended;
  lease.settle(10, 0);
  await stop?.grow(512, 0);
  expect(stop?.tokens).toBe(20);
  expect((await refusal(three[0].admit(set, streaming({ minTokens: 9_000 })))).quota).toMatchObject({ reserved: 0 });
});

test("frees a dead replica's reservation for a stream at a later heartbeat of another", async () => {
  const clock = manualClock();
  const time = { micros: () => clock.monotonicMs() * 1000, seconds: () => clock.nowSeconds() };
  const [dying, living] = await replicas({ clock, time, deadlineMs: 5_000 });
  await takeAll(await granted(dying.admit(set, streaming())));
  expect((await refusal((living as SharedLimits).admit(set, streaming()))).quota).toMatchObject({ reserved: 9_000 });
  for (let beat = 0; beat < 8; beat++) {
    clock.advance(5_000);
    await living?.beat();
  }
  expect(await takeAll(await granted((living as SharedLimits).admit(set, streaming())))).toBe(9_000);
});
