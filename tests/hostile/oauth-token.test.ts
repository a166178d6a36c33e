// The token endpoint under attack: malformed requests, wrong clients, stolen codes, many at once.
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { createHash } from "node:crypto";
import { commandLineAppId } from "../../src/domain/people/app.ts";
import { testEvent } from "../support/credentials.ts";
import {
  basic,
  deviceGrantType,
  type Fields,
  invalidGrant,
  type OAuthReply,
  type OAuthServer,
  redemption,
  redirectUri,
  refusal,
  secretOf,
  startOAuth,
  times,
  verifier,
} from "../support/oauth.ts";

let server: OAuthServer;

const start = async () => {
  server = await startOAuth();
};
const stop = () => server.close();

/** One for all tests of a group, each of them in a minute of its own, so that none is slowed down for another. */
function sharedServer(): void {
  beforeAll(start);
  beforeEach(() => {
    server.now.ms += 60_000;
  });
  afterAll(stop);
}

function ownServers(): void {
  beforeEach(start);
  afterEach(stop);
}

const redeem = (...args: Parameters<OAuthServer["redeem"]>) => server.redeem(...args);

describe("a malformed token request is refused and leaves the code valid", () => {
  sharedServer();
  const withoutSecret = (fields: Fields) => new URLSearchParams(fields).toString();
  const cases: [string, (code: string) => { fields: Fields | string; headers?: Fields }, number, string][] = [
    ["no grant type", (code) => ({ fields: { code } }), 400, "invalid_request"],
    ["an empty grant type", (code) => ({ fields: { code, grant_type: "" } }), 400, "invalid_request"],
    ["an unknown one", (code) => ({ fields: redemption(code, { grant_type: "x" }) }), 400, "unsupported_grant_type"],
    ["one of Object", () => ({ fields: { grant_type: "constructor" } }), 400, "unsupported_grant_type"],
    ["the implicit one", () => ({ fields: { grant_type: "implicit" } }), 400, "unsupported_grant_type"],
    ["no code", () => ({ fields: { grant_type: "authorization_code" } }), 400, "invalid_request"],
    ["no refresh token", () => ({ fields: { grant_type: "refresh_token" } }), 400, "invalid_request"],
    ["no device code", () => ({ fields: { grant_type: deviceGrantType } }), 400, "invalid_request"],
    ["a code sent twice", (code) => ({ fields: `${withoutSecret(redemption(code))}&code=x` }), 400, "invalid_request"],
    [
      "a parameter without a value sent twice",
      (code) => ({ fields: `${withoutSecret(redemption(code))}&scope=&scope=` }),
      ...([400, "invalid_request"] as const),
    ],
    [
      "JSON",
      (code) => ({ fields: JSON.stringify(redemption(code)), headers: { "content-type": "application/json" } }),
      ...([400, "invalid_request"] as const),
    ],
    [
      "a multipart form",
      () => ({ fields: "--x--", headers: { "content-type": "multipart/form-data; boundary=x" } }),
      ...([400, "invalid_request"] as const),
    ],
    ["a huge body", (code) => ({ fields: redemption(code, { a: "x".repeat(70_000) }) }), 413, "invalid_request"],
    ["an empty body", () => ({ fields: "" }), 400, "invalid_request"],
    [
      "a secret in the body and the header",
      (code) => ({ fields: redemption(code, { client_secret: secretOf("web") }) }),
      ...([400, "invalid_request"] as const),
    ],
    [
      "another client in the body than in the header",
      (code) => ({ fields: redemption(code, { client_id: "other" }) }),
      ...([400, "invalid_request"] as const),
    ],
    ["an escape that is none", (code) => ({ fields: `grant_type=%zz&code=${code}` }), 400, "unsupported_grant_type"],
  ];
  // hardening: A7
  test.each(cases)("%s", async (_, make, status, error) => {
    const code = await server.code();
    const { fields, headers = {} } = make(code);
    const answer = await server.post("/oauth/token", fields, { ...basic("web"), ...headers });
    expect(refusal(answer)).toEqual([status, error]);
    expect(answer.headers.get("cache-control")).toBe("no-store");
    expect(Object.keys(answer.body)).toEqual(["error", "error_description"]);
    expect(String(answer.body["error_description"])).toMatch(/^[\x20-\x21\x23-\x5b\x5d-\x7e]+$/);
    expect((await redeem(code)).status).toBe(200);
  });

  // RFC 6749, 3.2: what is unknown is ignored; and nothing of it is said again.
  test("ignores an unknown parameter of the token endpoint, however odd, even twice", async () => {
    const body = `${withoutSecret(redemption(await server.code()))}&%22%5C%C3%A9%0A=1&%22%5C%C3%A9%0A=2&resource=&resource=`;
    const answer = await server.post("/oauth/token", body, basic("web"));
    expect([answer.status, Object.keys(answer.body).sort()]).toEqual([
      200,
      ["access_token", "expires_in", "refresh_token", "scope", "token_type"],
    ]);
  });

  test("ignores token parameters in the address", async () => {
    const query = new URLSearchParams(redemption(await server.code())).toString();
    expect(refusal(await server.post(`/oauth/token?${query}`, "", basic("web")))).toEqual([400, "invalid_request"]);
  });

  // hardening: A7
  test.each(["GET", "PUT", "DELETE"])("refuses the method %s at the token endpoint", async (method) => {
    const response = await fetch(`${server.url}/oauth/token`, { method });
    expect([response.status, response.headers.get("allow")]).toEqual([405, "POST"]);
  });
});

describe("a client that fails authentication gets nothing", () => {
  sharedServer();
  const encoded = (text: string) => Buffer.from(text).toString("base64");
  const cases: [string, Fields, Fields][] = [
    ["nothing at all", {}, {}],
    ["an unknown one", { client_id: "nobody" }, {}],
    ["an unknown one with a secret", { client_id: "nobody", client_secret: "x" }, {}],
    ["a confidential one by its name", { client_id: "web" }, {}],
    ["a confidential one by its name in the header", {}, basic("web", "")],
    ["a wrong secret in the header", {}, basic("web", "wrong")],
    ["a wrong secret in the body", { client_id: "web", client_secret: "wrong" }, {}],
    ["another app's secret", {}, basic("web", secretOf("other"))],
    ["a public one with a secret", { client_id: "native", client_secret: "x" }, {}],
    ["a public one with a secret in the header", {}, basic("native", "x")],
    ["a bearer token", { client_id: "native" }, { authorization: "Bearer x" }],
    ["no base64", {}, { authorization: "Basic %%%" }],
    ["no colon", {}, { authorization: `Basic ${encoded("web")}` }],
    ["no name", {}, { authorization: `Basic ${encoded(":secret")}` }],
    ["a broken escape", {}, { authorization: `Basic ${encoded("web:%zz")}` }],
    ["a secret that was not form-encoded", {}, { authorization: `Basic ${encoded(`web:${secretOf("web")}`)}` }],
  ];
  // hardening: A7
  test.each(cases)("%s", async (_, fields, headers) => {
    for (const path of ["/oauth/token", "/oauth/revoke", "/oauth/introspect", "/oauth/device_authorization"]) {
      const answer = await server.post(path, { ...redemption(await server.code()), token: "x", ...fields }, headers);
      expect(refusal(answer)).toEqual([401, "invalid_client"]);
      expect(answer.headers.get("www-authenticate")).toBe('Basic realm="headrace"');
      expect(answer.headers.get("cache-control")).toBe("no-store");
    }
    expect(await server.liveGrants()).toEqual([]);
  });

  test("audits a client's failed authentication by app", async () => {
    await server.token({}, basic("web", "wrong"));
    await server.token({ client_id: "nobody" });
    await server.refusals.flush();
    const refused = await server.audit.list({ action: "credential.refused" }, { after: undefined, limit: 2 });
    expect(refused.map(({ targetId, detail }) => [targetId, detail["reason"]])).toEqual([
      [null, "oauth_client_unknown"],
      ["web", "oauth_client_secret"],
    ]);
  });

  // hardening: A7
  test("slows down only the client that fails authentication, not its address or its other addresses", async () => {
    const at = (address: string) => ({ "x-forwarded-for": address });
    const guess = (address: string) => server.token({}, { ...basic("web", "wrong"), ...at(address) });
    const answers: OAuthReply[] = [];
    for (let n = 0; n < 31; n++) answers.push(await guess("2001:db8::1"));
    expect(answers.slice(0, 30).every(({ status }) => status === 401)).toBeTrue();
    // Another address of the same network does not help, nor does the right secret.
    for (const last of [
      answers[30],
      await redeem(await server.code(), {}, { ...basic("web"), ...at("2001:db8::2") }),
    ]) {
      expect(last && refusal(last)).toEqual([429, "temporarily_unavailable"]);
      expect(Number(last?.headers.get("retry-after"))).toBeGreaterThan(0);
    }
    expect((await redeem(await server.code(), {}, { ...basic("web"), ...at("2001:db8:0:1::1") })).status).toBe(200);
    // It does not keep the others from theirs either who share the address.
    const other = { ...basic("other"), ...at("2001:db8::1") };
    expect((await redeem(await server.code("other"), {}, other)).status).toBe(200);
    server.now.ms += 60_000;
    expect((await guess("2001:db8::1")).status).toBe(401);
  });

  // hardening: A7
  test("counts authentication failures of a client over all four endpoints, introspection included", async () => {
    const paths = ["/oauth/introspect", "/oauth/revoke", "/oauth/device_authorization", "/oauth/token"];
    const guess = (path: string) =>
      server.post(path, { token: "x" }, { ...basic("web", "wrong"), "x-forwarded-for": "198.51.100.20" });
    const answers: OAuthReply[] = [];
    for (let n = 0; n < 30; n++) answers.push(await guess(paths[n % paths.length] ?? ""));
    expect(answers.map(({ status }) => status)).toEqual(times(30, () => 401));
    for (const path of paths) {
      const late = await guess(path);
      expect([path, ...refusal(late)]).toEqual([path, 429, "temporarily_unavailable"]);
      expect(Number(late.headers.get("retry-after"))).toBeGreaterThan(0);
    }
  });

  // hardening: A7
  test("delays the 1,201st request of a client within a minute, introspection included", async () => {
    const ask = (address: string) =>
      server.post("/oauth/introspect", { token: "x" }, { ...basic("web"), "x-forwarded-for": address });
    const answers = await Promise.all(times(1_300, (n) => ask(`198.51.${n % 200}.7`)));
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(1_200);
    expect(answers.filter(({ status }) => status === 429)).toHaveLength(100);
  });

  // hardening: A7
  test("answers a flooding client before reading anything", async () => {
    const ask = (address: string) =>
      server.post("/oauth/token", "", { "x-forwarded-for": address, "content-type": "x" });
    const answers = await Promise.all(times(601, () => ask("198.51.100.9")));
    expect(answers.filter((answer) => answer.status === 400)).toHaveLength(600);
    expect(answers.map(refusal)).toContainEqual([429, "temporarily_unavailable"]);
    expect((await ask("198.51.100.10")).status).toBe(400);
  });

  // hardening: A12
  test("bounds a public app's requests and device codes per requester", async () => {
    const ask = (address: string) =>
      server.post(
        "/oauth/device_authorization",
        { client_id: commandLineAppId },
        { "x-forwarded-for": `198.51.100.${address}` },
      );
    for (let n = 0; n < 20; n++) expect((await ask("1")).status).toBe(200);
    expect(refusal(await ask("1"))).toEqual([429, "temporarily_unavailable"]);
    expect((await ask("2")).status).toBe(200);
    const poll = (address: string) =>
      server.token(
        { grant_type: deviceGrantType, device_code: "x", client_id: commandLineAppId },
        { "x-forwarded-for": address },
      );
    const polls = await Promise.all(times(121, () => poll("198.51.100.3")));
    expect(polls.filter(({ status }) => status === 429)).toHaveLength(1);
    expect(refusal(await poll("198.51.100.4"))).toEqual(invalidGrant);
  });
});

describe("an authorization code in a wrong request", () => {
  sharedServer();
  const cases: [string, Fields, Fields?][] = [
    ["that is unknown", { code: "unknown" }],
    ["by another app", {}, basic("other")],
    ["with a longer redirect URI", { redirect_uri: `${redirectUri}/` }],
    ["with a redirect URI in capitals", { redirect_uri: redirectUri.toUpperCase() }],
    ["with an escaped redirect URI", { redirect_uri: redirectUri.replace("=", "%3D") }],
    ["without its verifier", { code_verifier: "" }],
    ["with another verifier", { code_verifier: "a".repeat(43) }],
    ["with the challenge as verifier", { code_verifier: createHash("sha256").update(verifier).digest("base64url") }],
    ["with a verifier and a blank", { code_verifier: `${verifier} ` }],
    ["with a part of the verifier", { code_verifier: verifier.slice(0, 42) }],
  ];
  // hardening: A3
  test.each(cases)("refuses a code %s with one text, and keeps it valid", async (_, more, headers = basic("web")) => {
    const code = await server.code();
    const answer = await redeem(code, more, headers);
    expect(refusal(answer)).toEqual(invalidGrant);
    expect(answer.body["error_description"]).toBe(
      "The code or token is unknown, expired, used, revoked, or was not issued for this request.",
    );
    expect((await redeem(code)).status).toBe(200);
  });

  // hardening: A3
  test.each([42, 129])("refuses a verifier of %d characters for a code", async (length) => {
    const odd = "v".repeat(length);
    const codeChallenge = createHash("sha256").update(odd).digest("base64url");
    expect(refusal(await redeem(await server.code("web", { codeChallenge }), { code_verifier: odd }))).toEqual(
      invalidGrant,
    );
  });

  // hardening: A3
  test("accepts no verifier for a code without a challenge, and requires one for public apps", async () => {
    const bare = { codeChallenge: null };
    expect(refusal(await redeem(await server.code("web", bare)))).toEqual(invalidGrant);
    expect((await redeem(await server.code("web", bare), { code_verifier: "" })).status).toBe(200);
    const native = { client_id: "native", code_verifier: "" };
    expect(refusal(await redeem(await server.code("native", bare), native, {}))).toEqual(invalidGrant);
  });

  test("names a missing redirect URI and keeps the code valid", async () => {
    const code = await server.code();
    const { status, body } = await server.token(redemption(code, { redirect_uri: "" }), basic("web"));
    expect([status, body["error"]]).toEqual([400, "invalid_request"]);
    expect(body["error_description"]).toStartWith("redirect_uri: is required");
    expect((await server.token(redemption(code), basic("web"))).status).toBe(200);
  });

  test("accepts no redirect URI or the registered one for a code requested without", async () => {
    const bare = { redirectUri: null };
    expect((await redeem(await server.code("web", bare), { redirect_uri: "" })).status).toBe(200);
    expect((await redeem(await server.code("web", bare))).status).toBe(200);
    const other = { redirect_uri: "https://evil.example/" };
    expect(refusal(await redeem(await server.code("web", bare), other))).toEqual(invalidGrant);
  });
});

describe("a code", () => {
  ownServers();

  // hardening: A8
  test("expires a code after 60 seconds", async () => {
    const [code, late] = [await server.code(), await server.code()];
    server.now.seconds += 59;
    expect((await redeem(code)).status).toBe(200);
    server.now.seconds += 1;
    expect(refusal(await redeem(late))).toEqual(invalidGrant);
  });

  test("does not extend a code by a clock set back, and accepts it on a process slightly behind", async () => {
    const code = await server.code();
    server.now.seconds -= 3_600;
    expect(refusal(await redeem(code))).toEqual(invalidGrant);
    server.now.seconds += 3_600 - 10;
    expect((await redeem(code)).status).toBe(200);
  });

  // hardening: A8
  test("redeems a code once of 50 concurrent attempts, whose replays revoke the tokens", async () => {
    const code = await server.code();
    const answers = await Promise.all(times(50, () => redeem(code)));
    const [winner, ...more] = answers.filter(({ status }) => status === 200);
    expect(more).toEqual([]);
    expect(answers.filter((answer) => Bun.deepEquals(refusal(answer), invalidGrant))).toHaveLength(49);
    expect(await server.probe(winner?.body["access_token"])).toBe(401);
    expect(refusal(await server.rotate(winner?.body["refresh_token"]))).toEqual(invalidGrant);
    expect(await server.liveGrants()).toEqual([]);
    expect(server.changes.count).toBeGreaterThan(0);
    const reported = await server.grantEvents();
    expect(reported.map(({ action }) => action)).toEqual(["grant.created", "grant.replayed"]);
  });

  test("revokes a code's tokens on any later replay by its app, and not by another app's", async () => {
    const code = await server.code();
    const { body } = await redeem(code);
    const others = (await redeem(await server.code())).body;
    expect(refusal(await redeem(code, {}, basic("other")))).toEqual(invalidGrant);
    expect(await server.probe(body["access_token"])).toBe(200);
    server.now.seconds += 600;
    expect(refusal(await redeem(code, { code_verifier: "", redirect_uri: "" }))).toEqual(invalidGrant);
    expect(await server.probe(body["access_token"])).toBe(401);
    expect(await server.probe(others["access_token"])).toBe(200);
    expect((await server.grantEvents()).at(-1)).toMatchObject({
      ...{ action: "grant.replayed", detail: { app_id: "web", reason: "code_used_again" } },
    });
  });

  test("refuses a code after its membership or app is gone", async () => {
    const [code, later] = [await server.code(), await server.code("other")];
    await server.keys.updateKey("mbr_1_live", { revokedAt: server.now.seconds }, testEvent(server.now.seconds));
    expect(refusal(await redeem(code))).toEqual(invalidGrant);
    await server.apps.deleteApp("other", testEvent(server.now.seconds));
    expect(refusal(await redeem(later, {}, basic("other")))).toEqual([401, "invalid_client"]);
    expect(await server.liveGrants()).toEqual([]);
  });
});
