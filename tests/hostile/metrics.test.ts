// Who may read the metrics, what is never in them, and that no client can make them grow.
import { afterEach, describe, expect, test } from "bun:test";
import { invalidApiKeyMessage } from "../../src/base/invalid-api-key.ts";
import { generateApiKey } from "../../src/domain/api-key.ts";
import { scopes } from "../../src/domain/scope.ts";
import { parseMetrics, scrape } from "../support/exposition.ts";
import { startHeadrace, type TestServer, type TestServerOptions } from "../support/headrace.ts";
import { long } from "../support/long.ts";
import { startUpstream, upstreamYaml } from "../support/scripted-upstream.ts";
import { addKey } from "./keys.ts";
import { head, openRaw, raw } from "./raw-client.ts";

const token = "canary-metrics-token-0123456789";
const production = { flags: { mode: "production", publicUrl: "https://ai.example.com" } };
const stack: AsyncDisposable[] = [];
afterEach(async () => {
  for (const part of stack.splice(0).reverse()) await part[Symbol.asyncDispose]();
});

async function start(options: TestServerOptions = {}): Promise<TestServer> {
  const server = await startHeadrace(options);
  stack.push(server);
  return server;
}

async function read(server: TestServer, headers: Record<string, string> = {}) {
  const response = await fetch(`${server.url}/metrics`, { headers });
  return { status: response.status, text: await response.text(), headers: response.headers };
}

const bearer = (credential: string) => ({ authorization: `Bearer ${credential}` });
const refused = {
  error: { message: invalidApiKeyMessage, type: "invalid_request_error", code: "invalid_api_key" },
};

describe("access to metrics", () => {
  test("refuses metrics without a credential in production, even on this machine", async () => {
    const server = await start({ ...production, env: { HEADRACE_METRICS_TOKEN: token } });
    const { status, text, headers } = await read(server);
    expect(status).toBe(401);
    expect(JSON.parse(text)).toEqual(refused);
    expect(headers.get("www-authenticate")).toStartWith('Bearer realm="headrace"');
    expect((await read(server, bearer(token))).status).toBe(200);
  });

  test("accepts exactly the metrics token, in its place, and none if none is configured", async () => {
    const server = await start({ ...production, env: { HEADRACE_METRICS_TOKEN: token } });
    const wrong: Record<string, string>[] = [
      ...[token.slice(0, -1), `${token}x`, token.toUpperCase(), `${token} ${token}`, "", "undefined"].map(bearer),
      { authorization: `Basic ${btoa(`metrics:${token}`)}` },
      { authorization: token },
      { "x-api-key": token },
    ];
    for (const headers of wrong) expect([headers, (await read(server, headers)).status]).toEqual([headers, 401]);
    expect((await fetch(`${server.url}/metrics?token=${token}`)).status).toBe(401);
    const other = await start(production);
    for (const credential of ["", "undefined", "null", token]) {
      expect((await read(other, bearer(credential))).status).toBe(401);
    }
  });

  test("limits the metrics token to metrics", async () => {
    const server = await start({ ...production, env: { HEADRACE_METRICS_TOKEN: token } });
    for (const path of ["/v1/models", "/v1/usage", "/v1/admin/system", "/v1/admin/audit"]) {
      expect((await fetch(server.url + path, { headers: bearer(token) })).status).toBe(401);
    }
  });

  test("accepts an operator's key for metrics, and no other key", async () => {
    const server = await start(production);
    const live = { environment: "live" } as const;
    const operator = await addKey(server, { ...live, scopes: ["admin:manage"] });
    const others = await addKey(server, { ...live, scopes: scopes.filter((scope) => scope !== "admin:manage") });
    const revoked = await addKey(server, { ...live, scopes: ["admin:manage"], revokedAt: 1 });
    expect((await read(server, bearer(operator))).status).toBe(200);
    expect((await read(server, { "x-api-key": operator })).status).toBe(200);
    const { status, text } = await read(server, bearer(others));
    expect([status, JSON.parse(text).error.code]).toEqual([403, "insufficient_scope"]);
    for (const key of [revoked, generateApiKey("live"), generateApiKey("dev")]) {
      expect((await read(server, bearer(key))).status).toBe(401);
    }
  });

  test("serves metrics in development to this machine, but to no proxy, other host name or web page", async () => {
    const server = await start();
    expect((await read(server)).status).toBe(200);
    const foreign: Record<string, string>[] = [
      { "x-forwarded-for": "203.0.113.7" },
      { forwarded: "for=203.0.113.7" },
      { via: "1.1 proxy" },
      { "cf-connecting-ip": "203.0.113.7" },
      { host: "ai.example.com" },
      { host: "attacker.test:7545" },
      { origin: "https://attacker.test" },
      { "sec-fetch-site": "cross-site" },
    ];
    for (const headers of foreign) expect([headers, (await read(server, headers)).status]).toEqual([headers, 401]);
    // A credential that is shown has to be right.
    expect((await read(server, bearer(`${server.key}x`))).status).toBe(401);
    const { answers } = await raw(server.url, head("GET http://attacker.test/metrics HTTP/1.1", ["Host: localhost"]));
    expect(answers[0]?.status).not.toBe(200);
  });
});

/** How many of each kind. */
const most = long ? 10_020 : 1_020;

test("adds no metric series for invented models, paths, methods, hosts or keys", async () => {
  const upstream = await startUpstream();
  stack.push(upstream);
  const server = await start({ yaml: upstreamYaml(upstream) });
  const invent = async (from: number, count: number) => {
    let bytes = "";
    for (let i = from; i < from + count; i++) {
      const body = JSON.stringify({ model: `model-${i}`, messages: [{ role: "user", content: "x" }] });
      const fields = [`Host: localhost`, `Authorization: Bearer ${server.key}`];
      bytes += head("POST /v1/chat/completions HTTP/1.1", [
        ...fields,
        "Content-Type: application/json",
        `Content-Length: ${body.length}`,
      ]);
      bytes += body;
      bytes += head(`GET /v1/models/model-${i} HTTP/1.1`, fields);
      bytes += head(`GET /path-${i}?q=${i} HTTP/1.1`, fields);
      bytes += head(`METHOD${i} /v1/models HTTP/1.1`, fields);
      bytes += head("GET /v1/models HTTP/1.1", [`Host: host-${i}`, `Authorization: Bearer sk_dev_hr_${i}`]);
    }
    const connection = await openRaw(server.url);
    await connection.write(bytes);
    const { answers } = await connection.answered(count * 5, 60_000);
    connection.socket.destroy();
    expect(answers).toHaveLength(count * 5);
  };
  await invent(0, 20);
  const before = await scrape(server);
  for (let i = 20; i < most; i += 50) await invent(i, 50);
  const after = await scrape(server);
  const names = (metrics: typeof before) =>
    metrics.samples.map(({ name, labels }) => `${name} ${JSON.stringify(labels)}`);
  // The scrape itself is counted the second time.
  expect(names(after).filter((one) => !one.includes('"/metrics"'))).toEqual(names(before));
  expect(after.text).not.toMatch(/model-\d|path-\d|METHOD|host-\d/);
  expect(after.get("headrace_http_requests_total", { route: "none", method: "GET", status: "404" })).toBe(most);
  expect(after.get("headrace_http_requests_total", { method: "other", status: "405" })).toBe(most);
  expect(after.get("headrace_inference_requests_total")).toBeUndefined();
});

test("exposes no key, account, person, prompt, address or token in metrics", async () => {
  const upstream = await startUpstream();
  stack.push(upstream);
  const server = await start({ yaml: upstreamYaml(upstream), env: { HEADRACE_METRICS_TOKEN: token } });
  const key = await addKey(server, { name: "CANARYKEY" });
  const marks = { "user-agent": "CANARYAGENT", "x-request-id": "CANARYID", referer: "https://canary.test" };
  const messages = [{ role: "user", content: "CANARYPROMPT" }];
  for (const stream of [true, false]) {
    const response = await server.request("/v1/chat/completions", {
      body: { model: "upstream-model", stream, messages, user: "canary@example.com", store: true },
      headers: { ...bearer(key), ...marks },
    });
    expect(response.status).toBe(200);
    await response.text();
  }
  for (const path of ["/v1/CANARYPATH", "/v1/keys/CANARYID", "/CANARY@example.com"]) await server.request(path);
  await server.request("/v1/chat/completions", {
    body: `CANARYBODY`,
    headers: { ...marks, "x-forwarded-for": "203.0.113.77" },
  });
  await server.request("/v1/chat/completions", { body: { model: "CANARYMODEL", messages } });
  const { text } = await read(server, bearer(token));
  parseMetrics(text);
  expect(text).not.toMatch(/canary|sk_|sk-|key_[0-9a-f]|acct_|req_|usr_|rep_|203\.0\.113|@example/i);
  expect(text).not.toContain(server.dataDir);
});
