// Guardrails on the way of requests and answers: what they find reaches neither model nor client, whole or streamed, in each format.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { join } from "node:path";
import Anthropic from "@anthropic-ai/sdk";
import { secretRules } from "../../src/domain/secret-rules/secret-rules.ts";
import { openaiClient } from "../support/clients.ts";
import { startHeadrace, type TestServer } from "../support/headrace.ts";
import { chatScript, json, type ScriptedUpstream, startUpstream, upstreamYaml } from "../support/scripted-upstream.ts";

// It is of no use anywhere, and put together here so that nobody who scans this file takes it for one that is.
const secret = `AKIA${"QRSTUVWXYZ234567"}`;

const models = (url: string) => `models:
${["mask", "block", "note", "ask"]
  .map((name) => {
    const guardrail = name === "ask" ? "judged, serviced" : `${name}-secrets`;
    return `  - { id: ${name}, price: { input: 1000, output: 2000 }, policies: { guardrails: [${guardrail}] }, deployments: [{ upstream: up, model: m }] }\n`;
  })
  .join("")}  - { id: judge, deployments: [{ upstream: up, model: judge }] }
guardrails:
${["mask", "block", "note"].map((name) => `  - { name: ${name}-secrets, kind: secrets, action: ${name} }\n`).join("")}  - { name: judged, kind: judge, model: judge, policy: No talk of cheese., sides: [answer], timeout_seconds: 1 }
  - { name: serviced, kind: http, url: "${url}", token: service-token, timeout_seconds: 0.5, action: mask, otherwise: pass }
`;

let upstream: ScriptedUpstream;
let server: TestServer;
let service: ReturnType<typeof Bun.serve>;
let serviceAnswers: (asked: Record<string, unknown>) => Response | Promise<Response>;
let judges: (texts: string) => string;
let said: readonly string[] = [];

const passes = () => Response.json({ action: "pass" });
const judgePasses = () => '{"pass": true, "reason": "ok"}';

beforeAll(async () => {
  serviceAnswers = passes;
  judges = judgePasses;
  service = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch: async (request) => {
      expect(request.headers.get("authorization")).toBe("Bearer service-token");
      return await serviceAnswers((await request.json()) as Record<string, unknown>);
    },
  });
  upstream = await startUpstream((request, res) => {
    if (request.body["model"] !== "judge") return chatScript(said)(request, res);
    const messages = request.body["messages"] as { content: string }[];
    return chatScript([judges(messages.at(-1)?.content ?? "")])(request, res);
  });
  server = await startHeadrace({ yaml: upstreamYaml(upstream, models(`http://127.0.0.1:${service.port}/check`)) });
});
afterAll(async () => {
  await server[Symbol.asyncDispose]();
  await upstream[Symbol.asyncDispose]();
  await service.stop(true);
});

/** A text cut into pieces of so many characters. */
function cut(text: string, length: number): string[] {
  return text.match(new RegExp(`[^]{1,${length}}`, "g")) ?? [];
}

const messages = [{ role: "user" as const, content: "hello" }];

async function streamed(model: string): Promise<{ text: string; reason: unknown; chunks: number }> {
  const stream = await openaiClient(server).chat.completions.create({ model, messages, stream: true });
  let text = "";
  let reason: unknown;
  let chunks = 0;
  for await (const { choices } of stream) {
    text += choices[0]?.delta.content ?? "";
    reason = choices[0]?.finish_reason ?? reason;
    chunks++;
  }
  return { text, reason, chunks };
}

const leak = `Use ${secret}, and write to jo@example.com. Good-bye`;
const masked = "Use [aws-access-key], and write to [email]. Good-bye";

describe("guardrails on a request", () => {
  test("masks findings anywhere in a request before its model sees them, and reports their number", async () => {
    said = ["ok"];
    const response = await server.request("/v1/chat/completions", {
      body: {
        model: "mask",
        messages: [
          { role: "system", content: `key ${secret}` },
          { role: "user", content: [{ type: "text", text: leak }] },
          {
            role: "assistant",
            tool_calls: [
              { id: "c1", type: "function", function: { name: "mail", arguments: '{"to":"jo@example.com","n":1}' } },
            ],
          },
          { role: "tool", tool_call_id: "c1", content: "sent to jo@example.com" },
        ],
      },
    });
    expect(response.status).toBe(200);
    expect(response.headers.get("x-headrace-guardrails")).toBe("masked=5");
    const sent = upstream.requests.at(-1)?.body;
    expect(JSON.stringify(sent)).not.toContain(secret);
    expect(sent?.["messages"]).toMatchObject([
      { content: "key [aws-access-key]" },
      { content: [{ text: masked }] },
      { tool_calls: [{ function: { arguments: '{"to":"[email]","n":1}' } }] },
      { content: "sent to [email]" },
    ]);
  });

  test("refuses a blocked request with the guardrail's name, without ledger entry or model call", async () => {
    const before = upstream.requests.length;
    const error = await openaiClient(server)
      .chat.completions.create({ model: "block", messages: [{ role: "user", content: leak }] })
      .catch((thrown) => thrown);
    expect(error).toMatchObject({ status: 400, code: "content_blocked" });
    expect(error.message).toContain("block-secrets");
    expect(error.message).not.toContain(secret);
    expect(upstream.requests.length).toBe(before);
  });

  test.each(["/v1/completions", "/v1/embeddings", "/v1/responses", "/v1/messages"])(
    "checks requests to %s",
    async (path) => {
      const text = `about ${secret}`;
      const prompt = path.endsWith("messages")
        ? { messages: [{ role: "user", content: text }], max_tokens: 10 }
        : { [path.endsWith("completions") ? "prompt" : "input"]: text };
      const response = await server.request(path, { body: { model: "block", ...prompt } });
      expect(response.status).toBe(400);
      expect(await response.text()).toContain("block-secrets");
    },
  );
});

describe("guardrails on a model's answer", () => {
  test.each([1, 2, 3, 7, 100])(
    "masks a streamed answer in pieces of %i characters like a whole one",
    async (length) => {
      said = cut(leak, length);
      const whole = await openaiClient(server).chat.completions.create({ model: "mask", messages });
      expect(whole.choices[0]?.message.content).toBe(masked);
      const { text, reason } = await streamed("mask");
      expect({ text, reason }).toEqual({ text: masked, reason: "stop" });
    },
  );

  test("ends a blocked answer before the finding with finish reason content_filter, and charges for it", async () => {
    said = cut(leak, 3);
    const whole = await openaiClient(server).chat.completions.create({ model: "block", messages });
    expect(whole.choices[0]).toMatchObject({ message: { content: "Use " }, finish_reason: "content_filter" });
    expect(whole.usage?.completion_tokens).toBeGreaterThan(0);
    const { text, reason } = await streamed("block");
    expect({ text, reason }).toEqual({ text: "Use ", reason: "content_filter" });
    await server.governance.ledger.flush();
    const { data } = await (await server.request("/v1/requests?model=block&limit=1")).json();
    expect(data[0]).toMatchObject({ outcome: "completed", error_code: "content_blocked" });
    expect(data[0].completion_tokens).toBeGreaterThan(0);
  });

  test("passes an answer unchanged if its guardrail only logs", async () => {
    said = cut(leak, 5);
    expect((await streamed("note")).text).toBe(leak);
  });

  test.each([2, 9])(
    "masks a translated Messages answer in pieces of %i, and blocks it as a refusal",
    async (length) => {
      said = cut(leak, length);
      const client = new Anthropic({ baseURL: server.url, apiKey: server.key, maxRetries: 0 });
      const ask = (model: string) => client.messages.stream({ model, max_tokens: 100, messages }).finalMessage();
      expect((await ask("mask")).content).toMatchObject([{ type: "text", text: masked }]);
      const blocked = await ask("block");
      expect(blocked.content).toMatchObject([{ type: "text", text: "Use " }]);
      expect(blocked.stop_reason).toBe("refusal");
      const whole = await client.messages.create({ model: "block", max_tokens: 100, messages });
      expect(whole).toMatchObject({ content: [{ text: "Use " }], stop_reason: "refusal" });
    },
  );

  test.each([2, 9])("masks all events of a Responses answer in pieces of %i, and its stored copy", async (length) => {
    said = cut(leak, length);
    const client = openaiClient(server);
    let text = "";
    let done: unknown;
    let id = "";
    const numbers: number[] = [];
    for await (const event of await client.responses.create({
      model: "mask",
      input: "hello",
      stream: true,
      store: true,
    })) {
      numbers.push(event.sequence_number);
      expect(JSON.stringify(event)).not.toContain(secret);
      if (event.type === "response.output_text.delta") text += event.delta;
      if (event.type === "response.output_text.done") done = event.text;
      if (event.type === "response.completed") {
        expect(event.response.output).toMatchObject([{ content: [{ text: masked }] }]);
        id = event.response.id;
      }
    }
    expect({ text, done }).toEqual({ text: masked, done: masked });
    expect(numbers).toEqual(numbers.map((_, index) => index));
    expect((await client.responses.retrieve(id)).output_text).toBe(masked);
  });

  test("stores the input and output of a background response masked", async () => {
    said = cut(leak, 5);
    const client = openaiClient(server);
    const begun = await client.responses.create({
      ...{ model: "mask", input: leak, instructions: leak, background: true, store: true },
    });
    let response = begun;
    while (response.status === "queued" || response.status === "in_progress") {
      await Bun.sleep(20);
      response = await client.responses.retrieve(begun.id);
    }
    expect(response.output_text).toBe(masked);
    const items = await client.responses.inputItems.list(begun.id);
    expect(JSON.stringify([response, items.data])).not.toContain(secret);
  });

  test("marks a blocked Responses answer as incomplete, with the delivered text in its items", async () => {
    said = cut(leak, 4);
    let last: unknown;
    const stream = await openaiClient(server).responses.create({ model: "block", input: "hello", stream: true });
    for await (const event of stream) {
      expect(JSON.stringify(event)).not.toContain(secret.slice(0, 8));
      last = event;
    }
    expect(last).toMatchObject({
      type: "response.incomplete",
      response: {
        status: "incomplete",
        incomplete_details: { reason: "content_filter" },
        output: [{ content: [{ text: "Use " }] }],
      },
    });
  });
});

describe("guardrail metrics", () => {
  test("counts guardrail findings without writing them to log or database", async () => {
    const metrics = await (await fetch(`${server.url}/metrics`)).text();
    expect(metrics).toMatch(
      /headrace_guardrail_findings_total\{guardrail="mask-secrets",rule="aws-access-key",side="request",action="mask"\} \d/,
    );
    await server.governance.ledger.flush();
    expect(server.logText()).not.toContain(secret);
    const found = Bun.spawnSync(["grep", "-rl", secret, server.dataDir]);
    expect(found.stdout.toString()).toBe("");
  });
});

describe("guardrails that call a service", () => {
  const long = "Cheese is made of milk. It is a matter of taste, and of time. ".repeat(20).trim();

  test("releases stream windows after the judge passes them, and does not judge the judge's own calls", async () => {
    said = cut(long, 11);
    const asked: string[] = [];
    judges = (texts) => {
      asked.push(texts);
      return judgePasses();
    };
    const { text, reason } = await streamed("ask");
    expect({ text, reason }).toEqual({ text: long, reason: "stop" });
    expect(asked.length).toBeGreaterThan(2);
    for (const one of asked) expect(one.length).toBeLessThan(2_000);
    judges = judgePasses;
  });

  test.each([
    ["says no", () => '{"pass": false, "reason": "cheese"}'],
    ["answers garbage", () => "Sure! It passes."],
    ["says more than it was asked", () => '{"pass": true, "reason": "ok", "note": "x"}'],
  ])("blocks if the judge %s", async (_, judge) => {
    judges = judge;
    said = cut(long, 11);
    const { text, reason } = await streamed("ask");
    expect({ text, reason }).toEqual({ text: "", reason: "content_filter" });
    const whole = await openaiClient(server).chat.completions.create({ model: "ask", messages });
    expect(whole.choices[0]).toMatchObject({ message: { content: "" }, finish_reason: "content_filter" });
    judges = judgePasses;
  });

  test("replaces a text with the guardrail service's own version", async () => {
    serviceAnswers = ({ texts }) =>
      Response.json({ action: "mask", texts: (texts as string[]).map((text) => text.replaceAll("milk", "****")) });
    said = cut(long, 11);
    const { text } = await streamed("ask");
    expect(text).toBe(long.replaceAll("milk", "****"));
    serviceAnswers = passes;
  });

  test.each([
    ["fails", () => new Response("", { status: 500 })],
    ["answers garbage", () => new Response("yes")],
    ["leads elsewhere", () => Response.redirect("http://127.0.0.1:1/")],
    ["gives another number of texts", () => Response.json({ action: "mask", texts: ["a", "b", "c"] })],
    ["takes too long", () => Bun.sleep(2_000).then(passes)],
  ])("follows the operator's failure setting if the guardrail service %s", async (_, answer) => {
    serviceAnswers = answer;
    said = ["short"];
    expect((await streamed("ask")).text).toBe("short");
    serviceAnswers = passes;
  });

  test("blocks a request if the guardrail service says so", async () => {
    serviceAnswers = ({ side }) => Response.json({ action: side === "request" ? "block" : "pass" });
    const response = await server.request("/v1/chat/completions", { body: { model: "ask", messages } });
    expect(response.status).toBe(400);
    expect(((await response.json()) as { error: { code: string } }).error.code).toBe("content_blocked");
    serviceAnswers = passes;
  });
});

test("masks findings in tool calls and keeps them valid JSON, streamed and whole", async () => {
  const written = JSON.stringify({
    to: "jo@example.com",
    note: `line\nme@example.com "x" ${secret}`,
    card: 4111111111111111,
  });
  const call = (text: string) => ({
    index: 0,
    id: "c1",
    type: "function",
    function: { name: "mail", arguments: text },
  });
  const head = { id: "x", object: "chat.completion", created: 1, model: "m" };
  upstream.script((request, res) => {
    if (request.body["stream"] !== true) {
      const message = { role: "assistant", content: null, tool_calls: [call(written)] };
      json(res, 200, {
        ...head,
        choices: [{ index: 0, message, finish_reason: "tool_calls" }],
        usage: { prompt_tokens: 1, completion_tokens: 30, total_tokens: 31 },
      });
      return;
    }
    res.writeHead(200, { "content-type": "text/event-stream" });
    for (const piece of cut(written, 3)) {
      const choices = [{ index: 0, delta: { tool_calls: [call(piece)] }, finish_reason: null }];
      res.write(`data: ${JSON.stringify({ ...head, object: "chat.completion.chunk", choices })}\n\n`);
    }
    const choices = [{ index: 0, delta: {}, finish_reason: "tool_calls" }];
    res.end(`data: ${JSON.stringify({ ...head, object: "chat.completion.chunk", choices })}\n\ndata: [DONE]\n\n`);
  });
  const expected = { to: "[email]", note: 'line\n[email] "x" [aws-access-key]', card: "[card]" };
  const whole = await openaiClient(server).chat.completions.create({ model: "mask", messages });
  const [first] = whole.choices[0]?.message.tool_calls ?? [];
  expect(JSON.parse(first?.type === "function" ? first.function.arguments : "")).toEqual(expected);
  const stream = await openaiClient(server).chat.completions.create({ model: "mask", messages, stream: true });
  let text = "";
  for await (const { choices } of stream) text += choices[0]?.delta.tool_calls?.[0]?.function?.arguments ?? "";
  expect(JSON.parse(text)).toEqual(expected);
});

test("matches the guide's table of guardrail rules with the program", async () => {
  const guide = await Bun.file(join(import.meta.dir, "../../docs/guardrails.md")).text();
  const rows = [...guide.matchAll(/^\| `([\w-]+)` +\| (\w+) +\| (.+?) *\|$/gm)].map(([, ...cells]) => cells);
  expect(rows).toEqual(secretRules.map(({ name, group, finds }) => [name, group, finds]));
});

test("masks and blocks with the example guardrail service of the guide", async () => {
  const file = join(import.meta.dir, "../../examples/guardrail/server.mjs");
  const env = { ...process.env, PORT: "0", GUARD_TOKEN: "service-token" };
  const example = Bun.spawn([process.execPath, file], { env, stdout: "pipe" });
  try {
    const { value } = await example.stdout.getReader().read();
    const port = Number(new TextDecoder().decode(value));
    serviceAnswers = (asked) =>
      fetch(`http://127.0.0.1:${port}`, {
        method: "POST",
        headers: { authorization: "Bearer service-token" },
        body: JSON.stringify(asked),
      });
    upstream.script(chatScript(["About Project Heron."]));
    judges = judgePasses;
    const ask = (content: string) =>
      server.request("/v1/chat/completions", { body: { model: "ask", messages: [{ role: "user", content }] } });
    expect((await ask("And the merger?")).status).toBe(400);
    await ask("What is Project Bluebird?");
    const sent = upstream.requests.filter(({ body }) => body["model"] === "m").at(-1);
    expect(sent?.body["messages"]).toMatchObject([{ content: "What is [project]?" }]);
  } finally {
    example.kill();
    await example.exited;
    serviceAnswers = passes;
  }
});
