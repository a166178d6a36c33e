// Tests overflow spending while the database fails: nothing is reserved, and no amount is returned twice.
import { expect, test } from "bun:test";
import { manualClock } from "../../../tests/support/manual-clock.ts";
import type { OverflowSpend, SpendChange } from "../../domain/models/policies/overflow.ts";
import { OverflowSpending } from "./overflow-spending.ts";

const spend: OverflowSpend = { nanoUsd: 1_000, per: "day" };

test("reserves and refunds nothing while the store fails, and writes excess cost later", async () => {
  const clock = manualClock();
  const warnings: string[] = [];
  let fails = false;
  const written: number[] = [];
  const log = { warn: (event: string) => void warnings.push(event) };
  const store = {
    async change(changes: readonly SpendChange[]) {
      if (fails) throw new Error("The disk is full.");
      written.push(...changes.map(({ nanoUsd }) => nanoUsd));
      return changes.map(() => ({ made: true, spentNanoUsd: 0 }));
    },
    spent: async () => 0,
  };
  const spending = new OverflowSpending({ store, clock, log });
  const [cheap, dear] = await Promise.all([spending.setAside("m", spend, 100), spending.setAside("n", spend, 100)]);
  fails = true;
  if (cheap) spending.settle(cheap, 20);
  if (dear) spending.settle(dear, 170);
  expect(await spending.setAside("m", spend, 100)).toBeUndefined();
  expect([spending.isUnknown, spending.remaining("m", spend), warnings]).toEqual([
    true,
    0,
    ["overflow_spend_unwritten"],
  ]);
  fails = false;
  await spending.close();
  expect(written).toEqual([100, 100, 70]);
  clock.advance(1_000);
  expect(spending.isUnknown).toBe(false);
});

test("retries a write once per pause, however many corrections fail", async () => {
  let [fails, tries] = [false, 0];
  const store = {
    async change(changes: readonly SpendChange[]) {
      tries++;
      if (fails) throw new Error("The disk is full.");
      return changes.map(() => ({ made: true, spentNanoUsd: 0 }));
    },
    spent: async () => 0,
  };
  const spending = new OverflowSpending({ store, clock: manualClock(), log: { warn() {} } });
  const taken = await Promise.all(Array.from({ length: 5 }, () => spending.setAside("m", spend, 100)));
  fails = true;
  for (const one of taken) {
    if (one) spending.settle(one, 150);
    await Bun.sleep(30);
  }
  const before = tries;
  await Bun.sleep(1_300);
  expect(tries).toBe(before + 1);
  await spending.close();
});
