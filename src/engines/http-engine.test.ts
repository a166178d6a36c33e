// Tests model lists of common servers, invalid model lists, and requests and their failures, with both clients.
import { describe, expect, test } from "bun:test";
import { withinMs } from "../../tests/support/long.ts";
import { readAll } from "../base/bytes/body-source.ts";
import { bufferedBytes } from "../base/bytes/buffered-bytes.ts";
import { Cancellation } from "../base/cancellation.ts";
import { GatewayError } from "../base/errors.ts";
import type { EngineRequest, EngineResponse } from "../domain/models/engine.ts";
import { usualSpeech } from "../domain/models/upstream-speech.ts";
import { type HttpTarget, httpTarget, postJson } from "./http-engine.ts";
import { getModels, parseModels } from "./model-list.ts";

const list = (...data: unknown[]) => JSON.stringify({ object: "list", data });

describe("model lists of common servers", () => {
  test("reads id, created and owner from OpenAI and Ollama", () => {
    expect(
      parseModels(list({ id: "llama3.2:latest", object: "model", created: 1_735_000_000, owned_by: "library" })),
    ).toEqual([{ id: "llama3.2:latest", created: 1_735_000_000, ownedBy: "library" }]);
  });

  test("reads the null of an Ollama without models as an empty list", () => {
    expect(parseModels('{"object":"list","data":null}')).toEqual([]);
    expect(() => parseModels('{"data":null}')).toThrow();
  });

  test("reads the context of vLLM and SGLang from max_model_len", () => {
    expect(
      parseModels(list({ id: "Qwen/Qwen3-8B", created: 1, owned_by: "vllm", max_model_len: 40_960 }))[0]?.context,
    ).toBe(40_960);
  });

  test("reads the context of llama-server from meta", () => {
    const entry = { id: "m.gguf", created: 1, owned_by: "llamacpp", meta: { n_ctx_train: 32_768, n_ctx: 4_096 } };
    expect(parseModels(list(entry))[0]?.context).toBe(4_096);
    expect(parseModels(list({ ...entry, meta: null }))[0]?.context).toBeUndefined();
  });

  test("reads the announced end of a model by the names of OpenAI, OpenRouter and Mistral", () => {
    const end = Date.UTC(2026, 11, 11) / 1000;
    expect(parseModels(list({ id: "a", shutdown_date: "2026-12-11" }))[0]?.shutdownAt).toBe(end);
    expect(parseModels(list({ id: "a", expiration_date: "2026-12-11" }))[0]?.shutdownAt).toBe(end);
    expect(parseModels(list({ id: "a", deprecation: "2026-12-11T00:00:00Z" }))[0]?.shutdownAt).toBe(end);
    for (const value of [null, "soon", 7, {}]) {
      expect(parseModels(list({ id: "a", shutdown_date: value }))[0]).not.toHaveProperty("shutdownAt");
    }
  });

  test("reads context_length of OpenRouter and max_context_length of LM Studio", () => {
    expect(parseModels(list({ id: "a", context_length: 128_000 }))[0]?.context).toBe(128_000);
    expect(parseModels(list({ id: "a", max_context_length: 8_192 }))[0]?.context).toBe(8_192);
  });

  test("reads capabilities of another Headrace as booleans, and ignores a list of names", () => {
    expect(
      parseModels(list({ id: "a", capabilities: { chat: true, embeddings: false, vision: true } }))[0]?.capabilities,
    ).toEqual({
      chat: true,
      embeddings: false,
    });
    expect(parseModels(list({ id: "a", capabilities: ["completion"] }))[0]).toEqual({ id: "a" });
    expect(parseModels(list({ id: "a", capabilities: { chat: "yes" } }))[0]).toEqual({ id: "a" });
  });
});

test("skips entries that are no model and fields with invalid values", () => {
  const models = parseModels(
    list(
      null,
      7,
      "x",
      [],
      {},
      { id: "" },
      { id: 7 },
      { id: "x".repeat(257) },
      { id: "a\u0000b" },
      { id: "a\nb" },
      { id: "a\ud800b" },
      { id: "ok", created: -1, owned_by: 7 },
      {
        id: "also",
        created: "yesterday",
        owned_by: "",
        context_length: 1.5,
        max_model_len: 0,
      },
    ),
  );
  expect(models).toEqual([{ id: "ok" }, { id: "also" }]);
});

test.each(["", "no", "null", "[]", "7", "{}", '{"data":{}}', '{"data":null}', '{"models":[]}'])(
  "rejects %p as a model list",
  (text) => {
    expect(() => parseModels(text)).toThrow();
  },
);

describe("GET /models", () => {
  async function ask(answer: () => Response | Promise<Response>, timeoutMs = 2_000) {
    using server = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: answer });
    const timing = { firstByteTimeoutMs: timeoutMs, idleTimeoutMs: timeoutMs };
    const target = httpTarget({ name: "t", url: server.url.href, ...timing });
    return await getModels(target, AbortSignal.timeout(timeoutMs)).catch((error: unknown) => error);
  }

  test("reports the status of a failed model list", async () => {
    for (const status of [204, 301, 401, 404, 500]) {
      const error = await ask(() => new Response(null, { status, headers: { location: "http://127.0.0.1:1/" } }));
      expect(error).toBeInstanceOf(GatewayError);
      expect((error as Error).message).toContain(String(status));
    }
  });

  test("gives up an endless model list without buffering it", async () => {
    const piece = new Uint8Array(1024 * 1024).fill(0x20);
    let sent = 0;
    const error = await ask(
      () =>
        new Response(
          new ReadableStream({
            pull(controller) {
              sent++;
              if (sent > 200) controller.close();
              else controller.enqueue(piece);
            },
          }),
        ),
      5_000,
    );
    expect(error).toBeInstanceOf(GatewayError);
    expect(sent).toBeLessThan(64);
  });

  test("times out a silent server that is asked for its models", async () => {
    const startedMs = performance.now();
    const error = await ask(() => new Promise<Response>(() => {}), 200);
    expect(error).toBeInstanceOf(Error);
    expect(performance.now() - startedMs).toBeLessThan(withinMs(2_000));
  });
});

describe.each(["own", "fetch"] as const)("a request by the client %s", (httpClient) => {
  const request: EngineRequest = {
    requestId: "req_1",
    operation: "chat",
    model: "m",
    body: '{"model":"m"}',
    stream: false,
    width: 1,
    memoryAccount: bufferedBytes.visitors,
  };

  function targetOf(port: number, options: { timeoutMs?: number; url?: string } = {}): HttpTarget {
    const { timeoutMs = 2_000, url = `http://127.0.0.1:${port}/v1/` } = options;
    const timing = { firstByteTimeoutMs: timeoutMs, idleTimeoutMs: timeoutMs };
    return httpTarget({ name: "up", url, apiKey: "k-123", httpClient, ...timing });
  }

  /** Starts a server that answers every request with these bytes and closes the connection if `end` is true. */
  function bytesServer(bytes: string, end: boolean) {
    return Bun.listen({
      hostname: "127.0.0.1",
      port: 0,
      socket: {
        data(socket) {
          socket.write(bytes);
          if (end) socket.end();
        },
      },
    });
  }

  const read = ({ body }: EngineResponse) => readAll(body, 1_000_000, new Cancellation(), () => {});
  const failure = (eventual: PromiseLike<unknown>) =>
    eventual.then(
      () => undefined,
      (error: unknown) => error,
    );

  test("sends a request below the base URL, with the credential and no foreign headers", async () => {
    const seen: [string, string, Record<string, string>, string][] = [];
    using server = Bun.serve({
      port: 0,
      hostname: "127.0.0.1",
      async fetch(incoming) {
        const { pathname } = new URL(incoming.url);
        seen.push([incoming.method, pathname, Object.fromEntries(incoming.headers), await incoming.text()]);
        return new Response("answer", { status: 418, headers: { "Retry-After": "7" } });
      },
    });
    const response = await postJson(targetOf(server.port as number), { ...request, stream: true }, new Cancellation());
    expect(response.status).toBe(418);
    expect(response.headers.get("retry-after")).toBe("7");
    expect(response.headers.get("x-none")).toBeNull();
    expect((await read(response)).text).toBe("answer");
    const [method, path, headers, body] = seen[0] ?? [];
    expect([method, path, body]).toEqual(["POST", "/v1/chat/completions", '{"model":"m"}']);
    expect(headers).toEqual({
      accept: "text/event-stream",
      "accept-encoding": "identity",
      authorization: "Bearer k-123",
      connection: "keep-alive",
      "content-length": "13",
      "content-type": "application/json",
      host: `127.0.0.1:${server.port}`,
      "user-agent": "headrace",
      "x-request-id": "req_1",
    });
  });

  test.each([
    [{}, "authorization", "/v1/messages"],
    [
      { keyHeader: "api-key", query: { "api-version": "preview", a: "b&c" } },
      "api-key",
      "/v1/messages?api-version=preview&a=b%26c",
    ],
    [{ api: "messages" }, "x-api-key", "/v1/messages"],
    [{ api: "messages", keyHeader: "authorization" }, "authorization", "/v1/messages"],
  ] as const)("builds the header and path of a request by the settings %j", async (speech, header, path) => {
    const seen: { headers: Headers; url: string }[] = [];
    using server = Bun.serve({
      port: 0,
      hostname: "127.0.0.1",
      fetch: (incoming) => {
        seen.push({ headers: new Headers(incoming.headers), url: incoming.url });
        return new Response("{}");
      },
    });
    const timing = { firstByteTimeoutMs: 2_000, idleTimeoutMs: 2_000 };
    // The address has no /v1, which may be left out of an address of Anthropic's API.
    const url = `http://127.0.0.1:${server.port}${"api" in speech ? "" : "/v1"}`;
    const how = { ...usualSpeech, ...speech };
    const target = httpTarget({ name: "up", url, apiKey: "k-123", speech: how, httpClient, ...timing });
    await read(await postJson(target, { ...request, operation: "message" }, new Cancellation()));
    const [{ headers, url: asked } = { headers: new Headers(), url: "" }] = seen;
    expect(asked).toBe(`http://127.0.0.1:${server.port}${path}`);
    const keys = ["authorization", "api-key", "x-api-key"].filter((name) => headers.has(name));
    expect(keys).toEqual([header]);
    expect(headers.get(header)).toBe(header === "authorization" ? "Bearer k-123" : "k-123");
    expect(headers.get("anthropic-version")).toBe("2023-06-01");
  });

  test.each([
    ["https://api.anthropic.com", "/v1"],
    ["https://api.anthropic.com/v1", "/v1"],
    ["https://api.example.com/anthropic/", "/anthropic/v1"],
    ["https://api.example.com/anthropic/v1", "/anthropic/v1"],
  ])("sends requests to Anthropic's API at %s below %s", (url, path) => {
    const timing = { firstByteTimeoutMs: 1, idleTimeoutMs: 1 };
    expect(
      httpTarget({ name: "up", url, speech: { ...usualSpeech, api: "messages" }, httpClient, ...timing }).basePath,
    ).toBe(path);
  });

  test("follows no redirect, which would leak the credential", async () => {
    let elsewhere = 0;
    using other = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: () => new Response(`${++elsewhere}`) });
    using server = Bun.serve({
      port: 0,
      hostname: "127.0.0.1",
      fetch: () => new Response(null, { status: 307, headers: { location: other.url.href } }),
    });
    const response = await postJson(targetOf(server.port as number), request, new Cancellation());
    response.body.cancel();
    expect(response.status).toBe(307);
    expect(elsewhere).toBe(0);
  });

  test("fails a request to a closed port with upstream_error", async () => {
    const free = Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data() {} } });
    free.stop(true);
    const error = await failure(postJson(targetOf(free.port), request, new Cancellation()));
    expect(error).toMatchObject({ code: "upstream_error", message: "The model server cannot be reached." });
    expect((error as GatewayError).detail).toStartWith("up: ");
  });

  test("fails a request to a server that closes or speaks no HTTP with upstream_error", async () => {
    for (const bytes of ["", "nonsense\r\n\r\n"]) {
      using server = bytesServer(bytes, true);
      const error = await failure(postJson(targetOf(server.port), request, new Cancellation()));
      expect(error).toMatchObject({ code: "upstream_error" });
    }
  });

  test("fails a request to a silent server with upstream_timeout", async () => {
    using server = bytesServer("", false);
    const error = await failure(postJson(targetOf(server.port, { timeoutMs: 500 }), request, new Cancellation()));
    expect(error).toMatchObject({
      code: "upstream_timeout",
      message: "The model server did not answer within 1 s.",
    });
  });

  test("fails a body that falls silent midway with upstream_timeout", async () => {
    using server = bytesServer("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf", false);
    const response = await postJson(targetOf(server.port, { timeoutMs: 150 }), request, new Cancellation());
    expect(await failure(read(response))).toMatchObject({
      code: "upstream_timeout",
      message: "The model server stopped sending in the middle of the answer.",
    });
  });

  test("fails an answer that breaks off with the connection's own error", async () => {
    using server = bytesServer("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf", true);
    const response = await postJson(targetOf(server.port), request, new Cancellation());
    const error = await failure(read(response));
    expect(error).toBeInstanceOf(Error);
    expect(error).not.toBeInstanceOf(GatewayError);
  });

  test("rejects a cancelled request with the reason, and closes its connection", async () => {
    let closed = 0;
    using server = Bun.listen({
      hostname: "127.0.0.1",
      port: 0,
      socket: {
        data: (socket) => void socket.write("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf"),
        close: () => void closed++,
      },
    });
    const cancellation = new Cancellation();
    const answer = postJson(targetOf(server.port), request, cancellation);
    cancellation.cancel("left");
    expect(await failure(answer)).toBe("left");
    const { body } = await postJson(targetOf(server.port), request, new Cancellation());
    const before = closed;
    body.cancel();
    for (let waited = 0; closed === before && waited < 1_000; waited++) await Bun.sleep(1);
    expect(closed).toBeGreaterThan(before);
  });

  test("pauses an answer while its receiver is paused", async () => {
    using server = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: () => new Response(new Uint8Array(3_000_000)) });
    const { body } = await postJson(targetOf(server.port as number), request, new Cancellation());
    let length = 0;
    let pieces = 0;
    await new Promise<void>((resolve, reject) => {
      body.flow({
        data(bytes) {
          length += bytes.length;
          if (++pieces > 1) return;
          body.pause();
          setTimeout(() => {
            if (pieces > 2) reject(new Error(`${pieces} pieces came in the pause`));
            body.resume();
          }, 30);
        },
        end: resolve,
        fail: reject,
      });
    });
    expect(length).toBe(3_000_000);
  });
});
