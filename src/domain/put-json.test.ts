// What is put byte by byte is what JSON.stringify writes, for every text and every number.
import { expect, test } from "bun:test";
import fc from "fast-check";
import { mostOfNumber, mostOfText, putJsonNumber, putJsonText } from "./put-json.ts";

const start = 3;
const bytes = Buffer.alloc(1024);
const [before, behind] = [Buffer.alloc(start), Buffer.alloc(bytes.length)];

/** What was put; nothing may be put in front of it, or beyond the most that it takes. */
function put(most: number, putAt: (bytes: Buffer, start: number) => number): string {
  bytes.fill(0);
  const end = putAt(bytes, start);
  expect(end - start).toBeLessThanOrEqual(most);
  expect(bytes.equals(Buffer.concat([before, bytes.subarray(start, end), behind.subarray(end)]))).toBe(true);
  return bytes.toString("utf8", start, end);
}

function text(value: string): string {
  return put(mostOfText(value), (into, at) => putJsonText(into, value, at));
}

function number(value: number): string {
  return put(mostOfNumber, (into, at) => putJsonNumber(into, value, at));
}

test("each character is written as JSON.stringify does, alone and behind others", () => {
  for (let unit = 0; unit < 0x1_0000; unit += unit < 0x300 ? 1 : 37) {
    const character = String.fromCharCode(unit);
    expect(text(character)).toBe(JSON.stringify(character));
    expect(text(`plain${character}`)).toBe(JSON.stringify(`plain${character}`));
  }
});

test("any text is", () => {
  // Halves of surrogate pairs included.
  const units = fc.array(fc.nat(0xffff)).map((each) => String.fromCharCode(...each));
  const any = fc.oneof(fc.string({ unit: "binary" }), fc.string({ unit: "binary-ascii" }), units);
  fc.assert(fc.property(any, (value) => expect(text(value)).toBe(JSON.stringify(value))));
});

test("any number is: whole ones, with one decimal, with more, and what is none", () => {
  const tenths = fc.integer({ min: -100, max: 2 ** 36 }).map((value) => value / 10);
  const any = fc.oneof(fc.nat(), fc.maxSafeInteger(), tenths, fc.double(), fc.float());
  fc.assert(
    fc.property(any, (value) => expect(number(value)).toBe(JSON.stringify(value))),
    { numRuns: 2_000 },
  );
  const edges = [0, -0, 9, 10, 99, 100, 2 ** 31 - 1, 2 ** 31, 2 ** 31 - 0.5, 0.1, 0.30000000000000004, 0.25, 9.95];
  const others = [99.9, 99.99, 214_748_364.7, 214_748_364.8, 1e-7, 1e21, 5e-324, Number.MAX_VALUE, -1, -0.5];
  for (const value of [...edges, ...others, Number.NaN, 1 / 0, -1 / 0]) {
    expect(number(value)).toBe(JSON.stringify(value));
  }
});
