// Tests the message that a client reads about a value that a schema refuses.
import { expect, test } from "bun:test";
import { createKeyRequest } from "../../wire/keys.ts";
import { priceRequest } from "../../wire/price.ts";
import { compileRule } from "./compile-rule.ts";
import { requireFit } from "./validation.ts";

const key = { name: "Key" };

test.each([
  [
    createKeyRequest,
    { ...key, tools: ["git_push"] },
    "tools[0]: must be a string of 1 to 281 characters that is `server`, `server/tool`, or a prefix of either ending in `*` (got a string of 8 characters).",
  ],
  [
    createKeyRequest,
    { ...key, models: ["gpt 5"] },
    "models[0]: must be a string of 1 to 256 characters that is a model id, or a prefix of one ending in `*` (got a string of 5 characters).",
  ],
  [createKeyRequest, { ...key, tags: ["a b"] }, "that matches ^"],
  [priceRequest, { input: 1, output: 1, variants: [{ hours: ["8-9"] }] }, "that matches ^"],
])("names the form of a string whose length is allowed: %#", (schema, body, message) => {
  expect(() => requireFit(compileRule(schema), body)).toThrow(message);
});
