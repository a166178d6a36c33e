// What guardrails look for finds no way around them: over another model, another endpoint, another form of the answer, or a fault.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import type { ServerResponse } from "node:http";
import { addKey } from "../hostile/keys.ts";
import { openaiClient } from "../support/clients.ts";
import { type Collector, startCollector } from "../support/collector.ts";
import { startHeadrace, type TestServer, until } from "../support/headrace.ts";
import {
  chatScript,
  chunk,
  json,
  type Script,
  type ScriptedUpstream,
  startUpstream,
} from "../support/scripted-upstream.ts";

// It is of no use anywhere, and put together here so that nobody who scans this file takes it for one that is.
const secret = `AKIA${"QRSTUVWXYZ234567"}`;
const masked = "[aws-access-key]";
const leak = `Use ${secret} now. Good-bye`;
const passed = `Use ${masked} now. Good-bye`;

const yaml = (
  up: ScriptedUpstream,
  responses: ScriptedUpstream,
  messages: ScriptedUpstream,
  tracing: string,
  service: string,
) => `
upstreams:
  - { name: up, url: "${up.url}", local: true }
  - { name: responses, url: "${responses.url}" }
  - { name: messages, url: "${messages.url}" }
tracing: { endpoint: "${tracing}", content: true }
models:
  - { id: mask, policies: { guardrails: [mask] }, deployments: [{ upstream: up, model: mask }] }
  - { id: block, policies: { guardrails: [block] }, deployments: [{ upstream: up, model: block }] }
  - { id: plain, deployments: [{ upstream: up, model: plain }] }
  - { id: judged, policies: { guardrails: [judge] }, deployments: [{ upstream: up, model: judged }] }
  - { id: judged-responses, policies: { guardrails: [judge] }, deployments: [{ upstream: responses, model: judged }] }
  - { id: judge, deployments: [{ upstream: up, model: judge }] }
  - { id: split-mask, policies: { guardrails: [mask], split: [{ model: plain, percent: 100 }] }, deployments: [{ upstream: up, model: own }] }
  - { id: split-plain, policies: { split: [{ model: mask, percent: 100 }] }, deployments: [{ upstream: up, model: own }] }
  - { id: falls, fallbacks: [block], deployments: [{ upstream: up, model: broken }] }
  - { id: falls-alike, fallbacks: [mask], policies: { guardrails: [mask] }, deployments: [{ upstream: up, model: broken }] }
  - { id: shadowed, policies: { shadow: { model: mask, percent: 100 } }, deployments: [{ upstream: up, model: shadowed }] }
  - { id: serviced, policies: { guardrails: [service] }, deployments: [{ upstream: up, model: serviced }] }
  - { id: serviced-here, policies: { guardrails: [service-here] }, deployments: [{ upstream: up, model: serviced }] }
  - { id: passed-responses, policies: { guardrails: [mask] }, deployments: [{ upstream: responses, model: m }] }
  - { id: passed-messages, policies: { guardrails: [mask] }, deployments: [{ upstream: messages, model: m }] }
guardrails:
  - { name: mask, kind: secrets, action: mask }
  - { name: block, kind: secrets, action: block }
  - { name: judge, kind: judge, model: judge, policy: No secrets., sides: [answer] }
  - { name: service, kind: http, url: "${service}", otherwise: pass }
  - { name: service-here, kind: http, url: "${service}", local: true }
`;

let upstream: ScriptedUpstream;
let responses: ScriptedUpstream;
let messagesServer: ScriptedUpstream;
let collector: Collector;
let server: TestServer;
let service: ReturnType<typeof Bun.serve>;
const serviced: string[] = [];
let answers: Script;
let judged: string[] = [];

const broken: Script = (_, res) => json(res, 500, { error: { message: "broken" } });
const usual = chatScript(["ok"]);

beforeAll(async () => {
  service = Bun.serve({
    ...{ port: 0, hostname: "127.0.0.1" },
    fetch: async (request) => {
      serviced.push(await request.text());
      return Response.json({ action: "pass" });
    },
  });
  upstream = await startUpstream((request, res) => {
    const { model, messages } = request.body as { model: string; messages: { content: string }[] };
    if (model === "broken") return broken(request, res);
    if (model !== "judge") return answers(request, res);
    const asked = messages.at(-1)?.content ?? "";
    judged.push(asked);
    const pass = !asked.includes(secret);
    return chatScript([JSON.stringify({ pass, reason: pass ? "ok" : "secret" })])(request, res);
  });
  responses = await startUpstream((request, res) => answers(request, res));
  responses.speaks("/v1/responses");
  messagesServer = await startUpstream((request, res) => answers(request, res));
  messagesServer.speaks("/v1/messages");
  collector = startCollector();
  server = await startHeadrace({
    yaml: yaml(upstream, responses, messagesServer, collector.url, `http://127.0.0.1:${service.port}/check`),
    spanBounds: { delayMs: 5 },
  });
});
afterAll(async () => {
  await server[Symbol.asyncDispose]();
  for (const one of [upstream, responses, messagesServer, collector]) await one[Symbol.asyncDispose]();
  await service.stop(true);
});
beforeEach(() => {
  answers = usual;
  judged = [];
});

const messages = [{ role: "user" as const, content: leak }];
const harmless = [{ role: "user" as const, content: "hello" }];

async function ask(body: Record<string, unknown>, path = "/v1/chat/completions", headers: Record<string, string> = {}) {
  const response = await server.request(path, { body, headers });
  return { status: response.status, text: await response.text(), headers: response.headers };
}

/** Events of one type each, as servers of Responses and Messages tell them. */
function typed(events: readonly Record<string, unknown>[]): Script {
  return (_, res) => {
    res.writeHead(200, { "content-type": "text/event-stream" });
    for (const event of events) res.write(`event: ${event["type"]}\ndata: ${JSON.stringify(event)}\n\n`);
    res.end();
  };
}

function cut(text: string, length = 3): string[] {
  return text.match(new RegExp(`[^]{1,${length}}`, "g")) ?? [];
}

const lastTo = (model: string) => upstream.requests.filter(({ body }) => body["model"] === model).at(-1);

describe("guardrails of another model", () => {
  test.each(["split-mask", "split-plain"])(
    "applies the guardrails of the requested and of the answering model in a split: %s",
    async (model) => {
      answers = chatScript(cut(leak));
      const { status, text } = await ask({ model, messages });
      expect(status).toBe(200);
      expect(text).toContain(masked);
      expect(text).not.toContain(secret);
      expect(lastTo(model === "split-mask" ? "plain" : "mask")?.text).toContain(masked);
    },
  );

  test("skips a fallback whose guardrails have not checked the request", async () => {
    const before = upstream.requests.filter(({ body }) => body["model"] === "block").length;
    expect((await ask({ model: "falls", messages: harmless })).status).toBeGreaterThanOrEqual(500);
    expect(upstream.requests.filter(({ body }) => body["model"] === "block").length).toBe(before);
    answers = chatScript(cut(leak));
    const { status, text } = await ask({ model: "falls-alike", messages });
    expect(status).toBe(200);
    expect(text).toContain(masked);
    expect(lastTo("mask")?.text).toContain(masked);
  });

  test("sends a shadow model only requests that its own guardrails checked", async () => {
    const shadowed = () => upstream.requests.filter(({ body }) => body["model"] === "mask").length;
    const before = shadowed();
    expect((await ask({ model: "shadowed", messages })).status).toBe(200);
    await until(() => shadowed() > before, "the shadow");
    expect(lastTo("mask")?.text).toContain(masked);
  });
});

describe("guardrails of other endpoints", () => {
  test("estimates a token count locally instead of sending an unchecked prompt to a model server", async () => {
    const before = messagesServer.requests.length;
    const { status } = await ask({ model: "passed-messages", messages }, "/v1/messages/count_tokens");
    expect(status).toBe(200);
    expect(messagesServer.requests.length).toBe(before);
  });

  test.each([
    ["/v1/completions", "prompt", [1, 2, 3]],
    ["/v1/embeddings", "input", [[1, 2], [3]]],
  ])("refuses token arrays in place of text: %s", async (path, member, tokens) => {
    const { status, text } = await ask({ model: "mask", [member]: tokens }, path);
    expect(status).toBe(400);
    expect(text).toContain("cannot look at tokens");
  });

  test("refuses transcription formats that guardrails cannot check", async () => {
    const form = new FormData();
    form.set("model", "mask");
    form.set("response_format", "text");
    form.set("file", new File([new Uint8Array(64)], "a.wav"));
    const response = await fetch(`${server.url}/v1/audio/transcriptions`, {
      ...{ method: "POST", body: form, headers: { authorization: `Bearer ${server.key}` } },
    });
    expect(response.status).toBe(400);
    expect(await response.text()).toContain("response_format");
  });
});

test("counts a blocked request against the key's request limit, so that it cannot call judges for free", async () => {
  const key = await addKey(server, { rateLimit: 2 });
  const headers = { authorization: `Bearer ${key}` };
  const statuses: number[] = [];
  for (let nth = 0; nth < 3; nth++) statuses.push((await ask({ model: "block", messages }, undefined, headers)).status);
  expect(statuses).toEqual([400, 400, 429]);
});

test("sends texts that must stay local only to guardrail services marked as local", async () => {
  const key = await addKey(server, { neverLeaves: true });
  const headers = { authorization: `Bearer ${key}` };
  serviced.length = 0;
  expect((await ask({ model: "serviced", messages: harmless }, undefined, headers)).status).toBe(200);
  expect(serviced).toEqual([]);
  expect((await ask({ model: "serviced-here", messages: harmless }, undefined, headers)).status).toBe(200);
  expect(serviced.length).toBeGreaterThan(0);
});

describe("guardrails on an answer", () => {
  test("masks each of several choices separately", async () => {
    answers = (_, res) => {
      res.writeHead(200, { "content-type": "text/event-stream" });
      for (const [nth, piece] of cut(leak).entries()) {
        for (const index of [0, 1]) {
          const content = index === 0 ? piece : `${nth} `;
          res.write(chunk({}, null, { choices: [{ index, delta: { content }, finish_reason: null }] }));
        }
      }
      for (const index of [0, 1])
        res.write(chunk({}, null, { choices: [{ index, delta: {}, finish_reason: "stop" }] }));
      res.end("data: [DONE]\n\n");
    };
    const texts = ["", ""];
    const stream = await openaiClient(server).chat.completions.create({
      model: "mask",
      messages: harmless,
      n: 2,
      stream: true,
    });
    for await (const { choices } of stream) {
      for (const { index, delta } of choices) texts[index] += delta.content ?? "";
    }
    expect(texts).toEqual([
      passed,
      cut(leak)
        .map((_, nth) => `${nth} `)
        .join(""),
    ]);
  });

  test("masks a completions stream and omits its log probabilities, as for whole answers", async () => {
    const logprobs = { tokens: ["AKIA"], token_logprobs: [-1], top_logprobs: null, text_offset: [0] };
    answers = (request, res) => {
      const head = { id: "c", object: "text_completion", created: 1, model: "m" };
      if (request.body["stream"] !== true) {
        json(res, 200, { ...head, choices: [{ index: 0, text: "fine", logprobs, finish_reason: "stop" }] });
        return;
      }
      res.writeHead(200, { "content-type": "text/event-stream" });
      const event = (text: string, finish: string | null) =>
        res.write(
          `data: ${JSON.stringify({ ...head, choices: [{ index: 0, text, logprobs, finish_reason: finish }] })}\n\n`,
        );
      for (const piece of cut(leak)) event(piece, null);
      event("", "stop");
      res.end("data: [DONE]\n\n");
    };
    let text = "";
    const client = openaiClient(server);
    for await (const { choices } of await client.completions.create({ model: "mask", prompt: "x", stream: true })) {
      text += choices[0]?.text ?? "";
      expect(choices[0]?.logprobs ?? null).toBeNull();
    }
    expect(text).toBe(passed);
    const whole = await client.completions.create({ model: "mask", prompt: "x" });
    expect(whole.choices[0]).toMatchObject({ text: "fine", logprobs: null });
  });

  test("masks all text parts and vendor fields, reasoning included, wherever chunks are cut", async () => {
    answers = (_, res) => {
      res.writeHead(200, { "content-type": "text/event-stream" });
      for (const piece of cut(leak)) {
        res.write(chunk({ reasoning_content: piece, content: [{ type: "text", text: piece }], own: { said: piece } }));
      }
      const choices = [{ index: 0, delta: {}, message: { content: leak }, finish_reason: "stop" }];
      res.write(chunk({}, null, { choices }));
      res.end("data: [DONE]\n\n");
    };
    const { text } = await ask({ model: "mask", messages: harmless, stream: true });
    const deltas = text
      .split("\n\n")
      .filter((event) => event.startsWith("data: {"))
      .map((event) => JSON.parse(event.slice("data: ".length)).choices[0]);
    const joined = (of: (delta: Record<string, never>) => unknown) =>
      deltas.map(({ delta }) => of(delta) ?? "").join("");
    expect(joined(({ reasoning_content: piece }) => piece)).toBe(passed);
    // Parts become the text that clients read.
    expect(joined(({ content }) => content)).toBe(passed);
    expect(joined(({ own }) => (own as { said: string } | undefined)?.said)).toBe(passed);
    expect(deltas.find(({ message }) => message)?.message.content).toBe(passed);
  });

  test("includes only delivered text in the failed event of a Responses stream that breaks off", async () => {
    answers = (_, res) => {
      res.writeHead(200, { "content-type": "text/event-stream" });
      for (const piece of cut(leak)) res.write(chunk({ reasoning_content: piece }));
      for (const piece of cut(leak)) res.write(chunk({ content: piece }));
      res.end();
    };
    const { text } = await ask({ model: "mask", input: "hello", stream: true }, "/v1/responses");
    expect(text).toContain("response.failed");
    expect(text).not.toContain(secret);
  });

  test("masks texts and tool call names passed on from a Messages server", async () => {
    const use = { type: "tool_use", id: "t", name: "mail", input: { [secret]: "x", to: secret } };
    answers = (request, res) =>
      request.body["stream"] === true
        ? typed([
            {
              type: "message_start",
              message: {
                id: "m",
                type: "message",
                role: "assistant",
                model: "m",
                content: [],
                usage: { input_tokens: 1, output_tokens: 1 },
              },
            },
            { type: "content_block_start", index: 0, content_block: { type: "text", text: "" } },
            ...cut(leak).map((text) => ({
              type: "content_block_delta",
              index: 0,
              delta: { type: "text_delta", text },
            })),
            { type: "content_block_stop", index: 0 },
            { type: "content_block_start", index: 1, content_block: use },
            { type: "content_block_stop", index: 1 },
            {
              type: "message_delta",
              delta: { stop_reason: "tool_use", stop_sequence: null },
              usage: { output_tokens: 9 },
            },
            { type: "message_stop" },
          ])(request, res)
        : json(res, 200, {
            ...{
              id: "m",
              type: "message",
              role: "assistant",
              model: "m",
              stop_reason: "tool_use",
              stop_sequence: null,
            },
            ...{ content: [{ type: "text", text: leak }, use], usage: { input_tokens: 1, output_tokens: 9 } },
          });
    const asked = { model: "passed-messages", max_tokens: 50, messages: harmless };
    const whole = JSON.parse((await ask(asked, "/v1/messages")).text);
    expect(whole.content).toMatchObject([{ text: passed }, { input: { [masked]: "x", to: masked } }]);
    const { text } = await ask({ ...asked, stream: true }, "/v1/messages");
    expect(text).not.toContain(secret);
    const pieces = [...text.matchAll(/"text_delta","text":"([^"]*)"/g)].map(([, piece]) => piece);
    expect(pieces.join("")).toBe(passed);
  });

  const item = (text: string) => ({
    ...{ id: "i", type: "message", role: "assistant", status: "completed" },
    content: [{ type: "output_text", text, annotations: [] }],
  });
  const whole = (text: string) => ({
    id: "r",
    object: "response",
    status: "completed",
    model: "m",
    created_at: 1,
    output: [item(text)],
    usage: { input_tokens: 1, output_tokens: 9, total_tokens: 10 },
  });

  test("masks every event with text passed on from a Responses server", async () => {
    const at = { item_id: "i", output_index: 0, content_index: 0 };
    let number = 0;
    const events = [
      { type: "response.created", response: { ...whole(""), status: "in_progress", output: [] } },
      ...cut(leak).map((delta) => ({ type: "response.output_text.delta", ...at, delta, logprobs: [] })),
      { type: "response.output_text.done", ...at, text: leak, logprobs: [] },
      { type: "response.output_item.done", output_index: 0, item: item(leak) },
      { type: "response.completed", response: whole(leak) },
    ].map((event) => ({ ...event, sequence_number: number++ }));
    answers = typed(events);
    const { text } = await ask({ model: "passed-responses", input: "hello", stream: true }, "/v1/responses");
    expect(text).not.toContain(secret);
    const reported = text.split("\n\n").flatMap((event) => /^data: (\{.*)$/m.exec(event)?.[1] ?? []);
    const parsed = reported.map((data) => JSON.parse(data));
    expect(parsed.map(({ delta }) => delta ?? "").join("")).toBe(passed);
    expect(parsed.find(({ type }) => type === "response.output_text.done").text).toBe(passed);
    expect(parsed.at(-1).response.output).toMatchObject([{ content: [{ text: passed }] }]);
  });

  test("checks a stream whose server sends the text only at its end", async () => {
    answers = typed([
      { type: "response.created", sequence_number: 0, response: { ...whole(""), status: "in_progress", output: [] } },
      { type: "response.completed", sequence_number: 1, response: whole(leak) },
    ]);
    const { text } = await ask({ model: "judged-responses", input: "hello", stream: true }, "/v1/responses");
    expect(judged.join()).toContain(secret);
    expect(text).not.toContain(secret);
    expect(text).toContain("content_filter");
  });

  test("repeats no text that a judge blocked in the closing events", async () => {
    answers = chatScript(cut(leak));
    const { text } = await ask({ model: "judged", input: "hello", stream: true }, "/v1/responses");
    expect(text).not.toContain(secret);
    expect(text).toContain("response.incomplete");
  });
});

describe("records of guardrail findings", () => {
  test("records the number of findings with the request, and only masked text in the trace", async () => {
    answers = chatScript(cut(leak));
    const { headers } = await ask({ model: "mask", messages, stream: true });
    await ask({ model: "block", messages });
    await server.governance.ledger.flush();
    const id = headers.get("x-request-id");
    const record = await (await server.request(`/v1/requests/${id}`)).json();
    const steps = record.trail.map(({ result, reason }: { result: string; reason: string | null }) => [result, reason]);
    expect(steps.map(([result]: [string]) => result)).toEqual(["answered", "masked", "masked"]);
    expect(record.attempts).toBe(1);
    const traced = () =>
      collector.spans.filter(({ attributes: of }) => ["mask", "block"].includes(`${of["headrace.model"]}`));
    await until(() => traced().some(({ attributes }) => attributes["error.type"] === "content_blocked"), "its span");
    const reported = JSON.stringify(traced().map(({ attributes }) => attributes));
    expect(reported).toContain(masked);
    expect(reported).not.toContain(secret);
  });
});

test("charges held stream events to the key's memory account, and releases them at the end", async () => {
  const { bufferedBytes } = await import("../../src/base/bytes/buffered-bytes.ts");
  let open: ServerResponse | undefined;
  answers = (_, res) => {
    open = res;
    res.writeHead(200, { "content-type": "text/event-stream" });
    for (let index = 0; index < 4; index++) {
      res.write(chunk({}, null, { choices: [{ index, delta: { content: "A" }, finish_reason: null }] }));
    }
  };
  const answer = ask({ model: "mask", messages: harmless, n: 4, stream: true });
  await until(() => bufferedBytes.byKind.events > 100_000, "bytes that are held");
  for (let index = 0; index < 4; index++) {
    open?.write(chunk({}, null, { choices: [{ index, delta: {}, finish_reason: "stop" }] }));
  }
  open?.end("data: [DONE]\n\n");
  expect((await answer).status).toBe(200);
  await until(() => bufferedBytes.byKind.events === 0, "nothing that is held");
});
