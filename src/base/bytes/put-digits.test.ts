// A number that is put byte by byte is the text of it, where it was to stand, and nothing else.
import { expect, test } from "bun:test";
import fc from "fast-check";
import { maxByDigits, putDigits } from "./put-digits.ts";

const start = 3;
const bytes = Buffer.alloc(32);

/** The text that was put; nothing may be put in front of it, or behind its end. */
function put(value: number): string {
  bytes.fill(0);
  const end = putDigits(bytes, value, start);
  const text = bytes.toString("latin1", start, end);
  expect(bytes.toString("latin1")).toBe("\0".repeat(start) + text + "\0".repeat(bytes.length - end));
  return text;
}

test("writes any whole number of 31 bits", () => {
  const edges = Array.from({ length: 10 }, (_, digits) => [10 ** digits - 1, 10 ** digits]).flat();
  for (const value of [...edges, 0, maxByDigits - 1, maxByDigits]) expect(put(value)).toBe(String(value));
  fc.assert(
    fc.property(fc.integer({ min: 0, max: maxByDigits }), (value) => expect(put(value)).toBe(String(value))),
    { numRuns: 2_000 },
  );
});
