// The rate limit of a model server as clients handle it: 503, as it is not theirs, with all that tells them to wait.
import { afterAll, afterEach, beforeAll, expect, test } from "bun:test";
import { APICallError, generateText } from "ai";
import { InternalServerError } from "openai";
import { aiProvider, langchainChat, openaiClient } from "../support/clients.ts";
import { startHeadrace, type TestServer } from "../support/headrace.ts";
import {
  chatScript,
  json,
  type Script,
  type ScriptedUpstream,
  startUpstream,
  upstreamYaml,
} from "../support/scripted-upstream.ts";
import { messages } from "../support/tiny-demo.ts";

const model = "upstream-model";
let upstream: ScriptedUpstream;
let server: TestServer;
beforeAll(async () => {
  upstream = await startUpstream();
  server = await startHeadrace({ yaml: upstreamYaml(upstream) });
});
afterEach(() => upstream.script(chatScript()));
afterAll(async () => {
  await server[Symbol.asyncDispose]();
  await upstream[Symbol.asyncDispose]();
});

const refusing = (status: number, headers: Record<string, string> = {}): Script => {
  return (_request, res) => json(res, status, { error: { message: "Slow down, org-123", type: "tokens" } }, headers);
};

test("returns a model server's 429 as 503 with its Retry-After, in words that clients take for a rate limit", async () => {
  upstream.script(refusing(429, { "retry-after": "7" }));
  const response = await server.request("/v1/chat/completions", { body: { model, messages } });
  expect(response.status).toBe(503);
  expect(Object.fromEntries(response.headers)).toMatchObject({
    ...{ "retry-after": "7", "retry-after-ms": "7000", "x-should-retry": "true" },
  });
  expect(await response.json()).toEqual({
    error: expect.objectContaining({
      message: `The model server of \`${model}\` is at its own rate limit now. Retry in 7 s.`,
      ...{ type: "rate_limit_error", code: "service_unavailable" },
    }),
  });
});

test("returns a model server's 503 as lack of capacity", async () => {
  upstream.script(refusing(503, { "retry-after": "7" }));
  const response = await server.request("/v1/chat/completions", { body: { model, messages } });
  expect([response.status, response.headers.get("retry-after")]).toEqual([503, "7"]);
  expect(await response.json()).toMatchObject({ error: { type: "overloaded_error", code: "service_unavailable" } });
});

test("makes openai's SDK and the AI SDK retry a 503, and allows LangChain to", async () => {
  const once = (): Script => {
    let refused = false;
    return (request, res) => {
      const script = refused ? chatScript(["Hello"]) : refusing(429, { "retry-after": "1" });
      refused = true;
      return script(request, res);
    };
  };
  upstream.script(once());
  const client = openaiClient(server, { maxRetries: 1 });
  expect((await client.chat.completions.create({ model, messages })).choices[0]?.message.content).toBe("Hello");
  upstream.script(once());
  expect((await generateText({ model: aiProvider(server)(model), messages, maxRetries: 1 })).text).toBe("Hello");
  upstream.script(refusing(429));
  const failed = await generateText({ model: aiProvider(server)(model), messages, maxRetries: 0 }).catch(
    (error) => error,
  );
  expect(failed).toBeInstanceOf(APICallError);
  expect(failed).toMatchObject({ statusCode: 503, isRetryable: true });
  const langchain = await langchainChat(server, { model })
    .invoke("Hi")
    .catch((error) => error);
  expect(langchain).toBeInstanceOf(InternalServerError);
  expect(langchain).toMatchObject({ status: 503, code: "service_unavailable", type: "rate_limit_error" });
});
