// Tests the detection of a server's formats, with the answers of common servers to a request that cannot succeed.
import { afterEach, describe, expect, test } from "bun:test";
import { withinMs } from "../../tests/support/long.ts";
import { type UpstreamSpeech, usualSpeech } from "../domain/models/upstream-speech.ts";
import { knownFormats } from "./found-formats.ts";
import { UpstreamEngine } from "./upstream-engine.ts";

interface Asked {
  method: string;
  path: string;
  headers: Record<string, string>;
  body: string;
}

type Answer = (asked: Asked) => Response | Promise<Response>;

const open: { stop(force: boolean): Promise<void> }[] = [];
afterEach(async () => {
  for (const server of open.splice(0)) await server.stop(true);
});

const listed = () => Response.json({ object: "list", data: [{ id: "m" }] });

/**
 * Starts a server. `posts` answers all requests except GET. While `state.isAway`, the server answers 503 to every
 * request.
 */
function serve(posts: Answer, lists: Answer = listed, speech: Partial<UpstreamSpeech> = {}) {
  const asked: Asked[] = [];
  const state = { isAway: false };
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    async fetch(request) {
      const { pathname, search } = new URL(request.url);
      const { method, headers } = request;
      const one = { method, path: pathname + search, headers: Object.fromEntries(headers), body: await request.text() };
      asked.push(one);
      if (state.isAway) return new Response(null, { status: 503 });
      return await (method === "GET" ? lists(one) : posts(one));
    },
  });
  open.push(server);
  const engine = new UpstreamEngine({
    ...{ name: "up", url: `http://127.0.0.1:${server.port}/v1`, apiKey: "k-123", httpClient: "own" },
    speech: { ...usualSpeech, ...speech },
    ...{ firstByteTimeoutMs: 10_000, idleTimeoutMs: 10_000, maxConcurrency: undefined },
  });
  const list = () => engine.models(AbortSignal.timeout(10_000));
  const looks = () => asked.filter(({ method }) => method === "POST");
  return { engine, asked, state, list, looks };
}

const error = (status: number, value: unknown) => () => Response.json({ error: value }, { status });

const answers: [string, Answer, boolean][] = [
  ["vLLM: 400, a field is required", error(400, { message: "Field required", type: "Bad Request" }), true],
  ["FastAPI: 422", () => Response.json({ detail: [{ type: "missing" }] }, { status: 422 }), true],
  ["Ollama: 400, input must be a string or array", error(400, { message: "input must be a string or array" }), true],
  ["a server that wants another type of body: 415", () => new Response(null, { status: 415 }), true],
  ["llama-server of before: 500, key 'messages' not found", error(500, { message: "key 'messages' not found" }), true],
  ["vLLM: 404, no such model", error(404, { message: "The model `` does not exist.", param: "model" }), true],
  ["a 404 with the code of OpenAI", error(404, { message: "Not here", code: "model_not_found" }), true],
  ["llama-server: 404, file not found", error(404, { message: "File Not Found", type: "not_found_error" }), false],
  ["FastAPI: 404", () => Response.json({ detail: "Not Found" }, { status: 404 }), false],
  [
    "a path with the word model in the error of a 404",
    error(404, "no model route for POST /v1/responses or /messages"),
    false,
  ],
  ["Express: 404 in HTML", () => new Response("<p>Cannot POST, no model</p>", { status: 404 }), false],
  ["405", () => new Response(null, { status: 405 }), false],
  ["501", () => new Response(null, { status: 501 }), false],
  ["LM Studio: 200 to a path that it does not know", error(200, "Unexpected endpoint or method."), false],
  ["a redirect", () => new Response(null, { status: 307, headers: { location: "http://127.0.0.1:1/" } }), false],
];

test.each(answers)("detects a path from an answer: %s", async (_name, answer, has) => {
  const { engine, list, looks } = serve(answer);
  expect(engine.formats).toBeUndefined();
  expect(await list()).toHaveLength(1);
  const both = { chat: "whole", response: "functions", message: "functions" } as const;
  expect(engine.formats).toEqual(has ? both : { chat: "whole" });
  await list();
  expect(looks()).toHaveLength(2);
});

test.each([401, 403, 429, 500, 502, 503])(
  "treats status %d as no information and probes again with the next list",
  async (status) => {
    const { engine, list, looks } = serve(() => new Response("no", { status }));
    expect(await list()).toHaveLength(1);
    expect(engine.formats).toBeUndefined();
    await list();
    expect(looks()).toHaveLength(4);
  },
);

describe("the detection of formats", () => {
  const refusal = () => Response.json({ error: { message: "no" } }, { status: 400 });
  const onlyResponses: Answer = ({ path }) =>
    path === "/v1/responses" ? refusal() : new Response("", { status: 404 });

  test("probes formats without a model name and with the server's credential", async () => {
    const { list, looks } = serve(onlyResponses);
    await list();
    expect(looks().map(({ path, body }) => [path, body])).toEqual([
      ["/v1/responses", '{"input":false}'],
      ["/v1/messages", '{"messages":false}'],
    ]);
    for (const { headers } of looks()) expect(headers["authorization"]).toBe("Bearer k-123");
    expect(looks().map(({ headers }) => headers["anthropic-version"])).toEqual([undefined, "2023-06-01"]);
  });

  test("does not use SGLang's Responses, which lack function tools, unless the settings name them", async () => {
    const lists = () => Response.json({ object: "list", data: [{ id: "m", owned_by: "sglang" }] });
    const found = serve(refusal, lists);
    await found.list();
    expect(found.engine.formats).toEqual({ chat: "whole", message: "functions" });
    const named = serve(refusal, lists, { apis: ["chat", "responses"] });
    await named.list();
    expect(named.engine.formats).toEqual({ chat: "whole", response: "whole" });
  });

  test("probes formats again after twenty lists, and applies the new answer", async () => {
    let has = false;
    const { engine, list, looks } = serve(() => (has ? refusal() : new Response("", { status: 404 })));
    for (let lists = 0; lists < 20; lists++) await list();
    expect(looks()).toHaveLength(2);
    has = true;
    await list();
    expect(looks()).toHaveLength(4);
    expect(engine.formats).toMatchObject({ response: "functions" });
  });

  test("probes formats again after an outage, and keeps the known ones meanwhile", async () => {
    const { engine, state, list, looks } = serve(onlyResponses);
    await list();
    state.isAway = true;
    await expect(list()).rejects.toThrow("503");
    expect(engine.formats).toEqual({ chat: "whole", response: "functions" });
    state.isAway = false;
    await list();
    expect(looks()).toHaveLength(4);
    expect(engine.formats).toEqual({ chat: "whole", response: "functions" });
  });

  test("keeps the known formats after an inconclusive probe", async () => {
    let isBusy = false;
    const { engine, list } = serve((asked) => (isBusy ? new Response("", { status: 503 }) : onlyResponses(asked)));
    for (let lists = 0; lists < 20; lists++) await list();
    isBusy = true;
    await list();
    expect(engine.formats).toEqual({ chat: "whole", response: "functions" });
  });

  test("spends at most 2 s on a server that does not answer a format probe, and lists its models", async () => {
    const { engine, list } = serve(() => new Promise<Response>(() => {}));
    const startedMs = performance.now();
    expect(await list()).toHaveLength(1);
    expect(performance.now() - startedMs).toBeLessThan(withinMs(4_000));
    expect(engine.formats).toBeUndefined();
  });

  test("reads only the beginning of an endless answer to a format probe", async () => {
    const piece = new Uint8Array(64 * 1024).fill(0x20);
    let sent = 0;
    const endless = () =>
      new Response(
        new ReadableStream({
          pull(controller) {
            sent++;
            if (sent > 2_000) controller.close();
            else controller.enqueue(piece);
          },
        }),
        { status: 400 },
      );
    const { engine, list } = serve(endless);
    await list();
    expect(engine.formats).toMatchObject({ response: "functions" });
    expect(sent).toBeLessThan(1_000);
  });

  test("does not probe formats that are configured or implied by Anthropic's API", async () => {
    const named = serve(onlyResponses, listed, { apis: ["responses", "messages"] });
    expect(named.engine.formats).toEqual({ response: "whole", message: "whole" });
    await named.list();
    const messages = serve(onlyResponses, listed, { api: "messages" });
    expect(messages.engine.formats).toEqual({ message: "whole" });
    await messages.list();
    expect([named.looks(), messages.looks()]).toEqual([[], []]);
  });
});

test.each([
  ["https://api.openai.com/v1", { chat: "whole", response: "whole" }],
  ["https://example.openai.azure.com/openai/v1", { chat: "whole", response: "whole" }],
  ["https://api.anthropic.com/v1", { chat: "whole" }],
  ["https://notopenai.azure.com/v1", undefined],
  ["https://api.openai.com.example/v1", undefined],
] as const)("knows the formats of %s without a probe, or none", (url, formats) => {
  expect(knownFormats(url, usualSpeech)).toEqual(formats);
});

describe("Anthropic's list of models", () => {
  const entry = (id: string, more = {}) => ({ type: "model", id, display_name: id, ...more });
  const speech: Partial<UpstreamSpeech> = { api: "messages" };

  test("reads Anthropic's model list page by page, with context, time and capabilities", async () => {
    const first = [entry("a", { created_at: "2026-02-04T00:00:00Z", max_input_tokens: 200_000, max_tokens: 64_000 })];
    const { asked, list } = serve(
      () => new Response(),
      ({ path }) =>
        path.includes("after_id")
          ? Response.json({ data: [entry("b", { capabilities: { batch: {} } })], has_more: false, last_id: "b" })
          : Response.json({ data: first, has_more: true, last_id: "a" }),
      speech,
    );
    const capabilities = { chat: true, completion: false, embeddings: false };
    expect(await list()).toEqual([
      { id: "a", created: Date.UTC(2026, 1, 4) / 1000, context: 200_000, capabilities },
      { id: "b", capabilities },
    ]);
    expect(asked.map(({ path }) => path)).toEqual(["/v1/models?limit=1000", "/v1/models?limit=1000&after_id=a"]);
    expect(asked[0]?.headers).toMatchObject({ "x-api-key": "k-123", "anthropic-version": "2023-06-01" });
    expect(asked[0]?.headers).not.toHaveProperty("authorization");
  });

  test("gives up an endless model list of Anthropic after ten pages", async () => {
    const { asked, list } = serve(
      () => new Response(),
      () => Response.json({ data: [entry("a")], has_more: true, last_id: "a" }),
      speech,
    );
    await list();
    expect(asked).toHaveLength(10);
  });
});
