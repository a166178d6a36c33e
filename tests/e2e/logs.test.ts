// The log of a whole server: which requests have a line, what a reload changes of that, and no secret in any.
import { expect, test } from "bun:test";
import { addKey } from "../hostile/keys.ts";
import { startHeadrace, type TestServer, until } from "../support/headrace.ts";
import { chunk, defaultModel, startUpstream, upstreamYaml } from "../support/scripted-upstream.ts";

const chat = { model: "upstream-model", messages: [{ role: "user", content: "Hi" }] };

async function ask(server: TestServer, body: unknown): Promise<string> {
  const response = await server.request("/v1/chat/completions", { body });
  await response.text();
  return response.headers.get("x-request-id") ?? "";
}

test("omits only sampled successes from the log, from a reload on", async () => {
  await using upstream = await startUpstream();
  await using server = await startHeadrace({ yaml: upstreamYaml(upstream) });
  const ids = () => server.logged("request").map((line) => line["id"]);
  const before = await ask(server, chat);
  await server.reconfigure(upstreamYaml(upstream, "logs: { sample: 0 }\n"));
  const left = [await ask(server, chat), await ask(server, { ...chat, stream: true })];
  const refused = await ask(server, { ...chat, model: "nobody" });
  upstream.script((_, res) => {
    res.writeHead(200, { "content-type": "text/event-stream" });
    res.end(`${chunk({ content: "half" })}data: {"error":{"message":"broke"}}\n\n`);
  });
  const broken = await ask(server, { ...chat, stream: true });
  await until(() => ids().includes(broken), "the line of the broken stream");
  expect(ids()).toEqual([before, refused, broken]);
  expect(left.every(Boolean)).toBe(true);

  await server.reconfigure(upstreamYaml(upstream, "logs: { sample: 0, slow_seconds: 0.001 }\n"));
  upstream.script(async (_, res) => {
    await Bun.sleep(5);
    res.writeHead(200, { "content-type": "application/json" });
    res.end(JSON.stringify({ choices: [{ message: { role: "assistant", content: "x" } }] }));
  });
  const slow = await ask(server, chat);
  expect(server.logged("request").at(-1)).toMatchObject({ id: slow, slow: true, level: "warn", status: 200 });
});

test("logs a broken stream as a warning with its upstream", async () => {
  await using upstream = await startUpstream();
  await using server = await startHeadrace({ yaml: upstreamYaml(upstream) });
  upstream.script((_, res) => {
    res.writeHead(200, { "content-type": "text/event-stream" });
    res.write(chunk({ content: "half" }));
    setTimeout(() => res.destroy(), 20);
  });
  const id = await ask(server, { ...chat, stream: true });
  const line = () => server.logged("request").find((line) => line["id"] === id);
  await until(() => line() !== undefined, "the line of the broken stream");
  expect(line()).toMatchObject({ level: "warn", status: 200, outcome: "failed", code: "upstream_error" });
  expect(line()?.["detail"]).toStartWith("up broke off");
});

test("names the account and the deployment of every attempt, and warns if one failed", async () => {
  await using first = await startUpstream();
  await using second = await startUpstream();
  const deployment = (upstream: string) => `deployments: [{ upstream: ${upstream}, model: upstream-model }]`;
  const models = `models: [{ id: m, ${deployment("one")}, fallbacks: [spare] }, { id: spare, ${deployment("two")} }]\n`;
  const upstreams = `upstreams: [{ name: one, url: "${first.url}" }, { name: two, url: "${second.url}" }]\n`;
  await using server = await startHeadrace({ yaml: upstreams + models });
  const lineOf = (id: string) => server.logged("request").find((line) => line["id"] === id);
  const answered = await ask(server, { ...chat, model: "m" });
  const { id: key, accountId: account } = server.firstKey.record;
  const one = { account, key, upstream: "one", upstream_model: "upstream-model" };
  expect(lineOf(answered)).toMatchObject({ level: "info", ...one });
  expect(lineOf(answered)).not.toHaveProperty("attempts");
  first.script((_, res) => {
    res.writeHead(500);
    res.end("{}");
  });
  const moved = await ask(server, { ...chat, model: "m" });
  expect(lineOf(moved)).toMatchObject({
    ...{ level: "warn", status: 200, upstream: "two", served_by: "spare" },
    attempts: "one/upstream-model refused 500, two/upstream-model answered",
  });
});

test("applies a reloaded log level, but not over a flag", async () => {
  await using upstream = await startUpstream();
  await using server = await startHeadrace({ yaml: upstreamYaml(upstream) });
  await server.reconfigure(upstreamYaml(upstream, "logs: { level: error }\n"));
  const lines = server.logText();
  await ask(server, chat);
  expect(server.logText()).toBe(lines);
  await server.reconfigure(upstreamYaml(upstream));
  await ask(server, chat);
  expect(server.logText().length).toBeGreaterThan(lines.length);

  await using quiet = await startHeadrace({ yaml: upstreamYaml(upstream), flags: { logLevel: "error" } });
  await quiet.reconfigure(upstreamYaml(upstream, "logs: { level: info }\n"));
  await ask(quiet, chat);
  expect(quiet.logText()).toBe("");
});

test("keeps secrets out of log details, including an operator's upstream key", async () => {
  await using upstream = await startUpstream();
  const headers = "tracing: { endpoint: http://127.0.0.1:9, headers: { authorization: Token canary-collector } }\n";
  await using server = await startHeadrace({
    yaml: upstreamYaml(upstream, headers),
    env: { OTEL_EXPORTER_OTLP_HEADERS: "x-key=canary-variable" },
    redaction: true,
  });
  const added = { name: "added", url: upstream.url, api_key: "canary-of-an-operator" };
  const created = await server.request("/v1/admin/upstreams", {
    body: added,
    headers: { authorization: `Bearer ${await addKey(server)}` },
  });
  expect(created.status).toBe(200);
  const { log } = server;
  log.warn("odd", { detail: "sk-upstream-secret-0123456789, Token canary-collector and canary-of-an-operator" });
  log.error("bad", { anything: `Bearer ${server.key}`, stack: `at ${server.key} (x)` });
  expect(server.logText()).not.toMatch(/sk-upstream-secret|canary/);
  expect(server.logText()).not.toContain(server.key);
  expect(server.logged("odd")).toHaveLength(1);
});

test("does not offer a model named after the upstream's key, or show the key as its owner", async () => {
  await using upstream = await startUpstream();
  upstream.serves([
    defaultModel,
    { ...defaultModel, id: "you-sent-sk-upstream-secret-0123456789" },
    { ...defaultModel, id: "other", owned_by: "owner of sk-upstream-secret-0123456789" },
  ]);
  await using server = await startHeadrace({ yaml: upstreamYaml(upstream) });
  const models = await (await server.request("/v1/models")).text();
  expect(models).not.toContain("sk-upstream-secret-0123456789");
  expect((JSON.parse(models) as { data: { id: string }[] }).data.map(({ id }) => id).sort()).toEqual([
    "other",
    "upstream-model",
  ]);
  expect(server.logText()).not.toContain("sk-upstream-secret-0123456789");
});
