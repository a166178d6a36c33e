// What several workers have seen and written, each for itself, is told as that of one server: whole, or not at all.
import { afterEach, expect, test } from "bun:test";
import { scrape } from "../support/exposition.ts";
import { startHeadrace, type TestServer, until } from "../support/headrace.ts";
import { mintKey } from "../support/mint-key.ts";
import { chatScript, type ScriptedUpstream, startUpstream, upstreamYaml } from "../support/scripted-upstream.ts";

const stack: AsyncDisposable[] = [];
afterEach(async () => {
  for (const one of stack.splice(0).reverse()) await one[Symbol.asyncDispose]();
});

async function start(): Promise<TestServer & { upstream: ScriptedUpstream }> {
  const upstream = await startUpstream();
  stack.push(upstream);
  const flags = { logFormat: "json", workers: "2" };
  const server = await startHeadrace({ yaml: upstreamYaml(upstream), flags });
  stack.push(server);
  return Object.assign(server, { upstream });
}

/** By a connection of its own, so that the kernel gives it to any of them; undefined where that one says nothing. */
async function ask(
  server: TestServer,
  path: string,
  body?: unknown,
): Promise<{ status: number; text: string } | undefined> {
  const init = body === undefined ? {} : { body };
  const request = { ...init, headers: { connection: "close" }, signal: AbortSignal.timeout(3_000) };
  try {
    const response = await server.request(path, request);
    return { status: response.status, text: await response.text() };
  } catch {
    return undefined;
  }
}

const chat = { model: "upstream-model", messages: [{ role: "user", content: "x" }] };

test("reports a past month whole or not at all while a worker has not confirmed its writes", async () => {
  const server = await start();
  for (let n = 0; n < 8; n++) expect((await ask(server, "/v1/chat/completions", chat))?.status).toBe(200);
  const today = new Date();
  const before = new Date(Date.UTC(today.getUTCFullYear(), today.getUTCMonth() - 1, 1)).toISOString().slice(0, 7);
  const statements = async () =>
    (await Promise.all(Array.from({ length: 16 }, () => ask(server, `/v1/statement?month=${before}`)))).flatMap(
      (answer) => answer?.status ?? [],
    );
  expect(new Set(await statements())).toEqual(new Set([200]));
  // One that does nothing is killed only after some seconds.
  const [stopped = 0] = server.workers?.pids ?? [];
  process.kill(stopped, "SIGSTOP");
  expect(new Set(await statements())).toEqual(new Set([503]));
  await until(async () => (await statements()).every((status) => status === 200), "another one has taken its place");
});

test("includes an answer a moment ago in the next report, whichever worker had it", async () => {
  const server = await start();
  for (let n = 1; n <= 20; n++) {
    expect((await ask(server, "/v1/chat/completions", chat))?.status).toBe(200);
    const report = JSON.parse((await ask(server, "/v1/usage?bucket=month"))?.text ?? "") as { data: object[] };
    expect(report.data).toMatchObject([{ requests: n }]);
    const requests = JSON.parse((await ask(server, "/v1/requests?limit=100"))?.text ?? "") as { data: object[] };
    expect(requests.data.length).toBe(n);
  }
});

test("shows an upstream without a model list as up while workers use it", async () => {
  const server = await start();
  const choice = { index: 0, message: { role: "assistant", content: "Up." }, finish_reason: "stop" };
  const answer = {
    id: "x",
    object: "chat.completion",
    created: 1,
    model: "upstream-model",
    choices: [choice],
    usage: {},
  };
  const silent = Bun.serve({
    ...{ hostname: "127.0.0.1", port: 0 },
    fetch: ({ method }) => (method === "POST" ? Response.json(answer) : new Response("", { status: 404 })),
  });
  stack.push({ [Symbol.asyncDispose]: () => silent.stop(true) });
  const model = "models: [{ id: upstream-model, deployments: [{ upstream: up, model: upstream-model }] }]";
  await server.reconfigure(`upstreams: [{ name: up, url: "${silent.url}v1", discover: false }]\n${model}\n`);
  const up = async () => (await scrape(server)).get("headrace_upstream_up", { upstream: "up" });
  expect(await up()).toBe(0);
  await until(async () => {
    await ask(server, "/v1/chat/completions", chat);
    return (await up()) === 1;
  }, "it is up");
});

test("sums current figures for operators over all workers", async () => {
  const server = await start();
  const { upstream } = server;
  const going = Promise.withResolvers<void>();
  upstream.script(async (request, res) => {
    await going.promise;
    await chatScript()(request, res);
  });
  const answers = Array.from({ length: 6 }, () => ask(server, "/v1/chat/completions", chat));
  const operator = await mintKey(server.dataDir, { scopes: ["admin:manage"] });
  const figures = async () => {
    const response = await fetch(`${server.url}/v1/admin/system`, { headers: { authorization: `Bearer ${operator}` } });
    return (await response.json()) as { requests: { open: number }; spool: { bytes: number; pending: number } };
  };
  await until(async () => (await figures()).requests.open === 6, "all of them are seen");
  expect((await figures()).spool.bytes).toBeGreaterThan(0);
  going.resolve();
  expect((await Promise.all(answers)).map((answer) => answer?.status)).toEqual(Array(6).fill(200));
  await until(async () => {
    const { requests, spool } = await figures();
    return requests.open === 0 && spool.pending === 0;
  }, "none is open, and all are written");
});
