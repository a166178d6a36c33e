// A model file that llama-server runs: the same id, queue and accounting, and what the built-in engine has not.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { chmodSync, copyFileSync, mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pythonFolder } from "../../scripts/test-programs.mjs";
import { saveManifest } from "../../src/engines/llama/model-store.ts";
import { demoModelFile } from "../../src/installation/paths.ts";
import { runCommand } from "../fixtures/command-line.ts";
import { startHeadrace, type TestServer, until } from "../support/headrace.ts";
import { makeOperatorKey } from "../support/operator-key.ts";

const root = join(import.meta.dir, "..", "..");
const path = process.env["PATH"] ?? "";
let folder: string;
let server: TestServer;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "headrace-llama-server-"));
  const program = join(folder, "llama-server");
  const python = join(pythonFolder, "bin", "python");
  writeFileSync(program, `#!/bin/sh\nexec ${python} ${join(root, "tests", "support", "llama-server.py")} "$@"\n`);
  chmodSync(program, 0o755);
  process.env["PATH"] = `${folder}:${path}`;
  const dataDir = join(folder, "data");
  mkdirSync(join(dataDir, "models"), { recursive: true });
  for (const id of ["mine", "small", "plain"]) {
    const file = join(dataDir, "models", `${id}.gguf`);
    copyFileSync(demoModelFile, file);
    await saveManifest(dataDir, {
      ...{
        id,
        file,
        otherFiles: [],
        bytes: statSync(file).size,
        sha256: "0".repeat(64),
        source: `hf:acme/x:${id}.gguf`,
      },
      ...{ pulledAt: 1, context: 1024, capabilities: { chat: true, completion: true, embeddings: true }, tools: false },
    });
  }
  const yaml = `
engine:
  parallel: 2
  files:
    - { model: mine, engine: llama-server, draft: small, arguments: --temp 0 }
    - { model: nowhere, engine: llama-server }`;
  server = await startHeadrace({ dataDir, yaml });
});

afterAll(async () => {
  process.env["PATH"] = path;
  await server[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true, force: true });
});

const messages = [{ role: "user", content: "Who are you?" }];

test("starts llama.cpp's real server on the first request, answers with logprobs and a draft, and books the usage", async () => {
  const listed = await (await server.request("/v1/models")).json();
  expect(listed.data.map(({ id }: { id: string }) => id)).toEqual(["mine", "plain", "small"]);
  const body = { model: "mine", messages, max_tokens: 4, logprobs: true, top_logprobs: 2 };
  const response = await server.request("/v1/chat/completions", { body });
  const answer = await response.json();
  expect([response.status, answer.model, answer.usage.completion_tokens]).toEqual([200, "mine", 4]);
  // The draft has guessed, and as it is the same model, was right.
  expect(answer.timings.draft_n_accepted).toBeGreaterThan(0);
  expect(answer.choices[0].logprobs.content[0].top_logprobs).toHaveLength(2);
  const streamed = await server.request("/v1/chat/completions", { body: { ...body, stream: true, max_tokens: 2 } });
  expect(await streamed.text()).toContain("data: [DONE]");
  const usage = await (await server.request("/v1/usage?group_by=model")).json();
  expect(JSON.stringify(usage)).toContain('"mine"');
}, 60_000);

test("counts a llama-server's memory in the budget of the built-in engine, and shows it to operators", async () => {
  const plain = await server.request("/v1/chat/completions", { body: { model: "plain", messages, max_tokens: 1 } });
  expect(plain.status).toBe(200);
  const held = server.engine.held().map(({ id, state, pinned }) => ({ id, state, pinned }));
  expect(held).toEqual([
    { id: "llama-server-mine", state: "loaded", pinned: false },
    { id: "plain", state: "loaded", pinned: false },
  ]);
  const headers = { authorization: `Bearer ${await makeOperatorKey(server.dataDir)}` };
  const files = await (await server.request("/v1/admin/pulled-models", { headers })).json();
  expect(files.data.map(({ id, use }: { id: string; use: string }) => [id, use])).toEqual([
    ["mine", "loaded"],
    ["plain", "loaded"],
    ["small", "unloaded"],
  ]);
});

test("shows operators the shared memory of a llama-server and the built-in engine on one page", async () => {
  const env = { HEADRACE_BASE_URL: server.baseUrl, HEADRACE_API_KEY: await makeOperatorKey(server.dataDir) };
  const { stdout, stderr } = await runCommand(["models", "ps"], { env: { ...env, LANG: "C.UTF-8" } });
  expect(stdout).toMatch(/^llama-server-mine +loaded/m);
  expect(stderr).toMatch(/^By the built-in engine: plain loaded, 1\d\d MB\.$/m);
});

test("omits a model file that was not pulled, and logs it", () => {
  expect(server.logged("model_file_skipped")).toMatchObject([
    { model: "nowhere", detail: expect.stringContaining("nowhere was not pulled") },
  ]);
});

test("withdraws a model whose file is deleted, and stops its server to free the disk", async () => {
  const headers = { authorization: `Bearer ${await makeOperatorKey(server.dataDir)}` };
  expect(server.commands.find("llama-server-mine")?.figures().state).toBe("loaded");
  const deleted = await server.request("/v1/admin/pulled-models/mine", { method: "DELETE", headers });
  expect(deleted.status).toBe(200);
  const listed = await (await server.request("/v1/models")).json();
  expect(listed.data.map(({ id }: { id: string }) => id)).toEqual(["plain", "small"]);
  await until(() => server.commands.find("llama-server-mine")?.figures().state === "off", "it is stopped");
});
