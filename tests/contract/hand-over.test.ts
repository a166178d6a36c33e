// What a worker hands over is answered as if there were no worker: the same bytes for the client, the same request for the handler.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { createHash } from "node:crypto";
import { bufferedBytes } from "../../src/base/bytes/buffered-bytes.ts";
import type { ByteSpan } from "../../src/base/bytes/byte-span.ts";
import { type PassableRequest, type Reply, RequestBodyError } from "../../src/http1/message.ts";
import { openRaw } from "../hostile/raw-client.ts";
import { get, startTestServer, type TestHttp1Server, until } from "../support/http1/server-fixture.ts";
import { type Handler, startWorkerFront, type WorkerFront } from "../support/http1/worker-front.ts";

const maxBytes = 30_000_000;
const statusOf = { too_large: 413, malformed: 400, incomplete: 408 } as const;

/** The requests that a handler saw, with what came of their bodies. */
type Seen = string[];

function tell(seen: Seen, request: PassableRequest, body: string): string {
  const fields = [...request.headers.keys()].map((name) => `${name}: ${request.headers.get(name)}`);
  const reported = JSON.stringify([request.peer, request.method, request.target, fields, request.hasBody, body]);
  seen.push(reported);
  return reported;
}

async function echo(seen: Seen, request: PassableRequest, reply: Reply): Promise<void> {
  try {
    const body: ByteSpan = await request.readBody(request.target === "/little" ? 10 : maxBytes);
    const reported = tell(seen, request, `${body.length} ${createHash("sha256").update(body.view).digest("hex")}`);
    reply.send(200, { "content-type": "application/json" }, reported);
  } catch (error) {
    if (!(error instanceof RequestBodyError)) throw error;
    tell(seen, request, error.message);
    if (error.fault !== "incomplete") reply.send(statusOf[error.fault], {}, error.message);
  }
}

async function trickle(reply: Reply): Promise<void> {
  const stream = reply.stream(200, { "content-type": "text/event-stream" });
  for (let event = 0; event < 5; event++) {
    stream.write(`data: ${event}\n\n`);
    await Bun.sleep(3);
  }
  stream.end("data: [DONE]\n\n");
}

function flood(reply: Reply, bytes: number): void {
  const stream = reply.stream(200, {});
  let left = bytes;
  const more = () => {
    for (; left > 0; left -= 50_000) if (!stream.write("0123456789".repeat(5_000))) break;
    if (left > 0) left -= 50_000;
    else stream.end();
  };
  stream.onDrain = more;
  more();
}

function broken(reply: Reply, trailer?: string): void {
  const stream = reply.stream(200, { "x-broken": "1" });
  stream.write("the beginning");
  setTimeout(() => stream.abort(trailer), 5);
}

const answers: Readonly<Record<string, (reply: Reply, query: string) => void>> = {
  "/unread": (reply) => reply.send(413, { "x-why": "too large" }, "Too large."),
  "/empty": (reply) => reply.send(204, { "x-a": "b" }, ""),
  "/same": (reply) => reply.send(304, { etag: '"a"' }, ""),
  "/nothing": (reply) => reply.send(200, {}, ""),
  "/close": (reply) => reply.send(200, { connection: "close" }, "the end"),
  "/later": (reply) => void setTimeout(() => reply.send(200, {}, "later"), 10),
  "/odd": (reply) => reply.send(404, { "x-empty": "", "x-latin": "\xe9", "set-cookie": "a=b; Path=/" }, "né"),
  "/whole": (reply, query) => reply.send(200, {}, "0123456789".repeat(Number(query) / 10)),
  "/trickle": (reply) => void trickle(reply),
  "/flood": (reply, query) => flood(reply, Number(query)),
  "/broken": (reply) => broken(reply),
  "/told": (reply) => broken(reply, "x-fault: it broke"),
};

const handler =
  (seen: Seen): Handler =>
  (request, reply) => {
    // Both servers are one process here, and share its bound.
    request.memoryAccount = bufferedBytes.bounded;
    const [path = "", query = ""] = request.target.split("?");
    const answer = answers[path];
    if (!answer) return void echo(seen, request, reply);
    tell(seen, request, "");
    answer(reply, query);
  };

const seenDirectly: Seen = [];
const seenBehind: Seen = [];
let direct: TestHttp1Server;
let front: WorkerFront;
let readingFront: WorkerFront;

beforeAll(() => {
  direct = startTestServer(handler(seenDirectly));
  front = startWorkerFront(handler(seenBehind));
  readingFront = startWorkerFront(handler(seenBehind), { readsFirst: maxBytes });
});

afterAll(async () => {
  expect([...direct.faults, ...front.faults, ...readingFront.faults]).toEqual([]);
  for (const server of [direct, front, readingFront]) await server[Symbol.asyncDispose]();
});

/** All that the server says to what is written piece by piece, until it ends the connection. */
async function said(url: string, pieces: readonly (string | Uint8Array)[]): Promise<string> {
  const connection = await openRaw(url);
  for (const [index, piece] of pieces.entries()) {
    if (index > 0) await Bun.sleep(pieces.length > 10 ? 1 : 5);
    await connection.write(typeof piece === "string" ? Buffer.from(piece, "latin1") : piece);
  }
  const { text, closed } = await connection.ended(4_000);
  connection.socket.destroy();
  return `${comparable(text)}${closed ? "" : "<open>"}`;
}

/** Without the time, and without the places at which a body was cut into chunks. */
function comparable(text: string): string {
  const undated = text.replace(/\r\ndate: [^\r]+/g, "");
  let received = "";
  let at = 0;
  for (;;) {
    const head = /transfer-encoding: chunked\r\n(?:connection: \S+\r\n)?\r\n/g;
    head.lastIndex = at;
    const found = head.exec(undated);
    if (!found) return received + undated.slice(at);
    received += undated.slice(at, head.lastIndex);
    at = head.lastIndex;
    for (let size = 1; size > 0; ) {
      const end = undated.indexOf("\r\n", at);
      size = Number.parseInt(undated.slice(at, end), 16);
      // It broke off here, or has no body.
      if (end < 0 || Number.isNaN(size)) break;
      if (size > 0) received += undated.slice(end + 2, end + 2 + size);
      at = size > 0 ? end + 2 + size + 2 : end;
    }
  }
}

const host = "Host: h\r\n";
const close = "Connection: close\r\n";
const sized = (path: string, body: string | number, more = "") =>
  `POST ${path} HTTP/1.1\r\n${host}${more}Content-Length: ${typeof body === "string" ? body.length : body}\r\n\r\n${typeof body === "string" ? body : ""}`;
const chunked = (path: string, body: string, more = close) =>
  `POST ${path} HTTP/1.1\r\n${host}${more}Transfer-Encoding: chunked\r\n\r\n${body}`;
const last = `GET /last HTTP/1.1\r\n${host}${close}\r\n`;
const bytes = (length: number) => Buffer.alloc(length, "0123456789abcdefghijklmnopqrstuvw");
const inChunks = (length: number, size: number) => {
  const chunk = Buffer.concat([Buffer.from(`${size.toString(16)};x=y\r\n`), bytes(size), Buffer.from("\r\n")]);
  return Buffer.concat([...Array<Buffer>(length / size).fill(chunk), Buffer.from("0\r\nx-t: 1\r\n\r\n")]);
};

type Case = [name: string, pieces: (string | Uint8Array)[]];

const cases: Case[] = [
  ["a request alone", [last]],
  ["two behind each other", [get("/1") + last]],
  ["twenty behind each other, some of them slow", [`${get("/later")}${get("/1")}${get("/odd")}`.repeat(7) + last]],
  ["a head that comes byte by byte", [...last]],
  ["an empty line before the first", [`\r\n${last}`]],
  ["a body with its head", [sized("/", "body") + last]],
  ["a body behind its head", [sized("/", 4), "bo", "dy", last]],
  ["a body of 1 MB", [sized("/", 1_000_000), bytes(1_000_000), last]],
  ["a body of 20 MB", [sized("/", 20_000_000), bytes(20_000_000), last]],
  ["a body of 20 MB in chunks", [chunked("/", "", ""), inChunks(20_000_000, 50_000), last]],
  ["a body in chunks of a byte", [chunked("/", "", ""), inChunks(30_000, 1), last]],
  ["a body in chunks with its head", [chunked("/", "4\r\nbody\r\n0\r\n\r\n", "") + last]],
  ["chunks that come byte by byte", [chunked("/", "", ""), ..."4;a=b\r\nbody\r\n0\r\nA: b\r\n\r\n", last]],
  ["a body that is too large", [sized("/little", "much too long") + last]],
  ["chunks that are too large", [chunked("/little", "d\r\nmuch too long\r\n0\r\n\r\n") + last]],
  ["a large body that nobody reads", [sized("/unread", 1_000_000), bytes(1_000_000)]],
  ["a body that is here and that nobody reads", [sized("/unread", "body") + last]],
  ["a body of which only the head is sent, refused", [sized("/unread", 5_000_000, "Expect: 100-continue\r\n")]],
  ["leave to send a body", [sized("/", 4, "Expect: 100-continue\r\n"), "body", last]],
  ["leave that is not waited for", [sized("/", "body", "Expect: 100-continue\r\n") + last]],
  ["an expectation of something else", [sized("/", "body", "Expect: 200-ok\r\n") + last]],
  ["HEAD", [`HEAD /whole?100 HTTP/1.1\r\n${host}\r\n${last}`]],
  ["HEAD of a stream", [`HEAD /trickle HTTP/1.1\r\n${host}${close}\r\n`]],
  ["204", [get("/empty") + last]],
  ["304", [get("/same") + last]],
  ["an answer of no bytes", [get("/nothing") + last]],
  ["odd fields in the answer", [get("/odd") + last]],
  ["an answer that ends the connection", [get("/close") + last]],
  ["an answer of 1 MB", [get("/whole?1000000") + last]],
  ["an answer of 20 MB", [get("/whole?20000000") + last]],
  ["a stream of 5 MB", [get("/flood?5000000") + last]],
  ["events", [get("/trickle") + last]],
  ["events whose client speaks HTTP/1.0", ["GET /trickle HTTP/1.0\r\n\r\n"]],
  ["HTTP/1.0 without a host", ["GET /1 HTTP/1.0\r\nExpect: 100-continue\r\n\r\n"]],
  ["HTTP/1.0 that keeps its connection", ["GET /whole?10 HTTP/1.0\r\nHost: h\r\nConnection: keep-alive\r\n\r\n", last]],
  ["an answer that breaks off", [get("/broken")]],
  ["an answer that breaks off, in HTTP/1.0", ["GET /broken HTTP/1.0\r\n\r\n"]],
  ["an answer whose trailer tells a fault", [get("/told") + last]],
  [
    "many fields, some of them twice",
    [
      get(
        "/",
        Array.from({ length: 198 }, (_, n) => `X-${n % 99}: ${n}`),
      ).replace("GET", "BREW"),
      last,
    ],
  ],
  ["the most fields", [get("/", [...Array.from({ length: 199 }, (_, n) => `a${n}:`)]), last]],
  ["more fields than the most", [get("/", [...Array.from({ length: 200 }, (_, n) => `a${n}:`)])]],
  ["the longest head", [get("/", [`A: ${"a".repeat(32 * 1024 - 33)}`]), last]],
  ["a longer head", [get("/", [`A: ${"a".repeat(32 * 1024)}`])]],
  ["bytes above 127 in a value", [get("/", ["A: \xff\xc3", "B:\t b \t"]) + last]],
  ["a target in absolute form", [get("http://elsewhere/x?y") + last]],
  ["an asterisk", [`OPTIONS * HTTP/1.1\r\n${host}\r\n${last}`]],
  [
    "fields about the connection",
    [get("/", ["Connection: keep-alive, X-A", "Keep-Alive: 5", "TE: trailers", "X-A: 1"]) + last],
  ],
  ["two lengths", [`POST / HTTP/1.1\r\n${host}Content-Length: 1\r\nContent-Length: 2\r\n\r\nxy${last}`]],
  ["length and chunks", [chunked("/", "0\r\n\r\n", "Content-Length: 5\r\n") + last]],
  ["an odd coding", [`POST / HTTP/1.1\r\n${host}Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n${last}`]],
  ["a folded line", [get("/", ["A: b\r\n c"]) + last]],
  ["LF alone", [`GET / HTTP/1.1\n${host}\r\n`]],
  ["no host", ["GET / HTTP/1.1\r\n\r\n"]],
  ["two hosts", [get("/", ["Host: i"])]],
  ["HTTP/2", ["PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"]],
  ["a chunk size that is no number", [chunked("/", "zz\r\nbody\r\n0\r\n\r\n") + last]],
  ["a chunk longer than it says", [chunked("/", "4\r\nbodyX\r\n0\r\n\r\n") + last]],
  ["a chunk size that is too large", [chunked("/", "1234567890123\r\nbody") + last]],
  ["a chunk extension that is too long", [chunked("/", `4;${"a".repeat(300)}\r\nbody`) + last]],
  ["a malformed chunk behind a good one", [chunked("/", "4\r\nbody\r\n"), "zz\r\n", last]],
  ["a malformed chunk of a body that nobody reads", [chunked("/unread", "zz\r\n") + last]],
];

describe("a worker that hands requests over", () => {
  for (const [name, pieces] of cases) {
    test(`answers like the primary and forwards the same requests: ${name}`, async () => {
      seenDirectly.length = seenBehind.length = 0;
      const [expected, got] = await Promise.all([said(direct.url, pieces), said(front.url, pieces)]);
      expect(got === expected ? "" : got.slice(0, 2_000)).toBe(got === expected ? "" : expected.slice(0, 2_000));
      expect(seenBehind).toEqual(seenDirectly);
      expect(expected).not.toEndWith("<open>");
    });
  }

  for (const [name, pieces] of [
    ["with its head", [sized("/", "body") + last]],
    ["in chunks, with leave", [chunked("/", "", "Expect: 100-continue\r\n"), "4\r\nbody\r\n0\r\n\r\n", last]],
    ["of 1 MB", [sized("/", 1_000_000), bytes(1_000_000), last]],
  ] satisfies Case[]) {
    test(`forwards a body already read with its length: ${name}`, async () => {
      seenDirectly.length = seenBehind.length = 0;
      await said(direct.url, pieces);
      const text = await said(readingFront.url, pieces);
      expect(text.match(/HTTP\/1\.1 200 OK/g)).toHaveLength(2);
      const unframed = (seen: Seen) =>
        seen.map((reported) => reported.replace(/,?"(?:content-length|transfer-encoding|expect): [^"]+"/g, ""));
      expect(unframed(seenBehind)).toEqual(unframed(seenDirectly));
      expect(seenBehind[0]).toMatch(/"content-length: \d+"/);
      await until(() => bufferedBytes.visitors.total === 0, "whoever held the body has it given back");
    });
  }
});
