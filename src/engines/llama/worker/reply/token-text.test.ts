import { expect, test } from "bun:test";
import type { Token } from "node-llama-cpp";
import { type Detokenizer, TokenText } from "./token-text.ts";

/** Returns a vocabulary whose tokens are the text's bytes in groups of the given sizes, repeatedly. */
function split(bytes: Uint8Array, sizes: readonly number[]) {
  const parts: Uint8Array[] = [];
  for (let at = 0; at < bytes.length; at += parts.at(-1)?.length ?? 1) {
    parts.push(bytes.subarray(at, at + (sizes[parts.length % sizes.length] ?? 1)));
  }
  const model: Detokenizer = {
    isSpecialToken: () => false,
    detokenize: (tokens) =>
      new TextDecoder().decode(Buffer.concat(tokens.map((token) => parts[token] ?? parts[0] ?? bytes))),
  };
  return { model, tokens: parts.map((_, index) => index as Token) };
}

function read(bytes: Uint8Array, sizes: readonly number[]): string[] {
  const { model, tokens } = split(bytes, sizes);
  const text = new TokenText(model, []);
  const pieces = tokens.flatMap((token) => text.push(token));
  return [...pieces, ...text.flush()].map((piece) => piece.text);
}

const sample = "😀😁😂你好";

test("delivers characters as soon as they are complete, also across tokens", () => {
  const sizes = [1, 1, 1, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1];
  expect(read(Buffer.from(sample), sizes)).toEqual(["😀", "😁", "😂", "你", "好"]);
});

test("joins the text unchanged from any split into tokens, without waiting for boundaries", () => {
  const long = `a${sample}é`.repeat(40);
  for (const first of [1, 2, 3, 4, 5]) {
    for (const second of [1, 2, 3, 4, 5, 7]) {
      const pieces = read(Buffer.from(long), [first, second, second]);
      expect(pieces.join("")).toBe(long);
      expect(pieces.length).toBeGreaterThan(60);
    }
  }
  const shifted = read(Buffer.from("你".repeat(200)), [1, ...Array(300).fill(3)]);
  expect(shifted).toEqual(Array(200).fill("你"));
});

test("replaces bytes that are not UTF-8 without delaying later text", () => {
  const bytes = Buffer.concat([Buffer.alloc(100, 0x80), Buffer.from("ok"), Buffer.from([0xf0, 0x9f])]);
  expect(read(bytes, [1]).join("")).toBe(`${"\uFFFD".repeat(100)}ok\uFFFD`);
});
