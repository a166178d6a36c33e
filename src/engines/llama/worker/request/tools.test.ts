import { afterAll, beforeAll, expect, test } from "bun:test";
import { thinkingTemplate, toolTemplate } from "../../../../../tests/support/llama/templates.ts";
import {
  readEvents,
  temporaryDirectory,
  WorkerProcess,
  writeVariant,
} from "../../../../../tests/support/llama/worker-process.ts";
import { withinMs } from "../../../../../tests/support/long.ts";

const directory = temporaryDirectory();
let worker: WorkerProcess;

beforeAll(async () => {
  const modelPath = await writeVariant(directory.path, "tools.gguf", { "tokenizer.chat_template": toolTemplate });
  worker = await WorkerProcess.start(directory.path, { modelPath });
});

afterAll(async () => {
  await worker.stop();
  directory.dispose();
});

const parameters = {
  type: "object",
  properties: { city: { type: "string", maxLength: 12 }, days: { type: "integer" } },
  required: ["city", "days"],
  additionalProperties: false,
};
const tools = [
  { type: "function", function: { name: "get_weather", description: "The weather", parameters } },
  { type: "function", function: { name: "get_time" } },
];
const forced = { tools, tool_choice: { type: "function", function: { name: "get_weather" } } };

function checkWeather(text: string): void {
  const { city, days, ...rest } = JSON.parse(text);
  expect([typeof city, Number.isInteger(days), rest]).toEqual(["string", true, {}]);
}

test("reports tool support for a model whose template mentions tools", async () => {
  const { data } = await worker.get<{ data: { tools: boolean }[] }>("/models");
  expect(data[0]?.tools).toBe(true);
});

test("calls a named tool with arguments of its schema", async () => {
  const { choices } = await worker.chat("What is the weather?", forced);
  const [choice] = choices;
  expect(choice?.finish_reason).toBe("tool_calls");
  expect(choice?.message.content).toBeNull();
  expect(choice?.message.tool_calls).toHaveLength(1);
  const call = choice?.message.tool_calls?.[0];
  expect(call).toMatchObject({ type: "function", function: { name: "get_weather" } });
  expect(call?.id).toMatch(/^call_[0-9a-f]{24}$/);
  checkWeather(call?.function.arguments ?? "");
});

test("streams a call as its name first, then pieces of its arguments", async () => {
  const body = { messages: [{ role: "user", content: "Hi" }], temperature: 0, stream: true, ...forced };
  const { chunks, done } = await readEvents(await worker.post("/chat/completions", body));
  const calls = chunks.flatMap((chunk) => chunk.choices[0]?.delta.tool_calls ?? []);
  const [first, ...rest] = calls;
  expect(first).toMatchObject({ index: 0, type: "function", function: { name: "get_weather", arguments: "" } });
  expect(rest.length).toBeGreaterThan(2);
  checkWeather(rest.map((call) => call.function.arguments).join(""));
  expect(chunks.at(-1)?.choices[0]?.finish_reason).toBe("tool_calls");
  expect(done).toBe(true);
});

test("calls one of the tools if a call is required", async () => {
  const { choices } = await worker.chat("Hi", { tools, tool_choice: "required", parallel_tool_calls: false });
  const calls = choices[0]?.message.tool_calls ?? [];
  expect(calls).toHaveLength(1);
  expect(["get_weather", "get_time"]).toContain(calls[0]?.function.name ?? "");
  expect(choices[0]?.finish_reason).toBe("tool_calls");
});

test("ends a call that the limit cuts with `length`", async () => {
  const { choices, usage } = await worker.chat("Hi", { ...forced, max_tokens: 12 });
  expect(choices[0]?.finish_reason).toBe("length");
  expect(usage.completion_tokens).toBe(12);
});

test("answers as usual if a model may call but need not", async () => {
  const { choices, usage } = await worker.chat("What is the default port?", { tools });
  expect(choices[0]).toMatchObject({ finish_reason: "stop" });
  expect(choices[0]?.message.tool_calls).toBeUndefined();
  const without = await worker.chat("What is the default port?");
  expect(usage.prompt_tokens).toBeGreaterThan(without.usage.prompt_tokens + 50);
});

test("applies the JSON schema to the answer beside tools", async () => {
  const schema = { type: "object", properties: { ok: { type: "boolean" } }, required: ["ok"] };
  const response_format = { type: "json_schema", json_schema: { name: "x", schema } };
  const { choices } = await worker.chat("Hi", { tools, response_format });
  expect(typeof JSON.parse(choices[0]?.message.content ?? "").ok).toBe("boolean");
});

const called = {
  role: "assistant",
  content: null,
  tool_calls: [
    { id: "a", type: "function", function: { name: "get_weather", arguments: '{"city": "Oslo", "days": 1}' } },
    { id: "b", type: "function", function: { name: "get_time", arguments: "" } },
  ],
};
const results = [
  { role: "tool", tool_call_id: "b", content: "12:00" },
  { role: "tool", tool_call_id: "a", content: '{"sky": "clear"}' },
];

test("renders and answers a history with calls and results", async () => {
  const user = { role: "user", content: "Hi" };
  const messages = [user, called, ...results];
  const { choices, usage } = await worker.chat("", { messages, tools, max_tokens: 5 });
  expect(choices[0]?.finish_reason).toBe("length");
  const shorter = await worker.chat("", { messages: [user], tools, max_tokens: 5 });
  expect(usage.prompt_tokens).toBeGreaterThan(shorter.usage.prompt_tokens + 60);
});

test("accepts 512 tools, refuses another, and bounds the work for their schemas", async () => {
  const many = (count: number, schema: object, strict = false) =>
    Array.from({ length: count }, (_, index) => ({
      type: "function",
      function: { name: `tool_${index}`, parameters: schema, strict },
    }));
  // The tools do not fit into the demo model's context, which is checked last.
  expect(await worker.chatRefusal({ tools: many(512, {}) })).toContain("the length of messages is");
  expect(await worker.chatRefusal({ tools: many(513, {}) })).toBe("tools may hold at most 512 tools.");
  const properties = Object.fromEntries(Array.from({ length: 100 }, (_, index) => [`p${index}`, {}]));
  const started = performance.now();
  expect(await worker.chatRefusal({ tools: many(512, { properties }, true) })).toMatch(
    /^tools\[\d+\]\.function\.parameters is/,
  );
  expect(performance.now() - started).toBeLessThan(withinMs(500));
  // Schemas without `strict` only become free objects.
  expect(await worker.chatRefusal({ tools: many(512, { properties }) })).toContain("the length of messages is");
});

test("allows any object for a keyword without a grammar, and refuses it in strict mode", async () => {
  const odd = (strict: boolean) => ({
    tools: [
      {
        type: "function",
        function: { name: "look", strict, parameters: { type: "object", not: { required: ["x"] } } },
      },
    ],
    tool_choice: "required",
    max_tokens: 40,
  });
  expect(await worker.chatRefusal(odd(true))).toContain("tools[0].function.parameters");
  const response = await worker.post("/chat/completions", {
    messages: [{ role: "user", content: "Hi" }],
    ...odd(false),
  });
  expect(response.status).toBe(200);
});

const refusals: [name: string, options: Record<string, unknown>, message: RegExp][] = [
  ["a call without a result", { messages: [called] }, /^messages\[0\]\.tool_calls\[0\] has no answer/],
  ["a result without a call", { messages: results }, /^messages\[0\]\.tool_call_id "b" answers no call/],
  [
    "a name that cannot be one",
    { tools: [{ type: "function", function: { name: "a b" } }] },
    /^tools\[0\]\.function\.name/,
  ],
  [
    "a choice that is not among the tools",
    { ...forced, tools: tools.slice(1) },
    /^tool_choice\.function\.name "get_weather"/,
  ],
  ["two tools of one name", { tools: [tools[0], tools[0]] }, /^tools: two tools have the same name/],
  [
    "parameters that are no object",
    { tools: [{ type: "function", function: { name: "f", parameters: { type: "string" } } }] },
    /^tools\[0\]\.function\.parameters must be/,
  ],
  ["the older functions", { functions: [] }, /^functions is not supported; send "tools"/],
];

for (const [name, options, message] of refusals) {
  test(`refuses a request with tools with a message that names the field: ${name}`, async () => {
    expect(await worker.chatRefusal(options)).toMatch(message);
  });
}

test("delivers thinking that the template opens as reasoning_content, and allows to disable it", async () => {
  const modelPath = await writeVariant(directory.path, "thinking.gguf", {
    "tokenizer.chat_template": thinkingTemplate,
  });
  const thinker = await WorkerProcess.start(directory.path, { modelPath });
  try {
    const thought = await thinker.chat("What is the default port?", { max_tokens: 10 });
    expect(thought.choices[0]?.message).toMatchObject({
      content: "",
      reasoning_content: expect.stringContaining("local node"),
    });
    const direct = await thinker.chat("What is the default port?", { max_tokens: 10, reasoning_effort: "none" });
    expect(direct.choices[0]?.message.content).toContain("local node");
    expect(direct.choices[0]?.message.reasoning_content).toBeUndefined();
  } finally {
    await thinker.stop();
  }
});
