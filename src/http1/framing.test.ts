// A message is refused unless the end of its body is certain.
import { describe, expect, test } from "bun:test";
import { keepsAlive, requestFraming, responseFraming } from "./framing.ts";
import { HeadError, parseRequestHead, parseResponseHead } from "./head.ts";

const request = (fields: string[], version = "1.1") =>
  parseRequestHead([`POST / HTTP/${version}`, ...fields].join("\r\n"));
const response = (status: number, fields: string[], version = "1.1") =>
  parseResponseHead([`HTTP/${version} ${status} X`, ...fields].join("\r\n"));

describe("framing of requests", () => {
  test("reads a request without a body, with a length, or in chunks", () => {
    expect(requestFraming(request(["Host: h"]))).toEqual({ kind: "none" });
    expect(requestFraming(request(["Host: h", "Content-Length: 0"]))).toEqual({ kind: "none" });
    expect(requestFraming(request(["Host: h", "Content-Length: 00012"]))).toEqual({ kind: "length", length: 12 });
    expect(requestFraming(request(["Host: h", "Content-Length: 9007199254740991"]))).toEqual({
      kind: "length",
      length: Number.MAX_SAFE_INTEGER,
    });
    expect(requestFraming(request(["Host: h", "Transfer-Encoding:\tCHUNKED "]))).toEqual({ kind: "chunked" });
  });

  test.each([
    [["Content-Length: 5", "Content-Length: 5"]],
    [["Content-Length: 5", "Content-Length: 6"]],
    [["Content-Length: 5, 5"]],
    [["Content-Length: +5"]],
    [["Content-Length: -5"]],
    [["Content-Length: 0x5"]],
    [["Content-Length: 5.0"]],
    [["Content-Length: 5 5"]],
    [["Content-Length:"]],
    [["Content-Length: \xb2"]],
    [["Content-Length: 9007199254740992"]],
    [["Content-Length: 00000000000000005"]],
    [["Content-Length: 5", "Transfer-Encoding: chunked"]],
    [["Transfer-Encoding: chunked", "Content-Length: 0"]],
    [["Transfer-Encoding: identity"]],
    [["Transfer-Encoding:"]],
    [["Transfer-Encoding: gzip, chunked"]],
    [["Transfer-Encoding: chunked, chunked"]],
    [["Transfer-Encoding: chunked", "Transfer-Encoding: chunked"]],
    [["Transfer-Encoding: chunked;a=b"]],
    [['Transfer-Encoding: "chunked"']],
    [["Transfer-Encoding: \x0bchunked".replace("\x0b", "\xa0")]],
  ])("refuses a request with %j with 400", (fields) => {
    expect(() => requestFraming(request(["Host: h", ...fields]))).toThrow(HeadError);
    expect(() => responseFraming(response(200, fields), "POST")).toThrow(HeadError);
  });

  test("refuses chunks in an HTTP/1.0 request", () => {
    expect(() => requestFraming(request(["Transfer-Encoding: chunked"], "1.0"))).toThrow(HeadError);
  });

  test("requires exactly one host, except in HTTP/1.0", () => {
    for (const host of ["h", "h:80", "[::1]:80", "", "a.b-c_d"]) {
      expect(requestFraming(request([`Host: ${host}`]))).toEqual({ kind: "none" });
    }
    for (const fields of [[], ["Host: a", "Host: a"], ["Host: a, b"], ["Host: a b"], ["Host: a/b"], ["Host: u@a"]]) {
      expect(() => requestFraming(request(fields))).toThrow(HeadError);
    }
    expect(requestFraming(request([], "1.0"))).toEqual({ kind: "none" });
    expect(() => requestFraming(request(["Host: a", "Host: a"], "1.0"))).toThrow(HeadError);
  });
});

describe("framing of responses", () => {
  test("reads no body of a response to HEAD and of 204 and 304, whatever it announces", () => {
    for (const [status, method] of [
      [200, "HEAD"],
      [204, "POST"],
      [304, "GET"],
    ] as const) {
      expect(responseFraming(response(status, ["Content-Length: 5"]), method)).toEqual({ kind: "none" });
      expect(responseFraming(response(status, ["Transfer-Encoding: chunked"]), method)).toEqual({ kind: "none" });
    }
  });

  test("ends a response without framing with its connection", () => {
    expect(responseFraming(response(200, []), "POST")).toEqual({ kind: "close" });
    expect(responseFraming(response(200, ["Content-Length: 0"]), "POST")).toEqual({ kind: "none" });
  });
});

test.each([
  ["1.1", [], true],
  ["1.1", ["Connection: close"], false],
  ["1.1", ["Connection: Keep-Alive, CLOSE"], false],
  ["1.1", ["Connection: x", "Connection: close"], false],
  ["1.1", ["Connection: upgrade"], true],
  ["1.1", ["Connection: closed"], true],
  ["1.0", [], false],
  ["1.0", ["Connection: keep-alive"], true],
  ["1.0", ["Connection: Keep-Alive"], true],
  ["1.0", ["Connection: keep-alive, close"], false],
  ["1.0", ["Connection: x"], false],
])("decides whether HTTP/%s with %j keeps the connection: %p", (version, fields, expected) => {
  expect(keepsAlive(response(200, fields, version))).toBe(expected);
  expect(keepsAlive(request(fields, version))).toBe(expected);
});
