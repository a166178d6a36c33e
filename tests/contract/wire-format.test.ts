// The wire format as clients see it, request and answer, status and headers: golden files for each operation and error.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { join } from "node:path";
import { errorCodes, GatewayError } from "../../src/base/errors.ts";
import { errorAnswer } from "../../src/http/exchange/errors.ts";
import { openDatabase } from "../../src/storage/sql/database.ts";
import { startHeadrace, type TestServer } from "../support/headrace.ts";
import {
  chatScript,
  json,
  type Script,
  type ScriptedUpstream,
  startUpstream,
  upstreamYaml,
  usage,
} from "../support/scripted-upstream.ts";
import { expectGolden, withoutVolatileParts } from "./golden.ts";

const chat = { model: "upstream-model", messages: [{ role: "user", content: "Hello there" }] };
const vectors = [
  [0.5, -1.25, 3],
  [0, 1e-7, -0.1],
];

let upstream: ScriptedUpstream;
let server: TestServer;

beforeAll(async () => {
  upstream = await startUpstream();
  upstream.serves([
    { id: "upstream-model", object: "model", created: 1_700_000_000, owned_by: "scripted" },
    { id: "org/embedder", object: "model", created: 1_700_000_000, owned_by: "scripted", max_model_len: 512 },
  ]);
  const yaml = upstreamYaml(
    upstream,
    `limits: { body_bytes: 2048 }
models:
  - id: declared
    capabilities: { chat: true, completion: false, embeddings: false }
    context: 4096
    owned_by: us
    deployments: [{ upstream: up, model: upstream-model }]
`,
  );
  server = await startHeadrace({ yaml });
});

afterAll(async () => {
  await server[Symbol.asyncDispose]();
  await upstream[Symbol.asyncDispose]();
});

async function exchange(
  path: string,
  init: { method?: string; body?: unknown; headers?: Record<string, string> } = {},
): Promise<string> {
  const response = await server.request(path, init);
  const method = init.method ?? (init.body === undefined ? "GET" : "POST");
  const sent =
    init.body === undefined ? "" : `${typeof init.body === "string" ? init.body : JSON.stringify(init.body)}\n`;
  const headers = [...response.headers].map(([name, value]) => `${name}: ${value}`).sort();
  const answer = `${response.status}\n${headers.join("\n")}\n\n${await response.text()}\n`;
  return withoutVolatileParts(`${method} ${path}\n${sent}\n${answer}`).replaceAll(
    join(server.url, "/"),
    "http://<server>/",
  );
}

/** A model server that gives no id, no time, no object and no usage. */
const bare: Script = (_request, res) =>
  json(res, 200, { choices: [{ index: 0, message: { role: "assistant", content: "Hi" }, finish_reason: "stop" }] });

const embeddings =
  (encode: (values: number[]) => unknown): Script =>
  (_request, res) =>
    json(res, 200, {
      object: "list",
      data: vectors.map((values, index) => ({ object: "embedding", index, embedding: encode(values) })),
      model: "upstream-model",
      usage: { prompt_tokens: 4, total_tokens: 4 },
    });
const asFloats = embeddings((values) => values);
const asBase64 = embeddings((values) => Buffer.from(new Float32Array(values).buffer).toString("base64"));

const legacy: Script = (request, res) => {
  const head = { id: "cmpl-up", object: "text_completion", created: 1_700_000_001, model: "upstream-model" };
  const choice = (text: string, finish_reason: string | null) => ({ index: 0, text, logprobs: null, finish_reason });
  if (request.body["stream"] !== true) return json(res, 200, { ...head, choices: [choice("Hello", "stop")], usage });
  res.writeHead(200, { "content-type": "text/event-stream" });
  for (const data of [
    { ...head, choices: [choice("Hel", null)] },
    { ...head, choices: [choice("lo", "stop")] },
    { ...head, choices: [], usage },
  ]) {
    res.write(`data: ${JSON.stringify(data)}\n\n`);
  }
  res.end("data: [DONE]\n\n");
};

const withUsage = { stream: true, stream_options: { include_usage: true } };
const embed = { model: "upstream-model", input: ["one", "two"] };

const answers: readonly [name: string, script: Script, path: string, body: unknown][] = [
  ["chat", chatScript(), "/v1/chat/completions", chat],
  ["chat-renamed", chatScript(), "/v1/chat/completions", { ...chat, model: "declared" }],
  ["chat-from-bare-server", bare, "/v1/chat/completions", chat],
  ["chat-streamed", chatScript(), "/v1/chat/completions", { ...chat, stream: true }],
  ["chat-streamed-with-usage", chatScript(), "/v1/chat/completions", { ...chat, ...withUsage }],
  ["chat-streamed-renamed", chatScript(), "/v1/chat/completions", { ...chat, ...withUsage, model: "declared" }],
  ["completion", legacy, "/v1/completions", { model: "upstream-model", prompt: "Say" }],
  ["completion-streamed", legacy, "/v1/completions", { model: "upstream-model", prompt: "Say", stream: true }],
  [
    "completion-streamed-with-usage",
    legacy,
    "/v1/completions",
    { model: "upstream-model", prompt: "Say", ...withUsage },
  ],
  ["embeddings", asFloats, "/v1/embeddings", embed],
  ["embeddings-from-base64", asBase64, "/v1/embeddings", { ...embed, encoding_format: "float" }],
  ["embeddings-base64", asBase64, "/v1/embeddings", { ...embed, encoding_format: "base64" }],
  ["embeddings-base64-from-floats", asFloats, "/v1/embeddings", { ...embed, encoding_format: "base64" }],
  ["models", chatScript(), "/v1/models", undefined],
  ["model", chatScript(), "/v1/models/declared", undefined],
  ["model-with-slash", chatScript(), "/v1/models/org/embedder", undefined],
  ["healthz", chatScript(), "/healthz", undefined],
  ["readyz", chatScript(), "/readyz", undefined],
];

test.each(answers)("returns the golden answer %s", async (name, script, path, body) => {
  upstream.script(script);
  expectGolden(`answers/${name}.http`, await exchange(path, body === undefined ? {} : { body }));
});

test("returns the same embeddings in both encodings, whichever the model server sends", async () => {
  const numbers = async (script: Script, encoding: "float" | "base64") => {
    upstream.script(script);
    const response = await server.request("/v1/embeddings", { body: { ...embed, encoding_format: encoding } });
    const { data } = (await response.json()) as { data: { embedding: number[] | string }[] };
    return data.map(({ embedding }) => {
      if (typeof embedding !== "string") return embedding.map(Math.fround);
      expect(encoding).toBe("base64");
      const bytes = Buffer.from(embedding, "base64");
      return Array.from({ length: bytes.length / 4 }, (_, i) => bytes.readFloatLE(i * 4));
    });
  };
  const expected = vectors.map((values) => values.map(Math.fround));
  for (const script of [asFloats, asBase64]) {
    for (const encoding of ["float", "base64"] as const) expect(await numbers(script, encoding)).toEqual(expected);
  }
});

const refusing =
  (status: number, headers: Record<string, string> = {}): Script =>
  (_request, res) =>
    json(res, status, { error: { message: `upstream says ${status}` } }, headers);

const failures: readonly [
  name: string,
  script: Script,
  path: string,
  init: { method?: string; body?: unknown; headers?: Record<string, string> },
][] = [
  ["invalid_request", chatScript(), "/v1/chat/completions", { body: { ...chat, temperature: 3 } }],
  ["invalid_request-json", chatScript(), "/v1/chat/completions", { body: '{"model":' }],
  ["invalid_request-upstream", refusing(400), "/v1/chat/completions", { body: chat }],
  ["invalid_api_key", chatScript(), "/v1/models", { headers: { authorization: "Bearer sk_dev_hr_wrong" } }],
  ["model_not_found", chatScript(), "/v1/chat/completions", { body: { ...chat, model: "nope" } }],
  ["not_found", chatScript(), "/v1/nope", {}],
  ["not_found-without-v1", chatScript(), "/models", {}],
  ["method_not_allowed", chatScript(), "/v1/models", { method: "DELETE" }],
  [
    "request_too_large",
    chatScript(),
    "/v1/chat/completions",
    { body: { ...chat, user: "x".repeat(900), x: "y".repeat(1200) } },
  ],
  [
    "unsupported_media_type",
    chatScript(),
    "/v1/chat/completions",
    { body: "{}", headers: { "content-type": "text/plain" } },
  ],
  ["upstream_error", refusing(500), "/v1/chat/completions", { body: chat }],
  ["upstream_error-credentials", refusing(401), "/v1/chat/completions", { body: chat }],
  ["upstream_timeout", refusing(504), "/v1/chat/completions", { body: chat }],
  ["service_unavailable", refusing(503, { "retry-after": "7" }), "/v1/chat/completions", { body: chat }],
  ["service_unavailable-429", refusing(429), "/v1/chat/completions", { body: { ...chat, stream: true } }],
];

test.each(failures)("returns the golden error %s", async (name, script, path, init) => {
  upstream.script(script);
  expectGolden(`errors/${name}.http`, (await exchange(path, init)).replace(/"[xy]{900,}"/g, '"…"'));
});

test("returns the golden 401 for a missing key", async () => {
  const response = await fetch(`${server.url}/v1/models`);
  const headers = [...response.headers].map(([name, value]) => `${name}: ${value}`).sort();
  const text = `GET /v1/models\n\n${response.status}\n${headers.join("\n")}\n\n${await response.text()}\n`;
  expectGolden("errors/invalid_api_key-missing.http", withoutVolatileParts(text));
});

test("returns the golden 500 for a gateway fault, and logs the reason", async () => {
  await using broken = await startHeadrace();
  const db = await openDatabase(join(broken.dataDir, "headrace.db"));
  await db.unsafe("ALTER TABLE usage_totals RENAME TO usage_totals_elsewhere");
  await db.close();
  const response = await broken.request("/v1/usage");
  const headers = [...response.headers].map(([name, value]) => `${name}: ${value}`).sort();
  const text = `GET /v1/usage\n\n${response.status}\n${headers.join("\n")}\n\n${await response.text()}\n`;
  expectGolden("errors/internal_error.http", withoutVolatileParts(text));
  expect(broken.logged("request")).toContainEqual(
    expect.objectContaining({
      level: "error",
      code: "internal_error",
      detail: expect.stringContaining("usage_totals"),
    }),
  );
});

test("gives every error code its golden status, headers and body", async () => {
  let text = "";
  for (const code of errorCodes) {
    const message = code === "insufficient_scope" ? "API key lacks required scope: chat:read" : `Message of ${code}`;
    const retries = code === "rate_limit_exceeded" || code === "service_unavailable";
    const error = new GatewayError(code, message, {
      detail: "SECRET DETAIL",
      cause: new Error("SECRET CAUSE"),
      ...(retries ? { retryAfterSeconds: 1.5 } : {}),
    });
    const { status, headers, body } = errorAnswer(error);
    const lines = Object.entries({ ...headers, "x-request-id": "req_1" }).map(([name, value]) => `${name}: ${value}`);
    text += `${status}\n${lines.sort().join("\n")}\n\n${body}\n\n`;
  }
  expect(text).not.toContain("SECRET");
  expectGolden("errors/every-code.http", text);
});
