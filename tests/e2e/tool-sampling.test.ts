// MCP servers that ask a model: one of the gateway's own, as a chat request of whoever called the tool.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { bufferedBytes } from "../../src/base/bytes/buffered-bytes.ts";
import type { Principal } from "../../src/domain/principal.ts";
import { startHeadrace, type TestServer, until } from "../support/headrace.ts";
import { json, type Script, type ScriptedUpstream, startUpstream, upstreamYaml } from "../support/scripted-upstream.ts";
import { principalOf } from "../support/tool-uses.ts";

const models = `models:
  - id: claude-sonnet-5
    price: { input: 1000, output: 2000 }
    deployments: [{ upstream: up, model: upstream-model }]
  - id: embedder
    deployments: [{ upstream: up, model: embedder }]
    capabilities: { chat: false }
`;

let upstream: ScriptedUpstream;
let server: TestServer;
let principal: Principal;

function answering(message: Record<string, unknown>, reason = "stop"): Script {
  return ({ body }, res) =>
    json(res, 200, {
      ...{ id: "c", object: "chat.completion", created: 1, model: body["model"] },
      choices: [{ index: 0, message: { role: "assistant", ...message }, finish_reason: reason }],
      usage: { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 },
    });
}

beforeAll(async () => {
  upstream = await startUpstream(answering({ content: "Paris." }));
  server = await startHeadrace({ yaml: upstreamYaml(upstream, models) });
  principal = await principalOf(server, server.key);
});
afterAll(async () => {
  await server[Symbol.asyncDispose]();
  await upstream[Symbol.asyncDispose]();
});

const question = { role: "user", content: { type: "text", text: "The capital of France?" } };
const asked = {
  messages: [question],
  maxTokens: 50,
  modelPreferences: { hints: [{ name: "gpt" }, { name: "Sonnet" }] },
};
const sample = (params: Record<string, unknown>, by = principal, signal = new AbortController().signal) =>
  server.tools.toolSampler.sample(by, params, signal);

async function keyWith(body: Record<string, unknown>): Promise<{ principal: Principal; id: string }> {
  const made = await (await server.request("/v1/keys", { body: { name: "a key", ...body } })).json();
  return { principal: await principalOf(server, made.key), id: made.id };
}

test("answers a server's sampling with the first model that matches a hint, and charges the caller", async () => {
  const before = bufferedBytes.total;
  expect(await sample({ ...asked, systemPrompt: "Be short.", temperature: 0, stopSequences: ["\n"] })).toEqual({
    ...{ role: "assistant", content: { type: "text", text: "Paris." } },
    ...{ model: "claude-sonnet-5", stopReason: "endTurn" },
  });
  expect(bufferedBytes.total).toBe(before);
  expect(upstream.requests.at(-1)?.body).toMatchObject({
    ...{ max_completion_tokens: 50, temperature: 0, stop: ["\n"] },
    messages: [
      { role: "system", content: "Be short." },
      { role: "user", content: [{ type: "text", text: "The capital of France?" }] },
    ],
  });
  const { data } = await (await server.request("/v1/requests")).json();
  expect(data[0]).toMatchObject({
    ...{ operation: "chat", model: "claude-sonnet-5", key: server.firstKey.record.id, total_tokens: 15, cost: 0.02 },
  });
});

test("passes a server's sampling tools to the model, with calls and results both ways", async () => {
  const call = { id: "call_1", type: "function", function: { name: "weather", arguments: '{"city":"Paris"}' } };
  upstream.script(answering({ content: null, tool_calls: [call] }, "tool_calls"));
  const tool = { name: "weather", description: "Tells it.", inputSchema: { type: "object" } };
  const first = await sample({ ...asked, tools: [tool], toolChoice: { mode: "required" } });
  const use = { type: "tool_use", id: "call_1", name: "weather", input: { city: "Paris" } };
  expect(first).toMatchObject({ content: [use], stopReason: "toolUse" });
  const { body } = upstream.requests.at(-1) ?? {};
  expect(body?.["tool_choice"]).toBe("required");
  const parameters = { type: "object", properties: {} };
  expect(body?.["tools"]).toEqual([
    { type: "function", function: { name: "weather", description: "Tells it.", parameters } },
  ]);
  upstream.script(answering({ content: "Rain" }, "length"));
  const result = { type: "tool_result", toolUseId: "call_1", content: [{ type: "text", text: "rain" }] };
  const messages = [question, { role: "assistant", content: [use] }, { role: "user", content: [result] }];
  expect(await sample({ ...asked, messages })).toMatchObject({ stopReason: "maxTokens" });
  expect(upstream.requests.at(-1)?.body["messages"]).toEqual([
    expect.objectContaining({ role: "user" }),
    expect.objectContaining({ role: "assistant", content: null, tool_calls: [call] }),
    { role: "tool", tool_call_id: "call_1", content: "rain" },
  ]);
  upstream.script(answering({ content: "Paris." }));
});

test("passes images and audio of a sampling request to the model in its format", async () => {
  const content = [
    { type: "image", data: "aGk=", mimeType: "image/png" },
    { type: "audio", data: "aGk=", mimeType: "audio/mpeg" },
  ];
  await sample({ ...asked, messages: [{ role: "user", content }] });
  expect(upstream.requests.at(-1)?.body["messages"]).toEqual([
    {
      role: "user",
      content: [
        { type: "image_url", image_url: { url: "data:image/png;base64,aGk=" } },
        { type: "input_audio", input_audio: { data: "aGk=", format: "mp3" } },
      ],
    },
  ]);
});

test("refuses sampling without the caller's scope, model access or a matching hint", async () => {
  const before = upstream.requests.length;
  const { principal: scopeless } = await keyWith({ scopes: ["models:read"] });
  await expect(sample(asked, scopeless)).rejects.toMatchObject({ code: "insufficient_scope" });
  const { principal: apart } = await keyWith({ models: ["other"] });
  await expect(sample(asked, apart)).rejects.toMatchObject({ code: "model_not_found" });
  for (const hints of [[], [{ name: "gpt" }], [{ name: "embed" }]]) {
    const refused = sample({ ...asked, modelPreferences: { hints } });
    await expect(refused).rejects.toMatchObject({ code: "model_not_found" });
  }
  expect(upstream.requests.length).toBe(before);
});

test("applies the caller's limits to sampling, and records refusals", async () => {
  const { principal: limited, id } = await keyWith({ rate_limit: 1, rate_limit_window: 60 });
  await sample(asked, limited);
  await expect(sample(asked, limited)).rejects.toMatchObject({ code: "rate_limit_exceeded" });
  const { data } = await (await server.request(`/v1/requests?key=${id}&outcome=refused`)).json();
  expect(data[0]).toMatchObject({ operation: "chat", model: "claude-sonnet-5", error_code: "rate_limit_exceeded" });
});

test("limits sampling per tool call, and reports wrong requests by their field", async () => {
  const { signal } = new AbortController();
  for (let i = 0; i < 16; i++) await sample(asked, principal, signal);
  await expect(sample(asked, principal, signal)).rejects.toMatchObject({
    code: "rate_limit_exceeded",
    shouldRetry: false,
  });
  for (const [params, param] of [
    [{ ...asked, maxTokens: 0 }, "maxTokens"],
    [{ ...asked, maxTokens: undefined }, "maxTokens"],
    [{ ...asked, messages: [] }, "messages"],
    [{ ...asked, messages: [{ role: "system", content: question.content }] }, "messages[0].role"],
    [{ ...asked, messages: [{ role: "user", content: { type: "video" } }] }, "messages[0].content"],
    [{ ...asked, tools: [{}] }, "tools[0].name"],
  ] as const) {
    await expect(sample(params)).rejects.toMatchObject({ code: "invalid_request", param });
  }
});

test("stops a server's sampling at the model when its tool call ends", async () => {
  upstream.script(() => {});
  const call = new AbortController();
  const before = upstream.requests.length;
  const sampled = sample(asked, principal, call.signal);
  await until(() => upstream.requests.length > before, "the model is asked");
  call.abort(new Error("the call is over"));
  await expect(sampled).rejects.toThrow("the call is over");
  await until(() => upstream.requests.at(-1)?.abandoned, "the model is left");
  upstream.script(answering({ content: "Paris." }));
});

test("refuses sampling with rights that the caller has lost since the call began", async () => {
  const { principal: caller, id } = await keyWith({ scopes: ["chat:write", "tools:use"] });
  const before = upstream.requests.length;
  await server.request(`/v1/keys/${id}`, { method: "PATCH", body: { scopes: ["tools:use"] } });
  await expect(sample(asked, caller)).rejects.toMatchObject({ code: "insufficient_scope" });
  await server.request(`/v1/keys/${id}`, { method: "DELETE" });
  await expect(sample(asked, caller)).rejects.toMatchObject({ code: "invalid_api_key" });
  expect(upstream.requests.length).toBe(before);
});
