// The end of a server that is still at work: everybody is told, everything is booked, and it ends once.
import { afterEach, expect, test } from "bun:test";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { bookedUsage } from "../support/booked-usage.ts";
import { startHeadrace, type TestServer, until } from "../support/headrace.ts";
import { chatScript, chunk, type Script, type ScriptedUpstream, startUpstream } from "../support/scripted-upstream.ts";

const stack: AsyncDisposable[] = [];
afterEach(async () => {
  for (const part of stack.splice(0).reverse()) await part[Symbol.asyncDispose]();
});

function ask(server: TestServer, body: object = {}): Promise<Response> {
  const messages = [{ role: "user", content: "x".repeat(400) }];
  return server.request("/v1/chat/completions", { body: { model: "upstream-model", messages, ...body } });
}

async function startOn(upstream: ScriptedUpstream, bound = "", dataDir?: string): Promise<TestServer> {
  const yaml = `upstreams:\n  - { name: up, identifiers: as_sent, url: "${upstream.url}"${bound} }\n`;
  const server = await startHeadrace({ yaml, ...(dataDir === undefined ? {} : { dataDir }) });
  stack.push(server);
  return server;
}

/** Begins some answers, and ends none. */
const silent: Script = ({ body }, res) => {
  if (body["user"] === "half") {
    res.writeHead(200, { "content-type": "application/json" });
    res.write('{"id":"c","object":"chat.completion","choices":[');
  } else if (body["user"] === "begun") {
    res.writeHead(200, { "content-type": "text/event-stream" });
    for (let i = 0; i < 3; i++) res.write(chunk({ content: " w" }));
  }
};

const spooled = ({ dataDir }: TestServer) => readdirSync(join(dataDir, "spool"));

// hardening: F29
// long-lived: request.server
test("tells active and waiting clients of the shutdown, charges no unanswered ones, and stores everything", async () => {
  const upstream = await startUpstream(silent);
  stack.push(upstream);
  const server = await startOn(upstream, ", max_concurrency: 4");
  const begun = await ask(server, { stream: true, user: "begun" });
  const unanswered = [ask(server), ask(server, { user: "half" }), ask(server, { stream: true })];
  await until(() => upstream.requests.length === 4, "four are at work");
  unanswered.push(ask(server), ask(server, { stream: true }));
  const engine = server.catalog.find("upstream-model")?.deployments[0]?.engine;
  await until(() => engine && server.capacity.figures(engine)[0]?.waiting === 2, "two wait");

  const startedMs = performance.now();
  const closed = server.close(300);
  const cut = await begun.text();
  expect(cut.split('" w"')).toHaveLength(4);
  expect(cut).toContain('"code":"service_unavailable"');
  expect(cut).not.toContain("[DONE]");
  for (const response of await Promise.all(unanswered)) {
    expect(response.status).toBe(503);
    expect(response.headers.get("retry-after")).toBe("5");
    expect(await response.json()).toEqual({
      error: {
        message: "The server is being stopped; send the request again.",
        type: "overloaded_error",
        code: "service_unavailable",
      },
    });
  }
  expect(performance.now() - startedMs).toBeGreaterThan(290);
  await closed;

  const records = bookedUsage(server.dataDir);
  const failed = { outcome: "failed", error_code: "service_unavailable" };
  expect(records).toHaveLength(6);
  for (const record of records) expect(record).toMatchObject(failed);
  const used = records.map(({ prompt_tokens, completion_tokens }) => [prompt_tokens, completion_tokens]);
  expect(used.sort(([a = 0], [b = 0]) => b - a)).toEqual([[100, 3], ...Array(5).fill([0, 0])]);
  expect(records.filter(({ queue_ms }) => queue_ms > 250)).toHaveLength(2);
  expect(spooled(server)).toEqual([]);
  expect(upstream.requests).toHaveLength(4);
  expect(server.logged("close_failed")).toEqual([]);
});

test("books everything if it closes without delay", async () => {
  const upstream = await startUpstream(silent);
  stack.push(upstream);
  const server = await startOn(upstream);
  const bodies = [{}, { user: "half" }, { stream: true }, { stream: true, user: "begun" }];
  const all = Array.from({ length: 40 }, (_, i) => ask(server, bodies[i % 4]).then((response) => response.text()));
  const reported = Promise.allSettled(all);
  await until(() => upstream.requests.length === 40, "all are at work");
  await server.close();
  const records = bookedUsage(server.dataDir);
  expect(records).toHaveLength(40);
  expect(new Set(records.map(({ outcome }) => outcome))).toEqual(new Set(["failed"]));
  expect(spooled(server)).toEqual([]);
  await reported;
});

test("closes once if closed again, at the same time or after another server took its directory", async () => {
  const dataDir = mkdtempSync(join(tmpdir(), "headrace-shutdown-"));
  stack.push({ [Symbol.asyncDispose]: async () => rmSync(dataDir, { recursive: true, force: true }) });
  const upstream = await startUpstream(chatScript());
  stack.push(upstream);
  const server = await startOn(upstream, "", dataDir);
  for (let i = 0; i < 20; i++) expect((await ask(server)).status).toBe(200);
  await Promise.all([server.close(), server.close(), server.close(10)]);
  expect(bookedUsage(dataDir)).toHaveLength(20);
  expect(spooled(server)).toEqual([]);
  const next = await startOn(upstream, "", dataDir);
  await server.close();
  await expect(startOn(upstream, "", dataDir)).rejects.toThrow("Another Headrace uses the data directory");
  const answered = await next.request("/v1/chat/completions", {
    body: { model: "upstream-model", messages: [{ role: "user", content: "Hi" }] },
    headers: { authorization: `Bearer ${server.key}` },
  });
  expect(answered.status).toBe(200);
  expect(server.logText()).not.toMatch(/close_failed|ledger_left_on_spool/);
});
