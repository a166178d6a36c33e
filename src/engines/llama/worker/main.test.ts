import { afterAll, expect, test } from "bun:test";
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { toolTemplate } from "../../../../tests/support/llama/templates.ts";
import {
  demoModel,
  firstLine,
  spawnWorker,
  temporaryDirectory,
  until,
  WorkerProcess,
  writeVariant,
} from "../../../../tests/support/llama/worker-process.ts";
import { withinMs } from "../../../../tests/support/long.ts";
import { selfCommand } from "../../../installation/paths.ts";

const directory = temporaryDirectory();
const socket = join(directory.path, "worker.sock");

afterAll(() => directory.dispose());

async function inspect(path: string): Promise<{ code: number; answer: Record<string, unknown> }> {
  const child = Bun.spawn([...selfCommand("run-model"), "--inspect", path], { stdin: "ignore", stdout: "pipe" });
  const answer = await firstLine(child.stdout);
  return { code: await child.exited, answer };
}

test("reports when the worker is ready, and its capabilities", async () => {
  const worker = await WorkerProcess.start(directory.path, { context: 512, parallel: 2, threads: 1 });
  expect(worker.ready).toEqual({ ready: true, context: 512, parallel: 2, threads: 1, loadMs: expect.any(Number) });
  expect(await worker.stop()).toBe(0);
});

test("describes the model of a worker", async () => {
  const worker = await WorkerProcess.start(directory.path);
  const { data } = await worker.get<{ data: unknown[] }>("/models");
  expect(data).toEqual([
    {
      id: "tiny",
      object: "model",
      created: expect.any(Number),
      owned_by: "headrace",
      capabilities: { chat: true, completion: true, embeddings: true, tokenize: true },
      context_length: 1024,
      embedding_length: 256,
      parallel: 8,
      tools: false,
    },
  ]);
  await worker.stop();
});

const broken: [name: string, make: () => string, message: RegExp][] = [
  ["a missing file", () => join(directory.path, "none.gguf"), /^There is no file at .*none\.gguf/],
  ["a directory", () => directory.path, /is not a file/],
  ["another kind of file", () => write("other.gguf", new TextEncoder().encode("hello, world")), /is not a GGUF file/],
  ["a file torn in its header", () => write("torn.gguf", demoBytes.subarray(0, 10_000)), /is incomplete; get the file/],
  ["a file torn in its weights", () => write("torn.gguf", demoBytes.subarray(0, 1_000_000)), /is incomplete; get the/],
];
const demoBytes = await Bun.file(demoModel).bytes();

function write(name: string, bytes: Uint8Array): string {
  const path = join(directory.path, name);
  writeFileSync(path, bytes);
  return path;
}

for (const [name, make, message] of broken) {
  test(`${name} ends the worker with one line that names the fault`, async () => {
    const path = make();
    const child = spawnWorker({ socket, modelPath: path, modelId: "tiny" });
    const line = await firstLine(child.stdout);
    expect(line).toEqual({ ready: false, error: expect.stringMatching(message) });
    expect(await child.exited).toBe(1);
  });
}

test("reports a missing file, or a torn header, on inspection", async () => {
  expect(await inspect(write("torn.gguf", demoBytes.subarray(0, 10_000)))).toEqual({
    code: 1,
    answer: { error: expect.stringContaining("is incomplete; get the file again") },
  });
  expect((await inspect(join(directory.path, "none.gguf"))).code).toBe(1);
});

test("names an architecture that llama.cpp does not know", async () => {
  const path = await writeVariant(directory.path, "alien.gguf", { "general.architecture": "alien" });
  const child = spawnWorker({ socket, modelPath: path, modelId: "tiny" });
  expect(await firstLine(child.stdout)).toEqual({ ready: false, error: expect.stringContaining("alien") });
  expect(await child.exited).toBe(1);
});

test("inspects a file without loading it", async () => {
  expect(await inspect(demoModel)).toEqual({
    code: 0,
    answer: {
      architecture: "llama",
      name: "Tiny demo",
      context: 1024,
      embeddingLength: 256,
      parameters: 4_295_424,
      quantization: "Q8_0",
      capabilities: { chat: true, completion: true, embeddings: true, tokenize: true },
      tools: false,
    },
  });
  const path = await writeVariant(directory.path, "tools.gguf", { "tokenizer.chat_template": toolTemplate });
  expect((await inspect(path)).answer).toMatchObject({ tools: true });
});

test("serves completions but no chat with a model without a chat template", async () => {
  const modelPath = await writeVariant(directory.path, "base.gguf", { "tokenizer.chat_template": "" });
  const worker = await WorkerProcess.start(directory.path, { modelPath });
  expect(await worker.chatRefusal({})).toContain("no chat template");
  const { choices } = await worker.complete("/completions", { prompt: "Once", max_tokens: 2 });
  expect(choices[0]?.finish_reason).toBe("length");
  await worker.stop();
});

test("ends a worker with its parent, also in the middle of a generation", async () => {
  const child = spawnWorker({ socket, modelPath: demoModel, modelId: "tiny" });
  expect(await firstLine(child.stdout)).toMatchObject({ ready: true });
  const body = JSON.stringify({ prompt: "Once", max_tokens: 1000, n: 100, stream: true });
  const response = await fetch("http://worker/completions", { method: "POST", body, unix: socket });
  await response.body?.getReader().read();
  const started = performance.now();
  child.stdin.end();
  expect(await child.exited).toBe(0);
  expect(performance.now() - started).toBeLessThan(withinMs(2000));
  expect(existsSync(socket)).toBe(false);
});

test("removes the socket's directory if it is empty, and keeps one with other content", async () => {
  const own = join(directory.path, "own");
  for (const other of [undefined, "other"]) {
    mkdirSync(own);
    if (other !== undefined) writeFileSync(join(own, other), "");
    const child = spawnWorker({ socket: join(own, "worker.sock"), modelPath: demoModel, modelId: "tiny" });
    expect(await firstLine(child.stdout)).toMatchObject({ ready: true });
    child.stdin.end();
    expect(await child.exited).toBe(0);
    expect(existsSync(own)).toBe(other !== undefined);
  }
});

test("ends a worker on SIGTERM, also while it loads", async () => {
  const running = spawnWorker({ socket, modelPath: demoModel, modelId: "tiny" });
  await firstLine(running.stdout);
  running.kill("SIGTERM");
  expect(await running.exited).toBe(0);
  const loading = spawnWorker({ socket, modelPath: demoModel, modelId: "tiny" });
  loading.stdin.end();
  await until(async () => loading.exitCode !== null);
  expect(loading.exitCode).toBe(0);
});
