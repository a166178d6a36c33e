// The `openai` package through the gateway to a model server: tools, both encodings of embeddings, ids with slashes, what passes through.
import { afterAll, afterEach, beforeAll, describe, expect, test } from "bun:test";
import type OpenAI from "openai";
import type { ChatCompletionMessageParam } from "openai/resources";
import { openaiClient } from "../support/clients.ts";
import { startHeadrace, type TestServer } from "../support/headrace.ts";
import {
  embeddingScript,
  scriptedVectors,
  toolScript,
  weatherCall,
  weatherResult,
  weatherTool,
} from "../support/scripted-answers.ts";
import { chatScript, type ScriptedUpstream, startUpstream } from "../support/scripted-upstream.ts";

const model = "owner/upstream:model-1.0";
const question: ChatCompletionMessageParam[] = [{ role: "user", content: "How is the weather in Oslo?" }];

let upstream: ScriptedUpstream;
let server: TestServer;
let client: OpenAI;

beforeAll(async () => {
  upstream = await startUpstream();
  server = await startHeadrace({
    yaml: `upstreams: [{ name: up, url: "${upstream.url}", discover: false }]
models: [{ id: "${model}", deployments: [{ upstream: up, model: upstream-model }] }]
`,
  });
  client = openaiClient(server);
});
afterEach(() => {
  upstream.script(chatScript());
  upstream.requests.length = 0;
});
afterAll(async () => {
  await server[Symbol.asyncDispose]();
  await upstream[Symbol.asyncDispose]();
});

describe("tools", () => {
  test("passes tools to the model, returns its call, and answers from the result", async () => {
    upstream.script(toolScript());
    const tools = [weatherTool];
    const choice = { type: "function" as const, function: { name: "get_weather" } };
    const first = await client.chat.completions.create({
      model,
      messages: question,
      tools,
      tool_choice: choice,
      parallel_tool_calls: false,
    });
    expect(upstream.requests[0]?.body).toMatchObject({ tools, tool_choice: choice, parallel_tool_calls: false });
    expect(first.choices[0]?.finish_reason).toBe("tool_calls");
    const reply = first.choices[0]?.message;
    expect(reply?.tool_calls).toEqual([weatherCall]);
    const conversation: ChatCompletionMessageParam[] = [
      ...question,
      ...(reply ? [reply] : []),
      { role: "tool", tool_call_id: weatherCall.id, content: weatherResult },
    ];
    const second = await client.chat.completions.create({ model, messages: conversation, tools });
    expect(upstream.requests[1]?.body["messages"]).toEqual(conversation);
    expect(second.choices[0]?.message.content).toBe(`It is ${weatherResult}.`);
  });

  test("streams a tool call in pieces that add up to the whole", async () => {
    upstream.script(toolScript());
    const runner = client.chat.completions.stream({
      model,
      messages: question,
      tools: [weatherTool],
      tool_choice: "required",
    });
    const final = await runner.finalChatCompletion();
    expect(final.choices[0]?.finish_reason).toBe("tool_calls");
    expect(final.choices[0]?.message.tool_calls?.[0]).toMatchObject(weatherCall);
  });

  test("completes the round trip of the SDK's tool runner", async () => {
    upstream.script(toolScript());
    const cities: string[] = [];
    const runner = client.chat.completions.runTools({
      model,
      messages: question,
      tools: [
        {
          type: "function",
          function: {
            ...weatherTool.function,
            parse: (text: string) => JSON.parse(text) as { city: string },
            function: ({ city }: { city: string }) => {
              cities.push(city);
              return weatherResult;
            },
          },
        },
      ],
    });
    expect(await runner.finalContent()).toBe(`It is ${weatherResult}.`);
    expect(cities).toEqual(["Oslo"]);
  });
});

describe("embeddings of a model server", () => {
  const float32 = scriptedVectors.map((vector) => [...new Float32Array(vector)]);

  for (const knows of ["float", "base64"] as const) {
    test(`returns embeddings of a model server that only sends ${knows} in the SDK's default encoding and in float`, async () => {
      upstream.script(embeddingScript(knows));
      const request = { model, input: ["one", "two"] };
      const standard = await client.embeddings.create(request);
      // The SDK asks for base64 by itself and decodes without looking.
      expect(upstream.requests[0]?.body["encoding_format"]).toBe("base64");
      expect(standard.data.map((item) => item.embedding)).toEqual(float32);
      expect(standard.usage).toEqual({ prompt_tokens: 8, total_tokens: 8 });
      expect(standard.model).toBe(model);
      const floats = await client.embeddings.create({ ...request, encoding_format: "float" });
      expect(floats.data.map((item) => item.embedding)).toEqual(knows === "float" ? scriptedVectors : float32);
      const base64 = await client.embeddings.create({ ...request, encoding_format: "base64" });
      const decoded = base64.data.map(({ embedding }) => {
        const bytes = Buffer.from(embedding as unknown as string, "base64");
        return Array.from({ length: bytes.length / 4 }, (_, index) => bytes.readFloatLE(4 * index));
      });
      expect(decoded).toEqual(float32);
    });
  }
});

test("lists, retrieves and serves a model id with a slash", async () => {
  expect((await client.models.list()).data.map((entry) => entry.id)).toEqual([model]);
  expect(await client.models.retrieve(model)).toMatchObject({ id: model, object: "model", owned_by: "scripted" });
  const completion = await client.chat.completions.create({ model, messages: question });
  expect(completion.model).toBe(model);
  expect(upstream.requests[0]?.body["model"]).toBe("upstream-model");
});

test("passes unknown parameters to the model server unchanged", async () => {
  const extras = {
    reasoning_effort: "low" as const,
    service_tier: "auto" as const,
    prediction: { type: "content" as const, content: "Hello" },
    chat_template_kwargs: { enable_thinking: false },
    top_k: 7,
  };
  await client.chat.completions.create({ model, messages: question, seed: 5, logit_bias: { "7": -1 }, ...extras });
  expect(upstream.requests[0]?.body).toEqual({
    model: "upstream-model",
    messages: question,
    seed: 5,
    logit_bias: { "7": -1 },
    ...extras,
  });
});

test("does not forward the SDK's headers or the client's key", async () => {
  await openaiClient(server, { organization: "org-1", project: "proj-1" }).chat.completions.create({
    model,
    messages: question,
  });
  const headers = upstream.requests[0]?.headers ?? {};
  expect(headers["user-agent"]).toBe("headrace");
  expect(Object.keys(headers).filter((name) => /^(x-|openai-|authorization)/.test(name))).toEqual(["x-request-id"]);
});
