// Errors as Anthropic's clients read them, and those of a model server with Anthropic's API as clients of every format do.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { startHeadrace, type TestServer } from "../support/headrace.ts";
import { json, type ScriptedUpstream, startUpstream } from "../support/scripted-upstream.ts";

let upstream: ScriptedUpstream;
let server: TestServer;

beforeAll(async () => {
  upstream = await startUpstream();
  server = await startHeadrace({
    yaml: `upstreams:\n  - { name: anthropic, url: "${upstream.url}", api: messages, api_key: k }\n`,
  });
});
afterAll(async () => {
  await server[Symbol.asyncDispose]();
  await upstream[Symbol.asyncDispose]();
});

const version = { "anthropic-version": "2023-06-01" };
const model = "upstream-model";
const messages = [{ role: "user", content: "Hi" }];
const asked = {
  "/v1/messages": { model, max_tokens: 9, messages },
  "/v1/chat/completions": { model, messages },
  "/v1/responses": { model, input: "Hi", store: false },
} as const;
type Path = keyof typeof asked;
const ask = (path: Path, stream = false) => server.request(path, { body: { ...asked[path], stream } });

const fails = (status: number, type: string, message: string) =>
  upstream.script((_request, res) => json(res, status, { type: "error", error: { type, message } }));
/** In a stream that has begun. */
const breaks = (type: string, message: string) =>
  upstream.script((_request, res) => {
    const usage = { input_tokens: 3, output_tokens: 1 };
    const begun = { id: "msg_1", type: "message", role: "assistant", model, content: [], stop_reason: null, usage };
    res.writeHead(200, { "content-type": "text/event-stream" });
    for (const event of [
      { type: "message_start", message: begun },
      { type: "content_block_start", index: 0, content_block: { type: "text", text: "" } },
      { type: "content_block_delta", index: 0, delta: { type: "text_delta", text: "Hal" } },
      { type: "error", error: { type, message } },
    ]) {
      res.write(`event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`);
    }
    res.end();
  });
/** The data of the last event. */
const lastOf = async (answer: Response) => JSON.parse((await answer.text()).trim().split("\ndata: ").at(-1) ?? "");

describe("requests without a route are refused in Anthropic's format", () => {
  test.each<[string, string, string, Record<string, string>, number, string]>([
    ["another method of the endpoint", "GET", "/v1/messages?beta=true", {}, 405, "invalid_request_error"],
    ["another method of the count", "GET", "/v1/messages/count_tokens", {}, 405, "invalid_request_error"],
    ["an endpoint of Anthropic's that is not here", "POST", "/v1/messages/drafts", {}, 404, "not_found_error"],
    ["any path that its client asks for", "POST", "/v1/organizations/me", version, 404, "not_found_error"],
  ])("refuses requests without a route in Anthropic's format: %s", async (_, method, path, headers, status, type) => {
    const answer = await server.request(path, { method, headers });
    const body = await answer.json();
    expect([answer.status, body.type, body.error.type]).toEqual([status, "error", type]);
    expect(answer.headers.get("request-id")).toBe(body.request_id);
  });

  test("suggests a base URL without a version to Anthropic's clients, which add the version", async () => {
    for (const path of ["/v1/v1/messages", "/messages"]) {
      const { error } = await (await server.request(path, { body: asked["/v1/messages"] })).json();
      expect(error.message).toContain(`Did you mean /v1/messages? The base URL for clients is ${server.url}, without`);
    }
  });

  test("keeps OpenAI's error format for OpenAI paths, whatever their last segment", async () => {
    const answer = await server.request("/v1/chat/completions/chatcmpl-1/messages", { method: "PUT" });
    expect(await answer.json()).toMatchObject({ error: { code: "method_not_allowed" } });
  });
});

test.each([
  ["a file that does not exist", "GET", "/v1/files/file-none", version, "not_found_error"],
  ["an upload that is no form", "POST", "/v1/files?beta=true", version, "invalid_request_error"],
])("refuses %s in Anthropic's format for Anthropic's clients", async (_what, method, path, headers, type) => {
  const answer = await server.request(path, { method, headers, ...(method === "POST" && { body: {} }) });
  const body = await answer.json();
  expect([body.type, body.error.type]).toEqual(["error", type]);
  expect(answer.headers.get("request-id")).toBe(body.request_id);
});

test("refuses a missing file in OpenAI's format for other clients", async () => {
  const answer = await server.request("/v1/files/file-none");
  expect(await answer.json()).toMatchObject({ error: { code: "not_found", param: "file_id" } });
});

test("returns the request id of a token count in Anthropic's header", async () => {
  const { max_tokens: _limit, ...counted } = asked["/v1/messages"];
  const answer = await server.request("/v1/messages/count_tokens", { body: counted });
  expect(answer.headers.get("request-id")).toBe(answer.headers.get("x-request-id") ?? "none");
});

test("sends a key's limits in Anthropic's headers, on answers and on refusals", async () => {
  const made = { name: "limited", scopes: ["chat:write"], rate_limit: 1, rate_limit_window: 60 };
  const { key } = await (await server.request("/v1/keys", { body: made })).json();
  upstream.script((_request, res) => {
    const content = [{ type: "text", text: "Hi" }];
    const usage = { input_tokens: 3, output_tokens: 1 };
    json(res, 200, { type: "message", role: "assistant", id: "msg_1", model, content, stop_reason: "end_turn", usage });
  });
  for (const status of [200, 429]) {
    const headers = { "x-api-key": key, "content-type": "application/json", ...version };
    const body = JSON.stringify(asked["/v1/messages"]);
    const answer = await fetch(`${server.url}/v1/messages`, { method: "POST", headers, body });
    const limit = (part: string) => answer.headers.get(`anthropic-ratelimit-requests-${part}`);
    expect([answer.status, limit("limit"), limit("remaining")]).toEqual([status, "1", "0"]);
    expect(limit("reset")).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/);
    const waitMs = Date.parse(limit("reset") ?? "") - Date.now();
    expect(waitMs).toBeGreaterThan(0);
    expect(waitMs).toBeLessThanOrEqual(61_000);
    if (status === 200) continue;
    expect(Number(answer.headers.get("retry-after"))).toBeGreaterThan(0);
    expect(await answer.json()).toMatchObject({ type: "error", error: { type: "rate_limit_error" } });
  }
});

test("treats Anthropic's overloaded_error as a busy model server, not a broken one", async () => {
  fails(529, "overloaded_error", "Overloaded");
  for (const [path, status] of [
    ["/v1/messages", 529],
    ["/v1/chat/completions", 503],
    ["/v1/responses", 503],
  ] as const) {
    const answer = await ask(path);
    expect([answer.status, (await answer.json()).error.type]).toEqual([status, "overloaded_error"]);
    expect(answer.headers.get("x-should-retry")).toBe("true");
  }
});

describe("a prompt that exceeds Anthropic's context", () => {
  const tooLong = "prompt is too long: 204321 tokens > 200000 maximum";
  const noRoom = "input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000, decrease input length";

  test.each([tooLong, noRoom])("maps Anthropic's too long prompt to context_length_exceeded: %s", async (words) => {
    fails(400, "invalid_request_error", words);
    for (const path of ["/v1/chat/completions", "/v1/responses"] as const) {
      const answer = await ask(path);
      expect([answer.status, (await answer.json()).error.code]).toEqual([400, "context_length_exceeded"]);
    }
    const failed = await lastOf(await ask("/v1/responses", true));
    expect(failed).toMatchObject({ type: "response.failed", response: { error: { code: "context_length_exceeded" } } });
  });

  test.each([tooLong, noRoom])(
    "reports Anthropic's too long prompt to Anthropic clients in Anthropic's words: %s",
    async (words) => {
      fails(400, "invalid_request_error", words);
      expect(await (await ask("/v1/messages")).json()).toMatchObject({
        error: { type: "invalid_request_error", message: words },
      });
    },
  );

  test("reports Anthropic's too long prompt in a stream, too", async () => {
    breaks("invalid_request_error", tooLong);
    expect(await lastOf(await ask("/v1/messages", true))).toMatchObject({
      error: { type: "invalid_request_error", message: tooLong },
    });
    expect(await lastOf(await ask("/v1/responses", true))).toMatchObject({
      response: { error: { code: "context_length_exceeded" } },
    });
    expect(await lastOf(await ask("/v1/chat/completions", true))).toMatchObject({
      error: { type: "invalid_request_error", code: "context_length_exceeded" },
    });
  });
});

describe("an error in the middle of an Anthropic stream", () => {
  test.each<[string, string, string, string]>([
    ["overloaded", "overloaded_error", "overloaded_error", "server_is_overloaded"],
    ["at its rate limit", "rate_limit_error", "rate_limit_error", "rate_limit_exceeded"],
    ["broken", "api_error", "api_error", "server_error"],
  ])(
    "passes on the retry advice of an error in the middle of a stream from a server that is %s",
    async (_, type, shown, code) => {
      breaks(type, "Try again in 2s.");
      const error = { type: shown, message: "Try again in 2s." };
      expect(await lastOf(await ask("/v1/messages", true))).toMatchObject({ type: "error", error });
      expect(await lastOf(await ask("/v1/chat/completions", true))).toMatchObject({ error });
      expect(await lastOf(await ask("/v1/responses", true))).toMatchObject({
        response: { error: { code, message: error.message } },
      });
    },
  );
});
