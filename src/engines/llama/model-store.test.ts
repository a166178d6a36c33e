// Tests the store of pulled models in a real directory.
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { mkdtemp, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  checkModelId,
  listModels,
  type ModelManifest,
  modelIdFrom,
  modelsDirectory,
  prepareModelsDirectory,
  saveManifest,
} from "./model-store.ts";

let dataDir: string;

beforeEach(async () => {
  dataDir = await mkdtemp(join(tmpdir(), "headrace-store-"));
});

afterEach(() => rm(dataDir, { recursive: true, force: true }));

function manifest(id: string): ModelManifest {
  return {
    id,
    file: join(modelsDirectory(dataDir), `${id}.gguf`),
    otherFiles: [],
    bytes: 3,
    sha256: "a".repeat(64),
    source: `hf:acme/x:${id}.gguf`,
    pulledAt: 1_700_000_000,
    context: 2048,
    capabilities: { chat: true, completion: true, embeddings: false },
    tools: false,
  };
}

async function store(model: ModelManifest): Promise<void> {
  await saveManifest(dataDir, model);
  for (const path of [model.file, ...model.otherFiles]) await writeFile(path, "abc");
}

test("lists no models without a data directory", async () => {
  expect(await listModels(join(dataDir, "none"))).toEqual([]);
});

test("reports an unreadable models directory and still starts", async () => {
  await writeFile(modelsDirectory(dataDir), "a file");
  const skipped: string[] = [];
  expect(await listModels(dataDir, (path, reason) => void skipped.push(`${path}: ${reason}`))).toEqual([]);
  expect(skipped).toEqual([`${modelsDirectory(dataDir)}: the directory cannot be read (ENOTDIR)`]);
});

test("lists saved models, sorted, with absolute paths", async () => {
  const split = { ...manifest("a"), otherFiles: [join(modelsDirectory(dataDir), "a-00002-of-00002.gguf")] };
  await store(manifest("b"));
  await store(split);
  expect(await listModels(dataDir)).toEqual([split, manifest("b")]);
});

test("stores bare file names in a manifest, so that the data directory can move", async () => {
  await store(manifest("a"));
  const stored: unknown = JSON.parse(await readFile(join(modelsDirectory(dataDir), "a.json"), "utf8"));
  expect(stored).toMatchObject({ id: "a", file: "a.gguf" });
  expect((await readdir(modelsDirectory(dataDir))).sort()).toEqual(["a.gguf", "a.json"]);
});

test("skips a broken manifest with a reason, and keeps the others", async () => {
  await store(manifest("good"));
  const write = (name: string, text: string) => writeFile(join(modelsDirectory(dataDir), name), text);
  await write("torn.json", '{"id": "to');
  await write("wrong.json", JSON.stringify({ ...manifest("wrong"), file: "wrong.gguf", bytes: "many" }));
  await write("outside.json", JSON.stringify({ ...manifest("outside"), file: "../../etc/passwd" }));
  await write("renamed.json", JSON.stringify({ ...manifest("other"), file: "good.gguf" }));
  await saveManifest(dataDir, manifest("gone"));
  await write("x.gguf.part.json", "{}");
  const skipped: Record<string, string> = {};
  const models = await listModels(dataDir, (path, reason) => {
    skipped[path.slice(modelsDirectory(dataDir).length + 1)] = reason;
  });
  expect(models.map((model) => model.id)).toEqual(["good"]);
  expect(skipped).toEqual({
    "gone.json": "gone.gguf is missing; pull the model again",
    "outside.json": "field 'file': must be a file name without a folder",
    "renamed.json": "its id 'other' does not match its file name",
    "torn.json": "it is not valid JSON",
    "wrong.json": expect.stringContaining("field 'bytes'"),
  });
});

test("creates the data directory for its owner only", async () => {
  await prepareModelsDirectory(join(dataDir, "new"));
  expect((await stat(join(dataDir, "new"))).mode & 0o777).toBe(0o700);
});

describe("the id of a model", () => {
  test.each([
    ["Qwen3-0.6B-Q8_0", "qwen3-0.6b-q8_0"],
    ["My Model (v2)", "my-model-v2"],
    ["..hidden", "hidden"],
  ])("derives the id of the file name %p as %p", (stem, id) => {
    expect(modelIdFrom(stem)).toBe(id);
  });

  test("asks for --name if no id can be derived", () => {
    expect(() => modelIdFrom("模型")).toThrow("--name");
  });

  test.each(["", "Upper", "a/b", "../a", ".a", "a b", "a".repeat(129)])("refuses %p as an id", (id) => {
    expect(() => checkModelId(id)).toThrow("1 to 128 lower-case letters");
  });
});
