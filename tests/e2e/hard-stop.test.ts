// Quotas with `hard_stop`: an answer ends at the token where one is spent, as clients know it from a limit on its tokens.

import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import Anthropic from "@anthropic-ai/sdk";
import { openaiClient } from "../support/clients.ts";
import { startEndlessUpstream, word } from "../support/endless-upstream.ts";
import { startHeadrace, type TestServer, until } from "../support/headrace.ts";
import type { ScriptedUpstream } from "../support/scripted-upstream.ts";

type Json = Record<string, unknown>;

let upstream: ScriptedUpstream;
let server: TestServer;
const speakers = ["chat", "responses", "messages"] as const;

beforeAll(async () => {
  upstream = await startEndlessUpstream();
  const models = speakers.flatMap((name) => [
    `  - { id: ${name}-model, price: { input: 1, output: 10 }, deployments: [{ upstream: ${name}, model: m }] }\n`,
  ]);
  server = await startHeadrace({
    yaml: `upstreams:
${speakers.map((name) => `  - { name: ${name}, url: "${upstream.url}", discover: false, apis: [${name}] }\n`).join("")}
  - { name: plain, url: "${upstream.url}", discover: false }
models:
  - { id: plain-model, deployments: [{ upstream: plain, model: m }] }
  - { id: short-model, context: 300, deployments: [{ upstream: plain, model: m }] }
${models.join("")}`,
  });
});
afterAll(async () => {
  await server[Symbol.asyncDispose]();
  await upstream[Symbol.asyncDispose]();
});

async function keyWith(...quotas: readonly Json[]): Promise<{ id: string; key: string }> {
  const made = await server.request("/v1/keys", { body: { name: "Stopped", quotas } });
  return (await made.json()) as { id: string; key: string };
}

const tokens = (amount: number) => ({ unit: "tokens", amount, per: "day", hard_stop: true });

/** What a key has used of its only quota, and its requests. */
async function usedBy(id: string): Promise<{ used: number; requests: Json[] }> {
  await server.governance.ledger.flush();
  const { quotas_used: used } = (await (await server.request(`/v1/keys/${id}`)).json()) as { quotas_used: Json[] };
  const { data } = (await (await server.request(`/v1/requests?key=${id}`)).json()) as { data: Json[] };
  return { used: Number(used[0]?.["used"]), requests: data };
}

const messages = [{ role: "user" as const, content: "Go on for ever." }];
const wordsIn = (text: string) => text.split(word).length - 1;
const stopped = { outcome: "completed", error_code: "quota_spent" };
const mark = (amount: number) => ({
  stopped_by: "quota",
  quota: {
    owner: "key",
    unit: "tokens",
    limit: amount,
    per: "day",
    models: null,
    tag: null,
    resets_at: expect.any(Number),
  },
});

/** The model server is not let go on for nobody. */
async function expectStopped(): Promise<void> {
  await until(() => upstream.requests.at(-1)?.abandoned === true, "the model server was stopped");
}

describe.each(speakers)("hard stop of a stream from a model server that speaks %s", (speaks) => {
  const model = `${speaks}-model`;

  test("ends a chat stream where the quota is spent, with finish_reason length, usage and [DONE]", async () => {
    const { id, key } = await keyWith(tokens(700));
    const client = openaiClient({ url: server.url, key });
    const stream = await client.chat.completions.create({
      ...{ model, messages, stream: true, max_tokens: 5_000 },
      stream_options: { include_usage: true },
    });
    const chunks = await Array.fromAsync(stream);
    const ended = chunks.filter(({ choices }) => choices[0]?.finish_reason);
    expect(ended).toMatchObject([{ choices: [{ finish_reason: "length" }], headrace: mark(700) }]);
    const usage = chunks.at(-1)?.usage;
    expect(usage?.total_tokens).toBe(700);
    expect(wordsIn(chunks.map(({ choices }) => choices[0]?.delta.content ?? "").join(""))).toBe(
      usage?.completion_tokens ?? 0,
    );
    await expectStopped();
    const { used, requests } = await usedBy(id);
    expect([used, requests]).toMatchObject([700, [{ ...stopped, completion_tokens: usage?.completion_tokens }]]);
    const refused = await client.chat.completions.create({ model, messages }).catch((error: unknown) => error);
    expect(refused).toMatchObject({ status: 403, code: "insufficient_quota" });
  });

  test("ends a Responses stream as incomplete with its text, and a Messages stream with max_tokens", async () => {
    const { id, key } = await keyWith(tokens(600));
    const client = openaiClient({ url: server.url, key });
    const response = await client.responses.stream({ model, input: messages }).finalResponse();
    expect(response).toMatchObject({
      ...{ status: "incomplete", incomplete_details: { reason: "max_output_tokens" }, headrace: mark(600) },
      usage: { total_tokens: 600 },
    });
    expect(wordsIn(response.output_text)).toBe(response.usage?.output_tokens ?? 0);
    await expectStopped();
    expect(await usedBy(id)).toMatchObject({ used: 600, requests: [stopped] });

    const other = await keyWith(tokens(600));
    const anthropic = new Anthropic({ baseURL: server.url, apiKey: other.key, maxRetries: 0 });
    const events: Json[] = [];
    const said = anthropic.messages.stream({ model, messages, max_tokens: 5_000 });
    said.on("streamEvent", (event) => events.push(event as unknown as Json));
    const message = await said.finalMessage();
    expect(message).toMatchObject({ stop_reason: "max_tokens", content: [{ type: "text" }] });
    expect(wordsIn(message.content.map((block) => ("text" in block ? block.text : "")).join(""))).toBe(
      message.usage.output_tokens,
    );
    expect(events.map(({ type }) => type).slice(-3)).toEqual(["content_block_stop", "message_delta", "message_stop"]);
    expect(events.at(-2)).toMatchObject({ headrace: mark(600) });
    await expectStopped();
    expect(await usedBy(other.id)).toMatchObject({ used: 600, requests: [stopped] });
  });
});

test("ends background and WebSocket responses where the quota is spent", async () => {
  const { id, key } = await keyWith(tokens(400));
  const client = openaiClient({ url: server.url, key });
  const asked = { model: "responses-model", input: messages };
  const begun = await client.responses.create({ ...asked, background: true });
  const ended = await until(async () => {
    const response = await client.responses.retrieve(begun.id);
    return response.status === "incomplete" ? response : undefined;
  }, "it has ended");
  expect(ended).toMatchObject({ headrace: mark(400), usage: { total_tokens: 400 } });
  expect(wordsIn(ended.output_text)).toBe(ended.usage?.output_tokens ?? 0);
  expect(await usedBy(id)).toMatchObject({ used: 400, requests: [stopped] });

  const other = await keyWith(tokens(400));
  const headers = { authorization: `Bearer ${other.key}` };
  const socket = new WebSocket(`${server.url.replace("http", "ws")}/v1/responses`, { headers } as never);
  const last = await new Promise<Json>((resolve, reject) => {
    socket.onopen = () => socket.send(JSON.stringify({ type: "response.create", ...asked, store: false }));
    socket.onerror = () => reject(new Error("It was not opened."));
    socket.onmessage = ({ data }) => {
      const event = JSON.parse(String(data)) as Json;
      if (event["type"] === "response.incomplete") resolve(event);
    };
  });
  socket.close();
  expect(last).toMatchObject({ response: { status: "incomplete", headrace: mark(400) } });
  expect(await usedBy(other.id)).toMatchObject({ used: 400, requests: [stopped] });
});

test("ends a legacy completion stream where the quota is spent", async () => {
  const { id, key } = await keyWith(tokens(300));
  const client = openaiClient({ url: server.url, key });
  const stream = await client.completions.create({ model: "plain-model", prompt: "Go on", stream: true });
  const chunks = await Array.fromAsync(stream);
  expect(chunks.at(-1)).toMatchObject({ choices: [{ text: "", finish_reason: "length" }], headrace: mark(300) });
  expect(await usedBy(id)).toMatchObject({ used: 300, requests: [stopped] });
});

test("ends an answer at the token where a USD quota is spent at the model's price", async () => {
  const { id, key } = await keyWith({ unit: "usd", amount: 0.005, per: "day", hard_stop: true });
  const client = openaiClient({ url: server.url, key });
  const chunks = await Array.fromAsync(
    await client.chat.completions.create({ model: "chat-model", messages, stream: true }),
  );
  expect(chunks.at(-1)).toMatchObject({ headrace: { quota: { unit: "usd", limit: 0.005 } } });
  const { used, requests } = await usedBy(id);
  // A token of the answer costs 0.00001, and the prompt less than that.
  expect(used).toBeLessThanOrEqual(0.005);
  expect(used).toBeGreaterThan(0.00498);
  expect(requests).toMatchObject([stopped]);
});

test("lets 30 concurrent streams exceed one quota by at most one token each", async () => {
  const { id, key } = await keyWith(tokens(20_000));
  const client = openaiClient({ url: server.url, key });
  const ended = await Promise.all(
    Array.from({ length: 30 }, async () => {
      const stream = await client.chat.completions.create({ model: "chat-model", messages, stream: true });
      return (await Array.fromAsync(stream)).at(-1)?.choices[0]?.finish_reason;
    }),
  );
  expect(new Set(ended)).toEqual(new Set(["length"]));
  const { used, requests } = await usedBy(id);
  expect(requests).toHaveLength(30);
  expect(used).toBeLessThanOrEqual(20_000 + 30);
  // The last ones to run get what the others had set aside and did not use.
  expect(used).toBeGreaterThan(20_000 - 30 * 16);
}, 60_000);

describe("hard stop of an answer that is not streamed", () => {
  const ask = (key: string, body: Json) =>
    server.request("/v1/chat/completions", {
      body: { messages, ...body },
      headers: { authorization: `Bearer ${key}` },
    });

  test("requests a whole answer with the remaining tokens of the quota and reports them in a header", async () => {
    const { id, key } = await keyWith(tokens(400));
    const answer = await ask(key, { model: "chat-model", max_tokens: 1_000 });
    const most = Number(answer.headers.get("x-headrace-max-tokens"));
    expect(upstream.requests.at(-1)?.body).toMatchObject({ max_tokens: most });
    expect(((await answer.json()) as { choices: Json[] }).choices).toMatchObject([{ finish_reason: "length" }]);
    const { used, requests } = await usedBy(id);
    expect(requests).toMatchObject([{ ...stopped, completion_tokens: most }]);
    // The estimate of the prompt may be off.
    expect(Math.abs(used - 400)).toBeLessThan(10);
  });

  test("keeps the client's lower token limit and the model's context for a whole answer", async () => {
    const { key } = await keyWith(tokens(100_000));
    const short = await ask(key, { model: "chat-model", max_tokens: 20 });
    expect(upstream.requests.at(-1)?.body["max_tokens"]).toBe(20);
    expect(short.headers.get("x-headrace-max-tokens")).toBeNull();
    await ask(key, { model: "short-model" });
    expect(upstream.requests.at(-1)?.body["max_tokens"]).toBeUndefined();
    const unsaid = await ask(key, { model: "plain-model" });
    expect([unsaid.headers.get("x-headrace-max-tokens"), upstream.requests.at(-1)?.body["max_tokens"]]).toEqual([
      "4096",
      4_096,
    ]);
  });
});

test("lets an answer exceed a quota without hard_stop", async () => {
  const { id, key } = await keyWith({ unit: "tokens", amount: 400, per: "day" });
  const answer = await server.request("/v1/chat/completions", {
    body: { model: "chat-model", messages },
    headers: { authorization: `Bearer ${key}` },
  });
  expect(answer.headers.get("x-headrace-max-tokens")).toBeNull();
  await answer.text();
  expect((await usedBy(id)).used).toBeGreaterThan(9_000);
});
