// Tests that collected chunks of a stream equal the whole answers of the same servers.
import { describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { ChunkCollector } from "./chunk-collector.ts";

type Json = Record<string, unknown>;
/** Returns one stream event as the client gets it. */
function eventOf(chunk: Json): string {
  return `data: ${JSON.stringify(chunk)}\n\n`;
}

const usage = { promptTokens: 3, completionTokens: 4, estimated: true };

function collected(choices: readonly Json[], more: Json = {}): Json {
  const collector = new ChunkCollector();
  for (const choice of choices) {
    const head = { id: "c", object: "chat.completion.chunk", created: 5, model: "m" };
    collector.add(eventOf({ ...head, choices: [choice], ...more }));
  }
  return collector.answer(usage) ?? {};
}

function onlyMessage(deltas: readonly Json[]): unknown {
  const { choices } = collected(deltas.map((delta) => ({ index: 0, delta }))) as { choices: { message: unknown }[] };
  return choices[0]?.message;
}

/** Collects the recorded stream of a real server. */
function golden(name: string): Json {
  const file = join(import.meta.dir, "../../../../tests/fixtures/golden/streams", `${name}.sse`);
  const collector = new ChunkCollector();
  for (const line of readFileSync(file, "utf8").split("\n")) {
    if (line.startsWith("data: {")) collector.add(`${line}\n\n`);
  }
  return collector.answer(usage) ?? {};
}

test("joins texts, keeps head and finish reason, and leaves stream members out", () => {
  const completion = collected(
    [
      { index: 0, delta: { role: "assistant", content: "" }, logprobs: null, finish_reason: null },
      { index: 0, delta: { content: "Hel" }, finish_reason: null },
      { index: 0, delta: { content: "lo" }, finish_reason: null },
      { index: 0, delta: {}, finish_reason: "length" },
    ],
    { system_fingerprint: "fp", service_tier: null, usage: null, obfuscation: "x" },
  );
  expect(completion).toEqual({
    id: "c",
    object: "chat.completion",
    created: 5,
    model: "m",
    system_fingerprint: "fp",
    choices: [
      {
        index: 0,
        message: { role: "assistant", content: "Hello", refusal: null },
        logprobs: null,
        finish_reason: "length",
      },
    ],
    usage: { prompt_tokens: 3, completion_tokens: 4, total_tokens: 7, estimated: true },
  });
});

test("keeps streamed usage with its details", () => {
  const collector = new ChunkCollector();
  const shown = {
    prompt_tokens: 1,
    completion_tokens: 2,
    total_tokens: 3,
    prompt_tokens_details: { cached_tokens: 1 },
  };
  collector.add(eventOf({ choices: [{ index: 0, delta: { content: "a" }, finish_reason: "stop" }], usage: null }));
  collector.add(eventOf({ choices: [], usage: shown }));
  expect(collector.answer(usage)?.["usage"]).toEqual(shown);
});

test("returns no answer for a stream without a choice", () => {
  const collector = new ChunkCollector();
  collector.add(eventOf({ id: "c", choices: [], usage: null }));
  expect(collector.answer(usage)).toBeUndefined();
});

test("separates several choices by index and returns them in order", () => {
  expect(golden("openai-two-choices.with-usage")["choices"]).toMatchObject([
    { index: 0, message: { content: "A" }, finish_reason: "stop" },
    { index: 1, message: { content: "B" }, finish_reason: "length" },
  ]);
});

test("collects reasoning and refusals as texts of their own", () => {
  expect(golden("deepseek-reasoning")).toMatchObject({
    choices: [{ message: { content: "Yes", reasoning_content: "Okay, so" }, finish_reason: "stop" }],
  });
  expect(onlyMessage([{ role: "assistant", content: null }, { refusal: "I " }, { refusal: "cannot." }])).toEqual({
    role: "assistant",
    content: null,
    refusal: "I cannot.",
  });
});

test("joins log-probabilities", () => {
  const entry = (token: string) => ({ token, logprob: -0.1, bytes: null, top_logprobs: [] });
  const { choices } = collected([
    { index: 0, delta: { content: "a" }, logprobs: { content: [entry("a")], refusal: null } },
    { index: 0, delta: { content: "bc" }, logprobs: { content: [entry("b"), entry("c")], refusal: null } },
  ]);
  expect(choices).toMatchObject([{ logprobs: { content: [entry("a"), entry("b"), entry("c")] } }]);
});

describe("tool calls", () => {
  test("joins OpenAI's tool calls by index, with arguments in pieces", () => {
    expect(golden("openai-tool-calls")["choices"]).toMatchObject([
      {
        message: {
          content: null,
          tool_calls: [
            {
              id: "call_4Vt0dJ7s",
              type: "function",
              function: { name: "get_weather", arguments: '{"location":"Zürich"}' },
            },
            { id: "call_9Qm2", type: "function", function: { name: "get_time", arguments: "{}" } },
          ],
        },
        finish_reason: "tool_calls",
      },
    ]);
  });

  test("begins tool calls without an index at an id or a name, and continues the last otherwise", () => {
    const message = onlyMessage([
      { tool_calls: [{ id: "a", function: { name: "f", arguments: '{"x"' } }] },
      { tool_calls: [{ function: { arguments: ":1}" } }] },
      {
        tool_calls: [{ id: "b", function: { name: "g", arguments: "" } }, { function: { name: "h", arguments: "{}" } }],
      },
      { tool_calls: [{ id: "a", function: { arguments: " " } }] },
    ]);
    expect(message).toMatchObject({
      tool_calls: [
        { id: "a", type: "function", function: { name: "f", arguments: '{"x":1} ' } },
        { id: "b", type: "function", function: { name: "g", arguments: "" } },
        { type: "function", function: { name: "h", arguments: "{}" } },
      ],
    });
  });

  test("keeps repeated names and ids once, and other members of a call", () => {
    const message = onlyMessage([
      {
        tool_calls: [{ index: 0, id: "a", type: "function", function: { name: "f", arguments: "1" }, extra: { s: 1 } }],
      },
      { tool_calls: [{ index: 0, id: "a", type: "function", function: { name: "f", arguments: "2" } }] },
    ]);
    expect(message).toMatchObject({
      tool_calls: [{ id: "a", type: "function", function: { name: "f", arguments: "12" }, extra: { s: 1 } }],
    });
  });

  test("joins calls of custom tools and legacy function calls", () => {
    expect(
      onlyMessage([
        { tool_calls: [{ index: 0, id: "a", type: "custom", custom: { name: "sql", input: "SELECT" } }] },
        { tool_calls: [{ index: 0, custom: { input: " 1" } }] },
      ]),
    ).toMatchObject({ tool_calls: [{ id: "a", type: "custom", custom: { name: "sql", input: "SELECT 1" } }] });
    expect(
      onlyMessage([{ function_call: { name: "f", arguments: "{" } }, { function_call: { arguments: "}" } }]),
    ).toMatchObject({ function_call: { name: "f", arguments: "{}" } });
  });
});

test("joins spoken audio that the server cut between groups of four characters", () => {
  const whole = Buffer.from("spoken audio").toString("base64");
  const message = onlyMessage([
    { role: "assistant", content: null, audio: { id: "audio_1", data: whole.slice(0, 3) } },
    { audio: { data: whole.slice(3, 9) } },
    { audio: { data: whole.slice(9) } },
  ]);
  expect(message).toMatchObject({ audio: { id: "audio_1", data: whole } });
});

test("joins the pieces of spoken audio and its transcript", () => {
  const encoded = (text: string) => Buffer.from(text).toString("base64");
  const message = onlyMessage([
    { role: "assistant", content: null, audio: { id: "audio_1", transcript: "Good " } },
    { audio: { data: encoded("a") } },
    { audio: { data: encoded("bcde"), transcript: "day." } },
    { audio: { expires_at: 9 } },
  ]);
  expect(message).toEqual({
    ...{ role: "assistant", content: null, refusal: null },
    audio: { id: "audio_1", transcript: "Good day.", data: encoded("abcde"), expires_at: 9 },
  });
});

test("joins unknown lists, keeps the last of other unknown values, and survives any name", () => {
  const message = onlyMessage([
    JSON.parse('{"content":"a","own":{"id":1},"annotations":[1],"__proto__":{"polluted":true}}'),
    { own: { id: 2 }, annotations: [2], content: null },
  ]);
  expect(message).toMatchObject({ content: "a", own: { id: 2 }, annotations: [1, 2] });
  expect((message as { polluted?: unknown }).polluted).toBeUndefined();
});

test("skips invalid choices and deltas", () => {
  const collector = new ChunkCollector();
  collector.add(
    eventOf({
      choices: [null, 1, { index: 0, delta: "x" }, { index: 0, delta: { content: "a", tool_calls: [null] } }],
    }),
  );
  expect(collector.answer(usage)?.["choices"]).toMatchObject([{ message: { content: "a" }, finish_reason: "stop" }]);
});

test("counts the size of the kept content, not of its chunks", () => {
  const collector = new ChunkCollector();
  for (let i = 0; i < 1_000; i++)
    collector.add(eventOf({ choices: [{ index: 0, delta: { content: "abcd", role: "assistant" } }] }));
  const length = JSON.stringify(collector.answer(usage)).length;
  expect(collector.size).toBeGreaterThan(4_000);
  expect(collector.size).toBeLessThan(length + 500);
  const before = collector.size;
  collector.add(
    eventOf({
      choices: [{ index: 0, delta: { tool_calls: [{ index: 0, function: { arguments: "x".repeat(500) } }] } }],
    }),
  );
  expect(collector.size).toBeGreaterThan(before + 500);
});
