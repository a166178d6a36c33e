// The OpenAPI document describes exactly what is served: structure, routes, and the answers of a running server.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { engineErrorCodes, errorCodes } from "../../src/base/errors.ts";
import { isDescribed, restName } from "../../src/http/exchange/route.ts";
import { createRoutes } from "../../src/http/routes.ts";
import { startHeadrace, type TestServer } from "../support/headrace.ts";
import { makeOperatorKey } from "../support/operator-key.ts";
import {
  chatScript,
  chunk,
  json,
  type ScriptedUpstream,
  startUpstream,
  upstreamYaml,
} from "../support/scripted-upstream.ts";
import {
  type ApiDocument,
  answerMismatches,
  describedAnswer,
  mismatches,
  resolverOf,
  type Schema,
} from "./json-schema.ts";

interface Operation {
  operationId: string;
  tags: string[];
  description?: string;
  security: Record<string, string[]>[];
  parameters?: { name: string; in: string; required: boolean }[];
  requestBody?: { required: boolean; content: Record<string, { schema: Schema; example?: unknown }> };
  responses: Record<string, Schema>;
}

interface Document extends ApiDocument<Operation> {
  openapi: string;
  info: { title: string; version: string };
  components: ApiDocument["components"] & { securitySchemes: Record<string, Record<string, string>> };
}

let upstream: ScriptedUpstream;
let server: TestServer;
let document: Document;
let resolve: (reference: string) => Schema;

beforeAll(async () => {
  upstream = await startUpstream();
  server = await startHeadrace({ yaml: upstreamYaml(upstream) });
  document = (await (await fetch(`${server.url}/openapi.json`)).json()) as Document;
  resolve = resolverOf(document);
});

afterAll(async () => {
  await server[Symbol.asyncDispose]();
  await upstream[Symbol.asyncDispose]();
});

function operations(): { path: string; method: string; operation: Operation }[] {
  return Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ path, method, operation })),
  );
}

describe("structure of the OpenAPI document", () => {
  test("has OpenAPI version 3.1, a title and a version", () => {
    expect(document.openapi).toMatch(/^3\.1\.\d+$/);
    expect(document.info.title).toBe("Headrace");
    expect(document.info.version).toMatch(/^\d+\.\d+\.\d+/);
  });

  test("resolves every reference, and uses every schema and response", () => {
    const text = JSON.stringify(document);
    const references = [...text.matchAll(/"\$ref":"([^"]*)"/g)].map((match) => match[1] ?? "");
    for (const reference of references) resolve(reference);
    const { schemas, responses } = document.components;
    const kept = [
      ...Object.keys(schemas).map((name) => `#/components/schemas/${name}`),
      ...Object.keys(responses).map((name) => `#/components/responses/${name}`),
    ];
    expect([...new Set(references)].sort()).toEqual(kept.sort());
    expect(text).not.toContain("$defs");
    expect(text).not.toContain('"$schema"');
  });

  test("defines each shared error response once, with each of its codes once", () => {
    const shared = Object.values(document.components.responses);
    const own = operations().flatMap(({ operation }) =>
      Object.entries(operation.responses).flatMap(([status, answer]) =>
        Number(status) < 400 || "$ref" in answer ? [] : [answer],
      ),
    );
    const texts = [...shared, ...own].map((answer) => JSON.stringify(answer));
    expect(new Set(texts).size).toBe(texts.length);
    for (const { description } of shared) {
      const codes = [...String(description).matchAll(/^`(\w+)`: /gm)].map(([, code]) => code);
      expect(new Set(codes).size).toBe(codes.length);
    }
  });

  test("gives every operation a unique name, described answers, known security and declared path parameters", () => {
    const names = operations().map(({ operation }) => operation.operationId);
    expect(new Set(names).size).toBe(names.length);
    for (const { path, operation } of operations()) {
      expect(Object.keys(operation.responses)).not.toHaveLength(0);
      for (const [status, response] of Object.entries(operation.responses)) {
        expect(status).toMatch(/^[1-5]\d\d$/);
        const reference = response["$ref"];
        const answer = typeof reference === "string" ? resolve(reference) : response;
        expect(answer["description"]).toBeString();
        expect(answer["description"]).not.toBe("");
      }
      for (const requirement of operation.security) {
        for (const name of Object.keys(requirement)) expect(document.components.securitySchemes).toHaveProperty(name);
        const isForPeople = /For people: /.test(operation.description ?? "");
        if (isForPeople) expect(operation.security, "a key is no person").toEqual([{ bearer: [] }]);
      }
      const inPath = [...path.matchAll(/\{(\w+)\}/g)].map((match) => match[1] ?? "");
      const declared = (operation.parameters ?? []).filter((parameter) => parameter.in === "path");
      expect(declared.map((parameter) => parameter.name)).toEqual(inPath);
      expect(declared.every((parameter) => parameter.required)).toBe(true);
    }
  });

  test("lists exactly the error codes, engines' included, and allows no other member", () => {
    const error = resolve("#/components/schemas/Error") as { properties: { error: Schema } };
    const inner = error.properties.error as { additionalProperties: boolean; properties: { code: { enum: string[] } } };
    expect(inner.additionalProperties).toBe(false);
    expect(inner.properties.code.enum).toEqual([...errorCodes, ...engineErrorCodes]);
  });

  test("has request examples that fit their schemas", () => {
    for (const { operation } of operations()) {
      const media = operation.requestBody?.content["application/json"];
      if (media?.example) expect(mismatches(media.example, media.schema, resolve)).toEqual([]);
    }
  });
});

describe("routes of the OpenAPI document", () => {
  const all = createRoutes(new Proxy({}, { get: () => undefined }) as Parameters<typeof createRoutes>[0]);
  const table = all.filter(isDescribed);

  test("documents exactly the served routes with their access", () => {
    const documented = operations().map(({ path, method, operation }) => {
      const access = operation.security.length > 0 ? "key" : "public";
      return `${method.toUpperCase()} ${path} ${access}`;
    });
    const served = table.map((route) => {
      const path = route.path.replace(/\*$/, `{${restName(route)}}`).replace(/:(\w+)/g, "{$1}");
      return `${route.method} ${path} ${route.access === "public" ? "public" : "key"}`;
    });
    expect(documented.sort()).toEqual(served.sort());
  });

  test("serves every documented operation", async () => {
    for (const { path, method } of operations()) {
      const url = server.url + path.replace(/\{\w+\}/g, "upstream-model");
      const response = await fetch(url, { method: method.toUpperCase(), redirect: "manual" });
      // 400 and 415: a public one that wants a form or a body; 403: one that wants a page of ours.
      expect([200, 303, 400, 401, 403, 415]).toContain(response.status);
    }
  });

  test("serves the document and the reference page without credentials", async () => {
    for (const path of ["/openapi.json", "/docs/api"]) expect((await fetch(server.url + path)).status).toBe(200);
    // Whoever opens the server's address finds the way to sign in.
    expect(await (await fetch(server.url)).text()).toContain("<h1>Sign in</h1>");
  });
});

const chat = { model: "upstream-model", messages: [{ role: "user", content: "Hi" }] };
const vector = (_request: unknown, res: Parameters<typeof json>[0]) =>
  json(res, 200, {
    object: "list",
    data: [{ object: "embedding", index: 0, embedding: [0.25, -1] }],
    model: "upstream-model",
    usage: { prompt_tokens: 1, total_tokens: 1 },
  });
const text = (_request: unknown, res: Parameters<typeof json>[0]) =>
  json(res, 200, {
    id: "cmpl-up",
    object: "text_completion",
    created: 1_700_000_001,
    model: "upstream-model",
    choices: [{ index: 0, text: "Hello", finish_reason: "stop" }],
  });

describe("answers of the running server fit their schemas", () => {
  const cases = [
    ["post", "/v1/chat/completions", chat, chatScript(), "200"],
    ["post", "/v1/chat/completions", { ...chat, temperature: 9 }, chatScript(), "400"],
    ["post", "/v1/chat/completions", { ...chat, model: "nope" }, chatScript(), "404"],
    ["post", "/v1/completions", { model: "upstream-model", prompt: "Hi" }, text, "200"],
    ["post", "/v1/embeddings", { model: "upstream-model", input: "Hi" }, vector, "200"],
    ["post", "/v1/embeddings", { model: "upstream-model", input: "Hi", encoding_format: "base64" }, vector, "200"],
    ["get", "/v1/models", undefined, chatScript(), "200"],
    ["get", "/v1/models/{model}", undefined, chatScript(), "200"],
    ["get", "/v1/model-status", undefined, chatScript(), "200"],
    ["get", "/v1/refusals", undefined, chatScript(), "200"],
    ["get", "/healthz", undefined, chatScript(), "200"],
    ["get", "/readyz", undefined, chatScript(), "200"],
  ] as const;

  test.each(cases)("returns an answer that fits its schema: %s %s %o", async (method, path, body, script, status) => {
    upstream.script(script);
    const response = await server.request(
      path.replace("{model}", "upstream-model"),
      body === undefined ? {} : { body },
    );
    expect(String(response.status)).toBe(status);
    expect(answerMismatches(document, [method, path, response.status], await response.json())).toEqual([]);
    expect(response.headers.get("x-request-id")).toMatch(/^req_/);
  });

  test("completes usage without a total, whole and streamed", async () => {
    const usage = { prompt_tokens: 3, completion_tokens: 2 };
    upstream.script((request, res) => {
      if (request.body["stream"] !== true) {
        const choices = [{ index: 0, message: { role: "assistant", content: "x" }, finish_reason: "stop" }];
        return json(res, 200, {
          id: "a",
          object: "chat.completion",
          created: 1,
          model: "upstream-model",
          choices,
          usage,
        });
      }
      res.writeHead(200, { "content-type": "text/event-stream" });
      res.write(chunk({ role: "assistant", content: "x" }, "stop"));
      res.end(`${chunk({}, null, { choices: [], usage })}data: [DONE]\n\n`);
    });
    const plain = await (await server.request("/v1/chat/completions", { body: chat })).json();
    expect(plain.usage).toMatchObject({ ...usage, total_tokens: 5 });
    const body = { ...chat, stream: true, stream_options: { include_usage: true } };
    const events = (await (await server.request("/v1/chat/completions", { body })).text()).trim().split("\n\n");
    expect(JSON.parse(events.at(-2)?.slice("data: ".length) ?? "").usage).toMatchObject({ ...usage, total_tokens: 5 });
  });

  test("streams events that fit the schema of the event stream", async () => {
    upstream.script(chatScript());
    const body = { ...chat, stream: true, stream_options: { include_usage: true } };
    const events = (await (await server.request("/v1/chat/completions", { body })).text()).trim().split("\n\n");
    const schema = describedAnswer(document, ["post", "/v1/chat/completions", 200])?.["text/event-stream"]?.schema;
    if (!schema) throw new Error("The events of a stream are not described");
    expect(events.length).toBeGreaterThan(3);
    for (const event of events.slice(0, -1)) {
      expect(mismatches(JSON.parse(event.slice("data: ".length)), schema, resolve)).toEqual([]);
    }
  });

  test("documents every status of a documented operation", async () => {
    upstream.script((_request, res) => json(res, 500, {}));
    const seen: [string, Record<string, string>, unknown][] = [
      ["401", { authorization: "Bearer nonsense" }, chat],
      ["415", { "content-type": "text/plain" }, chat],
      ["400", {}, {}],
      ["404", {}, { ...chat, model: "nope" }],
      ["502", {}, chat],
    ];
    const responses = document.paths["/v1/chat/completions"]?.["post"]?.responses ?? {};
    for (const [status, headers, body] of seen) {
      const response = await server.request("/v1/chat/completions", { body, headers });
      expect(String(response.status)).toBe(status);
      const answer = ["post", "/v1/chat/completions", response.status] as const;
      expect(answerMismatches(document, answer, await response.json())).toEqual([]);
    }
    expect(Object.keys(responses).sort()).toEqual([
      "200",
      "400",
      "401",
      "403",
      "404",
      "413",
      "415",
      "429",
      "500",
      "502",
      "503",
      "504",
    ]);
  });

  test("documents the 503 of readiness", () => {
    expect(document.paths["/readyz"]?.["get"]?.responses).toHaveProperty("503");
  });
});

test("marks a body as required exactly where a request without one is refused", async () => {
  const operator = await makeOperatorKey(server.dataDir);
  const said: Record<string, boolean> = {};
  const found: Record<string, boolean> = {};
  for (const [path, operations] of Object.entries(document.paths)) {
    for (const [method, { requestBody, security }] of Object.entries(operations)) {
      // What an id names is looked for before the body is read, and pages have tests of their own.
      if (!requestBody || path.includes("{") || security.length === 0 || !path.startsWith("/v1/")) continue;
      const ask = (key: string) =>
        fetch(server.url + path, { method: method.toUpperCase(), headers: { authorization: `Bearer ${key}` } });
      const first = await ask(server.key);
      const { status } = first.status === 403 ? await ask(operator) : first;
      // These are for people who are signed in.
      if (status === 403) continue;
      const name = `${method} ${path}`;
      said[name] = requestBody.required;
      found[name] = status === 400 || status === 415;
    }
  }
  expect(Object.keys(said).length).toBeGreaterThan(25);
  expect(found).toEqual(said);
});

test("rotates a key without a body, as documented", async () => {
  expect(document.paths["/v1/keys/{id}/rotate"]?.["post"]?.requestBody?.required).toBe(false);
  const made = await server.request("/v1/keys", { body: { name: "rotated", scopes: ["usage:read"] } });
  const { id } = (await made.json()) as { id: string };
  const headers = { authorization: `Bearer ${server.key}` };
  expect((await fetch(`${server.url}/v1/keys/${id}/rotate`, { method: "POST", headers })).status).toBe(200);
});

test.each([
  ["/v1/fim/completions", "POST /v1/completions"],
  ["/v1beta/models/gemini-2.5-flash:generateContent", "POST /v1/chat/completions"],
  ["/v1beta/models/gemini-2.5-flash:streamGenerateContent?alt=sse", "POST /v1/chat/completions"],
  ["/v1/models/gemini-2.5-flash:generateContent", "POST /v1/chat/completions"],
])("documents a path that replaces %s", async (path, instead) => {
  const answer = await server.request(path, { body: {} });
  const { error } = (await answer.json()) as { error: { message: string } };
  expect([answer.status, error.message]).toEqual([404, expect.stringContaining(instead)]);
  expect(error.message).not.toContain("Did you mean");
});
