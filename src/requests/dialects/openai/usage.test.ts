// Tests which token usage counts as reported, and how usage is written.
import { describe, expect, test } from "bun:test";
import { dialects } from "../dialects.ts";
import { reportedUsage, usageObject } from "./usage.ts";

describe("reported usage", () => {
  test("reads whole, non-negative numbers, and no completion for an embedding", () => {
    expect(reportedUsage({ prompt_tokens: 7, completion_tokens: 2, total_tokens: 9 })).toEqual({
      promptTokens: 7,
      completionTokens: 2,
      estimated: false,
    });
    expect(reportedUsage({ prompt_tokens: 0, completion_tokens: 0 })?.promptTokens).toBe(0);
    expect(reportedUsage({ prompt_tokens: 7, total_tokens: 7 })?.completionTokens).toBe(0);
    expect(reportedUsage({ prompt_tokens: 7, completion_tokens: null })?.completionTokens).toBe(0);
  });

  test("counts reasoning beside the answer as far as the total shows it, and none for an embedding", () => {
    const google = { prompt_tokens: 20, completion_tokens: 424, total_tokens: 1_016 };
    const thought = { cachedTokens: 0, cacheWriteTokens: 0, reasoningTokens: 572, details: undefined };
    expect(reportedUsage(google)).toMatchObject({ completionTokens: 996, parts: thought });
    expect(reportedUsage({ prompt_tokens: 20, total_tokens: 592 })).toMatchObject({
      ...{ completionTokens: 572, parts: thought },
    });
    const within = { ...google, total_tokens: 444, completion_tokens_details: { reasoning_tokens: 400 } };
    expect(reportedUsage(within)).toMatchObject({ completionTokens: 424, parts: { reasoningTokens: 400 } });
    const embedded = reportedUsage({ prompt_tokens: 20, total_tokens: 592 }, undefined, false);
    expect(embedded).toMatchObject({ completionTokens: 0, parts: undefined });
  });

  test("marks reported usage as estimated if the report says so", () => {
    const usage = { prompt_tokens: 7, completion_tokens: 2, total_tokens: 9, estimated: true };
    expect(reportedUsage(usage)?.estimated).toBe(true);
    expect(reportedUsage({ ...usage, estimated: "yes" })?.estimated).toBe(false);
  });

  test("reads no usage from any other value", () => {
    const wrong: unknown[] = [
      undefined,
      null,
      7,
      "7",
      [],
      {},
      { prompt_tokens: null },
      { prompt_tokens: "7", completion_tokens: 2 },
      { prompt_tokens: 7, completion_tokens: "2" },
      { prompt_tokens: -1, completion_tokens: 2 },
      { prompt_tokens: 1.5, completion_tokens: 2 },
      { prompt_tokens: 7, completion_tokens: -2 },
      { prompt_tokens: Number.NaN, completion_tokens: 2 },
      { prompt_tokens: Number.POSITIVE_INFINITY, completion_tokens: 2 },
      { prompt_tokens: 2 ** 53, completion_tokens: 2 },
      { completion_tokens: 2 },
    ];
    for (const value of wrong) expect([value, reportedUsage(value)]).toEqual([value, undefined]);
  });
});

describe("the usage object", () => {
  test("writes the sum and estimates of usage, and no completion for embeddings", () => {
    const usage = { promptTokens: 7, completionTokens: 2, estimated: false };
    expect(usageObject(usage, dialects.chat)).toEqual({ prompt_tokens: 7, completion_tokens: 2, total_tokens: 9 });
    expect(usageObject({ ...usage, estimated: true }, dialects.completion)).toMatchObject({ estimated: true });
    expect(usageObject({ ...usage, completionTokens: 0 }, dialects.embedding)).toEqual({
      prompt_tokens: 7,
      total_tokens: 7,
    });
  });
});
