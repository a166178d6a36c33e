// Tests that all pieces of an answer are collected in their order.
import { expect, test } from "bun:test";
import { CollectedReply } from "./collected-reply.ts";

test("joins pieces of one kind until a block, another kind or a proof ends them", () => {
  const reply = new CollectedReply();
  reply.reasoning("I ", false);
  reply.reasoning("think.", false);
  reply.proof({ kind: "signature", data: "s1" });
  reply.reasoning("Again.", false);
  reply.reasoning("In short.", true);
  reply.text("a");
  reply.text("");
  reply.text("b");
  reply.block();
  reply.text("c");
  reply.refusal("No");
  reply.refusal(".");
  expect(reply.parts).toEqual([
    { type: "reasoning", text: "I think.", isSummary: false, proof: { kind: "signature", data: "s1" } },
    { type: "reasoning", text: "Again.", isSummary: false },
    { type: "reasoning", text: "In short.", isSummary: true },
    { type: "text", text: "ab" },
    { type: "text", text: "c" },
    { type: "refusal", text: "No." },
  ]);
});

test("keeps a proof without reasoning as a block of its own", () => {
  const reply = new CollectedReply();
  reply.text("a");
  reply.proof({ kind: "redacted", data: "x" });
  reply.proof({ kind: "redacted", data: "y" });
  expect(reply.parts.slice(1)).toEqual([
    { type: "reasoning", text: "", isSummary: false, proof: { kind: "redacted", data: "x" } },
    { type: "reasoning", text: "", isSummary: false, proof: { kind: "redacted", data: "y" } },
  ]);
});

test("assigns interleaved arguments to their calls", () => {
  const reply = new CollectedReply();
  reply.call(3, { callId: "a", kind: "function", name: "f" });
  reply.call(7, { callId: "b", kind: "custom", name: "g", namespace: "n", id: "i" });
  reply.arguments(7, "x");
  reply.arguments(3, "{");
  reply.arguments(7, "y");
  reply.arguments(3, "}");
  reply.arguments(9, "of no call");
  expect(reply.parts).toEqual([
    { type: "call", callId: "a", kind: "function", name: "f", input: "{}" },
    { type: "call", callId: "b", kind: "custom", name: "g", namespace: "n", id: "i", input: "xy" },
  ]);
});

test("keeps the last figure of each kind, and the end", () => {
  const reply = new CollectedReply();
  expect(reply.ended).toBeUndefined();
  reply.usage({ promptTokens: 9, completionTokens: 1 });
  reply.end({ reason: "sequence", sequence: "###" });
  reply.usage({ promptTokens: undefined, completionTokens: 4 });
  expect(reply.ended).toEqual({ reason: "sequence", sequence: "###" });
  expect(reply.used).toEqual({ promptTokens: 9, completionTokens: 4 });
});

test("joins log-probabilities, and counts the size of the held content", () => {
  const reply = new CollectedReply();
  reply.text("ab", [1]);
  reply.text("", [2, 3]);
  reply.reasoning("cd", false);
  expect(reply.logprobs).toEqual([1, 2, 3]);
  expect(reply.size).toBe(4);
});
