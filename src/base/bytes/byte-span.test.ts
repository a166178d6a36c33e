// Bytes inside a buffer are what lies between start and end, and nothing around them.
import { expect, test } from "bun:test";
import { ByteSpan, noBytes, PatchedSpan, withoutMark } from "./byte-span.ts";

const buffer = Buffer.from("before Grüße after");

test("reads a span from its start to its end as bytes, text and copy", () => {
  const span = new ByteSpan(buffer, 7, 14);
  const target = Buffer.alloc(10, ".");
  span.copyTo(target, 2);
  expect([span.length, span.text, span.view.toString(), target.toString()]).toEqual([7, "Grüße", "Grüße", "..Grüße."]);
  expect(new ByteSpan(buffer, 0, 6).text).toBe("before");
});

test("makes a span of all bytes in any memory and of a text", () => {
  const part = new Uint8Array(buffer.buffer, buffer.byteOffset + 7, 7);
  for (const bytes of [part, Buffer.from(part), "Grüße"]) expect(ByteSpan.of(bytes).text).toBe("Grüße");
  expect([noBytes.length, noBytes.text, noBytes.view.length]).toEqual([0, "", 0]);
});

test("returns a whole buffer as its own view", () => {
  expect(ByteSpan.of(buffer).view).toBe(buffer);
});

test("joins spans one after the other, and returns a single one unchanged", () => {
  const [first, second] = [new ByteSpan(buffer, 0, 6), new ByteSpan(buffer, 7, 14)];
  expect(ByteSpan.joined([first, second], 13).text).toBe("beforeGrüße");
  expect(ByteSpan.joined([second], 7)).toBe(second);
  expect(ByteSpan.joined([], 0).text).toBe("");
});

test("removes a whole byte-order mark only", () => {
  const marked = Buffer.from("\ufeff{}\ufeff");
  expect(withoutMark(new ByteSpan(marked, 0, 5)).text).toBe("{}");
  for (const [start, end] of [
    [0, 2],
    [1, 5],
    [3, 5],
  ] as const) {
    const bytes = new ByteSpan(marked, start, end);
    expect(withoutMark(bytes)).toBe(bytes);
  }
});

test("replaces bytes of a span in one place, wherever it lies or is copied to", () => {
  const around = new ByteSpan(Buffer.from("surplus before old after surplus"), 8, 24);
  const places = [
    [7, 10, (insert: string) => `before ${insert} after`],
    [0, 6, (insert: string) => `${insert} old after`],
    [11, 16, (insert: string) => `before old ${insert}`],
    [3, 3, (insert: string) => `bef${insert}ore old after`],
  ] as const;
  for (const [from, to, expected] of places) {
    for (const insert of ["", "a", "längerer Text 😀"]) {
      const patched = new PatchedSpan(around, from, to, Buffer.from(insert));
      const bytes = Buffer.from(expected(insert));
      expect(patched.length).toBe(bytes.length);
      expect(patched.solid.text).toBe(expected(insert));
      const target = Buffer.alloc(bytes.length + 6, "-");
      patched.copyTo(target, 3);
      expect(target.toString()).toBe(`---${expected(insert)}---`);
    }
  }
  expect(around.text).toBe("before old after");
});
