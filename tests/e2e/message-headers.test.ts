// The headers of a client of Messages: which reach a model server that speaks it, and what each version of the API refuses.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { request as httpRequest } from "node:http";
import { replyScript, say } from "../support/agents/reply-script.ts";
import { startHeadrace, type TestServer } from "../support/headrace.ts";
import { json, type ScriptedUpstream, startUpstream } from "../support/scripted-upstream.ts";

let speaking: ScriptedUpstream;
let chatting: ScriptedUpstream;
let server: TestServer;

const answering = () => replyScript([say.text("Hi"), say.end("stop")]);

beforeAll(async () => {
  [speaking, chatting] = await Promise.all([startUpstream(), startUpstream()]);
  speaking.serves([{ id: "native", object: "model", created: 1, owned_by: "scripted" }]);
  chatting.serves([{ id: "translated", object: "model", created: 1, owned_by: "scripted" }]);
  server = await startHeadrace({
    yaml: `upstreams:
  - { name: speaking, url: "${speaking.url}", apis: [messages] }
  - { name: chatting, url: "${chatting.url}", apis: [chat] }
`,
  });
});
beforeEach(() => {
  for (const upstream of [speaking, chatting]) {
    upstream.script(answering());
    upstream.requests.length = 0;
  }
});
afterAll(async () => {
  await server[Symbol.asyncDispose]();
  for (const upstream of [speaking, chatting]) await upstream[Symbol.asyncDispose]();
});

const asked = { model: "native", max_tokens: 9, messages: [{ role: "user", content: "Hi" }] };

async function ask(body: object, headers: Record<string, string> = {}, path = "/v1/messages") {
  for (const upstream of [speaking, chatting]) upstream.script(answering());
  const answer = await server.request(path, { body, headers });
  return { status: answer.status, body: (await answer.json()) as { error?: { type: string; message: string } } };
}

const headersAt = (upstream: ScriptedUpstream) => upstream.requests.at(-1)?.headers ?? {};

describe("headers for a model server that speaks Messages", () => {
  test("passes the client's anthropic-version and all betas to a Messages server, and no other headers", async () => {
    const said = {
      "anthropic-version": "2026-10-21",
      "anthropic-beta": "context-1m-2025-08-07,interleaved-thinking-2025-05-14",
      "x-claude-code-session-id": "s-1",
      "x-stainless-lang": "js",
      cookie: "a=b",
    };
    for (const stream of [false, true]) {
      const answer = await server.request("/v1/messages", { body: { ...asked, stream }, headers: said });
      expect(answer.status).toBe(200);
      await answer.text();
      const { "anthropic-version": version, "anthropic-beta": betas, ...others } = headersAt(speaking);
      expect({ version, betas }).toEqual({ version: said["anthropic-version"], betas: said["anthropic-beta"] });
      for (const name of ["x-claude-code-session-id", "x-stainless-lang", "cookie", "x-api-key"]) {
        expect(others).not.toHaveProperty(name);
      }
    }
  });

  test("joins betas from several header fields for a Messages server", async () => {
    const { port } = new URL(server.url);
    const body = JSON.stringify(asked);
    const status = await new Promise((resolve, reject) => {
      const headers = { authorization: `Bearer ${server.key}`, "content-type": "application/json" };
      const sent = httpRequest({ host: "127.0.0.1", port, path: "/v1/messages", method: "POST", headers });
      sent.setHeader("anthropic-beta", ["one-2026-01-01", "two-2026-01-01"]);
      sent.on("response", (answer) => {
        answer.resume();
        resolve(answer.statusCode);
      });
      sent.on("error", reject);
      sent.end(body);
    });
    expect(status).toBe(200);
    expect(headersAt(speaking)["anthropic-beta"]).toBe("one-2026-01-01, two-2026-01-01");
  });

  test("sends the first anthropic-version without betas if the client names none", async () => {
    expect((await ask(asked)).status).toBe(200);
    expect(headersAt(speaking)).toMatchObject({ "anthropic-version": "2023-06-01" });
    expect(headersAt(speaking)).not.toHaveProperty("anthropic-beta");
  });

  test("sends anthropic-version and betas for a token count, too", async () => {
    speaking.script((_request, res) => json(res, 200, { input_tokens: 7 }));
    const headers = { "anthropic-version": "2026-10-21", "anthropic-beta": "one-2026-01-01" };
    const { max_tokens: _, ...prompt } = asked;
    const answer = await server.request("/v1/messages/count_tokens", { body: prompt, headers });
    expect(await answer.json()).toEqual({ input_tokens: 7 });
    expect(speaking.requests.at(-1)?.path).toBe("/v1/messages/count_tokens");
    expect(headersAt(speaking)).toMatchObject(headers);
  });

  test("sends the gateway's anthropic-version without betas for a translated request", async () => {
    const { max_tokens: _, ...chat } = asked;
    const { status } = await ask(
      chat,
      { "anthropic-version": "2026-10-21", "anthropic-beta": "one-2026-01-01" },
      "/v1/chat/completions",
    );
    expect(status).toBe(200);
    expect(headersAt(speaking)).toMatchObject({ "anthropic-version": "2023-06-01" });
    expect(headersAt(speaking)).not.toHaveProperty("anthropic-beta");
  });
});

test("sends no Anthropic headers to a chat completions server", async () => {
  const said = { "anthropic-version": "2026-10-21", "anthropic-beta": "one-2026-01-01" };
  expect((await ask({ ...asked, model: "translated" }, said)).status).toBe(200);
  expect(chatting.requests.at(-1)?.path).toBe("/v1/chat/completions");
  expect(Object.keys(headersAt(chatting)).filter((name) => name.startsWith("anthropic-"))).toEqual([]);
});

describe("anthropic-version 2026-10-21", () => {
  const later = { "anthropic-version": "2026-10-21" };
  const earlier = { "anthropic-version": "2023-06-01" };
  const source = { type: "text", media_type: "text/plain", data: "Oslo" };
  const document = { type: "document", source };
  const withContent = (role: string, block: object) => ({
    messages: [
      { role: "user", content: "Hi" },
      { role, content: [block] },
    ],
  });
  const gone = [
    ["temperature", { temperature: 1 }],
    ["top_p", { top_p: 1 }],
    ["top_k", { top_k: 5 }],
    ["temperature", { temperature: null }],
    ["messages[1].content[0].type", withContent("assistant", document)],
    ["messages[1].content[0].citations", withContent("user", { type: "text", text: "Hi", citations: [{}] })],
  ] as const;

  test.each(gone)("refuses %s in anthropic-version 2026-10-21, whatever serves the model", async (name, more) => {
    for (const model of ["native", "translated"]) {
      for (const path of ["/v1/messages", "/v1/messages/count_tokens"]) {
        const { status, body } = await ask({ ...asked, model, ...more }, later, path);
        expect(status).toBe(400);
        expect(body.error?.type).toBe("invalid_request_error");
        expect(body.error?.message).toStartWith(`${name}: is not taken in anthropic-version 2026-10-21`);
      }
    }
  });

  test.each(gone)("accepts in earlier versions what anthropic-version 2026-10-21 refuses: %s", async (_, more) => {
    expect((await ask({ ...asked, ...more }, earlier)).status).toBe(200);
    expect((await ask({ ...asked, ...more })).status).toBe(200);
  });

  test("accepts documents of the user and texts without citations in anthropic-version 2026-10-21", async () => {
    for (const block of [document, { type: "text", text: "Hi", citations: [] }]) {
      expect((await ask({ ...asked, ...withContent("user", block) }, later)).status).toBe(200);
    }
  });
});

test.each(["2023-01-01", "2030-01-01", "2023-06-01, 2023-06-01", "x"])(
  "refuses an unknown anthropic-version: %s",
  async (version) => {
    const { status, body } = await ask(asked, { "anthropic-version": version });
    expect(status).toBe(400);
    expect(body.error?.message).toBe("anthropic-version: must be a version that there is: 2023-06-01 or 2026-10-21.");
  },
);

test("refuses too many betas", async () => {
  const { status, body } = await ask(asked, { "anthropic-beta": "b".repeat(4_097) });
  expect(status).toBe(400);
  expect(body.error?.message).toStartWith("anthropic-beta: must be");
});
