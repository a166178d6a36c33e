// The life of the built-in engine's processes: early requests, deaths while loading, models loaded on demand.
import { expect, test } from "bun:test";
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { saveManifest } from "../../src/engines/llama/model-store.ts";
import { startHeadrace, until } from "../support/headrace.ts";
import { makeOperatorKey } from "../support/operator-key.ts";

const gguf = join(import.meta.dir, "..", "..", "models", "tiny-demo", "tiny-demo.gguf");
const body = (model: string) => ({ model, temperature: 0, messages: [{ role: "user", content: "Who are you?" }] });

function temporaryDirectory(): { path: string; [Symbol.dispose](): void } {
  const path = mkdtempSync(join(tmpdir(), "headrace-life-"));
  return { path, [Symbol.dispose]: () => rmSync(path, { recursive: true, force: true }) };
}

test("serves waiting requests by a new process if the engine dies while loading", async () => {
  await using server = await startHeadrace({ demo: true });
  await server.request("/v1/chat/completions", { body: body("tiny-demo") });
  const pid = () => server.engine.status()[0]?.pid;
  const first = pid();
  process.kill(first ?? 0, "SIGKILL");
  const successor = await until(() => (pid() === first ? undefined : pid()), "the successor begins to load");
  const waiting = server.request("/v1/chat/completions", { body: body("tiny-demo") });
  process.kill(successor, "SIGKILL");
  expect((await waiting).status).toBe(200);
  expect(server.logged("engine_failed")).toHaveLength(0);
  expect(server.logged("engine_crashed").length).toBeGreaterThanOrEqual(2);
});

/** The demo model's file under each of these ids, as if they had been pulled. */
async function pulled(dataDir: string, ids: readonly string[]): Promise<void> {
  mkdirSync(join(dataDir, "models"), { recursive: true });
  for (const id of ids) {
    const file = join(dataDir, "models", `${id}.gguf`);
    copyFileSync(gguf, file);
    const capabilities = { chat: true, completion: true, embeddings: true };
    const facts = { bytes: 4_636_352, sha256: "0".repeat(64), source: "test", pulledAt: 1, capabilities, tools: false };
    await saveManifest(dataDir, { id, file, otherFiles: [], ...facts });
  }
}

test("swaps models that do not fit into memory together, answers all requests, and keeps the budget", async () => {
  using directory = temporaryDirectory();
  const dataDir = join(directory.path, "data");
  const ids = ["one", "two", "three", "four"];
  await pulled(dataDir, ids);
  // Each needs 159 MB: two at a time. How long a request waits at most is another test's.
  const yaml = "limits: { queue_seconds: 55 }\nengine: { memory: { ram: 400MB } }";
  await using server = await startHeadrace({ dataDir, yaml });
  const ask = (id: string) => server.request("/v1/chat/completions", { body: body(id) });
  let most = 0;
  const watching = setInterval(() => {
    most = Math.max(
      most,
      server.engine.held().reduce((sum, { bytes }) => sum + bytes, 0),
    );
  }, 5);
  const together = await Promise.all([...ids, ...ids].map(ask));
  expect(together.map(({ status }) => status)).toEqual(together.map(() => 200));
  for (const id of ids) expect((await ask(id)).status).toBe(200);
  clearInterval(watching);
  expect(most).toBeGreaterThan(300_000_000);
  expect(most).toBeLessThanOrEqual(400_000_000);
  expect(server.engine.status().length).toBeLessThanOrEqual(2);
  expect(server.engine.memory()).toMatchObject({ total: 400_000_000, pinned: 0 });
});

test("keeps as many models loaded as fit, and refuses one that never fits with the sizes in the log", async () => {
  using directory = temporaryDirectory();
  const dataDir = join(directory.path, "data");
  const ids = ["one", "two", "three", "four", "five"];
  await pulled(dataDir, ids);
  await using server = await startHeadrace({ dataDir, yaml: "engine: { memory: { ram: 1GB } }" });
  const ask = (id: string) => server.request("/v1/chat/completions", { body: body(id) });
  for (const id of ids) expect((await ask(id)).status).toBe(200);
  expect(server.engine.status()).toHaveLength(5);

  await using small = await startHeadrace({
    dataDir: `${dataDir}`.replace("data", "other"),
    yaml: "engine: { memory: { ram: 100MB } }",
    demo: true,
  });
  const refused = await small.request("/v1/chat/completions", { body: body("tiny-demo") });
  expect([refused.status, (await refused.json()).error.message]).toEqual([
    503,
    "The model `tiny-demo` does not fit into the memory of this server.",
  ]);
  expect(small.logged("engine_failed")[0]?.["detail"]).toMatch(
    /^it needs \d+ MB of memory, and models may have 100 MB$/,
  );
});

test("reduces a model's slots and context if memory is short", async () => {
  await using server = await startHeadrace({ demo: true, yaml: "engine: { memory: { ram: 130MB } }" });
  expect((await server.request("/v1/chat/completions", { body: { ...body("tiny-demo"), max_tokens: 1 } })).status).toBe(
    200,
  );
  expect(server.logged("engine_ready")[0]).toMatchObject({ parallel: 2, context: 1024 });
});

test("removes a pulled model that an operator deletes from offer, memory and disk, and audits it", async () => {
  using directory = temporaryDirectory();
  const dataDir = join(directory.path, "data");
  mkdirSync(join(dataDir, "models"), { recursive: true });
  const file = join(dataDir, "models", "mine.gguf");
  copyFileSync(gguf, file);
  const capabilities = { chat: true, completion: true, embeddings: true };
  const facts = { bytes: 4_636_352, sha256: "0".repeat(64), source: "test", pulledAt: 1, capabilities, tools: false };
  await saveManifest(dataDir, { id: "mine", file, otherFiles: [], ...facts });
  await using server = await startHeadrace({ dataDir });
  const operator = await makeOperatorKey(dataDir);
  const headers = { authorization: `Bearer ${operator}` };
  const path = "/v1/admin/pulled-models";
  const listed = await (await server.request(path, { headers })).json();
  expect(listed.data).toEqual([
    {
      ...{ object: "pulled_model", id: "mine", bytes: statSync(gguf).size, state: "ready", source: "test" },
      ...{ pulled_at: 1, capabilities, context_length: null, architecture: "llama", quantization: "Q8_0" },
      ...{ parameters: 4_295_424, fit: "now", use: "unloaded", in_use: 0 },
      memory: expect.objectContaining({ weights: statSync(gguf).size, context_length: 1024, parallel: 8 }),
    },
  ]);
  expect(listed.memory.free_bytes).toBeLessThanOrEqual(listed.memory.total_bytes);
  expect((await server.request("/v1/chat/completions", { body: body("mine") })).status).toBe(200);
  await until(() => server.engine.status().every(({ busy }) => busy === 0), "it is idle");

  expect((await server.request(`${path}/mine`, { method: "DELETE" })).status).toBe(403);
  expect((await server.request(`${path}/..%2f..%2fsecret`, { method: "DELETE", headers })).status).toBe(404);
  const deleted = await server.request(`${path}/mine`, { method: "DELETE", headers });
  expect(await deleted.json()).toMatchObject({ object: "pulled_model", id: "mine", deleted: true });
  expect(server.catalog.find("mine")).toBeUndefined();
  expect(server.engine.status()).toEqual([]);
  expect(existsSync(file)).toBe(false);
  expect((await server.request("/v1/chat/completions", { body: body("mine") })).status).toBe(404);
  expect((await server.request(`${path}/mine`, { method: "DELETE", headers })).status).toBe(404);
  const audit = await (await server.request("/v1/admin/audit?target=mine", { headers })).json();
  expect(audit.data).toMatchObject([{ action: "pulled_model.deleted", detail: { source: "test" } }]);
});

test("answers the first request with the built-in model while a silent local server is still probed", async () => {
  using silent = Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data() {} } });
  const localServers = [{ name: "silent", title: "Silent", port: silent.port }];
  await using server = await startHeadrace({ demo: true, settled: false, localServers });
  const answer = server.request("/v1/chat/completions", { body: { ...body("tiny-demo"), max_tokens: 1 } });
  expect(server.catalog.complete).toBe(false);
  expect(server.catalog.find("tiny-demo")).toBeDefined();
  expect((await fetch(`${server.url}/readyz`)).status).toBe(503);
  expect((await answer).status).toBe(200);
  const listed = await (await server.request("/v1/models")).json();
  expect(listed.data.map((model: { id: string }) => model.id)).toEqual(["tiny-demo"]);
  expect((await fetch(`${server.url}/readyz`)).status).toBe(200);
});

test("refuses a missing model file, an invalid GGUF and a duplicate id before starting", async () => {
  using directory = temporaryDirectory();
  const other = join(directory.path, "tiny-demo.gguf");
  copyFileSync(gguf, other);
  const text = join(directory.path, "notes.gguf");
  writeFileSync(text, "no model at all");
  const start = (model: string[], demo: boolean) => startHeadrace({ demo, flags: { model } });
  await expect(start(["/nowhere/x.gguf"], false)).rejects.toThrow("there is no such file");
  await expect(start([text], false)).rejects.toThrow("is not a GGUF file");
  await expect(start([other], true)).rejects.toThrow("gives the model id `tiny-demo`, as the demo model does");
  await using server = await startHeadrace({ flags: { model: [other] } });
  expect((await server.request("/v1/chat/completions", { body: body("tiny-demo") })).status).toBe(200);
});
