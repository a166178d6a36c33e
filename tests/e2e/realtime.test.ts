// Realtime sessions: events both ways, models by their public names, and each response admitted, counted and charged by itself.
import { afterAll, afterEach, beforeAll, expect, test } from "bun:test";
import { connect as connectTcp } from "node:net";
import { openRaw } from "../hostile/raw-client.ts";
import { bookedUsage } from "../support/booked-usage.ts";
import { allWorkers, startHeadrace, type TestServer, until } from "../support/headrace.ts";
import { withinMs } from "../support/long.ts";
import { type RealtimeUpstream, startRealtimeUpstream, turn } from "../support/realtime-upstream.ts";
import { ValueMaker } from "../support/value-maker.ts";

type Json = Record<string, unknown>;

interface Event extends Json {
  type: string;
  error?: { code: string; message: string; event_id: string | null; param: string | null };
  session?: Json;
  response?: { id: string; status: string };
}

let upstream: RealtimeUpstream;
let server: TestServer;

const yaml = (url: string) => `upstreams:
  - { name: up, url: "${url}", api_key: sk-upstream-secret-0123456789 }
models:
  - id: talker
    capabilities: { realtime: true }
    price: { input: 4, cached_input: 0.4, output: 16, input_audio: 32, output_audio: 64 }
    deployments: [{ upstream: up, model: rt-own-name }]
  - id: scribe
    price: { input: 1, output: 1 }
    deployments: [{ upstream: up, model: scribe-own-name }]
  - id: mute
    capabilities: { realtime: false }
    deployments: [{ upstream: up, model: rt-own-name }]
`;

beforeAll(async () => {
  upstream = startRealtimeUpstream(["rt-own-name", "scribe-own-name"]);
  server = await startHeadrace({ yaml: yaml(upstream.url) });
});
afterEach(() => upstream.speaks(3));
afterAll(async () => {
  await server[Symbol.asyncDispose]();
  await upstream[Symbol.asyncDispose]();
});

/** A client that collects what it is told. */
async function connect(options: { key?: string; model?: string; protocols?: string[]; at?: TestServer } = {}) {
  const { key = server.key, model = "talker", protocols, at = server } = options;
  const headers = protocols ? {} : { authorization: `Bearer ${key}` };
  const url = `${at.url.replace("http", "ws")}/v1/realtime?model=${model}`;
  const socket = new WebSocket(url, { headers, ...(protocols ? { protocols } : {}) } as never);
  const events: Event[] = [];
  socket.onmessage = ({ data }) => {
    events.push(JSON.parse(String(data)) as Event);
  };
  const closed = new Promise<number>((resolve) => {
    socket.onclose = ({ code }) => resolve(code);
  });
  await new Promise((resolve, reject) => {
    socket.onopen = resolve;
    socket.onerror = () => reject(new Error("It was not opened."));
  });
  return {
    ...{ events, closed, socket },
    send: (event: object) => socket.send(JSON.stringify(event)),
    until: (type: string, count = 1) =>
      until(
        () => {
          const found = events.filter((event) => event.type === type);
          return found.length >= count ? found[count - 1] : undefined;
        },
        `${count} of ${type}: ${JSON.stringify(events.map((event) => event.error ?? event.type))}`,
      ),
    [Symbol.dispose]: () => socket.close(),
  };
}

async function keyWith(more: Json): Promise<{ id: string; key: string }> {
  const made = await server.request("/v1/keys", { body: { name: "realtime", ...more } });
  expect(made.status).toBe(200);
  return (await made.json()) as { id: string; key: string };
}

/** Records of realtime of a key, the newest first, once there are so many. */
async function booked(keyId: string | undefined, count: number, at = server): Promise<Json[]> {
  return await until(async () => {
    const filter = keyId === undefined ? "" : `&key=${keyId}`;
    const listed = await at.request(`/v1/requests?limit=20${filter}`);
    const { data } = (await listed.json()) as { data: Json[] };
    const found = data.filter(({ operation }) => operation === "realtime");
    return found.length >= count ? found : undefined;
  }, `${count} are booked`);
}

test("relays a realtime response event by event, and books reported text, audio and cached tokens", async () => {
  const { id, key } = await keyWith({});
  using client = await connect({ key });
  client.send({ type: "response.create", response: { instructions: "Say hello." } });
  await client.until("response.done");
  expect(client.events.map(({ type }) => type)).toEqual([
    ...["session.created", "response.created", "response.output_audio.delta"],
    ...["response.output_text.delta", "response.output_text.delta", "response.output_text.delta", "response.done"],
  ]);
  const { path, headers, events } = upstream.connections.at(-1) ?? {};
  expect(path).toBe("/v1/realtime?model=rt-own-name");
  expect(headers?.get("authorization")).toBe("Bearer sk-upstream-secret-0123456789");
  expect(events).toMatchObject([{ type: "response.create", response: { instructions: "Say hello." } }]);
  const [record] = await booked(id, 1);
  expect(record).toMatchObject({
    ...{ model: "talker", upstream: "up", stream: true, outcome: "completed", estimated: false, capped: false },
    ...{ prompt_tokens: 100, cached_tokens: 30, completion_tokens: 13 },
  });
  const listed = await server.request(`/v1/requests/${record?.["id"]}`);
  // From the audio that was heard, 20 tokens came from the cache, and have its rate.
  expect(((await listed.json()) as Json)["usage_details"]).toMatchObject({
    input_audio_tokens: 60,
    output_audio_tokens: 4,
  });
  expect(record?.["cost"]).toBeCloseTo((10 * 4 + 30 * 0.4 + 60 * 32 + 9 * 16 + 4 * 64) / 1e6, 9);
});

test("keeps the model's public name in a realtime session, whatever its server calls it", async () => {
  using client = await connect();
  expect((await client.until("session.created")).session).toMatchObject({ model: "talker" });
  const transcription = { model: "scribe", language: "en" };
  const session = { type: "realtime", model: "talker", audio: { input: { transcription } } };
  client.send({ type: "session.update", session });
  expect((await client.until("session.updated")).session).toMatchObject(session);
  expect(upstream.connections.at(-1)?.events.at(-1)).toMatchObject({
    session: {
      model: "rt-own-name",
      audio: { input: { transcription: { model: "scribe-own-name", language: "en" } } },
    },
  });
  client.send({ type: "session.update", event_id: "mine", session: { model: "gpt-other" } });
  const { error } = await client.until("error");
  expect(error).toMatchObject({ code: "invalid_request", param: "session.model", event_id: "mine" });
  expect(upstream.connections.at(-1)?.events).toHaveLength(1);
});

test("removes a transcription model that the key may not use from a session update, says so, and sends the rest", async () => {
  using client = await connect();
  // The Agents SDKs send this at the beginning of each session.
  const audio = {
    input: { transcription: { model: "gpt-4o-mini-transcribe" }, turn_detection: { type: "semantic_vad" } },
  };
  const session = { type: "realtime", instructions: "Be brief.", tools: [{ type: "function", name: "f" }], audio };
  client.send({ type: "session.update", event_id: "first", session });
  const updated = await client.until("session.updated");
  expect(updated.session).toMatchObject({ instructions: "Be brief.", tools: [{ name: "f" }] });
  const { error } = await client.until("error");
  expect(error).toMatchObject({ param: "session.audio.input.transcription.model", event_id: "first" });
  expect(error?.message).toContain("is not transcribed. The rest of the event was sent.");
  expect(upstream.connections.at(-1)?.events.at(-1)).toEqual({
    ...{ type: "session.update", event_id: "first" },
    session: { ...session, audio: { input: { turn_detection: { type: "semantic_vad" } } } },
  });
  client.send({ type: "session.update", session: { input_audio_transcription: { model: ["scribe"] }, voice: "x" } });
  expect((await client.until("error", 2)).error?.param).toBe("session.input_audio_transcription.model");
  await client.until("session.updated", 2);
  expect(upstream.connections.at(-1)?.events.at(-1)).toEqual({ type: "session.update", session: { voice: "x" } });
});

// hardening: F15
test.each([
  ['{"type":"session.update","session":{"Model":"huge"}}', "session.Model"],
  ['{"type":"session.update","Session":{"model":"huge"}}', "Session"],
  ['{"type":"input_audio_buffer.clear","Type":"session.update","session":{"model":"talker"}}', "Type"],
  ['{"type":"response.create","re\u017fponse":{"model":"huge"}}', "re\\u017fponse"],
  ['{"type":"response.create","response":{"maxOutputTokens":90000}}', "response.maxOutputTokens"],
  ['{"type":"response.create","response":{"model":"huge"}}', "response.model"],
  ['{"type":"response.create","session":{"model":"huge"}}', "session.model"],
  ['{"type":"conversation.item.create","model":"huge"}', "model"],
  ['{"type":"session.create","session":{"model":"huge"}}', "session.model"],
  ['{"type":"session.update","session":{"fallbacks":["huge"]}}', "session.fallbacks"],
  ['{"type":"session.update","session":{"model":"talker","mod\\u0065l":"huge"}}', null],
  ['{"type":"session.update","session":{"audio":{"input":{"transcription":{"Model":"huge"}}}}}', "session.audio"],
  ['{"type":"session.update","session":{"temperature":1e400}}', null],
  ['{"type":"session.update","session":[{"model":"huge"}]}', "session"],
  ['\ufeff{"type":"session.update"}', null],
] as const)("refuses a realtime event that its server may read differently: %s", async (text, param) => {
  using client = await connect();
  client.socket.send(text);
  const { error } = await client.until("error");
  expect(error?.code).toBe("invalid_request");
  if (param) expect(error?.param).toStartWith(param);
  expect(upstream.connections.at(-1)?.events).toEqual([]);
});

test("books a realtime response as reported, whatever limit the client requested before", async () => {
  const { id, key } = await keyWith({});
  using client = await connect({ key });
  // Servers refuse some of these, know others by another name, and may have said more at any rate.
  client.send({ type: "session.update", session: { max_output_tokens: 1 } });
  client.send({ type: "response.create", response: { max_output_tokens: "inf" } });
  await client.until("response.done");
  client.send({ type: "response.create" });
  await client.until("response.done", 2);
  const records = await booked(id, 2);
  expect(records.map((record) => [record["completion_tokens"], record["capped"]])).toEqual([
    [13, false],
    [13, false],
  ]);
});

test.each([
  ["zeros", "completed", { input_tokens: 0, output_tokens: 0, total_tokens: 0 }],
  ["a token", "completed", { input_tokens: 1, output_tokens: 1 }],
  ["no usage", "completed", null],
  ["no usage of a failure", "failed", null],
  ["zeros of a failure", "failed", { input_tokens: 0, output_tokens: 0 }],
])("books the delivered part where a realtime server reports %s", async (_, status, usage) => {
  const { id, key } = await keyWith({});
  using client = await connect({ key });
  await client.until("session.created");
  const connection = upstream.connections.at(-1);
  connection?.send({ type: "response.created", response: { id: "odd", status: "in_progress" } });
  await client.until("response.created");
  for (let i = 0; i < 200; i++) {
    connection?.send({ type: "response.output_text.delta", response_id: "odd", delta: "word " });
  }
  connection?.send({ type: "response.done", response: { id: "odd", status, output: [], usage } });
  await client.until("response.done");
  const [record] = await booked(id, 1);
  expect(record).toMatchObject({ outcome: status, completion_tokens: 250, estimated: true });
});

test("books zero for a realtime response interrupted before its first token", async () => {
  const { id, key } = await keyWith({});
  using client = await connect({ key });
  await client.until("session.created");
  client.send({ type: "input_audio_buffer.append", audio: Buffer.alloc(480_000).toString("base64") });
  await until(() => upstream.connections.at(-1)?.events.length === 1, "it was heard");
  const connection = upstream.connections.at(-1);
  connection?.send({ type: "response.created", response: { id: "odd", status: "in_progress" } });
  await client.until("response.created");
  const usage = { total_tokens: 0, input_tokens: 0, output_tokens: 0 };
  const why = { type: "cancelled", reason: "turn_detected" };
  connection?.send({
    type: "response.done",
    response: { id: "odd", status: "cancelled", status_details: why, output: [], usage },
  });
  await client.until("response.done");
  const [record] = await booked(id, 1);
  expect(record).toMatchObject({ prompt_tokens: 0, completion_tokens: 0, estimated: false });
});

test("books the recognized text if no transcript tokens are reported, and reported seconds", async () => {
  const { id, key } = await keyWith({});
  using client = await connect({ key });
  const hear = async (usage: Json, count: number) => {
    client.send({ type: "input_audio_buffer.append", audio: Buffer.alloc(48_000).toString("base64") });
    await until(() => upstream.connections.at(-1)?.events.length === count, "it was heard");
    const type = "conversation.item.input_audio_transcription.completed";
    upstream.connections.at(-1)?.send({ type, transcript: "It runs by itself.", usage });
    await client.until(type, count);
  };
  await hear({ type: "tokens", input_tokens: 0, output_tokens: 0 }, 1);
  await hear({ type: "duration", seconds: 3 }, 2);
  const records = await booked(id, 2);
  expect(records.map((record) => [record["prompt_tokens"], record["completion_tokens"]])).toEqual([
    [30, 0],
    [10, 5],
  ]);
});

test("skips keep-alive messages of a realtime server", async () => {
  using client = await connect();
  await client.until("session.created");
  for (const event of [{ type: "ping" }, { type: "heartbeat" }]) upstream.connections.at(-1)?.send(event);
  client.send({ type: "response.create" });
  await client.until("response.done");
  expect(client.events.filter(({ type }) => type === "ping" || type === "heartbeat")).toEqual([]);
});

test("books a transcript as reported at the transcription model's price", async () => {
  const { id, key } = await keyWith({});
  using client = await connect({ key });
  client.send({ type: "session.update", session: { audio: { input: { transcription: { model: "scribe" } } } } });
  client.send({ type: "input_audio_buffer.commit" });
  await client.until("conversation.item.input_audio_transcription.completed");
  const [record] = await booked(id, 1);
  expect(record).toMatchObject({ model: "scribe", prompt_tokens: 50, completion_tokens: 7, outcome: "completed" });
  expect(record?.["cost"]).toBeCloseTo(57e-6, 9);
});

test("books vLLM's transcripts by the usage reported at their end, or as an estimate if that never arrives", async () => {
  const { id, key } = await keyWith({});
  using client = await connect({ key });
  client.send({ type: "session.update", model: "talker" });
  await client.until("session.updated");
  const server = upstream.connections.at(-1);
  expect(server?.events).toEqual([{ type: "session.update", model: "rt-own-name" }]);
  client.send({ type: "session.update", event_id: "mine", model: "gpt-other" });
  expect((await client.until("error")).error).toMatchObject({ param: "model", event_id: "mine" });

  server?.send({ type: "transcription.delta", delta: "The mill" });
  server?.send({ type: "transcription.done", text: "The mill", usage: { prompt_tokens: 40, completion_tokens: 2 } });
  await client.until("transcription.done");
  client.send({ type: "input_audio_buffer.append", audio: Buffer.alloc(48_000).toString("base64") });
  server?.send({ type: "transcription.done", text: "It runs by itself.", usage: null });
  await client.until("transcription.done", 2);
  client.send({ type: "input_audio_buffer.append", audio: Buffer.alloc(9_600).toString("base64") });
  server?.send({ type: "transcription.delta", delta: "It runs" });
  await client.until("transcription.delta", 2);
  client.socket.close();
  const records = await booked(id, 3);
  expect(records.map((record) => [record["prompt_tokens"], record["estimated"]])).toEqual([
    [2, true],
    [10, true],
    [40, false],
  ]);
  expect(records.map((record) => Number(record["completion_tokens"]) > 0)).toEqual([true, true, true]);
});

test("ends a transcription-only session when its quota is spent", async () => {
  const { key } = await keyWith({ quotas: [{ unit: "tokens", amount: 10, per: "day" }] });
  using client = await connect({ key });
  await client.until("session.created");
  for (let i = 0; i < 2; i++) upstream.connections.at(-1)?.send({ type: "transcription.done", text: "A".repeat(200) });
  expect((await client.until("error")).error?.code).toBe("insufficient_quota");
  expect(await client.closed).toBe(1008);
});

test("admits and books a response that the realtime server starts by itself after speech", async () => {
  const { id, key } = await keyWith({ rate_limit: 1, rate_limit_window: 3600 });
  using client = await connect({ key });
  client.send({ type: "input_audio_buffer.append", audio: turn });
  await client.until("response.done");
  await booked(id, 1);
  upstream.speaks("endless");
  client.send({ type: "input_audio_buffer.append", audio: turn });
  expect((await client.until("error")).error).toMatchObject({ code: "rate_limit_exceeded" });
  expect(await client.closed).toBe(1008);
  await until(() => upstream.connections.at(-1)?.closed, "the server's end is closed");
  expect(upstream.connections.at(-1)?.events.at(-1)).toMatchObject({ type: "response.cancel" });
});

test("ends a response that a limit refuses with an error event by its request's id, and closes the connection", async () => {
  const { key } = await keyWith({ monthly_spend: 0.000_001 });
  using client = await connect({ key });
  const before = upstream.begun;
  client.send({ type: "response.create", event_id: "event_mine" });
  expect((await client.until("error")).error).toMatchObject({ code: "insufficient_quota", event_id: "event_mine" });
  expect(await client.closed).toBe(1008);
  expect(upstream.begun).toBe(before);
});

test("records no key use while an open session is idle", async () => {
  const { id, key } = await keyWith({});
  const openedAt = Math.floor(Date.now() / 1000);
  const client = await connect({ key });
  await Bun.sleep(3_500);
  client[Symbol.dispose]();
  const usedAt = await until(async () => {
    const record = (await (await server.request(`/v1/keys/${id}`)).json()) as { last_used_at: number | null };
    return record.last_used_at ?? undefined;
  }, "the use of the key is recorded");
  expect(usedAt).toBeWithin(openedAt, openedAt + 2);
});

// long-lived: realtimeSession.credential
test("ends a revoked key's session within a second, and books its usage as reported", async () => {
  upstream.speaks("endless");
  const { id, key } = await keyWith({});
  using client = await connect({ key });
  client.send({ type: "response.create" });
  await client.until("response.output_text.delta");
  const since = performance.now();
  await server.request(`/v1/keys/${id}`, { method: "DELETE" });
  expect((await client.until("error")).error?.code).toBe("invalid_api_key");
  expect(await client.closed).toBe(1008);
  expect(performance.now() - since).toBeLessThan(withinMs(1_000));
  const [record] = await booked(id, 1);
  const reported = upstream.received.at(-1);
  expect(record).toMatchObject({
    prompt_tokens: reported?.inputTokens,
    completion_tokens: reported?.outputTokens,
    estimated: false,
  });
});

test("ends the session of a key that loses access to the model within a second, even if idle", async () => {
  const { id, key } = await keyWith({ models: ["talker"] });
  using client = await connect({ key });
  await client.until("session.created");
  const since = performance.now();
  await server.request(`/v1/keys/${id}`, { method: "PATCH", body: { models: ["scribe"] } });
  expect((await client.until("error")).error?.code).toBe("model_not_found");
  expect(await client.closed).toBe(1008);
  expect(performance.now() - since).toBeLessThan(withinMs(1_000));
});

test("cancels a realtime response when its client leaves, and charges the server's count until then", async () => {
  upstream.speaks("endless");
  const { id, key } = await keyWith({});
  {
    using client = await connect({ key });
    client.send({ type: "response.create" });
    await client.until("response.output_text.delta", 5);
  }
  const [record] = await booked(id, 1);
  const reported = upstream.received.at(-1);
  expect(record).toMatchObject({
    ...{ outcome: "cancelled", estimated: false },
    ...{ prompt_tokens: reported?.inputTokens, completion_tokens: reported?.outputTokens },
  });
  await until(() => upstream.connections.at(-1)?.closed, "the server's end is closed");
});

test("charges clients that leave at any moment exactly the reported tokens, once per response", async () => {
  const { id, key } = await keyWith({});
  const first = upstream.received.length;
  const begun = upstream.begun;
  const maker = new ValueMaker(20_261_127);
  await Promise.all(
    Array.from({ length: 40 }, async (_, index) => {
      await Bun.sleep(maker.fraction() * 300);
      const client = await connect({ key });
      const responses = 1 + (index % 3);
      for (let n = 0; n < responses; n++) client.send({ type: "response.create" });
      // Some before the server has begun, some in the middle, some once it is over.
      await Bun.sleep(maker.fraction() * 30);
      client.socket.close(index % 5 === 0 ? 4000 : 1000);
    }),
  );
  await until(() => upstream.connections.every(({ closed }) => closed !== undefined), "all have ended");
  const reported = upstream.received.slice(first);
  expect(reported.length).toBe(upstream.begun - begun);
  expect(reported.length).toBeGreaterThan(10);
  const sumOf = (figures: readonly number[]) => figures.reduce((sum, figure) => sum + figure, 0);
  const sums = [
    sumOf(reported.map(({ inputTokens }) => inputTokens)),
    sumOf(reported.map(({ outputTokens }) => outputTokens)),
  ];
  const usage = await until(async () => {
    await server.governance.ledger.flush();
    const listed = await server.request(`/v1/requests?limit=100&key=${id}`);
    const { data } = (await listed.json()) as { data: { prompt_tokens: number; completion_tokens: number }[] };
    const found = [sumOf(data.map((one) => one.prompt_tokens)), sumOf(data.map((one) => one.completion_tokens))];
    return found[0] === sums[0] ? found : undefined;
  }, `${sums} tokens are booked`);
  expect(usage).toEqual(sums);
});

test("charges nothing for a response that the realtime server refuses, and names the client's event", async () => {
  const { id, key } = await keyWith({});
  using client = await connect({ key });
  client.send({ type: "response.create", response: { conversation: "wrong" } });
  expect((await client.until("error")).error).toMatchObject({ code: "invalid_value", event_id: null });
  client.send({ type: "response.create", event_id: "mine", response: { conversation: "wrong" } });
  expect((await client.until("error", 2)).error?.event_id).toBe("mine");
  client.send({ type: "response.create" });
  await client.until("response.done");
  const records = await booked(id, 3);
  expect(records.map(({ outcome, cost }) => [outcome, cost === 0])).toEqual([
    ["completed", false],
    ["failed", true],
    ["failed", true],
  ]);
});

test("reports a realtime server that ends during a response as at fault, and books the delivered part", async () => {
  upstream.speaks("endless");
  const { id, key } = await keyWith({});
  using client = await connect({ key });
  client.send({ type: "response.create" });
  await client.until("response.output_text.delta", 3);
  upstream.connections.at(-1)?.close(1011);
  expect((await client.until("error")).error?.code).toBe("upstream_error");
  expect(await client.closed).toBe(1011);
  const [record] = await booked(id, 1);
  expect(record).toMatchObject({ outcome: "failed", estimated: true });
  expect(Number(record?.["completion_tokens"])).toBeGreaterThan(0);
});

test("delivers and books a realtime server's last events before its end, and settles unfinished ones", async () => {
  const { id, key } = await keyWith({});
  using whole = await connect({ key });
  const response = { id: "resp_last", status: "completed" };
  const usage = { input_tokens: 70, output_tokens: 5 };
  await whole.until("session.created");
  const first = upstream.connections.at(-1);
  first?.send({ type: "response.created", response });
  first?.send({ type: "response.output_text.delta", response_id: "resp_last", delta: "all" });
  first?.send({ type: "response.done", response: { ...response, usage } });
  first?.close(1000);
  expect(await whole.closed).toBe(1000);
  expect(whole.events.at(-1)).toMatchObject({ type: "response.done", response: { usage } });

  using begun = await connect({ key });
  await begun.until("session.created");
  const second = upstream.connections.at(-1);
  for (let i = 0; i < 2; i++) second?.send({ type: "response.created", response: { id: "resp_twice" } });
  second?.close(1000);
  expect(await begun.closed).toBe(1011);
  const records = await booked(id, 3);
  expect(records.map((record) => [record["outcome"], record["completion_tokens"], record["estimated"]])).toEqual([
    ["failed", 0, true],
    ["failed", 0, true],
    ["completed", 5, false],
  ]);
});

test("refuses an invalid realtime event without forwarding it, and continues the session", async () => {
  using client = await connect();
  client.socket.send("hello");
  client.socket.send("[]");
  client.send({ kind: "none" });
  await client.until("error", 3);
  client.send({ type: "conversation.item.create", item: { type: "message", role: "user" } });
  await client.until("conversation.item.added");
  expect(upstream.connections.at(-1)?.events.map(({ type }) => type)).toEqual(["conversation.item.create"]);
});

test("refuses too deep or too large realtime events from client and server without a trace", async () => {
  const deepText = "[".repeat(50_000) + "]".repeat(50_000);
  const many = `{"type":"response.create","many":[${"[],".repeat(300_000)}1]}`;
  const nested = (type: string) => `{"type":"${type}","deep":${deepText}}`;
  using client = await connect();
  await client.until("session.created");
  for (const type of ["conversation.item.create", "response.create", "session.update"])
    client.socket.send(nested(type));
  client.socket.send(many);
  await client.until("error", 4);
  expect(client.events.at(-1)?.error?.message).toContain("cannot be used");
  client.send({ type: "response.create" });
  await client.until("response.done");
  expect(upstream.connections.at(-1)?.events.map(({ type }) => type)).toEqual(["response.create"]);
  const deep = JSON.parse(deepText.slice(45_000, -45_000)) as Json;
  upstream.connections.at(-1)?.send({ type: "session.updated", session: { deep } });
  expect(await client.closed).toBe(1011);
});

test("accepts a browser's key as a subprotocol, and refuses a wrong one", async () => {
  using client = await connect({ protocols: ["realtime", `openai-insecure-api-key.${server.key}`] });
  expect(client.socket.protocol).toBe("realtime");
  await client.until("session.created");
  const wrong = connect({ protocols: ["realtime", "openai-insecure-api-key.hr-live-nothing"] });
  await expect(wrong).rejects.toThrow();
});

test("answers a session that cannot open with a plain HTTP error before the upgrade", async () => {
  const upgrade = {
    ...{ connection: "Upgrade", upgrade: "websocket", "sec-websocket-version": "13" },
    "sec-websocket-key": "AAAAAAAAAAAAAAAAAAAAAA==",
  };
  const status = async (path: string, headers: Record<string, string> = upgrade) => {
    const response = await server.request(path, { headers });
    const { error } = (await response.json()) as { error: Json };
    return [response.status, error["code"], error["param"]];
  };
  expect(await status("/v1/realtime?model=talker", {})).toEqual([426, "invalid_request", undefined]);
  expect(await status("/v1/realtime")).toEqual([400, "invalid_request", "model"]);
  expect(await status("/v1/realtime?model=nobody")).toEqual([404, "model_not_found", "model"]);
  expect(await status("/v1/realtime?model=mute")).toEqual([400, "invalid_request", "model"]);
  expect(await status("/v1/realtime?model=talker&call_id=x")).toEqual([400, "invalid_request", "call_id"]);
  const secrets = await server.request("/v1/realtime/client_secrets", { body: {} });
  expect(secrets.status).toBe(404);
  expect(await secrets.text()).toContain("past every limit");
});

test("ends a realtime response in the middle at a hard stop quota", async () => {
  upstream.speaks("endless");
  const { id, key } = await keyWith({ quotas: [{ unit: "tokens", amount: 120, per: "day", hard_stop: true }] });
  using client = await connect({ key });
  client.send({ type: "response.create" });
  expect((await client.until("error")).error?.code).toBe("insufficient_quota");
  expect(await client.closed).toBe(1008);
  const [record] = await booked(id, 1);
  expect(record).toMatchObject({ outcome: "failed", completion_tokens: upstream.received.at(-1)?.outputTokens });
});

test("refuses responses beyond a session's concurrency limit, and continues the session", async () => {
  upstream.speaks("endless");
  using client = await connect();
  for (let i = 0; i < 9; i++) client.send({ type: "response.create", event_id: `event_${i}` });
  expect((await client.until("error")).error).toMatchObject({ code: "rate_limit_exceeded", event_id: "event_8" });
  await client.until("response.created", 8);
  client.send({ type: "response.cancel" });
  await client.until("response.done", 8);
});

test("serves a realtime response after eight that the server failed without an end", async () => {
  const { id, key } = await keyWith({});
  using client = await connect({ key });
  for (let i = 1; i <= 8; i++) {
    client.send({ type: "response.create", response: { conversation: "lost" } });
    expect((await client.until("error", i)).error?.message).toBe("No voice.");
  }
  client.send({ type: "response.create" });
  await client.until("response.done");
  client.socket.close();
  const records = await booked(id, 9);
  expect(records.filter(({ cost }) => cost === 0)).toHaveLength(8);
  expect(records.filter(({ outcome }) => outcome === "completed")).toHaveLength(1);
});

test("advises another realtime session after 64 responses that the server failed without an end", async () => {
  const { key } = await keyWith({});
  using client = await connect({ key });
  for (let i = 1; i <= 64; i++) {
    client.send({ type: "response.create", response: { conversation: "lost" } });
    expect((await client.until("error", i)).error?.message).toBe("No voice.");
  }
  client.send({ type: "response.create" });
  expect((await client.until("error", 65)).error?.message).toContain("Open another session.");
});

test("stops reading from the realtime server while its client does not read", async () => {
  const { hostname, port } = new URL(server.url);
  const head = `GET /v1/realtime?model=talker HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${server.key}\r\nconnection: Upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\nsec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n`;
  const client = connectTcp(Number(port), hostname);
  const before = upstream.connections.length;
  client.write(head);
  await new Promise((resolve) => client.once("data", resolve));
  client.pause();
  const connection = await until(() => upstream.connections[before], "the server is connected");
  const delta = "x".repeat(64 * 1024);
  const total = 1_000;
  for (let i = 0; i < total; i++) connection.send({ type: "conversation.item.added", delta });
  // Once nothing has moved for a while: what the kernel holds for both connections has gone, and little else.
  let last = -1;
  await until(async () => {
    const unsent = connection.unsentBytes;
    const isStill = unsent === last;
    last = unsent;
    await Bun.sleep(300);
    return isStill;
  }, "nothing moves");
  expect(connection.unsentBytes).toBeGreaterThan(total * delta.length * 0.7);
  let received = 0;
  client.on("data", ({ length }) => {
    received += length;
  });
  client.resume();
  await until(() => received > total * delta.length, "all of it came, once it was read", 20_000);
  client.destroy();
});

test("books the usage of clients that left just before the process ends", async () => {
  upstream.speaks("endless");
  const at = await startHeadrace({ yaml: yaml(upstream.url) });
  const client = await connect({ key: at.key, at });
  client.send({ type: "response.create" });
  await client.until("response.output_text.delta");
  client.socket.close();
  await client.closed;
  await at.close();
  expect(bookedUsage(at.dataDir)).toMatchObject([{ operation: "realtime", outcome: "cancelled" }]);
  await at[Symbol.asyncDispose]();
});

test("limits a key's open sessions to its concurrent requests, and releases each", async () => {
  await using few = await startHeadrace({ yaml: `${yaml(upstream.url)}limits: { open_requests_per_key: 3 }\n` });
  const before = upstream.connections.length;
  const open = async () => await connect({ at: few, key: few.key });
  const sessions = [await open(), await open()];
  await expect(open()).rejects.toThrow();
  expect(upstream.connections.length - before).toBe(2);
  const url = "/v1/realtime?model=mute";
  for (let i = 0; i < 4; i++) expect((await few.request(url)).status).toBe(426);
  sessions[0]?.socket.close();
  const again = await until(async () => await open().catch(() => undefined), "the place is given back");
  for (const one of [...sessions, again]) one.socket.close();
});

test("refuses an upgrade over HTTP/1.0 and takes no slot", async () => {
  await using few = await startHeadrace({ yaml: `${yaml(upstream.url)}limits: { open_requests_per_key: 2 }\n` });
  const before = upstream.connections.length;
  const fields = `Authorization: Bearer ${few.key}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13`;
  const asked = `GET /v1/realtime?model=talker HTTP/1.0\r\n${fields}\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n`;
  for (let n = 0; n < 4; n++) {
    const connection = await openRaw(few.url);
    await connection.write(asked);
    expect((await connection.ended()).text).toContain("A WebSocket begins with a request of HTTP/1.1.");
  }
  expect(upstream.connections.length).toBe(before);
  using client = await connect({ key: few.key, at: few });
  expect((await client.until("session.created")).type).toBe("session.created");
});

test.each(["/v1/realtime?model=talker", "/v1/responses"])(
  "closes %s with 1007 for a text that is not UTF-8",
  async (path) => {
    const connection = await openRaw(server.url);
    const fields = `Host: a\r\nAuthorization: Bearer ${server.key}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13`;
    await connection.write(`GET ${path} HTTP/1.1\r\n${fields}\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n`);
    await connection.answered(1, 300);
    const text = Buffer.from('{"type":"\xff"}', "latin1");
    await connection.write(Buffer.concat([Buffer.of(0x81, 0x80 | text.length, 0, 0, 0, 0), text]));
    expect((await connection.ended()).text).toContain("\x03\xefa text is no UTF-8");
    expect(
      upstream.connections.flatMap(({ events }) => events).filter(({ type }) => String(type).includes("\ufffd")),
    ).toEqual([]);
  },
);

test("hands a realtime session from a worker to the primary process, which books it", async () => {
  await using at = await startHeadrace({ yaml: yaml(upstream.url), flags: { workers: "2" } });
  for (let i = 0; i < 4; i++) {
    using client = await connect({ key: at.key, at });
    client.send({ type: "response.create" });
    await client.until("response.done");
  }
  await booked(undefined, 4, at);
});

// long-lived: realtimeSession.server
test.skipIf(allWorkers !== undefined)(
  "ends realtime sessions with the process, and books running responses",
  async () => {
    upstream.speaks("endless");
    const at = await startHeadrace({ yaml: yaml(upstream.url) });
    const client = await connect({ key: at.key, at });
    client.send({ type: "response.create" });
    await client.until("response.output_text.delta");
    await at.close();
    expect((await client.until("error")).error?.code).toBe("service_unavailable");
    expect(await client.closed).toBe(1001);
    const [record] = bookedUsage(at.dataDir);
    expect(record).toMatchObject({ operation: "realtime", outcome: "failed", error_code: "service_unavailable" });
    expect(Number(record?.completion_tokens)).toBeGreaterThan(0);
    await at[Symbol.asyncDispose]();
  },
);
