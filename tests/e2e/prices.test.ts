// What vendors tell of usage becomes what is charged, to the last billionth: on the ledger, in reports, in quotas, whole and streamed.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { startHeadrace, type TestServer } from "../support/headrace.ts";
import { operated } from "../support/operated.ts";
import { chunk, json, type Script, type ScriptedUpstream, startUpstream } from "../support/scripted-upstream.ts";

/** `kind`: the format that the vendor speaks. `usage`, and what stands beside it in an answer, as the vendor has it. */
interface Vendor {
  kind: "chat" | "responses" | "messages";
  usage: Record<string, unknown>;
  beside?: Record<string, unknown>;
  /** What a stream of Messages tells at its end, where that is less. */
  atEnd?: Record<string, unknown>;
  price: string;
  cost: number;
  tokens: { prompt: number; completion: number; cached?: number; written?: number; reasoning?: number };
}

const vendors: Readonly<Record<string, Vendor>> = {
  "openai-chat": {
    kind: "chat",
    usage: {
      ...{ prompt_tokens: 10_000, completion_tokens: 500, total_tokens: 10_500 },
      prompt_tokens_details: { cached_tokens: 8_000, cache_write_tokens: 1_000, audio_tokens: 0 },
      completion_tokens_details: { reasoning_tokens: 120, audio_tokens: 0, accepted_prediction_tokens: 0 },
    },
    beside: { service_tier: "default" },
    price: "{ input: 2, cached_input: 0.1, cache_write: 2.5, output: 10 }",
    cost: 0.0103,
    tokens: { prompt: 10_000, completion: 500, cached: 8_000, written: 1_000, reasoning: 120 },
  },
  "openai-chat-flex": {
    kind: "chat",
    usage: {
      ...{ prompt_tokens: 10_000, completion_tokens: 500, total_tokens: 10_500 },
      prompt_tokens_details: { cached_tokens: 8_000, cache_write_tokens: 1_000 },
    },
    beside: { service_tier: "flex" },
    price: "{ input: 2, cached_input: 0.1, cache_write: 2.5, output: 10, variants: [{ served: flex, factor: 0.5 }] }",
    cost: 0.00515,
    tokens: { prompt: 10_000, completion: 500, cached: 8_000, written: 1_000 },
  },
  "openai-audio": {
    kind: "chat",
    usage: {
      ...{ prompt_tokens: 300, completion_tokens: 150, total_tokens: 450 },
      prompt_tokens_details: { cached_tokens: 0, audio_tokens: 200 },
      completion_tokens_details: { audio_tokens: 100 },
    },
    price: "{ input: 2.5, input_audio: 32, output: 10, output_audio: 64 }",
    cost: 0.01355,
    tokens: { prompt: 300, completion: 150 },
  },
  "xai-chat": {
    kind: "chat",
    usage: {
      ...{ prompt_tokens: 10_120, completion_tokens: 1_499, total_tokens: 14_428 },
      prompt_tokens_details: { cached_tokens: 128 },
      completion_tokens_details: { reasoning_tokens: 2_809 },
      cost_in_usd_ticks: 232_856_000,
    },
    price: "{ input: 1.25, cached_input: 0.2, output: 2.5 }",
    cost: 0.0232856,
    tokens: { prompt: 10_120, completion: 4_308, cached: 128, reasoning: 2_809 },
  },
  deepseek: {
    kind: "chat",
    usage: {
      ...{ prompt_tokens: 1_024, completion_tokens: 300, total_tokens: 1_324 },
      ...{ prompt_cache_hit_tokens: 960, prompt_cache_miss_tokens: 64 },
    },
    price: "{ input: 0.15, cached_input: 0.003, output: 0.6 }",
    cost: 0.00019248,
    tokens: { prompt: 1_024, completion: 300, cached: 960 },
  },
  vllm: {
    kind: "chat",
    usage: { prompt_tokens: 100, completion_tokens: 10, total_tokens: 110, prompt_tokens_details: null },
    price: "{ input: 1, cached_input: 0.1, output: 2 }",
    cost: 0.00012,
    tokens: { prompt: 100, completion: 10 },
  },
  openrouter: {
    kind: "chat",
    usage: {
      ...{ prompt_tokens: 1_000, completion_tokens: 100, total_tokens: 1_100, cost: 0.000_42, is_byok: false },
      prompt_tokens_details: { cached_tokens: 800 },
      cost_details: { upstream_inference_cost: null },
    },
    price: "{ input: 0.7, cached_input: 0.07, output: 2.1 }",
    cost: 0.000406,
    tokens: { prompt: 1_000, completion: 100, cached: 800 },
  },
  "openai-responses": {
    kind: "responses",
    usage: {
      ...{ input_tokens: 272_001, output_tokens: 1_000, total_tokens: 273_001 },
      input_tokens_details: { cached_tokens: 200_000 },
      output_tokens_details: { reasoning_tokens: 400 },
    },
    price:
      "{ input: 2, cached_input: 0.1, output: 10, variants: [{ context_above: 272000, input: 4, cached_input: 0.2, output: 15 }] }",
    cost: 0.343004,
    tokens: { prompt: 272_001, completion: 1_000, cached: 200_000, reasoning: 400 },
  },
  anthropic: {
    kind: "messages",
    usage: {
      ...{ input_tokens: 12, cache_read_input_tokens: 30_000, cache_creation_input_tokens: 3_000, output_tokens: 700 },
      cache_creation: { ephemeral_5m_input_tokens: 1_000, ephemeral_1h_input_tokens: 2_000 },
      ...{ service_tier: "standard", speed: "standard", inference_geo: "global" },
    },
    atEnd: {
      input_tokens: 12,
      cache_read_input_tokens: 30_000,
      cache_creation_input_tokens: 3_000,
      output_tokens: 700,
    },
    price: "{ input: 4, cached_input: 0.2, cache_write: 5, cache_write_1h: 8, output: 20 }",
    cost: 0.041048,
    tokens: { prompt: 33_012, completion: 700, cached: 30_000, written: 3_000 },
  },
  "anthropic-fast": {
    kind: "messages",
    usage: {
      ...{ input_tokens: 12, cache_read_input_tokens: 30_000, cache_creation_input_tokens: 3_000, output_tokens: 700 },
      cache_creation: { ephemeral_5m_input_tokens: 1_000, ephemeral_1h_input_tokens: 2_000 },
      ...{ service_tier: "standard", speed: "fast", inference_geo: "us" },
    },
    atEnd: { output_tokens: 700 },
    price:
      "{ input: 4, cached_input: 0.2, cache_write: 5, cache_write_1h: 8, output: 20, variants: [{ served: fast, factor: 2 }, { served: us, factor: 1.1 }] }",
    cost: 0.0903056,
    tokens: { prompt: 33_012, completion: 700, cached: 30_000, written: 3_000 },
  },
};

const text = "word ".repeat(40);
const paths = { chat: "/v1/chat/completions", responses: "/v1/responses", messages: "/v1/messages" } as const;
type Kind = keyof typeof paths;

const script: Script = (request, res) => {
  const vendor = vendors[String(request.body["model"])];
  if (!vendor) throw new Error(`There is no vendor ${String(request.body["model"])}.`);
  const { kind, usage, beside = {}, atEnd = {} } = vendor;
  const isStream = request.body["stream"] === true;
  if (isStream) res.writeHead(200, { "content-type": "text/event-stream" });
  const tell = (type: string, members: object) =>
    res.write(`event: ${type}\ndata: ${JSON.stringify({ type, ...members })}\n\n`);
  if (kind === "chat") {
    const message = { role: "assistant", content: text };
    const head = { id: "c", object: "chat.completion", created: 1, model: "m", ...beside };
    if (!isStream) return json(res, 200, { ...head, choices: [{ index: 0, message, finish_reason: "stop" }], usage });
    res.write(chunk(message, null, beside));
    res.write(chunk({}, "stop", { ...beside, usage: null }));
    res.write(`data: ${JSON.stringify({ ...head, object: "chat.completion.chunk", choices: [], usage })}\n\n`);
    return void res.end("data: [DONE]\n\n");
  }
  if (kind === "responses") {
    const item = { id: "msg_1", type: "message", role: "assistant", status: "completed" };
    const output = [{ ...item, content: [{ type: "output_text", text, annotations: [], logprobs: [] }] }];
    const head = { id: "resp_1", object: "response", created_at: 1, model: "m" };
    if (!isStream) return json(res, 200, { ...head, status: "completed", output, usage });
    tell("response.created", { sequence_number: 0, response: { ...head, status: "in_progress", output: [] } });
    tell("response.output_item.done", { sequence_number: 1, output_index: 0, item: output[0] });
    tell("response.completed", { sequence_number: 2, response: { ...head, status: "completed", output, usage } });
    return void res.end();
  }
  const head = { id: "msg_1", type: "message", role: "assistant", model: "m", stop_sequence: null };
  const content = [{ type: "text", text }];
  if (!isStream) return json(res, 200, { ...head, content, stop_reason: "end_turn", usage });
  tell("message_start", {
    message: { ...head, content: [], stop_reason: null, usage: { ...usage, output_tokens: 1 } },
  });
  tell("content_block_start", { index: 0, content_block: { type: "text", text: "" } });
  tell("content_block_delta", { index: 0, delta: { type: "text_delta", text } });
  tell("content_block_stop", { index: 0 });
  tell("message_delta", { delta: { stop_reason: "end_turn", stop_sequence: null }, usage: atEnd });
  tell("message_stop", {});
  res.end();
};

let upstream: ScriptedUpstream;
let server: TestServer;
beforeAll(async () => {
  upstream = await startUpstream(script);
  const ofKind = (kind: Kind) => `  - { name: ${kind}, url: "${upstream.url}", discover: false, apis: [${kind}] }\n`;
  const models = Object.entries(vendors).map(
    ([id, { kind, price }]) =>
      `  - { id: ${id}, price: ${price}, deployments: [{ upstream: ${kind}, model: ${id} }] }\n`,
  );
  server = await startHeadrace({
    yaml: `upstreams:\n${(Object.keys(paths) as Kind[]).map(ofKind).join("")}models:\n${models.join("")}`,
  });
});
afterAll(async () => {
  await server[Symbol.asyncDispose]();
  await upstream[Symbol.asyncDispose]();
});

/** A prompt as long as the vendor counts: far shorter ones are not believed. */
function bodyOf(kind: Kind, model: string, prompt: number, stream: boolean): object {
  const content = "a ".repeat(Math.min(prompt, 250_000));
  if (kind === "responses") return { model, input: content, stream, store: false };
  return { model, messages: [{ role: "user", content }], max_tokens: 100_000, stream };
}

async function requestOf(id: string): Promise<Record<string, unknown>> {
  await server.governance.ledger.flush();
  return (await (await server.request(`/v1/requests/${id}`)).json()) as Record<string, unknown>;
}

describe.each(Object.entries(vendors))(
  "usage as %s tells it",
  (model, { kind, usage, price: _price, cost, tokens }) => {
    const expected = {
      prompt_tokens: tokens.prompt,
      completion_tokens: tokens.completion,
      cached_tokens: tokens.cached ?? 0,
      cache_write_tokens: tokens.written ?? 0,
      reasoning_tokens: tokens.reasoning ?? 0,
      ...{ cost, estimated: false, capped: false },
    };

    test.each(["chat", "responses", "messages"] as const)(
      "is charged to the last digit, asked by %s",
      async (asked) => {
        for (const stream of [false, true]) {
          const answer = await server.request(paths[asked], { body: bodyOf(asked, model, tokens.prompt, stream) });
          const said = await answer.text();
          expect([answer.status, answer.status === 200 ? "" : said]).toEqual([200, ""]);
          const id = answer.headers.get("x-request-id") ?? "";
          expect({ stream, ...(await requestOf(id)) }).toMatchObject({ stream, ...expected });
          // What the client is told is the vendor's own where the format is.
          if (asked === kind && !stream) expect((JSON.parse(said) as { usage: object }).usage).toMatchObject(usage);
        }
      },
    );
  },
);

test("a report has the sums of all, and each of their parts", async () => {
  await server.governance.ledger.flush();
  const report = await server.request("/v1/usage?bucket=month&group_by=model");
  const { data } = (await report.json()) as { data: Record<string, number>[] };
  for (const [model, { cost, tokens }] of Object.entries(vendors)) {
    const row = data.find((one) => String(one["model"]) === model);
    // Three formats, whole and streamed.
    expect(row).toMatchObject({
      requests: 6,
      prompt_tokens: 6 * tokens.prompt,
      cached_tokens: 6 * (tokens.cached ?? 0),
      cache_write_tokens: 6 * (tokens.written ?? 0),
      reasoning_tokens: 6 * (tokens.reasoning ?? 0),
      cost: Math.round(cost * 6e9) / 1e9,
    });
  }
  const csv = await server.request("/v1/usage?bucket=month&group_by=model", { headers: { accept: "text/csv" } });
  const [head = "", ...lines] = (await csv.text()).trim().split("\n");
  expect(head.trim().split(",").slice(-3)).toEqual(["cached_tokens", "cache_write_tokens", "reasoning_tokens"]);
  expect(lines.find((line) => line.includes("anthropic-fast"))).toContain("0.5418336");
});

test("a quota in USD has what was charged for, and what is likely to be cached does not stop a request", async () => {
  const body = { name: "Agent", scopes: ["chat:write"], monthly_spend: 0.05 };
  const { key } = (await (await server.request("/v1/keys", { body })).json()) as { key: string };
  const headers = { authorization: `Bearer ${key}` };
  const ask = async () => {
    const asked = { ...bodyOf("chat", "openai-chat", 10_000, false), max_tokens: 500 };
    return (await server.request(paths.chat, { body: asked, headers })).status;
  };
  // Each costs 0.0103. At full rates the fourth would need 0.025 where 0.0191 are left.
  expect([await ask(), await ask(), await ask(), await ask(), await ask()]).toEqual([200, 200, 200, 200, 403]);
});

test("what a vendor says that it charges is shown to operators alone", async () => {
  const answer = await server.request(paths.chat, { body: bodyOf("chat", "xai-chat", 10_120, false) });
  await answer.text();
  const id = answer.headers.get("x-request-id") ?? "";
  expect((await requestOf(id))["usage_details"]).toEqual({});
  const { operator } = await operated(server);
  const headers = { authorization: `Bearer ${operator}` };
  const shown = await (await server.request(`/v1/requests/${id}`, { headers })).json();
  expect(shown).toMatchObject({ usage_details: { billed: 0.0232856 } });
});
