// Several deployments of a model: a failed one is followed by the next, once, and never after an answer began.
import { describe, expect, test } from "bun:test";
import { startHeadrace } from "../support/headrace.ts";
import { chat } from "./faulty-server.ts";
import { goodAnswer, plainAnswer, type RawScript, startRawUpstream } from "./raw-upstream.ts";

describe("several deployments of a model", () => {
  async function twoServers(first: RawScript) {
    const bad = await startRawUpstream(first);
    const good = await startRawUpstream((socket) => void socket.write(goodAnswer));
    const yaml = `upstreams:
  - { name: bad, url: "${bad.url}", timeout_seconds: 1, idle_seconds: 1 }
  - { name: good, url: "${good.url}" }
models:
  - id: m
    deployments: [{ upstream: bad, model: upstream-model, weight: 1000000 }, { upstream: good, model: upstream-model }]
`;
    const gateway = await startHeadrace({ yaml });
    return {
      bad,
      good,
      ask: (body: object) => gateway.request("/v1/chat/completions", { body: { ...chat, model: "m", ...body } }),
      async [Symbol.asyncDispose]() {
        await gateway[Symbol.asyncDispose]();
        await bad[Symbol.asyncDispose]();
        await good[Symbol.asyncDispose]();
      },
    };
  }

  test.each([
    ["no connection", (socket) => void socket.destroy()],
    ["no answer", () => {}],
    ["500", (socket) => void socket.write(plainAnswer(500, "{}"))],
    ["429", (socket) => void socket.write(plainAnswer(429, "{}"))],
    ["401", (socket) => void socket.write(plainAnswer(401, "{}"))],
    ["404", (socket) => void socket.write(plainAnswer(404, "{}"))],
    ["a redirect", (socket) => void socket.write(plainAnswer(302, "{}", { Location: "/" }))],
  ] as [string, RawScript][])("asks the second deployment after %s of the first, each once", async (_name, script) => {
    await using servers = await twoServers(script);
    expect((await servers.ask({})).status).toBe(200);
    expect([servers.bad.requests.length, servers.good.requests.length]).toEqual([1, 1]);
  });

  test("tries no other deployment after a refusal of the request itself", async () => {
    await using servers = await twoServers((socket) => void socket.write(plainAnswer(400, "{}")));
    expect((await servers.ask({})).status).toBe(400);
    expect(servers.good.requests).toHaveLength(0);
  });

  // hardening: F2
  test("retries nothing after an answer has begun", async () => {
    await using servers = await twoServers(async (socket) => {
      socket.write("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n");
      socket.write('data: {"choices":[{"index":0,"delta":{"content":"Hi"}}]}\n\n');
      await Bun.sleep(20);
      socket.destroy();
    });
    const text = await (await servers.ask({ stream: true })).text();
    expect(text).toContain('"Hi"');
    expect(text).toContain('"upstream_error"');
    expect(servers.good.requests).toHaveLength(0);
  });

  test("does not ask a deployment first that has just failed", async () => {
    await using servers = await twoServers((socket) => void socket.write(plainAnswer(500, "{}")));
    for (let i = 0; i < 5; i++) expect((await servers.ask({})).status).toBe(200);
    expect([servers.bad.requests.length, servers.good.requests.length]).toEqual([1, 5]);
  });
});
