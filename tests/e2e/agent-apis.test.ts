// Responses and Messages as their SDKs ask for them, of the built-in model and of a model server that speaks chat completions alone.

import { afterAll, afterEach, beforeAll, describe, expect, test } from "bun:test";
import Anthropic from "@anthropic-ai/sdk";
import { openaiClient } from "../support/clients.ts";
import { startHeadrace, type TestServer } from "../support/headrace.ts";
import { toolScript, weatherCall, weatherResult, weatherTool } from "../support/scripted-answers.ts";
import {
  chatScript,
  json,
  type ScriptedUpstream,
  startUpstream,
  upstreamYaml,
  usage,
} from "../support/scripted-upstream.ts";
import { answer, demoContext, demoModel, question } from "../support/tiny-demo.ts";

let upstream: ScriptedUpstream;
let server: TestServer;

beforeAll(async () => {
  upstream = await startUpstream();
  server = await startHeadrace({ demo: true, yaml: upstreamYaml(upstream) });
});
afterEach(() => upstream.script(chatScript()));
afterAll(async () => {
  await server[Symbol.asyncDispose]();
  await upstream[Symbol.asyncDispose]();
});

/** The newest version of its API has no temperature any more. */
const defaultHeaders = { "anthropic-version": "2023-06-01" };
const anthropic = () => new Anthropic({ baseURL: server.url, apiKey: server.key, maxRetries: 0, defaultHeaders });
const openai = () => openaiClient(server);
const model = "upstream-model";

describe("Responses", () => {
  test("answers a Responses request with the built-in model, streamed and whole, with the same text and usage", async () => {
    const asked = { model: demoModel, input: question, temperature: 0, store: false };
    const whole = await openai().responses.create(asked);
    expect(whole.output_text).toBe(answer);
    expect(whole.status).toBe("completed");
    const stream = openai().responses.stream(asked);
    const types: string[] = [];
    for await (const event of stream) types.push(event.type);
    const final = await stream.finalResponse();
    expect(final.output_text).toBe(answer);
    expect(final.usage).toEqual(whole.usage);
    expect(types[0]).toBe("response.created");
    expect(types.at(-1)).toBe("response.completed");
  });

  test("calls a tool for Responses and accepts its output with a server that speaks only chat completions", async () => {
    upstream.script(toolScript());
    const { function: called } = weatherTool;
    const tools = [{ type: "function" as const, strict: true, ...called }];
    const first = await openai()
      .responses.stream({ model, input: "How is Oslo?", tools, store: false })
      .finalResponse();
    const call = first.output[0];
    if (call?.type !== "function_call") throw new Error("no call");
    expect(call.arguments).toBe(weatherCall.function.arguments);
    const { output } = first;
    const result = { type: "function_call_output" as const, call_id: call.call_id, output: weatherResult };
    const second = await openai().responses.create({
      model,
      store: false,
      tools,
      input: [{ role: "user", content: "How is Oslo?" }, ...output, result] as never,
    });
    expect(second.output_text).toBe(`It is ${weatherResult}.`);
    expect(upstream.requests.at(-1)?.body["messages"]).toMatchObject([
      { role: "user" },
      { role: "assistant", tool_calls: [{ id: call.call_id, function: weatherCall.function }] },
      { role: "tool", tool_call_id: call.call_id, content: weatherResult },
    ]);
  });

  test("fails a Responses stream with the error code that Codex handles if the conversation is too long", async () => {
    const message = "This model's maximum context length is 4096 tokens, but the length of messages is 5123 tokens.";
    upstream.script((_request, res) => json(res, 400, { error: { message } }));
    const events: unknown[] = [];
    for await (const event of await openai().responses.create({ model, input: "Hello", store: false, stream: true })) {
      events.push(event);
    }
    expect(events).toMatchObject([
      { type: "response.created" },
      { type: "response.in_progress" },
      { type: "response.failed", response: { status: "failed", error: { code: "context_length_exceeded", message } } },
    ]);
    const whole = openai().responses.create({ model, input: "Hello", store: false });
    expect(await whole.catch((error: unknown) => error)).toMatchObject({
      status: 400,
      code: "context_length_exceeded",
    });
  });

  test("fails a Responses stream with the same code if the conversation is too long for the built-in model", async () => {
    const asked = { model: demoModel, input: "Hello ".repeat(demoContext), store: false };
    const events: unknown[] = [];
    for await (const event of await openai().responses.create({ ...asked, stream: true })) events.push(event);
    expect(events.at(-1)).toMatchObject({
      type: "response.failed",
      response: {
        error: { code: "context_length_exceeded", message: expect.stringContaining(`${demoContext} tokens`) },
      },
    });
  });

  test("translates the refusal of a server of another format without naming fields that the client did not send", async () => {
    const message = "messages[0].content[0]: this model takes only text parts.";
    upstream.script((_request, res) => json(res, 400, { error: { message, param: "messages[0].content[0]" } }));
    const refused = openai().responses.create({ model, input: "Hello", store: false });
    expect(await refused.catch((error: unknown) => error)).toMatchObject({
      status: 400,
      error: { message: `The model server, asked in the format of chat completions, says: ${message}` },
    });
  });

  test("continues a compacted conversation from the user's messages and a sealed summary", async () => {
    upstream.script(chatScript(["They met ", "in Oslo."]));
    const compacted = await openai().responses.compact({
      model: model as never,
      input: [
        { role: "user", content: "Where did they meet?" },
        { role: "assistant", content: "In Oslo, at noon." },
      ],
    });
    expect(compacted.object).toBe("response.compaction");
    expect(compacted.output.map(({ type }) => type)).toEqual(["message", "compaction"] as never);
    expect(JSON.stringify(compacted)).not.toContain("They met");
    upstream.script(chatScript());
    const input = [...compacted.output, { role: "user", content: "And when?" }] as never;
    await openai().responses.create({ model, input, store: false });
    expect(JSON.stringify(upstream.requests.at(-1)?.body["messages"])).toContain("They met in Oslo.");
  });

  test("tells the service tier that a chat server reports, whole and as a stream", async () => {
    const reported = { id: "a", object: "chat.completion", created: 1, model: "m", service_tier: "priority", usage };
    const said = { role: "assistant", content: "Hello" };
    upstream.script((request, res) => {
      const isStream = request.body["stream"] === true;
      const choice = { index: 0, finish_reason: "stop", [isStream ? "delta" : "message"]: said };
      if (!isStream) return json(res, 200, { ...reported, choices: [choice] });
      res.writeHead(200, { "content-type": "text/event-stream" });
      res.end(
        `data: ${JSON.stringify({ ...reported, object: "chat.completion.chunk", choices: [choice] })}\n\ndata: [DONE]\n\n`,
      );
    });
    const asked = { model, input: "Hello", store: false };
    expect((await openai().responses.create(asked)).service_tier).toBe("priority");
    expect((await openai().responses.stream(asked).finalResponse()).service_tier).toBe("priority");
  });

  test("books usage of Responses as the model server reports it", async () => {
    const response = await openai().responses.create({ model, input: "Hello", store: false });
    expect(response.usage).toMatchObject({ input_tokens: usage.prompt_tokens, output_tokens: usage.completion_tokens });
  });
});

describe("Messages", () => {
  // The newest SDK has no such parameter any more.
  const likeliest: object = { temperature: 0 };
  const asked = { max_tokens: 64, messages: [{ role: "user" as const, content: question }], ...likeliest };

  test("answers a Messages request with the built-in model, streamed and whole, with the same text and usage", async () => {
    const whole = await anthropic().messages.create({ ...asked, model: demoModel });
    expect(whole.content).toMatchObject([{ type: "text", text: answer }]);
    expect(whole.stop_reason).toBe("end_turn");
    const stream = anthropic().messages.stream({ ...asked, model: demoModel });
    const final = await stream.finalMessage();
    expect(final.content).toMatchObject([{ type: "text", text: answer }]);
    expect(final.usage.output_tokens).toBe(whole.usage.output_tokens);
    expect(final.usage.input_tokens).toBe(whole.usage.input_tokens);
  });

  test("starts a Messages stream with the prompt tokens that the built-in model counted", async () => {
    const stream = await anthropic().messages.create({ ...asked, model: demoModel, stream: true });
    const whole = await anthropic().messages.create({ ...asked, model: demoModel });
    for await (const event of stream) {
      if (event.type !== "message_start") continue;
      expect(event.message.usage.input_tokens).toBe(whole.usage.input_tokens);
    }
  });

  test("counts tokens of Messages as the built-in model does", async () => {
    const { messages } = asked;
    const { input_tokens } = await anthropic().messages.countTokens({ model: demoModel, messages });
    const whole = await anthropic().messages.create({ ...asked, model: demoModel });
    expect(input_tokens).toBe(whole.usage.input_tokens);
  });

  test("calls a tool for Messages and accepts its result with a server that speaks only chat completions", async () => {
    upstream.script(toolScript());
    const { name, description, parameters } = weatherTool.function;
    const tools = [{ name, description, input_schema: parameters as never }];
    const messages: Anthropic.MessageParam[] = [{ role: "user", content: "How is Oslo?" }];
    const first = await anthropic().messages.stream({ model, max_tokens: 64, tools, messages }).finalMessage();
    expect(first.stop_reason).toBe("tool_use");
    const call = first.content[0];
    if (call?.type !== "tool_use") throw new Error("no call");
    expect(call.input).toEqual(JSON.parse(weatherCall.function.arguments));
    messages.push({ role: "assistant", content: first.content });
    messages.push({ role: "user", content: [{ type: "tool_result", tool_use_id: call.id, content: weatherResult }] });
    const second = await anthropic().messages.create({ model, max_tokens: 64, tools, messages });
    expect(second.content).toMatchObject([{ type: "text", text: `It is ${weatherResult}.` }]);
  });

  test("sends Messages errors in Anthropic's format, before an answer and in the middle of a stream", async () => {
    const refused = await anthropic()
      .messages.create({ ...asked, model: "unknown" })
      .catch((error: unknown) => error);
    expect(refused).toMatchObject({
      status: 404,
      requestID: expect.stringMatching(/^req_/),
      error: { type: "error", error: { type: "not_found_error" } },
    });
    upstream.script((_request, res) => {
      res.writeHead(200, { "content-type": "text/event-stream" });
      res.write('data: {"id":"x","choices":[{"index":0,"delta":{"content":"Hal"},"finish_reason":null}]}\n\n');
      res.destroy();
    });
    const broken = await anthropic()
      .messages.stream({ ...asked, model })
      .finalMessage()
      .catch((error: unknown) => error);
    expect(broken).toBeInstanceOf(Error);
    expect(String(broken)).toContain("api_error");
  });

  test("accepts a max_tokens of Messages above the built-in model's context, because clients must set a value", async () => {
    const message = await anthropic()
      .messages.stream({ ...asked, max_tokens: 32_000, model: demoModel })
      .finalMessage();
    expect(message.content).toMatchObject([{ type: "text", text: answer }]);
  });

  test("reports a too long prompt of Messages in the words that Claude Code handles", async () => {
    upstream.script((_request, res) =>
      json(res, 400, {
        error: {
          message: "This model's maximum context length is 4096 tokens, but the length of messages is 5123 tokens.",
        },
      }),
    );
    const refused = await anthropic()
      .messages.create({ ...asked, model })
      .catch((error: unknown) => error as Error);
    expect(String(refused)).toContain("prompt is too long: 5123 tokens > 4096 maximum");
  });

  test("reports a prompt of Messages too long for the built-in model in the words that Claude Code handles", async () => {
    const messages = [{ role: "user" as const, content: "Hello ".repeat(demoContext) }];
    const refused = await anthropic()
      .messages.create({ ...asked, model: demoModel, messages })
      .catch((error: unknown) => error as Error);
    expect(String(refused)).toMatch(new RegExp(`prompt is too long: \\d+ tokens > ${demoContext} maximum`));
  });
});

test("a chat in the form of Responses, as Cursor sends it, calls a tool and answers in chunks of chat completions", async () => {
  upstream.script(toolScript());
  const { function: called } = weatherTool;
  const ask = async (input: readonly object[]) => {
    const tools = [{ type: "function", ...called }];
    const body = {
      model,
      input,
      tools,
      stream: true,
      stream_options: { include_usage: true },
      reasoning: { effort: "low" },
    };
    const answered = await server.request("/v1/chat/completions", { body });
    const events = (await answered.text()).split("\n\n").filter((event) => event.startsWith("data: {"));
    return events.map((event) => JSON.parse(event.slice(6)) as Chunk);
  };
  type Chunk = { object: string; choices: { delta: { content?: string; tool_calls?: { id?: string }[] } }[] };
  const chunks = await ask([{ role: "user", content: "How is Oslo?" }]);
  expect(new Set(chunks.map(({ object }) => object))).toEqual(new Set(["chat.completion.chunk"]));
  const id = chunks.flatMap(({ choices }) => choices[0]?.delta.tool_calls?.[0]?.id ?? [])[0] ?? "";
  const more = await ask([
    { role: "user", content: "How is Oslo?" },
    { type: "function_call", call_id: id, ...weatherCall.function },
    { type: "function_call_output", call_id: id, output: weatherResult },
  ]);
  expect(more.map(({ choices }) => choices[0]?.delta.content ?? "").join("")).toBe(`It is ${weatherResult}.`);
  expect(upstream.requests.at(-1)?.body).toMatchObject({
    messages: [{ role: "user" }, { role: "assistant", tool_calls: [{ id }] }, { role: "tool", tool_call_id: id }],
    tools: [weatherTool],
    reasoning_effort: "low",
  });
  expect(upstream.requests.at(-1)?.body).not.toHaveProperty("input");
});
