// What servers tell of usage in their own ways is charged once and as a whole: in each chunk, beside the answer, at the start, in a stream that is cut.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { startHeadrace, type TestServer } from "../support/headrace.ts";
import { json, type Script, type ScriptedUpstream, startUpstream } from "../support/scripted-upstream.ts";

type Json = Record<string, unknown>;

const words = ["one two three ", "four five six ", "seven eight nine ", "ten eleven twelve"];
const text = words.join("");
const head = { id: "c", object: "chat.completion.chunk", created: 1, model: "m" };
const piece = (content: string, more: Json = {}, finish_reason: string | null = null): Json => ({
  ...head,
  choices: [{ index: 0, delta: { role: "assistant", content }, finish_reason }],
  ...more,
});
const end = (more: Json = {}): Json => ({
  ...head,
  choices: [{ index: 0, delta: {}, finish_reason: "stop" }],
  ...more,
});
const usageChunk = (usage: Json): Json => ({ ...head, choices: [], usage });

interface Reported {
  chunks: Json[];
  /** The usage of an answer that is not streamed. */
  usage: Json;
  tokens: Json;
}

const googleUsage = { prompt_tokens: 500, completion_tokens: 20, total_tokens: 620 };
const cached = { prompt_tokens: 500, completion_tokens: 20, total_tokens: 520 };
const nothing = { cached_tokens: 0, cache_write_tokens: 0, reasoning_tokens: 0 };
const plain = { prompt_tokens: 500, completion_tokens: 20, ...nothing };

const servers: Readonly<Record<string, Reported>> = {
  // What was thought is in the total alone; chunks have the sums so far.
  google: {
    chunks: [
      piece(words[0] ?? "", { usage: { prompt_tokens: 500, total_tokens: 560 } }),
      piece(words[1] ?? "", { usage: { prompt_tokens: 500, completion_tokens: 9, total_tokens: 609 } }),
      piece("", { usage: googleUsage }, "stop"),
    ],
    usage: googleUsage,
    tokens: { prompt_tokens: 500, completion_tokens: 120, ...nothing, reasoning_tokens: 100 },
  },
  // It thought until it had to end.
  "google-thoughts": {
    chunks: [piece("", { usage: { prompt_tokens: 500, total_tokens: 620 } }, "length")],
    usage: { prompt_tokens: 500, total_tokens: 620 },
    tokens: { prompt_tokens: 500, completion_tokens: 120, ...nothing, reasoning_tokens: 120 },
  },
  "vllm-continuous": {
    chunks: [
      ...words.map((word, i) =>
        piece(word, { usage: { prompt_tokens: 500, completion_tokens: 5 * (i + 1), total_tokens: 505 + 5 * i } }),
      ),
      end({ usage: cached }),
      usageChunk({ ...cached, prompt_tokens_details: { cached_tokens: 400 } }),
    ],
    usage: { ...cached, prompt_tokens_details: { cached_tokens: 400 } },
    tokens: { ...plain, cached_tokens: 400 },
  },
  groq: {
    chunks: [
      ...words.map((word) => piece(word, { x_groq: { id: "r" } })),
      end({
        x_groq: { id: "r", usage: { ...cached, prompt_tokens_details: { cached_tokens: 256 }, prompt_time: 0.1 } },
      }),
    ],
    usage: { ...cached, prompt_tokens_details: { cached_tokens: 256 }, prompt_time: 0.1 },
    tokens: { ...plain, cached_tokens: 256 },
  },
  moonshot: {
    chunks: [
      ...words.map((word) => piece(word)),
      { ...head, choices: [{ index: 0, delta: {}, finish_reason: "stop", usage: { ...cached, cached_tokens: 256 } }] },
    ],
    usage: { ...cached, cached_tokens: 256 },
    tokens: { ...plain, cached_tokens: 256 },
  },
  sglang: {
    chunks: [
      ...words.map((word) => piece(word, { usage: null })),
      end({ usage: null }),
      usageChunk({ ...cached, prompt_tokens_details: null, reasoning_tokens: 0 }),
    ],
    usage: { ...cached, prompt_tokens_details: null, reasoning_tokens: 0 },
    tokens: plain,
  },
  mistral: {
    chunks: [
      ...words.map((word) => piece(word)),
      end({ usage: { ...cached, prompt_tokens_details: { cached_tokens: 320 }, prompt_audio_seconds: {} } }),
    ],
    usage: { ...cached, prompt_tokens_details: { cached_tokens: 320 }, prompt_audio_seconds: {} },
    tokens: { ...plain, cached_tokens: 320 },
  },
  azure: {
    chunks: [
      { ...head, id: "", model: "", choices: [], prompt_filter_results: [{ prompt_index: 0 }] },
      ...words.map((word) => piece(word)),
      end(),
      usageChunk({ ...cached, prompt_tokens_details: { cached_tokens: 128, audio_tokens: 0 } }),
    ],
    usage: { ...cached, prompt_tokens_details: { cached_tokens: 128, audio_tokens: 0 } },
    tokens: { ...plain, cached_tokens: 128 },
  },
};

const messagesUsage = { input_tokens: 12, cache_read_input_tokens: 9_000, cache_creation_input_tokens: 1_000 };
const message = { id: "msg_1", type: "message", role: "assistant", model: "m", stop_sequence: null };

const script: Script = (request, res) => {
  const model = String(request.body["model"]);
  const isStream = request.body["stream"] === true;
  if (model === "forgetful") {
    const isFresh = JSON.stringify(request.body["messages"]).includes("fresh");
    const usage = {
      ...{ prompt_tokens: 10_000, completion_tokens: 20, total_tokens: 10_020 },
      prompt_tokens_details: { cached_tokens: isFresh ? 0 : 9_000 },
    };
    const choices = [{ index: 0, message: { role: "assistant", content: text }, finish_reason: "stop" }];
    const answer = () => json(res, 200, { ...head, object: "chat.completion", choices, usage });
    return void (isFresh ? setTimeout(answer, 300) : answer());
  }
  if (model === "failing") return json(res, 500, { error: { message: "no" } });
  if (model === "whole-messages" || model === "cut-messages") {
    if (model === "whole-messages") {
      const usage = { ...messagesUsage, output_tokens: 20 };
      return json(res, 200, { ...message, content: [{ type: "text", text }], stop_reason: "end_turn", usage });
    }
    res.writeHead(200, { "content-type": "text/event-stream" });
    const tell = (type: string, members: object) =>
      res.write(`event: ${type}\ndata: ${JSON.stringify({ type, ...members })}\n\n`);
    const usage = { ...messagesUsage, output_tokens: 1 };
    tell("message_start", { message: { ...message, content: [], stop_reason: null, usage } });
    tell("content_block_start", { index: 0, content_block: { type: "text", text: "" } });
    for (const word of words) tell("content_block_delta", { index: 0, delta: { type: "text_delta", text: word } });
    setTimeout(() => res.destroy(), 50);
    return;
  }
  const reported = servers[model];
  if (!reported) throw new Error(`There is no server ${model}.`);
  if (!isStream) {
    const choices = [{ index: 0, message: { role: "assistant", content: text }, finish_reason: "stop" }];
    return json(res, 200, { ...head, object: "chat.completion", choices, usage: reported.usage });
  }
  res.writeHead(200, { "content-type": "text/event-stream" });
  for (const chunk of reported.chunks) res.write(`data: ${JSON.stringify(chunk)}\n\n`);
  res.end("data: [DONE]\n\n");
};

let upstream: ScriptedUpstream;
let server: TestServer;
beforeAll(async () => {
  upstream = await startUpstream(script);
  const price = "{ input: 2, cached_input: 0.2, cache_write: 2.5, output: 10, request: 0.001 }";
  const model = (id: string, name: string) =>
    `  - { id: ${id}, price: ${price}, deployments: [{ upstream: ${name}, model: ${id} }] }\n`;
  const ofMessages = ["cut-messages", "whole-messages"].map((id) => model(id, "messages"));
  server = await startHeadrace({
    yaml: `upstreams:
  - { name: chat, url: "${upstream.url}", discover: false, apis: [chat] }
  - { name: messages, url: "${upstream.url}", discover: false, apis: [messages] }
models:
${[...Object.keys(servers), "failing", "forgetful"].map((id) => model(id, "chat")).join("")}${ofMessages.join("")}`,
  });
});
afterAll(async () => {
  await server[Symbol.asyncDispose]();
  await upstream[Symbol.asyncDispose]();
});

const paths = { chat: "/v1/chat/completions", responses: "/v1/responses", messages: "/v1/messages" } as const;
type Kind = keyof typeof paths;
const kinds = Object.keys(paths) as Kind[];

async function asked(
  kind: Kind,
  model: string,
  stream: boolean,
): Promise<{ said: string; header: string; record: Json }> {
  const content = "a ".repeat(model.endsWith("-messages") ? 10_000 : 500);
  const answer = await server.request(paths[kind], {
    body:
      kind === "responses"
        ? { model, input: content, stream, store: false }
        : {
            ...{ model, messages: [{ role: "user", content }], max_tokens: 1_000, stream },
            ...(kind === "chat" && stream ? { stream_options: { include_usage: true } } : {}),
          },
  });
  const said = await answer.text();
  await server.governance.ledger.flush();
  const id = answer.headers.get("x-request-id") ?? "";
  const header = answer.headers.get("x-headrace-usage") ?? "";
  return { said, header, record: (await (await server.request(`/v1/requests/${id}`)).json()) as Json };
}

/** Parts where there are some. */
function headerOf(record: Json): string {
  const names = ["prompt", "cached", "cache_write", "completion", "reasoning"].map((name) => `${name}_tokens`);
  const reported = names.filter((name) => /^(prompt|completion)/.test(name) || Number(record[name]) > 0);
  return [
    ...reported.map((name) => `${name}=${record[name]}`),
    `nano_usd=${Math.round(Number(record["cost"]) * 1e9)}`,
  ].join(", ");
}

/** Whole billionths, each token at its rate. */
function costOf(record: Json): number {
  const [prompt = 0, completion = 0, read = 0, written = 0] = [
    ...["prompt_tokens", "completion_tokens", "cached_tokens", "cache_write_tokens"],
  ].map((name) => Number(record[name]));
  return ((prompt - read - written) * 2_000 + read * 200 + written * 2_500 + completion * 10_000 + 1_000_000) / 1e9;
}

test.each(Object.entries(servers))(
  "charges usage reported by %s once, whole and streamed, in every format",
  async (model, reported) => {
    for (const kind of kinds) {
      for (const stream of [false, true]) {
        const { said, header, record } = await asked(kind, model, stream);
        expect(header).toBe(stream ? "" : headerOf(record));
        expect({ kind, stream, said: said.slice(0, 40), ...record }).toMatchObject({
          ...{ kind, stream, estimated: false, capped: false, outcome: "completed" },
          ...reported.tokens,
          cost: costOf(record),
          usage_details: null,
        });
      }
    }
  },
);

test("includes reasoning reported beside the answer for a client of another format, with matching sums", async () => {
  const { said } = await asked("responses", "google", false);
  expect((JSON.parse(said) as { usage: Json }).usage).toMatchObject({
    ...{ input_tokens: 500, output_tokens: 120, total_tokens: 620 },
    output_tokens_details: { reasoning_tokens: 100 },
  });
});

test.each(kinds)("bills reported cached tokens at the cached rate after a cut stream in %s", async (kind) => {
  const { record } = await asked(kind, "cut-messages", true);
  expect(record).toMatchObject({
    ...{ outcome: "failed", prompt_tokens: 10_012, cached_tokens: 9_000, cache_write_tokens: 1_000 },
    ...{ estimated: true, capped: false, cost: costOf(record) },
  });
  // What was not delivered is not charged.
  expect(Number(record["completion_tokens"])).toBeLessThan(40);
});

test.each(kinds)("keeps cached tokens of a server that ignores the request to stream, in %s", async (kind) => {
  const { record } = await asked(kind, "whole-messages", true);
  expect(record).toMatchObject({ ...messagesRecord, cost: costOf(record) });
});

const messagesRecord = {
  prompt_tokens: 10_012,
  completion_tokens: 20,
  cached_tokens: 9_000,
  cache_write_tokens: 1_000,
};

test("charges nothing for a request that failed before any output, also with a price per request", async () => {
  const { record } = await asked("chat", "failing", false);
  expect(record).toMatchObject({ outcome: "failed", cost: 0 });
});

test("overruns a USD quota by less than one request if concurrent requests miss the cache", async () => {
  const ask = (headers?: Record<string, string>, more = "") => {
    const messages = [{ role: "user", content: `${more}${"abc ".repeat(10_000)}` }];
    const body = { model: "forgetful", messages, max_tokens: 20 };
    return server.request(paths.chat, { body, ...(headers ? { headers } : {}) });
  };
  for (let i = 0; i < 30; i++) expect((await ask()).status).toBe(200);
  const limited = { name: "Agents", scopes: ["chat:write"], monthly_spend: 0.1 };
  const { key } = (await (await server.request("/v1/keys", { body: limited })).json()) as { key: string };
  const headers = { authorization: `Bearer ${key}` };
  const answers = await Promise.all(Array.from({ length: 100 }, () => ask(headers, "fresh ")));
  const statuses = answers.map(({ status }) => status);
  expect([...new Set(statuses)].sort()).toEqual([200, 403]);
  // Each costs 0.0262 if all of it is written to the cache; the fourth is admitted as less would do if most of it were read there.
  expect(statuses.filter((status) => status === 200).length).toBe(4);
});
