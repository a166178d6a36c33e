// Tests the usage that a reply reports: the latest of each figure, and no part above its whole.
import { expect, test } from "bun:test";
import { CountedReply, usageOf } from "./counted-reply.ts";

test("limits the reported parts of a prompt to the prompt", () => {
  const reported = {
    promptTokens: 9_000,
    completionTokens: 10,
    cachedTokens: 5_000,
    cacheWriteTokens: 4_000,
    reasoningTokens: 9,
  };
  expect(usageOf({ promptTokens: 6_000, completionTokens: 5, estimated: true }, reported)).toEqual({
    ...{ promptTokens: 6_000, completionTokens: 5 },
    ...{ cachedTokens: 5_000, cacheWriteTokens: 1_000, reasoningTokens: 5 },
  });
});

test("accepts first usage figures if they report cached tokens, and not if they may be placeholders", () => {
  const begun = new CountedReply();
  begun.usage({ promptTokens: 1, completionTokens: 0 });
  expect(begun.reported).toBeUndefined();
  begun.usage({ promptTokens: 9, cachedTokens: 8 });
  expect(begun.reported).toMatchObject({ promptTokens: 9, completionTokens: 0, parts: { cachedTokens: 8 } });
  // The last figure counts, even if it is zero.
  begun.usage({ cachedTokens: 0, completionTokens: 7 });
  begun.end({ reason: "stop" });
  expect(begun.reported).toMatchObject({ promptTokens: 9, completionTokens: 7, parts: undefined });
});
