// Tests that a Messages request is read as a conversation, and that members no other model can get are refused by name.
import { describe, expect, test } from "bun:test";
import { GatewayError } from "../../../base/errors.ts";
import type { Seal } from "../../../domain/seal.ts";
import { readRequest } from "./read-request.ts";

type Json = Record<string, unknown>;

const seal: Seal = {
  seal: (text) => `own.${text}`,
  open: (sealed) => (sealed.startsWith("own.") ? sealed.slice("own.".length) : undefined),
};

const asked = { model: "tiny", max_tokens: 100, messages: [{ role: "user", content: "Hi" }] };

function read(body: Json) {
  return JSON.parse(JSON.stringify(readRequest({ ...asked, ...body }, seal)));
}

function turnsOf(...messages: Json[]) {
  return read({ messages }).turns;
}

function refusalOf(body: Json): GatewayError {
  try {
    readRequest({ ...asked, ...body }, seal);
  } catch (error) {
    if (error instanceof GatewayError) return error;
  }
  throw new Error("it was read");
}

const ephemeral = { type: "ephemeral", ttl: "1h" };

test("reads a question as a user turn and nothing more", () => {
  expect(read({})).toEqual({
    turns: [{ role: "user", parts: [{ type: "text", text: "Hi" }], place: "messages[0]" }],
    tools: [],
    maxTokens: 100,
    sampling: {},
    stream: false,
    hints: {},
    others: {},
  });
});

test("separates sampling values, hints and foreign members", () => {
  const body = {
    ...{ temperature: 0.5, top_p: 0.9, top_k: 3, stop_sequences: ["END"], stream: true, service_tier: "auto" },
    ...{ metadata: { user_id: "u1", team: "x" }, context_management: { edits: [] }, container: null, speed: "fast" },
    output_config: { effort: "high", task_budget: 3 },
  };
  expect(read(body)).toMatchObject({
    sampling: { temperature: 0.5, topP: 0.9, topK: 3, stop: ["END"], stopPlace: "stop_sequences" },
    stream: true,
    hints: { user: "u1", serviceTier: "auto", metadata: { team: "x" } },
    thinking: { effort: "high" },
  });
  const others = { context_management: { edits: [] }, speed: "fast", "output_config.task_budget": 3 };
  expect(read(body).others).toEqual(others);
});

describe("the system prompt", () => {
  const systemOf = (system: unknown) => read({ system }).turns.slice(0, -1);

  test("reads the system prompt as the first turn, with its cache marks", () => {
    const parts = [{ type: "text", text: "Be brief.", cache: ephemeral }];
    const system = [{ type: "text", text: "Be brief.", cache_control: ephemeral }];
    expect(systemOf(system)).toEqual([{ role: "system", parts, place: "system" }]);
  });

  test.each([
    [
      "a block",
      [
        { type: "text", text: "x-anthropic-billing-header: cc_version=2.1.330.d02; cc_entrypoint=cli; cch=1a2b3;" },
        { type: "text", text: "Be brief." },
      ],
    ],
    ["a line", "x-anthropic-billing-header: cc_version=2.1.153.d02; cc_entrypoint=sdk-cli;\nBe brief."],
  ])("removes %s of Claude Code, which changes by session, from the system prompt", (_, system) => {
    expect(systemOf(system)).toMatchObject([{ parts: [{ type: "text", text: "Be brief." }] }]);
  });

  test("reads a system prompt that contains only Claude Code's header as none", () => {
    expect(systemOf([{ type: "text", text: "x-anthropic-billing-header: cc_version=1;" }])).toEqual([]);
    expect(systemOf("")).toMatchObject([{ parts: [{ text: "" }] }]);
  });

  test("reads system messages in the middle of the conversation", () => {
    const turns = turnsOf({ role: "user", content: "Hi" }, { role: "system", content: "Be brief." });
    expect(turns[1]).toEqual({ role: "system", parts: [{ type: "text", text: "Be brief." }], place: "messages[1]" });
  });
});

describe("a user's message", () => {
  test("reads tool results in a user message as turns before the user's text", () => {
    const content = [
      { type: "text", text: "Look:" },
      { type: "tool_result", tool_use_id: "a", content: "12", cache_control: ephemeral },
      { type: "tool_result", tool_use_id: "b", is_error: true, content: [{ type: "text", text: "No such file" }] },
      { type: "tool_result", tool_use_id: "c" },
    ];
    expect(turnsOf({ role: "user", content })).toEqual([
      {
        ...{ role: "tool", callId: "a", kind: "function", cache: ephemeral },
        parts: [{ type: "text", text: "12" }],
        place: "messages[0].content[1]",
      },
      {
        ...{ role: "tool", callId: "b", kind: "function", failed: true },
        parts: [{ type: "text", text: "No such file" }],
        place: "messages[0].content[2]",
      },
      { role: "tool", callId: "c", kind: "function", parts: [], place: "messages[0].content[3]" },
      { role: "user", parts: [{ type: "text", text: "Look:" }], place: "messages[0]" },
    ]);
  });

  test("reads images, documents and search results in a user message", () => {
    const png = { type: "base64", media_type: "image/png", data: "AA==" };
    const content = [
      { type: "image", source: png, cache_control: ephemeral },
      { type: "image", source: { type: "url", url: "https://a.test/b.png" } },
      { type: "document", title: "Paper", source: { type: "base64", media_type: "application/pdf", data: "BB==" } },
      { type: "document", source: { type: "text", media_type: "text/plain", data: "Words" } },
      {
        type: "document",
        title: "Notes",
        context: "Mine",
        source: { type: "content", content: [{ type: "text", text: "One" }] },
      },
      { type: "search_result", title: "T", source: "https://a.test", content: [{ type: "text", text: "Found" }] },
    ];
    const [{ parts }] = turnsOf({ role: "user", content });
    const at = (i: number) => `messages[0].content[${i}]`;
    expect(parts).toEqual([
      { type: "image", source: { kind: "data", mediaType: "image/png", data: "AA==" }, cache: ephemeral, place: at(0) },
      { type: "image", source: { kind: "url", url: "https://a.test/b.png" }, place: at(1) },
      {
        type: "file",
        name: "Paper",
        source: { kind: "data", mediaType: "application/pdf", data: "BB==" },
        place: at(2),
      },
      { type: "file", source: { kind: "text", text: "Words" }, place: at(3) },
      ...["Notes", "Mine", "One", "T\nhttps://a.test\n\nFound"].map((text) => ({ type: "text", text })),
    ]);
  });

  test("keeps images inside a tool result", () => {
    const image = { type: "image", source: { type: "base64", media_type: "image/png", data: "AA==" } };
    const content = [{ type: "tool_result", tool_use_id: "a", content: [image] }];
    expect(turnsOf({ role: "user", content })).toMatchObject([{ role: "tool", parts: [{ type: "image" }] }]);
  });

  test.each([
    ["messages[0].content[0].type", [{ type: "container_upload", file_id: "f" }]],
    [
      "messages[0].content[0].content[0].type",
      [{ type: "tool_result", tool_use_id: "a", content: [{ type: "browser_state" }] }],
    ],
    ["messages[0].content[0].source.type", [{ type: "image", source: { type: "tape" } }]],
  ])("refuses a user message with %s that only Anthropic knows", (param, content) => {
    expect(refusalOf({ messages: [{ role: "user", content }] })).toMatchObject({ code: "invalid_request", param });
  });
});

describe("an assistant's message", () => {
  const partsOf = (...content: Json[]) => turnsOf({ role: "assistant", content })[0]?.parts;

  test("reads text, thinking and calls of an assistant message", () => {
    const blocks = [
      { type: "thinking", thinking: "Hm", signature: "EqQB" },
      { type: "redacted_thinking", data: "Em" },
      { type: "text", text: "I look.", citations: null },
      { type: "tool_use", id: "a", name: "look", input: { at: 1 }, cache_control: ephemeral },
    ];
    expect(partsOf(...blocks)).toEqual([
      { type: "reasoning", text: "Hm", isSummary: false, proof: { kind: "signature", data: "EqQB" } },
      { type: "reasoning", text: "", isSummary: false, proof: { kind: "redacted", data: "Em" } },
      { type: "text", text: "I look." },
      { type: "call", callId: "a", kind: "function", name: "look", input: '{"at":1}', cache: ephemeral },
    ]);
  });

  test("opens thinking that the gateway sealed and the client did not see", () => {
    const thought = { type: "reasoning", text: "the plan", isSummary: false };
    expect(partsOf({ type: "thinking", thinking: "", signature: "own.the plan" })).toEqual([thought]);
    expect(partsOf({ type: "thinking", thinking: "the plan", signature: "own." })).toEqual([thought]);
    expect(partsOf({ type: "thinking", thinking: "the plan" })).toEqual([thought]);
  });

  test("names document options and tool examples that only Anthropic's models use", () => {
    const source = { type: "text", media_type: "text/plain", data: "a" };
    const cited = { type: "document", source, citations: { enabled: true } };
    const content = [cited, { ...cited, citations: { enabled: false } }];
    const result = { type: "tool_result", tool_use_id: "x", content: [{ type: "text", text: "a" }, cited] };
    const input_examples = [{ at: 1 }];
    const tools = [
      { name: "a", input_schema: {} },
      { name: "b", input_schema: {}, input_examples },
    ];
    const { others } = read({ tools, messages: [{ role: "user", content: [result, ...content] }] });
    expect(Object.keys(others)).toEqual([
      "tools[1].input_examples",
      "messages[0].content[0].content[1].citations",
      "messages[0].content[1].citations",
    ]);
  });

  test("leaves out blocks of Anthropic's tools, and names them", () => {
    const content = [
      { type: "server_tool_use", id: "s", name: "web_search", input: {} },
      { type: "web_search_tool_result", tool_use_id: "s", content: [] },
      { type: "text", text: "Found." },
    ];
    const conversation = read({ messages: [{ role: "assistant", content }] });
    expect(conversation.turns).toMatchObject([{ parts: [{ type: "text", text: "Found." }] }]);
    expect(conversation.others).toEqual({
      server_tool_use: "messages[0].content[0]",
      web_search_tool_result: "messages[0].content[1]",
    });
  });
});

describe("tools", () => {
  const schema = {
    ...{ type: "object", properties: { at: { type: "integer" } } },
    ...{ required: ["at"], additionalProperties: false },
  };

  test("reads client tools as functions", () => {
    const tools = [
      {
        name: "look",
        description: "Looks",
        input_schema: schema,
        strict: true,
        cache_control: ephemeral,
        eager_input_streaming: true,
      },
      { type: "custom", name: "see", input_schema: schema },
    ];
    expect(read({ tools }).tools).toEqual([
      {
        kind: "function",
        name: "look",
        description: "Looks",
        parameters: schema,
        strict: true,
        cache: ephemeral,
        place: "tools[0]",
      },
      { kind: "function", name: "see", parameters: schema, place: "tools[1]" },
    ]);
  });

  test("offers deferred tools once the conversation names them", () => {
    const tools = ["a", "b", "c"].map((name) => ({ name, input_schema: schema, defer_loading: name !== "c" }));
    const found = { type: "tool_result", tool_use_id: "x", content: [{ type: "tool_reference", tool_name: "b" }] };
    const conversation = read({ tools, messages: [{ role: "user", content: [found] }] });
    expect(conversation.tools.map(({ name }: Json) => name)).toEqual(["b", "c"]);
    expect(conversation.turns).toMatchObject([{ parts: [{ text: "The tool `b` can be called now." }] }]);
  });

  test.each([
    [{ type: "bash_20250124", name: "bash" }, ["command", "restart"]],
    [
      { type: "text_editor_20250728", name: "str_replace_based_edit_tool" },
      ["command", "path", "file_text", "old_str", "new_str", "insert_line", "insert_text", "view_range"],
    ],
    [
      { type: "text_editor_20250124", name: "str_replace_editor" },
      ["command", "path", "file_text", "old_str", "new_str", "insert_line", "view_range"],
    ],
    [
      { type: "memory_20250818", name: "memory" },
      [
        "command",
        "path",
        "view_range",
        "file_text",
        "old_str",
        "new_str",
        "insert_line",
        "insert_text",
        "old_path",
        "new_path",
      ],
    ],
    [
      { type: "computer_20241022", name: "computer", display_width_px: 8, display_height_px: 6 },
      ["action", "coordinate", "text"],
    ],
    [
      { type: "computer_20251124", name: "computer", display_width_px: 8, display_height_px: 6, enable_zoom: true },
      ["action", "coordinate", "text", "duration", "scroll_direction", "scroll_amount", "start_coordinate", "region"],
    ],
  ])("describes tools whose input only Claude knows to other models: %j", (tool, members) => {
    const [{ name, parameters, description }] = read({ tools: [tool] }).tools;
    expect(name).toBe(tool.name);
    expect(Object.keys(parameters.properties)).toEqual(members);
    expect(description).not.toBe("");
  });

  test.each([
    "web_search_20250305",
    "web_fetch_20260318",
    "code_execution_20260521",
    "tool_search_tool_regex_20251119",
    "computer_toolset_20260801",
  ])("refuses Anthropic's own tools by name: %s", (type) => {
    const tools = [
      { name: "look", input_schema: schema },
      { type, name: "web_search" },
    ];
    const error = refusalOf({ tools });
    expect(error.param).toBe("tools[1].type");
    expect(error.message).toContain(`\`${type}\``);
  });

  test("refuses MCP servers that Anthropic connects to, and accepts an empty list", () => {
    expect(refusalOf({ mcp_servers: [{ url: "https://a.test" }] }).param).toBe("mcp_servers");
    expect(read({ mcp_servers: [] }).others).toEqual({});
  });

  test.each([
    [{ type: "auto" }, { toolChoice: { type: "auto" } }],
    [
      { type: "any", disable_parallel_tool_use: true },
      { toolChoice: { type: "required" }, parallelCalls: false },
    ],
    [
      { type: "tool", name: "a", disable_parallel_tool_use: false },
      { toolChoice: { type: "tool", kind: "function", name: "a" }, parallelCalls: true },
    ],
    [{ type: "none" }, { toolChoice: { type: "none" } }],
  ])("reads the tool choice %j", (tool_choice, chosen) => {
    expect(read({ tool_choice })).toMatchObject(chosen);
  });
});

describe("thinking and output", () => {
  test.each([
    [
      { type: "enabled", budget_tokens: 2000 },
      { enabled: true, budget: 2000 },
    ],
    [
      { type: "adaptive", display: "omitted" },
      { enabled: true, shown: "omitted" },
    ],
    [
      { type: "adaptive", display: "summarized" },
      { enabled: true, shown: "auto" },
    ],
    [{ type: "between_tools" }, { enabled: true, effort: "low" }],
    [{ type: "disabled" }, { enabled: false }],
  ])("reads thinking options from %j", (thinking, expected) => {
    expect(read({ thinking }).thinking).toEqual(expected);
  });

  test("names an effort without thinking, which other formats cannot express", () => {
    const conversation = read({ thinking: { type: "disabled" }, output_config: { effort: "low" } });
    expect(conversation).toMatchObject({ thinking: { enabled: false }, others: { "output_config.effort": "low" } });
    expect(read({ output_config: { effort: "max" } }).thinking).toEqual({ effort: "max" });
  });

  test("reads an output schema from its present and its former member", () => {
    const schema = { type: "object", properties: {}, additionalProperties: false };
    const format = { type: "json_schema", schema };
    const output = { type: "schema", name: "answer", schema, strict: true };
    expect(read({ output_config: { format } }).output).toEqual(output);
    expect(read({ output_format: format }).output).toEqual(output);
  });

  test("asks for no strict mode if a property is optional, which OpenAI refuses", () => {
    const schema = { type: "object", properties: { at: { type: "integer" } }, additionalProperties: false };
    const format = { type: "json_schema", schema };
    expect(read({ output_config: { format } }).output).toMatchObject({ schema, strict: false });
    const tools = [{ name: "look", input_schema: schema, strict: true }];
    expect(read({ tools }).tools).toMatchObject([{ parameters: schema, strict: false }]);
  });

  test.each([
    ["max_tokens", { max_tokens: 0 }],
    ["thinking.type", { thinking: { type: "deep" } }],
    ["tool_choice.type", { tool_choice: { type: "some" } }],
    ["output_config.format.type", { output_config: { format: { type: "xml" } } }],
    ["messages[0].role", { messages: [{ role: "robot", content: "x" }] }],
    ["tools[0].name", { tools: [{ input_schema: {} }] }],
  ])("refuses a member that only Anthropic supports by its name: %s", (param, body) => {
    expect(refusalOf(body)).toMatchObject({ code: "invalid_request", param });
  });
});
