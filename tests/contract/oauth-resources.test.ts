// What a token is for (RFC 8707), and how clients of tools learn of it (RFC 9728): over HTTP, with the server's own words.
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { decodeJwt } from "jose";
import { tokenDigest } from "../../src/policy/credentials/opaque-token.ts";
import { issuer, testEvent } from "../support/credentials.ts";
import {
  basic,
  deviceGrantType,
  type Fields,
  type OAuthServer,
  redemption,
  refusal,
  startOAuth,
} from "../support/oauth.ts";
import { storedDeviceCode } from "../support/stored-devices.ts";

let server: OAuthServer;

beforeEach(async () => {
  server = await startOAuth();
  const scopes = ["chat:write", "models:read", "tools:use"] as const;
  await server.apps.updateApp("web", { scopes }, testEvent(server.now.seconds));
});

afterEach(() => server.close());

const scopes = ["models:read", "tools:use"] as const;

/** What a code for these resources gives. */
async function redeemed(resources: readonly string[], more: Fields = {}) {
  return server.redeem(await server.code("web", { resources, scopes }), more);
}

async function goodAt(accessToken: unknown): Promise<string[]> {
  const paths = ["/v1/probe", "/mcp", "/mcp/github", "/mcp/gitlab"];
  const answers = await Promise.all(paths.map(async (path) => [path, await server.probe(accessToken, path)] as const));
  for (const [, status] of answers) expect([200, 401]).toContain(status);
  return answers.flatMap(([path, status]) => (status === 200 ? [path] : []));
}

describe("an access token for a resource", () => {
  test("accepts a token at its own resource, and refuses it at every other", async () => {
    for (const [resources, paths, aud] of [
      [["/v1"], ["/v1/probe"], `${issuer}/v1`],
      [["/mcp"], ["/mcp", "/mcp/github", "/mcp/gitlab"], `${issuer}/mcp`],
      [["/mcp/github"], ["/mcp/github"], `${issuer}/mcp/github`],
      [
        ["/v1", "/mcp/github"],
        ["/v1/probe", "/mcp/github"],
        [`${issuer}/v1`, `${issuer}/mcp/github`],
      ],
    ] as const) {
      const { body } = await redeemed(resources);
      expect<unknown>(decodeJwt(String(body["access_token"])).aud).toEqual(aud);
      expect(await goodAt(body["access_token"])).toEqual([...paths]);
    }
  });

  test("says where to get another token if one is refused for its resource", async () => {
    const { body } = await redeemed(["/v1"]);
    const headers = { authorization: `Bearer ${body["access_token"]}` };
    const answer = await fetch(`${server.url}/mcp/github`, { headers });
    expect([answer.status, answer.headers.get("www-authenticate")]).toEqual([
      401,
      `Bearer realm="headrace", error="invalid_token", resource_metadata="${issuer}/.well-known/oauth-protected-resource/mcp/github", scope="tools:use"`,
    ]);
  });

  test("narrows a token to part of the allowed resources, and never widens it", async () => {
    const narrow = await redeemed(["/v1", "/mcp"], { resource: `${issuer}/mcp/github` });
    expect(await goodAt(narrow.body["access_token"])).toEqual(["/mcp/github"]);
    for (const resource of [
      `${issuer}/mcp`,
      `${issuer}/v1`,
      `${issuer}/mcp/gitlab`,
      "https://other.example/mcp",
      "x",
    ]) {
      const code = await server.code("web", { resources: ["/mcp/github"], scopes });
      expect(refusal(await server.redeem(code, { resource }))).toEqual([400, "invalid_target"]);
      // A mistake of the app costs it nothing.
      expect((await server.redeem(code)).status).toBe(200);
    }
  });

  test("keeps the resource through a refresh, and repeats an answer for the same resource", async () => {
    const first = await redeemed(["/v1", "/mcp"], { resource: `${issuer}/mcp` });
    const refresh = first.body["refresh_token"];
    const atApi = await server.rotate(refresh, { resource: `${issuer}/v1` });
    expect(await goodAt(atApi.body["access_token"])).toEqual(["/v1/probe"]);
    expect((await server.rotate(refresh, { resource: `${issuer}/v1` })).body).toEqual(atApi.body);
    const all = await server.rotate(atApi.body["refresh_token"]);
    expect(await goodAt(all.body["access_token"])).toEqual(["/v1/probe", "/mcp", "/mcp/github", "/mcp/gitlab"]);
    expect(refusal(await server.rotate(all.body["refresh_token"], { resource: "https://other.example/" }))).toEqual([
      ...[400, "invalid_target"],
    ]);
  });

  test("revokes the grant if a refresh token is repeated for another resource", async () => {
    const { body } = await redeemed(["/v1", "/mcp"]);
    await server.rotate(body["refresh_token"], { resource: `${issuer}/v1` });
    const other = await server.rotate(body["refresh_token"], { resource: `${issuer}/mcp` });
    expect(refusal(other)).toEqual([400, "invalid_grant"]);
    expect(await server.liveGrants()).toEqual([]);
  });

  test("requests a token for several resources by several parameters", async () => {
    const code = await server.code("web", { resources: ["/v1", "/mcp"], scopes });
    const fields = new URLSearchParams(redemption(code));
    for (const path of ["/v1", "/mcp/github"]) fields.append("resource", issuer + path);
    const { body } = await server.post("/oauth/token", fields.toString(), basic("web"));
    expect(await goodAt(body["access_token"])).toEqual(["/v1/probe", "/mcp/github"]);
  });

  test("accepts a token made from a key wherever the key works", async () => {
    const { secret } = await server.addKey("live", { scopes: ["tools:use", "models:read"] });
    const principal = await server.authenticator.authenticate({
      ...{ authorization: null, apiKey: secret, clientAddress: "127.0.0.1", requestId: "req_1" },
      whyNotLocal: () => undefined,
    });
    const origin = { clientAddress: "127.0.0.1", requestId: "req_1", nowSeconds: server.now.seconds };
    const { accessToken } = await server.tokens.issue({ principal, expiresIn: 600, scope: undefined, origin });
    expect(await goodAt(accessToken)).toHaveLength(4);
    expect(await goodAt(secret)).toHaveLength(4);
  });
});

describe("the device flow for a resource", () => {
  test("issues a device's tokens for the requested resource", async () => {
    const fields = { client_id: "web", scope: "tools:use", resource: `${issuer}/mcp/github` };
    const begun = await server.post("/oauth/device_authorization", fields, basic("web"));
    const device_code = String(begun.body["device_code"]);
    const stored = await storedDeviceCode(server.db, tokenDigest(device_code));
    if (!stored) throw new Error("The code is not stored.");
    expect(await server.decide(stored, "approved")).toBe(true);
    const { body } = await server.token({ grant_type: deviceGrantType, device_code }, basic("web"));
    expect(await goodAt(body["access_token"])).toEqual(["/mcp/github"]);
  });

  test("refuses a device a foreign resource", async () => {
    const fields = { client_id: "web", resource: "https://other.example/mcp" };
    const begun = await server.post("/oauth/device_authorization", fields, basic("web"));
    expect(refusal(begun)).toEqual([400, "invalid_target"]);
  });
});

describe("discovery of protected resources", () => {
  test.each([["/mcp"], ["/mcp/github"], ["/mcp/nobody-has-this-name"]])(
    "describes %s as requested without revealing whether it exists",
    async (path) => {
      const refused = await fetch(server.url + path);
      const metadata = `${issuer}/.well-known/oauth-protected-resource${path}`;
      expect([refused.status, refused.headers.get("www-authenticate")]).toEqual([
        401,
        `Bearer realm="headrace", resource_metadata="${metadata}", scope="tools:use"`,
      ]);
      const answer = await fetch(server.url + new URL(metadata).pathname);
      expect(answer.headers.get("access-control-allow-origin")).toBe("*");
      expect(await answer.json()).toMatchObject({
        ...{ resource: `${issuer}${path}`, authorization_servers: [issuer], scopes_supported: ["tools:use"] },
        bearer_methods_supported: ["header"],
      });
    },
  );

  test("answers 404 to discovery of an impossible server name", async () => {
    for (const name of ["Git_Hub", "a/b", "x".repeat(25), "%00"]) {
      expect((await fetch(`${server.url}/.well-known/oauth-protected-resource/mcp/${name}`)).status).toBe(404);
    }
  });

  test("describes the API resource without mentioning tools", async () => {
    const refused = await fetch(`${server.url}/v1/probe`);
    expect(refused.headers.get("www-authenticate")).toBe(
      `Bearer realm="headrace", resource_metadata="${issuer}/.well-known/oauth-protected-resource/v1"`,
    );
  });

  test("names the missing scope and its authorization server in a refused token's answer", async () => {
    const code = await server.code("web", { resources: ["/mcp"], scopes: ["models:read"] });
    const { body } = await server.redeem(code);
    const headers = { authorization: `Bearer ${body["access_token"]}` };
    const answer = await fetch(`${server.url}/mcp`, { headers });
    expect([answer.status, answer.headers.get("www-authenticate")]).toEqual([
      403,
      `Bearer realm="headrace", error="insufficient_scope", scope="tools:use", resource_metadata="${issuer}/.well-known/oauth-protected-resource/mcp"`,
    ]);
  });
});
