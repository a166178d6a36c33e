import { afterAll, beforeAll, expect, test } from "bun:test";
import * as library from "node-llama-cpp";
import {
  demoModel,
  readEvents,
  temporaryDirectory,
  WorkerProcess,
} from "../../../../../tests/support/llama/worker-process.ts";

const directory = temporaryDirectory();
let worker: WorkerProcess;
let model: library.LlamaModel;

beforeAll(async () => {
  worker = await WorkerProcess.start(directory.path);
  const llama = await library.getLlama({ gpu: false, build: "never", skipDownload: true, progressLogs: false });
  model = await llama.loadModel({ modelPath: demoModel, vocabOnly: true });
});

afterAll(async () => {
  await worker.stop();
  await model.dispose();
  directory.dispose();
});

const question = "What is the default port?";
const expected = "A local node listens on port 7545 by default, and its paths start with /v1.";

async function streamChat(options: Record<string, unknown>) {
  const body = { messages: [{ role: "user", content: question }], temperature: 0, stream: true, ...options };
  return await readEvents(await worker.post("/chat/completions", body));
}

test("gives the same text and usage with and without streaming", async () => {
  const plain = await worker.chat(question);
  const { chunks, done } = await streamChat({ stream_options: { include_usage: true } });
  expect(plain.choices[0]?.message.content).toBe(expected);
  expect(chunks.map((chunk) => chunk.choices[0]?.delta.content ?? "").join("")).toBe(expected);
  expect(done).toBe(true);
  expect(chunks.at(-1)?.usage).toEqual(plain.usage);
});

test("writes the format that SDKs parse", async () => {
  const plain = await worker.chat(question);
  expect(plain).toMatchObject({ object: "chat.completion", model: "tiny" });
  expect(plain.id).toMatch(/^chatcmpl-[0-9a-f]{32}$/);
  expect(plain.choices[0]).toMatchObject({ index: 0, finish_reason: "stop", message: { role: "assistant" } });
  const { chunks } = await streamChat({ stream_options: { include_usage: true }, max_tokens: 3 });
  const [first, ...rest] = chunks;
  expect(first?.choices[0]).toMatchObject({ index: 0, delta: { role: "assistant" }, finish_reason: null });
  expect(new Set(chunks.map((chunk) => chunk.id)).size).toBe(1);
  expect(rest.map((chunk) => chunk.choices[0]?.finish_reason)).toEqual([null, null, null, "length", undefined]);
  expect(chunks.map((chunk) => chunk.usage === null)).toEqual([true, true, true, true, true, false]);
  expect(rest.at(-1)?.choices).toEqual([]);
});

test("writes no usage into chunks without include_usage", async () => {
  const { chunks } = await streamChat({ max_tokens: 2 });
  expect(chunks.some((chunk) => "usage" in chunk)).toBe(false);
});

test("counts the rendered prompt and every generated token by the model's tokenizer", async () => {
  const prompt = `<|im_start|>system\nBe kind.<|im_end|>\n<|im_start|>user\n${question}<|im_end|>\n<|im_start|>assistant\n`;
  const { usage, choices } = await worker.chat("", {
    messages: [
      { role: "developer", content: "Be kind." },
      { role: "user", content: [{ type: "text", text: question }] },
    ],
    max_tokens: 12,
  });
  expect(usage.prompt_tokens).toBe(model.tokenize(prompt, true).length);
  expect(usage.completion_tokens).toBe(12);
  expect(model.tokenize(choices[0]?.message.content ?? "")).toHaveLength(12);
  const whole = await worker.chat(question);
  // The count is one more than the text's tokens, because the token that ends the reply was generated too.
  expect(whole.usage.completion_tokens).toBe(model.tokenize(expected).length + 1);
});

test("reports the same usage whatever an earlier request left in the cache", async () => {
  const first = await worker.chat(question);
  const again = await worker.chat(question);
  expect(again.usage).toEqual(first.usage);
  expect(again.choices[0]?.message.content).toBe(first.choices[0]?.message.content ?? "");
});

test("treats control tokens in a user's text as plain text", async () => {
  const { usage } = await worker.chat("<|im_end|>");
  const frame =
    model.tokenize("<|im_start|>user\n", true).length +
    model.tokenize("<|im_end|>\n<|im_start|>assistant\n", true).length;
  expect(usage.prompt_tokens).toBe(frame + model.tokenize("<|im_end|>", false).length);
});

test("ends the answer at a stop text without delivering it", async () => {
  const plain = await worker.chat(question, { stop: ["zebra", "7545"] });
  expect(plain.choices[0]).toMatchObject({
    message: { content: expected.slice(0, expected.indexOf("7545")) },
    finish_reason: "stop",
  });
  const { chunks } = await streamChat({ stop: "port 75" });
  const text = chunks.map((chunk) => chunk.choices[0]?.delta.content ?? "").join("");
  expect(text).toBe(expected.slice(0, expected.indexOf("port 75")));
});

test("delivers the beginning of a stop text if the limit cuts it", async () => {
  const { choices } = await worker.chat(question, { stop: "A local node sleeps", max_tokens: 3 });
  expect(choices[0]).toMatchObject({ message: { content: "A local node" }, finish_reason: "length" });
});

test("answers equal seeds equally, and different seeds differently", async () => {
  const story = async (seed: number) => {
    const { choices } = await worker.chat("Tell me a story.", { temperature: 1.2, seed, max_tokens: 30 });
    return choices[0]?.message.content;
  };
  const [first, second, third] = [await story(7), await story(7), await story(8)];
  expect(second).toBe(first ?? "");
  expect(third).not.toBe(first ?? "");
});

test("gives each of several choices its own seed, and counts the prompt once", async () => {
  const single = await worker.chat("Tell me a story.", { max_tokens: 20 });
  const { choices, usage } = await worker.chat("Tell me a story.", { n: 3, temperature: 1.2, max_tokens: 20, seed: 1 });
  expect(choices.map(({ index }) => index)).toEqual([0, 1, 2]);
  expect(new Set(choices.map(({ message }) => message.content)).size).toBe(3);
  expect(usage).toEqual({
    prompt_tokens: single.usage.prompt_tokens,
    completion_tokens: 60,
    total_tokens: single.usage.prompt_tokens + 60,
  });
});

test("answers more choices than sequences", async () => {
  const { choices } = await worker.chat(question, { n: 20, max_tokens: 4 });
  expect(choices.map(({ message }) => message.content)).toEqual(Array(20).fill("A local node list"));
});

test("bans a token by a logit_bias of -100 and forces it by 100", async () => {
  const [banned] = model.tokenize("A");
  const [forced] = model.tokenize(" port");
  const without = await worker.chat(question, { logit_bias: { [String(banned)]: -100 } });
  expect(without.choices[0]?.message.content).not.toContain("A");
  const only = await worker.chat(question, { logit_bias: { [String(forced)]: 100 }, max_tokens: 3 });
  expect(only.choices[0]?.message.content).toBe(" port port port");
});

test("applies penalties to the generated text", async () => {
  const [token] = model.tokenize(" port");
  const options = { logit_bias: { [String(token)]: 40 }, max_tokens: 6 };
  const content = async (penalty: object) =>
    (await worker.chat(question, { ...options, ...penalty })).choices[0]?.message.content;
  expect(await content({})).toBe(" port".repeat(6));
  expect(await content({ frequency_penalty: 2 })).toBe(" port".repeat(6));
  const weak = { logit_bias: { [String(token)]: 16 }, max_tokens: 40 };
  const repeated = await worker.chat(question, weak);
  const punished = await worker.chat(question, { ...weak, frequency_penalty: 2 });
  expect(punished.choices[0]?.message.content).not.toBe(repeated.choices[0]?.message.content ?? "");
});

test("enforces a JSON schema against the model's preference", async () => {
  const schema = {
    type: "object",
    properties: { port: { type: "integer" }, kind: { enum: ["local", "hosted"] } },
    required: ["port", "kind"],
    additionalProperties: false,
  };
  for (const response_format of [
    { type: "json_schema", json_schema: { name: "answer", schema, strict: true } },
    { type: "json_schema", schema },
  ]) {
    const { choices } = await worker.chat(question, { response_format });
    const answer = JSON.parse(choices[0]?.message.content ?? "");
    expect(Object.keys(answer)).toEqual(["port", "kind"]);
    expect(Number.isInteger(answer.port)).toBe(true);
    expect(["local", "hosted"]).toContain(answer.kind);
    expect(choices[0]?.finish_reason).toBe("stop");
  }
});

test("answers json_object with an object", async () => {
  const { choices } = await worker.chat("Give me a JSON object with the name Anna and the age 7.", {
    response_format: { type: "json_object" },
  });
  expect(JSON.parse(choices[0]?.message.content ?? "")).toEqual({ name: "Anna", age: 7 });
});

test("refuses a prompt that does not fit, with the limit and its length", async () => {
  const message = await worker.chatRefusal({ messages: [{ role: "user", content: "a ".repeat(1500) }] });
  expect(message).toBe(
    "This model's maximum context length is 1024 tokens, but the length of messages is 1509 tokens. Shorten it.",
  );
  const huge = await worker.chatRefusal({ messages: [{ role: "user", content: "a ".repeat(3_000_000) }] });
  expect(huge).toContain("maximum context length is 1024 tokens");
});

test("generates one token if the prompt leaves one, then reports a full context", async () => {
  // Each " a" is one token, so the length of the prompt can be set exactly.
  const frame = model.tokenize("<|im_start|>user\n<|im_end|>\n<|im_start|>assistant\n", true).length;
  const messages = (count: number) => [{ role: "user", content: " a".repeat(count) }];
  const { usage, choices } = await worker.chat("", { messages: messages(1023 - frame) });
  expect(usage).toEqual({ prompt_tokens: 1023, completion_tokens: 1, total_tokens: 1024 });
  expect(choices[0]?.finish_reason).toBe("length");
  expect(await worker.chatRefusal({ messages: messages(1024 - frame) })).toContain(
    "the length of messages is 1024 tokens",
  );
});

test("ends a conversation that fills the context with `length`, without shifting", async () => {
  const { usage, choices } = await worker.chat("Tell me a story.", { logit_bias: { 46: 100 } });
  expect(usage.total_tokens).toBe(1024);
  expect(choices[0]?.finish_reason).toBe("length");
});

test("reports an error if a bias forbids all that the grammar allows", async () => {
  const opening = Array.from({ length: 2048 }, (_, token) => token as library.Token).filter(
    (token) => model.detokenize([token]).includes("{") && !model.isEogToken(token),
  );
  const logit_bias = Object.fromEntries(opening.map((token) => [token, -100]));
  const schema = { type: "object", properties: { a: { type: "integer" } }, required: ["a"] };
  const response_format = { type: "json_schema", json_schema: { name: "x", schema } };
  for (const temperature of [0, 1]) {
    const options = { logit_bias, response_format, temperature };
    expect(await worker.chatRefusal(options)).toMatch(/^logit_bias forbids .* response_format/);
    const { chunks, done } = await streamChat(options);
    expect(chunks.at(-1)?.error?.message).toMatch(/^logit_bias forbids .* response_format/);
    expect(done).toBe(false);
  }
  // A ban is obeyed if the grammar allows another token.
  const other = { logit_bias: { [model.tokenize("{")[0] ?? 0]: -100 }, response_format: { type: "json_object" } };
  const { choices } = await worker.chat("Hi", { ...other, max_tokens: 1 });
  expect(choices[0]?.message.content).toMatch(/^\{./);
});

const refusals: [name: string, options: Record<string, unknown>, message: RegExp][] = [
  ["a token limit above the context", { max_tokens: 1025 }, /^max_tokens must be at most 1024/],
  ["max_completion_tokens, which wins", { max_tokens: 1, max_completion_tokens: 0 }, /^max_completion_tokens must be/],
  ["a temperature out of range", { temperature: 2.1 }, /^temperature must be a number from 0 to 2\.$/],
  ["top_p below 0", { top_p: -0.1 }, /^top_p must be a number from 0 to 1\.$/],
  ["log-probabilities", { logprobs: true }, /^logprobs: /],
  ["the number of log-probabilities", { top_logprobs: 2 }, /^top_logprobs: /],
  ["bias of a token that does not exist", { logit_bias: { 2048: 1 } }, /^logit_bias\.2048: .* 0 to 2047\.$/],
  ["bias out of range", { logit_bias: { 5: 101 } }, /^logit_bias\.5 must be a number from -100 to 100\.$/],
  ["an image", { messages: [{ role: "user", content: [{ type: "image_url" }] }] }, /^messages\[0\]\.content\[0\]: /],
  [
    "a part that no schema knows",
    { messages: [{ role: "user", content: [{ type: "video_url", video_url: {} }] }] },
    /^messages\[0\]\.content\[0\]: this model takes only text parts, .*, not "video_url"\.$/,
  ],
  ["an unknown response format", { response_format: { type: "grammar" } }, /^response_format\.type must be one of/],
  ["an unknown tool choice", { tool_choice: "any" }, /^tool_choice must be "auto", "none", "required"/],
  ["a number of log-probabilities in a chat", { logprobs: 5 }, /^logprobs: /],
  ["an unknown role", { messages: [{ role: "robot", content: "" }] }, /^messages\[0\]\.role must be one of/],
  ["no messages", { messages: [] }, /^messages must hold at least one message/],
  ["an empty stop text", { stop: [""] }, /^stop must be a string of 1 to/],
  ["a schema without a schema", { response_format: { type: "json_schema" } }, /^response_format\.json_schema\.schema/],
  [
    "a demanded call without a template for tools",
    { tools: [{ type: "function", function: { name: "f" } }], tool_choice: "required" },
    /^tool_choice: .*no place for tools/,
  ],
  ["a forced call without tools", { tool_choice: "required" }, /^tool_choice /],
];

for (const [name, options, message] of refusals) {
  test(`refuses a chat request with a message that names the field: ${name}`, async () => {
    expect(await worker.chatRefusal(options)).toMatch(message);
  });
}

test("ignores tools that must not be called", async () => {
  const one = { type: "function", function: { name: "f" } };
  const custom = { type: "custom", custom: { name: "x" } };
  const dotted = { type: "function", function: { name: "a.b", parameters: { type: "text" } } };
  for (const tools of [[one], [custom], [dotted], Array(600).fill(one)]) {
    const { choices } = await worker.chat(question, { tools, tool_choice: "none" });
    expect(choices[0]?.message.content).toBe(expected);
  }
});

test("chooses the likeliest token with a top_p of 0, whatever the temperature", async () => {
  for (const seed of [1, 2, 3]) {
    const { choices } = await worker.chat(question, { temperature: 2, top_p: 0, seed });
    expect(choices[0]?.message.content).toBe(expected);
  }
});

test("accepts a request that asks for no log-probabilities", async () => {
  const { choices } = await worker.chat(question, { logprobs: false, top_logprobs: 0 });
  expect(choices[0]?.message.content).toBe(expected);
});

test("reports broken JSON, an unknown path, a wrong method and a foreign model by separate errors", async () => {
  expect(await worker.refusal("/chat/completions", "{")).toBe("The body is not valid JSON.");
  expect(await worker.refusal("/chat/completions", [])).toBe("The body must be a JSON object.");
  expect((await worker.post("/other", {})).status).toBe(404);
  expect((await worker.post("/models", {})).status).toBe(405);
  const foreign = await worker.post("/chat/completions", { model: "other", messages: [] });
  expect([foreign.status, ((await foreign.json()) as { error: { code: string } }).error.code]).toEqual([
    404,
    "model_not_found",
  ]);
});
