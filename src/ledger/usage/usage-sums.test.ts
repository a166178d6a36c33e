// Sums of usage: each record is added to the sums of its own key, whatever batches the records come in.
import { expect, test } from "bun:test";
import { usageBegin } from "../../../tests/support/usage-begin.ts";
import type { UsageEnd } from "../../domain/usage/usage.ts";
import { UsageColumns } from "./usage-columns.ts";
import { UsageSums } from "./usage-sums.ts";

const end: UsageEnd = {
  promptTokens: 7,
  completionTokens: 3,
  estimated: false,
  outcome: "completed",
  errorCode: null,
  nanoUsd: 20,
  capped: false,
  upstream: "one",
  durationMs: 5,
  firstTokenMs: null,
  queueMs: 0,
};

test("adds records to their own key's sum, whatever earlier batches contained", () => {
  const sums = new UsageSums("day");
  const batches = [["a", "b"], ["a", "b", "c"], ["b", "a"], ["c"], ["d", "d", "a"], ["d"]];
  for (const keyIds of batches) {
    sums.add(UsageColumns.of(keyIds.map((keyId) => ({ ...usageBegin, keyId, ...end }))));
  }
  for (const keyId of ["a", "b", "c", "d"]) {
    const count = batches.flat().filter((one) => one === keyId).length;
    const { tokens } = sums.totalOf({
      keyIds: new Set([keyId]),
      environment: usageBegin.environment,
      since: 0,
      until: 4e9,
    });
    expect([keyId, tokens]).toEqual([keyId, count * 10]);
  }
  expect(sums.size).toBe(4);
});

test("includes a sum in a total from the second of its last record on, and in none that ends before its start", () => {
  const sums = new UsageSums("hour");
  sums.add(UsageColumns.of([{ ...usageBegin, at: 7_205, keyId: "a", ...end }]));
  const within = (since: number, until: number) =>
    sums.totalOf({ keyIds: new Set(["a"]), environment: usageBegin.environment, since, until }).requests;
  expect([within(7_205, 9_000), within(7_206, 9_000), within(0, 7_200), within(0, 7_201)]).toEqual([1, 0, 0, 1]);
});

test("adds sums of a version without parts of tokens to present ones", () => {
  const usage = ["a", "b"].map((keyId) => ({ ...usageBegin, keyId, ...end, firstTokenMs: 2 }));
  const reported = { cachedTokens: 5, cacheWriteTokens: 1, reasoningTokens: 2 };
  const sums = new UsageSums("hour");
  sums.add(UsageColumns.of([...usage.map((record) => ({ ...record, parts: reported })), ...usage]));
  const own = new UsageSums("hour");
  own.add(UsageColumns.of(usage.map((record) => ({ ...record, parts: reported }))));
  sums.addText(own.textTakingAway([0, 1]));
  // The two remaining sums, as an earlier version wrote them.
  const before =
    '["acct_1","a","","live","m",-1,-7,-3,-20,0,-1,-2,-2,-3,5,5,0,"acct_1","b","","live","m",-1,-7,-3,-20,0,-1,-2,-2,-3,5,5,0]';
  sums.addText(before);
  for (const sum of [0, 1]) {
    expect(sums.isEmpty(sum)).toBe(true);
    expect(sums.rowAt(sum, "hour").slice(7)).toEqual([...Array(13).fill(0), 5, 5]);
  }
  expect(() => sums.addText(before.replace(",5,5,0]", ",5,5]"))).toThrow();
});

test("adds sums of a newer version without their unknown number", () => {
  const sums = new UsageSums("hour");
  sums.add(UsageColumns.of([{ ...usageBegin, keyId: "a", ...end, firstTokenMs: 2 }]));
  const own = JSON.parse(sums.textTakingAway([0])) as (string | number)[];
  sums.addText(JSON.stringify([...own.slice(0, -3), -17, ...own.slice(-3)]));
  expect(sums.isEmpty(0)).toBe(true);
  expect(sums.rowAt(0, "hour").slice(7)).toEqual([...Array(13).fill(0), 5, 5]);
});

test("adds sums of a version that did not count unpriced requests", () => {
  const record = { ...usageBegin, keyId: "a", ...end, firstTokenMs: 2 };
  const sums = new UsageSums("hour");
  sums.add(UsageColumns.of([record, { ...record, nanoUsd: null }, { ...record, nanoUsd: 0 }]));
  sums.addText('["acct_1","a","","live","m",-1,-7,-3,-20,0,-1,-2,-2,-3,0,0,0,5,5,0]');
  expect(sums.rowAt(0, "hour").slice(7)).toEqual([2, 14, 6, 0, 0, 2, 4, 4, 6, 0, 0, 0, 1, 5, 5]);
});
