import { expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { exchangeFor, incoming, responseOf } from "../../../tests/support/exchange.ts";
import { assetRoutes } from "./assets.ts";

const [route] = assetRoutes();

function asset(name: string, headers: Record<string, string> = {}): Promise<Response> {
  const exchange = exchangeFor(incoming({ target: `/assets/${name}`, headers }), { params: { name } });
  return responseOf(() => route?.handle(exchange) ?? new Response());
}

test.each([
  ["pages.css", "text/css; charset=utf-8"],
  ["logo.svg", "image/svg+xml"],
  ["passkeys.js", "text/javascript; charset=utf-8"],
  ["simplewebauthn.js", "text/javascript; charset=utf-8"],
])("serves %s as %s and revalidates it each time", async (name, type) => {
  const response = await asset(name);
  expect(response.status).toBe(200);
  expect(response.headers.get("content-type")).toBe(type);
  expect(response.headers.get("cache-control")).toBe("no-cache");
  expect((await response.text()).length).toBeGreaterThan(100);
});

test("answers 304 to a browser that has the file", async () => {
  const etag = (await asset("pages.css")).headers.get("etag") ?? "";
  for (const known of [etag, `W/${etag}`, `"another", ${etag}`, "*"]) {
    const response = await asset("pages.css", { "if-none-match": known });
    expect([response.status, response.headers.get("etag"), await response.text()]).toEqual([304, etag, ""]);
  }
  expect((await asset("pages.css", { "if-none-match": '"another"' })).status).toBe(200);
});

test.each([
  "assets.ts",
  "../assets.ts",
  "..%2fassets.ts",
  "/etc/passwd",
  "pages.css/..",
  "constructor",
  "__proto__",
  "",
])("serves no file for %p", async (name) => {
  expect((await asset(name)).status).toBe(404);
});

test("serves a passkey library that exports what the gateway's script imports", async () => {
  const directory = mkdtempSync(join(tmpdir(), "headrace-asset-"));
  try {
    const file = join(directory, "library.mjs");
    writeFileSync(file, await (await asset("simplewebauthn.js")).text());
    const library: Record<string, unknown> = await import(file);
    const script = await (await asset("passkeys.js")).text();
    const imported = /import \{([^}]+)\} from "\/assets\/simplewebauthn\.js"/.exec(script)?.[1] ?? "";
    const names = imported
      .split(",")
      .map((name) => name.trim())
      .filter(Boolean);
    expect(names).not.toBeEmpty();
    for (const name of names) expect(typeof library[name]).toBe("function");
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
});

test("loads nothing external from the stylesheet", async () => {
  expect(await (await asset("pages.css")).text()).not.toMatch(/url\(|@import/);
});
