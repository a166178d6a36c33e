// Model servers that refuse a member which only the gateway wrote: they are asked once more without it, and it is remembered.
import { afterEach, describe, expect, test } from "bun:test";
import type { ServerResponse } from "node:http";
import { startHeadrace, until } from "../support/headrace.ts";
import { responseScript } from "../support/response-script.ts";
import {
  chatScript,
  json,
  type Script,
  startUpstream,
  type UpstreamRequest,
  usage,
} from "../support/scripted-upstream.ts";

type Json = Record<string, unknown>;

const stack: AsyncDisposable[] = [];
afterEach(async () => {
  for (const part of stack.splice(0).reverse()) await part[Symbol.asyncDispose]();
});

const tool = { name: "look", description: "Looks.", parameters: { type: "object", properties: {} } };
const messagesBody = {
  ...{ model: "m", max_tokens: 100, thinking: { type: "enabled", budget_tokens: 20_000 } },
  messages: [
    { role: "user", content: "Hello" },
    {
      role: "assistant",
      content: [
        { type: "thinking", thinking: "Let me look.", signature: "" },
        { type: "tool_use", id: "toolu_01A", name: "look", input: {} },
      ],
    },
    {
      role: "user",
      content: [
        { type: "tool_result", tool_use_id: "toolu_01A", content: "found" },
        { type: "text", text: "And now?" },
      ],
    },
  ],
  tools: [{ name: tool.name, description: tool.description, input_schema: tool.parameters }],
};
const responsesBody = {
  ...{ model: "m", reasoning: { effort: "high" }, parallel_tool_calls: true },
  input: [
    { role: "user", content: "Hello" },
    { type: "function_call", call_id: "call_1", name: "look", arguments: "{}" },
    { type: "function_call_output", call_id: "call_1", output: "found" },
    { role: "user", content: "And now?" },
  ],
  tools: [{ type: "function", strict: true, ...tool, parameters: { ...tool.parameters, additionalProperties: false } }],
};
const chatBody = {
  ...{ model: "m", reasoning_effort: "high" },
  messages: [{ role: "user", content: "Hello" }],
  tools: [
    {
      type: "function",
      function: { ...tool, strict: true, parameters: { ...tool.parameters, additionalProperties: false } },
    },
  ],
};
const clients: Readonly<Record<string, Json>> = {
  "/v1/messages": messagesBody,
  "/v1/responses": responsesBody,
  "/v1/chat/completions": chatBody,
};

const messageScript: Script = ({ body }, res) => {
  const { prompt_tokens: input_tokens, completion_tokens: output_tokens } = usage;
  const head = { id: "msg_up", type: "message", role: "assistant", model: "m", stop_sequence: null };
  const text = { type: "text", text: "Hello world" };
  const counts = { input_tokens, output_tokens };
  if (body["stream"] !== true) {
    json(res, 200, { ...head, content: [text], stop_reason: "end_turn", usage: counts });
    return;
  }
  res.writeHead(200, { "content-type": "text/event-stream" });
  for (const event of [
    {
      type: "message_start",
      message: { ...head, content: [], stop_reason: null, usage: { input_tokens, output_tokens: 0 } },
    },
    { type: "content_block_start", index: 0, content_block: { type: "text", text: "" } },
    { type: "content_block_delta", index: 0, delta: { type: "text_delta", text: text.text } },
    { type: "content_block_stop", index: 0 },
    { type: "message_delta", delta: { stop_reason: "end_turn", stop_sequence: null }, usage: counts },
    { type: "message_stop" },
  ]) {
    res.write(`event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`);
  }
  res.end();
};
const answers: Readonly<Record<string, Script>> = {
  chat: chatScript(),
  responses: responseScript(),
  messages: messageScript,
};

/** Returns the message of a refusal; undefined if the request is taken. */
type Rule = (body: Json, request: UpstreamRequest) => string | undefined;

function refuse(res: ServerResponse, message: string, status = 400): void {
  json(res, status, { error: { message, type: "invalid_request_error", param: null, code: null } });
}

/** Counts of tokens go to other paths. */
function isQuestion({ path }: UpstreamRequest): boolean {
  return /\/(?:chat\/completions|responses|messages)$/.test(path);
}

async function start(rule: Rule, { api = "chat", status = 400, more = "" } = {}) {
  const answer = answers[api] as Script;
  const upstream = await startUpstream(async (request, res) => {
    const message = rule(request.body, request);
    if (message === undefined) await answer(request, res);
    else refuse(res, message, status);
  });
  const yamlWith = (options: string) => `upstreams:
  - { name: up, url: "${upstream.url}", discover: false, apis: [${api}]${options} }
models:
  - { id: m, deployments: [{ upstream: up, model: m }] }
${more}`;
  const server = await startHeadrace({ yaml: yamlWith("") });
  stack.push(upstream, server);
  const ask = async (path: string, body: object = {}) => {
    const before = upstream.requests.length;
    const answered = await server.request(path, { body: { ...clients[path], ...body } });
    const text = await answered.text();
    const asked = upstream.requests.slice(before);
    const bodies = asked.filter(isQuestion).map((one) => one.body);
    return { status: answered.status, text, bodies, ignored: answered.headers.get("x-headrace-ignored") };
  };
  const booked = async () => {
    await server.governance.ledger.flush();
    return ((await (await server.request("/v1/requests")).json()) as { data: Json[] }).data;
  };
  return { upstream, server, ask, booked, yamlWith };
}

const unknown = (name: string) => `Unrecognized request argument supplied: ${name}`;
const anyMessage = (body: Json, holds: (message: Json) => boolean) => (body["messages"] as Json[]).some(holds);

interface Case {
  path: string;
  api: "chat" | "responses" | "messages";
  rule: Rule;
  body?: Json;
  /** Members that clients are told of. */
  ignored: string | null;
}
const hasStrict = (body: Json) =>
  (body["tools"] as Json[]).some((one) => "strict" in one || "strict" in ((one["function"] as Json) ?? {}));
const cases: Readonly<Record<string, Case>> = {
  "an effort from Messages": {
    ...{ path: "/v1/messages", api: "chat", ignored: "reasoning" },
    rule: (body) => (body["reasoning_effort"] === undefined ? undefined : unknown("reasoning_effort")),
  },
  "earlier reasoning from Messages": {
    ...{ path: "/v1/messages", api: "chat", ignored: "reasoning" },
    rule: (body) =>
      anyMessage(body, (one) => "reasoning_content" in one)
        ? "'messages.1' : property 'reasoning_content' is unsupported"
        : undefined,
  },
  "a user after results from Messages": {
    ...{ path: "/v1/messages", api: "chat", ignored: null },
    rule: (body) => {
      const messages = body["messages"] as Json[];
      const isAfter = messages.some(({ role }, index) => role === "user" && messages[index - 1]?.["role"] === "tool");
      return isAfter ? "Unexpected role 'user' after role 'tool'" : undefined;
    },
  },
  "long call ids from Responses": {
    ...{ path: "/v1/responses", api: "chat", ignored: null },
    rule: (body) =>
      anyMessage(body, (one) => "tool_call_id" in one && !/^\w{9}$/.test(String(one["tool_call_id"])))
        ? "Tool call id was call_1 but must be a-z, A-Z, 0-9, with a length of 9."
        : undefined,
  },
  "strict tools from Responses": {
    ...{ path: "/v1/responses", api: "chat", ignored: "strict" },
    rule: (body) => (hasStrict(body) ? "tools.0.function.strict: Extra inputs are not permitted" : undefined),
  },
  "encrypted reasoning from chat": {
    ...{ path: "/v1/chat/completions", api: "responses", ignored: null },
    rule: (body) => (body["include"] === undefined ? undefined : "Encrypted content is not supported with this model."),
  },
  "an effort from chat at Responses": {
    ...{ path: "/v1/chat/completions", api: "responses", ignored: "reasoning" },
    rule: ({ reasoning }) =>
      reasoning === undefined || (reasoning as Json)["effort"] === undefined
        ? undefined
        : "Unsupported parameter: 'reasoning.effort' is not supported with this model.",
  },
  "a summary from Messages at Responses": {
    ...{ path: "/v1/messages", api: "responses", ignored: "reasoning" },
    rule: ({ reasoning }) =>
      (reasoning as Json)["summary"] === undefined
        ? undefined
        : "Your organization must be verified to generate reasoning summaries.",
  },
  "a user from chat at Messages": {
    body: { user: "ann" },
    ...{ path: "/v1/chat/completions", api: "messages", ignored: "user" },
    rule: (body) => (body["metadata"] === undefined ? undefined : "metadata: Extra inputs are not permitted"),
  },
  "thinking from Responses at Messages": {
    ...{ path: "/v1/responses", api: "messages", ignored: "reasoning" },
    rule: (body) => (body["thinking"] === undefined ? undefined : "adaptive thinking is not supported on this model"),
  },
};

describe.each(Object.entries(cases))("%s", (_, { path, api, rule, ignored, body = {} }) => {
  test.each([
    ["whole", false],
    ["stream", true],
  ])("is asked twice, then once without the refused member, and booked once: %s", async (_form, stream) => {
    const { ask, booked } = await start(rule, { api });
    const first = await ask(path, { ...body, stream });
    expect([first.status, first.bodies.length]).toEqual([200, 2]);
    expect(first.text).toContain("Hello");
    expect(first.ignored?.split(", ").includes(String(ignored)) ?? false).toBe(ignored !== null);
    const second = await ask(path, { ...body, stream });
    expect([second.status, second.bodies.length]).toEqual([200, 1]);
    expect(second.bodies[0]).toEqual(first.bodies[1]);
    expect(second.ignored).toBe(first.ignored);
    const records = await booked();
    expect(records).toHaveLength(2);
    for (const record of records) {
      expect(record).toMatchObject({ prompt_tokens: 7, completion_tokens: 2, outcome: "completed", estimated: false });
    }
  });
});

test("learns a refusal of 422, and shows it in the trail of the request", async () => {
  const { rule } = cases["an effort from Messages"] as Case;
  const { ask, booked, server } = await start(rule, { status: 422 });
  expect((await ask("/v1/messages")).bodies).toHaveLength(2);
  const [record] = await booked();
  const detail = await (await server.request(`/v1/requests/${record?.["id"]}`)).json();
  expect(detail).toMatchObject({
    attempts: 2,
    trail: [{ result: "refused", status: 422 }, { result: "answered" }],
  });
});

test("remembers the refused effort alone, and sends the others", async () => {
  const { ask } = await start((body) =>
    body["reasoning_effort"] === "high"
      ? "Unsupported value: 'reasoning_effort' does not support 'high' with this model."
      : undefined,
  );
  expect((await ask("/v1/responses")).bodies).toHaveLength(2);
  const { bodies } = await ask("/v1/responses", { reasoning: { effort: "low" } });
  expect(bodies).toMatchObject([{ reasoning_effort: "low" }]);
});

test("asks without the request for usage that only the gateway sent, and estimates the usage", async () => {
  const { ask, booked } = await start((body) =>
    body["stream_options"] === undefined ? undefined : "stream_options: Extra inputs are not permitted",
  );
  const first = await ask("/v1/chat/completions", { stream: true });
  expect([first.status, first.bodies.length]).toEqual([200, 2]);
  expect((await ask("/v1/chat/completions", { stream: true })).bodies).toHaveLength(1);
  expect(await booked()).toMatchObject([{ estimated: true }, { estimated: true }]);
  const own = await ask("/v1/chat/completions", { stream: true, stream_options: { include_usage: true } });
  expect([own.status, own.bodies.length]).toEqual([400, 1]);
});

describe("sends the refusal to the client after one request if", () => {
  test("the body was passed unchanged", async () => {
    const { ask, upstream } = await start((body) =>
      body["reasoning_effort"] === undefined ? undefined : unknown("reasoning_effort"),
    );
    for (let i = 0; i < 2; i++) {
      const { status, text, bodies } = await ask("/v1/chat/completions");
      expect([status, bodies.length]).toEqual([400, 1]);
      expect(text).toContain(unknown("reasoning_effort"));
    }
    expect(upstream.requests.at(-1)?.text).toBe(JSON.stringify(chatBody));
  });

  test.each([
    ["the client set the member itself", "temperature", { temperature: 0.3 }],
    ["the answer depends on the member", "tools", {}],
    ["the client forced a call", "tool_choice", { tool_choice: { type: "any" } }],
    ["the limit was refused", "max_tokens", {}],
  ])("%s", async (_, name, body) => {
    const { ask } = await start((sent) => (sent[name] === undefined ? undefined : unknown(name)));
    const { status, text, bodies } = await ask("/v1/messages", body);
    expect([status, bodies.length]).toEqual([400, 1]);
    expect(text).toContain(unknown(name));
  });

  test("the error quotes the client's words", async () => {
    const words = "Why is reasoning_effort not supported?";
    const { ask } = await start((body) =>
      JSON.stringify(body).includes(words) ? `Invalid 'messages[0].content': '${words}' was flagged.` : undefined,
    );
    const flagged = await ask("/v1/messages", { messages: [{ role: "user", content: words }] });
    expect([flagged.status, flagged.bodies.length]).toEqual([400, 1]);
  });
});

test("makes a strict tool loose for a refused schema, each time for that request alone", async () => {
  const { ask } = await start((body) =>
    JSON.stringify(body).includes('"strict":true') && JSON.stringify(body).includes("propertyNames")
      ? "Invalid schema for function 'look': In context=(), 'propertyNames' is not permitted."
      : undefined,
  );
  const parameters = { ...tool.parameters, additionalProperties: false, propertyNames: { maxLength: 9 } };
  const odd = { tools: [{ type: "function", strict: true, ...tool, parameters }] };
  for (let i = 0; i < 2; i++) {
    const { status, bodies, ignored } = await ask("/v1/responses", odd);
    expect([status, bodies.length, ignored]).toEqual([200, 2, "strict"]);
  }
  const { bodies, ignored } = await ask("/v1/responses");
  expect(bodies).toMatchObject([{ tools: [{ function: { strict: true } }] }]);
  expect(ignored).toBeNull();
});

test("forgets a member that the server refuses for another reason", async () => {
  const words = "Forbidden words";
  const { ask } = await start((body) =>
    JSON.stringify(body).includes(words) ? `reasoning_effort is not supported. Also: ${words}` : undefined,
  );
  const refused = await ask("/v1/messages", { messages: [{ role: "user", content: words }] });
  expect([refused.status, refused.bodies.length]).toEqual([400, 2]);
  expect(refused.text).toContain(words);
  const next = await ask("/v1/messages");
  expect(next.bodies).toMatchObject([{ reasoning_effort: "high" }]);
  expect(next.ignored).toBeNull();
});

test("keeps a member that is refused in a client's URL, if the server fetches the URL the second time", async () => {
  let fetched = 0;
  const { ask } = await start(({ messages }, request) =>
    isQuestion(request) && JSON.stringify(messages).includes("images.example") && fetched++ === 0
      ? "Error while downloading https://images.example/unsupported/stream_options."
      : undefined,
  );
  const image = { type: "image", source: { type: "url", url: "https://images.example/unsupported/stream_options" } };
  const first = await ask("/v1/messages", { stream: true, messages: [{ role: "user", content: [image] }] });
  expect([first.status, first.bodies.length]).toEqual([400, 1]);
  const next = await ask("/v1/messages", { stream: true });
  expect(next.bodies).toMatchObject([{ stream_options: { include_usage: true } }]);
});

test("remembers no effort that only the client knows", async () => {
  const { ask } = await start(
    ({ reasoning }) =>
      reasoning !== undefined && String((reasoning as Json)["effort"]).includes(" ")
        ? "Unsupported value: 'reasoning.effort' does not support that with this model."
        : undefined,
    { api: "responses" },
  );
  await ask("/v1/chat/completions", { reasoning_effort: "high with tools" });
  const next = await ask("/v1/chat/completions");
  expect(next.bodies).toMatchObject([{ reasoning: { effort: "high" } }]);
});

test("writes other requests without the member while the first repetition is answered", async () => {
  const answer = Promise.withResolvers<void>();
  const { ask, upstream } = await start((body) =>
    body["reasoning_effort"] === undefined ? undefined : unknown("reasoning_effort"),
  );
  upstream.script(async (request, res) => {
    if (request.body["reasoning_effort"] !== undefined) {
      refuse(res, unknown("reasoning_effort"));
      return;
    }
    await answer.promise;
    await chatScript()(request, res);
  });
  const first = ask("/v1/messages");
  await until(() => upstream.requests.length === 2, "the first repetition");
  const others = Array.from({ length: 40 }, () => ask("/v1/messages"));
  await until(() => upstream.requests.length >= 42, "all requests");
  answer.resolve();
  const answered = await Promise.all([first, ...others]);
  expect(answered.map(({ status }) => status)).toEqual(answered.map(() => 200));
  expect(upstream.requests).toHaveLength(42);
});

test("keeps the request for usage in other streams while the first repetition without it is answered", async () => {
  const answer = Promise.withResolvers<void>();
  const { ask, booked, upstream } = await start(() => undefined);
  upstream.script(async (request, res) => {
    const isFirst = request.text.includes("First");
    if (isFirst && request.body["stream_options"] !== undefined) {
      refuse(res, unknown("stream_options"));
      return;
    }
    if (isFirst) await answer.promise;
    await chatScript()(request, res);
  });
  const first = ask("/v1/chat/completions", { stream: true, messages: [{ role: "user", content: "First" }] });
  await until(() => upstream.requests.length === 2, "the first repetition");
  const { bodies } = await ask("/v1/chat/completions", { stream: true });
  expect(bodies).toMatchObject([{ stream_options: { include_usage: true } }]);
  expect(await booked()).toMatchObject([{ estimated: false }]);
  answer.resolve();
  expect((await first).status).toBe(200);
});

test("repeats a request that was sent before the member was remembered and is refused after that", async () => {
  const later = Promise.withResolvers<void>();
  const { ask, upstream } = await start(() => undefined);
  upstream.script(async (request, res) => {
    if (request.body["reasoning_effort"] === undefined) {
      await chatScript()(request, res);
      return;
    }
    if (request.text.includes("Later")) await later.promise;
    refuse(res, unknown("reasoning_effort"));
  });
  const waiting = ask("/v1/messages", { messages: [{ role: "user", content: "Later" }] });
  await until(() => upstream.requests.length === 1, "the first request");
  expect((await ask("/v1/messages")).status).toBe(200);
  later.resolve();
  expect((await waiting).status).toBe(200);
});

/** Members of a Messages request at a chat server, in the order in which the server refuses them. */
const refusedInTurn = ["reasoning_effort", "parallel_tool_calls", "stream_options"];
const inTurn = { stream: true, tool_choice: { type: "auto", disable_parallel_tool_use: false } };

test("answers a request of which the server refuses five members one after another", async () => {
  const { ask } = await start((body) => {
    const messages = body["messages"] as Json[];
    if (body["reasoning_effort"] !== undefined) return unknown("reasoning_effort");
    for (const name of ["reasoning", "reasoning_content"]) {
      if (anyMessage(body, (one) => name in one)) return `property '${name}' is unsupported`;
    }
    if (anyMessage(body, (one) => String(one["tool_call_id"] ?? "").length > 9)) {
      return "Tool call id was toolu_01A but must be a-z, A-Z, 0-9, with a length of 9.";
    }
    const isAfter = messages.some(({ role }, index) => role === "user" && messages[index - 1]?.["role"] === "tool");
    return isAfter ? "Unexpected role 'user' after role 'tool'" : undefined;
  });
  const { messages } = messagesBody;
  const longer = JSON.parse(JSON.stringify(messages).replaceAll("toolu_01A", "toolu_01AbCdEf"));
  const first = await ask("/v1/messages", { messages: longer });
  expect([first.status, first.bodies.length]).toEqual([200, 6]);
  const next = await ask("/v1/messages", { messages: longer });
  expect([next.status, next.bodies.length]).toEqual([200, 1]);
});

test("asks a server that names another member each time seven times at most, and learns nothing", async () => {
  const names = [
    "reasoning_effort",
    "reasoning_content",
    "parallel_tool_calls",
    "stream_options",
    "reasoning",
    "strict",
  ];
  let asked = 0;
  const { ask } = await start(() => `property '${names[asked++ % names.length]}' is unsupported`);
  const first = await ask("/v1/messages", inTurn);
  expect(first.status).toBe(400);
  expect(first.bodies.length).toBeLessThanOrEqual(7);
  expect((await ask("/v1/messages", inTurn)).bodies[0]).toEqual(first.bodies[0]);
});

test("asks a server that always names the same member twice", async () => {
  const { ask } = await start(() => unknown("reasoning_effort"));
  const { status, bodies } = await ask("/v1/messages");
  expect([status, bodies.length]).toEqual([400, 2]);
});

test("answers 40 requests that a server refuses before it has answered one", async () => {
  const { ask, upstream } = await start(() => undefined);
  const requests = 40;
  upstream.script(async (request, res) => {
    if (request.body["reasoning_effort"] === undefined) {
      await chatScript()(request, res);
      return;
    }
    await until(() => upstream.requests.length >= requests, "all requests");
    refuse(res, unknown("reasoning_effort"));
  });
  const asked = await Promise.all(Array.from({ length: requests }, () => ask("/v1/messages")));
  expect(asked.map(({ status }) => status)).toEqual(asked.map(() => 200));
});

test("keeps a request adapted while the server that refused a member of it is overloaded", async () => {
  const { ask, upstream } = await start(() => undefined);
  const requests = 40;
  upstream.script((request, res) => {
    if (request.body["reasoning_effort"] === undefined) json(res, 429, { error: { message: "Slow down." } });
    else refuse(res, unknown("reasoning_effort"));
  });
  const asked = await Promise.all(Array.from({ length: requests }, () => ask("/v1/messages")));
  expect(asked.map(({ status }) => status)).toEqual(asked.map(() => 529));
});

test("repeats no more requests than the budget for repetitions allows", async () => {
  const { ask, upstream } = await start(() => undefined);
  const requests = 40;
  const questions = () => upstream.requests.filter(isQuestion);
  upstream.script(async ({ body }, res) => {
    await until(() => questions().length >= requests, "all requests");
    refuse(res, unknown(refusedInTurn.find((name) => body[name] !== undefined) ?? "model"));
  });
  const asked = await Promise.all(Array.from({ length: requests }, () => ask("/v1/messages", inTurn)));
  expect(asked.map(({ status }) => status)).toEqual(asked.map(() => 400));
  expect(questions().length).toBeGreaterThan(requests);
  expect(questions().length).toBeLessThanOrEqual(requests + requests + 10);
});

test("remembers for the deployment that refused, and not for another model of its server", async () => {
  const more = "  - { id: other, deployments: [{ upstream: up, model: other }] }\n";
  const { ask } = await start(
    (body) =>
      body["model"] === "m" && body["reasoning_effort"] !== undefined ? unknown("reasoning_effort") : undefined,
    { more },
  );
  await ask("/v1/messages");
  expect((await ask("/v1/messages", { model: "other" })).bodies).toMatchObject([{ reasoning_effort: "high" }]);
});

test("forgets what it learned when the upstream is configured anew", async () => {
  const { rule } = cases["an effort from Messages"] as Case;
  const { ask, server, yamlWith } = await start(rule);
  await ask("/v1/messages");
  await server.reconfigure(yamlWith(", timeout_seconds: 99"));
  expect((await ask("/v1/messages")).bodies).toHaveLength(2);
});
