// What OAuth clients rely on: the answers of RFC 6749, 7009, 7662, 8414, 8628 and 9728, over HTTP, in their exact form.
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { commandLineAppId } from "../../src/domain/people/app.ts";
import { tokenDigest } from "../../src/policy/credentials/opaque-token.ts";
import { audience, issuer, testEvent } from "../support/credentials.ts";
import {
  basic,
  deviceGrantType,
  type OAuthServer,
  redemption,
  refusal,
  secretOf,
  startOAuth,
} from "../support/oauth.ts";
import { refreshFields } from "../support/oauth-apps.ts";
import { accountFor } from "../support/principal.ts";
import { storedDeviceCode } from "../support/stored-devices.ts";

let server: OAuthServer;

beforeEach(async () => {
  server = await startOAuth();
});

afterEach(() => server.close());

async function tokensOf(appId = "web") {
  const { status, body } = await server.token(redemption(await server.code(appId)), basic(appId));
  expect(status).toBe(200);
  return body;
}

describe("POST /oauth/token", () => {
  test("issues tokens for a code as RFC 6749 requires, and accepts them as the app's", async () => {
    const { status, headers, body } = await server.token(redemption(await server.code()), basic("web"));
    expect([status, headers.get("cache-control"), headers.get("content-type")]).toEqual([
      ...[200, "no-store", "application/json"],
    ]);
    expect(body).toEqual({
      ...{ access_token: expect.stringMatching(/^ey/), token_type: "Bearer", expires_in: 3_600 },
      ...{ refresh_token: expect.stringMatching(/^hrr_[\w-]{43}$/), scope: "chat:write models:read" },
    });
    const headersOf = { authorization: `Bearer ${body["access_token"]}` };
    const probe = await fetch(`${server.url}/v1/probe`, { headers: headersOf });
    expect(await probe.json()).toEqual({ app: "web", scopes: ["chat:write", "models:read"] });
    const claims = JSON.parse(Buffer.from(String(body["access_token"]).split(".")[1] ?? "", "base64url").toString());
    expect(claims).toMatchObject({ iss: issuer, aud: audience, sub: "usr_1", client_id: "web", scope: body["scope"] });
    const [created] = await server.grantEvents();
    expect(created).toMatchObject({
      ...{ action: "grant.created", actor: { type: "app", id: "web" }, accountId: server.accountId },
      ...{ targetId: claims.key_id, detail: { by: "authorization_code", person_id: "usr_1" } },
    });
    const chain = await server.keys.findChainById(claims.key_id);
    expect(chain?.keys[0]).toMatchObject({
      ...{ kind: "grant", name: "The web app", parentId: "mbr_1_live", personId: "usr_1", appId: "web" },
      ...{ createdBy: "usr_1", prefix: "", last4: "", limitId: claims.key_id, digest: claims.key_id },
    });
  });

  test("accepts a client secret in header or body, and a public app by its id", async () => {
    const body = { client_id: "web", client_secret: secretOf("web") };
    expect((await server.token(redemption(await server.code(), body))).status).toBe(200);
    const both = { client_id: "web" };
    expect((await server.token(redemption(await server.code(), both), basic("web"))).status).toBe(200);
    const empty = { client_secret: "", scope: "" };
    expect((await server.token(redemption(await server.code(), empty), basic("web"))).status).toBe(200);
    const id = { client_id: "native" };
    expect((await server.token(redemption(await server.code("native"), id))).status).toBe(200);
    expect((await server.token(redemption(await server.code("native")), basic("native", ""))).status).toBe(200);
  });

  test("replaces a refresh token each time, within the allowed scopes", async () => {
    const first = await tokensOf();
    const narrow = await server.token(refreshFields(first["refresh_token"], { scope: "models:read" }), basic("web"));
    expect([narrow.status, narrow.body["scope"]]).toEqual([200, "models:read"]);
    const wide = await server.token(refreshFields(narrow.body["refresh_token"], { scope: "usage:read" }), basic("web"));
    expect(refusal(wide)).toEqual([400, "invalid_scope"]);
    const again = await server.token(refreshFields(narrow.body["refresh_token"]), basic("web"));
    expect([again.status, again.body["scope"]]).toEqual([200, "chat:write models:read"]);
    expect(new Set([first, narrow.body, again.body].map((body) => body["refresh_token"])).size).toBe(3);
    for (const body of [first, narrow.body, again.body]) expect(await server.probe(body["access_token"])).toBe(200);
    const refreshed = (await server.grantEvents()).filter(({ action }) => action === "grant.refreshed");
    expect(refreshed.map(({ detail }) => detail["scopes"])).toEqual([["models:read"], ["chat:write", "models:read"]]);
  });

  test("issues tokens only for scopes that the app may still have", async () => {
    const first = await tokensOf();
    const change = (scopes: ("models:read" | "usage:read")[]) =>
      server.apps.updateApp("web", { scopes }, testEvent(server.now.seconds));
    await change(["models:read", "usage:read"]);
    const less = await server.token(refreshFields(first["refresh_token"]), basic("web"));
    expect(less.body["scope"]).toBe("models:read");
    await change(["usage:read"]);
    expect(refusal(await server.token(refreshFields(less.body["refresh_token"]), basic("web")))).toEqual([
      ...[400, "invalid_scope"],
    ]);
  });

  test("reports each kind of token refusal in the format that clients read", async () => {
    const { status, headers, body } = await server.token({ grant_type: "password" }, basic("web"));
    expect([status, headers.get("cache-control"), headers.get("www-authenticate")]).toEqual([400, "no-store", null]);
    expect(headers.get("pragma")).toBe("no-cache");
    expect(body).toEqual({
      error: "unsupported_grant_type",
      error_description: `grant_type: must be one of authorization_code, refresh_token, ${deviceGrantType}.`,
    });
    const unknown = await server.token({ grant_type: "refresh_token", client_id: "nobody" });
    expect([unknown.status, unknown.headers.get("www-authenticate")]).toEqual([401, 'Basic realm="headrace"']);
    expect(unknown.body["error"]).toBe("invalid_client");
  });

  test("answers token requests from pages of configured origins only", async () => {
    const origin = async (value: string) =>
      (await server.token({}, { origin: value })).headers.get("access-control-allow-origin");
    expect(await origin("https://page.example")).toBe("https://page.example");
    expect(await origin("https://evil.example")).toBeNull();
  });
});

describe("the device flow", () => {
  const begin = (fields: Record<string, string> = {}) =>
    server.post("/oauth/device_authorization", { client_id: commandLineAppId, ...fields });
  const poll = (code: unknown, client = commandLineAppId) =>
    server.token({ grant_type: deviceGrantType, device_code: String(code), client_id: client });
  async function found(deviceCode: unknown) {
    const code = await storedDeviceCode(server.db, tokenDigest(String(deviceCode)));
    if (!code) throw new Error("There is no such code.");
    return code;
  }

  test("issues device codes as RFC 8628 requires, each unique", async () => {
    const { status, headers, body } = await begin({ scope: "chat:write" });
    expect([status, headers.get("cache-control")]).toEqual([200, "no-store"]);
    const userCode = String(body["user_code"]);
    expect(body).toEqual({
      ...{ device_code: expect.stringMatching(/^hrd_[\w-]{43}$/), user_code: expect.stringMatching(/^\w{4}-\w{4}$/) },
      ...{ verification_uri: `${issuer}/device`, verification_uri_complete: `${issuer}/device?user_code=${userCode}` },
      ...{ expires_in: 600, interval: 5 },
    });
    const kept = await server.oauth.findByUserCode(userCode.replace("-", ""), server.now.seconds);
    expect(kept).toMatchObject({ appId: commandLineAppId, scopes: ["chat:write"], state: "pending" });
    expect((await begin()).body["device_code"]).not.toBe(body["device_code"]);
  });

  // hardening: A12
  test("makes a device wait for a person, slows it down, and issues tokens once", async () => {
    const { device_code: code } = (await begin()).body;
    expect(refusal(await poll(code))).toEqual([400, "authorization_pending"]);
    server.now.seconds += 4;
    expect(refusal(await poll(code))).toEqual([400, "slow_down"]);
    server.now.seconds += 9;
    expect(refusal(await poll(code))).toEqual([400, "slow_down"]);
    server.now.seconds += 15;
    expect(refusal(await poll(code))).toEqual([400, "authorization_pending"]);
    await server.decide(await found(code), "approved");
    const answers = await Promise.all(Array.from({ length: 10 }, () => poll(code)));
    const given = answers.filter(({ status }) => status === 200);
    expect(given).toHaveLength(1);
    expect(given[0]?.body["scope"]).toBe("chat:read chat:write models:read usage:read tools:use keys:manage");
    expect(await server.probe(given[0]?.body["access_token"])).toBe(200);
    for (const answer of answers) if (answer.status !== 200) expect(refusal(answer)).toEqual([400, "invalid_grant"]);
    expect(refusal(await poll(code))).toEqual([400, "invalid_grant"]);
  });

  // hardening: A12
  // long-lived: deviceCode.age
  test("reports denial and expiry to a device, decided or not", async () => {
    const denied = (await begin()).body["device_code"];
    await server.decide(await found(denied), "denied");
    expect(refusal(await poll(denied))).toEqual([400, "access_denied"]);
    const [late, approved] = [(await begin()).body["device_code"], (await begin()).body["device_code"]];
    await server.decide(await found(approved), "approved");
    server.now.seconds += 600;
    expect(refusal(await poll(late))).toEqual([400, "expired_token"]);
    expect(refusal(await poll(approved))).toEqual([400, "expired_token"]);
  });

  test("limits a device code to one app and the app's scopes", async () => {
    const { device_code: code } = (await begin()).body;
    await server.decide(await found(code), "approved");
    expect(refusal(await poll(code, "native"))).toEqual([400, "invalid_grant"]);
    expect(refusal(await poll("hrd_unknown"))).toEqual([400, "invalid_grant"]);
    expect((await poll(code)).status).toBe(200);
    expect(refusal(await begin({ scope: "admin:manage" }))).toEqual([400, "invalid_scope"]);
    expect(refusal(await begin({ client_id: "native", scope: "keys:manage" }))).toEqual([400, "invalid_scope"]);
    expect((await begin({ client_id: "native", scope: "usage:read" })).status).toBe(200);
    expect(refusal(await server.post("/oauth/device_authorization", {}))).toEqual([401, "invalid_client"]);
  });

  test("issues no tokens to a device if its approver is no longer a member", async () => {
    const { device_code: code } = (await begin()).body;
    await server.decide(await found(code), "approved");
    await server.keys.updateKey("mbr_1_live", { revokedAt: server.now.seconds }, testEvent(server.now.seconds));
    expect(refusal(await poll(code))).toEqual([400, "invalid_grant"]);
  });
});

describe("POST /oauth/revoke", () => {
  const revoke = (token: unknown, headers = basic("web")) =>
    server.post("/oauth/revoke", { token: String(token) }, headers);

  test.each(["access_token", "refresh_token"])("ends an app's whole grant at once by revoking the %s", async (kind) => {
    const tokens = await tokensOf();
    const others = await tokensOf();
    expect(await server.probe(tokens["access_token"])).toBe(200);
    const { status, body } = await revoke(tokens[kind]);
    expect([status, body]).toEqual([200, {}]);
    expect(await server.probe(tokens["access_token"])).toBe(401);
    expect(refusal(await server.token(refreshFields(tokens["refresh_token"]), basic("web")))).toEqual([
      400,
      "invalid_grant",
    ]);
    expect(await server.probe(others["access_token"])).toBe(200);
    expect((await server.grantEvents()).at(-1)).toMatchObject({
      action: "grant.revoked",
      detail: { reason: "by_app" },
    });
    expect((await revoke(tokens[kind])).status).toBe(200);
    expect(server.changes.count).toBe(1);
  });

  // hardening: A11
  test("changes and reveals nothing by revoking an unknown or another app's token", async () => {
    const tokens = await tokensOf();
    const { secret } = await server.addKey();
    const foreign = [tokens["access_token"], tokens["refresh_token"]];
    for (const token of foreign) expect(await revoke(token, basic("other"))).toMatchObject({ status: 200, body: {} });
    for (const token of ["nonsense", "hrr_unknown", "a.b.c", secret]) expect((await revoke(token)).status).toBe(200);
    expect(await server.probe(tokens["access_token"])).toBe(200);
    expect(server.changes.count).toBe(0);
    expect(refusal(await server.post("/oauth/revoke", {}, basic("web")))).toEqual([400, "invalid_request"]);
    expect(refusal(await server.post("/oauth/revoke", { token: "x" }))).toEqual([401, "invalid_client"]);
  });

  test("revokes tokens of public apps", async () => {
    const { body } = await server.token(redemption(await server.code("native"), { client_id: "native" }));
    await server.post("/oauth/revoke", { token: String(body["access_token"]), client_id: "foreign" });
    expect(await server.probe(body["access_token"])).toBe(200);
    await server.post("/oauth/revoke", { token: String(body["access_token"]), client_id: "native" });
    expect(await server.probe(body["access_token"])).toBe(401);
  });
});

describe("POST /oauth/introspect", () => {
  const introspect = async (token: unknown, headers = basic("web")) =>
    (await server.post("/oauth/introspect", { token: String(token), token_type_hint: "nonsense" }, headers)).body;

  test("describes an app's own valid tokens", async () => {
    const tokens = await tokensOf();
    const common = { active: true, client_id: "web", sub: "usr_1", iss: issuer, iat: server.now.seconds };
    expect(await introspect(tokens["access_token"])).toEqual({
      ...{ ...common, scope: "chat:write models:read", exp: server.now.seconds + 3_600, token_type: "Bearer" },
      ...{ aud: audience, jti: expect.stringMatching(/^tok_/) },
    });
    expect(await introspect(tokens["refresh_token"])).toEqual({
      ...{ ...common, scope: "chat:write models:read", exp: server.now.seconds + 30 * 86_400 },
    });
  });

  // hardening: A11
  test("reports other and ended tokens only as inactive", async () => {
    const tokens = await tokensOf();
    const foreign = await tokensOf("other");
    const used = await tokensOf();
    await server.token(refreshFields(used["refresh_token"]), basic("web"));
    const revoked = await tokensOf();
    await server.post("/oauth/revoke", { token: String(revoked["access_token"]) }, basic("web"));
    const { secret } = await server.addKey();
    const bad = [
      ...["nonsense", "hrr_unknown", secret, foreign["access_token"], foreign["refresh_token"], used["refresh_token"]],
      ...[revoked["access_token"], revoked["refresh_token"]],
    ];
    for (const token of bad) expect(await introspect(token)).toEqual({ active: false });
    server.now.seconds += 3_600;
    expect(await introspect(tokens["access_token"])).toEqual({ active: false });
    expect(await introspect(tokens["refresh_token"])).toMatchObject({ active: true });
  });

  test("reports tokens idle too long or without a valid grant as inactive", async () => {
    const tokens = await tokensOf();
    const [grantId = ""] = await server.liveGrants();
    const { accountId } = server;
    const issued = {
      personId: "usr_1",
      appId: "web",
      scopes: ["models:read"],
      resources: ["/v1"],
      expiresIn: 600,
    } as const;
    const issue = async (grant: { id: string; accountId: string }) =>
      (await server.tokens.issueForGrant({ ...issued, grant: { ...grant, environment: "live" } })).accessToken;
    expect(await introspect(await issue({ id: grantId, accountId }))).toMatchObject({ active: true });
    for (const grant of [
      { id: grantId, accountId: "acct_other" },
      { id: "grt_none", accountId },
      { id: "mbr_1_live", accountId },
    ]) {
      expect(await introspect(await issue(grant))).toEqual({ active: false });
    }
    server.now.seconds += 30 * 86_400;
    expect(await introspect(tokens["refresh_token"])).toEqual({ active: false });
  });

  test("reports a refresh token's scopes only as far as the app may still request them", async () => {
    const tokens = await tokensOf();
    await server.apps.updateApp("web", { scopes: ["models:read"] }, testEvent(server.now.seconds));
    expect(await introspect(tokens["refresh_token"])).toMatchObject({ active: true, scope: "models:read" });
  });

  test("reports and treats tokens of a suspended account as inactive", async () => {
    const publisher = accountFor({ id: "acct_publisher", tier: "enterprise" });
    await server.accounts.insertAccount(publisher, testEvent(server.now.seconds));
    const web = await server.apps.findApp("web");
    if (!web) throw new Error("There is no such app.");
    const elsewhere = { ...web, id: "elsewhere", accountId: publisher.id };
    await server.apps.insertApp(elsewhere, testEvent(server.now.seconds));
    const tokens = await tokensOf("elsewhere");
    const [access, again] = [tokens["access_token"], tokens["refresh_token"]];
    expect(await introspect(access, basic("elsewhere"))).toMatchObject({ active: true });
    const code = await server.code("elsewhere");
    await server.accounts.updateAccount(server.accountId, { status: "suspended" }, testEvent(server.now.seconds));
    for (const token of [access, again]) expect(await introspect(token, basic("elsewhere"))).toEqual({ active: false });
    expect(refusal(await server.redeem(code, {}, basic("elsewhere")))).toEqual([400, "invalid_grant"]);
    expect(refusal(await server.rotate(again, {}, basic("elsewhere")))).toEqual([400, "invalid_grant"]);
  });

  // hardening: A11
  test("refuses introspection to unauthenticated apps", async () => {
    const { body } = await server.token(redemption(await server.code("native"), { client_id: "native" }));
    const fields = { token: String(body["access_token"]), client_id: "native" };
    expect(refusal(await server.post("/oauth/introspect", fields))).toEqual([401, "invalid_client"]);
    expect(refusal(await server.post("/oauth/introspect", { token: "x" }, basic("web", "wrong")))).toEqual([
      ...[401, "invalid_client"],
    ]);
  });
});

describe("OAuth metadata", () => {
  async function read(path: string) {
    const response = await fetch(`${server.url}/.well-known/${path}`);
    expect([response.status, response.headers.get("cache-control")]).toEqual([200, "public, max-age=300"]);
    expect(response.headers.get("access-control-allow-origin")).toBe("*");
    return response.json();
  }

  test("names the authorization server's endpoints and supported values", async () => {
    const methods = ["client_secret_basic", "client_secret_post"];
    expect(await read("oauth-authorization-server")).toEqual({
      registration_endpoint: `${issuer}/oauth/register`,
      client_id_metadata_document_supported: false,
      issuer,
      authorization_endpoint: `${issuer}/oauth/authorize`,
      token_endpoint: `${issuer}/oauth/token`,
      revocation_endpoint: `${issuer}/oauth/revoke`,
      introspection_endpoint: `${issuer}/oauth/introspect`,
      device_authorization_endpoint: `${issuer}/oauth/device_authorization`,
      jwks_uri: `${issuer}/.well-known/jwks.json`,
      scopes_supported: ["chat:read", "chat:write", "models:read", "usage:read", "tools:use"],
      response_types_supported: ["code"],
      response_modes_supported: ["query"],
      grant_types_supported: ["authorization_code", "refresh_token", deviceGrantType],
      code_challenge_methods_supported: ["S256"],
      token_endpoint_auth_methods_supported: [...methods, "none"],
      revocation_endpoint_auth_methods_supported: [...methods, "none"],
      introspection_endpoint_auth_methods_supported: methods,
      authorization_response_iss_parameter_supported: true,
      service_documentation: `${issuer}/docs`,
    });
  });

  test("serves API resource metadata at its address, and nothing about others", async () => {
    expect((await fetch(`${server.url}/.well-known/oauth-protected-resource`)).status).toBe(404);
    expect(await read(`oauth-protected-resource${new URL(audience).pathname}`)).toMatchObject({
      ...{ resource: audience, authorization_servers: [issuer], bearer_methods_supported: ["header"] },
      scopes_supported: ["chat:read", "chat:write", "models:read", "usage:read", "tools:use"],
    });
  });
});
