// What a model server's statuses and words become: the decided codes, no redirect followed, nothing of its own leaked.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { until } from "../support/headrace.ts";
import { chat, type FaultyServer, startFaultyServer } from "./faulty-server.ts";
import {
  completion,
  goodAnswer,
  plainAnswer,
  type RawUpstream,
  startRawUpstream,
  upstreamKey,
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

describe("statuses of a model server", () => {
  const statuses: readonly [theirs: number, ours: number, code: string][] = [
    [400, 400, "invalid_request"],
    [422, 400, "invalid_request"],
    [413, 413, "request_too_large"],
    [401, 502, "upstream_error"],
    [403, 502, "upstream_error"],
    [404, 502, "upstream_error"],
    [402, 502, "upstream_error"],
    [405, 502, "upstream_error"],
    [418, 502, "upstream_error"],
    [408, 504, "upstream_timeout"],
    [504, 504, "upstream_timeout"],
    [429, 503, "service_unavailable"],
    [503, 503, "service_unavailable"],
    [500, 502, "upstream_error"],
    [501, 502, "upstream_error"],
    [502, 502, "upstream_error"],
    [529, 503, "service_unavailable"],
  ];

  test.each(statuses)("maps a model server's %d to %d %s, streamed or not", async (theirs, ours, code) => {
    const body = JSON.stringify({ error: { message: "Words of the server", type: "x", code: "y" } });
    upstream.script((socket) => void socket.write(plainAnswer(theirs, body)));
    for (const stream of [false, true]) {
      const seen = await ask({ ...chat, stream });
      expect([seen.status, seen.code]).toEqual([ours, code]);
      if (ours === 400) expect(seen.message).toBe("Words of the server");
      // What a server says of its own trouble is for its operator.
      if (ours >= 500) expect(seen.message).not.toContain("Words");
      expect(seen.headers.has("retry-after")).toBe(ours === 503);
    }
    await expectUnpoisoned();
  });

  test("maps a model server's statuses with a web page as body", async () => {
    for (const [theirs, ours, code] of statuses) {
      const page = `<html><h1>${theirs}</h1> nginx ${upstreamKey}</html>`;
      upstream.script((socket) => void socket.write(plainAnswer(theirs, page, { "Content-Type": "text/html" })));
      const seen = await ask();
      expect([seen.status, seen.code]).toEqual([ours, code]);
      expect(seen.message).not.toMatch(/nginx|html|upk/);
    }
    await expectUnpoisoned();
  });

  test.each([
    ["7", 7, "7000"],
    ["0.5", 1, "1000"],
    ["999999", 60, "60000"],
    ["-5", 5, "5000"],
    ["soon", 5, "5000"],
    ["Wed, 21 Oct 2099 07:28:00 GMT", 5, "5000"],
  ])("maps a model server's Retry-After: %s to %d s", async (theirs, seconds, milliseconds) => {
    upstream.script((socket) => void socket.write(plainAnswer(503, "{}", { "Retry-After": theirs })));
    const { headers, message } = await ask();
    expect(headers.get("retry-after")).toBe(String(seconds));
    expect(headers.get("retry-after-ms")).toBe(milliseconds);
    expect(message).toContain(`Retry in ${seconds} s`);
  });

  test("does not read an endless error body to its end", async () => {
    let sent = 0;
    upstream.script(async (socket) => {
      socket.write("HTTP/1.1 500 Oops\r\nTransfer-Encoding: chunked\r\n\r\n");
      while (!socket.destroyed && sent < 200) {
        sent++;
        socket.write(`10000\r\n${"x".repeat(65_536)}\r\n`);
        await Bun.sleep(1);
      }
    });
    expect((await ask()).status).toBe(502);
    await until(() => upstream.requests[0]?.hungUp, "the gateway hangs up", 2_000);
    expect(sent).toBeLessThan(200);
    await expectUnpoisoned();
  });

  test("does not hold the client for an error body that never comes", async () => {
    upstream.script((socket) => void socket.write("HTTP/1.1 500 Oops\r\nContent-Length: 100\r\n\r\n{"));
    expect([502, 504]).toContain((await ask()).status);
    await until(() => upstream.requests[0]?.hungUp, "the gateway hangs up", 1_000);
    await expectUnpoisoned();
  });

  test.each([301, 302, 303, 307, 308])("does not follow a redirect (%d) to another host", async (status) => {
    await using other = await startRawUpstream((socket) => void socket.write(goodAnswer));
    const location = `${other.url}/chat/completions`;
    upstream.script((socket) => void socket.write(plainAnswer(status, "{}", { Location: location })));
    const seen = await ask();
    expect([seen.status, seen.code]).toEqual([502, "upstream_error"]);
    expect(seen.headers.get("location")).toBeNull();
    expect(other.requests).toHaveLength(0);
    await expectUnpoisoned();
  });
});

describe("texts of a model server", () => {
  // hardening: F33
  test("never passes on a model server's own credential, however short, in any answer", async () => {
    const said = `Incorrect API key provided: ${upstreamKey}. Bearer ${upstreamKey} is not valid`;
    const bodies = [
      JSON.stringify({ error: { message: said } }),
      JSON.stringify({ error: said }),
      JSON.stringify({ message: said }),
      JSON.stringify({ detail: said }),
    ];
    for (const status of [200, 400, 401, 413, 422, 500]) {
      for (const body of bodies) {
        upstream.script((socket) => void socket.write(plainAnswer(status, body)));
        expect((await ask()).message).not.toContain(upstreamKey);
      }
    }
    expect(gateway.server.logText()).not.toContain(upstreamKey);
  });

  test("does not pass on a model server's addresses and internal names", async () => {
    const said = "see http://10.1.2.3:8000/v1 or https://vllm.internal/x and grpc://a:1";
    upstream.script((socket) => void socket.write(plainAnswer(400, JSON.stringify({ error: { message: said } }))));
    expect((await ask()).message).not.toMatch(/10\.1\.2\.3|internal|grpc/);
  });

  test("truncates a model server's long message", async () => {
    const body = JSON.stringify({ error: { message: "word ".repeat(20_000) } });
    upstream.script((socket) => void socket.write(plainAnswer(400, body)));
    expect((await ask()).message.length).toBeLessThanOrEqual(1_000);
  });

  test("does not pass on a model server's headers", async () => {
    const headers = { "Set-Cookie": "a=b", "X-Internal": "secret", Server: "vLLM", "X-Request-Id": "theirs" };
    for (const status of [200, 400, 500]) {
      upstream.script((socket) => void socket.write(plainAnswer(status, whole, headers)));
      const seen = await ask();
      for (const name of ["set-cookie", "x-internal", "server"]) expect(seen.headers.get(name)).toBeNull();
      expect(seen.headers.get("x-request-id")).toMatch(/^req_/);
    }
  });
});
