// Sums of usage: each record is added to the sums of its own key, in whatever batches records come.
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

test("records are added to their own key's sum, whatever the batches before had", () => {
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
