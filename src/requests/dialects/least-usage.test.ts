// Tests that impossibly low usage is replaced by an estimate, and that any figure a real tokenizer may count is
// accepted.
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { decodedRequest } from "../../../tests/support/decoded-request.ts";
import type { TokenUsage } from "../../domain/usage/usage.ts";
import { comparedUsage, needsComparison } from "./least-usage.ts";
import { deliveredBytes } from "./openai/usage.ts";
import { estimateTokens } from "./prompt-tokens.ts";

const reported = (promptTokens: number, completionTokens: number): TokenUsage => ({
  promptTokens,
  completionTokens,
  estimated: false,
});
const chat = (content: unknown, more: Record<string, unknown> = {}) =>
  decodedRequest({ model: "m", messages: [{ role: "user", content }], ...more });
const delivered = (text: string) => {
  const bytes = Buffer.byteLength(text);
  return { bytes, tokens: estimateTokens(bytes) };
};
const judged = (usage: TokenUsage, request = chat("Hello"), answer = "Hi.", context?: number) =>
  comparedUsage(usage, request, delivered(answer), context);

describe("implausibly low usage", () => {
  test("replaces usage of 0 and 0 beside a prompt and an answer by a marked estimate of both", () => {
    expect(judged(reported(0, 0), chat("x".repeat(40)), "y".repeat(400))).toEqual({
      ...{ promptTokens: 10, completionTokens: 100, estimated: true, understated: true },
    });
  });

  test("replaces only the wrong figure of usage that is too little", () => {
    expect(judged(reported(3, 0))).toMatchObject({ promptTokens: 3, completionTokens: 1, understated: true });
    expect(judged(reported(0, 3))).toMatchObject({ promptTokens: 2, completionTokens: 3, understated: true });
    expect(judged(reported(9, 3), chat("Hello"), "y".repeat(1_000))).toMatchObject({ completionTokens: 250 });
    expect(judged(reported(9, 8), chat("Hello"), "y".repeat(1_000))).toEqual(reported(9, 8));
    expect(judged(reported(7, 1), chat("x".repeat(1_000)))).toMatchObject({ promptTokens: 250, completionTokens: 1 });
    expect(judged(reported(8, 1), chat("x".repeat(1_000)))).toEqual(reported(8, 1));
  });

  test("keeps reported prompt parts if only the answer is too little, and drops them if the prompt is", () => {
    const parts = { cachedTokens: 3, cacheWriteTokens: 0, reasoningTokens: 0 };
    expect(judged({ ...reported(3, 0), parts }).parts).toEqual(parts);
    expect(judged({ ...reported(0, 3), parts }).parts).toBeUndefined();
  });

  test("detects a prompt that is too little at any length within the known context, and only zero if it may be cut", () => {
    const long = chat("x".repeat(100_000));
    expect(judged(reported(700, 1), long, "Hi.", 200_000)).toMatchObject({
      promptTokens: 25_000,
      understated: true,
    });
    for (const context of [4_096, undefined]) {
      expect(judged(reported(5, 1), long, "Hi.", context)).toEqual(reported(5, 1));
      expect(judged(reported(0, 1), long, "Hi.", context)).toMatchObject({ understated: true });
    }
  });

  test("detects usage that is too little with and without an echo in a chat", () => {
    const request = chat("Hello", { echo: true });
    expect(judged(reported(2, 1), request, "y".repeat(400_000))).toEqual({
      ...{ promptTokens: 2, completionTokens: 100_000, estimated: true, understated: true },
    });
  });

  test("detects usage that is too little behind echoed text, and leaves the echo out of the estimate", () => {
    const prompt = "x".repeat(1_000);
    const echo = (more: object) => decodedRequest({ model: "m", echo: true, ...more }, "completion");
    expect(judged(reported(250, 1), echo({ prompt }), prompt + "y".repeat(128))).toEqual(reported(250, 1));
    expect(judged(reported(250, 1), echo({ prompt }), prompt + "y".repeat(400))).toMatchObject({
      completionTokens: 100,
    });
    const several = echo({ prompt: [prompt, prompt], n: 3 });
    expect(judged(reported(500, 6), several, prompt.repeat(6) + "y".repeat(6 * 128))).toEqual(reported(500, 6));
    expect(judged(reported(500, 6), several, prompt.repeat(6) + "y".repeat(6 * 129))).toMatchObject({
      understated: true,
    });
    const ids = echo({ prompt: [1, 2, 3, 4, 5, 6, 7, 8] });
    expect(judged(reported(8, 1), ids, "x".repeat(8 * 128 + 128))).toEqual(reported(8, 1));
    expect(judged(reported(8, 1), ids, "x".repeat(8 * 128 + 129))).toMatchObject({ understated: true });
  });

  test("accepts low usage if vLLM repeats an answer that the client began", () => {
    const begun = "x".repeat(10_000);
    const messages = [
      { role: "user", content: "Hello" },
      { role: "assistant", content: begun },
    ];
    const request = decodedRequest({ model: "m", messages, echo: true });
    expect(judged(reported(2_502, 1), request, `${begun}Hi.`)).toEqual(reported(2_502, 1));
    expect(judged(reported(2_502, 1), request, begun.repeat(2))).toMatchObject({ understated: true });
  });

  test("accepts low usage of a prompt that fits the context only without the answer", () => {
    const text = "x".repeat(20_000);
    expect(judged(reported(64, 1), chat(text, { max_tokens: 100 }), "Hi.", 22_000)).toMatchObject({
      understated: true,
    });
    expect(judged(reported(64, 1), chat(text, { max_tokens: 8_000 }), "Hi.", 22_000)).toEqual(reported(64, 1));
  });

  test("accepts low usage of a prompt that the client lets the server cut", () => {
    const text = "x".repeat(20_000);
    for (const more of [{ truncate_prompt_tokens: 64 }, { truncate: "END" }, { transforms: ["middle-out"] }]) {
      expect(judged(reported(64, 1), chat(text, more), "Hi.", 100_000)).toEqual(reported(64, 1));
    }
    expect(judged(reported(64, 1), chat(text), "Hi.", 100_000)).toMatchObject({ promptTokens: 5_000 });
  });

  test("detects usage that is too little for embeddings and legacy completions", () => {
    const inputs = ["x".repeat(600), "y".repeat(600)];
    const embedding = decodedRequest({ model: "m", input: inputs }, "embedding");
    expect(comparedUsage(reported(0, 0), embedding, { bytes: 0, tokens: 0 }, 8_192)).toMatchObject({
      ...{ promptTokens: 300, completionTokens: 0, understated: true },
    });
    expect(comparedUsage(reported(10, 0), embedding, { bytes: 0, tokens: 0 }, 8_192)).toEqual(reported(10, 0));
    const completion = decodedRequest({ model: "m", prompt: [[1, 2, 3]] }, "completion");
    expect(judged(reported(0, 1), completion)).toMatchObject({ promptTokens: 3, understated: true });
  });
});

describe("honest usage reports", () => {
  test.each([
    ["an answer of nothing", reported(1, 0), chat("Hello"), ""],
    ["a prompt of nothing", reported(0, 1), chat(""), "Hi."],
    ["tokens of 128 blanks", reported(1, 8), chat("Hello"), " ".repeat(1_024)],
    ["reasoning that is not delivered", reported(9, 900), chat("Hello"), ""],
    ["tools that the template leaves out", reported(4, 1), chat("Hello", { tools: [{ x: "x".repeat(1_500) }] }), "Hi."],
    ["pictures that count nothing", reported(4, 1), chat([{ type: "text", text: "Hi" }, { type: "image_url" }]), "Hi."],
    [
      "thoughts of earlier answers that are left out",
      reported(4, 1),
      decodedRequest({
        model: "m",
        messages: [
          { role: "assistant", content: `<think>${"x".repeat(1_500)}</think>` },
          { role: "user", content: "Hi" },
        ],
      }),
      "Hi.",
    ],
    [
      "a prompt that is given back",
      reported(9, 0),
      decodedRequest({ model: "m", prompt: "Hello", echo: true, max_tokens: 0 }, "completion"),
      "Hello",
    ],
    ["a history that did not fit", reported(4, 1), chat("x".repeat(9_000)), "Hi."],
  ] as [string, TokenUsage, ReturnType<typeof chat>, string][])(
    "accepts honest usage for %s",
    (_name, usage, request, answer) => {
      expect(judged(usage, request, answer)).toBe(usage);
    },
  );

  /** Any text, split into tokens as some vocabulary might: no token is longer than 128 bytes. */
  const tokenized = fc.array(
    fc.oneof(fc.string({ unit: "grapheme", minLength: 1, maxLength: 20 }), fc.constant(" ".repeat(128))),
    { maxLength: 60 },
  );
  const someAnswer = fc.tuple(tokenized, tokenized, fc.nat(3));

  // hardening: L7
  test("accepts honest usage for any text and any vocabulary", () => {
    fc.assert(
      fc.property(someAnswer, fc.option(fc.nat(4_000), { nil: undefined }), ([prompt, answer, added], context) => {
        const short = (tokens: string[]) => tokens.filter((token) => Buffer.byteLength(token) <= 128);
        const [sent, generated] = [short(prompt), short(answer)];
        const usage = reported(sent.length + added, generated.length);
        expect(judged(usage, chat(sent.join("")), generated.join(""), context)).toMatchObject(usage);
      }),
    );
  });

  test("never passes usage that is far too little on the quick check of a whole answer", () => {
    fc.assert(
      fc.property(someAnswer, fc.nat(20), fc.nat(20), ([prompt, answer], promptTokens, completionTokens) => {
        const request = chat(prompt.join(""));
        const usage = reported(promptTokens, completionTokens);
        const choices = [{ index: 0, message: { role: "assistant", content: answer.join("") }, finish_reason: "stop" }];
        const bytes = choices.reduce((sum, choice) => sum + deliveredBytes(choice), 0);
        const isTooLittle = comparedUsage(usage, request, { bytes, tokens: 1 }, 4_000) !== usage;
        const choicesBytes = Buffer.byteLength(JSON.stringify(choices));
        const looked = needsComparison(usage, choicesBytes, request, undefined);
        if (isTooLittle && bytes > completionTokens * 128 + 512) expect(looked).toBe(true);
        if (isTooLittle && completionTokens === 0) expect(looked).toBe(true);
      }),
    );
  });
});

describe("usage above what the request allows", () => {
  const limited = (max: number, more: object = {}) => chat("Hello", { max_tokens: max, ...more });

  test("books a report above the limit if the delivered text also exceeds the limit", () => {
    expect(judged(reported(3, 100), limited(20), "y".repeat(400))).toEqual({ ...reported(3, 100), pastLimit: true });
    expect(judged(reported(3, 400), limited(20), "y".repeat(400))).toMatchObject({ completionTokens: 400 });
  });

  test("replaces a report of more tokens than delivered bytes by an estimate", () => {
    expect(judged(reported(3, 401), limited(20), "y".repeat(400))).toMatchObject({
      ...{ completionTokens: 100, estimated: true, overstated: true, pastLimit: true },
    });
  });

  test("leaves a report above the limit to the bounds of the request if the delivered text is within it", () => {
    expect(judged(reported(3, 100), limited(20), "y".repeat(80))).toEqual(reported(3, 100));
  });

  test("counts the limit once for each generation", () => {
    const request = limited(20, { n: 5 });
    expect(judged(reported(3, 100), request, "y".repeat(440))).toEqual(reported(3, 100));
    expect(judged(reported(3, 101), request, "y".repeat(440))).toMatchObject({ pastLimit: true });
  });

  test("counts no echoed prompt against the limit", () => {
    const echoing = decodedRequest({ model: "m", prompt: "x".repeat(400), echo: true, max_tokens: 20 }, "completion");
    expect(judged(reported(100, 30), echoing, "x".repeat(400) + "y".repeat(40))).toEqual(reported(100, 30));
    expect(judged(reported(100, 30), echoing, "x".repeat(400) + "y".repeat(100))).toMatchObject({ pastLimit: true });
  });

  test("compares a whole answer whose report is above the limit", () => {
    expect(needsComparison(reported(2, 21), 600, limited(20), undefined)).toBe(true);
    expect(needsComparison(reported(2, 20), 600, limited(20), undefined)).toBe(false);
    expect(needsComparison(reported(2, 20), 600, chat("Hello"), 10)).toBe(true);
  });
});
