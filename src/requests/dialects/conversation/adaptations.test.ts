// Errors of many vendors lead to the refused member and to nothing else, and the body loses only that.
import { describe, expect, test } from "bun:test";
import { chatAdaptations } from "../chat/adaptations.ts";
import { messageAdaptations } from "../message/adaptations.ts";
import { responseAdaptations } from "../response/adaptations.ts";
import { adaptationsFor, adapted, lastingKeys, trialKeys } from "./adaptations.ts";

const schema = { type: "object", properties: { strict: { type: "string" }, reasoning: { type: "string" } } };
const call = (id: string) => ({ id, type: "function", function: { name: "look", arguments: "{}" } });
const chat = {
  model: "m",
  messages: [
    { role: "user", content: "Hello", name: "Ann" },
    { role: "assistant", content: null, reasoning_content: "Hm.", reasoning: "Hm.", tool_calls: [call("toolu_1")] },
    { role: "tool", tool_call_id: "toolu_1", content: "found" },
    { role: "user", content: "And now?" },
  ],
  tools: [{ type: "function", function: { name: "look", parameters: schema, strict: true } }],
  tool_choice: "required",
  response_format: { type: "json_object" },
  reasoning_effort: "xhigh",
  chat_template_kwargs: { enable_thinking: false },
  parallel_tool_calls: true,
  temperature: 0.2,
  max_tokens: 100,
  stream: true,
  stream_options: { include_usage: true },
};
const response = {
  model: "m",
  input: [
    { type: "message", role: "user", content: [{ type: "input_text", text: "Hello" }] },
    { type: "reasoning", summary: [], encrypted_content: "gAAA" },
  ],
  store: false,
  include: ["reasoning.encrypted_content", "message.output_text.logprobs"],
  reasoning: { effort: "high", summary: "auto" },
  tools: [{ type: "function", name: "look", parameters: schema, strict: false }],
  text: { format: { type: "json_object" } },
  prompt_cache_key: "k",
  safety_identifier: "ann",
  max_output_tokens: 100,
};
const message = {
  model: "m",
  messages: [{ role: "user", content: [{ type: "text", text: "Hi", cache_control: { type: "ephemeral" } }] }],
  system: [{ type: "text", text: "Be kind.", cache_control: { type: "ephemeral" } }],
  tools: [{ name: "look", input_schema: { properties: { cache_control: {} } }, strict: true }],
  thinking: { type: "adaptive" },
  output_config: { effort: "high", format: { type: "json_schema", schema } },
  metadata: { user_id: "u" },
  max_tokens: 100,
};
const formats = {
  chat: [chat, chatAdaptations],
  response: [response, responseAdaptations],
  message: [message, messageAdaptations],
} as const;
type Format = keyof typeof formats;

const openai = (text: string, param: string | null = null, code: string | null = null) => ({
  error: { message: text, type: "invalid_request_error", param, code },
});
const pydantic = (...loc: (string | number)[]) => ({
  detail: [{ type: "extra_forbidden", loc: ["body", ...loc], msg: "Extra inputs are not permitted", input: "Hello" }],
});

function keysOf(format: Format, error: unknown): string[] {
  const [body, adaptations] = formats[format];
  return adaptationsFor(typeof error === "string" ? error : JSON.stringify(error), adaptations, () =>
    JSON.stringify(body),
  );
}

function without(format: Format, ...keys: string[]): Record<string, unknown> {
  const [body, adaptations] = formats[format];
  return JSON.parse(adapted(JSON.stringify(body), adaptations, new Set(keys)).body);
}

describe("finds the refused member in the words of vendors:", () => {
  const effort = "reasoning_effort=xhigh";
  const cases: readonly (readonly [format: Format, error: unknown, keys: readonly string[]])[] = [
    ["chat", openai("Unrecognized request argument supplied: reasoning_effort"), [effort]],
    ["chat", openai("Unsupported parameter: 'reasoning_effort' is not supported with this model."), [effort]],
    [
      "chat",
      openai(
        "Unsupported value: 'reasoning_effort' does not support 'xhigh' with this model. Supported values are: 'low', 'medium', and 'high'.",
        "reasoning_effort",
        "unsupported_value",
      ),
      [effort],
    ],
    [
      "chat",
      { code: "Client specified an invalid argument", error: "Argument not supported on this model: reasoningEffort" },
      [effort],
    ],
    ["chat", openai("`reasoning_effort` is not supported with this model"), [effort]],
    [
      "chat",
      {
        object: "error",
        message:
          "reasoning_effort='xhigh' is not supported for this model. Must be one of (<ReasoningEffort.none: 'none'>, <ReasoningEffort.high: 'high'>)",
        code: "3051",
      },
      [effort],
    ],
    ["chat", { code: "invalid-argument", error: "Model grok-4 does not support parameter reasoningEffort." }, [effort]],
    [
      "chat",
      [
        {
          error: { code: 400, message: "Thinking level is not supported for this model.", status: "INVALID_ARGUMENT" },
        },
      ],
      [effort],
    ],
    [
      "chat",
      openai(
        "Unable to submit request because thinking is not supported by this model. Learn more: https://cloud.google.com/vertex-ai",
      ),
      [effort],
    ],
    ["chat", openai("groq does not support parameters: ['reasoning_effort'], for model=llama-3.3"), [effort]],
    ["chat", openai("This model doesn\u2019t support reasoning_effort"), [effort]],
    ["chat", openai('"llama3.2:latest" does not support thinking'), [effort]],
    ["chat", openai('invalid reasoning value: \'xhigh\' (must be "high", "medium", "low", or "none")'), [effort]],
    ["chat", openai("`reasoning_effort` must be one of `none` or `default`"), [effort]],
    [
      "chat",
      "Failed to deserialize the JSON body into the target type: unknown field `reasoning_effort`, expected one of `model`, `messages`, `stream_options` at line 1 column 9",
      [effort],
    ],
    ["chat", openai('json: unknown field "chat_template_kwargs"'), ["chat_template_kwargs"]],
    [
      "chat",
      [
        {
          error: {
            code: 400,
            message:
              'Invalid JSON payload received. Unknown name "chat_template_kwargs": Cannot find field.\nInvalid JSON payload received. Unknown name "reasoning": Cannot find field.',
            status: "INVALID_ARGUMENT",
          },
        },
      ],
      ["chat_template_kwargs", "messages.*.reasoning"],
    ],
    [
      "chat",
      openai(
        "'messages.1' : for 'role:assistant' the following must be satisfied[('messages.1' : property 'reasoning_content' is unsupported)]",
      ),
      ["messages.*.reasoning_content"],
    ],
    ["chat", openai("property 'reasoning' is unsupported", ""), ["messages.*.reasoning"]],
    ["chat", openai("messages[1].reasoning: reasoning is not supported with this model"), ["messages.*.reasoning"]],
    [
      "chat",
      {
        message:
          "messages.1.assistant.reasoning_content: property 'messages.1.assistant.reasoning_content' is unsupported",
        type: "invalid_request_error",
        param: "validation_error",
        code: "wrong_api_format",
      },
      ["messages.*.reasoning_content"],
    ],
    ["chat", pydantic("messages", 1, "assistant", "reasoning_content"), ["messages.*.reasoning_content"]],
    ["chat", pydantic("tools", 0, "function", "strict"), ["tools.*.function.strict"]],
    [
      "chat",
      { object: "error", message: pydantic("stream_options"), type: "invalid_request_error" },
      ["stream_options"],
    ],
    [
      "chat",
      openai(
        "[{'type': 'extra_forbidden', 'loc': ('body', 'reasoning_effort'), 'msg': 'Extra inputs are not permitted', 'input': 'xhigh'}]",
      ),
      [effort],
    ],
    ["chat", openai("stream_options.include_usage: Extra inputs are not permitted"), ["stream_options"]],
    ["chat", openai("`parallel_tool_calls` is not supported by this model"), ["parallel_tool_calls"]],
    [
      "chat",
      openai(
        "Function tools with reasoning_effort are not supported for gpt-5.4 in /v1/chat/completions. Please use /v1/responses instead.",
      ),
      [`${effort} with tools`],
    ],
    [
      "chat",
      {
        error: {
          message: "Provider returned error",
          code: 400,
          metadata: {
            raw: '{"object":"error","message":"Unexpected role \'user\' after role \'tool\'","type":"invalid_request_message_order","param":null,"code":"3230"}',
          },
        },
      },
      ["assistant after results"],
    ],
    ["chat", openai("Tool call id was toolu_1 but must be a-z, A-Z, 0-9, with a length of 9."), ["short call ids"]],
    [
      "chat",
      openai(
        "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
        "max_tokens",
        "unsupported_parameter",
      ),
      ["max_completion_tokens"],
    ],
    ["response", openai("Encrypted content is not supported with this model.", "include"), ["include.*"]],
    ["response", openai("Encrypted content is not supported with this model."), ["include.*"]],
    [
      "response",
      openai("Unsupported parameter: 'reasoning.effort' is not supported with this model.", "reasoning.effort"),
      ["reasoning.effort=high"],
    ],
    [
      "response",
      openai(
        "Your organization must be verified to generate reasoning summaries. Please go to: https://platform.openai.com/settings/organization/general and click on Verify Organization.",
        "reasoning.summary",
        "unsupported_value",
      ),
      ["reasoning.summary=auto"],
    ],
    [
      "response",
      openai("Unknown parameter: 'prompt_cache_key'.", "prompt_cache_key", "unknown_parameter"),
      ["prompt_cache_key"],
    ],
    [
      "chat",
      openai(
        "Invalid schema for function 'strict': In context=('properties', 'x'), 'propertyNames' is not permitted.",
        "tools[0].function.parameters",
        "invalid_function_parameters",
      ),
      ["tools with any schema"],
    ],
    [
      "message",
      { error: { message: "tools.0.custom: For 'integer' type, properties maximum, minimum are not supported" } },
      ["tools with any schema"],
    ],
    [
      "response",
      openai("The encrypted content gAAA...Rg== could not be verified.", null, "invalid_encrypted_content"),
      ["input without reasoning"],
    ],
    ["response", pydantic("tools", 0, "FunctionTool", "strict"), ["tools.*.strict"]],
    [
      "message",
      {
        type: "error",
        error: { type: "invalid_request_error", message: "tools.0.custom.strict: Extra inputs are not permitted" },
      },
      ["tools.*.strict"],
    ],
    [
      "message",
      {
        type: "error",
        error: { type: "invalid_request_error", message: "This model does not support the effort parameter." },
      },
      ["output_config.effort=high"],
    ],
    [
      "message",
      {
        type: "error",
        error: { type: "invalid_request_error", message: "adaptive thinking is not supported on this model" },
      },
      ["thinking=adaptive"],
    ],
    [
      "message",
      { type: "error", error: { type: "invalid_request_error", message: "metadata: Extra inputs are not permitted" } },
      ["metadata"],
    ],
  ];
  test.each(cases)("%s, %j", (format, error, keys) => {
    expect(keysOf(format, error)).toEqual([...keys]);
  });
});

describe("finds nothing in errors that", () => {
  const cases: readonly (readonly [what: string, format: Format, error: unknown])[] = [
    [
      "ask for a missing member",
      "chat",
      openai("Missing `reasoning_content` field in the assistant message at message index 4."),
    ],
    [
      "want a member passed back",
      "chat",
      openai("The `reasoning_content` in the thinking mode must be passed back to the API."),
    ],
    [
      "name a value of the client",
      "chat",
      openai("Unsupported value: 'temperature' does not support 0.2 with this model.", "temperature"),
    ],
    ["name another member by its place", "chat", openai("Invalid value beside reasoning_effort.", "temperature")],
    [
      "refuse what the client demands",
      "chat",
      openai("Unsupported parameter: 'tool_choice' is not supported with this model.", "tool_choice"),
    ],
    [
      "refuse the form of the answer",
      "chat",
      openai("This response_format type is unavailable now: response_format is not supported"),
    ],
    [
      "quote the words of a user",
      "chat",
      openai("Invalid 'messages[0].content': 'tell me why reasoning_effort is not supported' was flagged."),
    ],
    [
      "quote words with an apostrophe",
      "chat",
      openai('Invalid text "I don\'t know if stream_options is unsupported" in the prompt.'),
    ],
    [
      "name a usual word by chance",
      "chat",
      openai("Your reasoning is not valid and the strict policy is not supported."),
    ],
    [
      "list known names",
      "chat",
      openai("unknown field `foo`, expected one of `model`, `reasoning_effort`, `stream_options`"),
    ],
    ["advise another member", "chat", openai("Invalid model. Use reasoning_effort to think less.")],
    [
      "are about a property in a schema",
      "chat",
      openai(
        "Invalid JSON payload received. Unknown name \"strict\" at 'tools[0].function.parameters.properties[0].value': Cannot find field.",
      ),
    ],
    ["place a fault in a schema", "chat", pydantic("tools", 0, "function", "parameters", "properties", "strict")],
    ["have no words", "chat", "<html>reasoning_effort is not supported</html>"],
    ["are empty", "chat", ""],
    ["name a member below a client's own", "chat", openai("Unrecognized request argument supplied: zz.stream_options")],
    ["name a client's own member with a dash", "chat", openai("Unknown parameter: x-stream_options")],
    ["name a client's own member with an index", "chat", openai("Unknown parameter: 'stream_options[x]'.")],
    ["name a usual word below a client's own member", "chat", openai("Unknown parameter: 'zz.reasoning'.")],
    ["name a member that was not sent", "response", openai("Unknown parameter: 'service_tier'.", "service_tier")],
    ["refuse to store nothing", "response", openai("Unsupported parameter: 'store'", "store")],
    [
      "find fault with a value of the client",
      "response",
      openai("Invalid 'prompt_cache_key': string too long.", "prompt_cache_key"),
    ],
    [
      "are about a tool that has a member's name",
      "chat",
      openai("Weird schema for function 'strict': 'oneOf' in properties[0] is not permitted."),
    ],
    [
      "are about a block with a member's name",
      "message",
      { error: { message: "messages.0.content.0: Invalid `signature` in `thinking` block" } },
    ],
    [
      "are about a message at a place",
      "chat",
      openai("Unknown name \"reasoning_effort\" at 'messages[1]': Cannot find field."),
    ],
    [
      "want thinking first",
      "message",
      {
        error: {
          message:
            "messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but found `tool_use`. When `thinking` is enabled, a final `assistant` message must start with a thinking block.",
        },
      },
    ],
    [
      "count cache marks",
      "message",
      { error: { message: "A maximum of 4 blocks with cache_control may be provided. Found 5." } },
    ],
    [
      "repeat a client's URL",
      "chat",
      openai("Error while downloading https://images.example/unsupported/stream_options.", "url"),
    ],
    ["name a tool", "chat", openai("Tool 'stream_options' does not exist.")],
    [
      "are about a call that the model wrote",
      "chat",
      openai(
        "Tool call validation failed: parameters for tool look did not match schema: errors: [additionalProperties 'stream_options' not allowed]",
      ),
    ],
    [
      "are about a name in metadata",
      "message",
      openai("Invalid property name in 'metadata': names must match the pattern.", "metadata"),
    ],
    [
      "are about a client's limit",
      "message",
      { error: { message: "`max_tokens` must be greater than `thinking.budget_tokens`." } },
    ],
  ];
  test.each(cases)("%s", (_, format, error) => {
    expect(keysOf(format, error)).toEqual([]);
  });
});

describe("finds for this request alone", () => {
  const cases: readonly (readonly [what: string, format: Format, error: unknown, key: string])[] = [
    [
      "a member refused beside another one",
      "chat",
      openai("`stream_options` is not supported when `logprobs` is set"),
      "stream_options once",
    ],
    [
      "a member refused for several answers",
      "chat",
      openai("stream_options is not supported with n > 1"),
      "stream_options once",
    ],
    ...[
      ["cache_control", "**.cache_control once"],
      ["tools.0.custom.cache_control", "**.cache_control with tools once"],
      ["messages.0.content.0.tool_result.content.0.cache_control", "**.cache_control once"],
    ].map(([place = "", key = ""]) => {
      const error = { type: "invalid_request_error", message: `${place}: Extra inputs are not permitted` };
      return [`a mark at one place, ${place}`, "message", { type: "error", error }, key] as const;
    }),
    [
      "a member refused beside a format",
      "chat",
      openai("reasoning_effort is not supported with response_format"),
      "reasoning_effort=xhigh once",
    ],
    [
      "a member refused beside content",
      "chat",
      openai("stream_options is not supported for requests containing audio"),
      "stream_options once",
    ],
    [
      "a cache key with characters that the server refuses",
      "response",
      openai("Invalid 'prompt_cache_key': characters not allowed", "prompt_cache_key"),
      "prompt_cache_key once",
    ],
    [
      "a user whose name the server refuses",
      "response",
      openai("Invalid 'safety_identifier': value not allowed"),
      "safety_identifier once",
    ],
    [
      "a value of the user that the server does not support",
      "message",
      openai("Unsupported value for 'metadata'.", "metadata"),
      "metadata once",
    ],
    [
      "a part of a client's value in the words",
      "message",
      { error: { message: "messages.0.content.0.text.cache_control.scope: Extra inputs are not permitted" } },
      "**.cache_control once",
    ],
    ["a part of a client's value at a place", "message", pydantic("metadata", "team"), "metadata once"],
  ];
  test.each(cases)("%s", (_, format, error, key) => {
    expect(keysOf(format, error)).toEqual([key]);
    const [, adaptations] = formats[format];
    expect(lastingKeys(new Set([key]), adaptations)).toEqual([]);
    expect(without(format, key)).toEqual(without(format, key.replace(" once", "")));
  });

  test.each(["high with tools", "highest", "x".repeat(1_000)])("an effort that no vendor defines: %s", (effort) => {
    const body = JSON.stringify({ ...chat, reasoning_effort: effort });
    const refused = JSON.stringify(openai("Unsupported parameter: reasoning_effort", "reasoning_effort"));
    const keys = adaptationsFor(refused, chatAdaptations, () => body);
    expect(keys).toEqual([`reasoning_effort=${effort} once`]);
    expect(lastingKeys(new Set(keys), chatAdaptations)).toEqual([]);
  });
});

test("lets no other request try to do without the request for usage", () => {
  const keys = new Set(["stream_options", "stream_options with tools", "reasoning_effort=low"]);
  expect(lastingKeys(keys, chatAdaptations)).toEqual([...keys]);
  expect(trialKeys(keys, chatAdaptations)).toEqual(["reasoning_effort=low"]);
});

describe("adapted", () => {
  test("leaves out only the refused member", () => {
    const { reasoning_effort: _, ...rest } = chat;
    expect(without("chat", "reasoning_effort=xhigh")).toEqual(rest);
    expect(without("chat", "reasoning_effort=low")).toEqual(chat);
    expect(without("chat", "reasoning_effort=xhigh with tools")).toEqual(rest);
    expect(without("response", "include.*")).toEqual({ ...response, include: ["message.output_text.logprobs"] });
    expect(without("response", "reasoning.effort=high")).toEqual({ ...response, reasoning: { summary: "auto" } });
    expect(without("message", "output_config.effort=high")).toMatchObject({
      output_config: { format: message.output_config.format },
    });
  });

  test("keeps a member refused beside tools in a request without tools", () => {
    const body = JSON.stringify({ messages: [], reasoning_effort: "low" });
    const keys = new Set(["reasoning_effort=low with tools"]);
    expect(adapted(body, chatAdaptations, keys)).toEqual({ body, leftOut: [] });
  });

  test("leaves the client's schemas and arguments alone", () => {
    const written = without("message", "**.cache_control", "tools.*.strict");
    expect(written["tools"]).toEqual([{ name: "look", input_schema: { properties: { cache_control: {} } } }]);
    expect(written["system"]).toEqual([{ type: "text", text: "Be kind." }]);
    expect(without("chat", "tools.*.function.strict")["tools"]).toEqual([
      { type: "function", function: { name: "look", parameters: schema } },
    ]);
  });

  test("removes an assistant's message of which only reasoning was left", () => {
    const thought = { role: "assistant", content: "", reasoning: "Hm." };
    const body = JSON.stringify({ messages: [...chat.messages, thought] });
    const { body: written, leftOut } = adapted(body, chatAdaptations, new Set(["messages.*.reasoning"]));
    const [user, { reasoning: _, ...assistant } = {}, ...rest] = chat.messages as Record<string, unknown>[];
    expect(JSON.parse(written)).toEqual({ messages: [user, assistant, ...rest] });
    expect(leftOut).toEqual(["reasoning"]);
  });

  test("makes each strict tool loose, and remembers nothing of a schema", () => {
    const keys = new Set(["tools with any schema", "reasoning_effort=low"]);
    const nested = { type: "namespace", tools: [{ type: "function", name: "a", strict: true }] };
    const flat = JSON.stringify({ tools: [{ type: "function", name: "b", strict: true }, nested, { type: "custom" }] });
    const { body, leftOut } = adapted(flat, responseAdaptations, keys);
    expect(body).toBe(flat.replaceAll("true", "false"));
    expect(leftOut).toEqual(["strict"]);
    expect(lastingKeys(keys, responseAdaptations)).toEqual(["reasoning_effort=low"]);
    expect(without("chat", "tools with any schema")).toMatchObject({ tools: [{ function: { strict: false } }] });
  });

  test("removes reasoning of another organization from the input", () => {
    const [user] = response.input;
    expect(without("response", "input without reasoning")["input"]).toEqual([user]);
  });

  test("removes an object or a list that becomes empty", () => {
    const body = JSON.stringify({ include: ["reasoning.encrypted_content"], reasoning: { summary: "auto" } });
    const keys = new Set(["include.*", "reasoning.summary=auto"]);
    expect(adapted(body, responseAdaptations, keys)).toEqual({ body: "{}", leftOut: ["reasoning"] });
  });

  test("puts an assistant's words between results and the user's words, and shortens call ids alike in each request", () => {
    const written = without("chat", "assistant after results", "short call ids")["messages"] as Record<
      string,
      unknown
    >[];
    expect(written.map(({ role }) => role)).toEqual(["user", "assistant", "tool", "assistant", "user"]);
    const [shortened] = (written[1]?.["tool_calls"] ?? []) as { id: string }[];
    expect(shortened?.id).toMatch(/^[a-zA-Z0-9]{9}$/);
    expect(written[2]?.["tool_call_id"]).toBe(shortened?.id);
    expect(without("chat", "assistant after results", "short call ids")["messages"]).toEqual(written);
  });

  test("gives different calls different ids, and keeps ids that fit", () => {
    const ids = ["abcdefgh1", ...Array.from({ length: 200 }, (_, index) => `call_${index}`)];
    const body = JSON.stringify({ messages: [{ role: "assistant", tool_calls: ids.map(call) }] });
    const written = JSON.parse(adapted(body, chatAdaptations, new Set(["short call ids"])).body);
    const given = written.messages[0].tool_calls.map((one: { id: string }) => one.id);
    expect(new Set(given).size).toBe(ids.length);
    expect(given[0]).toBe("abcdefgh1");
  });
});

test("reads long errors made to slow a search in a few milliseconds", () => {
  const pieces = [
    "'a 'b",
    "max_tokens not supported ",
    "tool call id ",
    "unsupported 'reasoning",
    "\"' `",
    "a'",
    "tools.0.custom ",
  ];
  for (const piece of pieces) {
    const text = piece.repeat(65_536 / piece.length);
    const startedMs = performance.now();
    for (const format of Object.keys(formats) as Format[]) keysOf(format, openai(text));
    expect(performance.now() - startedMs).toBeLessThan(500);
  }
});
