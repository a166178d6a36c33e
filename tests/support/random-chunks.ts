// Streams of chunks as servers write them, and as none should, and what an answer makes of one in each way of reading it.
import { encodeByteText } from "../../src/base/bytes/byte-text.ts";
import type { ClientStream } from "../../src/base/bytes/client-stream.ts";
import { GatewayError } from "../../src/base/errors.ts";
import { SseReader } from "../../src/base/text/sse.ts";
import type { AnswerStream, StreamObservation } from "../../src/requests/dialects/answer.ts";

export type Way = "parsed" | "as text" | "in place";

export interface Outcome {
  events: string;
  observed: StreamObservation;
  finishSeen: boolean;
  ending: string;
  error: string | undefined;
  /** Whether chunks were recognised, as text and in place; left out of the comparison. */
  recognised: number;
  inPlace: number;
}
/**
 * All of a stream, cut into `pieces`, as the relay reads it: each event parsed, or some recognised as text, or some of those
 * already where they lie.
 */
export function outcomeOf(chunks: AnswerStream, pieces: readonly string[], way: Way): Outcome {
  const mayRecognise = way !== "parsed";
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
    observed: observedOf(chunks),
    finishSeen: chunks.finishSeen,
    ending: chunks.ending(),
    error,
    recognised,
    inPlace,
  };
}

function observedOf({ reported, deliveredBytes, deliveredPieces, context }: StreamObservation): StreamObservation {
  return { reported, deliveredBytes, deliveredPieces, context };
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

export class Random {
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
export const bodies = [
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
export const faults = [
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

export function streamOf(random: Random): string {
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

export function cut(stream: string, random: Random): string[] {
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
