// Tests the exchange of a key for a token over HTTP: the key is checked like one in a header, and the answer is never
// cached.

import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { createRemoteJWKSet, jwtVerify } from "jose";
import { audience, type Credentials, issuer, openCredentials, testEvent } from "../../../tests/support/credentials.ts";
import { noSessions } from "../../../tests/support/principal.ts";
import { anyAddress } from "../../../tests/support/unlimited.ts";
import { bufferedBytes } from "../../base/bytes/buffered-bytes.ts";
import { invalidApiKeyMessage } from "../../base/invalid-api-key.ts";
import { generateApiKey } from "../../domain/api-key.ts";
import { OpenRequests } from "../../policy/open-requests.ts";
import { trustedProxies } from "../exchange/client-address.ts";
import { Locality } from "../exchange/locality.ts";
import { startHttpServer } from "../exchange/server.ts";
import { tokenRoutes } from "./token-routes.ts";

let all: Credentials;
let server: ReturnType<typeof startHttpServer>;

beforeEach(async () => {
  all = await openCredentials();
  // The library that verifies tokens uses the system clock.
  all.now.seconds = Math.floor(Date.now() / 1000);
  await all.signingKeys.start();
  const { authenticator, tokens, signingKeys, clock, log } = all;
  const throttle = { require: async () => {} };
  server = startHttpServer({
    openRequests: new OpenRequests(() => 1_000, bufferedBytes),
    addressThrottle: anyAddress,
    ...{ hostname: "127.0.0.1", port: 0, authenticator, log, clock },
    routes: tokenRoutes({ authenticator, tokens, signingKeys, throttle, clock }),
    sessions: noSessions,
    trustedProxies: trustedProxies(["127.0.0.0/8"]),
    locality: new Locality([]),
    baseUrl: () => "https://ai.example.com/v1",
    corsOrigins: () => [],
  });
});

afterEach(async () => {
  server.close();
  await all.close();
});

const address = (path: string) => new URL(path, `http://127.0.0.1:${server.port}`);

async function exchange(body: unknown, headers: Record<string, string> = {}) {
  const response = await fetch(address("/v1/auth/token"), {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body: JSON.stringify(body),
  });
  const answer = (await response.json()) as Record<string, unknown> & { error?: { code: string; message: string } };
  return { status: response.status, headers: response.headers, answer };
}

test("issues a bearer token with its lifetime and scopes, and with no-store", async () => {
  const { secret, id } = await all.addKey("live", {
    expiresAt: all.now.seconds + 1_000,
    scopes: ["chat:write", "usage:read"],
  });
  const { status, headers, answer } = await exchange({ api_key: secret });
  expect([status, headers.get("cache-control")]).toEqual([200, "no-store"]);
  expect(answer).toEqual({
    ...{ access_token: expect.stringMatching(/^ey/), token_type: "Bearer" },
    ...{ expires_in: 1_000, scope: "chat:write usage:read" },
  });
  const narrow = await exchange({ api_key: secret, expires_in: 60, scope: "usage:read" });
  expect(narrow.answer).toMatchObject({ expires_in: 60, scope: "usage:read" });
  const defaults = await exchange({ api_key: (await all.addKey()).secret, expires_in: null, scope: null });
  expect(defaults.answer).toMatchObject({ expires_in: 3_600 });
  expect(all.log.lines.map(({ fields }) => fields?.["key"])).toContain(id);
});

test("issues a token that verifies with the published keys alone", async () => {
  const { secret } = await all.addKey();
  const { answer } = await exchange({ api_key: secret });
  const published = await fetch(address("/.well-known/jwks.json"));
  expect(published.headers.get("cache-control")).toBe("public, max-age=300");
  const keys = createRemoteJWKSet(address("/.well-known/jwks.json"));
  const verified = await jwtVerify(String(answer["access_token"]), keys, { issuer, audience, typ: "at+jwt" });
  expect(verified.payload.sub).toBe(all.accountId);
});

describe("a key that would be refused in a header", () => {
  const refused = {
    message: invalidApiKeyMessage,
    type: "invalid_request_error",
    code: "invalid_api_key",
  };

  async function expectRefused(apiKey: string, headers: Record<string, string> = {}): Promise<void> {
    const { status, answer, headers: answered } = await exchange({ api_key: apiKey }, headers);
    expect([status, answer]).toEqual([401, { error: refused }]);
    expect(answered.get("www-authenticate")).toStartWith('Bearer realm="headrace", error="invalid_token"');
    expect(answered.get("cache-control")).toBe("no-store");
  }

  test("refuses a token to a wrong key", async () => {
    const token = (await exchange({ api_key: (await all.addKey()).secret })).answer["access_token"];
    for (const key of ["", " ", "nonsense", `${generateApiKey("live")}x`, generateApiKey("live"), String(token)]) {
      await expectRefused(key);
    }
  });

  test("refuses a token to an ended key", async () => {
    await expectRefused((await all.addKey("live", { expiresAt: all.now.seconds })).secret);
    const { secret, id } = await all.addKey();
    expect((await exchange({ api_key: secret })).status).toBe(200);
    await all.keys.updateKey(id, { revokedAt: all.now.seconds }, testEvent(all.now.seconds));
    all.authenticator.invalidate();
    await expectRefused(secret);
  });

  test("refuses a token to a key from another address, behind a trusted proxy too", async () => {
    const { secret } = await all.addKey("live", { allowedIps: ["10.0.0.0/8"] });
    await expectRefused(secret);
    await expectRefused(secret, { "x-forwarded-for": "10.0.0.1, 203.0.113.9" });
    expect((await exchange({ api_key: secret }, { "x-forwarded-for": "203.0.113.9, 10.0.0.1" })).status).toBe(200);
  });
});

// hardening: K2
test("refuses a token to a dev key from another machine, and tells the key's owner why", async () => {
  const { secret } = await all.addKey("dev");
  for (const headers of [{}, { host: "host.docker.internal:7545" }]) {
    expect((await exchange({ api_key: secret }, headers)).status).toBe(200);
  }
  const elsewhere: [Record<string, string>, RegExp][] = [
    [{ "x-forwarded-for": "127.0.0.1" }, /passed the request on, as its header x-forwarded-for shows/],
    [{ via: "1.1 tunnel" }, /passed the request on, as its header via shows/],
    [{ host: "rebound.example" }, /the host "rebound\.example".*allowed_hosts/],
  ];
  for (const [headers, reason] of elsewhere) {
    const { status, answer } = await exchange({ api_key: secret }, headers);
    expect([status, answer.error?.code]).toEqual([401, "invalid_api_key"]);
    expect(answer.error?.message).toStartWith("Invalid API key provided. Incorrect API key provided: ");
    expect(answer.error?.message).toMatch(reason);
    const guessed = await exchange({ api_key: generateApiKey("dev") }, headers);
    expect([guessed.status, guessed.answer.error?.message]).toEqual([401, invalidApiKeyMessage]);
  }
});

test.each([
  [{}, "api_key: is required"],
  [{ api_key: 7 }, "api_key: must be a string"],
  [{ expires_in: 59 }, "expires_in: must be an integer from 60 to 86400"],
  [{ expires_in: 86_401 }, "expires_in: must be an integer from 60 to 86400"],
  [{ expires_in: 60.5 }, "expires_in: must be an integer from 60 to 86400"],
  [{ expires_in: "3600" }, "expires_in: must be an integer from 60 to 86400"],
  [{ scope: ["chat:write"] }, "scope: must be a string"],
  [{ scope: "chat:everything" }, "scope: must be names from chat:read, chat:write"],
  [{ expire_in: 60 }, "expire_in: is no member of this request"],
])("names the fault of the token request %j", async (part, message) => {
  const { secret } = await all.addKey();
  const body = Object.keys(part).length === 0 || "api_key" in part ? part : { api_key: secret, ...part };
  const { status, answer } = await exchange(body);
  expect([status, answer.error?.code]).toEqual([400, "invalid_request"]);
  expect(answer.error?.message).toStartWith(message);
});

test("answers 403 and names a scope that the key lacks", async () => {
  const { secret } = await all.addKey("live", { scopes: ["chat:write"] });
  const { status, answer, headers } = await exchange({ api_key: secret, scope: "keys:manage" });
  expect([status, answer.error?.message]).toEqual([403, "API key lacks required scope: keys:manage"]);
  expect(headers.get("www-authenticate")).toContain('scope="keys:manage"');
});

test("writes neither the key nor the token to the log or the audit log", async () => {
  const { secret } = await all.addKey("live", { scopes: ["chat:write"] });
  const { answer } = await exchange({ api_key: secret });
  await exchange({ api_key: secret, scope: secret });
  await exchange({ api_key: secret, expires_in: 1 });
  await exchange({ api_key: `${secret}x` });
  await all.refusals.flush();
  const written = JSON.stringify([all.log.lines, [...(await all.db`SELECT * FROM audit_log`)]]);
  expect(written).toContain("token.issued");
  expect(written).not.toContain(secret.slice(0, 20));
  expect(written).not.toContain(String(answer["access_token"]).slice(-30));
});
