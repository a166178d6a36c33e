// The WebSocket of Responses: events as messages, errors that leave the connection open, and what ends it.
import { afterAll, afterEach, beforeAll, expect, test } from "bun:test";
import { bufferedBytes } from "../../src/base/bytes/buffered-bytes.ts";
import { startHeadrace, type TestServer, until } from "../support/headrace.ts";
import { saidIn } from "../support/response-script.ts";
import { chatScript, type ScriptedUpstream, startUpstream, upstreamYaml, usage } from "../support/scripted-upstream.ts";

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

const model = "upstream-model";

interface Event {
  type: string;
  status?: number;
  stream_id?: string;
  error?: { code: string; param?: string | null };
  response?: { id: string; status: string; usage: unknown; output: unknown };
}

/** A client that collects what it is told. */
async function connect(key = server.key, headers: Readonly<Record<string, string>> = {}) {
  const socket = new WebSocket(`${server.url.replace("http", "ws")}/v1/responses`, {
    headers: { authorization: `Bearer ${key}`, ...headers },
  } as never);
  const events: Event[] = [];
  let reported = () => {};
  socket.onmessage = ({ data }) => {
    events.push(JSON.parse(String(data)) as Event);
    reported();
  };
  await new Promise((resolve, reject) => {
    socket.onopen = resolve;
    socket.onerror = () => reject(new Error("It was not opened."));
  });
  const closed = new Promise<number>((resolve) => {
    socket.onclose = ({ code }) => resolve(code);
  });
  return {
    events,
    closed,
    send: (message: object) => socket.send(JSON.stringify(message)),
    sendText: (text: string) => socket.send(text),
    /** The id of the response that ended last. */
    get lastId() {
      return events.findLast(({ type }) => type === "response.completed")?.response?.id ?? "";
    },
    async until(type: string, count = 1): Promise<void> {
      while (events.filter((event) => event.type === type).length < count) {
        await new Promise<void>((resolve) => {
          reported = resolve;
        });
      }
    },
    [Symbol.dispose]: () => socket.close(),
  };
}

const create = (input: string, more: object = {}) => ({ type: "response.create", model, input, store: false, ...more });

test("evicts the previous response from the connection after a failed turn, but not after a rate-limited one", async () => {
  using client = await connect();
  const failures = () => client.events.filter(({ type }) => type === "error");
  client.send(create("Remember ember."));
  await client.until("response.completed");
  const first = client.lastId;
  const result = { type: "function_call_output", call_id: "call_unknown", output: "Nothing called for this." };
  client.send({ ...create(""), previous_response_id: first, input: [result] });
  await client.until("error");
  expect(failures()[0]).toMatchObject({ status: 400, error: { code: "invalid_request", param: "input[0].call_id" } });
  client.send(create("What was it?", { previous_response_id: first }));
  await client.until("error", 2);
  expect(failures()[1]).toMatchObject({ error: { code: "previous_response_not_found" } });

  client.send(create("Begin anew."));
  await client.until("response.completed", 2);
  const second = client.lastId;
  upstream.script((_, res) => {
    res.writeHead(429, { "retry-after": "60" });
    res.end("{}");
  });
  client.send(create("Go on.", { previous_response_id: second }));
  await client.until("error", 3);
  upstream.script(chatScript());
  await until(async () => {
    const ended = client.events.length;
    client.send(create("Go on.", { previous_response_id: second }));
    await until(() => client.events.slice(ended).some(({ type }) => /completed|error/.test(type)), "the turn ends");
    return client.events.at(-1)?.type === "response.completed";
  }, "the turn is answered once the model server takes requests");
});

test("answers a WebSocket message with a response's events one after another, and books usage", async () => {
  using client = await connect();
  client.send(create("Hello"));
  client.send(create("Hello again"));
  await client.until("response.completed", 2);
  const types = client.events.map(({ type }) => type);
  const first = types.slice(0, types.indexOf("response.completed") + 1);
  expect(first.slice(0, 2)).toEqual(["response.created", "response.in_progress"]);
  expect(types).toEqual([...first, ...first]);
  expect(client.events.at(-1)?.response).toMatchObject({
    status: "completed",
    usage: { input_tokens: usage.prompt_tokens, output_tokens: usage.completion_tokens },
  });
  const requests = (await (await server.request("/v1/requests")).json()) as { data: { operation: string }[] };
  expect(requests.data.slice(0, 2).map(({ operation }) => operation)).toEqual(["response", "response"]);
});

test("serves a cached answer over a WebSocket that asks for it, with a new id, and continues from it", async () => {
  const made = await server.request("/v1/keys", { body: { name: "kept", response_cache: "on" } });
  const { key } = (await made.json()) as { key: string };
  const asks = () => upstream.requests.filter(({ path }) => path.endsWith("/completions")).length;
  const before = asks();
  using plain = await connect(key);
  plain.send(create("Kept?"));
  await plain.until("response.completed");
  using asking = await connect(key, { "x-headrace-cache": "use" });
  for (let count = 1; count <= 2; count++) {
    asking.send(create("Kept?"));
    await asking.until("response.completed", count);
  }
  expect(asks() - before).toBe(2);
  const [first, second] = asking.events.filter(({ type }) => type === "response.completed");
  expect(second?.response).toMatchObject({ status: "completed", usage: first?.response?.usage });
  expect(second?.response?.id).not.toBe(first?.response?.id);
  expect(server.logText()).toContain('"cache":"hit"');
  asking.send(create("And then?", { previous_response_id: second?.response?.id }));
  await asking.until("response.completed", 3);
  expect(asks() - before).toBe(3);
});

test("reports an unanswerable WebSocket message with its status, and keeps the connection", async () => {
  using client = await connect();
  client.send({ type: "response.steer" });
  client.send(create("Hello", { model: "unknown" }));
  client.send({ type: "response.create", model });
  client.send(create("Hello"));
  await client.until("response.completed");
  expect(client.events.filter(({ type }) => type === "error")).toMatchObject([
    { status: 400, error: { code: "invalid_request" } },
    { status: 404, error: { code: "model_not_found" } },
    { status: 400, error: { code: "invalid_request" } },
  ]);
});

test("refuses a too deep or too large WebSocket message before parsing it", async () => {
  using client = await connect();
  for (const input of ["[".repeat(50_000) + "]".repeat(50_000), `[${"[],".repeat(300_000)}1]`]) {
    client.sendText(`{"type":"response.create","model":"${model}","input":${input}}`);
  }
  await client.until("error", 2);
  expect(client.events.map(({ status }) => status)).toEqual([400, 400]);
  expect(JSON.stringify(client.events[0])).toContain("levels deep");
  client.send(create("Hello"));
  await client.until("response.completed");
});

test("books a client that leaves before the first event as cancelled, not as a server failure", async () => {
  const posts = upstream.requests.length;
  upstream.script(() => {});
  const client = await connect();
  client.send({ type: "response.create", model, input: "Hi" });
  await until(() => upstream.requests.length > posts, "the engine is asked");
  client[Symbol.dispose]();
  const line = await until(
    () => server.logged("request").find((one) => one["websocket"] && one["outcome"] === "cancelled"),
    "the line of the request",
  );
  expect([line["status"], line["code"], line["level"]]).toEqual([499, undefined, "info"]);
});

test("stops the engine when a WebSocket client leaves in the middle of a response", async () => {
  let abandoned = () => {};
  const left = new Promise<void>((resolve) => {
    abandoned = resolve;
  });
  upstream.script((_request, res) => {
    res.writeHead(200, { "content-type": "text/event-stream" });
    res.write('data: {"id":"x","choices":[{"index":0,"delta":{"content":"Hal"},"finish_reason":null}]}\n\n');
    res.on("close", abandoned);
  });
  {
    using client = await connect();
    client.send(create("Hello"));
    await client.until("response.output_text.delta");
  }
  await left;
});

test("refuses messages of a revoked key on a WebSocket that it opened before", async () => {
  const body = { name: "short-lived", scopes: ["chat:write"] };
  const made = await server.request("/v1/keys", { method: "POST", body });
  const { id, key } = (await made.json()) as { id: string; key: string };
  using client = await connect(key);
  client.send(create("Hello"));
  await client.until("response.completed");
  await server.request(`/v1/keys/${id}`, { method: "DELETE" });
  client.send(create("Hello"));
  await client.until("error");
  expect(client.events.at(-1)).toMatchObject({ status: 401, error: { code: "invalid_api_key" } });
  expect(await client.closed).toBe(1008);
});

test("answers 426 to a WebSocket path without an upgrade", async () => {
  const response = await server.request("/v1/responses");
  expect([response.status, response.headers.get("upgrade")]).toEqual([426, "websocket"]);
});

/** What the model server was asked last. */
const lastSaid = () => saidIn(upstream.requests.at(-1) ?? { body: { messages: [] } });

test("continues a response with store: false over its own connection only, up to the last four", async () => {
  using client = await connect();
  client.send(create("One"));
  await client.until("response.completed");
  const first = client.lastId;
  client.send(create("Two", { previous_response_id: first }));
  await client.until("response.completed", 2);
  expect(lastSaid()).toEqual(["user: One", "assistant: Hello world", "user: Two"]);
  expect(client.events.at(-1)?.response).toMatchObject({ store: false, previous_response_id: first });
  const second = client.lastId;
  using other = await connect();
  other.send(create("Three", { previous_response_id: second }));
  await other.until("error");
  const unknown = { status: 400, error: { code: "previous_response_not_found", param: "previous_response_id" } };
  expect(other.events.at(-1)).toMatchObject(unknown);
  for (let turn = 3; turn <= 6; turn++) {
    client.send(create("More", { previous_response_id: second }));
    await client.until("response.completed", turn);
  }
  client.send(create("Too late", { previous_response_id: first }));
  await client.until("error");
  expect(client.events.at(-1)).toMatchObject(unknown);
  await notKept(first);
});

async function notKept(id: string): Promise<void> {
  expect((await server.request(`/v1/responses/${id}`)).status).toBe(404);
}

test("continues a stored response over HTTP after a WebSocket, and the reverse", async () => {
  const ask = async (body: object) =>
    (await (await server.request("/v1/responses", { body: { model, ...body } })).json()) as { id: string };
  const { id } = await ask({ input: "One" });
  using client = await connect();
  client.send(create("Two", { previous_response_id: id, store: true }));
  await client.until("response.completed");
  await ask({ input: "Three", previous_response_id: client.lastId });
  expect(lastSaid()).toHaveLength(5);
  // What the connection alone held is kept with what goes on from it.
  client.send(create("Four"));
  await client.until("response.completed", 2);
  client.send(create("Five", { previous_response_id: client.lastId, store: true }));
  await client.until("response.completed", 3);
  await ask({ input: "Six", previous_response_id: client.lastId });
  expect(lastSaid().filter((said) => said.startsWith("user"))).toEqual(["user: Four", "user: Five", "user: Six"]);
});

test("calls no model for generate: false, and continues from its input", async () => {
  upstream.requests.length = 0;
  using client = await connect();
  client.send(create("One", { generate: false }));
  await client.until("response.completed");
  expect(client.events.map(({ type }) => type)).toEqual([
    "response.created",
    "response.in_progress",
    "response.completed",
  ]);
  expect(client.events.at(-1)?.response).toMatchObject({ output: [], store: false, status: "completed" });
  expect(upstream.requests).toHaveLength(0);
  client.send(create("Two", { previous_response_id: client.lastId }));
  await client.until("response.completed", 2);
  expect(lastSaid()).toEqual(["user: One\n\nTwo"]);
  client.send(create("Three", { generate: false, model: "unknown" }));
  client.send(create("Three", { generate: "no" }));
  client.send(create("Three", { background: true }));
  await client.until("error", 3);
  expect(client.events.slice(-3)).toMatchObject([
    { status: 404, error: { code: "model_not_found" } },
    { status: 400, error: { param: "generate" } },
    { status: 400, error: { param: "background" } },
  ]);
});

test("repeats a message's stream id in its events and errors", async () => {
  using client = await connect();
  client.send(create("One", { stream_id: "a" }));
  client.send(create("Two", { stream_id: "b", model: "unknown" }));
  client.send(create("Three"));
  await client.until("response.completed", 2);
  const named = client.events.filter(({ stream_id }) => stream_id === "a");
  expect(named.at(0)?.type).toBe("response.created");
  expect(named.at(-1)?.type).toBe("response.completed");
  expect(client.events.find(({ type }) => type === "error")).toMatchObject({ stream_id: "b", status: 404 });
  expect(client.events.at(-1)?.stream_id).toBeUndefined();
});

test("logs each WebSocket message like a request, and a refused one once", async () => {
  using client = await connect();
  const before = server.logged("request").length;
  client.send(create("One"));
  client.send(create("Two", { model: "unknown" }));
  await client.until("error");
  const lines = server.logged("request").slice(before);
  expect(lines).toMatchObject([
    { websocket: true, route: "/v1/responses", model, status: 200, outcome: "completed", stream: true },
    { websocket: true, model: "unknown", status: 404, code: "model_not_found" },
  ]);
  expect(new Set(lines.map(({ id }) => id)).size).toBe(2);
});

test("charges waiting messages to the key's memory account, and releases them when the connection closes", async () => {
  let goOn = () => {};
  const held = new Promise<void>((resolve) => {
    goOn = resolve;
  });
  upstream.script(async (request, res) => {
    await held;
    await chatScript()(request, res);
  });
  const idle = bufferedBytes.byKind.requests;
  {
    using client = await connect();
    for (let n = 0; n < 4; n++) client.send(create("x".repeat(50_000)));
    await until(() => bufferedBytes.byKind.requests >= idle + 200_000, "that all of them are held");
    client.send(create("y".repeat(1_000)));
  }
  goOn();
  await until(() => bufferedBytes.byKind.requests === idle, "that nothing is held");
  expect(bufferedBytes.byKind.chats).toBe(0);
});

test("applies the handshake's priority up to the key's, and otherwise warns in each message", async () => {
  using low = await connect(server.key, { "x-headrace-priority": "low" });
  low.send(create("Hi"));
  await low.until("response.completed");
  using high = await connect(server.key, { "x-headrace-priority": "high" });
  for (let messages = 1; messages <= 2; messages++) {
    high.send(create("Hi"));
    await high.until("error", messages);
    expect(high.events.at(-1)).toMatchObject({ type: "error", status: 403, error: { code: "permission_denied" } });
  }
});
