// Behind a server that leaves out what lenient clients can do without, a response is as the document of Open Responses has it.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { responseFaults } from "../support/agents/open-responses.ts";
import { openaiClient } from "../support/clients.ts";
import { startHeadrace, type TestServer } from "../support/headrace.ts";
import { type LeanAnswer, leanScript, leanUsage } from "../support/lean-responses.ts";
import { json, type ScriptedUpstream, startUpstream } from "../support/scripted-upstream.ts";
import { recordedUsage } from "../support/usage-records.ts";

type Json = Record<string, unknown>;

let upstream: ScriptedUpstream;
let server: TestServer;

beforeAll(async () => {
  upstream = await startUpstream();
  upstream.serves([{ id: "engine-model", object: "model", created: 1_700_000_000, owned_by: "scripted" }]);
  const models = "models:\n  - { id: lean, deployments: [{ upstream: up, model: engine-model }] }\n";
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

describe.each(Object.entries(answers))("an answer of %s from a lean server", (_, answer) => {
  test("is a whole response without faults, which the openai SDK reads", async () => {
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

  test("is a response without faults where it is stored", async () => {
    upstream.script(leanScript(answer));
    const response = await ask({});
    expect(responseFaults(response)).toEqual([]);
    const read = (await (await server.request(`/v1/responses/${String(response["id"])}`)).json()) as Json;
    expect(responseFaults(read)).toEqual([]);
    expect(read["output"]).toEqual(response["output"]);
  });
});

test("a response of a lean server repeats what its request says", async () => {
  upstream.script(leanScript({ text: ["Hi"] }));
  const asked = {
    temperature: 0.5,
    metadata: { a: "b" },
    instructions: "Be brief.",
    tools: [look],
    tool_choice: "none",
  };
  const told = { ...asked, tools: [{ ...look, description: null, strict: null }] };
  expect(await ask({ ...asked, store: false })).toMatchObject(told);
});

test("members that a server leaves out of an answer are filled in, and the rest of its bytes stays", async () => {
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

test("usage that a lean server leaves out is what the ledger counts", async () => {
  upstream.script((_, res) => {
    json(res, 200, { output: [{ type: "message", content: [{ type: "output_text", text: "Hello world" }] }] });
  });
  const { usage } = (await ask({ store: false })) as { usage: { input_tokens: number; output_tokens: number } };
  await server.governance.ledger.flush();
  const [record] = (await recordedUsage(server.dataDir)).slice(-1);
  expect(record).toMatchObject({ prompt_tokens: usage.input_tokens, completion_tokens: usage.output_tokens });
  expect(usage.output_tokens).toBeGreaterThan(0);
});
