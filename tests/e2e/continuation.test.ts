// Streams that their model server cuts, over real connections: with the built-in engine behind them, and read by real SDKs.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import type { ServerResponse } from "node:http";
import Anthropic from "@anthropic-ai/sdk";
import { streamText } from "ai";
import { aiProvider, openaiClient } from "../support/clients.ts";
import { startHeadrace, type TestServer, until } from "../support/headrace.ts";
import { shiftedClock } from "../support/manual-clock.ts";
import {
  chunk,
  type Script,
  type ScriptedUpstream,
  startUpstream,
  type UpstreamRequest,
} from "../support/scripted-upstream.ts";
import { answer, demoModel, question } from "../support/tiny-demo.ts";

const messages = [{ role: "user" as const, content: question }];

describe("continuation by the built-in engine", () => {
  let behind: TestServer;
  let proxies: ScriptedUpstream[];
  let server: TestServer;
  const clock = shiftedClock();
  /** Events that are let through before the connection is cut, for the requests that come next; then all are. */
  let cuts: number[] = [];

  beforeAll(async () => {
    behind = await startHeadrace({ demo: true });
    proxies = await Promise.all(["one", "two"].map(() => startUpstream(pass)));
    for (const proxy of proxies) proxy.serves([{ id: demoModel, object: "model", created: 1, owned_by: "llamacpp" }]);
    const upstreams = proxies.map(({ url }, index) => `  - { name: up${index}, url: "${url}", discover: false }\n`);
    server = await startHeadrace({
      clock,
      yaml: `upstreams:\n${upstreams.join("")}models:
  - id: m
    policies: { continuation: true, cache: { requests: asked } }
    deployments: [{ upstream: up0, model: ${demoModel} }, { upstream: up1, model: ${demoModel} }]
`,
    });
  });
  afterAll(async () => {
    await server[Symbol.asyncDispose]();
    for (const proxy of proxies) await proxy[Symbol.asyncDispose]();
    await behind[Symbol.asyncDispose]();
  });

  /** To the engine and back, event by event. */
  async function pass({ path, body }: UpstreamRequest, response: ServerResponse): Promise<void> {
    const given = await behind.request(path, { body });
    const text = await given.text();
    if (given.status !== 200) return void response.writeHead(given.status).end(text);
    const events = text.split(/(?<=\n\n)/);
    const cut = cuts.shift();
    response.writeHead(200, { "content-type": "text/event-stream" });
    if (cut === undefined) return void response.end(text);
    response.write(events.slice(0, cut).join(""));
    setTimeout(() => response.destroy(), 2);
  }

  test("caches an answer of one deployment, but not one that two deployments made", async () => {
    const headers = { "x-headrace-cache": "use" };
    const ask = async () => {
      const response = await server.request("/v1/chat/completions", {
        ...{ body: { model: "m", temperature: 0, stream: true, messages }, headers },
      });
      await response.text();
      return response.headers.get("x-headrace-cache");
    };
    cuts = [4];
    expect([await ask(), await ask(), await ask()]).toEqual(["miss", "miss", "hit"]);
    expect(cuts).toEqual([]);
  });

  test.each([
    ["chat", "/v1/chat/completions", { messages }],
    [
      "completions",
      "/v1/completions",
      { prompt: `<|im_start|>user\n${question}<|im_end|>\n<|im_start|>assistant\n`, max_tokens: 64 },
    ],
  ])("returns the same answer in %s wherever it is cut and continued", async (_name, path, body) => {
    const ask = async () => {
      const response = await server.request(path, {
        body: { model: "m", temperature: 0, stream: true, stream_options: { include_usage: true }, ...body },
      });
      const events = (await response.text())
        .split("\n\n")
        .flatMap((event) => /^data: (\{.*\})$/.exec(event)?.[1] ?? []);
      const chunks = events.map((data) => JSON.parse(data));
      const said = chunks.map(({ choices }) => choices?.[0]?.delta?.content ?? choices?.[0]?.text ?? "").join("");
      return { chunks, said, usage: chunks.at(-1)?.usage };
    };
    const whole = await ask();
    if (path.includes("chat")) expect(whole.said).toBe(answer);
    const events = whole.chunks.length;
    for (let cut = 1; cut < events - 1; cut++) {
      // Those that were cut are well again, and so is the budget for second tries.
      clock.shift(120);
      cuts = [cut];
      const { said, usage, chunks } = await ask();
      expect([cut, said, chunks.filter(({ error }) => error)]).toEqual([cut, whole.said, []]);
      if (cut < 2 || cut > events - 4) continue;
      // One event is one token here: the prompt twice, and what was delivered once more.
      expect([cut, usage.completion_tokens]).toEqual([cut, whole.usage.completion_tokens]);
    }
  });
});

test("continues an answer in a new process after the built-in engine's process dies", async () => {
  const yaml =
    "models:\n  - id: m\n    policies: { continuation: true }\n    deployments: [{ upstream: built-in, model: tiny-demo }]\n";
  await using server = await startHeadrace({ demo: true, yaml });
  // So long that it is under way when its process dies.
  const body = {
    model: "m",
    messages,
    stream: true,
    max_tokens: 400,
    logit_bias: { "1147": 100 },
    stream_options: { include_usage: true },
  };
  const response = await server.request("/v1/chat/completions", { body });
  const decoder = new TextDecoder();
  let text = "";
  let isKilled = false;
  for await (const bytes of response.body ?? []) {
    text += decoder.decode(bytes, { stream: true });
    if (isKilled || text.split("\n\n").length < 20) continue;
    isKilled = true;
    process.kill(server.engine.status()[0]?.pid ?? 0, "SIGKILL");
  }
  const chunks = text
    .split("\n\n")
    .flatMap((event) => (event.startsWith("data: {") ? [JSON.parse(event.slice(6))] : []));
  const said = chunks.map(({ choices }) => choices?.[0]?.delta?.content ?? "").join("");
  expect(said).toBe("Hello".repeat(400));
  expect(
    chunks.filter(({ choices }) => choices?.[0]?.finish_reason).map(({ choices }) => choices[0].finish_reason),
  ).toEqual(["length"]);
  expect(chunks.filter(({ headrace }) => headrace).map(({ headrace }) => headrace)).toEqual([{ continued: 1 }]);
  expect(text).toEndWith("data: [DONE]\n\n");
  await until(() => server.logged("request").find(({ continued }) => continued === 1), "the line of the log");
});

describe("SDKs read a continued answer like any other", () => {
  const words = ["One", " two", " three", " four", " five"];
  let servers: ScriptedUpstream[];
  let server: TestServer;
  const clock = shiftedClock();
  // Those that were cut are well again.
  beforeEach(() => clock.shift(120));

  /** Goes on behind what it is given, and is cut behind two words where it is given nothing. */
  const script: Script = ({ body }, response) => {
    const { messages: sent } = body as { messages: { role: string; content: string }[] };
    const last = sent.at(-1);
    const begun =
      last?.role === "assistant" ? words.findIndex((_, at) => words.slice(0, at).join("") === last.content) : 0;
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.write(chunk({ role: "assistant", content: "" }));
    for (const word of words.slice(begun, begun === 0 ? 2 : undefined)) response.write(chunk({ content: word }));
    if (begun === 0) return void setTimeout(() => response.destroy(), 5);
    const usage = { prompt_tokens: 10 + begun, completion_tokens: words.length - begun + 1, total_tokens: 0 };
    response.end(`${chunk({}, "stop")}${chunk({}, null, { choices: [], usage })}data: [DONE]\n\n`);
  };

  /** A word for each token; it is cut behind fifty where it is given nothing, and else has no end. */
  const endless: Script = async (request, response) => {
    const { messages: sent } = request.body as { messages: { role: string }[] };
    const isBegun = sent.at(-1)?.role === "assistant";
    response.writeHead(200, { "content-type": "text/event-stream" });
    for (let count = 0; isBegun ? !request.abandoned : count < 50; count++) {
      response.write(chunk({ content: isBegun || count > 0 ? " word" : "word" }));
      if (count % 20 === 19) await Bun.sleep(1);
    }
    if (!isBegun) setTimeout(() => response.destroy(), 5);
  };

  beforeAll(async () => {
    servers = await Promise.all(["one", "two"].map(() => startUpstream(script)));
    for (const upstream of servers) upstream.serves([{ id: "m", object: "model", created: 1, owned_by: "vllm" }]);
    const upstreams = servers.map(({ url }, index) => `  - { name: up${index}, url: "${url}", discover: false }\n`);
    const deployments = servers.map((_, index) => `{ upstream: up${index}, model: m }`).join(", ");
    const yaml = `upstreams:\n${upstreams.join("")}models:\n  - { id: m, policies: { continuation: true }, deployments: [${deployments}] }\n`;
    server = await startHeadrace({ yaml, clock });
  });
  afterAll(async () => {
    await server[Symbol.asyncDispose]();
    for (const upstream of servers) await upstream[Symbol.asyncDispose]();
  });

  const whole = words.join("");

  test("lets the openai SDK read a continued chat completion", async () => {
    const stream = openaiClient(server).chat.completions.stream({
      model: "m",
      messages,
      stream_options: { include_usage: true },
    });
    const completion = await stream.finalChatCompletion();
    expect(completion.choices[0]?.message).toMatchObject({ role: "assistant", content: whole });
    expect(completion.usage).toMatchObject({ prompt_tokens: 10 + 12, completion_tokens: 6 });
  });

  test("lets the openai SDK read a continued response", async () => {
    const response = await openaiClient(server).responses.stream({ model: "m", input: question }).finalResponse();
    expect([response.output_text, response.usage?.input_tokens, response.usage?.output_tokens]).toEqual([whole, 22, 6]);
  });

  test("lets Anthropic's SDK read a continued message", async () => {
    const client = new Anthropic({ baseURL: server.url, apiKey: server.key, maxRetries: 0 });
    const message = await client.messages.stream({ model: "m", max_tokens: 50, messages }).finalMessage();
    expect(message.content).toEqual([expect.objectContaining({ type: "text", text: whole })]);
    expect([message.stop_reason, message.usage.output_tokens]).toEqual(["end_turn", 6]);
  });

  test("lets the AI SDK read a continued answer", async () => {
    const result = streamText({ model: aiProvider(server)("m"), prompt: question, maxRetries: 0 });
    expect([await result.text, (await result.usage).outputTokens]).toEqual([whole, 6]);
  });

  test("stores a continued completion whole", async () => {
    const client = openaiClient(server);
    const stream = client.chat.completions.stream({ model: "m", messages, store: true });
    const { id } = await stream.finalChatCompletion();
    const kept = await until(() => client.chat.completions.retrieve(id).catch(() => undefined), "the completion");
    expect(kept.choices[0]).toMatchObject({ message: { content: whole }, finish_reason: "stop" });
    expect(kept.usage).toMatchObject({ prompt_tokens: 22, completion_tokens: 6 });
  });

  test("counts both parts of a continued answer against a quota with a hard stop", async () => {
    const quota = { unit: "tokens", amount: 700, per: "day", hard_stop: true };
    const made = await server.request("/v1/keys", { body: { name: "Stopped", quotas: [quota] } });
    const { key } = (await made.json()) as { key: string };
    for (const upstream of servers) upstream.script(endless);
    try {
      const stream = await openaiClient({ url: server.url, key }).chat.completions.create({
        ...{ model: "m", messages, stream: true, max_tokens: 5_000 },
        stream_options: { include_usage: true },
      });
      const chunks = await Array.fromAsync(stream);
      const said = chunks.map(({ choices }) => choices[0]?.delta.content ?? "").join("");
      const usage = chunks.at(-1)?.usage;
      expect(chunks.find(({ choices }) => choices[0]?.finish_reason)).toMatchObject({
        choices: [{ finish_reason: "length" }],
        headrace: { stopped_by: "quota" },
      });
      expect([usage?.total_tokens, usage?.completion_tokens]).toEqual([700, said.split("word").length - 1]);
      // The first part is in the second prompt.
      expect(usage?.prompt_tokens).toBeGreaterThan(50);
    } finally {
      for (const upstream of servers) upstream.script(script);
    }
  });

  test("books the usage of both deployments, and names the continuing one in the trail", async () => {
    const body = { model: "m", messages, stream: true, stream_options: { include_usage: true } };
    const response = await server.request("/v1/chat/completions", { body });
    const id = response.headers.get("x-request-id");
    expect(await response.text()).toContain('"usage":{"prompt_tokens":22,"completion_tokens":6,"total_tokens":28');
    const record = async () => {
      const { data } = (await (await server.request("/v1/requests?limit=20")).json()) as {
        data: Record<string, unknown>[];
      };
      return data.find((one) => one["id"] === id || one["request_id"] === id);
    };
    const kept = await until(record, "the record");
    expect(kept).toMatchObject({ prompt_tokens: 22, completion_tokens: 6, outcome: "completed" });
  });
});
