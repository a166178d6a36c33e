// What a client gets compressed over HTTP, what it need not get again, and what somebody at a browser sees at a dead address.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { startHeadrace, type TestServer } from "../support/headrace.ts";
import { chatScript, startUpstream, upstreamYaml } from "../support/scripted-upstream.ts";

let server: TestServer;
beforeAll(async () => {
  server = await startHeadrace();
});
afterAll(() => server[Symbol.asyncDispose]());

const get = (path: string, headers: Record<string, string> = {}) =>
  fetch(server.url + path, { headers, decompress: false, redirect: "manual" });

test("compresses the API reference for clients that accept it, and returns 304 if it is unchanged", async () => {
  for (const path of ["/docs/api", "/openapi.json"]) {
    const plain = await get(path, { "accept-encoding": "identity" });
    const size = (await plain.arrayBuffer()).byteLength;
    expect(plain.headers.get("content-encoding")).toBeNull();
    for (const coding of ["gzip", "br", "zstd"]) {
      const answer = await get(path, { "accept-encoding": coding });
      expect([answer.headers.get("content-encoding"), answer.headers.get("vary")]).toEqual([coding, "Accept-Encoding"]);
      expect((await answer.arrayBuffer()).byteLength).toBeLessThan(size / 5);
    }
    const tag = plain.headers.get("etag") ?? "";
    const again = await get(path, { "if-none-match": tag, "accept-encoding": "gzip" });
    expect([again.status, await again.text()]).toEqual([304, ""]);
  }
});

test("returns 304 without a body for an unchanged overview in every content coding", async () => {
  const authorization = { authorization: `Bearer ${server.key}` };
  const first = await get("/v1/overview?group_by=model", { ...authorization, "accept-encoding": "gzip" });
  expect([first.status, first.headers.get("content-encoding")]).toEqual([200, "gzip"]);
  const answer = JSON.parse(new TextDecoder().decode(Bun.gunzipSync(await first.bytes())));
  expect(answer).toMatchObject({
    object: "overview",
    range: "24h",
    group_by: "model",
    usage: { is_new: true, groups: [] },
  });
  const tag = first.headers.get("etag") ?? "";
  const again = await get("/v1/overview?group_by=model", { ...authorization, "if-none-match": tag });
  expect([again.status, await again.text(), again.headers.get("etag")]).toEqual([304, "", tag]);
  expect((await get("/v1/overview?range=1y", authorization)).status).toBe(400);
  expect((await get("/v1/overview")).status).toBe(401);
});

test("does not compress pages with forms or session answers, whose length could reveal a token", async () => {
  const page = await get("/sign-in", { "accept-encoding": "gzip, br, zstd" });
  expect([page.status, page.headers.get("content-encoding")]).toEqual([200, null]);
});

test("does not compress a model's answer, whole or streamed", async () => {
  await using upstream = await startUpstream(chatScript(["water ".repeat(2_000)]));
  await using behind = await startHeadrace({ yaml: upstreamYaml(upstream) });
  for (const stream of [false, true]) {
    const answer = await fetch(`${behind.url}/v1/chat/completions`, {
      method: "POST",
      headers: {
        ...{ authorization: `Bearer ${behind.key}`, "content-type": "application/json" },
        "accept-encoding": "gzip, br, zstd",
      },
      body: JSON.stringify({ model: "upstream-model", stream, messages: [{ role: "user", content: "Hi" }] }),
      decompress: false,
    });
    expect([answer.status, answer.headers.get("content-encoding")]).toEqual([200, null]);
    expect(await answer.text()).toContain("water water");
  }
});

test("shows a page to browsers and an API error to programs at an unknown address", async () => {
  const browser = { accept: "text/html,application/xhtml+xml,*/*;q=0.8" };
  const page = await get("/no/such%3Cb%3E/page", browser);
  expect([page.status, page.headers.get("content-type")]).toEqual([404, "text/html; charset=utf-8"]);
  expect(page.headers.get("content-security-policy")).toContain("default-src 'none'");
  const text = await page.text();
  expect(text).toContain("Page not found");
  expect(text).not.toContain("<b>");
  for (const [path, headers] of [
    ["/no/such/page", { accept: "*/*" }],
    ["/no/such/page", {}],
    ["/v1/no-such-endpoint", browser],
    ["/no/such/page", { ...browser, authorization: "Bearer sk_dev_hr_x" }],
  ] as const) {
    const answer = await get(path, headers);
    expect([path, answer.status, answer.headers.get("content-type")]).toEqual([path, 404, "application/json"]);
    expect(await answer.json()).toMatchObject({ error: { code: "not_found" } });
  }
});
