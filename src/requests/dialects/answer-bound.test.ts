// Tests that the length limit of an answer follows the request, generously, and has a maximum.
import { expect, test } from "bun:test";
import { decodedRequest } from "../../../tests/support/decoded-request.ts";
import { defaultAnswerBytes, maxAnswerBytes } from "./answer-bound.ts";

const mib = 1024 * 1024;
const most = (body: Record<string, unknown>, operation?: "chat" | "embedding", context?: number) =>
  maxAnswerBytes(decodedRequest(body, operation), { context });

test("allows little beyond the default for few tokens, and more for many tokens or probabilities", () => {
  const few = most({ max_tokens: 16 });
  expect(few).toBeGreaterThan(defaultAnswerBytes);
  expect(few).toBeLessThan(defaultAnswerBytes + 10_000);
  expect(most({ max_tokens: 10_000, n: 4 })).toBeGreaterThan(most({ max_tokens: 10_000 }) + 7_000_000);
  expect(most({ max_tokens: 2_000, logprobs: true })).toBeGreaterThan(most({ max_tokens: 2_000 }) + 10 * mib);
});

test("uses the model's context without a limit in the request, and a default without a known context", () => {
  expect(most({}, "chat", 1_000)).toBeLessThan(defaultAnswerBytes + mib);
  expect(most({})).toBeGreaterThan(40 * mib);
});

test("counts each input of embeddings, up to 128 MiB", () => {
  expect(most({ input: "x" }, "embedding")).toBeLessThan(17 * mib);
  expect(most({ input: Array(2_048).fill("x") }, "embedding")).toBe(128 * mib);
  expect(most({ max_tokens: 100_000_000 })).toBe(128 * mib);
});
