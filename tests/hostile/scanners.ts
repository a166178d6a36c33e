// What looks through bytes or text from outside, with inputs that are made to cost much: for each a length may be asked for.
import type { BlockList } from "node:net";
import { cookieIn } from "../../src/accounts/cookies.ts";
import { GatewayError } from "../../src/base/errors.ts";
import { trimSlashes } from "../../src/base/text/http-url.ts";
import { redactCredentials } from "../../src/domain/redaction.ts";
import { parseModels } from "../../src/engines/model-list.ts";
import { prefersCsv } from "../../src/http/content/csv.ts";
import { readPrefixed } from "../../src/http/content/query.ts";
import { clientAddress, trustedProxies } from "../../src/http/exchange/client-address.ts";
import { BodyBudget, IncomingBody } from "../../src/nodes/tunnel/incoming-body.ts";
import { messageTypes } from "../../src/nodes/tunnel/messages.ts";
import { Parameters } from "../../src/oauth/authorize/parameters.ts";
import { ChunkCollector } from "../../src/requests/dialects/chat/chunk-collector.ts";
import { decodeEmbedding } from "../../src/wire/embedding.ts";
import { targetNamed } from "../fuzz/targets.ts";

export interface Scanner {
  name: string;
  scan(pieces: readonly Buffer[]): unknown;
  /** So many bytes, about. */
  inputs: readonly ((length: number) => string)[];
  /** The length of the longer of two inputs that are compared. */
  length: number;
  /** In pieces of so many bytes each; undefined: whole. */
  cuts: readonly (number | undefined)[];
}

type Input = Scanner["inputs"][number];

/** `unit` again and again, between two texts that count for nothing. */
const filled =
  (unit: string, before = "", behind = ""): Input =>
  (length) =>
    before + unit.repeat(Math.ceil(length / unit.length)) + behind;
const each = (units: readonly string[], before = "", behind = "") => units.map((unit) => filled(unit, before, behind));

const whole = [undefined];
const anyCut = [undefined, 1_460, 7];
/** A byte each costs a hundred times what a byte among many does. */
const byteByByte = [1];

const read = (name: string) => targetNamed(name).read;
const text = (scan: (text: string) => unknown) => (pieces: readonly Buffer[]) =>
  scan(Buffer.concat(pieces).toString("latin1"));

const lineEnds = [
  "\r",
  "\n",
  "\r\n",
  "data:\r",
  "data: x\n\n",
  ":\r\n",
  "data: \r\r",
  "x",
  "\xef\xbb\xbf\n",
  "data:x\r\n\n\r",
];
const eventInputs = [...each(lineEnds), ...each(["\n", "x", "data: x\n\n"], "", "\r"), filled("x", "data: ", "\n\n")];
const json = [
  "\\",
  '\\"',
  '"',
  '""',
  " ",
  ",",
  ":",
  "[",
  "{",
  '{"',
  '{"a":',
  "1",
  "-",
  "1e",
  "\\u0061",
  "\\u",
  "é",
  "[],",
  "\x7f",
];
const jsonInputs = [
  ...each(json),
  ...each(json, '{"model":"'),
  ...each(json, '{"model":', "}"),
  ...each(["1,", "[],", "{},", '"",', '"a" ,'], '{"messages":[', "1]}"),
  (length: number) => `{${Array.from({ length: length / 12 }, (_, index) => `"x${index}":1`).join(",")}}`,
  (length: number) => `{"metadata":{${Array.from({ length: length / 12 }, (_, index) => `"x${index}":1`).join(",")}}}`,
  filled(
    '{"role":"user","content":[{"type":"text","text":"a"}]},',
    '{"model":"m","messages":[',
    '{"role":"user","content":""}]}',
  ),
  filled(
    '{"x":1,"y":2,"type":"z"},',
    '{"model":"m","messages":[{"role":"user","content":[',
    '{"type":"text","text":""}]}]}',
  ),
];

const requestHead = "GET / HTTP/1.1\r\nHost: h\r\n";
const headLines = ["a", "a:b\r\n", "a: ", " ", ",", "\t", ":", "\xff", "b:c,d\r\n"];
const requestHeads = [
  ...each(headLines, requestHead),
  ...each(headLines, `${requestHead}a:`),
  ...each([" close", ",", "close,"], `${requestHead}connection:`, "\r\n\r\n"),
  ...each(["9", " ", "9,"], `${requestHead}content-length:`, "\r\n\r\n"),
];
const targets = each(["a", "/", "?", "%", "&a", "#"], "GET /", " HTTP/1.1\r\nHost: h\r\n\r\n");
const chunks = ["1\r\nx\r\n", "1;a\r\nx\r\n", "1;\r\n", "0", "00000001\r\nx\r\n", "2\r\n\r\n\r\n", "\r\n"];
const chunkedRequest = "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n";
const chunkedAnswer = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
const requests = [
  ...each(["\r\n", "GET / HTTP/1.1\r\nHost: h\r\n\r\n", "GET / HTTP/1.1\r\nHost: h\r\nA: 1\r\nB: 2\r\n\r\n"]),
  ...each(chunks, chunkedRequest),
  filled("x", "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 900000\r\n\r\n"),
];
const answerHead = "HTTP/1.1 200 OK\r\n";
const answers = [
  ...each(chunks, chunkedAnswer),
  ...each(["x", "\r\n"], "HTTP/1.0 200 OK\r\n\r\n"),
  ...each(["x"], "HTTP/1.1 200 OK\r\nContent-Length: 90000000\r\n\r\n"),
];
const answerHeads = [
  ...each(headLines, answerHead),
  ...each(["HTTP/1.1 100 Continue\r\n\r\n", "HTTP/1.1 103 x\r\na:b\r\n\r\n", "\r\n", "\n", "\r"]),
  ...each([" timeout", "timeout=", ";timeout =", " "], `${answerHead}keep-alive:`, "\r\n\r\n"),
];

const zstdFrame = "\x28\xb5\x2f\xfd\0\x58";
const zstdFrames = [
  ...each(["\0\0\0", "\x02\0\0x", "\x08\0\0x"], zstdFrame, "\x01\0\0"),
  ...each([`${zstdFrame}\x01\0\0`, "\x50\x2a\x4d\x18\0\0\0\0"]),
];

const formHead = '--b-1\r\nContent-Disposition: form-data; name="a"';
const formParts = [
  ...each(["\r", "\n", "\r\n", "\r\n--", "\r\n--b-", "-", "x"], `${formHead}\r\n\r\n`, "\r\n--b-1--"),
  ...each([`${formHead}\r\n\r\nx\r\n`], "", "--b-1--"),
  ...each(["\r\n", " ", "-"], `${formHead}\r\n\r\n\r\n--b-1--`),
];
const partHeads = each([";", " ", "a", ";a=b", '"', "\\", ";a=", "\r\nx:y", ":"], formHead, "\r\n\r\nx\r\n--b-1--");

const mask = "\x01\x02\x03\x04";
const clientFrames = [
  ...each([`\x89\x80${mask}`, `\x82\x80${mask}`, `\x82\x81${mask}a`, `\x8a\x84${mask}abcd`]),
  ...each([`\x00\x80${mask}`, `\x00\x81${mask}a`, `\x00\x81${mask}a\x89\x80${mask}`], `\x02\x80${mask}`),
];
const serverFrames = [
  ...each(["\x89\x00", "\x82\x00", "\x82\x01a", "\x82\x7e\x00\x80".padEnd(132, "x")]),
  ...each(["\x00\x00", "\x00\x01a", "\x00\x7d".padEnd(127, "y")], "\x02\x00"),
];

function message(type: number, stream: number, payload = ""): string {
  const head = Buffer.alloc(7);
  head.writeUInt16BE(5 + payload.length);
  head[2] = type;
  head.writeUInt32BE(stream, 3);
  return head.toString("latin1") + payload;
}

const credit = "\0\0\0\x01";
const openStream = message(messageTypes.head, 1, '{"status":200}');
const nodeMessages = [
  filled(message(messageTypes.data, 1, "a"), openStream),
  filled(message(messageTypes.data, 1), openStream),
  filled(message(messageTypes.credit, 1, credit)),
  filled(message(messageTypes.ping, 0, "1234")),
  filled(message(messageTypes.announce, 0, '{"version":"1","models":[{"id":"m"},{"id":"n"}]}')),
];

/** Texts of a length each, in a list or as metadata, and tensors without dimensions. */
const ggufHead = "GGUF\x03\0\0\0\0\0\x01\0\0\0\0\0\0\0\x01\0\0\0\0\0";
const ggufHeaders = [
  filled("\x01\0\0\0\0\0\0\0x", `${ggufHead}\0\0\0\0\0\0\0\0\x09\0\0\0\x08\0\0\0\0\0\0\x01\0\0\0\0`),
  filled("\x01\0\0\0\0\0\0\0k\x07\0\0\0\0", ggufHead),
  filled("\x02\0\0\0\0\0\0\0kk\x08\0\0\0\0\0\0\0\0\0\0\0", ggufHead),
];

const blanks = [" ", "\t", ";", ",", "=", "a ", "a=", "a;", " ;", ", ", "\xa0", '"', "q=0;"];

export const scanners: readonly Scanner[] = [
  { name: "events", scan: read("events"), inputs: eventInputs, length: 400_000, cuts: anyCut },
  { name: "events", scan: read("events"), inputs: eventInputs, length: 32_000, cuts: byteByByte },
  {
    name: "chunks of a stream",
    scan: read("chunks"),
    inputs: [
      ...each(['data: {"choices":[{"index":0,"delta":{"content":"x"},"finish_reason":null}]}\n\n', "data: [DONE]\n\n"]),
      ...each(["a", "\\", '\\"', "\\u", "é"], 'data: {"choices":[{"delta":{"content":"', '"}}]}\n\n'),
    ],
    length: 120_000,
    cuts: anyCut,
  },
  { name: "requests", scan: read("requests"), inputs: requests, length: 240_000, cuts: anyCut },
  { name: "heads of requests", scan: read("requests"), inputs: requestHeads, length: 30_000, cuts: [...anyCut, 1] },
  { name: "targets of requests", scan: read("requests"), inputs: targets, length: 16_000, cuts: [...anyCut, 1] },
  { name: "forms", scan: read("forms"), inputs: formParts, length: 240_000, cuts: anyCut },
  { name: "forms", scan: read("forms"), inputs: formParts, length: 32_000, cuts: byteByByte },
  { name: "heads of parts", scan: read("forms"), inputs: partHeads, length: 7_000, cuts: [...anyCut, 1] },
  { name: "answers", scan: read("answers"), inputs: answers, length: 240_000, cuts: anyCut },
  { name: "heads of answers", scan: read("answers"), inputs: answerHeads, length: 64_000, cuts: [...anyCut, 1] },
  { name: "heads of upgrades", scan: read("upgrades"), inputs: answerHeads, length: 16_000, cuts: [...anyCut, 1] },
  {
    name: "frames of clients",
    scan: read("frames-of-clients"),
    inputs: clientFrames,
    length: 60_000,
    cuts: [...anyCut, 1],
  },
  {
    name: "frames of servers",
    scan: read("frames-of-servers"),
    inputs: serverFrames,
    length: 60_000,
    cuts: [...anyCut, 1],
  },
  { name: "messages of nodes", scan: read("messages-of-nodes"), inputs: nodeMessages, length: 48_000, cuts: whole },
  {
    name: "bodies through a tunnel",
    scan(pieces) {
      const length = pieces.reduce((sum, piece) => sum + piece.length, 0);
      const body = new IncomingBody(length, length, new BodyBudget(length));
      for (const piece of pieces) body.push(piece);
      const bytes = body.take();
      body.release();
      return bytes;
    },
    inputs: [filled("x")],
    length: 240_000,
    cuts: [...anyCut, 1],
  },
  { name: "members", scan: read("members"), inputs: jsonInputs, length: 400_000, cuts: whole },
  { name: "whole answers", scan: read("whole-answers"), inputs: jsonInputs, length: 400_000, cuts: whole },
  { name: "bodies of requests", scan: read("request-bodies"), inputs: jsonInputs, length: 200_000, cuts: whole },
  {
    name: "load of a server",
    scan: read("server-load"),
    inputs: each(["vllm:num_requests_running 1\n", "\n", "a\n", "vllm:num_requests_running{", "}", " ", "a"]),
    length: 400_000,
    cuts: whole,
  },
  {
    name: "models of a server",
    scan: text(parseModels),
    inputs: [filled('{"id":"a"},', '{"data":[', '{"id":"b"}]}'), filled("a", '{"data":[{"id":"', '"}]}')],
    length: 400_000,
    cuts: whole,
  },
  {
    name: "calls without an index",
    scan: text((ids) => {
      const collector = new ChunkCollector();
      for (const id of ids.split(" ")) {
        const chunk = { choices: [{ index: 0, delta: { tool_calls: [{ id, function: { name: "f" } }] } }] };
        collector.add(`data: ${JSON.stringify(chunk)}\n\n`);
      }
      return collector.answer({ promptTokens: 1, completionTokens: 1, estimated: false });
    }),
    inputs: [(length) => Array.from({ length: length / 8 }, (_, index) => String(1e6 + index)).join(" ")],
    length: 80_000,
    cuts: whole,
  },
  {
    name: "cookies",
    scan: text((header) => cookieIn(header, "session")),
    inputs: [...each(blanks), ...each(blanks, "a", "b"), ...each(["session=a;", "session="])],
    length: 32_000,
    cuts: whole,
  },
  {
    name: "Accept",
    scan: text(prefersCsv),
    inputs: [...each(blanks), ...each(blanks, "a", "b")],
    length: 32_000,
    cuts: whole,
  },
  {
    name: "X-Forwarded-For",
    scan: text((hops) => {
      const headers = { get: () => hops, has: () => true, keys: () => [] };
      return clientAddress({ peer: "127.0.0.1", headers }, proxies);
    }),
    inputs: each(
      [",", "127.0.0.1,", "1", ".", "1.1.1.1:", "[::1]:1,", "::ffff:", " ", "127.0.0.1 , "],
      "",
      ",127.0.0.1",
    ),
    length: 32_000,
    cuts: whole,
  },
  {
    name: "queries",
    scan: text((query) => quietly(() => readPrefixed(`/?${query}`, "metadata"))),
    inputs: [...each(["a", "&", "=", "%", "%41", "+", "a=1&", "metadata[", "#", "?"]), distinct],
    length: 32_000,
    cuts: whole,
  },
  {
    name: "parameters of an authorization",
    scan: text((query) => new Parameters(query)),
    inputs: [...each(["a", "&", "=", "%", "a=1&"]), distinct],
    length: 200_000,
    cuts: whole,
  },
  {
    name: "credentials in a text",
    scan: text(redactCredentials),
    inputs: each(
      [
        "-eyJ",
        "eyJ",
        "eyJaaaaaa.",
        "eyJaaaaaa.a.a ",
        "Bearer ",
        "Bearer\n",
        "Basic a",
        "://",
        "://a@",
        "sk-",
        "-sk-",
        "hr_",
        "hrn_a",
        "sk_live_hr_",
        "AIza",
        "-",
      ],
      "eyJ sk- ://@ Bearer ",
    ),
    length: 200_000,
    cuts: whole,
  },
  { name: "slashes", scan: text(trimSlashes), inputs: each(["/", "a/"], "http://h", "a"), length: 32_000, cuts: whole },
  { name: "headers of GGUF files", scan: read("gguf-headers"), inputs: ggufHeaders, length: 400_000, cuts: whole },
  { name: "zstd frames", scan: read("zstd-frames"), inputs: zstdFrames, length: 4_000_000, cuts: whole },
  {
    name: "base64",
    scan: text(decodeEmbedding),
    inputs: each(["AAAA", "=", " ", "-_"]),
    // What it makes of more is enough for garbage to be collected each time, of all that other tests have left.
    length: 200_000,
    cuts: whole,
  },
];

const proxies: BlockList = trustedProxies(["127.0.0.1", "::1"]);

function distinct(length: number): string {
  return Array.from({ length: length / 20 }, (_, index) => `metadata[${index}]=1`).join("&");
}

function quietly(work: () => unknown): unknown {
  try {
    return work();
  } catch (error) {
    if (error instanceof GatewayError) return error.code;
    throw error;
  }
}
