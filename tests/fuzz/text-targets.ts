// Texts: event streams, the chunks of an answer, and JSON, which JSON.parse reads as well.
import { isDeepStrictEqual } from "node:util";
import { ByteSpan } from "../../src/base/bytes/byte-span.ts";
import { GatewayError } from "../../src/base/errors.ts";
import { editObject, JsonTextError, scanObject } from "../../src/base/text/json-text.ts";
import { SseError, SseReader } from "../../src/base/text/sse.ts";
import { GgufIncomplete, GgufRefused, readGgufHeader } from "../../src/engines/llama/gguf/header.ts";
import { readServerLoad } from "../../src/engines/server-load.ts";
import { decodeRequest, parsedRequest } from "../../src/requests/decode/decode-request.ts";
import type { DecodedRequest } from "../../src/requests/decoded-request.ts";
import { scanAnswer } from "../../src/requests/dialects/answer-scan.ts";
import { ChunkTranslator } from "../../src/requests/dialects/openai/chunks.ts";
import { decodedRequest } from "../support/decoded-request.ts";
import { ggufHeader } from "../support/gguf-file.ts";
import type { Target } from "./targets.ts";

function readEvents(pieces: readonly Buffer[]): unknown {
  const reader = new SseReader();
  const events: string[] = [];
  try {
    for (const piece of pieces) {
      reader.feed(piece.toString("latin1"));
      for (let data = reader.next(); data !== undefined; data = reader.next()) events.push(data);
    }
    const last = reader.end();
    return last === undefined ? events : [...events, last];
  } catch (error) {
    if (!(error instanceof SseError)) throw error;
    return "refused";
  }
}

const streamed = decodedRequest({ stream: true, messages: [] });

/** Reads as the relay does: an event that is like the one before it is not parsed. */
function readChunks(pieces: readonly Buffer[], mayRecognise = true): unknown {
  const reader = new SseReader();
  const chunks = new ChunkTranslator(streamed, { id: "chatcmpl-own", created: 7, ownId: false });
  let events = "";
  try {
    for (const piece of pieces) {
      reader.feed(piece.toString("latin1"));
      for (;;) {
        if (mayRecognise) events += chunks.takeAlike(reader);
        const start = reader.betweenEvents ? reader.position : -1;
        const { text } = reader;
        const data = reader.next();
        if (data === undefined) break;
        events += chunks.translate(data, start < 0 ? undefined : text.slice(start, reader.position));
      }
    }
  } catch (error) {
    if (!(error instanceof SseError || error instanceof GatewayError)) throw error;
    return { events, refused: true };
  }
  return { events, bytes: chunks.deliveredBytes, pieces: chunks.deliveredPieces, reported: chunks.reported };
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

function expectSame(what: string, got: unknown, expected: unknown): void {
  if (isDeepStrictEqual(got, expected)) return;
  throw new Error(`${what}: ${JSON.stringify(got)} instead of ${JSON.stringify(expected)}`);
}

const jsonLimits = { depth: 64, members: 1_000, names: 100_000, values: 100_000, containers: 100_000 };

function readMembers(bytes: Buffer): unknown {
  try {
    return [...scanObject(bytes.toString("utf8"), jsonLimits)];
  } catch (error) {
    if (!(error instanceof JsonTextError)) throw error;
    return "refused";
  }
}

/** In what JSON.parse takes for an object it finds the same members, and changes those alone that it should. */
function checkMembers(bytes: Buffer): void {
  const text = bytes.toString("utf8");
  const value = parsed(text);
  if (!isObject(value) || readMembers(bytes) === "refused") return;
  const members = scanObject(text);
  const found = [...members].map(([name, { valueStart, valueEnd }]) => [
    name,
    JSON.parse(text.slice(valueStart, valueEnd)),
  ]);
  expectSame("members", Object.fromEntries(found), value);
  expectSame("names", members.size, Object.keys(value).length);
  const [first = "model"] = Object.keys(value);
  expectSame("replaced", JSON.parse(editObject(text, members, { [first]: "[1]" })), { ...value, [first]: [1] });
  const { [first]: _, ...others } = value;
  expectSame("removed", JSON.parse(editObject(text, members, { [first]: null })), others);
  expectSame("added", JSON.parse(editObject(text, members, { "\0new": "{}" })), { ...value, "\0new": {} });
}

const answerMembers = ["id", "object", "created", "model", "choices", "usage", "error"] as const;

/** What it vouches for is JSON, with these values. */
function checkAnswer(bytes: Buffer): void {
  const answer = scanAnswer(ByteSpan.of(bytes));
  if (!answer) return;
  const text = bytes.toString("latin1");
  const value = JSON.parse(text) as Record<string, unknown>;
  for (const name of answerMembers) {
    const start = answer.startOf(name);
    const given = start === 0 ? undefined : JSON.parse(text.slice(start, answer.endOf(name)));
    expectSame(name, given, Object.hasOwn(value, name) ? value[name] : undefined);
  }
}

const requestLimits = { bodyBytes: 1_000_000, depth: 64, messages: 2_048 };

function factsOf(read: () => DecodedRequest): unknown {
  try {
    const { model, stream, streamOptions, width, promptTokens, tokenLimit, tokenLimitName, hasMedia, store } = read();
    return { model, stream, streamOptions, width, promptTokens, tokenLimit, tokenLimitName, hasMedia, store };
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error;
    return error.code;
  }
}

/** The one pass over the bytes finds what the parser and the schema find. */
function checkRequest(bytes: Buffer): void {
  for (const operation of ["chat", "completion", "embedding"] as const) {
    const quick = factsOf(() => decodeRequest(operation, ByteSpan.of(bytes), requestLimits));
    expectSame(
      operation,
      quick,
      factsOf(() => parsedRequest(operation, ByteSpan.of(bytes), requestLimits)),
    );
  }
}

const chunk = (content: string) =>
  `data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":"${content}"},"finish_reason":null}]}\n\n`;
const request = {
  model: "m",
  messages: [
    { role: "system", content: "S" },
    { role: "user", content: [{ type: "text", text: "T\\u00e9" }] },
  ],
  stream: true,
  stream_options: { include_usage: true },
  max_tokens: 5,
  n: 2,
  temperature: 0.5,
  stop: ["a"],
  tools: [{ type: "function", function: { name: "f", parameters: {} } }],
};
const answer = {
  id: "x",
  object: "chat.completion",
  created: 1,
  model: "m",
  choices: [{ index: 0, message: { role: "assistant", content: "a\\n" }, finish_reason: "stop" }],
  usage: { prompt_tokens: 1, completion_tokens: 2, total_tokens: 3 },
};

export const textTargets: readonly Target[] = [
  {
    name: "events",
    files: ["src/base/text/sse.ts"],
    seeds: [
      "data: a\n\ndata:b\r\ndata\r\n\r\n: comment\rdata: c\r\r",
      "\xef\xbb\xbfdata: x\nid: 1\n\nevent: e\n\ndata: [DONE]",
    ],
    read: readEvents,
  },
  {
    name: "chunks",
    files: [
      "src/requests/dialects/openai/chunk-template.ts",
      "src/base/text/json-string.ts",
      "src/requests/dialects/openai/chunks.ts",
      "src/base/text/sse.ts",
    ],
    seeds: [
      chunk("a") + chunk("b") + chunk("\\u00e9\\n") + chunk("\xc3\xa9"),
      `${chunk("a").replaceAll("\n", "\r\n")}data: {"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":2}}\n\n`,
      'data: {"x":1,"x":2,"choices":[{"text":"x"}]}\n\n',
      `data: {"choices":[{"text":"x"}],"usage":null}\n\ndata: {"error":{"message":"no"}}\n\n`,
    ],
    read: (pieces) => readChunks(pieces),
    check: (bytes) => expectSame("recognised", readChunks([bytes]), readChunks([bytes], false)),
  },
  {
    name: "members",
    files: ["src/base/text/json-text.ts"],
    seeds: [JSON.stringify(request), '{"a\\u0062" : [1,{"x":"\\""}] , "c":{}}', '{"a":1,"a":2}', "{}", "[1]"],
    read: (pieces) => readMembers(Buffer.concat(pieces)),
    check: checkMembers,
    whole: true,
  },
  {
    name: "whole-answers",
    files: ["src/requests/dialects/answer-scan.ts", "src/base/text/json-bytes.ts"],
    seeds: [
      JSON.stringify(answer),
      JSON.stringify(answer, null, 2),
      '{"usage":{"prompt_tokens":1e2},"error":null,"x":-0.5e-3}',
    ],
    read: (pieces) => scanAnswer(ByteSpan.of(Buffer.concat(pieces))) !== undefined,
    check: checkAnswer,
    whole: true,
  },
  {
    name: "request-bodies",
    files: [
      "src/requests/decode/request-scan.ts",
      "src/requests/decode/decode-request.ts",
      "src/base/text/json-bytes.ts",
    ],
    seeds: [
      JSON.stringify(request),
      JSON.stringify({ model: "m", prompt: ["a", "b"], best_of: 3, suffix: "s" }),
      JSON.stringify({ model: "m", input: [[1, 2], [3]], encoding_format: "base64", dimensions: 8 }),
      '{"model":"m","messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:,"}}]}]}',
    ],
    read: (pieces) => factsOf(() => decodeRequest("chat", ByteSpan.of(Buffer.concat(pieces)), requestLimits)),
    check: checkRequest,
    whole: true,
  },
  {
    name: "server-load",
    files: ["src/engines/server-load.ts"],
    seeds: ['vllm:num_requests_running{model="m"} 3.0\nvllm:num_requests_waiting 1\nvllm:kv_cache_usage_perc 0.5\n'],
    read: (pieces) => readServerLoad(Buffer.concat(pieces).toString("latin1")),
    whole: true,
  },
  {
    name: "gguf-headers",
    files: ["src/engines/llama/gguf/header.ts"],
    seeds: [
      ggufHeader({ "general.architecture": "a", "a.block_count": 2, b: true, c: ["x", "y"], d: [1, 2] }, [
        [2, 3],
        [],
      ]).toString("latin1"),
    ],
    read: (pieces) => readHeader(Buffer.concat(pieces)),
    whole: true,
  },
];

function readHeader(bytes: Buffer): unknown {
  try {
    const { metadata, lengths, parameters, bytes: length } = readGgufHeader(bytes);
    return { metadata: [...metadata], lengths: [...lengths], parameters, length };
  } catch (error) {
    if (error instanceof GgufIncomplete || error instanceof GgufRefused) return error.name;
    throw error;
  }
}
