// Tests the files of the guides' build: their encodings, their caching, and the answers if a file or the build is
// missing.
import { afterAll, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { exchangeFor, incoming, responseOf } from "../../../tests/support/exchange.ts";
import { RouteTable } from "../exchange/route-table.ts";
import type { GuideManifest } from "./guide-files.ts";
import { guideRoutes } from "./guide-routes.ts";

const directory = mkdtempSync(join(tmpdir(), "headrace-guides-"));
afterAll(() => rmSync(directory, { recursive: true }));

const page = (file: string) => ({ file, type: "text/html; charset=utf-8", tag: `tag of ${file}` });
const manifest: GuideManifest = {
  scripts: { "": ["'sha256-new'"], "v0.1/": ["'sha256-old'"] },
  files: {
    "": page("index.html"),
    "404": page("404.html"),
    keys: page("keys.html"),
    gone: page("gone.html"),
    "adr/": page("adr/index.html"),
    "v0.1/404": page("v0.1/404.html"),
    "v0.1/keys": page("v0.1/keys.html"),
    "assets/app.a1b2c3d4.js": {
      file: "app.js",
      type: "text/javascript; charset=utf-8",
      tag: "app",
      compressed: true,
      forever: true,
    },
  },
};
for (const { file, compressed } of Object.values(manifest.files)) {
  mkdirSync(join(directory, file, ".."), { recursive: true });
  for (const ending of compressed ? ["", ".gz", ".br"] : [""])
    writeFileSync(join(directory, file + ending), file + ending);
}
rmSync(join(directory, "gone.html"));
writeFileSync(join(directory, "manifest.json"), JSON.stringify(manifest));
writeFileSync(join(directory, "secret"), "not listed");

const built = new RouteTable(guideRoutes({ guidesDirectory: directory }));
const missing = new RouteTable(guideRoutes({ guidesDirectory: join(directory, "none") }));

function get(target: string, headers: Record<string, string> = {}, table = built): Promise<Response> {
  const found = table.find("GET", target);
  if (found?.route.access !== "page") throw new Error(`There is no page at ${target}.`);
  const { route, params } = found;
  return responseOf(() => route.handle(exchangeFor(incoming({ target, headers }), { params })));
}

test("redirects /docs to the guides, or to the reference if the guides were not built", async () => {
  expect((await get("/docs")).headers.get("location")).toBe("/docs/");
  expect((await get("/docs", {}, missing)).headers.get("location")).toBe("/docs/api");
  const answer = await get("/docs/keys", {}, missing);
  expect([answer.status, await answer.text()]).toEqual([404, expect.stringContaining("npm run docs")]);
});

test("allows a guide only its build's inline scripts, and revalidates each page", async () => {
  for (const [target, script] of [
    ["/docs/", "new"],
    ["/docs/keys", "new"],
    ["/docs/v0.1/keys", "old"],
  ] as const) {
    const answer = await get(target);
    const policy = answer.headers.get("content-security-policy") ?? "";
    expect(policy).toContain(`script-src 'self' 'sha256-${script}';`);
    expect(policy).not.toContain("unsafe");
    expect([answer.status, answer.headers.get("cache-control")]).toEqual([200, "no-cache"]);
    const tag = answer.headers.get("etag") ?? "";
    expect((await get(target, { "if-none-match": tag })).status).toBe(304);
  }
});

test("caches a file with a content hash forever, in the encoding that the browser prefers", async () => {
  for (const [accepted, body, coding] of [
    ["gzip, br", "app.js.br", "br"],
    ["gzip", "app.js.gz", "gzip"],
    ["identity", "app.js", null],
  ] as const) {
    const answer = await get("/docs/assets/app.a1b2c3d4.js", { "accept-encoding": accepted });
    expect(await answer.text()).toBe(body);
    expect(answer.headers.get("content-encoding")).toBe(coding);
    expect(answer.headers.get("cache-control")).toBe("public, max-age=31536000, immutable");
  }
});

test("reads a file from the disk once per build", async () => {
  writeFileSync(join(directory, "keys.html"), "written over");
  expect(await (await get("/docs/keys")).text()).toBe("keys.html");
  writeFileSync(join(directory, "manifest.json"), JSON.stringify(manifest));
  utimesSync(join(directory, "manifest.json"), 1, 1);
  expect(await (await get("/docs/keys")).text()).toBe("written over");
});

test("answers 404 for a file that a new build has just removed", async () => {
  const answer = await get("/docs/gone");
  expect([answer.status, await answer.text()]).toEqual([404, expect.stringContaining("load the page again")]);
});

test("redirects by trailing slash, and answers a missing page with the 404 page of its version", async () => {
  expect((await get("/docs/adr")).headers.get("location")).toBe("/docs/adr/");
  expect((await get("/docs/keys/")).headers.get("location")).toBe("/docs/keys");
  for (const [target, file] of [
    ["/docs/nothing", "404.html"],
    ["/docs/v0.1/nothing", "v0.1/404.html"],
  ] as const) {
    const answer = await get(target, { "if-none-match": "*" });
    expect([answer.status, await answer.text()]).toEqual([404, file]);
  }
});

test.each([
  "secret",
  "manifest.json",
  "../secret",
  "..%2fsecret",
  "%2e%2e/%2e%2e/etc/passwd",
  "keys.html",
  "assets/app.a1b2c3d4.js.br",
  "__proto__",
  "constructor",
  "adr/../secret",
])("serves nothing that the manifest does not list: %s", async (address) => {
  const answer = await get(`/docs/${address}`);
  expect([answer.status, await answer.text()]).toEqual([404, "404.html"]);
});
