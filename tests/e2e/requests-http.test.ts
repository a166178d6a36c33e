// What the list of requests says over HTTP after real requests, at once.
import { afterAll, afterEach, beforeAll, expect, test } from "bun:test";
import { openaiClient } from "../support/clients.ts";
import { startHeadrace, type TestServer } from "../support/headrace.ts";
import { mintKey } from "../support/mint-key.ts";
import {
  chatScript,
  chunk,
  json,
  type ScriptedUpstream,
  startUpstream,
  upstreamYaml,
} from "../support/scripted-upstream.ts";

const model = "upstream-model";
const messages = [{ role: "user" as const, content: "CANARY-QUESTION" }];

let upstream: ScriptedUpstream;
let server: TestServer;

beforeAll(async () => {
  upstream = await startUpstream();
  server = await startHeadrace({ yaml: upstreamYaml(upstream) });
});

afterEach(() => upstream.script(chatScript()));

afterAll(async () => {
  await server[Symbol.asyncDispose]();
  await upstream[Symbol.asyncDispose]();
});

interface Listed {
  id: string;
  outcome: string;
  stream: boolean;
  first_token_ms: number | null;
  duration_ms: number;
  [member: string]: unknown;
}

async function read(path: string, by = server.key): Promise<{ status: number; text: string }> {
  const response = await server.request(path, { headers: { authorization: `Bearer ${by}` } });
  return { status: response.status, text: await response.text() };
}

const one = async (id: string) =>
  JSON.parse((await read(`/v1/requests/${id}`)).text) as Listed & { chat: string | null };
const list = async (query = "") =>
  JSON.parse((await read(`/v1/requests${query}`)).text) as { data: Listed[]; next: string | null };

test("finds a request by the x-request-id of its complete answer, without its content", async () => {
  const response = await server.request("/v1/chat/completions", { body: { model, messages } });
  await response.text();
  const id = response.headers.get("x-request-id") ?? "";
  const { status, text } = await read(`/v1/requests/${id}`);
  expect(status).toBe(200);
  expect(text).not.toContain("CANARY");
  expect(JSON.parse(text)).toMatchObject({
    id,
    model,
    operation: "chat",
    stream: false,
    outcome: "completed",
    chat: null,
  });
  expect((await list("?limit=1")).data[0]?.id).toBe(id);
});

test("shows a stream's times and its stored chat", async () => {
  const first = Promise.withResolvers<void>();
  upstream.script(async (_request, res) => {
    res.writeHead(200, { "content-type": "text/event-stream" });
    res.write(chunk({ content: "Hello" }));
    await first.promise;
    res.end(`${chunk({}, "stop")}data: [DONE]\n\n`);
  });
  const { data: stream, request_id } = await openaiClient(server)
    .chat.completions.create({ model, messages, stream: true, store: true })
    .withResponse();
  for await (const _piece of stream) first.resolve();
  const found = await one(request_id ?? "");
  expect(found).toMatchObject({ stream: true, outcome: "completed", error_code: null });
  expect(found.first_token_ms).toBeWithin(0, found.duration_ms + 1);
  const stored = await openaiClient(server).chat.completions.retrieve(found.chat ?? "");
  expect(stored.id).toBe(found.chat ?? "");
  const forUsage = await mintKey(server.dataDir, { scopes: ["usage:read"] });
  expect(JSON.parse((await read(`/v1/requests/${request_id}`, forUsage)).text)).toEqual({ ...found, chat: null });
});

test("shows a failure's error code and finds it by `outcome`", async () => {
  upstream.script((_request, res) => json(res, 500, { error: { message: "broken" } }));
  const response = await server.request("/v1/chat/completions", { body: { model, messages } });
  const { error } = (await response.json()) as { error: { code: string } };
  const { data } = await list("?outcome=failed");
  expect(data).toMatchObject([{ id: response.headers.get("x-request-id"), outcome: "failed", error_code: error.code }]);
});

test("requires usage:read to list requests, and finds none with another environment's key", async () => {
  const writer = await mintKey(server.dataDir, { scopes: ["chat:write"] });
  const elsewhere = await mintKey(server.dataDir, { scopes: ["usage:read"], environment: "live" });
  const [request] = (await list()).data;
  for (const path of ["/v1/requests", `/v1/requests/${request?.id}`])
    expect((await read(path, writer)).status).toBe(403);
  expect(JSON.parse((await read("/v1/requests", elsewhere)).text)).toEqual({
    object: "list",
    data: [],
    next: null,
    searched_to: null,
  });
  expect((await read(`/v1/requests/${request?.id}`, elsewhere)).status).toBe(404);
});
