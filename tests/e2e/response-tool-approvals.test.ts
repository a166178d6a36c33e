// An approval of a call makes it once, whoever sends it, however often, and to whichever replica.
import { afterAll, beforeAll, beforeEach, expect, test } from "bun:test";
import OpenAI from "openai";
import { startHeadrace, type TestServer, until } from "../support/headrace.ts";
import { callsOf, type LoopingModel, startLoopingModel } from "../support/looping-model.ts";
import { HttpMcpServer, textResult } from "../support/mcp-servers.ts";
import { operated } from "../support/operated.ts";
import { startReplicas, type TestReplicas } from "../support/replicas.ts";

const asking = { type: "mcp", server_label: "weather" } as const;
const many = 20;

let tools: HttpMcpServer;
let model: LoopingModel;
let single: TestServer;
let replicas: TestReplicas;
/** How often the tool began to work, and what it waits for. */
let called = 0;
let gate = Promise.withResolvers<void>();

beforeAll(async () => {
  const forecast = async () => {
    called++;
    await gate.promise;
    return textResult("Rain in Ulm");
  };
  tools = new HttpMcpServer({ tools: { forecast } });
  model = startLoopingModel(({ messages }) => {
    const reported = messages.findLast(({ role }) => role === "tool");
    return reported ? { content: `I was told: ${reported.content}` } : callsOf("weather__forecast", {});
  });
  const yaml = `upstreams: [{ name: m, url: "${model.url}", apis: [chat] }]
models: [{ id: m, deployments: [{ upstream: m }] }]
tools: { servers: [{ name: weather, url: "${tools.url}" }] }
`;
  single = await startHeadrace({ yaml });
  replicas = await startReplicas({ yaml });
}, 60_000);

afterAll(async () => {
  await Promise.all([single[Symbol.asyncDispose](), replicas[Symbol.asyncDispose]()]);
  await Promise.all([tools[Symbol.asyncDispose](), model[Symbol.asyncDispose]()]);
});

beforeEach(() => {
  called = 0;
  gate = Promise.withResolvers();
});

/** Clients of one key at each of these servers. */
async function clientsAt(servers: readonly Pick<TestServer, "url">[], firstKey: string): Promise<OpenAI[]> {
  const body = JSON.stringify({ name: "tools", scopes: ["chat:write", "chat:read", "tools:use"] });
  const headers = { authorization: `Bearer ${firstKey}`, "content-type": "application/json" };
  const made = await fetch(`${servers[0]?.url}/v1/keys`, { method: "POST", headers, body });
  const { key } = (await made.json()) as { key: string };
  return servers.map(({ url }) => new OpenAI({ apiKey: key, baseURL: `${url}/v1`, maxRetries: 2 }));
}

async function asked(client: OpenAI) {
  const response = await client.responses.create({ model: "m", input: "Weather?", tools: [asking] });
  const { id } = response.output.find(({ type }) => type === "mcp_approval_request") ?? {};
  const input = [{ type: "mcp_approval_response", approval_request_id: id ?? "", approve: true } as const];
  return { model: "m", tools: [asking], previous_response_id: response.id, input };
}

const callIn = ({ output }: OpenAI.Responses.Response) => output.find(({ type }) => type === "mcp_call");

const places: readonly [string, () => Promise<OpenAI[]>][] = [
  ["one server", () => clientsAt([single], single.key)],
  ["two replicas", () => clientsAt(replicas.servers, replicas.key)],
];

test.each(places)(
  "makes one call for many simultaneous approvals at %s, and refers the others to its response without a client error",
  async (_, clients) => {
    const all = await clients();
    const [first] = all as [OpenAI];
    const approval = await asked(first);
    const turns = model.turns.length;
    let ended = 0;
    const answers = Array.from({ length: many }, async (_, n) => {
      const response = await (all[n % all.length] as OpenAI).responses.create({ ...approval, stream: false });
      ended++;
      return response;
    });
    await until(() => ended === many - 1, "all but one are answered while the tool works");
    gate.resolve();
    const responses = await Promise.all(answers);
    expect(called).toBe(1);
    expect(responses.map(({ status }) => status)).toEqual(responses.map(() => "completed"));
    // None was asked again by its client.
    expect(model.turns.length - turns).toBe(many);
    const made = responses.filter((response) => callIn(response)?.type === "mcp_call" && textOf(response) !== null);
    expect(made.map(textOf)).toEqual(["Rain in Ulm"]);
    const reported = `the response ${made[0]?.id} began to make it`;
    for (const response of responses.filter((one) => one !== made[0])) {
      expect(callIn(response)).toMatchObject({
        status: "failed",
        error: { message: expect.stringContaining(reported) },
      });
      expect(response.output_text).toContain(reported);
    }
    // Once it is kept, it is told to whoever asks again.
    const late = await (all.at(-1) as OpenAI).responses.create({ ...approval, stream: false });
    expect(callIn(late)).toMatchObject({ status: "completed", output: "Rain in Ulm" });
    expect(late.output_text).toBe("I was told: Rain in Ulm");
    expect(called).toBe(1);
  },
  30_000,
);

const textOf = (response: OpenAI.Responses.Response) => {
  const call = callIn(response);
  return call?.type === "mcp_call" ? (call.output ?? null) : null;
};

test("does not repeat an approved call if the client gives up and asks again", async () => {
  const [client] = (await clientsAt([single], single.key)) as [OpenAI];
  const approval = await asked(client);
  const response = await client.responses.create({ ...approval, stream: false }, { timeout: 1_500, maxRetries: 1 });
  expect(called).toBe(1);
  expect(callIn(response)).toMatchObject({ status: "failed", output: null });
  expect(response.output_text).toContain("It is not made again");
});

test("limits an approval to its account, and makes another account's call once as well", async () => {
  gate.resolve();
  const { admin } = await operated(single);
  const account = (await admin("POST", "/accounts", { name: "Another", tier: "enterprise" })).body.id;
  const scopes = ["chat:write", "tools:use"];
  const { key } = (await admin("POST", `/accounts/${account}/keys`, { name: "K", environment: "dev", scopes })).body;
  const [client] = (await clientsAt([single], single.key)) as [OpenAI];
  const other = new OpenAI({ apiKey: key, baseURL: `${single.url}/v1` });
  const { input: answer } = await asked(client);
  const id = answer[0]?.approval_request_id ?? "";
  const request = { id, type: "mcp_approval_request", server_label: "weather", name: "forecast" } as const;
  const input = [{ role: "user", content: "Weather?" } as const, { ...request, arguments: "{}" }, ...answer];
  for (const one of [client, other, client, other]) await one.responses.create({ model: "m", tools: [asking], input });
  expect(called).toBe(2);
});
