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
      test(`of 300 who ask at once a ${window} quota per ${per} admits exactly its amount, and as many again once it has ended`, async () => {
        const { limits, clock } = await setUp();
        const set = withWindows(windowQuota({ unit: "requests", amount: 50, per, window }));
        expect(await admittedOf(300, () => limits.admit(set, reserve(1)))).toBe(50);
        clock.advance((seconds - 1) * 1_000);
        expect(await admittedOf(3, () => limits.admit(set, reserve(1)))).toBe(0);
        clock.advance(1_000);
        expect(await admittedOf(300, () => limits.admit(set, reserve(1)))).toBe(50);
      });
    }

    test("admits money up to the exact nano-USD of a quota, and not one more", async () => {
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

    test("tokens and money are set aside, replaced by what was used, and refused beyond the amount", async () => {
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

    test("a request that may take less gets the rest of the tightest", async () => {
      const { limits } = await setUp();
      const hour = windowQuota({ unit: "tokens", amount: 60, per: "hour", window: "calendar" });
      const day = windowQuota({ unit: "tokens", amount: 100, per: "day", window: "calendar" });
      const { reservedTokens } = await granted(limits.admit(withWindows(day, hour), reserve(500, { minTokens: 5 })));
      expect(reservedTokens).toBe(60);
    });

    test("what one of several refuses counts at no other, and of those that are spent the one that opens last is told", async () => {
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

    test("a refusal says whose quota it is, its unit, window and models, what is used and when it opens, in words and as data", async () => {
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
        "This request needs at least 30 tokens, more than the quota of the member for claude-*, gpt-6.1-sol per 5 hours has left: 70 tokens of 100 tokens are used since 2026-11-20T10:30:00Z, and 10 tokens are set aside for running requests. The quota resets at 2026-11-20T15:30:00Z.",
      );
      expect(error.quota).toEqual({
        ...{ owner: "member", unit: "tokens", limit: 100, used: 70, reserved: 10, needed: 30 },
        ...{ per: "5h", window: "rolling", models, tag: null, starts_at: begin, resets_at: begin + 18_000 },
      });
    });

    test("a quota of a tag counts requests that have it alone, with others or without, and its refusal names it", async () => {
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

    test("300 requests at once, each with one of three tags, are admitted up to the quota of each tag and no further", async () => {
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

    test("a quota of some models counts requests for these alone", async () => {
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

    test("what was used before this process began counts, and the window that was open then goes on from its first use", async () => {
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

    test("a request belongs to the window in which it began, and what it uses later leaves the next one whole", async () => {
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

    test("before its first use a rolling window has no end, and looking does not begin one", async () => {
      const { limits, clock } = await setUp();
      const quota = windowQuota({ unit: "requests", amount: 1, per: "5h", window: "rolling" });
      expect(await limits.usedInWindow(quota)).toEqual({ requests: 0, tokens: 0, nanoUsd: 0, period: undefined });
      clock.advance(3_600_000);
      await granted(limits.admit(withWindows(quota), reserve(1)));
      expect((await limits.usedInWindow(quota)).period).toEqual({ start: begin + 3_600, end: begin + 21_600 });
      clock.advance(18_000_000);
      expect((await limits.usedInWindow(quota)).period).toBeUndefined();
    });

    test("more than the amount of a quota that is not in use is refused without a time to wait for", async () => {
      const { limits } = await setUp();
      const set = withWindows(windowQuota({ unit: "usd", amount: 1, per: "5h", window: "rolling" }));
      const error = await refusal(limits.admit(set, reserve(1, { minNanoUsd: 2e9 })));
      expect(error.quota).toMatchObject({ unit: "usd", limit: 1, used: 0, needed: 2, resets_at: null });
      expect(error.message).toEndWith("0.00 USD of 1.00 USD are used. Waiting does not help.");
    });

    test("a wall clock that jumps and comes back finds what was used, and a rolling window lasts as long as it would have", async () => {
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

    test("usage that cannot be read is 503, and counts nowhere", async () => {
      const { limits, ledger } = await setUp();
      const set = withWindows(windowQuota({ unit: "requests", amount: 5, per: "5h", window: "rolling" }));
      ledger.gate = Promise.reject(new Error("disk on fire"));
      ledger.gate.catch(() => {});
      expect((await refusal(limits.admit(set, reserve(1)))).code).toBe("service_unavailable");
      ledger.gate = Promise.resolve();
      expect(await admittedOf(9, () => limits.admit(set, reserve(1)))).toBe(5);
    });

    test("a quota that nobody counted for a while is read again, with what still runs", async () => {
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

    test("a changed amount holds at once, and keeps what was used", async () => {
      const { limits } = await setUp();
      const rule = { unit: "requests", amount: 5, per: "day", window: "calendar" } as const;
      expect(await admittedOf(9, () => limits.admit(withWindows(windowQuota(rule)), reserve(1)))).toBe(5);
      const more = withWindows(windowQuota({ ...rule, amount: 7 }));
      expect(await admittedOf(9, () => limits.admit(more, reserve(1)))).toBe(2);
    });
  });
}
