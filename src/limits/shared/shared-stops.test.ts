// Quotas that end answers and that replicas share: exact over all of them, also while the server hangs and when a replica dies.
import { afterAll, expect, test } from "bun:test";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { until } from "../../../tests/support/headrace.ts";
import { account, type Granted, granted, ledgerWith, none, refusal } from "../../../tests/support/limits-contract.ts";
import { manualClock } from "../../../tests/support/manual-clock.ts";
import { startRedis } from "../../../tests/support/redis.ts";
import { hardTokens, streaming, takeAll } from "../../../tests/support/stops-contract.ts";
import { withWindows } from "../../../tests/support/windows-contract.ts";
import { systemClock } from "../../base/clock.ts";
import { SharedLimits, type SharedLimitsOptions } from "./shared-limits.ts";

const redis = await startRedis();
const opened: SharedLimits[] = [];
afterAll(async () => {
  await Promise.all(opened.map((limits) => limits.close()));
  await redis[Symbol.asyncDispose]();
});

let worlds = 0;

/** Three replicas that share all. */
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

test("30 streams at once at three replicas share what a quota has to the last token", async () => {
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

test("while the server hangs streams that run and new ones get this replica's part, and afterwards all of it is known", async () => {
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

test("what a replica that dies has set aside for a stream is free with a later beat of another", async () => {
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
