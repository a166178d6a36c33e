// Tests answers of servers that speak Responses: in the forms of the vendor's documentation, and with missing members.
import { describe, expect, test } from "bun:test";
import { GatewayError } from "../../../base/errors.ts";
import { CollectedReply } from "../conversation/collected-reply.ts";
import type { CallNames } from "../conversation/conversation.ts";
import { ResponseReader } from "./reply-reader.ts";

type Json = Record<string, unknown>;

const engine = { redact: (text: string) => text.replaceAll("s3cret", "[secret]") };
const noNames: CallNames = new Map();
const usage = {
  ...{ input_tokens: 36, output_tokens: 87, total_tokens: 123 },
  input_tokens_details: { cached_tokens: 12, cache_write_tokens: 3 },
  output_tokens_details: { reasoning_tokens: 20 },
};
const used = { promptTokens: 36, completionTokens: 87, cachedTokens: 12, cacheWriteTokens: 3, reasoningTokens: 20 };
const ended = (more: Json = {}) => ({
  type: "response.completed",
  response: { id: "resp_1", object: "response", status: "completed", output: [], usage, ...more },
});

function readEvents(events: readonly Json[], names = noNames): CollectedReply {
  const reply = new CollectedReply();
  const reader = new ResponseReader(names, engine);
  for (const event of events) reader.event(event, reply);
  return reply;
}

function readWhole(output: unknown, more: Json = {}): CollectedReply {
  const reply = new CollectedReply();
  new ResponseReader(noNames, engine).whole({ object: "response", status: "completed", output, usage, ...more }, reply);
  return reply;
}

function thrownBy(read: () => unknown): GatewayError {
  try {
    read();
  } catch (error) {
    if (error instanceof GatewayError) return error;
  }
  throw new Error("no error");
}

const message = (...content: Json[]) => ({
  id: "msg_1",
  type: "message",
  role: "assistant",
  status: "completed",
  content,
});
const said = (text: string, more: Json = {}) => ({ type: "output_text", text, annotations: [], ...more });
const added = (output_index: number, item: Json) => ({ type: "response.output_item.added", output_index, item });
const done = (output_index: number, item: Json) => ({ type: "response.output_item.done", output_index, item });
const delta = (kind: string, output_index: number, piece: string, more: Json = {}) => ({
  type: `response.${kind}.delta`,
  item_id: "x",
  output_index,
  delta: piece,
  ...more,
});
const functionCall = (more: Json = {}) => ({
  ...{ id: "fc_1", type: "function_call", status: "completed", arguments: "", call_id: "call_1", name: "look" },
  ...more,
});

describe("a stream", () => {
  test("reads a text stream piece by piece, and ignores the repeated whole", () => {
    const reply = readEvents([
      { type: "response.created", response: { id: "resp_1", status: "in_progress", output: [] } },
      { type: "response.in_progress", response: { id: "resp_1", status: "in_progress", output: [] } },
      added(0, { id: "msg_1", type: "message", status: "in_progress", role: "assistant", content: [] }),
      { type: "response.content_part.added", output_index: 0, content_index: 0, part: said("") },
      delta("output_text", 0, "Hi"),
      delta("output_text", 0, " there!"),
      { type: "response.output_text.done", output_index: 0, content_index: 0, text: "Hi there!" },
      { type: "response.content_part.done", output_index: 0, content_index: 0, part: said("Hi there!") },
      done(0, message(said("Hi there!"))),
      ended({ output: [message(said("Hi there!"))] }),
    ]);
    expect(reply.parts).toEqual([{ type: "text", text: "Hi there!" }]);
    expect(reply.ended).toEqual({ reason: "stop" });
    expect(reply.used).toEqual(used);
  });

  test("reads interleaved reasoning and calls in order, with the vendor's encryption", () => {
    const reply = readEvents([
      added(0, { id: "rs_1", type: "reasoning", summary: [] }),
      { type: "response.reasoning_summary_part.added", output_index: 0, summary_index: 0, part: {} },
      delta("reasoning_summary_text", 0, "First.", { summary_index: 0 }),
      { type: "response.reasoning_summary_part.added", output_index: 0, summary_index: 1, part: {} },
      delta("reasoning_summary_text", 0, "Second.", { summary_index: 1 }),
      done(0, { id: "rs_1", type: "reasoning", summary: [], encrypted_content: "gAAA" }),
      added(1, functionCall()),
      added(2, { id: "ctc_1", type: "custom_tool_call", call_id: "call_2", name: "patch", input: "" }),
      delta("function_call_arguments", 1, '{"a"'),
      delta("custom_tool_call_input", 2, "***"),
      delta("function_call_arguments", 1, ":1}"),
      done(1, functionCall({ arguments: '{"a":1}' })),
      done(2, { id: "ctc_1", type: "custom_tool_call", call_id: "call_2", name: "patch", input: "***" }),
      ended(),
    ]);
    expect(reply.parts).toMatchObject([
      { type: "reasoning", text: "First.\n\nSecond.", isSummary: true, proof: { kind: "encrypted", data: "gAAA" } },
      { type: "call", callId: "call_1", kind: "function", name: "look", input: '{"a":1}' },
      { type: "call", callId: "call_2", kind: "custom", name: "patch", input: "***" },
    ]);
    expect(reply.ended).toEqual({ reason: "calls" });
  });

  test("reads each item once if the events have ids and no indices", () => {
    const [first, second] = [
      { type: "function_call", call_id: "fc_a", name: "look" },
      { type: "function_call", call_id: "fc_b", name: "look" },
    ];
    const thought = { id: "rs_1", type: "reasoning", summary: [], content: [{ type: "reasoning_text", text: "Why?" }] };
    const items = [
      thought,
      message(said("Hi there!")),
      { ...first, arguments: '{"a":1}' },
      { ...second, arguments: '{"a":2}' },
    ];
    const begins = (item: Json) => ({ type: "response.output_item.added", item });
    const piece = (kind: string, item_id: string, text: string) => ({
      type: `response.${kind}.delta`,
      item_id,
      delta: text,
    });
    const reply = readEvents([
      begins({ ...thought, content: [] }),
      piece("reasoning_text", "rs_1", "Why?"),
      begins({ ...message(), status: "in_progress" }),
      { type: "response.content_part.added", item_id: "msg_1", part: said("") },
      piece("output_text", "msg_1", "Hi "),
      piece("output_text", "msg_1", "there!"),
      begins({ ...first, arguments: "" }),
      piece("function_call_arguments", "fc_a", '{"a":1}'),
      begins({ ...second, arguments: "" }),
      piece("function_call_arguments", "fc_b", '{"a":2}'),
      { type: "response.output_text.done", item_id: "msg_1", text: "Hi there!" },
      ...items.map((item) => ({ type: "response.output_item.done", item })),
      ended({ output: items }),
    ]);
    expect(reply.parts).toMatchObject([
      { type: "reasoning", text: "Why?" },
      { type: "text", text: "Hi there!" },
      { type: "call", callId: "fc_a", input: '{"a":1}' },
      { type: "call", callId: "fc_b", input: '{"a":2}' },
    ]);
  });

  test("reads each part as a text, and each part of reasoning as a paragraph", () => {
    const part = (output_index: number, content_index: number, type: string) => ({
      type: "response.content_part.added",
      output_index,
      content_index,
      part: { type, text: "" },
    });
    const reply = readEvents([
      added(0, { id: "rs_1", type: "reasoning", summary: [], content: [] }),
      part(0, 0, "reasoning_text"),
      delta("reasoning_text", 0, "a"),
      part(0, 1, "reasoning_text"),
      delta("reasoning_text", 0, "b"),
      added(1, message()),
      part(1, 0, "output_text"),
      delta("output_text", 1, "c"),
      part(1, 1, "output_text"),
      delta("output_text", 1, "d"),
      ended(),
    ]);
    expect(reply.parts).toEqual([
      { type: "reasoning", text: "a\n\nb", isSummary: false },
      { type: "text", text: "c" },
      { type: "text", text: "d" },
    ]);
  });

  test.each([
    ["items that come whole alone", [done(0, message(said("a"))), done(1, functionCall({ arguments: "{}" })), ended()]],
    [
      "items of which nothing came in pieces",
      [
        added(0, message()),
        done(0, message(said("a"))),
        added(1, functionCall()),
        delta("function_call_arguments", 1, ""),
        done(1, functionCall({ arguments: "{}" })),
        ended(),
      ],
    ],
    ["an end that has all of it", [ended({ output: [message(said("a")), functionCall({ arguments: "{}" })] })]],
    ["arguments that are an object", [done(0, message(said("a"))), done(1, functionCall({ arguments: {} })), ended()]],
  ])("reads a stream of %s like any other", (_, events) => {
    expect(readEvents(events).parts).toMatchObject([
      { type: "text", text: "a" },
      { type: "call", callId: "call_1", name: "look", input: "{}" },
    ]);
  });

  test("ignores events after the end", () => {
    const reply = readEvents([
      done(0, message(said("a"))),
      ended(),
      delta("output_text", 0, "b"),
      ended({ usage: {} }),
    ]);
    expect(reply.parts).toEqual([{ type: "text", text: "a" }]);
    expect(reply.used).toEqual(used);
  });

  test("maps calls back to the client's names", () => {
    const names: CallNames = new Map([["files__patch", { kind: "custom", name: "patch", namespace: "files" }]]);
    const call = functionCall({ name: "files__patch", arguments: '{"input":"***"}' });
    expect(readEvents([done(0, call), ended()], names).parts).toMatchObject([
      { kind: "custom", name: "patch", namespace: "files", input: "***" },
    ]);
  });

  test("gives calls without a unique id ids of their own", () => {
    const call = (name: string, more: Json = {}) => ({ type: "function_call", name, arguments: "{}", ...more });
    const calls = [call("look"), call("look"), call("see", { call_id: "call_1" }), call("see", { call_id: "call_1" })];
    const streamed = readEvents([...calls.map((item, index) => done(index, item)), ended()]);
    for (const { parts } of [streamed, readWhole(calls)]) {
      const ids = parts.map((part) => (part.type === "call" ? part.callId : ""));
      expect(ids).toEqual([
        ...[expect.stringMatching(/^call_./), expect.stringMatching(/^call_./), "call_1"],
        expect.stringMatching(/^call_./),
      ]);
      expect(new Set(ids).size).toBe(4);
    }
  });

  test("skips unknown events", () => {
    const events = [{ type: "response.web_search_call.searching", output_index: 0 }, { type: "keepalive" }, ended()];
    expect(readEvents(events).parts).toEqual([]);
    expect(readEvents(events).ended).toEqual({ reason: "stop" });
  });

  const call = (id: string, text: string) => ({
    type: "function_call",
    id: `fc_${id}`,
    call_id: id,
    name: "f",
    arguments: text,
  });
  const reported = (id: string, text: string) =>
    expect.objectContaining({ type: "call", callId: id, name: "f", input: text });
  const text = { type: "text", text: "Hi" };
  const hi = message(said("Hi"));

  test.each([
    [
      "arguments in their last event alone",
      [
        added(0, call("a", "")),
        { type: "response.function_call_arguments.done", output_index: 0, arguments: "[1]" },
        ended(),
      ],
      [reported("a", "[1]")],
    ],
    [
      "arguments in the last event of the answer alone",
      [added(0, call("a", "")), ended({ output: [call("a", "[1]")] })],
      [reported("a", "[1]")],
    ],
    [
      "arguments under another id there",
      [added(0, call("a", "")), ended({ output: [call("b", "[1]")] })],
      [reported("a", "[1]")],
    ],
    [
      "a text in its last event alone",
      [
        added(0, message()),
        { type: "response.output_text.done", output_index: 0, content_index: 0, text: "Hi" },
        done(0, hi),
        ended(),
      ],
      [text],
    ],
    [
      "an item in the last event of the answer alone",
      [added(0, message()), delta("output_text", 0, "Hi"), done(0, hi), ended({ output: [hi, call("a", "[1]")] })],
      [text, reported("a", "[1]")],
    ],
    [
      "a text without its item, which the end repeats",
      [{ type: "response.output_text.delta", delta: "Hi" }, ended({ output: [hi] })],
      [text],
    ],
    [
      "whole calls at one place",
      [done(0, call("a", "[1]")), done(0, call("b", "[2]")), ended({ output: [call("a", "[1]"), call("b", "[2]")] })],
      [reported("a", "[1]"), reported("b", "[2]")],
    ],
    ["a message whose content is a string", [ended({ output: [{ ...hi, content: "Hi" }] })], [text]],
    ["an item twice", [done(0, hi), done(0, hi), ended({ output: [hi] })], [text]],
  ] as const)("reads %s once and in full", (_, events, parts) => {
    expect(readEvents(events as readonly Json[]).parts).toEqual([...parts] as never);
  });

  test.each([
    ["completed", { error: { message: "boom" } }],
    ["completed", {}],
    [undefined, { error: { message: "boom" } }],
  ])("fails by the type of the last event if that says status %s", (status, more) => {
    const events = [
      delta("output_text", 0, "Hel"),
      { type: "response.failed", response: { status, output: [], ...more } },
    ];
    expect(() => readEvents(events)).toThrow(GatewayError);
  });

  test.each([
    ["response.incomplete", "completed", "filter"],
    ["response.incomplete", undefined, "filter"],
    ["response.completed", undefined, "filter"],
    ["response.completed", "completed", "stop"],
  ])("reads the last event %s with status %s as ended by %s", (type, status, reason) => {
    const response = { status, output: [hi], incomplete_details: { reason: "content_filter" }, usage };
    expect(readEvents([{ type, response }]).ended).toEqual({ reason } as never);
  });

  test("reports no end for a stream that does not end", () => {
    expect(readEvents([added(0, message()), delta("output_text", 0, "a")]).ended).toBeUndefined();
  });

  test.each([
    ["an event `error`", { type: "error", code: "server_error", message: "Out of s3cret memory", param: null }],
    ["a nested one", { type: "error", error: { code: "server_error", message: "Out of s3cret memory" } }],
    [
      "a failed response",
      { type: "response.failed", response: { status: "failed", error: { message: "Out of s3cret memory" } } },
    ],
  ])("throws for a stream that fails by %s, without secrets", (_, event) => {
    const error = thrownBy(() => readEvents([event]));
    expect(error.code).toBe("upstream_error");
    expect(error.message).toBe("Out of [secret] memory");
    const words = thrownBy(() => new ResponseReader(noNames).event(event, new CollectedReply()));
    expect(words.message).toBe("The model server failed in the middle of the answer.");
  });

  test("reports a full context by its code", () => {
    const error = { code: "context_length_exceeded", message: "Too long." };
    const failed = { type: "response.failed", response: { status: "failed", error } };
    expect(thrownBy(() => readEvents([failed])).engineCode).toBe("context_length_exceeded");
  });

  test.each([[{ choices: [] }], [{ type: "response.completed" }]])("refuses a stream with %j", (event) => {
    expect(thrownBy(() => readEvents([event])).message).toBe("The model server sent an answer that cannot be read.");
  });
});

describe("a whole answer", () => {
  test("reads a whole answer item by item", () => {
    const logprobs = [{ token: "a", logprob: -1, bytes: [97], top_logprobs: [] }];
    const reply = readWhole([
      {
        id: "rs_1",
        type: "reasoning",
        summary: [{ type: "summary_text", text: "s" }],
        content: [{ type: "reasoning_text", text: "t" }],
      },
      message(said("a", { logprobs }), said("b")),
      { type: "web_search_call", id: "ws_1", status: "completed" },
      functionCall({ arguments: '{"a":1}', namespace: "files" }),
    ]);
    expect(reply.parts).toMatchObject([
      { type: "reasoning", text: "t", isSummary: false },
      { type: "text", text: "a" },
      { type: "text", text: "b" },
      { type: "call", callId: "call_1", name: "look", namespace: "files", input: '{"a":1}' },
    ]);
    expect(reply.logprobs).toEqual(logprobs);
    expect(reply.ended).toEqual({ reason: "calls" });
    // The search that the server ran counts as a charged search.
    expect(reply.used).toEqual({ ...used, details: { searches: 1 } });
  });

  test.each([
    [{ status: "incomplete", incomplete_details: { reason: "max_output_tokens" } }, "length"],
    [{ status: "incomplete", incomplete_details: { reason: "content_filter" } }, "filter"],
    [{ status: "incomplete", incomplete_details: null }, "length"],
    [{ status: "completed" }, "stop"],
    [{}, "stop"],
  ] as const)("reads a whole answer with %j as ended by %s", (more, reason) => {
    expect(readWhole([message(said("a"))], more).ended).toEqual({ reason });
  });

  test("counts web searches that the server ran, and not the opened pages", () => {
    const actions = [undefined, { type: "search" }, { type: "open_page" }, { type: "find_in_page" }];
    const reply = readWhole(actions.map((action) => ({ type: "web_search_call", ...(action ? { action } : {}) })));
    expect(reply.used?.details).toEqual({ searches: 2 });
  });

  test("reads a usage with the names of a chat completion, as SGLang's", () => {
    const counts = { prompt_tokens: 333, completion_tokens: 111, total_tokens: 444, reasoning_tokens: 5 };
    const reported = { ...counts, prompt_tokens_details: { cached_tokens: 32 } };
    expect(readWhole([message(said("a"))], { usage: reported }).used).toMatchObject({
      ...{ promptTokens: 333, completionTokens: 111, cachedTokens: 32, reasoningTokens: 5 },
    });
  });

  test("ends a whole answer with a refusal by `refusal`", () => {
    const reply = readWhole([message({ type: "refusal", refusal: "No." })]);
    expect(reply.parts).toEqual([{ type: "refusal", text: "No." }]);
    expect(reply.ended).toEqual({ reason: "refusal" });
  });

  test.each([
    ["no output", undefined, {}],
    ["an end that is still to come", [], { status: "in_progress" }],
    ["a place in the queue", [], { status: "queued" }],
  ])("refuses a whole answer with %s", (_, output, more) => {
    expect(thrownBy(() => readWhole(output, more)).message).toBe(
      "The model server sent an answer that cannot be read.",
    );
  });

  test("throws the server's error for a failed answer", () => {
    expect(thrownBy(() => readWhole([], { status: "failed", error: { message: "s3cret" } })).message).toBe("[secret]");
  });
});
