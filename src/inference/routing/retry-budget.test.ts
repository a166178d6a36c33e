// Tests the retry budget: a share of the requests plus a few more, counted over the last seconds.
import { expect, test } from "bun:test";
import { manualClock } from "../../../tests/support/manual-clock.ts";
import { RetryBudget } from "./retry-budget.ts";

const taken = (budget: RetryBudget) => {
  let count = 0;
  while (budget.take()) count++;
  return count;
};

test("allows ten retries, and one more for each five requests", () => {
  const budget = new RetryBudget(manualClock());
  expect(taken(budget)).toBe(10);
  for (let i = 0; i < 100; i++) budget.requested();
  expect(taken(budget)).toBe(20);
});

test("counts requests and retries for five to ten seconds", () => {
  const clock = manualClock();
  const budget = new RetryBudget(clock);
  for (let i = 0; i < 100; i++) budget.requested();
  clock.advance(5_000);
  expect(taken(budget)).toBe(30);
  clock.advance(4_999);
  expect(taken(budget)).toBe(0);
  clock.advance(1);
  // The requests are too old to count, but the retries still count.
  expect(taken(budget)).toBe(0);
  clock.advance(5_000);
  expect(taken(budget)).toBe(10);
  clock.advance(60_000);
  expect(taken(budget)).toBe(10);
});

test("allows as many repetitions as requests and ten more, and leaves the retries as they are", () => {
  const clock = manualClock();
  const budget = new RetryBudget(clock);
  const repeated = () => {
    let count = 0;
    while (budget.takeRepetition()) count++;
    return count;
  };
  for (let i = 0; i < 100; i++) budget.requested();
  expect(repeated()).toBe(110);
  clock.advance(5_000);
  expect(repeated()).toBe(0);
  expect(taken(budget)).toBe(30);
  clock.advance(5_000);
  expect(repeated()).toBe(10);
});

test("divides the ten retries among several gateways, at least one each", () => {
  expect([1, 3, 40].map((gateways) => taken(new RetryBudget(manualClock(), () => gateways)))).toEqual([10, 3, 1]);
});
