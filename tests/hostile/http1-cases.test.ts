// Messages of HTTP/1.1 as they should not be, and as they just may be: our server and our client read each one way, or refuse it at once.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { ByteSpan } from "../../src/base/bytes/byte-span.ts";
import { Cancellation } from "../../src/base/cancellation.ts";
import { Http1Client } from "../../src/http1/client/client.ts";
import { rawUpstream } from "../support/http1/raw-upstream.ts";
import { startTestServer, type TestHttp1Server } from "../support/http1/server-fixture.ts";
import { rawUntilClosed } from "./raw-client.ts";

/** Method, target and body of each request that is served; and the status of the refusal behind them. */
type RequestCase = [name: string, bytes: string, served: string[], refused?: number];

const host = "Host: h\r\n";
const close = "Connection: close\r\n";
const last = `GET /last HTTP/1.1\r\n${host}${close}\r\n`;
const chunked = `POST /c HTTP/1.1\r\n${host}Transfer-Encoding: chunked\r\n\r\n`;

const requests: RequestCase[] = [
  ["two behind each other", `GET /1 HTTP/1.1\r\n${host}\r\n${last}`, ["GET /1 ", "GET /last "]],
  ["an empty line before the first", `\r\n${last}`, ["GET /last "]],
  [
    "an empty line behind a body",
    `POST /1 HTTP/1.1\r\n${host}Content-Length: 1\r\n\r\nx\r\n${last}`,
    ["POST /1 x", "GET /last "],
  ],
  ["a method that nobody knows", `BREW / HTTP/1.1\r\n${host}${close}\r\n`, ["BREW / "]],
  ["a method in small letters", `get / HTTP/1.1\r\n${host}${close}\r\n`, ["get / "]],
  ["HTTP/1.0 without a host", "GET / HTTP/1.0\r\n\r\n", ["GET / "]],
  ["HTTP/1.0 that does not keep the connection", `GET / HTTP/1.0\r\n\r\n${last}`, ["GET / "]],
  ["an empty host", `GET / HTTP/1.1\r\nHost:\r\n${close}\r\n`, ["GET / "]],
  ["no host", "GET / HTTP/1.1\r\n\r\n", [], 400],
  ["two hosts", `GET / HTTP/1.1\r\n${host}${host}\r\n`, [], 400],
  ["LF alone behind the request line", `GET / HTTP/1.1\n${host}\r\n`, [], 400],
  ["LF alone behind a field", "GET / HTTP/1.1\r\nHost: h\n\r\n", [], 400],
  ["LF alone for the empty line", "GET / HTTP/1.1\r\nHost: h\r\n\n", [], 400],
  ["CR alone within a value", "GET / HTTP/1.1\r\nHost: h\r\nA: b\rC: d\r\n\r\n", [], 400],
  ["a folded line", "GET / HTTP/1.1\r\nHost: h\r\nA: b\r\n c\r\n\r\n", [], 400],
  ["a folded line at first", "GET / HTTP/1.1\r\n A: b\r\nHost: h\r\n\r\n", [], 400],
  ["a blank before the colon", "GET / HTTP/1.1\r\nHost : h\r\n\r\n", [], 400],
  ["a field without a name", "GET / HTTP/1.1\r\nHost: h\r\n: x\r\n\r\n", [], 400],
  ["a field without a colon", "GET / HTTP/1.1\r\nHost: h\r\nabc\r\n\r\n", [], 400],
  ["U+0000 in a value", "GET / HTTP/1.1\r\nHost: h\r\nA: \0\r\n\r\n", [], 400],
  ["DEL in a value", "GET / HTTP/1.1\r\nHost: h\r\nA: \x7f\r\n\r\n", [], 400],
  ["bytes above 127 in a value", `GET / HTTP/1.1\r\n${host}A: \xff\xc3\r\n${close}\r\n`, ["GET / "]],
  ["bytes above 127 in a target", `GET /\xff HTTP/1.1\r\n${host}\r\n`, [], 400],
  ["two blanks in the request line", `GET  / HTTP/1.1\r\n${host}\r\n`, [], 400],
  ["a tab in the request line", `GET\t/ HTTP/1.1\r\n${host}\r\n`, [], 400],
  ["no version", `GET /\r\n${host}\r\n`, [], 400],
  ["a version of another kind", `GET / HTPP/1.1\r\n${host}\r\n`, [], 400],
  ["HTTP/1.2", `GET / HTTP/1.2\r\n${host}\r\n`, [], 505],
  // Told so in HTTP/2 itself, by GOAWAY: no answer of HTTP/1.1 comes.
  ["the preface of HTTP/2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", []],
  ["a TLS hello", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", [], 400],
  ["CONNECT", `CONNECT h:1 HTTP/1.1\r\n${host}\r\n`, [], 400],
  ["a target without a slash", `GET x HTTP/1.1\r\n${host}\r\n`, [], 400],
  ["a length twice, the same", `POST / HTTP/1.1\r\n${host}Content-Length: 1\r\nContent-Length: 1\r\n\r\nx`, [], 400],
  ["a length twice, another", `POST / HTTP/1.1\r\n${host}Content-Length: 1\r\nContent-Length: 2\r\n\r\nxy`, [], 400],
  ["a list of lengths", `POST / HTTP/1.1\r\n${host}Content-Length: 1, 1\r\n\r\nx`, [], 400],
  ["a negative length", `POST / HTTP/1.1\r\n${host}Content-Length: -1\r\n\r\nx`, [], 400],
  ["a length with a plus", `POST / HTTP/1.1\r\n${host}Content-Length: +1\r\n\r\nx`, [], 400],
  ["a length in hexadecimal", `POST / HTTP/1.1\r\n${host}Content-Length: 0x1\r\n\r\nx`, [], 400],
  ["an empty length", `POST / HTTP/1.1\r\n${host}Content-Length:\r\n\r\n`, [], 400],
  ["a length beyond exact numbers", `POST / HTTP/1.1\r\n${host}Content-Length: 18446744073709551616\r\n\r\nx`, [], 400],
  ["a length of 0", `POST /0 HTTP/1.1\r\n${host}Content-Length: 0\r\n\r\n${last}`, ["POST /0 ", "GET /last "]],
  ["a length with zeros before it", `POST / HTTP/1.1\r\n${host}Content-Length: 001\r\n${close}\r\nx`, ["POST / x"]],
  [
    "length and chunks",
    `POST / HTTP/1.1\r\n${host}Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
    [],
    400,
  ],
  ["chunks in HTTP/1.0", "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", [], 400],
  ["another coding", `POST / HTTP/1.1\r\n${host}Transfer-Encoding: gzip\r\n\r\n`, [], 400],
  [
    "another coding before chunks",
    `POST / HTTP/1.1\r\n${host}Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n`,
    [],
    400,
  ],
  ["chunks twice", `POST / HTTP/1.1\r\n${host}Transfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n`, [], 400],
  [
    "a coding with something behind it",
    `POST / HTTP/1.1\r\n${host}Transfer-Encoding: chunked x\r\n\r\n0\r\n\r\n`,
    [],
    400,
  ],
  [
    "a coding in other letters",
    `POST / HTTP/1.1\r\n${host}Transfer-Encoding: Chunked\r\n${close}\r\n1\r\nx\r\n0\r\n\r\n`,
    ["POST / x"],
  ],
  ["chunks", `${chunked}1\r\na\r\n0A\r\nbcdefghijk\r\n0\r\n\r\n${last}`, ["POST /c abcdefghijk", "GET /last "]],
  ["an extension of a chunk", `${chunked}1;n=v;m="q"\r\na\r\n0;x\r\n\r\n${last}`, ["POST /c a", "GET /last "]],
  ["a trailer", `${chunked}1\r\na\r\n0\r\nT: x\r\n\r\n${last}`, ["POST /c a", "GET /last "]],
  [
    "a trailer that is a length",
    `${chunked}1\r\na\r\n0\r\nContent-Length: 99\r\n\r\n${last}`,
    ["POST /c a", "GET /last "],
  ],
  ["LF alone behind a size", `${chunked}1\na\r\n0\r\n\r\n`, [], 400],
  ["LF alone behind a chunk", `${chunked}1\r\na\n0\r\n\r\n`, [], 400],
  ["LF alone within an extension", `${chunked}1;a\nb\r\na\r\n0\r\n\r\n`, [], 400],
  ["an extension without a name", `${chunked}1;\r\na\r\n0\r\n\r\n`, [], 400],
  ["a size of no digits", `${chunked}\r\na\r\n0\r\n\r\n`, [], 400],
  ["a size that is negative", `${chunked}-1\r\na\r\n0\r\n\r\n`, [], 400],
  ["a size with 0x", `${chunked}0x1\r\na\r\n0\r\n\r\n`, [], 400],
  ["a size with a blank behind it", `${chunked}1 \r\na\r\n0\r\n\r\n`, [], 400],
  ["a size beyond exact numbers", `${chunked}fffffffffffffffff\r\na\r\n0\r\n\r\n`, [], 400],
  ["a chunk longer than its size", `${chunked}1\r\nab\r\n0\r\n\r\n`, [], 400],
  ["a chunk shorter than its size", `${chunked}3\r\na\r\n0\r\n\r\n`, [], 400],
  ["a folded trailer", `${chunked}0\r\nA: b\r\n c\r\n\r\n`, [], 400],
  [
    "an expectation that nobody meets",
    `POST / HTTP/1.1\r\n${host}Expect: 200-ok\r\nContent-Length: 1\r\n\r\nx`,
    [],
    417,
  ],
];

describe("HTTP/1.1 requests", () => {
  let it: TestHttp1Server;
  beforeAll(() => {
    const answer = (method: string, target: string, body: ByteSpan) =>
      `${method} ${target} ${body.view.toString("latin1")}`;
    it = startTestServer(
      async (request, reply) => {
        try {
          reply.send(200, {}, answer(request.method, request.target, await request.readBody(1_000_000)));
        } catch {
          reply.send(400, {}, "");
        }
      },
      { lingerMs: 200 },
    );
  });
  afterAll(() => it[Symbol.asyncDispose]());

  const rows = requests.map(([name, bytes, served, refused]) => [name, { bytes, served, refused }] as const);
  // hardening: F6
  test.each(rows)(
    "reads a request with %s one way or refuses it at once",
    async (_name, { bytes, served, refused }) => {
      const { answers, closed } = await rawUntilClosed(it.url, Buffer.from(bytes, "latin1"), 10_000);
      expect(closed).toBe(true);
      expect(answers.filter(({ status }) => status === 200).map(({ body }) => body)).toEqual(served);
      expect(answers.slice(served.length).map(({ status }) => status)).toEqual(refused === undefined ? [] : [refused]);
      expect(it.faults).toEqual([]);
    },
  );
});

/** What is taken of it, undefined where it is refused. The connection stays open, so that nothing but a refusal ends the wait. */
type AnswerCase = [name: string, bytes: string, body: string | undefined];

const answers: AnswerCase[] = [
  ["a length", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nab", "ab"],
  ["no phrase", "HTTP/1.1 200\r\nContent-Length: 1\r\n\r\na", "a"],
  ["an empty phrase", "HTTP/1.1 200 \r\nContent-Length: 1\r\n\r\na", "a"],
  ["bytes above 127 in its phrase", "HTTP/1.1 200 \xc3\xa4\r\nContent-Length: 1\r\n\r\na", "a"],
  ["an interim one before it", "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na", "a"],
  [
    "two interim ones with fields",
    "HTTP/1.1 103 x\r\nLink: y\r\n\r\nHTTP/1.1 102 x\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na",
    "a",
  ],
  ["status 204", "HTTP/1.1 204 No Content\r\n\r\n", ""],
  ["status 304 and a length", "HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n", ""],
  ["chunks", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n2;x=y\r\nbc\r\n0\r\nT: 1\r\n\r\n", "abc"],
  ["status 101", "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n", undefined],
  ["lines that end in LF alone", "HTTP/1.1 200 OK\nContent-Length: 1\n\na", undefined],
  ["LF alone behind a field", "HTTP/1.1 200 OK\r\nContent-Length: 1\n\r\na", undefined],
  ["CR alone in a value", "HTTP/1.1 200 OK\r\nA: b\rContent-Length: 1\r\n\r\na", undefined],
  ["another protocol", "SSH-2.0-x\r\n", undefined],
  ["HTTP/2.0", "HTTP/2.0 200 OK\r\nContent-Length: 1\r\n\r\na", undefined],
  ["HTTP/0.9", "<html>", undefined],
  ["a status of two digits", "HTTP/1.1 20 OK\r\nContent-Length: 1\r\n\r\na", undefined],
  ["a status of four digits", "HTTP/1.1 2000 OK\r\nContent-Length: 1\r\n\r\na", undefined],
  ["a status below 100", "HTTP/1.1 099 OK\r\nContent-Length: 1\r\n\r\na", undefined],
  ["a blank before the colon", "HTTP/1.1 200 OK\r\nContent-Length : 1\r\n\r\na", undefined],
  ["a folded line", "HTTP/1.1 200 OK\r\nA: b\r\n c\r\nContent-Length: 1\r\n\r\na", undefined],
  ["two lengths", "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab", undefined],
  ["the same length twice", "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\na", undefined],
  [
    "length and chunks",
    "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    undefined,
  ],
  ["another coding", "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\nx", undefined],
  ["chunks in HTTP/1.0", "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", undefined],
  [
    "a chunk that is longer than its size",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nab\r\n0\r\n\r\n",
    undefined,
  ],
  ["LF alone behind a size", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\na\r\n0\r\n\r\n", undefined],
  ["a size that is none", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n", undefined],
];

describe("HTTP/1.1 answers", () => {
  // hardening: F6
  test.each(answers)(
    "reads an answer with %s one way or refuses it at once, without mixing in the next",
    async (_name, bytes, body) => {
      using upstream = rawUpstream(({ socket }) => {
        const isFirst = upstream.requests.length === 1;
        socket.write(isFirst ? Buffer.from(bytes, "latin1") : "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nnext");
      });
      const client = new Http1Client({ hostname: "127.0.0.1", port: upstream.port });
      try {
        expect(await ask(client)).toBe(body);
        expect(await ask(client)).toBe("next");
      } finally {
        client.close();
      }
    },
  );
});

/** Undefined: it was refused. Rejects where it is waited for until the time is up. */
async function ask(client: Http1Client): Promise<string | undefined> {
  const timeouts = { firstByteTimeoutMs: 20_000, idleTimeoutMs: 20_000 };
  const refused = (error: { fault?: string }) => {
    if (error.fault !== "malformed") throw error;
    return undefined;
  };
  const sent = client.send({ method: "POST", path: "/", headers: {}, body: "x" }, timeouts, new Cancellation());
  const response = await Promise.resolve(sent).catch(refused);
  if (!response) return undefined;
  let text = "";
  return new Promise<string | undefined>((resolve, reject) => {
    response.body.flow({
      data(piece) {
        text += piece.view.toString("latin1");
      },
      end: () => resolve(text),
      fail: (error) => (refusedAs(error) ? resolve(undefined) : reject(error)),
    });
  });
}

function refusedAs(error: unknown): boolean {
  return (error as { fault?: string }).fault === "malformed";
}
