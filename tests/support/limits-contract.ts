// What every store of limits guarantees: one atomic decision, exact under concurrency, undisturbed by clocks.
import { describe, expect, test } from "bun:test";
import type { GatewayError } from "../../src/base/errors.ts";
import type { Admission, LimitSet, LimitStore, Quota, RateLimit, Reservation } from "../../src/domain/limits/limits.ts";
import type { Ledger, SpanTotals, UsageTotals } from "../../src/domain/usage/usage.ts";
import { withinMs } from "./long.ts";
import { type ManualClock, manualClock } from "./manual-clock.ts";

export type Granted = Extract<Admission, { lease: unknown }>;
type Answer = Admission | Promise<Admission>;

/** A ledger whose totals a test sets, and that counts how often it is read. */
export function ledgerWith(totals: UsageTotals & Partial<SpanTotals> = { tokens: 0, nanoUsd: 0 }) {
  const reads: Parameters<Ledger["readTotals"]>[0][] = [];
  return {
    reads,
    totals,
    /** Awaited before each answer. */
    gate: Promise.resolve(),
    async readTotals(owner: Parameters<Ledger["readTotals"]>[0], use: (totals: SpanTotals) => void) {
      reads.push(owner);
      await this.gate;
      use({ requests: 0, firstAt: undefined, ...this.totals });
    },
  };
}

export const account: RateLimit = { id: "account:a:live", owner: "account", limit: 10, windowSeconds: 60 };
export const key: RateLimit = { id: "key:k", owner: "key", limit: 3, windowSeconds: 1 };
export const none: LimitSet = { requests: [], tokens: [], quotas: [] };

export function quotaOf(tokens: number | null, nanoUsd: number | null = null): Quota {
  return { id: "account:a:live", owner: "account", ownerId: "a", environment: "live", tokens, nanoUsd };
}

export function reserve(tokens: number, more: Partial<Reservation> = {}): Reservation {
  return { tokens, nanoUsd: 0, minTokens: tokens, minNanoUsd: 0, ...more };
}

export async function granted(answer: Answer): Promise<Granted> {
  const admission = await answer;
  if ("refusal" in admission) throw admission.refusal;
  return admission;
}

export async function refusal(answer: Answer): Promise<GatewayError> {
  const admission = await answer;
  if (!("refusal" in admission)) throw new Error("It was admitted.");
  return admission.refusal;
}

export async function admittedOf(count: number, ask: () => Answer): Promise<number> {
  const answers = await Promise.all(Array.from({ length: count }, ask));
  return answers.filter((admission) => "lease" in admission).length;
}

export interface LimitsContractOptions {
  /** A store by this clock alone: `monotonicMs` for rates and windows that roll, `nowSeconds` for those of the calendar. */
  open(options: { clock: ManualClock; ledger: Pick<Ledger, "readTotals"> }): LimitStore | Promise<LimitStore>;
  /** How many random schedules; each decision of a store elsewhere takes its time. */
  schedules: number;
}

export function limitsContract({ open, schedules }: LimitsContractOptions): void {
  const setUp = async (totals?: UsageTotals) => {
    const clock = manualClock(Date.UTC(2026, 10, 20) / 1000);
    const ledger = ledgerWith(totals);
    return { clock, ledger, limits: await open({ clock, ledger }) };
  };

  describe("one decision over all limits", () => {
    test("counts a request that one limit refuses at no other limit", async () => {
      const { limits } = await setUp();
      const set = { ...none, requests: [account, key], tokens: [{ ...account, limit: 1_000 }] };
      expect(await admittedOf(50, () => limits.admit(set, reserve(10)))).toBe(3);
      expect((await limits.peek({ ...none, requests: [account] })).requests?.remaining).toBe(7);
      expect((await limits.peek(set)).tokens?.remaining).toBe(970);
      expect(await admittedOf(5, () => limits.admit({ ...set, requests: [account] }, reserve(980)))).toBe(0);
      expect((await limits.peek({ ...none, requests: [account] })).requests?.remaining).toBe(7);
    });

    test("counts a request that a quota refuses at no rate limit", async () => {
      const { limits } = await setUp({ tokens: 95, nanoUsd: 0 });
      const set = { requests: [account], tokens: [{ ...account, limit: 1_000 }], quotas: [quotaOf(100)] };
      await limits.used(quotaOf(100));
      expect((await refusal(limits.admit(set, reserve(6)))).code).toBe("insufficient_quota");
      expect(await limits.peek(set)).toMatchObject({ requests: { remaining: 10 }, tokens: { remaining: 1_000 } });
      await granted(limits.admit(set, reserve(5)));
    });

    test("limits requests and tokens of the same id separately", async () => {
      const { limits } = await setUp();
      const set = { ...none, requests: [account], tokens: [account] };
      expect((await granted(limits.admit(set, reserve(8)))).status).toMatchObject({
        requests: { remaining: 9 },
        tokens: { remaining: 2 },
      });
    });

    test("reports the longest of several waits with limit and window, and serves a client that waits it", async () => {
      const { limits, clock } = await setUp();
      const set = { ...none, requests: [key, { ...account, limit: 3 }] };
      expect(await admittedOf(5, () => limits.admit(set, reserve(1)))).toBe(3);
      const error = await refusal(limits.admit(set, reserve(1)));
      expect(error).toMatchObject({ code: "rate_limit_exceeded", retryAfterSeconds: 20, shouldRetry: undefined });
      expect(error.message).toBe(
        "The rate limit of the account is reached: 3 requests per minute. Retry in 20 seconds.",
      );
      clock.advance(19_999);
      expect((await refusal(limits.admit(set, reserve(1)))).message).toEndWith("Retry in 0.1 seconds.");
      clock.advance(1);
      await granted(limits.admit(set, reserve(1)));
    });

    test("reports the longer wait if requests and tokens are both short", async () => {
      const requests = { ...account, limit: 3 };
      const tokens = { ...account, limit: 1_000 };
      const { limits, clock } = await setUp();
      const set = { ...none, requests: [requests], tokens: [tokens] };
      expect(await admittedOf(3, () => limits.admit(set, reserve(300)))).toBe(3);
      // 20 seconds for a request; 100 tokens are left, 60 seconds make 1,000.
      const needsMore = await refusal(limits.admit(set, reserve(600)));
      expect(needsMore.retryAfterSeconds).toBe(30);
      expect(needsMore.message).toContain("1,000 tokens per minute. This request needs 600.");
      const needsLess = await refusal(limits.admit(set, reserve(200)));
      expect(needsLess.retryAfterSeconds).toBe(20);
      expect(needsLess.message).toContain("3 requests per minute.");
      clock.advance(29_999);
      expect((await refusal(limits.admit(set, reserve(600)))).message).toContain("tokens");
      clock.advance(1);
      await granted(limits.admit(set, reserve(600)));
    });

    test("reports a request that never fits before any wait, since waiting would not help", async () => {
      const { limits } = await setUp();
      const set = { ...none, requests: [{ ...account, limit: 3 }], tokens: [{ ...account, limit: 1_000 }] };
      expect(await admittedOf(3, () => limits.admit(set, reserve(1)))).toBe(3);
      const error = await refusal(limits.admit(set, reserve(1_001)));
      expect(error).toMatchObject({ code: "rate_limit_exceeded", shouldRetry: false, retryAfterSeconds: undefined });
      expect(error.message).toContain("needs 1,001 tokens, more than the rate limit of the account allows at once");
    });

    test("shows the tightest limit: the least remaining, then the smaller limit", async () => {
      const { limits } = await setUp();
      const wide = { ...account, id: "wide", limit: 100 };
      const set = { ...none, requests: [wide, key], tokens: [] };
      const { status } = await granted(limits.admit(set, reserve(1)));
      expect(status).toEqual({ requests: { limit: 3, remaining: 2, resetMs: 334 }, tokens: undefined });
      const equal = {
        ...none,
        requests: [
          { ...wide, limit: 3, windowSeconds: 60 },
          { ...key, limit: 2 },
        ],
      };
      const fresh = (await setUp()).limits;
      fresh.admit({ ...none, requests: [equal.requests[0] ?? key] }, reserve(1));
      expect((await fresh.peek(equal)).requests).toMatchObject({ limit: 2, remaining: 2 });
    });

    test("admits 200 concurrent clients exactly by the formula, and counts no status reads", async () => {
      const { limits, clock } = await setUp();
      const set = { ...none, requests: [{ ...account, limit: 100 }] };
      const volley = async () => {
        const answers = await Promise.all(
          Array.from({ length: 200 }, async () => {
            await Promise.resolve();
            await limits.peek(set);
            return limits.admit(set, reserve(1));
          }),
        );
        return answers.filter((answer) => "lease" in answer).length;
      };
      expect(await volley()).toBe(100);
      clock.advance(59_999);
      expect(await volley()).toBe(99);
      clock.advance(1);
      expect(await volley()).toBe(1);
    });
  });

  describe("token limits", () => {
    const tokens = { ...account, limit: 1_000 };
    const set = { ...none, tokens: [tokens] };

    test("reserves tokens and replaces them by actual usage", async () => {
      const { limits } = await setUp();
      const first = await granted(limits.admit(set, reserve(600)));
      expect(first.reservedTokens).toBe(600);
      const error = await refusal(limits.admit(set, reserve(500)));
      expect(error.retryAfterSeconds).toBe(6);
      expect(error.message).toBe(
        "The rate limit of the account is reached: 1,000 tokens per minute. This request needs 500. Retry in 6 seconds.",
      );
      first.lease.settle(100, 0);
      expect((await limits.peek(set)).tokens).toMatchObject({ remaining: 900, resetMs: 6_000 });
      first.lease.settle(0, 0);
      first.lease.extend(900, 0);
      expect((await limits.peek(set)).tokens?.remaining).toBe(900);
    });

    test("returns all reserved tokens after a failure, and never more than the limit", async () => {
      const { limits, clock } = await setUp();
      const { lease } = await granted(limits.admit(set, reserve(600)));
      clock.advance(50_000);
      lease.settle(0, 0);
      expect((await limits.peek(set)).tokens).toEqual({ limit: 1_000, remaining: 1_000, resetMs: 0 });
    });

    test("never shrinks a reservation by an extension, and turns missing tokens into debt", async () => {
      const { limits, clock } = await setUp();
      const { lease } = await granted(limits.admit(set, reserve(900)));
      lease.extend(500, 0);
      expect((await limits.peek(set)).tokens?.remaining).toBe(100);
      lease.extend(1_500, 0);
      expect((await limits.peek(set)).tokens).toEqual({ limit: 1_000, remaining: 0, resetMs: 90_000 });
      lease.settle(1_600, 0);
      expect((await refusal(limits.admit(set, reserve(20)))).retryAfterSeconds).toBe(37.2);
      clock.advance(37_200);
      await granted(limits.admit(set, reserve(20)));
    });

    test("does not forgive one request's overuse by another's refund", async () => {
      const { limits, clock } = await setUp();
      const [small, large] = await Promise.all(
        [10, 500].map(async (amount) => (await granted(limits.admit(set, reserve(amount)))).lease),
      );
      clock.advance(60_000);
      small?.settle(510, 0);
      large?.settle(0, 0);
      expect((await limits.peek(set)).tokens?.remaining).toBe(500);
    });

    test("gives a flexible request what is left, and makes it wait below its minimum", async () => {
      const { limits } = await setUp();
      expect((await granted(limits.admit(set, reserve(5_000, { minTokens: 990 })))).reservedTokens).toBe(1_000);
      expect((await refusal(limits.admit(set, reserve(500, { minTokens: 11 })))).retryAfterSeconds).toBe(0.66);
    });

    test("refuses more tokens than the whole bucket permanently", async () => {
      const { limits } = await setUp();
      const error = await refusal(limits.admit(set, reserve(1_001)));
      expect(error).toMatchObject({ code: "rate_limit_exceeded", shouldRetry: false, retryAfterSeconds: undefined });
      expect(error.message).toBe(
        "This request needs 1,001 tokens, more than the rate limit of the account allows at once: 1,000 tokens per minute. Send a shorter prompt or a lower max_tokens; waiting does not help.",
      );
    });

    test("admits in random schedules over several limits exactly what all allow", async () => {
      for (let seed = 1; seed <= schedules; seed++) {
        let state = seed;
        const random = () => {
          state = (state * 48_271) % 2_147_483_647;
          return state / 2_147_483_647;
        };
        const { limits, clock } = await setUp();
        const sets = [1, 2, 3].map((child) => ({
          ...none,
          requests: [
            { ...account, limit: 12 },
            { ...key, id: `key:${child}`, limit: 5, windowSeconds: 9 },
          ],
          tokens: [
            { ...account, limit: 2_000 },
            { ...key, id: `key:${child}`, limit: 700, windowSeconds: 20 },
          ],
        }));
        const history: { set: LimitSet; atMs: number; tokens: number }[] = [];
        const open: { lease: Granted["lease"]; entry: { tokens: number } }[] = [];
        /** What a limit has left, worked out from the whole history. */
        const left = (rule: RateLimit, kind: "requests" | "tokens") => {
          let level = rule.limit;
          let lastMs = 0;
          const refill = (atMs: number) => {
            level = Math.min(rule.limit, level + ((atMs - lastMs) * rule.limit) / (rule.windowSeconds * 1_000));
            lastMs = atMs;
          };
          for (const { set: entrySet, atMs, tokens: amount } of history) {
            if (!entrySet[kind].some(({ id }) => id === rule.id)) continue;
            refill(atMs);
            level -= kind === "requests" ? 1 : amount;
          }
          refill(clock.monotonicMs());
          return level;
        };
        for (let step = 0; step < 150; step++) {
          if (random() < 0.5) clock.advance(Math.floor(random() * 3_000));
          const chosen = sets[Math.floor(random() * 3)];
          if (!chosen) continue;
          if (random() < 0.7) {
            const amount = 1 + Math.floor(random() * 300);
            const fits =
              chosen.requests.every((rule) => left(rule, "requests") >= 1 - 1e-6) &&
              chosen.tokens.every((rule) => left(rule, "tokens") >= amount - 1e-6);
            const admission = await limits.admit(chosen, reserve(amount));
            expect({ seed, step, admitted: "lease" in admission }).toEqual({ seed, step, admitted: fits });
            if (!("lease" in admission)) continue;
            const entry = { set: chosen, atMs: clock.monotonicMs(), tokens: amount };
            history.push(entry);
            open.push({ lease: admission.lease, entry });
          } else {
            const [ended] = open.splice(Math.floor(random() * open.length), 1);
            if (!ended) continue;
            ended.entry.tokens = Math.floor(random() * (ended.entry.tokens + 1));
            ended.lease.settle(ended.entry.tokens, 0);
          }
        }
        expect(history.length).toBeGreaterThan(20);
      }
    });
  });

  describe("quotas", () => {
    test("reads a quota's usage once before a month's first request, for all waiting requests", async () => {
      const { limits, ledger } = await setUp({ tokens: 40, nanoUsd: 0 });
      const gate = Promise.withResolvers<void>();
      ledger.gate = gate.promise;
      const set = { ...none, requests: [{ ...account, limit: 100 }], quotas: [quotaOf(100)] };
      const answers = Array.from({ length: 20 }, () => limits.admit(set, reserve(10)));
      expect((await limits.peek(set)).requests?.remaining).toBe(100);
      gate.resolve();
      const admitted = (await Promise.all(answers)).filter((answer) => "lease" in answer);
      expect(admitted).toHaveLength(6);
      expect(ledger.reads).toEqual([
        {
          type: "account",
          id: "a",
          environment: "live",
          since: Date.UTC(2026, 10, 1) / 1000,
          until: Date.UTC(2026, 11, 1) / 1000,
        },
      ]);
      expect((await limits.peek(set)).requests?.remaining).toBe(94);
    });

    test("reads a quota's usage again after it was forgotten, and keeps the reservations", async () => {
      const { limits, ledger } = await setUp();
      const set = { ...none, quotas: [quotaOf(100)] };
      const running = await granted(limits.admit(set, reserve(20)));
      (await granted(limits.admit(set, reserve(10)))).lease.settle(10, 0);
      limits.forgetQuotas([quotaOf(100)]);
      ledger.totals = { ...ledger.totals, tokens: 60 };
      expect(await admittedOf(5, () => limits.admit(set, reserve(10)))).toBe(2);
      running.lease.settle(20, 0);
      expect(await limits.used(quotaOf(100))).toEqual({ tokens: 80, nanoUsd: 0 });
    });

    test("never exceeds a quota with concurrent requests, and returns what they did not use", async () => {
      const { limits } = await setUp();
      const set = { ...none, quotas: [quotaOf(1_000)] };
      const running = await Promise.all(Array.from({ length: 200 }, () => limits.admit(set, reserve(50))));
      const leases = running.flatMap((admission) => ("lease" in admission ? [admission.lease] : []));
      expect(leases).toHaveLength(20);
      for (const lease of leases) lease.settle(30, 0);
      expect(await limits.used(quotaOf(1_000))).toEqual({ tokens: 600, nanoUsd: 0 });
      expect(await admittedOf(20, () => limits.admit(set, reserve(50)))).toBe(8);
    });

    test("names owner, figures, period and reset in a quota's final refusal", async () => {
      const { limits } = await setUp({ tokens: 995, nanoUsd: 4_999_000_000 });
      const set = { ...none, quotas: [quotaOf(1_000, 5_000_000_000)] };
      await granted(limits.admit(set, reserve(3)));
      const error = await refusal(limits.admit(set, reserve(9, { minTokens: 4 })));
      expect(error).toMatchObject({ code: "insufficient_quota", shouldRetry: false });
      expect(error.message).toBe(
        "This request needs at least 4 tokens, more than the monthly quota of the account has left: 995 tokens of 1,000 tokens are used in 2026-11 (UTC), and 3 tokens are set aside for running requests. The quota resets at 2026-12-01T00:00:00Z. Ask an operator of this server for more.",
      );
      expect((await refusal(limits.admit(set, reserve(1, { minNanoUsd: 1_000_001 })))).message).toBe(
        "This request needs at least 0.001000001 USD, more than the monthly quota of the account has left: 4.999 USD of 5.00 USD are used in 2026-11 (UTC). The quota resets at 2026-12-01T00:00:00Z. Ask an operator of this server for more.",
      );
    });

    test("gives a flexible request the rest of a quota, in tokens and money", async () => {
      const { limits } = await setUp({ tokens: 940, nanoUsd: 900 });
      const quota = quotaOf(1_000, 1_000);
      const set = { ...none, quotas: [quota] };
      const ask = { tokens: 500, nanoUsd: 800, minTokens: 20, minNanoUsd: 30 };
      const { lease, reservedTokens } = await granted(limits.admit(set, ask));
      expect(reservedTokens).toBe(60);
      expect((await refusal(limits.admit(set, { ...ask, minTokens: 1 }))).code).toBe("insufficient_quota");
      lease.settle(30, 50);
      expect(await limits.used(quota)).toEqual({ tokens: 970, nanoUsd: 950 });
      await granted(limits.admit(set, { ...ask, minTokens: 30 }));
    });

    test("counts an extended reservation in a quota at once", async () => {
      const { limits } = await setUp();
      const set = { ...none, quotas: [quotaOf(100, 100)] };
      const { lease } = await granted(limits.admit(set, reserve(10)));
      lease.extend(95, 95);
      expect((await refusal(limits.admit(set, reserve(6)))).code).toBe("insufficient_quota");
      expect((await refusal(limits.admit(set, reserve(1, { minNanoUsd: 6 })))).code).toBe("insufficient_quota");
      lease.settle(0, 0);
      await granted(limits.admit(set, reserve(100, { nanoUsd: 100, minNanoUsd: 100 })));
    });

    test("answers 503 without counting if usage cannot be read, and retries the read", async () => {
      const { limits, ledger } = await setUp();
      const set = { ...none, requests: [account], quotas: [quotaOf(100)] };
      ledger.gate = Promise.reject(new Error("disk on fire at /secret/path"));
      ledger.gate.catch(() => {});
      const failed = await limits.admit(set, reserve(1));
      expect(failed).toMatchObject({
        refusal: { code: "service_unavailable", retryAfterSeconds: 1, message: expect.not.stringContaining("fire") },
        status: { requests: { remaining: 10 } },
      });
      await expect(limits.used(quotaOf(100))).rejects.toMatchObject({ code: "service_unavailable" });
      ledger.gate = Promise.resolve();
      await granted(limits.admit(set, reserve(1)));
    });

    test("answers 503 within seconds if reading usage is slow, and uses the result later", async () => {
      const { limits, ledger } = await setUp({ tokens: 40, nanoUsd: 0 });
      const set = { ...none, requests: [account], quotas: [quotaOf(100)] };
      const gate = Promise.withResolvers<void>();
      ledger.gate = gate.promise;
      const startMs = performance.now();
      const [refused, looked] = await Promise.allSettled([limits.admit(set, reserve(1)), limits.used(quotaOf(100))]);
      expect(performance.now() - startMs).toBeLessThan(withinMs(3_000));
      expect(refused).toMatchObject({
        value: {
          refusal: { code: "service_unavailable", retryAfterSeconds: 1 },
          status: { requests: { remaining: 10 } },
        },
      });
      expect(looked).toMatchObject({ reason: { code: "service_unavailable" } });
      gate.resolve();
      await Bun.sleep(20);
      await granted(limits.admit(set, reserve(60)));
      expect(ledger.reads).toHaveLength(1);
    });

    test("counts a settlement during the usage read once", async () => {
      const { limits, ledger } = await setUp({ tokens: 10, nanoUsd: 0 });
      const unlimited = { ...none, quotas: [quotaOf(null)] };
      const before = await granted(limits.admit(unlimited, reserve(5)));
      const after = await granted(limits.admit(unlimited, reserve(5)));
      const gate = Promise.withResolvers<void>();
      ledger.gate = gate.promise;
      const used = limits.used(quotaOf(null));
      // It is in the ledger before the totals are taken.
      before.lease.settle(7, 0);
      ledger.totals.tokens += 7;
      gate.resolve();
      expect(await used).toEqual({ tokens: 17, nanoUsd: 0 });
      after.lease.settle(4, 0);
      expect(await limits.used(quotaOf(null))).toEqual({ tokens: 21, nanoUsd: 0 });
    });

    test("reads no usage without a limit, and counts it anyway", async () => {
      const { limits, ledger } = await setUp();
      const set = { ...none, quotas: [quotaOf(null)] };
      await granted(limits.admit(set, reserve(5)));
      expect(ledger.reads).toHaveLength(0);
      await limits.used(quotaOf(null));
      (await granted(limits.admit(set, reserve(5)))).lease.settle(5, 3);
      expect(await limits.used(quotaOf(null))).toEqual({ tokens: 5, nanoUsd: 3 });
    });

    test("starts a month at zero, and settles requests of the previous month there", async () => {
      const { limits, ledger, clock } = await setUp({ tokens: 90, nanoUsd: 0 });
      const set = { ...none, quotas: [quotaOf(100)] };
      const old = await granted(limits.admit(set, reserve(10)));
      expect((await refusal(limits.admit(set, reserve(1)))).code).toBe("insufficient_quota");
      ledger.totals.tokens = 0;
      clock.jump(11 * 86_400);
      (await granted(limits.admit(set, reserve(100)))).lease.settle(60, 0);
      old.lease.settle(10, 0);
      expect(await limits.used(quotaOf(100))).toEqual({ tokens: 60, nanoUsd: 0 });
      expect(ledger.reads.map(({ since }) => since)).toEqual([
        Date.UTC(2026, 10, 1) / 1000,
        Date.UTC(2026, 11, 1) / 1000,
      ]);
      clock.jump(-11 * 86_400);
      expect(await limits.used(quotaOf(100))).toEqual({ tokens: 100, nanoUsd: 0 });
      expect(ledger.reads).toHaveLength(2);
    });
  });

  describe("a wall clock that jumps", () => {
    test("neither locks out nor over-admits if the wall clock jumps an hour or a day", async () => {
      const { limits, clock } = await setUp();
      const set = { requests: [account], tokens: [{ ...account, limit: 1_000 }], quotas: [quotaOf(1_000_000)] };
      await limits.used(quotaOf(null));
      for (const seconds of [3_600, -3_600, 86_400, -86_400, -86_400, 86_400, 30 * 86_400, -30 * 86_400]) {
        for (const jump of [0, seconds]) {
          clock.jump(jump);
          let admitted = 0;
          for (let i = 0; i < 20; i++) {
            const admission = await limits.admit(set, reserve(10));
            if ("lease" in admission) admitted++;
            expect(admission.status.requests?.resetMs).toBeLessThanOrEqual(60_000);
          }
          expect(admitted).toBe(jump === 0 ? 10 : 0);
        }
        clock.advance(60_000);
      }
    });
  });
}
