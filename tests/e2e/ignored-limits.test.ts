// Model servers that ignore the limit of an answer: what they deliver is booked, quotas hold, and they are told by another name.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import type { ServerResponse } from "node:http";
import { completeResponse, completeUsage } from "../support/complete-response.ts";
import { startHeadrace, type TestServer, until } from "../support/headrace.ts";
import {
  chunk,
  json,
  type ScriptedUpstream,
  startUpstream,
  type UpstreamRequest,
} from "../support/scripted-upstream.ts";

type Json = Record<string, unknown>;

/** Words of an answer that nothing limits, a token each. */
const unlimited = 5_000;
const promptTokens = 10;
const question = { role: "user", content: "x".repeat(40) };

/** Names of the limits that the model server reads, those that come first win; and whether it reports its usage. */
let reads: readonly string[];
let reports: (tokens: number) => number | undefined;
let upstream: ScriptedUpstream;
let responses: ScriptedUpstream;
let server: TestServer;
const models = [
  "whole",
  "stream",
  "renamed",
  "translated",
  "foreign",
  "harmless",
  "deaf",
  "silent",
  "lying",
  "warned",
  "honest",
] as const;

beforeAll(async () => {
  upstream = await startUpstream(answer);
  responses = await startUpstream(respond);
  server = await startHeadrace({
    yaml: `upstreams:
  - { name: up, url: "${upstream.url}", discover: false }
  - { name: responses, url: "${responses.url}", discover: false, apis: [responses] }
models:
  - { id: least, deployments: [{ upstream: responses, model: least }] }
${models.map((id) => `  - { id: ${id}, deployments: [{ upstream: up, model: ${id} }] }\n`).join("")}`,
  });
});
beforeEach(() => {
  reads = ["max_tokens"];
  reports = (tokens) => tokens;
});
afterAll(async () => {
  await server[Symbol.asyncDispose]();
  await upstream[Symbol.asyncDispose]();
  await responses[Symbol.asyncDispose]();
});

function lengthFor(body: Json): number {
  const named = reads.find((name) => typeof body[name] === "number");
  const options = body["options"] as Json | undefined;
  const nested = reads.includes("options.num_predict") ? options?.["num_predict"] : undefined;
  return Number(nested ?? (named === undefined ? unlimited : body[named]));
}

function answer({ body }: UpstreamRequest, res: ServerResponse): void {
  const words = lengthFor(body);
  const completion = reports(words);
  const usage =
    completion === undefined
      ? undefined
      : { prompt_tokens: promptTokens, completion_tokens: completion, total_tokens: promptTokens + completion };
  if (body["stream"] === true) {
    res.writeHead(200, { "content-type": "text/event-stream" });
    let said = 0;
    const say = () => {
      for (let i = 0; i < 50 && said < words; i++, said++) res.write(chunk({ content: "word " }));
      if (said < words) {
        setTimeout(say, 1);
        return;
      }
      res.write(chunk({}, "stop"));
      if (usage) res.write(`data: ${JSON.stringify({ choices: [], usage })}\n\n`);
      res.end("data: [DONE]\n\n");
    };
    say();
    return;
  }
  json(res, 200, {
    ...{ id: "chatcmpl-up", object: "chat.completion", created: 1_700_000_001, model: "m" },
    choices: [{ index: 0, message: { role: "assistant", content: "word ".repeat(words) }, finish_reason: "stop" }],
    usage,
  });
}

/** Uses all of its limit, most of it for thoughts, and takes none below 16, as OpenAI's server does. */
function respond({ body }: UpstreamRequest, res: ServerResponse): void {
  const limit = Number(body["max_output_tokens"]);
  if (limit < 16) {
    json(res, 400, { error: { message: "below the minimum value", param: "max_output_tokens" } });
    return;
  }
  const response = {
    ...completeResponse,
    ...{ status: "incomplete", incomplete_details: { reason: "max_output_tokens" } },
    output: completeResponse.output.map((item) => ({ ...item, status: "incomplete" })),
    usage: { ...completeUsage, input_tokens: promptTokens, output_tokens: limit, total_tokens: promptTokens + limit },
  };
  if (body["stream"] !== true) {
    json(res, 200, response);
    return;
  }
  res.writeHead(200, { "content-type": "text/event-stream" });
  const delta = { type: "response.output_text.delta", item_id: "msg_up", output_index: 0, content_index: 0 };
  for (const event of [
    { type: "response.created", response: { ...response, status: "in_progress", output: [] } },
    { ...delta, delta: "Hello" },
    { type: "response.incomplete", response },
  ]) {
    res.write(`event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`);
  }
  res.end();
}

async function keyWith(quota: Json): Promise<{ id: string; key: string }> {
  const made = await server.request("/v1/keys", { body: { name: "Limited", quotas: [quota] } });
  return (await made.json()) as { id: string; key: string };
}

const anyKey = () => keyWith({ unit: "tokens", amount: 1_000_000, per: "day" });

async function ask(key: string, body: Json, path = "/v1/chat/completions"): Promise<Response> {
  const said = path === "/v1/responses" ? { input: question.content } : { messages: [question] };
  const headers = { authorization: `Bearer ${key}` };
  return server.request(path, { body: { ...said, ...body }, headers });
}

async function booked(id: string): Promise<Json[]> {
  await server.governance.ledger.flush();
  const { data } = (await (await server.request(`/v1/requests?key=${id}`)).json()) as { data: Json[] };
  return data;
}

async function usedBy(id: string): Promise<number> {
  await server.governance.ledger.flush();
  const { quotas_used: used } = (await (await server.request(`/v1/keys/${id}`)).json()) as { quotas_used: Json[] };
  return Number(used[0]?.["used"]);
}

const warnings = (event: string, model: string) => server.logged(event).filter((line) => line["model"] === model);

describe("a model server that ignores max_completion_tokens", () => {
  // hardening: L7
  test("books delivered and reported tokens beyond max_completion_tokens, then sends max_tokens instead", async () => {
    const { id, key } = await anyKey();
    for (const stream of [false, true]) {
      const model = stream ? "stream" : "whole";
      const first = await ask(key, { model, stream, max_completion_tokens: 1 });
      expect((await first.text()).split("word ").length - 1).toBe(unlimited);
      const [record] = await booked(id);
      expect(record).toMatchObject({ completion_tokens: unlimited, estimated: false, capped: false });
      const second = await ask(key, { model, stream, max_completion_tokens: 1, max_tokens: 7 });
      expect((await second.text()).split("word ").length - 1).toBe(1);
      expect(upstream.requests.at(-1)?.body).toMatchObject({ max_tokens: 1 });
      expect(upstream.requests.at(-1)?.body).not.toHaveProperty("max_completion_tokens");
      expect((await booked(id))[0]).toMatchObject({ completion_tokens: 1 });
    }
    expect(await usedBy(id)).toBe(4 * promptTokens + 2 * (unlimited + 1));
  });

  test("warns once per model that ignores its token limit", async () => {
    const { key } = await anyKey();
    reads = [];
    for (let i = 0; i < 3; i++) await (await ask(key, { model: "warned", max_completion_tokens: 1 })).text();
    expect(warnings("limit_ignored", "warned")).toMatchObject([{ upstream: "up" }]);
  });

  test("does not suspect a server that respects the limit but reports nothing and has long tokens", async () => {
    const { key } = await anyKey();
    reports = () => undefined;
    for (let i = 0; i < 2; i++) await (await ask(key, { model: "honest", max_tokens: 200 })).text();
    expect(upstream.requests.at(-1)?.body).toMatchObject({ max_tokens: 200 });
    expect(warnings("limit_ignored", "honest")).toEqual([]);
  });

  test("ends a stream at a hard stop although the model server ignores token limits", async () => {
    const { id, key } = await keyWith({ unit: "tokens", amount: 60, per: "day", hard_stop: true });
    const answered = await ask(key, { model: "renamed", stream: true, max_completion_tokens: 1 });
    expect((await answered.text()).split("word ").length - 1).toBe(50);
    expect(await usedBy(id)).toBe(60);
  });

  test("sends max_tokens alone for a whole answer under a hard stop", async () => {
    const { id, key } = await keyWith({ unit: "tokens", amount: 60, per: "day", hard_stop: true });
    const answered = await ask(key, { model: "renamed", max_completion_tokens: 3_000 });
    expect((await answered.text()).split("word ").length - 1).toBe(50);
    expect(await usedBy(id)).toBe(60);
  });
});

describe("a limit below the minimum of a Responses server", () => {
  const ways = [
    ["/v1/messages", "max_tokens", '"stop_reason":"max_tokens"'],
    ["/v1/chat/completions", "max_completion_tokens", '"finish_reason":"length"'],
  ] as const;

  test("raises a limit below the minimum of a Responses server, and books the reported tokens", async () => {
    const { id, key } = await anyKey();
    for (const [path, name, ends] of ways) {
      for (const stream of [false, true]) {
        const answered = await ask(key, { model: "least", stream, [name]: 1 }, path);
        expect(answered.status).toBe(200);
        expect(await answered.text()).toContain(ends);
        expect(responses.requests.at(-1)?.body).toMatchObject({ max_output_tokens: 16 });
        expect((await booked(id))[0]).toMatchObject({ completion_tokens: 16, estimated: false, capped: false });
      }
    }
    expect(await usedBy(id)).toBe(4 * (promptTokens + 16));
    expect(warnings("limit_ignored", "least")).toEqual([]);
  });

  test("reserves the minimum of a Responses server for a lower limit", async () => {
    const { key } = await keyWith({ unit: "tokens", amount: promptTokens + 14, per: "day" });
    const before = responses.requests.length;
    for (const [path, name] of ways) {
      const refused = await ask(key, { model: "least", [name]: 1 }, path);
      expect(await refused.text()).toContain("quota");
      expect(refused.ok).toBe(false);
    }
    expect(responses.requests).toHaveLength(before);
  });
});

test("sends max_completion_tokens to a server that ignores max_tokens, also for translated responses", async () => {
  reads = ["max_completion_tokens"];
  const { id, key } = await anyKey();
  for (const expected of [unlimited, 20]) {
    await (await ask(key, { model: "translated", max_output_tokens: 20 }, "/v1/responses")).text();
    expect((await booked(id))[0]).toMatchObject({ completion_tokens: expected });
  }
  expect(upstream.requests.at(-1)?.body).toMatchObject({ max_completion_tokens: 20 });
});

describe.each([
  ["num_predict", { num_predict: unlimited }],
  ["options.num_predict", { options: { num_predict: unlimited } }],
  ["max_new_tokens", { max_new_tokens: unlimited }],
  ["min_tokens", { min_tokens: unlimited }],
  ["max_output_tokens", { max_output_tokens: unlimited }],
  ["max_tokens_to_sample", { max_tokens_to_sample: unlimited }],
  ["a_limit_that_nobody_knows", { a_limit_that_nobody_knows: unlimited }],
])("a body with %s beside max_tokens", (name, foreign) => {
  beforeEach(() => {
    reads = [name, "max_tokens"];
  });

  test("passes on an unknown limit, reserves more than max_tokens, and books the delivered tokens", async () => {
    const { id, key } = await anyKey();
    const answered = await ask(key, { model: "foreign", max_tokens: 1, ...foreign });
    await answered.text();
    expect(upstream.requests.at(-1)?.body).toMatchObject({ max_tokens: 1, ...foreign });
    expect(await usedBy(id)).toBe(promptTokens + unlimited);
    expect(warnings("limit_ignored", "foreign")).toEqual([]);
  });

  // hardening: L7
  test("enforces a hard stop despite an unknown limit, for streams and whole answers", async () => {
    for (const stream of [true, false]) {
      const { id, key } = await keyWith({ unit: "tokens", amount: 60, per: "day", hard_stop: true });
      const answered = await ask(key, { model: "foreign", stream, max_tokens: 40, ...foreign });
      const words = (await answered.text()).split("word ").length - 1;
      expect(words).toBe(stream ? 50 : 40);
      expect(answered.headers.get("x-headrace-ignored")).toBe(stream ? null : Object.keys(foreign).join(", "));
      expect(await usedBy(id)).toBe(promptTokens + words);
    }
  });
});

test("reserves no more than max_tokens beside fields that cannot be a larger limit", async () => {
  reads = ["max_tokens"];
  const { id, key } = await keyWith({ unit: "tokens", amount: 200, per: "day" });
  const harmless = { trace_label: "a", smoothing: 0.5, show_draft: true, nothing: null, id_slot: -1 };
  const asked = Array.from({ length: 6 }, () => ask(key, { model: "harmless", max_tokens: 10, ...harmless }));
  const answers = await Promise.all(asked);
  expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200));
  await Promise.all(answers.map((one) => one.text()));
  expect(await usedBy(id)).toBe(6 * (promptTokens + 10));
});

test("reserves the usual output for a model that ignores every limit", async () => {
  reads = [];
  const { key } = await anyKey();
  for (const body of [{ max_completion_tokens: 1 }, { max_tokens: 1 }, { max_tokens: 1 }]) {
    await (await ask(key, { model: "deaf", ...body })).text();
  }
  const small = await keyWith({ unit: "tokens", amount: 10_000, per: "day" });
  const asked = Array.from({ length: 20 }, () => ask(small.key, { model: "deaf", max_tokens: 1 }));
  const answers = await Promise.all(asked);
  await Promise.all(answers.map((one) => one.text()));
  expect(answers.filter(({ status }) => status === 200).length).toBeLessThan(8);
  await until(async () => (await usedBy(small.id)) > 0, "they are booked");
});

test("books an estimate of tokens delivered beyond the limit if the server reports none", async () => {
  reports = () => undefined;
  const { id, key } = await anyKey();
  await (await ask(key, { model: "silent", stream: true, max_completion_tokens: 1 })).text();
  expect((await booked(id))[0]).toMatchObject({ completion_tokens: unlimited, estimated: true });
});

test("books an estimate if reported tokens do not fit the delivered text", async () => {
  reads = [];
  const { id, key } = await anyKey();
  for (const lie of [1, 1_000_000]) {
    reports = () => lie;
    await (await ask(key, { model: "lying", max_completion_tokens: 1 })).text();
    // Five bytes a word, of which four are taken for a token.
    expect((await booked(id))[0]).toMatchObject({ completion_tokens: 6_250, estimated: true, capped: true });
  }
});
