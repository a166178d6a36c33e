// Money of overflows: no more than the cap is set aside, by whomever, whatever dies, and what was not needed comes back.
import { afterEach, beforeEach, expect, test } from "bun:test";
import type { OverflowSpend, OverflowSpendStore } from "../../src/domain/models/policies/overflow.ts";
import { OverflowSpending } from "../../src/inference/overflow/overflow-spending.ts";
import { SqlOverflowSpendStore } from "../../src/storage/tables/models/overflow-spend-store.ts";
import { onEachDatabase, type TestDatabase } from "../support/databases.ts";
import { until } from "../support/headrace.ts";
import { type ManualClock, manualClock } from "../support/manual-clock.ts";

const spend: OverflowSpend = { nanoUsd: 1_000, per: "day" };
const dayEnd = Date.UTC(2026, 9, 2) / 1000;
let opened: TestDatabase;
let clock: ManualClock;
let warnings: string[];

const log = { warn: (event: string) => void warnings.push(event) };

const spendingOn = (store: OverflowSpendStore) => new OverflowSpending({ store, clock, log });

onEachDatabase((databases) => {
  beforeEach(async () => {
    opened = await databases.open();
    clock = manualClock(dayEnd - 3_600);
    warnings = [];
  });

  afterEach(async () => {
    await opened.close();
  });

  test("spends the overflow cap exactly, to the nano-USD, with 200 concurrent requests through two processes", async () => {
    const replicas = [opened.db, await opened.openAgain()].map((db) => spendingOn(new SqlOverflowSpendStore(db)));
    const asked = Array.from({ length: 200 }, (_, i) => replicas[i % 2]?.setAside("m", spend, 30));
    const made = (await Promise.all(asked)).filter((one) => one !== undefined);
    expect(made).toHaveLength(33);
    expect(await replicas[0]?.spent("m", spend)).toBe(990);
    expect(await replicas[1]?.setAside("m", spend, 10)).toMatchObject({ nanoUsd: 10 });
    expect(await replicas[0]?.setAside("m", spend, 1)).toBeUndefined();
  });

  test("keeps an overflow reservation after its process dies, and returns the unused part to all", async () => {
    const killed = spendingOn(new SqlOverflowSpendStore(opened.db));
    expect(await killed.setAside("m", spend, 600)).toBeDefined();
    const next = spendingOn(new SqlOverflowSpendStore(await opened.openAgain()));
    expect(await next.setAside("m", spend, 500)).toBeUndefined();
    expect(next.remaining("m", spend)).toBe(400);
    const own = await next.setAside("m", spend, 400);
    if (own) next.settle(own, 150);
    await next.close();
    expect(await next.spent("m", spend)).toBe(750);
  });

  test("returns an unused overflow reservation after the database was locked beyond a write's timeout", async () => {
    const other = await opened.openAgain();
    const spending = spendingOn(new SqlOverflowSpendStore(opened.db));
    const aside = await spending.setAside("m", spend, 600);
    if (!aside) throw new Error("Nothing was set aside.");
    await other.begin(async (tx) => {
      await tx`UPDATE overflow_spend SET nano_usd = nano_usd`;
      spending.settle(aside, 150);
      const isGivenUp = async () => {
        // PostgreSQL ends a transaction that is idle for 3 s.
        await tx`SELECT 1`;
        return warnings.length > 0;
      };
      await until(isGivenUp, "the write is given up", 20_000);
    });
    await until(async () => (await spending.spent("m", spend)) === 150, "the rest is given back");
  });

  test("starts a new overflow budget per day and model, and books late settlements to the starting day", async () => {
    const spending = spendingOn(new SqlOverflowSpendStore(opened.db));
    const early = await spending.setAside("m", spend, 1_000);
    expect(await spending.setAside("m", spend, 1)).toBeUndefined();
    expect(await spending.setAside("other", spend, 1_000)).toBeDefined();
    expect([spending.opensAt(spend), spending.remaining("m", spend)]).toEqual([dayEnd, 0]);
    clock.advance(3_600_000);
    expect(spending.remaining("m", spend)).toBeUndefined();
    expect(await spending.setAside("m", spend, 900)).toBeDefined();
    if (early) spending.settle(early, 2_000);
    await spending.close();
    expect(await spending.spent("m", spend)).toBe(900);
    expect(spending.figures()).toEqual([{ model: "m", spentNanoUsd: 900 }]);
  });

  test("knows at once that a day's overflow budget is spent when the clock is set back into it", async () => {
    const spending = spendingOn(new SqlOverflowSpendStore(opened.db));
    expect(await spending.setAside("m", spend, 1_000)).toBeDefined();
    clock.advance(3_600_000);
    expect(await spending.setAside("m", spend, 10)).toBeDefined();
    clock.jump(-10);
    expect(await spending.setAside("m", spend, 10)).toBeUndefined();
    expect(spending.remaining("m", spend)).toBe(0);
  });

  test("caches an empty overflow budget for one second, since others may return reservations", async () => {
    const [one, other] = [opened.db, await opened.openAgain()].map((db) => spendingOn(new SqlOverflowSpendStore(db)));
    const all = await one?.setAside("m", spend, 1_000);
    expect(await other?.setAside("m", spend, 10)).toBeUndefined();
    if (all) one?.settle(all, 0);
    await one?.close();
    expect(other?.remaining("m", spend)).toBe(0);
    clock.advance(1_000);
    expect(other?.remaining("m", spend)).toBeUndefined();
    expect(await other?.setAside("m", spend, 10)).toBeDefined();
  });
});
