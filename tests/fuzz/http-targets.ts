// HTTP/1.1 both ways and WebSockets: heads, bodies, chunks and frames, as the parsers take them from a socket.
import { zstdCompressSync } from "node:zlib";
import { ByteSpan } from "../../src/base/bytes/byte-span.ts";
import { areWholeZstdFrames, ZstdFrames } from "../../src/http/content/zstd-frames.ts";
import { ResponseReader } from "../../src/http1/client/response-reader.ts";
import { HeadError } from "../../src/http1/head.ts";
import { type HeaderLines, RequestBodyError } from "../../src/http1/message.ts";
import type { ConnectionBody } from "../../src/http1/server/connection-body.ts";
import { ConnectionInput } from "../../src/http1/server/connection-input.ts";
import { defaultLimits } from "../../src/http1/server/server-limits.ts";
import { AnswerHead } from "../../src/websocket/client-socket.ts";
import { FrameError } from "../../src/websocket/frame-format.ts";
import { FrameReader } from "../../src/websocket/frame-reader.ts";
import type { Target } from "./targets.ts";

const limits = defaultLimits();
const maxBodyBytes = 1_000_000;

const fieldsOf = (headers: HeaderLines) => [...headers.keys()].map((name) => [name, headers.get(name)]);

interface Request {
  method: string;
  target: string;
  fields: unknown;
  body: string | undefined;
}

/** Reads as a connection of the server does, for a handler that takes each body whole. */
function readRequests(pieces: readonly Buffer[]): unknown {
  const input = new ConnectionInput(limits);
  const requests: Request[] = [];
  let body: ConnectionBody | undefined;
  const finish = (whole: ByteSpan | ConnectionBody) => {
    const last = requests.at(-1);
    const bytes = whole instanceof ByteSpan ? whole : whole.read(maxBodyBytes);
    if (last && bytes instanceof ByteSpan) last.body = bytes.view.toString("latin1");
  };
  const takeAll = () => {
    for (let read = input.take(); read; read = input.take()) {
      const { method, target, headers } = read.head;
      requests.push({ method, target, fields: fieldsOf(headers), body: undefined });
      const { body: given } = input;
      input.body = undefined;
      if (given instanceof ByteSpan || given?.complete) finish(given);
      else if (given) {
        body = given;
        return;
      }
    }
  };
  try {
    for (const piece of pieces) {
      let start = 0;
      if (body) {
        start = body.push(piece, 0);
        if (body.complete) {
          finish(body);
          body = undefined;
        }
      }
      if (start < piece.length) input.append(piece, start);
      if (!body) takeAll();
    }
    // What is wrong with it is told to who asks for it.
    if (body) finish(body);
  } catch (error) {
    if (!(error instanceof HeadError || error instanceof RequestBodyError)) throw error;
    return { requests, refused: true };
  }
  return { requests, refused: false };
}

/** One answer to a GET, up to its end. */
function readAnswer(pieces: readonly Buffer[], method = "GET"): unknown {
  const reader = new ResponseReader();
  const seen = { status: 0, fields: undefined as unknown, body: "", complete: false, refused: false };
  const taker = {
    method,
    answered(head: { status: number; headers: HeaderLines }) {
      seen.status = head.status;
      seen.fields = fieldsOf(head.headers);
    },
    data(bytes: Buffer, start: number, end: number) {
      seen.body += bytes.toString("latin1", start, end);
    },
  };
  try {
    for (const piece of pieces) {
      seen.complete = reader.read(piece, taker);
      if (seen.complete) break;
    }
  } catch (error) {
    if (!(error instanceof HeadError)) throw error;
    seen.refused = true;
  }
  return { ...seen, endsWithConnection: !seen.refused && reader.endsWithConnection };
}

function readFrames(pieces: readonly Buffer[], masked: boolean): unknown {
  const seen: unknown[] = [];
  const listener = {
    message: (bytes: Buffer) => void seen.push(["message", bytes.toString("latin1")]),
    ping: (bytes: Buffer) => void seen.push(["ping", bytes.toString("latin1")]),
    pong: (bytes: Buffer) => void seen.push(["pong", bytes.toString("latin1")]),
    closeFrame: (code: number, reason: string) => void seen.push(["close", code, reason]),
  };
  const reader = new FrameReader(listener, masked, 64 * 1024);
  try {
    for (const piece of pieces) reader.push(piece);
  } catch (error) {
    if (!(error instanceof FrameError)) throw error;
    seen.push(["refused", error.closeCode]);
  }
  return seen;
}

function readUpgrade(pieces: readonly Buffer[]): unknown {
  const answer = new AnswerHead();
  try {
    let behind = "";
    let head: unknown;
    for (const piece of pieces) {
      if (head !== undefined) {
        behind += piece.toString("latin1");
        continue;
      }
      const found = answer.push(piece);
      if (!found) continue;
      head = [found.head.status, fieldsOf(found.head.headers)];
      behind = found.rest.toString("latin1");
    }
    return { head, behind };
  } catch (error) {
    if (!(error instanceof HeadError)) throw error;
    return "refused";
  }
}

const http1 = ["head.ts", "framing.ts", "chunked.ts", "server/known-head.ts"].map((name) => `src/http1/${name}`);
const mask = "\x01\x02\x03\x04";

/** Once more behind itself it is as whole as before, and without its last byte it is not. */
function checkZstd(bytes: Buffer): void {
  if (!areWholeZstdFrames(bytes)) return;
  if (!areWholeZstdFrames(Buffer.concat([bytes, bytes]))) throw new Error("Twice is not whole.");
  if (areWholeZstdFrames(bytes.subarray(0, -1))) throw new Error("A part is whole.");
}

export const httpTargets: readonly Target[] = [
  {
    name: "requests",
    files: [
      ...http1,
      "src/http1/server/connection-input.ts",
      "src/http1/server/connection-body.ts",
      "src/http1/server/read-request.ts",
    ],
    seeds: [
      "GET /v1/models?a=%20b HTTP/1.1\r\nHost: h:1\r\nAuthorization: Bearer x\r\n\r\n",
      "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\nhelloGET / HTTP/1.0\r\n\r\n",
      "POST http://h/x HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n5;a=b\r\nhello\r\n0\r\nX: t\r\n\r\n",
      "\r\nOPTIONS * HTTP/1.1\r\nHost: h\r\nConnection: close, keep-alive\r\n\r\n",
      // A method may begin with any byte of a token, also where it comes alone.
      "!x / HTTP/1.1\r\nHost: h\r\n\r\n",
      "GET / HTTP/1.1\r\nHost: h\r\nA: 1\r\nA: 2\r\n\r\n".repeat(3),
    ],
    read: readRequests,
  },
  {
    name: "answers",
    files: [...http1, "src/http1/client/response-reader.ts", "src/http1/client/read-response.ts"],
    seeds: [
      "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nKeep-Alive: timeout=5, max=100\r\n\r\nhello",
      "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n3;x\r\nabc\r\n0\r\nT: x\r\n\r\n",
      "HTTP/1.0 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: x\n\n",
      "HTTP/1.1 204 No Content\r\n\r\n",
      "HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\nConnection: close\r\n\r\n",
    ],
    read: (pieces) => readAnswer(pieces),
  },
  {
    name: "answers-to-head",
    files: [...http1, "src/http1/client/response-reader.ts", "src/http1/client/read-response.ts"],
    seeds: ["HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"],
    read: (pieces) => readAnswer(pieces, "HEAD"),
  },
  {
    name: "upgrades",
    files: ["src/http1/head.ts", "src/websocket/client-socket.ts"],
    seeds: ["HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n\x82\x01a"],
    read: readUpgrade,
  },
  {
    name: "frames-of-clients",
    files: ["src/websocket/frame-reader.ts", "src/websocket/frame-format.ts"],
    seeds: [
      `\x82\x85${mask}hello`,
      `\x02\x83${mask}abc\x00\x82${mask}de\x89\x81${mask}p\x80\x81${mask}f`,
      `\x88\x85${mask}\x02\xeacde`,
      `\x82\xfe\x00\x80${mask}${"x".repeat(128)}`,
    ],
    read: (pieces) => readFrames(pieces, true),
  },
  {
    name: "frames-of-servers",
    files: ["src/websocket/frame-reader.ts", "src/websocket/frame-format.ts"],
    seeds: [
      "\x82\x05hello",
      "\x02\x03abc\x00\x02de\x8a\x01p\x80\x01f",
      "\x88\x05\x03\xe8bye",
      `\x82\x7f\0\0\0\0\0\x01\0\0${"y".repeat(99)}`,
    ],
    read: (pieces) => readFrames(pieces, false),
  },
  {
    name: "zstd-frames",
    files: ["src/http/content/zstd-frames.ts"],
    seeds: [zstdCompressSync("a".repeat(99)).toString("latin1"), "\x51\x2a\x4d\x18\x02\0\0\0ab"],
    read: (pieces) => {
      const frames = new ZstdFrames();
      for (const piece of pieces) frames.push(piece);
      return frames.areWhole;
    },
    check: checkZstd,
  },
];
