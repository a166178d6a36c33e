// Which command a model file becomes: what llama-server documents, for what the settings and the file say.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ggufHeader, llama8b } from "../../tests/support/gguf-file.ts";
import { loadConfig } from "../config/config.ts";
import type { LlamaModel } from "../engines/llama/llama-engine.ts";
import { fileCommands } from "./llama-server-files.ts";

let folder: string;
const skipped: unknown[] = [];
const log = { info() {}, error() {}, warn: (_event: string, fields?: object) => void skipped.push(fields) };

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "headrace-file-commands-"));
  mkdirSync(join(folder, "bin"));
  writeFileSync(join(folder, "bin", "llama-server"), "#!/bin/sh\necho 'usage: --spec-type TYPE'\n");
  chmodSync(join(folder, "bin", "llama-server"), 0o755);
  for (const name of ["model", "draft", "mmproj"]) writeFileSync(join(folder, `${name}.gguf`), ggufHeader(llama8b));
});

afterAll(() => rmSync(folder, { recursive: true, force: true }));

const need = { bytes: 1e9, minBytes: 5e8, weights: 4e8, cache: 5e8, compute: 1e8, context: 4096, parallel: 2 };
const models = async (): Promise<LlamaModel[]> => [
  { id: "vl", path: join(folder, "model.gguf"), ownedBy: "local", eager: false, memory: () => need },
  { id: "tiny", path: join(folder, "draft.gguf"), ownedBy: "local", eager: true, memory: () => need },
];

async function commands(files: string, { path = join(folder, "bin"), gpu = false } = {}) {
  skipped.length = 0;
  const file = join(folder, "headrace.yaml");
  writeFileSync(file, `engine: { threads: 3, files: [${files}] }`);
  const config = await loadConfig({ flags: { config: file }, env: {}, cwd: folder });
  const totals = { ram: 8e9, ...(gpu ? { gpu0: 8e9 } : {}) };
  return await fileCommands({ config, models, totals, environment: { PATH: `${path}:/usr/bin:/bin` }, log });
}

test("turns a file into a command with id, slots, projector and draft, and the memory of all three", async () => {
  const [command] = await commands(
    "{ model: vl, engine: llama-server, projector: mmproj.gguf, draft: tiny, arguments: '--flash-attn on' }",
  );
  expect(command?.command).toEqual([
    ...[join(folder, "bin", "llama-server"), "--model", join(folder, "model.gguf"), "--alias", "vl"],
    ...["--host", "127.0.0.1", "--port", "$" + "{PORT}", "--ctx-size", "8192", "--parallel", "2", "--threads", "3"],
    ...["--mmproj", join(folder, "mmproj.gguf"), "--model-draft", join(folder, "draft.gguf")],
    ...["--spec-type", "draft-simple", "--flash-attn", "on"],
  ]);
  expect(command).toMatchObject({
    name: "llama-server-vl",
    models: ["vl"],
    parallel: 2,
    pinned: false,
    keepSeconds: 600,
  });
  expect(command?.memory?.ram).toBeGreaterThan(need.bytes);
});

test("pins a file that is named for the start, and measures its memory on a GPU", async () => {
  const [command] = await commands("{ model: tiny, engine: llama-server }", { gpu: true });
  expect(command).toMatchObject({ pinned: true, preload: true, keepSeconds: null, memory: undefined });
});

test.each([
  ["{ model: gone, engine: llama-server }", {}, "gone was not pulled"],
  ["{ model: vl, engine: llama-server, draft: gone }", {}, "its draft gone was not pulled"],
  ["{ model: vl, engine: llama-server, projector: none.gguf }", {}, "cannot be read"],
  ["{ model: vl, engine: llama-server }", { path: "/nowhere" }, "llama-server is not on the PATH"],
])("logs and skips %s if a part is missing", async (files, where, reason) => {
  expect(await commands(files, where)).toEqual([]);
  expect(skipped).toMatchObject([{ detail: expect.stringContaining(reason) }]);
});

test.each([
  ["{ model: vl }", "engine"],
  ["{ model: vl, engine: ollama }", "llama-server"],
  ["{ model: vl, engine: llama-server, draft: vl }", "is the model itself"],
  ["{ model: vl, engine: llama-server }, { model: vl, engine: llama-server }", "is the model of another entry"],
  ['{ model: vl, engine: llama-server, arguments: "--a \'b" }', "quotes closed"],
])("refuses the configuration %s", async (files, said) => {
  await expect(commands(files)).rejects.toThrow(said);
});
