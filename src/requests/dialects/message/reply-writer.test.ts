// Tests that Anthropic's client reads from a stream the same message that the writer returns as a whole.
import { describe, expect, test } from "bun:test";
import Anthropic from "@anthropic-ai/sdk";
import fc from "fast-check";
import type { Seal } from "../../../domain/seal.ts";
import type { ReplyHead, ReplySink, ReplyUsage } from "../conversation/reply.ts";
import { MessageWriter } from "./reply-writer.ts";

type Json = Record<string, unknown>;
type ReplyStep = (sink: ReplySink) => void;

const seal: Seal = {
  seal: (text) => `own.${Buffer.from(text).toString("base64url")}`,
  open: (sealed) => (sealed.startsWith("own.") ? Buffer.from(sealed.slice(4), "base64url").toString() : undefined),
};
const counted: ReplyUsage = { promptTokens: 12, cachedTokens: 4, completionTokens: 7, reasoningTokens: 2 };

function headOf(request: Json): ReplyHead {
  return { id: "msg_1", model: "tiny", created: 7, promptTokens: 10, request, seal };
}

/** Returns the stream of an answer; the output is taken after each piece. */
function streamed(steps: readonly ReplyStep[], request: Json = {}, usage: ReplyUsage = counted): string {
  const writer = new MessageWriter(headOf({ ...request, stream: true }));
  const events = steps.map((tell) => {
    tell(writer);
    return writer.take();
  });
  return events.join("") + writer.ending(usage);
}

function whole(steps: readonly ReplyStep[], request: Json = {}, usage: ReplyUsage = counted): Json {
  const writer = new MessageWriter(headOf(request));
  for (const tell of steps) tell(writer);
  return writer.whole(usage);
}

function dataOf(stream: string): Json[] {
  const events = stream.split("\n\n");
  expect(events.pop()).toBe("");
  return events.map((event) => {
    const [name, data, ...rest] = event.split("\n");
    expect(rest).toEqual([]);
    const parsed = JSON.parse(String(data).replace(/^data: /, ""));
    expect(name).toBe(`event: ${parsed.type}`);
    return parsed;
  });
}

/** Returns a short word for each event, to compare their sequence. */
function sequenceOf(stream: string): string[] {
  return dataOf(stream).map(({ type, index, content_block, delta }) => {
    const block = content_block as Json | undefined;
    const piece = delta as Json | undefined;
    if (block) return `start ${index} ${block["type"]}`;
    if (type === "content_block_delta") {
      const text = piece?.["text"] ?? piece?.["thinking"] ?? piece?.["partial_json"] ?? piece?.["signature"];
      return `${piece?.["type"]} ${index} ${text}`;
    }
    if (type === "content_block_stop") return `stop ${index}`;
    return String(type);
  });
}

const asked = { model: "tiny", max_tokens: 10, messages: [{ role: "user" as const, content: "Hi" }] };

/** Returns an Anthropic client that gets this stream for any request. */
function clientOf(stream: string): Anthropic {
  return new Anthropic({
    apiKey: "key",
    baseURL: "http://gateway.test",
    maxRetries: 0,
    fetch: async () => new Response(stream, { headers: { "content-type": "text/event-stream" } }),
  });
}

/** Returns the message that Anthropic's client reads from the stream. */
async function understood(stream: string): Promise<Json> {
  const message = await clientOf(stream).messages.stream(asked).finalMessage();
  const { parsed_output: _parsed, ...members } = message;
  return JSON.parse(JSON.stringify(members));
}

const call =
  (index: number, name = `tool_${index}`): ReplyStep =>
  (sink) =>
    sink.call(index, { callId: `call_${index}`, kind: "function", name });
const args =
  (index: number, text: string): ReplyStep =>
  (sink) =>
    sink.arguments(index, text);
const text =
  (piece: string): ReplyStep =>
  (sink) =>
    sink.text(piece);
const thinks =
  (piece: string): ReplyStep =>
  (sink) =>
    sink.reasoning(piece, false);
const proves =
  (kind: "signature" | "redacted" | "encrypted", data: string): ReplyStep =>
  (sink) =>
    sink.proof({ kind, data });
const ends =
  (reason: Parameters<ReplySink["end"]>[0]["reason"], sequence?: string): ReplyStep =>
  (sink) =>
    sink.end({ reason, sequence });

const own = seal.seal("");

describe("a stream", () => {
  test("begins a text stream with the message and a ping, and ends it with usage", () => {
    const stream = streamed([text("Hel"), text("lo"), ends("stop")]);
    expect(sequenceOf(stream)).toEqual([
      ...["message_start", "ping", "start 0 text", "text_delta 0 Hel", "text_delta 0 lo", "stop 0"],
      ...["message_delta", "message_stop"],
    ]);
    const [start, , block] = dataOf(stream);
    const usage = {
      ...{ cache_creation: null, cache_creation_input_tokens: 0, cache_read_input_tokens: 0, inference_geo: null },
      ...{ input_tokens: 10, output_tokens: 0, output_tokens_details: null, server_tool_use: null, service_tier: null },
      speed: null,
    };
    const members = { id: "msg_1", type: "message", role: "assistant", model: "tiny", content: [], usage };
    const nulls = { container: null, diagnostics: null, stop_reason: null, stop_sequence: null, stop_details: null };
    expect(start).toEqual({ type: "message_start", message: { ...members, ...nulls } });
    expect(block).toEqual({
      type: "content_block_start",
      index: 0,
      content_block: { type: "text", text: "" },
    });
    expect(dataOf(stream).at(-2)).toEqual({
      type: "message_delta",
      delta: { stop_reason: "end_turn", stop_sequence: null, stop_details: null, container: null },
      usage: {
        ...{ input_tokens: 8, cache_read_input_tokens: 4, cache_creation_input_tokens: 0, output_tokens: 7 },
        ...{ output_tokens_details: { thinking_tokens: 2 }, server_tool_use: null },
      },
    });
  });

  test("begins a stream with prompt figures that the server reported before its answer", () => {
    const steps = [(sink: ReplySink) => sink.usage({ promptTokens: 30, cachedTokens: 20 }), text("x"), ends("stop")];
    const [start] = dataOf(streamed(steps));
    expect(start).toMatchObject({
      message: { usage: { input_tokens: 10, cache_read_input_tokens: 20, output_tokens: 0 } },
    });
  });

  test("sends nothing before the first piece", () => {
    const writer = new MessageWriter(headOf({ stream: true }));
    writer.usage({ promptTokens: 3 });
    writer.block();
    expect(writer.take()).toBe("");
  });

  test("signs thinking before the text", () => {
    expect(sequenceOf(streamed([thinks("Hm"), thinks("m"), text("Yes"), ends("stop")])).slice(2, -2)).toEqual([
      ...["start 0 thinking", "thinking_delta 0 Hm", "thinking_delta 0 m", `signature_delta 0 ${own}`, "stop 0"],
      ...["start 1 text", "text_delta 1 Yes", "stop 1"],
    ]);
  });

  test("keeps the signature of the model's vendor", () => {
    const steps = [thinks("Hm"), proves("signature", "abc"), text("Yes"), ends("stop")];
    expect(sequenceOf(streamed(steps))).toContain("signature_delta 0 abc");
    expect(streamed(steps)).not.toContain(own);
  });

  test("seals thinking that the client wants omitted, and shows none of it", () => {
    const request = { thinking: { type: "adaptive", display: "omitted" } };
    const stream = streamed([thinks("secret "), thinks("plan"), text("Yes"), ends("stop")], request);
    expect(sequenceOf(stream).slice(2, 5)).toEqual([
      "start 0 thinking",
      `signature_delta 0 ${seal.seal("secret plan")}`,
      "stop 0",
    ]);
    expect(stream).not.toContain("secret");
  });

  test("writes redacted thinking as a block of its own, and thinking with only a signature", () => {
    const steps = [proves("redacted", "xyz"), proves("signature", "abc"), text("Yes"), ends("stop")];
    const stream = streamed(steps);
    expect(dataOf(stream)[2]).toMatchObject({ content_block: { type: "redacted_thinking", data: "xyz" } });
    expect(sequenceOf(stream).slice(2, 7)).toEqual([
      ...["start 0 redacted_thinking", "stop 0", "start 1 thinking", "signature_delta 1 abc", "stop 1"],
    ]);
  });

  test("begins another block of the same kind if the reply does", () => {
    const steps = [text("a"), (sink: ReplySink) => sink.block(), text("b"), ends("stop")];
    expect(sequenceOf(streamed(steps)).slice(2, -2)).toEqual([
      ...["start 0 text", "text_delta 0 a", "stop 0", "start 1 text", "text_delta 1 b", "stop 1"],
    ]);
  });

  test("begins with a call if the model writes nothing before it", () => {
    const stream = streamed([call(0, "look"), args(0, '{"at":'), args(0, "1}"), ends("stop")]);
    expect(sequenceOf(stream)).toEqual([
      ...["message_start", "ping", "start 0 tool_use", 'input_json_delta 0 {"at":', "input_json_delta 0 1}", "stop 0"],
      ...["message_delta", "message_stop"],
    ]);
    const block = { type: "tool_use", id: "call_0", name: "look", input: {}, caller: { type: "direct" } };
    expect(dataOf(stream)[2]).toMatchObject({ content_block: block });
    expect(dataOf(stream).at(-2)).toMatchObject({ delta: { stop_reason: "tool_use" } });
  });

  test("passes on calls one after the other as they arrive", () => {
    const writer = new MessageWriter(headOf({ stream: true }));
    for (const tell of [call(0), args(0, '{"a":1}'), call(1)]) tell(writer);
    expect(sequenceOf(writer.take()).slice(2)).toEqual([
      ...["start 0 tool_use", 'input_json_delta 0 {"a":1}', "stop 0", "start 1 tool_use"],
    ]);
    args(1, '{"b"')(writer);
    expect(sequenceOf(writer.take())).toEqual(['input_json_delta 1 {"b"']);
  });

  test("gives calls with a repeated or missing id ids of their own", () => {
    const calls = ["a", "a", "", "b"].map(
      (callId, index): ReplyStep =>
        (sink) =>
          sink.call(index, { callId, kind: "function", name: "look" }),
    );
    const { content } = whole([...calls, ends("calls")]) as { content: Json[] };
    const ids = content.map(({ id }) => id);
    expect([ids[0], ids[3]]).toEqual(["a", "b"]);
    expect(new Set(ids).size).toBe(4);
    for (const id of ids) expect(id).toMatch(/^[a-zA-Z0-9_-]+$/);
  });

  test("holds back calls and texts until the arguments of the previous call are complete", () => {
    const steps = [
      call(0),
      call(1),
      args(1, '{"b":'),
      args(0, '{"a":'),
      text("\n"),
      args(0, "1}"),
      args(1, "2}"),
      ends("calls"),
    ];
    expect(sequenceOf(streamed(steps)).slice(2, -2)).toEqual([
      ...["start 0 tool_use", 'input_json_delta 0 {"a":', "input_json_delta 0 1}", "stop 0"],
      ...["start 1 tool_use", 'input_json_delta 1 {"b":2}', "stop 1", "start 2 text", "text_delta 2 \n", "stop 2"],
    ]);
  });

  test("does not treat an empty object as complete arguments, as some servers send it first", () => {
    const steps = [call(0), args(0, "{}"), call(1), args(1, "{}"), ends("calls")];
    expect(sequenceOf(streamed(steps)).filter((event) => event.startsWith("start"))).toHaveLength(2);
  });

  test("writes a refusal as text, with the reason `refusal`", () => {
    const stream = streamed([(sink) => sink.refusal("No."), ends("stop")]);
    expect(sequenceOf(stream)).toContain("text_delta 0 No.");
    const details = { type: "refusal", category: null, explanation: null };
    expect(dataOf(stream).at(-2)).toMatchObject({ delta: { stop_reason: "refusal", stop_details: details } });
  });

  test("ends with `tool_use` after calls, and with the limit if the answer was cut", () => {
    for (const reason of ["stop", "calls"] as const) {
      expect(dataOf(streamed([call(0), ends(reason)])).at(-2)).toMatchObject({ delta: { stop_reason: "tool_use" } });
    }
    expect(dataOf(streamed([call(0), ends("length")])).at(-2)).toMatchObject({ delta: { stop_reason: "max_tokens" } });
  });

  test.each([
    ["stop", "end_turn"],
    ["length", "max_tokens"],
    ["context", "model_context_window_exceeded"],
    ["filter", "refusal"],
    ["refusal", "refusal"],
    ["pause", "pause_turn"],
    ["calls", "end_turn"],
  ] as const)("ends an answer without calls by %s as %s", (reason, name) => {
    expect(dataOf(streamed([text("x"), ends(reason)])).at(-2)).toMatchObject({ delta: { stop_reason: name } });
  });

  test("reports the stop text that the client asked for", () => {
    const delta = { stop_reason: "stop_sequence", stop_sequence: "END" };
    const stopped = [text("x"), ends("sequence", "END")];
    expect(dataOf(streamed(stopped, { stop_sequences: ["STOP", "END"] })).at(-2)).toMatchObject({ delta });
    expect(whole(stopped, { stop_sequences: ["END"] })).toMatchObject(delta);
  });

  test("reports no stop text of the server's own template", () => {
    const delta = { stop_reason: "end_turn", stop_sequence: null };
    for (const request of [{}, { stop_sequences: ["END"] }]) {
      expect(dataOf(streamed([text("x"), ends("sequence", "<|im_end|>")], request)).at(-2)).toMatchObject({ delta });
    }
  });

  test("escapes characters that would end an event, and half characters", () => {
    const stream = streamed([text('"\n\u2028\ud83d'), ends("stop")]);
    expect(dataOf(stream)[3]).toMatchObject({ delta: { text: '"\n\u2028\ud83d' } });
  });
});

describe("a failure", () => {
  const failed = (status: number, code: string, message: string) => {
    const writer = new MessageWriter(headOf({ stream: true }));
    writer.text("a");
    writer.take();
    return dataOf(writer.failure({ status, code, message, requestId: "req_1" }));
  };

  test.each([
    [400, "invalid_request_error"],
    [429, "rate_limit_error"],
    [502, "api_error"],
    [503, "overloaded_error"],
    [504, "timeout_error"],
  ])("writes an error of status %d as the type %s", (status, type) => {
    const error = { type, message: "Broken." };
    expect(failed(status, "upstream_error", "Broken.")).toEqual([{ type: "error", error, request_id: "req_1" }]);
  });

  test("begins the message for a full context with the words that make Claude Code shorten a conversation", () => {
    const [event] = failed(400, "context_length_exceeded", "It has 9 tokens.");
    expect(event).toMatchObject({ error: { message: "prompt is too long: It has 9 tokens." } });
    const [same] = failed(400, "context_length_exceeded", "Prompt is too long: 9 > 8");
    expect(same).toMatchObject({ error: { message: "Prompt is too long: 9 > 8" } });
  });

  test("gives the caller of Anthropic's client an error with its type", async () => {
    const writer = new MessageWriter(headOf({ stream: true }));
    writer.text("a");
    const stream = writer.failure({ status: 503, code: "service_unavailable", message: "Full." });
    await expect(understood(stream)).rejects.toMatchObject({ type: "overloaded_error" });
  });
});

describe("a whole message", () => {
  test("writes a whole message with all members that clients know, empty or not", () => {
    expect(whole([text("Hel"), text("lo"), ends("stop")])).toEqual({
      ...{ id: "msg_1", type: "message", role: "assistant", model: "tiny", container: null, diagnostics: null },
      content: [{ type: "text", text: "Hello" }],
      ...{ stop_reason: "end_turn", stop_sequence: null, stop_details: null },
      usage: {
        ...{ input_tokens: 8, cache_read_input_tokens: 4, cache_creation_input_tokens: 0, cache_creation: null },
        ...{ output_tokens: 7, output_tokens_details: { thinking_tokens: 2 }, server_tool_use: null },
        ...{ inference_geo: null, service_tier: null, speed: null },
      },
    });
  });

  test.each([
    ["", {}],
    ['{"a":1}', { a: 1 }],
    ['{"a":', { input: '{"a":' }],
    ["[1]", { input: [1] }],
    ["null", { input: "null" }],
  ])("writes the arguments %j of a whole message as an input object", (written, input) => {
    expect(whole([call(0), args(0, written), ends("calls")])["content"]).toMatchObject([{ input }]);
  });
});

describe("Anthropic's own client", () => {
  const json = fc.dictionary(
    fc.string({ minLength: 1 }).filter((name) => name !== "__proto__"),
    fc.oneof(fc.string(), fc.integer(), fc.boolean()),
  );
  const pieces = fc.array(fc.string({ minLength: 1, unit: "grapheme" }), { minLength: 1, maxLength: 3 });
  const blocks = fc.array(
    fc.oneof(
      fc.record({ kind: fc.constant("text" as const), pieces }),
      fc.record({
        kind: fc.constant("thinking" as const),
        pieces,
        proof: fc.option(fc.string({ minLength: 1 }), { nil: undefined }),
      }),
      fc.record({ kind: fc.constant("redacted" as const), data: fc.string() }),
      fc.record({ kind: fc.constant("call" as const), input: json }),
    ),
    { minLength: 1, maxLength: 6 },
  );
  const reasons = fc.constantFrom(...(["stop", "length", "refusal", "pause", "context"] as const));

  const stepsOf = (
    block: (typeof blocks extends fc.Arbitrary<infer B> ? B : never)[number],
    index: number,
  ): ReplyStep[] => {
    const anew: ReplyStep = (sink) => sink.block();
    switch (block.kind) {
      case "text":
        return [anew, ...block.pieces.map(text)];
      case "thinking":
        return [anew, ...block.pieces.map(thinks), ...(block.proof ? [proves("signature", block.proof)] : [])];
      case "redacted":
        return [proves("redacted", block.data)];
      case "call": {
        const written = JSON.stringify(block.input);
        return [call(index), args(index, written.slice(0, 3)), args(index, written.slice(3))];
      }
    }
  };

  test("gives Anthropic's client the same message streamed and whole", async () => {
    await fc.assert(
      fc.asyncProperty(blocks, reasons, fc.boolean(), async (answer, reason, omits) => {
        const request = omits ? { thinking: { type: "adaptive", display: "omitted" } } : {};
        const steps = [...answer.flatMap(stepsOf), ends(reason)];
        expect(await understood(streamed(steps, request))).toEqual(whole(steps, request));
      }),
      { numRuns: 60 },
    );
  });

  test("gives Anthropic's client every event of a stream with invalid arguments", async () => {
    const stream = streamed([call(0), args(0, '{"a": oops'), call(1), args(1, '{"b":1}'), ends("calls")]);
    const events = await clientOf(stream).messages.create({ ...asked, stream: true });
    const types: string[] = [];
    for await (const event of events) types.push(event.type);
    expect(types).toEqual(dataOf(stream).flatMap(({ type }) => (type === "ping" ? [] : [String(type)])));
  });

  test("completes a call whose arguments a token limit cut off", async () => {
    const message = await understood(streamed([call(0), args(0, '{"a":1,"b":"x'), ends("length")]));
    expect(message).toMatchObject({ stop_reason: "max_tokens", content: [{ name: "tool_0", input: { a: 1 } }] });
  });
});
