// The canary: marked secrets and a marked prompt go through every kind of success and error, and turn up nowhere else.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { generateApiKey } from "../../src/domain/api-key.ts";
import { openDatabase } from "../../src/storage/database.ts";
import { startHeadrace, type TestServer, until } from "../support/headrace.ts";
import { chunk } from "../support/scripted-upstream.ts";
import { addKey } from "./keys.ts";
import { head, raw } from "./raw-client.ts";
import {
  completion,
  goodAnswer,
  plainAnswer,
  type RawUpstream,
  rawYaml,
  startRawUpstream,
  streamHead,
  upstreamKey,
} from "./raw-upstream.ts";

const prompt = "CANARYPROMPT";
const answerText = "CANARYANSWER";

let upstream: RawUpstream;
let server: TestServer;
/** Every error body that a client got, and every success that is no model's answer. */
let shown = "";
let secrets: string[] = [];

beforeAll(async () => {
  upstream = await startRawUpstream();
  server = await startHeadrace({
    yaml: rawYaml(upstream, ", timeout_seconds: 1, idle_seconds: 1"),
    heartbeatMs: 100,
  });
});

afterAll(async () => {
  await server[Symbol.asyncDispose]();
  await upstream[Symbol.asyncDispose]();
});

const chat = { model: "upstream-model", messages: [{ role: "user", content: prompt }], user: prompt };

async function ask(body: unknown, headers: Record<string, string> = {}, path = "/v1/chat/completions") {
  const response = await server
    .request(path, { body, headers, signal: AbortSignal.timeout(5_000) })
    .catch(() => undefined);
  if (!response) return;
  const text = await response.text().catch(() => "");
  // A model's answer belongs to the client; what surrounds it does not.
  if (!response.ok || text.includes('"error"')) shown += `${text}\n${JSON.stringify([...response.headers])}\n`;
}

test("every kind of success and failure is provoked with marked secrets", async () => {
  const unknown = generateApiKey("dev");
  const revoked = await addKey(server, { revokedAt: 1 });
  const poor = await addKey(server, { scopes: [] });
  secrets = [server.key, unknown, revoked, poor, upstreamKey];

  // Requests that never reach a model server.
  for (const key of [unknown, revoked, poor, `${server.key}x`, server.key.slice(0, -1)]) {
    await ask(chat, { authorization: `Bearer ${key}` });
    await ask(chat, { authorization: `Basic ${key}` });
    await ask(chat, { "x-api-key": key });
  }
  await ask(`{"messages":"${prompt}"`);
  await ask(`{"${prompt}":1,"${prompt}":2}`);
  await ask({ ...chat, temperature: prompt });
  await ask({ ...chat, messages: prompt });
  await ask({ ...chat, messages: [{ role: prompt, content: prompt }] });
  await ask({ ...chat, logit_bias: { 1: prompt } });
  await ask({ ...chat, stop: [prompt, 7] });
  await ask({ ...chat, model: "no-such-model" });
  await ask(prompt, { "content-type": `text/${prompt}` });
  await ask(prompt, { "content-encoding": prompt });
  await ask(chat, {}, `/v1/nope?key=${server.key}&prompt=${prompt}`);
  await ask(chat, { "user-agent": prompt, referer: prompt, cookie: `key=${server.key}`, "x-forwarded-for": prompt });
  await raw(server.url, head(`GET /healthz?${server.key} HTTP/1.1`, [`Host: ${prompt}`, `X-${prompt}: ${prompt}`]));

  // Model servers that repeat what they were sent.
  const echo = `you sent ${prompt} with ${upstreamKey}`;
  const parrots = [
    goodAnswer.replace("Hello", answerText.slice(0, 5)),
    ...[400, 401, 413, 422, 429, 500, 503].map((status) => plainAnswer(status, `{"error":{"message":"${echo}"}}`)),
    plainAnswer(500, `<html>${echo}</html>`),
    plainAnswer(200, `{"error":{"message":"${upstreamKey}"}}`),
    plainAnswer(200, `${echo} is no JSON`),
    plainAnswer(200, JSON.stringify({ ...completion, choices: echo })),
    plainAnswer(200, `{"${prompt}":1,"${prompt}":2,"model":"x","choices":[]}`),
    plainAnswer(302, "{}", { Location: `http://127.0.0.1:1/${prompt}` }),
    `HTTP/1.1 200 ${echo}\r\nX-Echo: ${echo}\r\nContent-Length: 5\r\n\r\n{"a":1}`,
    `${echo}\r\n\r\n`,
  ];
  for (const bytes of parrots) {
    upstream.script((socket) => void socket.end(bytes));
    await ask(chat);
    await ask({ model: "upstream-model", input: prompt }, {}, "/v1/embeddings");
    await ask({ model: "upstream-model", prompt }, {}, "/v1/completions");
    await ask({ ...chat, stream: true });
  }
  const hello = chunk({ role: "assistant", content: answerText });
  for (const rest of [
    `${chunk({}, "stop")}data: [DONE]\n\n`,
    `data: {"error":{"message":"${upstreamKey}"}}\n\n`,
    `data: ${echo}\n\n`,
    `data: {"${prompt}":1,"${prompt}":2,"choices":[{}]}\n\n`,
    echo,
    "",
  ]) {
    upstream.script((socket) => void socket.end(streamHead + hello + rest));
    await ask({ ...chat, stream: true });
  }
  upstream.script(() => {});
  await ask(chat);
  await ask({ ...chat, stream: true });
  expect(upstream.requests.length).toBeGreaterThan(40);
  // The marks did travel where they belong.
  expect(upstream.requests[0]?.body).toContain(prompt);
  expect(upstream.requests[0]?.head).toContain(upstreamKey);
  expect(shown.length).toBeGreaterThan(5_000);
}, 30_000);

test("no error shows a key of ours, a key of the model server, or its address", () => {
  for (const secret of secrets) expect(shown).not.toContain(secret);
  expect(shown).not.toContain(new URL(upstream.url).host);
});

test("the log holds no key, no prompt, no answer and no header of a client", () => {
  const log = server.logText();
  expect(log.split("\n").length).toBeGreaterThan(80);
  const lines = log.split("\n");
  for (const mark of [...secrets, prompt, answerText]) {
    expect(lines.filter((line) => line.includes(mark))).toEqual([]);
  }
});

test("usage is recorded once for every request that reached a model, and for no other", async () => {
  const ran = server.logged("request").filter((line) => line["outcome"] !== undefined);
  expect(ran.length).toBeGreaterThan(40);
  const db = await openDatabase(join(server.dataDir, "headrace.db"));
  const recorded = async () =>
    (await db`SELECT request_id FROM usage_records`).map((row: { request_id: string }) => row.request_id);
  await until(async () => (await recorded()).length >= ran.length, "all usage is written");
  expect((await recorded()).sort()).toEqual(ran.map((line) => String(line["id"])).sort());
  await db.close();
});

test("the data directory holds no key but in credentials.json, and neither prompt nor answer", () => {
  const files = filesIn(server.dataDir);
  expect(files.map((file) => file.slice(server.dataDir.length + 1))).toContain("headrace.db");
  for (const file of files) {
    const bytes = readFileSync(file).toString("latin1");
    const allowed = file.endsWith("credentials.json") ? [server.key] : [];
    for (const mark of [...secrets, prompt, answerText]) {
      if (!allowed.includes(mark)) expect([file, bytes.includes(mark)]).toEqual([file, false]);
    }
  }
});

test("files with secrets are for their owner only", () => {
  for (const file of ["secret", "credentials.json"]) {
    expect(statSync(join(server.dataDir, file)).mode & 0o077).toBe(0);
  }
  expect(statSync(server.dataDir).mode & 0o077).toBe(0);
});

function filesIn(folder: string): string[] {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    return entry.isDirectory() ? filesIn(path) : [path];
  });
}
