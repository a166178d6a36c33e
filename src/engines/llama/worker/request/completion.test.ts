import { afterAll, beforeAll, expect, test } from "bun:test";
import { readEvents, temporaryDirectory, WorkerProcess } from "../../../../../tests/support/llama/worker-process.ts";

const directory = temporaryDirectory();
let worker: WorkerProcess;

beforeAll(async () => {
  worker = await WorkerProcess.start(directory.path);
});

afterAll(async () => {
  await worker.stop();
  directory.dispose();
});

const prompt = "Once upon a time";

function complete(options: Record<string, unknown>) {
  return worker.complete("/completions", { prompt, temperature: 0, ...options });
}

test("continues a text by 16 tokens by default", async () => {
  const { object, id, choices, usage } = await complete({});
  expect(object).toBe("text_completion");
  expect(id).toMatch(/^cmpl-[0-9a-f]{32}$/);
  expect(choices[0]).toMatchObject({ index: 0, finish_reason: "length", logprobs: null });
  expect(usage).toEqual({ prompt_tokens: 4, completion_tokens: 16, total_tokens: 20 });
});

test("streams the same completion", async () => {
  const plain = await complete({});
  const body = { prompt, temperature: 0, stream: true, stream_options: { include_usage: true } };
  const { chunks, done } = await readEvents(await worker.post("/completions", body));
  expect(chunks.map((chunk) => chunk.choices[0]?.text ?? "").join("")).toBe(plain.choices[0]?.text ?? "");
  expect(chunks.at(-2)?.choices[0]?.finish_reason).toBe("length");
  expect(chunks.at(-1)?.usage).toEqual(plain.usage);
  expect(done).toBe(true);
});

test("keeps the order of several prompts and choices", async () => {
  const [alone] = (await complete({ max_tokens: 4 })).choices;
  const [other] = (await complete({ prompt: "Who are you?", max_tokens: 4 })).choices;
  const { choices, usage } = await complete({ prompt: [prompt, "Who are you?"], n: 2, max_tokens: 4 });
  const texts = [alone?.text, alone?.text, other?.text, other?.text];
  expect(choices.map(({ index, text }) => [index, text])).toEqual(texts.map((text, index) => [index, text]));
  expect(usage.completion_tokens).toBe(16);
});

test("accepts token arrays unchanged, one or several", async () => {
  // These are the tokens of the ChatML question "Hi" in the demo model's reference file.
  const tokens = [2046, 268, 10, 1057, 2047, 10, 2046, 274, 10];
  const single = await complete({ prompt: tokens });
  expect(single.choices[0]).toMatchObject({ text: "Hello! How can I help you?", finish_reason: "stop" });
  expect(single.usage.prompt_tokens).toBe(9);
  const several = await complete({ prompt: [tokens, tokens] });
  expect(several.choices.map(({ text }) => text)).toEqual(Array(2).fill("Hello! How can I help you?"));
});

test("echoes the prompt first, and then generates nothing with max_tokens 0", async () => {
  const { choices, usage } = await complete({ echo: true, max_tokens: 0 });
  expect(choices[0]).toMatchObject({ text: prompt, finish_reason: "length" });
  expect(usage).toEqual({ prompt_tokens: 4, completion_tokens: 0, total_tokens: 4 });
});

test("starts a new document for an empty prompt", async () => {
  const { usage } = await complete({ prompt: "", max_tokens: 4 });
  expect(usage).toEqual({ prompt_tokens: 1, completion_tokens: 4, total_tokens: 5 });
});

test("generates nothing with max_tokens 0, also without echo and in a stream", async () => {
  const silent = await complete({ max_tokens: 0 });
  expect(silent.choices[0]).toMatchObject({ text: "", finish_reason: "length" });
  expect(silent.usage).toEqual({ prompt_tokens: 4, completion_tokens: 0, total_tokens: 4 });
  const body = { prompt, max_tokens: 0, echo: true, stream: true, stream_options: { include_usage: true } };
  const { chunks, done } = await readEvents(await worker.post("/completions", body));
  expect(chunks.map((chunk) => chunk.choices[0]?.text)).toEqual([prompt, "", undefined]);
  expect(chunks.at(-1)?.usage).toEqual(silent.usage);
  expect(done).toBe(true);
});

test("answers empty prompts among others, with echo, in a stream and without tokens", async () => {
  const alone = await complete({ prompt: "", max_tokens: 4 });
  const mixed = await complete({ prompt: ["", prompt], echo: true, max_tokens: 4 });
  expect(mixed.choices.map(({ text }) => text?.startsWith(prompt))).toEqual([false, true]);
  expect(mixed.choices[0]?.text).toBe(alone.choices[0]?.text ?? "");
  expect(mixed.usage.prompt_tokens).toBe(5);
  const { chunks } = await readEvents(
    await worker.post("/completions", { prompt: "", echo: true, max_tokens: 4, temperature: 0, stream: true }),
  );
  expect(chunks.map((chunk) => chunk.choices[0]?.text ?? "").join("")).toBe(alone.choices[0]?.text ?? "");
  const nothing = await complete({ prompt: "", max_tokens: 0, echo: true });
  expect(nothing.choices[0]).toMatchObject({ text: "", finish_reason: "length" });
});

test("ends a completion at a stop text", async () => {
  const whole = (await complete({})).choices[0]?.text ?? "";
  const { choices } = await complete({ stop: whole.slice(8, 12) });
  expect(choices[0]).toMatchObject({ text: whole.slice(0, 8), finish_reason: "stop" });
});

const refusals: [name: string, options: Record<string, unknown>, message: RegExp][] = [
  ["no prompt", { prompt: undefined }, /^prompt must be a string, an array/],
  ["a token that does not exist", { prompt: [1, 2048] }, /^prompt\[1\] must be a token id .* 0 to 2047\.$/],
  ["a prompt that does not fit", { prompt: ["a", "b ".repeat(1200)] }, /limit|maximum context length .* prompt\[1\]/],
  ["a suffix that the model cannot take", { suffix: "." }, /^suffix: this model was not trained/],
  ["log-probabilities", { logprobs: 1 }, /^logprobs: /],
  ["ranking", { best_of: 2 }, /^best_of: /],
];

for (const [name, options, message] of refusals) {
  test(`refuses a completion request with a message that names the field: ${name}`, async () => {
    expect(await worker.refusal("/completions", { prompt, ...options })).toMatch(message);
  });
}
