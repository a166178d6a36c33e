// The look through JSON's bytes: where strings and numbers end, what they mean, and how long JSON.stringify would write them.

import { describe, expect, test } from "bun:test";
import { ByteSpan } from "../bytes/byte-span.ts";
import { afterNumber, afterSpace, afterString, capacity, load, numberPassed, passed, textAt } from "./json-bytes.ts";

const fault = -1;

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

test("finds the end of a string, whatever byte is at any position", () => {
  for (let code = 0; code < 256; code++) {
    for (let place = 0; place < 70; place++) {
      const text = Buffer.from(`"${"x".repeat(place)}?${"y".repeat((place * 7) % 40)}"${"z".repeat(40)}`);
      text[1 + place] = code;
      load(ByteSpan.of(text));
      const closing = code === 0x22 ? place + 1 : 2 + place + ((place * 7) % 40);
      // Behind a backslash stands a letter that may not be there, or what closes the string.
      const expected = code < 0x20 || code === 0x5c ? fault : closing + 1;
      if (afterString(0) !== expected)
        expect({ code, place, end: afterString(0) }).toEqual({ code, place, end: expected });
    }
  }
});

test("rejects an unterminated string, also after a longer text", () => {
  load(ByteSpan.of(`"${"x".repeat(1_000)}"`));
  for (let length = 0; length < 70; length++) {
    for (const end of ["", "\\", "\\u", "\\u00e", '\\"']) {
      load(ByteSpan.of(`"${"x".repeat(length)}${end}`));
      expect([length, end, afterString(0)]).toEqual([length, end, fault]);
    }
  }
});

test("counts the bytes that escapes take beyond their meaning", () => {
  const texts = [
    '"',
    "\\",
    "/",
    "\b\f\n\r\t",
    "\u0001",
    "é",
    "€",
    "😀",
    "\ud83d",
    "\ude00",
    "\ude00\ud83d",
    "a😀\ud83d😀\ude00é",
  ];
  for (const text of texts) {
    const units = Array.from(
      { length: text.length },
      (_, i) => `\\u${text.charCodeAt(i).toString(16).padStart(4, "0")}`,
    );
    for (const written of [
      JSON.stringify(text),
      `"${units.join("")}"`,
      `"${units.join("").toUpperCase().replaceAll("U", "u")}"`,
    ]) {
      const bytes = Buffer.from(written);
      load(ByteSpan.of(bytes));
      expect(afterString(0)).toBe(bytes.byteLength);
      expect([written, bytes.byteLength - 2 - passed.escapes]).toEqual([written, Buffer.byteLength(text)]);
    }
  }
});

describe("numbers in JSON", () => {
  const digits = [
    "0",
    "7",
    "10",
    "123456",
    "999999999999999",
    "9999999999999999",
    "123456789012345678901234567890",
    "00",
    "01",
  ];
  const fractions = [
    "",
    ".0",
    ".5",
    ".7",
    ".10",
    ".000001",
    ".0000001",
    ".123456789012345",
    ".",
    ".1234567890123456789",
  ];
  const exponents = ["", "e0", "E5", "e+5", "e-5", "e", "e+", "e400"];

  test("reads numbers like JSON.parse, refuses those beyond a double, and notes unusual spellings", () => {
    for (const sign of ["", "-", "+", "--"]) {
      for (const whole of digits) {
        for (const fraction of fractions) {
          for (const exponent of exponents) {
            const text = `${sign}${whole}${fraction}${exponent}`;
            const value = parsed(text);
            load(ByteSpan.of(text));
            const isWhole = afterNumber(0) === text.length;
            expect([text, isWhole]).toEqual([text, value !== undefined && Number.isFinite(value)]);
            if (!isWhole) continue;
            expect([text, numberPassed()]).toEqual([text, value as number]);
            if (passed.unusual === 0) expect(JSON.stringify(value)).toBe(text);
          }
        }
      }
    }
  });

  test("treats numbers as clients send them as usual", () => {
    for (const text of ["0", "1", "-1", "0.7", "-0.25", "256", "1.05", "1800000000"]) {
      load(ByteSpan.of(text));
      afterNumber(0);
      expect([text, passed.unusual]).toEqual([text, 0]);
    }
  });
});

test("decodes strings correctly after similar earlier ones", () => {
  for (let round = 0; round < 2; round++) {
    for (let i = 0; i < 3_000; i++) {
      const name = `model-${i}${i % 3 === 0 ? "é" : ""}${i % 5 === 0 ? "\n" : ""}`;
      const bytes = Buffer.from(`  ${JSON.stringify(name)}`);
      load(ByteSpan.of(bytes));
      expect(textAt(2, bytes.byteLength)).toBe(name);
    }
  }
});

test("counts JSON white space, and no other character", () => {
  load(ByteSpan.of(" \t\r\n 1 \u000b"));
  expect([afterSpace(0), passed.space, afterSpace(5), afterSpace(6), passed.space]).toEqual([5, 5, 5, 7, 6]);
});

test("does not load a text that is too long", () => {
  expect(load(ByteSpan.of(new Uint8Array(capacity)))).toBe(true);
  expect(load(ByteSpan.of(new Uint8Array(capacity + 1)))).toBe(false);
});
