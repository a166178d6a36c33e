// What every store of limits guarantees of quotas that end answers: what is set aside in pieces never adds up to more than there is.
import { describe, expect, test } from "bun:test";
import type { LimitStore, Reservation, StopReservation } from "../../src/domain/limits/limits.ts";
import { type Granted, granted, type LimitsContractOptions, ledgerWith, refusal, reserve } from "./limits-contract.ts";
import { manualClock } from "./manual-clock.ts";
import { windowQuota, withWindows } from "./windows-contract.ts";

export const hardTokens = (amount: number) =>
  windowQuota({ unit: "tokens", amount, per: "day", window: "calendar" }, { stops: { tokens: true, nanoUsd: false } });

/** A stream that sets aside 20 tokens at once, of which 5 would do. */
export function streaming(more: Partial<StopReservation> = {}): Reservation {
  const stop = { tokens: 20, nanoUsd: 0, minTokens: 5, minNanoUsd: 0, grows: true, ...more };
  return reserve(1_000, { stop });
}

/** Takes all that it can get, in pieces; gives how much it has. */
export async function takeAll({ stop }: Granted): Promise<number> {
  if (!stop) throw new Error("No quota ends it.");
  for (let before = -1; stop.tokens > before; ) {
    before = stop.tokens;
    await stop.grow(512, 0);
  }
  return stop.tokens;
}

export function stopsContract({ open }: Pick<LimitsContractOptions, "open">): void {
  const setUp = async () => {
    const ledger = ledgerWith();
    return { ledger, limits: await open({ clock: manualClock(), ledger }) };
  };
  const usedOf = async (limits: LimitStore, amount: number) => (await limits.usedInWindow(hardTokens(amount))).tokens;

  describe("allowances of quotas with a hard stop", () => {
    test("shares a quota's rest among 30 concurrent streams to the token, with returned tokens reused", async () => {
      const { limits } = await setUp();
      const set = withWindows(hardTokens(10_000));
      const streams = await Promise.all(Array.from({ length: 30 }, () => granted(limits.admit(set, streaming()))));
      const taken = await Promise.all(streams.map(takeAll));
      expect(taken.reduce((sum, tokens) => sum + tokens)).toBe(10_000);
      expect((await refusal(limits.admit(set, streaming()))).code).toBe("insufficient_quota");
      const [first, second] = streams as [Granted, Granted];
      first.lease.settle(1, 0);
      expect(await takeAll(second)).toBe((taken[0] ?? 0) + (taken[1] ?? 0) - 1);
      for (const [i, { lease }] of streams.entries()) lease.settle(i, 0);
      expect(await usedOf(limits, 10_000)).toBe(1 + 435);
      // Whatever was set aside and not used is there again.
      expect(await takeAll(await granted(limits.admit(set, streaming())))).toBe(10_000 - 436);
    });

    test("grants a stream the rest of a quota above its minimum, and refuses it below", async () => {
      const { limits } = await setUp();
      const set = withWindows(hardTokens(12));
      const { stop } = await granted(limits.admit(set, streaming({ grows: false })));
      expect(stop).toMatchObject({ tokens: 12, mostTokens: 12, tightest: { unit: "tokens" } });
      expect(await refusal(limits.admit(set, streaming()))).toMatchObject({
        quota: { limit: 12, used: 0, reserved: 12, needed: 5 },
      });
    });

    test("stops an answer by cost with a USD quota, and only counts a token quota without a hard stop", async () => {
      const { limits } = await setUp();
      const usd = windowQuota(
        { unit: "usd", amount: 1e-6, per: "day", window: "calendar" },
        { stops: { tokens: false, nanoUsd: true }, tokens: 50 },
      );
      const asked = streaming({ nanoUsd: 100, minNanoUsd: 100 });
      const { stop, lease } = await granted(limits.admit(withWindows(usd), { ...asked, minTokens: 5 }));
      expect(stop?.tokens).toBe(Number.POSITIVE_INFINITY);
      for (let i = 0; i < 50; i++) await stop?.grow(512, 640);
      expect(stop?.nanoUsd).toBe(1_000);
      expect(stop?.tightest).toMatchObject({ unit: "nanoUsd" });
      lease.settle(60, 900);
      expect(await limits.usedInWindow(usd)).toMatchObject({ requests: 1, tokens: 60, nanoUsd: 900 });
    });

    test("reserves nothing more for a settled stream", async () => {
      const { limits } = await setUp();
      const set = withWindows(hardTokens(100));
      const { stop, lease } = await granted(limits.admit(set, streaming()));
      lease.settle(10, 0);
      await stop?.grow(512, 0);
      expect(await takeAll(await granted(limits.admit(set, streaming())))).toBe(90);
    });

    test("treats a hard stop quota like any other for a request that cannot be stopped", async () => {
      const { limits } = await setUp();
      const set = withWindows(hardTokens(100));
      const { stop, lease } = await granted(limits.admit(set, reserve(60)));
      expect(stop).toBeUndefined();
      expect((await refusal(limits.admit(set, reserve(60)))).code).toBe("insufficient_quota");
      lease.settle(10, 0);
      await granted(limits.admit(set, reserve(60)));
    });
  });
}
