// What is read of kept responses is on the account of who asks for it, before it is read: a short request may name megabytes.
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "bun:test";
import { bufferedBytes } from "../../src/base/bytes/buffered-bytes.ts";
import { startHeadrace, type TestServer, until } from "../support/headrace.ts";
import { chatScript, type ScriptedUpstream, startUpstream, upstreamYaml } from "../support/scripted-upstream.ts";

const model = "upstream-model";
const { maxBytes } = bufferedBytes;
let upstream: ScriptedUpstream;
let server: TestServer;
/** A response with 800 kB, which may be held once and not twice. */
let id = "";
let itemId = "";
let release = () => {};

beforeAll(async () => {
  upstream = await startUpstream();
  server = await startHeadrace({ yaml: upstreamYaml(upstream) });
  const input = Array.from({ length: 800 }, () => ({ role: "user", content: "x".repeat(900) }));
  const made = await server.request("/v1/responses", { body: { model, input } });
  id = ((await made.json()) as { id: string }).id;
  const large = await server.request("/v1/responses", { body: { model, input: "x".repeat(800_000) } });
  const { id: largeId } = (await large.json()) as { id: string };
  const items = await server.request(`/v1/responses/${largeId}/input_items`);
  itemId = ((await items.json()) as { data: { id: string }[] }).data[0]?.id ?? "";
});
beforeEach(() => {
  bufferedBytes.maxBytes = bufferedBytes.total + 4 * 1024 * 1024;
  const isOver = new Promise<void>((resolve) => {
    release = resolve;
  });
  upstream.script(async (request, response) => {
    await isOver;
    await chatScript()(request, response);
  });
});
afterEach(() => {
  release();
  bufferedBytes.maxBytes = maxBytes;
});
afterAll(async () => {
  await server[Symbol.asyncDispose]();
  await upstream[Symbol.asyncDispose]();
});

const ask = (body: object, path = "/v1/responses") =>
  server.request(path, { body: { model, input: "Go on", ...body } });

test.each<[what: string, ask: () => Promise<Response>]>([
  ["a response that goes on from it", () => ask({ previous_response_id: id })],
  ["one that names an item", () => ask({ input: [{ type: "item_reference", id: itemId }] })],
  ["a count of its tokens", () => ask({ previous_response_id: id }, "/v1/responses/input_tokens")],
  ["one that makes it short", () => ask({ previous_response_id: id }, "/v1/responses/compact")],
  ["a page of its items", () => server.request(`/v1/responses/${id}/input_items?limit=1`)],
])("waits for free memory before reading a stored response, and releases the memory: %s", async (_what, askAgain) => {
  const before = bufferedBytes.total;
  const first = ask({ previous_response_id: id });
  await until(() => bufferedBytes.total > before + 700_000, "the first one is under way");
  const refused = await askAgain();
  // It is the key's share that is used up, or, where others of this process hold something as well, the room of all.
  expect([429, 503]).toContain(refused.status);
  expect(await refused.text()).toMatch(/under way hold|holds as many bytes/);
  release();
  expect((await first).status).toBe(200);
  await (await first).text();
  expect((await askAgain()).status).toBe(200);
  await until(() => bufferedBytes.total <= before, "nothing is held any more");
});
