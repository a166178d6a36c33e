// An agent says hello to the only model of a fresh start, which knows no tools: it gets an answer in text.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { generateText, jsonSchema, streamText, tool } from "ai";
import { aiProvider, langchainChat, openaiClient } from "../support/clients.ts";
import { startHeadrace, type TestServer, until } from "../support/headrace.ts";
import { joinNode, startGateway } from "../support/nodes.ts";
import { weatherTool } from "../support/scripted-answers.ts";
import { answer, demoModel, messages, question } from "../support/tiny-demo.ts";

let server: TestServer;
beforeAll(async () => {
  server = await startHeadrace({ demo: true });
});
afterAll(() => server[Symbol.asyncDispose]());

const offered = { model: demoModel, temperature: 0, messages, tools: [weatherTool] };
const ask = (body: object) => server.request("/v1/chat/completions", { body });
const { name, description, parameters } = weatherTool.function;

test("omits optional tools for a model without tool support and says so in a response header", async () => {
  const plain = (await (await ask({ ...offered, tools: undefined })).json()) as { usage: { prompt_tokens: number } };
  for (const more of [
    {},
    { tool_choice: "auto" },
    { parallel_tool_calls: true },
    { tool_choice: "auto", stream: true },
  ]) {
    const response = await ask({ ...offered, ...more });
    expect([more, response.status, response.headers.get("x-headrace-ignored")]).toEqual([more, 200, "tools"]);
    const text = await response.text();
    if ("stream" in more) continue;
    const { choices, usage } = JSON.parse(text);
    expect(choices[0]).toMatchObject({ message: { content: answer }, finish_reason: "stop" });
    // Their descriptions are not in the prompt, and cost nothing.
    expect(usage.prompt_tokens).toBe(plain.usage.prompt_tokens);
  }
  for (const more of [{ tools: undefined }, { tool_choice: "none" }, { tools: [] }]) {
    const response = await ask({ ...offered, ...more });
    expect([more, response.status, response.headers.get("x-headrace-ignored")]).toEqual([more, 200, null]);
  }
});

test("refuses a required tool call for a model without tool support and names the demanding field", async () => {
  for (const tool_choice of ["required", { type: "function", function: { name } }]) {
    for (const stream of [false, true]) {
      const response = await ask({ ...offered, tool_choice, stream });
      expect(response.status).toBe(400);
      const { error } = (await response.json()) as { error: { message: string; code: string } };
      expect(error).toMatchObject({
        code: "invalid_request",
        message: expect.stringMatching(/^tool_choice: .*"none"/),
      });
    }
  }
});

test("accepts the other fields that agents send along with tools", async () => {
  const call = { id: "call_1", type: "function", function: { name, arguments: '{"city":"Rome"}' } };
  const history = [
    { role: "developer", content: [{ type: "text", text: "You are an agent." }] },
    { role: "user", content: [{ type: "text", text: "How is the weather?" }] },
    { role: "assistant", content: null, tool_calls: [call] },
    { role: "tool", tool_call_id: "call_1", content: [{ type: "text", text: '{"sun":true}' }] },
    { role: "user", content: question },
  ];
  const settings = {
    stream: true,
    stream_options: { include_usage: true },
    parallel_tool_calls: true,
    reasoning_effort: "medium",
    verbosity: "low",
    max_completion_tokens: 64,
    prompt_cache_key: "session",
    service_tier: "auto",
    user: "somebody",
    metadata: { run: "1" },
    store: false,
    response_format: { type: "text" },
    chat_template_kwargs: { enable_thinking: false },
  };
  for (const body of [
    { ...offered, messages: history },
    { ...offered, ...settings },
    { ...offered, ...settings, messages: history },
    { ...offered, response_format: { type: "json_object" }, max_tokens: 16 },
  ]) {
    const response = await ask(body);
    expect([response.status, response.headers.get("x-headrace-ignored")]).toEqual([200, "tools"]);
    expect(await response.text()).not.toContain('"error"');
  }
});

test("refuses an agent's system prompt that exceeds the context, and reports both lengths", async () => {
  const system = { role: "system", content: "You are an agent. ".repeat(2_000) };
  const response = await ask({ ...offered, messages: [system, ...messages] });
  expect(response.status).toBe(400);
  expect(await response.text()).toContain("maximum context length is 1024 tokens");
});

test("answers the AI SDK, LangChain and openai's tool runner if they send tools to a model without tool support", async () => {
  const model = aiProvider(server)(demoModel);
  const get_weather = tool({
    description,
    inputSchema: jsonSchema<{ city: string }>(parameters as never),
    execute: () => "sunny",
  });
  const wanted = { model, tools: { get_weather }, prompt: question, temperature: 0, maxRetries: 0 };
  expect((await generateText(wanted)).text).toBe(answer);
  expect(await streamText(wanted).text).toBe(answer);
  const langchain = langchainChat(server, { model: demoModel, temperature: 0 }).bindTools([weatherTool]);
  expect((await langchain.invoke(question)).content).toBe(answer);
  const runner = openaiClient(server).chat.completions.runTools({
    ...{ model: demoModel, temperature: 0, messages },
    tools: [
      { type: "function", function: { ...weatherTool.function, parse: JSON.parse, function: () => "sunny" } as never },
    ],
  });
  expect(await runner.finalContent()).toBe(answer);
});

test("reports omitted tools for the built-in engine of a node, too", async () => {
  await using gateway = await startGateway();
  await using _node = await joinNode(gateway, { demo: true, models: ["*"] });
  await until(async () => (await (await gateway.request("/v1/models")).text()).includes(demoModel), "the model");
  const response = await gateway.request("/v1/chat/completions", { body: offered });
  expect([response.status, response.headers.get("x-headrace-ignored")]).toEqual([200, "tools"]);
});
