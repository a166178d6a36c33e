// Tests that a conversation is written as Anthropic accepts it, and that members that would be lost are refused by
// name.
import { describe, expect, test } from "bun:test";
import { GatewayError } from "../../../base/errors.ts";
import type { Conversation, ConversationMessage, Part } from "../conversation/conversation.ts";
import { standardMaxTokens, writeRequest } from "./write-request.ts";

type Json = Record<string, unknown>;

const asked: ConversationMessage = { role: "user", parts: [{ type: "text", text: "Hi" }], place: "messages[0]" };
const standard: Conversation = { turns: [asked], tools: [], sampling: {}, stream: false, hints: {}, others: {} };

function written(conversation: Partial<Conversation>, model = "claude-opus-5") {
  const { body, ...others } = writeRequest({ ...standard, ...conversation }, model);
  return { ...others, body: JSON.parse(body) as Json };
}

function bodyOf(conversation: Partial<Conversation>, model?: string): Json {
  return written(conversation, model).body;
}

function refusalOf(conversation: Partial<Conversation>): GatewayError {
  try {
    written(conversation);
  } catch (error) {
    if (error instanceof GatewayError) return error;
  }
  throw new Error("it was written");
}

const text = (words: string): Part => ({ type: "text", text: words });
const says = (role: "system" | "developer" | "user", ...parts: Part[]): ConversationMessage => ({
  role,
  parts,
  place: "messages[9]",
});
const call = (callId: string, input = "{}", name = "look") =>
  ({ type: "call", callId, kind: "function", name, input }) as const;
const gave = (callId: string, ...parts: Part[]): ConversationMessage => ({
  role: "tool",
  callId,
  kind: "function",
  parts,
  place: "p",
});
const calls = (...parts: ReturnType<typeof call>[]): ConversationMessage => ({ role: "assistant", parts, place: "p" });
const ephemeral = { type: "ephemeral" };
const tool = { kind: "function", name: "look", description: "Looks", place: "tools[0]" } as const;

test("asks a question with the required token limit", () => {
  expect(bodyOf({})).toEqual({
    model: "claude-opus-5",
    max_tokens: standardMaxTokens,
    messages: [{ role: "user", content: "Hi" }],
  });
  expect(bodyOf({ maxTokens: 5, stream: true })).toMatchObject({ max_tokens: 5, stream: true });
});

describe("instructions", () => {
  test("writes leading instructions as the system prompt, in one text without cache marks", () => {
    const turns = [says("system", text("A")), says("developer", text("B"), text("")), asked];
    expect(bodyOf({ turns })).toMatchObject({ system: "A\n\nB", messages: [{ role: "user", content: "Hi" }] });
    const marked = [says("system", { type: "text", text: "A", cache: ephemeral }, text("B")), asked];
    expect(bodyOf({ turns: marked })["system"]).toEqual([
      { type: "text", text: "A", cache_control: ephemeral },
      { type: "text", text: "B" },
    ]);
  });

  test("writes later instructions in place, between tags and after tool results", () => {
    const turns = [
      asked,
      calls(call("a")),
      says("developer", text("Be brief.")),
      gave("a", text("1")),
      says("user", text("And?")),
    ];
    expect(bodyOf({ turns })["messages"]).toEqual([
      { role: "user", content: "Hi" },
      { role: "assistant", content: [{ type: "tool_use", id: "a", name: "look", input: {} }] },
      {
        role: "user",
        content: [
          { type: "tool_result", tool_use_id: "a", content: "1" },
          { type: "text", text: "<system-reminder>\nBe brief.\n</system-reminder>" },
          { type: "text", text: "And?" },
        ],
      },
    ]);
  });

  test("writes instructions alone as the message that the model answers", () => {
    expect(bodyOf({ turns: [says("system", text("Say hello."))] })).toMatchObject({
      messages: [{ role: "user", content: "Say hello." }],
    });
    const blank = [says("system", text("Say hello.")), says("user", text(" "))];
    expect(bodyOf({ turns: blank })).toMatchObject({ messages: [{ role: "user", content: "Say hello." }] });
    expect(refusalOf({ turns: [says("user", text(""))] })).toMatchObject({ param: "messages[9]" });
  });
});

describe("messages", () => {
  test("joins messages of one role, and drops empty ones", () => {
    const empty: ConversationMessage = {
      role: "assistant",
      parts: [{ type: "reasoning", text: "Hm", isSummary: false }],
      place: "p",
    };
    const turns = [asked, says("user", text("Ho")), empty, says("user", text("Ha"), text(""))];
    const content = ["Hi", "Ho", "Ha"].map((words) => ({ type: "text", text: words }));
    expect(written({ turns })).toMatchObject({
      body: { messages: [{ role: "user", content }] },
      leftOut: ["reasoning"],
    });
  });

  test("joins the results of one answer's calls, with their content", () => {
    const image = {
      type: "image",
      source: { kind: "data", mediaType: "image/png", data: "AA==" },
      place: "p",
    } as const;
    const failed: ConversationMessage = {
      role: "tool",
      callId: "b",
      kind: "function",
      parts: [text("No")],
      failed: true,
      cache: ephemeral,
      place: "p",
    };
    const turns = [asked, calls(call("a"), call("b"), call("c")), gave("a", image), failed, gave("c")];
    const [, , results] = bodyOf({ turns })["messages"] as Json[];
    expect(results).toEqual({
      role: "user",
      content: [
        {
          type: "tool_result",
          tool_use_id: "a",
          content: [{ type: "image", source: { type: "base64", media_type: "image/png", data: "AA==" } }],
        },
        { type: "tool_result", tool_use_id: "b", content: "No", is_error: true, cache_control: ephemeral },
        { type: "tool_result", tool_use_id: "c" },
      ],
    });
  });

  test("writes reasoning with Anthropic's proof, and a refusal as text", () => {
    const parts = [
      { type: "reasoning", text: "Hm", isSummary: true, proof: { kind: "signature", data: "EqQB" } },
      { type: "reasoning", text: "", isSummary: false, proof: { kind: "redacted", data: "Em" } },
      { type: "reasoning", text: "Ho", isSummary: true, proof: { kind: "encrypted", data: "gAA" } },
      { type: "refusal", text: "No." },
    ] as const;
    expect(bodyOf({ turns: [asked, { role: "assistant", parts, place: "p" }] })["messages"]).toMatchObject([
      {},
      {
        content: [
          { type: "thinking", thinking: "Hm", signature: "EqQB" },
          { type: "redacted_thinking", data: "Em" },
          { type: "text", text: "No." },
        ],
      },
    ]);
  });

  test.each([
    ["", {}],
    ['{"a":1}', { a: 1 }],
    ["[1]", { input: [1] }],
    ["{broken", { input: "{broken" }],
  ])("writes the arguments %j of a call as an object", (input, expected) => {
    const turns = [asked, calls(call("a", input)), gave("a", text("1"))];
    expect(bodyOf({ turns })["messages"]).toMatchObject([{}, { content: [{ input: expected }] }, {}]);
  });

  test("gives calls and their results unique ids that Anthropic accepts", () => {
    const turns = [asked, calls(call("a.b"), call("a:b"), call("a_b")), gave("a:b", text("1"))];
    turns.push(gave("a.b", text("2")), gave("a_b", text("3")));
    const [, { content: called }, { content: given }] = bodyOf({ turns })["messages"] as [Json, Json, Json];
    const [first, second, third] = (called as Json[]).map(({ id }) => id);
    expect(third).toBe("a_b");
    expect(new Set([first, second, third]).size).toBe(3);
    for (const id of [first, second, third]) expect(id).toMatch(/^[a-zA-Z0-9_-]+$/);
    expect((given as Json[]).map(({ tool_use_id }) => tool_use_id)).toEqual([first, second, third]);
    expect((given as Json[]).map(({ content }) => content)).toEqual(["2", "1", "3"]);
  });

  test("gives each call a unique id, even if a model repeats ids", () => {
    const turns = [asked, calls(call("a"), call("a")), gave("a", text("1")), gave("a", text("2"))];
    const again = [...turns, calls(call("a"), call("")), gave("", text("4")), gave("a", text("3"))];
    const messages = bodyOf({ turns: again })["messages"] as { content: Json[] }[];
    const ids = messages.flatMap(({ content }) => (Array.isArray(content) ? content : [])).map((block) => block["id"]);
    const named = ids.filter((id) => id !== undefined);
    expect(new Set(named).size).toBe(4);
    for (const id of named) expect(id).toMatch(/^[a-zA-Z0-9_-]+$/);
    for (const [at, first] of [
      [2, "1"],
      [4, "3"],
    ] as const) {
      const results = messages[at]?.content ?? [];
      expect(results.map((block) => block["tool_use_id"])).toEqual(
        (messages[at - 1]?.content ?? []).map(({ id }) => id),
      );
      expect(results[0]?.["content"]).toBe(first);
    }
  });

  test("adds a result for each call directly, as Anthropic refuses calls without one and results of none", () => {
    const turns = [
      asked,
      calls(call("a"), call("b")),
      says("user", text("And?")),
      calls(call("c")),
      gave("a", text("1")),
    ];
    expect(bodyOf({ turns: [...turns, gave("z", text("9"))] })["messages"]).toMatchObject([
      { role: "user" },
      { role: "assistant", content: [{ id: "a" }, { id: "b" }] },
      {
        role: "user",
        content: [
          { type: "tool_result", tool_use_id: "a", content: "1" },
          { type: "tool_result", tool_use_id: "b", content: "[no result was given]" },
          { type: "text", text: "And?" },
        ],
      },
      { role: "assistant", content: [{ id: "c" }] },
      {
        role: "user",
        content: [
          { type: "tool_result", tool_use_id: "c", content: "[no result was given]" },
          { type: "text", text: '[The result of a call "z" that is not part of this conversation:]' },
          { type: "text", text: "9" },
        ],
      },
    ]);
  });

  test("drops blank texts without other text, as Anthropic refuses them", () => {
    const said: ConversationMessage = {
      role: "assistant",
      parts: [{ type: "text", text: "\n\n" }, call("a")],
      place: "p",
    };
    const turns = [says("system", text(" ")), asked, said, gave("a", text("\n")), says("user", text(" "), text("b"))];
    expect(bodyOf({ turns })).toEqual({
      model: "claude-opus-5",
      max_tokens: standardMaxTokens,
      messages: [
        { role: "user", content: "Hi" },
        { role: "assistant", content: [{ type: "tool_use", id: "a", name: "look", input: {} }] },
        {
          role: "user",
          content: [
            { type: "tool_result", tool_use_id: "a" },
            { type: "text", text: " " },
            { type: "text", text: "b" },
          ],
        },
      ],
    });
  });

  test("begins with a user message, as Anthropic requires", () => {
    const turns: ConversationMessage[] = [
      { role: "assistant", parts: [{ type: "text", text: "Hello!" }], place: "p" },
      asked,
    ];
    expect(bodyOf({ turns })["messages"]).toEqual([
      { role: "user", content: "[You began this conversation:]" },
      { role: "assistant", content: "Hello!" },
      { role: "user", content: "Hi" },
    ]);
  });

  test("writes images and documents", () => {
    const parts = [
      {
        type: "image",
        source: { kind: "url", url: "https://a.test/b.png" },
        detail: "low",
        cache: ephemeral,
        place: "p",
      },
      { type: "file", source: { kind: "data", mediaType: "application/pdf", data: "BB==" }, name: "a.pdf", place: "p" },
      { type: "file", source: { kind: "data", mediaType: "text/markdown", data: "V29yZHM=" }, place: "p" },
      { type: "file", source: { kind: "url", url: "https://a.test/c.pdf" }, place: "p" },
    ] as const;
    expect(bodyOf({ turns: [says("user", ...parts)] })["messages"]).toMatchObject([
      {
        content: [
          { type: "image", source: { type: "url", url: "https://a.test/b.png" }, cache_control: ephemeral },
          { type: "document", source: { type: "base64", media_type: "application/pdf", data: "BB==" }, title: "a.pdf" },
          { type: "document", source: { type: "text", media_type: "text/plain", data: "Words" } },
          { type: "document", source: { type: "url", url: "https://a.test/c.pdf" } },
        ],
      },
    ]);
  });

  test.each([
    ["audio", { type: "audio", data: "", format: "wav", place: "messages[0].content[1]" }],
    ["the id of a file", { type: "file", source: { kind: "id", id: "file-1" }, place: "messages[0].content[1]" }],
    [
      "a spreadsheet",
      {
        type: "file",
        source: { kind: "data", mediaType: "application/vnd.ms-excel", data: "" },
        place: "messages[0].content[1]",
      },
    ],
  ] as const)("refuses a message with %s by its place", (_, part) => {
    expect(refusalOf({ turns: [says("user", text("Hi"), part)] })).toMatchObject({
      code: "invalid_request",
      param: "messages[0].content[1]",
    });
  });
});

describe("tools", () => {
  test("writes tools with an object schema, and their cache marks", () => {
    const tools = [
      tool,
      { ...tool, name: "see", parameters: { type: "object", properties: {} }, strict: true, cache: ephemeral },
    ];
    expect(bodyOf({ tools })["tools"]).toEqual([
      { name: "look", description: "Looks", input_schema: { type: "object", properties: {} } },
      {
        name: "see",
        description: "Looks",
        input_schema: { type: "object", properties: {} },
        strict: true,
        cache_control: ephemeral,
      },
    ]);
  });

  test("writes namespaced and custom tools as functions, and maps their names back", () => {
    const tools = [
      { kind: "custom", name: "patch", place: "p" },
      { ...tool, namespace: "mcp__a" },
    ] as const;
    const turns: ConversationMessage[] = [
      asked,
      {
        role: "assistant",
        parts: [{ type: "call", callId: "c", kind: "custom", name: "patch", input: "*** x" }],
        place: "p",
      },
    ];
    const { body, names } = written({ tools, turns });
    expect(body["tools"]).toMatchObject([{ name: "patch" }, { name: "mcp__a__look" }]);
    expect(body["messages"]).toMatchObject([{}, { content: [{ name: "patch", input: { input: "*** x" } }] }, {}]);
    expect(names.get("mcp__a__look")).toMatchObject({ name: "look", namespace: "mcp__a" });
    expect(names.get("patch")).toMatchObject({ kind: "custom" });
  });

  test.each([
    [{}, undefined],
    [{ parallelCalls: true }, undefined],
    [{ parallelCalls: false }, { type: "auto", disable_parallel_tool_use: true }],
    [{ toolChoice: { type: "required" } }, { type: "any" }],
    [{ toolChoice: { type: "none" }, parallelCalls: false }, { type: "none" }],
    [
      { toolChoice: { type: "tool", kind: "function", name: "look" }, parallelCalls: false },
      { type: "tool", name: "look", disable_parallel_tool_use: true },
    ],
  ] as const)("writes the tool choice %j for Messages", (choice, expected) => {
    expect(bodyOf({ tools: [tool], ...choice })["tool_choice"]).toEqual(expected);
  });

  test("refuses a forced call without tools, and writes no other choice without them", () => {
    for (const type of ["auto", "none"] as const) {
      expect(bodyOf({ toolChoice: { type }, parallelCalls: false })["tool_choice"]).toBeUndefined();
    }
    expect(refusalOf({ toolChoice: { type: "required" } })).toMatchObject({ param: "tool_choice" });
    const named = { type: "tool", kind: "function", name: "look" } as const;
    expect(refusalOf({ toolChoice: named })).toMatchObject({ param: "tool_choice" });
  });
});

describe("thinking", () => {
  test.each([
    [{ effort: "minimal" }, { thinking: { type: "adaptive" }, output_config: { effort: "low" } }],
    [
      { effort: "xhigh", shown: "auto" },
      { thinking: { type: "adaptive", display: "summarized" }, output_config: { effort: "xhigh" } },
    ],
    [{ enabled: true, shown: "omitted" }, { thinking: { type: "adaptive", display: "omitted" } }],
    [{ effort: "none" }, { thinking: { type: "disabled" } }],
    [{ enabled: false }, { thinking: { type: "disabled" } }],
    [
      { enabled: true, budget: 2000 },
      { thinking: { type: "enabled", budget_tokens: 2000 }, max_tokens: standardMaxTokens },
    ],
    [{ shown: "auto" }, {}],
  ] as const)("writes thinking options %j for models since Claude 4.6", (thinking, expected) => {
    const without = {
      model: "claude-opus-5",
      max_tokens: standardMaxTokens,
      messages: [{ role: "user", content: "Hi" }],
    };
    expect(bodyOf({ thinking })).toEqual({ ...without, ...expected });
  });

  test.each([
    "claude-haiku-4-5-20251001",
    "claude-sonnet-4-20250514",
    "us.anthropic.claude-opus-4-1-20250805-v1:0",
    "claude-3-7-sonnet-latest",
  ])("writes a budget for %s, which knows no effort", (model) => {
    const body = bodyOf({ thinking: { effort: "medium" } }, model);
    expect(body["thinking"]).toEqual({ type: "enabled", budget_tokens: 8192 });
    expect(body["output_config"]).toBeUndefined();
  });

  test.each(["claude-opus-4-6", "claude-opus-4-8-20260528", "claude-sonnet-5", "claude-haiku-5-5", "qwen3"])(
    "writes adaptive thinking for %s",
    (model) => {
      expect(bodyOf({ thinking: { effort: "high" } }, model)["thinking"]).toEqual({ type: "adaptive" });
    },
  );

  test("writes a budget within the token limit, and none if too little remains", () => {
    const model = "claude-haiku-4-5";
    const thinking = { effort: "high" };
    expect(bodyOf({ thinking, maxTokens: 4000 }, model)["thinking"]).toMatchObject({ budget_tokens: 2000 });
    expect(bodyOf({ thinking, maxTokens: 2000 }, model)["thinking"]).toBeUndefined();
    const tooMuch = { thinking: { enabled: true, budget: 4000 }, maxTokens: 4000 };
    expect(bodyOf(tooMuch, model)["thinking"]).toMatchObject({ budget_tokens: 2000 });
    const wide = bodyOf({ thinking: { enabled: true, budget: 40_000 } });
    expect(wide).toMatchObject({ max_tokens: 80_000, thinking: { budget_tokens: 40_000 } });
  });

  test("lowers thinking of models that always think, and writes no budget for models without thinking", () => {
    const least = written({ thinking: { effort: "none" } }, "claude-sonnet-5-5");
    expect(least).toMatchObject({ body: { output_config: { effort: "low" } }, leftOut: ["reasoning"] });
    expect(least.body["thinking"]).toBeUndefined();
    const free = written({ thinking: { enabled: true, budget: 2000 } }, "claude-haiku-5-5");
    expect(free).toMatchObject({ body: { thinking: { type: "adaptive" } }, leftOut: ["reasoning"] });
  });

  test("leaves out and names thinking that Anthropic refuses: beside a forced call, and after calls without it", () => {
    const forced = { tools: [tool], toolChoice: { type: "required" }, thinking: { effort: "high" } } as const;
    expect(written(forced)).toMatchObject({ body: { output_config: { effort: "high" } }, leftOut: ["reasoning"] });
    expect(written(forced).body["thinking"]).toBeUndefined();
    const turns = [asked, calls(call("a")), gave("a")];
    expect(bodyOf({ turns, thinking: { effort: "high" } }, "claude-haiku-4-5")["thinking"]).toBeUndefined();
    expect(bodyOf({ turns, thinking: { effort: "high" } })["thinking"]).toEqual({ type: "adaptive" });
  });
});

describe("output", () => {
  test("writes an output schema", () => {
    const schema = { type: "object" };
    const output = { type: "schema", name: "a", description: "d", schema } as const;
    expect(written({ output })).toMatchObject({
      body: { output_config: { format: { type: "json_schema", schema } } },
      leftOut: ["description"],
    });
  });

  test("asks for JSON without a schema in the system prompt", () => {
    const { system } = bodyOf({ output: { type: "json" }, turns: [says("system", text("A")), asked] });
    expect(system).toStartWith("A\n\nAnswer with one JSON object");
  });
});

describe("members that Messages cannot express", () => {
  test.each([
    ["n", { choices: 2 }],
    ["temperature", { sampling: { temperature: 1.5 } }],
    ["seed", { sampling: { seed: 1 } }],
    ["frequency_penalty", { sampling: { frequencyPenalty: 0.5 } }],
    ["presence_penalty", { sampling: { presencePenalty: -1 } }],
    ["logit_bias", { sampling: { logitBias: { 5: 1 } } }],
    ["top_logprobs", { sampling: { logprobs: 3 } }],
  ])("refuses a member that Messages cannot express by its name: %s", (param, conversation) => {
    expect(refusalOf(conversation)).toMatchObject({ code: "invalid_request", param });
  });

  test("silently drops members with their default value", () => {
    const sampling = {
      temperature: 1,
      topP: 1,
      frequencyPenalty: 0,
      presencePenalty: 0,
      logitBias: {},
      verbosity: "medium",
      stop: [],
    };
    expect(written({ choices: 1, sampling })).toMatchObject({ body: bodyOf({}), leftOut: [] });
  });

  test("leaves out and names members that change no answer", () => {
    const hints = { user: "u", serviceTier: "flex", promptCacheKey: "k", metadata: { a: 1 } };
    const source = { kind: "url", url: "https://a.test/b.png" } as const;
    const image = { type: "image", source, detail: "low", place: "p" } as const;
    const named: ConversationMessage = { ...asked, name: "Ann", parts: [image, { ...image, detail: "auto" }] };
    const { body, leftOut } = written({
      hints,
      turns: [named],
      sampling: { logprobs: 0, verbosity: "low" },
      others: { store: true },
    });
    expect(body["metadata"]).toEqual({ user_id: "u" });
    expect(leftOut).toEqual([
      ...["name", "detail", "logprobs", "verbosity", "service_tier", "prompt_cache_key", "metadata", "store"],
    ]);
    expect(written({ turns: [{ ...asked, parts: [{ ...image, detail: "auto" }] }] }).leftOut).toEqual([]);
  });
});

test("passes on values that Messages has", () => {
  const sampling = { temperature: 0.2, topP: 0.5, topK: 9, stop: ["END"] };
  const expected = { temperature: 0.2, top_p: 0.5, top_k: 9, stop_sequences: ["END"], service_tier: "standard_only" };
  expect(bodyOf({ sampling, hints: { serviceTier: "default" } })).toMatchObject(expected);
  expect(bodyOf({ cache: ephemeral })).toMatchObject({ cache_control: ephemeral });
});
