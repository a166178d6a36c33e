// A stored chat that is deleted is gone: from the answers at once, and from the files of the data directory.
import { afterEach, beforeEach, expect, test } from "bun:test";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startHeadrace, type TestServer, until } from "../support/headrace.ts";
import { chatScript, type ScriptedUpstream, startUpstream, upstreamYaml } from "../support/scripted-upstream.ts";
import { filesIn } from "./data-files.ts";

const marks = ["CANARYPROMPT", "CANARYANSWER", "CANARYLABEL"] as const;
const [promptMark, answerMark, labelMark] = marks;
let directory: string;
let upstream: ScriptedUpstream;
let server: TestServer;

beforeEach(async () => {
  directory = mkdtempSync(join(tmpdir(), "headrace-erased-"));
  upstream = await startUpstream(chatScript(Array(300).fill(`${answerMark} `)));
  server = await startHeadrace({ yaml: upstreamYaml(upstream), dataDir: join(directory, "data") });
});

afterEach(async () => {
  await server[Symbol.asyncDispose]();
  await upstream[Symbol.asyncDispose]();
  rmSync(directory, { recursive: true, force: true });
});

/** Files that hold one of the marks. */
function holders(): string[] {
  return filesIn(server.dataDir).filter((file) => {
    const bytes = readFileSync(file, "latin1");
    return marks.some((mark) => bytes.includes(mark));
  });
}

async function storeAndDelete(round: number): Promise<void> {
  const body = {
    model: "upstream-model",
    messages: [{ role: "user", content: `${promptMark} `.repeat(300) }],
    store: true,
    stream: round % 2 === 1,
    metadata: { topic: `${labelMark}${round}` },
  };
  const made = await (await server.request("/v1/chat/completions", { body })).text();
  const path = `/v1/chat/completions/${/chatcmpl-[\w-]+/.exec(made)?.[0]}`;
  expect((await server.request(path)).status).toBe(200);
  expect(holders()).not.toBeEmpty();
  if (round % 3 === 0) expect((await server.request(path, { body: { metadata: {} } })).status).toBe(200);
  expect((await server.request(path, { method: "DELETE" })).status).toBe(200);
  for (const gone of [path, `${path}/messages`]) expect((await server.request(gone)).status).toBe(404);
}

test("leaves a deleted chat in no file after the server has stopped", async () => {
  for (let round = 0; round < 12; round++) await storeAndDelete(round);
  await server.close();
  expect(holders()).toEqual([]);
});

test("leaves a deleted chat in no file a few seconds later while the server runs", async () => {
  await storeAndDelete(0);
  await until(() => holders().length === 0, "the chat is in no file", 3_000);
});
