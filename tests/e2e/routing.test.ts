// Several deployments of a model: where requests go, what happens when one fails, and which model stands in.
import { afterEach, describe, expect, test } from "bun:test";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { startHeadrace, type TestServer, type TestServerOptions, until } from "../support/headrace.ts";
import { shiftedClock } from "../support/manual-clock.ts";
import { mintKey } from "../support/mint-key.ts";
import {
  chatScript,
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

async function upstreams(...scripts: Script[]): Promise<ScriptedUpstream[]> {
  const started = await Promise.all(scripts.map((script) => startUpstream(script)));
  stack.push(...started);
  return started;
}

async function gateway(
  servers: readonly ScriptedUpstream[],
  more: TestServerOptions & { models?: string } = {},
): Promise<TestServer> {
  const { models = "", ...options } = more;
  const named = servers.map(
    ({ url }, index) => `  - { name: up${index}, url: "${url}", discover: ${models === ""} }\n`,
  );
  const server = await startHeadrace({ yaml: `upstreams:\n${named.join("")}${models}`, ...options });
  stack.push(server);
  return server;
}

const fails: Script = (_request, response) => json(response, 500, { error: { message: "out of order" } });
const counts = (servers: readonly ScriptedUpstream[]) => servers.map(({ requests }) => requests.length);

function ask(server: TestServer, body: object = {}, key = server.key): Promise<Response> {
  return server.request("/v1/chat/completions", {
    body: { model: "upstream-model", messages: [{ role: "user", content: "Hi" }], ...body },
    headers: { authorization: `Bearer ${key}` },
  });
}

describe("upstream health", () => {
  test("sends a failing upstream one request after its pause while others are served elsewhere", async () => {
    let broken = true;
    let release: (() => void) | undefined;
    const [shaky, good] = await upstreams(async (request, response) => {
      if (broken) return fails(request, response);
      await new Promise<void>((resolve) => {
        release = resolve;
      });
      return chatScript()(request, response);
    }, chatScript());
    if (!shaky || !good) throw new Error("no upstream");
    const clock = shiftedClock();
    const server = await gateway([shaky, good], { clock });
    // Thirty come one after the other: the first that comes there goes on elsewhere, and the others never come there.
    for (let i = 0; i < 30; i++) expect((await ask(server)).status).toBe(200);
    expect(counts([shaky, good])).toEqual([1, 30]);
    broken = false;
    clock.shift(2.3);
    const trial = [ask(server), ask(server), ask(server), ask(server), ask(server), ask(server)];
    await until(() => release, "the trial");
    await until(() => good.requests.length === 35, "the others");
    expect(counts([shaky, good])).toEqual([2, 35]);
    release?.();
    expect((await Promise.all(trial)).map(({ status }) => status)).toEqual([200, 200, 200, 200, 200, 200]);
  });

  test("pauses an unreachable upstream, and detects its return by a probe before any request", async () => {
    const [good] = await upstreams(chatScript());
    const flaky = await portOf();
    if (!good) throw new Error("no upstream");
    flaky.start();
    const yaml = `upstreams:\n  - { name: good, url: "${good.url}" }\n  - { name: flaky, url: "${flaky.url}" }\n`;
    const clock = shiftedClock();
    const server = await startHeadrace({ yaml, clock });
    stack.push(server, flaky);
    const state = async () => {
      const { data } = (await (await server.request("/v1/model-status")).json()) as {
        data: { deployments: { upstream: string; state: string }[] }[];
      };
      return data[0]?.deployments.find(({ upstream }) => upstream === "flaky")?.state;
    };
    expect(await state()).toBe("ok");
    await flaky.stop();
    await until(async () => {
      expect((await ask(server)).status).toBe(200);
      return (await state()) === "cooling_down";
    }, "the rest");
    flaky.start();
    const before = flaky.posts();
    await until(async () => (await state()) === "ok", "the probe");
    expect(flaky.posts()).toBe(before);
  });
});

describe("retries during an outage", () => {
  test("ends retries with their budget if every upstream is down", async () => {
    const servers = await upstreams(fails, fails);
    const server = await gateway(servers);
    for (let i = 0; i < 60; i++) expect((await ask(server)).status).toBe(502);
    // Ten, and a fifth of sixty.
    const [one = 0, other = 0] = counts(servers);
    expect(one + other).toBeLessThanOrEqual(60 + 22);
    expect(one + other).toBeGreaterThanOrEqual(60 + 15);
  });
});

describe("routing by prompt prefix", () => {
  const system = { role: "system", content: "You answer in verse, whatever you are asked. ".repeat(60) };

  test("routes a conversation's turns to one upstream, and many conversations over all", async () => {
    const servers = await upstreams(chatScript(), chatScript(), chatScript());
    const server = await gateway(servers);
    const used = new Set<number>();
    for (let chat = 0; chat < 8; chat++) {
      const before = counts(servers);
      const messages: object[] = [{ role: "user", content: `Chat ${chat}: ${"tell me more ".repeat(90)}` }];
      for (let turn = 0; turn < 4; turn++) {
        const answer = (await (await ask(server, { messages })).json()) as { choices: [{ message: object }] };
        messages.push(answer.choices[0].message, { role: "user", content: `And then? ${turn}`.repeat(60) });
      }
      const went = counts(servers).flatMap((count, index) => (count > (before[index] ?? 0) ? [index] : []));
      expect(went).toHaveLength(1);
      for (const index of went) used.add(index);
    }
    expect(used.size).toBeGreaterThan(1);
  });

  test("spills concurrent requests with the same prefix to other upstreams beyond the warm one's share", async () => {
    const held: (() => void)[] = [];
    const holding: Script = async (request, response) => {
      await new Promise<void>((resolve) => held.push(resolve));
      await chatScript()(request, response);
    };
    const servers = await upstreams(holding, holding, holding);
    const server = await gateway(servers);
    const open = Array.from({ length: 18 }, (_, i) =>
      ask(server, { messages: [system, { role: "user", content: `Question ${i}` }] }),
    );
    await until(() => held.length === 18, "all of them");
    for (const count of counts(servers)) {
      expect(count).toBeGreaterThan(2);
      expect(count).toBeLessThan(10);
    }
    for (const answer of held) answer();
    await Promise.all(open);
  });
});

describe("fallback models", () => {
  const models = (more = "") => `models:
  - id: large
    price: { input: 100, output: 100 }
    fallbacks: [small, last]
    deployments: [{ upstream: up0, model: upstream-model }]
  - id: small
    price: { input: 1, output: 1 }
    deployments: [{ upstream: up1, model: upstream-model }]
${more}`;

  test("answers by a fallback if the requested model fails, says so, and charges the fallback's price", async () => {
    const servers = await upstreams(fails, chatScript());
    const server = await gateway(servers, { models: models() });
    const whole = await ask(server, { model: "large" });
    expect([whole.status, whole.headers.get("x-headrace-model")]).toEqual([200, "small"]);
    expect(((await whole.json()) as { model: string }).model).toBe("small");
    const streamed = await ask(server, { model: "large", stream: true });
    expect(streamed.headers.get("x-headrace-model")).toBe("small");
    const text = await streamed.text();
    expect(text).toContain('"model":"small"');
    expect(text).not.toContain('"large"');
    // The second time nobody had to wait for the large one to fail again.
    expect(counts(servers)).toEqual([1, 2]);
    const usage = await until(async () => {
      const report = (await (await server.request("/v1/usage?group_by=model")).json()) as {
        data: { model: string; requests: number; cost: number }[];
      };
      return report.data.find(({ requests }) => requests === 2);
    }, "the usage");
    // 9 tokens each, at 1 USD a million.
    expect(usage).toMatchObject({ model: "large", cost: 0.000018 });
    expect(server.logged("request").filter(({ served_by }) => served_by === "small")).toHaveLength(2);
  });

  test("uses no fallback for a client error or while the requested model answers", async () => {
    let status = 400;
    const [large, small] = await upstreams((request, response) => {
      if (status === 400) json(response, 400, { error: { message: "no such parameter" } });
      else return chatScript()(request, response);
    }, chatScript());
    if (!large || !small) throw new Error("no upstream");
    const server = await gateway([large, small], { models: models() });
    expect((await ask(server, { model: "large" })).status).toBe(400);
    status = 200;
    const answer = await ask(server, { model: "large" });
    expect([answer.status, answer.headers.get("x-headrace-model")]).toEqual([200, null]);
    expect(small.requests).toHaveLength(0);
  });

  test("uses a fallback only if the key may use it and it supports the request, else returns the requested model's error", async () => {
    const servers = await upstreams(fails, chatScript(), chatScript());
    const last = `  - id: last
    capabilities: { chat: false }
    deployments: [{ upstream: up2, model: upstream-model }]
`;
    const server = await gateway(servers, {
      models: models(last).replace("- id: small", "- id: small\n    environments: [live]"),
    });
    const answer = await ask(server, { model: "large" });
    expect(answer.status).toBe(502);
    expect(counts(servers)).toEqual([1, 0, 0]);
  });

  test("answers by a fallback if the requested model has no free slot", async () => {
    const held: (() => void)[] = [];
    const [large, small] = await upstreams(async (request, response) => {
      await new Promise<void>((resolve) => held.push(resolve));
      await chatScript()(request, response);
    }, chatScript());
    if (!large || !small) throw new Error("no upstream");
    const yaml = `upstreams:
  - { name: up0, url: "${large.url}", discover: false, max_concurrency: 1 }
  - { name: up1, url: "${small.url}", discover: false }
limits: { queue: 0 }
${models()}`;
    const server = await startHeadrace({ yaml });
    stack.push(server);
    const first = ask(server, { model: "large" });
    await until(() => held.length === 1, "the first");
    expect((await ask(server, { model: "large" })).headers.get("x-headrace-model")).toBe("small");
    for (const answer of held) answer();
    expect((await first).headers.get("x-headrace-model")).toBeNull();
  });
});

test("shows an upstream's reported load, polled separately and only while requests go there", async () => {
  const [plain] = await upstreams(chatScript());
  if (!plain) throw new Error("no upstream");
  const asked: string[] = [];
  const metrics = createServer((req, res) => {
    if (req.method === "GET" && req.url === "/metrics") {
      asked.push(String(req.headers.authorization));
      res.end('vllm:num_requests_running{m="x"} 7\nvllm:num_requests_waiting{m="x"} 2\nvllm:kv_cache_usage_perc 0.5\n');
    } else if (req.url === "/v1/models") json(res, 200, { object: "list", data: [{ id: "upstream-model" }] });
    else void chatScript()({ body: {} } as never, res);
  });
  const url = await listening(metrics);
  stack.push(closing(metrics));
  const yaml = `upstreams:\n  - { name: vllm, url: "${url}/v1", api_key: sk-metrics-secret }\n${upstreamYaml(plain).split("\n")[1]}\n`;
  const server = await startHeadrace({ yaml, loadReadMs: 30 });
  stack.push(server);
  await Bun.sleep(100);
  expect(asked).toHaveLength(0);
  for (let i = 0; i < 12; i++) expect((await ask(server)).status).toBe(200);
  await until(() => asked.length > 2, "the metrics");
  expect(asked[0]).toBe("Bearer sk-metrics-secret");
  const operator = await mintKey(server.dataDir, { scopes: ["admin:manage"] });
  const listed = await server.request("/v1/admin/upstreams", { headers: { authorization: `Bearer ${operator}` } });
  const { data } = (await listed.json()) as { data: { name: string; load: unknown }[] };
  const loads = Object.fromEntries(data.map(({ name, load }) => [name, load]));
  expect(loads["vllm"]).toEqual({ running: 7, waiting: 2, cache_use: 0.5, cache_hits: null });
  expect(loads["up"]).toBeNull();
});

async function listening(server: Server, port = 0): Promise<string> {
  await new Promise<void>((resolve) => server.listen(port, "127.0.0.1", resolve));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

function closing(server: Server): AsyncDisposable {
  return {
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** A model server on one port that comes and goes. */
async function portOf() {
  let posts = 0;
  const make = () =>
    createServer((req, res) => {
      if (req.method === "GET") json(res, 200, { object: "list", data: [{ id: "upstream-model" }] });
      else if (req.url !== "/v1/chat/completions") json(res, 404, {});
      else {
        posts++;
        void chatScript()({ body: {} } as never, res);
      }
    });
  let server = make();
  const url = await listening(server);
  const port = Number(new URL(url).port);
  await new Promise((resolve) => server.close(resolve));
  return {
    url: `${url}/v1`,
    posts: () => posts,
    start() {
      server = make();
      server.listen(port, "127.0.0.1");
    },
    async stop() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
