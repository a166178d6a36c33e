// Traces of a real server at a real collector: what spans there are, what they say, and what they never say.
import { afterEach, describe, expect, test } from "bun:test";
import { join } from "node:path";
import { addKey } from "../hostile/keys.ts";
import { type Collector, type ReceivedSpan, startCollector } from "../support/collector.ts";
import { startHeadrace, type TestServer, type TestServerOptions, until } from "../support/headrace.ts";
import { withinMs } from "../support/long.ts";
import { chunk, json, type ScriptedUpstream, startUpstream, upstreamYaml } from "../support/scripted-upstream.ts";

const chat = { model: "upstream-model", messages: [{ role: "user", content: "CANARYPROMPT" }] };
const traceId = "0af7651916cd43dd8448eb211c80319c";
const clientParent = `00-${traceId}-b7ad6b7169203331-01`;

interface World {
  collector: Collector;
  upstream: ScriptedUpstream;
  server: TestServer;
}

const opened: AsyncDisposable[] = [];
afterEach(async () => {
  for (const one of opened.splice(0).toReversed()) await one[Symbol.asyncDispose]();
});

async function world(
  tracing = "",
  options: TestServerOptions & { more?: (upstream: ScriptedUpstream) => string } = {},
) {
  const { more, ...rest } = options;
  const collector = startCollector();
  const upstream = await startUpstream();
  opened.push(collector, upstream);
  const yaml = `${more?.(upstream) ?? upstreamYaml(upstream)}tracing: { endpoint: "${collector.url}"${tracing} }\n`;
  const server = await startHeadrace({ yaml, spanBounds: { delayMs: 5 }, ...rest });
  opened.push(server);
  return { collector, upstream, server };
}

async function ask(server: TestServer, body: unknown = chat, headers: Record<string, string> = {}) {
  const response = await server.request("/v1/chat/completions", { body, headers });
  return { status: response.status, text: await response.text(), id: response.headers.get("x-request-id") ?? "" };
}

/** The spans of one request, once its exchange is over. */
async function tree({ collector }: Pick<World, "collector">, requestId: string) {
  const root = await until(
    () => collector.spans.find(({ attributes }) => attributes["headrace.request.id"] === requestId),
    `the span of ${requestId}`,
  );
  const children = collector.spans.filter(({ parentSpanId }) => parentSpanId === root.spanId);
  return { root, children, attempts: children.filter(({ kind }) => kind === 3) };
}

const within = (inner: ReceivedSpan, outer: ReceivedSpan) =>
  outer.startNs <= inner.startNs && inner.startNs <= inner.endNs && inner.endNs <= outer.endNs;

describe("traces of a request", () => {
  test("traces a request and its attempt by the generative AI conventions, and logs their id", async () => {
    const it = await world();
    it.upstream.script((_, res) =>
      json(res, 200, {
        id: "chatcmpl-9",
        object: "chat.completion",
        created: 1,
        model: "upstream-model-2026",
        choices: [{ index: 0, message: { role: "assistant", content: "CANARYANSWER" }, finish_reason: "stop" }],
        usage: {
          prompt_tokens: 11,
          completion_tokens: 7,
          total_tokens: 18,
          prompt_tokens_details: { cached_tokens: 3, cache_write_tokens: 2 },
          completion_tokens_details: { reasoning_tokens: 5 },
        },
      }),
    );
    const parameters = {
      max_tokens: 50,
      temperature: 0.25,
      top_p: 0.5,
      stop: "CANARYSTOP",
      user: "CANARYUSER",
      seed: 4,
    };
    const { id } = await ask(it.server, { ...chat, ...parameters });
    const { root, attempts, children } = await tree(it, id);
    expect(root).toMatchObject({ name: "POST /v1/chat/completions", kind: 2, status: 0, parentSpanId: "" });
    expect(root.attributes).toEqual({
      "http.request.method": "POST",
      "http.route": "/v1/chat/completions",
      "http.response.status_code": 200,
      "headrace.request.id": id,
      "headrace.key.id": it.server.firstKey.record.id,
      "headrace.operation": "chat",
      "headrace.model": "upstream-model",
      "headrace.stream": false,
      "headrace.outcome": "completed",
      "headrace.attempts": 1,
      "openinference.span.kind": "CHAIN",
      "user.id": it.server.firstKey.record.id,
    });
    expect(children).toHaveLength(1);
    const [attempt] = attempts as [ReceivedSpan];
    expect(within(attempt, root)).toBe(true);
    expect(attempt).toMatchObject({ name: "chat upstream-model", traceId: root.traceId, status: 0 });
    expect(attempt.attributes).toEqual({
      "gen_ai.operation.name": "chat",
      "gen_ai.provider.name": "up",
      "gen_ai.request.model": "upstream-model",
      "gen_ai.request.max_tokens": 50,
      "gen_ai.request.temperature": 0.25,
      "gen_ai.request.top_p": 0.5,
      "gen_ai.request.seed": 4,
      "gen_ai.response.id": "chatcmpl-9",
      "gen_ai.response.model": "upstream-model-2026",
      "gen_ai.response.finish_reasons": ["stop"],
      "gen_ai.usage.input_tokens": 11,
      "gen_ai.usage.output_tokens": 7,
      "gen_ai.usage.cache_read.input_tokens": 3,
      "gen_ai.usage.cache_creation.input_tokens": 2,
      "gen_ai.usage.reasoning.output_tokens": 5,
      "headrace.upstream": "up",
      "headrace.model": "upstream-model",
      "headrace.outcome": "completed",
      "user.id": it.server.firstKey.record.id,
      "server.address": "127.0.0.1",
      "server.port": Number(new URL(it.upstream.url).port),
    });
    expect(it.server.logged("request").at(-1)).toMatchObject({ id, trace_id: root.traceId });
    expect(it.collector.resource).toMatchObject({ "service.name": "headrace", "service.version": expect.any(String) });
    expect(it.collector.text()).not.toContain("CANARY");
  });

  test("traces the first byte, first token and engine figures of a streamed request", async () => {
    const it = await world();
    it.upstream.script(async (_, res) => {
      res.writeHead(200, { "content-type": "text/event-stream" });
      res.write(chunk({ role: "assistant", content: "" }));
      await Bun.sleep(20);
      for (const piece of ["a", "b", "c", "d"]) res.write(chunk({ content: piece }));
      await Bun.sleep(5);
      const usage = { prompt_tokens: 5, completion_tokens: 4, total_tokens: 9 };
      res.end(`${chunk({}, "length", { usage })}data: [DONE]\n\n`);
    });
    const { id } = await ask(it.server, { ...chat, stream: true });
    const { root, attempts } = await tree(it, id);
    const [attempt] = attempts as [ReceivedSpan];
    expect(attempt.attributes).toMatchObject({
      "gen_ai.request.stream": true,
      "gen_ai.response.id": "chatcmpl-up",
      "gen_ai.response.finish_reasons": ["length"],
      "gen_ai.usage.output_tokens": 4,
    });
    expect(attempt.events.map(({ name }) => name)).toEqual(["headrace.first_token"]);
    const firstTokenSeconds = Number((attempt.events[0]?.ns ?? 0n) - attempt.startNs) / 1e9;
    const firstByteSeconds = Number(attempt.attributes["gen_ai.response.time_to_first_chunk"]);
    expect(firstTokenSeconds).toBeGreaterThan(0.015);
    expect(firstByteSeconds).toBeGreaterThan(0);
    expect(firstByteSeconds).toBeLessThan(firstTokenSeconds);
    expect(within(attempt, root)).toBe(true);
  });

  test("traces each WebSocket message of Responses as a request of its own", async () => {
    const it = await world();
    const socket = new WebSocket(`${it.server.url.replace("http", "ws")}/v1/responses`, {
      headers: { authorization: `Bearer ${it.server.key}` },
    } as never);
    const ended = new Promise<void>((resolve) => {
      socket.onmessage = ({ data }) => {
        if (String(data).includes('"response.completed"')) resolve();
      };
    });
    socket.onopen = () =>
      socket.send(JSON.stringify({ type: "response.create", model: chat.model, input: "CANARYPROMPT", store: false }));
    await ended;
    socket.close();
    const { id, trace_id } = await until(
      () => it.server.logged("request").find(({ websocket }) => websocket === true),
      "the line of the message",
    );
    const { root, attempts } = await tree(it, String(id));
    expect(root.traceId).toBe(String(trace_id));
    expect(root.attributes).toMatchObject({ "http.route": "/v1/responses", "http.response.status_code": 200 });
    expect(attempts).toMatchObject([{ attributes: { "headrace.upstream": "up", "headrace.outcome": "completed" } }]);
    expect(it.collector.text()).not.toContain("CANARY");
  });

  test("traces an attempt for each upstream of a retried request", async () => {
    const bad = await startUpstream((_, res) => json(res, 500, { error: { message: "CANARYFAULT" } }));
    opened.push(bad);
    const it = await world("", {
      more: (good) =>
        `upstreams:\n  - { name: bad, url: "${bad.url}", discover: false }\n  - { name: good, url: "${good.url}", discover: false }\n` +
        "models:\n  - id: both\n    deployments: [{ upstream: bad, model: m1, weight: 1000000 }, { upstream: good, model: m2 }]\n",
    });
    const { id, status } = await ask(it.server, { ...chat, model: "both" });
    expect(status).toBe(200);
    const { root, attempts } = await tree(it, id);
    const [first, second] = attempts.sort((a, b) => Number(a.startNs - b.startNs)) as [ReceivedSpan, ReceivedSpan];
    expect(attempts).toHaveLength(2);
    expect(first).toMatchObject({ name: "chat m1", status: 2 });
    expect(first.attributes).toMatchObject({ "headrace.upstream": "bad", "error.type": "upstream_error" });
    expect(second).toMatchObject({ name: "chat m2", status: 0 });
    expect(second.attributes).toMatchObject({ "headrace.upstream": "good", "headrace.outcome": "completed" });
    expect(first.endNs <= second.startNs).toBe(true);
    expect(root.attributes).toMatchObject({ "headrace.attempts": 2, "http.response.status_code": 200 });
    // Each upstream sees the span of its own attempt as its parent.
    expect(bad.requests[0]?.headers["traceparent"]).toBe(`00-${root.traceId}-${first.spanId}-01`);
    expect(it.upstream.requests[0]?.headers["traceparent"]).toBe(`00-${root.traceId}-${second.spanId}-01`);
    expect(it.collector.text()).not.toContain("CANARY");
  });

  test("ends every span of a failed, cut, refused or left request with its outcome", async () => {
    const it = await world();
    it.upstream.script((_, res) => json(res, 503, {}));
    const failed = await tree(it, (await ask(it.server)).id);
    expect(failed.root).toMatchObject({ status: 2 });
    expect(failed.root.attributes).toMatchObject({ "error.type": "service_unavailable", "headrace.outcome": "failed" });
    expect(failed.attempts.every(({ status }) => status === 2)).toBe(true);

    it.upstream.script((_, res) => {
      res.writeHead(200, { "content-type": "text/event-stream" });
      res.end(`${chunk({ content: "half" })}data: {"error":{"message":"CANARYFAULT"}}\n\n`);
    });
    const broken = await tree(it, (await ask(it.server, { ...chat, stream: true })).id);
    expect(broken.root).toMatchObject({ status: 2 });
    expect(broken.root.attributes).toMatchObject({ "http.response.status_code": 200, "error.type": "upstream_error" });
    expect(broken.attempts[0]?.attributes).toMatchObject({
      "error.type": "upstream_error",
      "headrace.outcome": "failed",
    });

    const unknown = await tree(it, (await ask(it.server, { ...chat, model: "CANARYMODEL" })).id);
    expect(unknown.root).toMatchObject({ status: 0 });
    expect(unknown.root.attributes).toMatchObject({
      "http.response.status_code": 404,
      "error.type": "model_not_found",
    });
    expect(unknown.children).toEqual([]);

    it.upstream.script((_, res) => {
      res.writeHead(200, { "content-type": "text/event-stream" });
      res.write(chunk({ content: "x" }));
    });
    const leaving = new AbortController();
    const response = await it.server.request("/v1/chat/completions", {
      body: { ...chat, stream: true },
      signal: leaving.signal,
    });
    const reader = response.body?.getReader();
    await reader?.read();
    leaving.abort();
    const left = await tree(it, response.headers.get("x-request-id") ?? "");
    expect(left.root.status).toBe(0);
    expect(left.root.attributes).toMatchObject({ "headrace.outcome": "cancelled" });
    expect(left.attempts[0]?.attributes).toMatchObject({ "headrace.outcome": "cancelled" });
    expect(left.attempts[0]?.status).toBe(0);
  });

  test("traces a client that leaves before the answer without an error", async () => {
    const it = await world();
    it.upstream.script(() => {});
    const leaving = new AbortController();
    const asked = it.server.request("/v1/chat/completions", { body: chat, signal: leaving.signal }).catch(() => {});
    await until(() => it.upstream.requests.length > 0, "the request at the upstream");
    leaving.abort();
    await asked;
    const line = await until(() => it.server.logged("request").find(({ status }) => status === 499), "its line");
    const { root, attempts } = await tree(it, String(line["id"]));
    expect(root).toMatchObject({ status: 0, attributes: { "headrace.outcome": "cancelled" } });
    expect(attempts).toMatchObject([{ status: 0, attributes: { "error.type": "cancelled" } }]);
  });

  test("traces a request refused by a limit without an attempt", async () => {
    const tier =
      "tiers: [{ name: enterprise, requests_per_minute: 1, tokens_per_minute: null, environments: [live, test, dev] }]\n";
    const it = await world("", { more: (upstream) => upstreamYaml(upstream, tier) });
    let last = await ask(it.server);
    for (let i = 0; i < 5 && last.status !== 429; i++) last = await ask(it.server);
    expect(last.status).toBe(429);
    const { root, children } = await tree(it, last.id);
    expect(root.attributes).toMatchObject({ "http.response.status_code": 429, "error.type": "rate_limit_exceeded" });
    expect([root.status, children]).toEqual([0, []]);
  });

  test("traces a request's wait for a slot", async () => {
    const it = await world("", {
      more: (up) => `upstreams: [{ name: up, url: "${up.url}", max_concurrency: 1 }]\n`,
    });
    const { promise: go, resolve } = Promise.withResolvers<void>();
    it.upstream.script(async (_, res) => {
      await go;
      json(res, 200, { choices: [{ message: { role: "assistant", content: "x" } }] });
    });
    const first = ask(it.server);
    await until(() => it.upstream.requests.length === 1, "the first at the upstream");
    const second = ask(it.server);
    await until(() => it.server.capacity.waiting === 1, "the second in the queue");
    resolve();
    await first;
    const { root, children } = await tree(it, (await second).id);
    const names = children.sort((a, b) => Number(a.startNs - b.startNs)).map(({ name }) => name);
    expect(names).toEqual(["wait for capacity", "chat upstream-model"]);
    expect(children.every((child) => within(child, root))).toBe(true);
  });
});

describe("sampling of traces", () => {
  const traced = async (it: World, headers: Record<string, string>) => {
    const { id } = await ask(it.server, chat, headers);
    await until(() => it.server.logged("request").some((line) => line["id"] === id), "its line");
    return it.server.logged("request").find((line) => line["id"] === id)?.["trace_id"];
  };

  test("continues a client's trace and state to the upstream, and starts none that it does not sample", async () => {
    const it = await world(", sample: 0");
    const { id } = await ask(it.server, chat, { traceparent: clientParent, tracestate: "vendor=a, other=b" });
    const { root, attempts } = await tree(it, id);
    expect(root).toMatchObject({ traceId, parentSpanId: "b7ad6b7169203331", tracestate: "vendor=a,other=b" });
    expect(it.upstream.requests[0]?.headers).toMatchObject({
      traceparent: `00-${traceId}-${attempts[0]?.spanId}-01`,
      tracestate: "vendor=a,other=b",
    });
    expect(await traced(it, {})).toBeUndefined();
    expect(await traced(it, { traceparent: clientParent.replace(/01$/, "00") })).toBeUndefined();
    expect(it.upstream.requests.at(-1)?.headers["traceparent"]).toBeUndefined();
  });

  test("traces no request without a key, whatever the sampling ratio and header", async () => {
    const it = await world();
    const refused = await ask(it.server, chat, { traceparent: clientParent, authorization: "Bearer sk_dev_hr_no" });
    expect(refused.status).toBe(401);
    await fetch(`${it.server.url}/healthz`, { headers: { traceparent: clientParent } });
    const { id } = await ask(it.server);
    await tree(it, id);
    expect(it.collector.spans.some((span) => span.traceId === traceId)).toBe(false);
  });

  test("limits the traces that a client can force", async () => {
    const it = await world(", sample: 0");
    const ids = await Promise.all(Array.from({ length: 200 }, () => traced(it, { traceparent: clientParent })));
    const count = ids.filter(Boolean).length;
    expect(count).toBeGreaterThanOrEqual(50);
    // Ten a second come on top of the fifty at once.
    expect(count).toBeLessThan(200);
  });

  test("loads no tracing code with tracing off", async () => {
    const count = 'Object.keys(require.cache).filter((name) => name.includes("opentelemetry")).length';
    const program = `await import("./src/server/serve.ts"); console.log(${count});
      await import("./src/tracing/open-tracing.ts"); console.log(${count} > 0);`;
    const child = Bun.spawn([process.execPath, "-e", program], {
      cwd: join(import.meta.dir, "..", ".."),
      stdout: "pipe",
    });
    expect(await new Response(child.stdout).text()).toBe("0\ntrue\n");
  });

  test("passes on and logs no trace ids with tracing off", async () => {
    await using upstream = await startUpstream();
    await using server = await startHeadrace({ yaml: upstreamYaml(upstream) });
    const { id } = await ask(server, chat, { traceparent: clientParent, tracestate: "a=b" });
    expect(upstream.requests[0]?.headers).not.toHaveProperty("traceparent");
    expect(upstream.requests[0]?.headers).not.toHaveProperty("tracestate");
    expect(server.logged("request").find((line) => line["id"] === id)).not.toHaveProperty("trace_id");
  });
});

describe("content in traces", () => {
  test("includes content in a trace if configured, truncated and without keys", async () => {
    const it = await world(", content: true");
    const key = await addKey(it.server);
    const messages = [
      { role: "system", content: "old ".repeat(5_000) },
      { role: "user", content: `CANARYPROMPT with ${key} and sk-upstream-secret-0123456789` },
    ];
    const whole = await tree(it, (await ask(it.server, { ...chat, messages })).id);
    const input = JSON.parse(String(whole.attempts[0]?.attributes["gen_ai.input.messages"])) as unknown[];
    expect(input).toMatchObject([
      { role: "system", parts: [{ type: "text" }] },
      { role: "user", parts: [{ type: "text", content: expect.stringContaining("CANARYPROMPT with sk_dev_hr_…") }] },
    ]);
    expect(JSON.stringify(input).length).toBeLessThan(9_000);
    expect(whole.attempts[0]?.attributes["gen_ai.output.messages"]).toContain('"role":"assistant"');

    it.upstream.script((_, res) => {
      res.writeHead(200, { "content-type": "text/event-stream" });
      res.end(
        `${["CANARY", "ANSWER", "!"].map((content) => chunk({ content })).join("")}${chunk({}, "stop")}data: [DONE]\n\n`,
      );
    });
    const streamed = await tree(it, (await ask(it.server, { ...chat, stream: true })).id);
    expect(JSON.parse(String(streamed.attempts[0]?.attributes["gen_ai.output.messages"]))).toEqual([
      { role: "assistant", parts: [{ type: "text", content: "CANARYANSWER!" }], finish_reason: "stop" },
    ]);
    for (const secret of [key, it.server.key, "sk-upstream-secret"]) expect(it.collector.text()).not.toContain(secret);
  });

  test("gives Langfuse and Phoenix the prompt, answer, user and session at the root of a trace", async () => {
    const it = await world(", content: true");
    it.upstream.script((_, res) => {
      const choices = [{ index: 0, message: { role: "assistant", content: "It is sunny." }, finish_reason: "stop" }];
      json(res, 200, { id: "c", object: "chat.completion", created: 1, model: "upstream-model", choices });
    });
    const messages = [{ role: "user", content: "How is the weather?" }];
    const headers = { "x-session-id": "session-7" };
    const { id } = await ask(it.server, { model: "upstream-model", messages, user: "end-user-3" }, headers);
    const { root, attempts } = await tree(it, id);
    const ids = { "user.id": "end-user-3", "session.id": "session-7" };
    const [sent, said] = [root.attributes["input.value"], root.attributes["output.value"]];
    expect(root.attributes).toMatchObject({
      ...{ ...ids, "openinference.span.kind": "CHAIN" },
      ...{ "input.mime_type": "application/json", "output.mime_type": "application/json" },
    });
    expect(JSON.parse(String(sent))).toEqual([
      { role: "user", parts: [{ type: "text", content: "How is the weather?" }] },
    ]);
    expect(JSON.parse(String(said))).toMatchObject([{ parts: [{ content: "It is sunny." }] }]);
    expect(attempts[0]?.attributes).toMatchObject({
      ...ids,
      ...{ "gen_ai.operation.name": "chat", "gen_ai.input.messages": sent, "gen_ai.output.messages": said },
    });
  });

  test("posts traces as protobuf if configured, as Phoenix requires", async () => {
    const received: { type: string | null; body: Buffer }[] = [];
    await using receiver = Bun.serve({
      hostname: "127.0.0.1",
      port: 0,
      async fetch(request) {
        const type = request.headers.get("content-type");
        if (type !== "application/x-protobuf") return new Response("", { status: 415 });
        received.push({ type, body: Buffer.from(await request.arrayBuffer()) });
        return new Response("", { headers: { "content-type": "application/x-protobuf" } });
      },
    });
    await using upstream = await startUpstream();
    const tracing = `tracing: { endpoint: "http://127.0.0.1:${receiver.port}", protocol: http/protobuf, content: true }\n`;
    await using server = await startHeadrace({ yaml: upstreamYaml(upstream) + tracing, spanBounds: { delayMs: 5 } });
    const { id } = await ask(server);
    await until(() => received.some(({ body }) => body.includes(id)), "the spans");
    const bytes = Buffer.concat(received.map(({ body }) => body));
    for (const text of ["service.name", "input.value", "CANARYPROMPT", "gen_ai.request.model", "user.id"]) {
      expect(bytes.includes(text)).toBe(true);
    }
    expect(server.logged("spans_dropped")).toEqual([]);
  });

  test("keeps keys out of all spans, even if an upstream repeats its key as a name", async () => {
    const it = await world(", content: true");
    it.upstream.script((_, res) =>
      json(res, 200, {
        id: "sk-upstream-secret-0123456789",
        model: `you sent sk-upstream-secret-0123456789 and ${it.server.key}`,
        choices: [{ message: { content: `Bearer ${it.server.key}` }, finish_reason: "sk-upstream-secret-0123456789" }],
      }),
    );
    const { id } = await ask(it.server);
    await tree(it, id);
    expect(it.collector.text()).toContain("[redacted]");
    for (const secret of [it.server.key, "sk-upstream-secret"]) expect(it.collector.text()).not.toContain(secret);
  });
});

describe("a trace collector", () => {
  async function served(endpoint: string) {
    const upstream = await startUpstream();
    opened.push(upstream);
    const yaml = upstreamYaml(upstream, `tracing: { endpoint: "${endpoint}" }\n`);
    const bounds = { delayMs: 1, maxWaiting: 4, batchSize: 2, farewellMs: 200 };
    const server = await startHeadrace({ yaml, spanBounds: bounds });
    for (let i = 0; i < 10; i++) expect((await ask(server)).status).toBe(200);
    const startedMs = performance.now();
    await server[Symbol.asyncDispose]();
    return { server, stoppedMs: performance.now() - startedMs };
  }

  test("loses only spans while a collector is away, counts them, warns once, and stops in time", async () => {
    const { server, stoppedMs } = await served("http://127.0.0.1:9");
    // The first that is dropped is told of at once, the rest at the end.
    const reported = server.logged("spans_dropped");
    expect(reported.length).toBeLessThanOrEqual(2);
    expect(reported.reduce((sum, line) => sum + Number(line["spans"]), 0)).toBe(20);
    expect(stoppedMs).toBeLessThan(withinMs(8_000));
  });

  test("delays neither requests nor shutdown for a silent collector", async () => {
    const hanging = startCollector(() => new Promise(() => {}));
    opened.push(hanging);
    const { server, stoppedMs } = await served(hanging.url);
    expect(server.logged("spans_dropped").length).toBeLessThanOrEqual(2);
    expect(stoppedMs).toBeLessThan(withinMs(8_000));
  });

  test("sends a collector its credential, and reports its refusal without it", async () => {
    const refusing = startCollector(() => new Response("no", { status: 401 }));
    const upstream = await startUpstream();
    opened.push(refusing, upstream);
    const yaml = upstreamYaml(
      upstream,
      `tracing: { endpoint: "${refusing.url}", headers: { authorization: Token canary } }\n`,
    );
    await using server = await startHeadrace({ yaml, spanBounds: { delayMs: 1 }, env: {} });
    await ask(server);
    await until(() => server.logged("spans_dropped").length > 0, "the warning");
    expect(refusing.requests[0]).toMatchObject({ path: "/v1/traces" });
    expect(refusing.requests[0]?.headers.get("authorization")).toBe("Token canary");
    expect(server.logText()).not.toContain("canary");
  });
});

test("flushes remaining spans to the collector at shutdown", async () => {
  const it = await world("", { spanBounds: { delayMs: 60_000 } });
  await ask(it.server);
  expect(it.collector.spans).toEqual([]);
  await it.server.close();
  expect(it.collector.spans).toHaveLength(2);
});
