// `ai` with `@ai-sdk/openai-compatible`: the built-in model, tools through a scripted model server, errors as APICallError.
import { afterAll, afterEach, beforeAll, describe, expect, test } from "bun:test";
import { APICallError, embed, embedMany, generateText, isStepCount, jsonSchema, Output, streamText, tool } from "ai";
import { z } from "zod";
import { aiProvider } from "../support/clients.ts";
import { startHeadrace, type TestServer, until } from "../support/headrace.ts";
import { mintKey } from "../support/mint-key.ts";
import {
  embeddingScript,
  interruptedStream,
  scriptedVectors,
  toolScript,
  weatherCall,
  weatherResult,
  weatherTool,
  wellBegun,
} from "../support/scripted-answers.ts";
import { chatScript, json, type ScriptedUpstream, startUpstream } from "../support/scripted-upstream.ts";
import { answer, demoEmbeddingLength, demoModel, endless, question } from "../support/tiny-demo.ts";

let upstream: ScriptedUpstream;
let server: TestServer;
let provider: ReturnType<typeof aiProvider>;

// It remarks on a default of its own that the completions endpoint has no place for.
globalThis.AI_SDK_LOG_WARNINGS = false;

beforeAll(async () => {
  upstream = await startUpstream();
  const yaml = `upstreams: [{ name: up, url: "${upstream.url}", timeout_seconds: 1 }]\nlimits: { body_bytes: 4096 }\n`;
  server = await startHeadrace({ demo: true, yaml });
  provider = aiProvider(server);
});
afterEach(() => upstream.script(chatScript()));
afterAll(async () => {
  await server[Symbol.asyncDispose]();
  await upstream[Symbol.asyncDispose]();
});

describe("the AI SDK with the built-in model", () => {
  const demo = () => ({ model: provider(demoModel), prompt: question, temperature: 0, maxRetries: 0 });

  test("returns the answer, usage and request id to generateText", async () => {
    const result = await generateText(demo());
    expect(result.text).toBe(answer);
    expect(result.finishReason).toBe("stop");
    expect(result.usage.inputTokens).toBeGreaterThan(0);
    expect(result.usage.outputTokens).toBeGreaterThan(0);
    expect(result.response.modelId).toBe(demoModel);
    expect(result.response.headers?.["x-request-id"]).toMatch(/^req_/);
  });

  test("streams the same text in pieces, with usage, to streamText", async () => {
    const result = streamText(demo());
    const pieces = await Array.fromAsync(result.textStream);
    expect(pieces.length).toBeGreaterThan(5);
    expect(pieces.join("")).toBe(answer);
    expect(await result.finishReason).toBe("stop");
    const whole = await generateText(demo());
    const { inputTokens, outputTokens } = await result.usage;
    expect({ inputTokens, outputTokens }).toEqual({
      inputTokens: whole.usage.inputTokens,
      outputTokens: whole.usage.outputTokens,
    });
  });

  test("stops the engine and counts a cancellation if the AI SDK aborts a stream", async () => {
    const leave = new AbortController();
    const result = streamText({
      ...demo(),
      maxOutputTokens: endless.max_tokens,
      providerOptions: { headrace: { logit_bias: endless.logit_bias } },
      abortSignal: leave.signal,
    });
    const kinds: string[] = [];
    for await (const part of result.fullStream) {
      if (part.type === "text-delta") leave.abort();
      kinds.push(part.type);
    }
    expect(kinds.at(-1)).toBe("abort");
    const line = await until(
      () => server.logged("request").find((entry) => entry["outcome"] === "cancelled"),
      "the log line",
    );
    expect(line).toMatchObject({ model: demoModel, stream: true, estimated: true });
    await until(() => server.engine.status()[0]?.busy === 0, "the slot of the engine is free");
  });

  test("returns an object that matches a JSON schema to the AI SDK, whole and streamed", async () => {
    const schema = z.object({ mood: z.enum(["calm", "wild"]), legs: z.int() });
    const output = Output.object({ schema });
    const { output: object } = await generateText({ ...demo(), maxOutputTokens: 200, output });
    expect(schema.parse(object)).toEqual(object);
    const stream = streamText({ ...demo(), maxOutputTokens: 200, output });
    expect(await stream.output).toEqual(object);
  });

  test("returns vectors of the model's length to embed and embedMany", async () => {
    const model = provider.embeddingModel(demoModel);
    const { embedding, usage } = await embed({ model, value: "a fox in the barn", maxRetries: 0 });
    expect(embedding).toHaveLength(demoEmbeddingLength);
    expect(usage.tokens).toBeGreaterThan(0);
    const { embeddings } = await embedMany({ model, values: ["a fox in the barn", "a port"], maxRetries: 0 });
    expect(embeddings.map((vector) => vector.length)).toEqual([demoEmbeddingLength, demoEmbeddingLength]);
    expect(embeddings[0]).toEqual(embedding);
  });

  test("answers a legacy completion of the AI SDK", async () => {
    const result = await generateText({
      model: provider.completionModel(demoModel),
      prompt: "Once upon a time",
      temperature: 0,
      maxOutputTokens: 8,
      maxRetries: 0,
    });
    expect(result.text.length).toBeGreaterThan(0);
    expect(result.usage.outputTokens).toBe(8);
  });
});

describe("the AI SDK with a model server", () => {
  test("returns the same embeddings to the AI SDK from servers that send only base64 or only numbers", async () => {
    const model = provider.embeddingModel("upstream-model");
    const request = { model, values: ["one", "two"], maxRetries: 0 };
    upstream.script(embeddingScript("float"));
    expect((await embedMany(request)).embeddings).toEqual(scriptedVectors);
    upstream.script(embeddingScript("base64"));
    const float32 = scriptedVectors.map((vector) => [...new Float32Array(vector)]);
    expect((await embedMany(request)).embeddings).toEqual(float32);
  });

  const weather = tool({
    description: weatherTool.function.description,
    inputSchema: jsonSchema<{ city: string }>(weatherTool.function.parameters as never),
    execute: ({ city }) => (city === "Oslo" ? weatherResult : "unknown"),
  });

  test("calls a tool for the AI SDK and answers with its result, whole and streamed", async () => {
    upstream.script(toolScript());
    const request = {
      model: provider("upstream-model"),
      prompt: "How is the weather in Oslo?",
      tools: { get_weather: weather },
      toolChoice: "auto" as const,
      stopWhen: isStepCount(3),
      maxRetries: 0,
    };
    const before = upstream.requests.length;
    const result = await generateText(request);
    expect(result.steps[0]?.toolCalls[0]).toMatchObject({
      toolName: "get_weather",
      toolCallId: weatherCall.id,
      input: { city: "Oslo" },
    });
    expect(result.text).toBe(`It is ${weatherResult}.`);
    expect(upstream.requests[before]?.body["tool_choice"]).toBe("auto");
    expect(await streamText(request).text).toBe(`It is ${weatherResult}.`);
  });

  test("passes the tool named in the AI SDK's toolChoice to the model server", async () => {
    upstream.script(toolScript());
    const result = await generateText({
      model: provider("upstream-model"),
      prompt: "How is the weather in Oslo?",
      tools: { get_weather: weather },
      toolChoice: { type: "tool", toolName: "get_weather" },
      maxRetries: 0,
    });
    expect(result.finishReason).toBe("tool-calls");
    expect(upstream.requests.at(-1)?.body["tool_choice"]).toEqual({
      type: "function",
      function: { name: "get_weather" },
    });
  });
});

describe("the AI SDK raises an APICallError with status, message and retryability", () => {
  interface Expected {
    statusCode: number | undefined;
    isRetryable: boolean;
    message: RegExp;
  }

  async function expectError(call: () => PromiseLike<unknown>, expected: Expected): Promise<APICallError> {
    const error = await call().then(
      () => new Error("nothing was raised"),
      (thrown: unknown) => thrown,
    );
    if (!APICallError.isInstance(error)) throw error;
    expect({ statusCode: error.statusCode, isRetryable: error.isRetryable }).toEqual({
      statusCode: expected.statusCode,
      isRetryable: expected.isRetryable,
    });
    expect(error.message).toMatch(expected.message);
    return error;
  }

  function ask(options: { key?: string; model?: string; prompt?: string; temperature?: number } = {}) {
    const { key = server.key, model = "upstream-model", prompt = "Hi", temperature = 0 } = options;
    return generateText({ model: aiProvider({ url: server.url, key })(model), prompt, temperature, maxRetries: 0 });
  }

  async function keyWith(body: Record<string, unknown>): Promise<string> {
    const response = await server.request("/v1/keys", { body: { name: "limited", ...body } });
    return ((await response.json()) as { key: string }).key;
  }

  test("raises an APICallError for status 400", async () => {
    const expected = { statusCode: 400, isRetryable: false, message: /temperature: must be a number from 0 to 2/ };
    const error = await expectError(() => ask({ temperature: 9 }), expected);
    expect(error.responseHeaders?.["x-request-id"]).toMatch(/^req_/);
    expect(error.data).toEqual({
      error: { message: error.message, type: "invalid_request_error", param: "temperature", code: "invalid_request" },
    });
  });

  test("raises an APICallError for status 401", async () => {
    const expected = {
      statusCode: 401,
      isRetryable: false,
      message: /^Invalid API key provided\. Incorrect API key provided: /,
    };
    await expectError(() => ask({ key: "sk_dev_hr_nonsense" }), expected);
  });

  test("raises an APICallError for status 403", async () => {
    const key = await mintKey(server.dataDir, { scopes: ["models:read"] });
    const expected = { statusCode: 403, isRetryable: false, message: /lacks required scope: chat:write/ };
    await expectError(() => ask({ key }), expected);
  });

  test("raises an APICallError for an exhausted quota without a retry", async () => {
    const key = await keyWith({ monthly_tokens: 10 });
    await ask({ key });
    const before = upstream.requests.length;
    const expected = { statusCode: 403, isRetryable: false, message: /monthly quota of the key/ };
    const call = () => generateText({ model: aiProvider({ url: server.url, key })("upstream-model"), prompt: "Hi" });
    const error = await expectError(call, expected);
    expect(error.data).toMatchObject({ error: { type: "insufficient_quota", code: "insufficient_quota" } });
    expect(upstream.requests.length).toBe(before);
  });

  test("raises an APICallError for status 429 with the wait time, for a stream too", async () => {
    const key = await keyWith({ rate_limit: 1, rate_limit_window: 60 });
    await ask({ key });
    const expected = { statusCode: 429, isRetryable: true, message: /1 request per minute\. Retry in \d+ seconds/ };
    const error = await expectError(() => ask({ key }), expected);
    expect(Number(error.responseHeaders?.["retry-after-ms"])).toBeWithin(50_000, 60_001);
    const model = aiProvider({ url: server.url, key })("upstream-model");
    const stream = streamText({ model, prompt: "Hi", maxRetries: 0, onError: () => {} });
    const failure = (await Array.fromAsync(stream.fullStream)).find((part) => part.type === "error");
    await expectError(() => Promise.reject(failure?.error), expected);
  });

  test("raises an APICallError for status 404", async () => {
    const expected = { statusCode: 404, isRetryable: false, message: /`no-such-model` does not exist/ };
    await expectError(() => ask({ model: "no-such-model" }), expected);
  });

  test("raises an APICallError for status 413", async () => {
    const expected = { statusCode: 413, isRetryable: false, message: /4096 bytes/ };
    await expectError(() => ask({ prompt: "x".repeat(8192) }), expected);
  });

  test("raises a retryable APICallError for status 502, 503 and 504", async () => {
    upstream.script((_request, res) => json(res, 500, {}));
    await expectError(() => ask(), { statusCode: 502, isRetryable: true, message: /model server failed/ });
    upstream.script((_request, res) => json(res, 503, {}, { "retry-after": "3" }));
    await expectError(() => ask(), { statusCode: 503, isRetryable: true, message: /Retry in 3 s/ });
    upstream.script(() => {});
    await expectError(() => ask(), { statusCode: 504, isRetryable: true, message: /did not answer within 1 s/ });
  });

  test("raises an APICallError for a server that refuses connections", async () => {
    const gone = await startHeadrace();
    await gone[Symbol.asyncDispose]();
    const call = () => generateText({ model: aiProvider(gone)("m"), prompt: "Hi", maxRetries: 0 });
    await expectError(call, { statusCode: undefined, isRetryable: true, message: /connect/i });
  });

  test("raises an APICallError with status, message and retryability for errors before the first piece of a stream", async () => {
    upstream.script((_request, res) => json(res, 500, {}));
    const stream = streamText({ model: provider("upstream-model"), prompt: "Hi", maxRetries: 0, onError: () => {} });
    const parts = await Array.fromAsync(stream.fullStream);
    const failure = parts.find((part) => part.type === "error");
    await expectError(() => Promise.reject(failure?.error), {
      statusCode: 502,
      isRetryable: true,
      message: /model server failed/,
    });
  });

  test("delivers the received part of a failing stream to the AI SDK before raising an APICallError", async () => {
    const { script, clientHasBegun } = interruptedStream((_request, res) => void res.destroy());
    upstream.script(script);
    const stream = streamText({ model: provider("upstream-model"), prompt: "Hi", maxRetries: 0, onError: () => {} });
    let delivered = "";
    const errors: unknown[] = [];
    for await (const part of stream.fullStream) {
      if (part.type === "text-delta") {
        delivered += part.text;
        clientHasBegun();
      }
      if (part.type === "error") errors.push(part.error);
    }
    expect(delivered).toBe(wellBegun);
    expect(errors).toHaveLength(1);
    expect(String(errors[0])).toContain("broke off in the middle");
  });

  test("makes the AI SDK retry a 503 after its retry-after time", async () => {
    const arrivals: number[] = [];
    upstream.script((incoming, res) => {
      arrivals.push(performance.now());
      if (arrivals.length === 1) json(res, 503, {}, { "retry-after": "3" });
      else return chatScript()(incoming, res);
    });
    const result = await generateText({ model: provider("upstream-model"), prompt: "Hi", maxRetries: 2 });
    expect(result.text).toBe("Hello world");
    expect(arrivals).toHaveLength(2);
    // Left to itself it would try again after two seconds.
    expect((arrivals[1] ?? 0) - (arrivals[0] ?? 0)).toBeGreaterThanOrEqual(2_990);
  });

  test("makes the AI SDK wait for retry-after-ms on a 429 instead of its own delay", async () => {
    const key = await keyWith({ rate_limit: 2, rate_limit_window: 1 });
    const model = aiProvider({ url: server.url, key })("upstream-model");
    const startedMs = performance.now();
    for (let i = 0; i < 3; i++) expect((await generateText({ model, prompt: "Hi" })).text).toBe("Hello world");
    // Left to itself it would try again after two seconds.
    expect(performance.now() - startedMs).toBeWithin(300, 1_900);
  });
});

test("gives an access token the same rights in the AI SDK as its key", async () => {
  const response = await server.request("/v1/auth/token", { body: { api_key: server.key } });
  const { access_token } = (await response.json()) as { access_token: string };
  const model = aiProvider({ url: server.url, key: access_token })("upstream-model");
  expect((await generateText({ model, prompt: "Hi", maxRetries: 0 })).text).toBe("Hello world");
  expect((await Array.fromAsync(streamText({ model, prompt: "Hi" }).textStream)).join("")).toBe("Hello world");
});
