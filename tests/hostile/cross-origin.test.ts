// Cross-origin requests: nothing by default, exactly the configured origins otherwise, and all that the SDKs need.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { startHeadrace, type TestServer } from "../support/headrace.ts";
import { type ScriptedUpstream, startUpstream, upstreamYaml } from "../support/scripted-upstream.ts";

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

describe("cross-origin requests", () => {
  const origin = "https://app.example.com";
  const stainless =
    "authorization,content-type,x-stainless-arch,x-stainless-lang,x-stainless-os,x-stainless-package-version,x-stainless-retry-count,x-stainless-runtime,x-stainless-timeout,openai-organization,openai-project";
  const preflight = (gateway: TestServer, from: string, path = "/v1/chat/completions") =>
    fetch(gateway.url + path, {
      method: "OPTIONS",
      headers: {
        origin: from,
        "access-control-request-method": "POST",
        "access-control-request-headers": stainless,
      },
    });
  const corsOf = (response: Response) =>
    [...response.headers.keys()].filter((name) => name.startsWith("access-control"));

  test("sends no CORS header in preflights and answers without configured origins", async () => {
    const refused = await preflight(server, origin);
    expect(refused.status).toBe(405);
    expect(corsOf(refused)).toEqual([]);
    const answer = await server.request("/v1/models", { headers: { origin } });
    expect(answer.status).toBe(200);
    expect(corsOf(answer)).toEqual([]);
  });

  test("lets a configured origin send and read what the SDKs need, errors included", async () => {
    await using gateway = await startHeadrace({ yaml: upstreamYaml(upstream, `cors: { origins: ["${origin}"] }\n`) });
    const allowed = await preflight(gateway, origin);
    expect(allowed.status).toBe(204);
    expect(allowed.headers.get("access-control-allow-origin")).toBe(origin);
    expect(allowed.headers.get("access-control-allow-methods")).toContain("POST");
    const names = (allowed.headers.get("access-control-allow-headers") ?? "").split(/, */);
    for (const name of stainless.split(",")) expect(names).toContain(name);
    expect(allowed.headers.get("access-control-allow-credentials")).toBeNull();
    for (const response of [
      await gateway.request("/v1/models", { headers: { origin } }),
      await fetch(`${gateway.url}/v1/models`, { headers: { origin } }),
      await gateway.request("/nope", { headers: { origin } }),
    ]) {
      expect(response.headers.get("access-control-allow-origin")).toBe(origin);
      expect(response.headers.get("vary")).toContain("Origin");
      const exposed = response.headers.get("access-control-expose-headers") ?? "";
      const read = ["x-request-id", "retry-after", "retry-after-ms", "x-ratelimit-remaining-tokens"];
      const mcp = ["mcp-session-id", "www-authenticate"];
      for (const name of [
        ...read,
        ...mcp,
        "x-headrace-guardrails",
        "request-id",
        "anthropic-ratelimit-requests-reset",
      ]) {
        expect(exposed.split(", ")).toContain(name);
      }
    }
  });

  test.each([
    "https://app.example.com.evil.example",
    "https://evil.example",
    "http://app.example.com",
    "https://app.example.com:8443",
    "https://APP.example.com",
    "null",
    "",
  ])("does not take the origin %p for the configured one", async (other) => {
    await using gateway = await startHeadrace({ yaml: upstreamYaml(upstream, `cors: { origins: ["${origin}"] }\n`) });
    const refused = await preflight(gateway, other);
    expect(refused.status).toBe(405);
    expect(corsOf(refused)).toEqual([]);
    expect(corsOf(await gateway.request("/v1/models", { headers: { origin: other } }))).toEqual([]);
  });

  test("marks answers as varying by origin for caches, also for a refused origin", async () => {
    await using gateway = await startHeadrace({ yaml: upstreamYaml(upstream, `cors: { origins: ["${origin}"] }\n`) });
    const answer = await gateway.request("/v1/models", { headers: { origin: "https://evil.example" } });
    expect(answer.headers.get("vary") ?? "").toContain("Origin");
  });

  test("allows every origin with *, until a reload closes it", async () => {
    await using gateway = await startHeadrace({ yaml: upstreamYaml(upstream, 'cors: { origins: ["*"] }\n') });
    expect((await preflight(gateway, "https://any.example")).headers.get("access-control-allow-origin")).toBe("*");
    await gateway.reconfigure(upstreamYaml(upstream));
    expect((await preflight(gateway, "https://any.example")).status).toBe(405);
  });

  test("answers a preflight without a key, and alike for unknown paths", async () => {
    await using gateway = await startHeadrace({ yaml: upstreamYaml(upstream, 'cors: { origins: ["*"] }\n') });
    const known = await preflight(gateway, origin);
    const unknown = await preflight(gateway, origin, "/nope");
    expect([known.status, await known.text()]).toEqual([unknown.status, await unknown.text()]);
  });
});
