// Conversations as OpenAI's SDK has them: made, gone on with by responses, read, labelled and deleted, each by their owner alone.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import OpenAI from "openai";
import { openaiClient } from "../support/clients.ts";
import { startHeadrace, type TestServer } from "../support/headrace.ts";
import { mintKey, mintKeyRecord } from "../support/mint-key.ts";
import { raised } from "../support/openai-errors.ts";
import { operated } from "../support/operated.ts";
import { saidIn } from "../support/response-script.ts";
import { type ScriptedUpstream, startUpstream, upstreamYaml } from "../support/scripted-upstream.ts";

const model = "upstream-model";
let upstream: ScriptedUpstream;
let server: TestServer;
let client: OpenAI;

beforeAll(async () => {
  upstream = await startUpstream();
  const models = `models: [{ id: ${model}, environments: [dev, test], deployments: [{ upstream: up, model: ${model} }] }]\n`;
  server = await startHeadrace({ yaml: upstreamYaml(upstream, models) });
});
beforeEach(() => {
  client = openaiClient(server);
  upstream.requests.length = 0;
});
afterAll(async () => {
  await server[Symbol.asyncDispose]();
  await upstream[Symbol.asyncDispose]();
});

const user = (content: string) => ({ role: "user" as const, content });
const textsOf = (items: readonly unknown[]) =>
  items.map((item) => {
    const { role, content } = item as { role: string; content: { text: string }[] };
    return `${role}: ${content.map(({ text }) => text).join("")}`;
  });

async function allOf(id: string, order: "asc" | "desc" = "asc", limit?: number): Promise<string[]> {
  const items = client.conversations.items.list(id, { order, ...(limit === undefined ? {} : { limit }) });
  return textsOf(await Array.fromAsync(items));
}

test("stores labels and items of a conversation, and adds its responses to them", async () => {
  const made = await client.conversations.create({ metadata: { topic: "greeting" }, items: [user("I am Ada.")] });
  expect(made).toMatchObject({ object: "conversation", metadata: { topic: "greeting" } });
  expect(made.id).toMatch(/^conv_[0-9a-f]{32}$/);
  await client.responses.create({ model, input: "Who am I?", conversation: made.id });
  await client.responses.stream({ model, input: "Sure?", conversation: { id: made.id } }).finalResponse();
  // Users that follow each other are one to the model.
  expect(saidIn(upstream.requests.at(-1) as never)).toEqual([
    "user: I am Ada.\n\nWho am I?",
    "assistant: Hello world",
    "user: Sure?",
  ]);
  const all = ["user: I am Ada.", "user: Who am I?", "assistant: Hello world", "user: Sure?", "assistant: Hello world"];
  expect(await allOf(made.id)).toEqual(all);
  expect(await allOf(made.id, "desc", 2)).toEqual(all.toReversed());
  expect(await client.conversations.retrieve(made.id)).toEqual(made);
});

test("creates an empty conversation from a request without a body", async () => {
  const made = await client.conversations.create();
  expect(made.metadata).toEqual({});
  expect(await allOf(made.id)).toEqual([]);
});

test("adds, reads and deletes single conversation items, each with its own id", async () => {
  const { id } = await client.conversations.create({ items: [user("One")] });
  const call = { type: "function_call" as const, call_id: "call_1", name: "look", arguments: "{}" };
  const added = await client.conversations.items.create(id, { items: [user("Two"), call] });
  expect(added.data.map(({ id: one }) => one?.split("_")[0])).toEqual(["msg", "fc"]);
  expect([added.first_id, added.last_id]).toEqual([added.data[0]?.id, added.data[1]?.id] as never);
  const item = await client.conversations.items.retrieve(added.first_id, { conversation_id: id });
  expect(item).toMatchObject({ type: "message", role: "user", status: "completed", content: [{ text: "Two" }] });
  const left = await client.conversations.items.delete(added.first_id, { conversation_id: id });
  expect(left).toMatchObject({ id, object: "conversation" });
  const gone = () => client.conversations.items.retrieve(added.first_id, { conversation_id: id });
  expect(await raised(gone, OpenAI.NotFoundError)).toMatchObject({ param: "item_id" });
  const items = await client.conversations.items.list(id, { order: "asc" });
  expect(items.data.map(({ type }) => type)).toEqual(["message", "function_call"]);
});

test("replaces conversation labels as a whole, and removes them with null", async () => {
  const { id } = await client.conversations.create({ metadata: { a: "1" } });
  expect((await client.conversations.update(id, { metadata: { b: "2" } })).metadata).toEqual({ b: "2" });
  expect((await client.conversations.update(id, { metadata: null })).metadata).toEqual({});
});

test("does not find a deleted conversation, but keeps its responses", async () => {
  const { id } = await client.conversations.create({ items: [user("I am Ada.")] });
  const response = await client.responses.create({ model, input: "Hi", conversation: id });
  expect(await client.conversations.delete(id)).toEqual({ id, object: "conversation.deleted", deleted: true });
  for (const again of [
    () => client.conversations.retrieve(id),
    () => client.conversations.delete(id),
    () => client.conversations.items.list(id),
    () => client.conversations.items.create(id, { items: [user("Hi")] }),
    () => client.responses.create({ model, input: "Hi", conversation: id }),
  ]) {
    await raised(again, OpenAI.NotFoundError);
  }
  expect((await client.responses.retrieve(response.id)).id).toBe(response.id);
});

describe("conversation requests with errors", () => {
  const many = Array.from({ length: 21 }, () => user("Hi"));
  test.each<[object, string, RegExp]>([
    [{ items: many }, "items", /at most 20/],
    [{ items: [{ type: "item_reference", id: "msg_1" }] }, "items[0]", /references are not resolved/],
    [{ items: [{ content: "Hi" }] }, "items[0]", /`type` or a `role`/],
    [{ items: "Hi" }, "items", /array/],
    [{ metadata: { a: 1 } }, "metadata.a", /string/],
    [{ metadata: Object.fromEntries(many.map((_, i) => [`n${i}`, "x"])) }, "metadata", /16/],
  ])("refuses a wrong conversation request and names the wrong part: %j", async (body, param, reason) => {
    const answer = await server.request("/v1/conversations", { body });
    const { error } = (await answer.json()) as { error: { message: string; param: string } };
    expect([answer.status, error.param]).toEqual([400, param]);
    expect(error.message).toMatch(reason);
  });

  test("names `after` in the refusal of a page that starts behind an unknown item", async () => {
    const { id } = await client.conversations.create();
    const list = () => client.conversations.items.list(id, { after: "msg_never" });
    expect(await raised(list, OpenAI.BadRequestError)).toMatchObject({ param: "after" });
  });
});

// hardening: K13
test("does not reveal a conversation to another account, environment or creator", async () => {
  const { admin } = await operated(server);
  const account = (await admin("POST", "/accounts", { name: "Another", tier: "enterprise" })).body;
  const foreign = (await admin("POST", `/accounts/${account.id}/keys`, { name: "Key", environment: "dev" })).body.key;
  const scopes = ["chat:read", "chat:write"] as const;
  const makers = await Promise.all([0, 1].map(() => mintKeyRecord(server.dataDir, { scopes })));
  const [mine = "", theirs = ""] = await Promise.all(
    makers.map(({ record }) => mintKey(server.dataDir, { scopes, parentId: record.id, createdBy: record.id })),
  );
  const own = openaiClient({ url: server.url, key: mine });
  const { id } = await own.conversations.create({ items: [user("CANARY")] });
  const itemId = (await own.conversations.items.list(id)).data[0]?.id ?? "";
  const others = [foreign, await mintKey(server.dataDir, { scopes, environment: "test" }), theirs];
  for (const key of others) {
    const other = openaiClient({ url: server.url, key });
    const refusals = async (one: string, item: string) => {
      const refused = [
        await raised(() => other.conversations.retrieve(one), OpenAI.NotFoundError),
        await raised(() => other.conversations.update(one, { metadata: { a: "b" } }), OpenAI.NotFoundError),
        await raised(() => other.conversations.delete(one), OpenAI.NotFoundError),
        await raised(() => other.conversations.items.list(one), OpenAI.NotFoundError),
        await raised(() => other.conversations.items.create(one, { items: [user("Hi")] }), OpenAI.NotFoundError),
        await raised(() => other.conversations.items.retrieve(item, { conversation_id: one }), OpenAI.NotFoundError),
        await raised(() => other.conversations.items.delete(item, { conversation_id: one }), OpenAI.NotFoundError),
        await raised(() => other.responses.create({ model, input: "Hi", conversation: one }), OpenAI.APIError),
      ];
      return refused.map(({ status, message }) =>
        `${status} ${message}`.replaceAll(one, "ID").replaceAll(item, "ITEM"),
      );
    };
    expect(await refusals(id, itemId)).toEqual(await refusals("conv_never", "msg_never"));
  }
  expect(textsOf((await own.conversations.items.list(id)).data)).toEqual(["user: CANARY"]);
});

test("refuses conversations where nothing is stored, and says what to do instead", async () => {
  await using keepsNothing = await startHeadrace({ yaml: upstreamYaml(upstream) });
  const own = openaiClient(keepsNothing);
  const { id } = await own.conversations.create();
  await keepsNothing.reconfigure(upstreamYaml(upstream, "stored_chats: { retention_days: 0 }\n"));
  for (const refused of [
    () => own.conversations.create(),
    () => own.conversations.items.create(id, { items: [user("Hi")] }),
  ]) {
    expect(await raised(refused, OpenAI.BadRequestError)).toMatchObject({
      message: expect.stringContaining("retention_days is 0"),
    });
  }
  const answer = await own.responses.create({ model, input: "Hi", conversation: id });
  expect(answer).toMatchObject({ store: false });
  expect((await own.conversations.items.list(id)).data).toEqual([]);
});
