// A success without an answer: the client hears nothing of it, and the next deployment is asked.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { startHeadrace, type TestServer, until } from "../support/headrace.ts";
import { isLook } from "../support/scripted-upstream.ts";

type Json = Record<string, unknown>;
type Answer = (res: ServerResponse) => void;

const formats = ["chat", "responses", "messages"] as const;
type Format = (typeof formats)[number];
const formatOf: Readonly<Record<string, Format>> = {
  "/v1/chat/completions": "chat",
  "/v1/responses": "responses",
  "/v1/messages": "messages",
};

const sent = (status: number, type: string | undefined, body: string): Answer => {
  return (res) => {
    res.writeHead(status, type === undefined ? {} : { "content-type": type });
    res.end(body);
  };
};
const jsonType = "application/json";
const sse = "text/event-stream";
/** The connection ends before the body does. */
const cut = (type: string, body: string): Answer => {
  return (res) => {
    res.writeHead(200, { "content-type": type, "content-length": "4096" });
    res.write(body);
    setTimeout(() => res.destroy(), 20);
  };
};
const page = "<!doctype html><title>Sign in</title>";
const error = '{"error":{"message":"out of order","type":"server_error"}}';

/** What comes in place of an answer, whether a stream is asked for or not. */
const always: Readonly<Record<string, Answer>> = {
  "a page": sent(200, "text/html", page),
  "a page that calls itself JSON": sent(200, jsonType, page),
  "an error": sent(200, jsonType, error),
  "an error as plain text": sent(200, "text/plain", error),
  "an error of FastAPI": sent(200, jsonType, '{"detail":"Not ready"}'),
  null: sent(200, jsonType, "null"),
  "an empty object": sent(200, jsonType, "{}"),
  "an empty body": sent(200, jsonType, ""),
  "an empty body without a type": sent(200, undefined, ""),
  "no content": sent(204, undefined, ""),
  "accepted for later": sent(202, jsonType, '{"status":"queued"}'),
  "JSON that is cut": cut(jsonType, '{"id":"x","object":"chat.comp'),
  "JSON that ends early": sent(200, jsonType, '{"id":"x","object":"chat.comp'),
  "no choices": sent(200, jsonType, '{"id":"x","object":"chat.completion","created":1,"model":"m","choices":[]}'),
  "a list": sent(200, jsonType, "[1]"),
  "a stream that ends at once": sent(200, sse, "data: [DONE]\n\n"),
  "a stream that ends at once, without a line end": sent(200, sse, "data: [DONE]"),
  "a stream of a heartbeat": sent(200, sse, "data: {}\n\ndata: [DONE]\n\n"),
};
const streamed: Readonly<Record<string, Answer>> = {
  "an empty stream": sent(200, sse, ""),
  "a stream of comments": sent(200, sse, ": hello\n\n: hello\n\n"),
  "an error as the first event": sent(200, sse, `data: ${error}\n\n`),
  "an error as the first event, with a name": sent(
    200,
    sse,
    `event: error\ndata: {"type":"error",${error.slice(1)}\n\n`,
  ),
  "an error behind a comment": sent(200, sse, `: hello\n\ndata: ${error}\n\n`),
  "an error behind a ping": sent(
    200,
    sse,
    `event: ping\ndata: {"type":"ping"}\n\nevent: error\ndata: {"type":"error",${error.slice(1)}\n\n`,
  ),
  "a response that failed at once": sent(
    200,
    sse,
    'event: response.failed\ndata: {"type":"response.failed","response":{"id":"r","object":"response","status":"failed","error":{"code":"server_error","message":"no"},"output":[]}}\n\n',
  ),
  "events without a choice": sent(
    200,
    sse,
    'data: {"id":"x","object":"chat.completion.chunk","choices":[]}\n\ndata: [DONE]\n\n',
  ),
  "an event that is no JSON": sent(200, sse, "data: <html>\n\n"),
  "a page in place of a stream": sent(200, sse, page),
  "a stream that is cut before its first event": cut(sse, ": hello\n\n"),
  "an event that is cut": cut(sse, 'data: {"id":"x","choices":[{"index":0,"del'),
};

const whole: Readonly<Record<Format, Json>> = {
  chat: {
    ...{ id: "c", object: "chat.completion", created: 1, model: "m" },
    choices: [{ index: 0, message: { role: "assistant", content: "Hello" }, finish_reason: "stop" }],
    usage: { prompt_tokens: 7, completion_tokens: 2, total_tokens: 9 },
  },
  responses: {
    ...{ id: "r", object: "response", created_at: 1, model: "m", status: "completed" },
    output: [
      {
        ...{ id: "i", type: "message", role: "assistant", status: "completed" },
        content: [{ type: "output_text", text: "Hello", annotations: [] }],
      },
    ],
    usage: { input_tokens: 7, output_tokens: 2, total_tokens: 9 },
  },
  messages: {
    ...{ id: "m", type: "message", role: "assistant", model: "m", stop_reason: "end_turn", stop_sequence: null },
    content: [{ type: "text", text: "Hello" }],
    usage: { input_tokens: 7, output_tokens: 2 },
  },
};
const event = (data: Json): string => `event: ${data["type"]}\ndata: ${JSON.stringify(data)}\n\n`;
const chunk = (delta: Json, finish: string | null = null): string =>
  `data: ${JSON.stringify({ id: "c", object: "chat.completion.chunk", created: 1, model: "m", choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`;
const stream: Readonly<Record<Format, string>> = {
  chat: `${chunk({ role: "assistant", content: "" })}${chunk({ content: "Hello" })}${chunk({}, "stop")}data: [DONE]\n\n`,
  responses:
    event({ type: "response.created", response: { ...whole.responses, status: "in_progress", output: [] } }) +
    event({ type: "response.completed", response: whole.responses }),
  messages:
    event({ type: "message_start", message: { ...whole.messages, content: [], stop_reason: null } }) +
    event({ type: "content_block_start", index: 0, content_block: { type: "text", text: "" } }) +
    event({ type: "content_block_delta", index: 0, delta: { type: "text_delta", text: "Hello" } }) +
    event({ type: "content_block_stop", index: 0 }) +
    event({ type: "message_delta", delta: { stop_reason: "end_turn" }, usage: { output_tokens: 2 } }) +
    event({ type: "message_stop" }),
};
const requests: Readonly<Record<Format, readonly [path: string, body: Json]>> = {
  chat: ["/v1/chat/completions", { messages: [{ role: "user", content: "Hi" }] }],
  responses: ["/v1/responses", { input: "Hi", store: false }],
  messages: ["/v1/messages", { messages: [{ role: "user", content: "Hi" }], max_tokens: 100 }],
};

/** What comes in place of an answer to a task. */
const ofTasks: Readonly<Record<string, Answer>> = {
  "lists without an item": sent(200, jsonType, '{"data":[],"results":[],"answers":[],"choices":[]}'),
  "lists of null": sent(200, jsonType, '{"data":[null],"results":[null],"answers":[null],"choices":[null]}'),
};
/** What comes in place of sound, or of a text that is no JSON. */
const ofBytes: Readonly<Record<string, Answer>> = {
  "an error that calls itself sound": sent(200, "audio/mpeg", error),
  "an error without a type": sent(200, undefined, error),
  "an error of FastAPI as plain text": sent(200, "text/plain", '{ "detail": "Not ready" }'),
  "lines of JSON": sent(200, "application/x-ndjson", `${error}\n`),
  "an event with an error": sent(200, sse, `event: error\ndata: ${error}\n\n`),
  "an event with an error as plain text": sent(200, "text/plain", `data: ${error}\n\n`),
  "an event that is named an error": sent(200, sse, 'event: error\ndata: {"message":"no"}\n\n'),
};

/** The tasks and the other operations: a request of each, and an answer to it. */
const operations: Readonly<Record<string, { path: string; body: Json; answer: Json }>> = {
  completions: {
    path: "/v1/completions",
    body: { prompt: "Hi" },
    answer: { ...whole.chat, object: "text_completion", choices: [{ index: 0, text: "Hello", finish_reason: "stop" }] },
  },
  embeddings: {
    path: "/v1/embeddings",
    body: { input: "Hi" },
    answer: {
      ...{ object: "list", model: "m", usage: { prompt_tokens: 1, total_tokens: 1 } },
      data: [{ object: "embedding", index: 0, embedding: [0.5, 1] }],
    },
  },
  rerank: {
    path: "/v1/rerank",
    body: { query: "Hi", documents: ["a"] },
    answer: { results: [{ index: 0, relevance_score: 1 }] },
  },
  moderations: { path: "/v1/moderations", body: { input: "Hi" }, answer: { results: [{ flagged: false }] } },
  score: { path: "/v1/score", body: { text_1: "Hi", text_2: ["a"] }, answer: { data: [{ index: 0, score: 1 }] } },
  decisions: {
    path: "/v1/decisions",
    body: { input: "Hi", questions: [{ type: "predicate", name: "a", instructions: "b" }] },
    answer: { answers: [{ type: "predicate", name: "a", probability: 1 }] },
  },
  images: {
    path: "/v1/images/generations",
    body: { prompt: "Hi" },
    answer: { created: 1, data: [{ b64_json: "aGk=" }] },
  },
};

class Server {
  readonly asked = new Map<string, number>();
  readonly #server = createServer(async (req, res) => {
    const chunks: Buffer[] = [];
    for await (const piece of req) chunks.push(piece as Buffer);
    const text = Buffer.concat(chunks).toString();
    if (req.method === "GET" || isLook(text)) {
      sent(req.method === "GET" ? 200 : 404, jsonType, '{"object":"list","data":[]}')(res);
      return;
    }
    const isForm = req.headers["content-type"]?.startsWith("multipart/") === true;
    const body = isForm ? { model: /m-\d+[\w-]+/.exec(text)?.[0] } : (JSON.parse(text) as Json);
    const model = String(body["model"]);
    // Tokens are counted beside the request itself.
    if (req.url?.includes("token")) {
      sent(404, jsonType, "{}")(res);
      return;
    }
    this.asked.set(model, (this.asked.get(model) ?? 0) + 1);
    this.#answer(req, res, body);
  });
  readonly #answer: (req: IncomingMessage, res: ServerResponse, body: Json) => void;

  constructor(answer: (req: IncomingMessage, res: ServerResponse, body: Json) => void) {
    this.#answer = answer;
  }

  async listen(): Promise<string> {
    await new Promise<void>((resolve) => this.#server.listen(0, "127.0.0.1", resolve));
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/v1`;
  }

  close(): void {
    this.#server.closeAllConnections();
    this.#server.close();
  }
}

const cases: Readonly<Record<string, Answer>> = { ...always, ...streamed, ...ofTasks, ...ofBytes };
const caseNames = Object.keys(cases);
const bad = new Server((_req, res, { model }) => cases[caseNames[Number(String(model).split("-")[1])] ?? ""]?.(res));
const good = new Server((req, res, body) => {
  const format = formatOf[req.url ?? ""];
  const other = Object.values(operations).find(({ path }) => path === req.url);
  if (req.url === "/v1/audio/speech") sent(200, "audio/mpeg", "ID3\0 sound")(res);
  else if (req.url === "/v1/audio/transcriptions") sent(200, "text/plain", "Hello")(res);
  else if (!format) sent(other ? 200 : 404, jsonType, JSON.stringify(other?.answer ?? {}))(res);
  else if (body["stream"] === true) sent(200, sse, stream[format])(res);
  else sent(200, jsonType, JSON.stringify(whole[format]))(res);
});
let server: TestServer;
const uses = 16;
const used = new Map<string, number>();

beforeAll(async () => {
  const [badUrl, goodUrl] = [await bad.listen(), await good.listen()];
  const upstreams = formats.flatMap((format) => [
    `  - { name: bad-${format}, url: "${badUrl}", apis: [${format}], discover: false }`,
    `  - { name: good-${format}, url: "${goodUrl}", apis: [${format}], discover: false }`,
  ]);
  // One for each use: a deployment that gave no answer rests.
  const models = formats.flatMap((format) =>
    caseNames.flatMap((_, index) =>
      Array.from({ length: uses }, (_, use) => {
        const id = `m-${index}-${format}-${use}`;
        const capabilities =
          "{ chat: true, completion: true, embeddings: true, rerank: true, moderation: true, images: true, decisions: true, speech: true, transcription: true }";
        return `  - { id: ${id}, capabilities: ${capabilities}, deployments: [{ upstream: bad-${format}, model: ${id}, weight: 1000000 }, { upstream: good-${format}, model: ${id}, weight: 1 }] }`;
      }),
    ),
  );
  for (const name of markAlone)
    for (const client of formats) {
      const id = loneModel(name, client);
      models.push(`  - { id: ${id}, deployments: [{ upstream: bad-chat, model: ${id} }] }`);
    }
  server = await startHeadrace({ yaml: `upstreams:\n${upstreams.join("\n")}\nmodels:\n${models.join("\n")}\n` });
});
afterAll(async () => {
  await server[Symbol.asyncDispose]();
  bad.close();
  good.close();
});

const markAlone = ["a stream that ends at once", "a stream that ends at once, without a line end"];
const loneModel = (name: string, client: Format) => `m-${caseNames.indexOf(name)}-lone-${client}`;

function modelFor(name: string, upstream: Format): string {
  const id = `m-${caseNames.indexOf(name)}-${upstream}`;
  const use = used.get(id) ?? 0;
  used.set(id, use + 1);
  return `${id}-${use}`;
}

interface Booked {
  attempts: number;
  outcome: string;
  upstream: string;
  prompt_tokens: number;
  completion_tokens: number;
  trail: { upstream: string; result: string }[];
}

async function booked(id: string | null): Promise<Booked> {
  return await until(async () => {
    const response = await server.request(`/v1/requests/${id}`);
    return response.status === 200 ? ((await response.json()) as Booked) : undefined;
  }, `the request ${id} is booked`);
}

describe.each(formats)("empty and broken answers of %s servers, by client format", (upstream) => {
  for (const client of formats) {
    for (const isStream of [false, true]) {
      const names = isStream ? caseNames : Object.keys(always);
      test.each(names)(
        `tries the next server if a ${isStream ? "stream" : "whole answer"} of ${client} is %s`,
        async (name) => {
          const [path, body] = requests[client];
          const model = modelFor(name, upstream);
          const response = await server.request(path, { body: { ...body, model, stream: isStream } });
          const text = await response.text();
          expect([response.status, text]).toEqual([200, expect.stringContaining("Hello")]);
          expect(text).not.toContain('error":{');
          expect([bad.asked.get(model), good.asked.get(model)]).toEqual([1, 1]);
          const record = await booked(response.headers.get("x-request-id"));
          expect(record).toMatchObject({ outcome: "completed", upstream: `good-${upstream}` });
          expect(record.trail.map(({ result }) => result)).toEqual(["broke_off", "answered"]);
          const isCounted = !(upstream === "chat" && isStream);
          if (isCounted) expect([record.prompt_tokens, record.completion_tokens]).toEqual([7, 2]);
        },
      );
    }
  }
});

describe.each(markAlone)("%s from the only server", (name) => {
  test.each(formats)("returns an error without charge to a client of %s", async (client) => {
    const [path, body] = requests[client];
    const response = await server.request(path, { body: { ...body, model: loneModel(name, client), stream: true } });
    expect([response.status, await response.text()]).toEqual([502, expect.stringContaining("sent no answer")]);
    const record = await booked(response.headers.get("x-request-id"));
    expect(record).toMatchObject({ outcome: "failed", prompt_tokens: 0, completion_tokens: 0 });
  });
});

describe.each(Object.keys(operations))("a request for %s", (operation) => {
  test.each(Object.keys({ ...always, ...ofTasks }))("tries the next server if the answer is %s", async (name) => {
    const { path, body } = operations[operation] as (typeof operations)[string];
    const model = modelFor(name, "chat");
    const response = await server.request(path, { body: { ...body, model } });
    expect([response.status, await response.json()]).toEqual([200, expect.anything()]);
    expect([bad.asked.get(model), good.asked.get(model)]).toEqual([1, 1]);
  });
});

test("tries the next server for a stream of images if a whole answer has no image", async () => {
  for (const name of Object.keys(ofTasks)) {
    const model = modelFor(name, "chat");
    const response = await server.request("/v1/images/generations", { body: { model, prompt: "Hi", stream: true } });
    expect([response.status, await response.text()]).toEqual([200, expect.stringContaining("aGk=")]);
    expect([bad.asked.get(model), good.asked.get(model)]).toEqual([1, 1]);
  }
});

const whatIsNoBytes = Object.keys({ ...always, ...ofBytes });

test.each(whatIsNoBytes)("tries the next server for speech if the answer is %s", async (name) => {
  const model = modelFor(name, "chat");
  const response = await server.request("/v1/audio/speech", { body: { model, input: "Hi", voice: "alloy" } });
  expect([response.status, await response.text()]).toEqual([200, "ID3\0 sound"]);
  expect([bad.asked.get(model), good.asked.get(model)]).toEqual([1, 1]);
});

test.each(whatIsNoBytes)("tries the next server for a transcript as text if the answer is %s", async (name) => {
  const model = modelFor(name, "chat");
  const body = new FormData();
  for (const [field, value] of Object.entries({ model, response_format: "text" })) body.append(field, value);
  body.append("file", new Blob(["RIFF"]), "a.wav");
  const headers = { authorization: `Bearer ${server.key}` };
  const response = await fetch(`${server.url}/v1/audio/transcriptions`, { method: "POST", headers, body });
  expect([response.status, await response.text()]).toEqual([200, "Hello"]);
  expect([bad.asked.get(model), good.asked.get(model)]).toEqual([1, 1]);
});
