// Operators pull models through a running server: asked first, followed, stopped, and on offer once they are here.
import { afterEach, beforeAll, beforeEach, expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { defaultHubTiming } from "../../src/engines/llama/hub-request.ts";
import { demoModelFile } from "../../src/installation/paths.ts";
import { HubServer } from "../fixtures/hub-server.ts";
import { startHeadrace, type TestServer, until } from "../support/headrace.ts";
import { makeOperatorKey } from "../support/operator-key.ts";

let gguf: Uint8Array;
let hub: HubServer;
let server: TestServer;
let operator: string;

beforeAll(async () => {
  gguf = await readFile(demoModelFile);
});

beforeEach(async () => {
  hub = await HubServer.start();
  hub.put("acme/tiny-GGUF", [
    { path: "Tiny-Q8_0.gguf", content: gguf },
    { path: "Tiny-Q4_0.gguf", content: new Uint8Array(20) },
  ]);
  const timing = { ...defaultHubTiming, retryDelaysMs: [] };
  server = await startHeadrace({ hub: () => ({ endpoint: hub.endpoint, token: undefined, timing }) });
  operator = await makeOperatorKey(server.dataDir);
});

afterEach(async () => {
  await server[Symbol.asyncDispose]();
  await hub.stop();
});

async function call(method: string, path = "", body?: object) {
  const headers = { authorization: `Bearer ${operator}` };
  const response = await server.request(`/v1/admin/pulled-models${path}`, {
    method,
    headers,
    ...(body ? { body } : {}),
  });
  return { status: response.status, body: await response.json() };
}

const source = "hf:acme/tiny-GGUF:Q8_0";

test("shows a model's size and the free space, pulls it, audits it, and offers it when done", async () => {
  const reported = await call("POST", "", { source, dry_run: true });
  expect(reported.body).toMatchObject({
    ...{ object: "pull_offer", id: "tiny-q8_0", file: "Tiny-Q8_0.gguf", quantization: "Q8_0", bytes: gguf.length },
    ...{ missing_bytes: gguf.length, fit: "now", started: false },
  });
  expect((await call("GET")).body).toMatchObject({ data: [], pulls: [] });

  expect(await call("POST", "", { source, name: "mine" })).toMatchObject({
    status: 200,
    body: { id: "mine", started: true },
  });
  await until(() => server.catalog.find("mine") !== undefined, "the model is on offer");
  expect((await call("GET")).body).toMatchObject({
    data: [{ id: "mine", state: "ready", quantization: "Q8_0" }],
    pulls: [],
  });
  const headers = { authorization: `Bearer ${operator}` };
  const audit = await (await server.request("/v1/admin/audit?target=mine", { headers })).json();
  expect(audit.data).toMatchObject([{ action: "pulled_model.requested", detail: { source, bytes: gguf.length } }]);
});

test("removes a cancelled pull, and resumes a failed one where it stopped", async () => {
  hub.faults = [{ stallAfterBytes: 1_500_000 }, { cutAfterBytes: 2_000_000 }];
  const part = join(server.dataDir, "models", "tiny-q8_0.gguf.part");
  await call("POST", "", { source });
  const pulls = async () => (await call("GET")).body.pulls;
  await until(async () => (await pulls())[0]?.bytes > 0, "some of it is here");
  expect(await pulls()).toMatchObject([{ id: "tiny-q8_0", source, total_bytes: gguf.length, failure: null }]);
  expect((await call("POST", "", { source })).body.error).toMatchObject({ param: "source" });
  expect((await call("DELETE", "/tiny-q8_0")).status).toBe(200);
  expect(existsSync(part)).toBe(false);
  expect(await pulls()).toEqual([]);

  await call("POST", "", { source });
  await until(async () => (await pulls())[0]?.failure !== null, "it has failed");
  expect(existsSync(part)).toBe(true);
  await call("POST", "", { source });
  await until(() => server.catalog.find("tiny-q8_0") !== undefined, "the model is on offer");
  expect(hub.requests.some(({ range }) => range?.startsWith("bytes="))).toBe(true);
});

test("refuses a model unknown to the hub by its field, and asks to retry an unreachable hub", async () => {
  for (const dry_run of [true, false]) {
    const unknown = await call("POST", "", { source: "hf:acme/none", dry_run });
    expect([unknown.status, unknown.body.error.param]).toEqual([400, "source"]);
  }
  hub.hubAnswers.set("/api/models/acme/tiny-GGUF", { status: 503 });
  expect((await call("POST", "", { source })).status).toBe(503);
});
