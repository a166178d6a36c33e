// Tests that each OpenAI model gets an effort that it accepts, because OpenAI refuses other efforts.
import { expect, test } from "bun:test";
import { refusesReasoning, takenEffort } from "./thinking-models.ts";

test.each<[string, string[]]>([
  ["o3", ["low", "low", "low", "medium", "high", "high", "high"]],
  ["gpt-5", ["minimal", "minimal", "low", "medium", "high", "high", "high"]],
  ["gpt-5-mini-2025-08-07", ["minimal", "minimal", "low", "medium", "high", "high", "high"]],
  ["gpt-5-pro", ["high", "high", "high", "high", "high", "high", "high"]],
  ["gpt-5-codex", ["low", "low", "low", "medium", "high", "high", "high"]],
  ["gpt-5.1", ["none", "low", "low", "medium", "high", "high", "high"]],
  ["gpt-5.1-codex-max", ["low", "low", "low", "medium", "high", "xhigh", "xhigh"]],
  ["openai/gpt-5.2", ["none", "low", "low", "medium", "high", "xhigh", "xhigh"]],
  ["gpt-5.2-pro", ["medium", "medium", "medium", "medium", "high", "xhigh", "xhigh"]],
  ["gpt-5.6-terra", ["none", "low", "low", "medium", "high", "xhigh", "xhigh"]],
  ["gpt-6-astra", ["none", "low", "low", "medium", "high", "xhigh", "xhigh"]],
  ["qwen3", ["none", "minimal", "low", "medium", "high", "xhigh", "max"]],
])("requests an effort that the model accepts: %s", (model, expected) => {
  const all = ["none", "minimal", "low", "medium", "high", "xhigh", "max"];
  expect(all.map((effort) => takenEffort(effort, model))).toEqual(expected);
});

test("omits reasoning options only for models without adjustable reasoning", () => {
  const fixed = ["gpt-4o", "gpt-4.1-mini", "chatgpt-4o-latest", "gpt-5-chat-latest", "openai/gpt-5.2-chat"];
  expect(fixed.filter(refusesReasoning)).toEqual(fixed);
  expect(["gpt-5", "gpt-5.4-mini", "o4-mini", "gpt-oss-120b", "gpt-40"].filter(refusesReasoning)).toEqual([]);
});
