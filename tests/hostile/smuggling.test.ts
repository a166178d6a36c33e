// Requests that two parsers might read as different requests: refused and closed, and the model server sees one at most.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { startHeadrace, type TestServer, until } from "../support/headrace.ts";
import { type ScriptedUpstream, startUpstream, upstreamYaml } from "../support/scripted-upstream.ts";
import { head, openRaw, raw, rawUntilClosed } from "./raw-client.ts";

let upstream: ScriptedUpstream;
let server: TestServer;

beforeAll(async () => {
  upstream = await startUpstream();
  server = await startHeadrace({ yaml: upstreamYaml(upstream) });
});

beforeEach(() => {
  upstream.requests.length = 0;
});

afterAll(async () => {
  await server[Symbol.asyncDispose]();
  await upstream[Symbol.asyncDispose]();
});

const body = '{"model":"upstream-model","messages":[{"role":"user","content":"Hi"}]}';
const size = body.length.toString(16);
const chunked = `${size}\r\n${body}\r\n0\r\n\r\n`;
/** What an attacker would like to see taken for a request of its own. */
const hidden = () => post(["Content-Length: 70"], body);

function post(headers: readonly string[], content: string, version = "1.1"): string {
  return (
    head(`POST /v1/chat/completions HTTP/${version}`, [
      "Host: 127.0.0.1",
      `Authorization: Bearer ${server.key}`,
      "Content-Type: application/json",
      ...headers,
    ]) + content
  );
}

// hardening: F14
describe("an ambiguous request length ends the connection with 400", () => {
  const length = `Content-Length: ${body.length}`;
  test.each([
    ["Content-Length and Transfer-Encoding", [length, "Transfer-Encoding: chunked"], chunked],
    ["Transfer-Encoding and Content-Length", ["Transfer-Encoding: chunked", length], chunked],
    ["Transfer-Encoding and a length of 0", ["Transfer-Encoding: chunked", "Content-Length: 0"], chunked],
    ["two different lengths", [length, "Content-Length: 5"], body],
    ["two different lengths, the other way", ["Content-Length: 5", length], body],
    ["a list of different lengths", [`Content-Length: ${body.length}, 5`], body],
    ["a list of equal lengths", [`Content-Length: ${body.length}, ${body.length}`], body],
    ["a length with a plus", [`Content-Length: +${body.length}`], body],
    ["a negative length", ["Content-Length: -1"], body],
    ["a hexadecimal length", ["Content-Length: 0x46"], body],
    ["a length beyond 64 bits", ["Content-Length: 99999999999999999999"], body],
    ["a length that is text", ["Content-Length: seventy"], body],
    ["a blank before the colon of the length", [`Content-Length : ${body.length}`], body],
    ["a blank before the colon of the encoding", ["Transfer-Encoding : chunked"], chunked],
    ["an unknown encoding", ["Transfer-Encoding: xchunked"], chunked],
    ["gzip and chunked", ["Transfer-Encoding: gzip, chunked"], chunked],
    ["chunked and identity", ["Transfer-Encoding: chunked, identity"], chunked],
    ["chunked twice", ["Transfer-Encoding: chunked", "Transfer-Encoding: chunked"], chunked],
    ["the encoding identity", ["Transfer-Encoding: identity"], body],
    ["a chunk size that is no number", ["Transfer-Encoding: chunked"], `zz\r\n${body}\r\n0\r\n\r\n`],
    ["a negative chunk size", ["Transfer-Encoding: chunked"], `-1\r\n${body}\r\n0\r\n\r\n`],
    ["a chunk size beyond 64 bits", ["Transfer-Encoding: chunked"], `ffffffffffffffffff\r\n${body}\r\n0\r\n\r\n`],
    ["a chunk size in 0x notation", ["Transfer-Encoding: chunked"], `0x${size}\r\n${body}\r\n0\r\n\r\n`],
    ["a chunk longer than it says", ["Transfer-Encoding: chunked"], `${size}\r\n${body}XX0\r\n\r\n`],
    ["a chunk extension without a name", ["Transfer-Encoding: chunked"], `${size};\r\n${body}\r\n0\r\n\r\n`],
    ["a bare CR behind a chunk size", ["Transfer-Encoding: chunked"], `${size}\r${body}\r\n0\r\n\r\n`],
    ["a line feed within a chunk extension", ["Transfer-Encoding: chunked"], `${size};a\n${body}\r\n0\r\n\r\n`],
    ["blanks behind a chunk size", ["Transfer-Encoding: chunked"], `${size}  \r\n${body}\r\n0\r\n\r\n`],
    ["a chunk size that is missing", ["Transfer-Encoding: chunked"], `;a\r\n${body}\r\n0\r\n\r\n`],
    ["trailers with a bare line feed", ["Transfer-Encoding: chunked"], `${size}\r\n${body}\r\n0\r\nA: b\n\r\n`],
    [
      "no final empty line but another request",
      ["Transfer-Encoding: chunked"],
      `${size}\r\n${body}\r\n0\r\nGET / HTTP/1.1\r\n\r\n`,
    ],
    ["a length of nothing", ["Content-Length:"], body],
    ["a length with a decimal", [`Content-Length: ${body.length}.0`], body],
    ["a length with a blank in it", ["Content-Length: 7 0"], body],
    ["an encoding of nothing", ["Transfer-Encoding:"], chunked],
    ["an encoding with a parameter", ["Transfer-Encoding: chunked;q=1"], chunked],
    ["an encoding in quotes", ['Transfer-Encoding: "chunked"'], chunked],
    ["an encoding with a vertical tab", ["Transfer-Encoding: \x0bchunked"], chunked],
    ["two encodings, one of them empty", ["Transfer-Encoding: chunked", "Transfer-Encoding:"], chunked],
    ["a length hidden behind a folded line", [`X: y\r\n Content-Length: ${body.length}`, "Content-Length: 5"], body],
    ["a length behind a bare CR", [`X: y\rContent-Length: ${body.length}`, "Content-Length: 5"], body],
    ["two hosts", [length, "Host: elsewhere.example"], body],
    ["chunks ended by bare line feeds", ["Transfer-Encoding: chunked"], `${size}\n${body}\n0\n\n`],
  ])("%s", async (_name, headers, content) => {
    const { answers, closed } = await rawUntilClosed(server.url, post(headers, content) + hidden());
    expect(answers.map((answer) => answer.status)).toEqual([400]);
    expect(closed).toBe(true);
    expect(upstream.requests).toHaveLength(0);
  });

  test("refuses a chunked request in HTTP/1.0 with 400", async () => {
    const { answers, closed } = await rawUntilClosed(
      server.url,
      post(["Transfer-Encoding: chunked"], chunked, "1.0") + hidden(),
    );
    expect(answers.map((answer) => answer.status)).toEqual([400]);
    expect(closed).toBe(true);
    expect(upstream.requests).toHaveLength(0);
  });
});

// hardening: F14
describe("a malformed head ends the connection with 4xx or 505", () => {
  const withHeader = (line: string) => head("GET /v1/models HTTP/1.1", ["Host: 127.0.0.1", line]);
  test.each([
    ["a folded header", withHeader("X-A: b\r\n\tc: d")],
    ["a header without colon", withHeader("garbage")],
    ["a header without name", withHeader(": x")],
    ["a header name with a blank", withHeader("X A: b")],
    ["a bare CR in a value", withHeader("X-A: b\rX-Forwarded-For: 1")],
    ["a NUL in a value", withHeader("X-A: b\0c")],
    ["a NUL in the path", head("GET /v1/mod\0els HTTP/1.1", ["Host: 127.0.0.1"])],
    ["a blank in the path", head("GET /v1/ models HTTP/1.1", ["Host: 127.0.0.1"])],
    ["a control character in the path", head("GET /v1/\x01models HTTP/1.1", ["Host: 127.0.0.1"])],
    ["bare line feeds", "GET /v1/models HTTP/1.1\nHost: 127.0.0.1\n\n"],
    ["a path without a slash", head("GET v1/models HTTP/1.1", ["Host: 127.0.0.1"])],
    ["an asterisk", head("GET * HTTP/1.1", ["Host: 127.0.0.1"])],
    ["HTTP/2.0", head("GET /v1/models HTTP/2.0", ["Host: 127.0.0.1"])],
    ["HTTP/9.9", head("GET /v1/models HTTP/9.9", ["Host: 127.0.0.1"])],
    ["no version", "GET /v1/models\r\n\r\n"],
    ["a TLS hello", `\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03${"x".repeat(200)}\r\n\r\n`],
    ["the HTTP/2 preface", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"],
    ["100 kB in one header", withHeader(`X-A: ${"b".repeat(100_000)}`)],
    ["1,000 headers", withHeader(Array.from({ length: 1000 }, (_, i) => `X-${i}: b`).join("\r\n"))],
    ["100 kB of path", head(`GET /${"b".repeat(100_000)} HTTP/1.1`, ["Host: 127.0.0.1"])],
  ])("%s", async (_name, bytes) => {
    const { answers, closed } = await rawUntilClosed(server.url, bytes + hidden());
    expect(answers.length).toBeLessThanOrEqual(1);
    const status = answers[0]?.status;
    if (status !== undefined) expect((status >= 400 && status < 500) || status === 505).toBe(true);
    expect(closed).toBe(true);
    expect(upstream.requests).toHaveLength(0);
  });
});

// hardening: F14
describe("an invalid host ends the connection with 400", () => {
  const asking = (host: string, target = "/v1/chat/completions") =>
    head(`POST ${target} HTTP/1.1`, [
      ...(host === "" ? [] : [host]),
      `Authorization: Bearer ${server.key}`,
      "Content-Type: application/json",
      `Content-Length: ${body.length}`,
    ]) + body;

  test.each([
    ["none", ""],
    ["twice", "Host: 127.0.0.1\r\nHost: 127.0.0.1"],
    ["a list", "Host: 127.0.0.1, elsewhere.example"],
    ["a blank", "Host: 127.0.0.1 elsewhere.example"],
    ["a path", "Host: 127.0.0.1/v1"],
    ["a query", "Host: 127.0.0.1?x"],
    ["a user", "Host: user@127.0.0.1"],
    ["a backslash", "Host: 127.0.0.1\\elsewhere.example"],
    ["quotes", 'Host: "127.0.0.1"'],
    ["a tab", "Host: 127.0.0.1\telsewhere.example"],
    ["bytes beyond ASCII", "Host: 127.0.0.1\xe9"],
    ["a blank before the colon", "Host : 127.0.0.1"],
  ])("%s", async (_name, host) => {
    const { answers, closed } = await rawUntilClosed(server.url, asking(host) + hidden());
    expect(answers.map((answer) => answer.status)).toEqual([400]);
    expect(closed).toBe(true);
    expect(upstream.requests).toHaveLength(0);
  });

  // RFC 9112, 3.2.2: a server has to take the whole URL. What it names is a host as any other, to which a key of
  // development belongs only where that is this machine.
  // hardening: F17
  test.each([
    ["http://127.0.0.1", 1],
    ["http://elsewhere.example", 0],
    ["HTTPS://user:pass@elsewhere.example:1", 0],
  ])(
    "serves a target at %s as its path with the configured model server (%d times), or refuses it",
    async (origin, times) => {
      const { answers } = await raw(server.url, asking("Host: 127.0.0.1", `${origin}/v1/chat/completions`));
      expect(answers.map(({ status }) => status)).toEqual([times === 1 ? 200 : 401]);
      expect(upstream.requests.map(({ path, text }) => [path, text])).toEqual(
        Array(times).fill(["/v1/chat/completions", body]),
      );
    },
  );

  // hardening: F17
  test.each([
    "ftp://127.0.0.1/v1/chat/completions",
    "127.0.0.1:80",
    "http:/v1/chat/completions",
    "//127.0.0.1/v1/chat/completions",
    "/v1//chat/completions",
    "/v1/chat/completions/../completions",
  ])("sends a target %s to no model server", async (target) => {
    const { answers } = await raw(server.url, asking("Host: 127.0.0.1", target));
    expect([400, 404, 405]).toContain(answers[0]?.status as number);
    expect(upstream.requests).toHaveLength(0);
  });
});

describe("unusual but unambiguous requests", () => {
  // hardening: F14
  test.each([
    ["a length twice, the same", [`Content-Length: ${body.length}`, `Content-Length: ${body.length}`], body],
    ["a chunk extension", ["Transfer-Encoding: chunked"], `${size};a=b\r\n${body}\r\n0\r\n\r\n`],
    ["many chunks", ["Transfer-Encoding: chunked"], `${[...body].map((c) => `1\r\n${c}\r\n`).join("")}0\r\n\r\n`],
    ["a tab before the encoding", ["Transfer-Encoding:\tchunked"], chunked],
    ["CHUNKED in capitals", ["Transfer-Encoding: CHUNKED"], chunked],
    ["leading zeros in a chunk size", ["Transfer-Encoding: chunked"], `000${size}\r\n${body}\r\n0\r\n\r\n`],
  ])("reads %s as one request, or refuses it", async (_name, headers, content) => {
    const { answers } = await raw(server.url, post(headers, content));
    expect([200, 400]).toContain(answers[0]?.status as number);
    expect(upstream.requests.length).toBe(answers[0]?.status === 200 ? 1 : 0);
    if (upstream.requests[0]) expect(upstream.requests[0].text).toBe(body);
  });

  // hardening: F14
  test("never reads trailing bytes into a request, and passes exactly the body to the model server", async () => {
    const { answers } = await rawUntilClosed(
      server.url,
      `${post([`Content-Length: ${body.length}`], body)}GARBAGE\r\n\r\n`,
      1_000,
    );
    expect(answers.filter((answer) => answer.status === 200).length).toBeLessThanOrEqual(1);
    expect(upstream.requests.length).toBeLessThanOrEqual(1);
    for (const request of upstream.requests) expect(request.text).toBe(body);
  });

  // hardening: F14
  test("never mixes a pipelined request into the previous one", async () => {
    await rawUntilClosed(server.url, post([`Content-Length: ${body.length}`], body) + hidden(), 500);
    expect(upstream.requests.length).toBeLessThanOrEqual(2);
    for (const request of upstream.requests) expect(request.text).toBe(body);
  });

  test("serves the next request on a connection that stays open after a refusal", async () => {
    const connection = await openRaw(server.url);
    await connection.write(post(["Content-Length: 5"], "{bad}"));
    const first = await connection.answered(1);
    expect(first.answers[0]?.status).toBe(400);
    await connection.write(post([`Content-Length: ${body.length}`], body));
    const second = await connection.answered(2);
    connection.socket.destroy();
    expect(second.answers[1]?.status).toBe(200);
    expect(upstream.requests.map((request) => request.text)).toEqual([body]);
  });

  test("ignores or refuses trailers without adding headers", async () => {
    const trailers = `${size}\r\n${body}\r\n0\r\nAuthorization: Bearer other\r\nX-Forwarded-For: 1.2.3.4\r\n\r\n`;
    await raw(server.url, post(["Transfer-Encoding: chunked"], trailers));
    for (const request of upstream.requests) expect(request.headers.authorization).not.toContain("other");
    expect(upstream.requests.length).toBeLessThanOrEqual(1);
  });

  test("answers Expect: 100-continue so that clients send their body at once", async () => {
    const connection = await openRaw(server.url);
    await connection.write(post([`Content-Length: ${body.length}`, "Expect: 100-continue"], ""));
    await until(async () => (await connection.answered(1, 10)).text.startsWith("HTTP/1.1 100 "), "100 Continue", 2_000);
    await connection.write(body);
    const { answers } = await connection.answered(1);
    connection.socket.destroy();
    expect(answers[0]?.status).toBe(200);
  });

  // hardening: F14
  test("sends no client header to the model server, hop-by-hop or not", async () => {
    await raw(
      server.url,
      post(
        [
          `Content-Length: ${body.length}`,
          "Connection: close, X-Injected",
          "X-Injected: 1",
          "TE: trailers",
          "Keep-Alive: timeout=1",
          "Proxy-Authorization: Basic eDp5",
          "Cookie: a=b",
          "Accept-Encoding: gzip",
          "User-Agent: attacker",
          "OpenAI-Organization: org",
        ],
        body,
      ),
    );
    const headers = upstream.requests[0]?.headers ?? {};
    expect(Object.keys(headers).sort()).toEqual([
      "accept",
      "accept-encoding",
      "authorization",
      "connection",
      "content-length",
      "content-type",
      "host",
      "user-agent",
      "x-request-id",
    ]);
    expect(headers["user-agent"]).toBe("headrace");
    expect(headers["accept-encoding"]).toBe("identity");
  });
});

// hardening: F14
test("lets no client field become a header or a second log line", async () => {
  const nasty = 'a\r\nx-injected: 1\r\n\r\n{"time":"forged"}';
  const response = await server.request("/v1/chat/completions", {
    body: { model: nasty.slice(0, 200), messages: [{ role: "user", content: "x" }] },
  });
  expect(response.status).toBe(404);
  expect(response.headers.get("x-injected")).toBeNull();
  for (const line of server.logText().split("\n").filter(Boolean)) expect(JSON.parse(line)["time"]).not.toBe("forged");
});
