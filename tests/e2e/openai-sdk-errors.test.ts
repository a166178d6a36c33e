// Every error that a request can bring on itself, as the `openai` package raises it: its class, status, code and request id.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { join } from "node:path";
import type OpenAI from "openai";
import {
  APIConnectionError,
  APIError,
  AuthenticationError,
  BadRequestError,
  InternalServerError,
  NotFoundError,
  PermissionDeniedError,
} from "openai";
import { invalidApiKeyMessage } from "../../src/base/invalid-api-key.ts";
import { openDatabase } from "../../src/storage/sql/database.ts";
import { openaiClient } from "../support/clients.ts";
import { startHeadrace, type TestServer, until } from "../support/headrace.ts";
import { mintKey } from "../support/mint-key.ts";
import { expectBody, raised } from "../support/openai-errors.ts";
import { chatScript, chunk, json, type ScriptedUpstream, startUpstream } from "../support/scripted-upstream.ts";

const messages = [{ role: "user" as const, content: "Hi" }];
const request = { model: "upstream-model", messages };
const bodyLimit = 4096;

let upstream: ScriptedUpstream;
let server: TestServer;
let client: OpenAI;

beforeAll(async () => {
  upstream = await startUpstream();
  const limits = `limits: { body_bytes: ${bodyLimit}, messages: 8, depth: 16 }`;
  server = await startHeadrace({ yaml: `upstreams: [{ name: up, url: "${upstream.url}" }]\n${limits}\n` });
  client = openaiClient(server);
});
afterAll(async () => {
  await server[Symbol.asyncDispose]();
  await upstream[Symbol.asyncDispose]();
});

describe("raises a BadRequestError for 400 with the field and allowed values", () => {
  const wrong: [name: string, body: Record<string, unknown>, message: RegExp][] = [
    ["temperature", { temperature: 3 }, /temperature: must be a number from 0 to 2 \(got 3\)/],
    ["top_p", { top_p: -0.5 }, /top_p: must be a number from 0 to 1 \(got -0.5\)/],
    ["penalty", { frequency_penalty: -2.5 }, /frequency_penalty: must be a number from -2 to 2/],
    ["type", { max_tokens: "ten" }, /max_tokens: must be an integer/],
    ["messages", { messages: [] }, /messages: must be an array of at least 1 item/],
    [
      "many messages",
      { messages: Array.from({ length: 9 }, () => messages[0]) },
      /messages: .* 1 to 8 items .* 9 items/,
    ],
    ["role", { messages: [{ role: 5, content: "Hi" }] }, /messages\[0\]\.role: must be one of .*"assistant"/],
    ["content", { messages: [{ role: "user", content: 5 }] }, /messages\[0\]\.content: must be a string/],
    ["model", { model: null }, /model: must be a string/],
  ];
  for (const [name, body, message] of wrong) {
    test(name, async () => {
      const error = await raised(
        () => client.post("/chat/completions", { body: { ...request, ...body } }),
        BadRequestError,
      );
      await expectBody(server, error, 400, "invalid_request", "invalid_request_error");
      expect(error.message).toMatch(message);
      // The field that the message begins with.
      expect(error.message).toStartWith(`400 ${error.param}: `);
    });
  }

  test("raises a BadRequestError for JSON that is broken, too deep, or not an object", async () => {
    const headers = { "content-type": "application/json" };
    const deep = `{"model":"m","messages":${"[".repeat(40)}${"]".repeat(40)}}`;
    for (const body of ['{"model": "m",', "[]", '"text"', "", deep]) {
      const error = await raised(
        () => client.post("/chat/completions", { body: new TextEncoder().encode(body), headers }),
        BadRequestError,
      );
      await expectBody(server, error, 400, "invalid_request", "invalid_request_error");
    }
  });
});

test("raises a NotFoundError for an unknown model with the field model, and no field for a bad key", async () => {
  const unknown = await raised(() => client.chat.completions.create({ ...request, model: "nope" }), NotFoundError);
  expect(unknown).toMatchObject({ code: "model_not_found", param: "model" });
  const refused = await raised(() => openaiClient(server, { apiKey: "sk-x" }).models.list(), AuthenticationError);
  expect(refused.error).not.toHaveProperty("param");
});

describe("a model server's error code reaches the client with its field", () => {
  const fault = (error: Record<string, unknown>) => ({ error: { message: "No.", ...error } });
  test.each<[string, number, unknown, string, string | undefined]>([
    [
      "OpenAI's of a context that is too short",
      400,
      fault({ code: "context_length_exceeded", param: "messages", type: "invalid_request_error" }),
      "context_length_exceeded",
      "messages",
    ],
    ["Azure's of its filter", 400, fault({ code: "content_filter", param: "prompt" }), "content_filter", "prompt"],
    ["OpenAI's moderation of images", 400, fault({ code: "moderation_blocked" }), "moderation_blocked", undefined],
    ["a content policy", 422, fault({ code: "content_policy_violation" }), "content_policy_violation", undefined],
    [
      "a value that a model does not take",
      400,
      fault({ code: "unsupported_value", param: "messages[0].role" }),
      "unsupported_value",
      "messages[0].role",
    ],
    [
      "llama.cpp's type",
      400,
      fault({ code: 400, type: "exceed_context_size_error" }),
      "context_length_exceeded",
      undefined,
    ],
    [
      "vLLM's words",
      400,
      { object: "error", message: "This model's maximum context length is 8 tokens.", code: 400, param: "messages" },
      "context_length_exceeded",
      "messages",
    ],
    ["any other", 400, fault({ code: "sk-secret-of-the-upstream" }), "invalid_request", undefined],
    ["a field that is none", 400, fault({ param: "see http://10.0.0.1/x" }), "invalid_request", undefined],
    ["a field that is a secret", 400, fault({ param: "sk-0123456789abcdef" }), "invalid_request", undefined],
  ])("%s", async (_, status, body, code, param) => {
    upstream.script((_request, res) => json(res, status, body));
    const error = await raised(() => client.chat.completions.create(request), BadRequestError);
    upstream.script(chatScript());
    await expectBody(server, error, 400, code, "invalid_request_error", "invalid_request");
    expect((error.error as { param?: string }).param).toBe(param);
  });

  test("passes a model server's error code to the client in an open stream", async () => {
    upstream.script((_request, res) => {
      res.writeHead(200, { "content-type": "text/event-stream" });
      res.write(chunk({ role: "assistant", content: "a" }));
      res.end(`data: ${JSON.stringify(fault({ code: "content_filter", message: "Stopped." }))}\n\n`);
    });
    const stream = await client.chat.completions.create({ ...request, stream: true });
    const error = await raised(async () => {
      for await (const _ of stream);
    }, APIError);
    upstream.script(chatScript());
    expect(error).toMatchObject({ code: "content_filter", type: "invalid_request_error" });
    expect(error.error).toMatchObject({ message: "Stopped." });
    expect(error.error).not.toHaveProperty("param");
  });
});

test("raises an AuthenticationError with the same message for every bad key", async () => {
  const everything = ["chat:read", "chat:write", "models:read", "usage:read", "keys:manage"] as const;
  const past = Math.floor(Date.now() / 1000) - 60;
  const keys = {
    malformed: "sk-nonsense",
    "made up": "sk_dev_hr_000000000000000000000000000000000000",
    unknown: await elsewhere(),
    expired: await mintKey(server.dataDir, { scopes: everything, expiresAt: past }),
    revoked: await mintKey(server.dataDir, { scopes: everything, revokedAt: past }),
  };
  for (const [name, apiKey] of Object.entries(keys)) {
    const error = await raised(() => openaiClient(server, { apiKey }).models.list(), AuthenticationError);
    await expectBody(server, error, 401, "invalid_api_key", "invalid_request_error");
    expect(`${name}: ${error.message}`).toBe(`${name}: 401 ${invalidApiKeyMessage}`);
    expect(error.headers?.get("www-authenticate")).toStartWith("Bearer");
    expect(server.logText()).not.toContain(apiKey);
  }
  expect(upstream.requests.filter((entry) => entry.headers.authorization !== undefined)).toEqual([]);
});

test("answers 401 for a good key in the wrong place", async () => {
  await using production = await startHeadrace({ flags: { mode: "production", publicUrl: "https://ai.example.com" } });
  const everything = ["chat:write", "models:read"] as const;
  const development = await mintKey(production.dataDir, { scopes: everything, environment: "dev" });
  expect((await openaiClient(production).models.list()).data).toEqual([]);
  for (const wrong of [
    openaiClient(production, { apiKey: development }),
    openaiClient(server, { defaultHeaders: { "x-api-key": production.key } }),
  ]) {
    const error = await raised(() => wrong.models.list(), AuthenticationError);
    expect(error.message).toBe(`401 ${invalidApiKeyMessage}`);
  }
  for (const [elsewhere, why] of [
    [openaiClient(server, { defaultHeaders: { "x-forwarded-for": "203.0.113.7" } }), /a proxy or tunnel passed/],
    [openaiClient(server, { defaultHeaders: { host: "headrace.example.com" } }), /name the host in allowed_hosts/],
  ] as const) {
    const error = await raised(() => elsewhere.models.list(), AuthenticationError);
    expect(error.message).toMatch(/^401 Invalid API key provided\. Incorrect API key provided: /);
    expect(error.message).toMatch(why);
  }
  const same = openaiClient(server, { defaultHeaders: { "x-api-key": server.key } });
  expect((await same.models.list()).data).toHaveLength(1);
});

/** A well-formed key that another installation made. */
async function elsewhere(): Promise<string> {
  await using other = await startHeadrace();
  return other.key;
}

test("raises a PermissionDeniedError for 403 with the missing scope", async () => {
  const reader = openaiClient(server, { apiKey: await mintKey(server.dataDir, { scopes: ["models:read"] }) });
  expect((await reader.models.list()).data.length).toBeGreaterThan(0);
  for (const call of [
    () => reader.chat.completions.create(request),
    () => reader.chat.completions.create({ ...request, stream: true }),
    () => reader.completions.create({ model: "upstream-model", prompt: "Hi" }),
    () => reader.embeddings.create({ model: "upstream-model", input: "Hi" }),
  ]) {
    const error = await raised(call, PermissionDeniedError);
    await expectBody(server, error, 403, "insufficient_scope", "permission_error");
    expect(error.message).toBe("403 API key lacks required scope: chat:write");
  }
  const writer = openaiClient(server, { apiKey: await mintKey(server.dataDir, { scopes: ["chat:write"] }) });
  expect((await writer.chat.completions.create(request)).choices).toHaveLength(1);
  for (const call of [() => writer.models.list(), () => writer.models.retrieve("upstream-model")]) {
    const error = await raised(call, PermissionDeniedError);
    expect(error.message).toBe("403 API key lacks required scope: models:read");
  }
});

test("raises a NotFoundError for an unknown model, one of another environment, and an unknown endpoint", async () => {
  const tester = openaiClient(server, {
    apiKey: await mintKey(server.dataDir, { scopes: ["chat:write", "models:read"], environment: "test" }),
  });
  expect((await tester.models.list()).data).toEqual([]);
  for (const call of [
    () => client.chat.completions.create({ ...request, model: "no-such-model" }),
    () => client.embeddings.create({ model: "no-such-model", input: "Hi" }),
    () => client.completions.create({ model: "no-such-model", prompt: "Hi" }),
    () => client.models.retrieve("no-such/model"),
    () => tester.models.retrieve("upstream-model"),
    () => tester.chat.completions.create(request),
  ]) {
    const error = await raised(call, NotFoundError);
    await expectBody(server, error, 404, "model_not_found", "invalid_request_error");
  }
  const error = await raised(() => client.get("/no/such/endpoint"), NotFoundError);
  await expectBody(server, error, 404, "not_found", "invalid_request_error");
  const forgotten = openaiClient(server, { baseURL: server.url });
  expect((await raised(() => forgotten.chat.completions.create(request), NotFoundError)).message).toContain("/v1");
});

test("raises an APIError for 405 with the method to use", async () => {
  const error = await raised<APIError>(() => client.put("/chat/completions", { body: request }), APIError);
  await expectBody(server, error, 405, "method_not_allowed", "invalid_request_error");
  expect(error.headers?.get("allow")).toBe("POST, GET, HEAD");
});

test("raises an APIError for 413 with the limit", async () => {
  const large = { ...request, messages: [{ role: "user" as const, content: "x".repeat(2 * bodyLimit) }] };
  const error = await raised(() => client.chat.completions.create(large), APIError);
  await expectBody(server, error, 413, "request_too_large", "invalid_request_error");
  expect(error.message).toContain(`${bodyLimit} bytes`);
  const after = await client.chat.completions.create(request);
  expect(after.choices).toHaveLength(1);
});

test("raises an APIError for 415 with the content type to send", async () => {
  const body = new TextEncoder().encode(JSON.stringify(request));
  const calls = [
    () => client.post("/chat/completions", { body, headers: { "content-type": "text/plain" } }),
    () =>
      client.post("/chat/completions", {
        body: Bun.gzipSync(body),
        headers: { "content-type": "application/json", "content-encoding": "compress" },
      }),
  ];
  for (const call of calls) {
    const error = await raised(call, APIError);
    await expectBody(server, error, 415, "unsupported_media_type", "invalid_request_error");
  }
});

test("raises an InternalServerError for 500 without details of the fault", async () => {
  await using broken = await startHeadrace();
  const db = await openDatabase(join(broken.dataDir, "headrace.db"));
  await db.unsafe("DROP TABLE usage_totals");
  await db.close();
  const error = await raised(() => openaiClient(broken, { maxRetries: 0 }).get("/usage"), InternalServerError);
  expect(error).toMatchObject({ status: 500, code: "internal_error", type: "api_error" });
  expect(error.message).not.toMatch(/usage_totals|sql|\.ts/i);
  const line = await until(
    () => broken.logged("request").find((entry) => entry["id"] === error.requestID),
    "the log line",
  );
  expect(String(line["detail"])).toContain("usage_totals");
});

test("raises an APIConnectionError for a server that refuses connections", async () => {
  const gone = await startHeadrace();
  await gone[Symbol.asyncDispose]();
  const error = await raised(() => openaiClient(gone).models.list(), APIConnectionError);
  expect(error.status).toBeUndefined();
});
