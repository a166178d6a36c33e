// Error messages of other model servers about a prompt that is too long, in the words that Anthropic's clients know.
import { expect, test } from "bun:test";
import { invalidRequest } from "../base/errors.ts";
import { renderAnthropicError } from "./anthropic-errors.ts";

const shown = (words: string) =>
  JSON.parse(renderAnthropicError(invalidRequest(words, { engineCode: "context_length_exceeded" }), "req_1")).error
    .message;

test.each([
  [
    "This model's maximum context length is 32768 tokens. However, your request has 40,000 input tokens.",
    "prompt is too long: 40000 tokens > 32768 maximum",
  ],
  [
    "'max_tokens' is too large: 1024. This model's maximum context length is 32768 tokens and your request has 32476 input tokens (1024 > 32768 - 32476).",
    "prompt is too long: 33500 tokens > 32768 maximum",
  ],
  [
    "the request exceeds the available context size (4096 tokens), try again: 5123 tokens",
    "prompt is too long: 5123 tokens > 4096 maximum",
  ],
  [
    "The input token count (1200293) exceeds the maximum number of tokens allowed (1048576).",
    "prompt is too long: 1200293 tokens > 1048576 maximum",
  ],
  [
    "The input (61709 tokens) is longer than the model's context length (40960 tokens).",
    "prompt is too long: 61709 tokens > 40960 maximum",
  ],
  [
    "This model's maximum prompt length is 131072 but the request contains 537812 tokens.",
    "prompt is too long: 537812 tokens > 131072 maximum",
  ],
  ["Your input exceeds the context window.", "prompt is too long: Your input exceeds the context window."],
  ["prompt is too long: 9 tokens > 8 maximum", "prompt is too long: 9 tokens > 8 maximum"],
])("translates a model server's context error into the words that clients read: %s", (words, expected) => {
  expect(shown(words)).toBe(expected);
});
