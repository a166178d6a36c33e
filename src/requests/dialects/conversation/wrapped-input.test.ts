// Tests that a custom tool's input is unwrapped unchanged, however its arguments are split into pieces.
import { expect, test } from "bun:test";
import fc from "fast-check";
import { withinMs } from "../../../../tests/support/long.ts";
import { UnwrappedInput, wrappedInput } from "./wrapped-input.ts";

/** Returns the unwrapped pieces if the arguments are split at these offsets; the last piece is the result of `end`. */
function unwrapped(text: string, cuts: readonly number[] = []): string[] {
  const input = new UnwrappedInput();
  const ends = [...new Set(cuts)].sort((a, b) => a - b).concat(text.length);
  const given: string[] = [];
  let from = 0;
  for (const end of ends) {
    given.push(input.add(text.slice(from, end)));
    from = end;
  }
  return [...given, input.end()];
}

const hard = 'a "quoted" \\ line\nwith\ttabs, ä, 🚀 and \u2028 and \b\f\r/ </tag>';
const wrapped = [
  wrappedInput(hard),
  JSON.stringify({ input: hard }, null, 2),
  // JSON with `\u` escapes for all characters beyond ASCII, as Python writes it.
  wrappedInput(hard).replace(/[^ -~]/g, (one) => `\\u${one.charCodeAt(0).toString(16).padStart(4, "0")}`),
  `  {"input" :\n"${JSON.stringify(hard).slice(1)}, "why": "it is asked for"}`,
  JSON.stringify({ why: "it is asked for", input: hard }),
  JSON.stringify({ explanation: "x".repeat(200), input: hard }),
  `{"\\u0069nput":"${JSON.stringify(hard).slice(1)}}`,
];

test("unwraps the same input wherever the arguments are cut once, or at every character", () => {
  for (const text of wrapped) {
    expect(unwrapped(text).join("")).toBe(hard);
    for (let cut = 0; cut <= text.length; cut++) expect(unwrapped(text, [cut]).join("")).toBe(hard);
    expect(
      unwrapped(
        text,
        [...text].map((_, index) => index),
      ).join(""),
    ).toBe(hard);
  }
});

test("preserves any text through wrapping and unwrapping, in pieces of whole characters", () => {
  const cases = fc.tuple(fc.string({ unit: "binary" }), fc.array(fc.nat(300)), fc.boolean());
  fc.assert(
    fc.property(cases, ([text, cuts, isAscii]) => {
      const json = wrappedInput(text);
      const sent = isAscii
        ? json.replace(/[^ -~]/g, (one) => `\\u${one.charCodeAt(0).toString(16).padStart(4, "0")}`)
        : json;
      const pieces = unwrapped(
        sent,
        cuts.filter((cut) => cut < sent.length),
      );
      expect(pieces.join("")).toBe(text);
      for (const piece of pieces) expect(piece.isWellFormed()).toBe(true);
    }),
  );
});

test("returns text as soon as it is certain, before the end", () => {
  const input = new UnwrappedInput();
  expect(input.add('{"inp')).toBe("");
  expect(input.add('ut": "on')).toBe("on");
  expect(input.add("e\\")).toBe("e");
  expect(input.add('"two\\u00')).toBe('"two');
  expect(input.add('e4"')).toBe("ä");
  expect(input.add(', "more": 1}')).toBe("");
  expect(input.end()).toBe("");
});

test("returns arguments that are no wrapped input whole, at their end", () => {
  const others = [
    "SELECT 1",
    '{"input": 5}',
    '{"sql":"SELECT 1"}',
    '"text"',
    "null",
    "7",
    "[1]",
    '{"why":"x","input":"cut',
    "",
  ];
  for (const text of others) {
    expect(unwrapped(text, [1, 3])).toEqual(expect.arrayContaining([text]));
    expect(unwrapped(text, [1, 3]).join("")).toBe(text);
  }
});

test("returns the received part of an input that was cut short", () => {
  expect(unwrapped('{"input":"SELECT').join("")).toBe("SELECT");
  expect(unwrapped('{"input":"a\\').join("")).toBe("a");
  expect(unwrapped('{"input":"a\\ud83d').join("")).toBe("a\ud83d");
});

test("keeps invalid escapes as text, and holds them no longer than necessary", () => {
  for (const cut of [11, 12, 13, 14]) {
    expect(unwrapped('{"input":"C:\\users \\d+ \\u12"}', [cut]).join("")).toBe("C:\\users \\d+ \\u12");
  }
  expect(unwrapped('{"input":"line\nbreak"}').join("")).toBe("line\nbreak");
});

test("unwraps in linear time, in single characters as well", () => {
  for (const begin of ['{"input":"', '{"why":"', " ".repeat(100)]) {
    const input = new UnwrappedInput();
    const began = performance.now();
    input.add(begin);
    for (let count = 0; count < 300_000; count++) input.add('\\"'[count % 2] ?? "");
    input.end();
    expect(performance.now() - began).toBeLessThan(withinMs(2_000));
  }
});
