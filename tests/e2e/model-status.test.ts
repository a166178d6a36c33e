// The state of models on a running server: speed, queue and failures of the places where they run.
import { afterEach, expect, test } from "bun:test";
import { startHeadrace, type TestServer, until } from "../support/headrace.ts";
import { shiftedClock } from "../support/manual-clock.ts";
import { mintKey } from "../support/mint-key.ts";
import { chatScript, chunk, json, startUpstream } from "../support/scripted-upstream.ts";

const stack: AsyncDisposable[] = [];
afterEach(async () => {
  for (const part of stack.splice(0).reverse()) await part[Symbol.asyncDispose]();
});

async function start(yaml = (url: string) => `upstreams: [{ name: up, url: "${url}", max_concurrency: 1 }]\n`) {
  const upstream = await startUpstream();
  stack.push(upstream);
  const clock = shiftedClock();
  const server = await startHeadrace({ clock, yaml: yaml(upstream.url) });
  stack.push(server);
  return { upstream, server, clock };
}

async function modelStatus(server: TestServer, key = server.key) {
  const response = await server.request("/v1/model-status", { headers: { authorization: `Bearer ${key}` } });
  expect(response.status).toBe(200);
  return (await response.json()).data;
}

const deploymentOf = async (server: TestServer) => (await modelStatus(server))[0].deployments[0];

function chat(server: TestServer, body: object = {}): Promise<Response> {
  const messages = [{ role: "user", content: "Hi" }];
  return server.request("/v1/chat/completions", { body: { model: "upstream-model", messages, ...body } });
}

test("shows a declared model's price, and the model only to keys of its environments", async () => {
  const { server } = await start(
    (url) => `upstreams: [{ name: up, url: "${url}", discover: false }]
models:
  - id: mine
    environments: [dev]
    price: { input: 0.5, output: 1.5 }
    deployments: [{ upstream: up, model: upstream-model }]
`,
  );
  const own = { upstream: "up", kind: "configured", model: "upstream-model", state: "ok", running: 0, waiting: 0 };
  const none = { low: 0, normal: 0, high: 0 };
  const idle = { waiting_by_priority: none, expected_wait_ms: none };
  expect(await modelStatus(server)).toEqual([
    {
      object: "model_status",
      id: "mine",
      environments: ["dev"],
      price: { input: 0.5, output: 1.5 },
      deployments: [
        {
          ...{ ...own, ...idle, process: null, concurrency: null, attempts: null },
          ...{ first_token_ms: null, tokens_per_second: null, percentiles: null },
        },
      ],
    },
  ]);
  const live = await mintKey(server.dataDir, { scopes: ["models:read"], environment: "test" });
  expect(await modelStatus(server, live)).toEqual([]);
});

test("reports speed from the last streams with a delay of seconds at most", async () => {
  const { server, upstream, clock } = await start();
  const go = Promise.withResolvers<void>();
  upstream.script(async (_request, res) => {
    res.writeHead(200, { "content-type": "text/event-stream" });
    res.write(chunk({ role: "assistant", content: "One" }));
    await go.promise;
    for (const word of [" two", " three"]) res.write(chunk({ content: word }));
    res.write(chunk({}, "stop"));
    res.end("data: [DONE]\n\n");
  });
  expect(await deploymentOf(server)).toMatchObject({ first_token_ms: null, tokens_per_second: null });
  const response = await chat(server, { stream: true });
  const reader = response.body?.getReader();
  await reader?.read();
  await Bun.sleep(20);
  go.resolve();
  while (!(await reader?.read())?.done);
  await server.governance.ledger.flush();
  clock.shift(6);
  const { first_token_ms, tokens_per_second } = await deploymentOf(server);
  expect(first_token_ms).toBeGreaterThanOrEqual(0);
  // At most two tokens in 20 ms.
  expect(tokens_per_second).toBeGreaterThan(0);
  expect(tokens_per_second).toBeLessThan(120);
});

test("reports running and waiting requests and failures at once", async () => {
  const { server, upstream } = await start();
  const gate = Promise.withResolvers<void>();
  upstream.script(async (request, res) => {
    await gate.promise;
    await chatScript()(request, res);
  });
  const open = [chat(server), chat(server), chat(server)];
  await until(async () => (await deploymentOf(server)).waiting === 2, "two that wait");
  expect(await deploymentOf(server)).toMatchObject({ running: 1, waiting: 2, concurrency: 1, state: "ok" });
  gate.resolve();
  for (const response of open) expect((await response).status).toBe(200);
  await until(async () => (await deploymentOf(server)).running === 0, "nothing that runs");

  upstream.script((_request, res) => json(res, 500, {}));
  expect((await chat(server)).status).toBe(502);
  expect((await deploymentOf(server)).state).toBe("cooling_down");
  await upstream[Symbol.asyncDispose]();
  await server.catalog.refresh();
  expect((await deploymentOf(server)).state).toBe("unreachable");
});
