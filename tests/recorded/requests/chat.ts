// Recorded chat completions.
import { readdirSync } from "node:fs";
import { join } from "node:path";
import type { Models } from "../models.ts";
import type { Json } from "../written-replies.ts";
import { type Combination, changed, combined, type Feature } from "./combined.ts";
import { type Format, faultRequests, httpRequests, keyRequests, modelRequests, wrongRequests } from "./policies.ts";
import { type RecordedRequest, recorded } from "./request.ts";

const path = "/v1/chat/completions";
const pixel = "data:image/png;base64,iVBORw0KGgo=";
const schema = {
  ...{ type: "object", properties: { city: { type: "string" } } },
  ...{ required: ["city"], additionalProperties: false },
};
const tool = (name: string, more: Json = {}) => ({
  type: "function",
  function: { name, description: `Calls ${name}.`, parameters: schema, ...more },
});

const asking = (model: string, text = "How is the weather?") => ({
  model,
  messages: [{ role: "user", content: text }] as Json[],
});
const messagesOf = (body: Json) => body["messages"] as Json[];
const members =
  (more: Json): Feature =>
  (body) =>
    void Object.assign(body, more);
const inFront =
  (...messages: readonly Json[]): Feature =>
  (body) =>
    void messagesOf(body).unshift(...messages);
const withPart =
  (...parts: readonly Json[]): Feature =>
  (body) =>
    void messagesOf(body).push({ role: "user", content: [{ type: "text", text: "Look:" }, ...parts] });

const called = {
  role: "assistant",
  content: null,
  tool_calls: [
    { id: "call_a", type: "function", function: { name: "get_weather", arguments: '{"city":"Oslo"}' } },
    { id: "call_b", type: "function", function: { name: "get_time", arguments: "" } },
  ],
};
const results = [
  { role: "tool", tool_call_id: "call_a", content: "4 degrees" },
  { role: "tool", tool_call_id: "call_b", content: [{ type: "text", text: "noon" }] },
];

const features: Readonly<Record<string, Feature>> = {
  plain: () => {},
  stream: members({ stream: true }),
  system: inFront({ role: "system", content: "Be brief." }),
  developer: inFront({ role: "developer", content: [{ type: "text", text: "Be brief." }] }),
  history: inFront({ role: "user", content: "Hi" }, { role: "assistant", content: "Hello, Grüße 東京" }),
  names: inFront({ role: "user", name: "jo", content: "Hi" }, { role: "assistant", name: "bot", content: "Hello" }),
  parts: withPart({ type: "text", text: "a \ud83d\ude80 b" }),
  image: withPart({ type: "image_url", image_url: { url: pixel, detail: "low" } }),
  "image-url": withPart({ type: "image_url", image_url: { url: "https://example.com/a.png" } }),
  audio: withPart({ type: "input_audio", input_audio: { data: "AAAA", format: "wav" } }),
  file: withPart({ type: "file", file: { filename: "a.pdf", file_data: "data:application/pdf;base64,JVBERi0=" } }),
  tools: members({ tools: [tool("get_weather"), tool("get_time", { parameters: undefined })] }),
  strict: members({ tools: [tool("get_weather", { strict: true })] }),
  required: members({ tools: [tool("get_weather")], tool_choice: "required" }),
  named: members({
    ...{ tools: [tool("get_weather"), tool("get_time")], parallel_tool_calls: false },
    tool_choice: { type: "function", function: { name: "get_weather" } },
  }),
  "no-call": members({ tools: [tool("get_weather")], tool_choice: "none" }),
  results: (body) => void messagesOf(body).push(called, ...results),
  "custom-tool": members({ tools: [{ type: "custom", custom: { name: "shell" } }] }),
  "json-object": members({ response_format: { type: "json_object" } }),
  "json-schema": members({
    response_format: { type: "json_schema", json_schema: { name: "answer", schema, strict: true } },
  }),
  effort: members({ reasoning_effort: "low" }),
  verbosity: members({ verbosity: "low" }),
  stop: members({ stop: "END" }),
  stops: members({ stop: ["END", "\n\n"] }),
  choices: members({ n: 2 }),
  logprobs: members({ logprobs: true, top_logprobs: 2 }),
  "max-tokens": members({ max_tokens: 50 }),
  "max-completion-tokens": members({ max_completion_tokens: 50 }),
  sampling: members({ temperature: 0.5, top_p: 0.9 }),
  penalties: members({ frequency_penalty: 0.5, presence_penalty: -1, logit_bias: { "50256": -100 } }),
  seed: members({ seed: 7 }),
  user: members({ user: "user-1", safety_identifier: "safe-1", prompt_cache_key: "cache-1" }),
  metadata: members({ metadata: { job: "7" }, service_tier: "auto" }),
  store: members({ store: true, metadata: { job: "7" } }),
  salt: members({ cache_salt: "salt", priority: 3 }),
  usage: members({ stream: true, stream_options: { include_usage: true } }),
  "no-usage": members({ stream: true, stream_options: { include_usage: false } }),
  nulls: members({ temperature: null, stop: null, tools: null, stream_options: null, n: null }),
  predicted: members({ prediction: { type: "content", content: "It is" }, modalities: ["text"] }),
  spelt: inFront({ role: "system", content: 'A "quoted" \\ word\n\u2028\u0001' }),
};

const combination: Combination = {
  ...{ seed: 1_000, count: 120, path, asking, features },
  calling: ["tools", "strict", "required", "named", "results"],
  replies: ["plain", "plain", "reasoning", "length", "refusal", "cached", "stopped", "strict", "spelt", "json"],
};

const wrong: Readonly<Record<string, readonly unknown[]>> = {
  model: [undefined, "", 7, "a\nb"],
  messages: [
    ...[undefined, [], "Hi", [7], [{}], [{ role: "user" }], [{ role: "wizard", content: "Hi" }]],
    ...[[{ role: "tool", content: "4" }], [{ role: "user", content: [] }]],
    [{ role: "user", content: [{ type: "text" }] }],
    [{ role: "user", content: [{ type: "image_url", image_url: "x" }] }],
    [{ role: "assistant", tool_calls: [{ id: 7 }] }],
    Array.from({ length: 41 }, () => ({ role: "user", content: "Hi" })),
  ],
  temperature: [3, -1, "hot"],
  top_p: [1.5],
  n: [0, 1.5, 200],
  max_tokens: [0, -1, 1.5, "many"],
  stop: [7, [7], ""],
  stream: ["yes", 1],
  stream_options: [7, { include_usage: "yes" }],
  logprobs: ["yes"],
  top_logprobs: [30],
  logit_bias: [{ a: 1 }, { "5": 200 }],
  tools: ["none", [7], [{ type: "function", function: {} }], [{ type: "function", function: { name: "" } }]],
  tool_choice: [7, ""],
  response_format: [7, {}, { type: "json_schema", json_schema: { name: "" } }],
  metadata: ["a"],
  store: ["yes"],
};

const sse = readdirSync(join(import.meta.dir, "..", "..", "fixtures", "sse"))
  .map((file) => file.replace(/\.sse$/, ""))
  .sort();

/** A request of this format for each stream in tests/fixtures/sse; the streams of completions are named `legacy-`. */
export function sseRequests(models: Models, of: Format, isWanted = (name: string) => !name.startsWith("legacy-")) {
  return sse.filter(isWanted).map((name) => {
    // A failed upstream rests, so a faulty stream gets an upstream of its own.
    const model = name.startsWith("fault-") ? models.failing("chat", `sse-${name}`) : models.on("chat", `sse-${name}`);
    const options = of.path === path ? { stream_options: { include_usage: true } } : {};
    return recorded(`stream recorded ${name}`, {
      path: of.path,
      body: { ...of.asking(model), stream: true, ...options },
    });
  });
}

export function chatRequests(models: Models): RecordedRequest[] {
  const format: Format = { path, asking, streams: true, isTranslated: true };
  return [
    ...combined(models, combination),
    ...sseRequests(models, format),
    ...faultRequests(models, format),
    ...wrongRequests(format, wrong),
    ...changed(models, { ...combination, seed: 2_000, count: 30 }),
    ...keyRequests(format),
    ...modelRequests(format),
    ...httpRequests(format),
    recorded(
      "stored, read and deleted",
      { path, body: { ...asking("chat.plain"), store: true, metadata: { job: "7" } } },
      ([kept]) => ({ path: `${path}/${String(kept?.["id"])}` }),
      ([kept]) => ({ path: `${path}/${String(kept?.["id"])}/messages` }),
      ([kept]) => ({ method: "DELETE", path: `${path}/${String(kept?.["id"])}` }),
      ([kept]) => ({ path: `${path}/${String(kept?.["id"])}` }),
    ),
    recorded("stored list with a wrong order", { path: `${path}?order=up` }),
  ];
}
