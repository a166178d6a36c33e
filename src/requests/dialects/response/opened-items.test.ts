// Tests reasoning in a conversation that moves between model servers that speak Responses in full.
import { expect, test } from "bun:test";
import type { Seal } from "../../../domain/seal.ts";
import { openedInput } from "./opened-items.ts";
import { sealReasoning } from "./sealed-reasoning.ts";

const seal: Seal = {
  seal: (text) => `sealed:${text}`,
  open: (text) => (text.startsWith("sealed:") ? text.slice("sealed:".length) : undefined),
};

const message = { type: "message", role: "user", content: "Go on." };
const reasoning = (more: Record<string, unknown>) => ({ type: "reasoning", id: "rs_1", summary: [], ...more });
const sealed = (text: string, kind?: "encrypted" | "signature") =>
  sealReasoning(seal, { text, proof: kind && { kind, data: "gAAAAproof" } });
const content = [{ type: "reasoning_text", text: "Hm" }];

test.each([
  ["leaves out text that the gateway sealed", { encrypted_content: sealed("Hm") }, []],
  ["leaves out a signature of Anthropic", { encrypted_content: sealed("Hm", "signature") }, []],
  [
    "returns OpenAI's proof that the gateway sealed",
    { encrypted_content: sealed("Hm", "encrypted") },
    [reasoning({ encrypted_content: "gAAAAproof" })],
  ],
  ["leaves out another server's text", { content, encrypted_content: null }, []],
])("%s for OpenAI", (_, item, expected) => {
  const opened = openedInput({ input: [reasoning(item), message] }, seal, true);
  expect(JSON.parse(opened?.input ?? "null")).toEqual([...expected, message]);
});

test.each([
  ["OpenAI's proof for OpenAI", true, { encrypted_content: "gAAAAproof" }],
  ["a summary for OpenAI", true, { summary: [{ type: "summary_text", text: "Hm" }] }],
  ["a server's own text for that server", false, { content, encrypted_content: null }],
])("keeps %s as it is", (_, isOpenai, item) => {
  expect(openedInput({ input: [reasoning(item), message] }, seal, isOpenai)).toBeUndefined();
});
