// `@langchain/openai`: the built-in model, tools through a scripted model server, and errors as it passes them on.
import { afterAll, afterEach, beforeAll, describe, expect, test } from "bun:test";
import { type AIMessageChunk, HumanMessage, ToolMessage, type UsageMetadata } from "@langchain/core/messages";
import { OpenAI as LangchainCompletion } from "@langchain/openai";
import {
  APIConnectionError,
  AuthenticationError,
  BadRequestError,
  InternalServerError,
  NotFoundError,
  PermissionDeniedError,
  RateLimitError,
} from "openai";
import { langchainChat, langchainEmbeddings } from "../support/clients.ts";
import { startHeadrace, type TestServer, until } from "../support/headrace.ts";
import { mintKey } from "../support/mint-key.ts";
import {
  embeddingScript,
  interruptedStream,
  scriptedVectors,
  toolScript,
  weatherResult,
  weatherTool,
  wellBegun,
} from "../support/scripted-answers.ts";
import { chatScript, json, type ScriptedUpstream, startUpstream } from "../support/scripted-upstream.ts";
import { answer, demoEmbeddingLength, demoModel, endless, question } from "../support/tiny-demo.ts";

let upstream: ScriptedUpstream;
let server: TestServer;

beforeAll(async () => {
  upstream = await startUpstream();
  const yaml = `upstreams: [{ name: up, url: "${upstream.url}", timeout_seconds: 1 }]\n`;
  server = await startHeadrace({ demo: true, yaml });
});
afterEach(() => upstream.script(chatScript()));
afterAll(async () => {
  await server[Symbol.asyncDispose]();
  await upstream[Symbol.asyncDispose]();
});

/** The library's types lose the usage of a message of unknown shape. */
function usageOf(message: AIMessageChunk): UsageMetadata | undefined {
  return message.usage_metadata;
}

describe("LangChain with the built-in model", () => {
  test("returns the answer and usage to LangChain's invoke", async () => {
    const reply = await langchainChat(server, { model: demoModel, temperature: 0 }).invoke(question);
    expect(reply.content).toBe(answer);
    expect(reply.response_metadata).toMatchObject({ finish_reason: "stop" });
    expect(usageOf(reply)?.input_tokens).toBeGreaterThan(0);
    expect(usageOf(reply)?.output_tokens).toBeGreaterThan(0);
  });

  test("streams the same text in pieces to LangChain, with usage at the end", async () => {
    const model = langchainChat(server, { model: demoModel, temperature: 0 });
    const pieces = await Array.fromAsync(await model.stream(question));
    expect(pieces.map((piece) => piece.content).join("")).toBe(answer);
    expect(pieces.filter((piece) => piece.content !== "").length).toBeGreaterThan(5);
    const usage = pieces.map(usageOf).find((entry) => entry !== undefined);
    const whole = usageOf(await model.invoke(question));
    expect(usage).toMatchObject({ input_tokens: whole?.input_tokens, output_tokens: whole?.output_tokens });
  });

  test("stops the engine and counts a cancellation if LangChain aborts a stream", async () => {
    const model = langchainChat(server, {
      model: demoModel,
      temperature: 0,
      maxTokens: endless.max_tokens,
      modelKwargs: { logit_bias: endless.logit_bias },
    });
    const leave = new AbortController();
    const read = async () => {
      for await (const piece of await model.stream(question, { signal: leave.signal })) {
        if (piece.content !== "") leave.abort();
      }
    };
    const thrown = await read().catch((error: unknown) => error);
    expect(String(thrown)).toMatch(/abort/i);
    const line = await until(
      () => server.logged("request").find((entry) => entry["outcome"] === "cancelled"),
      "the log line",
    );
    expect(line).toMatchObject({ model: demoModel, stream: true, estimated: true });
    await until(() => server.engine.status()[0]?.busy === 0, "the slot of the engine is free");
  });

  test("returns an object that matches its JSON schema to withStructuredOutput", async () => {
    const schema = {
      title: "animal",
      type: "object",
      properties: { mood: { type: "string", enum: ["calm", "wild"] }, tame: { type: "boolean" } },
      required: ["mood", "tame"],
      additionalProperties: false,
    };
    const model = langchainChat(server, { model: demoModel, temperature: 0, maxTokens: 200 });
    const result = await model.withStructuredOutput(schema, { method: "jsonSchema", strict: true }).invoke(question);
    expect(Object.keys(result).sort()).toEqual(["mood", "tame"]);
    expect(["calm", "wild"]).toContain(result["mood"]);
    expect(typeof result["tame"]).toBe("boolean");
  });

  test("returns LangChain's embeddings in the default encoding equal to those in float", async () => {
    const texts = ["a fox in the barn", "the default port"];
    const standard = await langchainEmbeddings(server, { model: demoModel }).embedDocuments(texts);
    const floats = await langchainEmbeddings(server, { model: demoModel, encodingFormat: "float" }).embedDocuments(
      texts,
    );
    expect(standard.map((vector) => vector.length)).toEqual([demoEmbeddingLength, demoEmbeddingLength]);
    expect(standard).toEqual(floats);
  });

  test("answers a legacy completion of LangChain", async () => {
    const model = new LangchainCompletion({
      model: demoModel,
      apiKey: server.key,
      configuration: { baseURL: `${server.url}/v1` },
      temperature: 0,
      maxTokens: 8,
      maxRetries: 0,
    });
    const text = await model.invoke("Once upon a time");
    expect(text.length).toBeGreaterThan(0);
    expect((await Array.fromAsync(await model.stream("Once upon a time"))).join("")).toBe(text);
  });
});

describe("LangChain with a model server", () => {
  test("returns the same embeddings to LangChain from servers that send only base64 or only numbers", async () => {
    const embeddings = langchainEmbeddings(server, { model: "upstream-model" });
    const float32 = scriptedVectors.map((vector) => [...new Float32Array(vector)]);
    for (const encoding of ["float", "base64"] as const) {
      upstream.script(embeddingScript(encoding));
      expect(await embeddings.embedDocuments(["one", "two"])).toEqual(float32);
      expect(await embeddings.embedQuery("one")).toEqual(float32[0] ?? []);
    }
  });

  test("calls a tool bound in LangChain and answers with its result", async () => {
    upstream.script(toolScript());
    const model = langchainChat(server, { model: "upstream-model" });
    const human = new HumanMessage("How is the weather in Oslo?");
    const call = await model.bindTools([weatherTool], { tool_choice: "get_weather" }).invoke([human]);
    expect(call.tool_calls).toEqual([{ name: "get_weather", args: { city: "Oslo" }, id: "call_1", type: "tool_call" }]);
    expect(upstream.requests.at(-1)?.body["tool_choice"]).toEqual({
      type: "function",
      function: { name: "get_weather" },
    });
    const result = new ToolMessage({ content: weatherResult, tool_call_id: "call_1" });
    const reply = await model.bindTools([weatherTool]).invoke([human, call, result]);
    expect(reply.content).toBe(`It is ${weatherResult}.`);
  });

  test("streams a tool call to LangChain whole", async () => {
    upstream.script(toolScript());
    const stream = await langchainChat(server, { model: "upstream-model" })
      .bindTools([weatherTool])
      .stream("How is the weather in Oslo?");
    const [first, ...rest] = await Array.fromAsync(stream);
    const whole = rest.reduce((sum, piece) => sum?.concat(piece), first);
    expect(whole?.tool_calls?.[0]).toMatchObject({ name: "get_weather", args: { city: "Oslo" } });
  });
});

describe("LangChain raises the openai package's error for", () => {
  async function thrownBy(call: () => Promise<unknown>): Promise<Error & { status?: number; code?: string }> {
    const thrown = await call().then(
      () => new Error("nothing was raised"),
      (error: unknown) => error,
    );
    if (!(thrown instanceof Error)) throw new Error(`raised no Error: ${String(thrown)}`);
    return thrown;
  }
  const invoke = (fields: Parameters<typeof langchainChat>[1] = {}) =>
    langchainChat(server, { model: "upstream-model", ...fields }).invoke("Hi");

  test("raises the openai package's error in LangChain for 400, 401, 403 and 404", async () => {
    const bad = await thrownBy(() => invoke({ temperature: 9 }));
    expect(bad).toBeInstanceOf(BadRequestError);
    expect(bad).toMatchObject({ status: 400, code: "invalid_request" });
    const key = await thrownBy(() => invoke({ apiKey: "sk_dev_hr_nonsense" }));
    expect(key).toBeInstanceOf(AuthenticationError);
    expect(key).toMatchObject({ status: 401, code: "invalid_api_key", lc_error_code: "MODEL_AUTHENTICATION" });
    const apiKey = await mintKey(server.dataDir, { scopes: ["models:read"] });
    expect(await thrownBy(() => invoke({ apiKey }))).toMatchObject({ status: 403, code: "insufficient_scope" });
    const model = await thrownBy(() => invoke({ model: "no-such-model" }));
    expect(model).toBeInstanceOf(NotFoundError);
    expect(model).toMatchObject({ status: 404, code: "model_not_found", lc_error_code: "MODEL_NOT_FOUND" });
  });

  async function keyWith(body: Record<string, unknown>): Promise<string> {
    const response = await server.request("/v1/keys", { body: { name: "limited", ...body } });
    return ((await response.json()) as { key: string }).key;
  }

  test("raises a RateLimitError for 429 in LangChain, and succeeds on a later retry", async () => {
    const apiKey = await keyWith({ rate_limit: 2, rate_limit_window: 1 });
    await invoke({ apiKey });
    await invoke({ apiKey });
    const limited = await thrownBy(() => invoke({ apiKey }));
    expect(limited).toBeInstanceOf(RateLimitError);
    expect(limited).toMatchObject({
      status: 429,
      code: "rate_limit_exceeded",
      lc_error_code: "MODEL_RATE_LIMIT",
    });
    expect((await invoke({ apiKey, maxRetries: 6 })).content).toBe("Hello world");
  });

  test("raises 403 insufficient_quota for an exhausted quota in LangChain, without a retry", async () => {
    const apiKey = await keyWith({ monthly_tokens: 10 });
    await invoke({ apiKey });
    const refused = () => server.logged("request").filter((entry) => entry["code"] === "insufficient_quota").length;
    const before = refused();
    const spent = await thrownBy(() => invoke({ apiKey, maxRetries: 6 }));
    expect(spent).toBeInstanceOf(PermissionDeniedError);
    expect(spent).toMatchObject({ status: 403, code: "insufficient_quota" });
    expect(refused() - before).toBe(1);
  });

  test("raises the openai package's error in LangChain for 502, 503 and 504", async () => {
    upstream.script((_request, res) => json(res, 500, {}));
    const failed = await thrownBy(() => invoke());
    expect(failed).toBeInstanceOf(InternalServerError);
    expect(failed).toMatchObject({ status: 502, code: "upstream_error" });
    upstream.script((_request, res) => json(res, 503, {}));
    expect(await thrownBy(() => invoke())).toMatchObject({ status: 503, code: "service_unavailable" });
    upstream.script(() => {});
    expect(await thrownBy(() => invoke())).toMatchObject({ status: 504, code: "upstream_timeout" });
  });

  test("raises the openai package's error in LangChain for a server that refuses connections", async () => {
    const gone = await startHeadrace();
    await gone[Symbol.asyncDispose]();
    const error = await thrownBy(() => langchainChat(gone, { model: "m" }).invoke("Hi"));
    expect(error).toBeInstanceOf(APIConnectionError);
  });

  test("raises the openai package's error in LangChain for a stream that fails after delivering text", async () => {
    const { script, clientHasBegun } = interruptedStream((_request, res) => void res.destroy());
    upstream.script(script);
    let delivered = "";
    const error = await thrownBy(async () => {
      for await (const piece of await langchainChat(server, { model: "upstream-model" }).stream("Hi")) {
        delivered += piece.content;
        if (delivered !== "") clientHasBegun();
      }
    });
    expect(delivered).toBe(wellBegun);
    expect(error).toMatchObject({ code: "upstream_error" });
  });
});

test("gives an access token the same rights in LangChain as its key", async () => {
  const response = await server.request("/v1/auth/token", { body: { api_key: server.key } });
  const { access_token: apiKey } = (await response.json()) as { access_token: string };
  const model = langchainChat(server, { model: "upstream-model", apiKey });
  expect((await model.invoke("Hi")).content).toBe("Hello world");
  const pieces = await Array.fromAsync(await model.stream("Hi"));
  expect(pieces.map((piece) => piece.content).join("")).toBe("Hello world");
});
