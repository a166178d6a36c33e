// Heads that are valid are read exactly; heads that two parsers might read differently are refused.
import { describe, expect, test } from "bun:test";
import { HeadError, maxFieldLines, parseRequestHead, parseResponseHead } from "./head.ts";

function refusal(parse: () => unknown): HeadError {
  try {
    parse();
  } catch (error) {
    if (error instanceof HeadError) return error;
    throw error;
  }
  throw new Error("was not refused");
}

const request = (...lines: string[]) => parseRequestHead(["GET / HTTP/1.1", ...lines].join("\r\n"));

describe("the head of a request", () => {
  test("parses method, target, version and fields, with lower-case names and trimmed values", () => {
    const head = parseRequestHead(
      "POST /v1/x?a=%20b HTTP/1.1\r\nHost: h:1\r\nX-Empty:\r\nX-Tab:\t a b\t \r\nX-ÿ".slice(0, -5),
    );
    expect(head).toMatchObject({ method: "POST", target: "/v1/x?a=%20b", version: "1.1" });
    expect([...head.headers.keys()]).toEqual(["host", "x-empty", "x-tab"]);
    expect(head.headers.get("host")).toBe("h:1");
    expect(head.headers.get("x-empty")).toBe("");
    expect(head.headers.get("x-tab")).toBe("a b");
    expect(head.headers.get("x-other")).toBeNull();
    expect(head.headers.has("x-empty")).toBe(true);
    expect(head.headers.has("x")).toBe(false);
  });

  test("accepts a request without fields, in HTTP/1.0, for * with OPTIONS, or for a whole URL", () => {
    expect(parseRequestHead("GET / HTTP/1.0").version).toBe("1.0");
    expect(parseRequestHead("OPTIONS * HTTP/1.1").target).toBe("*");
    expect(parseRequestHead("GET http://h/x HTTP/1.1").target).toBe("http://h/x");
  });

  test("joins repeated fields in order, whatever the case of their names", () => {
    const { headers } = request("A: 1", "B: x", "a: 2", "A:3");
    expect(headers.get("a")).toBe("1, 2, 3");
    expect([...headers.keys()]).toEqual(["a", "b"]);
  });

  test("accepts bytes from 0x80 on and tabs in field values", () => {
    const bytes = String.fromCharCode(...Array.from({ length: 128 }, (_, index) => 128 + index));
    expect(request(`X: a\tb${bytes}c`).headers.get("x")).toBe(`a\tb${bytes}c`);
  });

  test.each([
    ["", 400],
    ["GET", 400],
    ["GET /", 400],
    ["GET / ", 400],
    ["GET /\r\nHost: h", 400],
    ["GET  / HTTP/1.1", 400],
    ["GET /  HTTP/1.1", 400],
    [" GET / HTTP/1.1", 400],
    ["\r\nGET / HTTP/1.1", 400],
    ["GET\t/ HTTP/1.1", 400],
    ["G@T / HTTP/1.1", 400],
    ["GET /a b HTTP/1.1", 400],
    ["GET /\x7f HTTP/1.1", 400],
    ["GET /ä HTTP/1.1", 400],
    ["GET x HTTP/1.1", 400],
    ["GET * HTTP/1.1", 400],
    ["CONNECT h:1 HTTP/1.1", 400],
    ["GET / http/1.1", 400],
    ["GET / HTTP/1.1 ", 400],
    ["GET / HTTP/1.11", 400],
    ["GET / HTTP/11", 400],
    ["GET / HTTP/2.0", 505],
    ["GET / HTTP/0.9", 505],
    ["PRI * HTTP/2.0", 505],
    ["GET / HTTP/1.1\nHost: h", 400],
    ["GET / HTTP/1.1\rHost: h", 400],
  ])("refuses the request head %j with %d", (text, status) => {
    expect(refusal(() => parseRequestHead(text)).status).toBe(status);
  });

  test.each([
    "X-A : b",
    "X A: b",
    ": b",
    "garbage",
    "",
    " X: folded",
    "\tX: folded",
    "X: b\r\n folded",
    "X: b\r\n\tfolded",
    "X: a\rb",
    "X: a\nb",
    "X: a\0b",
    "X: a\x01b",
    "X: a\x7fb",
    "X: a\r",
    "X: a\r\n",
    "X\0: a",
    "Ä: a",
    "X:a\r\n\r\nY: b",
  ])("refuses the field line %j with 400", (line) => {
    expect(refusal(() => request("Host: h", line)).status).toBe(400);
  });

  test(`accepts at most ${maxFieldLines} fields in a request`, () => {
    const lines = Array.from({ length: maxFieldLines }, (_, index) => `X-${index}: a`);
    expect([...request(...lines).headers.keys()]).toHaveLength(maxFieldLines);
    expect(refusal(() => request(...lines, "Y: b")).status).toBe(431);
  });

  test("names a wrong field and never its value", () => {
    const { message } = refusal(() => request("X-Secret: se\0cret"));
    expect(message).toContain("X-Secret");
    expect(message).not.toContain("cret in");
    expect(message).not.toContain("se\0");
  });
});

describe("the head of a response", () => {
  test("parses status and fields of a response with an empty or missing phrase", () => {
    expect(parseResponseHead("HTTP/1.1 404 Not Found\r\nA: b").status).toBe(404);
    expect(parseResponseHead("HTTP/1.1 200 ").status).toBe(200);
    expect(parseResponseHead("HTTP/1.0 599").version).toBe("1.0");
    expect(parseResponseHead("HTTP/1.1 200 \xe4\t!\r\nA: b").headers.get("a")).toBe("b");
  });

  test.each([
    "",
    "HTTP/1.1",
    "HTTP/1.1 20",
    "HTTP/1.1 2000",
    "HTTP/1.1 099",
    "HTTP/1.1 600",
    "HTTP/1.1  200",
    "HTTP/1.1 +20",
    "HTTP/1.1 2x0",
    "HTTP/1.1\t200 OK",
    "HTTP/2.0 200 OK",
    "ICY 200 OK",
    "HTTP/1.1 200 O\0K",
    "HTTP/1.1 200 OK\nA: b",
    "HTTP/1.1 200 OK\r\nA : b",
    "HTTP/1.1 200 OK\r\nA: b\r\n c",
  ])("refuses the response head %j", (text) => {
    expect(() => parseResponseHead(text)).toThrow(HeadError);
  });
});
