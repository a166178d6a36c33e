// Responses in the background: they go on without their client, are read and stopped, here and at another replica.
import { afterAll, afterEach, beforeAll, describe, expect, test } from "bun:test";
import OpenAI from "openai";
import { BackgroundRuns } from "../../src/responses/background/background-runs.ts";
import { bookedUsage } from "../support/booked-usage.ts";
import { openaiClient } from "../support/clients.ts";
import { makeConversation } from "../support/conversations.ts";
import { type GatedUpstream, startGatedUpstream } from "../support/gated-upstream.ts";
import { startHeadrace, type TestServer, until } from "../support/headrace.ts";
import { shiftedClock } from "../support/manual-clock.ts";
import { raised } from "../support/openai-errors.ts";
import { startReplicas } from "../support/replicas.ts";
import { saidIn } from "../support/response-script.ts";
import { chatScript, json, startUpstream, upstreamYaml } from "../support/scripted-upstream.ts";

const model = "upstream-model";
const asked = { model, input: "One", background: true } as const;
type Event = OpenAI.Responses.ResponseStreamEvent;

async function statusIs(client: OpenAI, id: string, status: string): Promise<OpenAI.Responses.Response> {
  return await until(async () => {
    const response = await client.responses.retrieve(id);
    return response.status === status ? response : undefined;
  }, `the response is ${status}`);
}

/** Reads events until `isEnough`, then leaves. */
async function read(stream: AsyncIterable<Event>, isEnough: (event: Event) => boolean = () => false): Promise<Event[]> {
  const events: Event[] = [];
  for await (const event of stream) {
    events.push(event);
    if (isEnough(event)) break;
  }
  return events;
}

const numbersOf = (events: readonly Event[]) => events.map(({ sequence_number: number }) => number);
const upTo = (count: number, first = 0) => Array.from({ length: count - first }, (_, index) => first + index);

describe.each(["chat", "responses"] as const)("background responses over a server that speaks %s", (spoken) => {
  let upstream: GatedUpstream;
  let server: TestServer;
  let client: OpenAI;
  beforeAll(async () => {
    upstream = await startGatedUpstream(spoken);
    server = await startHeadrace({ yaml: upstreamYaml(upstream), heartbeatMs: 200 });
    client = openaiClient(server);
  });
  afterEach(async () => {
    upstream.finish();
    await until(() => server.requests().open === 0 && upstream.open() === 0, "nothing is open");
  });
  afterAll(async () => {
    await server[Symbol.asyncDispose]();
    await upstream[Symbol.asyncDispose]();
  });
  const asks = () => until(() => upstream.open() === 1, "the model is asked");

  test("queues a background response at once, reports it in progress, and returns it whole at the end", async () => {
    const { id, status, background, output } = await client.responses.create({ ...asked, metadata: { a: "b" } });
    expect({ status, background, output }).toEqual({ status: "queued", background: true, output: [] });
    await asks();
    expect(upstream.requests.at(-1)?.body["background"] ?? false).toBe(false);
    upstream.say("Hello");
    await statusIs(client, id, "in_progress");
    upstream.finish();
    const done = await statusIs(client, id, "completed");
    expect(done).toMatchObject({ id, background: true, output_text: "Hello", store: true });
    expect(done.usage).toMatchObject({ input_tokens: 7, output_tokens: 2 });
    expect((await client.responses.inputItems.list(id)).data).toHaveLength(1);
    await server.governance.ledger.flush();
    const booked = bookedUsage(server.dataDir).filter((record) => id.endsWith(record.request_id.slice(4)));
    expect(booked).toMatchObject([{ outcome: "completed", prompt_tokens: 7, completion_tokens: 2, estimated: 0 }]);
    const lines = server.logged("request").filter((line) => `resp_${String(line["id"]).slice(4)}` === id);
    expect(lines).toMatchObject([{ status: 200 }, { background: true, outcome: "completed", prompt_tokens: 7 }]);
  });

  test("resumes the stream of a background response without gaps or duplicate events", async () => {
    const begun = await client.responses.create({ ...asked, stream: true });
    const saying = asks().then(() => upstream.say("Hello"));
    const before = await read(begun, ({ type }) => type === "response.output_text.delta");
    await saying;
    const [created, queued] = before;
    if (created?.type !== "response.created") throw new Error("It did not begin with its creation.");
    const { id } = created.response;
    expect([created.response.status, queued?.type]).toEqual(["queued", "response.queued"]);
    const last = before.at(-1)?.sequence_number ?? -1;
    expect(numbersOf(before)).toEqual(upTo(last + 1));
    await until(() => server.requests().open === 0, "the client has left");
    expect(upstream.open()).toBe(1);
    upstream.say(" my");
    const resumed = await client.responses.retrieve(id, { stream: true, starting_after: last });
    const going = read(resumed);
    upstream.say(" world");
    upstream.finish();
    const after = await going;
    expect(numbersOf(after)).toEqual(upTo(last + 1 + after.length, last + 1));
    const text = [...before, ...after].map((event) => (event.type === "response.output_text.delta" ? event.delta : ""));
    expect(text.join("")).toBe("Hello my world");
    expect(after.at(-1)).toMatchObject({ type: "response.completed", response: { id, background: true } });
    // Read again from its begin once it has ended, all is as it was.
    const again = await read(await client.responses.retrieve(id, { stream: true }));
    expect(again).toEqual([...before, ...after]);
    expect(await read(await client.responses.retrieve(id, { stream: true, starting_after: 99 }))).toEqual([]);
  });

  test("lets the SDK's helper assemble a resumed stream of a background response", async () => {
    const { id } = await client.responses.create(asked);
    await asks();
    upstream.say("Hello");
    const stream = client.responses.stream({ response_id: id });
    upstream.finish();
    const whole = await stream.finalResponse();
    expect(whole).toMatchObject({ id, output_text: "Hello", status: "completed" });
  });

  test("stops the model of a cancelled background response, keeps its partial output, and charges for it", async () => {
    const { id } = await client.responses.create(asked);
    await asks();
    upstream.say("Hello");
    const following = read(await client.responses.retrieve(id, { stream: true }));
    await statusIs(client, id, "in_progress");
    const stopped = await client.responses.cancel(id);
    expect(stopped).toMatchObject({ id, status: "cancelled", background: true });
    await until(() => upstream.open() === 0, "the model is stopped", 1_000);
    expect((await following).at(-1)).toMatchObject({ type: "response.incomplete", response: { status: "cancelled" } });
    expect(await client.responses.cancel(id)).toMatchObject({ id, status: "cancelled" });
    expect(await client.responses.retrieve(id)).toMatchObject({ id, status: "cancelled" });
    await server.governance.ledger.flush();
    const booked = bookedUsage(server.dataDir).filter((record) => id.endsWith(record.request_id.slice(4)));
    expect(booked).toMatchObject([{ outcome: "cancelled" }]);
    expect(booked[0]?.prompt_tokens).toBeGreaterThan(0);
    expect(booked[0]?.completion_tokens).toBeGreaterThan(0);
  });

  test("sends no background_options to the model server, because OpenAI refuses them of a stream", async () => {
    const body = { ...asked, background_options: { completion_window: "2h" } };
    const { id } = await client.responses.create(body);
    await asks();
    expect(upstream.requests.at(-1)?.body).not.toHaveProperty("background_options");
    upstream.finish();
    await statusIs(client, id, "completed");
  });

  test("reads, lists, cancels and deletes through client.beta, which adds beta=true to every request", async () => {
    const { responses } = client.beta;
    const { id } = await responses.create(asked);
    await asks();
    upstream.finish();
    await statusIs(client, id, "completed");
    expect(await responses.retrieve(id)).toMatchObject({ id, status: "completed" });
    expect((await responses.inputItems.list(id)).data).toHaveLength(1);
    expect(await responses.cancel(id)).toMatchObject({ id });
    await responses.delete(id);
    await raised(() => responses.retrieve(id), OpenAI.NotFoundError);
  });

  test("leaves a finished background response unchanged when it is cancelled", async () => {
    const { id } = await client.responses.create(asked);
    await asks();
    upstream.finish();
    await statusIs(client, id, "completed");
    expect(await client.responses.cancel(id)).toMatchObject({ id, status: "completed" });
  });

  test("stops the model of a deleted background response", async () => {
    const { id } = await client.responses.create(asked);
    await asks();
    await client.responses.delete(id);
    await until(() => upstream.open() === 0, "the model is stopped", 1_000);
    await raised(() => client.responses.retrieve(id), OpenAI.NotFoundError);
    await raised(() => client.responses.cancel(id), OpenAI.NotFoundError);
  });

  test("makes a follow-up wait for the end of a background response, then adds its items to the conversation", async () => {
    const conversation = await makeConversation(server);
    const { id } = await client.responses.create({ ...asked, conversation });
    await asks();
    const early = await raised(
      () => client.responses.create({ model, input: "Two", previous_response_id: id }),
      OpenAI.BadRequestError,
    );
    expect(early.message).toContain("still in progress");
    upstream.say("Hello");
    upstream.finish();
    await statusIs(client, id, "completed");
    const next = await client.responses.create({ ...asked, input: "Two", previous_response_id: id });
    await asks();
    expect(saidIn(upstream.requests.at(-1) ?? { body: {} })).toEqual(["user: One", "assistant: Hello", "user: Two"]);
    expect((await client.conversations.items.list(conversation)).data).toHaveLength(2);
    expect(next.previous_response_id).toBe(id);
  });
});

describe("background responses that cannot run", () => {
  let server: TestServer;
  let client: OpenAI;
  const upstream = startUpstream();
  beforeAll(async () => {
    server = await startHeadrace({ yaml: upstreamYaml(await upstream) });
    client = openaiClient(server);
  });
  afterAll(async () => {
    await server[Symbol.asyncDispose]();
    await (await upstream)[Symbol.asyncDispose]();
  });

  test("refuses a background response that is not stored", async () => {
    const { message } = await raised(() => client.responses.create({ ...asked, store: false }), OpenAI.BadRequestError);
    expect(message).toContain("background: cannot be true with `store: false`");
    await using other = await startHeadrace({
      yaml: upstreamYaml(await upstream, "stored_chats: { retention_days: 0 }\n"),
    });
    const refused = await raised(() => openaiClient(other).responses.create(asked), OpenAI.BadRequestError);
    expect(refused.message).toContain("stored_chats.retention_days is 0");
  });

  test("refuses an invalid background request like any other, and stores nothing of it", async () => {
    await raised(() => client.responses.create({ ...asked, model: "none" }), OpenAI.NotFoundError);
    const { id } = await client.responses.create({ model, input: "One" });
    const { message } = await raised(() => client.responses.cancel(id), OpenAI.BadRequestError);
    expect(message).toContain("not asked for with `background: true`");
    await raised(() => client.responses.retrieve(id, { stream: true }), OpenAI.BadRequestError);
    await raised(() => client.responses.cancel("resp_none"), OpenAI.NotFoundError);
    const alone = await server.request(`/v1/responses/${id}?starting_after=1`);
    expect([alone.status, await alone.text()]).toEqual([400, expect.stringContaining("starting_after: is for")]);
  });

  test("reports a model's failure in its background response", async () => {
    (await upstream).script((_, res) => json(res, 400, { error: { message: "no such thing", code: "bad" } }));
    const { id } = await client.responses.create(asked);
    const failed = await statusIs(client, id, "failed");
    expect(failed.error).toMatchObject({ code: "invalid_prompt", message: expect.stringContaining("no such thing") });
    const events = await read(await client.responses.retrieve(id, { stream: true }));
    expect(events.at(-1)).toMatchObject({ type: "response.failed", response: { status: "failed" } });
    (await upstream).script(chatScript());
  });
});

test("marks running background responses as failed when the server stops", async () => {
  await using upstream = await startGatedUpstream();
  const yaml = upstreamYaml(upstream);
  const server = await startHeadrace({ yaml });
  const { id } = await openaiClient(server).responses.create(asked);
  await until(() => upstream.open() === 1, "the model is asked");
  await server.close(300);
  await using again = await startHeadrace({ yaml, dataDir: server.dataDir });
  const failed = await openaiClient({ url: again.url, key: server.key }).responses.retrieve(id);
  expect(failed).toMatchObject({ status: "failed", error: { code: "server_is_overloaded" } });
});

test("ends the background responses of a killed process from another process, and notifies their subscribers", async () => {
  const clock = shiftedClock();
  await using upstream = await startGatedUpstream();
  await using server = await startHeadrace({ yaml: upstreamYaml(upstream), clock });
  const client = openaiClient(server);
  const { id } = await client.responses.create(asked);
  await until(() => upstream.open() === 1, "the model is asked");
  upstream.say("Hello");
  await statusIs(client, id, "in_progress");
  const { background, responses } = server.governance;
  const { accountId, environment } = server.firstKey.record;
  const owner = { accountId, environment, appId: null, personId: null, madeBy: null };
  const row = await responses.find(owner, id, clock.nowSeconds());
  if (!row) throw new Error("It is not worked on.");
  // A killed process would leave such a one.
  const orphan = { ...row, id: "resp_orphan", response: { ...row.response, id: "resp_orphan" } };
  await responses.insert([orphan]);
  await background.progress(
    orphan.id,
    { ...orphan, events: { first: 0, events: ['{"type":"a"}'] } },
    clock.nowSeconds(),
  );
  const following = read(await client.responses.retrieve(orphan.id, { stream: true }));
  clock.shift(70);
  // What is worked on says so.
  const abandoned = () => background.abandoned(clock.nowSeconds() - 10, clock.nowSeconds(), 9);
  await until(async () => (await abandoned()).length === 1, "it is abandoned");
  const other = new BackgroundRuns({ responses, background, clock, log: server.log });
  await other.endAbandoned();
  expect(await client.responses.retrieve(orphan.id)).toMatchObject({ status: "in_progress" });
  await other.endAbandoned();
  await other.close();
  expect(await client.responses.retrieve(orphan.id)).toMatchObject({
    status: "failed",
    error: { code: "server_error" },
  });
  expect((await following).map(({ type }) => type as string)).toEqual(["a", "response.failed"]);
  expect(await client.responses.retrieve(id)).toMatchObject({ status: "in_progress" });
  upstream.finish();
  await statusIs(client, id, "completed");
});

test("reads, streams and cancels a background response at any replica", async () => {
  await using upstream = await startGatedUpstream();
  await using replicas = await startReplicas({ yaml: upstreamYaml(upstream) });
  const [one, other] = replicas.servers.map(({ url }) => openaiClient({ url, key: replicas.key }));
  if (!(one && other)) throw new Error("There are no two replicas.");
  const first = await one.responses.create(asked);
  await until(() => upstream.open() === 1, "the model is asked");
  expect(await other.responses.retrieve(first.id)).toMatchObject({ background: true });
  const following = read(await other.responses.retrieve(first.id, { stream: true }));
  for (const word of ["Hello", " my", " world"]) upstream.say(word);
  upstream.finish();
  const events = await following;
  expect(numbersOf(events)).toEqual(upTo(events.length));
  expect(events.at(-1)).toMatchObject({ type: "response.completed", response: { id: first.id } });
  const second = await one.responses.create(asked);
  await until(() => upstream.open() === 1, "the model is asked again");
  expect(await other.responses.cancel(second.id)).toMatchObject({ status: "cancelled" });
  await until(() => upstream.open() === 0, "the model is stopped", 2_000);
}, 60_000);
