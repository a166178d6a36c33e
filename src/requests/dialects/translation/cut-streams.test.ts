// Tests that the client's stream does not depend on where the network splits the engine's bytes.
import { describe, expect, test } from "bun:test";
import { decodedRequest } from "../../../../tests/support/decoded-request.ts";
import { ByteSpan } from "../../../base/bytes/byte-span.ts";
import { byteTextOf, decodeByteText } from "../../../base/bytes/byte-text.ts";
import { GatewayError } from "../../../base/errors.ts";
import { SseReader } from "../../../base/text/sse.ts";
import type { Engine } from "../../../domain/models/engine.ts";
import type { AnswerStream, Serving } from "../answer.ts";
import { dialects } from "../dialects.ts";
import { TranslatedStream } from "./translated-stream.ts";

type FormatName = "chat" | "response" | "message";
type Json = Record<string, unknown>;

const engine: Engine = {
  name: "engine",
  send: () => Promise.reject(new Error("not asked")),
  models: () => Promise.resolve([]),
  redact: (text) => text.replaceAll("s3cret", "[secret]"),
};
const serving: Serving = { deployment: { engine }, model: { id: "public", context: undefined } };
const names = { id: "answer_1", created: 7, ownId: true };
const seal = { seal: (text: string) => `own.${Buffer.from(text).toString("base64url")}`, open: () => undefined };

/** Returns the text of an event whose lines end with `end`. */
function sse(data: Json | string, end = "\n"): string {
  const text = typeof data === "string" ? data : JSON.stringify(data);
  const type = typeof data === "string" ? undefined : data["type"];
  return `${type === undefined ? "" : `event: ${String(type)}${end}`}data: ${text}${end}${end}`;
}

const chunk = (delta: Json, finish_reason: string | null = null) => ({
  ...{ id: "chatcmpl-9", object: "chat.completion.chunk", created: 3, model: "engine-model" },
  choices: [{ index: 0, delta, finish_reason }],
});
const chatStream = [
  ": OPENROUTER PROCESSING\n\n",
  sse(chunk({ role: "assistant", content: "" })),
  sse(chunk({ reasoning_content: "Grübeln 🤔" })),
  sse(chunk({ content: "Grüße, 世界" })),
  sse(chunk({ tool_calls: [{ index: 0, id: "call_1", type: "function", function: { name: "look", arguments: "" } }] })),
  sse(chunk({ tool_calls: [{ index: 0, function: { arguments: '{"a":"é"}' } }] }), "\r\n"),
  sse(chunk({}, "tool_calls")),
  sse({ ...chunk({}), choices: [], usage: { prompt_tokens: 30, completion_tokens: 9, total_tokens: 39 } }),
  sse("[DONE]"),
].join("");

const message = { id: "msg_9", type: "message", role: "assistant", content: [] };
const response = (status: string, more: Json = {}) => ({
  ...{ id: "resp_9", object: "response", created_at: 3, model: "engine-model", status, output: [], error: null },
  ...more,
});
const responseEvents: readonly Json[] = [
  { type: "response.created", response: response("in_progress") },
  { type: "response.output_item.added", output_index: 0, item: message },
  { type: "response.output_text.delta", item_id: "msg_9", output_index: 0, content_index: 0, delta: "Grüße, 🤔" },
  {
    type: "response.output_item.done",
    output_index: 0,
    item: { ...message, content: [{ type: "output_text", text: "Grüße, 🤔" }] },
  },
  {
    type: "response.completed",
    response: response("completed", { usage: { input_tokens: 30, output_tokens: 9, total_tokens: 39 } }),
  },
];
const responseStream = responseEvents
  .map((event, sequence_number) => sse({ ...event, sequence_number }, sequence_number === 2 ? "\r\n" : "\n"))
  .join("");

const usage = { input_tokens: 30, output_tokens: 1 };
const messageStream = [
  { type: "message_start", message: { ...message, model: "engine-model", stop_reason: null, usage } },
  { type: "ping" },
  { type: "content_block_start", index: 0, content_block: { type: "text", text: "" } },
  { type: "content_block_delta", index: 0, delta: { type: "text_delta", text: "Grüße, 🤔" } },
  { type: "content_block_stop", index: 0 },
  {
    type: "content_block_start",
    index: 1,
    content_block: { type: "tool_use", id: "toolu_1", name: "look", input: {} },
  },
  { type: "content_block_delta", index: 1, delta: { type: "input_json_delta", partial_json: '{"a":1}' } },
  { type: "content_block_stop", index: 1 },
  { type: "message_delta", delta: { stop_reason: "tool_use", stop_sequence: null }, usage: { output_tokens: 9 } },
  { type: "message_stop" },
]
  .map((event) => sse(event))
  .join("");

const streams: Readonly<Record<FormatName, string>> = {
  chat: chatStream,
  response: responseStream,
  message: messageStream,
};
/** The server's own ids in these answers. */
const ids: Readonly<Record<FormatName, string>> = { chat: "chatcmpl-9", response: "resp_9", message: '"msg_9"' };
const formats = ["chat", "response", "message"] as const;
const pairs = formats.flatMap((from) =>
  formats.flatMap((to) => (from === "chat" && to === "chat" ? [] : [[from, to] as const])),
);

function streamFor(from: FormatName, to: FormatName): AnswerStream {
  const body = { messages: [], input: "Hi", stream: true, stream_options: { include_usage: true }, max_tokens: 99 };
  const request = decodedRequest(body, to);
  const [{ format: engineFormat }, dialect] = [dialects[from], dialects[to]];
  if (from === to) {
    const stream = dialect.stream(request, names);
    stream.servedBy(serving);
    return stream;
  }
  if (!engineFormat || !dialect.format) throw new Error("no format");
  const { format, errorEvent } = dialect;
  return new TranslatedStream(request, names, serving, {
    from: engineFormat,
    to: format,
    names: new Map(),
    seal,
    errorEvent,
  });
}

interface Outcome {
  events: string;
  /** Undefined if the stream reached its end. */
  error: GatewayError | undefined;
}

/** Returns what the client gets of these pieces and of the end after them, as the relay handles both. */
function outcomeOf(stream: AnswerStream, pieces: readonly Buffer[]): Outcome {
  const reader = new SseReader();
  let events = "";
  try {
    for (const piece of pieces) {
      reader.feed(byteTextOf(ByteSpan.of(piece)));
      for (let data = reader.next(); data !== undefined; data = reader.next()) {
        if (stream.isEnd(data)) return { events: decodeByteText(events + stream.ending()), error: undefined };
        events += stream.translate(data, undefined);
      }
    }
    const rest = reader.end();
    if (rest !== undefined) events += stream.translate(rest, undefined);
    if (!stream.finishSeen) throw new GatewayError("upstream_error", "The model server closed the connection early.");
    return { events: decodeByteText(events + stream.ending()), error: undefined };
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error;
    const rendered = JSON.stringify({
      error: { code: error.code, message: error.message, type: "api_error" },
    });
    return { events: decodeByteText(events + stream.errorEvent(rendered, error)), error };
  }
}

function dataOf(events: string): Json[] {
  return events
    .split("\n\n")
    .filter((event) => event !== "" && event !== "data: [DONE]")
    .map((event) => JSON.parse(event.slice(event.indexOf("data: ") + "data: ".length)));
}

describe.each(pairs)("a stream of a server of %s for a client of %s", (from, to) => {
  const bytes = Buffer.from(streams[from]);
  const uncut = outcomeOf(streamFor(from, to), [bytes]);

  test("delivers the server's text, and ends", () => {
    expect(uncut.error).toBeUndefined();
    expect(uncut.events).toContain("Grüße, ");
    expect(uncut.events).not.toContain("engine-model");
    expect(uncut.events).not.toContain(ids[from]);
    expect(uncut.events).toMatch(
      to === "chat" ? /data: \[DONE\]\n\n$/ : /event: (response\.completed|message_stop)\n.*\n\n$/,
    );
  });

  test("gives the same output wherever the stream is cut in two, and byte by byte", () => {
    for (let at = 1; at < bytes.length; at++) {
      const { events } = outcomeOf(streamFor(from, to), [bytes.subarray(0, at), bytes.subarray(at)]);
      if (events !== uncut.events) throw new Error(`cut at ${at}: ${events}`);
    }
    const single = Array.from(bytes, (_, at) => bytes.subarray(at, at + 1));
    expect(outcomeOf(streamFor(from, to), single).events).toBe(uncut.events);
  });

  test("reports an error for a stream that stops before its end, wherever it stops", () => {
    const step = 37;
    const ends = streams[from].indexOf(
      from === "chat" ? '"tool_calls"}' : from === "response" ? "response.completed" : "message_delta",
    );
    const last = Buffer.byteLength(streams[from].slice(0, ends));
    for (let at = 1; at < last; at += step) {
      // An event that is cut in the middle is invalid JSON, and a cut between two events is a stream that closed early.
      const { error, events } = outcomeOf(streamFor(from, to), [bytes.subarray(0, at)]);
      expect(error?.code).toBe("upstream_error");
      expect(events).toMatch(/response\.failed|"error"/);
      expect(events).not.toMatch(/response\.completed|message_stop|\[DONE\]/);
    }
  });
});

test("does not end a stream of responses by the mark of chat completions before its end", () => {
  const events = [...responseEvents.slice(0, 3), "[DONE]"].map((event) => sse(event)).join("");
  const { error } = outcomeOf(streamFor("response", "message"), [Buffer.from(events)]);
  expect(error?.code).toBe("upstream_error");
});

describe("a stream of responses that is passed on", () => {
  const passed = (...events: (Json | string)[]) => {
    const numbered = events.map((event, sequence_number) =>
      typeof event === "string" ? event : { ...event, sequence_number },
    );
    return outcomeOf(streamFor("response", "response"), [Buffer.from(numbered.map((event) => sse(event)).join(""))]);
  };

  test("writes the gateway's id and the public model into every response of the stream", () => {
    const held = dataOf(passed(...responseEvents).events).flatMap((event) =>
      event["response"] ? [event["response"]] : [],
    );
    expect(held).toHaveLength(3);
    for (const one of held) expect(one).toMatchObject({ id: "answer_1", model: "public" });
  });

  test("ends a passed-on stream with the last event, whatever the server sends after it", () => {
    const { events, error } = passed(...responseEvents, "[DONE]", responseEvents[2] as Json);
    expect(error).toBeUndefined();
    expect(events).toBe(passed(...responseEvents).events);
  });

  test("continues the numbers of a failed stream by an event that Codex acts upon, without secrets", () => {
    const error = { code: "context_length_exceeded", message: "s3cret is too long" };
    const { events } = passed(...responseEvents.slice(0, 3), {
      type: "response.failed",
      response: response("failed", { error }),
    });
    expect(dataOf(events).at(-1)).toMatchObject({
      type: "response.failed",
      sequence_number: 5,
      response: {
        ...{ id: "answer_1", model: "public", status: "failed" },
        error: { code: "context_length_exceeded", message: "[secret] is too long" },
      },
    });
  });

  test("reports an error for a stream that fails before it began", () => {
    const { events } = passed({ type: "error", code: "server_error", message: "s3cret", param: null });
    expect(dataOf(events)).toEqual([
      {
        ...{ type: "error", code: "upstream_error", message: "[secret]", param: null, sequence_number: 0 },
        error: { type: "api_error", code: "upstream_error", message: "[secret]" },
      },
    ]);
  });

  test.each([
    ["chunks of another format", chunk({ content: "a" })],
    ["a type that is none", { type: "a\ndata: {}\n\nevent: b" }],
    ["what is no JSON", "<html>"],
    ["an end of chat completions alone", "[DONE]"],
  ])("refuses a stream for %s", (_, event) => {
    const { error, events } = passed(...responseEvents.slice(0, 1), event);
    expect(error?.code).toBe("upstream_error");
    expect(dataOf(events).map(({ type }) => type)).toEqual(["response.created", "response.failed"]);
  });

  test("accepts a whole answer instead of a stream", () => {
    const stream = streamFor("response", "response");
    const item = { ...message, status: "completed", content: [{ type: "output_text", text: "Hi", annotations: [] }] };
    const thought = { type: "reasoning", id: "rs_9", summary: [], encrypted_content: "gAAA" };
    const whole = response("completed", { output: [thought, item], usage: { input_tokens: 3, output_tokens: 2 } });
    const events = dataOf(stream.whole(ByteSpan.of(JSON.stringify(whole))) + stream.ending());
    expect(stream.finishSeen).toBe(true);
    expect(events.at(-1)).toMatchObject({
      type: "response.completed",
      response: {
        ...{ id: "answer_1", model: "public", usage: { input_tokens: 3, output_tokens: 2 } },
        output: [
          { type: "reasoning", encrypted_content: "gAAA" },
          { type: "message", content: [{ text: "Hi" }] },
        ],
      },
    });
  });
});
