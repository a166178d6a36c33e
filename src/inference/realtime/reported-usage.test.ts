import { expect, test } from "bun:test";
import { reportedUsage } from "./reported-usage.ts";

test("counts text, audio, image and cached tokens apart, each once", () => {
  expect(
    reportedUsage({
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

test("estimates the tokens of a transcript from its reported duration as OpenAI counts them", () => {
  expect(reportedUsage({ type: "duration", seconds: 4.25 })).toEqual({
    ...{ promptTokens: 43, completionTokens: 0, estimated: true },
    parts: { cachedTokens: 0, cacheWriteTokens: 0, reasoningTokens: 0, details: { inputAudioTokens: 43 } },
  });
});

test("reads no usage from missing or invalid reports", () => {
  const lengths = ["x", -1, Number.NaN, Number.POSITIVE_INFINITY, 1e6 + 1].map((seconds) => {
    return { type: "duration", seconds };
  });
  for (const usage of [undefined, null, [], {}, { input_tokens: -1 }, ...lengths]) {
    expect(reportedUsage(usage)).toBeUndefined();
  }
});
