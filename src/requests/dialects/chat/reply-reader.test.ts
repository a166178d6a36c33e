// Tests that answers of real servers are read alike, however each server writes chat completions.
import { describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { GatewayError } from "../../../base/errors.ts";
import { CollectedReply } from "../conversation/collected-reply.ts";
import type { CallNames } from "../conversation/conversation.ts";
import { chatFormat } from "./format.ts";

type Json = Record<string, unknown>;

function readEvents(events: readonly Json[], names: CallNames = new Map()): CollectedReply {
  const reply = new CollectedReply();
  const reader = chatFormat.reader(names);
  for (const event of events) reader.event(event, reply);
  reader.done?.(reply);
  return reply;
}

function whole(message: Json, more: Json = {}): CollectedReply {
  const reply = new CollectedReply();
  const choices = [{ index: 0, message: { role: "assistant", ...message }, finish_reason: "stop", ...more }];
  chatFormat.reader(new Map()).whole({ choices }, reply);
  return reply;
}

function deltas(...all: Json[]): Json[] {
  return all.map((delta) => ({ choices: [{ index: 0, delta, finish_reason: null }] }));
}

/** Returns the events of a real server's recorded stream. */
function sent(name: string): Json[] {
  const file = join(import.meta.dir, "../../../../tests/fixtures/sse", `${name}.sse`);
  const lines = readFileSync(file, "utf8").split("\n");
  return lines.flatMap((line) => (line.startsWith("data: {") ? [JSON.parse(line.slice("data: ".length))] : []));
}

describe("real streams", () => {
  test("reads texts, reasoning and usage of vLLM, llama-server, Ollama, DeepSeek, Azure, OpenRouter and OpenAI", () => {
    const seen = (name: string) => {
      const { parts, ended, used } = readEvents(sent(name));
      return {
        parts: parts.map((part) => [part.type, part.type === "call" ? part.name : part.text]),
        reason: ended?.reason,
        used,
      };
    };
    expect(seen("vllm")).toEqual({
      parts: [["text", "Grüße aus 東京 🚀"]],
      reason: "stop",
      used: { promptTokens: 25, completionTokens: 9 },
    });
    expect(seen("deepseek-reasoning")).toEqual({
      parts: [
        ["reasoning", "Okay, so"],
        ["text", "Yes"],
      ],
      reason: "stop",
      used: { promptTokens: 5, cachedTokens: 0, completionTokens: 11, reasoningTokens: 9 },
    });
    expect(seen("openai")).toEqual({
      parts: [["text", "The capital"]],
      reason: "stop",
      used: { promptTokens: 17, cachedTokens: 0, completionTokens: 205, reasoningTokens: 192 },
    });
    expect(seen("azure").parts).toEqual([["text", "Bern"]]);
    expect(seen("openrouter").parts).toEqual([["text", "Sure!"]]);
    expect(seen("ollama").reason).toBe("stop");
    expect(seen("llama-server-reasoning").parts.map(([type]) => type)).toEqual(["reasoning", "text"]);
    expect(seen("vllm-continuous-usage").reason).toBe("length");
    expect(seen("openai-two-choices").parts).toEqual([["text", "A"]]);
  });

  test("separates OpenAI's calls by their index", () => {
    const { parts, ended } = readEvents(sent("openai-tool-calls"));
    expect(ended).toEqual({ reason: "calls" });
    expect(parts).toEqual([
      { type: "call", callId: "call_4Vt0dJ7s", kind: "function", name: "get_weather", input: '{"location":"Zürich"}' },
      { type: "call", callId: "call_9Qm2", kind: "function", name: "get_time", input: "{}" },
    ]);
  });

  test("throws errors of the stream, in the server's words if an engine redacts them", () => {
    const redact = (words: string) => words.replace("EngineCore", "***");
    for (const name of ["fault-error-event", "fault-openrouter-error", "fault-vllm-bare-error"]) {
      expect(() => readEvents(sent(name))).toThrow("The model server failed in the middle of the answer.");
    }
    const reader = chatFormat.reader(new Map(), { redact });
    const read = () =>
      reader.event({ error: { message: "EngineCore is full", code: "context_length_exceeded" } }, new CollectedReply());
    expect(read).toThrow(GatewayError);
    expect(read).toThrow("*** is full");
  });
});

describe("calls", () => {
  const inputs = (...all: Json[]) =>
    readEvents(deltas(...all)).parts.map((part) => (part.type === "call" ? [part.callId, part.name, part.input] : []));
  const call = (name: string | undefined, given: string, more: Json = {}) => ({
    function: { name, arguments: given },
    ...more,
  });

  test("begins calls without an index at an id or a name, and continues the last otherwise", () => {
    expect(
      inputs(
        { tool_calls: [call("f", '{"x"', { id: "a" })] },
        { tool_calls: [call(undefined, ":1}")] },
        { tool_calls: [call("g", "", { id: "b" }), call("", "{}", { id: "b" })] },
        { tool_calls: [call(undefined, " ", { id: "a" })] },
      ),
    ).toEqual([
      ["a", "f", '{"x":1} '],
      ["b", "g", "{}"],
    ]);
  });

  test("ignores empty and repeated names, and separates whole calls with one index", () => {
    expect(
      inputs(
        { tool_calls: [call("f", "{", { index: 0, id: "a", type: "function" })] },
        { tool_calls: [call("", "}", { index: 0, id: "", type: "function" })] },
        { tool_calls: [call("f", " ", { index: 0, id: "a" })] },
        { tool_calls: [call("g", "{}", { index: 0, id: "b" })] },
      ),
    ).toEqual([
      ["a", "f", "{} "],
      ["b", "g", "{}"],
    ]);
  });

  test("holds arguments until the name, converts object arguments to text, and makes missing ids", () => {
    const [first, second] = inputs(
      { tool_calls: [{ index: 0, id: "a", function: { arguments: "{" } }] },
      { tool_calls: [call("f", "}", { index: 0 })] },
      { tool_calls: [{ index: 1, function: { name: "g", arguments: { x: 1 } } }] },
    );
    expect(first).toEqual(["a", "f", "{}"]);
    expect(second?.[0]).toMatch(/^call_[0-9a-f]{32}$/);
    expect(second?.slice(1)).toEqual(["g", '{"x":1}']);
  });

  test("reads calls of custom tools and legacy function calls, and ends the answer as calls", () => {
    const custom = readEvents(
      deltas(
        { tool_calls: [{ index: 0, id: "a", type: "custom", custom: { name: "sql", input: "SELECT" } }] },
        { tool_calls: [{ index: 0, custom: { input: " 1" } }] },
      ),
    );
    expect(custom.parts).toEqual([{ type: "call", callId: "a", kind: "custom", name: "sql", input: "SELECT 1" }]);
    const older = readEvents(
      deltas({ function_call: { name: "f", arguments: "{" } }, { function_call: { arguments: "}" } }),
    );
    expect(older.parts).toMatchObject([{ kind: "function", name: "f", input: "{}" }]);
    expect([custom.ended, older.ended]).toEqual([{ reason: "calls" }, { reason: "calls" }]);
  });

  test("ends an answer with calls as calls whatever its reason, unless it was cut or withheld", () => {
    const tool_calls = [{ id: "a", function: { name: "f", arguments: "{}" } }];
    const reason = (finish_reason: unknown) => whole({ content: null, tool_calls }, { finish_reason }).ended?.reason;
    expect(["stop", "tool_calls", "function_call", null, "eos"].map(reason)).toEqual(Array(5).fill("calls"));
    expect(["length", "content_filter"].map(reason)).toEqual(["length", "filter"]);
    expect(whole({ content: "a" }, { finish_reason: "tool_calls" }).ended?.reason).toBe("stop");
  });

  test("maps unknown call names back to the client's tools", () => {
    const names: CallNames = new Map([
      ["web__search", { kind: "function", name: "search", namespace: "web" }],
      ["patch", { kind: "custom", name: "patch", namespace: undefined }],
    ]);
    const { parts } = readEvents(
      deltas(
        {
          tool_calls: [
            call("web__search", "{}", { index: 0, id: "a" }),
            call("patch", '{"input":"+', { index: 1, id: "b" }),
          ],
        },
        { tool_calls: [call(undefined, 'a"}', { index: 1 })] },
      ),
      names,
    );
    expect(parts).toMatchObject([
      { name: "search", namespace: "web", input: "{}" },
      { kind: "custom", name: "patch", input: "+a" },
    ]);
  });
});

describe("thoughts", () => {
  const format = "anthropic-claude-v1";

  test("reads one text under two names once, and only the proof of details beside it", () => {
    const both = (value: string) => ({
      reasoning: value,
      reasoning_content: value,
      reasoning_details: [{ type: "reasoning.text", text: value, format }],
    });
    const { parts } = readEvents(
      deltas(
        both("H"),
        both("m."),
        { reasoning_details: [{ type: "reasoning.text", text: "Hm.", signature: "sig", format }] },
        { content: "Yes" },
      ),
    );
    expect(parts).toEqual([
      { type: "reasoning", text: "Hm.", isSummary: false, proof: { kind: "signature", data: "sig" } },
      { type: "text", text: "Yes" },
    ]);
  });

  test("reads new reasoning after a proof from its details alone", () => {
    const detail = (text: string) => ({
      reasoning_details: [{ type: "reasoning.text", text, signature: text, format }],
    });
    const { parts } = readEvents(deltas({ reasoning_content: "One." }, detail("One."), detail("Two.")));
    expect(parts).toMatchObject([
      { text: "One.", proof: { data: "One." } },
      { text: "Two.", proof: { data: "Two." } },
    ]);
  });

  test("reads details alone, and redacted reasoning as a block of its own", () => {
    const { parts } = whole({
      content: "Yes",
      reasoning_details: [
        { type: "reasoning.text", text: "Hm.", format },
        { type: "reasoning.encrypted", data: "x", format },
      ],
    });
    expect(parts.slice(0, 2)).toEqual([
      { type: "reasoning", text: "Hm.", isSummary: false },
      { type: "reasoning", text: "", isSummary: false, proof: { kind: "redacted", data: "x" } },
    ]);
  });

  test("reads Mistral's parts, and `<think>` inside a text as text", () => {
    const content = [
      { type: "thinking", thinking: [{ type: "text", text: "Hm." }] },
      { type: "text", text: "<think>Yes" },
    ];
    expect(readEvents(deltas({ content })).parts).toEqual([
      { type: "reasoning", text: "Hm.", isSummary: false },
      { type: "text", text: "<think>Yes" },
    ]);
  });
});

test("reads the finish reasons of all servers", () => {
  const ended = (finish_reason: unknown, more: Json = {}) => whole({ content: "a" }, { finish_reason, ...more }).ended;
  expect(ended("eos")).toEqual({ reason: "stop" });
  expect(ended("stop", { stop_reason: "###" })).toEqual({ reason: "sequence", sequence: "###" });
  expect(ended("stop", { stop_reason: 151645 })).toEqual({ reason: "stop" });
  expect(ended("model_length")).toEqual({ reason: "context" });
  expect(whole({ content: null, refusal: "No." }).ended).toEqual({ reason: "refusal" });
  expect(() => ended("insufficient_system_resource")).toThrow("The model server failed in the middle of the answer.");
  expect(readEvents(deltas({ content: "a" })).ended).toEqual({ reason: "stop" });
});

test("ignores text after the end and empty pieces of calls", () => {
  const end = { choices: [{ index: 0, delta: { tool_calls: [{ index: 0, function: {} }] }, finish_reason: "stop" }] };
  const { parts, ended } = readEvents([...deltas({ content: "a" }), end, ...deltas({ content: "b" })]);
  expect(parts).toEqual([{ type: "text", text: "a" }]);
  expect(ended).toEqual({ reason: "stop" });
});

test("reports the end once, even if the server repeats it", () => {
  const ends: string[] = [];
  class Ends extends CollectedReply {
    override end(end: { reason: "stop" }): void {
      ends.push(end.reason);
      super.end(end);
    }
  }
  const reader = chatFormat.reader(new Map());
  const reply = new Ends();
  for (const reason of ["stop", "stop"])
    reader.event({ choices: [{ index: 0, delta: { content: "" }, finish_reason: reason }] }, reply);
  reader.done?.(reply);
  expect(ends).toEqual(["stop"]);
});

test("reads usage wherever servers put it", () => {
  const used = (data: Json) => readEvents([data]).used;
  const counts = { prompt_tokens: 5, completion_tokens: 2 };
  expect(
    used({ choices: [], usage: { ...counts, prompt_tokens_details: { cached_tokens: 3, cache_write_tokens: 1 } } }),
  ).toEqual({
    ...{ promptTokens: 5, completionTokens: 2, cachedTokens: 3, cacheWriteTokens: 1 },
  });
  expect(used({ usage: { ...counts, prompt_cache_hit_tokens: 4 } })).toMatchObject({ cachedTokens: 4 });
  expect(used({ choices: [], x_groq: { usage: counts } })).toMatchObject({ promptTokens: 5 });
  expect(used({ choices: [{ index: 0, delta: {}, usage: { ...counts, cached_tokens: 2 } }] })).toMatchObject({
    cachedTokens: 2,
  });
  expect(used({ choices: [], usage: null })).toEqual({});
  expect(used({ choices: [], usage: { prompt_tokens: -1 } })).toEqual({});
});

test("keeps log-probabilities with their text", () => {
  const entry = { token: "a", logprob: -0.1, bytes: null, top_logprobs: [] };
  const choice = { index: 0, delta: { content: "a" }, logprobs: { content: [entry], refusal: null } };
  expect(readEvents([{ choices: [choice] }, { choices: [choice] }]).logprobs).toEqual([entry, entry]);
});

test("refuses data that is no answer", () => {
  const reader = () => chatFormat.reader(new Map());
  const reply = new CollectedReply();
  expect(() => reader().whole({ id: "x" }, reply)).toThrow("The model server sent an answer that cannot be read.");
  expect(() => reader().event({ choices: "x" }, reply)).toThrow("The model server sent an answer that cannot be read.");
  expect(() => reader().event({ choices: [null] }, reply)).toThrow(
    "The model server sent an answer that cannot be read.",
  );
});
