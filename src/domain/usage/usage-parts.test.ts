// Parts of usage: the parts of several model calls are added up, each figure separately.
import { expect, test } from "bun:test";
import { partsTogether } from "./usage-parts.ts";

test("adds up usage parts of several turns, and keeps parts of only one", () => {
  const first = { cachedTokens: 1, cacheWriteTokens: 2, reasoningTokens: 3, details: { searches: 4, images: 1 } };
  const second = { cachedTokens: 10, cacheWriteTokens: 20, reasoningTokens: 30, details: { searches: 40, seconds: 5 } };
  expect(partsTogether([first, second])).toEqual({
    ...{ cachedTokens: 11, cacheWriteTokens: 22, reasoningTokens: 33 },
    details: { searches: 44, images: 1, seconds: 5 },
  });
  expect([partsTogether([]), partsTogether([first])]).toEqual([undefined, first]);
});
