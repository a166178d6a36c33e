// A model server that misbehaves in the middle of a stream: an error event without [DONE], and what came before it kept.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { clientEvents } from "../contract/replay.ts";
import { startHeadrace, type TestServer, until } from "../support/headrace.ts";
import { withinMs } from "../support/long.ts";
import { chunk } from "../support/scripted-upstream.ts";
import { plainAnswer, type RawUpstream, rawYaml, startRawUpstream, streamHead, upstreamKey } from "./raw-upstream.ts";

let upstream: RawUpstream;
let server: TestServer;

beforeAll(async () => {
  upstream = await startRawUpstream();
  server = await startHeadrace({
    yaml: rawYaml(upstream, ", timeout_seconds: 1, idle_seconds: 1"),
    heartbeatMs: 100,
  });
});

beforeEach(() => {
  upstream.requests.length = 0;
});

afterAll(async () => {
  await server[Symbol.asyncDispose]();
  await upstream[Symbol.asyncDispose]();
});

const body = { model: "upstream-model", messages: [{ role: "user", content: "Hi" }], stream: true };
const hello = chunk({ role: "assistant", content: "Hello" });

interface Seen {
  status: number;
  text: string;
  comments: number;
  content: string;
  error: { message: string; code: string; type: string } | undefined;
  done: boolean;
}

async function stream(gateway = server): Promise<Seen> {
  const response = await gateway.request("/v1/chat/completions", { body, signal: AbortSignal.timeout(10_000) });
  const text = await response.text();
  const seen: Seen = { status: response.status, text, comments: 0, content: "", error: undefined, done: false };
  if (response.status !== 200) return { ...seen, error: JSON.parse(text).error };
  for (const { data, comment } of clientEvents(text)) {
    if (comment !== undefined) seen.comments++;
    else if (data === "[DONE]") seen.done = true;
    else {
      const event = JSON.parse(data ?? "");
      if (event.error) seen.error = event.error;
      else seen.content += event.choices[0].delta.content ?? "";
    }
  }
  return seen;
}

function expectFailed(seen: Seen, content: string, code = "upstream_error"): void {
  expect({ ...seen, text: "", comments: 0 }).toEqual({
    status: 200,
    text: "",
    comments: 0,
    content,
    error: { message: expect.any(String) as never, type: "api_error", code },
    done: false,
  });
  expect(seen.text.trimEnd().split("\n\n").at(-1)).toContain('"error"');
}

describe("a stream that fails after its first event", () => {
  // hardening: F2
  test.each([
    ["a reset", "reset"],
    ["a close", "end"],
  ] as const)("reports %s as an error event after the delivered text, and counts the text", async (_name, how) => {
    upstream.script(async (socket) => {
      socket.write(streamHead + hello);
      await Bun.sleep(20);
      if (how === "reset") socket.resetAndDestroy();
      else socket.end();
    });
    const lines = server.logged("request").length;
    expectFailed(await stream(), "Hello");
    const line = await until(() => server.logged("request")[lines], "the log line");
    expect(line).toMatchObject({ outcome: "failed", code: "upstream_error", estimated: true });
    expect(line["completion_tokens"]).toBeGreaterThan(0);
  });

  test("delivers the text before an error event if both arrive together", async () => {
    upstream.script((socket) => void socket.end(`${streamHead}${hello}data: {"error":{"message":"boom"}}\n\n`));
    const seen = await stream();
    expectFailed(seen, "Hello");
    expect(seen.error?.message).toBe("boom");
  });

  // hardening: F2
  test("reports malformed JSON as an error event without quoting it, after the delivered text", async () => {
    upstream.script((socket) => void socket.end(`${streamHead}${hello}data: {"choices": [CANARY\n\n`));
    const seen = await stream();
    expectFailed(seen, "Hello");
    expect(seen.text).not.toContain("CANARY");
    expect(server.logText()).not.toContain("CANARY");
  });

  // hardening: F2
  test("reports a broken transfer chunk as an error event", async () => {
    const size = Buffer.byteLength(hello).toString(16);
    upstream.script(async (socket) => {
      socket.write("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n");
      socket.write(`${size}\r\n${hello}\r\n`);
      await Bun.sleep(20);
      socket.end("zz\r\n");
    });
    expectFailed(await stream(), "Hello");
  });

  // hardening: F2
  test("reports silence beyond the idle time as upstream_timeout after keep-alives, and closes the connection", async () => {
    upstream.script((socket) => void socket.write(streamHead + hello));
    const seen = await stream();
    expectFailed(seen, "Hello", "upstream_timeout");
    expect(seen.comments).toBeGreaterThan(3);
    await until(() => upstream.requests[0]?.hungUp, "the gateway hangs up", 1_000);
  });

  test("tolerates any number of silences within the idle time", async () => {
    upstream.script(async (socket) => {
      socket.write(streamHead);
      for (let i = 0; i < 4; i++) {
        await Bun.sleep(450);
        socket.write(chunk({ content: String(i) }));
      }
      socket.end(`${chunk({}, "stop")}data: [DONE]\n\n`);
    });
    const seen = await stream();
    expect(seen).toMatchObject({ content: "0123", done: true, error: undefined });
    expect(seen.comments).toBeGreaterThan(3);
  });

  // hardening: F11
  test("counts a model server's comment as a sign of life", async () => {
    upstream.script(async (socket) => {
      socket.write(streamHead);
      for (let i = 0; i < 4; i++) {
        await Bun.sleep(450);
        socket.write(": thinking\n\n");
      }
      socket.end(`${hello}${chunk({}, "stop")}data: [DONE]\n\n`);
    });
    expect(await stream()).toMatchObject({ content: "Hello", done: true, error: undefined });
  });

  test("ignores data after [DONE] and does not hold the client on an open connection", async () => {
    upstream.script((socket) => {
      socket.write(`HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n`);
      const events = `${hello}${chunk({}, "stop")}data: [DONE]\n\n${chunk({ content: "MORE" })}data: {"error":{}}\n\n`;
      socket.write(`${Buffer.byteLength(events).toString(16)}\r\n${events}\r\n`);
    });
    const startedMs = performance.now();
    const seen = await stream();
    expect(seen).toMatchObject({ content: "Hello", done: true, error: undefined });
    expect(performance.now() - startedMs).toBeLessThan(withinMs(900));
    await until(() => upstream.requests[0]?.hungUp, "the gateway lets the connection go", 3_000);
  });
});

describe("a stream that fails before its first event", () => {
  test("sends keep-alives and then upstream_timeout as an event if no answer comes", async () => {
    upstream.script(() => {});
    const seen = await stream();
    expectFailed(seen, "", "upstream_timeout");
    expect(seen.comments).toBeGreaterThan(3);
  });

  test("returns the real status of a failure within the first heartbeat", async () => {
    for (const [script, status] of [
      ["reset", 502],
      ["500", 502],
      ["429", 503],
      ["400", 400],
    ] as const) {
      upstream.script((socket) => {
        if (script === "reset") socket.resetAndDestroy();
        else socket.write(plainAnswer(Number(script), '{"error":{"message":"no"}}'));
      });
      const seen = await stream();
      expect([script, seen.status]).toEqual([script, status]);
      expect(seen.error?.message).toBeString();
    }
  });

  // hardening: F2
  test("reports a failure after keep-alives as an error event with its code", async () => {
    for (const [status, code] of [
      [500, "upstream_error"],
      [503, "service_unavailable"],
      [400, "invalid_request"],
    ] as const) {
      upstream.script(async (socket) => {
        // Some keep-alives later, and before the second after which it has taken too long.
        await Bun.sleep(500);
        socket.write(plainAnswer(status, '{"error":{"message":"late"}}'));
      });
      const seen = await stream();
      expect(seen.status).toBe(200);
      expect(seen.comments).toBeGreaterThan(0);
      expect(seen.error?.code).toBe(code);
      expect(seen.done).toBe(false);
    }
  });

  test.each([
    ["an error in JSON", plainAnswer(200, '{"error":{"message":"boom"}}')],
    ["a web page", plainAnswer(200, "<html>data: no</html>", { "Content-Type": "text/html" })],
    ["nothing", plainAnswer(200, "")],
    ["no content", "HTTP/1.1 204 No Content\r\n\r\n"],
  ])("reports %s in place of a stream as an error event without [DONE], or by status", async (_name, bytes) => {
    upstream.script((socket) => void socket.write(bytes));
    const seen = await stream();
    expect([200, 502]).toContain(seen.status);
    expect(seen.error?.code).toBe("upstream_error");
    expect(seen.done).toBe(false);
  });
});

describe("an oversized event of a model server", () => {
  // hardening: F2
  test("refuses an event line of 10 MB with little memory and time", async () => {
    Bun.gc(true);
    const before = process.memoryUsage.rss();
    let written = 0;
    upstream.script(async (socket) => {
      socket.write(`${streamHead}${hello}data: {"choices":[{"index":0,"delta":{"content":"`);
      const piece = "x".repeat(65_536);
      for (let i = 0; i < 160 && !socket.destroyed; i++) {
        await new Promise<void>((resolve) => socket.write(piece, () => resolve()));
        written += piece.length;
      }
      socket.end('"}}]}\n\n');
    });
    const startedMs = performance.now();
    let maxStallMs = 0;
    let lastMs = startedMs;
    const watch = setInterval(() => {
      maxStallMs = Math.max(maxStallMs, performance.now() - lastMs);
      lastMs = performance.now();
    }, 5);
    const seen = await stream();
    clearInterval(watch);
    expectFailed(seen, "Hello");
    expect(seen.text.length).toBeLessThan(2_000);
    expect(written).toBeGreaterThan(1_000_000);
    expect(performance.now() - startedMs).toBeLessThan(withinMs(5_000));
    expect(maxStallMs).toBeLessThan(withinMs(1_000));
    expect((process.memoryUsage.rss() - before) / 1e6).toBeLessThan(250);
    await until(() => upstream.requests[0]?.hungUp, "the gateway hangs up", 2_000);
  });

  test("passes an event of 2 MB whole", async () => {
    const image = "i".repeat(2_000_000);
    upstream.script((socket) => {
      socket.end(`${streamHead}${chunk({ role: "assistant", content: image })}${chunk({}, "stop")}data: [DONE]\n\n`);
    });
    const seen = await stream();
    expect(seen.content.length).toBe(image.length);
    expect(seen.done).toBe(true);
  });

  test("refuses a stream without line ends", async () => {
    upstream.script(async (socket) => {
      socket.write(streamHead);
      for (let i = 0; i < 160 && !socket.destroyed; i++) {
        await new Promise<void>((resolve) => socket.write("\0".repeat(65_536), () => resolve()));
      }
      socket.end();
    });
    // Where a comment has not opened the answer before, it is a plain error.
    const { content, error, done } = await stream();
    expect([content, error?.code, done]).toEqual(["", "upstream_error", false]);
  });
});

test("never shows a model server's credential to a client in an error event", async () => {
  upstream.script((socket) => {
    socket.end(`${streamHead}${hello}data: {"error":{"message":"bad key ${upstreamKey}"}}\n\n`);
  });
  const seen = await stream();
  expect(seen.error?.code).toBe("upstream_error");
  expect(seen.text).not.toContain(upstreamKey);
});

// hardening: F2
test("does not disturb other streams of a model server by a failing one", async () => {
  upstream.script(async (socket, { number }) => {
    socket.write(streamHead + hello);
    await Bun.sleep(10);
    if (number % 2 === 0) return void socket.resetAndDestroy();
    socket.end(`${chunk({ content: " world" })}${chunk({}, "stop")}data: [DONE]\n\n`);
  });
  const seen = await Promise.all(Array.from({ length: 40 }, () => stream()));
  expect(seen.filter((answer) => answer.done && answer.content === "Hello world")).toHaveLength(20);
  expect(seen.filter((answer) => answer.error && !answer.done && answer.content === "Hello")).toHaveLength(20);
});
