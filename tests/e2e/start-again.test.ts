// Starting again, twice at once, in another mode, with another secret: no key is lost, and nothing goes wrong silently.
import { expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { readCredentials } from "../../src/storage/files/credentials-file.ts";
import { startHeadrace } from "../support/headrace.ts";

function dataDirectory(): { path: string; [Symbol.dispose](): void } {
  const parent = mkdtempSync(join(tmpdir(), "headrace-again-"));
  return { path: join(parent, "data"), [Symbol.dispose]: () => rmSync(parent, { recursive: true, force: true }) };
}

const production = { mode: "production", publicUrl: "https://ai.example.com" };

test("refuses a second server on the same port", async () => {
  await using first = await startHeadrace();
  await expect(startHeadrace({ flags: { port: String(first.port) } })).rejects.toMatchObject({ code: "EADDRINUSE" });
});

test("refuses a second server on the same data directory, and leaves the first alone", async () => {
  using directory = dataDirectory();
  await using first = await startHeadrace({ dataDir: directory.path });
  const refusal = await startHeadrace({ dataDir: directory.path }).catch(String);
  expect(refusal).toContain(`Another Headrace uses the data directory ${directory.path}`);
  // Where that one is, and what to do.
  expect(refusal).toContain(`its address is ${first.url}/v1`);
  expect(refusal).toContain("--data-dir and --port");
  expect((await first.request("/v1/models")).status).toBe(200);
});

test("finds each mode's key again after switching between development and production", async () => {
  using directory = dataDirectory();
  const keys: (string | undefined)[] = [];
  for (const flags of [{}, production, {}, production]) {
    await using _server = await startHeadrace({ dataDir: directory.path, flags });
    keys.push(readCredentials(directory.path)?.api_key);
  }
  expect(keys[0]).toStartWith("sk_dev_hr_");
  expect(keys[1]).toStartWith("sk_live_hr_");
  expect(keys.slice(2)).toEqual(keys.slice(0, 2));
});

test("refuses to start with a secret that does not match the keys, and says what to do", async () => {
  using directory = dataDirectory();
  await using first = await startHeadrace({ dataDir: directory.path });
  await first.close();
  const env = { HEADRACE_SECRET: "ab".repeat(32) };
  await expect(startHeadrace({ dataDir: directory.path, env })).rejects.toThrow("The secret is not the one");
});

test("frees the model's slot when a client leaves a stream unread", async () => {
  await using server = await startHeadrace({ demo: true });
  const client = new AbortController();
  const body = { model: "tiny-demo", stream: true, messages: [{ role: "user", content: "Tell me a story." }] };
  const streams = Array.from({ length: 8 }, () =>
    server.request("/v1/chat/completions", { body, signal: client.signal }),
  );
  await Promise.all(streams);
  client.abort();
  const next = await server.request("/v1/chat/completions", { body: { ...body, stream: false, max_tokens: 3 } });
  expect(next.status).toBe(200);
  expect(server.engine.status()[0]).toMatchObject({ busy: 0, waiting: 0 });
});
