// Token usage: what counts as reported, and estimates that are never zero for a text.
import { describe, expect, test } from "bun:test";
import { estimatePromptTokens, estimateTokens, reportedUsage, usageObject } from "./usage.ts";

describe("reported usage", () => {
  test("whole, non-negative numbers count; an embedding has no completion", () => {
    expect(reportedUsage({ prompt_tokens: 7, completion_tokens: 2, total_tokens: 9 })).toEqual({
      promptTokens: 7,
      completionTokens: 2,
      estimated: false,
    });
    expect(reportedUsage({ prompt_tokens: 0, completion_tokens: 0 })?.promptTokens).toBe(0);
    expect(reportedUsage({ prompt_tokens: 7, total_tokens: 7 })?.completionTokens).toBe(0);
    expect(reportedUsage({ prompt_tokens: 7, completion_tokens: null })?.completionTokens).toBe(0);
  });

  test("what says that it is estimated is", () => {
    const usage = { prompt_tokens: 7, completion_tokens: 2, total_tokens: 9, estimated: true };
    expect(reportedUsage(usage)?.estimated).toBe(true);
    expect(reportedUsage({ ...usage, estimated: "yes" })?.estimated).toBe(false);
  });

  test("anything else is no usage", () => {
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
  test("sums up, says when it is an estimate, and leaves completions out of embeddings", () => {
    const usage = { promptTokens: 7, completionTokens: 2, estimated: false };
    expect(usageObject(usage, "chat")).toEqual({ prompt_tokens: 7, completion_tokens: 2, total_tokens: 9 });
    expect(usageObject({ ...usage, estimated: true }, "completion")).toMatchObject({ estimated: true });
    expect(usageObject({ ...usage, completionTokens: 0 }, "embedding")).toEqual({ prompt_tokens: 7, total_tokens: 7 });
  });
});

describe("estimates", () => {
  test("nothing is nothing, and the shortest text is one token", () => {
    expect(estimateTokens(0)).toBe(0);
    expect(estimateTokens(1)).toBe(1);
    expect(estimateTokens(4)).toBe(1);
    expect(estimateTokens(5)).toBe(2);
  });

  test("count bytes, so that languages with long characters are not underestimated", () => {
    expect(estimatePromptTokens("completion", { prompt: "日本語日本語日本語日本語" })).toBe(9);
  });

  test("reach texts in all forms of prompts", () => {
    expect(estimatePromptTokens("completion", { prompt: "12345678" })).toBe(2);
    expect(estimatePromptTokens("completion", { prompt: ["1234", "1234"] })).toBe(2);
    expect(estimatePromptTokens("completion", { prompt: [1, 2, 3] })).toBe(3);
    expect(estimatePromptTokens("embedding", { input: [[1, 2], [3]] })).toBe(3);
    expect(estimatePromptTokens("chat", { messages: [{ role: "user", content: "1234" }] })).toBe(1);
    const parts = [
      { type: "text", text: "12345678" },
      { type: "image_url", image_url: { url: "data:..." } },
    ];
    expect(
      estimatePromptTokens("chat", {
        messages: [
          { role: "user", content: parts },
          { role: "user", content: "1" },
        ],
      }),
    ).toBe(1_003);
  });

  test("reach whatever else is put into a prompt: tools, schemas, calls of before", () => {
    const tool = { type: "function", function: { name: "f", description: "d".repeat(4_000) } };
    const long = (request: Record<string, unknown>) => estimatePromptTokens("chat", { messages: [], ...request });
    expect(long({ tools: [tool] })).toBeGreaterThan(1_000);
    expect(long({ response_format: { type: "json_schema", json_schema: { schema: tool } } })).toBeGreaterThan(1_000);
    expect(long({ messages: [{ role: "assistant", tool_calls: [tool] }] })).toBeGreaterThan(1_000);
    expect(long({ user: "u".repeat(4_000), metadata: { a: "b" } })).toBe(0);
  });

  test("are of the member that the model is shown, whatever stands beside it", () => {
    const beside = { messages: [null], prompt: "12345678", input: "1234" };
    expect(estimatePromptTokens("completion", beside)).toBe(2);
    expect(estimatePromptTokens("embedding", beside)).toBe(1);
  });

  test("survive whatever a request may hold", () => {
    for (const messages of [null, undefined, [], [null], [{}], [{ content: null }], [{ content: [null, 7, {}] }]]) {
      expect(Number.isInteger(estimatePromptTokens("chat", { messages }))).toBe(true);
    }
    expect(estimatePromptTokens("chat", {})).toBe(0);
  });
});
