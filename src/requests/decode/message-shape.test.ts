// Tests that requests of Anthropic's clients fit the schema, and that values out of range do not.
import { describe, expect, test } from "bun:test";
import { messageCountRequest, messageRequest } from "../../wire/messages.ts";
import { compileRule } from "./compile-rule.ts";
import { findFailure } from "./validation-failure.ts";

const requestRule = compileRule(messageRequest, { members: {} });
const countRule = compileRule(messageCountRequest, { members: {} });

const asked = { model: "tiny", max_tokens: 10, messages: [{ role: "user", content: "Hi" }] };

/** A shortened request of Claude Code 2.1. */
const agent = {
  ...asked,
  messages: [
    { role: "user", content: [{ type: "text", text: "Hi", cache_control: { type: "ephemeral" } }] },
    { role: "system", content: "Agents: none." },
    {
      role: "assistant",
      content: [
        { type: "thinking", thinking: "", signature: "EqQB" },
        { type: "tool_use", id: "toolu_1", name: "Bash", input: { command: "ls" }, caller: { type: "direct" } },
      ],
    },
    { role: "user", content: [{ type: "tool_result", tool_use_id: "toolu_1", content: "a.txt", is_error: false }] },
  ],
  system: [
    { type: "text", text: "x-anthropic-billing-header: cc_version=2.1.330;" },
    { type: "text", text: "You are" },
  ],
  tools: [
    { name: "Bash", description: "Runs", input_schema: { type: "object" }, eager_input_streaming: true },
    { type: "web_search_20250305", name: "web_search", max_uses: 8 },
  ],
  thinking: { type: "adaptive" },
  output_config: { effort: "high" },
  context_management: { edits: [{ type: "clear_thinking_20251015", keep: "all" }] },
  metadata: { user_id: '{"device_id":"a","session_id":"b"}' },
  stream: true,
};

test("accepts an agent's request without losing a member", () => {
  expect(findFailure(requestRule, agent)).toBeUndefined();
  const read: unknown = messageRequest.parse(agent);
  expect(read).toEqual(agent);
});

test("leaves unknown blocks, tools and thinking types to the model server", () => {
  const content = [{ type: "container_upload", file_id: "f" }];
  const thinking = { type: "deep", depth: 3 };
  const body = { ...asked, messages: [{ role: "user", content }], tools: [{ type: "mcp_toolset" }], thinking };
  expect(findFailure(requestRule, body)).toBeUndefined();
});

test("requires a token limit for an answer, and not for a count", () => {
  const { max_tokens: _none, ...prompt } = asked;
  expect(findFailure(requestRule, prompt)).toBeDefined();
  expect(findFailure(countRule, prompt)).toBeUndefined();
});

describe("values out of range", () => {
  test.each([
    { temperature: 1.1 },
    { top_p: -1 },
    { top_k: 0.5 },
    { max_tokens: -1 },
    { messages: [] },
    { messages: [{ role: "user", content: [{ type: "text" }] }] },
    { messages: [{ role: "assistant", content: [{ type: "tool_use", id: "a", name: "b", input: "c" }] }] },
    { thinking: { type: "enabled", budget_tokens: 1000 } },
    { tool_choice: { type: "tool" } },
    { stop_sequences: [""] },
  ])("refuses the out-of-range value %j", (members) => {
    expect(findFailure(requestRule, { ...asked, ...members })).toBeDefined();
  });
});
