// Tests that a conversation becomes a chat request that local servers and their templates accept, and that every loss
// is reported.
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { GatewayError } from "../../../base/errors.ts";
import type { Conversation, ConversationMessage, Part, Thinking, Tool } from "../conversation/conversation.ts";
import { readChatRequest } from "./read-request.ts";
import { writeChatRequest } from "./write-request.ts";

type Json = Record<string, unknown>;
const text = (value: string) => [{ type: "text" as const, text: value }];
const user: ConversationMessage = { role: "user", parts: text("Hello"), place: "input[0]" };
const parameters = { type: "object", properties: { x: { type: "string" } } };
const search: Tool = { kind: "function", name: "search", namespace: "web", parameters, place: "tools[0]" };
const patch: Tool = { kind: "custom", name: "patch", place: "tools[1]" };

function write(more: Partial<Conversation>, model = "qwen3", host?: string) {
  const conversation = { turns: [user], tools: [], sampling: {}, stream: false, hints: {}, others: {}, ...more };
  const { body, ...rest } = writeChatRequest(conversation, model, host);
  return { ...rest, body: JSON.parse(body) as Json };
}

function messagesOf(...turns: ConversationMessage[]): unknown {
  return write({ turns }).body["messages"];
}

function refusal(more: Partial<Conversation>): unknown {
  try {
    write(more);
  } catch (error) {
    if (error instanceof GatewayError && error.code === "invalid_request") return error.param;
    throw error;
  }
  return "taken";
}

test("writes a minimal conversation as a model and its messages", () => {
  expect(write({})).toEqual({
    body: { model: "qwen3", messages: [{ role: "user", content: "Hello" }] },
    leftOut: [],
    names: new Map(),
  });
});

test("joins leading instructions into one system message, and puts later ones into the next user message", () => {
  const system = (role: "system" | "developer", value: string): ConversationMessage => ({
    role,
    parts: text(value),
    place: "input[0]",
  });
  const turns = [system("system", "One."), system("developer", "Two."), user, system("developer", "Three."), user];
  expect(
    messagesOf(...turns, { role: "assistant", parts: text("Yes"), place: "p" }, system("system", "Four.")),
  ).toEqual([
    { role: "system", content: "One.\n\nTwo." },
    {
      role: "user",
      content: [...text("Hello"), ...text("\n\n<system>\nThree.\n</system>"), ...text("\n\nHello")],
    },
    { role: "assistant", content: "Yes" },
    { role: "user", content: "<system>\nFour.\n</system>" },
  ]);
});

test("joins consecutive user turns as paragraphs, and keeps the parts of one adjacent", () => {
  const parts = [...text("One, "), ...text("two.")];
  expect(messagesOf({ role: "user", parts, place: "a" }, user)).toEqual([
    { role: "user", content: [...text("One, "), ...text("two."), ...text("\n\nHello")] },
  ]);
});

test("joins assistant turns with reasoning and calls, followed directly by their results", () => {
  const turns: ConversationMessage[] = [
    user,
    { role: "assistant", parts: [{ type: "reasoning", text: "Hm.", isSummary: false }], place: "a" },
    { role: "assistant", parts: [...text("I "), ...text("look.")], place: "b" },
    {
      role: "assistant",
      place: "c",
      parts: [
        { type: "call", callId: "1", kind: "function", name: "search", namespace: "web", input: '{"x":"y"}' },
        { type: "call", callId: "2", kind: "custom", name: "patch", input: "+a" },
        { type: "call", callId: "3", kind: "function", name: "gone", input: "" },
        { type: "call", callId: "4", kind: "function", name: "gone", input: "{broken" },
      ],
    },
    user,
    { role: "tool", callId: "2", kind: "custom", parts: text("done"), failed: true, place: "d" },
    { role: "tool", callId: "1", kind: "function", parts: text("found"), place: "e" },
  ];
  const { body, names } = write({ turns, tools: [search, patch] });
  const call = (id: string, name: string, given: unknown) => ({
    id,
    type: "function",
    function: { name, arguments: JSON.stringify(given) },
  });
  expect(body["messages"]).toEqual([
    { role: "user", content: "Hello" },
    {
      role: "assistant",
      content: "I look.",
      reasoning_content: "Hm.",
      reasoning: "Hm.",
      tool_calls: [
        call("1", "web__search", { x: "y" }),
        call("2", "patch", { input: "+a" }),
        call("3", "gone", {}),
        call("4", "gone", { invalid_arguments: "{broken" }),
      ],
    },
    { role: "tool", tool_call_id: "1", content: "found" },
    { role: "tool", tool_call_id: "2", content: "The tool failed: done" },
    { role: "tool", tool_call_id: "3", content: "[no result was given]" },
    { role: "tool", tool_call_id: "4", content: "[no result was given]" },
    { role: "user", content: "Hello" },
  ]);
  expect(body["tools"]).toMatchObject([
    { type: "function", function: { name: "web__search", parameters } },
    { type: "function", function: { name: "patch", parameters: { required: ["input"] } } },
  ]);
  expect([...names.keys()]).toEqual(["web__search", "patch"]);
});

test("puts images of results after all results, into the next user message", () => {
  const image: Part = { type: "image", source: { kind: "data", mediaType: "image/png", data: "AA" }, place: "i" };
  const call = (callId: string) => ({
    type: "call" as const,
    callId,
    kind: "function" as const,
    name: "f",
    input: "{}",
  });
  const messages = messagesOf(
    { role: "assistant", parts: [call("1"), call("2")], place: "a" },
    { role: "tool", callId: "1", kind: "function", parts: [...text("seen"), image], place: "b" },
    { role: "tool", callId: "2", kind: "function", parts: text("2"), place: "c" },
    user,
  );
  expect(messages).toMatchObject([
    { role: "assistant", content: null },
    {
      role: "tool",
      tool_call_id: "1",
      content: "seen\n[What else this result holds is in the next message of the user.]",
    },
    { role: "tool", tool_call_id: "2", content: "2" },
    {
      role: "user",
      content: [
        { type: "text", text: '[Part of the result of call "1":]' },
        { type: "image_url", image_url: { url: "data:image/png;base64,AA" } },
        { type: "text", text: "Hello" },
      ],
    },
  ]);
});

test("sends text files as text, other files as data, and refuses ids and addresses by name", () => {
  const file = (source: Extract<Part, { type: "file" }>["source"], name?: string): ConversationMessage => ({
    role: "user",
    parts: [{ type: "file", source, name, place: "input[3].content[1]" }],
    place: "input[3]",
  });
  expect(messagesOf(file({ kind: "text", text: "abc" }, "a.txt"))).toEqual([
    { role: "user", content: '[File "a.txt":]\nabc' },
  ]);
  const plain = { kind: "data", mediaType: "text/plain", data: Buffer.from("äbc").toString("base64") } as const;
  expect(messagesOf(file(plain))).toEqual([{ role: "user", content: "äbc" }]);
  expect(messagesOf(file({ kind: "data", mediaType: "application/pdf", data: "AA" }, "a"))).toEqual([
    {
      role: "user",
      content: [{ type: "file", file: { filename: "a.pdf", file_data: "data:application/pdf;base64,AA" } }],
    },
  ]);
  expect(refusal({ turns: [file({ kind: "id", id: "file-1" })] })).toBe("input[3].content[1]");
  expect(refusal({ turns: [file({ kind: "url", url: "https://example.com/a.pdf" })] })).toBe("input[3].content[1]");
});

test("returns proofs of reasoning in OpenRouter's form", () => {
  const proof = { kind: "signature", data: "sig" } as const;
  const turn: ConversationMessage = {
    role: "assistant",
    parts: [{ type: "reasoning", text: "Hm.", isSummary: false, proof }, ...text("Yes")],
    place: "a",
  };
  expect(messagesOf(user, turn)).toMatchObject([
    {},
    {
      reasoning_details: [
        { type: "reasoning.text", text: "Hm.", signature: "sig", format: "anthropic-claude-v1", index: 0 },
      ],
    },
  ]);
});

test("leaves out tools that must not be called, and refuses a forced call without tools", () => {
  expect(write({ tools: [search], toolChoice: { type: "none" }, parallelCalls: true }).body).not.toContainKeys([
    "tools",
  ]);
  expect(write({ toolChoice: { type: "auto" }, parallelCalls: true }).body).not.toContainAnyKeys([
    "tool_choice",
    "parallel_tool_calls",
  ]);
  expect(refusal({ toolChoice: { type: "required" } })).toBe("tool_choice");
  const chosen = write({
    tools: [search],
    toolChoice: { type: "tool", kind: "function", name: "search", namespace: "web" },
    parallelCalls: false,
  });
  expect(chosen.body).toMatchObject({
    tool_choice: { type: "function", function: { name: "web__search" } },
    parallel_tool_calls: false,
  });
});

test("writes thinking options that most servers understand", () => {
  const reported = (thinking: Thinking, model?: string) => {
    const { reasoning_effort, chat_template_kwargs } = write({ thinking }, model).body;
    return chat_template_kwargs ? [reasoning_effort, chat_template_kwargs] : reasoning_effort;
  };
  const off = ["none", { enable_thinking: false }];
  expect(reported({ enabled: false })).toEqual(off);
  expect(reported({ effort: "none" })).toEqual(off);
  expect(reported({ enabled: false }, "gpt-5.4")).toBe("none");
  expect(reported({ enabled: false }, "openai/gpt-oss-120b")).toBe("low");
  expect(reported({ enabled: true })).toBeUndefined();
  expect(["minimal", "low", "medium", "high", "xhigh", "max"].map((effort) => reported({ effort }))).toEqual([
    "low",
    "low",
    "medium",
    "high",
    "high",
    "high",
  ]);
  expect(reported({ effort: "xhigh" }, "gpt-5.4")).toBe("xhigh");
  expect([1_024, 10_000, 31_999].map((budget) => reported({ enabled: true, budget }))).toEqual([
    "low",
    "medium",
    "high",
  ]);
});

test("sends no thinking options to OpenAI's models without reasoning, which refuse them", () => {
  for (const model of ["gpt-4o", "gpt-4.1-mini", "openai/gpt-4o", "chatgpt-4o-latest", "gpt-3.5-turbo"]) {
    for (const thinking of [{ enabled: false }, { effort: "none" }, { enabled: true }]) {
      const { body, leftOut } = write({ thinking }, model);
      expect([Object.keys(body), leftOut]).toEqual([["model", "messages"], []]);
    }
    for (const thinking of [{ effort: "high" }, { enabled: true, budget: 2_048 }]) {
      const { body, leftOut } = write({ thinking }, model);
      expect([Object.keys(body), leftOut]).toEqual([["model", "messages"], ["reasoning"]]);
    }
  }
});

describe("a cloud that refuses members of other servers", () => {
  const google = "generativelanguage.googleapis.com";
  const said: ConversationMessage = {
    role: "assistant",
    parts: [
      { type: "reasoning", text: "Look.", isSummary: false, proof: { kind: "signature", data: "s" } },
      ...text("Yes"),
    ],
    place: "p",
  };

  test.each<[string | undefined, string[]]>([
    [undefined, ["reasoning_content", "reasoning", "reasoning_details"]],
    ["127.0.0.1", ["reasoning_content", "reasoning", "reasoning_details"]],
    ["api.deepseek.com", ["reasoning_content", "reasoning", "reasoning_details"]],
    ["api.openai.com", []],
    ["mine.openai.azure.com", []],
    ["api.mistral.ai", []],
    ["api.groq.com", []],
    [google, []],
    ["api.cerebras.ai", ["reasoning"]],
    ["api.fireworks.ai", ["reasoning_content"]],
    ["notgroq.com", ["reasoning_content", "reasoning", "reasoning_details"]],
  ])("sends a cloud earlier reasoning under the names that the cloud accepts: %s", (host, names) => {
    const messages = write({ turns: [user, said, user] }, "gpt-oss-120b", host).body["messages"] as Json[];
    expect(Object.keys(messages[1] ?? {})).toEqual(["role", "content", ...names]);
  });

  test.each<[string, string, Thinking, Json]>([
    ["api.groq.com", "qwen/qwen3-32b", { effort: "high" }, { reasoning_effort: "default" }],
    ["api.groq.com", "qwen/qwen3-32b", { enabled: false }, { reasoning_effort: "none" }],
    ["api.groq.com", "openai/gpt-oss-120b", { enabled: false }, { reasoning_effort: "low" }],
    ["api.cerebras.ai", "gpt-oss-120b", { effort: "max" }, { reasoning_effort: "high" }],
    ["api.mistral.ai", "mistral-small-latest", { effort: "low" }, { reasoning_effort: "high" }],
    ["api.mistral.ai", "mistral-small-latest", { enabled: false }, { reasoning_effort: "none" }],
    ["api.mistral.ai", "zai-glm-5-2", { effort: "low" }, { reasoning_effort: "high" }],
    ["api.x.ai", "grok-3-mini", { effort: "low" }, { reasoning_effort: "low" }],
    [google, "gemini-2.5-flash", { enabled: false }, { reasoning_effort: "none" }],
    [google, "gemini-3-pro-preview", { enabled: false }, { reasoning_effort: "low" }],
  ])("sends a cloud the effort that its model accepts: %s, %s, %j", (host, model, thinking, expected) => {
    const { body, leftOut } = write({ thinking }, model, host);
    const { model: _, messages: __, ...members } = body;
    expect(members).toEqual(expected);
    expect(leftOut).toEqual([]);
  });

  const call = (callId: string) => ({
    type: "call" as const,
    callId,
    kind: "function" as const,
    name: "f",
    input: "{}",
  });
  const calls: ConversationMessage = { role: "assistant", parts: [call("a"), call("b")], place: "p" };
  const result = (callId: string): ConversationMessage => ({
    ...{ role: "tool", callId, parts: text("1"), kind: "function", place: "p" },
  });

  test("sends Google a placeholder for a lost call signature at the first call of an answer", () => {
    const turns = [user, calls, result("a"), result("b")];
    const proofs = (model: string, host: string) => {
      const messages = write({ turns }, model, host).body["messages"] as { tool_calls?: Json[] }[];
      return messages[1]?.tool_calls?.map((one) => one["extra_content"]);
    };
    const proof = { google: { thought_signature: "skip_thought_signature_validator" } };
    expect(proofs("gemini-3-pro-preview", google)).toEqual([proof, undefined]);
    expect(proofs("gemini-3-pro-preview", "127.0.0.1")).toEqual([undefined, undefined]);
    expect(proofs("meta/llama-4", "us-central1-aiplatform.googleapis.com")).toEqual([undefined, undefined]);
  });
});

test("writes the limit under the name that the server knows", () => {
  for (const model of ["llama3", "gpt-4o", "gpt-oss-20b", "gpt-50"])
    expect(write({ maxTokens: 9 }, model).body["max_tokens"]).toBe(9);
  for (const model of ["o3", "gpt-5", "gpt-5.4-mini", "openai/o4-mini"]) {
    expect(write({ maxTokens: 9 }, model).body).toMatchObject({ max_completion_tokens: 9 });
  }
});

test("leaves out and names hints and foreign members", () => {
  const hints = { user: "u", serviceTier: "flex", promptCacheKey: "k", metadata: {} };
  const cache = { type: "ephemeral" };
  const { body, leftOut } = write({ hints, cache, others: { truncation: "auto" }, sampling: { verbosity: "low" } });
  expect(leftOut).toEqual([
    ...["truncation", "cache_control", "user", "service_tier", "prompt_cache_key", "metadata", "verbosity"],
  ]);
  expect(Object.keys(body)).toEqual(["model", "messages"]);
});

test("asks for usage in a stream", () => {
  expect(write({ stream: true }).body).toMatchObject({ stream: true, stream_options: { include_usage: true } });
});

/**
 * Turns that chat completions can express without loss: users and assistants alternate, and each call has its result.
 */
const words = fc.string({ minLength: 1 });
const place = "any";
const media: fc.Arbitrary<Part> = fc.oneof(
  words.map((value) => ({ type: "text" as const, text: value })),
  fc.base64String({ minLength: 4 }).map((data) => ({
    type: "image" as const,
    source: { kind: "data" as const, mediaType: "image/png", data },
    place,
  })),
  fc.base64String({ minLength: 4 }).map((data) => ({ type: "audio" as const, data, format: "wav", place })),
  fc.base64String({ minLength: 4 }).map((data) => ({
    type: "file" as const,
    name: "a.pdf",
    source: { kind: "data" as const, mediaType: "application/pdf", data },
    place,
  })),
);
const exchange = fc.tuple(
  fc.array(media, { minLength: 1 }),
  words,
  fc.option(words),
  fc.array(fc.tuple(fc.uuid(), words)),
);
const conversationFacts = fc.record({
  exchanges: fc.array(exchange, { minLength: 1, maxLength: 4 }),
  system: words,
  tools: fc.uniqueArray(fc.stringMatching(/^[a-z]{1,9}$/)),
  more: fc.record(
    {
      maxTokens: fc.nat().map((count) => count + 1),
      thinking: fc.constantFrom("low", "medium", "high").map((effort) => ({ effort })),
      output: fc.constantFrom(
        { type: "json" as const },
        { type: "schema" as const, name: "n", schema: { a: 1 }, strict: true },
      ),
      choices: fc.integer({ min: 2, max: 9 }),
    },
    { requiredKeys: [] },
  ),
  sampling: fc.record(
    {
      ...{
        temperature: fc.constantFrom(0, 0.5),
        topP: fc.constant(0.5),
        topK: fc.nat(),
        seed: fc.integer(),
        logprobs: fc.nat(20),
      },
      ...{
        stop: fc.array(words, { minLength: 1 }),
        logitBias: fc.constant({ "5": -1 }),
        frequencyPenalty: fc.constant(1),
      },
    },
    { requiredKeys: [] },
  ),
  stream: fc.boolean(),
});

test("reads every conversation that chat completions can express as it was written", () => {
  fc.assert(
    fc.property(conversationFacts, ({ exchanges, system, tools, more, sampling, stream }) => {
      const turns: ConversationMessage[] = [{ role: "system", parts: text(system), place }];
      for (const [parts, answer, thought, calls] of exchanges) {
        turns.push({ role: "user", parts, place });
        const thoughts = thought === null ? [] : [{ type: "reasoning" as const, text: thought, isSummary: false }];
        const made = calls.map(([callId]) => ({
          type: "call" as const,
          callId,
          kind: "function" as const,
          name: "f",
          input: '{"a":1}',
        }));
        turns.push({ role: "assistant", parts: [...thoughts, ...text(answer), ...made], place });
        for (const [callId, given] of calls)
          turns.push({ role: "tool", callId, kind: "function", parts: text(given), place });
      }
      const offered = tools.map((name): Tool => ({ kind: "function", name, parameters, place }));
      const conversation = { turns, tools: offered, sampling, stream, hints: {}, others: {}, ...more };
      const read = readChatRequest(JSON.parse(writeChatRequest(conversation, "m").body));
      const placeless = (value: unknown) =>
        JSON.parse(JSON.stringify(value, (name, one) => (name === "place" ? undefined : one)));
      expect(placeless(read)).toEqual(placeless(conversation));
    }),
  );
});
