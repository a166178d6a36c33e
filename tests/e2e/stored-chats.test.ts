// Stored chats as the `openai` package sees them: made, listed, read, labelled, deleted.
import { afterAll, afterEach, beforeAll, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import OpenAI from "openai";
import { openaiClient } from "../support/clients.ts";
import { startHeadrace, type TestServer } from "../support/headrace.ts";
import { mintKey } from "../support/mint-key.ts";
import { raised } from "../support/openai-errors.ts";
import { toolScript, weatherCall, weatherTool } from "../support/scripted-answers.ts";
import { chatScript, chunk, type ScriptedUpstream, startUpstream, upstreamYaml } from "../support/scripted-upstream.ts";

const model = "upstream-model";
const question = [{ role: "user" as const, content: "CANARY-QUESTION" }];

let upstream: ScriptedUpstream;
let server: TestServer;
let client: OpenAI;

beforeAll(async () => {
  upstream = await startUpstream();
  server = await startHeadrace({ yaml: upstreamYaml(upstream) });
  client = openaiClient(server);
});

afterEach(async () => {
  upstream.script(chatScript());
  upstream.requests.length = 0;
  for await (const chat of client.chat.completions.list()) await client.chat.completions.delete(chat.id);
});

afterAll(async () => {
  await server[Symbol.asyncDispose]();
  await upstream[Symbol.asyncDispose]();
});

async function storedIds(query: OpenAI.ChatCompletionListParams = {}): Promise<string[]> {
  return (await Array.fromAsync(client.chat.completions.list(query))).map(({ id }) => id);
}

test("stores a completion with store: true at once as answered, without passing store to the model server", async () => {
  const metadata = { topic: "weather" };
  const { data: made, request_id } = await client.chat.completions
    .create({ model, messages: question, temperature: 0.5, store: true, metadata })
    .withResponse();
  expect(made.id).toStartWith("chatcmpl-");
  expect(made.id).not.toBe("chatcmpl-up");
  const stored = await client.chat.completions.retrieve(made.id);
  expect(stored).toMatchObject({ ...JSON.parse(JSON.stringify(made)), metadata, temperature: 0.5, request_id });
  expect(await storedIds()).toEqual([made.id]);
  const sent = upstream.requests[0]?.body ?? {};
  expect(sent).toMatchObject({ messages: question, temperature: 0.5 });
  expect("store" in sent || "metadata" in sent).toBe(false);
});

test("stores a streamed completion assembled, under the id that the client saw", async () => {
  const runner = client.chat.completions.stream({ model, messages: question, store: true });
  const final = await runner.finalChatCompletion();
  const [id = ""] = await storedIds();
  expect(id).toBe(final.id);
  const stored = await client.chat.completions.retrieve(id);
  expect(stored.choices).toMatchObject([
    { index: 0, message: { role: "assistant", content: "Hello world" }, finish_reason: "stop" },
  ]);
  expect(stored.object).toBe("chat.completion");
  expect(stored.usage).toMatchObject({ prompt_tokens: 7, completion_tokens: 2, total_tokens: 9 });
});

test("stores streamed tool calls assembled", async () => {
  upstream.script(toolScript());
  const runner = client.chat.completions.stream({ model, messages: question, tools: [weatherTool], store: true });
  await runner.finalChatCompletion();
  const [stored] = (await client.chat.completions.list()).data;
  expect(stored?.choices[0]).toMatchObject({ message: { tool_calls: [weatherCall] }, finish_reason: "tool_calls" });
});

test("stores nothing without store: true", async () => {
  await client.chat.completions.create({ model, messages: question });
  await client.chat.completions.create({ model, messages: question, store: false });
  await client.completions.create({ model, prompt: "Hi", store: true } as OpenAI.CompletionCreateParamsNonStreaming);
  expect(await storedIds()).toEqual([]);
});

test("stores the messages of the request", async () => {
  const parts = [{ type: "text" as const, text: "What is it?" }];
  const made = await client.chat.completions.create({
    model,
    messages: [
      { role: "system", content: "Be brief." },
      { role: "user", content: parts },
    ],
    store: true,
  });
  const all = await Array.fromAsync(client.chat.completions.messages.list(made.id, { limit: 1 }));
  expect(all as unknown[]).toEqual([
    { id: `${made.id}-0`, role: "system", content: "Be brief.", content_parts: null },
    { id: `${made.id}-1`, role: "user", content: null, content_parts: parts },
  ]);
});

describe("the list of stored chats", () => {
  test("pages the stored chats by the client's own iteration, also while it deletes", async () => {
    const made: string[] = [];
    for (let i = 0; i < 5; i++) {
      made.push((await client.chat.completions.create({ model, messages: question, store: true })).id);
    }
    expect(await storedIds({ limit: 2 })).toEqual(made);
    expect(await storedIds({ limit: 2, order: "desc" })).toEqual(made.toReversed());
    const page = await client.chat.completions.list({ limit: 2, after: made[0] ?? "" });
    expect(page.data.map(({ id }) => id)).toEqual(made.slice(1, 3));
    expect(page.has_more).toBe(true);
    const deleted: string[] = [];
    for await (const { id } of client.chat.completions.list({ limit: 2 })) {
      deleted.push((await client.chat.completions.delete(id)).id);
    }
    expect(deleted).toEqual(made);
  });

  test("filters stored chats by metadata and model, and updates metadata", async () => {
    const make = (topic: string) =>
      client.chat.completions.create({ model, messages: question, store: true, metadata: { topic, by: "test" } });
    const [a, b] = [await make("a"), await make("b")];
    expect(await storedIds({ metadata: { topic: "a" } })).toEqual([a.id]);
    expect(await storedIds({ metadata: { by: "test" }, model })).toEqual([a.id, b.id]);
    expect(await storedIds({ model: "other" })).toEqual([]);
    const updated = await client.chat.completions.update(a.id, { metadata: { topic: "c" } });
    expect(updated).toMatchObject({ id: a.id, metadata: { topic: "c" } });
    expect(await storedIds({ metadata: { topic: "a" } })).toEqual([]);
    expect(await storedIds({ metadata: { topic: "c" } })).toEqual([a.id]);
  });
});

test("deletes a stored chat permanently", async () => {
  const { id } = await client.chat.completions.create({ model, messages: question, store: true });
  expect(await client.chat.completions.delete(id)).toEqual({ id, object: "chat.completion.deleted", deleted: true });
  await raised(() => client.chat.completions.retrieve(id), OpenAI.NotFoundError);
  await raised(() => client.chat.completions.delete(id), OpenAI.NotFoundError);
  expect(await storedIds()).toEqual([]);
});

test("stores no failed or abandoned completion", async () => {
  upstream.script((_request, res) => {
    res.writeHead(200, { "content-type": "text/event-stream" });
    res.write(chunk({ role: "assistant", content: "Well begun" }));
    res.end('data: {"error":{"message":"broken"}}\n\n');
  });
  const failing = await client.chat.completions.create({ model, messages: question, store: true, stream: true });
  await raised(() => Array.fromAsync(failing), OpenAI.APIError);
  upstream.script((_request, res) => {
    res.writeHead(200, { "content-type": "text/event-stream" });
    res.write(chunk({ role: "assistant", content: "Well begun" }));
  });
  const left = await client.chat.completions.create({ model, messages: question, store: true, stream: true });
  for await (const _ of left) break;
  left.controller.abort();
  expect(await storedIds()).toEqual([]);
});

test("refuses metadata beyond the limits before calling the model server", async () => {
  const metadata = Object.fromEntries(Array.from({ length: 17 }, (_, i) => [`k${i}`, "v"]));
  const create = () => client.chat.completions.create({ model, messages: question, store: true, metadata });
  const error = await raised(create, OpenAI.BadRequestError);
  expect(error.message).toContain("metadata: must have at most 16 names (got 17).");
  expect(upstream.requests).toEqual([]);
});

test("requires chat:read for stored chats, and hides them from another environment", async () => {
  const { id } = await client.chat.completions.create({ model, messages: question, store: true });
  const writer = openaiClient({ ...server, key: await mintKey(server.dataDir, { scopes: ["chat:write"] }) });
  const refused = await raised(() => writer.chat.completions.retrieve(id), OpenAI.PermissionDeniedError);
  expect(refused.message).toContain("API key lacks required scope: chat:read");
  await raised(() => writer.chat.completions.delete(id), OpenAI.PermissionDeniedError);
  const reader = openaiClient({ ...server, key: await mintKey(server.dataDir, { scopes: ["chat:read"] }) });
  expect((await reader.chat.completions.retrieve(id)).id).toBe(id);
  const elsewhere = await mintKey(server.dataDir, { scopes: ["chat:read"], environment: "test" });
  const stranger = openaiClient({ ...server, key: elsewhere });
  await raised(() => stranger.chat.completions.retrieve(id), OpenAI.NotFoundError);
  expect((await stranger.chat.completions.list()).data).toEqual([]);
});

test("stores nothing with a retention of 0 days, and passes store to the model server", async () => {
  await server.reconfigure(`${upstreamYaml(upstream)}stored_chats: { retention_days: 0 }\n`);
  try {
    await client.chat.completions.create({ model, messages: question, store: true, metadata: { a: "b" } });
    expect(upstream.requests[0]?.body).toMatchObject({ store: true, metadata: { a: "b" } });
    expect(await storedIds()).toEqual([]);
  } finally {
    await server.reconfigure(upstreamYaml(upstream));
  }
});

test("writes no chat content to the log", async () => {
  await client.chat.completions.create({ model, messages: question, store: true, metadata: { a: "CANARY-LABEL" } });
  await storedIds({ metadata: { a: "CANARY-LABEL" } });
  expect(server.logText()).toContain('"route":"/v1/chat/completions"');
  expect(server.logText()).not.toContain("CANARY");
});

test("stores pending chats on close, for the next server to find", async () => {
  const parent = mkdtempSync(join(tmpdir(), "headrace-stored-"));
  const options = { yaml: upstreamYaml(upstream), dataDir: join(parent, "data") };
  try {
    let id: string;
    let key: string;
    {
      await using first = await startHeadrace(options);
      key = first.key;
      ({ id } = await openaiClient(first).chat.completions.create({ model, messages: question, store: true }));
    }
    await using second = await startHeadrace(options);
    const stored = await openaiClient({ url: second.url, key }).chat.completions.retrieve(id);
    expect(stored.choices[0]?.message.content).toBe("Hello world");
  } finally {
    rmSync(parent, { recursive: true, force: true });
  }
});
