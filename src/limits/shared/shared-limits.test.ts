// Limits that replicas share: the contract of all stores, and the same decisions as in memory whatever happens in whatever order.
import { afterAll, describe, expect, test } from "bun:test";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  account,
  granted,
  key,
  ledgerWith,
  limitsContract,
  none,
  quotaOf,
  refusal,
  reserve,
} from "../../../tests/support/limits-contract.ts";
import { type ManualClock, manualClock } from "../../../tests/support/manual-clock.ts";
import { startRedis } from "../../../tests/support/redis.ts";
import { stopsContract } from "../../../tests/support/stops-contract.ts";
import { windowQuota, windowsContract } from "../../../tests/support/windows-contract.ts";
import type { Lease, LimitSet, Reservation } from "../../domain/limits/limits.ts";
import type { Ledger } from "../../domain/usage/usage.ts";
import { MemoryLimits } from "../memory/memory-limits.ts";
import { limitScripts } from "./limit-scripts.ts";
import { SharedLimits } from "./shared-limits.ts";

const redis = await startRedis();
const opened: SharedLimits[] = [];
afterAll(async () => {
  await Promise.all(opened.map((limits) => limits.close()));
  await redis[Symbol.asyncDispose]();
});

const silent = { info() {}, warn() {}, error() {} };
let worlds = 0;

/** Opens limits with keys of their own, by the test's clock. */
async function open(
  { clock, ledger }: { clock: ManualClock; ledger: Pick<Ledger, "readTotals"> },
  prefix = `test${++worlds}:`,
): Promise<SharedLimits> {
  const time = { micros: () => clock.monotonicMs() * 1000, seconds: () => clock.nowSeconds() };
  const limits = await SharedLimits.open({
    url: redis.url,
    clock,
    ledger,
    directory: mkdtempSync(join(tmpdir(), "headrace-limits-")),
    log: silent,
    prefix,
    time,
    deadlineMs: 5_000,
  });
  expect(limits.state().status).toBe("ok");
  opened.push(limits);
  return limits;
}

limitsContract({ open, schedules: 4 });
windowsContract({ open });
stopsContract({ open });

describe("agreement of Redis and memory", () => {
  // hardening: L2
  test("decides in Redis as in memory over random schedules of limits, reservations, debts and quotas", async () => {
    let admitted = 0;
    for (let seed = 1; seed <= 12; seed++) {
      let state = seed * 7_919;
      const random = (below: number) => {
        state = (state * 48_271) % 2_147_483_647;
        return Math.floor((state / 2_147_483_647) * below);
      };
      const clock = manualClock(Date.UTC(2026, 10, 20) / 1000);
      const memory = new MemoryLimits({ clock, ledger: ledgerWith() });
      const shared = await open({ clock, ledger: ledgerWith() });
      const sets = [1, 2, 3].map((child): LimitSet => {
        const own = { ...key, id: `key:${child}`, limit: 5 + child, windowSeconds: 9 };
        const quota = { ...quotaOf(child === 3 ? null : 40_000, child === 1 ? null : 90_000), id: own.id };
        return {
          requests: [{ ...account, limit: 40 }, own],
          tokens: [
            { ...account, limit: 2_000 },
            { ...own, limit: 700, windowSeconds: 20 },
          ],
          quotas: [quotaOf(150_000), quota],
          windows: [
            windowQuota({
              unit: "tokens",
              amount: 30_000,
              per: 60 + 30 * child,
              window: "rolling",
              models: ["m1", "x*"],
            }),
            windowQuota({ unit: "requests", amount: 60, per: "hour", window: "calendar" }),
            { ...windowQuota({ unit: "usd", amount: 0.000_05, per: 90, window: "rolling" }), id: `${own.id} 90` },
          ],
        };
      });
      const open_: { memory: Lease; shared: Lease; tokens: number; nanoUsd: number }[] = [];
      for (let step = 0; step < 120; step++) {
        if (random(2) === 0) clock.advance(random(2_500));
        const at = random(sets.length);
        if (random(40) === 0) {
          // An operator changes a tier.
          const limit = 500 + random(3_000);
          for (const set of sets) Object.assign(set, { tokens: [{ ...account, limit }, ...set.tokens.slice(1)] });
          for (let i = 0; i < sets.length; i++) sets[i] = { ...none, ...sets[i] };
        }
        const set = sets[at];
        if (!set) continue;
        const choice = random(10);
        if (choice < 6) {
          const minTokens = 1 + random(250);
          const ask: Reservation = {
            tokens: minTokens + (random(2) === 0 ? 0 : random(900)),
            nanoUsd: random(3_000),
            minTokens,
            minNanoUsd: random(2) * random(1_000),
            model: ["m1", "m2", "xy"][random(3)] as string,
          };
          const [expected, got] = await Promise.all([memory.admit(set, ask), shared.admit(set, ask)]);
          const reported = (admission: typeof expected) => ({
            seed,
            step,
            status: rounded(admission.status),
            ...("refusal" in admission
              ? {
                  message: admission.refusal.message,
                  retry: admission.refusal.shouldRetry,
                  quota: admission.refusal.quota,
                }
              : { reserved: admission.reservedTokens }),
          });
          expect(reported(got)).toEqual(reported(expected));
          if ("lease" in expected && "lease" in got) {
            admitted++;
            open_.push({ memory: expected.lease, shared: got.lease, tokens: expected.reservedTokens, nanoUsd: 0 });
          }
          continue;
        }
        const [one] = choice < 8 ? open_.splice(random(open_.length), 1) : [open_[random(open_.length)]];
        if (!one) continue;
        const tokens = random(3) === 0 ? one.tokens + random(400) : random(one.tokens + 1);
        const nanoUsd = random(4_000);
        const what = choice < 8 ? "settle" : "extend";
        one.memory[what](tokens, nanoUsd);
        one.shared[what](tokens, nanoUsd);
        expect({ seed, step, status: rounded(await shared.peek(set)) }).toEqual({
          seed,
          step,
          status: rounded(memory.peek(set)),
        });
      }
      for (const { quotas, windows } of sets) {
        for (const quota of quotas) expect(await shared.used(quota)).toEqual(await memory.used(quota));
        for (const quota of windows ?? []) {
          expect(await shared.usedInWindow(quota)).toEqual(await memory.usedInWindow(quota));
        }
      }
    }
    expect(admitted).toBeGreaterThan(150);
  });
});

describe("reservations in Redis", () => {
  test("bounds the memory of hundreds of reservations at a small loss of refund", async () => {
    const clock = manualClock();
    const prefix = "holds:";
    const memory = new MemoryLimits({ clock, ledger: ledgerWith() });
    const shared = await open({ clock, ledger: ledgerWith() }, prefix);
    const limit = 1_000_000;
    const set: LimitSet = { ...none, tokens: [{ ...account, limit }] };
    const leases: [Lease, Lease][] = [];
    for (let i = 0; i < 500; i++) {
      const ask = reserve(1_000 + ((i * 37) % 900));
      leases.push([(await granted(memory.admit(set, ask))).lease, (await granted(shared.admit(set, ask))).lease]);
    }
    expect((await shared.peek(set)).tokens).toEqual(memory.peek(set).tokens);
    expect(Number(await redis.command("STRLEN", `${prefix}tokens:${account.id}`))).toBeLessThan(4_000);
    for (let i = 0; i < 500; i++) {
      const [inMemory, inRedis] = leases.splice((i * 131) % leases.length, 1)[0] ?? [];
      if (i % 50 === 0) clock.advance(900);
      inMemory?.settle(100, 0);
      inRedis?.settle(100, 0);
      const [expected = 0, got = 0] = [memory.peek(set).tokens?.remaining, (await shared.peek(set)).tokens?.remaining];
      expect(got).toBeWithin(expected - limit / 50, expected + 1);
    }
  });

  test("returns nothing of an old bucket's reservations to the bucket in its place", async () => {
    const prefix = "reborn:";
    const clock = manualClock();
    const limits = await open({ clock, ledger: ledgerWith() }, prefix);
    const set: LimitSet = { ...none, tokens: [{ ...account, limit: 1_000 }] };
    const { lease } = await granted(limits.admit(set, reserve(500)));
    await redis.command("DEL", `${prefix}tokens:${account.id}`);
    clock.advance(1);
    await granted(limits.admit(set, reserve(400)));
    lease.settle(0, 0);
    expect((await limits.peek(set)).tokens?.remaining).toBe(600);
  });
});

describe("the clock of Redis", () => {
  // hardening: L5
  test("neither blocks keys nor allows a second burst when Redis's clock is set back", async () => {
    const clock = manualClock();
    let micros = 1_790_000_000_000_000;
    const time = { micros: () => micros, seconds: () => clock.nowSeconds() };
    const options = {
      url: redis.url,
      clock,
      ledger: ledgerWith(),
      directory: mkdtempSync(join(tmpdir(), "headrace-limits-")),
      log: silent,
      prefix: "back:",
      time,
      deadlineMs: 5_000,
    };
    const limits = await SharedLimits.open(options);
    opened.push(limits);
    const set: LimitSet = { ...none, requests: [{ ...account, limit: 6 }] };
    const admitted = async () => {
      const answers = await Promise.all(Array.from({ length: 10 }, () => limits.admit(set, reserve(0))));
      return answers.filter((answer) => "lease" in answer).length;
    };
    expect(await admitted()).toBe(6);
    for (const seconds of [3_600, 86_400]) {
      micros -= seconds * 1_000_000;
      expect(await admitted()).toBe(0);
      micros += 10_000_000;
      expect(await admitted()).toBe(1);
      expect((await limits.peek(set)).requests?.resetMs).toBeLessThanOrEqual(60_000);
    }
  });
});

test("runs an operation once that arrives twice", async () => {
  const key = "twice:quota:2026-11:a";
  const run = (first: number, ...operations: string[]) =>
    redis.command("EVAL", limitScripts.apply, "0", "twice:", "me", "5000000", String(first), ...operations);
  await redis.command("HSET", "twice:leases:me", "s", "1");
  await run(1, "1", "load", "6", key, "100", "0", "1", "0", "0");
  await run(2, "2", "use", "5", key, "5000000", "10", "0", "1", "use", "5", key, "5000000", "5", "0", "1");
  await run(2, "2", "use", "5", key, "5000000", "10", "0", "1", "use", "5", key, "5000000", "5", "0", "1");
  await run(3, "2", "use", "5", key, "5000000", "5", "0", "1", "use", "5", key, "5000000", "1", "0", "1");
  const used = await redis.command("EVAL", `return cmsgpack.unpack(redis.call('GET', '${key}'))[1]`, "0");
  expect(used).toBe(116);
});

test("drops nothing of a live replica that another one thinks dead", async () => {
  const clock = manualClock();
  const limits = await open({ clock, ledger: ledgerWith() }, "alive:");
  const set: LimitSet = { ...none, quotas: [quotaOf(1_000)] };
  await granted(limits.admit(set, reserve(900)));
  const [replica = ""] = (await redis.command("ZRANGE", "alive:replicas", "0", "-1")) as string[];
  const micros = String(clock.monotonicMs() * 1000 + 1_000_000);
  await redis.command("EVAL", limitScripts.sweep, "0", "alive:", "me", micros, replica, "0", "30000");
  expect((await refusal(limits.admit(set, reserve(101)))).code).toBe("insufficient_quota");
});

/** Microseconds are all that the server knows of time. */
function rounded(status: ReturnType<MemoryLimits["peek"]>) {
  return JSON.parse(JSON.stringify(status), (name, value) => (name === "resetMs" ? Math.round(value) : value));
}
