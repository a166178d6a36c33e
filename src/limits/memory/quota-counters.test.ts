// Counters in rows: all that lead to one quota are the same counter, and none leads to what its row became later.
import { expect, test } from "bun:test";
import { calendarMonthOf } from "../../base/calendar-month.ts";
import { forgetAfterMs, QuotaCounters } from "./quota-counters.ts";

const month = calendarMonthOf(1_800_000_000);
const figures = ["usedRequests", "usedTokens", "usedNanoUsd", "leases", "heldTokens", "heldNanoUsd"] as const;
const idOf = () => `key:key_${Bun.randomUUIDv7()}`;

/** So many uses that all goes that may go. */
function sweep(counters: QuotaCounters, nowMs: number): void {
  for (let use = 0; use < 4_000; use++) counters.used(nowMs);
}

test("returns one counter for all ids of the same quota, unread until it is read", () => {
  const counters = new QuotaCounters(month);
  const ids = [...Array.from({ length: 600 }, idOf), "account:acct_1:live", "key:key_short"];
  const added = ids.map((id) => counters.add(id));
  for (const [n, counter] of added.entries()) {
    expect(figures.map((figure) => counter[figure])).toEqual(figures.map(() => 0));
    expect([counter.isRead, counter.period, counter.among]).toEqual([false, month, counters]);
    counter.begin(n, 2 * n);
    counter.hold(1, 1);
    counter.begin(5, 7);
    counter.book(3 * n, 4 * n, 5, 7);
    if (n % 2 === 0) counter.isRead = true;
  }
  for (const [n, id] of ids.entries()) {
    const found = counters.find(id);
    expect(figures.map((figure) => found?.[figure])).toEqual([1, 3 * n, 4 * n, 1, n + 1, 2 * n + 1]);
    expect(found?.isRead).toBe(n % 2 === 0);
    expect(found?.among).toBe(counters);
  }
  expect(counters.size).toBe(ids.length);
  expect(counters.find(idOf())).toBeUndefined();
});

test("forgets unused counters, except with leases or during a read, and clears their ids", () => {
  const counters = new QuotaCounters(month);
  const ids = Array.from({ length: 2_000 }, idOf);
  const added = ids.map((id) => counters.add(id));
  for (const counter of added) [counter.isRead, counter.usedTokens] = [true, 5];
  const [leased, reading, ...others] = added;
  if (!leased || !reading) throw new Error("There are none.");
  leased.begin(1, 1);
  reading.reading = Promise.resolve();
  sweep(counters, forgetAfterMs);
  expect(counters.size).toBe(2_000);
  sweep(counters, forgetAfterMs + 60_000);
  expect([leased.among, reading.among]).toEqual([counters, counters]);
  const { size } = counters;
  expect(size).toBeLessThan(1_024);
  expect(others.filter(({ among }) => among === counters).length).toBe(size - 2);
  const again = ids.filter((id) => counters.find(id) === undefined).map((id) => counters.add(id));
  for (const counter of again) expect([counter.isRead, counter.usedTokens]).toEqual([false, 0]);
  for (const counter of again) counter.isRead = true;
  // Each has a row that another had before, and which that does not lead to.
  expect(counters.size).toBe(2_000);
  expect(others.filter(({ among }) => among === counters).length).toBe(size - 2);
});
