// Tests that chunks handled by a template become, byte for byte, what parsing each of them would give.
import { describe, expect, test } from "bun:test";
import { decodedRequest } from "../../../../tests/support/decoded-request.ts";
import { bodies, cut, faults, outcomeOf, Random, streamOf } from "../../../../tests/support/random-chunks.ts";
import { encodeByteText } from "../../../base/bytes/byte-text.ts";
import { GatewayError } from "../../../base/errors.ts";
import { type Escapes, stringEnd } from "../../../base/text/json-string.ts";
import { SseReader } from "../../../base/text/sse.ts";
import type { Operation } from "../../../domain/models/operation.ts";
import { ChunkTranslator } from "./chunks.ts";

interface Setting {
  operation: Operation;
  model: string;
  includeUsage: boolean;
  ownId: boolean;
}

function translatorFor({ operation, model, includeUsage, ownId }: Setting): ChunkTranslator {
  const body = {
    model,
    stream: true,
    messages: [],
    ...(includeUsage ? { stream_options: { include_usage: true } } : {}),
  };
  return new ChunkTranslator(decodedRequest(body, operation), { id: "chatcmpl-own", created: 7, ownId });
}

test("gives the same bytes, counts, usage and errors as parsing each chunk, for streams cut anywhere", () => {
  let [asText, inPlace] = [0, 0];
  for (let seed = 1; seed <= 1_500; seed++) {
    const random = new Random(seed);
    const setting: Setting = {
      operation: random.of(["chat", "chat", "completion"]),
      model: random.of(["upstream-model", "public-model", "modèle"]),
      includeUsage: random.chance(0.3),
      ownId: random.chance(0.2),
    };
    const pieces = cut(streamOf(random), random);
    const { recognised: none, inPlace: _, ...slow } = outcomeOf(translatorFor(setting), pieces, "parsed");
    expect(none).toBe(0);
    for (const way of ["as text", "in place"] as const) {
      const { recognised: some, inPlace: others, ...fast } = outcomeOf(translatorFor(setting), pieces, way);
      if (JSON.stringify(fast) !== JSON.stringify(slow)) {
        expect({ seed, way, ...fast }).toEqual({ seed, way, ...slow });
      }
      if (others > 0) inPlace++;
      else if (some > 0) asText++;
    }
  }
  expect([asText > 300, inPlace > 50]).toEqual([true, true]);
});

describe("chunks that are recognised without parsing", () => {
  const setting: Setting = { operation: "chat", model: "m", includeUsage: false, ownId: false };
  const chunk = (content: string, more: object = {}, choice: object = {}) =>
    encodeByteText(
      `data: ${JSON.stringify({ id: "c", object: "chat.completion.chunk", created: 1, model: "m", choices: [{ index: 0, delta: { content }, finish_reason: null, ...choice }], ...more })}\n\n`,
    );
  const first = chunk("", {}, { delta: { role: "assistant", content: "" } });

  function recognisedOf(events: readonly string[], other: Partial<Setting> = {}): string {
    const chunks = translatorFor({ ...setting, ...other });
    const reader = new SseReader();
    let seen = "";
    for (const event of events) {
      reader.feed(event);
      const alike = chunks.takeAlike(reader);
      seen += alike === "" ? "-" : "+";
      const start = reader.position;
      const data = reader.next();
      if (data !== undefined) chunks.translate(data, reader.text.slice(start, reader.position));
    }
    return seen;
  }

  test("recognises chunks of a usual stream from the third on, until its finish reason", () => {
    const events = [
      first,
      chunk("a"),
      chunk("b"),
      chunk("é\n\"'"),
      chunk(""),
      chunk("", {}, { delta: {}, finish_reason: "stop" }),
    ];
    expect(recognisedOf(events)).toBe("--+++-");
    expect(recognisedOf(events, { model: "public" })).toBe("--+++-");
    expect(recognisedOf(events, { includeUsage: true, ownId: true })).toBe("--+++-");
  });

  test("always parses a chunk with usage", () => {
    const usage = { prompt_tokens: 1, completion_tokens: 2 };
    expect(recognisedOf([first, chunk("a"), chunk("b"), chunk("c", { usage }), chunk("d")])).toBe("--+--");
    const every = [1, 2, 3, 4].map((count) => chunk("a", { usage: { ...usage, completion_tokens: count } }));
    expect(recognisedOf(every)).toBe("----");
  });

  test("parses a chunk whose text is in another member", () => {
    const beside = (text: string) => chunk("a").replace("{", `{"text":"${text}",`);
    for (const text of ["fifteen letters", "other"]) expect(recognisedOf([beside(text), beside("b")])).toBe("--");
    const events = [chunk("a", { id: "~headrace-text~" }), chunk("b", { id: "~headrace-text~" })];
    expect(recognisedOf(events)).toBe("--");
  });

  test("recognises chunks again after a change, such as the next second of `created`", () => {
    const events = [1, 1, 2, 2, 2, 3, 3].map((created) => chunk("a", { created }));
    expect(recognisedOf(events)).toBe("-+-++-+");
  });

  test("stops learning from streams in which every chunk differs", () => {
    const events = Array.from({ length: 20 }, (_, created) => chunk("a", { created }));
    expect(recognisedOf([...events, chunk("a", { created: 19 })])).toBe("-".repeat(21));
  });
});

test("finds the end of a JSON string exactly if a parser accepts it and it is UTF-8", () => {
  const escapes: Escapes = { bytes: 0 };
  for (const body of bodies) expect(stringEnd(`x${body}"`, 1, escapes)).toBe(body.length + 1);
  for (const body of faults) if (body !== '"') expect(stringEnd(`x${body}"`, 1, escapes)).toBe(-1);
  for (const body of bodies) expect(stringEnd(body, 0, escapes)).toBe(-1);
  for (let code = 0; code < 0x10000; code++) {
    const character = String.fromCharCode(code >> 8, code & 0xff, 0x80, 0x80);
    const bytes = Buffer.from(character, "latin1");
    for (const length of [1, 2, 3, 4]) {
      const text = bytes.subarray(0, length).toString("latin1");
      if (text.includes('"') || text.includes("\\")) continue;
      const isString =
        Buffer.from(bytes.subarray(0, length).toString("utf8")).equals(bytes.subarray(0, length)) &&
        [...text].every((one) => one >= " ");
      if (stringEnd(`${text}"`, 0, escapes) !== (isString ? length : -1))
        throw new Error(`Wrong for ${JSON.stringify(text)}`);
    }
  }
});

test("refuses a chunk that repeats a field, so that it cannot be edited", () => {
  const chunks = translatorFor({ operation: "chat", model: "m", includeUsage: false, ownId: false });
  const received = '{"x":1,"x":2,"choices":[{"index":0,"delta":{"content":"a"}}]}';
  expect(() => chunks.translate(received, undefined)).toThrow(GatewayError);
});

test("leaves ended choices alone at a stop, and other choices open if one ends twice", () => {
  const body = { model: "m", n: 3, stream: true, messages: [] };
  const stream = new ChunkTranslator(decodedRequest(body, "chat"), { id: "chatcmpl-own", created: 7, ownId: false });
  const end = JSON.stringify({ choices: [{ index: 0, delta: {}, finish_reason: "tool_calls" }] });
  const second = JSON.stringify({ choices: [{ index: 2, delta: {}, finish_reason: "stop" }] });
  for (const chunk of [end, second, end]) stream.translate(chunk, undefined);
  expect(stream.isOpen).toBe(true);
  const [last = ""] = stream.stopped({} as never).split("\n\n");
  const { choices } = JSON.parse(last.slice("data: ".length));
  expect(choices).toEqual([{ index: 1, delta: {}, logprobs: null, finish_reason: "length" }]);
});

test.each([
  ["n of a chat", "chat", { messages: [], n: 2 }, { promptTokens: 12, completionTokens: 110 }],
  ["several prompts", "completion", { prompt: ["a", "b"] }, { promptTokens: 22, completionTokens: 110 }],
  ["n of several prompts", "completion", { prompt: ["a", "b"], n: 2 }, { promptTokens: 22, completionTokens: 220 }],
] as const)(
  "adds the usages of choices that a server reports each by itself: %s",
  (_, operation, members, expected) => {
    const body = { ...members, stream: true, stream_options: { include_usage: true } };
    const request = decodedRequest(body, operation);
    const chunks = new ChunkTranslator(request, { id: "chatcmpl-own", created: 7, ownId: false });
    const send = (chunk: object) => chunks.translate(encodeByteText(JSON.stringify({ id: "c", ...chunk })), undefined);
    for (let index = 0; index < request.width; index++) {
      const reply = operation === "chat" ? { delta: { content: "Hi" } } : { text: "Hi" };
      send({ choices: [{ index, ...reply, finish_reason: "stop" }] });
      const [prompt_tokens, completion_tokens] = [10 + 2 * (index % 2), 50 + 10 * (index % 2)];
      const usage = { prompt_tokens, completion_tokens, total_tokens: prompt_tokens + completion_tokens };
      send({ choices: [], usage, timings: { prompt_n: prompt_tokens, predicted_n: completion_tokens } });
    }
    expect(chunks.reported).toMatchObject(expected);
    expect(chunks.ending()).toContain(`"completion_tokens":${expected.completionTokens}`);
  },
);

test("reads more usages than choices as sums, of which the last one counts", () => {
  const body = { messages: [], n: 2, stream: true, stream_options: { include_usage: true } };
  const chunks = new ChunkTranslator(decodedRequest(body, "chat"), { id: "chatcmpl-own", created: 7, ownId: false });
  for (let tokens = 1; tokens <= 20; tokens++) {
    const usage = { prompt_tokens: 10, completion_tokens: tokens, total_tokens: 10 + tokens };
    const choices = [{ index: tokens % 2, delta: { content: "a" } }];
    const chunk = { id: "c", choices, usage, timings: { prompt_n: 10, predicted_n: tokens } };
    chunks.translate(encodeByteText(JSON.stringify(chunk)), undefined);
  }
  expect(chunks.reported).toMatchObject({ promptTokens: 10, completionTokens: 20 });
});
