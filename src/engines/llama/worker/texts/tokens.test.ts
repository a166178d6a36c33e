import { afterAll, beforeAll, expect, test } from "bun:test";
import { temporaryDirectory, WorkerProcess } from "../../../../../tests/support/llama/worker-process.ts";

const directory = temporaryDirectory();
let worker: WorkerProcess;

beforeAll(async () => {
  worker = await WorkerProcess.start(directory.path);
});

afterAll(async () => {
  await worker.stop();
  directory.dispose();
});

interface Reported {
  tokens: number[];
  count: number;
  max_model_len: number;
}

async function ask<Answer = Reported>(path: string, body: Record<string, unknown>): Promise<Answer> {
  const response = await worker.post(path, body);
  expect(response.status).toBe(200);
  return (await response.json()) as Answer;
}

const texts = ["How do I rotate a key?", "Grüße, 世界 🌍", "  two spaces\nand a line", ""];

test("restores a text from its tokens in any script", async () => {
  for (const text of texts) {
    const { tokens, count, max_model_len: most } = await ask("/tokenize", { content: text });
    expect([tokens.length, most]).toEqual([count, 1024]);
    expect(await ask<unknown>("/detokenize", { tokens })).toEqual({ prompt: text, content: text });
  }
});

test("counts a conversation's tokens like the usage of its answer", async () => {
  const messages = [{ role: "user", content: "Who are you?" }];
  const { count } = await ask("/tokenize", { messages });
  const { usage } = await worker.complete("/chat/completions", { messages, max_tokens: 1 });
  expect(count).toBe(usage.prompt_tokens);
});

test("counts a prompt's tokens like the usage of its completion", async () => {
  const prompt = "Once upon a time";
  const { count } = await ask("/tokenize", { prompt });
  const { usage } = await worker.complete("/completions", { prompt, max_tokens: 1 });
  expect(count).toBe(usage.prompt_tokens);
});

test("tokenizes the spelling of a control token as text unless the request says otherwise", async () => {
  const text = "<|im_start|>";
  const [plain, meant] = await Promise.all([
    ask("/tokenize", { content: text }),
    ask("/tokenize", { content: text, parse_special: true }),
  ]);
  expect(meant.count).toBe(1);
  expect(plain.count).toBeGreaterThan(1);
});

test("returns the texts of tokens in the requested form", async () => {
  const text = "rotate a key";
  const pieces = await ask<{ tokens: { id: number; piece: string }[] }>("/tokenize", {
    content: text,
    with_pieces: true,
  });
  const { tokens } = await ask("/tokenize", { content: text });
  expect(pieces.tokens.map(({ id }) => id)).toEqual(tokens);
  expect(pieces.tokens.map(({ piece }) => piece).join("")).toBe(text);
  const strings = await ask<{ token_strs: string[] }>("/tokenize", { content: text, return_token_strs: true });
  expect(strings.token_strs.join("")).toBe(text);
});

const refusals: [name: string, path: string, body: Record<string, unknown>, message: RegExp][] = [
  ["no text", "/tokenize", {}, /^prompt is required/],
  ["a text that is none", "/tokenize", { prompt: 5 }, /^prompt must be a string/],
  [
    "a text of megabytes",
    "/tokenize",
    { content: "x".repeat(1_048_577) },
    /^content may have at most 1048576 characters/,
  ],
  [
    "a token that there is not",
    "/detokenize",
    { tokens: [1, 9_999_999] },
    /^tokens\[1\] must be a token id of the model/,
  ],
];
for (const [name, path, body, message] of refusals) {
  test(`refuses a request for tokens with a message that names the field: ${name}`, async () => {
    expect(await worker.refusal(path, body)).toMatch(message);
  });
}

test("refuses the texts of too many tokens, but not their ids", async () => {
  const prompt = "q9#".repeat(30_000);
  expect((await ask("/tokenize", { prompt })).count).toBeGreaterThan(65_536);
  for (const more of [{ with_pieces: true }, { return_token_strs: true }]) {
    const response = await worker.post("/tokenize", { prompt, ...more });
    expect([response.status, await response.text()]).toEqual([400, expect.stringContaining("at most 65536 tokens")]);
  }
});
