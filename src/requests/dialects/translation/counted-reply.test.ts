// What is told of usage on the way through: the latest of each figure, and no more of a part than of the whole.
import { expect, test } from "bun:test";
import { CountedReply, usageOf } from "./counted-reply.ts";

test("the parts of a prompt that a client is told are no more than the prompt", () => {
  const told = {
    promptTokens: 9_000,
    completionTokens: 10,
    cachedTokens: 5_000,
    cacheWriteTokens: 4_000,
    reasoningTokens: 9,
  };
  expect(usageOf({ promptTokens: 6_000, completionTokens: 5, estimated: true }, told)).toEqual({
    ...{ promptTokens: 6_000, completionTokens: 5 },
    ...{ cachedTokens: 5_000, cacheWriteTokens: 1_000, reasoningTokens: 5 },
  });
});

test("what a stream begins with is believed before its end where it tells of a cache, and not where it may be of nothing yet", () => {
  const begun = new CountedReply();
  begun.usage({ promptTokens: 1, completionTokens: 0 });
  expect(begun.reported).toBeUndefined();
  begun.usage({ promptTokens: 9, cachedTokens: 8 });
  expect(begun.reported).toMatchObject({ promptTokens: 9, completionTokens: 0, parts: { cachedTokens: 8 } });
  // The last figure counts, also one of nothing.
  begun.usage({ cachedTokens: 0, completionTokens: 7 });
  begun.end({ reason: "stop" });
  expect(begun.reported).toMatchObject({ promptTokens: 9, completionTokens: 7, parts: undefined });
});
