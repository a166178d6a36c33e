// Field names that a model server may read otherwise than the gateway: whoever is held to a model, to limits or to a price stays so.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { startHeadrace, type TestServer, until } from "../support/headrace.ts";
import {
  asCjson,
  asGo,
  asGoVersion2,
  byLowerCase,
  type Leniency,
  readExactly,
  readLeniently,
} from "../support/lenient-json.ts";
import { chunk, json, type Script, type ScriptedUpstream, startUpstream } from "../support/scripted-upstream.ts";

/** The shape of a request as a model server declares it. */
const structure = {
  model: "value",
  messages: [{ role: "value", content: "value", tool_calls: "value", name: "value" }],
  prompt: "value",
  input: "value",
  max_tokens: "value",
  max_completion_tokens: "value",
  n: "value",
  stream: "value",
  stream_options: { include_usage: "value" },
  tools: [{ type: "value", function: { name: "value", parameters: "value" } }],
  response_format: { type: "value", json_schema: { name: "value", schema: "value" } },
} as const;

interface GoRequest {
  model: string;
  max_tokens?: number;
  stream?: boolean;
  stream_options?: { include_usage?: boolean };
}

/** What the model server was asked for, as it read it, and made. */
const made: { model: string; tokens: number }[] = [];

/** A model server that reads as Go does, and makes as many tokens as it may. */
const goServer: Script = ({ text }, res) => {
  const request = readLeniently(text, structure, asGo) as GoRequest;
  const tokens = request.max_tokens ?? 2;
  made.push({ model: request.model, tokens });
  const usage = { prompt_tokens: 3, completion_tokens: tokens, total_tokens: tokens + 3 };
  if (request.stream !== true) {
    const choice = { index: 0, message: { role: "assistant", content: "word" }, finish_reason: "length" };
    json(res, 200, { id: "c", object: "chat.completion", created: 1, model: "m", choices: [choice], usage });
    return;
  }
  res.writeHead(200, { "content-type": "text/event-stream" });
  res.write(chunk({ role: "assistant", content: "word" }, "length"));
  if (request.stream_options?.include_usage) {
    const head = { id: "c", object: "chat.completion.chunk", created: 1, model: "m" };
    res.write(`data: ${JSON.stringify({ ...head, choices: [], usage })}\n\n`);
  }
  res.end("data: [DONE]\n\n");
};

let upstream: ScriptedUpstream;
let server: TestServer;

beforeAll(async () => {
  upstream = await startUpstream(goServer);
  const model = (id: string, environments: string) =>
    `  - { id: ${id}, environments: [${environments}], deployments: [{ upstream: up, model: ${id} }] }`;
  server = await startHeadrace({
    yaml: `upstreams: [{ name: up, url: "${upstream.url}", discover: false }]
models:
${model("small", "dev, test, live")}
${model("huge", "live")}
`,
  });
});

beforeEach(() => {
  made.length = upstream.requests.length = 0;
});

afterAll(async () => {
  await server[Symbol.asyncDispose]();
  await upstream[Symbol.asyncDispose]();
});

async function post(body: string, path = "/v1/chat/completions") {
  const response = await server.request(path, { method: "POST", body });
  const text = await response.text();
  return { status: response.status, message: response.ok ? "" : (JSON.parse(text).error.message as string) };
}

const user = '"messages":[{"role":"user","content":"Hello"}]';
const long = "word ".repeat(4_000);

/** A text that a lenient parser reads otherwise, the field that it hides behind as it is shown, and the field that is meant. */
const attacks: readonly [what: string, leniency: Leniency, body: string, shown: string, meant: string][] = [
  ["a model in another case", asGo, `{"model":"small",${user},"Model":"huge"}`, "Model", "model"],
  [
    "a token limit in another case",
    asGo,
    `{"model":"small",${user},"max_tokens":5,"Max_tokens":90000}`,
    "Max_tokens",
    "max_tokens",
  ],
  ["a token limit alone", asGo, `{"model":"small",${user},"MAX_TOKENS":90000}`, "MAX_TOKENS", "max_tokens"],
  [
    "a capital behind an escape",
    asGo,
    `{"model":"small",${user},"\\u004dax_tokens":90000}`,
    "Max_tokens",
    "max_tokens",
  ],
  ["a Kelvin sign", asGo, `{"model":"small",${user},"max_to\u212aens":90000}`, "max_to\\u212aens", "max_tokens"],
  [
    "an escaped Kelvin sign",
    asGo,
    `{"model":"small",${user},"max_to\\u212aens":90000}`,
    "max_to\\u212aens",
    "max_tokens",
  ],
  ["a long s", asGo, `{"model":"small",${user},"\u017ftream":true}`, "\\u017ftream", "stream"],
  [
    "messages in another case",
    asGo,
    `{"model":"small",${user},"Messages":[{"role":"user","content":"${long}"}]}`,
    "Messages",
    "messages",
  ],
  [
    "a content in another case",
    asGo,
    `{"model":"small","messages":[{"role":"user","content":"a","Content":"${long}"}]}`,
    "messages[0].Content",
    "messages[0].content",
  ],
  [
    "calls that a user's message has not",
    asGo,
    `{"model":"small","messages":[{"role":"user","content":"a","Tool_calls":["${long}"]}]}`,
    "messages[0].Tool_calls",
    "messages[0].tool_calls",
  ],
  [
    "stream options in another case",
    asGo,
    `{"model":"small",${user},"stream":true,"Stream_options":{"include_usage":false}}`,
    "Stream_options",
    "stream_options",
  ],
  [
    "usage not wanted",
    asGo,
    `{"model":"small",${user},"stream":true,"stream_options":{"include_usage":true,"Include_Usage":false}}`,
    "stream_options.Include_Usage",
    "stream_options.include_usage",
  ],
  [
    "tools in another case",
    asGo,
    `{"model":"small",${user},"Tools":[{"type":"function","function":{"name":"f"}}]}`,
    "Tools",
    "tools",
  ],
  [
    "a function in another case",
    asGo,
    `{"model":"small",${user},"tools":[{"type":"function","Function":{"name":"${long}"}}]}`,
    "tools[0].Function",
    "tools[0].function",
  ],
  [
    "a token limit with a dash",
    asGoVersion2,
    `{"model":"small",${user},"max_tokens":5,"max-tokens":90000}`,
    "max-tokens",
    "max_tokens",
  ],
  [
    "a token limit as programs in other languages call it",
    asGoVersion2,
    `{"model":"small",${user},"maxTokens":90000}`,
    "maxTokens",
    "max_tokens",
  ],
  ["a model behind underscores", asGoVersion2, `{"model":"small",${user},"_mo_del":"huge"}`, "_mo_del", "model"],
  ["choices behind a dash", asGoVersion2, `{"model":"small",${user},"n-":100}`, "n-", "n"],
  [
    "a message beside the messages",
    asGoVersion2,
    `{"model":"small",${user},"messages_":[{"role":"user","content":"${long}"}]}`,
    "messages_",
    "messages",
  ],
  [
    "usage not wanted, without its underscore",
    asGoVersion2,
    `{"model":"small",${user},"stream":true,"stream_options":{"include_usage":true,"includeusage":false}}`,
    "stream_options.includeusage",
    "stream_options.include_usage",
  ],
  ["a name that ends at NUL", asCjson, `{"model\\u0000":"huge","model":"small",${user}}`, "model\\u0000", "model"],
  [
    "a dotted capital",
    byLowerCase,
    `{"model":"small",${user},"max_complet\u0130on_tokens":90000}`,
    "max_complet\\u0130on_tokens",
    "max_completion_tokens",
  ],
];

// hardening: F15
describe("a field that model servers may read as another is refused with both names and a remedy", () => {
  test.each(attacks)("%s", async (_, leniency, body, shown, meant) => {
    // A dotted capital becomes two characters in JavaScript; elsewhere it becomes one.
    const folding = { ...leniency, fold: (name: string) => leniency.fold(name).replace("\u0307", "") };
    expect(readLeniently(body, structure, folding)).not.toEqual(readExactly(body, structure));
    const { status, message } = await post(body);
    expect(message).toBe(`${shown}: some model servers read it as \`${meant}\`; send \`${meant}\`, or leave it out.`);
    expect(status).toBe(400);
    expect(upstream.requests).toEqual([]);
  });
});

test.each([
  ["/v1/completions", "Prompt", "prompt", `{"model":"small","prompt":"a","Prompt":"${long}"}`],
  ["/v1/completions", "Best_of", "best_of", '{"model":"small","prompt":"a","Best_of":100}'],
  ["/v1/embeddings", "Input", "input", '{"model":"small","input":"a","Input":["b"]}'],
  ["/v1/embeddings", "MODEL", "model", '{"model":"small","input":"a","MODEL":"huge"}'],
])("%s refuses %s, which some model servers read as %s", async (path, shown, meant, body) => {
  expect(await post(body, path)).toEqual({
    status: 400,
    message: `${shown}: some model servers read it as \`${meant}\`; send \`${meant}\`, or leave it out.`,
  });
});

// hardening: F15
describe("a duplicate name in an object is refused at any depth and in any spelling", () => {
  test.each([
    [`{"model":"small",${user},"model":"huge"}`, "model"],
    [`{"model":"small",${user},"mod\\u0065l":"huge"}`, "model"],
    [`{"model":"small","messages":[{"role":"user","content":"a","content":"${long}"}]}`, "messages[0].content"],
    [
      '{"model":"small","messages":[{"role":"user","content":[{"type":"text","text":"a","t\\u0065xt":"b"}]}]}',
      "messages[0].content[0].text",
    ],
    [`{"model":"small",${user},"metadata":{"a":"1","b":"2","a":"3"}}`, "metadata.a"],
    [
      `{"model":"small",${user},"tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object","type":"array"}}}]}`,
      "tools[0].function.parameters.type",
    ],
    [`{"model":"small",${user},"unknown":[[],[0,{"x":{},"x":{}}]]}`, "unknown[1][1].x"],
  ])("%s", async (body, path) => {
    expect(await post(body)).toEqual({
      status: 400,
      message: `The body cannot be used: the field \`${path}\` appears twice; send it once.`,
    });
    expect(upstream.requests).toEqual([]);
  });
});

test.each([
  ["n_predict", "max_tokens", `{"model":"small",${user},"max_tokens":5,"n_predict":90000}`],
  ["n_cmpl", "n", `{"model":"small",${user},"n_cmpl":100}`],
  ["N_predict", "max_tokens", `{"model":"small",${user},"N_predict":90000}`],
])("refuses %s, which llama.cpp prefers to %s", async (name, meant, body) => {
  expect(await post(body)).toEqual({
    status: 400,
    message: `${name}: some model servers read it as \`${meant}\`; send \`${meant}\`, or leave it out.`,
  });
  expect(upstream.requests).toEqual([]);
});

test("refuses two unknown fields that differ only in case, and __proto__", async () => {
  expect((await post(`{"model":"small",${user},"Seed_mode":1,"seed_Mode":2}`)).message).toBe(
    "seed_Mode: some model servers read it as `Seed_mode`; send one of them.",
  );
  expect((await post(`{"model":"small",${user},"__proto__":{"max_tokens":90000}}`)).message).toBe(
    "__proto__: is no field, but some model servers take what it holds for fields; leave it out.",
  );
});

test("refuses fields by which other gateways choose a model, so that a key cannot reach a forbidden one", async () => {
  for (const member of [
    '"extra_body":{"model":"huge","max_tokens":100000}',
    '"models":["huge"]',
    '"fallbacks":["huge"]',
    '"Extra_Body":{"model":"huge"}',
    '"context_window_fallbacks":[{"small":["huge"]}]',
    '"content_policy_fallbacks":[{"small":["huge"]}]',
    '"router_settings_override":{"fallbacks":[{"small":["huge"]}]}',
    '"model_list":[{"model_name":"small","litellm_params":{"model":"huge"}}]',
    '"user_config":{"model_list":[]}',
    '"api_base":"https://example.org"',
    '"base_url":"https://example.org"',
    '"custom_llm_provider":"other"',
    '"prompt_id":"of-the-huge-model"',
    '"route":"fallback"',
    '"preset":"of-the-huge-model"',
  ]) {
    const { status, message } = await post(`{"model":"small",${user},${member}}`);
    expect([status, message]).toEqual([400, expect.stringContaining("some model servers take it before `model`")]);
  }
  expect(upstream.requests).toEqual([]);
});

test.each([
  ["providerOptions.gateway.models", '"providerOptions":{"openai":{},"gateway":{"order":["a"],"models":["huge"]}}'],
  ["provideroptions.Gateway.models", '"provideroptions":{"Gateway":{"models":["huge"]}}'],
  ["plugins[1].id", '"plugins":[{"id":"web"},{"id":"fusion","analysis_models":["huge"]}]'],
  ["tools[0].type", '"tools":[{"type":"openrouter:fusion","parameters":{"analysis_models":["huge"]}}]'],
  ["tools[0].type", '"tools":[{"type":"openrouter:advisor","parameters":{"model":"huge"}}]'],
  ["tools[0].type", '"tools":[{"type":"\\u006fpenrouter:subagent","parameters":{"model":"huge"}}]'],
])("refuses %s, in which other gateways find further models", async (path, member) => {
  const { status, message } = await post(`{"model":"small",${user},${member}}`);
  expect([status, message]).toEqual([400, expect.stringContaining(`${path}: some model servers take it beside`)]);
  expect(upstream.requests).toEqual([]);
});

test("accepts options, plugins and tools of other gateways that choose no model", async () => {
  const body = `{"model":"small",${user},"providerOptions":{"gateway":{"order":["a"],"models":null}},"plugins":[{"id":"web"}],"tools":[{"type":"openrouter:web_search"}]}`;
  expect(await post(body)).toEqual({ status: 200, message: "" });
  expect(upstream.requests[0]?.text).toBe(body);
});

test("folds only a bounded number of names per body", async () => {
  const names = Array.from({ length: 50 }, (_, i) => `"größe${i}":0`).join(",");
  const messages = (count: number) => Array(count).fill(`{"role":"user","content":"a",${names}}`).join(",");
  expect((await post(`{"model":"small","messages":[${messages(200)}]}`)).status).toBe(200);
  expect(await post(`{"model":"small","messages":[${messages(201)}]}`)).toEqual({
    status: 400,
    message:
      "The body cannot be used: more than 10000 of its fields have names with capitals or characters beyond ASCII.",
  });
});

test("accepts unambiguous names unchanged, and a client's own names", async () => {
  const body = `{"model":"small",${user},"chatTemplateKwargs":{"Model":1,"model":2},"topP":0.5,"top-k":1,"seed-mode":1,"seedMode":2,"größe":1,"metadata":{"User":"a","user":"b"},"tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object","properties":{"Model":{},"model":{},"__proto__":{}}}}}]}`;
  expect(await post(body)).toEqual({ status: 200, message: "" });
  expect(upstream.requests[0]?.text).toBe(body);
});

test("accepts a field's name where it is no field, and refuses it where it is", async () => {
  const body = `{"model":"small","messages":[{"role":"user","content":"a","ID":"m1","Type":"x"}],"ID":1,"Name":"n","Type":"t","URL":"u","tools":[{"type":"function","function":{"name":"f"},"Role":"r"}]}`;
  expect(await post(body)).toEqual({ status: 200, message: "" });
  expect(upstream.requests[0]?.text).toBe(body);
  for (const [member, shown] of [
    ['"messages":[{"role":"user","content":"a","Name":"n"}]', "messages[0].Name"],
    ['"messages":[{"role":"user","content":"a","Tool_call_id":"c"}]', "messages[0].Tool_call_id"],
    [
      '"messages":[{"role":"user","content":[{"type":"text","text":"a","Image_url":{}}]}]',
      "messages[0].content[0].Image_url",
    ],
    [
      '"messages":[{"role":"assistant","tool_calls":[{"id":"c","type":"function","ID":"d"}]}]',
      "messages[0].tool_calls[0].ID",
    ],
    [`${user},"tools":[{"type":"function","Type":"x"}]`, "tools[0].Type"],
    [`${user},"Prompt":"a"`, "Prompt"],
  ]) {
    const { status, message } = await post(`{"model":"small",${member}}`);
    expect([status, message]).toEqual([400, expect.stringContaining(`${shown}: some model servers read it as`)]);
  }
});

test("passes on fields known only to model servers: a schema beside its type, any metadata, empty content beside calls", async () => {
  const calls = '[{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}]';
  const body = `{"model":"small","messages":[{"role":"user","content":"a"},{"role":"assistant","content":[],"tool_calls":${calls}},{"role":"tool","tool_call_id":"c","content":"b"}],"response_format":{"type":"json_schema","schema":{"type":"object"}},"metadata":{"tags":["a"],"n":7}}`;
  expect(await post(body)).toEqual({ status: 200, message: "" });
  expect(upstream.requests[0]?.text).toBe(body);
  const stored = await post(`{"model":"small",${user},"metadata":{"n":7},"store":true}`);
  expect(stored).toEqual({ status: 400, message: expect.stringContaining("metadata[n]: must be a string") });
});

// hardening: F15
test("books the request that a model server parsing like Go would read, for every accepted body", async () => {
  const bodies = [...attacks.map(([, , body]) => body), `{"model":"small",${user},"max_tokens":7,"stream":true}`];
  for (const body of bodies) await post(body);
  expect(made).toEqual([{ model: "small", tokens: 7 }]);
  const booked = await until(async () => {
    const response = await server.request("/v1/usage?bucket=day&group_by=model");
    const { data } = (await response.json()) as { data: { model: string; completion_tokens: number }[] };
    return data.find(({ completion_tokens }) => completion_tokens >= 7);
  }, "the usage");
  expect(booked.model).toBe("small");
});
