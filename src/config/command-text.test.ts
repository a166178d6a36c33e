import { describe, expect, test } from "bun:test";
import { byteSize, isByteSize, splitWords } from "./command-text.ts";

describe("a command line", () => {
  test.each([
    ["llama-server -m 'a b.gguf' --port 1", ["llama-server", "-m", "a b.gguf", "--port", "1"]],
    ['vllm serve "Qwen/\\"3\\"" --name=x\\ y', ["vllm", "serve", 'Qwen/"3"', "--name=x y"]],
    ["C:\\\\models\\\\a.exe --x=''", ["C:\\models\\a.exe", "--x="]],
    ["  one\n  two  ", ["one", "two"]],
    ["echo $HOME | cat", ["echo", "$HOME", "|", "cat"]],
  ])("splits %p into words", (line, words) => {
    expect(splitWords(line)).toEqual(words);
  });

  test.each(["", "  ", "a 'b", 'a "b', "a \\"])("rejects the command line %p", (line) => {
    expect(splitWords(line)).toBeUndefined();
  });
});

test("reads a size into bytes", () => {
  expect(["6GB", "1.5 gib", "512MB", "7b"].map(byteSize)).toEqual([6e9, 1.5 * 2 ** 30, 512e6, 7]);
  expect(byteSize(12)).toBe(12);
  expect(["6", "6 G", "GB", "-1GB", "1XB", "1ib", "9999999TB", `${"9".repeat(400)}GB`].filter(isByteSize)).toEqual([]);
});
