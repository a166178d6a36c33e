// Tests that the results of pulls on a real disk are listed with their size and deleted completely.
import { afterEach, beforeEach, expect, test } from "bun:test";
import { mkdir, mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { runCommand } from "../../../tests/fixtures/command-line.ts";
import { ggufHeader, llama8b } from "../../../tests/support/gguf-file.ts";
import { canMount, fillDisk, smallDisk } from "../../../tests/support/small-disk.ts";
import { type ModelManifest, modelsDirectory, saveManifest } from "./model-store.ts";
import { claimPull } from "./pull-lock.ts";
import { listPulledModels, removePulledModel } from "./pulled-models.ts";

let dataDir: string;

beforeEach(async () => {
  dataDir = await mkdtemp(join(tmpdir(), "headrace-pulled-"));
});

afterEach(() => rm(dataDir, { recursive: true, force: true }));

const inStore = (name: string) => join(modelsDirectory(dataDir), name);

async function store(id: string, names: readonly string[], bytes = 1_000_000): Promise<void> {
  const [file = "", ...otherFiles] = names.map(inStore);
  const manifest: ModelManifest = {
    ...{ id, file, otherFiles, bytes, sha256: "a".repeat(64), source: `hf:acme/x:${id}.gguf` },
    ...{ pulledAt: 1_700_000_000, context: 2048, tools: false },
    capabilities: { chat: true, completion: true, embeddings: false },
  };
  await saveManifest(dataDir, manifest);
  for (const path of [file, ...otherFiles]) await writeFile(path, "x".repeat(bytes));
}

test("lists models with their total size, and interrupted pulls as incomplete", async () => {
  expect(await listPulledModels(dataDir)).toEqual([]);
  await store("whole", ["whole.gguf"]);
  await store("split", ["split-00001-of-00002.gguf", "split-00002-of-00002.gguf"]);
  await store("gone", ["gone.gguf"]);
  await rm(inStore("gone.gguf"));
  for (const [name, bytes] of [
    ["begun-00001-of-00002.gguf", 5],
    ["begun-00002-of-00002.gguf.part", 7],
  ] as const) {
    await writeFile(inStore(name), "x".repeat(bytes));
  }
  await writeFile(inStore("begun-00002-of-00002.gguf.part.json"), "{}");
  const seen = (await listPulledModels(dataDir)).map(({ id, bytes, state }) => [id, bytes, state]);
  expect(seen).toEqual([
    ["begun", 14, "incomplete"],
    ["gone", 0, "incomplete"],
    ["split", 2_000_000, "ready"],
    ["whole", 1_000_000, "ready"],
  ]);
});

test("groups the leading parts of an interrupted pull as a model, and no stray parts", async () => {
  await store("a", ["a.gguf"]);
  for (const name of [
    ...["begun-00001-of-00003.gguf", "begun-00002-of-00003.gguf.part", "begun-00002-of-00003.gguf.part.json"],
    ...["stray-00002-of-00003.gguf", "stray-00003-of-00003.gguf", "mixed-00001-of-00002.gguf"],
    ...["mixed-00002-of-00003.gguf", "none-00003-of-00002.gguf"],
  ]) {
    await writeFile(inStore(name), "x");
  }
  await writeFile(inStore("a-00001-of-00002.gguf"), "x");
  await store("split", ["split-00001-of-00002.gguf", "split-00002-of-00002.gguf"]);
  // The second part was damaged and is being pulled again.
  await rm(inStore("split-00002-of-00002.gguf"));
  await writeFile(inStore("split-00002-of-00002.gguf.part"), "x");
  expect((await listPulledModels(dataDir)).map(({ id, bytes }) => [id, bytes])).toEqual([
    ["a", 1_000_000],
    ["a-00001-of-00002", 1],
    ["begun", 3],
    ["mixed", 1],
    ["mixed-00002-of-00003", 1],
    ["none-00003-of-00002", 1],
    ["split", 1_000_001],
    ["stray-00002-of-00003", 1],
    ["stray-00003-of-00003", 1],
  ]);
  expect(await removePulledModel(dataDir, "a")).toMatchObject({ bytes: 1_000_000 });
  expect(await listPulledModels(dataDir)).toContainEqual(expect.objectContaining({ id: "a", bytes: 1 }));
});

test("deletes a model's manifest, files and interrupted parts, and nothing of other models", async () => {
  await store("a", ["a-00001-of-00002.gguf", "a-00002-of-00002.gguf"]);
  await store("a-b", ["a-b.gguf"]);
  await writeFile(inStore("a.gguf.part"), "xx");
  expect(await removePulledModel(dataDir, "a")).toMatchObject({ id: "a", bytes: 2_000_002 });
  expect((await readdir(modelsDirectory(dataDir))).sort()).toEqual(["a-b.gguf", "a-b.json"]);
  for (const id of ["a", "../models/a-b", "", "a-b.gguf"]) expect(await removePulledModel(dataDir, id)).toBeUndefined();
  expect(await listPulledModels(dataDir)).toMatchObject([{ id: "a-b", state: "ready" }]);
});

test("keeps a file that another model uses until that model is deleted", async () => {
  await store("a", ["a.gguf", "shared.gguf"]);
  await store("b", ["b.gguf", "shared.gguf"]);
  expect(await removePulledModel(dataDir, "a")).toMatchObject({ bytes: 1_000_000, left: [] });
  expect(await listPulledModels(dataDir)).toMatchObject([{ id: "b", state: "ready", bytes: 2_000_000 }]);
  expect(await removePulledModel(dataDir, "b")).toMatchObject({ bytes: 2_000_000 });
});

test("lists a readable file with its memory need and whether this machine has that much", async () => {
  await store("small", ["small.gguf"]);
  await writeFile(inStore("small.gguf"), ggufHeader(llama8b, [[4096, 256]]));
  const [listed] = await listPulledModels(dataDir);
  expect(listed?.facts).toEqual({ architecture: "llama", quantization: "Q4_K_M", parameters: 1_048_576 });
  expect(listed?.memory?.cache).toBe(65_536 * 2 * 8192 * 8);
  const asked = await listPulledModels(dataDir, { context: 1024, parallel: 1 });
  expect(asked[0]?.memory).toMatchObject({ cache: 65_536 * 2 * 1024, context: 1024, parallel: 1 });
  const { stdout } = await runCommand(["list", "--data-dir", dataDir]);
  expect(stdout).toMatch(/^small +\S+ kB +1.05 M +Q4_K_M +[\d.]+ GB +(yes|no|with less context|in its turn) /m);
});

test("reports a file that cannot be deleted, stops serving the model, and keeps the rest listed", async () => {
  await store("stuck", ["stuck-00001-of-00003.gguf", "stuck-00002-of-00003.gguf", "stuck-00003-of-00003.gguf"]);
  await rm(inStore("stuck-00002-of-00003.gguf"));
  // A directory cannot be deleted like a file.
  await mkdir(inStore("stuck-00002-of-00003.gguf"));
  expect(await removePulledModel(dataDir, "stuck")).toMatchObject({
    bytes: 1_000_000,
    left: ["stuck-00001-of-00003.gguf", expect.stringMatching(/^stuck-00002-of-00003\.gguf \(E\w+\)$/)],
  });
  expect(await listPulledModels(dataDir)).toMatchObject([{ id: "stuck", state: "incomplete", source: null }]);
  const { code, stderr } = await runCommand(["rm", "stuck", "--yes", "--data-dir", dataDir]);
  expect([code, stderr]).toEqual([1, expect.stringContaining("could not be deleted, but are not served now: stuck-")]);
});

test("does not delete a model during its pull", async () => {
  await store("busy", ["busy.gguf"]);
  const release = await claimPull(inStore("busy.lock"), "busy");
  await expect(removePulledModel(dataDir, "busy")).rejects.toThrow("Another headrace pull is fetching busy");
  await release();
  expect(await removePulledModel(dataDir, "busy")).toMatchObject({ id: "busy" });
});

test("does not delete a model during a pull of another version, whose lock holds a process id", async () => {
  await store("busy", ["busy.gguf"]);
  await writeFile(inStore("busy.lock"), String(process.ppid));
  await expect(removePulledModel(dataDir, "busy")).rejects.toThrow("Another headrace pull is fetching busy");
  expect(await readdir(modelsDirectory(dataDir))).toContain("busy.gguf");
});

test.skipIf(!canMount)("deletes a model on a full disk and leaves nothing", async () => {
  await using disk = smallDisk(8);
  dataDir = disk.path;
  await store("large", ["large.gguf"]);
  fillDisk(disk.path);
  await expect(writeFile(inStore("more"), "x")).rejects.toThrow("ENOSPC");
  await rm(inStore("more"), { force: true });
  expect(await removePulledModel(dataDir, "large")).toMatchObject({ id: "large", bytes: 1_000_000, left: [] });
  expect(await readdir(modelsDirectory(dataDir))).toEqual([]);
});

test("shows sizes in `headrace list`, and lets `headrace rm` delete all named models or none after a question", async () => {
  const run = (...args: string[]) => runCommand([...args, "--data-dir", dataDir], { nowMs: 1_700_000_600_000 });
  expect((await run("list")).stderr).toContain("No model was pulled to this machine yet");
  await store("one", ["one.gguf"]);
  await store("two", ["two.gguf"], 2_500_000);
  const { stdout, stderr } = await run("list");
  expect(stdout).toMatch(/^one +1.00 MB +- +- +- +- +10 min ago +hf:acme\/x:one.gguf$/m);
  expect(stderr).toContain("3.50 MB in all.");
  expect(JSON.parse((await run("list", "--json")).stdout)).toMatchObject([
    { id: "one", bytes: 1_000_000 },
    { id: "two" },
  ]);

  const refusals: [args: string[], code: number, said: string][] = [
    [["rm", "one"], 2, "Delete one (1.00 MB)?"],
    [["rm", "one", "three", "--yes"], 1, "There is no pulled model three here. headrace list shows"],
    [["rm", "tiny-demo", "--yes"], 1, "headrace serve --no-demo"],
  ];
  for (const [args, code, said] of refusals) {
    const refused = await run(...args);
    expect([refused.code, refused.stderr]).toEqual([code, expect.stringContaining(said)]);
  }
  const declined = await runCommand(["rm", "one", "--data-dir", dataDir], { isTTY: true, answers: ["n"] });
  expect([declined.code, declined.stderr]).toEqual([1, expect.stringContaining("Nothing was changed.")]);
  expect(await listPulledModels(dataDir)).toHaveLength(2);
  expect((await run("rm", "one", "two", "--yes")).stdout).toBe("one is deleted, 1.00 MB.\ntwo is deleted, 2.50 MB.\n");
  expect(await readdir(modelsDirectory(dataDir))).toEqual([]);
});

test("reports what `headrace rm` has deleted even if a later model is being pulled", async () => {
  await store("two", ["two.gguf"]);
  const release = await claimPull(inStore("two.lock"), "two");
  for (const [args, said] of [
    [[], "one is deleted, 1.00 MB.\n"],
    [["--json"], expect.stringContaining('"id": "one"')],
  ] as const) {
    await store("one", ["one.gguf"]);
    const { code, stdout, stderr } = await runCommand(["rm", "one", "two", "--yes", "--data-dir", dataDir, ...args]);
    expect([code, stdout]).toEqual([1, said]);
    expect(stderr).toContain("Another headrace pull is fetching two");
  }
  const { stdout } = await runCommand(["rm", "two", "--json", "--yes", "--data-dir", dataDir]);
  expect(stdout).toBe("");
  await release();
});
