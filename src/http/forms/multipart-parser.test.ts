import { describe, expect, test } from "bun:test";
import { FormError, MultipartParser, type PartHead, parametersOf } from "./multipart-parser.ts";

interface Read {
  head: PartHead;
  text: string;
}

/** Reads a form that comes in pieces of so many bytes. */
function read(form: string | Buffer, size = Number.POSITIVE_INFINITY, boundary = "b"): Read[] {
  const bytes = Buffer.from(form);
  const parts: Read[] = [];
  const parser = new MultipartParser(boundary, {
    partBegan: (head) => parts.push({ head, text: "" }),
    partData(piece) {
      const part = parts.at(-1);
      if (part) part.text += piece.toString("latin1");
    },
    partEnded() {},
  });
  for (let at = 0; at < bytes.length; at += Math.min(size, bytes.length)) parser.push(bytes.subarray(at, at + size));
  parser.end();
  return parts;
}

const head = (name: string, more = "") => `Content-Disposition: form-data; name="${name}"${more}\r\n\r\n`;
const form = [
  `--b\r\n${head("file", '; filename="a \\"b\\".jsonl"')}{"a":1}\r\n--\r\n--a\r\n\r\n--`,
  `\r\n--b  \r\n${head("purpose")}batch`,
  `\r\n--b\r\n${head("empty")}`,
  "\r\n--b--\r\nwhat stands behind it",
].join("");

describe("a form", () => {
  test("has the same parts however it is cut, the file before the fields included", () => {
    const whole = read(form);
    expect(whole.map(({ head: { name }, text }) => [name, text])).toEqual([
      ["file", '{"a":1}\r\n--\r\n--a\r\n\r\n--'],
      ["purpose", "batch"],
      ["empty", ""],
    ]);
    for (let size = 1; size < form.length; size++) expect(read(form, size)).toEqual(whole);
  });

  test("keeps every byte of a file that looks like boundaries", () => {
    const content = Buffer.from("\r\n-\r\n--\r\n--\r\n--a\r\r\n\n--b\r", "latin1");
    const bytes = Buffer.concat([Buffer.from(`--b\r\n${head("file")}`), content, Buffer.from("\r\n--b--")]);
    for (const size of [1, 2, 3, 5, 7, 1000]) expect(read(bytes, size)[0]?.text).toBe(content.toString("latin1"));
  });

  test.each([
    ["is cut before its end", `--b\r\n${head("a")}text`, /ends before its last boundary/],
    ["has another boundary", `--c\r\n${head("a")}text\r\n--c--`, /ends before its last boundary/],
    ["has a part without a name", "--b\r\nContent-Type: text/plain\r\n\r\ntext\r\n--b--", /Content-Disposition/],
    ["has text behind a boundary", `--b garbage\r\n${head("a")}text\r\n--b--`, /behind a boundary/],
    ["begins with much that is no form", "x".repeat(10_000), /does not begin with the boundary/],
    ["has a head without an end", `--b\r\nContent-Disposition: ${"x".repeat(9_000)}`, /more than 8192 bytes/],
  ])("that %s is refused", (_, text, message) => {
    for (const size of [1, 100, 20_000]) expect(() => read(text, size)).toThrow(message);
    expect(() => read(text)).toThrow(FormError);
  });

  test("of more parts than any form has is refused", () => {
    const parts = Array.from({ length: 300 }, (_, n) => `--b\r\n${head(`f${n}`)}x\r\n`).join("");
    expect(() => read(`${parts}--b--`)).toThrow(/more than 256 parts/);
  });
});

test("parameters are read with quotes, escapes and without", () => {
  const read = parametersOf('form-data; name=plain; filename="a;b=\\"c\\".txt"; name="second"');
  expect([...read]).toEqual([
    ["", "form-data"],
    ["name", "plain"],
    ["filename", 'a;b="c".txt'],
  ]);
});
