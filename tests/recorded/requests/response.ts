// Recorded Responses.
import type { Models } from "../models.ts";
import type { Json } from "../written-replies.ts";
import { sseRequests } from "./chat.ts";
import { type Combination, changed, combined, type Feature } from "./combined.ts";
import { type Format, faultRequests, httpRequests, keyRequests, modelRequests, wrongRequests } from "./policies.ts";
import { type RecordedRequest, recorded } from "./request.ts";

const path = "/v1/responses";
const pixel = "data:image/png;base64,iVBORw0KGgo=";
const schema = {
  ...{ type: "object", properties: { city: { type: "string" } } },
  ...{ required: ["city"], additionalProperties: false },
};
const tool = (name: string, more: Json = {}) => ({
  ...{ type: "function", name, description: `Calls ${name}.`, parameters: schema },
  ...more,
});

const user = (...content: readonly Json[]) => ({ type: "message", role: "user", content });
const asking = (model: string, text = "How is the weather?") => ({
  model,
  input: [user({ type: "input_text", text })] as Json[],
});
const inputOf = (body: Json) => body["input"] as Json[];
const members =
  (more: Json): Feature =>
  (body) =>
    void Object.assign(body, more);
const inFront =
  (...items: readonly Json[]): Feature =>
  (body) =>
    void inputOf(body).unshift(...items);

const called = [
  { type: "function_call", call_id: "call_a", name: "get_weather", arguments: '{"city":"Oslo"}' },
  { type: "function_call", id: "fc_b", call_id: "call_b", name: "get_time", arguments: "{}", status: "completed" },
];
const results = [
  { type: "function_call_output", call_id: "call_a", output: "4 degrees" },
  { type: "function_call_output", call_id: "call_b", output: [{ type: "input_text", text: "noon" }] },
];
const said = { type: "output_text", text: "Hello, Grüße 東京", annotations: [] };

const features: Readonly<Record<string, Feature>> = {
  plain: () => {},
  stream: members({ stream: true }),
  instructions: members({ instructions: "Be brief." }),
  system: inFront({ role: "system", content: "Be brief." }),
  developer: inFront({ type: "message", role: "developer", content: [{ type: "input_text", text: "Be brief." }] }),
  history: inFront({ role: "user", content: "Hi" }, { role: "assistant", content: "Hello" }),
  "history-items": inFront(user({ type: "input_text", text: "Hi" }), {
    ...{ id: "msg_a", type: "message", role: "assistant", status: "completed", content: [said] },
  }),
  thought: inFront(
    user({ type: "input_text", text: "Hi" }),
    { id: "rs_a", type: "reasoning", summary: [{ type: "summary_text", text: "Well" }], encrypted_content: "AAAA" },
    { role: "assistant", content: "Hello" },
  ),
  image: (body) => void inputOf(body).push(user({ type: "input_image", image_url: pixel, detail: "low" })),
  "image-url": (body) =>
    void inputOf(body).push(user({ type: "input_image", image_url: "https://example.com/a.png", detail: "auto" })),
  file: (body) =>
    void inputOf(body).push(
      user({ type: "input_file", filename: "a.pdf", file_data: "data:application/pdf;base64,JVBERi0=" }),
    ),
  tools: members({ tools: [tool("get_weather"), tool("get_time", { parameters: null })] }),
  strict: members({ tools: [tool("get_weather", { strict: true })] }),
  loose: members({ tools: [tool("get_weather", { strict: false })] }),
  required: members({ tools: [tool("get_weather")], tool_choice: "required" }),
  named: members({
    ...{ tools: [tool("get_weather"), tool("get_time")], parallel_tool_calls: false },
    tool_choice: { type: "function", name: "get_weather" },
  }),
  "no-call": members({ tools: [tool("get_weather")], tool_choice: "none" }),
  results: (body) => void inputOf(body).push(...called, ...results),
  "custom-tool": members({ tools: [{ type: "custom", name: "shell", description: "Runs." }] }),
  "hosted-tool": members({ tools: [{ type: "web_search" }, tool("get_weather")] }),
  "json-object": members({ text: { format: { type: "json_object" } } }),
  "json-schema": members({ text: { format: { type: "json_schema", name: "answer", schema, strict: true } } }),
  verbosity: members({ text: { verbosity: "low" } }),
  effort: members({ reasoning: { effort: "low" } }),
  summary: members({ reasoning: { effort: "high", summary: "auto" } }),
  encrypted: members({ include: ["reasoning.encrypted_content"], store: false }),
  logprobs: members({ include: ["message.output_text.logprobs"], top_logprobs: 2 }),
  "max-tokens": members({ max_output_tokens: 50 }),
  sampling: members({ temperature: 0.5, top_p: 0.9 }),
  user: members({ user: "user-1", safety_identifier: "safe-1", prompt_cache_key: "cache-1" }),
  metadata: members({ metadata: { job: "7" }, service_tier: "auto", truncation: "disabled" }),
  unkept: members({ store: false }),
  unobfuscated: members({ stream: true, stream_options: { include_obfuscation: false } }),
  nulls: members({ temperature: null, tools: null, text: null, reasoning: null, instructions: null }),
  spelt: members({ instructions: 'A "quoted" \\ word\n\u2028\u0001' }),
  bare: inFront({ role: "user", content: "Hi" }),
};

const combination: Combination = {
  ...{ seed: 7_000, count: 125, path, asking, features },
  calling: ["tools", "strict", "loose", "required", "named", "results"],
  replies: ["plain", "plain", "reasoning", "length", "refusal", "cached", "filter", "strict", "spelt", "json"],
};

const wrong: Readonly<Record<string, readonly unknown[]>> = {
  model: [undefined, "", 7],
  input: [
    ...[undefined, 7, [7], [{ type: "" }], [{ role: "user" }], [{ type: "item_reference", id: "msg_none" }]],
    ...[[{ role: "wizard", content: "Hi" }], [{ role: "user", content: [{ type: "input_text" }] }]],
    ...[[{ type: "function_call_output", call_id: "call_none", output: "4" }], [{ type: "unheard_of" }]],
    Array.from({ length: 41 }, () => ({ role: "user", content: "Hi" })),
  ],
  instructions: [7],
  temperature: [3, "hot"],
  top_p: [1.5],
  max_output_tokens: [0, 1.5, "many"],
  stream: ["yes"],
  store: ["yes"],
  tools: ["none", [7], [{ type: "function" }], [{ type: "" }], [{ type: "computer_use_preview" }]],
  tool_choice: [7, "", { type: "function", name: "nothing" }],
  text: [7, { format: 7 }, { format: { type: "json_schema" } }],
  reasoning: [7, { effort: 7 }],
  include: ["all", [7], ["unheard.of"]],
  previous_response_id: [7, "resp_none"],
  conversation: [7, "conv_none"],
  background: ["yes"],
  truncation: ["sometimes"],
  metadata: ["a", { a: 7 }],
};

const id = (response: Json | undefined) => String(response?.["id"]);

/** Responses that continue, read, count or delete earlier ones. */
function keptRequests(models: Models): RecordedRequest[] {
  const first = { path, body: asking("chat.plain") };
  const onwards = (model: string, more: Json = {}) => ({ path, body: { ...asking(model, "And then?"), ...more } });
  return [
    recorded("goes on -> chat", first, ([kept]) => onwards("chat.plain", { previous_response_id: id(kept) })),
    recorded("goes on -> responses", first, ([kept]) => onwards("responses.plain", { previous_response_id: id(kept) })),
    recorded("goes on -> messages", first, ([kept]) => onwards("messages.plain", { previous_response_id: id(kept) })),
    recorded("goes on from a thought", { path, body: asking("messages.reasoning") }, ([kept]) =>
      onwards("messages.plain", { previous_response_id: id(kept), stream: true }),
    ),
    recorded("goes on from an unkept one", { path, body: { ...asking("chat.plain"), store: false } }, ([kept]) =>
      onwards("chat.plain", { previous_response_id: id(kept) }),
    ),
    recorded(
      "read and deleted",
      first,
      ...["GET", "DELETE", "GET"].map((method) => ([kept]: readonly Json[]) => ({
        ...{ method, path: `${path}/${id(kept)}` },
      })),
    ),
    recorded("input items", first, ([kept]) => ({ path: `${path}/${id(kept)}/input_items` })),
    recorded("cancelled though it has ended", first, ([kept]) => ({
      ...{ method: "POST", path: `${path}/${id(kept)}/cancel`, body: {} },
    })),
    recorded(
      "conversation",
      { path: "/v1/conversations", body: { metadata: { job: "7" }, items: [{ role: "user", content: "Hi" }] } },
      ([conversation]) => onwards("chat.plain", { conversation: id(conversation) }),
      ([conversation]) => ({ path: `/v1/conversations/${id(conversation)}/items` }),
      ([conversation]) => ({ method: "DELETE", path: `/v1/conversations/${id(conversation)}` }),
    ),
    ...(["chat", "responses", "messages"] as const).map((backend) =>
      recorded(`input tokens -> ${backend}`, {
        path: `${path}/input_tokens`,
        body: asking(models.on(backend, "counted")),
      }),
    ),
    recorded("compacted", { path: `${path}/compact`, body: asking("chat.plain") }),
    recorded("compacted without input", { path: `${path}/compact`, body: { model: "chat.plain" } }),
  ];
}

export function responseRequests(models: Models): RecordedRequest[] {
  const format: Format = { path, asking, streams: true, isTranslated: true };
  return [
    ...combined(models, combination),
    ...sseRequests(models, format),
    ...faultRequests(models, format),
    ...wrongRequests(format, wrong),
    ...changed(models, { ...combination, seed: 8_000, count: 30 }),
    ...keyRequests(format),
    ...modelRequests(format),
    ...httpRequests(format),
    ...keptRequests(models),
    recorded("text as input", { path, body: { model: models.on("messages", "plain"), input: "Hi" } }),
  ];
}
