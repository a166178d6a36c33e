// Bodies as long as vendors take them are served on every way that a request can go, in bounded memory.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { randomBytes } from "node:crypto";
import { brotliCompressSync, constants, deflateSync, gzipSync, zstdCompressSync } from "node:zlib";
import { defaultMaxBufferedBytes } from "../../src/base/bytes/buffered-bytes.ts";
import { startHeadrace } from "../support/headrace.ts";
import { chatScript, type ScriptedUpstream, startUpstream } from "../support/scripted-upstream.ts";
import { startWatchedServer, type WatchedServer } from "../support/watched-server.ts";

const limit = 32 * 1024 * 1024;
/** Memory of the whole process. */
const maxRssBytes = 500e6;

let upstream: ScriptedUpstream;
let server: WatchedServer;
/** Characters of the body that the upstream received last. */
let received = 0;

const config = () => `
upstreams:
  - { name: up, url: "${upstream.url}", apis: [chat] }
guardrails:
  - { name: keys, kind: secrets, action: mask }
models:
  - { id: guarded, deployments: [{ upstream: up, model: upstream-model }], policies: { guardrails: [keys] } }
  - { id: continued, deployments: [{ upstream: up, model: upstream-model }], policies: { continuation: true } }
  - { id: cached, deployments: [{ upstream: up, model: upstream-model }], policies: { cache: { ttl_seconds: 60 } } }
`;

beforeAll(async () => {
  upstream = await startUpstream();
  upstream.script(async (request, response) => {
    upstream.requests.length = 0;
    received = request.text.length;
    await chatScript()(request, response);
  });
  server = await startWatchedServer({ yaml: config() });
});

afterAll(async () => {
  await server[Symbol.asyncDispose]();
  await upstream[Symbol.asyncDispose]();
});

const base64 = (length: number) =>
  randomBytes(Math.ceil((length * 3) / 4))
    .toString("base64")
    .slice(0, length);
const imageLength = limit / 2 - 1_000;
const imageUrl = () => `data:image/png;base64,${base64(imageLength)}`;

/** A JSON text of exactly so many bytes: `content` gives a request with some text in it. */
function ofLength(bytes: number, content: (text: string) => object): string {
  const short = JSON.stringify(content("text"));
  return short.replace('"text"', () => `"${"x".repeat(bytes - short.length + 4)}"`);
}

const bodies = {
  "/v1/chat/completions": (model: string, bytes = limit) => {
    const image = () => ({ type: "image_url", image_url: { url: imageUrl() } });
    const content = [image(), image()];
    return ofLength(bytes, (text) => ({
      model,
      messages: [
        { role: "user", content: text },
        { role: "user", content },
      ],
    }));
  },
  "/v1/messages": (model: string) => {
    const image = () => ({
      ...{ type: "image", source: { type: "base64", media_type: "image/png", data: base64(imageLength) } },
    });
    return JSON.stringify({ model, max_tokens: 10, messages: [{ role: "user", content: [image(), image()] }] });
  },
  "/v1/responses": (model: string) => {
    const image = () => ({ type: "input_image", image_url: imageUrl(), detail: "auto" });
    return JSON.stringify({ model, store: false, input: [{ role: "user", content: [image(), image()] }] });
  },
};

async function post(
  path: string,
  body: string | Uint8Array<ArrayBuffer> | ReadableStream<Uint8Array<ArrayBuffer>>,
  { url, key }: { url: string; key: string } = server,
  headers: Record<string, string> = {},
) {
  const response = await fetch(url + path, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json", ...headers },
    body,
  });
  const text = await response.text();
  return [response.status, response.ok ? "" : text];
}

const fast = { params: { [constants.BROTLI_PARAM_QUALITY]: 1 } };
const codings: readonly (readonly [coding: string, pack: (text: string) => Buffer])[] = [
  ["gzip", (text) => gzipSync(text, { level: 1 })],
  ["deflate", (text) => deflateSync(text, { level: 1 })],
  ["br", (text) => brotliCompressSync(text, fast)],
  ["zstd", (text) => zstdCompressSync(text)],
];

// hardening: F12
test.each(
  (["upstream-model", "guarded", "continued", "cached"] as const).flatMap((model) => {
    const paths = Object.keys(bodies) as (keyof typeof bodies)[];
    // Those that do most with a body are asked on every path.
    return (model === "continued" || model === "cached" ? paths.slice(0, 1) : paths).map(
      (path) => [path, model] as const,
    );
  }),
)("serves a body of 32 MiB at %s by the model %s within 500 MB of memory", async (path, model) => {
  await server.beginAnew();
  received = 0;
  expect(await post(path, bodies[path](model))).toEqual([200, ""]);
  expect(received).toBeGreaterThan(limit - 5_000);
  const { peakRssBytes, bufferedBytes } = await server.figures();
  expect(peakRssBytes).toBeLessThan(maxRssBytes);
  expect(bufferedBytes).toBeLessThan(1_000_000);
});

// hardening: F12
test.each(codings)("serves a body of 32 MiB compressed by %s", async (coding, pack) => {
  const packed = new Uint8Array(pack(bodies["/v1/chat/completions"]("guarded")));
  expect(packed.length).toBeGreaterThan(limit / 2);
  await server.beginAnew();
  expect(await post("/v1/chat/completions", packed, server, { "content-encoding": coding })).toEqual([200, ""]);
  expect((await server.figures()).peakRssBytes).toBeLessThan(maxRssBytes);
});

test("refuses a body one byte over 32 MiB, plain or compressed", async () => {
  const body = bodies["/v1/chat/completions"]("upstream-model", limit + 1);
  const says = (when: string) => [413, expect.stringContaining(`larger than the limit of ${limit} bytes${when}`)];
  expect(await post("/v1/chat/completions", body)).toEqual(says("."));
  const packed = new Uint8Array(gzipSync(body, { level: 1 }));
  const headers = { "content-encoding": "gzip" };
  expect(await post("/v1/chat/completions", packed, server, headers)).toEqual(says(" once it is unpacked."));
});

test("accepts a message of 32 MiB over the Responses WebSocket", async () => {
  const socket = new WebSocket(`${server.url.replace("http", "ws")}/v1/responses`, {
    headers: { authorization: `Bearer ${server.key}` },
  } as unknown as string[]);
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  socket.onmessage = ({ data }) => {
    const { type } = JSON.parse(String(data)) as { type: string };
    if (["response.completed", "error", "response.failed"].includes(type)) resolve(String(data));
  };
  socket.onclose = ({ code, reason }) => reject(new Error(`closed with ${code} ${reason}`));
  socket.onopen = () => {
    const request = JSON.parse(bodies["/v1/responses"]("upstream-model")) as object;
    socket.send(JSON.stringify({ type: "response.create", ...request }));
  };
  const reported = (await promise).slice(0, 200);
  expect(reported).toContain("response.completed");
  socket.onclose = null;
  socket.close();
});

test("advises no retry if a request needs more memory than a key may hold", async () => {
  const ofBody = 4 * 1024 * 1024;
  await using small = await startHeadrace({
    yaml: `${config()}limits: { body_bytes: ${ofBody}, held_bytes: ${4 * ofBody} }\n`,
  });
  const kept = await small.request("/v1/responses", {
    body: { model: "upstream-model", input: "x".repeat(ofBody - 500_000) },
  });
  const { id } = (await kept.json()) as { id: string };
  // With what it goes on from, the request is as long as one may be; both are held beside its own body.
  const response = await small.request("/v1/responses", {
    body: { model: "upstream-model", previous_response_id: id, input: "Go on" },
  });
  expect(response.status).toBe(200);
  const again = await small.request("/v1/responses", {
    body: { model: "upstream-model", previous_response_id: id, input: "x".repeat(400_000), tools: padding(3_000_000) },
  });
  expect([again.status, again.headers.get("retry-after"), again.headers.get("x-should-retry")]).toEqual([
    ...[413, null, "false"],
  ]);
});

/** Tools that are no part of the input, and take so many bytes. */
function padding(bytes: number): object[] {
  return [{ type: "function", name: "f", description: "x".repeat(bytes), parameters: { type: "object" } }];
}

test("serves bodies of 32 MiB with two workers that may each hold half of the memory", async () => {
  await using workers = await startHeadrace({ yaml: config(), flags: { workers: "2", logFormat: "json" } });
  expect(defaultMaxBufferedBytes).toBe(4 * limit);
  const body = bodies["/v1/chat/completions"]("upstream-model");
  const packed = new Uint8Array(gzipSync(body, { level: 1 }));
  expect(await post("/v1/chat/completions", body, workers)).toEqual([200, ""]);
  const coded = { "content-encoding": "gzip" };
  expect(await post("/v1/chat/completions", packed, workers, coded)).toEqual([200, ""]);
  const inChunks = new Blob([body]).stream();
  expect(await post("/v1/chat/completions", inChunks, workers)).toEqual([200, ""]);
});
