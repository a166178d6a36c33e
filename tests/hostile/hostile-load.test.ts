// Bodies that are made to cost much: whatever 10 MB hold, the answer comes soon and other clients do not wait for it.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { gzipSync } from "node:zlib";
import { startHeadrace } from "../support/headrace.ts";
import { long, withinMs } from "../support/long.ts";
import { json, type ScriptedUpstream, startUpstream, upstreamYaml } from "../support/scripted-upstream.ts";
import { startWatchedServer, type WatchedServer } from "../support/watched-server.ts";

/** For which nobody else is served. */
const maxStallMs = 100;
/** Memory as a multiple of what a body takes for itself. */
const timesBody = 5;
/** Where a body is smaller than that, the rest of the request counts for more. */
const minBytes = 1_000_000;

let upstream: ScriptedUpstream;
let server: WatchedServer;

beforeAll(async () => {
  upstream = await startUpstream();
  server = await startWatchedServer({ yaml: upstreamYaml(upstream) });
});

afterAll(async () => {
  await server[Symbol.asyncDispose]();
  await upstream[Symbol.asyncDispose]();
});

/**
 * What a request costs: the event loop's longest stall, and the most memory as a multiple of the body. The long form takes
 * the least of three, as other work on the machine and garbage that is not collected yet only add; the short form allows for them.
 */
async function cost(bytes: number, ask: () => Promise<Response>, what = ""): Promise<{ status: number; text: string }> {
  let [stallMs, times] = [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY];
  let answer = { status: 0, text: "" };
  for (let run = 0; run < (long ? 3 : 1); run++) {
    await server.beginAnew();
    const before = await server.figures();
    const response = await ask();
    answer = { status: response.status, text: await response.text() };
    const after = await server.figures();
    stallMs = Math.min(stallMs, after.stallMs);
    times = Math.min(times, (after.peakRssBytes - before.rssBytes) / Math.max(minBytes, bytes));
  }
  console.log(
    `${what}: stalled for ${Math.round(stallMs)} ms, ${times.toFixed(1)} times its ${(bytes / 1e6).toFixed(1)} MB`,
  );
  expect(stallMs).toBeLessThan(withinMs(maxStallMs));
  expect(times).toBeLessThan(long ? timesBody : 1.5 * timesBody);
  return answer;
}

const many = (item: string, count: number) => `[${Array(count).fill(item).join(",")}]`;
const members = (count: number, value: string) =>
  `{${Array.from({ length: count }, (_, i) => `"x${i}":${value}`).join(",")}}`;
const chat = (more: string) => `{"model":"upstream-model","messages":[{"role":"user","content":"x"}],${more}}`;

/** Each under the limit of 10 MiB. */
const bodies: readonly [name: string, body: () => string, path?: string][] = [
  [
    "numbers in place of content parts",
    () => `{"model":"upstream-model","messages":[{"role":"user","content":${many("1", 4_900_000)}}]}`,
  ],
  [
    "empty objects in place of content parts",
    () => `{"model":"upstream-model","messages":[{"role":"user","content":${many("{}", 3_300_000)}}]}`,
  ],
  ["numbers in place of messages", () => `{"model":"upstream-model","messages":${many("1", 4_900_000)}}`],
  ["numbers in place of tools", () => chat(`"tools":${many("1", 4_900_000)}`)],
  ["numbers in place of stop strings", () => chat(`"stop":${many("1", 4_900_000)}`)],
  [
    "numbers in place of tool calls",
    () => `{"model":"upstream-model","messages":[{"role":"assistant","tool_calls":${many("1", 4_900_000)}}]}`,
  ],
  ["700,000 wrong names in logit_bias", () => chat(`"logit_bias":${members(700_000, "1")}`)],
  ["700,000 wrong values in metadata", () => chat(`"metadata":${members(700_000, "1")}`)],
  ["700,000 unknown members", () => `{${members(700_000, "1").slice(1, -1)},"model":"upstream-model"}`],
  ["4.9 million tokens", () => `{"model":"upstream-model","input":${many("1", 4_900_000)}}`, "/v1/embeddings"],
  ["2.4 million texts", () => `{"model":"upstream-model","input":${many('"a"', 2_400_000)}}`, "/v1/embeddings"],
  [
    "2.4 million lists of tokens",
    () => `{"model":"upstream-model","input":${many("[1]", 2_400_000)}}`,
    "/v1/embeddings",
  ],
  ["2.4 million empty lists", () => `{"model":"upstream-model","prompt":${many("[]", 3_000_000)}}`, "/v1/completions"],
  ["a string of backslashes", () => chat(`"temperature":"${"\\\\".repeat(4_900_000)}"`)],
  ["4 million quotes", () => many('""', 3_000_000)],
  ["a member name of 9 MB", () => chat(`"logit_bias":{"${"k".repeat(9_000_000)}":1}`)],
  ["a member name of 4 MB twice", () => `{"${"k".repeat(4_000_000)}":1,"${"k".repeat(4_000_000)}":1}`],
  ["a role of 9 MB", () => `{"model":"upstream-model","messages":[{"role":"${"r".repeat(9_000_000)}","content":"x"}]}`],
  ["100,000 levels of lists", () => "[".repeat(100_000)],
  ["5 million levels of lists", () => "[".repeat(5_000_000) + "]".repeat(5_000_000)],
  [
    "1.6 million levels of objects within a request",
    () => chat(`"x":${'{"a":'.repeat(1_600_000)}1${"}".repeat(1_600_000)}`),
  ],
  ["100 kB of digits as n", () => chat(`"n":${"9".repeat(100_000)}`)],
  ["10 MB of digits as n", () => chat(`"n":${"9".repeat(10_000_000)}`)],
  ["n of 1e308", () => chat('"n":1e308')],
  ["17 stop strings", () => chat(`"stop":${many('"a"', 17)}`)],
  ["3 million stop strings", () => chat(`"stop":${many('""', 3_000_000)}`)],
  ["a stop string of 9 MB", () => chat(`"stop":["${"s".repeat(9_000_000)}"]`)],
  ["a model id of 9 MB", () => `{"model":"${"m".repeat(9_000_000)}","messages":[{"role":"user","content":"x"}]}`],
];

// hardening: F12
test.each(bodies)(
  "refuses %s quickly with a short 400 and bounded memory, without delaying others",
  async (name, make, path = "/v1/chat/completions") => {
    const body = make();
    expect(body.length).toBeLessThan(10_485_760);
    const { status, text } = await cost(body.length, () => server.request(path, { body }), name);
    expect(status).toBe(400);
    expect(text.length).toBeLessThan(1_000);
    expect(upstream.requests).toHaveLength(0);
  },
);

// hardening: F12
test("refuses an oversized body quickly with 413 without buffering it or delaying others", async () => {
  const body = chat(`"x":"${"x".repeat(34_000_000)}"`);
  const { status } = await cost(body.length, () => server.request("/v1/chat/completions", { body }), "34 MB");
  expect(status).toBe(413);
});

// hardening: F12
test("refuses a gzip bomb of 10 GB in 10 MB quickly with 413, unpacked only up to the body limit", async () => {
  const bomb = Buffer.concat(Array(1_000).fill(gzipSync(Buffer.alloc(10_000_000))));
  expect(bomb.length).toBeLessThan(10_485_760);
  const headers = {
    authorization: `Bearer ${server.key}`,
    "content-type": "application/json",
    "content-encoding": "gzip",
  };
  const ask = () => fetch(`${server.url}/v1/chat/completions`, { method: "POST", headers, body: bomb });
  const { status } = await cost(bomb.length, ask, "a gzip bomb");
  expect(status).toBe(413);
  expect(upstream.requests).toHaveLength(0);
});

// hardening: F12
test("serves a valid body of 10 MB with bounded memory, without delaying others for long", async () => {
  const messages = Array.from({ length: 2_000 }, (_, n) => ({ role: "user", content: `${n} ${"x".repeat(5_000)}` }));
  const body = JSON.stringify({ model: "upstream-model", messages });
  expect(body.length).toBeGreaterThan(10_000_000);
  const { status } = await cost(
    body.length,
    () => server.request("/v1/chat/completions", { body }),
    "10 MB of messages",
  );
  expect(status).toBe(200);
  upstream.requests.length = 0;
});

test("passes a large valid answer of 2,048 embeddings with 1,100 dimensions in both encodings", async () => {
  const embedding = Array.from({ length: 1_100 }, (_, i) => (i % 8) / 8);
  const data = Array.from({ length: 2_048 }, (_, index) => ({ object: "embedding", index, embedding }));
  await using large = await startUpstream((_request, res) =>
    json(res, 200, { object: "list", data, model: "another-name", usage: { prompt_tokens: 1, total_tokens: 1 } }),
  );
  await using gateway = await startHeadrace({ yaml: upstreamYaml(large) });
  const input = Array(2_048).fill("x");
  for (const encoding_format of ["float", "base64"]) {
    const response = await gateway.request("/v1/embeddings", {
      body: { model: "upstream-model", input, encoding_format },
    });
    expect([encoding_format, response.status]).toEqual([encoding_format, 200]);
    const answer = (await response.json()) as { model: string; data: { embedding: string | number[] }[] };
    expect(answer.model).toBe("upstream-model");
    expect(answer.data).toHaveLength(2_048);
    expect(answer.data[2_047]?.embedding.length).toBe(encoding_format === "float" ? 1_100 : Math.ceil(4_400 / 3) * 4);
  }
});
