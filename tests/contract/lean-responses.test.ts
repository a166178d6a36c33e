// Behind a server that leaves out what lenient clients can do without, a response is as the document of Open Responses has it.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { eventFaults, responseFaults } from "../support/agents/open-responses.ts";
import { openaiClient } from "../support/clients.ts";
import { startHeadrace, type TestServer } from "../support/headrace.ts";
import { type LeanAnswer, type LeanStream, leanScript, leanUsage } from "../support/lean-responses.ts";
import { json, type ScriptedUpstream, startUpstream } from "../support/scripted-upstream.ts";
import { recordedUsage } from "../support/usage-records.ts";

type Json = Record<string, unknown>;

let upstream: ScriptedUpstream;
let server: TestServer;

beforeAll(async () => {
  upstream = await startUpstream();
  upstream.serves([{ id: "engine-model", object: "model", created: 1_700_000_000, owned_by: "scripted" }]);
  const deployments = "deployments: [{ upstream: up, model: engine-model }]";
  const guarded = `  - { id: guarded, policies: { guardrails: [mask] }, ${deployments} }\n`;
  const guardrails = "guardrails:\n  - { name: mask, kind: secrets, action: mask }\n";
  const models = `models:\n  - { id: lean, ${deployments} }\n${guarded}${guardrails}`;
  server = await startHeadrace({
    yaml: `upstreams:\n  - { name: up, url: "${upstream.url}", apis: [responses] }\n${models}`,
  });
});
afterAll(async () => {
  await server[Symbol.asyncDispose]();
  await upstream[Symbol.asyncDispose]();
});

const look = { type: "function", name: "look", parameters: { type: "object", properties: {} } } as const;
const answers: Readonly<Record<string, LeanAnswer>> = {
  "a text": { text: ["Hel", "lo"] },
  "a thought and a text": { thought: "Hm.", text: ["Hello"] },
  "a text and a call": { text: ["I look."], call: "look" },
};

async function ask(body: Json): Promise<Json> {
  const answer = await server.request("/v1/responses", { body: { model: "lean", input: "Hi", ...body } });
  return (await answer.json()) as Json;
}

describe.each(Object.entries(answers))("a %s answer of a minimal model server", (_, answer) => {
  test("completes a minimal answer to a valid response that the openai SDK reads", async () => {
    upstream.script(leanScript(answer));
    const response = await ask({ store: false, tools: [look] });
    expect(responseFaults(response)).toEqual([]);
    const text = (answer.text ?? []).join("");
    expect(response).toMatchObject({ model: "lean", status: "completed", usage: { total_tokens: 9, ...leanUsage } });
    const read = await openaiClient(server).responses.create({ model: "lean", input: "Hi", store: false });
    expect(read.output_text).toBe(text);
    const calls = read.output.filter((item) => item.type === "function_call");
    expect(calls.map(({ name, arguments: values }) => `${name} ${values}`)).toEqual(
      answer.call === undefined ? [] : [`${answer.call} {"city":"Oslo"}`],
    );
  });

  test("stores a minimal answer as a valid response", async () => {
    upstream.script(leanScript(answer));
    const response = await ask({});
    expect(responseFaults(response)).toEqual([]);
    const read = (await (await server.request(`/v1/responses/${String(response["id"])}`)).json()) as Json;
    expect(responseFaults(read)).toEqual([]);
    expect(read["output"]).toEqual(response["output"]);
  });
});

const streams: readonly LeanStream[] = ["deltas", "items", "end"];

function eventsIn(text: string): Json[] {
  return [...text.matchAll(/^data: (.*)$/gm)].map(([, line = ""]) => JSON.parse(line) as Json);
}

/** No fault in any of the events, and numbers without a gap. */
function expectDocumented(events: readonly Json[]): void {
  expect(events.flatMap((event) => eventFaults(event).map((fault) => `${String(event["type"])} ${fault}`))).toEqual([]);
  expect(events.map((event) => event["sequence_number"])).toEqual(events.map((_, number) => number));
  expect(events.slice(0, 2).map(({ type }) => type)).toEqual(["response.created", "response.in_progress"]);
}

function isOf(answer: LeanAnswer, response: unknown): void {
  const { text = [], call } = answer;
  const { output, model } = response as { output: Json[]; model: string };
  expect(model).toBe("lean");
  const said = output.flatMap(({ type, content }) => (type === "message" ? (content as Json[]) : []));
  expect(said.map((part) => part["text"])).toEqual(text.length > 0 ? [text.join("")] : []);
  const calls = output.filter(({ type }) => type === "function_call");
  expect(calls.map((item) => item["arguments"])).toEqual(call === undefined ? [] : ['{"city":"Oslo"}']);
}

describe.each(streams)("a minimal stream of %s", (kind) => {
  test.each(Object.entries(answers))(
    "sends all Responses events of a minimal stream with %s, readable by the openai SDK",
    async (_, answer) => {
      upstream.script(leanScript(answer, kind));
      const body = { model: "lean", input: "Hi", store: false, tools: [look] };
      const reported = await server.request("/v1/responses", { body: { ...body, stream: true } });
      const text = await reported.text();
      expect(text).not.toContain("engine-model");
      const events = eventsIn(text);
      expectDocumented(events);
      isOf(answer, events.at(-1)?.["response"]);
      const final = await openaiClient(server)
        .responses.stream(body as never)
        .finalResponse();
      isOf(answer, final);
      expect(final.usage).toMatchObject({ total_tokens: 9, ...leanUsage });
      await server.governance.ledger.flush();
      const records = (await recordedUsage(server.dataDir)).slice(-2);
      for (const record of records)
        expect(record).toMatchObject({ prompt_tokens: 7, completion_tokens: 2, estimated: 0 });
    },
  );

  test("stores a minimal stream as a valid response under the id in its events", async () => {
    upstream.script(leanScript({ text: ["Hel", "lo"] }, kind));
    const body = { model: "lean", input: "Hi", stream: true };
    const events = eventsIn(await (await server.request("/v1/responses", { body })).text());
    expectDocumented(events);
    const ids = new Set(events.flatMap(({ response }) => (response as Json | undefined)?.["id"] ?? []));
    expect(ids.size).toBe(1);
    const stored = (await (await server.request(`/v1/responses/${String([...ids][0])}`)).json()) as Json;
    expect(responseFaults(stored)).toEqual([]);
    isOf({ text: ["Hello"] }, stored);
  });

  test("sends all Responses events of a minimal stream over a WebSocket", async () => {
    upstream.script(leanScript({ text: ["Hel", "lo"], call: "look" }, kind));
    const socket = new WebSocket(`${server.url.replace("http", "ws")}/v1/responses`, {
      headers: { authorization: `Bearer ${server.key}` },
    } as never);
    const events: Json[] = [];
    await new Promise<void>((resolve, reject) => {
      socket.onmessage = ({ data }) => {
        events.push(JSON.parse(String(data)) as Json);
        if (events.at(-1)?.["type"] === "response.completed") resolve();
      };
      socket.onerror = () => reject(new Error("It was not opened."));
      const asked = { type: "response.create", model: "lean", input: "Hi", store: false };
      socket.onopen = () => socket.send(JSON.stringify(asked));
    });
    socket.close();
    expectDocumented(events);
    isOf({ text: ["Hello"], call: "look" }, events.at(-1)?.["response"]);
  });
});

test("keeps a minimal stream valid when a guardrail masks its text", async () => {
  upstream.script(leanScript({ text: ["Use ", "AKIAIOSFODNN", "7EXAMPLQ", " today."] }));
  const body = { model: "guarded", input: "Hi", store: false, stream: true };
  const text = await (await server.request("/v1/responses", { body })).text();
  expect(text).not.toContain("AKIA");
  const events = eventsIn(text);
  expectDocumented(events);
  const content = [{ type: "output_text", text: expect.stringMatching(/^Use .* today\.$/) }];
  expect(events.at(-1)).toMatchObject({ response: { output: [{ type: "message", content }] } });
});

test("ends a minimal server's broken stream with a failed response", async () => {
  upstream.script((_, res) => {
    res.writeHead(200, { "content-type": "text/event-stream" });
    res.write('data: {"type":"response.output_text.delta","delta":"Hel"}\n\n');
    setTimeout(() => res.destroy(), 20);
  });
  const body = { model: "lean", input: "Hi", store: false, stream: true };
  const events = eventsIn(await (await server.request("/v1/responses", { body })).text());
  expectDocumented(events);
  expect(events.at(-1)).toMatchObject({ type: "response.failed", response: { status: "failed" } });
});

test("repeats the request's settings in a minimal server's response", async () => {
  upstream.script(leanScript({ text: ["Hi"] }));
  const asked = {
    temperature: 0.5,
    metadata: { a: "b" },
    instructions: "Be brief.",
    tools: [look],
    tool_choice: "none",
  };
  const reported = { ...asked, tools: [{ ...look, description: null, strict: null }] };
  expect(await ask({ ...asked, store: false })).toMatchObject(reported);
});

test("fills members that a server omits, and keeps the other bytes", async () => {
  const part = { type: "output_text", text: "1.0", annotations: [], logprobs: [] };
  const item = `{"type":"message","id":"m1","status":"completed","role":"assistant","content":[${JSON.stringify(part)}]}`;
  const usage = '{"input_tokens":7,"output_tokens":2,"total_tokens":9,"input_tokens_details":{"cached_tokens":0},';
  const rest = `"output_tokens_details":{"reasoning_tokens":0}}`;
  const text = `{"id":"r1", "object":"response","status":"completed","model":"lean","top_p":1.0,"tools":null,"output":[ ${item} ],"usage":${usage}${rest}}`;
  upstream.script((_, res) => void res.writeHead(200, { "content-type": "application/json" }).end(text));
  const answer = await server.request("/v1/responses", { body: { model: "lean", input: "Hi", store: false } });
  const got = await answer.text();
  expect(responseFaults(JSON.parse(got))).toEqual([]);
  expect(got).toEndWith(text.slice(1).replace('"tools":null', '"tools":[]'));
});

test("reports the ledger's counts if a minimal server omits usage", async () => {
  upstream.script((_, res) => {
    json(res, 200, { output: [{ type: "message", content: [{ type: "output_text", text: "Hello world" }] }] });
  });
  const { usage } = (await ask({ store: false })) as { usage: { input_tokens: number; output_tokens: number } };
  await server.governance.ledger.flush();
  const [record] = (await recordedUsage(server.dataDir)).slice(-1);
  expect(record).toMatchObject({ prompt_tokens: usage.input_tokens, completion_tokens: usage.output_tokens });
  expect(usage.output_tokens).toBeGreaterThan(0);
});
