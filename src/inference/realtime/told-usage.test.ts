import { expect, test } from "bun:test";
import { toldUsage } from "./told-usage.ts";

test("text, audio, images and what came from the cache are told apart, each token once", () => {
  expect(
    toldUsage({
      ...{ total_tokens: 253, input_tokens: 132, output_tokens: 121 },
      input_token_details: {
        ...{ text_tokens: 119, audio_tokens: 13, image_tokens: 0, cached_tokens: 64 },
        cached_tokens_details: { text_tokens: 59, audio_tokens: 5, image_tokens: 0 },
      },
      output_token_details: { text_tokens: 30, audio_tokens: 91 },
    }),
  ).toEqual({
    ...{ promptTokens: 132, completionTokens: 121, estimated: false },
    parts: {
      ...{ cachedTokens: 64, cacheWriteTokens: 0, reasoningTokens: 0 },
      details: { inputAudioTokens: 8, outputAudioTokens: 91 },
    },
  });
});

test("a transcript that is told by its length has the tokens that OpenAI would count for it, as an estimate", () => {
  expect(toldUsage({ type: "duration", seconds: 4.25 })).toEqual({
    ...{ promptTokens: 43, completionTokens: 0, estimated: true },
    parts: { cachedTokens: 0, cacheWriteTokens: 0, reasoningTokens: 0, details: { inputAudioTokens: 43 } },
  });
});

test("what tells no usage, or none that can be, tells nothing", () => {
  const lengths = ["x", -1, Number.NaN, Number.POSITIVE_INFINITY, 1e6 + 1].map((seconds) => {
    return { type: "duration", seconds };
  });
  for (const usage of [undefined, null, [], {}, { input_tokens: -1 }, ...lengths]) {
    expect(toldUsage(usage)).toBeUndefined();
  }
});
