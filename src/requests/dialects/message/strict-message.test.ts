// Tests that messages of lenient servers reach clients with all members that Anthropic's SDKs read.
import { expect, test } from "bun:test";
import { decodedRequest } from "../../../../tests/support/decoded-request.ts";
import { ByteSpan } from "../../../base/bytes/byte-span.ts";
import type { Serving } from "../answer.ts";
import { dialects } from "../dialects.ts";

type Json = Record<string, unknown>;

const engine = { name: "e", redact: (text: string) => text, models: async () => [] } as never;
const serving: Serving = { model: { id: "m", context: undefined }, deployment: { engine } };
const names = { id: "msg_own", created: 1, ownId: false };
const request = decodedRequest({ messages: [{ role: "user", content: "Hi" }], max_tokens: 9, stream: true }, "message");

const start = (more: Json = {}) => ({
  type: "message_start",
  message: {
    ...{ id: "m", type: "message", role: "assistant", model: "m", content: [] },
    usage: { input_tokens: 7, output_tokens: 1 },
    ...more,
  },
});
const begin = (index: number, content_block: Json) => ({ type: "content_block_start", index, content_block });
const piece = (index: number, delta: Json) => ({ type: "content_block_delta", index, delta });
const stop = (index: number) => ({ type: "content_block_stop", index });
const end = (stop_reason: unknown, more: Json = { usage: { output_tokens: 2 } }) => ({
  ...{ type: "message_delta", delta: { stop_reason, stop_sequence: null } },
  ...more,
});
const over = { type: "message_stop" };
const textAt = (index: number) => [
  begin(index, { type: "text", text: "" }),
  piece(index, { type: "text_delta", text: "Hi" }),
  stop(index),
];
const callAt = (index: number, more: Json = { id: "a" }) => [
  begin(index, { type: "tool_use", name: "look", input: {}, ...more }),
  piece(index, { type: "input_json_delta", partial_json: '{"a":1}' }),
  stop(index),
];

/** Reads the events as Anthropic's SDKs do: blocks by their position in the list, and usage figures without checks. */
function readStream(events: readonly Json[]): Json {
  const stream = dialects.message.stream(request, names);
  stream.servedBy(serving);
  let text = "";
  for (const event of events)
    text += stream.translate(Buffer.from(JSON.stringify(event)).toString("latin1"), undefined);
  text += stream.ending();
  let message: Json = {};
  const blocks: Json[] = [];
  for (const [, line = ""] of text.matchAll(/^data: (.*)$/gm)) {
    const event = JSON.parse(line) as { type: string; index: number; delta: Json; usage: Json } & Json;
    const { type, index, delta } = event;
    if (type === "message_start") message = { ...(event["message"] as Json) };
    if (type === "content_block_start") blocks.push({ json: "", ...(event["content_block"] as Json) });
    const block = blocks[index] as Json;
    if (delta?.["type"] === "text_delta") block["text"] = `${block["text"]}${delta["text"]}`;
    if (delta?.["type"] === "input_json_delta") block["json"] = `${block["json"]}${delta["partial_json"]}`;
    if (type === "message_delta") {
      message = { ...message, ...delta, usage: { ...(message["usage"] as Json), ...event.usage } };
    }
  }
  const content = blocks.map(({ json, ...block }) => (json ? { ...block, input: JSON.parse(String(json)) } : block));
  return { ...message, content };
}

const made = expect.stringMatching(/^toolu_[0-9a-f]{32}$/);
const text = { type: "text", text: "Hi" };
const call = (id: unknown = "a") => ({ type: "tool_use", id, name: "look", input: { a: 1 } });
const used = (input: unknown, output: number) =>
  expect.objectContaining({ input_tokens: input, output_tokens: output });
const whole = { content: [text], stop_reason: "end_turn", usage: used(7, 2) };

test.each<[string, readonly Json[], Json]>([
  ["null content", [start({ content: null }), ...textAt(0), end("end_turn"), over], whole],
  ["no message at its start", [{ type: "message_start" }, ...textAt(0), end("end_turn"), over], { content: [text] }],
  [
    "null usage",
    [start({ usage: null }), ...textAt(0), end("end_turn", { usage: null }), over],
    { usage: used(expect.any(Number), 1) },
  ],
  ["no usage at its end", [start(), ...textAt(0), end("end_turn", {}), over], { ...whole, usage: used(7, 1) }],
  ["a null stop reason", [start(), ...textAt(0), end(null), over], whole],
  ["an empty stop reason", [start(), ...textAt(0), end(""), over], whole],
  ["no end but message_stop", [start(), ...textAt(0), over], { ...whole, usage: used(7, 1) }],
  ["a stop reason of OpenAI's", [start(), ...textAt(0), end("length"), over], { ...whole, stop_reason: "max_tokens" }],
  [
    "a stop reason beside its delta",
    [start(), { type: "message_delta", stop_reason: "max_tokens" }, over],
    { stop_reason: "max_tokens" },
  ],
  ["an unknown stop reason", [start(), ...textAt(0), end("odd"), over], { ...whole, stop_reason: "odd" }],
  ["indices from 1", [start(), ...textAt(1), end("end_turn"), over], whole],
  [
    "one index for all",
    [start(), ...textAt(0), ...callAt(0), end("tool_use"), over],
    { content: [text, call()], stop_reason: "tool_use" },
  ],
  [
    "calls without ids, and end_turn",
    [start(), ...callAt(0, {}), ...callAt(1, {}), end("end_turn"), over],
    { content: [call(made), call(made)], stop_reason: "tool_use" },
  ],
  [
    "calls with one id",
    [start(), ...callAt(0), ...callAt(1), end("tool_use"), over],
    { content: [call(), call(made)] },
  ],
  [
    "a block that begins twice",
    [start(), ...callAt(0, {}).slice(0, 1), ...callAt(0, {}), over],
    { content: [call(made)] },
  ],
  [
    "pieces without a type",
    [start(), begin(0, { type: "text" }), piece(0, { text: "Hi" }), stop(0), end("end_turn"), over],
    whole,
  ],
  ["input as JSON", [start(), begin(0, { ...call(), input: '{"a":1}' }), stop(0), over], { content: [call()] }],
  [
    "pieces of input as objects",
    [start(), begin(0, { ...call(), input: {} }), piece(0, { type: "input_json_delta", partial_json: { a: 1 } }), over],
    { content: [call()] },
  ],
])("completes a stream with %s", (_, events, expected) => {
  expect(readStream(events)).toMatchObject(expected);
});

test("passes the events of a strict server unchanged", () => {
  const stream = dialects.message.stream(request, names);
  stream.servedBy(serving);
  for (const event of [start(), ...textAt(0), ...callAt(1), end("tool_use")]) {
    const json = JSON.stringify(event);
    expect(stream.translate(json, undefined)).toBe(`event: ${event.type}\ndata: ${json}\n\n`);
  }
});

test.each<[string, Json, Json]>([
  ["a text alone as content", { content: "Hi" }, { content: [text] }],
  ["no usage", { usage: null }, { usage: used(expect.any(Number), 1) }],
  ["a null stop reason", { stop_reason: null }, { stop_reason: "end_turn" }],
  ["a stop reason of OpenAI's", { stop_reason: "length" }, { stop_reason: "max_tokens" }],
  ["a call without an id, and end_turn", { content: [call("")] }, { content: [call(made)], stop_reason: "tool_use" }],
  ["input as JSON", { content: [{ ...call(), input: '{"a":1}' }] }, { content: [call()] }],
])("completes a whole message with %s", (_, more, expected) => {
  const message = { ...start().message, content: [text], stop_reason: "end_turn", ...more };
  const bytes = ByteSpan.of(Buffer.from(JSON.stringify(message)));
  const answer = dialects.message.readAnswer(bytes, request, serving, names);
  expect(JSON.parse(answer.text)).toMatchObject(expected);
});
