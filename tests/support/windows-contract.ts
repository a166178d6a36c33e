// What every store of limits guarantees of quotas that have a window: exact in each, all decided together, and told which one refused.
import { describe, expect, test } from "bun:test";
import type { LimitSet, Quota } from "../../src/domain/limits/limits.ts";
import { type QuotaRule, windowOf } from "../../src/domain/limits/quota-rules.ts";
import type { SpanTotals } from "../../src/domain/usage/usage.ts";
import {
  account,
  admittedOf,
  granted,
  type LimitsContractOptions,
  ledgerWith,
  none,
  refusal,
  reserve,
} from "./limits-contract.ts";
import { manualClock } from "./manual-clock.ts";

/** Friday, half past ten. */
const begin = Date.UTC(2026, 10, 20, 10, 30) / 1000;

/** A quota of the account `a`, as its rule says. */
export function windowQuota({ unit, amount, per, window, models, tag }: QuotaRule, more: Partial<Quota> = {}): Quota {
  const name = `account:a:live ${per} ${window} ${tag ?? ""} ${models ?? ""}`;
  return {
    ...{ id: name, owner: "account", ownerId: "a", environment: "live" },
    requests: unit === "requests" ? amount : null,
    tokens: unit === "tokens" ? amount : null,
    nanoUsd: unit === "usd" ? amount * 1e9 : null,
    window: windowOf({ per, window }),
    ...((models || tag) && { filter: { ...(models && { models }), ...(tag && { tag }) } }),
    ...more,
  };
}

export function withWindows(...windows: Quota[]): LimitSet {
  return { ...none, windows };
}

export function windowsContract({ open }: Pick<LimitsContractOptions, "open">): void {
  const setUp = async (totals?: Partial<SpanTotals>) => {
    const clock = manualClock(begin);
    const ledger = ledgerWith({ tokens: 0, nanoUsd: 0, ...totals });
    return { clock, ledger, limits: await open({ clock, ledger }) };
  };

  describe("quotas of a window", () => {
    const spans = [
      { per: "hour", window: "calendar", seconds: 1_800 },
      { per: "day", window: "calendar", seconds: 48_600 },
      { per: "week", window: "calendar", seconds: 2 * 86_400 + 48_600 },
      { per: "month", window: "calendar", seconds: 10 * 86_400 + 48_600 },
      { per: "hour", window: "rolling", seconds: 3_600 },
      { per: "5h", window: "rolling", seconds: 18_000 },
      { per: "week", window: "rolling", seconds: 604_800 },
      { per: 90, window: "rolling", seconds: 90 },
    ] as const;

    for (const { per, window, seconds } of spans) {
      test(`admits exactly a ${window} quota's amount per ${per} for 300 concurrent requests, and again in the next window`, async () => {
        const { limits, clock } = await setUp();
        const set = withWindows(windowQuota({ unit: "requests", amount: 50, per, window }));
        expect(await admittedOf(300, () => limits.admit(set, reserve(1)))).toBe(50);
        clock.advance((seconds - 1) * 1_000);
        expect(await admittedOf(3, () => limits.admit(set, reserve(1)))).toBe(0);
        clock.advance(1_000);
        expect(await admittedOf(300, () => limits.admit(set, reserve(1)))).toBe(50);
      });
    }

    test("admits money exactly up to a quota's last nano-USD", async () => {
      const { limits } = await setUp();
      const set = withWindows(windowQuota({ unit: "usd", amount: 1, per: "day", window: "calendar" }));
      const costing = (nanoUsd: number) => limits.admit(set, reserve(0, { nanoUsd, minNanoUsd: nanoUsd }));
      expect((await refusal(costing(1_000_000_001))).code).toBe("insufficient_quota");
      const first = await granted(costing(999_999_999));
      expect((await refusal(costing(2))).code).toBe("insufficient_quota");
      const second = await granted(costing(1));
      first.lease.settle(0, 999_999_999);
      second.lease.settle(0, 1);
      expect((await refusal(costing(1))).code).toBe("insufficient_quota");
      await granted(costing(0));
    });

    test("reserves tokens and money in a window, replaces them by usage, and refuses beyond the amount", async () => {
      const { limits } = await setUp();
      const tokens = windowQuota({ unit: "tokens", amount: 1_000, per: "day", window: "calendar" });
      const set = withWindows({ ...tokens, nanoUsd: 5_000 });
      const running = await Promise.all(Array.from({ length: 300 }, () => limits.admit(set, reserve(50))));
      const leases = running.flatMap((admission) => ("lease" in admission ? [admission.lease] : []));
      expect(leases).toHaveLength(20);
      for (const lease of leases) lease.settle(30, 100);
      expect(await limits.usedInWindow(tokens)).toMatchObject({ requests: 20, tokens: 600, nanoUsd: 2_000 });
      const money = { nanoUsd: 1_000, minNanoUsd: 1_000 };
      expect(await admittedOf(300, () => limits.admit(set, reserve(10, money)))).toBe(3);
    });

    test("gives a flexible request the rest of the tightest windowed quota", async () => {
      const { limits } = await setUp();
      const hour = windowQuota({ unit: "tokens", amount: 60, per: "hour", window: "calendar" });
      const day = windowQuota({ unit: "tokens", amount: 100, per: "day", window: "calendar" });
      const { reservedTokens } = await granted(limits.admit(withWindows(day, hour), reserve(500, { minTokens: 5 })));
      expect(reservedTokens).toBe(60);
    });

    test("counts a refused request at no quota, and names the spent one that resets last", async () => {
      const { limits, clock } = await setUp();
      const hour = windowQuota({ unit: "requests", amount: 2, per: "hour", window: "calendar" });
      const five = windowQuota({ unit: "requests", amount: 3, per: "5h", window: "rolling" });
      const set = { ...withWindows(hour, five), requests: [account] };
      expect(await admittedOf(10, () => limits.admit(set, reserve(1)))).toBe(2);
      expect((await refusal(limits.admit(set, reserve(1)))).quota).toMatchObject({ per: "hour" });
      expect((await limits.peek(set)).requests?.remaining).toBe(8);
      expect((await limits.usedInWindow(five)).period).toEqual({ start: begin, end: begin + 18_000 });
      clock.advance(1_800_000);
      expect(await admittedOf(10, () => limits.admit(set, reserve(1)))).toBe(1);
      expect((await refusal(limits.admit(set, reserve(1)))).quota).toMatchObject({ per: "5h" });
      clock.advance(3_600_000);
      await refusal(limits.admit(set, reserve(1)));
      clock.advance(18_000_000 - 5_400_000);
      expect(await admittedOf(10, () => limits.admit(set, reserve(1)))).toBe(2);
    });

    test("names owner, unit, window, models, usage and reset in a windowed quota's refusal, in words and data", async () => {
      const { limits } = await setUp();
      const models = ["claude-*", "gpt-6.1-sol"];
      const rule = { unit: "tokens", amount: 100, per: "5h", window: "rolling", models } as const;
      const set = withWindows(windowQuota(rule, { owner: "key", called: "member" }));
      const ask = (tokens: number) => limits.admit(set, reserve(tokens, { model: "claude-opus-5-5" }));
      (await granted(ask(60))).lease.settle(70, 0);
      await granted(ask(10));
      const error = await refusal(ask(30));
      expect(error).toMatchObject({ code: "insufficient_quota", shouldRetry: false, refusal: "member_quota" });
      expect(error.message).toBe(
        "This request needs at least 30 tokens, more than the quota of the member for claude-*, gpt-6.1-sol per 5 hours has left: 70 tokens of 100 tokens are used since 2026-11-20T10:30:00Z, and 10 tokens are set aside for running requests. The quota resets at 2026-11-20T15:30:00Z. Ask an owner or admin of the account for more.",
      );
      expect(error.quota).toEqual({
        ...{ reason: "member_quota", ask: "an owner or admin of the account" },
        ...{ owner: "member", unit: "tokens", limit: 100, used: 70, reserved: 10, needed: 30 },
        ...{ per: "5h", window: "rolling", models, tag: null, starts_at: begin, resets_at: begin + 18_000 },
      });
    });

    test("counts only requests with a quota's tag, alone or among others, and names the tag in a refusal", async () => {
      const { limits, ledger } = await setUp();
      const set = withWindows(
        windowQuota({ unit: "requests", amount: 2, per: "day", window: "calendar", tag: "team-a" }),
        windowQuota({ unit: "requests", amount: 3, per: "day", window: "calendar", tag: "team-b", models: ["gpt-*"] }),
        windowQuota({ unit: "requests", amount: 8, per: "day", window: "calendar" }),
      );
      const ask =
        (tags: string[] | undefined, model = "gpt-6") =>
        () =>
          limits.admit(set, reserve(1, { model, tags }));
      expect(await admittedOf(3, ask(["team-b", "team-a"]))).toBe(2);
      expect(await admittedOf(3, ask(["team"], "tiny"))).toBe(3);
      const error = await refusal(ask(["team-a"])());
      expect(error.quota).toMatchObject({ limit: 2, used: 0, reserved: 2, tag: "team-a", models: null });
      expect(error.message).toStartWith(
        "This request is more than the quota of the account with the tag team-a per day",
      );
      expect(await admittedOf(3, ask(["team-b"]))).toBe(1);
      expect(await admittedOf(9, ask(undefined))).toBe(2);
      const of = (more: object) => expect.objectContaining({ type: "account", ...more });
      expect(ledger.reads).toEqual(
        expect.arrayContaining([of({ tag: "team-a" }), of({ tag: "team-b", models: ["gpt-*"] })]),
      );
    });

    test("admits 300 concurrent requests with three tags exactly up to each tag's quota", async () => {
      const { limits } = await setUp();
      const quotas = ["a", "b", "c"].map((tag, i) =>
        windowQuota({ unit: "requests", amount: 20 + i, per: "day", window: "calendar", tag }),
      );
      const set = withWindows(...quotas);
      const admitted: Record<string, number> = { a: 0, b: 0, c: 0 };
      await Promise.all(
        Array.from({ length: 300 }, async (_, i) => {
          const tag = "abc".charAt(i % 3);
          const answer = await limits.admit(set, reserve(1, { tags: [tag] }));
          if ("lease" in answer) admitted[tag] = (admitted[tag] ?? 0) + 1;
        }),
      );
      expect(admitted).toEqual({ a: 20, b: 21, c: 22 });
    });

    test("counts only requests for a quota's models", async () => {
      const { limits } = await setUp();
      const set = withWindows(
        windowQuota({ unit: "requests", amount: 2, per: "day", window: "calendar", models: ["gpt-*", "tiny"] }),
        windowQuota({ unit: "requests", amount: 5, per: "day", window: "calendar" }),
      );
      const ask = (model: string) => () => limits.admit(set, reserve(1, { model }));
      expect(await admittedOf(3, ask("gpt-6"))).toBe(2);
      expect(await admittedOf(3, ask("tiny"))).toBe(0);
      expect(await admittedOf(9, ask("tiny-2"))).toBe(3);
    });

    test("counts usage from before the process began, and continues the open window from its first use", async () => {
      const firstAt = begin - 600;
      const { limits, clock, ledger } = await setUp({ requests: 7, tokens: 70, nanoUsd: 700, firstAt });
      const rolling = windowQuota({ unit: "requests", amount: 10, per: "hour", window: "rolling", models: ["m*"] });
      const calendar = windowQuota({ unit: "tokens", amount: 100, per: "hour", window: "calendar" });
      const set = withWindows(rolling, calendar);
      await granted(limits.admit(set, reserve(1, { model: "m1" })));
      expect(await admittedOf(20, () => limits.admit(set, reserve(1, { model: "m1" })))).toBe(2);
      const owner = { type: "account", id: "a", environment: "live" } as const;
      expect(ledger.reads).toEqual([
        { ...owner, since: begin - 3_599, until: Date.UTC(2026, 10, 21) / 1000, models: ["m*"] },
        { ...owner, since: begin - 1_800, until: begin + 1_800 },
      ]);
      expect(await limits.usedInWindow(rolling)).toMatchObject({ period: { start: firstAt, end: firstAt + 3_600 } });
      clock.advance(3_000_000);
      await granted(limits.admit(set, reserve(1, { model: "m1" })));
      expect(await admittedOf(20, () => limits.admit(set, reserve(1, { model: "m1" })))).toBe(9);
      expect(ledger.reads).toHaveLength(3);
    });

    test("counts a request in the window in which it began, and leaves the next one whole", async () => {
      const { limits, clock } = await setUp();
      for (const window of ["calendar", "rolling"] as const) {
        const set = withWindows(windowQuota({ unit: "tokens", amount: 100, per: "hour", window }));
        const { lease } = await granted(limits.admit(set, reserve(90)));
        clock.advance(3_600_000);
        const next = await granted(limits.admit(set, reserve(100)));
        lease.extend(95, 0);
        lease.settle(99, 0);
        await refusal(limits.admit(set, reserve(1)));
        next.lease.settle(40, 0);
        expect(await limits.usedInWindow(set.windows?.[0] as Quota)).toMatchObject({ requests: 1, tokens: 40 });
        clock.advance(3_600_000);
      }
    });

    test("gives an unused rolling window no end, and does not start one by a read", async () => {
      const { limits, clock } = await setUp();
      const quota = windowQuota({ unit: "requests", amount: 1, per: "5h", window: "rolling" });
      expect(await limits.usedInWindow(quota)).toEqual({ requests: 0, tokens: 0, nanoUsd: 0, period: undefined });
      clock.advance(3_600_000);
      await granted(limits.admit(withWindows(quota), reserve(1)));
      expect((await limits.usedInWindow(quota)).period).toEqual({ start: begin + 3_600, end: begin + 21_600 });
      clock.advance(18_000_000);
      expect((await limits.usedInWindow(quota)).period).toBeUndefined();
    });

    test("refuses more than an unused quota's amount without a wait time", async () => {
      const { limits } = await setUp();
      const set = withWindows(windowQuota({ unit: "usd", amount: 1, per: "5h", window: "rolling" }));
      const error = await refusal(limits.admit(set, reserve(1, { minNanoUsd: 2e9 })));
      expect(error.quota).toMatchObject({ unit: "usd", limit: 1, used: 0, needed: 2, resets_at: null });
      expect(error.message).toContain("0.00 USD of 1.00 USD are used. Waiting does not help. Ask ");
    });

    test("finds usage again after the clock jumped and came back, and keeps a rolling window's length", async () => {
      const { limits, clock } = await setUp();
      const set = withWindows(
        windowQuota({ unit: "requests", amount: 5, per: "day", window: "calendar" }),
        windowQuota({ unit: "requests", amount: 6, per: "5h", window: "rolling" }),
      );
      const ask = () => limits.admit(set, reserve(1));
      expect(await admittedOf(9, ask)).toBe(5);
      clock.jump(86_400);
      expect(await admittedOf(9, ask)).toBe(1);
      clock.jump(-86_400);
      expect(await admittedOf(9, ask)).toBe(0);
      clock.jump(-86_400);
      expect(await admittedOf(9, ask)).toBe(0);
      clock.jump(86_400);
      clock.advance(17_999_000);
      expect(await admittedOf(9, ask)).toBe(0);
      clock.advance(1_000);
      // The day's own is spent.
      expect((await refusal(ask())).quota).toMatchObject({ per: "day" });
    });

    test("answers 503 without counting if a windowed quota's usage cannot be read", async () => {
      const { limits, ledger } = await setUp();
      const set = withWindows(windowQuota({ unit: "requests", amount: 5, per: "5h", window: "rolling" }));
      ledger.gate = Promise.reject(new Error("disk on fire"));
      ledger.gate.catch(() => {});
      expect((await refusal(limits.admit(set, reserve(1)))).code).toBe("service_unavailable");
      ledger.gate = Promise.resolve();
      expect(await admittedOf(9, () => limits.admit(set, reserve(1)))).toBe(5);
    });

    test("reads a windowed quota again with running requests if it was not counted for a while", async () => {
      const { limits, ledger } = await setUp();
      const daily = windowQuota({ unit: "requests", amount: 5, per: "day", window: "calendar" });
      const rolling = windowQuota({ unit: "requests", amount: 6, per: "5h", window: "rolling" });
      const set = withWindows(daily, rolling);
      const running = await granted(limits.admit(set, reserve(1)));
      (await granted(limits.admit(set, reserve(1)))).lease.settle(1, 0);
      limits.forgetQuotas([daily, rolling]);
      ledger.totals = { ...ledger.totals, requests: 3, firstAt: begin };
      expect(await admittedOf(9, () => limits.admit(set, reserve(1)))).toBe(1);
      running.lease.settle(1, 0);
      expect(await limits.usedInWindow(daily)).toMatchObject({ requests: 4 });
      expect(await limits.usedInWindow(rolling)).toMatchObject({ requests: 4, period: { start: begin } });
    });

    test("applies a changed amount at once and keeps the usage", async () => {
      const { limits } = await setUp();
      const rule = { unit: "requests", amount: 5, per: "day", window: "calendar" } as const;
      expect(await admittedOf(9, () => limits.admit(withWindows(windowQuota(rule)), reserve(1)))).toBe(5);
      const more = withWindows(windowQuota({ ...rule, amount: 7 }));
      expect(await admittedOf(9, () => limits.admit(more, reserve(1)))).toBe(2);
    });
  });
}
