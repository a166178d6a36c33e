// Responses whose tools the gateway runs itself (`tools: [{type: "mcp"}]`), with OpenAI's own client.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { createMcpHandler, McpServer } from "@modelcontextprotocol/server";
import OpenAI from "openai";
import { z } from "zod";
import { startHeadrace, type TestServer, until } from "../support/headrace.ts";
import { callsOf, chatAnswer, type LoopTurn } from "../support/looping-model.ts";

let tools: Bun.Server<undefined>;
let model: Bun.Server<undefined>;
let headrace: TestServer;
let client: OpenAI;
/** What happens while the tool works. */
let meanwhile = async () => {};
/** What the model was asked, turn by turn. */
let turns: LoopTurn[] = [];

/** A model that asks for the weather once, and says what it was told. */
function answerOf(messages: readonly { role: string; content: unknown }[]) {
  const reported = messages.findLast(({ role }) => role === "tool");
  return reported ? { content: `I was told: ${reported.content}` } : callsOf("weather__forecast", { city: "Ulm" });
}

beforeAll(async () => {
  const handler = createMcpHandler(() => {
    const server = new McpServer({ name: "weather", version: "1" });
    const city = { inputSchema: z.object({ city: z.string() }) };
    const forecast = { ...city, description: "Tells the weather.", annotations: { readOnlyHint: true } };
    server.registerTool("forecast", forecast, async ({ city }) => {
      await meanwhile();
      return { content: [{ type: "text", text: `Rain in ${city}` }] };
    });
    server.registerTool("warn", city, () => ({ content: [] }));
    return server;
  });
  tools = Bun.serve({ port: 0, hostname: "127.0.0.1", idleTimeout: 0, fetch: (request) => handler.fetch(request) });
  model = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    async fetch(request) {
      if (!request.url.endsWith("/chat/completions")) return new Response("no", { status: 404 });
      const body = (await request.json()) as LoopTurn;
      turns.push(body);
      return chatAnswer(answerOf(body.messages), body);
    },
  });
  const yaml = `upstreams: [{ name: m, url: "http://127.0.0.1:${model.port}/v1", apis: [chat] }]
models: [{ id: m, deployments: [{ upstream: m }] }]
tools: { servers: [{ name: weather, url: "http://127.0.0.1:${tools.port}/mcp" }, { name: gone, url: "http://127.0.0.1:1/mcp" }] }
`;
  headrace = await startHeadrace({ yaml });
  const scopes = ["chat:write", "chat:read", "tools:use"];
  const made = await headrace.request("/v1/keys", { body: { name: "tools", scopes } });
  const { key } = (await made.json()) as { key: string };
  client = new OpenAI({ apiKey: key, baseURL: `${headrace.url}/v1`, maxRetries: 0 });
});

afterAll(async () => {
  await headrace[Symbol.asyncDispose]();
  await Promise.all([tools.stop(true), model.stop(true)]);
});

const weather = { type: "mcp", server_label: "weather", require_approval: "never" } as const;

test("runs an MCP tool between two model turns and returns one response with the usage of both", async () => {
  turns = [];
  const response = await client.responses.create({ model: "m", input: "Weather in Ulm?", tools: [weather] });
  expect(response.output.map(({ type }) => type)).toEqual(["mcp_list_tools", "mcp_call", "message"]);
  expect(response.output_text).toBe("I was told: Rain in Ulm");
  expect(response.output[1]).toMatchObject({
    ...{ server_label: "weather", name: "forecast", arguments: '{"city":"Ulm"}' },
    ...{ output: "Rain in Ulm", status: "completed" },
  });
  expect(response.usage).toMatchObject({ input_tokens: 20, output_tokens: 10, total_tokens: 30 });
  expect(turns.map((turn) => turn.tools?.map(({ function: { name } }) => name))).toEqual([
    ["weather__forecast", "weather__warn"],
    ["weather__forecast", "weather__warn"],
  ]);
  const kept = await client.responses.retrieve(response.id);
  expect(kept.output).toEqual(response.output);
});

test("numbers the API's tool events through one streamed response", async () => {
  turns = [];
  const stream = await client.responses.create({ model: "m", input: "Weather?", tools: [weather], stream: true });
  const types: string[] = [];
  const numbers: number[] = [];
  for await (const event of stream) {
    types.push(event.type);
    numbers.push(event.sequence_number);
    if (event.type === "response.completed") expect(event.response.output_text ?? "").toBeString();
  }
  expect(numbers).toEqual(numbers.map((_, index) => index));
  for (const type of ["response.created", "response.completed", "response.mcp_call.completed"]) {
    expect(types.filter((one) => one === type)).toEqual([type]);
  }
  expect(types.indexOf("response.mcp_list_tools.completed")).toBeLessThan(
    types.indexOf("response.mcp_call.in_progress"),
  );
});

test("requests approval for a call, makes it once approved, and skips it if denied", async () => {
  turns = [];
  const asking = { model: "m", tools: [{ ...weather, require_approval: "always" }] } as const;
  const first = await client.responses.create({ ...asking, input: "Weather?", tools: [...asking.tools] });
  const request = first.output.find(({ type }) => type === "mcp_approval_request");
  expect(request).toMatchObject({ name: "forecast", arguments: '{"city":"Ulm"}' });
  const answer = (approve: boolean) =>
    client.responses.create({
      ...asking,
      tools: [...asking.tools],
      previous_response_id: first.id,
      input: [{ type: "mcp_approval_response", approval_request_id: request?.id ?? "", approve }],
    });
  const approved = await answer(true);
  expect(approved.output.find(({ type }) => type === "mcp_call")).toMatchObject({
    ...{ output: "Rain in Ulm", approval_request_id: request?.id },
  });
  expect(approved.output_text).toBe("I was told: Rain in Ulm");
  const refused = await answer(false);
  expect(refused.output.some(({ type }) => type === "mcp_call")).toBe(false);
  expect(refused.output_text).toContain("did not allow");
});

test("refuses an unknown server or a credential for one by its position, and names a missing scope", async () => {
  const refusal = (tool: object) =>
    client.responses
      .create({ model: "m", input: "Hi", tools: [weather, tool as typeof weather] })
      .then(() => "answered")
      .catch((error: InstanceType<typeof OpenAI.APIError>) => error.param);
  expect(await refusal({ type: "mcp", server_label: "other" })).toBe("tools[1].server_label");
  const known = { type: "mcp", server_label: "w2", server_url: `${headrace.url}/mcp/weather`, authorization: "x" };
  expect(await refusal(known)).toBe("tools[1].authorization");
  const made = await headrace.request("/v1/keys", { body: { name: "chat", scopes: ["chat:write"] } });
  const { key } = (await made.json()) as { key: string };
  const other = new OpenAI({ apiKey: key, baseURL: `${headrace.url}/v1`, maxRetries: 0 });
  const asked = other.responses.create({ model: "m", input: "Hi", tools: [weather] });
  expect(await asked.catch((error: InstanceType<typeof OpenAI.APIError>) => error.status)).toBe(403);
});

test("reports an unreachable MCP server before calling a model", async () => {
  turns = [];
  const asked = client.responses.create({ model: "m", input: "Hi", tools: [{ type: "mcp", server_label: "gone" }] });
  const error = await asked.catch((fault: InstanceType<typeof OpenAI.APIError>) => fault);
  expect(error).toMatchObject({ status: 502, code: "upstream_error" });
  expect(turns).toEqual([]);
});

test("lists only the server's tools that the client allows, and lists a later allowed one then", async () => {
  const listed = ({ output }: OpenAI.Responses.Response) =>
    output.flatMap((item) => (item.type === "mcp_list_tools" ? [item.tools.map(({ name }) => name)] : []));
  const ask = (allowed: NonNullable<OpenAI.Responses.Tool.Mcp["allowed_tools"]> | null, previous?: string) =>
    client.responses.create({
      ...{ model: "m", input: "Hi", tools: [{ ...weather, allowed_tools: allowed }] },
      ...(previous === undefined ? {} : { previous_response_id: previous }),
    });
  expect(listed(await ask(null))).toEqual([["forecast", "warn"]]);
  expect(listed(await ask({ read_only: true }))).toEqual([["forecast"]]);
  expect(listed(await ask(["unknown"]))).toEqual([[]]);
  turns = [];
  const first = await ask(["warn"]);
  expect(listed(first)).toEqual([["warn"]]);
  const second = await ask(["warn"], first.id);
  expect(listed(second)).toEqual([]);
  expect(listed(await ask(["forecast"], second.id))).toEqual([["forecast"]]);
  const offered = turns.map((turn) => turn.tools?.map(({ function: { name } }) => name).join());
  expect([...new Set(offered)]).toEqual(["weather__warn", "weather__forecast"]);
});

test("runs tools for a WebSocket message and for a background response", async () => {
  const begun = await client.responses.create({ model: "m", input: "Weather?", tools: [weather], background: true });
  await until(async () => (await client.responses.retrieve(begun.id)).status === "completed", "it has ended");
  const ended = await client.responses.retrieve(begun.id);
  expect(ended.output.map(({ type }) => type)).toEqual(["mcp_list_tools", "mcp_call", "message"]);
  const socket = new WebSocket(`${headrace.url.replace("http", "ws")}/v1/responses`, {
    headers: { authorization: `Bearer ${client.apiKey}` },
  } as never);
  const types: string[] = [];
  const over = Promise.withResolvers<void>();
  socket.onmessage = ({ data }) => {
    const { type } = JSON.parse(String(data)) as { type: string };
    types.push(type);
    if (type === "response.completed" || type === "error") over.resolve();
  };
  socket.onopen = () =>
    socket.send(JSON.stringify({ type: "response.create", model: "m", input: "Weather?", tools: [weather] }));
  await over.promise;
  socket.close();
  expect(types).toContain("response.mcp_call.completed");
  expect(types.filter((type) => type === "response.completed")).toHaveLength(1);
});

test("makes no more calls than max_tool_calls allows", async () => {
  turns = [];
  const response = await client.responses.create({
    model: "m",
    input: "Weather?",
    tools: [weather],
    max_tool_calls: 0,
  });
  // The model calls all the same, once, and is told that it may not.
  expect(response.output.filter(({ type }) => type === "mcp_call")).toMatchObject([{ status: "failed", output: null }]);
  expect(response.output_text).toContain("max_tool_calls is 0");
});

test.each([
  ["is revoked", { method: "DELETE" }],
  ["loses tools:use", { method: "PATCH", body: { scopes: ["chat:write"] } }],
] as const)("makes no further calls for a key that %s while a tool runs, also in the background", async (_, change) => {
  const scopes = ["chat:write", "chat:read", "tools:use"];
  for (const background of [false, true]) {
    const { key, id } = await (await headrace.request("/v1/keys", { body: { name: "soon", scopes } })).json();
    meanwhile = async () => void (await headrace.request(`/v1/keys/${id}`, change));
    turns = [];
    const by = new OpenAI({ apiKey: key, baseURL: `${headrace.url}/v1`, maxRetries: 0 });
    const asked = by.responses.create({ model: "m", input: "Weather?", tools: [weather], background });
    if (background) {
      const { id: begun } = await asked;
      const ended = async () => (await headrace.governance.background.state(begun, 0))?.status === "failed";
      await until(ended, "the response has failed");
    } else expect((await asked).status).toBe("failed");
    expect(turns).toHaveLength(1);
  }
  meanwhile = async () => {};
});
