// Tests that the facts in model files are read within limits, and that the memory of a model is estimated from them.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ggufHeader, llama8b } from "../../../../tests/support/gguf-file.ts";
import { estimateMemory } from "./estimate.ts";
import { readGgufHeader } from "./header.ts";
import { readModelFile, unreadModelFile } from "./model-file.ts";

const demoModelFile = join(import.meta.dir, "../../../../models/tiny-demo/tiny-demo.gguf");
let folder: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "headrace-gguf-"));
});

afterAll(() => rm(folder, { recursive: true, force: true }));

async function file(name: string, bytes: Buffer): Promise<string> {
  const path = join(folder, name);
  await writeFile(path, bytes);
  return path;
}

test("reads architecture, quantization, parameters and context of a real file", async () => {
  expect(await readModelFile([demoModelFile])).toMatchObject({
    ...{ architecture: "llama", quantization: "Q8_0", parameters: 4_295_424, context: 1024, vocabulary: 2048 },
    ...{ embedding: 256, cachedPerToken: 2560 },
  });
});

test("adds up the parts of a model, and reads a header of several megabytes", async () => {
  const first = await file("a-00001-of-00002.gguf", ggufHeader(llama8b, [[4096, 4096]]));
  const words = Array.from({ length: 150_000 }, (_, index) => `a longer word of a vocabulary, ${index}`);
  const second = await file("a-00002-of-00002.gguf", ggufHeader({ "tokenizer.ggml.tokens": words }, [[10, 2]]));
  const facts = await readModelFile([first, second]);
  expect(facts).toMatchObject({ parameters: 4096 * 4096 + 20, quantization: "Q4_K_M", context: 131_072 });
  expect(facts.fileBytes).toBeGreaterThan(6_000_000);
});

test("estimates memory from weights, context and buffers, for requested or default settings", async () => {
  const facts = { ...(await readModelFile([await file("b.gguf", ggufHeader(llama8b))])), fileBytes: 4_900_000_000 };
  // The model has 32 layers, 8 heads, and keys and values of 128 numbers each.
  expect(facts.cachedPerToken).toBe(32 * 8 * 256);
  const usual = estimateMemory(facts, { context: undefined, parallel: undefined });
  expect(usual).toMatchObject({ context: 8192, parallel: 4, weights: 4_900_000_000, cache: 65_536 * 2 * 8192 * 4 });
  expect(usual.bytes).toBe(usual.weights + usual.cache + usual.compute);
  expect(usual.minBytes).toBe(usual.weights + 65_536 * 2 * 512 + usual.compute);
  expect(estimateMemory(facts, { context: 2048, parallel: 1 }).cache).toBe(65_536 * 2 * 2048);
});

test("adds up heads that differ by layer", async () => {
  const metadata = { ...llama8b, "llama.attention.head_count_kv": [8, 0, 4], "llama.block_count": 3 };
  const facts = await readModelFile([await file("c.gguf", ggufHeader(metadata))]);
  expect(facts.cachedPerToken).toBe(12 * 256);
});

const whole = ggufHeader(llama8b, [[2]]);
const changed = (at: number, bytes: readonly number[]) => {
  const copy = Buffer.from(whole);
  copy.set(bytes, at);
  return copy;
};

test.each([
  ["no GGUF", Buffer.from("PK\x03\x04 and so on, for more than a header"), "it is not a GGUF file"],
  ["of another version", changed(4, [1]), "its version of GGUF is 1"],
  ["of the other byte order", changed(4, [0, 0, 0, 3]), "its version of GGUF is 50331648"],
  ["cut off", whole.subarray(0, 200), "it ends within its header"],
  ["with more tensors than any", changed(8, [255, 255, 255, 255]), "4294967295 tensors"],
  ["with lengths beyond numbers", changed(24, [255, 255, 255, 255, 255, 255, 255, 255]), "bytes of a key"],
  ["with values of no type", changed(24 + 8 + 20, [99]), "a value has the type 99"],
  ["without an architecture", ggufHeader({ a: 1 }), "it does not say which architecture it has"],
  [
    "with a list of endless length",
    ggufHeader({ a: [1] }).fill(255, 24 + 8 + 1 + 4 + 4, 24 + 8 + 1 + 4 + 4 + 6),
    "ends within",
  ],
  [
    "with more texts than any vocabulary",
    ggufHeader({ a: Array.from({ length: 2_000_001 }, () => "") }),
    "it says to have 2000001 texts in its lists",
  ],
  [
    "of more memory than any machine",
    ggufHeader({ ...llama8b, "llama.block_count": 2 ** 31 - 1, "llama.attention.head_count_kv": 2 ** 31 - 1 }),
    "numbers for each token",
  ],
])("refuses a file that is %s, with the reason", async (name, bytes, reason) => {
  const path = await file(`${name}.gguf`, bytes);
  await expect(readModelFile([path])).rejects.toThrow(reason);
});

test("skips long metadata lists without memory or time", async () => {
  const numbers = Array.from({ length: 1024 }, (_, index) => index);
  const long = Object.fromEntries(Array.from({ length: 100 }, (_, index) => [`junk${index}`, numbers]));
  expect([...readGgufHeader(ggufHeader(long)).metadata.values()]).toHaveLength(64);
});

test("estimates an unreadable file by at least its own size", async () => {
  const path = await file("unread.gguf", Buffer.alloc(5_000_000));
  const need = estimateMemory(await unreadModelFile([path]), { context: undefined, parallel: undefined });
  expect(need).toMatchObject({ weights: 5_000_000, cache: 0 });
  expect(need.minBytes).toBeGreaterThan(100_000_000);
});
