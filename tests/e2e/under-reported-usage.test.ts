// A model server or a node that reports fewer tokens than it delivered serves nobody for free, and an honest one is believed.
import { afterEach, expect, test } from "bun:test";
import { bookedUsage } from "../support/booked-usage.ts";
import { startHeadrace, type TestServer, until } from "../support/headrace.ts";
import { joinNode, startGateway } from "../support/nodes.ts";
import { chunk, json, type Script, startUpstream, upstreamYaml } from "../support/scripted-upstream.ts";
import { demoModel } from "../support/tiny-demo.ts";

const stack: AsyncDisposable[] = [];
afterEach(async () => {
  for (const part of stack.splice(0).reverse()) await part[Symbol.asyncDispose]();
});
async function started<Part extends AsyncDisposable>(part: Promise<Part>): Promise<Part> {
  const ready = await part;
  stack.push(ready);
  return ready;
}

/** 1,200 bytes: 300 tokens by estimate, 10 at the least. */
const text = "word ".repeat(240);
const prompt = "x".repeat(1_200);
const nothing = { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 };

const lying: Script = ({ path, body }, res) => {
  const head = { id: "c", created: 1, model: "upstream-model" };
  if (path.endsWith("/embeddings")) {
    const data = [{ object: "embedding", index: 0, embedding: [0.5] }];
    json(res, 200, { object: "list", data, model: "upstream-model", usage: { prompt_tokens: 0, total_tokens: 0 } });
  } else if (body["stream"] === true) {
    res.writeHead(200, { "content-type": "text/event-stream" });
    for (let i = 0; i < 24; i++) res.write(chunk({ content: text.slice(i * 50, i * 50 + 50) }));
    res.write(chunk({}, "stop"));
    res.end(
      `data: ${JSON.stringify({ ...head, object: "chat.completion.chunk", choices: [], usage: nothing })}\n\ndata: [DONE]\n\n`,
    );
  } else if (path.endsWith("/chat/completions")) {
    const choices = [{ index: 0, message: { role: "assistant", content: text }, finish_reason: "stop" }];
    json(res, 200, { ...head, object: "chat.completion", choices, usage: nothing });
  } else {
    json(res, 200, {
      ...head,
      object: "text_completion",
      choices: [{ index: 0, text, finish_reason: "stop" }],
      usage: nothing,
    });
  }
};

const requests: [path: string, body: object, completionTokens: number][] = [
  ["/v1/chat/completions", { messages: [{ role: "user", content: prompt }] }, 300],
  ["/v1/chat/completions", { messages: [{ role: "user", content: prompt }], stream: true }, 300],
  [
    "/v1/chat/completions",
    { messages: [{ role: "user", content: prompt }], stream: true, stream_options: { include_usage: true } },
    300,
  ],
  ["/v1/responses", { input: prompt, store: false }, 300],
  ["/v1/responses", { input: prompt, store: false, stream: true }, 300],
  ["/v1/completions", { prompt }, 300],
  ["/v1/embeddings", { input: prompt }, 0],
];

async function expectEstimates(server: TestServer, model: string): Promise<void> {
  for (const [path, body, completionTokens] of requests) {
    const answer = await server.request(path, { body: { model, ...body } });
    const said = await answer.text();
    expect([path, answer.status]).toEqual([path, 200]);
    expect(said).not.toMatch(/"(prompt|input)_tokens":0/);
    if (path === "/v1/responses") expect(said).toContain('"input_tokens":300,');
    else if (!("stream" in body) || "stream_options" in body) {
      expect(said).toContain(`"prompt_tokens":300,`);
      expect(said).toContain('"estimated":true');
    }
    await server.governance.ledger.flush();
    expect(bookedUsage(server.dataDir).at(-1)).toMatchObject({
      ...{ outcome: "completed", prompt_tokens: 300, completion_tokens: completionTokens, estimated: 1, capped: 1 },
    });
  }
}

// hardening: L7
test("books an estimate for an upstream that reports no tokens of delivered text, marks it, and warns once", async () => {
  const upstream = await started(startUpstream(lying));
  const server = await started(startHeadrace({ yaml: upstreamYaml(upstream) }));
  await expectEstimates(server, "upstream-model");
  const warnings = server.logged("usage_understated");
  expect(warnings).toHaveLength(1);
  expect(warnings[0]).toMatchObject({ upstream: "up", model: "upstream-model" });
  expect(server.logText()).not.toContain("word word");
  const metrics = await (await fetch(`${server.url}/metrics`)).text();
  expect(metrics).toContain('headrace_upstream_usage_understated_total{upstream="up"} 7');
});

// hardening: L7
test("books an estimate for a node that reports no tokens of delivered text", async () => {
  const upstream = await started(startUpstream(lying));
  const gateway = await started(startGateway());
  await started(joinNode(gateway, { yaml: upstreamYaml(upstream), models: ["*"] }));
  await until(async () => (await (await gateway.request("/v1/models")).text()).includes("upstream-model"), "the model");
  await expectEstimates(gateway, "upstream-model");
  expect(gateway.logged("usage_understated")).toHaveLength(1);
});

// hardening: L7
test("believes a real tokenizer's count for any text", async () => {
  const server = await started(startHeadrace({ demo: true }));
  const texts = [
    "Hi",
    " ".repeat(900),
    "=".repeat(700),
    "internationalization ".repeat(30),
    "Donaudampfschifffahrtsgesellschaftskapitän ".repeat(8),
    "ประเทศไทย".repeat(12),
    "天天中彩票".repeat(20),
    "👩‍👩‍👧‍👦".repeat(10),
    "\n\n\n\t\t\t".repeat(60),
    "if (a) {\n        return b;\n}\n".repeat(20),
  ];
  for (const content of texts) {
    for (const stream of [false, true]) {
      const body = { model: demoModel, messages: [{ role: "user", content }], max_tokens: 24, temperature: 0 };
      const options = stream ? { stream, stream_options: { include_usage: true } } : {};
      const response = await server.request("/v1/chat/completions", { body: { ...body, ...options } });
      expect([content, response.status]).toEqual([content, 200]);
      expect(await response.text()).not.toContain('"estimated"');
    }
  }
  await server.governance.ledger.flush();
  const booked = bookedUsage(server.dataDir);
  expect(booked.map(({ estimated, capped }) => estimated + capped)).toEqual(booked.map(() => 0));
  expect(server.logged("usage_understated")).toEqual([]);
});
