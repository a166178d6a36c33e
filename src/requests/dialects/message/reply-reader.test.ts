// Tests that answers of servers that speak Messages are read unchanged, streamed or whole.
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { GatewayError } from "../../../base/errors.ts";
import type { CallNames } from "../conversation/conversation.ts";
import type { EngineWords } from "../conversation/format.ts";
import type { ReplyHead, ReplySink } from "../conversation/reply.ts";
import { MessageReader } from "./reply-reader.ts";
import { MessageWriter } from "./reply-writer.ts";

type Json = Record<string, unknown>;
type Telling = readonly [name: string, ...values: unknown[]];

/** Records the calls of a sink. Pieces of one text are joined, and usage is recorded separately. */
class Notes implements ReplySink {
  readonly received: unknown[][] = [];
  readonly usages: unknown[] = [];

  block = () => {};
  text = (text: string) => this.#grow("text", text);
  refusal = (text: string) => this.#grow("refusal", text);
  reasoning = (text: string, isSummary: boolean) => this.#grow(isSummary ? "summary" : "reasoning", text);
  proof: ReplySink["proof"] = (proof) => void this.received.push(["proof", proof]);
  call: ReplySink["call"] = (index, call) => void this.received.push(["call", index, call]);
  arguments = (index: number, text: string) => this.#grow("arguments", text, index);
  usage: ReplySink["usage"] = (usage) => void this.usages.push(JSON.parse(JSON.stringify(usage)));
  end: ReplySink["end"] = (end) => void this.received.push(["end", JSON.parse(JSON.stringify(end))]);

  #grow(name: string, text: string, index?: number): void {
    const last = this.received.at(-1);
    if (last?.[0] === name && last[2] === index) last[1] = `${last[1]}${text}`;
    else this.received.push(index === undefined ? [name, text] : [name, text, index]);
  }
}

function notesOf(events: readonly Json[], names: CallNames = new Map()): Notes {
  const notes = new Notes();
  const reader = new MessageReader(names);
  for (const event of events) reader.event(event, notes);
  return notes;
}

function wholeNotes(message: Json): Notes {
  const notes = new Notes();
  new MessageReader(new Map()).whole(message, notes);
  return notes;
}

const start = (usage: Json = {}, model = "tiny") => ({ type: "message_start", message: { model, content: [], usage } });
const begin = (index: number, content_block: Json) => ({ type: "content_block_start", index, content_block });
const piece = (index: number, delta: Json) => ({ type: "content_block_delta", index, delta });
const stop = (index: number) => ({ type: "content_block_stop", index });
const end = (stop_reason: string, others: Json = {}, usage: Json = {}) => ({
  type: "message_delta",
  delta: { stop_reason, stop_sequence: null, ...others },
  usage,
});
const over = { type: "message_stop" };

/** A streamed answer in Anthropic's form. */
const sample = [
  start(
    { input_tokens: 25, cache_creation_input_tokens: 5, cache_read_input_tokens: 100, output_tokens: 1 },
    "claude-opus-5",
  ),
  { type: "ping" },
  begin(0, { type: "thinking", thinking: "", signature: "" }),
  piece(0, { type: "thinking_delta", thinking: "Let me" }),
  piece(0, { type: "thinking_delta", thinking: " see." }),
  piece(0, { type: "signature_delta", signature: "EqQB" }),
  stop(0),
  begin(1, { type: "text", text: "", citations: null }),
  piece(1, { type: "text_delta", text: "I look" }),
  piece(1, { type: "citations_delta", citation: {} }),
  piece(1, { type: "text_delta", text: " it up." }),
  stop(1),
  begin(2, { type: "server_tool_use", id: "srvtoolu_1", name: "web_search", input: {} }),
  piece(2, { type: "input_json_delta", partial_json: '{"query":"x"}' }),
  stop(2),
  begin(3, { type: "web_search_tool_result", tool_use_id: "srvtoolu_1", content: [] }),
  stop(3),
  begin(4, { type: "tool_use", id: "toolu_1", name: "weather", input: {} }),
  piece(4, { type: "input_json_delta", partial_json: "" }),
  piece(4, { type: "input_json_delta", partial_json: '{"city":' }),
  piece(4, { type: "input_json_delta", partial_json: '"Bonn"}' }),
  stop(4),
  begin(5, { type: "tool_use", id: "toolu_2", name: "now", input: {} }),
  stop(5),
  end("tool_use", {}, { output_tokens: 89, output_tokens_details: { thinking_tokens: 30 } }),
  over,
];
const reported: Telling[] = [
  ["summary", "Let me see."],
  ["proof", { kind: "signature", data: "EqQB" }],
  ["text", "I look it up."],
  ["call", 0, { callId: "toolu_1", kind: "function", name: "weather" }],
  ["arguments", '{"city":"Bonn"}', 0],
  ["call", 1, { callId: "toolu_2", kind: "function", name: "now" }],
  ["arguments", "{}", 1],
  ["end", { reason: "calls" }],
];

describe("a stream", () => {
  test("reads a stream block by block, without the server's own tools", () => {
    expect(notesOf(sample).received).toEqual(reported.map((one) => [...one]));
  });

  test("counts the whole prompt in the usage, and replaces first figures by final ones", () => {
    const prompt = { promptTokens: 130, cachedTokens: 100, cacheWriteTokens: 5 };
    expect(notesOf(sample).usages).toEqual([
      { ...prompt, completionTokens: 1 },
      { ...prompt, completionTokens: 89, reasoningTokens: 30 },
    ]);
  });

  test("reports no prompt figures that the stream lacks", () => {
    expect(notesOf([start({ output_tokens: null }), end("end_turn", {}, { output_tokens: 3 })]).usages.at(-1)).toEqual({
      completionTokens: 3,
    });
  });

  test("ends a stream once, at its stop reason or else at its end", () => {
    const text = [start(), begin(0, { type: "text", text: "Hi" }), stop(0)];
    const once = [
      ["text", "Hi"],
      ["end", { reason: "stop" }],
    ];
    expect(notesOf([...text, end("end_turn")]).received).toEqual(once);
    expect(notesOf([...text, end("end_turn"), end("end_turn"), over]).received).toEqual(once);
    expect(notesOf([...text, over]).received).toEqual(once);
  });

  test("reads the input in the start event of a call", () => {
    const events = [
      start(),
      begin(0, { type: "tool_use", id: "a", name: "b", input: { c: 1 } }),
      stop(0),
      end("tool_use"),
    ];
    expect(notesOf(events).received[1]).toEqual(["arguments", '{"c":1}', 0]);
  });

  test("completes a stream whose last block did not end", () => {
    const events = [start(), begin(0, { type: "tool_use", id: "a", name: "b", input: {} }), end("tool_use")];
    expect(notesOf(events).received.slice(1)).toEqual([
      ["arguments", "{}", 0],
      ["end", { reason: "calls" }],
    ]);
  });

  test("keeps redacted thinking as proof for its vendor", () => {
    const events = [start(), begin(0, { type: "redacted_thinking", data: "Em" }), stop(0), end("end_turn")];
    expect(notesOf(events).received[0]).toEqual(["proof", { kind: "redacted", data: "Em" }]);
  });

  test("shows the thinking of other models than Claude, without a signature", () => {
    const events = [start(), begin(0, { type: "thinking", thinking: "Hm" }), stop(0), over];
    expect(notesOf(events).received).toEqual([
      ["reasoning", "Hm"],
      ["end", { reason: "stop" }],
    ]);
  });

  test.each([
    ["end_turn", "stop"],
    ["max_tokens", "length"],
    ["tool_use", "calls"],
    ["pause_turn", "pause"],
    ["refusal", "refusal"],
    ["model_context_window_exceeded", "context"],
    ["something_new", "stop"],
    ["constructor", "stop"],
  ])("reads a stream that ends by %s as ended by %s", (name, reason) => {
    expect(notesOf([start(), end(name)]).received).toEqual([["end", { reason }]]);
  });

  test("reads the stop text, and the reason of a refusal", () => {
    expect(notesOf([end("stop_sequence", { stop_sequence: "END" })]).received).toEqual([
      ["end", { reason: "sequence", sequence: "END" }],
    ]);
    const stop_details = { type: "refusal", category: "bio", explanation: "It is dangerous." };
    expect(notesOf([end("refusal", { stop_details })]).received).toEqual([
      ["refusal", "It is dangerous."],
      ["end", { reason: "refusal" }],
    ]);
  });

  test("maps calls back to the client's names", () => {
    const names = new Map([["mcp__a__run", { kind: "custom", name: "run", namespace: "mcp__a" } as const]]);
    const events = [
      begin(0, { type: "tool_use", id: "x", name: "mcp__a__run", input: {} }),
      piece(0, { type: "input_json_delta", partial_json: '{"input":"li' }),
      piece(0, { type: "input_json_delta", partial_json: 'ne\\n2"}' }),
      stop(0),
      end("tool_use"),
    ];
    expect(notesOf(events, names).received).toEqual([
      ["call", 0, { callId: "x", kind: "custom", name: "run", namespace: "mcp__a" }],
      ["arguments", "line\n2", 0],
      ["end", { reason: "calls" }],
    ]);
  });

  test.each([
    ["an event without a type", [{ data: 1 }]],
    ["a piece of a block that did not begin", [piece(0, { type: "input_json_delta", partial_json: "x" })]],
    ["a block without a type", [begin(0, {})]],
    ["an event of a block without its index", [{ type: "content_block_stop" }]],
    ["a call without a name", [begin(0, { type: "tool_use", id: "a" })]],
  ])("refuses a stream with %s", (detail, events) => {
    expect(() => notesOf(events)).toThrow(expect.objectContaining({ code: "upstream_error", detail }));
  });
});

describe("an error in the stream", () => {
  const error = {
    type: "error",
    error: { type: "overloaded_error", message: "Overloaded at http://10.0.0.1/ with KEY" },
  };
  const engine = { redact: (text: string) => text.replace("KEY", "[key]") };
  const faultOf = (event: Json, by?: EngineWords): unknown => {
    try {
      new MessageReader(new Map(), by).event(event, new Notes());
    } catch (thrown) {
      return thrown;
    }
    return undefined;
  };

  test("reports a stream error without addresses and credentials", () => {
    const thrown = faultOf(error, engine);
    expect(thrown).toBeInstanceOf(GatewayError);
    expect(thrown).toMatchObject({ code: "service_unavailable", message: "Overloaded at [address] with [key]" });
  });

  test("reports only the kind of an unknown engine's error, in the log", () => {
    expect(faultOf(error)).toMatchObject({
      message: "The model server failed in the middle of the answer.",
      detail: "the model server told an error of the type overloaded_error",
    });
  });

  test("reports a full context with the code that clients act upon", () => {
    const full = {
      type: "error",
      error: { type: "invalid_request_error", message: "prompt is too long: 9 tokens > 8 maximum" },
    };
    expect(faultOf(full, engine)).toMatchObject({ engineCode: "context_length_exceeded" });
  });
});

describe("answers of a lenient server", () => {
  const call = (id: unknown, input: unknown) => ({ type: "tool_use", id, name: "look", input });
  const named = (index: number, callId: unknown) => ["call", index, { callId, kind: "function", name: "look" }];
  const made = expect.stringMatching(/^toolu_[0-9a-f]{32}$/);

  test.each([
    ["call without an id", [call(undefined, { a: 1 })], [named(0, made), ["arguments", '{"a":1}', 0]]],
    ["call with an empty id", [call("", { a: 1 })], [named(0, made), ["arguments", '{"a":1}', 0]]],
    [
      "calls with one id",
      [call("a", {}), call("a", {})],
      [named(0, "a"), ["arguments", "{}", 0], named(1, made), ["arguments", "{}", 1]],
    ],
    ["input as JSON", [call("a", '{"a":1}')], [named(0, "a"), ["arguments", '{"a":1}', 0]]],
    ["input that is null", [call("a", null)], [named(0, "a"), ["arguments", "{}", 0]]],
  ])("completes a lenient server's %s, whole and streamed, and ends by calls", (_, content, reported) => {
    const all = [...reported, ["end", { reason: "calls" }]];
    expect(wholeNotes({ type: "message", content, stop_reason: "end_turn" }).received).toEqual(all);
    const blocks = content.flatMap((block, index) => [begin(index, block), stop(index)]);
    expect(notesOf([start(), ...blocks, end("end_turn"), over]).received).toEqual(all);
  });

  test("reads an object as a piece of input as its JSON", () => {
    const events = [begin(0, call("a", {})), piece(0, { type: "input_json_delta", partial_json: { a: 1 } }), stop(0)];
    expect(notesOf([start(), ...events, over]).received[1]).toEqual(["arguments", '{"a":1}', 0]);
  });

  test.each([
    ["stop", "stop"],
    ["length", "length"],
    ["content_filter", "filter"],
    ["", "stop"],
  ])("reads a lenient server's stop reason %j as %s", (reported, reason) => {
    const content = [{ type: "text", text: "Hi" }];
    expect(wholeNotes({ content, stop_reason: reported }).received.at(-1)).toEqual(["end", { reason }]);
    expect(notesOf([start(), begin(0, { type: "text", text: "Hi" }), end(reported), over]).received.at(-1)).toEqual([
      "end",
      { reason },
    ]);
  });

  test("reads content in the first event if no block follows, and whole content that is a text", () => {
    const reported = [
      ["text", "Hi"],
      ["end", { reason: "stop" }],
    ];
    const first = { type: "message_start", message: { content: [{ type: "text", text: "Hi" }] } };
    expect(notesOf([first, end("end_turn"), over]).received).toEqual(reported);
    expect(wholeNotes({ content: "Hi", stop_reason: "end_turn" }).received).toEqual(reported);
  });
});

describe("a whole message", () => {
  test("reads a whole message like its stream", () => {
    const content = [
      { type: "thinking", thinking: "Let me see.", signature: "EqQB" },
      { type: "text", text: "I look it up.", citations: null },
      { type: "server_tool_use", id: "srvtoolu_1", name: "web_search", input: {} },
      { type: "tool_use", id: "toolu_1", name: "weather", input: { city: "Bonn" } },
      { type: "tool_use", id: "toolu_2", name: "now", input: {} },
    ];
    const usage = { input_tokens: 25, cache_read_input_tokens: 100, output_tokens: 89 };
    const notes = wholeNotes({ type: "message", model: "claude-opus-5", content, stop_reason: "tool_use", usage });
    expect(notes.received).toEqual(reported.map((one) => [...one]));
    expect(notes.usages).toEqual([{ promptTokens: 125, cachedTokens: 100, completionTokens: 89 }]);
  });

  test("refuses an error or invalid object in place of a whole message", () => {
    expect(() => wholeNotes({ type: "error", error: { type: "api_error" } })).toThrow(GatewayError);
    expect(() => wholeNotes({ choices: [] })).toThrow(GatewayError);
  });
});

describe("messages that the gateway's writer wrote", () => {
  const seal = { seal: () => "", open: () => undefined };
  const head: ReplyHead = { id: "m", model: "tiny", created: 0, promptTokens: 1, request: { stream: true }, seal };
  const said = fc.string({ minLength: 1 });
  const tellings = fc.array(
    fc.oneof(
      said.map((text) => [["text", text]] as Telling[]),
      fc.tuple(said, said).map(
        ([text, data]) =>
          [
            ["reasoning", text],
            ["proof", { kind: "signature", data }],
          ] as Telling[],
      ),
      said.map((data) => [["proof", { kind: "redacted", data }]] as Telling[]),
      fc.dictionary(fc.constantFrom("a", "b"), said, { minKeys: 1 }).map((input) => [["call", input]] as Telling[]),
    ),
    { maxLength: 8 },
  );

  test("reads every written answer as it was written", () => {
    fc.assert(
      fc.property(tellings, fc.boolean(), (answer, isStream) => {
        const writer = new MessageWriter({ ...head, request: { stream: isStream } });
        const expected = new Notes();
        for (const sink of [writer, expected]) tellAll(answer, sink);
        const notes = isStream ? notesOf(eventsOf(writer.ending({}))) : wholeNotes(writer.whole({}));
        expect(notes.received).toEqual(expected.received);
      }),
    );
  });

  function tellAll(answer: readonly Telling[][], sink: ReplySink): void {
    let calls = 0;
    for (const [name, value] of answer.flat()) {
      if (name === "text") sink.text(String(value));
      else if (name === "reasoning") sink.reasoning(String(value), false);
      else if (name === "proof") sink.proof(value as Parameters<ReplySink["proof"]>[0]);
      else {
        sink.call(calls, { callId: `c${calls}`, kind: "function", name: "run" });
        sink.arguments(calls++, JSON.stringify(value));
      }
    }
    sink.end({ reason: calls > 0 ? "calls" : "stop" });
  }

  function eventsOf(stream: string): Json[] {
    return stream.split("\n\n").flatMap((event) => (event === "" ? [] : [JSON.parse(event.slice(event.indexOf("{")))]));
  }
});
