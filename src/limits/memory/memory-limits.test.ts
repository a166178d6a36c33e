// Limits and quotas in memory: the contract of all stores, and beyond it no waiting, bounded memory, a restart that forgets nothing.
import { describe, expect, test } from "bun:test";
import {
  account,
  type Granted,
  key,
  ledgerWith,
  limitsContract,
  none,
  quotaOf,
  reserve,
} from "../../../tests/support/limits-contract.ts";
import { manualClock } from "../../../tests/support/manual-clock.ts";
import { stopsContract } from "../../../tests/support/stops-contract.ts";
import { windowQuota, windowsContract, withWindows } from "../../../tests/support/windows-contract.ts";
import type { GatewayError } from "../../base/errors.ts";
import type { Admission } from "../../domain/limits/limits.ts";
import { CountedParty } from "../counted-party.ts";
import { MemoryLimits } from "./memory-limits.ts";

limitsContract({ open: (options) => new MemoryLimits(options), schedules: 25 });
windowsContract({ open: (options) => new MemoryLimits(options) });
stopsContract({ open: (options) => new MemoryLimits(options) });

function setUp() {
  const clock = manualClock(Date.UTC(2026, 10, 20) / 1000);
  const ledger = ledgerWith();
  return { clock, ledger, limits: new MemoryLimits({ clock, ledger }) };
}

function now(answer: Admission | Promise<Admission>): Admission {
  if (answer instanceof Promise) throw new Error("The decision had to wait.");
  return answer;
}

function granted(answer: Admission | Promise<Admission>): Granted {
  const admission = now(answer);
  if ("refusal" in admission) throw admission.refusal;
  return admission;
}

function refusal(answer: Admission | Promise<Admission>): GatewayError {
  const admission = now(answer);
  if (!("refusal" in admission)) throw new Error("It was admitted.");
  return admission.refusal;
}

describe("a decision in memory", () => {
  test("decides synchronously once the usage of its quotas was read", async () => {
    const { limits } = setUp();
    const set = { requests: [account], tokens: [{ ...account, limit: 1_000 }], quotas: [quotaOf(1_000)] };
    await limits.admit(set, reserve(1));
    expect(limits.admit(set, reserve(1))).not.toBeInstanceOf(Promise);
    expect(limits.peek(set)).not.toBeInstanceOf(Promise);
  });
});

describe("the cached state of a set of limits", () => {
  const others = (limits: MemoryLimits, count = 5_000) => {
    for (let i = 0; i < count; i++) {
      const rules = [{ ...key, id: `other${i}` }];
      granted(limits.admit({ ...none, requests: rules, tokens: rules }, reserve(0))).lease.settle(0, 0);
    }
  };
  const copied = <One extends object>(all: readonly One[]): One[] => all.map((one) => ({ ...one }));

  test("drops cached buckets that were forgotten, for all callers alike", () => {
    const { limits, clock } = setUp();
    const set = { ...none, requests: [{ ...key, limit: 10 }], tokens: [{ ...key, limit: 100 }] };
    granted(limits.admit(set, reserve(10))).lease.settle(10, 0);
    others(limits);
    clock.advance(600_000);
    others(limits);
    granted(limits.admit(set, reserve(10))).lease.settle(10, 0);
    const copy = { ...set, requests: copied(set.requests), tokens: copied(set.tokens) };
    expect(limits.peek(copy)).toMatchObject({ requests: { remaining: 9 }, tokens: { remaining: 90 } });
  });

  test("drops a cached counter that was forgotten, and reads its usage again", async () => {
    const { limits, clock, ledger } = setUp();
    const set = { ...none, quotas: [quotaOf(100)] };
    const admission = await limits.admit(set, reserve(40));
    if ("lease" in admission) admission.lease.settle(40, 0);
    const quotas = (count: number) => {
      for (let i = 0; i < count; i++)
        limits.admit({ ...none, quotas: [{ ...quotaOf(null), id: `q${i}` }] }, reserve(0));
    };
    quotas(3_000);
    clock.advance(3_700_000);
    quotas(9_000);
    ledger.totals.tokens = 90;
    expect(await limits.admit(set, reserve(40))).toHaveProperty("refusal");
    expect(ledger.reads).toHaveLength(2);
  });

  test("does not reuse cached state for a copy with other figures, or for two rules with one id", async () => {
    const { limits } = setUp();
    const quota = { ...quotaOf(100), id: "shared" };
    await limits.admit({ ...none, quotas: [quota] }, reserve(1));
    const lower = { ...none, quotas: [{ ...quota, tokens: 50 }] };
    expect(limits.admit(lower, reserve(90))).toHaveProperty("refusal");
    const [before, after] = [60, 20].map((limit) => ({ ...none, requests: [{ ...key, limit }] }));
    for (const set of [before, after, before, after]) {
      if (set) expect(granted(limits.admit(set, reserve(0))).status.requests?.limit).toBe(set.requests[0]?.limit ?? 0);
    }
  });

  test("counts each of several limits with one id", () => {
    const { limits } = setUp();
    const twice = [{ ...key, limit: 6 }];
    const set = { ...none, requests: [...twice, ...copied(twice)] };
    for (let i = 0; i < 3; i++) granted(limits.admit(set, reserve(0)));
    expect(limits.peek(set).requests?.remaining).toBe(0);
  });

  test("shares the account's part of the cached state between its keys", () => {
    const quota = quotaOf(100);
    const [one, other] = ["a", "b"].map((id) => ({
      ...none,
      requests: [account],
      quotas: [quota, { ...quotaOf(null), id }],
    }));
    if (!one || !other) throw new Error("There are two.");
    const store = {};
    const shared = CountedParty.lastOf(one, store)?.before;
    expect(shared?.quotaId).toBe(quota.id);
    expect(CountedParty.lastOf(other, store)?.before).toBe(shared as CountedParty);
  });

  test("releases each reservation in its own bucket", () => {
    const { limits } = setUp();
    const tokens = [1_000, 2_000, 3_000].map((limit) => ({ ...key, id: `key:${limit}`, limit }));
    const all = granted(limits.admit({ ...none, tokens }, reserve(100)));
    const first = granted(limits.admit({ ...none, tokens: tokens.slice(0, 1) }, reserve(300)));
    all.lease.settle(10, 0);
    first.lease.settle(20, 0);
    const left = tokens.map((rule) => limits.peek({ ...none, tokens: [rule] }).tokens?.remaining);
    expect(left).toEqual([970, 1_990, 2_990]);
  });
});

test("reports the first of two equal limits with the same remainder", () => {
  const { limits } = setUp();
  const set = {
    ...none,
    requests: [1, 3_600].map((windowSeconds, i) => ({ ...key, id: `k${i}`, limit: 10, windowSeconds })),
  };
  expect(granted(limits.admit(set, reserve(0))).status.requests?.resetMs).toBe(100);
  expect(limits.peek(set).requests?.resetMs).toBe(100);
});

describe("one set of limits in two stores", () => {
  test("counts a set of limits separately in two stores, to the end of its requests and across months", async () => {
    const { limits: one, clock } = setUp();
    const { limits: other } = setUp();
    const set = { requests: [account], tokens: [{ ...account, limit: 1_000 }], quotas: [quotaOf(10_000)] };
    for (const limits of [one, other]) await limits.used(quotaOf(10_000));
    const long = granted(one.admit(set, reserve(400)));
    const short = granted(other.admit(set, reserve(100)));
    clock.jump(15 * 86_400);
    granted(await one.admit(set, reserve(50))).lease.settle(50, 0);
    short.lease.settle(10, 0);
    expect(other.peek(set)).toMatchObject({ requests: { remaining: 9 }, tokens: { remaining: 990 } });
    expect(await other.used(quotaOf(10_000))).toEqual({ tokens: 10, nanoUsd: 0 });
    long.lease.extend(600, 0);
    long.lease.settle(500, 0);
    // Usage that began in the month before belongs there.
    expect(await one.used(quotaOf(10_000))).toEqual({ tokens: 50, nanoUsd: 0 });
    clock.jump(-15 * 86_400);
    expect(await one.used(quotaOf(10_000))).toEqual({ tokens: 500, nanoUsd: 0 });
  });
});

describe("memory of limits", () => {
  test("leaves nothing of 100,000 unused keys, and keeps those in use", async () => {
    const { limits, clock } = setUp();
    const used = { ...none, tokens: [{ ...account, limit: 1_000 }], quotas: [quotaOf(1_000)] };
    const long = granted(await limits.admit(used, reserve(900)));
    for (let i = 0; i < 100_000; i++) {
      const own = { ...key, id: `key:${i}` };
      const set = { ...none, requests: [own], tokens: [own], quotas: [{ ...quotaOf(null), id: own.id }] };
      granted(limits.admit(set, reserve(1))).lease.settle(1, 0);
    }
    expect(limits.tracked).toBeGreaterThanOrEqual(300_000);
    clock.advance(3_600_001);
    for (let i = 0; i < 40_000; i++) limits.admit({ ...none, requests: [account] }, reserve(1));
    expect(limits.tracked).toBeLessThan(5_000);
    expect(refusal(limits.admit(used, reserve(101))).code).toBe("insufficient_quota");
    long.lease.extend(1_500, 0);
    expect(limits.peek(used).tokens?.remaining).toBe(400);
  });

  test("forgets each key a minute or two after its last use", () => {
    const { limits, clock } = setUp();
    for (let i = 0; i < 100_000; i++) {
      clock.advance(100);
      const own = { ...key, id: `key:${i}` };
      limits.admit({ ...none, requests: [own] }, reserve(0));
    }
    expect(limits.tracked).toBeLessThan(5_000);
  });

  test("forgets keys earlier if there are more than a quarter of a million", () => {
    const { limits, clock } = setUp();
    for (let i = 0; i < 300_000; i++) {
      clock.advance(0.1);
      const own = { ...key, id: `key:${i}` };
      limits.admit({ ...none, requests: [own] }, reserve(0));
    }
    expect(limits.tracked).toBeLessThan(260_000);
  });

  test("continues a returning key's count, whether it was forgotten or not", () => {
    const { limits, clock } = setUp();
    const set = { ...none, requests: [{ ...key, limit: 60, windowSeconds: 3_600 }] };
    const others = (count: number) => {
      for (let i = 0; i < count; i++) limits.admit({ ...none, requests: [{ ...key, id: `key:${i}` }] }, reserve(0));
    };
    for (let i = 0; i < 20; i++) granted(limits.admit(set, reserve(0)));
    others(5_000);
    clock.advance(600_000);
    others(5_000);
    expect(limits.peek(set).requests?.remaining).toBe(50);
    granted(limits.admit(set, reserve(0)));
    clock.advance(3_600_000);
    others(10_000);
    expect(limits.peek(set).requests?.remaining).toBe(60);
    // Through the set that knew the bucket before, and through one like it.
    for (let i = 0; i < 30; i++) granted(limits.admit(set, reserve(0)));
    for (let i = 0; i < 30; i++) granted(limits.admit({ ...set }, reserve(0)));
    expect(refusal(limits.admit(set, reserve(0))).code).toBe("rate_limit_exceeded");
    expect(refusal(limits.admit({ ...set }, reserve(0))).code).toBe("rate_limit_exceeded");
  });
});

describe("limits after a restart", () => {
  // hardening: F1
  test("continues limits after a restart without a second burst or a lockout", () => {
    const { limits, clock } = setUp();
    const requests = [{ ...account, limit: 60 }];
    const tokens = [{ ...account, limit: 6_000 }];
    limits.replay([
      { requests, tokens, secondsAgo: 1, count: 40, usedTokens: 3_000 },
      { requests, tokens, secondsAgo: 31, count: 50, usedTokens: 5_000 },
      { requests, tokens, secondsAgo: 4_000, count: 60, usedTokens: 9_000 },
    ]);
    // 50, of which 30 came back; 40 more: the whole of it. 1,000 + 3,000 tokens left, less 3,000.
    const set = { ...none, requests, tokens };
    expect(limits.peek(set)).toMatchObject({ requests: { remaining: 0 }, tokens: { remaining: 1_000 } });
    clock.advance(60_000);
    expect(limits.peek(set)).toMatchObject({ requests: { remaining: 60 }, tokens: { remaining: 6_000 } });
  });

  test("owes no requests for rounded ages after a restart", () => {
    const { limits } = setUp();
    const set = { ...none, requests: [{ ...account, limit: 60 }] };
    limits.replay([{ ...set, secondsAgo: 0, count: 70, usedTokens: 0 }]);
    expect(refusal(limits.admit(set, reserve(0))).retryAfterSeconds).toBe(1);
  });

  // hardening: L1
  test("stays within limit + rate x time across a restart", () => {
    for (let seed = 1; seed <= 30; seed++) {
      let state = seed * 7_919;
      const random = () => {
        state = (state * 48_271) % 2_147_483_647;
        return state / 2_147_483_647;
      };
      const clock = manualClock();
      const requests = [
        { ...account, limit: 1 + Math.floor(random() * 50), windowSeconds: 1 + Math.floor(random() * 90) },
      ];
      const ratePerMs = (requests[0]?.limit ?? 0) / ((requests[0]?.windowSeconds ?? 1) * 1_000);
      const set = { ...none, requests };
      const times: { ms: number; second: number }[] = [];
      let limits = new MemoryLimits({ clock, ledger: ledgerWith() });
      const run = (steps: number) => {
        for (let i = 0; i < steps; i++) {
          clock.advance(Math.floor(random() * 1_500));
          if ("lease" in now(limits.admit(set, reserve(0)))) {
            times.push({ ms: clock.monotonicMs(), second: clock.nowSeconds() });
          }
        }
      };
      run(100);
      limits = new MemoryLimits({ clock, ledger: ledgerWith() });
      limits.replay(
        times.map(({ second }) => ({
          requests,
          tokens: [],
          secondsAgo: clock.nowSeconds() - second,
          count: 1,
          usedTokens: 0,
        })),
      );
      run(100);
      for (const [from, start] of times.entries()) {
        for (let to = from; to < times.length; to++) {
          const allowed = (requests[0]?.limit ?? 0) + ratePerMs * ((times[to]?.ms ?? 0) - start.ms);
          if (to - from + 1 > allowed + 1e-9)
            expect({ seed, admitted: to - from + 1 }).toEqual({ seed, admitted: allowed });
        }
      }
    }
  });
});

describe("a windowed quota that is not used for hours", () => {
  const manyAsk = async (limits: MemoryLimits, count = 5_000) => {
    for (let i = 0; i < count; i++) {
      const quota = windowQuota({ unit: "usd", amount: 1, per: "month", window: "calendar" }, { id: `other${i}` });
      const admission = await limits.admit(withWindows(quota), reserve(0));
      if (!("refusal" in admission)) admission.lease.settle(0, 0);
    }
  };

  test("keeps money reserved for a running request", async () => {
    const { limits, clock } = setUp();
    const set = withWindows(windowQuota({ unit: "usd", amount: 1, per: "month", window: "calendar" }));
    const asked = () => limits.admit(set, reserve(0, { nanoUsd: 600_000_000, minNanoUsd: 600_000_000 }));
    const running = await asked();
    if ("refusal" in running) throw running.refusal;
    await manyAsk(limits);
    clock.advance(3 * 3_600_000);
    await manyAsk(limits);
    expect(await asked()).toHaveProperty("refusal");
    running.lease.settle(0, 0);
    expect(await asked()).not.toHaveProperty("refusal");
  });
});

test("does not move a rolling window's start for usage that was settled later", async () => {
  const { limits, ledger, clock } = setUp();
  const quota = windowQuota({ unit: "requests", amount: 5, per: "5h", window: "rolling" });
  const begun = clock.nowSeconds();
  expect(await limits.admit(withWindows(quota), reserve(0))).not.toHaveProperty("refusal");
  clock.advance(60_000);
  Object.assign(ledger.totals, { requests: 1, firstAt: clock.nowSeconds() });
  await limits.reread(quota);
  expect((await limits.usedInWindow(quota)).period).toEqual({ start: begun, end: begun + 18_000 });
});

describe("reserved money", () => {
  const month = (id: string, nanoUsd: number) => ({ ...quotaOf(null), id, nanoUsd });
  const day = (id: string, usd: number, more = {}) =>
    windowQuota({ unit: "usd", amount: usd, per: "day", window: "calendar" }, { id, ...more });

  test("reserves no more in any quota than the tightest one has left", async () => {
    for (const setOf of [
      (quotas: [string, number][]) => ({ ...none, quotas: quotas.map(([id, usd]) => month(id, usd * 1e9)) }),
      (quotas: [string, number][]) => withWindows(...quotas.map(([id, usd]) => day(id, usd))),
    ]) {
      const { limits } = setUp();
      const both = setOf([
        ["small", 1],
        ["large", 10],
      ]);
      const first = await limits.admit(both, reserve(0, { nanoUsd: 9e9, minNanoUsd: 1 }));
      expect(first).not.toHaveProperty("refusal");
      const rest = reserve(0, { nanoUsd: 9e9, minNanoUsd: 9e9 });
      expect(await limits.admit(setOf([["large", 10]]), rest)).not.toHaveProperty("refusal");
      expect(await limits.admit(setOf([["small", 1]]), reserve(0, { nanoUsd: 1, minNanoUsd: 1 }))).toHaveProperty(
        "refusal",
      );
    }
  });

  test("reserves what a request needs in other quotas although a hard-stop quota has less left", async () => {
    const { limits } = setUp();
    const stopping = day("stopping", 1, { stops: { tokens: false, nanoUsd: true } });
    const stop = { tokens: 0, nanoUsd: 5e8, minTokens: 0, minNanoUsd: 1, grows: true };
    const asked = { ...reserve(0, { nanoUsd: 6e9, minNanoUsd: 6e9 }), stop };
    expect(await limits.admit(withWindows(stopping, day("other", 10)), asked)).not.toHaveProperty("refusal");
    const more = reserve(0, { nanoUsd: 5e9, minNanoUsd: 5e9 });
    expect(await limits.admit(withWindows(day("other", 10)), more)).toHaveProperty("refusal");
  });
});

test("limits a whole answer under a hard-stop quota to its reserved money", async () => {
  const { limits } = setUp();
  const quota = windowQuota(
    { unit: "usd", amount: 1, per: "day", window: "calendar" },
    { stops: { tokens: false, nanoUsd: true } },
  );
  const of = (grows: boolean) => ({ tokens: 5, nanoUsd: 1_000, minTokens: 5, minNanoUsd: 10, grows });
  const stopOf = (grows: boolean) => granted(limits.admit(withWindows(quota), reserve(0, { stop: of(grows) }))).stop;
  await limits.usedInWindow(quota);
  expect(stopOf(false)).toMatchObject({ mostNanoUsd: 1_000, mostTokens: Number.POSITIVE_INFINITY });
  expect(stopOf(true)?.mostNanoUsd).toBe(1e9 - 1_000);
});

test("adopts another process's usage of a quota only if that is higher", async () => {
  const { limits } = setUp();
  const quota = windowQuota({ unit: "usd", amount: 1, per: "day", window: "calendar" });
  const spent = async () => (await limits.usedInWindow(quota)).nanoUsd;
  limits.applyMinimum(quota, { requests: 1, tokens: 2, nanoUsd: 300 });
  expect(await spent()).toBe(300);
  limits.applyMinimum(quota, { requests: 0, tokens: 0, nanoUsd: 900 });
  expect(await limits.usedInWindow(quota)).toMatchObject({ requests: 1, tokens: 2, nanoUsd: 900 });
  limits.applyMinimum(quota, { requests: 9, tokens: 9, nanoUsd: 5 });
  expect(await limits.usedInWindow(quota)).toMatchObject({ requests: 9, tokens: 9, nanoUsd: 900 });
});

test("keeps a rolling window for its duration without any use", async () => {
  const { limits, clock, ledger } = setUp();
  const rule = { unit: "usd", amount: 1, per: "day", window: "rolling" } as const;
  const set = withWindows(windowQuota(rule));
  const first = await limits.admit(set, reserve(0));
  if (!("refusal" in first)) first.lease.settle(0, 5e8);
  for (let hours = 0; hours < 6; hours++) {
    clock.advance(3_600_000);
    for (let i = 0; i < 2_000; i++) {
      const other = await limits.admit(withWindows(windowQuota(rule, { id: `other${i}` })), reserve(0));
      if (!("refusal" in other)) other.lease.settle(0, 0);
    }
  }
  const reads = ledger.reads.length;
  const [quota] = set.windows ?? [];
  expect(quota && (await limits.usedInWindow(quota)).nanoUsd).toBe(5e8);
  expect(ledger.reads.length).toBe(reads);
});
