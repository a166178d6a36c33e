// Credentials of every wrong kind: one 401 that tells nothing, and keys that end when they should.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { invalidApiKeyMessage } from "../../src/base/invalid-api-key.ts";
import { startHeadrace, type TestServer } from "../support/headrace.ts";
import { withinMs } from "../support/long.ts";
import { type ScriptedUpstream, startUpstream, upstreamYaml } from "../support/scripted-upstream.ts";
import { addKey, revokeKey } from "./keys.ts";
import { head, raw } from "./raw-client.ts";

let upstream: ScriptedUpstream;
let server: TestServer;

beforeAll(async () => {
  upstream = await startUpstream();
  server = await startHeadrace({ yaml: upstreamYaml(upstream) });
});

afterAll(async () => {
  await server[Symbol.asyncDispose]();
  await upstream[Symbol.asyncDispose]();
});

const refused = `{"error":{"message":"${invalidApiKeyMessage}","type":"invalid_request_error","code":"invalid_api_key"}}`;
const jwt = "eyJhbGciOiJub25lIn0.eyJzdWIiOiJhIiwiZXhwIjo0MTAyNDQ0ODAwfQ.";

async function get(headers: Record<string, string>, gateway = server): Promise<Response> {
  return fetch(`${gateway.url}/v1/models`, { headers });
}

async function expectRefused(response: Response, reason?: string): Promise<void> {
  expect(response.status).toBe(401);
  expect(await response.text()).toBe(refused);
  expect(response.headers.get("www-authenticate")).toMatch(
    /^Bearer realm="headrace"(, error="invalid_token")?, resource_metadata="[^"]+"$/,
  );
  if (reason === undefined) return;
  const id = response.headers.get("x-request-id");
  expect(server.logged("request").find((line) => line["id"] === id)?.["detail"]).toBe(reason);
}

describe("credentials that are not keys", () => {
  const wrong: readonly [name: string, headers: (key: string) => Record<string, string>, reason: string][] = [
    ["nothing", () => ({}), "missing"],
    ["an empty X-API-Key", () => ({ "x-api-key": "" }), "missing"],
    ["a bare scheme", () => ({ authorization: "Bearer" }), "authorization_not_bearer"],
    ["a scheme and blanks", () => ({ authorization: "Bearer    " }), "authorization_not_bearer"],
    ["a key without scheme", (key) => ({ authorization: key }), "authorization_not_bearer"],
    ["Basic", (key) => ({ authorization: `Basic ${btoa(`user:${key}`)}` }), "authorization_not_bearer"],
    ["the scheme Token", (key) => ({ authorization: `Token ${key}` }), "authorization_not_bearer"],
    ["the scheme Bearerx", (key) => ({ authorization: `Bearerx ${key}` }), "authorization_not_bearer"],
    ["two keys in one header", (key) => ({ authorization: `Bearer ${key} ${key}` }), "authorization_not_bearer"],
    [
      "two credentials with a comma",
      (key) => ({ authorization: `Bearer ${key},Bearer ${key}` }),
      "authorization_not_bearer",
    ],
    ["a key in quotes", (key) => ({ authorization: `Bearer "${key}"` }), "malformed"],
    [
      "a wrong scheme beside a good X-API-Key",
      (key) => ({ authorization: "Basic eDp5", "x-api-key": key }),
      "authorization_not_bearer",
    ],
    ["a JWT as X-API-Key", () => ({ "x-api-key": jwt }), "token_as_api_key"],
    ["an unsigned JWT", () => ({ authorization: `Bearer ${jwt}` }), "malformed"],
    ["Bearer within X-API-Key", (key) => ({ "x-api-key": `Bearer ${key}` }), "malformed"],
    [
      "another vendor's key",
      () => ({ authorization: "Bearer sk-proj-abcdefghijklmnopqrstuvwxyz0123456789" }),
      "malformed",
    ],
    ["a key without the infix", (key) => ({ authorization: `Bearer ${key.replace("_hr_", "_")}` }), "malformed"],
    ["a key in upper case", (key) => ({ authorization: `Bearer ${key.toUpperCase()}` }), "malformed"],
    ["a key cut by one", (key) => ({ authorization: `Bearer ${key.slice(0, -1)}` }), "malformed"],
    ["a key with one character more", (key) => ({ authorization: `Bearer ${key}0` }), "malformed"],
    [
      "a key of the environment beside its own",
      (key) => ({ authorization: `Bearer ${key.replace("sk_dev", "sk_live")}` }),
      "malformed",
    ],
    ["10,000 characters", () => ({ authorization: `Bearer sk_dev_hr_${"a".repeat(10_000)}` }), "malformed"],
    ["an injection", () => ({ "x-api-key": "' OR 1=1 --" }), "malformed"],
  ];

  test.each(wrong)("refuses %s like any other credential, and logs the reason", async (_name, headers, reason) => {
    await expectRefused(await get(headers(server.key)), reason);
  });

  // hardening: K9
  test("refuses a key with any one character changed", async () => {
    const { key } = server;
    for (let i = 0; i < key.length; i++) {
      const other = key[i] === "a" ? "b" : "a";
      await expectRefused(await get({ authorization: `Bearer ${key.slice(0, i)}${other}${key.slice(i + 1)}` }));
    }
  });

  // hardening: K4
  test("refuses two different credentials in one request, and accepts the same one twice", async () => {
    const other = await addKey(server);
    await expectRefused(await get({ authorization: `Bearer ${server.key}`, "x-api-key": other }), "two_credentials");
    await expectRefused(await get({ authorization: `Bearer ${other}`, "x-api-key": "x" }), "two_credentials");
    const same = await get({ authorization: `Bearer ${server.key}`, "x-api-key": server.key });
    expect(same.status).toBe(200);
  });

  // hardening: K4
  test("accepts a key as api-key, which Azure clients send, like X-API-Key", async () => {
    const { key } = server;
    expect((await get({ "api-key": key })).status).toBe(200);
    expect((await get({ "API-KEY": key, "x-api-key": key, authorization: `Bearer ${key}` })).status).toBe(200);
    expect((await get({ "api-key": "", "x-api-key": key })).status).toBe(200);
    expect((await get({ "x-api-key": "", "api-key": key })).status).toBe(200);
    const other = await addKey(server);
    for (const [headers, reason] of [
      [{ "api-key": key, "x-api-key": other }, "malformed"],
      [{ "api-key": other, "x-api-key": key }, "malformed"],
      [{ "api-key": other, authorization: `Bearer ${key}` }, "two_credentials"],
      [{ "api-key": other, "x-api-key": key, authorization: `Bearer ${key}` }, "two_credentials"],
      [{ "api-key": jwt }, "token_as_api_key"],
      [{ "api-key": "" }, "missing"],
      [{ "api-key": `Bearer ${key}` }, "malformed"],
    ] as [Record<string, string>, string][]) {
      await expectRefused(await get(headers), reason);
    }
    expect(server.logText()).not.toContain(key);
  });

  test("refuses two Authorization headers, whatever they hold", async () => {
    const lines = ["Host: 127.0.0.1", `Authorization: Bearer ${server.key}`];
    for (const second of [
      `Authorization: Bearer ${server.key}`,
      "Authorization: Bearer x",
      "Authorization: Basic eDp5",
    ]) {
      const { answers } = await raw(server.url, head("GET /v1/models HTTP/1.1", [...lines, second]));
      expect([400, 401]).toContain(answers[0]?.status as number);
    }
  });

  test("ignores a credential in the query or body", async () => {
    const { key } = server;
    for (const query of [`api_key=${key}`, `access_token=${key}`, `key=${key}`]) {
      await expectRefused(await fetch(`${server.url}/v1/models?${query}`));
    }
    const response = await fetch(`${server.url}/v1/chat/completions`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ api_key: key, model: "upstream-model", messages: [{ role: "user", content: "x" }] }),
    });
    await expectRefused(response);
    expect(server.logText()).not.toContain(key);
  });

  test("reads scheme and header names case-insensitively", async () => {
    for (const headers of [
      { AUTHORIZATION: `bearer ${server.key}` },
      { Authorization: `BEARER   ${server.key}` },
      { "X-API-KEY": server.key },
    ]) {
      expect((await get(headers as Record<string, string>)).status).toBe(200);
    }
  });
});

describe("ended keys and keys of another environment", () => {
  const now = () => Math.floor(Date.now() / 1000);

  test("refuses a revoked, expired or wrong-environment key like an unknown one", async () => {
    await expectRefused(await get({ "x-api-key": await addKey(server, { revokedAt: now() - 1 }) }), "revoked");
    await expectRefused(await get({ "x-api-key": await addKey(server, { expiresAt: now() - 1 }) }), "expired");
    await expectRefused(await get({ "x-api-key": await addKey(server, { expiresAt: now() }) }), "expired");
  });

  test("refuses a key within a second of its revocation, under steady use, for good", async () => {
    const key = await addKey(server);
    expect((await get({ "x-api-key": key })).status).toBe(200);
    await revokeKey(server, key);
    const revokedMs = performance.now();
    let refusedMs: number | undefined;
    while (performance.now() - revokedMs < withinMs(2_000)) {
      const { status } = await get({ "x-api-key": key });
      if (status === 401) refusedMs ??= performance.now() - revokedMs;
      else expect(refusedMs).toBeUndefined();
      if (refusedMs !== undefined && performance.now() - revokedMs > refusedMs + 200) break;
    }
    expect(refusedMs).toBeLessThan(withinMs(1_200));
  });

  test("hides models not marked for test from a test key", async () => {
    const key = await addKey(server, { environment: "test" });
    expect(await (await get({ "x-api-key": key })).json()).toMatchObject({ object: "list", data: [] });
    expect((await fetch(`${server.url}/v1/models/upstream-model`, { headers: { "x-api-key": key } })).status).toBe(404);
    const response = await fetch(`${server.url}/v1/chat/completions`, {
      method: "POST",
      headers: { "x-api-key": key, "content-type": "application/json" },
      body: JSON.stringify({ model: "upstream-model", messages: [{ role: "user", content: "x" }] }),
    });
    expect(response.status).toBe(404);
    expect((await response.json()).error.code).toBe("model_not_found");
    expect(upstream.requests).toHaveLength(0);
  });

  test("refuses a development key in production, where the first key is a live one", async () => {
    await using production = await startHeadrace({
      yaml: upstreamYaml(upstream),
      flags: { mode: "production", publicUrl: "https://ai.example.com" },
    });
    expect(production.key).toStartWith("sk_live_hr_");
    expect((await get({ "x-api-key": production.key }, production)).status).toBe(200);
    const dev = await addKey(production, { environment: "dev" });
    const response = await get({ "x-api-key": dev }, production);
    expect(response.status).toBe(401);
    expect(await response.text()).toBe(refused);
    // A live key is not bound to this machine.
    const { answers } = await raw(
      production.url,
      head("GET /v1/models HTTP/1.1", ["Host: ai.example.com", "Via: 1.1 proxy", `X-API-Key: ${production.key}`]),
    );
    expect(answers[0]?.status).toBe(200);
  });
});

describe("a development key", () => {
  const ask = async (lines: readonly string[]) => {
    const { answers } = await raw(server.url, head("GET /v1/models HTTP/1.1", [...lines, `X-API-Key: ${server.key}`]));
    return answers[0]?.status;
  };

  test.each(["127.0.0.1", "127.0.0.1:7545", "127.8.9.1", "localhost", "LocalHost:80", "[::1]", "[::1]:7545"])(
    "accepts a development key with the Host %s",
    async (host) => {
      expect(await ask([`Host: ${host}`])).toBe(200);
    },
  );

  // hardening: K2
  test.each([
    "evil.example",
    "127.0.0.1.evil.example",
    "localhost.evil.example",
    "evil.example:127",
    "127.0.0.1@evil.example",
    "user@127.0.0.1",
    "127.0.0.1, evil.example",
    "127.0.0.1 evil.example",
    "127.1",
    "2130706433",
    "0x7f000001",
    "[::ffff:8.8.8.8]",
    "128.0.0.1",
    "[::1",
    "%31%32%37.0.0.1",
    "localhost#",
    "localhost/",
    "localhost?x",
  ])("refuses a development key with the Host %p, which may belong to a tunnel or rebinding page", async (host) => {
    expect([400, 401]).toContain((await ask([`Host: ${host}`])) as number);
  });

  // hardening: K2
  test.each([
    "host.docker.internal:7545",
    "host.containers.internal",
    "devbox.local",
    "gateway",
    "10.0.0.1",
    "0.0.0.0",
    "",
  ])(
    "accepts a development key from this machine with the container Host %p, but not for a foreign page",
    async (host) => {
      expect(await ask([`Host: ${host}`])).toBe(200);
      expect(await ask([`Host: ${host}`, "Origin: http://localhost:3000"])).toBe(200);
      for (const page of [`Origin: http://${host || "x.local"}`, "Origin: null", "Sec-Fetch-Site: same-origin"]) {
        expect(await ask([`Host: ${host}`, page])).toBe(401);
      }
      // A key that is nobody's, and none, open nothing and learn nothing.
      for (const lines of [[], ["X-API-Key: sk_dev_hr_000000000000000000000000000000000000"]]) {
        const { answers } = await raw(server.url, head("GET /v1/models HTTP/1.1", [`Host: ${host}`, ...lines]));
        expect([answers[0]?.status, answers[0]?.body]).toEqual([401, refused]);
      }
    },
  );

  test("accepts a development key over HTTP/1.0 without a Host", async () => {
    const { answers } = await raw(server.url, head("GET /v1/models HTTP/1.0", [`X-API-Key: ${server.key}`]));
    expect(answers[0]?.status).toBe(200);
  });

  test("accepts a development key and pages with a name of allowed_hosts", async () => {
    await using named = await startHeadrace({ yaml: "allowed_hosts: [devbox.example.com]\n" });
    const status = async (host: string, line: string) => {
      const { answers } = await raw(named.url, head("GET /v1/models HTTP/1.1", [`Host: ${host}`, line]));
      return answers[0]?.status;
    };
    expect(await status("devbox.example.com:7545", `X-API-Key: ${named.key}`)).toBe(200);
    expect(await status("other.example.com:7545", `X-API-Key: ${named.key}`)).toBe(401);
    const metrics = await raw(named.url, head("GET /metrics HTTP/1.1", ["Host: devbox.example.com"]));
    expect(metrics.answers[0]?.status).toBe(200);
    const rebound = await raw(named.url, head("GET /metrics HTTP/1.1", ["Host: host.docker.internal"]));
    expect(rebound.answers[0]?.status).toBe(401);
  });

  test("refuses a development key with two Host headers", async () => {
    expect([400, 401]).toContain((await ask(["Host: 127.0.0.1", "Host: evil.example"])) as number);
    expect([400, 401]).toContain((await ask(["Host: evil.example", "Host: 127.0.0.1"])) as number);
  });

  test.each([
    "X-Forwarded-For: 203.0.113.9",
    "X-Forwarded-For: 127.0.0.1",
    "X-Forwarded-For:",
    "X-Forwarded-Host: localhost",
    "X-Forwarded-Proto: https",
    "x-forwarded-anything: 1",
    "Forwarded: for=127.0.0.1",
    "Via: 1.1 tunnel",
    "vIA: 1.1 tunnel",
  ])("refuses a development key with %s, since a tunnel must not make the internet local", async (line) => {
    expect(await ask(["Host: 127.0.0.1", line])).toBe(401);
  });
});
