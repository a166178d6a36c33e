// Recorded requests of Anthropic's Messages.
import type { Models } from "../models.ts";
import type { Json } from "../written-replies.ts";
import { sseRequests } from "./chat.ts";
import { type Combination, changed, combined, type Feature } from "./combined.ts";
import { type Format, faultRequests, httpRequests, keyRequests, modelRequests, wrongRequests } from "./policies.ts";
import { type RecordedRequest, recorded } from "./request.ts";

const path = "/v1/messages";
const schema = {
  ...{ type: "object", properties: { city: { type: "string" } } },
  ...{ required: ["city"], additionalProperties: false },
};
const kept = { cache_control: { type: "ephemeral" } };
const tool = (name: string, more: Json = {}) => ({
  ...{ name, description: `Calls ${name}.`, input_schema: schema },
  ...more,
});

const asking = (model: string, text = "How is the weather?") => ({
  ...{ model, max_tokens: 100 },
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
const withBlock =
  (...blocks: readonly Json[]): Feature =>
  (body) =>
    void messagesOf(body).push({ role: "user", content: [{ type: "text", text: "Look:" }, ...blocks] });

const called = {
  role: "assistant",
  content: [
    { type: "text", text: "Let me see." },
    { type: "tool_use", id: "toolu_a", name: "get_weather", input: { city: "Oslo" } },
    { type: "tool_use", id: "toolu_b", name: "get_time", input: {} },
  ],
};
const results = {
  role: "user",
  content: [
    { type: "tool_result", tool_use_id: "toolu_a", content: "4 degrees", ...kept },
    { type: "tool_result", tool_use_id: "toolu_b", content: [{ type: "text", text: "no clock" }], is_error: true },
  ],
};

const features: Readonly<Record<string, Feature>> = {
  plain: () => {},
  stream: members({ stream: true }),
  system: members({ system: "Be brief." }),
  "system-blocks": members({ system: [{ type: "text", text: "Be brief.", ...kept }] }),
  history: inFront({ role: "user", content: "Hi" }, { role: "assistant", content: "Hello, Grüße 東京" }),
  prefill: (body) => void messagesOf(body).push({ role: "assistant", content: "It is" }),
  thought: inFront(
    { role: "user", content: "Hi" },
    {
      role: "assistant",
      content: [
        { type: "thinking", thinking: "Well", signature: "c2lnbmVk" },
        { type: "redacted_thinking", data: "AAAA" },
        { type: "text", text: "Hello" },
      ],
    },
  ),
  blocks: withBlock({ type: "text", text: "a \ud83d\ude80 b", ...kept }),
  image: withBlock({ type: "image", source: { type: "base64", media_type: "image/png", data: "iVBORw0KGgo=" } }),
  "image-url": withBlock({ type: "image", source: { type: "url", url: "https://example.com/a.png" } }),
  document: withBlock({
    ...{ type: "document", title: "a.pdf", context: "A file." },
    source: { type: "base64", media_type: "application/pdf", data: "JVBERi0=" },
  }),
  "text-document": withBlock({
    ...{ type: "document", title: "a.txt" },
    source: { type: "text", media_type: "text/plain", data: "A text." },
  }),
  found: withBlock({
    ...{ type: "search_result", source: "https://example.com", title: "Found" },
    content: [{ type: "text", text: "A text." }],
  }),
  tools: members({ tools: [tool("get_weather"), tool("get_time", kept)] }),
  strict: members({ tools: [tool("get_weather", { strict: true, type: "custom" })] }),
  any: members({ tools: [tool("get_weather")], tool_choice: { type: "any" } }),
  named: members({
    tools: [tool("get_weather"), tool("get_time")],
    tool_choice: { type: "tool", name: "get_weather", disable_parallel_tool_use: true },
  }),
  "one-call": members({ tools: [tool("get_weather")], tool_choice: { type: "auto", disable_parallel_tool_use: true } }),
  "no-call": members({ tools: [tool("get_weather")], tool_choice: { type: "none" } }),
  results: (body) => void messagesOf(body).push(called, results),
  "hosted-tool": members({ tools: [{ type: "web_search_20250305", name: "web_search", max_uses: 3 }] }),
  bash: members({ tools: [{ type: "bash_20250124", name: "bash" }] }),
  thinking: members({ thinking: { type: "enabled", budget_tokens: 1_024 }, max_tokens: 2_000 }),
  adaptive: members({ thinking: { type: "adaptive" }, output_config: { effort: "low" } }),
  thoughtless: members({ thinking: { type: "disabled" } }),
  "json-schema": members({ output_config: { format: { type: "json_schema", schema } } }),
  "older-schema": members({ output_format: { type: "json_schema", schema } }),
  sampling: members({ temperature: 0.5, top_p: 0.9 }),
  "top-k": members({ top_k: 40 }),
  stop: members({ stop_sequences: ["END", "\n\n"] }),
  metadata: members({ metadata: { user_id: "user-1" }, service_tier: "auto" }),
  "cache-mark": members(kept),
  nulls: members({ temperature: null, tools: null, system: null, thinking: null, metadata: null }),
  spelt: members({ system: 'A "quoted" \\ word\n\u2028\u0001' }),
  unheard: withBlock({ type: "container_upload", file_id: "file_1" }),
  "system-turn": inFront({ role: "system", content: "Agents: none." }),
};

const combination: Combination = {
  ...{ seed: 9_000, count: 120, path, asking, features },
  calling: ["tools", "strict", "any", "named", "one-call", "results"],
  replies: ["plain", "plain", "reasoning", "length", "refusal", "cached", "stopped", "strict", "spelt", "json"],
};

const wrong: Readonly<Record<string, readonly unknown[]>> = {
  model: [undefined, "", 7],
  max_tokens: [undefined, -1, 1.5, "many"],
  messages: [
    ...[undefined, [], "Hi", [7], [{ role: "user" }], [{ role: "wizard", content: "Hi" }]],
    [{ role: "user", content: [{ type: "text" }] }],
    [{ role: "user", content: [{ type: "image", source: {} }] }],
    [{ role: "user", content: [{ type: "tool_result" }] }],
    [{ role: "user", content: [{ type: "tool_result", tool_use_id: "toolu_none", content: "4" }] }],
    [{ role: "assistant", content: [{ type: "tool_use", id: "a", name: "b", input: "c" }] }],
    Array.from({ length: 41 }, () => ({ role: "user", content: "Hi" })),
  ],
  system: [7, [7], [{ type: "image" }]],
  temperature: [1.5, "hot"],
  top_p: [-1],
  top_k: [0.5],
  stop_sequences: ["END", [""], [7]],
  stream: ["yes"],
  tools: ["none", [7], [{ name: "" }], [{ name: "a", input_schema: 7 }]],
  tool_choice: ["any", { type: "tool" }, {}],
  thinking: [7, { type: "enabled" }, { type: "enabled", budget_tokens: 1 }],
  output_config: [7, { effort: 7 }, { format: { type: "json_schema" } }],
  metadata: ["a", { user_id: 7 }],
};

export function messageRequests(models: Models): RecordedRequest[] {
  const format: Format = { path, asking, streams: true, isTranslated: true };
  const versioned = { "anthropic-version": "2023-06-01", "anthropic-beta": "context-management-2025-06-27" };
  return [
    ...combined(models, combination),
    ...sseRequests(models, format),
    ...faultRequests(models, format),
    ...wrongRequests(format, wrong),
    ...changed(models, { ...combination, seed: 10_000, count: 30 }),
    ...keyRequests(format),
    ...modelRequests(format),
    ...httpRequests(format),
    ...(["chat", "responses", "messages"] as const).flatMap((backend) => [
      recorded(`versions -> ${backend}`, { path, headers: versioned, body: asking(models.on(backend, "plain")) }),
      recorded(`count of tokens -> ${backend}`, {
        path: `${path}/count_tokens`,
        body: { model: models.on(backend, "counted"), messages: asking("").messages },
      }),
    ]),
    recorded("count of tokens of nothing", { path: `${path}/count_tokens`, body: { model: "chat.plain" } }),
    recorded("version that is none", {
      path,
      headers: { "anthropic-version": "soon" },
      body: asking("messages.plain"),
    }),
  ];
}
