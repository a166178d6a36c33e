// Tests chat completions of servers that omit, repeat or reword what clients of OpenAI's format need.
import { describe, expect, test } from "bun:test";
import { decodedRequest } from "../../../../tests/support/decoded-request.ts";
import { Source } from "../../../../tests/support/relay.ts";
import { ByteSpan } from "../../../base/bytes/byte-span.ts";
import { encodeByteText } from "../../../base/bytes/byte-text.ts";
import { SseReader } from "../../../base/text/sse.ts";
import { chat } from "./chat.ts";

type Json = Record<string, unknown>;
interface ReadCall {
  id?: string;
  type?: string;
  function: { name?: string; arguments: string };
}
interface Read {
  content: string;
  reasoning: string;
  calls: ReadCall[];
  ends: unknown[];
}

const names = { id: "chatcmpl-1", created: 7, ownId: false };
const request = decodedRequest({ messages: [], stream: true });
const serving = { model: { id: "m", context: undefined }, deployment: new Source().dispatched.deployment };
const chunkOf = (delta: unknown, end: unknown = null, more: Json = {}) => ({
  ...{ id: "c", object: "chat.completion.chunk", created: 1, model: "m" },
  choices: [{ index: 0, delta, finish_reason: end, ...more }],
});
const call = (more: Json, called?: Json) => ({ tool_calls: [{ ...more, ...(called && { function: called }) }] });

/** Reads a stream as the strictest client does: calls are found by their index, and all texts are concatenated. */
function streamed(chunks: readonly unknown[], end = "data: [DONE]\n\n"): Read {
  const stream = chat.stream(request, names);
  stream.servedBy(serving);
  const reader = new SseReader();
  reader.feed(encodeByteText(chunks.map((chunk) => `data: ${JSON.stringify(chunk)}\n\n`).join("") + end));
  let events = "";
  for (;;) {
    events += stream.takeAlike(reader);
    const start = reader.betweenEvents ? reader.position : -1;
    const data = reader.next();
    if (data === undefined || stream.isEnd(data)) break;
    events += stream.translate(data, start < 0 ? undefined : reader.text.slice(start, reader.position));
  }
  const read: Read = { content: "", reasoning: "", calls: [], ends: [] };
  for (const event of `${events}${stream.ending()}`.split("\n\n")) {
    if (event.startsWith("data: {")) for (const choice of JSON.parse(event.slice(6)).choices) take(choice, read);
  }
  return read;
}

function take({ delta, finish_reason: end }: { delta: Json; finish_reason: unknown }, read: Read): void {
  if (end !== null) read.ends.push(end);
  const { content, reasoning_content: reasoning, tool_calls: pieces } = delta;
  for (const text of [content, reasoning]) if (text !== undefined && text !== null) expect(text).toBeString();
  read.content += (content as string | null) ?? "";
  read.reasoning += (reasoning as string | null) ?? "";
  for (const { index, id, type, function: called } of (pieces ?? []) as (ReadCall & { index: number })[]) {
    if (index === read.calls.length) read.calls.push({ function: { arguments: "" } });
    const at = read.calls[index] as ReadCall;
    if (id) at.id = (at.id ?? "") + id;
    if (type) at.type = type;
    if (called.name) at.function.name = (at.function.name ?? "") + called.name;
    at.function.arguments += called.arguments ?? "";
  }
}

function whole(message: unknown, end: unknown, more: Json = {}): { message: Json; finish_reason: unknown } {
  const usage = { prompt_tokens: 7, completion_tokens: 2, total_tokens: 9 };
  const choices = [{ index: 0, message, finish_reason: end, ...more }];
  const answer = { id: "c", object: "chat.completion", created: 1, model: "m", choices, usage };
  return JSON.parse(chat.readAnswer(ByteSpan.of(JSON.stringify(answer)), request, serving, names).text).choices[0];
}

const look = (id: string, place: string): ReadCall => ({
  ...{ id, type: "function" },
  function: { name: "look", arguments: `{"place":"${place}"}` },
});
const begin = { name: "look", arguments: "" };
const zurich = ['{"place":', '"Z"}'] as const;
const inPieces = (head: Json, more: readonly Json[]) => [
  chunkOf(call(head, begin)),
  ...more.map((piece, at) => chunkOf(call(piece, { arguments: zurich[at] }))),
  chunkOf({}, "tool_calls"),
];

describe("a streamed call", () => {
  test.each([
    ["in order", { index: 0, id: "a", type: "function" }, [{ index: 0 }, { index: 0 }]],
    ["without an index", { id: "a", type: "function" }, [{}, {}]],
    ["with an index that is null", { index: null, id: "a" }, [{ index: null }, { index: null }]],
    ["counted from 1", { index: 1, id: "a" }, [{ index: 1 }, { index: 1 }]],
    [
      "whose id and type come again",
      { index: 0, id: "a" },
      [
        { index: 0, id: "a", type: "function" },
        { index: 0, id: "a" },
      ],
    ],
    [
      "whose id is empty later",
      { index: 0, id: "a" },
      [
        { index: 0, id: "" },
        { index: 0, id: null },
      ],
    ],
  ])("repairs a streamed call with %s", (_, head, more) => {
    expect(streamed(inPieces(head, more))).toMatchObject({ calls: [look("a", "Z")], ends: ["tool_calls"] });
  });

  test("keeps the name of a streamed call once if it is repeated", () => {
    const piece = (text: string) => chunkOf(call({ index: 0, id: "a" }, { name: "look", arguments: text }));
    expect(streamed([...zurich.map(piece), chunkOf({}, "tool_calls")]).calls).toEqual([look("a", "Z")]);
  });

  test.each([
    ["without indices", {}, {}],
    ["of one index", { index: 0 }, { index: 0 }],
    ["of indices with a gap", { index: 1 }, { index: 4 }],
  ])("keeps a streamed call %s apart from another call", (_, one, other) => {
    const chunks = [
      chunkOf(call({ ...one, id: "a" }, { name: "look", arguments: '{"place":"A"}' })),
      chunkOf(call({ ...other, id: "b" }, { name: "look", arguments: '{"place":"B"}' })),
    ];
    expect(streamed([...chunks, chunkOf({}, "tool_calls")]).calls).toEqual([look("a", "A"), look("b", "B")]);
  });

  test("gives a streamed call without a unique id an id of its own", () => {
    const pieces = [{ index: 0 }, { index: 1, id: "" }, { index: 2, id: "a" }, { index: 3, id: "a" }];
    const chunks = pieces.map((piece) => chunkOf(call(piece, { name: "look", arguments: '{"place":"A"}' })));
    const { calls } = streamed([...chunks, chunkOf({}, "tool_calls")]);
    expect(calls.map(({ id }) => id)).toEqual(["call_1_0", "call_1_1", "a", "call_1_2"]);
  });

  test("joins a streamed call whose id all calls share, with its name in each piece", () => {
    const pieces = [0, 0, 1, 1].map((index, at) =>
      chunkOf(call({ index, id: "a" }, { name: "look", arguments: zurich[at % 2] })),
    );
    expect(streamed([...pieces, chunkOf({}, "tool_calls")]).calls).toEqual([look("a", "Z"), look("call_1_0", "Z")]);
  });

  test("converts object arguments of a streamed call to text", () => {
    const chunk = chunkOf(call({ index: 0, id: "a" }, { name: "look", arguments: { place: "Z" } }));
    expect(streamed([chunk, chunkOf({}, "tool_calls")]).calls).toEqual([look("a", "Z")]);
  });

  test.each([
    ["an end", [chunkOf({}, "tool_calls")]],
    ["an end with more", [chunkOf({ content: "" }, "stop")]],
    ["the mark alone", []],
  ])("adds empty arguments to a streamed call before %s", (_, last) => {
    for (const called of [{ name: "look" }, begin, { name: "look", arguments: null }]) {
      const { calls, ends } = streamed([chunkOf(call({ index: 0, id: "a" }, called)), ...last]);
      expect([calls[0]?.function.arguments, calls.length, ends.length]).toEqual(["{}", 1, 1]);
    }
  });

  test("keeps the arguments of a streamed call with an end in each piece, before one end", () => {
    const pieces = ["", ...zurich].map((text, at) =>
      chunkOf(call({ index: 0 }, at === 0 ? { name: "look", arguments: text } : { arguments: text }), "tool_calls"),
    );
    expect(streamed(pieces).calls).toEqual([look("call_1_0", "Z")]);
    const { calls, ends } = streamed([
      ...pieces.slice(0, 1),
      ...pieces.slice(0, 1).map(() => chunkOf({}, "tool_calls")),
    ]);
    expect([calls, ends]).toEqual([
      [{ ...look("call_1_0", "Z"), function: { name: "look", arguments: "{}" } }],
      ["tool_calls"],
    ]);
  });

  test("adds no arguments to a streamed call that a limit has cut", () => {
    const { calls } = streamed([chunkOf(call({ index: 0, id: "a" }, begin)), chunkOf({}, "length")]);
    expect(calls[0]?.function.arguments).toBe("");
  });
});

describe("a whole call", () => {
  test.each([
    ["an object", { place: "Z" }, '{"place":"Z"}'],
    ["an empty text", "", "{}"],
    ["null", null, "{}"],
    ["a text", '{ "place": "Z" }', '{ "place": "Z" }'],
  ])("converts arguments of a whole call that are %s to text", (_, reported, text) => {
    const { message } = whole(
      { role: "assistant", tool_calls: [{ function: { name: "look", arguments: reported } }] },
      "stop",
    );
    expect(message["tool_calls"]).toEqual([
      { function: { name: "look", arguments: text }, id: "call_1_0", type: "function" },
    ]);
  });

  test("gives a whole call with the id of another an id of its own", () => {
    const calls = [look("a", "A"), look("a", "B")];
    const { message } = whole({ role: "assistant", content: null, tool_calls: calls }, "tool_calls");
    expect(message["tool_calls"]).toEqual([calls[0], { ...calls[1], id: "call_1_0" }]);
  });
});

test("reads text, reasoning and calls of a whole answer that is the only chunk of a stream", () => {
  const { function: called } = look("a", "Z");
  const message = {
    role: "assistant",
    content: "Hi",
    reasoning_content: "Hm",
    tool_calls: [{ id: "a", function: called }],
  };
  const choices = [{ index: 0, message, finish_reason: "tool_calls" }];
  const read = streamed([{ ...chunkOf({}), object: "chat.completion", choices }]);
  expect(read).toEqual({ content: "Hi", reasoning: "Hm", calls: [look("a", "Z")], ends: ["tool_calls"] });
});

test("joins content parts into one text, with the reasoning beside it", () => {
  const thought = { type: "thinking", thinking: [{ type: "text", text: "Hm" }] };
  const text = (said: string) => ({ type: "text", text: said });
  const chunks = [[thought], [text("Hel")], [text("l"), text("o")]].map((content) => chunkOf({ content }));
  expect(streamed([...chunks, chunkOf({}, "stop")])).toMatchObject({
    content: "Hello",
    reasoning: "Hm",
    ends: ["stop"],
  });
  const { message } = whole({ role: "assistant", content: [thought, text("Hello")] }, "stop");
  expect(message).toEqual({ role: "assistant", content: "Hello", reasoning_content: "Hm" });
});

test.each([
  ["", "stop"],
  [null, "stop"],
  [undefined, "stop"],
  ["STOP", "stop"],
  ["eos_token", "stop"],
  ["MAX_TOKENS", "length"],
  ["max_tokens", "length"],
  ["tool_use", "tool_calls"],
  ["length", "length"],
  ["of_its_own", "of_its_own"],
])("changes the finish reason %p to %p", (reported, word) => {
  expect(whole({ role: "assistant", content: "Hi" }, reported).finish_reason).toBe(word);
  expect(streamed([chunkOf({ content: "Hi" }, ""), chunkOf({}, reported)]).ends).toEqual([word]);
});

test("throws the error of a choice that its server gave up, in its words", () => {
  const error = { error: { code: 502, message: "It died." } };
  const given = () => whole({ role: "assistant", content: "Hi" }, "error", error);
  expect(given).toThrow("It died.");
  expect(() => streamed([chunkOf({ content: "Hi" }), chunkOf({}, "error", error)])).toThrow("It died.");
  expect(() => whole({ role: "assistant", content: "Hi" }, "abort")).toThrow("failed");
});

test("gives each of several choices an end and a message of its own", () => {
  const message = { role: "assistant", content: "Hi" };
  const all = (choices: readonly unknown[]) => {
    const usage = { prompt_tokens: 7, completion_tokens: 2, total_tokens: 9 };
    const answer = { id: "c", object: "chat.completion", created: 1, model: "m", choices, usage };
    const { text } = chat.readAnswer(ByteSpan.of(JSON.stringify(answer)), request, serving, names);
    return JSON.parse(text).choices.map((choice: Json) => choice["finish_reason"]);
  };
  const good = { index: 0, message, finish_reason: "length" };
  expect(all([good, { ...good, index: 1 }])).toEqual(["length", "length"]);
  expect(all([good, { index: 1, message }])).toEqual(["length", "stop"]);
  for (const bad of [{ index: 1, finish_reason: "stop" }, {}, [], null, 1]) {
    expect(() => all([good, bad])).toThrow("cannot be read");
    expect(() => all([bad, good])).toThrow("cannot be read");
  }
});

test.each([[null], [undefined], ["Hi"]])("refuses a whole choice whose message is %p", (message) => {
  expect(() => whole(message, "stop")).toThrow("cannot be read");
});
