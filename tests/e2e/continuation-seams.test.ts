// Where one server breaks off and another goes on: what either may send there, over real connections, and where they run.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { openaiClient } from "../support/clients.ts";
import { startHeadrace, type TestServer, until } from "../support/headrace.ts";
import { shiftedClock } from "../support/manual-clock.ts";
import { joinNode, startGateway } from "../support/nodes.ts";
import { chunk, json, type Script, type ScriptedUpstream, startUpstream } from "../support/scripted-upstream.ts";

const messages = [{ role: "user" as const, content: "Count." }];
const words = ["One", " two", " thrée", " 四", " five"];
const whole = words.join("");
const eventStream = { "content-type": "text/event-stream" };

/** Words of the answer that came with the request. */
function begunOf({ body }: Parameters<Script>[0]): number {
  const last = (body["messages"] as { role: string; content: string }[]).at(-1);
  if (last?.role !== "assistant") return 0;
  const begun = words.findIndex((_, at) => words.slice(0, at).join("") === last.content);
  if (begun < 0) throw new Error(`no begin of the answer: ${last.content}`);
  return begun;
}

const usageOf = (begun: number) => ({
  prompt_tokens: 10 + begun,
  completion_tokens: words.length - begun + 1,
  total_tokens: 0,
});

/** All of the rest, as a stream. */
function rest(begun: number): string {
  const said = words.slice(begun).map((content) => chunk({ content }));
  const usage = chunk({}, null, { choices: [], usage: usageOf(begun) });
  return `${chunk({ role: "assistant", content: "" })}${said.join("")}${chunk({}, "stop")}${usage}data: [DONE]\n\n`;
}

const breaksOff: Script = (_request, response) => {
  response.writeHead(200, eventStream);
  response.write(
    chunk({ role: "assistant", content: "" }) +
      words
        .slice(0, 2)
        .map((content) => chunk({ content }))
        .join(""),
  );
  setTimeout(() => response.destroy(), 5);
};

async function streamed(server: TestServer, more: Record<string, unknown> = {}) {
  const body = { model: "m", messages, stream: true, stream_options: { include_usage: true }, ...more };
  const response = await server.request("/v1/chat/completions", { body });
  const text = await response.text();
  const chunks = text
    .split("\n\n")
    .flatMap((event) => (event.startsWith("data: {") ? [JSON.parse(event.slice(6))] : []));
  const said = chunks.map(({ choices }) => choices?.[0]?.delta?.content ?? "").join("");
  return { text, chunks, said, usage: chunks.findLast((one) => one.usage)?.usage };
}

function yamlOf(servers: readonly ScriptedUpstream[], timeouts = ""): string {
  const upstreams = servers.map(({ url }, at) => `  - { name: up${at}, url: "${url}", discover: false${timeouts} }\n`);
  const deployments = servers.map((_, at) => `{ upstream: up${at}, model: m }`).join(", ");
  return `upstreams:\n${upstreams.join("")}models:\n  - { id: m, policies: { continuation: true }, deployments: [${deployments}] }\n`;
}

describe("the deployment that continues an answer", () => {
  let servers: ScriptedUpstream[];
  let server: TestServer;
  let goesOn: Script;
  const clock = shiftedClock();
  beforeEach(() => clock.shift(120));

  beforeAll(async () => {
    const script: Script = (request, response) =>
      begunOf(request) === 0 ? breaksOff(request, response) : goesOn(request, response);
    servers = await Promise.all(["one", "two"].map(() => startUpstream(script)));
    for (const upstream of servers) upstream.serves([{ id: "m", object: "model", created: 1, owned_by: "vllm" }]);
    server = await startHeadrace({ yaml: yamlOf(servers), clock });
  });
  afterAll(async () => {
    await server[Symbol.asyncDispose]();
    for (const upstream of servers) await upstream[Symbol.asyncDispose]();
  });

  const sends = (make: (begun: number) => string, after: "end" | "die" = "end"): Script => {
    return (request, response) => {
      response.writeHead(200, eventStream);
      response.write(make(begunOf(request)));
      if (after === "end") response.end();
      else setTimeout(() => response.destroy(), 5);
    };
  };
  const finished = (begun: number) => rest(begun).slice(0, rest(begun).indexOf(chunk({}, "stop"))) + chunk({}, "stop");

  test.each<[string, Script]>([
    ["end its lines with CRLF", sends((begun) => rest(begun).replaceAll("\n", "\r\n"))],
    [
      "send comments, events without a choice, and empty deltas",
      sends(
        (begun) => `: hi\n\n${chunk({}, null, { choices: [] })}${chunk({})}${chunk({ content: "" })}${rest(begun)}`,
      ),
    ],
    ["say twice why it ended", sends((begun) => rest(begun).replace(chunk({}, "stop"), chunk({}, "stop").repeat(2)))],
    ["forget the mark of the end", sends((begun) => rest(begun).replace("data: [DONE]\n\n", ""))],
    ["die behind the reason for the end", sends(finished, "die")],
    [
      "end with an error event behind the reason for the end",
      sends((begun) => `${finished(begun)}data: {"error":{"message":"x"}}\n\n`),
    ],
    [
      "send each byte by itself",
      async (request, response) => {
        response.writeHead(200, eventStream);
        for (const byte of Buffer.from(rest(begunOf(request)))) {
          response.write(Buffer.from([byte]));
          if (byte > 127 || byte === 10) await Bun.sleep(0);
        }
        response.end();
      },
    ],
    [
      "answer as a whole, as some ignore that a stream was asked for",
      (request, response) => {
        const message = { role: "assistant", content: words.slice(begunOf(request)).join("") };
        const choices = [{ index: 0, message, finish_reason: "stop" }];
        json(response, 200, { id: "c", object: "chat.completion", created: 1, model: "m", choices, usage: usageOf(2) });
      },
    ],
  ])("continues a broken answer from servers that %s", async (_what, script) => {
    goesOn = script;
    const { said, chunks, text } = await streamed(server);
    expect([said, text]).toEqual([whole, text]);
    expect(chunks.filter(({ error }) => error)).toEqual([]);
    expect(chunks.filter(({ choices }) => choices?.[0]?.finish_reason).length).toBeGreaterThan(0);
    expect(chunks.filter(({ choices }) => choices?.[0]?.delta?.role)).toHaveLength(1);
    expect(new Set(chunks.map(({ id }) => id)).size).toBe(1);
    expect(text).toEndWith("data: [DONE]\n\n");
  });

  test.each([
    ["refuse it", 500, {}],
    ["answer with an error and a good status", 200, { error: { message: "no" } }],
  ])("asks another server to continue an answer if the first servers %s", async (_what, status, body) => {
    let refusals = 0;
    goesOn = (request, response) => {
      if (refusals++ === 0) return json(response, status, body);
      return sends(rest)(request, response);
    };
    const { said, text } = await streamed(server);
    expect([said, text]).toEqual([whole, text]);
  });

  test("continues a background response, and stores it whole", async () => {
    goesOn = sends(rest);
    const client = openaiClient(server);
    const { id } = await client.responses.create({ model: "m", input: "Count.", background: true });
    const kept = await until(async () => {
      const response = await client.responses.retrieve(id);
      return response.status === "completed" ? response : undefined;
    }, "the response");
    expect([kept.output_text, kept.usage?.output_tokens]).toEqual([whole, words.length + 1]);
  });
});

test("leaves a server that is silent longer than allowed, and continues its answer elsewhere", async () => {
  const script: Script = (request, response) => {
    const begun = begunOf(request);
    response.writeHead(200, eventStream);
    if (begun > 0) response.end(rest(begun));
    else response.write(chunk({ role: "assistant", content: "" }) + chunk({ content: words[0] }));
  };
  await using one = await startUpstream(script);
  await using two = await startUpstream(script);
  for (const upstream of [one, two]) upstream.serves([{ id: "m", object: "model", created: 1, owned_by: "llamacpp" }]);
  await using server = await startHeadrace({ yaml: yamlOf([one, two], ", idle_seconds: 1") });
  const beganMs = performance.now();
  const { said, usage } = await streamed(server);
  expect(performance.now() - beganMs).toBeGreaterThan(900);
  expect([said, usage.completion_tokens]).toEqual([whole, words.length + 1]);
});

test.each([1, 2])("continues many streams that break off at once, with %d servers", async (count) => {
  const script: Script = (request, response) =>
    begunOf(request) === 0
      ? breaksOff(request, response)
      : void response.writeHead(200, eventStream).end(rest(begunOf(request)));
  await using one = await startUpstream(script);
  await using two = await startUpstream(script);
  for (const upstream of [one, two]) upstream.serves([{ id: "m", object: "model", created: 1, owned_by: "llamacpp" }]);
  await using server = await startHeadrace({ yaml: yamlOf([one, two].slice(0, count)) });
  for (const { said } of await Promise.all(Array.from({ length: 4 }, () => streamed(server)))) expect(said).toBe(whole);
});

test("continues answers of a node that announced the ability, after a break", async () => {
  await using upstream = await startUpstream((request, response) =>
    begunOf(request) === 0
      ? breaksOff(request, response)
      : void response.writeHead(200, eventStream).end(rest(begunOf(request))),
  );
  upstream.serves([{ id: "m", object: "model", created: 1, owned_by: "vllm" }]);
  const yaml = "models:\n  - { id: m, policies: { continuation: true } }\n";
  await using gateway = await startGateway({ yaml });
  await using _node = await joinNode(gateway, {
    yaml: `upstreams:\n  - { name: up, url: "${upstream.url}" }\n`,
    models: ["m"],
  });
  const { said, usage } = await streamed(gateway);
  expect([said, usage.completion_tokens]).toEqual([whole, words.length + 1]);
  expect(upstream.requests.at(-1)?.body).toMatchObject({ continue_final_message: true, add_generation_prompt: false });
});
