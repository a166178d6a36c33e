// Model lists as the common servers write them, and lists that are none.
import { describe, expect, test } from "bun:test";
import { GatewayError } from "../domain/errors.ts";
import { getModels, parseModels } from "./http-engine.ts";

const list = (...data: unknown[]) => JSON.stringify({ object: "list", data });

describe("lists of the common servers", () => {
  test("OpenAI and Ollama: id, created, owner", () => {
    expect(
      parseModels(list({ id: "llama3.2:latest", object: "model", created: 1_735_000_000, owned_by: "library" })),
    ).toEqual([{ id: "llama3.2:latest", created: 1_735_000_000, ownedBy: "library" }]);
  });

  test("vLLM and SGLang: the context is max_model_len", () => {
    expect(
      parseModels(list({ id: "Qwen/Qwen3-8B", created: 1, owned_by: "vllm", max_model_len: 40_960 }))[0]?.context,
    ).toBe(40_960);
  });

  test("llama-server: the context is in meta", () => {
    const entry = { id: "m.gguf", created: 1, owned_by: "llamacpp", meta: { n_ctx_train: 32_768, n_ctx: 4_096 } };
    expect(parseModels(list(entry))[0]?.context).toBe(4_096);
    expect(parseModels(list({ ...entry, meta: null }))[0]?.context).toBeUndefined();
  });

  test("OpenRouter and LM Studio: context_length, max_context_length", () => {
    expect(parseModels(list({ id: "a", context_length: 128_000 }))[0]?.context).toBe(128_000);
    expect(parseModels(list({ id: "a", max_context_length: 8_192 }))[0]?.context).toBe(8_192);
  });

  test("another Headrace: capabilities as booleans; a server's own list of names says nothing", () => {
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

test("entries that are no model are left out, and fields that make no sense are left away", () => {
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
  "%p is no model list",
  (text) => {
    expect(() => parseModels(text)).toThrow();
  },
);

describe("GET /models", () => {
  async function ask(answer: () => Response | Promise<Response>, timeoutMs = 2_000) {
    using server = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: answer });
    const target = { name: "t", url: server.url.href.replace(/\/$/, ""), firstByteTimeoutMs: timeoutMs };
    return await getModels(target, AbortSignal.timeout(timeoutMs)).catch((error: unknown) => error);
  }

  test("any status but 200 is told by its number", async () => {
    for (const status of [204, 301, 401, 404, 500]) {
      const error = await ask(() => new Response(null, { status, headers: { location: "http://127.0.0.1:1/" } }));
      expect(error).toBeInstanceOf(GatewayError);
      expect((error as Error).message).toContain(String(status));
    }
  });

  test("a list without end is given up without holding it in memory", async () => {
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

  test("a server that is silent is given up when the time is over", async () => {
    const startedMs = performance.now();
    const error = await ask(() => new Promise<Response>(() => {}), 200);
    expect(error).toBeInstanceOf(Error);
    expect(performance.now() - startedMs).toBeLessThan(2_000);
  });
});
