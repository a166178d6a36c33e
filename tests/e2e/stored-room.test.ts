// What an account stores is bounded: chats, responses and conversations of one key must not fill the disk of all.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { startHeadrace, type TestServer, until } from "../support/headrace.ts";
import { makeOperatorKey } from "../support/operator-key.ts";
import { json, type ScriptedUpstream, startUpstream } from "../support/scripted-upstream.ts";

type Json = Record<string, unknown>;

const maxBytes = 200_000;
const long = "QUJD".repeat(15_000);
let upstream: ScriptedUpstream;
let server: TestServer;
let operator: string;
let key: string;

beforeAll(async () => {
  upstream = await startUpstream((_request, res) =>
    json(res, 200, {
      ...{ id: "chatcmpl-up", object: "chat.completion", created: 1, model: "m" },
      choices: [{ index: 0, message: { role: "assistant", content: "Yes." }, finish_reason: "stop" }],
      usage: { prompt_tokens: 5, completion_tokens: 1, total_tokens: 6 },
    }),
  );
  server = await startHeadrace({
    yaml: `upstreams: [{ name: up, url: "${upstream.url}", discover: false, apis: [chat] }]
models: [{ id: m, deployments: [{ upstream: up, model: m }] }]
stored_chats: { account_bytes: ${maxBytes} }
`,
  });
  operator = await makeOperatorKey(server.dataDir);
});
afterAll(async () => {
  await server[Symbol.asyncDispose]();
  await upstream[Symbol.asyncDispose]();
});
beforeEach(async () => {
  const headers = { authorization: `Bearer ${operator}` };
  const account = { name: "Full", tier: "enterprise" };
  const { id } = (await (await server.request("/v1/admin/accounts", { body: account, headers })).json()) as Json;
  const body = { name: "Key", environment: "live" };
  key = String(
    ((await (await server.request(`/v1/admin/accounts/${id}/keys`, { body, headers })).json()) as Json)["key"],
  );
});

const ask = (path: string, body: Json) =>
  server.request(path, { body: { model: "m", ...body }, headers: { authorization: `Bearer ${key}` } });

/** Counts no tokens, as only its maker could read it. */
const reasoning = { type: "reasoning", summary: [], encrypted_content: long };

async function respond(more: Json = {}): Promise<Json> {
  const answer = await ask("/v1/responses", { input: [reasoning, { role: "user", content: "Hi" }], ...more });
  return { code: answer.status, ...((await answer.json()) as Json) };
}

async function fill(): Promise<Json[]> {
  const answers: Json[] = [];
  for (let i = 0; i < 5; i++) answers.push(await respond());
  return answers;
}

describe("an account at its storage limit", () => {
  test("answers an account at its storage limit with responses marked as not stored", async () => {
    const answers = await fill();
    expect(answers.map(({ code, store }) => [code, store])).toEqual([
      ...[1, 2, 3].map(() => [200, true]),
      ...[4, 5].map(() => [200, false]),
    ]);
    const last = await server.request(`/v1/responses/${answers[4]?.["id"]}`, {
      headers: { authorization: `Bearer ${key}` },
    });
    expect(last.status).toBe(404);
    expect(server.logged("response_not_stored").at(-1)).toMatchObject({ reason: "account_full" });
  });

  test("stores again after an account at its limit deletes some", async () => {
    const answers = await fill();
    const headers = { authorization: `Bearer ${key}` };
    for (const { id } of answers.slice(0, 3)) {
      expect((await server.request(`/v1/responses/${id}`, { method: "DELETE", headers })).status).toBe(200);
    }
    await until(async () => (await respond())["store"] === true, "there is room", 10_000);
  }, 15_000);

  test("refuses background responses and conversation items for an account at its storage limit", async () => {
    await fill();
    const background = await respond({ background: true });
    expect(background).toMatchObject({ code: 413, error: { code: "request_too_large" } });
    const made = await ask("/v1/conversations", { model: undefined, items: [reasoning] });
    expect(made.status).toBe(413);
    expect(((await made.json()) as { error: Json }).error["message"]).toContain("stored_chats.account_bytes");
  });

  test("stores no further chats for an account at its limit", async () => {
    await fill();
    const messages = [{ role: "user", content: long }];
    expect((await ask("/v1/chat/completions", { messages, store: true })).status).toBe(200);
    await until(() => server.logged("chat_not_stored")[0], "the log tells");
    const list = await server.request("/v1/chat/completions", { headers: { authorization: `Bearer ${key}` } });
    expect(await list.json()).toMatchObject({ data: [] });
  });
});
