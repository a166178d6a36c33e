// Tests token estimates, which are never zero for a text.
import { describe, expect, test } from "bun:test";
import { estimatePromptTokens, estimateTokens } from "./prompt-tokens.ts";

describe("estimates of prompt tokens", () => {
  test("counts nothing as zero, and the shortest text as one token", () => {
    expect(estimateTokens(0)).toBe(0);
    expect(estimateTokens(1)).toBe(1);
    expect(estimateTokens(4)).toBe(1);
    expect(estimateTokens(5)).toBe(2);
  });

  test("counts bytes, so that languages with long characters are not underestimated", () => {
    expect(estimatePromptTokens("prompt", { prompt: "日本語日本語日本語日本語" })).toBe(9);
  });

  test("counts texts in all forms of prompts", () => {
    expect(estimatePromptTokens("prompt", { prompt: "12345678" })).toBe(2);
    expect(estimatePromptTokens("prompt", { prompt: ["1234", "1234"] })).toBe(2);
    expect(estimatePromptTokens("prompt", { prompt: [1, 2, 3] })).toBe(3);
    expect(estimatePromptTokens("input", { input: [[1, 2], [3]] })).toBe(3);
    expect(estimatePromptTokens("messages", { messages: [{ role: "user", content: "1234" }] })).toBe(1);
    const parts = [
      { type: "text", text: "12345678" },
      { type: "image_url", image_url: { url: "data:..." } },
    ];
    expect(
      estimatePromptTokens("messages", {
        messages: [
          { role: "user", content: parts },
          { role: "user", content: "1" },
        ],
      }),
    ).toBe(1_003);
  });

  test("counts tools, schemas and earlier calls in a prompt", () => {
    const tool = { type: "function", function: { name: "f", description: "d".repeat(4_000) } };
    const long = (request: Record<string, unknown>) => estimatePromptTokens("messages", { messages: [], ...request });
    expect(long({ tools: [tool] })).toBeGreaterThan(1_000);
    expect(long({ response_format: { type: "json_schema", json_schema: { schema: tool } } })).toBeGreaterThan(1_000);
    expect(long({ messages: [{ role: "assistant", tool_calls: [tool] }] })).toBeGreaterThan(1_000);
    const thought = "t".repeat(4_000);
    expect(long({ messages: [{ role: "assistant", content: "", reasoning_content: thought }] })).toBeGreaterThan(1_000);
    const part = { type: "thinking", thinking: thought };
    expect(long({ messages: [{ role: "assistant", content: [part] }] })).toBeGreaterThan(1_000);
    expect(long({ user: "u".repeat(4_000), metadata: { a: "b" } })).toBe(0);
  });

  test("counts only the member that the model reads", () => {
    const beside = { messages: [null], prompt: "12345678", input: "1234" };
    expect(estimatePromptTokens("prompt", beside)).toBe(2);
    expect(estimatePromptTokens("input", beside)).toBe(1);
  });

  test("survives any request", () => {
    for (const messages of [null, undefined, [], [null], [{}], [{ content: null }], [{ content: [null, 7, {}] }]]) {
      expect(Number.isInteger(estimatePromptTokens("messages", { messages }))).toBe(true);
    }
    expect(estimatePromptTokens("messages", {})).toBe(0);
  });
});
