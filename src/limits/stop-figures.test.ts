// The figures of quotas that end answers: the least that is left, by the quota with the most requests under way.
import { expect, test } from "bun:test";
import { windowQuota } from "../../tests/support/windows-contract.ts";
import { stopFigures } from "./stop-figures.ts";

test("takes the highest request count of all quotas, the lowest remainder, and only hard-stop units", () => {
  const day = { per: "day", window: "calendar" } as const;
  const stops = { tokens: true, nanoUsd: false };
  const wide = windowQuota({ unit: "tokens", amount: 1_000, ...day }, { id: "wide", stops });
  const narrow = windowQuota({ unit: "tokens", amount: 100, ...day }, { id: "narrow", stops });
  const money = windowQuota({ unit: "usd", amount: 1, ...day }, { id: "money", stops });
  const figures = { period: undefined, usedRequests: 0, usedNanoUsd: 0, heldNanoUsd: 0, isRead: true };
  const left = stopFigures([
    { quota: wide, counter: { ...figures, usedTokens: 900, heldTokens: 40, leases: 5 } },
    { quota: narrow, counter: { ...figures, usedTokens: 20, heldTokens: 10, leases: 2 } },
    { quota: money, counter: { ...figures, usedTokens: 0, heldTokens: 0, leases: 1 } },
  ]);
  expect(left).toMatchObject({ tokens: 60, nanoUsd: Number.POSITIVE_INFINITY, running: 5 });
  expect(left.tightest).toMatchObject({ quota: { id: "wide" }, unit: "tokens" });
});
