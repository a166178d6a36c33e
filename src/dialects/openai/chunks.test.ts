// Chunks that are only recognised become, byte for byte, what they would become if each were parsed.
import { describe, expect, test } from "bun:test";
import { decodedRequest } from "../../../tests/support/decoded-request.ts";
import { encodeByteText } from "../../base/bytes/byte-text.ts";
import type { ClientStream } from "../../base/bytes/client-stream.ts";
import { GatewayError } from "../../base/errors.ts";
import { SseReader } from "../../base/text/sse.ts";
import type { Operation } from "../../domain/models/operation.ts";
import type { StreamObservation } from "../answer.ts";
import { ChunkTranslator } from "./chunks.ts";
import { type Escapes, stringEnd } from "./json-string.ts";

interface Setting {
  operation: Operation;
  model: string;
  includeUsage: boolean;
  ownId: boolean;
}

interface Outcome {
  events: string;
  observed: StreamObservation;
  finishSeen: boolean;
  ending: string;
  error: string | undefined;
  /** Whether chunks were recognised, as text and in place; left out of the comparison. */
  recognised: number;
  inPlace: number;
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

/**
 * All of a stream, cut into `pieces`, as the relay reads it: each event parsed, or some recognised as text, or some of those
 * already where they lie.
 */
function outcomeOf(setting: Setting, pieces: readonly string[], way: "parsed" | "as text" | "in place"): Outcome {
  const mayRecognise = way !== "parsed";
  const chunks = translatorFor(setting);
  const reader = new SseReader();
  let events = "";
  let recognised = 0;
  let inPlace = 0;
  let error: string | undefined;
  const client: ClientStream = {
    write: (bytes) => {
      events += bytes;
      return true;
    },
    writeAround: (before, bytes, start, end, after) =>
      client.write(before + bytes.toString("latin1", start, end) + after),
    onDrain: undefined,
    end() {},
    abort() {},
  };
  try {
    for (const piece of pieces) {
      if (way === "in place" && reader.atRest) {
        const bytes = Buffer.from(`<${piece}>`, "latin1");
        const template = chunks.takeInPlace(bytes, 1, bytes.length - 1);
        if (template) {
          inPlace++;
          template.send(client, bytes, 1, bytes.length - 1);
          continue;
        }
      }
      reader.feed(piece);
      for (;;) {
        const alike = mayRecognise ? chunks.takeAlike(reader) : "";
        recognised += alike.length;
        events += alike;
        const start = reader.betweenEvents ? reader.position : -1;
        const data = reader.next();
        if (data === undefined) break;
        const raw = mayRecognise && start >= 0 ? reader.text.slice(start, reader.position) : undefined;
        events += chunks.translate(data, raw);
      }
    }
  } catch (thrown) {
    error = thrown instanceof GatewayError ? `${thrown.code}: ${thrown.message}` : String(thrown);
  }
  return {
    events,
    observed: chunks,
    finishSeen: chunks.finishSeen,
    ending: chunks.ending(),
    error,
    recognised,
    inPlace,
  };
}

/** The same numbers for the same seed (mulberry32). */
function randomFrom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}

class Random {
  readonly #next: () => number;

  constructor(seed: number) {
    this.#next = randomFrom(seed);
  }

  chance(share: number): boolean {
    return this.#next() < share;
  }

  below(limit: number): number {
    return Math.floor(this.#next() * limit);
  }

  of<T>(values: readonly [T, ...T[]]): T {
    return values[this.below(values.length)] ?? values[0];
  }
}

/** Bodies of JSON strings as servers write them, and as none should, as byte text. */
const bodies = [
  "",
  " the",
  "token",
  "a longer piece of text that is no single token",
  encodeByteText("Grüße"),
  encodeByteText(" 東京"),
  encodeByteText("🚀"),
  encodeByteText("\u2028\ufeff\ufffd"),
  "\\n",
  '\\"quoted\\"',
  "\\\\",
  "\\/\\b\\f\\r\\t",
  "\\u00fc\\u6771\\u0041",
  "\\ud83d\\ude80",
  "\\ud83d",
  "\\ude80 \\ud83dx",
  "\\u0000\\u001f",
  "\x7f",
  "~headrace-text~",
  "fifteen letters",
  "data: [DONE]",
] as const;
/** No strings of JSON, or no UTF-8. */
const faults = [
  "\\x",
  "\\u12g4",
  "\t",
  "\x00",
  "\xff",
  "\xc3",
  "\xed\xa0\x80",
  "\xc0\xaf",
  "\xf5\x80\x80\x80",
  "\xe2\x82",
  '"',
] as const;

interface Style {
  comma: string;
  colon: string;
  lineEnd: string;
  lead: string;
  head: (created: number) => string;
  index: string;
  beforeDelta: string;
  afterDelta: string;
  tail: () => string;
  slot: "content" | "text" | "reasoning_content" | "arguments";
}

function styleOf(random: Random): Style {
  const spaced = random.chance(0.3);
  const [comma, colon] = spaced ? [", ", ": "] : [",", ":"];
  const members = [
    random.chance(0.9) ? `"id"${colon}"${random.chance(0.05) ? "~headrace-text~" : "cmpl-1"}"` : "",
    random.chance(0.8) ? `"object"${colon}"chat.completion.chunk"` : "",
    random.chance(0.9) ? `"model"${colon}"upstream-model"` : "",
    random.chance(0.2) ? `"note"${colon}"\\"content\\":\\"x\\" ${encodeByteText("é")}"` : "",
    random.chance(0.2) ? `"text"${colon}"~headrace-text~"` : "",
  ].filter((member) => member !== "");
  const hasCreated = random.chance(0.9);
  const usage = random.of(["", "", `"usage"${colon}null`, `"usage"${colon}{"prompt_tokens"${colon}3}`]);
  const obfuscated = random.chance(0.15);
  const finish = random.of([`${comma}"finish_reason"${colon}null`, `${comma}"finish_reason"${colon}null`, ""]);
  return {
    comma,
    colon,
    lineEnd: random.of(["\n", "\n", "\n", "\r\n", "\r"]),
    lead: random.of(["data: ", "data: ", "data: ", "data:", "event: x\ndata: ", ": comment\ndata: "]),
    head: (created) => [...members, hasCreated ? `"created"${colon}${created}` : `"x"${colon}1`].join(comma),
    index: random.chance(0.8) ? `"index"${colon}0${comma}` : "",
    beforeDelta: random.of([
      "",
      "",
      `"role"${colon}"assistant"${comma}`,
      `"refusal"${colon}null${comma}`,
      `"content"${colon}"ab"${comma}`,
    ]),
    afterDelta: random.chance(0.3) ? `${comma}"logprobs"${colon}null${finish}` : finish,
    tail: () =>
      [usage, obfuscated ? `"obfuscation"${colon}"${"x".repeat(random.below(4))}"` : ""]
        .filter((member) => member !== "")
        .map((member) => comma + member)
        .join(""),
    slot: random.of(["content", "content", "content", "text", "reasoning_content", "arguments"]),
  };
}

function chunkOf(style: Style, body: string, created: number, finish?: string): string {
  const { comma, colon, slot, index, beforeDelta, afterDelta, tail } = style;
  const grown = `"${slot}"${colon}"${body}"`;
  const shown =
    slot === "text"
      ? grown
      : slot === "arguments"
        ? `"delta"${colon}{"tool_calls"${colon}[{"index"${colon}0${comma}"function"${colon}{${grown}}}]}`
        : `"delta"${colon}{${beforeDelta}${grown}}`;
  const end = finish === undefined ? afterDelta : `${comma}"finish_reason"${colon}"${finish}"`;
  return `{${style.head(created)}${comma}"choices"${colon}[{${index}${shown}${end}}]${tail()}}`;
}

function streamOf(random: Random): string {
  let style = styleOf(random);
  let created = 1_772_423_572;
  let stream = "";
  const count = 1 + random.below(30);
  for (let i = 0; i < count; i++) {
    if (random.chance(0.04)) style = styleOf(random);
    if (random.chance(0.05)) created++;
    const body = random.chance(0.01)
      ? random.of(faults)
      : random.of(bodies) + (random.chance(0.3) ? random.of(bodies) : "");
    let data = chunkOf(style, body, created, random.chance(0.03) ? "stop" : undefined);
    if (random.chance(0.02)) data = '{"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":6}}';
    if (random.chance(0.005)) data = '{"error":{"message":"boom"}}';
    if (random.chance(0.005)) data = data.slice(0, -3);
    if (random.chance(0.02)) stream += `: comment${style.lineEnd}`;
    stream += `${style.lead}${data}${style.lineEnd}${style.lineEnd}`;
  }
  return stream;
}

function cut(stream: string, random: Random): string[] {
  const pieces: string[] = [];
  const longest = random.of([0, 0, 1, 40, 300, 5_000, 100_000]);
  // Most servers send each event by itself.
  if (longest === 0) return stream.split(/(?<=\n\n|\r\n\r\n|\r\r)/);
  for (let position = 0; position < stream.length; ) {
    const length = 1 + random.below(longest);
    pieces.push(stream.slice(position, position + length));
    position += length;
  }
  return pieces;
}

test("streams of any kind, cut anywhere, give the same bytes, counts, usage and errors as when each chunk is parsed", () => {
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
    const { recognised: none, inPlace: _, ...slow } = outcomeOf(setting, pieces, "parsed");
    expect(none).toBe(0);
    for (const way of ["as text", "in place"] as const) {
      const { recognised: some, inPlace: others, ...fast } = outcomeOf(setting, pieces, way);
      if (JSON.stringify(fast) !== JSON.stringify(slow)) {
        expect({ seed, way, ...fast }).toEqual({ seed, way, ...slow });
      }
      if (others > 0) inPlace++;
      else if (some > 0) asText++;
    }
  }
  expect([asText > 300, inPlace > 50]).toEqual([true, true]);
});

describe("which chunks are only recognised", () => {
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

  test("chunks of a usual stream are only recognised from the third on, until it tells its reason", () => {
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

  test("a chunk with usage is always parsed", () => {
    const usage = { prompt_tokens: 1, completion_tokens: 2 };
    expect(recognisedOf([first, chunk("a"), chunk("b"), chunk("c", { usage }), chunk("d")])).toBe("--+--");
    const every = [1, 2, 3, 4].map((count) => chunk("a", { usage: { ...usage, completion_tokens: count } }));
    expect(recognisedOf(every)).toBe("----");
  });

  test("a chunk whose text is not the one that was found is parsed", () => {
    const beside = (text: string) => chunk("a").replace("{", `{"text":"${text}",`);
    for (const text of ["fifteen letters", "other"]) expect(recognisedOf([beside(text), beside("b")])).toBe("--");
    const events = [chunk("a", { id: "~headrace-text~" }), chunk("b", { id: "~headrace-text~" })];
    expect(recognisedOf(events)).toBe("--");
  });

  test("chunks behind a change, such as the next second of `created`, are recognised again", () => {
    const events = [1, 1, 2, 2, 2, 3, 3].map((created) => chunk("a", { created }));
    expect(recognisedOf(events)).toBe("-+-++-+");
  });

  test("what changes with every chunk is not studied again and again", () => {
    const events = Array.from({ length: 20 }, (_, created) => chunk("a", { created }));
    expect(recognisedOf([...events, chunk("a", { created: 19 })])).toBe("-".repeat(21));
  });
});

test("the end of a JSON string is found for exactly those bodies that a parser takes and that are UTF-8", () => {
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

test("a chunk that names a field twice, so that it cannot be edited, is a malformed event", () => {
  const chunks = translatorFor({ operation: "chat", model: "m", includeUsage: false, ownId: false });
  const received = '{"x":1,"x":2,"choices":[{"index":0,"delta":{"content":"a"}}]}';
  expect(() => chunks.translate(received, undefined)).toThrow(GatewayError);
});
