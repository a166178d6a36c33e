// Vendors as they tell usage: their objects word for word, what they charge for it to the last digit, and a server that answers so.
import { chunk, json, type Script } from "./scripted-upstream.ts";

export const kinds = ["chat", "responses", "messages"] as const;
/** The formats of conversations. */
export type Kind = (typeof kinds)[number];
export const paths = { chat: "/v1/chat/completions", responses: "/v1/responses", messages: "/v1/messages" } as const;

type Json = Record<string, unknown>;

/** What an answer tells of usage, and how. */
export interface Reported {
  /** The usage object of a whole answer, and of a stream unless told otherwise. */
  usage: Json;
  /** What stands beside it in an answer. */
  beside?: Json;
  /** What a stream of Messages tells at its end, where that is less. */
  atEnd?: Json;
  /** Where a stream of chunks has it: in the last one, in `x_groq` of that, or what has been used so far in each. */
  inStream?: "last" | "x_groq" | "each";
  /** How a stream of Responses ends. */
  ends?: "completed" | "incomplete" | "failed";
  /** Items of a response besides its text. */
  items?: readonly Json[];
}

export interface Vendor extends Reported {
  /** The format that the vendor speaks. */
  kind: Kind;
  /** The price in headrace.yaml. */
  price: string;
  /** USD. */
  cost: number;
  tokens: { prompt: number; completion: number; cached?: number; written?: number; reasoning?: number };
  /** When it was asked; a Sunday noon unless told otherwise. */
  at?: string;
}

/** When vendors without a time of their own are asked. */
export const usualTime = "2026-11-22T12:00:00Z";

const sol = "input: 2, cached_input: 0.1, cache_write: 2.5, output: 10, search: 0.01";
const solLong = "{ context_above: 272000, input: 4, cached_input: 0.2, output: 15 }";
const opus = "input: 4, cached_input: 0.2, cache_write: 5, cache_write_1h: 8, output: 20, search: 0.01";
const haiku = "{ input: 0.1, cached_input: 0.01, output: 0.5, variants: [{ context_above: 100000, factor: 5 }] }";
const argon =
  "{ input: 2, cached_input: 0.1, output: 10, variants: [{ served: priority, factor: 1.8 }, { from: 2026-12-01, factor: 2 }] }";
const pro = "{ input: 1.25, output: 10, variants: [{ context_above: 200000, input: 2.5, output: 15 }] }";
const deepseek =
  '{ input: 0.15, cached_input: 0.003, output: 0.6, variants: [{ days: [mon, tue, wed, thu, fri], hours: ["01:00-04:00", "06:00-10:00"], factor: 2 }] }';
const grok =
  "{ input: 2, cached_input: 0.5, output: 6, variants: [{ context_above: 199999, input: 4, cached_input: 1, output: 12 }] }";
const groq =
  "{ input: 0.15, cached_input: 0.075, output: 0.6, variants: [{ served: batch, input: 0.075, output: 0.3 }] }";
const azure = "input: 1.25, cached_input: 0.125, output: 10";

const openai: Omit<Vendor, "price" | "cost"> = {
  kind: "chat",
  usage: {
    ...{ prompt_tokens: 10_000, completion_tokens: 500, total_tokens: 10_500 },
    prompt_tokens_details: { cached_tokens: 8_000, cache_write_tokens: 1_000, audio_tokens: 0 },
    completion_tokens_details: {
      ...{ reasoning_tokens: 120, audio_tokens: 0 },
      ...{ accepted_prediction_tokens: 0, rejected_prediction_tokens: 0 },
    },
  },
  beside: { service_tier: "default" },
  tokens: { prompt: 10_000, completion: 500, cached: 8_000, written: 1_000, reasoning: 120 },
};

/** Responses with so many tokens. */
function response(prompt: number, completion: number, cached = 0, reasoning = 0): Omit<Vendor, "price" | "cost"> {
  return {
    kind: "responses",
    usage: {
      ...{ input_tokens: prompt, output_tokens: completion, total_tokens: prompt + completion },
      input_tokens_details: { cached_tokens: cached },
      output_tokens_details: { reasoning_tokens: reasoning },
    },
    tokens: { prompt, completion, cached, reasoning },
  };
}

/** Google's chat completions: what was thought is in the total alone, and each chunk tells what was used so far. */
function google(prompt: number, candidates: number, thoughts: number, details: Json): Omit<Vendor, "price" | "cost"> {
  const usage = {
    ...{ prompt_tokens: prompt, completion_tokens: candidates, total_tokens: prompt + candidates + thoughts },
    prompt_tokens_details: details,
  };
  const tokens = {
    ...{ prompt, completion: candidates + thoughts, reasoning: thoughts },
    cached: Number(details["cached_tokens"] ?? 0),
  };
  return { kind: "chat", usage, inStream: "each", tokens };
}

const claude: Omit<Vendor, "price" | "cost"> = {
  kind: "messages",
  usage: {
    ...{ input_tokens: 12, cache_read_input_tokens: 30_000, cache_creation_input_tokens: 3_000, output_tokens: 700 },
    cache_creation: { ephemeral_5m_input_tokens: 1_000, ephemeral_1h_input_tokens: 2_000 },
    ...{ service_tier: "standard", speed: "standard", inference_geo: "global" },
  },
  atEnd: { input_tokens: 12, cache_read_input_tokens: 30_000, cache_creation_input_tokens: 3_000, output_tokens: 700 },
  tokens: { prompt: 33_012, completion: 700, cached: 30_000, written: 3_000 },
};

const deepseekUsage: Omit<Vendor, "price" | "cost"> = {
  kind: "chat",
  usage: {
    ...{ prompt_tokens: 1_024, completion_tokens: 300, total_tokens: 1_324 },
    ...{ prompt_cache_hit_tokens: 960, prompt_cache_miss_tokens: 64 },
    completion_tokens_details: { reasoning_tokens: 100 },
  },
  tokens: { prompt: 1_024, completion: 300, cached: 960, reasoning: 100 },
};

const groqUsage: Omit<Vendor, "price" | "cost"> = {
  kind: "chat",
  usage: {
    ...{ queue_time: 0.03, prompt_tokens: 1_000, prompt_time: 0.01, completion_tokens: 100, completion_time: 0.2 },
    ...{ total_tokens: 1_100, total_time: 0.21, prompt_tokens_details: { cached_tokens: 512 } },
  },
  beside: { service_tier: "on_demand" },
  inStream: "x_groq",
  tokens: { prompt: 1_000, completion: 100, cached: 512 },
};

const azureUsage: Omit<Vendor, "price" | "cost"> = {
  kind: "chat",
  usage: {
    ...{ prompt_tokens: 1_000, completion_tokens: 200, total_tokens: 1_200 },
    prompt_tokens_details: { cached_tokens: 640, audio_tokens: 0 },
    completion_tokens_details: { reasoning_tokens: 0, audio_tokens: 0 },
  },
  tokens: { prompt: 1_000, completion: 200, cached: 640 },
};

/** What servers of one's own tell: nothing of a cache, or what theirs had. */
function local(details: Json, cached = 0): Omit<Vendor, "price" | "cost"> {
  const usage = { prompt_tokens: 100, completion_tokens: 10, total_tokens: 110, ...details };
  return { kind: "chat", usage, tokens: { prompt: 100, completion: 10, cached } };
}
const own = "{ input: 1, cached_input: 0.1, output: 2 }";

/** By the name of the model; usage and bills of 22 November 2026. */
export const vendors: Readonly<Record<string, Vendor>> = {
  "openai-chat": { ...openai, price: `{ ${sol} }`, cost: 0.0103 },
  "openai-chat-flex": {
    ...{ ...openai, beside: { service_tier: "flex" }, cost: 0.00515 },
    price: `{ ${sol}, variants: [{ served: flex, factor: 0.5 }] }`,
  },
  // No answer tells the region: it is another model, whose price has the factor without a condition.
  "openai-chat-eu": { ...openai, price: `{ ${sol}, variants: [{ factor: 1.1 }] }`, cost: 0.01133 },
  "openai-responses": {
    ...{ ...response(272_000, 1_000, 200_000, 400), price: `{ ${sol}, variants: [${solLong}] }`, cost: 0.174 },
  },
  "openai-responses-long": {
    ...{ ...response(272_001, 1_000, 200_000, 400), price: `{ ${sol}, variants: [${solLong}] }`, cost: 0.343004 },
  },
  "openai-responses-incomplete": { ...response(10_000, 500), ends: "incomplete", price: `{ ${sol} }`, cost: 0.025 },
  "openai-search": {
    ...{ ...response(1_234, 321), price: `{ ${sol} }`, cost: 0.025678 },
    items: ["search", "open_page", "search"].map((type, i) => ({
      ...{ id: `ws_${i}`, type: "web_search_call", status: "completed", action: { type } },
    })),
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
  "openai-image": {
    ...{ ...response(60, 1_000), price: "{ input: 5, input_image: 8, output: 30 }", cost: 0.03033 },
    usage: {
      ...{ input_tokens: 60, output_tokens: 1_000, total_tokens: 1_060 },
      input_tokens_details: { image_tokens: 10, text_tokens: 50 },
    },
  },
  anthropic: { ...claude, price: `{ ${opus} }`, cost: 0.041048 },
  "anthropic-fast": {
    ...{ ...claude, atEnd: { output_tokens: 700 }, cost: 0.0903056 },
    usage: { ...claude.usage, speed: "fast", inference_geo: "us" },
    price: `{ ${opus}, variants: [{ served: fast, factor: 2 }, { served: us, factor: 1.1 }] }`,
  },
  "anthropic-batch": {
    kind: "messages",
    usage: {
      ...{ input_tokens: 100, cache_read_input_tokens: 0, cache_creation_input_tokens: 0, output_tokens: 50 },
      ...{ cache_creation: null, service_tier: "batch", speed: null, inference_geo: "not_available" },
      server_tool_use: { web_search_requests: 3, web_fetch_requests: 1 },
    },
    atEnd: { output_tokens: 50, server_tool_use: { web_search_requests: 3, web_fetch_requests: 1 } },
    price: `{ ${opus}, variants: [{ served: batch, input: 2, output: 10 }] }`,
    cost: 0.0307,
    tokens: { prompt: 100, completion: 50 },
  },
  "anthropic-cached": {
    kind: "messages",
    usage: { input_tokens: 0, cache_read_input_tokens: 100_000, cache_creation_input_tokens: 0, output_tokens: 10 },
    ...{ price: haiku, cost: 0.001005, tokens: { prompt: 100_000, completion: 10, cached: 100_000 } },
  },
  "anthropic-long": {
    kind: "messages",
    usage: { input_tokens: 1, cache_read_input_tokens: 100_000, cache_creation_input_tokens: 0, output_tokens: 10 },
    ...{ price: haiku, cost: 0.0050255, tokens: { prompt: 100_001, completion: 10, cached: 100_000 } },
  },
  "google-argon": { ...google(5_000, 200, 800, { cached_tokens: 4_000 }), price: argon, cost: 0.0124 },
  "google-priority": {
    ...{ ...google(5_000, 200, 800, { cached_tokens: 4_000 }), price: argon, cost: 0.02232 },
    beside: { service_tier: "priority" },
  },
  "google-pro": { ...google(200_000, 100, 0, {}), price: pro, cost: 0.251 },
  "google-pro-long": { ...google(200_001, 100, 0, {}), price: pro, cost: 0.5015025 },
  "google-audio": {
    ...{ ...google(1_600, 40, 0, { audio_tokens: 1_500 }), cost: 0.00163 },
    price: "{ input: 0.3, input_audio: 1, output: 2.5 }",
  },
  deepseek: { ...deepseekUsage, price: deepseek, cost: 0.00019248 },
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
  "xai-responses": { ...response(199_999, 150, 150_000, 50), price: grok, cost: 0.175898 },
  "xai-responses-long": { ...response(200_000, 150, 150_000, 50), price: grok, cost: 0.3518 },
  mistral: {
    kind: "chat",
    usage: {
      ...{ prompt_tokens: 1_000, completion_tokens: 100, total_tokens: 1_100, prompt_audio_seconds: null },
      ...{ prompt_tokens_details: { cached_tokens: 800 }, service_tier: "default" },
    },
    price: "{ input: 0.7, cached_input: 0.07, output: 2.1 }",
    cost: 0.000406,
    tokens: { prompt: 1_000, completion: 100, cached: 800 },
  },
  groq: { ...groqUsage, price: groq, cost: 0.0001716 },
  "groq-batch": { ...groqUsage, beside: { service_tier: "batch" }, price: groq, cost: 0.000105 },
  azure: { ...azureUsage, price: `{ ${azure} }`, cost: 0.00253 },
  "azure-eu": { ...azureUsage, price: `{ ${azure}, variants: [{ factor: 1.1 }] }`, cost: 0.002783 },
  openrouter: {
    kind: "chat",
    usage: {
      ...{ prompt_tokens: 1_000, completion_tokens: 100, total_tokens: 1_100, cost: 0.000_42, is_byok: false },
      prompt_tokens_details: { cached_tokens: 800, cache_write_tokens: 0, audio_tokens: 0, video_tokens: 0 },
      cost_details: { upstream_inference_cost: null, server_tool_cost: 0 },
      completion_tokens_details: { reasoning_tokens: 0, image_tokens: 0 },
    },
    price: "{ input: 0.7, cached_input: 0.07, output: 2.1 }",
    cost: 0.000406,
    tokens: { prompt: 1_000, completion: 100, cached: 800 },
  },
  vllm: { ...local({ prompt_tokens_details: null }), price: own, cost: 0.00012 },
  "vllm-cached": {
    ...{
      ...local({ prompt_tokens_details: { cached_tokens: 64 } }, 64),
      inStream: "each",
      price: own,
      cost: 0.0000624,
    },
  },
  sglang: { ...local({ prompt_tokens_details: null, reasoning_tokens: 0 }), price: own, cost: 0.00012 },
  "llama-server": {
    ...{ ...local({ prompt_tokens_details: { cached_tokens: 60 } }, 60), price: own, cost: 0.000066 },
    beside: { timings: { cache_n: 60, prompt_n: 40, prompt_ms: 9.1, predicted_n: 10, predicted_ms: 88.5 } },
  },
  ollama: { ...local({}), price: own, cost: 0.00012 },
  "lm-studio": { ...local({}), beside: { stats: {} }, price: own, cost: 0.00012 },
  // The later ones come later: no test sets a clock back.
  "deepseek-peak": { ...deepseekUsage, price: deepseek, cost: 0.00038496, at: "2026-11-23T06:00:00Z" },
  "google-december": {
    ...google(5_000, 200, 800, { cached_tokens: 4_000 }),
    ...{ price: argon, cost: 0.0248, at: "2026-12-01T00:00:00Z" },
  },
};

/** An answer that fails in its middle, and what it cost by then. */
export const failing: Readonly<Record<string, Vendor>> = {
  "openai-responses-failed": { ...response(10_000, 500), ends: "failed", price: `{ ${sol} }`, cost: 0.025 },
};

const text = "word ".repeat(40);
const stream = { "content-type": "text/event-stream" };

/** Answers as the vendor of the model that is asked for. */
export const vendorScript: Script = (request, res) => {
  const name = String(request.body["model"]);
  const vendor = vendors[name] ?? failing[name];
  if (!vendor) throw new Error(`There is no vendor ${name}.`);
  const isStream = request.body["stream"] === true;
  answers[vendor.kind](vendor, isStream, res);
};

type AnswerAs = (vendor: Reported, isStream: boolean, res: Parameters<Script>[1]) => void;

/** An answer of some text with this usage, in the format of a vendor. */
export const answers: Readonly<Record<Kind, AnswerAs>> = {
  chat({ usage, beside = {}, inStream = "last" }, isStream, res) {
    const message = { role: "assistant", content: text };
    const head = { id: "c", object: "chat.completion", created: 1, model: "m", ...beside };
    if (!isStream) return json(res, 200, { ...head, choices: [{ index: 0, message, finish_reason: "stop" }], usage });
    res.writeHead(200, stream);
    const begun = { prompt_tokens: usage["prompt_tokens"], completion_tokens: 0, total_tokens: usage["prompt_tokens"] };
    if (inStream === "each") {
      res.write(chunk(message, null, { ...beside, usage: begun }));
      res.write(chunk({}, "stop", { ...beside, usage }));
    } else if (inStream === "x_groq") {
      res.write(chunk(message, null, { ...beside, x_groq: { id: "r" } }));
      res.write(chunk({}, "stop", { ...beside, x_groq: { id: "r", usage } }));
    } else {
      res.write(chunk(message, null, beside));
      res.write(chunk({}, "stop", { ...beside, usage: null }));
      res.write(`data: ${JSON.stringify({ ...head, object: "chat.completion.chunk", choices: [], usage })}\n\n`);
    }
    res.end("data: [DONE]\n\n");
  },
  responses({ usage, beside = {}, ends = "completed", items = [] }, isStream, res) {
    const item = { id: "msg_1", type: "message", role: "assistant", status: "completed" };
    const output = [...items, { ...item, content: [{ type: "output_text", text, annotations: [], logprobs: [] }] }];
    const head = { id: "resp_1", object: "response", created_at: 1, model: "m", ...beside };
    const why = {
      completed: {},
      incomplete: { incomplete_details: { reason: "max_output_tokens" } },
      failed: { error: { code: "server_error", message: "The model failed." } },
    }[ends];
    const ended = { ...head, status: ends, output, usage, ...why };
    if (!isStream) return json(res, 200, ended);
    res.writeHead(200, stream);
    const tell = (type: string, members: object) => res.write(event(type, members));
    tell("response.created", { sequence_number: 0, response: { ...head, status: "in_progress", output: [] } });
    output.forEach((done, index) => {
      tell("response.output_item.done", { sequence_number: 1 + index, output_index: index, item: done });
    });
    tell(`response.${ends}`, { sequence_number: 1 + output.length, response: ended });
    res.end();
  },
  messages({ usage, atEnd = { output_tokens: usage["output_tokens"] } }, isStream, res) {
    const head = { id: "msg_1", type: "message", role: "assistant", model: "m", stop_sequence: null };
    const content = [{ type: "text", text }];
    if (!isStream) return json(res, 200, { ...head, content, stop_reason: "end_turn", usage });
    res.writeHead(200, stream);
    const tell = (type: string, members: object) => res.write(event(type, members));
    const begun = { ...usage, output_tokens: 1 };
    tell("message_start", { message: { ...head, content: [], stop_reason: null, usage: begun } });
    tell("content_block_start", { index: 0, content_block: { type: "text", text: "" } });
    tell("content_block_delta", { index: 0, delta: { type: "text_delta", text } });
    tell("content_block_stop", { index: 0 });
    tell("message_delta", { delta: { stop_reason: "end_turn", stop_sequence: null }, usage: atEnd });
    tell("message_stop", {});
    res.end();
  },
};

function event(type: string, members: object): string {
  return `event: ${type}\ndata: ${JSON.stringify({ type, ...members })}\n\n`;
}

/** A prompt as long as the vendor counts: far shorter ones are not believed. */
export function vendorBody(kind: Kind, model: string, prompt: number, stream: boolean): Json {
  const content = "a ".repeat(Math.min(prompt, 150_000));
  if (kind === "responses") return { model, input: content, stream, store: false };
  return { model, messages: [{ role: "user", content }], max_tokens: 100_000, stream };
}
