// Clients that leave, stall or send half: the model server is told within a second, and the log stays calm.
import { afterAll, beforeAll, beforeEach, expect, test } from "bun:test";
import type { LogFields } from "../../src/base/log.ts";
import { startHeadrace, type TestServer, until } from "../support/headrace.ts";
import { chunk } from "../support/scripted-upstream.ts";
import { head, openRaw } from "./raw-client.ts";
import { goodAnswer, type RawUpstream, rawYaml, startRawUpstream, streamHead } from "./raw-upstream.ts";

let upstream: RawUpstream;
let server: TestServer;

beforeAll(async () => {
  upstream = await startRawUpstream();
  server = await startHeadrace({ yaml: rawYaml(upstream) });
});

beforeEach(() => {
  upstream.requests.length = 0;
  upstream.script(() => {});
});

afterAll(async () => {
  await server[Symbol.asyncDispose]();
  await upstream[Symbol.asyncDispose]();
});

const chat = { model: "upstream-model", messages: [{ role: "user", content: "Hello there, model" }] };

/** Starts a request, waits until the model server has it, leaves; gives the line that the log has of it. */
async function askAndLeave(body: unknown): Promise<LogFields> {
  const lines = server.logged("request").length;
  const client = new AbortController();
  const answer = server.request("/v1/chat/completions", { body, signal: client.signal }).then(
    () => "answered",
    () => "left",
  );
  await until(() => upstream.requests[0], "the model server gets the request");
  client.abort();
  expect(await answer).toBe("left");
  await until(() => upstream.requests[0]?.hungUp, "the model server is told", 1_000);
  return until(() => server.logged("request")[lines], "the log line");
}

// hardening: F8
test.each([false, true])(
  "stops the model server within a second if a client leaves before the first byte (stream: %p)",
  async (stream) => {
    const line = await askAndLeave({ ...chat, stream });
    // The prompt was read for it: that is what it pays.
    expect(line).toMatchObject({ outcome: "cancelled", completion_tokens: 0, estimated: true });
    expect(line["prompt_tokens"]).toBeGreaterThan(0);
  },
);

// hardening: F8
test.each([false, true])("logs no error and books no fault for a client that leaves (stream: %p)", async (stream) => {
  const line = await askAndLeave({ ...chat, stream });
  expect(line["level"]).toBe("info");
  expect(line["code"]).not.toBe("internal_error");
  expect(line["code"]).not.toBe("upstream_error");
  expect(String(line["detail"] ?? "")).not.toMatch(/\n\s+at |AbortError/);
});

test("sends the next request to the same model server after a client left", async () => {
  await askAndLeave(chat);
  upstream.script((socket) => void socket.write(goodAnswer));
  expect((await server.request("/v1/chat/completions", { body: chat })).status).toBe(200);
});

// hardening: F8
test("stops the model server within a second if a client leaves during a plain answer", async () => {
  upstream.script((socket) => void socket.write("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n{"));
  const line = await askAndLeave(chat);
  expect(line).toMatchObject({ level: "info", outcome: "cancelled" });
});

// hardening: F8
test("stops the model server within a second if a client leaves a silent stream, and charges what was delivered", async () => {
  upstream.script((socket) => {
    socket.write(streamHead + chunk({ role: "assistant", content: "Twelve chars" }));
  });
  const lines = server.logged("request").length;
  const client = new AbortController();
  const response = await server.request("/v1/chat/completions", {
    body: { ...chat, stream: true },
    signal: client.signal,
  });
  await response.body?.getReader().read();
  client.abort();
  await until(() => upstream.requests[0]?.hungUp, "the model server is told", 1_000);
  const line = await until(() => server.logged("request")[lines], "the log line");
  expect(line).toMatchObject({ level: "info", outcome: "cancelled", completion_tokens: 1, estimated: true });
});

// hardening: F8
test("leaves nothing behind after many clients leave at once", async () => {
  const clients = Array.from({ length: 100 }, () => new AbortController());
  const answers = clients.map((client, i) =>
    server
      .request("/v1/chat/completions", { body: { ...chat, stream: i % 2 === 0 }, signal: client.signal })
      .catch(() => undefined),
  );
  await until(() => upstream.requests.length === 100, "all are with the model server");
  for (const client of clients) client.abort();
  await Promise.all(answers);
  await until(() => upstream.requests.every((request) => request.hungUp), "all are cancelled", 2_000);
  upstream.script((socket) => void socket.write(goodAnswer));
  expect((await server.request("/v1/chat/completions", { body: chat })).status).toBe(200);
});

function uploadHead(length: number): string {
  return head("POST /v1/chat/completions HTTP/1.1", [
    "Host: 127.0.0.1",
    `Authorization: Bearer ${server.key}`,
    "Content-Type: application/json",
    `Content-Length: ${length}`,
  ]);
}

test("reaches no model server and logs no fault if a client leaves after half its body", async () => {
  const lines = server.logged("request").length;
  for (const how of ["end", "destroy", "resetAndDestroy"] as const) {
    const connection = await openRaw(server.url);
    await connection.write(`${uploadHead(1_000)}{"model":"upstream-model"`);
    await Bun.sleep(20);
    connection.socket[how]();
  }
  await until(() => server.logged("request").length >= lines + 3, "all three are logged");
  for (const line of server.logged("request").slice(lines)) {
    expect(line["level"]).toBe("info");
    expect([400, 499]).toContain(Number(line["status"]));
  }
  expect(upstream.requests).toHaveLength(0);
});

test("treats a half-closed connection as a client that left, and stops the model server", async () => {
  upstream.script(async (socket) => {
    await Bun.sleep(300);
    socket.write(goodAnswer);
  });
  const body = JSON.stringify(chat);
  const connection = await openRaw(server.url);
  await connection.write(uploadHead(body.length) + body);
  connection.socket.end();
  const { answers, closed } = await connection.answered(1, 2_000);
  expect([answers.length, closed]).toEqual([0, true]);
  await until(() => upstream.requests[0]?.hungUp, "the gateway hangs up", 1_000);
});

test("logs no fault for a client that resets its connection right after its request", async () => {
  const body = JSON.stringify(chat);
  for (let i = 0; i < 60; i++) {
    const connection = await openRaw(server.url);
    void connection.write(uploadHead(body.length) + body).catch(() => {});
    connection.socket.resetAndDestroy();
    if (i % 3 === 0) await Bun.sleep(1);
  }
  await Bun.sleep(100);
  expect(server.logged("connection_failed")).toEqual([]);
});
