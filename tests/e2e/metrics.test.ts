// The metrics of a running server: they equal what was sent, and show what is full, slow, away or refused.
import { afterEach, expect, test } from "bun:test";
import { type Metrics, parseMetrics, scrape } from "../support/exposition.ts";
import { startHeadrace, type TestServer, type TestServerOptions, until } from "../support/headrace.ts";
import { joinNode } from "../support/joined-node.ts";
import { mintKey } from "../support/mint-key.ts";
import { startGateway } from "../support/nodes.ts";
import {
  chatScript,
  chunk,
  json,
  type Script,
  type ScriptedUpstream,
  startUpstream,
  upstreamYaml,
} from "../support/scripted-upstream.ts";

const stack: AsyncDisposable[] = [];
afterEach(async () => {
  for (const part of stack.splice(0).reverse()) await part[Symbol.asyncDispose]();
});

const model = "upstream-model";
const priced = `models: [{ id: ${model}, price: { input: 1, output: 2 }, deployments: [{ upstream: up, model: ${model} }] }]\n`;

async function start(
  script: Script = chatScript(),
  yaml: (upstream: ScriptedUpstream) => string = (upstream) => upstreamYaml(upstream, priced),
  options: TestServerOptions = {},
) {
  const upstream = await startUpstream(script);
  stack.push(upstream);
  const server = await startHeadrace({ yaml: yaml(upstream), ...options });
  stack.push(server);
  return { upstream, server };
}

async function ask(server: TestServer, body: object = {}, key = server.key, signal?: AbortSignal): Promise<number> {
  const response = await server.request("/v1/chat/completions", {
    body: { model, messages: [{ role: "user", content: "Hi" }], ...body },
    headers: { authorization: `Bearer ${key}` },
    ...(signal ? { signal } : {}),
  });
  await response.text();
  return response.status;
}

/** A stream that is silent after its first word, until `go` says how it goes on. */
function held() {
  const { promise, resolve } = Promise.withResolvers<void>();
  const script: Script = async (_request, res) => {
    res.writeHead(200, { "content-type": "text/event-stream" });
    res.write(chunk({ role: "assistant", content: "Hello" }));
    await promise;
    if (!res.destroyed) res.end(`${chunk({ content: " world" })}${chunk({}, "stop")}data: [DONE]\n\n`);
  };
  return { script, go: resolve };
}

const requests = "headrace_inference_requests_total";

test("counts requests, tokens, money, attempts and refusals exactly", async () => {
  const { server, upstream } = await start();
  for (let i = 0; i < 3; i++) expect(await ask(server)).toBe(200);
  for (let i = 0; i < 2; i++) expect(await ask(server, { stream: true })).toBe(200);
  const slow = await mintKey(server.dataDir, { scopes: ["chat:write"], rateLimit: 1, rateLimitWindow: 3600 });
  expect([await ask(server, {}, slow), await ask(server, {}, slow), await ask(server, {}, slow)]).toEqual([
    200, 429, 429,
  ]);
  expect(await ask(server, { model: "none" })).toBe(404);
  expect(await ask(server, { messages: 7 })).toBe(400);
  expect(await ask(server, {}, `${server.key}x`)).toBe(401);
  upstream.script((_request, res) => json(res, 500, {}));
  expect(await ask(server)).toBe(502);

  const metrics = await scrape(server);
  const post = { route: "/v1/chat/completions", method: "POST" };
  const byStatus = [200, 429, 404, 400, 401, 502].map((status) =>
    metrics.get("headrace_http_requests_total", { ...post, status: String(status) }),
  );
  expect(byStatus).toEqual([6, 2, 1, 1, 1, 1]);
  expect(metrics.get("headrace_http_request_duration_seconds_count", post)).toBe(12);
  expect(metrics.samples.filter(({ name }) => name === requests).map(({ labels, value }) => [labels, value])).toEqual([
    [{ operation: "chat", model, upstream: "up", outcome: "completed", error_code: "", environment: "dev" }, 6],
    [
      {
        operation: "chat",
        model,
        upstream: "",
        outcome: "refused",
        error_code: "rate_limit_exceeded",
        environment: "dev",
      },
      2,
    ],
    [
      { operation: "chat", model, upstream: "", outcome: "failed", error_code: "upstream_error", environment: "dev" },
      1,
    ],
  ]);
  // The model server reports 7 and 2 tokens for each that was served.
  expect(metrics.get("headrace_prompt_tokens_total", { model })).toBe(42);
  expect(metrics.get("headrace_completion_tokens_total", { model })).toBe(12);
  expect(metrics.get("headrace_spend_usd_total", { model })).toBeCloseTo(6 * (7e-6 + 4e-6), 12);
  expect(metrics.get("headrace_upstream_attempts_total", { upstream: "up", result: "ok" })).toBe(6);
  expect(metrics.get("headrace_upstream_attempts_total", { upstream: "up", result: "upstream_error" })).toBe(1);
  expect(metrics.get("headrace_refusals_total", { reason: "key_requests" })).toBe(2);
  expect(metrics.get("headrace_refusals_total")).toBe(2);
  for (const name of ["inference_duration", "queue_time"]) {
    expect(metrics.get(`headrace_${name}_seconds_count`, { model })).toBe(7);
  }
  expect(metrics.get("headrace_time_to_first_token_seconds_count", { model })).toBeLessThanOrEqual(2);
  expect(metrics.get("headrace_inference_requests_in_flight")).toBe(0);
  // The same as in the usage report.
  const [row] = (await (await server.request("/v1/usage")).json()).data;
  expect([row.requests, row.prompt_tokens, row.completion_tokens]).toEqual([7, 42, 12]);
});

test("counts an open stream, times its first token and its end, and counts a left one as cancelled", async () => {
  const first = held();
  const { server, upstream } = await start(first.script);
  const whole = ask(server, { stream: true });
  const open = { model };
  await until(() => upstream.requests.length === 1, "a request that runs");
  let metrics = await scrape(server);
  expect(metrics.get("headrace_inference_requests_in_flight", open)).toBe(1);
  expect(metrics.get("headrace_upstream_places_in_use", { upstream: "up" })).toBe(1);
  expect(metrics.get("headrace_ledger_open_requests")).toBe(1);
  expect(metrics.get("headrace_http_requests_in_flight")).toBe(2);
  expect(metrics.get("headrace_connections_open")).toBeGreaterThanOrEqual(2);
  first.go();
  expect(await whole).toBe(200);

  const second = held();
  upstream.script(second.script);
  const leaving = new AbortController();
  const left = ask(server, { stream: true }, server.key, leaving.signal).catch(() => 0);
  await until(() => upstream.requests.length === 2, "a second one");
  leaving.abort();
  await left;
  metrics = await until(async () => {
    const now = await scrape(server);
    return now.get(requests, { outcome: "cancelled" }) === 1 ? now : undefined;
  }, "the cancelled one is counted");
  second.go();
  expect(metrics.get(requests, { outcome: "completed" })).toBe(1);
  expect(metrics.get("headrace_http_requests_total", { status: "200", route: "/v1/chat/completions" })).toBeGreaterThan(
    0,
  );
  expect(metrics.get("headrace_time_to_first_token_seconds_count", open)).toBeGreaterThanOrEqual(1);
  expect(metrics.get("headrace_time_per_output_token_seconds_count", open)).toBeGreaterThanOrEqual(1);
  expect(metrics.get("headrace_inference_duration_seconds_count", open)).toBe(2);
  expect(metrics.get("headrace_inference_requests_in_flight", open)).toBe(0);
  expect(metrics.get("headrace_upstream_places_in_use", { upstream: "up" })).toBe(0);
});

test("shows a full upstream's slots, queue, waits and refusals", async () => {
  const gate = Promise.withResolvers<void>();
  const { server, upstream } = await start(
    async (request, res) => {
      await gate.promise;
      await chatScript()(request, res);
    },
    ({ url }) => `upstreams: [{ name: up, url: "${url}", max_concurrency: 1 }]\nlimits: { queue: 1 }\n`,
  );
  const runs = ask(server);
  await until(() => upstream.requests.length === 1, "a request that runs");
  const waits = ask(server);
  const metrics = await until(async () => {
    const now = await scrape(server);
    return now.get("headrace_inference_requests_waiting", { model }) === 1 ? now : undefined;
  }, "one that waits");
  expect(await ask(server)).toBe(503);
  expect(metrics.get("headrace_upstream_places", { upstream: "up" })).toBe(1);
  expect(metrics.get("headrace_upstream_places_in_use", { upstream: "up" })).toBe(1);
  expect(metrics.get("headrace_upstream_waiting", { upstream: "up" })).toBe(1);
  const byPriority = ["low", "normal", "high"].map((priority) =>
    metrics.get("headrace_requests_waiting_by_priority", { priority }),
  );
  expect(byPriority).toEqual([0, 1, 0]);
  expect(metrics.get("headrace_inference_requests_in_flight", { model })).toBe(2);
  gate.resolve();
  expect([await runs, await waits]).toEqual([200, 200]);
  const after = await scrape(server);
  expect(after.get("headrace_refusals_total", { reason: "capacity" })).toBe(1);
  expect(after.get(requests, { error_code: "service_unavailable", outcome: "failed" })).toBe(1);
  expect(after.get("headrace_queue_time_seconds_sum", { model })).toBeGreaterThan(0);
  expect(after.get("headrace_inference_requests_waiting", { model })).toBe(0);
});

test("counts retries and fallbacks, and shows an unreachable upstream as down", async () => {
  const broken = await startUpstream((_request, res) => void res.destroy());
  stack.push(broken);
  const { server } = await start(
    chatScript(),
    ({ url }) => `upstreams:
  - { name: broken, url: "${broken.url}", discover: false }
  - { name: up, url: "${url}", discover: false }
models:
  - { id: main, deployments: [{ upstream: broken, model: upstream-model }], fallbacks: [spare] }
  - { id: spare, deployments: [{ upstream: up, model: upstream-model }] }
`,
  );
  const up = (metrics: Metrics, upstream: string) => metrics.get("headrace_upstream_up", { upstream });
  const before = await scrape(server);
  expect([up(before, "broken"), up(before, "up")]).toEqual([1, 1]);
  expect(await ask(server, { model: "main" })).toBe(200);
  const metrics = await scrape(server);
  expect(metrics.get("headrace_retries_total", { model: "main" })).toBe(1);
  expect(metrics.get("headrace_fallbacks_total", { model: "main" })).toBe(1);
  expect(metrics.get(requests, { model: "main", upstream: "up", outcome: "completed" })).toBe(1);
  expect([up(metrics, "broken"), up(metrics, "up")]).toEqual([0, 1]);
  expect(metrics.get("headrace_upstream_resting", { upstream: "broken" })).toBe(1);
  expect(metrics.get("headrace_catalog_models")).toBe(2);
});

test("shows an upstream that never lists its models as up while it serves them", async () => {
  const { server } = await start(
    chatScript(),
    ({ url }) => `upstreams: [{ name: up, url: "${url.replace("/v1", "/nothing")}", discover: false }]\n${priced}`,
  );
  const silent = Bun.serve({
    ...{ hostname: "127.0.0.1", port: 0 },
    fetch: ({ method }) =>
      method === "POST"
        ? Response.json({
            id: "x",
            object: "chat.completion",
            created: 1,
            model,
            choices: [{ message: {} }],
            usage: {},
          })
        : new Response("", { status: 404 }),
  });
  stack.push({ [Symbol.asyncDispose]: () => silent.stop(true) });
  await server.reconfigure(`upstreams: [{ name: up, url: "${silent.url}v1", discover: false }]\n${priced}`);
  const up = async () => (await scrape(server)).get("headrace_upstream_up", { upstream: "up" });
  expect(await up()).toBe(0);
  await ask(server);
  expect(await up()).toBe(1);
});

test("shows a node by name, with its connection, and as an upstream", async () => {
  const gateway = await startGateway();
  stack.push(gateway);
  const { token } = await gateway.token(["*"]);
  const node = await joinNode({ url: gateway.url, token, name: "attic", models: ["attic-large"] });
  const shown = async () => {
    const metrics = await scrape(gateway);
    return [
      metrics.get("headrace_node_connected", { node: "attic" }),
      metrics.get("headrace_upstream_up", { upstream: "attic", source: "node" }),
    ];
  };
  await until(async () => String(await shown()) === "1,1", "it is there");
  await node[Symbol.asyncDispose]();
  await until(async () => String(await shown()) === "0,0", "it is away");
});

test("reports process resources and background work in both formats", async () => {
  const { server } = await start();
  const metrics = await scrape(server);
  for (const name of ["resident_memory_bytes", "start_time_seconds", "cpu_seconds_total", "open_fds", "max_fds"]) {
    expect(metrics.get(`process_${name}`), name).toBeGreaterThan(0);
  }
  expect(metrics.get("process_open_fds")).toBeLessThan(metrics.get("process_max_fds") ?? 0);
  expect(metrics.series("headrace_build_info")).toEqual([
    { version: expect.stringMatching(/^\d+\./), mode: "development", database: "sqlite" },
  ]);
  expect([metrics.get("headrace_ready"), metrics.get("headrace_degraded")]).toEqual([1, 0]);
  const checks = ["database", "clock", "spool", "secret", "connections", "memory", "models", "server"];
  expect(metrics.series("headrace_check").map(({ check }) => check)).toEqual(checks);
  await until(async () => ((await scrape(server)).get("headrace_event_loop_delay_seconds_count") ?? 0) > 1, "samples");

  const accept = "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5";
  const response = await fetch(`${server.url}/metrics`, { headers: { accept } });
  expect(response.headers.get("content-type")).toBe("application/openmetrics-text; version=1.0.0; charset=utf-8");
  const other = parseMetrics(await response.text(), "openmetrics");
  const names = (all: Metrics) => new Set(all.samples.map(({ name }) => name));
  expect(names(other)).toEqual(names(await scrape(server)));
  const plain = await fetch(`${server.url}/metrics`);
  expect(plain.headers.get("content-type")).toBe("text/plain; version=0.0.4; charset=utf-8");
  expect(plain.headers.get("cache-control")).toBe("no-store");
  await plain.bytes();
});

test("answers a scrape without reading a store", async () => {
  let statements = 0;
  const { server } = await start(chatScript(), undefined, {
    onDatabaseUse: () => {
      statements++;
    },
  });
  await ask(server);
  await server.governance.ledger.flush();
  // What runs all the time asks, too, about twice a second: one of many scrapes in a row comes between.
  let least = Number.POSITIVE_INFINITY;
  for (let i = 0; i < 20; i++) {
    const before = statements;
    await scrape(server);
    least = Math.min(least, statements - before);
  }
  expect(least).toBe(0);
});
