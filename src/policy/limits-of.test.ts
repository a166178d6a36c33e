// Tests that a key's quotas that can end answers are separate from its other quotas.
import { expect, test } from "bun:test";
import type { QuotaRule } from "../domain/limits/quota-rules.ts";
import { windowsOfKey } from "./limits-of.ts";

const daily = { per: "day", window: "calendar" } as const;
const key = { id: "key_a", kind: "key", accountId: "acct_a", environment: "live", limitId: "key_a" } as const;

test("separates hard-stop quotas of a window from others, each with its own amounts", () => {
  const quotas: QuotaRule[] = [
    { ...daily, unit: "tokens", amount: 1_000 },
    { ...daily, unit: "requests", amount: 7 },
    { ...daily, unit: "usd", amount: 5, hardStop: true },
  ];
  const windows = windowsOfKey({ ...key, quotas });
  expect(windows).toMatchObject([
    { tokens: 1_000, requests: 7, nanoUsd: null },
    { tokens: null, requests: null, nanoUsd: 5e9, stops: { tokens: false, nanoUsd: true } },
  ]);
  expect(windows[0]?.stops).toBeUndefined();
  expect(windows[0]?.id).not.toBe(windows[1]?.id as string);
});
