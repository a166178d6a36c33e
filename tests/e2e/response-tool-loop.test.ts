// What holds while the gateway runs tools within a response: each call once, whatever becomes of the model's turns.

import { heapStats } from "bun:jsc";
import { afterAll, beforeAll, beforeEach, expect, test } from "bun:test";
import { createMcpHandler, McpServer } from "@modelcontextprotocol/server";
import OpenAI from "openai";
import { z } from "zod";
import { bufferedBytes } from "../../src/base/bytes/buffered-bytes.ts";
import { type Collector, type ReceivedSpan, startCollector } from "../support/collector.ts";
import { startHeadrace, type TestServer, until } from "../support/headrace.ts";
import { callsOf, chatAnswer, type LoopTurn } from "../support/looping-model.ts";

interface Turn extends LoopTurn {
  max_tokens?: number;
  max_completion_tokens?: number;
}

interface NativeTurn {
  input: Record<string, unknown>[];
  stream?: boolean;
}

let tools: Bun.Server<undefined>;
let model: Bun.Server<undefined>;
let headrace: TestServer;
let collector: Collector;
let client: OpenAI;
/** What the tool was called with. */
let called: string[] = [];
/** What the model was asked, turn by turn. */
let turns: Turn[] = [];
let natives: NativeTurn[] = [];
let shadows = 0;
/** What it answers to the turn of this number. */
let answer: (turn: number) => object | Response | Promise<object | Response>;

const calls = (...cities: string[]) => callsOf("weather__forecast", ...cities.map((city) => ({ city })));

/** A server that speaks Responses itself: it thinks, and calls until it is told something. */
function native(asked: NativeTurn): Response {
  natives.push(asked);
  const reported = asked.input.findLast(({ type }) => type === "function_call_output");
  const n = natives.length;
  const thought = { id: `rs_${n}`, type: "reasoning", summary: [], encrypted_content: `sealed_${n}` };
  const call = { id: `fc_${n}`, type: "function_call", status: "completed", call_id: `call_${n}` };
  const text = { type: "output_text", text: `Told: ${reported?.["output"]}`, annotations: [] };
  const said = reported
    ? { id: `msg_${n}`, type: "message", status: "completed", role: "assistant", content: [text] }
    : { ...call, name: "weather__forecast", arguments: '{"city":"Ulm"}' };
  const output = [thought, said];
  const usage = { input_tokens: 10, output_tokens: 5, total_tokens: 15 };
  const response = {
    id: `resp_${n}`,
    object: "response",
    created_at: 1,
    model: "m",
    status: "completed",
    output,
    usage,
  };
  if (!asked.stream) return Response.json(response);
  const events: object[] = [
    { type: "response.created", response: { ...response, status: "in_progress", output: [], usage: null } },
    ...output.flatMap((item, output_index) =>
      ["added", "done"].map((what) => ({ type: `response.output_item.${what}`, output_index, item })),
    ),
    { type: "response.completed", response },
  ];
  const lines = events.map((event, sequence_number) => `data: ${JSON.stringify({ ...event, sequence_number })}\n\n`);
  return new Response(`${lines.join("")}data: [DONE]\n\n`, { headers: { "content-type": "text/event-stream" } });
}

beforeAll(async () => {
  const handler = createMcpHandler(() => {
    const server = new McpServer({ name: "weather", version: "1" });
    const forecast = { description: "Tells the weather.", inputSchema: z.object({ city: z.string() }) };
    server.registerTool("forecast", forecast, async ({ city }) => {
      called.push(city);
      if (city === "Slow") await Bun.sleep(5_000);
      if (city.endsWith("Map")) {
        const image = { type: "image" as const, data: "AAAA".repeat(10_000), mimeType: "image/png" };
        return { content: [image], isError: city === "No Map" };
      }
      return { content: [{ type: "text", text: city === "Big" ? "x".repeat(3_000_000) : `Rain in ${city}` }] };
    });
    return server;
  });
  tools = Bun.serve({ port: 0, hostname: "127.0.0.1", idleTimeout: 0, fetch: (request) => handler.fetch(request) });
  model = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    async fetch(request) {
      if (request.url.endsWith("/v1/responses")) return native((await request.json()) as NativeTurn);
      if (!request.url.endsWith("/chat/completions")) return new Response("no", { status: 404 });
      const body = (await request.json()) as Turn;
      if (body.model === "shadow") shadows++;
      else turns.push(body);
      const said = body.model === "shadow" ? calls("Shadow") : await answer(turns.length);
      return said instanceof Response ? said : chatAnswer(said, body);
    },
  });
  collector = startCollector();
  const yaml = `upstreams:
  - { name: m, url: "http://127.0.0.1:${model.port}/v1", apis: [chat] }
  - { name: n, url: "http://127.0.0.1:${model.port}/v1", apis: [responses] }
tracing: { endpoint: "${collector.url}" }
models:
  - { id: m, deployments: [{ upstream: m }], policies: { cache: { requests: all } } }
  - { id: shadow, deployments: [{ upstream: m }] }
  - { id: watched, deployments: [{ upstream: m, model: m }], policies: { shadow: { model: shadow, percent: 100 } } }
  - { id: native, deployments: [{ upstream: n, model: m }] }
  - { id: guarded, deployments: [{ upstream: m, model: m }], policies: { guardrails: [mask, block] } }
guardrails:
  - { name: mask, kind: patterns, sides: [request], action: mask, patterns: [{ name: street, pattern: 'Elm Street' }] }
  - { name: block, kind: patterns, sides: [request], action: block, patterns: [{ name: city, pattern: 'Rain in Sodom' }] }
tools: { servers: [{ name: weather, url: "http://127.0.0.1:${tools.port}/mcp" }] }
`;
  headrace = await startHeadrace({ yaml, spanBounds: { delayMs: 5 } });
  const scopes = ["chat:write", "chat:read", "tools:use"];
  const made = await headrace.request("/v1/keys", { body: { name: "tools", scopes } });
  const { key } = (await made.json()) as { key: string };
  client = new OpenAI({ apiKey: key, baseURL: `${headrace.url}/v1`, maxRetries: 2 });
});

beforeEach(() => {
  called = [];
  turns = [];
  natives = [];
});

afterAll(async () => {
  await headrace[Symbol.asyncDispose]();
  await Promise.all([tools.stop(true), model.stop(true), collector[Symbol.asyncDispose]()]);
});

const weather = { type: "mcp", server_label: "weather", require_approval: "never" } as const;
const asking = { type: "mcp", server_label: "weather" } as const;

async function approvalOf(input: string, asker = client, model = "m"): Promise<{ id: string; request: string }> {
  answer = () => calls("Ulm");
  const first = await asker.responses.create({ model, input, tools: [asking] });
  const request = first.output.find(({ type }) => type === "mcp_approval_request");
  return { id: first.id, request: request?.id ?? "" };
}

const approved = (request: string, approve = true) =>
  ({ type: "mcp_approval_response", approval_request_id: request, approve }) as const;

test("does not repeat an approved call because of later turns in the conversation", async () => {
  const { id, request } = await approvalOf("Weather?");
  answer = () => ({ content: "It rains." });
  const second = await client.responses.create({
    ...{ model: "m", tools: [asking], previous_response_id: id, input: [approved(request)] },
  });
  expect(called).toEqual(["Ulm"]);
  const third = await client.responses.create({
    ...{ model: "m", tools: [asking], previous_response_id: second.id, input: "Thanks." },
  });
  expect(third.output.map(({ type }) => type)).toEqual(["message"]);
  expect(called).toEqual(["Ulm"]);
  expect(turns.at(-1)?.messages.at(-1)).toMatchObject({ role: "user", content: "Thanks." });
});

test("refuses an approval of an unknown request or a contradicting second answer, without a call", async () => {
  const { id, request } = await approvalOf("Weather?");
  for (const input of [[approved("mcpr_other")], [approved(request), approved(request, false)]]) {
    const asked = client.responses.create({ model: "m", tools: [asking], previous_response_id: id, input });
    const error = await asked.catch((fault: InstanceType<typeof OpenAI.APIError>) => fault);
    expect(error).toMatchObject({ status: 400, param: "input" });
  }
  expect(called).toEqual([]);
});

test("refuses an approval without an id, since it would match any other", async () => {
  const request = { type: "mcp_approval_request", server_label: "weather", name: "forecast", arguments: "{}" };
  const input = [request, { type: "mcp_approval_response", approve: true }];
  const asked = await headrace.request("/v1/responses", { body: { model: "m", tools: [asking], input } });
  expect([asked.status, (await asked.json()).error.param]).toEqual([400, "input"]);
  expect(called).toEqual([]);
});

test("returns a failed response with its call if the model fails afterwards, so that the client does not repeat it", async () => {
  for (const stream of [false, true]) {
    [called, turns] = [[], []];
    answer = (turn) => (turn === 1 ? calls("Ulm") : new Response("{}", { status: 400 }));
    const request = { model: "m", input: "Weather?", tools: [weather] };
    let response: OpenAI.Responses.Response;
    if (stream) {
      const types: string[] = [];
      let last: OpenAI.Responses.Response | undefined;
      for await (const event of await client.responses.create({ ...request, stream })) {
        types.push(event.type);
        if (event.type === "response.failed") last = event.response;
      }
      expect(types.at(-1)).toBe("response.failed");
      response = last as OpenAI.Responses.Response;
    } else response = await client.responses.create({ ...request, tools: [weather] });
    expect(response.status).toBe("failed");
    expect(response.error?.code).toBeString();
    expect(response.output.map(({ type }) => type)).toEqual(["mcp_list_tools", "mcp_call"]);
    expect(called).toEqual(["Ulm"]);
    expect(await client.responses.retrieve(response.id)).toMatchObject({ status: "failed", output: response.output });
  }
});

test("lists an approved call in its response if that fails afterwards", async () => {
  const { id, request } = await approvalOf("Weather?");
  answer = () => new Response("{}", { status: 400 });
  const failed = await client.responses.create({
    ...{ model: "m", tools: [asking], previous_response_id: id, input: [approved(request)] },
  });
  expect(failed).toMatchObject({ status: "failed", previous_response_id: id });
  expect(failed.output).toMatchObject([{ type: "mcp_call", status: "completed", approval_request_id: request }]);
  expect(called).toEqual(["Ulm"]);
});

test("keeps an approval whose call hits a rate limit, and makes the call later", async () => {
  const one = await keyOf({ rate_limit: 1, rate_limit_window: 60 });
  const { id, request } = await approvalOf("Weather?", one.client);
  answer = () => ({ content: "It rains." });
  const asked = { model: "m", tools: [asking], previous_response_id: id, input: [approved(request)] };
  const refused = one.client.responses.create(asked, { maxRetries: 0 });
  const error = await refused.catch((fault: InstanceType<typeof OpenAI.APIError>) => fault);
  expect(error).toMatchObject({ status: 429, code: "rate_limit_exceeded" });
  expect(called).toEqual([]);
  const { output } = await client.responses.create(asked);
  expect(output[0]).toMatchObject({ type: "mcp_call", status: "completed", output: "Rain in Ulm" });
  expect(called).toEqual(["Ulm"]);
});

test("refuses more approvals than a model may request at once before making any call", async () => {
  const input = Array.from({ length: 257 }, (_, n) => [
    {
      id: `mcpr_${n}`,
      type: "mcp_approval_request",
      server_label: "weather",
      name: "forecast",
      arguments: "{}",
    } as const,
    approved(`mcpr_${n}`),
  ]).flat();
  const asked = client.responses.create({ model: "m", tools: [asking], input });
  const error = await asked.catch((fault: InstanceType<typeof OpenAI.APIError>) => fault);
  expect(error).toMatchObject({ status: 400, param: "input" });
  expect(called).toEqual([]);
});

test("reports an unknown model before listing or calling tools", async () => {
  const { id, request } = await approvalOf("Weather?");
  const asked = client.responses.create({
    ...{ model: "none", tools: [asking], previous_response_id: id, input: [approved(request)] },
  });
  expect(await asked.catch((fault: InstanceType<typeof OpenAI.APIError>) => fault.status)).toBe(404);
  expect(called).toEqual([]);
});

test("does not call a tool that tool_choice excludes, whatever the model does", async () => {
  answer = (turn) => (turn === 1 ? calls("Ulm") : { content: "Well." });
  for (const choice of ["none", { type: "allowed_tools", mode: "auto", tools: [{ type: "function", name: "mine" }] }]) {
    [called, turns] = [[], []];
    const mine = { type: "function", name: "mine", parameters: {}, strict: false } as const;
    const response = await client.responses.create({
      ...{ model: "m", input: "Weather?", tools: [weather, mine], tool_choice: choice as "none" },
    });
    expect(response.output.find(({ type }) => type === "mcp_call")).toMatchObject({ status: "failed", output: null });
    expect(called).toEqual([]);
  }
});

test("tells the model that an invented tool does not exist, and neither calls it nor passes it to the client", async () => {
  answer = (turn) => (turn === 1 ? callsOf("weather__storms", {}) : { content: "Well." });
  const mine = { type: "function", name: "weather__mine", parameters: {}, strict: false } as const;
  const { output } = await client.responses.create({ model: "m", input: "Storms?", tools: [weather, mine] });
  expect(output.map(({ type }) => type)).toEqual(["mcp_list_tools", "mcp_call", "message"]);
  expect(output[1]).toMatchObject({ server_label: "weather", name: "storms", status: "failed" });
  expect(turns[1]?.messages.at(-1)).toMatchObject({ role: "tool", content: "There is no such tool." });
  expect(called).toEqual([]);
  turns = [];
  answer = () => callsOf("weather__mine", {});
  const own = await client.responses.create({ model: "m", input: "Mine?", tools: [weather, mine] });
  expect(own.output.map(({ type }) => type)).toEqual(["mcp_list_tools", "function_call"]);
});

test("requires approval of a renamed tool even if the model uses its original name", async () => {
  const label = "our__weather";
  const server = { type: "mcp", server_label: label, server_url: `http://127.0.0.1:${tools.port}/mcp` } as const;
  answer = (turn) => (turn === 1 ? callsOf(`${label}__forecast`, { city: "Ulm" }) : { content: "Well." });
  const { output } = await client.responses.create({ model: "m", input: "Weather?", tools: [server] });
  expect(called).toEqual([]);
  expect(output[1]).toMatchObject({ type: "mcp_call", status: "failed" });
  const offered = turns[0]?.tools?.[0]?.function.name ?? "";
  turns = [];
  answer = () => callsOf(offered, { city: "Ulm" });
  const asked = await client.responses.create({ model: "m", input: "Weather?", tools: [server] });
  expect(asked.output.map(({ type }) => type)).toEqual(["mcp_list_tools", "mcp_approval_request"]);
  expect(called).toEqual([]);
});

test("makes a hundred calls in one turn, and stops an endless model after fifty turns", async () => {
  const cities = Array.from({ length: 100 }, (_, index) => `C${index}`);
  answer = (turn) => (turn === 1 ? calls(...cities) : { content: "Well." });
  const many = await client.responses.create({ model: "m", input: "All?", tools: [weather] });
  expect(many.output.filter(({ type }) => type === "mcp_call")).toHaveLength(100);
  expect(called.toSorted()).toEqual(cities.toSorted());
  [called, turns] = [[], []];
  answer = () => calls("Ulm");
  await client.responses.create({ model: "m", input: "On?", tools: [weather] });
  expect(turns).toHaveLength(51);
  expect(turns.map((turn) => turn.tools?.length)).toEqual([...Array.from({ length: 50 }, () => 1), undefined]);
  expect(called).toHaveLength(50);
});

test("stores masked text masked, and sends no blocked tool result to a model", async () => {
  answer = (turn) => (turn === 1 ? calls("Elm Street") : { content: "Well." });
  for (const background of [false, true]) {
    [called, turns] = [[], []];
    const begun = await client.responses.create({
      ...{ model: "guarded", input: "I live in Elm Street.", tools: [weather], background },
    });
    await until(async () => (await client.responses.retrieve(begun.id)).status === "completed", "it has ended");
    expect(JSON.stringify(turns)).not.toContain("Elm Street");
    const items = await client.responses.inputItems.list(begun.id);
    expect(JSON.stringify(items.data)).not.toContain("Elm Street");
  }
  [called, turns] = [[], []];
  answer = (turn) => (turn === 1 ? calls("Sodom") : { content: "Well." });
  const blocked = await client.responses.create({ model: "guarded", input: "Hi", tools: [weather] });
  expect(blocked.status).toBe("failed");
  expect(JSON.stringify(turns)).not.toContain("Rain in Sodom");
});

test("releases the bytes of tool results however a response ends", async () => {
  const held = bufferedBytes.byKind.requests;
  const ends = [new Response("{}", { status: 400 }), { content: "Well." }, calls()];
  for (const end of ends) {
    turns = [];
    answer = (turn) => (turn === 1 ? calls("Big", "Ulm") : end);
    await client.responses.create({ model: "m", input: "Big?", tools: [weather] });
    await until(async () => bufferedBytes.byKind.requests === held, "they are given back");
  }
});

test("serves no cached answer to a request with tools, whose results may differ now", async () => {
  answer = (turn) => (turn % 2 === 1 ? calls("Ulm") : { content: "Rain." });
  for (let time = 0; time < 2; time++)
    await client.responses.create({ model: "m", input: "Again?", temperature: 0, tools: [weather] });
  expect(turns).toHaveLength(4);
  expect(called).toEqual(["Ulm", "Ulm"]);
});

test("returns a Responses server's own reasoning between turns, and orders the client's events", async () => {
  for (const stream of [false, true]) {
    natives = [];
    const request = { model: "native", input: "Weather?", tools: [weather], store: false };
    let response = stream ? undefined : await client.responses.create(request);
    const numbers: number[] = [];
    if (stream) {
      for await (const event of await client.responses.create({ ...request, stream })) {
        numbers.push(event.sequence_number);
        if (event.type === "response.output_item.done") expect(event.item).not.toHaveProperty("encrypted_content");
        if (event.type === "response.completed") response = event.response;
      }
    }
    expect(numbers).toEqual(numbers.map((_, index) => index));
    const types = response?.output.map(({ type }) => type);
    expect(types).toEqual(["mcp_list_tools", "reasoning", "mcp_call", "reasoning", "message"]);
    expect(natives[1]?.input.map(({ type }) => type ?? "message")).toEqual([
      ...["message", "reasoning", "function_call", "function_call_output"],
    ]);
    expect(natives[1]?.input[1]).toMatchObject({ encrypted_content: "sealed_1" });
  }
});

test("gives a response the gateway's id, whatever the model's server uses, and finds it by that", async () => {
  const ids = new Set<string>();
  for (const stream of [false, true]) {
    for (const city of ["Ulm", "Bonn"]) {
      natives = [];
      const asked = await client.responses.create({ model: "native", input: city, tools: [weather], stream });
      let response = "id" in asked ? asked : undefined;
      if (Symbol.asyncIterator in asked)
        for await (const event of asked) if (event.type === "response.completed") response = event.response;
      const id = response?.id ?? "";
      ids.add(id);
      const input = await client.responses.inputItems.list(id);
      expect(input.data).toMatchObject([{ content: [{ text: city }] }]);
    }
  }
  expect(ids.size).toBe(4);
});

test("refuses an unknown server label even if the model's server runs no tools", async () => {
  answer = () => ({ content: "Well." });
  const asked = client.responses.create({ model: "m", input: "Hi", tools: [{ type: "mcp", server_label: "waether" }] });
  const error = await asked.catch((fault: InstanceType<typeof OpenAI.APIError>) => fault);
  expect(error).toMatchObject({ status: 400, param: "tools[0].server_label" });
  expect(turns).toEqual([]);
});

test("traces each model turn and tool call as a span of the request, with ids for later turns", async () => {
  for (const stream of [false, true]) {
    turns = [];
    answer = (turn) => (turn === 1 ? calls("Ulm", "Bonn") : { content: "Well." });
    const asked = await client.responses.create({ model: "m", input: "Traced?", tools: [weather], stream });
    let id = "id" in asked ? asked.id : "";
    if (Symbol.asyncIterator in asked)
      for await (const event of asked) if (event.type === "response.completed") id = event.response.id;
    const isRoot = ({ attributes }: ReceivedSpan) => attributes["headrace.request.id"] === id.replace("resp_", "req_");
    const root = await until(() => collector.spans.find(isRoot), "the request is told");
    const spans = () =>
      collector.spans.filter(({ parentSpanId, name }) => parentSpanId === root.spanId && !name.startsWith("wait for "));
    await until(() => spans().length === 4, "turns and calls are told");
    const inOrder = spans().toSorted((a, b) => Number(a.startNs - b.startNs));
    const names = ["chat m", "tools/call forecast", "tools/call forecast", "chat m"];
    expect(inOrder.map(({ name }) => name)).toEqual(names);
    const own = inOrder.map(({ attributes }) => attributes["headrace.request.id"]);
    expect(own.slice(0, 3)).toEqual([undefined, undefined, undefined]);
    expect(own[3]).toMatch(/^req_/);
    expect(own[3]).not.toBe(root.attributes["headrace.request.id"]);
    for (const turn of [0, 3]) expect(inOrder[turn]?.attributes["gen_ai.usage.output_tokens"]).toBe(5);
    expect(root.attributes["headrace.attempts"]).toBe(2);
  }
});

test("continues an unstored response with its calls over the same connection", async () => {
  answer = (turn) => (turn === 1 ? calls("Ulm") : { content: "Well." });
  const socket = new WebSocket(`${headrace.url.replace("http", "ws")}/v1/responses`, {
    headers: { authorization: `Bearer ${client.apiKey}` },
  } as never);
  const ask = (body: object): Promise<OpenAI.Responses.Response> => {
    const { promise, resolve, reject } = Promise.withResolvers<OpenAI.Responses.Response>();
    socket.onmessage = ({ data }) => {
      const event = JSON.parse(String(data)) as OpenAI.Responses.ResponseStreamEvent;
      if (event.type === "response.completed" || event.type === "response.failed") resolve(event.response);
      if (event.type === "error") reject(event);
    };
    socket.send(JSON.stringify({ type: "response.create", model: "m", store: false, tools: [asking], ...body }));
    return promise;
  };
  await new Promise((resolve) => {
    socket.onopen = resolve;
  });
  const first = await ask({ input: "Weather?" });
  const request = first.output.find(({ type }) => type === "mcp_approval_request");
  const second = await ask({ previous_response_id: first.id, input: [approved(request?.id ?? "")] });
  const third = await ask({ previous_response_id: second.id, input: "Thanks." });
  socket.close();
  expect(third.output.map(({ type }) => type)).toEqual(["message"]);
  expect(called).toEqual(["Ulm"]);
});

test("remembers nothing of requests refused over a connection before any call", async () => {
  const socket = new WebSocket(`${headrace.url.replace("http", "ws")}/v1/responses`, {
    headers: { authorization: `Bearer ${client.apiKey}` },
  } as never);
  await new Promise((resolve) => {
    socket.onopen = resolve;
  });
  const refused = async () => {
    const { promise, resolve } = Promise.withResolvers<string>();
    socket.onmessage = ({ data }) => resolve(String(data));
    const input = [{ role: "user", content: "x".repeat(2_000_000) }, approved("mcpr_other")];
    socket.send(JSON.stringify({ type: "response.create", model: "m", tools: [asking], input }));
    expect(await promise).toContain("is not in this conversation");
  };
  const heapNow = () => {
    Bun.gc(true);
    return heapStats().heapSize;
  };
  await refused();
  const before = heapNow();
  for (let n = 0; n < 30; n++) await refused();
  expect(heapNow() - before).toBeLessThan(20_000_000);
  socket.close();
});

test("applies the client's token limit to all turns together", async () => {
  answer = (turn) => (turn < 4 ? calls("Ulm") : { content: "Well." });
  const request = { model: "m", input: "Short?", tools: [weather] };
  const some = await client.responses.create({ ...request, max_output_tokens: 40 });
  expect(turns.map(({ max_tokens: most, max_completion_tokens: newer }) => newer ?? most)).toEqual([40, 35, 30, 25]);
  expect(some).toMatchObject({ status: "completed", max_output_tokens: 40 });
  turns = [];
  const few = await client.responses.create({ ...request, max_output_tokens: 20 });
  expect(few).toMatchObject({ status: "incomplete", incomplete_details: { reason: "max_output_tokens" } });
  expect(few.output.map(({ type }) => type)).toEqual(["mcp_list_tools", "mcp_call"]);
  expect(turns).toHaveLength(1);
});

async function keyOf(more: object = {}): Promise<{ id: string; client: OpenAI }> {
  const scopes = ["chat:write", "chat:read", "tools:use"];
  const made = await headrace.request("/v1/keys", { body: { name: "one", scopes, ...more } });
  const { id, key } = (await made.json()) as { id: string; key: string };
  return { id, client: new OpenAI({ apiKey: key, baseURL: `${headrace.url}/v1`, maxRetries: 2 }) };
}

test("calls no model for a key revoked in the meantime", async () => {
  const one = await keyOf();
  answer = async () => {
    expect((await headrace.request(`/v1/keys/${one.id}`, { method: "DELETE" })).ok).toBe(true);
    return calls("Ulm");
  };
  const response = await one.client.responses.create({ model: "m", input: "Long?", tools: [weather] });
  expect(response.status).toBe("failed");
  expect(turns).toHaveLength(1);
});

test("fails a response whose limit is reached between two turns, and charges the usage so far", async () => {
  const one = await keyOf({ quotas: [{ unit: "requests", amount: 2, per: "5h", window: "rolling" }] });
  answer = (turn) => (turn === 1 ? calls("Ulm") : { content: "Well." });
  const response = await one.client.responses.create({ model: "m", input: "Limits?", tools: [weather] });
  expect(response).toMatchObject({ status: "failed", error: { code: "insufficient_quota" } });
  expect(response.usage).toMatchObject({ total_tokens: 15 });
  expect(called).toEqual(["Ulm"]);
});

test("stops a running tool when its client leaves, and calls no model afterwards", async () => {
  const held = bufferedBytes.byKind.requests;
  answer = (turn) => (turn === 1 ? calls("Slow") : { content: "Well." });
  for (const stream of [false, true]) {
    [called, turns] = [[], []];
    const leaving = new AbortController();
    const asked = (async () => {
      const request = { model: "m", input: "Slow?", tools: [weather], stream };
      const response = await client.responses.create(request, { signal: leaving.signal });
      if (Symbol.asyncIterator in response) for await (const _ of response);
    })();
    await until(async () => called.length === 1, "it works");
    leaving.abort();
    await asked.catch(() => {});
    await until(async () => bufferedBytes.byKind.requests === held, "nothing is held");
    expect(turns).toHaveLength(1);
  }
});

test("cancels a background response while a tool runs, and replays it from any event", async () => {
  answer = (turn) => (turn === 1 ? calls("Slow") : { content: "Well." });
  const begun = await client.responses.create({ model: "m", input: "Cancel?", tools: [weather], background: true });
  await until(async () => called.length === 1, "it works");
  expect((await client.responses.cancel(begun.id)).status).toBe("cancelled");
  const { output } = await client.responses.retrieve(begun.id);
  // What may have been made is told of.
  expect(output).toMatchObject([
    ...[{ type: "mcp_list_tools" }, { type: "mcp_call", status: "incomplete", arguments: '{"city":"Slow"}' }],
  ]);
  expect(turns).toHaveLength(1);
  [called, turns] = [[], []];
  answer = (turn) => (turn === 1 ? calls("Ulm") : { content: "Well." });
  const whole = await client.responses.create({
    ...{ model: "m", input: "Read?", tools: [weather], background: true, stream: true },
  });
  const events: OpenAI.Responses.ResponseStreamEvent[] = [];
  let id = "";
  for await (const event of whole) {
    if (event.type === "response.created") id = event.response.id;
    events.push(event);
  }
  expect(events.map(({ sequence_number: number }) => number)).toEqual(events.map((_, index) => index));
  const begin = events.findIndex(({ type }) => type === "response.mcp_call.in_progress");
  const again: OpenAI.Responses.ResponseStreamEvent[] = [];
  for await (const event of await client.responses.retrieve(id, { stream: true, starting_after: begin }))
    again.push(event);
  expect(again.map(({ type }) => type)).toEqual(events.slice(begin + 1).map(({ type }) => type));
});

test("reports a finished call at once while others run, and as finished after a cancellation", async () => {
  answer = (turn) => (turn === 1 ? calls("Slow", "Ulm") : { content: "Well." });
  const begun = await client.responses.create({ model: "m", input: "Both?", tools: [weather], background: true });
  for await (const event of await client.responses.retrieve(begun.id, { stream: true }))
    if (event.type === "response.mcp_call.completed") break;
  await client.responses.cancel(begun.id);
  expect((await client.responses.retrieve(begun.id)).output.slice(1)).toMatchObject([
    { type: "mcp_call", status: "incomplete", arguments: '{"city":"Slow"}' },
    { type: "mcp_call", status: "completed", output: "Rain in Ulm" },
  ]);
});

test("includes tool results in a later question without servers, and after a failed response", async () => {
  answer = (turn) => (turn === 1 ? calls("Ulm") : { content: "Well." });
  const first = await client.responses.create({ model: "m", input: "Weather?", tools: [weather] });
  await client.responses.create({ model: "m", input: "And?", previous_response_id: first.id });
  expect(turns.at(-1)?.messages.map(({ role }) => role)).toEqual(["user", "assistant", "tool", "assistant", "user"]);
  expect(turns.at(-1)?.messages[2]?.content).toBe("Rain in Ulm");
  turns = [];
  answer = (turn) => (turn === 1 ? calls("Bonn") : new Response("{}", { status: 400 }));
  const failed = await client.responses.create({ model: "m", input: "Weather?", tools: [weather] });
  answer = () => ({ content: "Well." });
  const next = await client.responses.create({ model: "m", input: "And?", previous_response_id: failed.id });
  expect(next.status).toBe("completed");
  expect(JSON.stringify(turns.at(-1)?.messages)).toContain("Rain in Bonn");
});

test("describes a tool's image to the model without its bytes", async () => {
  for (const city of ["Map", "No Map"]) {
    turns = [];
    answer = (turn) => (turn === 1 ? calls(city) : { content: "Well." });
    const { id, output } = await client.responses.create({ model: "m", input: "Map?", tools: [weather] });
    const reported = turns.at(-1)?.messages.at(-1)?.content;
    expect(reported).toContain("image/png");
    expect(String(reported).length).toBeLessThan(200);
    expect(JSON.stringify(output).length).toBeLessThan(2_000);
    await client.responses.create({ model: "m", input: "And?", previous_response_id: id });
    const later = JSON.stringify(turns.at(-1)?.messages);
    expect(later).toContain("image/png");
    expect(later.length).toBeLessThan(2_000);
  }
});

test("reports an approved call whose turn a limit refuses, also in streams and in the background", async () => {
  for (const how of [{ stream: true }, { background: true }]) {
    const one = await keyOf({ quotas: [{ unit: "requests", amount: 2, per: "5h", window: "rolling" }] });
    const { id, request } = await approvalOf("Weather?", one.client);
    called = [];
    const asked = { model: "m", tools: [asking], previous_response_id: id, input: [approved(request)] };
    const begun = await one.client.responses.create({ ...asked, ...how });
    let response: OpenAI.Responses.Response | undefined;
    if (Symbol.asyncIterator in begun) {
      const types: string[] = [];
      for await (const event of begun) {
        types.push(event.type);
        if (event.type === "response.failed") response = event.response;
      }
      expect([types[0], types.at(-1)]).toEqual(["response.created", "response.failed"]);
    } else {
      const status = async () => (await headrace.request(`/v1/responses/${begun.id}`)).json();
      await until(async () => ((await status()) as { status: string }).status === "failed", "it has failed");
      response = (await status()) as OpenAI.Responses.Response;
    }
    expect(response).toMatchObject({ status: "failed", error: { code: "insufficient_quota" } });
    expect(response?.output).toMatchObject([{ type: "mcp_call", output: "Rain in Ulm" }]);
    expect(called).toEqual(["Ulm"]);
  }
});

test("shows a tool server's credential in no answer or stored copy, even if the model's server would use it", async () => {
  answer = () => ({ content: "Well." });
  const server_url = "https://tools.example.com/mcp";
  const tool = { ...asking, server_label: "far", server_url, authorization: "secret-1", headers: { key: "secret-2" } };
  for (const background of [false, true]) {
    const response = await client.responses.create({ model: "m", input: "Hi", tools: [tool], background });
    const kept = await client.responses.retrieve(response.id);
    expect(JSON.stringify([response, kept])).not.toContain("secret");
    expect(kept.tools).toMatchObject([{ type: "mcp", server_url }]);
  }
});

test("shadows every turn of a model without calling tools for the shadow", async () => {
  answer = (turn) => (turn === 1 ? calls("Ulm") : { content: "Well." });
  const response = await client.responses.create({ model: "watched", input: "Weather?", tools: [weather] });
  expect(response.output_text).toBe("Well.");
  await until(async () => shadows === 2, "both turns are shadowed");
  expect(called).toEqual(["Ulm"]);
});

test("stores no input that no guardrail checked because a limit refused the request after a call", async () => {
  for (const background of [false, true]) {
    const one = await keyOf({ quotas: [{ unit: "requests", amount: 2, per: "5h", window: "rolling" }] });
    const { id, request } = await approvalOf("Weather?", one.client, "guarded");
    const input = [approved(request), { role: "user" as const, content: "I live in Elm Street." }];
    const asked = { model: "guarded", tools: [asking], previous_response_id: id, input, background };
    const begun = await one.client.responses.create(asked);
    const kept = async () => (await headrace.request(`/v1/responses/${begun.id}`)).json();
    await until(async () => ((await kept()) as { status: string }).status === "failed", "it has failed");
    const items = await headrace.request(`/v1/responses/${begun.id}/input_items`);
    expect(await items.text()).not.toContain("Elm Street");
    expect(((await kept()) as OpenAI.Responses.Response).output).toMatchObject([{ type: "mcp_call" }]);
  }
});
