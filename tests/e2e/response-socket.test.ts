// The WebSocket of Responses: events as messages, errors that leave the connection open, and what ends it.
import { afterAll, afterEach, beforeAll, expect, test } from "bun:test";
import { startHeadrace, type TestServer } from "../support/headrace.ts";
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
  error?: { code: string };
  response?: { status: string; usage: unknown; output: unknown };
}

/** A client that collects what it is told. */
async function connect(key = server.key) {
  const socket = new WebSocket(`${server.url.replace("http", "ws")}/v1/responses`, {
    headers: { authorization: `Bearer ${key}` },
  } as never);
  const events: Event[] = [];
  let told = () => {};
  socket.onmessage = ({ data }) => {
    events.push(JSON.parse(String(data)) as Event);
    told();
  };
  await new Promise((resolve, reject) => {
    socket.onopen = resolve;
    socket.onerror = () => reject(new Error("It was not opened."));
  });
  return {
    events,
    send: (message: object) => socket.send(JSON.stringify(message)),
    async until(type: string, count = 1): Promise<void> {
      while (events.filter((event) => event.type === type).length < count) {
        await new Promise<void>((resolve) => {
          told = resolve;
        });
      }
    },
    [Symbol.dispose]: () => socket.close(),
  };
}

const create = (input: string, more: object = {}) => ({ type: "response.create", model, input, store: false, ...more });

test("a message is answered by the events of a response, one after the other, and its usage is booked", async () => {
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

test("what cannot be answered is told with its status, and the connection goes on", async () => {
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

test("a client that leaves in the middle of a response stops its engine", async () => {
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

test("a key that was revoked gets nothing more on a connection that it opened before", async () => {
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
});

test("a request without an upgrade is told by 426 that one is needed", async () => {
  const response = await server.request("/v1/responses");
  expect([response.status, response.headers.get("upgrade")]).toEqual([426, "websocket"]);
});
