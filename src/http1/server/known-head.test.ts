// Heads that are recognized by their bytes give the same result as heads that are parsed.
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { ResponseReader, type ResponseTaker } from "../client/response-reader.ts";
import { HeadError, type ResponseHead } from "../head.ts";
import { ConnectionBody } from "./connection-body.ts";
import { ConnectionInput } from "./connection-input.ts";
import type { ReadRequest } from "./read-request.ts";
import { defaultLimits, type Http1Limits } from "./server-limits.ts";

const limits: Http1Limits = { ...defaultLimits(), headBytes: 400, requestLineBytes: 200 };

/** Returns all fields of the parsed request, or the error that refuses it. */
function readHead(input: ConnectionInput, pieces: readonly Buffer[]): unknown {
  let read: ReadRequest | undefined;
  try {
    for (const piece of pieces) {
      input.append(piece, 0);
      read = input.take();
      if (read) break;
    }
  } catch (error) {
    if (!(error instanceof HeadError)) throw error;
    return [error.status, error.message];
  }
  if (!read) return "incomplete";
  const { method, target, version, headers } = read.head;
  const fields = [...headers.keys()].map((name) => [name, headers.get(name), headers.get(name), headers.has(name)]);
  const { bodyLength, keepsAlive, expectsContinue } = read;
  const { body } = input;
  const bytes = body instanceof ConnectionBody ? [body.complete, body.receivedBytes] : body?.view;
  return { method, target, version, fields, bodyLength, keepsAlive, expectsContinue, bytes, left: input.length };
}

const line = fc.constantFrom(
  ...["Content-Length: 5", "content-length:0", "Content-Length: 12 ", "Content-Length: 012", "CONTENT-LENGTH:\t5"],
  ...[
    "Content-Length: 99999999999999999",
    "Content-Length: 5x",
    "Content-Length: ",
    "Content-Length: 9007199254740993",
  ],
  ...[
    "Content-Length: 4, 4",
    "X-Content-Length: 7",
    "X: content-length: 8",
    "Transfer-Encoding: chunked",
    "X: 1",
    "X: 2",
  ],
  ...["Authorization: Bearer a", "Authorization: Bearer b", "Connection: close", "Expect: 100-continue", "Expect: 1"],
  ...["Connection: keep-alive", "Bad Name: 1", "X: \x01", `Long: ${"x".repeat(300)}`],
);
const length = fc.constantFrom(
  "5",
  "5",
  "12",
  "0",
  "05",
  "",
  "5x",
  "9007199254740993",
  "99999999999999999",
  "0000000000000005",
  "00000000000000005",
);
const request = fc
  .record({
    first: fc.constantFrom(
      "POST / HTTP/1.1",
      "POST / HTTP/1.1",
      "GET /a HTTP/1.1",
      "POST / HTTP/1.0",
      "\r\nPOST / HTTP/1.1",
    ),
    lines: fc.oneof(
      length.map((digits) => [`Content-Length: ${digits}`, "X: 1"]),
      fc.array(line, { maxLength: 4 }),
    ),
    body: fc.constantFrom("", "12345", "123456789012", "12345GET / HTTP/1.1\r\n", "0\r\n\r\n"),
    split: fc.option(fc.double({ min: 0, max: 1, noNaN: true })),
  })
  .map(({ first, lines, body, split }) => {
    const bytes = Buffer.from(`${[first, "Host: x", ...lines].join("\r\n")}\r\n\r\n${body}`, "latin1");
    if (split === null) return [bytes];
    const at = Math.floor(split * bytes.length);
    return [bytes.subarray(0, at), bytes.subarray(at)];
  });

/** Returns the head and body of the answer, or its error. */
function given(reader: ResponseReader, method: string, pieces: readonly Buffer[]): unknown {
  let head: ResponseHead | undefined;
  let body = "";
  const taker: ResponseTaker = {
    method,
    answered(answered) {
      head = answered;
    },
    data(bytes, start, end) {
      body += bytes.toString("latin1", start, end);
    },
  };
  let complete = false;
  try {
    for (const piece of pieces) if (!complete && piece.length > 0) complete = reader.read(piece, taker);
  } catch (error) {
    if (!(error instanceof HeadError)) throw error;
    return [error.status, error.message, body];
  }
  const { overrun, endsWithConnection, answer } = reader;
  const { status, version, headers } = head ?? {};
  const fields = [...(headers?.keys() ?? [])].map((name) => [name, headers?.get(name), headers?.get(name)]);
  const { keepsConnection, announcedMs } = answer ?? {};
  if (complete) reader.next();
  return { status, version, fields, body, complete, overrun, endsWithConnection, keepsConnection, announcedMs };
}

const answerLine = fc.oneof(
  line,
  fc.constantFrom("Keep-Alive: timeout=5", "Keep-Alive: timeout=7", "Transfer-Encoding: chunked", "Date: a", "Date: b"),
);
const answer = fc
  .record({
    method: fc.constantFrom("POST", "POST", "POST", "GET", "HEAD"),
    first: fc.constantFrom(
      ...["HTTP/1.1 200 OK", "HTTP/1.1 200 OK", "HTTP/1.1 200 OK", "HTTP/1.0 200 OK", "HTTP/1.1 204 None"],
      ...["HTTP/1.1 304 Same", "HTTP/1.1 100 Go on\r\n\r\nHTTP/1.1 200 OK", "HTTP/1.1 500 No"],
    ),
    lines: fc.oneof(
      length.map((digits) => [`Content-Length: ${digits}`, "X: 1"]),
      fc.array(answerLine, { maxLength: 4 }),
    ),
    body: fc.constantFrom("", "12345", "123456789012", "5\r\n12345\r\n0\r\n\r\n", "0\r\n\r\n"),
    split: fc.option(fc.double({ min: 0, max: 1, noNaN: true })),
  })
  .map(({ method, first, lines, body, split }) => {
    const bytes = Buffer.from(`${[first, ...lines].join("\r\n")}\r\n\r\n${body}`, "latin1");
    const at = split === null ? bytes.length : Math.floor(split * bytes.length);
    return { method, pieces: [bytes.subarray(0, at), bytes.subarray(at)] };
  });

test("parses answers on one connection like answers on separate connections", () => {
  const answers = fc.array(fc.tuple(answer, fc.integer({ min: 1, max: 4 })), { minLength: 1, maxLength: 8 });
  fc.assert(
    fc.property(answers, (each) => {
      let reader = new ResponseReader();
      for (const [{ method, pieces }, times] of each) {
        for (let time = 0; time < times; time++) {
          const alone = given(new ResponseReader(), method, pieces);
          expect(given(reader, method, pieces)).toEqual(alone);
          // The client would not reuse the connection after such an answer, so the next answer has a new reader.
          if (reader.answer || !isComplete(alone)) reader = new ResponseReader();
        }
      }
    }),
    { numRuns: 1_000 },
  );
});

test("does not recognize a known head in the middle of another", () => {
  const known = Buffer.from("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na");
  const pieces = [Buffer.from("HTTP/1.1 200 OK\r\nContent-Length: 0\r\nX: "), known];
  const reader = new ResponseReader();
  for (let time = 0; time < 5; time++) expect(given(reader, "POST", [known])).toMatchObject({ complete: true });
  expect(given(reader, "POST", pieces)).toEqual(given(new ResponseReader(), "POST", pieces));
});

const isComplete = (readHead: unknown) => (readHead as { complete?: boolean }).complete === true;

describe("requests on one connection", () => {
  test("parses requests on one connection like requests on separate connections", () => {
    const requests = fc.array(fc.tuple(request, fc.integer({ min: 1, max: 4 })), { minLength: 1, maxLength: 8 });
    fc.assert(
      fc.property(requests, (each) => {
        let input = new ConnectionInput(limits);
        for (const [pieces, times] of each) {
          for (let time = 0; time < times; time++) {
            expect(readHead(input, pieces)).toEqual(readHead(new ConnectionInput(limits), pieces));
            // Bytes that remain after a request or a refusal must not become part of the next request.
            if (input.length > 0) input = new ConnectionInput(limits);
          }
        }
      }),
      { numRuns: 1_000 },
    );
  });

  test("accepts different lengths of similar requests, up to the limit", () => {
    const input = new ConnectionInput(limits);
    const fill = "x".repeat(limits.headBytes - "POST / HTTP/1.1\r\nHost: x\r\nX: \r\nContent-Length: 5\r\n\r\n".length);
    const post = (length: number) =>
      Buffer.from(`POST / HTTP/1.1\r\nHost: x\r\nX: ${fill}\r\nContent-Length: ${length}\r\n\r\n${"b".repeat(length)}`);
    for (let time = 0; time < 5; time++)
      expect(readHead(input, [post(time + 3)])).toMatchObject({ bodyLength: time + 3 });
    expect(readHead(input, [post(10)])).toEqual([431, "The head of a request must be at most 400 bytes."]);
  });

  /**
   * Reads a request three times over one connection, and returns the second and the third result: the third is a
   * remembered one if the connection remembers such requests.
   */
  function readThrice(input: ConnectionInput, text: string): [ReadRequest, ReadRequest] {
    const wire = Buffer.from(text);
    const [, second, third] = [1, 2, 3].map(() => {
      input.append(wire, 0);
      return input.take() as ReadRequest;
    });
    return [second as ReadRequest, third as ReadRequest];
  }

  test("reuses the objects of equal requests, and forgets them with the last connection", async () => {
    const reads: WeakRef<ReadRequest>[] = [];
    const gone: ConnectionInput[] = [];
    for (let index = 0; index < 50; index++) {
      const text = `GET / HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${crypto.randomUUID()}\r\n\r\n`;
      const inputs = [new ConnectionInput(limits), new ConnectionInput(limits)];
      const known = inputs.map((input) => readThrice(input, text)[1]);
      expect(known[0]).toBe(known[1] as ReadRequest);
      reads.push(new WeakRef(known[0] as ReadRequest));
      for (const input of inputs) input.clear();
      gone.push(...inputs);
    }
    await Bun.sleep(0);
    Bun.gc(true);
    // A few may still be referenced from the stack.
    expect(reads.filter((read) => read.deref()).length).toBeLessThan(10);
    expect(gone.every((input) => input.length === 0)).toBe(true);
  });

  test("remembers requests of up to 2 KB for their connections", () => {
    const get = (size: number) => `GET / HTTP/1.1\r\nHost: x\r\nX: ${"x".repeat(size)}\r\n\r\n`;
    for (const [size, isKept] of [
      [1_900, true],
      [2_100, false],
    ] as const) {
      const [second, third] = readThrice(new ConnectionInput(defaultLimits()), get(size));
      expect(second === third).toBe(isKept);
    }
  });
});
