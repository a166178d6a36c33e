// Tests how a whole answer is read: the engine's own bytes if nothing must change, and an error if it is no answer.

import { describe, expect, test } from "bun:test";
import { decodedRequest } from "../../../../tests/support/decoded-request.ts";
import { ByteSpan, type Bytes } from "../../../base/bytes/byte-span.ts";
import { GatewayError } from "../../../base/errors.ts";
import type { Engine } from "../../../domain/models/engine.ts";
import type { Answer, AskedRequest, Serving } from "../answer.ts";
import { readAnswer } from "./whole-answer.ts";

const completion = {
  id: "chatcmpl-1",
  object: "chat.completion",
  created: 1_800_000_000,
  model: "m",
  choices: [{ index: 0, message: { role: "assistant", content: "Grüße 😀" }, finish_reason: "stop" }],
  usage: { prompt_tokens: 3, completion_tokens: 4, total_tokens: 7 },
};
const names = { id: "chatcmpl-own", created: 1, ownId: false };

function requestOf(model = "m"): AskedRequest {
  return decodedRequest({ model, messages: [{ role: "user", content: "Hello" }] });
}

const engine: Engine = {
  name: "e",
  redact: (text) => text,
  send: () => Promise.reject(new Error("not used")),
  models: async () => [],
};

function servedAs(model: string): Serving {
  return { deployment: { engine }, model: { id: model, context: undefined } };
}

function read(answer: unknown, { model = "m", ownId = false } = {}): Answer {
  const head = "HTTP/1.1 200 OK\r\n\r\n";
  const received = Buffer.from(`${head}${typeof answer === "string" ? answer : JSON.stringify(answer)}"}`);
  const bytes = new ByteSpan(received, head.length, received.length - 2);
  return readAnswer(bytes, requestOf(model), servedAs(model), { ...names, ownId });
}

test("returns the server's own bytes for an answer that needs no change", () => {
  const bytes = ByteSpan.of(JSON.stringify(completion, null, 2));
  const answer = readAnswer(bytes, requestOf(), servedAs("m"), names);
  expect(answer.body).toBe(bytes);
  expect(answer.text).toBe(JSON.stringify(completion, null, 2));
  expect(answer.usage).toEqual({ promptTokens: 3, completionTokens: 4, estimated: false });
});

describe("changed members of an answer", () => {
  test.each(["other", 'a "quoted" one', "größer", "a\\n", ""])(
    "replaces the model %j by its public id",
    async (model) => {
      for (const indent of [0, 2]) {
        const text = JSON.stringify(completion, null, indent);
        const answer = read(text, { model });
        expect(answer.text).toBe(text.replace('"m"', () => JSON.stringify(model)));
        expect((answer.body as Bytes).solid.text).toBe(answer.text);
        expect(answer.usage.promptTokens).toBe(3);
      }
    },
  );

  test.each([
    ["no id", { ...completion, id: undefined }, { id: "chatcmpl-own" }],
    ["an id that is a number", { ...completion, id: 7 }, { id: "chatcmpl-own" }],
    ["no time", { ...completion, created: null }, { created: 1 }],
    ["another object", { ...completion, object: "x" }, { object: "chat.completion" }],
    ["no model", { ...completion, model: undefined }, { model: "m" }],
    ["no sum", { ...completion, usage: { prompt_tokens: 3, completion_tokens: 4 } }, { usage: completion.usage }],
    ["an error that is null", { ...completion, error: null }, {}],
    ["a name with an escape", `{"\\u0069d":"x",${JSON.stringify(completion).slice(19)}`, { id: "x" }],
  ] as const)("normalizes an answer with %s", async (_name, given, changed) => {
    const expected = typeof given === "string" ? JSON.parse(given) : given;
    expect(JSON.parse(read(given).text)).toEqual(JSON.parse(JSON.stringify({ ...expected, ...changed })));
  });

  test("gives a stored answer an id of the gateway", async () => {
    expect(JSON.parse(read(completion, { ownId: true }).text).id).toBe("chatcmpl-own");
  });

  test("estimates usage that is missing or not in whole numbers", async () => {
    for (const usage of [
      undefined,
      null,
      "x",
      {},
      { prompt_tokens: 1.5 },
      { prompt_tokens: -1 },
      { prompt_tokens: "3" },
    ]) {
      const answer = read({ ...completion, usage });
      expect(answer.usage.estimated).toBe(true);
      expect(JSON.parse(answer.text).usage).toMatchObject({ estimated: true });
    }
  });
});

test.each([
  ["nothing", ""],
  ["half of it", JSON.stringify(completion).slice(0, -1)],
  ["more than it", `${JSON.stringify(completion)}{}`],
  ["a control character in a text", JSON.stringify(completion).replace("Gr", "G\u0001r")],
  ["a comma too many", JSON.stringify(completion).replace("}]", "},]")],
  ["an error", { ...completion, error: { message: "out of memory" } }],
  ["an error that is false", { ...completion, error: false }],
  ["no choices", { ...completion, choices: [] }],
  ["choices that are no list", { ...completion, choices: {} }],
])("refuses a whole answer with %s", async (_name, answer) => {
  const error = await (async () => read(answer))().catch((thrown) => thrown);
  expect(error).toBeInstanceOf(GatewayError);
  expect(error).toMatchObject({ code: "upstream_error" });
});

test("removes a byte-order mark", async () => {
  const text = JSON.stringify(completion);
  expect(read(`\ufeff${text}`).text).toBe(text);
});

test.each([{ code: 200, message: "success" }, { errors: [] }, { detail: "ok" }])(
  "accepts embeddings with %j beside their list",
  (more) => {
    const answer = {
      ...{ id: "e", object: "list", model: "m", data: [{ object: "embedding", index: 0, embedding: [1, 2] }] },
      ...{ usage: { prompt_tokens: 1, total_tokens: 1 }, ...more },
    };
    const text = JSON.stringify(answer);
    const request = decodedRequest({ model: "m", input: "Hello" }, "embedding");
    expect(readAnswer(ByteSpan.of(text), request, servedAs("m"), names).text).toBe(text);
  },
);

test.each([
  ["the id of the server", "embd-1", "embd-1"],
  ["the gateway's id where the server tells none", undefined, "embd-own"],
  ["the gateway's id where the server's is no text", 7, "embd-own"],
])("gives an answer with embeddings %s", (_what, id, given) => {
  const answer = {
    ...{ id, object: "list", model: "m", data: [{ object: "embedding", index: 0, embedding: [1, 2] }] },
    ...{ usage: { prompt_tokens: 1, total_tokens: 1 } },
  };
  const request = decodedRequest({ model: "m", input: "Hello" }, "embedding");
  const { text } = readAnswer(ByteSpan.of(JSON.stringify(answer)), request, servedAs("m"), {
    ...names,
    id: "embd-own",
  });
  expect(JSON.parse(text)).toEqual({ ...answer, id: given });
});

test("counts the tokens of all choices if a server reports only those of the first", () => {
  const text = "A mill runs by itself. ".repeat(10);
  const choices = [0, 1, 2].map((index) => ({ index, text, logprobs: null, finish_reason: "stop" }));
  const timings = { prompt_n: 5, predicted_n: 60 };
  const answer = { ...completion, object: "text_completion", choices };
  const usage = { prompt_tokens: 5, completion_tokens: 60, total_tokens: 65 };
  const usageFor = (body: Record<string, unknown>, more: object) =>
    readAnswer(
      ByteSpan.of(JSON.stringify({ ...answer, usage, ...more })),
      decodedRequest(body, "completion"),
      servedAs("m"),
      names,
    ).usage;
  const long = "What is a mill?".repeat(40);
  expect(usageFor({ prompt: "What is a mill?", n: 3 }, { timings })).toMatchObject({
    ...{ promptTokens: 5, completionTokens: 180, estimated: true },
  });
  expect(usageFor({ prompt: [long, long, long] }, { timings }).promptTokens).toBeGreaterThan(400);
  expect(usageFor({ prompt: "What is a mill?", n: 3, max_tokens: 62 }, { timings }).completionTokens).toBeLessThan(185);
  // Other servers report the sum, and one choice has its own timings.
  expect(usageFor({ prompt: "What is a mill?", n: 3 }, {}).completionTokens).toBe(60);
  expect(usageFor({ prompt: "What is a mill?" }, { timings, choices: [choices[0]] }).completionTokens).toBe(60);
});
