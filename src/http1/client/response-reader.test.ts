// The data of a chunked body, for every split of its bytes.
import { expect, test } from "bun:test";
import fc from "fast-check";
import { HeadError } from "../head.ts";
import { ResponseReader } from "./response-reader.ts";

const head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";

interface Reading {
  /** The data of each read, in the order of reads. */
  given: string[];
  complete: boolean;
  fault: string | undefined;
}

/** Returns what the reader delivers of `pieces`, each of which is one read. */
function readingOf(pieces: readonly string[]): Reading {
  const reader = new ResponseReader();
  const reading: Reading = { given: [], complete: false, fault: undefined };
  const taker = {
    method: "POST",
    answered() {},
    data: (bytes: Buffer, start: number, end: number) => void reading.given.push(bytes.toString("latin1", start, end)),
  };
  try {
    for (const piece of pieces) {
      if (!reading.complete && piece !== "") reading.complete = reader.read(Buffer.from(piece, "latin1"), taker);
    }
  } catch (error) {
    if (!(error instanceof HeadError)) throw error;
    reading.fault = error.message;
  }
  return reading;
}

test("delivers all chunks of one read as one piece", () => {
  const first = "1\r\na\r\n3;x=y\r\nbcd\r\n0A\r\nefghijklmn\r\n2\r\no";
  expect(readingOf([head + first, "p\r\n1\r\nq\r\n0\r\n\r\n"])).toEqual({
    given: ["abcdefghijklmno", "pq"],
    complete: true,
    fault: undefined,
  });
});

test("delivers chunks that arrive singly one by one, and still finds malformed ones", () => {
  const reading = readingOf([head, "1\r\na\r\n", "00A\r\nbcdefghijk\r\n", "3\r\nl", "mn\r\n", "1\r\no\r\n0\r\n\r\n"]);
  expect(reading).toEqual({ given: ["a", "bcdefghijk", "l", "mn", "o"], complete: true, fault: undefined });
  const wrong = ["2\r\nabc\r\n", "1\r\na\rX", "-1\r\na\r\n", "1 \r\na\r\n"];
  const wrongEnds = ["8\r\n12345678XX", "8\r\n12345678\rX", "8\r\n12345678X\n", "7\r\n12345678\r\n"];
  for (const bytes of [...wrong, ...wrongEnds]) {
    expect(readingOf([head, "1\r\na\r\n", bytes, "1\r\nb\r\n"]).fault).toBeString();
  }
});

test("does not mistake data for a chunk within a size or another chunk", () => {
  const like = "8\r\n12345678\r\n";
  expect(readingOf([head, "1", like, `${"x".repeat(14)}\r\n`, "0\r\n\r\n"])).toEqual({
    given: ["12345678\r\n", "x".repeat(14)],
    complete: true,
    fault: undefined,
  });
  expect(readingOf([head, "14\r\nabc", like, "wxyz\r\n", "0\r\n\r\n"])).toEqual({
    given: ["abc", like, "wxyz"],
    complete: true,
    fault: undefined,
  });
});

test("separates a chunked answer from the next one", () => {
  const reader = new ResponseReader();
  const given: string[] = [];
  const taker = {
    method: "POST",
    answered() {},
    data: (bytes: Buffer, start: number, end: number) => void given.push(bytes.toString("latin1", start, end)),
  };
  const read = (text: string) => reader.read(Buffer.from(text), taker);
  expect([read(`${head}1\r\na\r\n`), read("0\r\n\r\n")]).toEqual([false, true]);
  reader.next();
  // A body of known length that looks like a chunk.
  expect(read("HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n1\r\nb\r\n")).toBe(true);
  expect(given).toEqual(["a", "1\r\nb\r\n"]);
});

const sizeLine = fc.constantFrom(
  (size: string) => size,
  (size: string) => `000${size}`,
  (size: string) => `${size};a`,
);
const chunk = fc
  .tuple(fc.string({ unit: "binary-ascii", minLength: 1, maxLength: 40 }), sizeLine)
  .map(([data, line]) => `${line(data.length.toString(16))}\r\n${data}\r\n`);
const broken = fc.constantFrom(
  "",
  "0",
  "X\r\n",
  "1\r\nab\r\n",
  "\r\n",
  "1\n",
  "fffffffffffff\r\n",
  "1\r\na\rX",
  "1\r\na\n",
  "2\rXabcdefgh",
);

test("reads a body alike for every split of its bytes, including its end or fault", () => {
  const body = fc.tuple(fc.array(chunk, { maxLength: 6 }), fc.oneof(fc.constant("0\r\n\r\n"), broken));
  fc.assert(
    fc.property(body, fc.array(fc.nat(300), { maxLength: 4 }), ([chunks, last], cuts) => {
      const bytes = chunks.join("") + last;
      const places = [0, ...cuts.filter((at) => at < bytes.length).sort((a, b) => a - b), bytes.length];
      const pieces = places.slice(1).map((to, index) => bytes.slice(places[index], to));
      const byteByByte = readingOf([head, ...bytes]);
      const whole = { ...byteByByte, given: byteByByte.given.join("") };
      for (const reading of [readingOf([head + bytes]), readingOf([head, ...pieces])]) {
        expect({ ...reading, given: reading.given.join("") }).toEqual(whole);
      }
    }),
    { numRuns: 500 },
  );
});

test.each([
  ["HTTP/1.1 200 OK\nContent", "CRLF"],
  ["HTTP/1.1 200 OK\r\nA: b\n", "CRLF"],
  ["HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\n", "CRLF"],
  ["SSH-2.0-OpenSSH_9.9\r\n", "must begin"],
  ["HTTP/2", "must begin"],
  ["\n", "must begin"],
  ["\x15\x03\x01\0\x02\x02\x16", "must begin"],
])("refuses an answer that begins with %j at once, however it is cut", (bytes, reason) => {
  expect(readingOf([bytes]).fault).toContain(reason);
  expect(readingOf([...bytes]).fault).toContain(reason);
});

test("reads a response head that is cut between CR and LF", () => {
  const bytes = "HTTP/1.1 103 Early Hints\r\nA: b\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx";
  expect(readingOf([...bytes])).toEqual({ given: ["x"], complete: true, fault: undefined });
});
