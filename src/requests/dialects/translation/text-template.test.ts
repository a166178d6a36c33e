// Tests that events handled by a template become, byte for byte, what parsing and translating each of them would give.
import { memoryUsage } from "bun:jsc";
import { describe, expect, test } from "bun:test";
import { decodedRequest } from "../../../../tests/support/decoded-request.ts";
import { noSeal } from "../../../../tests/support/no-seal.ts";
import { cut, outcomeOf, Random, streamOf, type Way } from "../../../../tests/support/random-chunks.ts";
import { encodeByteText } from "../../../base/bytes/byte-text.ts";
import { SseReader } from "../../../base/text/sse.ts";
import type { Engine } from "../../../domain/models/engine.ts";
import type { CallNames } from "../conversation/conversation.ts";
import { dialects } from "../dialects.ts";
import { TranslatedStream } from "./translated-stream.ts";

const engine: Engine = {
  name: "engine",
  send: () => Promise.reject(new Error("not asked")),
  models: () => Promise.resolve([]),
  redact: (text) => text,
};
const formats = ["response", "message"] as const;

function streamFor(format: (typeof formats)[number], names: CallNames = new Map()): TranslatedStream {
  const request = decodedRequest({ messages: [], input: "Hi", stream: true, max_tokens: 99 }, format);
  const serving = { deployment: { engine }, model: { id: "public", context: undefined } };
  const { format: to, errorEvent } = dialects[format];
  const { format: from } = dialects.chat;
  if (!to || !from) throw new Error("no format");
  const translation = { from, to, names, seal: noSeal, errorEvent };
  return new TranslatedStream(request, { id: "answer_1", created: 7, ownId: true }, serving, translation);
}

/** Replaces generated call ids, which differ in each run. */
function named(outcome: object): string {
  return JSON.stringify(outcome).replace(/call_[0-9a-f]{32}/g, "call_own");
}

describe.each(formats)("a stream of chat completions for a client of %s", (format) => {
  test("gives the same bytes, counts, usage and errors as parsing each chunk, wherever it is cut", () => {
    let [asText, inPlace] = [0, 0];
    for (let seed = 1; seed <= 1_000; seed++) {
      const random = new Random(seed);
      const pieces = cut(streamOf(random), random);
      const { recognised: none, inPlace: _, ...slow } = outcomeOf(streamFor(format), pieces, "parsed");
      expect(none).toBe(0);
      for (const way of ["as text", "in place"] as const satisfies readonly Way[]) {
        const { recognised: some, inPlace: others, ...fast } = outcomeOf(streamFor(format), pieces, way);
        if (named(fast) !== named(slow)) expect({ seed, way, ...fast }).toEqual({ seed, way, ...slow });
        if (others > 0) inPlace++;
        else if (some > 0) asText++;
      }
    }
    expect([asText > 100, inPlace > 15]).toEqual([true, true]);
  });

  const chunk = (delta: object, choice: object = {}, more: object = {}) =>
    encodeByteText(
      `data: ${JSON.stringify({ id: "c", choices: [{ index: 0, delta, finish_reason: null, ...choice }], ...more })}\n\n`,
    );
  const inPlaceOf = (...events: readonly string[]) => outcomeOf(streamFor(format), events, "in place").inPlace;
  const text = chunk({ content: "a" });

  test("recognises events from the second piece of a text on", () => {
    expect(inPlaceOf(chunk({ role: "assistant", content: "" }), text, text, text)).toBe(2);
  });

  test.each([
    ["log-probabilities", chunk({ content: "a" }, { logprobs: { content: [{ token: "a", logprob: -1 }] } })],
    ["usage", chunk({ content: "a" }, {}, { usage: { prompt_tokens: 1, completion_tokens: 2 } })],
    ["a thought beside the text", chunk({ content: "a", reasoning_content: "b" })],
    ["a call beside the text", chunk({ content: "a", tool_calls: [{ index: 0, function: { arguments: "{" } }] })],
    ["the text of another choice", chunk({ content: "a" }, { index: 1 })],
    ["a refusal", chunk({ content: "a", refusal: "b" })],
    ["an end", chunk({ content: "a" }, { finish_reason: "stop" })],
  ])("never recognises an event with %s", (_, event) => {
    expect(inPlaceOf(text, event, event, event)).toBe(0);
  });

  test("learns a new template after a call, which ends the text", () => {
    const call = chunk({ tool_calls: [{ index: 0, id: "call_1", function: { name: "look", arguments: '{"a":1}' } }] });
    const events = [text, text, call, text, text, chunk({}, { finish_reason: "stop" })];
    const [slow, fast] = (["parsed", "in place"] as const).map((way) => outcomeOf(streamFor(format), events, way));
    expect(fast?.inPlace).toBe(2);
    expect(fast?.events).toBe(slow?.events as string);
    expect(fast?.ending).toBe(slow?.ending as string);
  });

  test("holds only the text of events that arrived by the dozen", () => {
    const stream = streamFor(format);
    const reader = new SseReader();
    const event = chunk({ content: "twenty characters of" }, {}, { note: "n".repeat(30_000) });
    stream.translate(event.slice("data: ".length, -2), event);
    const bytes = Buffer.from(event.repeat(2), "latin1");
    Bun.gc(true);
    const before = memoryUsage().current;
    for (let count = 0; count < 600; count++) {
      reader.feed(bytes.toString("latin1"));
      expect(stream.takeAlike(reader)).not.toBe("");
      expect(reader.next()).toBeUndefined();
    }
    Bun.gc(true);
    expect(memoryUsage().current - before).toBeLessThan((bytes.length * 600) / 4);
    expect(stream.deliveredPieces).toBe(1201);
  });
});
