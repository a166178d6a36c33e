// Tests that a chat request is read as a conversation without loss, and that members no other format can express are
// refused by name.
import { expect, test } from "bun:test";
import { GatewayError } from "../../../base/errors.ts";
import { readChatRequest } from "./read-request.ts";

type Json = Record<string, unknown>;
const hello = [{ role: "user", content: "Hello" }];
const ephemeral = { type: "ephemeral" };

function read(body: Json) {
  return readChatRequest({ model: "m", messages: hello, ...body });
}

function turnsOf(...messages: Json[]) {
  return read({ messages }).turns;
}

function refusal(body: Json): unknown {
  try {
    read(body);
  } catch (error) {
    if (error instanceof GatewayError && error.code === "invalid_request") return error.param;
    throw error;
  }
  return "taken";
}

test("reads a minimal request as a conversation with one turn", () => {
  expect(read({})).toEqual({
    turns: [{ role: "user", parts: [{ type: "text", text: "Hello" }], place: "messages[0]" }],
    tools: [],
    sampling: {},
    stream: false,
    hints: {},
    others: {},
  });
});

test("reads all roles with their parts and places", () => {
  const turns = turnsOf(
    { role: "system", content: "Be brief." },
    { role: "developer", content: [{ type: "text", text: "Be kind.", cache_control: ephemeral }] },
    {
      role: "user",
      name: "ann",
      content: [
        { type: "text", text: "See:" },
        { type: "image_url", image_url: { url: "data:image/png;base64,AAAA", detail: "low" } },
        { type: "image_url", image_url: { url: "https://example.com/a.png" }, cache_control: ephemeral },
        { type: "input_audio", input_audio: { data: "BBBB", format: "wav" } },
        { type: "file", file: { filename: "a.pdf", file_data: "data:application/pdf;base64,CCCC" } },
        { type: "file", file: { file_id: "file-1" } },
      ],
    },
    {
      role: "assistant",
      content: [
        { type: "text", text: "No: " },
        { type: "refusal", refusal: "I will not." },
      ],
    },
  );
  const at = (part: number) => `messages[2].content[${part}]`;
  expect(turns).toEqual([
    { role: "system", parts: [{ type: "text", text: "Be brief." }], place: "messages[0]" },
    { role: "developer", parts: [{ type: "text", text: "Be kind.", cache: ephemeral }], place: "messages[1]" },
    {
      role: "user",
      name: "ann",
      place: "messages[2]",
      parts: [
        { type: "text", text: "See:" },
        { type: "image", source: { kind: "data", mediaType: "image/png", data: "AAAA" }, detail: "low", place: at(1) },
        { type: "image", source: { kind: "url", url: "https://example.com/a.png" }, place: at(2), cache: ephemeral },
        { type: "audio", data: "BBBB", format: "wav", place: at(3) },
        {
          type: "file",
          source: { kind: "data", mediaType: "application/pdf", data: "CCCC" },
          name: "a.pdf",
          place: at(4),
        },
        { type: "file", source: { kind: "id", id: "file-1" }, place: at(5) },
      ],
    },
    {
      role: "assistant",
      parts: [
        { type: "text", text: "No: " },
        { type: "refusal", text: "I will not." },
      ],
      place: "messages[3]",
    },
  ]);
});

test("reads calls and results of functions, custom tools and legacy functions", () => {
  const turns = turnsOf(
    {
      role: "assistant",
      content: null,
      tool_calls: [
        { id: "a", type: "function", function: { name: "f", arguments: "{}" } },
        { id: "b", type: "custom", custom: { name: "g", input: "SELECT 1" } },
      ],
    },
    { role: "tool", tool_call_id: "b", content: [{ type: "text", text: "1" }], cache_control: ephemeral },
    { role: "tool", tool_call_id: "a", content: "2" },
    { role: "assistant", content: null, function_call: { name: "h", arguments: '{"x":1}' } },
    { role: "function", name: "h", content: "3" },
  );
  expect(turns).toMatchObject([
    {
      parts: [
        { type: "call", callId: "a", kind: "function", name: "f", input: "{}" },
        { type: "call", callId: "b", kind: "custom", name: "g", input: "SELECT 1" },
      ],
    },
    { role: "tool", callId: "b", kind: "custom", parts: [{ type: "text", text: "1" }], cache: ephemeral },
    { role: "tool", callId: "a", kind: "function", parts: [{ type: "text", text: "2" }] },
    { parts: [{ type: "call", callId: "call_of_h_in_3", name: "h", input: '{"x":1}' }] },
    { role: "tool", callId: "call_of_h_in_3", parts: [{ type: "text", text: "3" }] },
  ]);
});

test("reads reasoning and proofs as DeepSeek, vLLM, OpenRouter, LiteLLM and Mistral write them", () => {
  const thoughts = (message: Json): unknown =>
    turnsOf({ role: "assistant", content: "Yes", ...message })[0]?.parts.slice(0, -1);
  const plain = { type: "reasoning", text: "Hm.", isSummary: false };
  const signed = { ...plain, proof: { kind: "signature", data: "sig" } };
  expect(thoughts({ reasoning_content: "Hm." })).toEqual([plain]);
  expect(thoughts({ reasoning: "Hm.", reasoning_content: "Hm." })).toEqual([plain]);
  expect(
    thoughts({ reasoning_content: "Hm.", thinking_blocks: [{ type: "thinking", thinking: "Hm.", signature: "sig" }] }),
  ).toEqual([signed]);
  const format = "anthropic-claude-v1";
  // Some clients store the pieces of a stream without joining them.
  const pieces = [
    { type: "reasoning.text", text: "H", format, index: 0 },
    { type: "reasoning.text", text: "m.", format, index: 0 },
    { type: "reasoning.text", signature: "sig", format, index: 0 },
    { type: "reasoning.encrypted", data: "secret", format, index: 1 },
  ];
  const redacted = { type: "reasoning", text: "", isSummary: false, proof: { kind: "redacted", data: "secret" } };
  expect(thoughts({ reasoning: "Hm.", reasoning_details: pieces })).toEqual([signed, redacted]);
  const openai = [
    { type: "reasoning.summary", summary: "Hm.", format: "openai-responses-v1" },
    { type: "reasoning.encrypted", data: "e", format: "openai-responses-v1" },
  ];
  expect(thoughts({ reasoning_details: openai })).toEqual([
    { type: "reasoning", text: "Hm.", isSummary: true, proof: { kind: "encrypted", data: "e" } },
  ]);
  const mistral = {
    content: [
      { type: "thinking", thinking: [{ type: "text", text: "Hm." }] },
      { type: "text", text: "Yes" },
    ],
  };
  expect<unknown>(turnsOf({ role: "assistant", ...mistral })[0]?.parts).toEqual([plain, { type: "text", text: "Yes" }]);
});

test("reads tools, choices and legacy functions", () => {
  const parameters = { type: "object" };
  const tools = [
    { type: "function", function: { name: "f", description: "F", parameters, strict: true }, cache_control: ephemeral },
    {
      type: "custom",
      custom: { name: "g", format: { type: "grammar", grammar: { syntax: "lark", definition: "x" } } },
    },
  ];
  expect(read({ tools, parallel_tool_calls: false })).toMatchObject({
    tools: [
      { kind: "function", name: "f", description: "F", parameters, strict: true, cache: ephemeral, place: "tools[0]" },
      { kind: "custom", name: "g", format: { type: "grammar", syntax: "lark", definition: "x" }, place: "tools[1]" },
    ],
    parallelCalls: false,
  });
  const choice = (tool_choice: unknown) => read({ tools, tool_choice }).toolChoice;
  expect(choice("required")).toEqual({ type: "required" });
  expect(choice("any")).toEqual({ type: "required" });
  expect(choice({ type: "function", function: { name: "f" } })).toEqual({ type: "tool", kind: "function", name: "f" });
  expect(choice({ type: "custom", custom: { name: "g" } })).toEqual({ type: "tool", kind: "custom", name: "g" });
  const allowed_tools = { mode: "required", tools: [{ type: "custom", custom: { name: "g" } }] };
  const allowed = read({ tools, tool_choice: { type: "allowed_tools", allowed_tools } });
  expect(allowed.tools.map(({ name }) => name)).toEqual(["g"]);
  expect(allowed.toolChoice).toEqual({ type: "required" });
  expect(read({ functions: [{ name: "f", parameters }], function_call: { name: "f" } })).toMatchObject({
    tools: [{ kind: "function", name: "f", parameters, place: "functions[0]" }],
    toolChoice: { type: "tool", kind: "function", name: "f" },
    parallelCalls: false,
  });
});

test("reads figures, formats and hints; the newer limit counts, and a limit of none is none", () => {
  const read1 = read({
    ...{ max_tokens: 5, max_completion_tokens: 7, temperature: 0, top_p: 0.5, top_k: 3, n: 2, seed: 1, stop: "###" },
    ...{ frequency_penalty: 1, presence_penalty: -1, logit_bias: { "5": 1 }, logprobs: true, top_logprobs: 2 },
    ...{ verbosity: "low", stream: true, stream_options: { include_usage: true }, store: true },
    ...{ user: "u", service_tier: "flex", prompt_cache_key: "k", metadata: { a: "b" }, safety_identifier: "s" },
    ...{ min_p: 0.1, prediction: { type: "content", content: "x" }, modalities: ["text"], best_of: 1, seen: null },
    response_format: { type: "json_schema", json_schema: { name: "n", schema: { type: "object" }, strict: true } },
  });
  expect(read1).toMatchObject({
    maxTokens: 7,
    choices: 2,
    stream: true,
    output: { type: "schema", name: "n", schema: { type: "object" }, strict: true },
    hints: { user: "u", serviceTier: "flex", promptCacheKey: "k", metadata: { a: "b" } },
  });
  expect(read1.sampling).toEqual({
    ...{ temperature: 0, topP: 0.5, topK: 3, frequencyPenalty: 1, presencePenalty: -1, seed: 1, stop: ["###"] },
    ...{ logitBias: { "5": 1 }, logprobs: 2, verbosity: "low" },
  });
  expect(read1.others).toEqual({ min_p: 0.1, prediction: { type: "content", content: "x" } });
  expect(read({ max_tokens: -1 }).maxTokens).toBeUndefined();
  expect(read({ cache_control: ephemeral })).toMatchObject({ cache: ephemeral, others: {} });
  expect(read({ logprobs: false, top_logprobs: 2, stop: "" }).sampling).toEqual({});
  expect(read({ response_format: { type: "json_object" } }).output).toEqual({ type: "json" });
});

test("reads thinking options of OpenAI, OpenRouter, DeepSeek and templates", () => {
  expect(read({ reasoning_effort: "none" }).thinking).toEqual({ enabled: false, effort: "none" });
  expect(read({ reasoning_effort: "high" }).thinking).toEqual({ effort: "high" });
  expect(read({ reasoning: { max_tokens: 99, exclude: true } }).thinking).toEqual({ budget: 99, shown: "omitted" });
  expect(read({ thinking: { type: "enabled", budget_tokens: 5 } }).thinking).toEqual({ enabled: true, budget: 5 });
  const reported = read({ chat_template_kwargs: { enable_thinking: false, tone: "dry" } });
  expect(reported.thinking).toEqual({ enabled: false });
  expect(reported.others).toEqual({ chat_template_kwargs: { tone: "dry" } });
});

test("refuses by name each member that changes the answer and cannot be expressed", () => {
  expect(refusal({ modalities: ["text", "audio"], audio: { voice: "a" } })).toBe("modalities");
  expect(refusal({ web_search_options: {} })).toBe("web_search_options");
  expect(refusal({ tools: [{ type: "web_search" }] })).toBe("tools[0].type");
  expect(refusal({ tools: [{ type: "function" }] })).toBe("tools[0].function");
  expect(refusal({ tool_choice: { type: "mcp" } })).toBe("tool_choice");
  expect(refusal({ response_format: { type: "regex" } })).toBe("response_format.type");
  expect(refusal({ messages: [{ role: "narrator", content: "x" }] })).toBe("messages[0].role");
  const video = [{ role: "user", content: [{ type: "video_url", video_url: {} }] }];
  expect(refusal({ messages: video })).toBe("messages[0].content[0]");
  expect(refusal({ messages: [{ role: "assistant", audio: { id: "a" } }] })).toBe("messages[0].audio");
  expect(refusal({ messages: [{ role: "assistant", tool_calls: [{ id: "a" }] }] })).toBe("messages[0].tool_calls[0]");
});
