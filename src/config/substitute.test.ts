// `${NAME}` in one text.
// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the file's own syntax for variables.
import { describe, expect, test } from "bun:test";
import { substitute } from "./substitute.ts";

const env = { KEY: "sk-1", EMPTY: "", NESTED: "${KEY}", _x9: "u" };

describe("substitution of variables", () => {
  test.each([
    ["plain", "plain", []],
    ["${KEY}", "sk-1", ["KEY"]],
    ["a${KEY}b${_x9}", "ask-1bu", ["KEY", "_x9"]],
    ["${EMPTY}", "", ["EMPTY"]],
    ["${EMPTY:-x}", "x", ["EMPTY"]],
    ["${MISSING:-}", "", ["MISSING"]],
    ["${MISSING:-http://h:1/v1}", "http://h:1/v1", ["MISSING"]],
    ["$${KEY} $KEY $$", "${KEY} $KEY $$", []],
  ])("substitutes %p to %p", (text, expected, names) => {
    expect(substitute(text, env)).toEqual({ ok: true, text: expected, names });
  });

  test("does not substitute in a variable's value", () => {
    expect(substitute("${NESTED}", env)).toMatchObject({ ok: true, text: "${KEY}" });
  });

  test("names a variable that is not set", () => {
    expect(substitute("x${MISSING}", env)).toMatchObject({ ok: false, message: expect.stringContaining("MISSING") });
  });

  test.each(["${", "${KEY", "${}", "${1A}", "${KEY-x}", "${KEY:x}", "${A B}"])(
    "refuses %p, which names no variable",
    (text) => {
      expect(substitute(text, env)).toMatchObject({ ok: false, fix: expect.stringContaining("$${") });
    },
  );
});
