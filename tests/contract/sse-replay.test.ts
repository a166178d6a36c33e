// Recorded streams of real model servers, cut at every byte: parser and relay always give the same events.
import { describe, expect, test } from "bun:test";
import { GatewayError } from "../../src/base/errors.ts";
import { SseParser } from "../../src/base/text/sse.ts";
import { expectGolden } from "./golden.ts";
import { byteByByte, type ClientEvent, clientEvents, recordings, replay, splitAt } from "./replay.ts";

interface Expected {
  /** Text of each choice, in order of index. */
  texts: readonly string[];
  finish: readonly (string | null)[];
  /** [prompt, completion] as reported; undefined where the server reports none. */
  usage?: readonly [number, number];
  /** Reasoning text. */
  reasoning?: string;
  /** Arguments of tool calls, in order of index. */
  calls?: readonly string[];
  /** Public message of the error event that a faulty stream ends with. */
  error?: string | RegExp;
}

const brokeOff = /closed the connection|broke off/;

/** Written by hand from the recordings: what a client has to get, whoever sent it and however it was framed. */
const expectations: Readonly<Record<string, Expected>> = {
  azure: { texts: ["Bern"], finish: ["stop"], usage: [14, 2] },
  bare: { texts: ["Hi"], finish: ["stop"] },
  "byte-order-mark": { texts: ["Hello"], finish: ["stop"] },
  cr: { texts: ["Hello Welt ä"], finish: ["stop"] },
  crlf: { texts: ["Hello Welt ä"], finish: ["stop"] },
  "deepseek-reasoning": { texts: ["Yes"], reasoning: "Okay, so", finish: ["stop"], usage: [5, 11] },
  "legacy-no-usage": { texts: [" top holiday"], finish: ["length"] },
  "legacy-vllm": { texts: [" top holiday"], finish: ["stop"], usage: [5, 3] },
  "llama-server": { texts: ['A "quoted" \\ word'], finish: ["stop"], usage: [17, 9] },
  "llama-server-reasoning": { texts: ["Hi!"], reasoning: "The user says hi.", finish: ["stop"], usage: [12, 8] },
  "lm-studio-no-usage": { texts: ["Line one\nline two and tab\t"], finish: ["stop"] },
  "mixed-line-ends": { texts: ["Hello Welt ä"], finish: ["stop"] },
  "multi-line-data": { texts: ["over several\nlines"], finish: ["stop"] },
  "no-done": { texts: ["Bye"], finish: ["stop"] },
  "no-done-no-blank-line": { texts: ["Bye"], finish: ["stop"] },
  "no-space-after-colon": { texts: ["Hello"], finish: ["stop"] },
  "no-trailing-blank-line": { texts: ["Bye"], finish: ["stop"] },
  ollama: { texts: ["Hello there"], finish: ["stop"], usage: [26, 3] },
  openai: { texts: ["The capital"], finish: ["stop"], usage: [17, 205] },
  "openai-tool-calls": {
    texts: [""],
    calls: ['{"location":"Zürich"}', "{}"],
    finish: ["tool_calls"],
    usage: [82, 34],
  },
  "openai-two-choices": { texts: ["A", "B"], finish: ["stop", "length"], usage: [9, 2] },
  openrouter: { texts: ["Sure!"], finish: ["stop"], usage: [13, 16] },
  vllm: { texts: ["Grüße aus 東京 🚀"], finish: ["stop"], usage: [25, 9] },
  "vllm-continuous-usage": { texts: ["target model"], finish: ["length"], usage: [16, 2] },
  "fault-comments-only": { texts: [], finish: [], error: brokeOff },
  "fault-cut-before-finish": { texts: ["Some text more"], finish: [null], error: brokeOff },
  "fault-cut-in-the-middle": { texts: ["Some text"], finish: [null], error: /malformed|broke off|closed/ },
  "fault-empty": { texts: [], finish: [], error: brokeOff },
  "fault-error-event": { texts: ["Some text"], finish: [null], error: "CUDA out of memory" },
  "fault-error-event-then-done": { texts: ["Some text"], finish: [null], error: "EngineCore encountered an issue" },
  "fault-malformed-json": { texts: ["Some text"], finish: [null], error: /malformed/ },
  "fault-not-an-object": { texts: ["Some text"], finish: [null], error: /malformed/ },
  "fault-openrouter-error": { texts: ["Some"], finish: [null], error: "Provider disconnected unexpectedly" },
  "fault-vllm-bare-error": { texts: ["Some text"], finish: [null], error: "EngineCore encountered an issue" },
  // A server that says it is done without a single choice has not answered.
  "fault-done-only": { texts: [], finish: [], error: /sent no answer/ },
};

test("pairs every recording with an expectation", () => {
  expect(recordings.map((recording) => recording.name).sort()).toEqual(Object.keys(expectations).sort());
});

describe.each(recordings)("$name", ({ name, bytes, operation }) => {
  const expected = expectations[name] as Expected;

  test("parses the same events for a cut at every byte, and byte by byte", () => {
    const whole = parse([bytes]);
    expect(parse(byteByByte(bytes))).toEqual(whole);
    for (let position = 0; position <= bytes.length; position++) {
      expect(parse(splitAt(bytes, position))).toEqual(whole);
    }
  });

  test.each([true, false])("delivers the recorded answer to the client (include_usage: %p)", async (includeUsage) => {
    const { text, observed, error } = await replay(byteByByte(bytes), operation, includeUsage);
    const seen = readAnswer(clientEvents(text), includeUsage);
    expect(seen.texts).toEqual([...expected.texts]);
    expect(seen.finish).toEqual([...expected.finish]);
    expect(seen.reasoning).toBe(expected.reasoning ?? "");
    expect(seen.calls).toEqual([...(expected.calls ?? [])]);
    if (expected.error !== undefined) {
      expect(seen.error).toMatch(expected.error);
      expect(text).not.toContain("[DONE]");
      expect(error).toBeInstanceOf(GatewayError);
      return;
    }
    expect(error).toBeUndefined();
    expect(text.endsWith("data: [DONE]\n\n")).toBe(true);
    if (expected.usage) {
      const [promptTokens, completionTokens] = expected.usage;
      expect(observed.reported).toMatchObject({ promptTokens, completionTokens, estimated: false });
    } else {
      expect(observed.reported).toBeUndefined();
    }
    if (includeUsage) {
      const [prompt, completion] = expected.usage ?? [];
      expect(seen.usage).toMatchObject(
        prompt === undefined ? { estimated: true } : { prompt_tokens: prompt, completion_tokens: completion },
      );
    }
  });

  test.each([true, false])(
    "relays the same bytes for a cut at every byte (include_usage: %p)",
    async (includeUsage) => {
      const whole = await replay(byteByByte(bytes), operation, includeUsage);
      for (let position = 0; position <= bytes.length; position++) {
        const cut = await replay(splitAt(bytes, position), operation, includeUsage);
        if (cut.text !== whole.text) {
          throw new Error(`Cut at byte ${position} of ${bytes.length}:\n${cut.text}\ninstead of:\n${whole.text}`);
        }
        expect(cut.observed).toEqual(whole.observed);
      }
    },
  );

  // Whether data over several lines leaves in one line or in several is equally right: the tests above read it.
  if (name === "multi-line-data") return;
  test.each([true, false])("keeps the golden wire format (include_usage: %p)", async (includeUsage) => {
    const { text } = await replay(byteByByte(bytes), operation, includeUsage);
    expectGolden(`streams/${name}${includeUsage ? ".with-usage" : ""}.sse`, text);
  });
});

function parse(pieces: readonly Uint8Array[]): string[] {
  const parser = new SseParser();
  return [...pieces.flatMap((piece) => parser.push(piece)), ...parser.end()];
}

interface SeenChunk {
  id: unknown;
  object: unknown;
  created: unknown;
  model: unknown;
  usage?: unknown;
  choices: {
    index: number;
    finish_reason?: string | null;
    text?: string;
    delta?: {
      role?: string;
      content?: string | null;
      reasoning_content?: string | null;
      tool_calls?: { index: number; function: { arguments: string } }[];
    };
  }[];
}

interface SeenAnswer {
  texts: string[];
  finish: (string | null)[];
  reasoning: string;
  calls: string[];
  usage: unknown;
  error: string;
}

/** Puts an answer together as a client does, and holds every chunk to the promises of the API on the way. */
function readAnswer(events: readonly ClientEvent[], includeUsage: boolean): SeenAnswer {
  const seen: SeenAnswer = { texts: [], finish: [], reasoning: "", calls: [], usage: undefined, error: "" };
  const data = events.map((event) => event.data).filter((text) => text !== undefined);
  const last = data.at(-1);
  let firstId: unknown;
  for (const text of data) {
    if (text === "[DONE]") {
      expect(text).toBe(last as string);
      continue;
    }
    const chunk = JSON.parse(text) as SeenChunk & { error?: { message: string } };
    if (chunk.error) {
      expect(text).toBe(last as string);
      seen.error = chunk.error.message;
      expect(Object.keys(chunk)).toEqual(["error"]);
      expect(Object.keys(chunk.error)).toEqual(["message", "type", "code"]);
      continue;
    }
    expect(chunk.model).toBe("upstream-model");
    expect(typeof chunk.created).toBe("number");
    expect(["chat.completion.chunk", "text_completion"]).toContain(chunk.object as string);
    expect(typeof chunk.id).toBe("string");
    firstId ??= chunk.id;
    expect(chunk.id).toBe(firstId);
    if (chunk.choices.length === 0) {
      expect(includeUsage).toBe(true);
      expect(seen.usage).toBeUndefined();
      seen.usage = chunk.usage;
      continue;
    }
    if (includeUsage) expect(chunk.usage).toBeNull();
    else expect(chunk).not.toHaveProperty("usage");
    for (const choice of chunk.choices) take(choice, seen);
  }
  return seen;
}

function take({ index, delta, text, finish_reason }: SeenChunk["choices"][number], seen: SeenAnswer): void {
  if (delta && seen.texts[index] === undefined) expect(delta.role).toBe("assistant");
  seen.texts[index] = (seen.texts[index] ?? "") + (delta?.content ?? text ?? "");
  seen.reasoning += delta?.reasoning_content ?? "";
  for (const call of delta?.tool_calls ?? []) {
    seen.calls[call.index] = (seen.calls[call.index] ?? "") + call.function.arguments;
  }
  if (finish_reason !== "error") seen.finish[index] = finish_reason ?? seen.finish[index] ?? null;
}
