// Upstreams that operators add, change, drain, test and delete while the server runs.
import { afterEach, expect, test } from "bun:test";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { SQL } from "bun";
import { type ApiDocument, mismatches, resolverOf } from "../contract/json-schema.ts";
import { startHeadrace, type TestServer, type TestServerOptions, until } from "../support/headrace.ts";
import { mintKey } from "../support/mint-key.ts";
import { type Operated, operated } from "../support/operated.ts";
import {
  chatScript,
  chunk,
  defaultModel,
  json,
  type Script,
  type ScriptedUpstream,
  startUpstream,
} from "../support/scripted-upstream.ts";

const upstreamKey = "sk-added-upstream-0123456789abcdef";
const stack: AsyncDisposable[] = [];
afterEach(async () => {
  for (const part of stack.splice(0).reverse()) await part[Symbol.asyncDispose]();
});

async function started<Part extends AsyncDisposable>(part: Promise<Part>): Promise<Part> {
  const ready = await part;
  stack.push(ready);
  return ready;
}

const modelServer = (script?: Script): Promise<ScriptedUpstream> => started(startUpstream(script));

/** `operator`: of an earlier server with the same data. */
const start = async (options: TestServerOptions = {}, operator?: string): Promise<Operated> =>
  operated(await started(startHeadrace(options)), operator);

async function temporaryDirectory(): Promise<string> {
  const directory = mkdtempSync(join(tmpdir(), "headrace-upstreams-"));
  stack.push({ [Symbol.asyncDispose]: async () => rmSync(directory, { recursive: true, force: true }) });
  return directory;
}

const chat = { model: "upstream-model", messages: [{ role: "user", content: "Hi" }] };
const ask = (server: TestServer, more: object = {}) =>
  server.request("/v1/chat/completions", { body: { ...chat, ...more } });

async function modelIds(server: TestServer): Promise<string[]> {
  const { data } = (await (await server.request("/v1/models")).json()) as { data: { id: string }[] };
  return data.map(({ id }) => id);
}

/** Begins a stream and ends it when told. */
function heldStream(): { script: Script; end(): void } {
  const held = Promise.withResolvers<void>();
  return {
    end: held.resolve,
    async script(request, response) {
      if (request.body["stream"] !== true) return await chatScript()(request, response);
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.write(chunk({ role: "assistant", content: "begun" }));
      await held.promise;
      response.write(chunk({ content: " and ended" }, "stop"));
      response.end("data: [DONE]\n\n");
    },
  };
}

async function databaseText(dataDir: string): Promise<string> {
  const files = readdirSync(dataDir).filter((name) => name.startsWith("headrace.db"));
  return files.map((name) => readFileSync(join(dataDir, name), "latin1")).join("");
}

/** Writes as somebody who can write into the data directory. */
async function writeDatabase(dataDir: string, write: (db: SQL) => Promise<unknown>): Promise<void> {
  const db = new SQL({ adapter: "sqlite", filename: join(dataDir, "headrace.db") });
  await write(db).finally(() => db.close());
}

test("serves an added upstream with the answer, and sends its key there alone", async () => {
  const upstream = await modelServer();
  const { server, admin } = await start();
  expect(await modelIds(server)).toEqual([]);
  const request = { name: "added", url: `${upstream.url}/`, api_key: upstreamKey, max_concurrency: 3 };
  const { status, body } = await admin("POST", "/upstreams", request);
  expect(status).toBe(200);
  expect(body).toEqual({
    ...{ object: "upstream", name: "added", url: upstream.url, source: "database", overrides_database: false },
    ...{
      has_api_key: true,
      discover: true,
      local: false,
      environments: ["live", "dev"],
      timeout_seconds: 600,
      idle_seconds: 900,
    },
    ...{
      max_concurrency: 3,
      state: "ok",
      models: 1,
      running: 0,
      health: "ok",
      load: null,
      waiting: 0,
      concurrency: 3,
      error: null,
    },
    ...{ api: "openai", apis: ["chat"], names_apis: false, key_header: null, query: {} },
    ...{ cache_salt: false, priority: false, identifiers: null },
    ...{ attempts: null, created_at: expect.any(Number) },
  });
  expect(await modelIds(server)).toEqual(["upstream-model"]);
  expect((await ask(server)).status).toBe(200);
  expect(upstream.requests[0]?.headers.authorization).toBe(`Bearer ${upstreamKey}`);

  const shown = JSON.stringify([
    (await admin("GET", "/upstreams")).body,
    (await admin("GET", "/upstreams/added")).body,
    (await admin("PATCH", "/upstreams/added", { api_key: `${upstreamKey}2` })).body,
    (await admin("POST", "/upstream-tests", { name: "added" })).body,
    (await admin("GET", "/audit?target=added")).body,
  ]);
  for (const text of [shown, server.logText(), await databaseText(server.dataDir)]) {
    // It is the right text that is searched.
    expect(text).toContain("added");
    expect(text).not.toContain(upstreamKey);
  }
  expect((await ask(server)).status).toBe(200);
  expect(upstream.requests[1]?.headers.authorization).toBe(`Bearer ${upstreamKey}2`);
});

test("shows the discovered formats of an upstream, also in a test", async () => {
  const upstream = await modelServer();
  upstream.speaks("/v1/responses");
  const { admin } = await start();
  const apis = ["chat", "responses"];
  expect((await admin("POST", "/upstream-tests", { url: upstream.url })).body).toMatchObject({ ok: true, apis });
  const { body } = await admin("POST", "/upstreams", { name: "added", url: upstream.url });
  expect(body).toMatchObject({ state: "ok", apis, names_apis: false });
  const named = await admin("PATCH", "/upstreams/added", { apis: ["messages", "chat"] });
  expect(named.body).toMatchObject({ apis: ["chat", "messages"], names_apis: true });
  expect((await admin("PATCH", "/upstreams/added", { apis: null })).body).toMatchObject({ apis, names_apis: false });
  const failed = await admin("POST", "/upstream-tests", { url: "http://127.0.0.1:9/v1" });
  expect(failed.body).toMatchObject({ ok: false, apis: [] });
});

test("answers chat completions by a server with only Anthropic's API, with its header, version and query", async () => {
  const upstream = await modelServer((_request, response) =>
    json(response, 200, {
      ...{ id: "msg_1", type: "message", role: "assistant", model: "upstream-model", stop_sequence: null },
      ...{ content: [{ type: "text", text: "Hello" }], stop_reason: "end_turn" },
      usage: { input_tokens: 3, output_tokens: 1 },
    }),
  );
  const { server, admin } = await start();
  const settings = { api: "messages", api_key: upstreamKey, query: { tenant: "a+b" } };
  // Without its /v1, as an address for ANTHROPIC_BASE_URL has none.
  const url = upstream.url.replace(/\/v1$/, "");
  const added = await admin("POST", "/upstreams", { name: "claude", url, ...settings });
  expect(added.body).toMatchObject({ state: "ok", api: "messages", apis: ["messages"], query: settings.query });
  const { data } = (await (await server.request("/v1/models")).json()) as { data: unknown[] };
  expect(data).toMatchObject([{ id: "upstream-model", capabilities: { chat: true, embeddings: false } }]);
  const answer = (await (await ask(server, { max_tokens: 10 })).json()) as Record<string, unknown>;
  expect(answer).toMatchObject({ object: "chat.completion", choices: [{ message: { content: "Hello" } }] });
  const [asked] = upstream.requests;
  expect(asked).toMatchObject({ path: "/v1/messages?tenant=a%2Bb", body: { model: "upstream-model", max_tokens: 10 } });
  expect(asked?.headers).toMatchObject({ "x-api-key": upstreamKey, "anthropic-version": "2023-06-01" });
  expect(asked?.headers.authorization).toBeUndefined();
});

test.each([
  [{ api: "messages", apis: ["chat"] }, "apis: must be messages alone"],
  [{ api: "claude" }, "api: "],
  [{ apis: [] }, "apis: "],
  [{ key_header: "cookie" }, "key_header: "],
  [{ query: { "a&b": "c" } }, "query: must have names"],
  [{ query: { a: "b c" } }, "query: must have names"],
  [{ query: Object.fromEntries([...Array(21).keys()].map((at) => [`p${at}`, "v"])) }, "query: must have 20"],
])("refuses an upstream with apis %j, and a test of it", async (more, message) => {
  const { admin } = await start();
  const refused = { status: 400, body: { error: { message: expect.stringContaining(message) } } };
  const url = "http://127.0.0.1:9/v1";
  expect(await admin("POST", "/upstreams", { name: "added", url, ...more })).toMatchObject(refused);
  expect(await admin("POST", "/upstream-tests", { url, ...more })).toMatchObject(refused);
});

test("finishes a drained upstream's requests, sends no new ones, and resumes when undrained", async () => {
  const { script, end } = heldStream();
  const upstream = await modelServer(script);
  const { server, admin } = await start();
  await admin("POST", "/upstreams", { name: "only", url: upstream.url, max_concurrency: 1 });
  const stream = await ask(server, { stream: true });
  expect(stream.status).toBe(200);
  const waiting = ask(server);
  const waits = async () => (await admin("GET", "/upstreams/only")).body.waiting === 1;
  await until(waits, "a request waits for the only place");

  const drained = await admin("PATCH", "/upstreams/only", { draining: true });
  expect(drained.body).toMatchObject({ state: "draining", running: 1, waiting: 0 });
  for (const refused of [await waiting, await ask(server)]) {
    expect(refused.status).toBe(503);
    expect(refused.headers.get("retry-after")).toBe("30");
    expect(await refused.text()).toContain("being taken out of service");
  }
  expect(await modelIds(server)).toEqual(["upstream-model"]);
  end();
  expect(await stream.text()).toContain("data: [DONE]");
  const isIdle = async () => (await admin("GET", "/upstreams/only")).body.running === 0;
  await until(isIdle, "nothing is left of it");
  expect(upstream.requests).toHaveLength(1);

  expect((await admin("PATCH", "/upstreams/only", { draining: false })).body.state).toBe("ok");
  expect((await ask(server)).status).toBe(200);
});

test("moves requests of a drained upstream, waiting ones too, to another with the model", async () => {
  const streams = [heldStream(), heldStream()] as const;
  const [drained, other] = [await modelServer(streams[0].script), await modelServer(streams[1].script)];
  const { server, admin } = await start();
  await admin("POST", "/upstreams", { name: "drained", url: drained.url, max_concurrency: 1 });
  await admin("POST", "/upstreams", { name: "other", url: other.url, max_concurrency: 1 });
  const open = [await ask(server, { stream: true }), await ask(server, { stream: true })];
  expect([drained.requests.length, other.requests.length]).toEqual([1, 1]);
  const waiting = ask(server);
  const waits = async () => (await admin("GET", "/upstreams/other")).body.waiting === 1;
  await until(waits, "a request waits for a place at either");
  const patched = await admin("PATCH", "/upstreams/drained", { draining: true, timeout_seconds: 30 });
  // The engine that has the stream was replaced: it still counts.
  expect(patched.body).toMatchObject({ state: "draining", running: 1, waiting: 0, timeout_seconds: 30 });
  streams[0].end();
  const isIdle = async () => (await admin("GET", "/upstreams/drained")).body.running === 0;
  await until(isIdle, "its place is free");
  expect((await admin("GET", "/upstreams/other")).body.waiting).toBe(1);
  streams[1].end();
  expect((await waiting).status).toBe(200);
  for (let i = 0; i < 5; i++) expect((await ask(server)).status).toBe(200);
  expect([drained.requests.length, other.requests.length]).toEqual([1, 7]);
  for (const stream of open) expect(await stream.text()).toContain("data: [DONE]");
});

test("keeps an added upstream, its key and its drained state after a restart", async () => {
  const [kept, drained] = [await modelServer(), await modelServer()];
  drained.serves([{ ...defaultModel, id: "other-model" }]);
  const dataDir = join(await temporaryDirectory(), "data");
  const first = await start({ dataDir });
  const { operator } = first;
  const settings = { discover: true, environments: ["dev"], timeout_seconds: 7, idle_seconds: 8 };
  await first.admin("POST", "/upstreams", { name: "kept", url: kept.url, api_key: upstreamKey, ...settings });
  await first.admin("POST", "/upstreams", { name: "drained", url: drained.url });
  await first.admin("PATCH", "/upstreams/drained", { draining: true });
  await first.admin("PATCH", "/upstreams/built-in", { draining: true });
  const before = (await first.admin("GET", "/upstreams")).body.data;
  await first.server.close();

  const { server, admin } = await start({ dataDir }, operator);
  expect((await admin("GET", "/upstreams")).body.data).toEqual(before);
  expect(before).toMatchObject([{ name: "built-in", state: "draining", url: null }, { state: "draining" }, settings]);
  const { api_key: key } = JSON.parse(readFileSync(join(dataDir, "credentials.json"), "utf8"));
  const headers = { authorization: `Bearer ${key}` };
  expect((await server.request("/v1/chat/completions", { body: chat, headers })).status).toBe(200);
  expect(kept.requests[0]?.headers.authorization).toBe(`Bearer ${upstreamKey}`);
  const body = { ...chat, model: "other-model" };
  expect((await server.request("/v1/chat/completions", { body, headers })).status).toBe(503);
});

test("removes a deleted upstream's models, ends its requests, and frees its name undrained", async () => {
  const { script, end } = heldStream();
  const upstream = await modelServer(script);
  const { server, admin } = await start();
  const request = { name: "gone", url: upstream.url };
  await admin("POST", "/upstreams", request);
  await admin("PATCH", "/upstreams/gone", { draining: true });
  await admin("PATCH", "/upstreams/gone", { draining: false });
  const stream = await ask(server, { stream: true });
  await admin("PATCH", "/upstreams/gone", { draining: true });
  const deleted = await admin("DELETE", "/upstreams/gone");
  expect(deleted).toEqual({ status: 200, body: { object: "upstream", name: "gone", deleted: true } });
  expect(await modelIds(server)).toEqual([]);
  expect((await ask(server)).status).toBe(404);
  end();
  expect(await stream.text()).toContain("data: [DONE]");
  for (const method of ["GET", "DELETE"]) expect((await admin(method, "/upstreams/gone")).status).toBe(404);
  expect((await admin("PATCH", "/upstreams/gone", { draining: true })).status).toBe(404);
  expect((await admin("POST", "/upstreams", request)).body).toMatchObject({ name: "gone", state: "ok" });
});

test("does not send a waiting request to a deleted upstream", async () => {
  const { script, end } = heldStream();
  const upstream = await modelServer(script);
  const { server, admin } = await start();
  await admin("POST", "/upstreams", { name: "gone", url: upstream.url, max_concurrency: 1 });
  const stream = await ask(server, { stream: true });
  const waiting = ask(server);
  const waits = async () => (await admin("GET", "/upstreams/gone")).body.waiting === 1;
  await until(waits, "a request waits for a place");
  await admin("DELETE", "/upstreams/gone");
  const refused = await waiting;
  expect([refused.status, (await refused.json()).error.message]).toEqual([
    503,
    "The model `upstream-model` has no deployment that is configured now.",
  ]);
  end();
  expect(await stream.text()).toContain("data: [DONE]");
  expect(upstream.requests).toHaveLength(1);
});

test("serves an upstream's previous models, also to waiting requests, while its new settings are probed", async () => {
  const { script, end } = heldStream();
  const upstream = await modelServer(script);
  let [open, asked] = [Promise.resolve(), 0];
  // In front of it, as its own list of models never takes long.
  const slow = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    async fetch(request) {
      if (request.method === "GET") {
        asked++;
        await open;
      }
      const { pathname } = new URL(request.url);
      const body = request.method === "GET" ? {} : { body: await request.text() };
      return await fetch(new URL(pathname, upstream.url), {
        method: request.method,
        headers: request.headers,
        ...body,
      });
    },
  });
  stack.push({ [Symbol.asyncDispose]: () => slow.stop(true) });
  const { server, admin } = await start();
  await admin("POST", "/upstreams", { name: "slow", url: `${slow.url}v1`, max_concurrency: 1 });
  const stream = await ask(server, { stream: true });
  const waiting = ask(server);
  await until(async () => (await admin("GET", "/upstreams/slow")).body.waiting === 1, "a request waits for a place");
  const held = Promise.withResolvers<void>();
  [open, asked] = [held.promise, 0];
  const patched = admin("PATCH", "/upstreams/slow", { max_concurrency: 4, timeout_seconds: 30 });
  await until(async () => asked > 0, "it is asked for its models");
  expect(await modelIds(server)).toEqual(["upstream-model"]);
  expect((await ask(server)).status).toBe(200);
  held.resolve();
  expect((await patched).body).toMatchObject({ state: "ok", models: 1, max_concurrency: 4 });
  expect((await waiting).status).toBe(200);
  end();
  expect(await stream.text()).toContain("data: [DONE]");
});

test("allows only draining of a configured upstream, which precedes an added one of its name", async () => {
  const [ofFile, added] = [await modelServer(), await modelServer()];
  const named = (name: string) => `upstreams: [{ name: ${name}, url: "${ofFile.url}", api_key: ${upstreamKey} }]\n`;
  const { server, admin } = await start({ yaml: named("first") });
  expect((await admin("GET", "/upstreams/first")).body).toMatchObject({ source: "file", has_api_key: true, models: 1 });
  const patched = await admin("PATCH", "/upstreams/first", { url: added.url, draining: true });
  expect(patched).toMatchObject({ status: 403, body: { error: { code: "permission_denied" } } });
  expect(patched.body.error.message).toContain("headrace.yaml");
  expect((await admin("DELETE", "/upstreams/first")).status).toBe(403);
  expect((await admin("DELETE", "/upstreams/built-in")).status).toBe(403);
  expect((await admin("GET", "/upstreams/first")).body.state).toBe("ok");
  const taken = await admin("POST", "/upstreams", { name: "first", url: added.url });
  expect(taken).toMatchObject({
    status: 400,
    body: { error: { message: expect.stringMatching(/^name: headrace.yaml/) } },
  });
  expect((await admin("PATCH", "/upstreams/first", { draining: true })).body.state).toBe("draining");

  await admin("POST", "/upstreams", { name: "second", url: added.url });
  await server.reconfigure(named("second"));
  const second = { url: ofFile.url, source: "file", overrides_database: true, created_at: null };
  expect((await admin("GET", "/upstreams/second")).body).toMatchObject(second);
  expect((await admin("PATCH", "/upstreams/second", { discover: false })).status).toBe(403);
  expect((await admin("GET", "/upstreams")).body.data).toHaveLength(2);
  await server.reconfigure("");
  const again = { url: added.url, source: "database", overrides_database: false };
  expect((await admin("GET", "/upstreams/second")).body).toMatchObject(again);
});

test("drains a discovered local server, and adds it under its own name", async () => {
  const upstream = await modelServer();
  const port = Number(new URL(upstream.url).port);
  const { server, admin } = await start({ localServers: [{ name: "ollama", title: "Ollama", port }] });
  expect((await admin("GET", "/upstreams/ollama")).body).toMatchObject({ source: "found", models: 1, state: "ok" });
  expect((await admin("DELETE", "/upstreams/ollama")).status).toBe(403);
  expect((await admin("PATCH", "/upstreams/ollama", { discover: false })).status).toBe(403);
  await admin("PATCH", "/upstreams/ollama", { draining: true });
  expect((await ask(server)).status).toBe(503);
  const added = await admin("POST", "/upstreams", { name: "ollama", url: upstream.url });
  expect(added.body).toMatchObject({ source: "database", state: "ok" });
  expect((await admin("GET", "/upstreams")).body.data).toHaveLength(2);
  expect((await ask(server)).status).toBe(200);
});

test("adds an unreachable upstream with the reason, and tests any server without a change", async () => {
  const upstream = await modelServer();
  using locked = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: () => new Response("no", { status: 401 }) });
  using page = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: () => new Response(`<p>${upstreamKey}</p>`) });
  const closed = await startUpstream();
  await closed[Symbol.asyncDispose]();
  const { admin } = await start();
  const added = await admin("POST", "/upstreams", { name: "away", url: closed.url, api_key: upstreamKey });
  expect(added).toMatchObject({ status: 200, body: { state: "unreachable", models: 0 } });
  expect(added.body.error).toContain("cannot be reached");

  const tested = async (body: object) => (await admin("POST", "/upstream-tests", body)).body;
  const good = { object: "upstream_test", ok: true, models: ["upstream-model"], error: null };
  expect(await tested({ url: upstream.url })).toMatchObject({ ...good, duration_ms: expect.any(Number) });
  expect(await tested({ name: "built-in" })).toMatchObject({ ok: true, models: [] });
  expect(await tested({ name: "away" })).toMatchObject({ ok: false, models: [], error: added.body.error });
  const refusal = await tested({ url: `${locked.url}v1`, api_key: upstreamKey });
  expect(refusal).toMatchObject({ ok: false, error: "GET /models answered 401" });
  using bare = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: () => new Response("", { status: 404 }) });
  expect((await tested({ url: bare.url.href })).error).toBe(
    "GET /models answered 404. Its URL has no /v1, below which most servers have their API",
  );
  expect((await tested({ url: `${bare.url}v1` })).error).toBe("GET /models answered 404");
  expect(await tested({ url: ` ${upstream.url}/ ` })).toMatchObject({ ok: true });
  const nonsense = await tested({ url: `${page.url}v1`, api_key: upstreamKey });
  expect(nonsense).toMatchObject({ ok: false, error: "GET /models answered something other than JSON." });
  expect((await admin("GET", "/upstreams")).body.data).toHaveLength(2);
  for (const [body, field] of [
    [{}, "name"],
    [{ name: "away", url: upstream.url }, "name"],
    [{ name: "away", api_key: "x" }, "api_key"],
    [{ url: "http://user:hidden@host/v1" }, "url"],
  ] as const) {
    const { status, body: answer } = await admin("POST", "/upstream-tests", body);
    expect([status, answer.error.message.split(":")[0]]).toEqual([400, field]);
    expect(JSON.stringify(answer)).not.toContain("hidden");
  }
  expect((await admin("POST", "/upstream-tests", { name: "none" })).status).toBe(404);
});

test("refuses an invalid upstream by its field, and stores nothing", async () => {
  const { admin } = await start();
  const url = "http://127.0.0.1:9/v1";
  for (const [body, field] of [
    [{ url }, "name"],
    [{ name: "Upper", url }, "name"],
    [{ name: "built-in", url }, "name"],
    [{ name: "a" }, "url"],
    [{ name: "a", url: "ftp://host/v1" }, "url"],
    [{ name: "a", url: "http://user:hidden@host/v1" }, "url"],
    [{ name: "a", url: "http://host/v1?key=hidden" }, "url"],
    [{ name: "a", url, api_key: "hidden\r\nx-injected: 1" }, "api_key"],
    [{ name: "a", url, api_key: "" }, "api_key"],
    [{ name: "a", url, environments: [] }, "environments"],
    [{ name: "a", url, environments: ["prod"] }, "environments[0]"],
    [{ name: "a", url, timeout_seconds: 0 }, "timeout_seconds"],
    [{ name: "a", url, max_concurrency: 1.5 }, "max_concurrency"],
    [{ name: "a", url, draining: true }, "draining"],
  ] as const) {
    const { status, body: answer } = await admin("POST", "/upstreams", body);
    expect([status, answer.error.message.split(":")[0]]).toEqual([400, field]);
    expect(JSON.stringify(answer)).not.toContain("hidden");
  }
  expect((await admin("GET", "/upstreams")).body.data).toHaveLength(1);
});

// hardening: F33
test("sends a stored key to no other server, whoever moves the upstream", async () => {
  const [first, second] = [await modelServer(), await modelServer()];
  const dataDir = join(await temporaryDirectory(), "data");
  const { server, operator, admin } = await start({ dataDir });
  await admin("POST", "/upstreams", { name: "moved", url: first.url, api_key: upstreamKey });
  const refused = await admin("PATCH", "/upstreams/moved", { url: second.url });
  expect(refused).toMatchObject({ status: 400, body: { error: { message: expect.stringMatching(/^api_key: /) } } });
  const path = await admin("PATCH", "/upstreams/moved", { url: `${first.url}/deeper` });
  expect(path).toMatchObject({ status: 200, body: { has_api_key: true, url: `${first.url}/deeper` } });
  await server.close();

  await writeDatabase(dataDir, (db) => db`UPDATE upstreams SET url = ${second.url} WHERE name = 'moved'`);
  const again = await start({ dataDir }, operator);
  const { body } = await again.admin("GET", "/upstreams/moved");
  expect(body).toMatchObject({ url: second.url, has_api_key: true });
  expect(body.error).toContain("set api_key again");
  const { api_key: key } = JSON.parse(readFileSync(join(dataDir, "credentials.json"), "utf8"));
  const answer = () =>
    again.server.request("/v1/chat/completions", { body: chat, headers: { authorization: `Bearer ${key}` } });
  await (await answer()).text();
  expect(second.requests.map(({ headers }) => headers.authorization)).toEqual([undefined]);
  const mended = await again.admin("PATCH", "/upstreams/moved", { api_key: "another-key" });
  expect(mended.body).toMatchObject({ error: null, state: "ok" });
  await (await answer()).text();
  expect(second.requests[1]?.headers.authorization).toBe("Bearer another-key");
  const removed = await again.admin("PATCH", "/upstreams/moved", { url: first.url, api_key: null });
  expect(removed.body).toMatchObject({ has_api_key: false, url: first.url });
});

test("sends requests that must stay local to an upstream marked as local until it is unmarked or moved", async () => {
  const [first, second] = [await modelServer(), await modelServer()];
  const { server, admin } = await start();
  const key = await mintKey(server.dataDir, { scopes: ["chat:write", "models:read"], neverLeaves: true });
  const status = async () => {
    const headers = { authorization: `Bearer ${key}` };
    return (await server.request("/v1/chat/completions", { body: chat, headers })).status;
  };
  const change = async (body: object) => (await admin("PATCH", "/upstreams/box", body)).body;
  const added = await admin("POST", "/upstreams", { name: "box", url: first.url });
  expect(added.body).toMatchObject({ name: "box", local: false });
  expect(await status()).toBe(403);
  expect((await change({ local: true })).local).toBe(true);
  expect(await status()).toBe(200);
  // A change of what it does not name leaves it, and another server is another one.
  expect((await change({ timeout_seconds: 60 })).local).toBe(true);
  expect((await change({ url: second.url })).local).toBe(false);
  expect([await status(), second.requests.length]).toEqual([403, 0]);
  expect((await change({ url: first.url, local: true })).local).toBe(true);
  expect([await status(), first.requests.length]).toEqual([200, 2]);
  expect((await change({ local: false })).local).toBe(false);
  expect([await status(), first.requests.length]).toEqual([403, 2]);
});

test("does not send a waiting request to a server whose local mark was removed", async () => {
  const held = heldStream();
  const up = await modelServer(held.script);
  const { server, admin } = await start();
  await admin("POST", "/upstreams", { name: "box", url: up.url, local: true, max_concurrency: 1 });
  const key = await mintKey(server.dataDir, { scopes: ["chat:write"], neverLeaves: true });
  const first = await ask(server, { stream: true });
  const waits = server.request("/v1/chat/completions", { body: chat, headers: { authorization: `Bearer ${key}` } });
  await until(async () => (await admin("GET", "/upstreams/box")).body.waiting === 1, "it waits");
  await admin("PATCH", "/upstreams/box", { local: false });
  held.end();
  await first.text();
  expect([(await waits).status, up.requests.length]).toEqual([503, 1]);
});

test("audits each upstream change once without secrets, and no unchanged one", async () => {
  const upstream = await modelServer();
  const { admin } = await start();
  await admin("POST", "/upstreams", { name: "told", url: upstream.url, api_key: upstreamKey });
  await admin("PATCH", "/upstreams/told", { discover: true, draining: false, api_key: upstreamKey });
  await admin("PATCH", "/upstreams/told", { max_concurrency: 2, api_key: "another-key" });
  await admin("PATCH", "/upstreams/told", { draining: true });
  await admin("PATCH", "/upstreams/told", { draining: true });
  await admin("DELETE", "/upstreams/told");
  const { data } = (await admin("GET", "/audit?target=told")).body;
  expect(data.map(({ action, detail }: Record<string, unknown>) => [action, detail])).toEqual([
    ["upstream.deleted", expect.objectContaining({ url: upstream.url, has_api_key: true })],
    ["upstream.updated", { draining: { before: false, after: true } }],
    ["upstream.updated", { max_concurrency: { before: null, after: 2 }, api_key: "replaced" }],
    ["upstream.created", expect.objectContaining({ url: upstream.url, has_api_key: true })],
  ]);
  expect(data[0]).toMatchObject({ actor: { type: "key" }, account_id: null, client_address: "127.0.0.1" });
});

test("adds an upstream once for concurrent requests, with documented answers", async () => {
  const upstream = await modelServer();
  const { server, admin } = await start();
  const answers = await Promise.all(
    [1, 2, 3, 4].map(() => admin("POST", "/upstreams", { name: "a", url: upstream.url })),
  );
  expect(answers.map(({ status }) => status).sort()).toEqual([200, 400, 400, 400]);
  const document = (await (await fetch(`${server.url}/openapi.json`)).json()) as ApiDocument;
  const resolve = resolverOf(document);
  const list = (await admin("GET", "/upstreams")).body;
  expect(mismatches(list, resolve("#/components/schemas/UpstreamList"), resolve)).toEqual([]);
  const tested = (await admin("POST", "/upstream-tests", { name: "a" })).body;
  expect(mismatches(tested, resolve("#/components/schemas/UpstreamTest"), resolve)).toEqual([]);
});
