// A model server that misbehaves before or instead of an answer: a clear 502 or 504, and nothing poisoned.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { gzipSync } from "node:zlib";
import { startHeadrace, until } from "../support/headrace.ts";
import { withinMs } from "../support/long.ts";
import { chat, type FaultyServer, startFaultyServer } from "./faulty-server.ts";
import {
  completion,
  goodAnswer,
  plainAnswer,
  type RawScript,
  type RawUpstream,
  rawYaml,
  startRawUpstream,
} from "./raw-upstream.ts";

let gateway: FaultyServer;
let upstream: RawUpstream;
const ask: FaultyServer["ask"] = (body, path) => gateway.ask(body, path);
const expectUnpoisoned = () => gateway.expectUnpoisoned();

beforeAll(async () => {
  gateway = await startFaultyServer();
  upstream = gateway.upstream;
});

beforeEach(() => {
  upstream.requests.length = 0;
  upstream.answerEarly(false);
});

afterAll(() => gateway[Symbol.asyncDispose]());

const whole = JSON.stringify(completion);

describe("a model server without an HTTP answer", () => {
  const faults: readonly [name: string, script: RawScript][] = [
    ["closes without a byte", (socket) => void socket.end()],
    ["resets the connection", (socket) => void socket.resetAndDestroy()],
    ["breaks off in the status line", (socket) => void socket.end("HTTP/1.1 20")],
    ["breaks off in the headers", (socket) => void socket.end("HTTP/1.1 200 OK\r\nContent-Ty")],
    ["does not speak HTTP", (socket) => void socket.end("SSH-2.0-OpenSSH_9.9\r\n")],
    ["speaks another protocol and waits", (socket) => void socket.write("SSH-2.0-OpenSSH_9.9\r\n")],
    [
      "ends the lines of its head in LF alone and waits",
      (socket) => void socket.write("HTTP/1.1 200 OK\nContent-Type: application/json\nContent-Length: 2\n\n{}"),
    ],
    ["sends an impossible status", (socket) => void socket.end("HTTP/1.1 9999 What\r\n\r\n")],
    ["sends 1 MB of headers", (socket) => void socket.end(`HTTP/1.1 200 OK\r\nX: ${"a".repeat(1_000_000)}\r\n\r\n`)],
    [
      "sends two lengths",
      (socket) => void socket.end(`HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 7\r\n\r\n{"a":1}`),
    ],
  ];

  // hardening: F2
  test.each(faults)("answers 502 for a model server that %s, and uses it again", async (_name, script) => {
    upstream.script(script);
    const { status, code, message } = await ask();
    expect([status, code]).toEqual([502, "upstream_error"]);
    expect(message).not.toMatch(/127\.0\.0\.1|ECONN|socket/i);
    // POST is not idempotent: sent once, whatever happened to it.
    expect(upstream.requests).toHaveLength(1);
    await expectUnpoisoned();
  });

  // hardening: F2
  test("answers 504 and closes the connection if a model server never responds", async () => {
    upstream.script(() => {});
    const startedMs = performance.now();
    const { status, code, message } = await ask();
    expect([status, code]).toEqual([504, "upstream_timeout"]);
    expect(message).toContain("1 s");
    expect(performance.now() - startedMs).toBeGreaterThan(900);
    expect(performance.now() - startedMs).toBeLessThan(withinMs(3_000));
    await until(() => upstream.requests[0]?.hungUp, "the gateway hangs up", 1_000);
    await expectUnpoisoned();
  });

  test("answers 502 for a model server that refuses connections", async () => {
    await using gone = await startRawUpstream();
    await using gateway = await startHeadrace({ yaml: rawYaml(gone) });
    await gone[Symbol.asyncDispose]();
    const response = await gateway.request("/v1/chat/completions", { body: chat });
    expect(response.status).toBe(502);
    expect((await response.json()).error.message).toBe("The model server cannot be reached.");
  });
});

describe("an invalid answer of a model server", () => {
  const bodies: readonly [name: string, bytes: string | Uint8Array][] = [
    ["truncated JSON", plainAnswer(200, whole.slice(0, -20))],
    ["an empty body", plainAnswer(200, "")],
    ["no body at all", "HTTP/1.1 204 No Content\r\n\r\n"],
    ["a JSON list", plainAnswer(200, "[]")],
    ["a JSON text", plainAnswer(200, '"Hello"')],
    ["JSON without choices", plainAnswer(200, '{"id":"x","object":"chat.completion"}')],
    ["choices that are no list", plainAnswer(200, '{"choices":{}}')],
    ["a web page", plainAnswer(200, "<html><body>It works!</body></html>", { "Content-Type": "text/html" })],
    ["an event stream without an event", plainAnswer(200, ": hello\n\n", { "Content-Type": "text/event-stream" })],
    ["vLLM's bare error", plainAnswer(200, '{"object":"error","message":"out of memory","code":500}')],
    ["100,000 levels of JSON", plainAnswer(200, "[".repeat(100_000))],
  ];

  // hardening: F2
  test.each(bodies)("answers 502 for %s with status 200", async (_name, bytes) => {
    upstream.script((socket) => void socket.write(bytes));
    const { status, code } = await ask();
    expect([status, code]).toEqual([502, "upstream_error"]);
    await expectUnpoisoned();
  });

  test("passes on a duplicate field or answers 502, even if the answer must be edited, without a gateway fault", async () => {
    for (const model of ["upstream-model", "another-model"]) {
      const answer = JSON.stringify({ ...completion, model });
      upstream.script((socket) => void socket.write(plainAnswer(200, `{"id":"a","id":"b",${answer.slice(1)}`)));
      const { status, code } = await ask();
      expect([model, status, code === "internal_error"]).not.toEqual([model, 500, true]);
      expect([200, 502]).toContain(status);
    }
    await expectUnpoisoned();
  });

  test("answers 502 for unrequested gzip instead of garbage", async () => {
    const zipped = gzipSync(whole);
    upstream.script((socket) => {
      socket.write(`HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: ${zipped.length}\r\n\r\n`);
      socket.write(zipped);
    });
    expect((await ask()).status).toBe(502);
    await expectUnpoisoned();
  });

  test("answers 502 with the message of an error that has status 200", async () => {
    upstream.script((socket) => void socket.write(plainAnswer(200, '{"error":{"message":"model crashed"}}')));
    expect(await ask()).toMatchObject({ status: 502, code: "upstream_error", message: "model crashed" });
    await expectUnpoisoned();
  });

  // hardening: F2
  test("answers 502 for a body shorter than its Content-Length", async () => {
    upstream.script((socket) => {
      socket.end(`HTTP/1.1 200 OK\r\nContent-Length: ${whole.length + 50}\r\n\r\n${whole}`);
    });
    expect((await ask()).status).toBe(502);
    await expectUnpoisoned();
  });

  // hardening: F2
  test("answers 502 for a body longer than its Content-Length, whose rest does not answer the next request", async () => {
    const stolen = plainAnswer(200, whole.replace("Hello", "STOLEN"));
    upstream.script((socket) => {
      socket.write(`HTTP/1.1 200 OK\r\nContent-Length: ${whole.length - 10}\r\n\r\n${whole}${stolen}`);
    });
    expect((await ask()).status).toBe(502);
    upstream.script((socket) => void socket.write(goodAnswer));
    for (let i = 0; i < 3; i++) {
      const response = await gateway.server.request("/v1/chat/completions", { body: chat });
      expect(await response.text()).not.toContain("STOLEN");
    }
  });

  test("answers 502 for a broken chunk", async () => {
    upstream.script((socket) => {
      socket.end(`HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n${whole.slice(0, 5)}\r\nzz\r\n`);
    });
    expect((await ask()).status).toBe(502);
    await expectUnpoisoned();
  });

  // hardening: F2
  test("answers 504 after the idle time if a model server stops in its answer", async () => {
    upstream.script((socket) => {
      socket.write(`HTTP/1.1 200 OK\r\nContent-Length: ${whole.length}\r\n\r\n${whole.slice(0, 20)}`);
    });
    const startedMs = performance.now();
    const { status, code } = await ask();
    expect([status, code]).toEqual([504, "upstream_timeout"]);
    expect(performance.now() - startedMs).toBeLessThan(withinMs(3_000));
    await until(() => upstream.requests[0]?.hungUp, "the gateway hangs up", 1_000);
    await expectUnpoisoned();
  });

  test("answers 502 for invalid embeddings", async () => {
    for (const data of ["[{}]", "[null]", '[{"embedding":"!!!"}]', '[{"embedding":{}}]', "{}", "null"]) {
      upstream.script((socket) => void socket.write(plainAnswer(200, `{"object":"list","data":${data}}`)));
      const { status, code } = await ask({ model: "upstream-model", input: "x" }, "/v1/embeddings");
      expect([data, status, code]).toEqual([data, 502, "upstream_error"]);
    }
    await expectUnpoisoned();
  });

  test("skips informational answers before the real one", async () => {
    upstream.script((socket) => {
      socket.write(`HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n${goodAnswer}`);
    });
    expect((await ask()).status).toBe(200);
    await expectUnpoisoned();
  });
});

describe("requests beside a failing one", () => {
  // hardening: F2
  test("does not disturb concurrent requests of a model server by failing ones", async () => {
    upstream.script(async (socket, { number }) => {
      await Bun.sleep(5);
      switch (number % 4) {
        case 0:
          return void socket.resetAndDestroy();
        case 1:
          return void socket.end("HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n{");
        case 2:
          return void socket.write(plainAnswer(500, "{}"));
        default:
          return void socket.write(goodAnswer);
      }
    });
    const seen = await Promise.all(Array.from({ length: 80 }, () => ask()));
    expect(seen.filter((answer) => answer.status === 200)).toHaveLength(20);
    expect(seen.filter((answer) => answer.status === 502)).toHaveLength(60);
    await expectUnpoisoned();
  });

  test("does not reuse an idle connection that the model server closed", async () => {
    let closed = Promise.withResolvers<void>();
    upstream.script((socket) => {
      // Once the gateway has ended its side as well: then it has noticed.
      socket.once("close", () => closed.resolve());
      socket.write(goodAnswer);
      setTimeout(() => socket.end(), 5);
    });
    for (let i = 0; i < 10; i++) {
      closed = Promise.withResolvers();
      expect((await ask()).status).toBe(200);
      await closed.promise;
    }
  });

  // hardening: F2
  test("passes on an early answer or a clear 502, without corrupting the next", async () => {
    upstream.answerEarly(true);
    const big = { ...chat, user: "x", x: "y".repeat(6_000_000) };
    for (const closes of [true, false]) {
      upstream.script((socket) => {
        const early = plainAnswer(413, '{"error":{"message":"too large for me"}}', { Connection: "close" });
        socket.write(early, () => {
          if (closes) socket.end();
        });
      });
      const { status } = await ask(big);
      expect([413, 502]).toContain(status);
    }
    await expectUnpoisoned();
  });
});
