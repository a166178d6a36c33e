// A chunked body decodes alike for every split of its bytes, and ends exactly at its end. Malformed ones are refused.
import { describe, expect, test } from "bun:test";
import { ChunkedDecoder } from "./chunked.ts";
import { HeadError } from "./head.ts";

interface Decoded {
  body: string;
  done: boolean;
  /** Offset behind the last byte that the decoder consumed. */
  taken: number;
}

/** Decodes `text`, given in pieces of `step` bytes. */
function decode(text: string, step = text.length): Decoded {
  const decoder = new ChunkedDecoder();
  const bytes = Buffer.from(text, "latin1");
  let body = "";
  let taken = 0;
  while (taken < bytes.length && !decoder.done) {
    const piece = bytes.subarray(taken, taken + step);
    taken += decoder.push(piece, 0, {
      chunkData: (all, start, end) => {
        body += all.toString("latin1", start, end);
      },
    });
  }
  return { body, done: decoder.done, taken };
}

const valid: [string, string][] = [
  ["0\r\n\r\n", ""],
  ["5\r\nhello\r\n0\r\n\r\n", "hello"],
  ["A\r\n0123456789\r\na\r\nabcdefghij\r\n000\r\n\r\n", "0123456789abcdefghij"],
  ['5;a=b;c="d e"\r\nhello\r\n0;x\r\n\r\n', "hello"],
  ["0\r\nX-A: b\r\nX-B: c\r\n\r\n", ""],
  ["2\r\n\r\n\r\n1\r\n0\r\n0\r\n\r\n", "\r\n0"],
];

test.each(valid)("decodes %j to %j in pieces of any size", (text, body) => {
  for (let step = 1; step <= text.length; step++) {
    expect(decode(text, step)).toEqual({ body, done: true, taken: text.length });
  }
});

test.each(valid)("leaves bytes after %j unread", (text, body) => {
  expect(decode(`${text}GET / HTTP/1.1\r\n`)).toEqual({ body, done: true, taken: text.length });
});

test.each(valid)("takes no prefix of %j for a complete body", (text) => {
  for (let length = 0; length < text.length; length++) expect(decode(text.slice(0, length)).done).toBe(false);
});

test("starts at the given offset and reports the position of the body", () => {
  const bytes = Buffer.from("head5\r\nhello\r\n0\r\n\r\n");
  const pieces: unknown[] = [];
  expect(new ChunkedDecoder().push(bytes, 4, { chunkData: (...piece) => pieces.push(piece) })).toBe(bytes.length);
  expect(pieces).toEqual([[bytes, 7, 12]]);
});

describe("malformed chunked bodies", () => {
  test.each([
    "\r\n",
    "zz\r\n",
    "-1\r\n",
    "+1\r\n",
    "0x5\r\nhello",
    " 5\r\nhello",
    "5 \r\nhello",
    "5\nhello\n0\n\n",
    "5\rhello",
    "5\r\nhello\n0\r\n\r\n",
    "5\r\nhelloX",
    "5\r\nhello0\r\n\r\n",
    "5;a\nhello",
    "5;a\rb\r\nhello",
    "5;\0\r\nhello",
    "5;\r\nhello",
    "5; \r\nhello",
    "5;=a\r\nhello",
    "5;;a\r\nhello",
    '5;"a"\r\nhello',
    "5\xb2\r\n",
    "ffffffffffffffff\r\n",
    "0000000000000\r\n",
    "0\r\n\n",
    "0\r\n\rX",
    "0\r\nX-A: b\n\r\n",
    "0\r\nX-A b\r\n\r\n",
    "0\r\n folded: x\r\n\r\n",
    "0\r\nX-A: a\0b\r\n\r\n",
  ])("refuses the chunked body %j", (text) => {
    for (const step of [1, 2, text.length]) expect(() => decode(text, step)).toThrow(HeadError);
  });

  test("refuses an endless extension or endless trailers", () => {
    expect(() => decode(`5;${"a".repeat(300)}`)).toThrow(HeadError);
    expect(() => decode(`0\r\n${"X: y\r\n".repeat(2_000)}`)).toThrow(HeadError);
    expect(() => decode(`0\r\nX: ${"y".repeat(9_000)}`)).toThrow(HeadError);
  });
});
