// Members of requests that rule a model server: refused by default, and those that an operator names.
import { afterEach, describe, expect, test } from "bun:test";
import { rulingMembers } from "../../src/domain/models/ruling-members.ts";
import { startHeadrace } from "../support/headrace.ts";
import { startUpstream, upstreamYaml } from "../support/scripted-upstream.ts";

const stack: AsyncDisposable[] = [];
afterEach(async () => {
  for (const part of stack.splice(0).reverse()) await part[Symbol.asyncDispose]();
});

const model = "upstream-model";
const messages = [{ role: "user", content: "Hello" }];
const endpoints: [path: string, body: Record<string, unknown>][] = [
  ["/v1/chat/completions", { model, messages }],
  ["/v1/completions", { model, prompt: "Hello" }],
  ["/v1/embeddings", { model, input: "Hello" }],
  ["/v1/responses", { model, input: "Hello" }],
  ["/v1/messages", { model, messages, max_tokens: 5 }],
];

async function start(limits = "") {
  const upstream = await startUpstream();
  const server = await startHeadrace({ yaml: upstreamYaml(upstream, limits) });
  stack.push(upstream, server);
  const ask = async (path: string, body: object) => {
    const answered = await server.request(path, { body });
    const { error } = (await answered.json()) as { error?: { message: string } };
    return { status: answered.status, message: error?.message };
  };
  return { upstream, server, ask };
}

describe.each(endpoints)("%s", (path, body) => {
  test("refuses fields that control a model server, without calling it", async () => {
    const { upstream, ask } = await start();
    for (const name of rulingMembers) {
      expect(await ask(path, { ...body, [name]: "http://10.0.0.1" })).toMatchObject({
        status: 400,
        message: expect.stringMatching(
          new RegExp(`^${name}: is not passed on to model servers.*limits\\.refused_members`),
        ),
      });
    }
    expect(upstream.requests).toEqual([]);
  });

  test("refuses the operator's listed fields in any spelling, and passes on all others", async () => {
    const { upstream, ask } = await start("limits: { refused_members: [service_tier] }\n");
    expect((await ask(path, { ...body, service_tier: "priority" })).status).toBe(400);
    const text = JSON.stringify({ ...body, tier: "priority" }).replace('"tier"', '"service\\u005ftier"');
    expect((await ask(path, JSON.parse(text))).status).toBe(400);
    expect(upstream.requests).toEqual([]);
    await ask(path, { ...body, service_tier: null, lora_path: "a" });
    expect(upstream.requests).toHaveLength(1);
  });
});

const neutral: Readonly<Record<string, unknown>> = {
  ...{ id_slot: -1, slot_id: -1, data_parallel_rank: -1, return_hidden_states: false, chat_template: "" },
};

test("passes on a refused field if its value is null or neutral", async () => {
  const { upstream, ask } = await start();
  for (const name of rulingMembers) {
    for (const value of [null, false, "", -1, [], {}, true, 0, 1, "a", [1], { a: 1 }]) {
      const isPassed = value === null || value === neutral[name];
      const { status } = await ask("/v1/chat/completions", { model, messages, [name]: value });
      expect([name, value, status]).toEqual([name, value, isPassed ? 200 : 400]);
    }
  }
  expect(upstream.requests).toHaveLength(rulingMembers.length + Object.keys(neutral).length);
});

test.each([
  ["web_search_options", {}],
  ["search_parameters", {}],
  ["keep_alive", -1],
  ["ttl", -1],
  ["safe_prompt", false],
  ["cache_prompt", false],
])("refuses %s as %j if the operator lists it, and passes on null", async (name, value) => {
  const { upstream, ask } = await start(`limits: { refused_members: [${name}] }\n`);
  expect((await ask("/v1/chat/completions", { model, messages, [name]: value })).status).toBe(400);
  expect(upstream.requests).toEqual([]);
  expect((await ask("/v1/chat/completions", { model, messages, [name]: null })).status).toBe(200);
});

test("refuses template variables that replace the template or messages, and passes on others", async () => {
  const { upstream, ask } = await start();
  const replacing = [
    "chat_template",
    "tokenize",
    "tokenizer_kwargs",
    "messages",
    "conversation",
    "tools",
    "Chat_Template",
  ];
  for (const name of replacing) {
    for (const more of [{}, { unknown: 1 }]) {
      const asked = { model, messages, chat_template_kwargs: { [name]: ["x"] }, ...more };
      expect(await ask("/v1/chat/completions", asked)).toMatchObject({
        status: 400,
        message: expect.stringContaining(`chat_template_kwargs.${name}: is not passed on`),
      });
    }
  }
  const spelt = { model, messages, Chat_Template_Kwargs: { messages: ["x"] } };
  expect((await ask("/v1/chat/completions", spelt)).status).toBe(400);
  expect(upstream.requests).toEqual([]);
  const usual = { enable_thinking: false, documents: [{ title: "a" }] };
  expect((await ask("/v1/chat/completions", { model, messages, chat_template_kwargs: usual })).status).toBe(200);
  expect(upstream.requests[0]?.body).toMatchObject({ chat_template_kwargs: usual });
});

test.each([
  ["options.lora_path", { options: { lora_path: "x" } }],
  ["parameters.adapter_id", { parameters: { adapter_id: "someone/adapter" } }],
  ["parameters.adapter_id", { parameters: { adapter_id: "" } }],
  ["options.inner.lora_path", { options: { inner: { lora_path: "x" } } }],
  ["options[0].lora_path", { options: [{ lora_path: "x" }] }],
  ["options[1][0].a.LORA_path", { options: [1, [{ a: { LORA_path: "x" } }]] }],
])("refuses the controlling field %s at any depth of unknown fields", async (path, more) => {
  const { upstream, ask } = await start();
  expect(await ask("/v1/chat/completions", { model, messages, ...more })).toMatchObject({
    status: 400,
    message: expect.stringContaining(`${path}: is not passed on`),
  });
  expect(upstream.requests).toEqual([]);
});

test("refuses template variables that are not an object, since a server may parse them", async () => {
  const { upstream, ask } = await start();
  for (const variables of ['{"chat_template":"x"}', [{ chat_template: "x" }], ""]) {
    for (const more of [{}, { unknown: 1 }]) {
      const asked = { model, messages, chat_template_kwargs: variables, ...more };
      expect(await ask("/v1/chat/completions", asked)).toMatchObject({
        status: 400,
        message: expect.stringContaining("chat_template_kwargs"),
      });
    }
  }
  expect(upstream.requests).toEqual([]);
  expect((await ask("/v1/chat/completions", { model, messages, chat_template_kwargs: null })).status).toBe(200);
});

test("does not take properties of an unknown schema for controlling fields", async () => {
  const { ask } = await start();
  const response_schema = { type: "object", properties: { template: { type: "string" } } };
  expect((await ask("/v1/chat/completions", { model, messages, options: { response_schema } })).status).toBe(200);
});

test("does not take the client's own names for controlling fields", async () => {
  const { ask } = await start();
  const properties = { template: { type: "string" }, request_id: { type: "string" }, file_id: { type: "string" } };
  const tools = [{ type: "function", function: { name: "f", parameters: { type: "object", properties } } }];
  const asked = { model, messages, tools, metadata: { request_id: "r", template: "t" }, unknown: true };
  expect((await ask("/v1/chat/completions", asked)).status).toBe(200);
});

const image = { type: "input_image", file_id: "file-1" };
const withFiles: [path: string, body: object][] = [
  ["/v1/chat/completions", { messages: [{ role: "user", content: [{ type: "file", file: { file_id: "file-1" } }] }] }],
  ["/v1/responses", { input: [{ role: "user", content: [image] }] }],
  ["/v1/responses", { input: [{ type: "function_call_output", call_id: "c", output: [image] }] }],
  [
    "/v1/responses",
    { input: "Hi", tools: [{ type: "code_interpreter", container: { type: "auto", file_ids: ["file-1"] } }] },
  ],
  ["/v1/responses", { input: "Hi", prompt: { id: "p", variables: { x: image } } }],
  ["/v1/responses", { input: "Hi", prompt: { id: "p", variables: { annotations: image, parameters: image } } }],
  ["/v1/responses", { type: "tool_use", input: [{ role: "user", content: [image] }] }],
  ["/v1/responses", { input: [{ type: "tool_use", role: "user", content: [{ ...image, input: image }] }] }],
  [
    "/v1/messages",
    {
      max_tokens: 5,
      messages: [{ role: "user", content: [{ type: "document", source: { type: "file", file_id: "file-1" } }] }],
    },
  ],
];
const countPaths: Readonly<Record<string, string>> = {
  "/v1/responses": "/v1/responses/input_tokens",
  "/v1/messages": "/v1/messages/count_tokens",
};

test.each(withFiles)("refuses file ids in the parts of %s if the operator lists them: %j", async (path, body) => {
  const { upstream, ask } = await start("limits: { refused_members: [file_id, file_ids] }\n");
  const refusal = { status: 400, message: expect.stringMatching(/file_ids?: is not passed on/) };
  expect(await ask(path, { model, ...body })).toMatchObject(refusal);
  const count = countPaths[path];
  if (count) {
    const { max_tokens: _, ...counted } = body as { max_tokens?: number };
    expect(await ask(count, { model, ...counted })).toMatchObject(refusal);
  }
  expect(upstream.requests).toEqual([]);
});

test.each(["File_id", "FILE_ID", "file_Id\u017f", "file_id\u017f"])(
  "refuses the alternate spelling %s of a file id in an otherwise known body",
  async (name) => {
    const { upstream, ask } = await start("limits: { refused_members: [file_id, file_ids] }\n");
    const content = [{ type: "file", file: { [name]: "file-1" } }];
    expect((await ask("/v1/chat/completions", { model, messages: [{ role: "user", content }] })).status).toBe(400);
    expect(upstream.requests).toEqual([]);
  },
);

const schema = { type: "object", properties: { file_id: { type: "string" } }, file_id: 1 };
const cited = { type: "container_file_citation", container_id: "c", file_id: "f", start_index: 0, end_index: 1 };
const withoutFiles: [path: string, body: object][] = [
  ...[
    { tools: [{ type: "function", function: { name: "f", parameters: schema } }] },
    { response_format: { type: "json_schema", json_schema: { name: "a", schema } } },
    { guided_json: schema },
    { json_schema: schema },
    { format: schema },
    { structured_outputs: { json: schema } },
    { documents: [{ title: "a", text: "b", file_id: "f" }] },
    { metadata: { file_id: "f" } },
  ].map((more): [string, object] => ["/v1/chat/completions", { messages, ...more }]),
  ["/v1/responses", { input: "Hi", tools: [{ type: "function", name: "f", parameters: schema }] }],
  ["/v1/responses", { input: "Hi", text: { format: { type: "json_schema", name: "a", schema } } }],
  [
    "/v1/responses",
    {
      input: [
        { role: "user", content: "Hi" },
        {
          ...{ type: "message", id: "msg_1", role: "assistant", status: "completed" },
          content: [{ type: "output_text", text: "a", annotations: [cited] }],
        },
        { type: "file_search_call", id: "fs_1", status: "completed", queries: ["a"], results: [{ file_id: "f" }] },
        { role: "user", content: "On" },
      ],
    },
  ],
  [
    "/v1/messages",
    {
      max_tokens: 5,
      tools: [{ name: "f", input_schema: schema }],
      messages: [
        ...messages,
        { role: "assistant", content: [{ type: "tool_use", id: "t", name: "f", input: { file_id: "f" } }] },
        { role: "user", content: [{ type: "tool_result", tool_use_id: "t", content: "a" }] },
      ],
    },
  ],
];

test.each(withoutFiles)("passes on a file id's name where no server reads it, %s: %j", async (path, body) => {
  const { upstream, ask } = await start("limits: { refused_members: [file_id, file_ids] }\n");
  expect(await ask(path, { model, ...body })).toEqual({ status: 200, message: undefined });
  expect(upstream.requests).toHaveLength(1);
});

test("finds a file id whose field name is escaped", async () => {
  const { upstream, server } = await start("limits: { refused_members: [file_id] }\n");
  const content = [{ type: "file", file: { file_id: "file-1" } }];
  const text = JSON.stringify({ model, messages: [{ role: "user", content }] }).replace("file_id", "file\\u005fid");
  const headers = { "content-type": "application/json", authorization: `Bearer ${server.key}` };
  const answered = await fetch(`${server.url}/v1/chat/completions`, { method: "POST", headers, body: text });
  expect(answered.status).toBe(400);
  expect(upstream.requests).toEqual([]);
});

test.each(["/v1/responses/input_tokens", "/v1/messages/count_tokens"])(
  "refuses controlling fields at %s",
  async (path) => {
    const { upstream, ask } = await start();
    const prompt = path.includes("messages") ? { messages } : { input: "Hello" };
    const ruling = { lora_path: "a" };
    expect(await ask(path, { model, ...prompt, ...ruling })).toMatchObject({ status: 400 });
    expect(upstream.requests).toEqual([]);
  },
);

test("refuses alternate spellings that a lenient server reads as a controlling field", async () => {
  const { upstream, ask } = await start();
  expect(await ask("/v1/chat/completions", { model, messages, LORA_Path: "a" })).toMatchObject({ status: 400 });
  expect(upstream.requests).toEqual([]);
});

test("passes on all fields if the operator's list is empty", async () => {
  const { upstream, ask } = await start("limits: { refused_members: [] }\n");
  const ruling = { kv_transfer_params: { a: 1 }, chat_template: "x" };
  expect((await ask("/v1/chat/completions", { model, messages, ...ruling })).status).toBe(200);
  expect(upstream.requests[0]?.body).toMatchObject(ruling);
});
