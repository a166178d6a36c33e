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

interface Embeddings {
  object: string;
  model: string;
  data: { object: string; index: number; embedding: number[] | string }[];
  usage: { prompt_tokens: number; total_tokens: number };
}

async function embed(options: Record<string, unknown>): Promise<Embeddings> {
  const response = await worker.post("/embeddings", options);
  expect(response.status).toBe(200);
  return (await response.json()) as Embeddings;
}

const texts = ["How do I rotate a key?", "Which scopes exist?"];

test("returns the same normalized numbers in both encodings", async () => {
  const plain = await embed({ input: texts });
  const packed = await embed({ input: texts, encoding_format: "base64" });
  expect(plain).toMatchObject({ object: "list", model: "tiny" });
  expect(plain.data.map(({ object, index }) => [object, index])).toEqual([
    ["embedding", 0],
    ["embedding", 1],
  ]);
  for (const [index, { embedding }] of plain.data.entries()) {
    const bytes = Buffer.from(String(packed.data[index]?.embedding), "base64");
    const numbers = Array.from({ length: bytes.length / 4 }, (_, at) => bytes.readFloatLE(at * 4));
    expect(numbers).toHaveLength(256);
    expect(numbers).toEqual(embedding as number[]);
    expect(Math.hypot(...numbers)).toBeCloseTo(1, 5);
  }
});

test("counts tokens in usage, and embeds a token array like its text", async () => {
  const text = await embed({ input: "hi", dimensions: 256 });
  const tokens = await embed({ input: [[104, 105]] });
  const same = await embed({ input: [104, 105] });
  expect(same).toEqual(tokens);
  const several = await embed({ input: ["hi", "hi"] });
  expect(several.usage.prompt_tokens).toBe(text.usage.prompt_tokens * 2);
  expect(several.usage.total_tokens).toBe(several.usage.prompt_tokens);
  expect(several.data[0]?.embedding).toEqual(several.data[1]?.embedding ?? []);
});

test("accepts an input of exactly the context length, and refuses a longer one by its position", async () => {
  const longest = await embed({ input: [Array(1024).fill(97)] });
  expect(longest.usage.prompt_tokens).toBe(1024);
  const message = await worker.refusal("/embeddings", { input: ["a", Array(1025).fill(97)] });
  expect(message).toBe("input[1] comes to 1025 tokens; this model takes at most 1024. Split the text.");
});

test("names a too long token input as in the request", async () => {
  const message = await worker.refusal("/embeddings", { input: Array(1025).fill(97) });
  expect(message).toStartWith("input comes to 1025 tokens");
});

test("does not mix concurrent requests", async () => {
  const alone = await Promise.all(texts.map((input) => embed({ input })));
  const together = await Promise.all([...texts, ...texts].map((input) => embed({ input })));
  expect(together.map(({ data }) => data[0]?.embedding)).toEqual(
    [...alone, ...alone].map(({ data }) => data[0]?.embedding),
  );
});

const refusals: [name: string, options: Record<string, unknown>, message: RegExp][] = [
  ["another length", { dimensions: 128 }, /^dimensions must be 256/],
  ["no input", { input: [] }, /^input must be a string, an array/],
  ["an empty text", { input: ["a", ""] }, /^input\[1\] must not be empty/],
  ["an object", { input: { image: "data:," } }, /^input must be a string, an array/],
  ["an object among texts", { input: ["a", { text: "b" }] }, /^input\[1\] must be a string or an array of token ids/],
  ["an unknown encoding", { encoding_format: "hex" }, /^encoding_format must be one of "float", "base64"/],
  ["an entry of another kind", { input: ["a", 5] }, /^input\[1\] must be a string or an array of token ids/],
];

for (const [name, options, message] of refusals) {
  test(`refuses an embedding request with a message that names the field: ${name}`, async () => {
    expect(await worker.refusal("/embeddings", { input: "a", ...options })).toMatch(message);
  });
}
