// Vendors that search, fetch and run tools themselves: what they put into the prompt is booked, though no byte of it was sent.
import { afterAll, beforeAll, expect, test } from "bun:test";
import type { ServerResponse } from "node:http";
import { startHeadrace, type TestServer, until } from "../support/headrace.ts";
import { json, type ScriptedUpstream, startUpstream, type UpstreamRequest } from "../support/scripted-upstream.ts";

type Json = Record<string, unknown>;

const context = 200_000;
/** Tokens of the prompt that the vendor reports. */
let read: number;
/** Set if the stream of a message has no text yet. */
let isSilent = false;
let upstream: ScriptedUpstream;
let server: TestServer;

beforeAll(async () => {
  upstream = await startUpstream(answer);
  server = await startHeadrace({
    yaml: `upstreams: [{ name: up, url: "${upstream.url}", discover: false, apis: [chat, responses, messages] }]
models:
  - { id: vendor, context: ${context}, price: { input: 2, output: 10 }, deployments: [{ upstream: up, model: m }] }
`,
  });
});
afterAll(async () => {
  await server[Symbol.asyncDispose]();
  await upstream[Symbol.asyncDispose]();
});

const said = "word ".repeat(20);

function answer({ path, body }: UpstreamRequest, res: ServerResponse): void {
  const isStream = body["stream"] === true;
  if (path.endsWith("/responses")) json(res, 200, responseAnswer());
  else if (path.endsWith("/messages") && isStream) beginMessage(res);
  else if (path.endsWith("/messages")) json(res, 200, messageAnswer());
  else if (isStream) streamChat(res);
  else json(res, 200, chatAnswer());
}

function responseAnswer(): Json {
  const content = [{ type: "output_text", text: said, annotations: [] }];
  return {
    ...{ id: "resp_up", object: "response", created_at: 1, status: "completed", model: "m" },
    ...{ error: null, incomplete_details: null },
    output: [{ type: "message", id: "msg_up", role: "assistant", status: "completed", content }],
    usage: { input_tokens: read, output_tokens: 20, total_tokens: read + 20 },
  };
}

function messageAnswer(): Json {
  return {
    ...{ id: "msg_up", type: "message", role: "assistant", model: "m", stop_reason: "end_turn", stop_sequence: null },
    content: [{ type: "text", text: said }],
    usage: { input_tokens: read, output_tokens: 20, server_tool_use: { web_search_requests: 3 } },
  };
}

/** Tells the prompt and some text, and never ends. */
function beginMessage(res: ServerResponse): void {
  res.writeHead(200, { "content-type": "text/event-stream" });
  const tell = (event: Json) => res.write(`event: ${event["type"]}\ndata: ${JSON.stringify(event)}\n\n`);
  const usage = { input_tokens: read, output_tokens: 1, service_tier: "priority" };
  const message = { id: "msg_up", type: "message", role: "assistant", model: "m", content: [], usage };
  tell({ type: "message_start", message: { ...message, stop_reason: null, stop_sequence: null } });
  tell({ type: "content_block_start", index: 0, content_block: { type: "text", text: "" } });
  if (isSilent) return;
  tell({ type: "content_block_delta", index: 0, delta: { type: "text_delta", text: "All that was asked." } });
}

const chatUsage = () => ({ prompt_tokens: read, completion_tokens: 20, total_tokens: read + 20 });

function chatAnswer(): Json {
  return {
    ...{ id: "chatcmpl-up", object: "chat.completion", created: 1, model: "m", usage: chatUsage() },
    choices: [{ index: 0, message: { role: "assistant", content: said }, finish_reason: "stop" }],
  };
}

function streamChat(res: ServerResponse): void {
  res.writeHead(200, { "content-type": "text/event-stream" });
  const common = { id: "chatcmpl-up", object: "chat.completion.chunk", created: 1, model: "m" };
  const delta = { role: "assistant", content: said };
  res.write(`data: ${JSON.stringify({ ...common, choices: [{ index: 0, delta, finish_reason: "stop" }] })}\n\n`);
  res.end(`data: ${JSON.stringify({ ...common, choices: [], usage: chatUsage() })}\n\ndata: [DONE]\n\n`);
}

async function booked(path: string, body: Json): Promise<Json> {
  const response = await server.request(path, { body: { model: "vendor", ...body } });
  expect(response.status).toBe(200);
  await response.text();
  await server.governance.ledger.flush();
  const { data } = (await (await server.request("/v1/requests?limit=1")).json()) as { data: Json[] };
  return data[0] as Json;
}

const question = "What is new?";
const messages = [{ role: "user", content: question }];
const [chat, responses, anthropic] = ["/v1/chat/completions", "/v1/responses", "/v1/messages"];
const functionTool = { type: "function", function: { name: "look", parameters: { type: "object", properties: {} } } };

test.each<[string, string, Json]>([
  ["a search by a Responses tool", responses, { input: question, tools: [{ type: "web_search" }] }],
  ["a prompt that the vendor keeps", responses, { input: question, prompt: { id: "pmpt_1" } }],
  [
    "a search by a tool of Messages",
    anthropic,
    { max_tokens: 100, messages, tools: [{ type: "web_search_20250305", name: "web_search" }] },
  ],
  ["search options of a chat", chat, { messages, web_search_options: {} }],
  ["search options of a streamed chat", chat, { messages, web_search_options: {}, stream: true }],
  ["OpenRouter's plugins", chat, { messages, plugins: [{ id: "web" }] }],
  ["xAI's search parameters", chat, { messages, search_parameters: { mode: "on" } }],
  ["sources in a member that is not known", chat, { messages, data_sources: [{ type: "azure_search" }] }],
])("books the prompt that a vendor reports after %s", async (_name, path, body) => {
  read = 60_000;
  expect(await booked(path, body)).toMatchObject({ prompt_tokens: 60_000, capped: false, cost: 0.1202 });
});

test.each<[string, string, Json]>([
  ["text alone", chat, { messages }],
  ["tools that the client runs", chat, { messages, tools: [functionTool] }],
  ["an unknown number", chat, { messages, custom_weight: 2 }],
  [
    "a client tool of Messages",
    anthropic,
    { max_tokens: 9, messages, tools: [{ type: "bash_20250124", name: "bash" }] },
  ],
])("caps a reported prompt at the largest possible for a request with %s", async (_name, path, body) => {
  read = 60_000;
  const { prompt_tokens: tokens, capped } = await booked(path, body);
  expect(Number(tokens)).toBeLessThan(5_000);
  expect(capped).toBe(true);
});

test("caps a reported search prompt at 32 turns of the context", async () => {
  read = 1_000_000_000;
  const row = await booked(responses, { input: question, tools: [{ type: "web_search" }] });
  expect(row).toMatchObject({ prompt_tokens: 32 * context, capped: true });
});

test.each([
  ["behind its first text", false, "All that was asked."],
  ["before its first text", true, "message_start"],
])("books the prompt and tier from a stream's start if its client leaves %s", async (_name, silent, awaited) => {
  read = 150_000;
  isSilent = silent;
  const source = { type: "base64", media_type: "application/pdf", data: "JVBERi0xLjQK" };
  const content = [
    { type: "document", source },
    { type: "text", text: question },
  ];
  const client = new AbortController();
  const response = await server.request(anthropic, {
    body: { model: "vendor", max_tokens: 100, stream: true, messages: [{ role: "user", content }] },
    signal: client.signal,
  });
  const reader = response.body?.getReader() as ReadableStreamDefaultReader<Uint8Array>;
  for (let heard = ""; !heard.includes(awaited); ) {
    heard += Buffer.from((await reader.read()).value ?? []).toString();
  }
  client.abort();
  const row = await until(async () => {
    await server.governance.ledger.flush();
    const { data } = (await (await server.request("/v1/requests?limit=1")).json()) as { data: Json[] };
    return data[0]?.["outcome"] === "cancelled" ? data[0] : undefined;
  }, "the request is booked");
  expect(row).toMatchObject({ prompt_tokens: 150_000, estimated: true });
  const { usage_details: details } = (await (await server.request(`/v1/requests/${row["id"]}`)).json()) as Json & {
    usage_details: Json;
  };
  expect(JSON.stringify(details)).toContain("priority");
});
