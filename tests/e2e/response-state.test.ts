// Responses that are kept: gone on from, read and deleted, over a server that speaks chat alone and one that speaks Responses.

import { Database } from "bun:sqlite";
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import OpenAI from "openai";
import { openaiClient } from "../support/clients.ts";
import { itemsOf, makeConversation } from "../support/conversations.ts";
import { startHeadrace, type TestServer } from "../support/headrace.ts";
import { withinMs } from "../support/long.ts";
import { raised } from "../support/openai-errors.ts";
import { startReplicas } from "../support/replicas.ts";
import { responseScript, saidIn } from "../support/response-script.ts";
import { toolScript, weatherCall, weatherResult, weatherTool } from "../support/scripted-answers.ts";
import {
  chatScript,
  chunk,
  json,
  type ScriptedUpstream,
  startUpstream,
  upstreamYaml,
} from "../support/scripted-upstream.ts";

const model = "upstream-model";

type Params = Omit<OpenAI.Responses.ResponseCreateParamsNonStreaming, "model" | "stream">;

/** Whole or streamed: the response as the client has it in the end. */
async function ask(client: OpenAI, isStream: boolean, params: Params): Promise<OpenAI.Responses.Response> {
  if (!isStream) return await client.responses.create({ model, ...params });
  return (await client.responses.stream({ model, ...params }).finalResponse()) as OpenAI.Responses.Response;
}

describe.each(["chat completions alone", "Responses"])("Responses state over a server that speaks %s", (spoken) => {
  const script = spoken === "Responses" ? responseScript() : chatScript();
  let upstream: ScriptedUpstream;
  let server: TestServer;
  let client: OpenAI;

  beforeAll(async () => {
    upstream = await startUpstream(script);
    if (spoken === "Responses") upstream.speaks("/v1/responses");
    server = await startHeadrace({ yaml: upstreamYaml(upstream) });
    client = openaiClient(server);
  });
  afterAll(async () => {
    await server[Symbol.asyncDispose]();
    await upstream[Symbol.asyncDispose]();
  });

  const lastSaid = () => saidIn(upstream.requests.at(-1) ?? { body: { input: [] } });
  const lastBody = () => upstream.requests.at(-1)?.body ?? {};

  test.each([false, true])("continues three turns from the previous response (streamed: %p)", async (isStream) => {
    const first = await ask(client, isStream, { input: "One", instructions: "Be brief." });
    expect(first).toMatchObject({ store: true, previous_response_id: null, status: "completed" });
    expect(first.id).toStartWith("resp_");
    expect(first.id).not.toBe("resp_up");
    const second = await ask(client, isStream, { input: "Two", previous_response_id: first.id });
    expect(second.previous_response_id).toBe(first.id);
    const third = await ask(client, isStream, {
      input: [{ role: "user", content: "Three" }],
      previous_response_id: second.id,
    });
    // Instructions do not carry over.
    expect(lastSaid()).toEqual([
      "user: One",
      "assistant: Hello world",
      "user: Two",
      "assistant: Hello world",
      "user: Three",
    ]);
    const { previous_response_id, conversation, ...sent } = lastBody();
    expect([previous_response_id, conversation]).toEqual([undefined, undefined]);
    expect(sent["store"] ?? false).toBe(false);
    const { id, created_at, status, usage, output_text, previous_response_id: before } = third;
    const kept = await client.responses.retrieve(id);
    expect(kept).toMatchObject({ id, created_at, status, output_text, store: true, previous_response_id: before });
    expect(kept.usage).toEqual(usage);
    expect(kept.output.map((item) => item.id)).toEqual(third.output.map((item) => item.id));
  });

  test("names the stored response's id in every event of a stream", async () => {
    const { id } = await client.responses.create({ model, input: "One" });
    const ids = new Set<string>();
    const asked = { model, input: "Two", previous_response_id: id, stream: true as const };
    for await (const event of await client.responses.create(asked)) {
      if (!("response" in event)) continue;
      expect(event.response).toMatchObject({ store: true, previous_response_id: id });
      ids.add(event.response.id);
    }
    expect(ids.size).toBe(1);
    const [last = ""] = ids;
    expect((await client.responses.retrieve(last)).output_text).toBe("Hello world");
  });

  test.each([false, true])("continues three turns by the ids of their items (streamed: %p)", async (isStream) => {
    const first = await ask(client, isStream, { input: "One" });
    const [asked] = (await client.responses.inputItems.list(first.id)).data;
    const said = first.output[0];
    if (!asked || !said) throw new Error("There are no items.");
    const input = [
      { type: "item_reference" as const, id: asked.id ?? "" },
      { id: said.id ?? "" } as OpenAI.Responses.ResponseInputItem.ItemReference,
    ];
    const second = await ask(client, isStream, { input: [...input, { role: "user", content: "Two" }] });
    expect(lastSaid()).toEqual(["user: One", "assistant: Hello world", "user: Two"]);
    const kept = await client.responses.inputItems.list(second.id, { order: "asc" });
    const third = await ask(client, isStream, {
      input: [
        ...kept.data.map((item) => ({ type: "item_reference" as const, id: item.id ?? "" })),
        { role: "user", content: "Three" },
      ],
    });
    // Two of the user's in a row are one message of a chat.
    expect(lastSaid().join(" ").replace("Two user: Three", "Two\n\nThree")).toBe(
      "user: One assistant: Hello world user: Two\n\nThree",
    );
    expect(third.status).toBe("completed");
  });

  test.each([false, true])(
    "includes earlier items of a conversation in a turn, and adds to it (streamed: %p)",
    async (isStream) => {
      const conversation = await makeConversation(server, "Zero");
      const first = await ask(client, isStream, { input: "One", conversation });
      expect(first).toMatchObject({ conversation: { id: conversation }, previous_response_id: null, store: true });
      await ask(client, isStream, { input: "Two", conversation: { id: conversation } });
      const last = lastSaid().join(" ").replace("Zero user: One", "Zero\n\nOne");
      expect(last).toBe("user: Zero\n\nOne assistant: Hello world user: Two");
      expect(lastBody()["conversation"]).toBeUndefined();
      expect(await itemsOf(server, conversation)).toHaveLength(5);
      // What is not kept reads it, and leaves no trace in it.
      await ask(client, isStream, { input: "Three", conversation, store: false });
      expect(lastSaid().at(-1)).toBe("user: Three");
      expect(await itemsOf(server, conversation)).toHaveLength(5);
      // Who goes on from one of its responses sees what there was then.
      await ask(client, isStream, { input: "Aside", previous_response_id: first.id });
      expect(lastSaid().at(-1)).toBe("user: Aside");
      expect(lastSaid().join(" ")).not.toContain("Two");
    },
  );

  test("stores simultaneous turns of a conversation whole, one after another", async () => {
    const conversation = await makeConversation(server);
    const turns = Array.from({ length: 12 }, (_, n) => `Turn ${n}`);
    await Promise.all(turns.map((input, n) => ask(client, n % 2 === 0, { input, conversation })));
    const items = await itemsOf(server, conversation);
    expect(items.map(({ role }) => role)).toEqual(turns.flatMap(() => ["user", "assistant"]));
    const asked = items
      .filter(({ role }) => role === "user")
      .map(({ content }) => (content as [{ text: string }])[0].text);
    expect(asked.toSorted()).toEqual(turns.toSorted());
  });

  test("refuses an unknown conversation by its name", async () => {
    const asked = { model, input: "One", conversation: "conv_0" };
    const refused = await raised(() => client.responses.create(asked), OpenAI.NotFoundError);
    expect(refused).toMatchObject({ code: "not_found", param: "conversation" });
  });

  test("lists input items of the whole conversation in pages, newest first by default", async () => {
    const first = await client.responses.create({ model, input: "One" });
    // A server that repeats its ids gives another message the same one.
    upstream.script(spoken === "Responses" ? responseScript("Again") : chatScript(["Again"]));
    const second = await client.responses.create({ model, input: "Two", previous_response_id: first.id });
    upstream.script(script);
    const all = await Array.fromAsync(client.responses.inputItems.list(second.id, { limit: 2 }));
    const texts = (items: unknown[]) => items.map((item) => (item as { content: [{ text: string }] }).content[0].text);
    expect(texts(all)).toEqual(["Two", "Hello world", "One"]);
    const include = ["reasoning.encrypted_content" as const, "message.output_text.logprobs" as const];
    const asc = await client.responses.inputItems.list(second.id, { order: "asc", limit: 2, include });
    expect(texts(asc.data)).toEqual(["One", "Hello world"]);
    expect(asc.has_more).toBe(true);
    const page = (await (await server.request(`/v1/responses/${second.id}/input_items?limit=1`)).json()) as object;
    expect(page).toMatchObject({ object: "list", first_id: all[0]?.id, last_id: all[0]?.id, has_more: true });
    const third = await client.responses.create({ model, input: "Three", previous_response_id: second.id });
    const each = await Array.fromAsync(client.responses.inputItems.list(third.id, { order: "asc", limit: 2 }));
    expect(texts(each)).toEqual(["One", "Hello world", "Two", "Again", "Three"]);
    expect(new Set(each.map((item) => item.id)).size).toBe(5);
    const own = await client.responses.inputItems.list(first.id);
    expect(own.data).toMatchObject([
      { type: "message", role: "user", content: [{ type: "input_text", text: "One" }], id: expect.any(String) },
    ]);
  });

  test.each([false, true])("stores nothing with store: false, and says so (streamed: %p)", async (isStream) => {
    const response = await ask(client, isStream, { input: "One", store: false });
    expect(response).toMatchObject({ store: false, previous_response_id: null });
    await raised(() => client.responses.retrieve(response.id), OpenAI.NotFoundError);
    const refused = await raised(
      () => client.responses.create({ model, input: "Two", previous_response_id: response.id }),
      OpenAI.BadRequestError,
    );
    expect(refused).toMatchObject({ code: "previous_response_not_found", param: "previous_response_id" });
  });

  test("continues a stored response without storing the new one", async () => {
    const first = await client.responses.create({ model, input: "One" });
    const asked = { model, input: "Two", previous_response_id: first.id, store: false };
    const second = await client.responses.create(asked);
    expect(second).toMatchObject({ store: false, previous_response_id: first.id });
    expect(lastSaid()).toHaveLength(3);
    await raised(() => client.responses.retrieve(second.id), OpenAI.NotFoundError);
  });

  test("hides a deleted response from reads and continuations", async () => {
    const first = await client.responses.create({ model, input: "One" });
    const second = await client.responses.create({ model, input: "Two", previous_response_id: first.id });
    const answer = await server.request(`/v1/responses/${first.id}`, { method: "DELETE" });
    expect(await answer.json()).toEqual({ id: first.id, object: "response", deleted: true });
    await raised(() => client.responses.retrieve(first.id), OpenAI.NotFoundError);
    await raised(() => client.responses.delete(first.id), OpenAI.NotFoundError);
    await raised(() => client.responses.inputItems.list(first.id), OpenAI.NotFoundError);
    for (const id of [first.id, second.id]) {
      const refused = await raised(
        () => client.responses.create({ model, input: "Three", previous_response_id: id }),
        OpenAI.BadRequestError,
      );
      expect(refused.code).toBe("previous_response_not_found");
    }
    // What it was asked with itself is still there.
    expect((await client.responses.inputItems.list(second.id)).data).toHaveLength(1);
  });

  test("counts input tokens of all turns that a request continues", async () => {
    const first = await client.responses.create({ model, input: "One ".repeat(200) });
    const alone = await client.responses.inputTokens.count({ model, input: "Two" });
    const all = await client.responses.inputTokens.count({ model, input: "Two", previous_response_id: first.id });
    expect(all.input_tokens).toBeGreaterThan(alone.input_tokens + 100);
  });
});

describe("stored responses", () => {
  const directory = mkdtempSync(join(tmpdir(), "headrace-responses-"));
  let upstream: ScriptedUpstream;

  beforeAll(async () => {
    upstream = await startUpstream();
  });
  afterAll(async () => {
    await upstream[Symbol.asyncDispose]();
    rmSync(directory, { recursive: true, force: true });
  });

  const start = (yaml = "") => startHeadrace({ yaml: upstreamYaml(upstream, yaml), dataDir: join(directory, "data") });

  test("continues a stored response after a restart, also with a tool's output", async () => {
    upstream.script(toolScript());
    const { function: called } = weatherTool;
    const tools = [{ type: "function" as const, strict: true, ...called }];
    let first: OpenAI.Responses.Response;
    let key: string;
    {
      await using server = await start();
      key = server.key;
      first = await openaiClient(server).responses.create({ model, input: "How is Oslo?", tools });
    }
    await using server = await start();
    const client = openaiClient({ url: server.url, key });
    const call = first.output[0];
    if (call?.type !== "function_call") throw new Error("There was no call.");
    const second = await client.responses.create({
      ...{ model, tools, previous_response_id: first.id },
      input: [{ type: "function_call_output", call_id: call.call_id, output: weatherResult }],
    });
    expect(second.output_text).toBe(`It is ${weatherResult}.`);
    expect(upstream.requests.at(-1)?.body["messages"]).toMatchObject([
      { role: "user", content: "How is Oslo?" },
      { role: "assistant", tool_calls: [{ id: call.call_id, function: weatherCall.function }] },
      { role: "tool", tool_call_id: call.call_id },
    ]);
    upstream.script(chatScript());
  });

  test("stores nothing where responses are kept for 0 days, and says so in the answer", async () => {
    await using server = await startHeadrace({ yaml: upstreamYaml(upstream, "stored_chats: { retention_days: 0 }\n") });
    const client = openaiClient(server);
    const response = await client.responses.create({ model, input: "One", store: true });
    expect(response).toMatchObject({ store: false });
    await raised(() => client.responses.retrieve(response.id), OpenAI.NotFoundError);
  });

  test("finds a stored response at another replica as soon as its client receives the end", async () => {
    await using replicas = await startReplicas({ yaml: upstreamYaml(upstream) });
    const { key, servers } = replicas;
    const [here, there] = servers.map(({ url }) => openaiClient({ url, key }));
    if (!here || !there) throw new Error("There are no two replicas.");
    let before: string | null = null;
    for (let turn = 0; turn < 6; turn++) {
      const client = turn % 2 === 0 ? here : there;
      const params: Params = { input: `Turn ${turn}`, previous_response_id: before };
      ({ id: before } = await ask(client, turn % 3 === 0, params));
    }
    expect(saidIn(upstream.requests.at(-1) ?? { body: {} })).toHaveLength(11);
    const items = await Array.fromAsync(there.responses.inputItems.list(before ?? "", { limit: 3 }));
    expect(items).toHaveLength(11);
    // PostgreSQL keeps no such character, and is not asked for it.
    const refused = await raised(() => ask(here, false, { input: "x", previous_response_id: "a\0b" }), OpenAI.APIError);
    expect(refused).toMatchObject({ status: 400, code: "previous_response_not_found" });
    const elsewhere = await raised(() => ask(here, false, { input: "x", conversation: "a\0b" }), OpenAI.APIError);
    expect(elsewhere).toMatchObject({ status: 404, code: "not_found" });
    const item = { type: "item_reference" as const, id: "a\0b" };
    expect(await raised(() => ask(here, false, { input: [item] }), OpenAI.APIError)).toMatchObject({ status: 404 });
    // An id of a client's own may be any text.
    const odd = await ask(here, false, { input: [{ role: "user", content: "a\0b", id: "\0\ud800" } as never] });
    expect(await there.responses.retrieve(odd.id)).toMatchObject({ id: odd.id });
  }, 60_000);

  test("stores the part of a broken stream whose client was told of the failure", async () => {
    await using server = await startHeadrace({ yaml: upstreamYaml(upstream) });
    const client = openaiClient(server);
    upstream.script((_request, res) => {
      res.writeHead(200, { "content-type": "text/event-stream" });
      res.write(chunk({ role: "assistant", content: "Well begun" }));
      res.end('data: {"error":{"message":"broken"}}\n\n');
    });
    const events: OpenAI.Responses.ResponseStreamEvent[] = [];
    for await (const event of await client.responses.create({ model, input: "One", stream: true })) events.push(event);
    upstream.script(chatScript());
    const last = events.at(-1);
    if (last?.type !== "response.failed") throw new Error("It did not fail.");
    const kept = await client.responses.retrieve(last.response.id);
    expect(kept).toMatchObject({ status: "failed", store: true, output: [{ content: [{ text: "Well begun" }] }] });
  });

  test.each([
    ["chat completions alone", chatScript()],
    ["Responses", responseScript()],
  ])(
    "reports store: false for a %s server if the database is too slow, and never stores the response later",
    async (spoken, script) => {
      await using upstream = await startUpstream(script);
      if (spoken === "Responses") upstream.speaks("/v1/responses");
      await using server = await startHeadrace({ yaml: upstreamYaml(upstream) });
      const client = openaiClient(server);
      const conversation = await client.conversations.create({});
      const other = new Database(join(server.dataDir, "headrace.db"));
      other.run("BEGIN IMMEDIATE");
      const began = performance.now();
      const answers = await Promise.all(
        [false, true].map((isStream) => ask(client, isStream, { input: "One", conversation: conversation.id })),
      );
      const tookMs = performance.now() - began;
      other.run("ROLLBACK");
      other.close();
      for (const answer of answers) {
        expect(answer).toMatchObject({ output_text: "Hello world", store: false, conversation: null });
      }
      // What is asked now is written behind everything that still waited.
      const later = await ask(client, false, { input: "Two", conversation: conversation.id });
      expect(later).toMatchObject({ store: true, conversation: { id: conversation.id } });
      for (const { id } of answers) {
        await raised(() => client.responses.retrieve(id), OpenAI.NotFoundError);
      }
      expect(await itemsOf(server, conversation.id)).toHaveLength(2);
      expect(tookMs).toBeGreaterThan(500);
      expect(tookMs).toBeLessThan(withinMs(8_000));
      const logged = server.logged("response_not_stored");
      expect(logged).toHaveLength(2);
      for (const { reason } of logged) expect(["too_slow", "store_failed"]).toContain(String(reason));
    },
  );

  test("stores no response that its client left", async () => {
    await using server = await startHeadrace({ yaml: upstreamYaml(upstream) });
    const client = openaiClient(server);
    upstream.script((_request, res) => {
      res.writeHead(200, { "content-type": "text/event-stream" });
      res.write(chunk({ role: "assistant", content: "Well begun" }));
    });
    const stream = await client.responses.create({ model, input: "One", stream: true });
    let id = "";
    for await (const event of stream) {
      if (event.type === "response.created") ({ id } = event.response);
      if (event.type === "response.output_text.delta") break;
    }
    upstream.script(chatScript());
    expect(id).toStartWith("resp_");
    await raised(() => client.responses.retrieve(id), OpenAI.NotFoundError);
  });

  test("refuses a previous response with a conversation, beyond the body limit, or to a stream without events", async () => {
    await using server = await startHeadrace({ yaml: upstreamYaml(upstream, "limits: { body_bytes: 20000 }\n") });
    const client = openaiClient(server);
    const { id } = await client.responses.create({ model, input: "x".repeat(15_000) });
    const refuse = (params: object) =>
      raised(
        () => client.responses.create({ model, input: "Two", previous_response_id: id, ...params }),
        OpenAI.APIError,
      );
    expect(await refuse({ conversation: "conv_1" })).toMatchObject({ status: 400, param: "conversation" });
    expect(await refuse({ input: "y".repeat(10_000) })).toMatchObject({ status: 413, code: "request_too_large" });
    const streamed = await server.request(`/v1/responses/${id}?stream=true`);
    expect(await streamed.json()).toMatchObject({ error: { param: "stream" } });
  });

  test("reads no stored response for a key beyond its rate limit", async () => {
    await using server = await startHeadrace({ yaml: upstreamYaml(upstream) });
    const body = { name: "Slow", scopes: ["chat:read", "chat:write"], rate_limit: 1, rate_limit_window: 60 };
    const { key } = (await (await server.request("/v1/keys", { body })).json()) as { key: string };
    const client = openaiClient({ url: server.url, key });
    await client.responses.create({ model, input: "One" });
    const asked = { model, input: "Two", previous_response_id: "resp_unknown" };
    await raised(() => client.responses.create(asked), OpenAI.RateLimitError);
  });

  test("refuses to compact with an invalid previous_response_id or a conversation", async () => {
    await using server = await startHeadrace({ yaml: upstreamYaml(upstream) });
    const before = upstream.requests.length;
    const { id: conversation } = await openaiClient(server).conversations.create();
    for (const [param, value] of [
      ["previous_response_id", 5],
      ["previous_response_id", { id: "resp_1" }],
      ["conversation", conversation],
    ] as const) {
      const answer = await server.request("/v1/responses/compact", { body: { model, input: "Hi", [param]: value } });
      expect([answer.status, ((await answer.json()) as { error: { param: string } }).error.param]).toEqual([
        400,
        param,
      ]);
    }
    expect(upstream.requests.length).toBe(before);
  });

  test("refuses to compact to half a summary, for which the client would drop the rest", async () => {
    await using server = await startHeadrace({ yaml: upstreamYaml(upstream) });
    upstream.script((_request, res) => {
      const message = { role: "assistant", content: "They met in" };
      const choices = [{ index: 0, message, finish_reason: "length" }];
      const usage = { prompt_tokens: 9, completion_tokens: 3, total_tokens: 12 };
      json(res, 200, { id: "chatcmpl-1", object: "chat.completion", created: 1, model, choices, usage });
    });
    const answer = await server.request("/v1/responses/compact", { body: { model, input: "Where did they meet?" } });
    const { error } = (await answer.json()) as { error: { message: string } };
    expect([answer.status, error.message]).toEqual([502, expect.stringContaining("did not end its summary")]);
  });

  test("compacts a stored response and continues from the result", async () => {
    await using server = await startHeadrace({ yaml: upstreamYaml(upstream) });
    const client = openaiClient(server);
    const first = await client.responses.create({ model, input: "Where did they meet?" });
    upstream.script(chatScript(["They met ", "in Oslo."]));
    const compacted = await client.responses.compact({ model: model as never, previous_response_id: first.id });
    upstream.script(chatScript());
    const input = [...compacted.output, { role: "user", content: "And when?" }] as never;
    await client.responses.create({ model, input });
    const said = saidIn(upstream.requests.at(-1) ?? { body: {} });
    expect(said.join("\n")).toStartWith("user: Where did they meet?\n\nThey met in Oslo.");
  });
});
