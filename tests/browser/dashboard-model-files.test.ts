// In a real browser: the files of models, what they need of memory, and how they come and go.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { copyFileSync, existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { defaultHubTiming } from "../../src/engines/llama/hub-request.ts";
import { saveManifest } from "../../src/engines/llama/model-store.ts";
import { demoModelFile } from "../../src/installation/paths.ts";
import { HubServer } from "../fixtures/hub-server.ts";
import { pagesOf } from "../support/browser-world.ts";
import { leaveBrowser, openVisitor, type Visitor } from "../support/chromium.ts";
import { type DashboardWorld, openDashboardWorld } from "../support/dashboard-world.ts";
import { ggufHeader, llama8b } from "../support/gguf-file.ts";
import { until } from "../support/headrace.ts";
import { look } from "../support/page-checks.ts";

let world: DashboardWorld;
let hub: HubServer;
let models: string;

beforeAll(async () => {
  hub = await HubServer.start();
  hub.put("acme/tiny-GGUF", [{ path: "Tiny-Q8_0.gguf", content: readFileSync(demoModelFile) }]);
  const timing = { ...defaultHubTiming, retryDelaysMs: [] };
  world = await openDashboardWorld({ hub: () => ({ endpoint: hub.endpoint, token: undefined, timing }) });
  models = join(world.server.dataDir, "models");
  mkdirSync(models, { recursive: true });
});

afterAll(async () => {
  leaveBrowser();
  await world[Symbol.asyncDispose]();
  await hub.stop();
});

async function ada(): Promise<Visitor> {
  const visitor = await openVisitor({ at: pagesOf(world.server) });
  await world.signIn(visitor.context);
  await visitor.go("/admin/model-files");
  return visitor;
}

async function pulled(id: string, write: (file: string) => void): Promise<void> {
  const file = join(models, `${id}.gguf`);
  write(file);
  await saveManifest(world.server.dataDir, {
    ...{ id, file, otherFiles: [], bytes: statSync(file).size, sha256: "0".repeat(64), source: `hf:acme/x:${id}.gguf` },
    ...{ pulledAt: 1_700_000_000, context: 1024, capabilities: { chat: true, completion: true, embeddings: true } },
    tools: false,
  });
}

test("shows an operator model files with format, disk, memory and fit, and deletes one", async () => {
  await pulled("small", (file) => copyFileSync(demoModelFile, file));
  // So much context that no machine has the memory.
  const endless = { ...llama8b, "llama.block_count": 200_000 };
  await pulled("endless", (file) => writeFileSync(file, ggufHeader(endless, [[4096, 4096]])));
  writeFileSync(join(models, "half-a-model.gguf.part"), "x".repeat(2_000_000));
  await world.server.catalog.refresh();
  const body = { model: "small", messages: [{ role: "user", content: "Hi" }], max_tokens: 1 };
  expect((await world.server.request("/v1/chat/completions", { body })).status).toBe(200);
  await using visitor = await ada();
  const { page } = visitor;
  const row = (id: string) => page.locator(".file-row").filter({ hasText: id });
  await row("small").getByText("In memory").waitFor();
  await row("small").getByText("4.6 MB, 4.3 M parameters, Q8_0, llama, 1,024 tokens of context").waitFor();
  await row("endless").getByText("Does not fit").waitFor();
  await row("half-a-model").getByText("Incomplete").waitFor();
  await page.getByRole("img", { name: /^Models use 159 MB, other programs/ }).waitFor();
  await look(visitor, "model-files");
  await page.getByRole("button", { name: "Delete half-a-model" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Delete files", exact: true }).click();
  await row("half-a-model").waitFor({ state: "detached" });
  expect(existsSync(join(models, "half-a-model.gguf.part"))).toBe(false);
  expect(visitor.trouble).toEqual([]);
});

test("looks up a model with its size, pulls it with progress, stops, and serves it when done", async () => {
  hub.faults = [{ stallAfterBytes: 2_000_000 }];
  await using visitor = await ada();
  const { page } = visitor;
  await page.getByRole("button", { name: "Pull a model" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Model").fill("hf:acme/tiny-GGUF");
  await dialog.getByRole("button", { name: "Find model" }).click();
  await dialog.getByText("Tiny-Q8_0.gguf will be served as tiny-q8_0.", { exact: false }).waitFor();
  await look(visitor, "model-files-pull");
  await dialog.getByRole("button", { name: "Pull 4.6 MB" }).click();
  await page.getByRole("progressbar", { name: "Download of tiny-q8_0" }).waitFor();
  await page.getByText(/^[12]\.\d MB of 4\.6 MB/).waitFor();
  await look(visitor, "model-files-pulling");
  await page.getByRole("button", { name: "Stop and delete tiny-q8_0" }).click();
  await page.getByRole("progressbar").waitFor({ state: "detached" });
  await visitor.go("/admin/model-files?new");
  await dialog.getByLabel("Model").fill("hf:acme/tiny-GGUF");
  await page.keyboard.press("Enter");
  await dialog.getByRole("button", { name: "Pull 4.6 MB" }).click();
  await until(() => world.server.catalog.find("tiny-q8_0") !== undefined, "it is served");
  await page.locator(".file-row").filter({ hasText: "tiny-q8_0" }).waitFor();
  expect(visitor.trouble).toEqual([]);
});

test("reports that model files cannot be listed instead of showing none", async () => {
  await using visitor = await openVisitor({ at: pagesOf(world.server) });
  await world.signIn(visitor.context);
  await visitor.page.route("**/v1/admin/pulled-models", (route) =>
    route.fulfill({ status: 400, json: { error: { message: "The disk cannot be read.", code: "x" } } }),
  );
  await visitor.go("/admin/model-files");
  await visitor.page.getByText("The disk cannot be read.").waitFor();
});
