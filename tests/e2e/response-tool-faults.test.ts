// Servers of models that fail between the turns of a response whose tools the gateway runs, and members that hold for all of its turns.
import { afterAll, beforeAll, beforeEach, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import type { ServerResponse } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import OpenAI from "openai";
import { bufferedBytes } from "../../src/base/bytes/buffered-bytes.ts";
import { startHeadrace, type TestServer, until } from "../support/headrace.ts";
import { callsOf, chatAnswer } from "../support/looping-model.ts";
import { HttpMcpServer, textResult } from "../support/mcp-servers.ts";
import {
  chunk,
  json,
  type ScriptedUpstream,
  startUpstream,
  type UpstreamRequest,
} from "../support/scripted-upstream.ts";

const weather = { type: "mcp", server_label: "weather", require_approval: "never" } as const;
const format = {
  ...({ type: "json_schema", name: "weather", strict: true } as const),
  schema: {
    type: "object",
    properties: { rain: { type: "boolean" } },
    required: ["rain"],
    additionalProperties: false,
  },
};

const longOutputBytes = 300_000;
let tools: HttpMcpServer;
let servers: ScriptedUpstream[];
let headrace: TestServer;
let yaml: string;
let client: OpenAI;
let called: string[] = [];
/** How many calls are under way, and the most that were. */
let [working, maxWorking] = [0, 0];

beforeAll(async () => {
  const forecast = async (params: Record<string, unknown>) => {
    const { city } = params["arguments"] as { city: string };
    called.push(city);
    maxWorking = Math.max(maxWorking, ++working);
    await Bun.sleep(city === "Slow" ? 3_000 : 20);
    working--;
    return textResult(city === "Long" ? "rain ".repeat(longOutputBytes / 5) : `Rain in ${city}`);
  };
  tools = new HttpMcpServer({ tools: { forecast } });
  servers = await Promise.all(Array.from({ length: 5 }, () => startUpstream()));
  for (const one of servers) one.serves([{ id: "m", object: "model", created: 1, owned_by: "llamacpp" }]);
  const [first, second, native, third, lone] = servers.map(({ url }) => url);
  yaml = `upstreams:
  - { name: first, url: "${first}", apis: [chat] }
  - { name: second, url: "${second}", apis: [chat] }
  - { name: native, url: "${native}", apis: [responses] }
  - { name: third, url: "${third}", apis: [chat] }
  - { name: lone, url: "${lone}", apis: [responses] }
models:
  - { id: falls, fallbacks: [spare], deployments: [{ upstream: first, model: m }] }
  - { id: falls-too, fallbacks: [spare], deployments: [{ upstream: third, model: m }] }
  - { id: spare, deployments: [{ upstream: second, model: m }] }
  - { id: continues, policies: { continuation: true }, deployments: [{ upstream: first, model: m }, { upstream: second, model: m }] }
  - { id: alone, deployments: [{ upstream: first, model: m }] }
  - { id: lone, deployments: [{ upstream: lone, model: m }] }
  - { id: native, fallbacks: [spare], deployments: [{ upstream: native, model: m }] }
tools: { servers: [{ name: weather, url: "${tools.url}" }] }
`;
  headrace = await startHeadrace({ yaml });
  client = await clientOf(headrace);
});

async function clientOf(server: TestServer): Promise<OpenAI> {
  const scopes = ["chat:write", "chat:read", "tools:use"];
  const { key } = await (await server.request("/v1/keys", { body: { name: "tools", scopes } })).json();
  return new OpenAI({ apiKey: key, baseURL: `${server.url}/v1`, maxRetries: 0 });
}

afterAll(async () => {
  await headrace[Symbol.asyncDispose]();
  await Promise.all([tools, ...servers].map((one) => one[Symbol.asyncDispose]()));
});

beforeEach(() => {
  called = [];
  maxWorking = 0;
  for (const one of servers) one.requests.length = 0;
});

const isNotified = ({ body }: UpstreamRequest) =>
  (body["messages"] as { role: string }[]).some(({ role }) => role === "tool");

async function say({ body }: UpstreamRequest, response: ServerResponse, said: object): Promise<void> {
  const answer = chatAnswer(said, { model: "m", stream: body["stream"] === true });
  response.writeHead(200, { "content-type": answer.headers.get("content-type") ?? "" });
  response.end(await answer.text());
}

const ulm = () => callsOf("weather__forecast", { city: "Ulm" });

/** The response, and the events of it where it is a stream. */
async function ask(request: OpenAI.Responses.ResponseCreateParamsNonStreaming, stream: boolean) {
  const events: OpenAI.Responses.ResponseStreamEvent[] = [];
  if (!stream) return { response: await client.responses.create(request), events };
  let response: OpenAI.Responses.Response | undefined;
  for await (const event of await client.responses.create({ ...request, stream })) {
    events.push(event);
    if (event.type === "response.completed" || event.type === "response.failed") response = event.response;
  }
  expect(events.map(({ sequence_number: number }) => number)).toEqual(events.map((_, index) => index));
  if (!response) throw new Error("no end");
  return { response, events };
}

// A server that has failed is at rest: each is another one.
test.each([
  ["falls", false],
  ["falls-too", true],
] as const)(
  "continues turns with a fallback after a failure behind a tool call, made once (%s, stream: %p)",
  async (model, stream) => {
    servers[stream ? 3 : 0]?.script((request, response) =>
      isNotified(request)
        ? json(response, 500, { error: { message: "out of memory" } })
        : say(request, response, ulm()),
    );
    servers[1]?.script((request, response) => say(request, response, { content: "It rains." }));
    const { response } = await ask({ model, input: "Weather?", tools: [weather] }, stream);
    expect(response).toMatchObject({ status: "completed", usage: { total_tokens: 30 } });
    expect(response.output.map(({ type }) => type)).toEqual(["mcp_list_tools", "mcp_call", "message"]);
    expect(called).toEqual(["Ulm"]);
    const reported = servers[1]?.requests.at(-1)?.body["messages"] as { role: string; content: unknown }[];
    expect(reported.at(-1)).toMatchObject({ role: "tool", content: "Rain in Ulm" });
    expect((await client.responses.retrieve(response.id)).output).toEqual(response.output);
  },
);

test("continues a stream that breaks off in a later turn with another deployment, without repeating a call", async () => {
  const behind = async ({ body }: UpstreamRequest, response: ServerResponse) => {
    const last = (body["messages"] as { role: string; content: unknown }[]).at(-1);
    response.writeHead(200, { "content-type": "text/event-stream" });
    if (last?.role === "assistant") {
      response.write(chunk({ role: "assistant", content: " in Ulm." }));
      response.end(
        `${chunk({}, "stop", { usage: { prompt_tokens: 12, completion_tokens: 3, total_tokens: 15 } })}data: [DONE]\n\n`,
      );
      return;
    }
    response.write(chunk({ role: "assistant", content: "" }));
    response.write(chunk({ content: "It rains" }));
    await Bun.sleep(50);
    response.destroy();
  };
  for (const one of servers.slice(0, 2))
    one.script((request, response) =>
      isNotified(request) ? behind(request, response) : say(request, response, ulm()),
    );
  const { response, events } = await ask({ model: "continues", input: "Weather?", tools: [weather] }, true);
  expect(response).toMatchObject({ status: "completed", headrace: { continued: 1 } });
  const text = events.flatMap((event) => (event.type === "response.output_text.delta" ? [event.delta] : [])).join("");
  expect(text).toBe("It rains in Ulm.");
  expect(response.output.map(({ type }) => type)).toEqual(["mcp_list_tools", "mcp_call", "message"]);
  expect(called).toEqual(["Ulm"]);
});

test("fails a response with its call listed if a stream breaks off in a later turn and cannot be continued", async () => {
  servers[0]?.script(async (request, response) => {
    if (!isNotified(request)) return say(request, response, ulm());
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.write(chunk({ role: "assistant", content: "It rains" }));
    await Bun.sleep(50);
    response.destroy();
  });
  const { response, events } = await ask({ model: "alone", input: "Weather?", tools: [weather] }, true);
  expect(response.status).toBe("failed");
  expect(response.output).toContainEqual(expect.objectContaining({ type: "mcp_call", output: "Rain in Ulm" }));
  expect(events.filter(({ type }) => type === "response.failed")).toHaveLength(1);
  expect(await client.responses.retrieve(response.id)).toMatchObject({ status: "failed", output: response.output });
  expect(called).toEqual(["Ulm"]);
});

test.each(["breaks off", "ends without saying so"])(
  "fails a response with its call listed if a Responses server's stream %s after the call",
  async (how) => {
    servers[4]?.script(async ({ body }, response) => {
      const isBehind = (body["input"] as { type?: string }[]).some(({ type }) => type === "function_call_output");
      const call = { id: "fc_1", type: "function_call", status: "completed", call_id: "c1", name: "weather__forecast" };
      const item = { ...call, arguments: '{"city":"Ulm"}' };
      const base = { id: "resp_1", object: "response", created_at: 1, model: "m", output: [] };
      const tell = (type: string, members: object) =>
        response.write(`event: ${type}\ndata: ${JSON.stringify({ type, ...members })}\n\n`);
      response.writeHead(200, { "content-type": "text/event-stream" });
      tell("response.created", { response: { ...base, status: "in_progress" }, sequence_number: 0 });
      if (!isBehind) {
        tell("response.output_item.added", { output_index: 0, item, sequence_number: 1 });
        tell("response.output_item.done", { output_index: 0, item, sequence_number: 2 });
        const usage = { input_tokens: 10, output_tokens: 5, total_tokens: 15 };
        const whole = { ...base, status: "completed", output: [item], usage };
        tell("response.completed", { response: whole, sequence_number: 3 });
        response.end();
        return;
      }
      const message = { id: "msg_1", type: "message", status: "in_progress", role: "assistant", content: [] };
      tell("response.output_item.added", { output_index: 0, item: message, sequence_number: 1 });
      await Bun.sleep(50);
      if (how === "breaks off") response.destroy();
      else response.end();
    });
    const { response } = await ask({ model: "lone", input: "Weather?", tools: [weather] }, true);
    expect(response.status).toBe("failed");
    expect(response.output).toContainEqual(expect.objectContaining({ type: "mcp_call", output: "Rain in Ulm" }));
    expect(await client.responses.retrieve(response.id)).toMatchObject({ status: "failed", output: response.output });
    expect(called).toEqual(["Ulm"]);
  },
);

test.each(["alone", "native"])(
  "requests the output format in each turn and returns it after tool calls: %s",
  async (model) => {
    servers[0]?.script((request, response) =>
      say(request, response, isNotified(request) ? { content: '{"rain":true}' } : ulm()),
    );
    servers[2]?.script(({ body }, response) => {
      const isBehind = (body["input"] as { type?: string }[]).some(({ type }) => type === "function_call_output");
      const part = { type: "output_text", text: '{"rain":true}', annotations: [] };
      const item = isBehind
        ? { id: "msg_1", type: "message", status: "completed", role: "assistant", content: [part] }
        : {
            id: "fc_1",
            type: "function_call",
            status: "completed",
            call_id: "c1",
            name: "weather__forecast",
            arguments: '{"city":"Ulm"}',
          };
      const usage = { input_tokens: 10, output_tokens: 5, total_tokens: 15 };
      json(response, 200, {
        id: "resp_1",
        object: "response",
        created_at: 1,
        model: "m",
        status: "completed",
        output: [item],
        usage,
        text: body["text"],
      });
    });
    const { responses } = client;
    const response = await responses.parse({ model, input: "Weather?", tools: [weather], text: { format } });
    expect(response.output_text).toBe('{"rain":true}');
    expect(response.text?.format).toMatchObject({ type: "json_schema", name: "weather" });
    expect(called).toEqual(["Ulm"]);
    const turns = servers[model === "alone" ? 0 : 2]?.requests ?? [];
    expect(turns).toHaveLength(2);
    for (const { body } of turns) {
      if (model === "native") expect(body["text"]).toMatchObject({ format });
      else
        expect(body["response_format"]).toMatchObject({ type: "json_schema", json_schema: { schema: format.schema } });
    }
  },
);

test("makes the calls of one turn in sequence if the client asks for it, whatever the model does", async () => {
  const cities = ["Ulm", "Bonn", "Kiel"].map((city) => ({ city }));
  servers[0]?.script((request, response) =>
    say(request, response, isNotified(request) ? { content: "Well." } : callsOf("weather__forecast", ...cities)),
  );
  const request = { model: "alone", input: "Weather?", tools: [weather] };
  await client.responses.create({ ...request, parallel_tool_calls: false });
  expect([called, maxWorking]).toEqual([["Ulm", "Bonn", "Kiel"], 1]);
  expect(servers[0]?.requests.map(({ body }) => body["parallel_tool_calls"])).toEqual([false, false]);
  await client.responses.create(request);
  expect(maxWorking).toBeGreaterThan(1);
});

test("limits the calls of all turns by max_tool_calls, and tells the model to stop after the last", async () => {
  servers[0]?.script((request, response) => {
    const isOffered = request.body["tools"] !== undefined && request.body["tool_choice"] !== "none";
    const cities = [{ city: "Ulm" }, { city: "Bonn" }];
    say(request, response, isOffered ? callsOf("weather__forecast", ...cities) : { content: "Well." });
  });
  const asked = { model: "alone", input: "Weather?", tools: [weather], max_tool_calls: 3 };
  const { output, output_text: text } = await client.responses.create(asked);
  const calls = output.flatMap((item) => (item.type === "mcp_call" ? [item.status] : []));
  expect([calls, text]).toEqual([["completed", "completed", "completed", "failed"], "Well."]);
  expect(called).toHaveLength(3);
});

test("continues a failed Responses server's turns with a model of another format that reads the calls", async () => {
  servers[2]?.script(({ body }, response) => {
    const isBehind = (body["input"] as { type?: string }[]).some(({ type }) => type === "function_call_output");
    if (isBehind) return json(response, 500, { error: { message: "out of memory" } });
    const thought = { id: "rs_1", type: "reasoning", summary: [], encrypted_content: "sealed_1" };
    const call = { id: "fc_1", type: "function_call", status: "completed", call_id: "c1", name: "weather__forecast" };
    const output = [thought, { ...call, arguments: '{"city":"Ulm"}' }];
    const usage = { input_tokens: 10, output_tokens: 5, total_tokens: 15 };
    const base = { id: "resp_1", object: "response", created_at: 1, model: "m", status: "completed" };
    json(response, 200, { ...base, output, usage });
  });
  servers[1]?.script((request, response) => say(request, response, { content: "It rains." }));
  const response = await client.responses.create({ model: "native", input: "Weather?", tools: [weather] });
  expect(response.output.map(({ type }) => type)).toEqual(["mcp_list_tools", "reasoning", "mcp_call", "message"]);
  expect(called).toEqual(["Ulm"]);
  const [reported] = servers[1]?.requests ?? [];
  const roles = ((reported?.body["messages"] ?? []) as { role: string }[]).map(({ role }) => role);
  expect(roles).toEqual(["user", "assistant", "tool"]);
});

test("fails a response with its call listed if the server closes while a tool runs, whole and streamed", async () => {
  await using own = await startHeadrace({ yaml });
  const asker = await clientOf(own);
  servers[3]?.script((request, response) => say(request, response, callsOf("weather__forecast", { city: "Slow" })));
  const asked = { model: "falls-too", input: "Weather?", tools: [weather] };
  const whole = asker.responses.create(asked);
  const streamed = (async () => await Array.fromAsync(await asker.responses.create({ ...asked, stream: true })))();
  await until(() => called.length === 2, "both work");
  const closed = own.close(400);
  const left = [{ type: "mcp_list_tools" }, { type: "mcp_call", status: "failed", output: null }];
  const failed = { status: "failed", error: { message: expect.stringContaining("being stopped") }, output: left };
  const response = await whole;
  expect(response).toMatchObject(failed);
  expect(JSON.stringify(response.output[1])).toContain("Whether this call was made");
  expect((await streamed).at(-1)).toMatchObject({ type: "response.failed", response: failed });
  await closed;
  expect(servers[3]?.requests).toHaveLength(2);
});

test("makes approved calls that had not begun before a restart when their approvals are sent again", async () => {
  const directory = mkdtempSync(join(tmpdir(), "headrace-approvals-"));
  const dataDir = join(directory, "data");
  servers[0]?.script((request, response) => {
    const cities = [{ city: "Slow" }, { city: "Ulm" }];
    say(request, response, isNotified(request) ? { content: "Well." } : callsOf("weather__forecast", ...cities));
  });
  const asking = { type: "mcp", server_label: "weather" } as const;
  const first = await startHeadrace({ yaml, dataDir });
  const { apiKey, responses } = await clientOf(first);
  const asked = await responses.create({ model: "alone", input: "Weather?", tools: [asking] });
  const input = asked.output.flatMap(({ id, type }) =>
    type === "mcp_approval_request"
      ? [{ type: "mcp_approval_response" as const, approval_request_id: id ?? "", approve: true }]
      : [],
  );
  const approval = { model: "alone", tools: [asking], previous_response_id: asked.id, input };
  const broken = responses.create(approval);
  await until(() => called.length === 1, "the first works");
  const closed = first.close(400);
  expect(await broken).toMatchObject({ status: "failed", output: [{ type: "mcp_call", status: "failed" }] });
  await closed;
  await using second = await startHeadrace({ yaml, dataDir });
  const later = new OpenAI({ apiKey, baseURL: `${second.url}/v1`, maxRetries: 0 });
  const { output } = await later.responses.create(approval);
  expect(output).toMatchObject([
    { type: "mcp_call", status: "failed", error: { message: expect.stringContaining("Whether this call was made") } },
    { type: "mcp_call", status: "completed", output: "Rain in Ulm" },
    { type: "message" },
  ]);
  expect(called).toEqual(["Slow", "Ulm"]);
  rmSync(directory, { recursive: true, force: true });
});

test("charges tool results to the key's memory account beside the model's body until the response ends", async () => {
  const [first] = servers;
  const before = bufferedBytes.total;
  const held: number[] = [];
  first?.script(async (request, response) => {
    held.push(bufferedBytes.byKind.requests);
    await say(
      request,
      response,
      isNotified(request) ? { content: "Done" } : callsOf("weather__forecast", { city: "Long" }),
    );
  });
  const { response } = await ask({ model: "alone", input: "Will it rain?", tools: [weather] }, false);
  expect([response.status, called]).toEqual(["completed", ["Long"]]);
  expect(held).toHaveLength(2);
  expect((held[1] ?? 0) - (held[0] ?? 0)).toBeGreaterThan(2 * longOutputBytes);
  await until(() => bufferedBytes.total <= before, "it is given back");
});

test("ends a response whose tool result exceeds the key's memory limit, without another model call, and releases the bytes", async () => {
  const program = [process.execPath, join(import.meta.dir, "../support/tool-process.ts"), "fine"];
  await using own = await startHeadrace({
    yaml: `${yaml.slice(0, yaml.indexOf("tools:"))}tools: { servers: [{ name: program, command: ${JSON.stringify(program)} }] }\n`,
  });
  const { responses } = await clientOf(own);
  const [first] = servers;
  // Lines of a program are bounded by themselves, so its answer is on the key's account only once the call has ended.
  first?.script((request, response) =>
    say(request, response, isNotified(request) ? { content: "Done" } : callsOf("program__long", { words: 300_000 })),
  );
  const asked = {
    ...{ model: "alone", input: "Will it rain?" },
    tools: [{ type: "mcp", server_label: "program", require_approval: "never" } as const],
  };
  const before = bufferedBytes.total;
  const { maxBytes } = bufferedBytes;
  bufferedBytes.maxBytes = 4 * 1024 * 1024;
  try {
    const response = await responses.create(asked);
    expect(response.status).toBe("failed");
    expect(response.error?.message).toContain("The requests of this key that are under way hold");
    expect(response.output.map(({ type }) => type)).toEqual(["mcp_list_tools", "mcp_call"]);
    expect(first?.requests).toHaveLength(1);
  } finally {
    bufferedBytes.maxBytes = maxBytes;
  }
  await until(() => bufferedBytes.total <= before, "it is given back");
});
