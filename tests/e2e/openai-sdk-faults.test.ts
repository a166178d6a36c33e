// Every way a model server fails, as the `openai` package raises it, before and in the middle of an answer; and its retries.
import { afterAll, afterEach, beforeAll, describe, expect, test } from "bun:test";
import type OpenAI from "openai";
import { APIError, BadRequestError, InternalServerError, RateLimitError } from "openai";
import { openaiClient } from "../support/clients.ts";
import { startHeadrace, type TestServer, until } from "../support/headrace.ts";
import { expectBody, expectStreamFailure, raised } from "../support/openai-errors.ts";
import { interruptedStream, wellBegun } from "../support/scripted-answers.ts";
import {
  chatScript,
  chunk,
  json,
  type Script,
  type ScriptedUpstream,
  startUpstream,
} from "../support/scripted-upstream.ts";

const request = { model: "upstream-model", messages: [{ role: "user" as const, content: "Hi" }] };

let upstream: ScriptedUpstream;
let server: TestServer;
let client: OpenAI;

beforeAll(async () => {
  upstream = await startUpstream();
  const yaml = `upstreams: [{ name: up, url: "${upstream.url}", timeout_seconds: 1, idle_seconds: 1 }]\n`;
  server = await startHeadrace({ yaml, heartbeatMs: 100 });
  client = openaiClient(server);
});
afterEach(() => upstream.script(chatScript()));
afterAll(async () => {
  await server[Symbol.asyncDispose]();
  await upstream[Symbol.asyncDispose]();
});

test("raises a BadRequestError in the model server's words for its refusal", async () => {
  upstream.script((_request, res) => json(res, 400, { error: { message: "logit_bias is not supported" } }));
  const error = await raised(() => client.chat.completions.create(request), BadRequestError);
  await expectBody(server, error, 400, "invalid_request", "invalid_request_error");
  expect(error.message).toContain("logit_bias is not supported");
});

test("returns 503 with the wait time, not a RateLimitError, for a busy model server's 429", async () => {
  upstream.script((_request, res) => json(res, 429, { error: { message: "slow down" } }, { "retry-after": "7" }));
  const error = await raised(() => client.chat.completions.create(request), InternalServerError);
  await expectBody(server, error, 503, "service_unavailable", "rate_limit_error");
  expect(error.headers?.get("retry-after")).toBe("7");
  expect(error.headers?.get("retry-after-ms")).toBe("7000");
  expect(error.headers?.get("x-should-retry")).toBe("true");
  expect(error).not.toBeInstanceOf(RateLimitError);
});

describe("failures of model servers are InternalServerErrors", () => {
  const code502 = { status: 502, code: "upstream_error", type: "api_error" };
  const code503 = { status: 503, code: "service_unavailable", type: "overloaded_error" };
  const code504 = { status: 504, code: "upstream_timeout", type: "api_error" };
  const answering =
    (status: number, headers: Record<string, string> = {}): Script =>
    (_request, res) =>
      json(res, status, { error: { message: "boom" } }, headers);
  const faults: [name: string, expected: typeof code502, script: Script][] = [
    ["502: it fails", code502, answering(500)],
    ["502: it wants another credential", code502, answering(401)],
    ["502: it no longer has the model", code502, answering(404)],
    ["502: it redirects", code502, answering(307, { location: "/v1/elsewhere" })],
    ["502: it hangs up", code502, (_request, res) => void res.destroy()],
    ["503: it is overloaded", code503, answering(503)],
    ["504: it says that it was too slow", code504, answering(504)],
  ];
  for (const [name, { status, code, type }, script] of faults) {
    test(name, async () => {
      upstream.script(script);
      for (const call of [
        () => client.chat.completions.create(request),
        () => client.chat.completions.create({ ...request, stream: true }),
        () => client.completions.create({ model: "upstream-model", prompt: "Hi" }),
        () => client.embeddings.create({ model: "upstream-model", input: "Hi" }),
      ]) {
        const error = await raised(call, InternalServerError);
        await expectBody(server, error, status, code, type);
        expect(error.message).not.toContain("127.0.0.1");
      }
      upstream.script(chatScript());
      expect((await client.chat.completions.create(request)).choices).toHaveLength(1);
    });
  }

  test("raises an InternalServerError with 502 for an answer that is not JSON", async () => {
    upstream.script((_request, res) => void res.end("<html>Welcome</html>"));
    const error = await raised(() => client.chat.completions.create(request), InternalServerError);
    await expectBody(server, error, 502, "upstream_error", "api_error");
    expect(error.message).not.toContain("Welcome");
  });

  test("raises an InternalServerError with 504 for a model server that never answers", async () => {
    upstream.script(() => {});
    const error = await raised(() => client.chat.completions.create(request), InternalServerError);
    await expectBody(server, error, 504, "upstream_timeout", "api_error");
    await until(() => upstream.requests.at(-1)?.abandoned, "the gateway hangs up on it");
  });

  test("raises an InternalServerError with 502 for a model server that refuses connections", async () => {
    const gone = await startUpstream();
    await using lone = await startHeadrace({ yaml: `upstreams: [{ name: up, url: "${gone.url}" }]\n` });
    await gone[Symbol.asyncDispose]();
    const error = await raised(() => openaiClient(lone).chat.completions.create(request), InternalServerError);
    expect(error).toMatchObject({ status: 502, code: "upstream_error" });
    expect(error.message).not.toContain(gone.url);
  });
});

describe("raises an APIError after the delivered part if a stream fails in the middle", () => {
  const faults: [name: string, code: string, message: RegExp, rest: Script][] = [
    ["the connection breaks", "upstream_error", /broke off/, (_request, res) => void res.destroy()],
    [
      "the connection ends without a finish reason",
      "upstream_error",
      /middle of the answer/,
      (_request, res) => void res.end(),
    ],
    [
      "the model server sends an error event",
      "upstream_error",
      /out of memory/,
      (_request, res) => void res.end('data: {"error":{"message":"out of memory","type":"server_error"}}\n\n'),
    ],
    [
      "the model server sends no JSON",
      "upstream_error",
      /malformed/,
      (_request, res) => void res.end("data: {oops\n\n"),
    ],
    ["the model server falls silent", "upstream_timeout", /stopped sending/, () => {}],
  ];
  for (const [name, code, message, rest] of faults) {
    test(name, async () => {
      const { script, clientHasBegun } = interruptedStream(rest);
      upstream.script(script);
      const stream = await client.chat.completions.create({ ...request, stream: true });
      let delivered = "";
      const read = async () => {
        for await (const { choices } of stream) {
          delivered += choices[0]?.delta.content ?? "";
          clientHasBegun();
        }
      };
      const error = await raised(read, APIError);
      expect(delivered).toBe(wellBegun);
      await expectStreamFailure(server, error, code);
      expect(error.message).toMatch(message);
    });
  }

  test("raises an APIError after the delivered part if the last text and the error arrive together", async () => {
    upstream.script((_request, res) => {
      res.writeHead(200, { "content-type": "text/event-stream" });
      res.end(`${chunk({ content: wellBegun })}data: {"error":{"message":"out of memory"}}\n\n`);
    });
    const stream = await client.chat.completions.create({ ...request, stream: true });
    let delivered = "";
    const read = async () => {
      for await (const { choices } of stream) delivered += choices[0]?.delta.content ?? "";
    };
    await expectStreamFailure(server, await raised(read, APIError), "upstream_error");
    expect(delivered).toBe(wellBegun);
  });

  test("reports a failure after a long silence in a stream begun with keep-alives", async () => {
    upstream.script(async (_request, res) => {
      await Bun.sleep(300);
      json(res, 500, { error: { message: "boom" } });
    });
    const stream = await client.chat.completions.create({ ...request, stream: true });
    await expectStreamFailure(server, await raised(() => Array.fromAsync(stream), APIError), "upstream_error");
  });
});

test("makes the SDK wait for retry-after, then succeed", async () => {
  const arrivals: number[] = [];
  upstream.script((incoming, res) => {
    arrivals.push(performance.now());
    if (arrivals.length === 1) json(res, 503, { error: { message: "busy" } }, { "retry-after": "2" });
    else return chatScript()(incoming, res);
  });
  const completion = await openaiClient(server, { maxRetries: 2 }).chat.completions.create(request);
  expect(completion.choices[0]?.message.content).toBe("Hello world");
  expect(arrivals).toHaveLength(2);
  // Left to itself it would try again after half a second.
  expect((arrivals[1] ?? 0) - (arrivals[0] ?? 0)).toBeGreaterThanOrEqual(1_990);
});

test("makes the SDK not retry requests that cannot succeed", async () => {
  upstream.script((_request, res) => json(res, 400, { error: { message: "no" } }));
  const before = upstream.requests.length;
  await raised(() => openaiClient(server, { maxRetries: 2 }).chat.completions.create(request), BadRequestError);
  expect(upstream.requests.length - before).toBe(1);
});
