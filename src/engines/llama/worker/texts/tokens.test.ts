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

interface Told {
  tokens: number[];
  count: number;
  max_model_len: number;
}

async function told<Answer = Told>(path: string, body: Record<string, unknown>): Promise<Answer> {
  const response = await worker.post(path, body);
  expect(response.status).toBe(200);
  return (await response.json()) as Answer;
}

const texts = ["How do I rotate a key?", "Grüße, 世界 🌍", "  two spaces\nand a line", ""];

test("a text comes back from its tokens, whatever it is written in", async () => {
  for (const text of texts) {
    const { tokens, count, max_model_len: most } = await told("/tokenize", { content: text });
    expect([tokens.length, most]).toEqual([count, 1024]);
    expect(await told<unknown>("/detokenize", { tokens })).toEqual({ prompt: text, content: text });
  }
});

test("a conversation has as many tokens as its answer is told to have read", async () => {
  const messages = [{ role: "user", content: "Who are you?" }];
  const { count } = await told("/tokenize", { messages });
  const { usage } = await worker.complete("/chat/completions", { messages, max_tokens: 1 });
  expect(count).toBe(usage.prompt_tokens);
});

test("a prompt has as many tokens as its completion is told to have read", async () => {
  const prompt = "Once upon a time";
  const { count } = await told("/tokenize", { prompt });
  const { usage } = await worker.complete("/completions", { prompt, max_tokens: 1 });
  expect(count).toBe(usage.prompt_tokens);
});

test("what spells a control token is text, unless the request says that it is meant", async () => {
  const text = "<|im_start|>";
  const [plain, meant] = await Promise.all([
    told("/tokenize", { content: text }),
    told("/tokenize", { content: text, parse_special: true }),
  ]);
  expect(meant.count).toBe(1);
  expect(plain.count).toBeGreaterThan(1);
});

test("the texts of tokens are told beside them, in the form that is asked for", async () => {
  const text = "rotate a key";
  const pieces = await told<{ tokens: { id: number; piece: string }[] }>("/tokenize", {
    content: text,
    with_pieces: true,
  });
  const { tokens } = await told("/tokenize", { content: text });
  expect(pieces.tokens.map(({ id }) => id)).toEqual(tokens);
  expect(pieces.tokens.map(({ piece }) => piece).join("")).toBe(text);
  const strings = await told<{ token_strs: string[] }>("/tokenize", { content: text, return_token_strs: true });
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
  test(`a request for tokens is refused with a message that names the field: ${name}`, async () => {
    expect(await worker.refusal(path, body)).toMatch(message);
  });
}

test("the texts of more tokens than one request may hold up the others with are refused, and their ids are not", async () => {
  const prompt = "q9#".repeat(30_000);
  expect((await told("/tokenize", { prompt })).count).toBeGreaterThan(65_536);
  for (const more of [{ with_pieces: true }, { return_token_strs: true }]) {
    const response = await worker.post("/tokenize", { prompt, ...more });
    expect([response.status, await response.text()]).toEqual([400, expect.stringContaining("at most 65536 tokens")]);
  }
});
