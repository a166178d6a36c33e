// What every answer tells browsers and caches: each route of the table, errors, and what is no request at all.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { scopes } from "../../src/domain/scope.ts";
import type { Route } from "../../src/http/exchange/route.ts";
import { createRoutes } from "../../src/http/routes.ts";
import { addKey } from "../hostile/keys.ts";
import { raw } from "../hostile/raw-client.ts";
import { startHeadrace, type TestServer } from "../support/headrace.ts";
import { openServerPeople } from "../support/server-people.ts";

const routes = createRoutes(new Proxy({}, { get: () => undefined }) as Parameters<typeof createRoutes>[0]);
/** Upgrades and what replicas sign have no answer for browsers. */
const answering = routes.filter((route) => route.access !== "machine");

let server: TestServer;
let secure: TestServer;
let key: string;
let cookie: Record<string, string>;

beforeAll(async () => {
  server = await startHeadrace();
  secure = await startHeadrace({ flags: { mode: "production", publicUrl: "https://ai.example.com" } });
  key = await addKey(server, { scopes: [...scopes] });
  const people = openServerPeople(server);
  cookie = (await people.addMember("owner", { isOperator: true })).reading;
  await people.close();
});

afterAll(async () => {
  await server[Symbol.asyncDispose]();
  await secure[Symbol.asyncDispose]();
});

const pathOf = ({ path }: Route) => path.replace("*", "x").replace(/:\w+/g, "x");

function send(route: Route, at: TestServer, headers: Record<string, string> = {}): Promise<Response> {
  const hasBody = route.method !== "GET" && route.method !== "DELETE";
  return fetch(at.url + pathOf(route), {
    method: route.method,
    headers: { ...headers, ...(hasBody ? { "content-type": "application/json" } : {}) },
    redirect: "manual",
    ...(hasBody ? { body: "{}" } : {}),
  });
}

const isOpen = ({ access }: Route) => access === "public" || access === "page" || access === "machine";

/** What must be there, whoever asks and whatever comes of it. */
function expectGood(route: Route, { status, headers }: Response): void {
  const has = (name: string) => headers.get(name) ?? "";
  expect(has("x-content-type-options")).toBe("nosniff");
  expect(has("x-request-id")).toStartWith("req_");
  expect(headers.get("x-powered-by") ?? headers.get("server")).toBeNull();
  expect(has("cache-control")).not.toBe("");
  if (!isOpen(route) || status >= 400) expect(has("cache-control")).toMatch(/^no-(store|cache)$/);
  if (has("content-type").startsWith("text/html")) {
    const policy = has("content-security-policy");
    for (const part of ["default-src 'none'", "frame-ancestors 'none'", "base-uri 'none'"])
      expect(policy).toContain(part);
    expect(policy).not.toContain("unsafe");
    expect(policy).toContain("form-action ");
    expect(has("content-type")).toBe("text/html; charset=utf-8");
  }
  if (route.access !== "page") return;
  expect(has("content-security-policy")).toContain("frame-ancestors 'none'");
  expect(has("x-frame-options")).toBe("DENY");
  expect(["no-referrer", "same-origin"]).toContain(has("referrer-policy"));
  expect(has("cross-origin-resource-policy")).toBe("same-origin");
  expect(has("permissions-policy")).toContain("camera=()");
  expect(headers.get("access-control-allow-origin")).toBeNull();
}

describe.each(answering.map((route) => ({ name: `${route.method} ${route.path}`, route })))("$name", ({ route }) => {
  // hardening: A6
  test("sends cache headers on each answer: without a credential, with a key, and with a session", async () => {
    for (const headers of [{}, { authorization: `Bearer ${key}` }, cookie]) {
      const response = await send(route, server, headers);
      expectGood(route, response);
      expect(response.headers.get("strict-transport-security")).toBeNull();
    }
  });

  // hardening: A6
  test("sends Strict-Transport-Security over HTTPS where browsers arrive first", async () => {
    const { headers } = await send(route, secure);
    expect(headers.get("strict-transport-security")).toBe(
      isOpen(route) || !headers.has("openai-processing-ms") ? "max-age=31536000" : null,
    );
  });
});

// hardening: A6
test("isolates all pages from their opener except those of an app's authorization", async () => {
  const openerPolicy = async (path: string, headers = {}) => {
    const response = await fetch(server.url + path, { headers, redirect: "manual" });
    expect([path, response.headers.get("content-type")]).toEqual([path, "text/html; charset=utf-8"]);
    return response.headers.get("cross-origin-opener-policy");
  };
  for (const path of ["/settings", "/usage", "/device", "/nowhere/but/settings".replace("/nowhere/but", "")]) {
    expect([path, await openerPolicy(path, cookie)]).toEqual([path, "same-origin"]);
  }
  for (const path of ["/docs/api", "/docs/", "/reset", "/reset/x", "/invitations/x", "/setup/x"]) {
    expect([path, await openerPolicy(path)]).toEqual([path, "same-origin"]);
  }
  expect(await openerPolicy("/sign-in")).toBeNull();
  expect((await fetch(`${secure.url}/reset`)).headers.get("cross-origin-opener-policy")).toBe("same-origin");
});

test("sends no opener policy over plain HTTP at a host name, where browsers ignore it", async () => {
  await using plain = await startHeadrace({ flags: { mode: "production", publicUrl: "http://ai.example.com" } });
  const { status, headers } = await fetch(`${plain.url}/reset`);
  expect([status, headers.get("cross-origin-opener-policy")]).toEqual([200, null]);
  expect(headers.get("x-frame-options")).toBe("DENY");
});

// hardening: A6
test("forbids sniffing and caching of errors without a route and of malformed requests", async () => {
  for (const [method, path] of [
    ["GET", "/nowhere"],
    ["GET", "/v1/nowhere"],
    ["DELETE", "/settings"],
    ["POST", "/healthz"],
    ["GET", "/v1/chat/completions/x/y/z"],
  ] as const) {
    const { status, headers } = await fetch(server.url + path, { method });
    expect([path, status >= 400]).toEqual([path, true]);
    expect([path, headers.get("x-content-type-options")]).toEqual([path, "nosniff"]);
    expect([path, headers.get("cache-control")]).toEqual([path, "no-store"]);
  }
  const { answers } = await raw(
    server.url,
    "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
  );
  expect(answers[0]).toMatchObject({
    status: 400,
    headers: { "x-content-type-options": "nosniff", "cache-control": "no-store" },
  });
});
