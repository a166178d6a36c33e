// Access tokens in the hands of the `openai` package, of a verifier that knows nothing but the published keys, and of a forger.
import { afterAll, afterEach, beforeAll, describe, expect, test } from "bun:test";
import { join } from "node:path";
import {
  base64url,
  createLocalJWKSet,
  createRemoteJWKSet,
  decodeJwt,
  decodeProtectedHeader,
  exportJWK,
  generateKeyPair,
  importJWK,
  type JSONWebKeySet,
  type JWTHeaderParameters,
  type JWTPayload,
  jwtVerify,
  SignJWT,
} from "jose";
import { AuthenticationError, NotFoundError, PermissionDeniedError } from "openai";
import { invalidApiKeyMessage } from "../../src/base/invalid-api-key.ts";
import type { Environment } from "../../src/domain/api-key.ts";
import { unseal } from "../../src/policy/credentials/sealing.ts";
import { deriveKey, loadSecret } from "../../src/storage/files/secret-file.ts";
import { openDatabase } from "../../src/storage/sql/database.ts";
import { openaiClient } from "../support/clients.ts";
import { startHeadrace, type TestServer } from "../support/headrace.ts";
import { type ManualClock, manualClock } from "../support/manual-clock.ts";
import { mintKey } from "../support/mint-key.ts";
import { expectBody, raised } from "../support/openai-errors.ts";
import { embeddingScript } from "../support/scripted-answers.ts";
import { chatScript, type ScriptedUpstream, startUpstream, upstreamYaml } from "../support/scripted-upstream.ts";

const messages = [{ role: "user" as const, content: "Hi" }];
const request = { model: "upstream-model", messages };
const publicUrl = "https://ai.example.com";
const everything = ["chat:read", "chat:write", "models:read", "tools:use", "usage:read", "keys:manage"] as const;

interface TokenAnswer {
  access_token: string;
  token_type: string;
  expires_in: number;
  scope: string;
}

let upstream: ScriptedUpstream;
let server: TestServer;
let clock: ManualClock;

beforeAll(async () => {
  upstream = await startUpstream();
});
afterAll(() => upstream[Symbol.asyncDispose]());

/** A new one for each test, as its clock is moved. */
async function start(more = "", clockOf?: ManualClock): Promise<void> {
  clock = clockOf ?? manualClock(Math.floor(Date.now() / 1000));
  server = await startHeadrace({
    clock,
    flags: { mode: "production", publicUrl },
    yaml: upstreamYaml(upstream, more),
  });
}
afterEach(async () => {
  await server[Symbol.asyncDispose]();
  upstream.script(chatScript());
});

async function exchange(body: Record<string, unknown>, headers: Record<string, string> = {}): Promise<Response> {
  return fetch(`${server.url}/v1/auth/token`, {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body: JSON.stringify(body),
  });
}

async function tokenOf(apiKey: string, more: Record<string, unknown> = {}): Promise<TokenAnswer> {
  const response = await exchange({ api_key: apiKey, ...more });
  expect(response.status).toBe(200);
  return (await response.json()) as TokenAnswer;
}

async function jwks(): Promise<JSONWebKeySet> {
  return (await (await fetch(`${server.url}/.well-known/jwks.json`)).json()) as JSONWebKeySet;
}

const withToken = (apiKey: string) => openaiClient(server, { apiKey });

describe("an access token as apiKey", () => {
  test("accepts an access token as apiKey for chats, streams, completions, embeddings and models, counted as its key", async () => {
    await start();
    const { access_token, token_type, expires_in, scope } = await tokenOf(server.key);
    expect({ token_type, expires_in }).toEqual({ token_type: "Bearer", expires_in: 3600 });
    expect(scope.split(" ").sort()).toEqual([...everything].sort());
    const client = withToken(access_token);
    expect((await client.chat.completions.create(request)).choices[0]?.message.content).toBe("Hello world");
    const stream = await client.chat.completions.create({ ...request, stream: true });
    const pieces = await Array.fromAsync(stream, (piece) => piece.choices[0]?.delta.content ?? "");
    expect(pieces.join("")).toBe("Hello world");
    expect((await client.models.list()).data.map(({ id }) => id)).toEqual(["upstream-model"]);
    expect((await client.models.retrieve("upstream-model")).id).toBe("upstream-model");
    upstream.script(embeddingScript("base64"));
    expect((await client.embeddings.create({ model: "upstream-model", input: "Hi" })).data).toHaveLength(1);
    const usage = await server.request("/v1/usage?group_by=key", {
      headers: { authorization: `Bearer ${access_token}` },
    });
    const { data } = (await usage.json()) as { data: { key: string; requests: number }[] };
    expect(data).toMatchObject([{ key: decodeJwt(access_token)["key_id"], requests: 3 }]);
    // The model server never sees it.
    expect(upstream.requests.some(({ headers }) => JSON.stringify(headers).includes(access_token))).toBe(false);
    expect(server.logText()).not.toContain(access_token);
  });

  test("limits an access token of narrowed scope to that scope", async () => {
    await start();
    const reader = withToken((await tokenOf(server.key, { scope: "models:read" })).access_token);
    expect((await reader.models.list()).data).toHaveLength(1);
    for (const call of [
      () => reader.chat.completions.create(request),
      () => reader.chat.completions.create({ ...request, stream: true }),
      () => reader.embeddings.create({ model: "upstream-model", input: "Hi" }),
    ]) {
      const error = await raised(call, PermissionDeniedError);
      await expectBody(server, error, 403, "insufficient_scope", "permission_error");
      expect(error.message).toBe("403 API key lacks required scope: chat:write");
      expect(error.headers.get("www-authenticate")).toContain('error="insufficient_scope", scope="chat:write"');
    }
    const writer = withToken((await tokenOf(server.key, { scope: " chat:write  models:read " })).access_token);
    await writer.chat.completions.create(request);
    for (const path of ["/usage", "/keys", "/account"]) await raised(() => writer.get(path), PermissionDeniedError);
  });

  test("refuses an expired access token with token_expired, to the second", async () => {
    await start();
    const { access_token } = await tokenOf(server.key, { expires_in: 60 });
    const client = withToken(access_token);
    await client.chat.completions.create(request);
    clock.advance(59_000);
    await client.chat.completions.create(request);
    clock.advance(1_000);
    for (const call of [() => client.chat.completions.create(request), () => client.models.list()]) {
      const error = await raised(call, AuthenticationError);
      await expectBody(server, error, 401, "token_expired", "authentication_error");
      expect(error.message).toBe("401 Token has expired");
      expect(error.headers.get("www-authenticate")).toStartWith('Bearer realm="headrace", error="invalid_token"');
    }
    // The key itself is as good as before.
    await openaiClient(server).chat.completions.create(request);
  });

  test("continues a stream that began before its access token expired", async () => {
    await start();
    const gate = Promise.withResolvers<void>();
    upstream.script(async (incoming, res) => {
      await gate.promise;
      await chatScript()(incoming, res);
    });
    const { access_token } = await tokenOf(server.key, { expires_in: 60 });
    const stream = withToken(access_token).chat.completions.create({ ...request, stream: true });
    const arrived = upstream.requests.length;
    stream.catch(() => {});
    while (upstream.requests.length === arrived) await Bun.sleep(1);
    clock.advance(120_000);
    gate.resolve();
    expect((await Array.fromAsync(await stream)).length).toBeGreaterThan(2);
  });

  test("refuses an access token once its key is revoked or loses the scope", async () => {
    await start();
    const made = await server.request("/v1/keys", { body: { name: "short", expires_in: 100 } });
    const { id, key } = (await made.json()) as { id: string; key: string };
    const { access_token, expires_in } = await tokenOf(key);
    expect(expires_in).toBe(100);
    const client = withToken(access_token);
    await client.chat.completions.create(request);
    await server.request(`/v1/keys/${id}`, { method: "PATCH", body: { scopes: ["models:read"] } });
    const lost = await raised(() => client.chat.completions.create(request), PermissionDeniedError);
    expect(lost.code).toBe("insufficient_scope");
    await client.models.list();
    await server.request(`/v1/keys/${id}`, { method: "DELETE" });
    const gone = await raised(() => client.models.list(), AuthenticationError);
    expect(gone.code).toBe("invalid_api_key");
  });
});

describe("credentials in headers", () => {
  test("accepts a key but no token in X-API-Key, and two headers only if they agree", async () => {
    await start();
    const { access_token } = await tokenOf(server.key);
    const status = async (headers: Record<string, string>) =>
      (await fetch(`${server.url}/v1/models`, { headers })).status;
    expect(await status({ "x-api-key": server.key })).toBe(200);
    expect(await status({ "x-api-key": access_token })).toBe(401);
    expect(await status({ "x-api-key": access_token, authorization: `Bearer ${access_token}` })).toBe(401);
    expect(await status({ "x-api-key": server.key, authorization: `Bearer ${access_token}` })).toBe(401);
    expect(await status({ "x-api-key": server.key, authorization: `Bearer ${server.key}` })).toBe(200);
    expect(await status({ authorization: `bearer ${access_token}` })).toBe(200);
    expect(await status({ authorization: access_token })).toBe(401);
    const withHeader = openaiClient(server, { defaultHeaders: { authorization: null, "x-api-key": server.key } });
    expect((await withHeader.chat.completions.create(request)).choices).toHaveLength(1);
  });

  test("refuses to exchange a token, or a header without api_key, for a token", async () => {
    await start();
    const { access_token } = await tokenOf(server.key);
    expect((await exchange({ api_key: access_token })).status).toBe(401);
    expect((await exchange({}, { authorization: `Bearer ${server.key}` })).status).toBe(400);
    expect((await exchange({ api_key: server.key }, { authorization: "Bearer nonsense" })).status).toBe(200);
  });

  test.each([
    [{ expires_in: 59 }, /expires_in: must be an integer from 60 to 86400 \(got 59\)/],
    [{ expires_in: 86_401 }, /expires_in: must be an integer from 60 to 86400/],
    [{ expires_in: "3600" }, /expires_in: must be an integer/],
    [{ scope: "chat:write chat:everything" }, /scope: .*"chat:everything"/],
    [{ scope: "" }, /scope: /],
    [{ scopes: ["chat:write"] }, /scopes: is no member of this request; known are api_key, expires_in, scope/],
  ])("refuses a wrong token request by the field's name: %j", async (more, message) => {
    await start();
    const response = await exchange({ api_key: server.key, ...more });
    expect(response.status).toBe(400);
    const { error } = (await response.json()) as { error: { message: string } };
    expect(error.message).toMatch(message);
  });
});

describe("environments of access tokens", () => {
  const models = `models:
  - { id: for-live, environments: [live], deployments: [{ upstream: up, model: upstream-model }] }
  - { id: for-test, environments: [test], deployments: [{ upstream: up, model: upstream-model }] }
`;

  test("limits a token to the environment of its key", async () => {
    await start(models);
    const ids = async (token: string) => (await withToken(token).models.list()).data.map(({ id }) => id);
    const keyFor = (environment: Environment) => mintKey(server.dataDir, { scopes: everything, environment });
    const live = await tokenOf(server.key);
    const testing = await tokenOf(await keyFor("test"));
    expect(decodeJwt(testing.access_token)).toMatchObject({ environment: "test" });
    expect(await ids(testing.access_token)).toEqual(["for-test"]);
    expect(await ids(live.access_token)).toContain("for-live");
    expect(await ids(live.access_token)).not.toContain("for-test");
    await raised(
      () => withToken(testing.access_token).chat.completions.create({ ...request, model: "for-live" }),
      NotFoundError,
    );
    // Production gives no token for a development key.
    expect((await exchange({ api_key: await keyFor("dev") })).status).toBe(401);
  });

  test("refuses a token and a key of different environments in one request", async () => {
    await start(models);
    const testing = await tokenOf(await mintKey(server.dataDir, { scopes: everything, environment: "test" }));
    const both = openaiClient(server, {
      apiKey: testing.access_token,
      defaultHeaders: { "x-api-key": server.key },
    });
    const error = await raised(() => both.models.list(), AuthenticationError);
    expect(error.message).toBe(`401 ${invalidApiKeyMessage}`);
  });
});

describe("a verifier with only the published metadata", () => {
  test("verifies a token by issuer, audience and type (RFC 9068) with only the published metadata", async () => {
    await start();
    const { access_token, scope } = await tokenOf(server.key, { expires_in: 600 });
    const published = createRemoteJWKSet(new URL(`${server.url}/.well-known/jwks.json`));
    const { payload, protectedHeader } = await jwtVerify(access_token, published, {
      issuer: publicUrl,
      audience: `${publicUrl}/v1`,
      typ: "at+jwt",
      algorithms: ["ES256"],
      currentDate: new Date(clock.nowSeconds() * 1000),
      requiredClaims: ["sub", "client_id", "scope", "iat", "exp", "jti"],
    });
    expect(protectedHeader).toEqual({ alg: "ES256", typ: "at+jwt", kid: expect.any(String) });
    expect(payload).toMatchObject({
      scope,
      iat: clock.nowSeconds(),
      exp: clock.nowSeconds() + 600,
      environment: "live",
    });
    expect(payload["client_id"]).toBe(payload["key_id"]);
    // Nothing private is published.
    for (const key of (await jwks()).keys)
      expect(Object.keys(key).sort()).toEqual(["alg", "crv", "kid", "kty", "use", "x", "y"]);
    const again = await tokenOf(server.key);
    expect(decodeJwt(again.access_token).jti).not.toBe(payload.jti);
  });

  test("publishes the signing key of every living token, also after a restart", async () => {
    await start();
    const { access_token } = await tokenOf(server.key);
    const { config } = server;
    await server.close();
    const again = await startHeadrace({
      clock,
      dataDir: config.dataDir,
      flags: { mode: "production", publicUrl },
      yaml: upstreamYaml(upstream),
    });
    const previous = server;
    server = { ...again, key: previous.key };
    await withToken(access_token).chat.completions.create(request);
    const { payload } = await jwtVerify(access_token, createLocalJWKSet(await jwks()), {
      currentDate: new Date(clock.nowSeconds() * 1000),
    });
    expect(payload.iss).toBe(publicUrl);
    await again.close();
  });
});

describe("a forged token is refused with one message", () => {
  let header: JWTHeaderParameters;
  let claims: JWTPayload;
  let genuine: string;

  async function forge(): Promise<void> {
    await start();
    genuine = (await tokenOf(server.key)).access_token;
    header = decodeProtectedHeader(genuine) as JWTHeaderParameters;
    claims = decodeJwt(genuine);
  }

  const text = (value: unknown) => base64url.encode(JSON.stringify(value));

  async function expectRefused(tokens: Record<string, string>): Promise<void> {
    await withToken(genuine).models.list();
    const statuses: Record<string, string> = {};
    for (const [name, token] of Object.entries(tokens)) {
      const error = await raised(() => withToken(token).models.list(), AuthenticationError).catch(() => undefined);
      statuses[name] = `${error?.status} ${error?.code} ${error?.message}`;
    }
    const one = `401 invalid_api_key 401 ${invalidApiKeyMessage}`;
    expect(statuses).toEqual(Object.fromEntries(Object.keys(tokens).map((name) => [name, one])));
  }

  test("refuses a token without a signature", async () => {
    await forge();
    const [, payload = "", signature = ""] = genuine.split(".");
    await expectRefused({
      none: `${text({ ...header, alg: "none" })}.${payload}.`,
      None: `${text({ ...header, alg: "None" })}.${payload}.`,
      "none, with the signature": `${text({ ...header, alg: "none" })}.${payload}.${signature}`,
      "signature left out": genuine.slice(0, genuine.lastIndexOf(".") + 1),
      "two parts": genuine.slice(0, genuine.lastIndexOf(".")),
      "psychic signature": `${text(header)}.${payload}.${base64url.encode(new Uint8Array(64))}`,
    });
  });

  test("refuses a token signed by a foreign key with a known key id, or with an embedded key", async () => {
    await forge();
    const { privateKey, publicKey } = await generateKeyPair("ES256", { extractable: true });
    const jwk = await exportJWK(publicKey);
    const sign = (more: Record<string, unknown>) =>
      new SignJWT(claims).setProtectedHeader({ ...header, ...more }).sign(privateKey);
    const nameless = { alg: header.alg, typ: header.typ ?? "" };
    await expectRefused({
      "same kid": await sign({}),
      "other kid": await sign({ kid: "other" }),
      "no kid": await new SignJWT(claims).setProtectedHeader(nameless).sign(privateKey),
      "own jwk": await sign({ jwk }),
      "own jku": await sign({ jku: "https://evil.example/jwks.json", kid: "evil" }),
      "kid as a path": await sign({ kid: "../../../../dev/null" }),
    });
  });

  test("refuses a token signed with the public key as a shared secret", async () => {
    await forge();
    const [jwk] = (await jwks()).keys;
    const asText = JSON.stringify(jwk);
    const point = Buffer.concat([
      Buffer.from([4]),
      Buffer.from(String(jwk?.["x"]), "base64url"),
      Buffer.from(String(jwk?.["y"]), "base64url"),
    ]);
    const pem = await crypto.subtle
      .importKey("jwk", jwk as JsonWebKey, { name: "ECDSA", namedCurve: "P-256" }, true, ["verify"])
      .then((key) => crypto.subtle.exportKey("spki", key))
      .then(
        (spki) => `-----BEGIN PUBLIC KEY-----\n${Buffer.from(spki).toString("base64")}\n-----END PUBLIC KEY-----\n`,
      );
    const hmac = (secret: Uint8Array) =>
      new SignJWT(claims).setProtectedHeader({ ...header, alg: "HS256" }).sign(secret);
    await expectRefused({
      "the JWK": await hmac(new TextEncoder().encode(asText)),
      "the point": await hmac(point),
      "the PEM": await hmac(new TextEncoder().encode(pem)),
      "the kid": await hmac(new TextEncoder().encode(`${header.kid}`.padEnd(32, " "))),
    });
  });

  test("refuses a token with any changed claim under the old signature, also after the genuine one was used", async () => {
    await forge();
    const [head = "", , signature = ""] = genuine.split(".");
    const changed = (more: JWTPayload) => `${head}.${text({ ...claims, ...more })}.${signature}`;
    await expectRefused({
      scope: changed({ scope: `${claims["scope"]} admin:manage` }),
      exp: changed({ exp: Number(claims.exp) + 86_400 }),
      "exp past": changed({ exp: Number(claims.exp) - 86_400 }),
      sub: changed({ sub: "acct_other" }),
      key: changed({ key_id: "key_other", client_id: "key_other" }),
      environment: changed({ environment: "test" }),
      aud: changed({ aud: "https://other.example/v1" }),
      iss: changed({ iss: "https://other.example" }),
      "critical header": `${text({ ...header, crit: ["x"], x: 1 })}.${genuine.split(".")[1]}.${signature}`,
      header: `${text({ ...header, typ: "JWT" })}.${genuine.split(".")[1]}.${signature}`,
      "padding added": `${genuine}=`,
      "a part more": `${genuine}.${signature}`,
      "white space": `${head}.${genuine.split(".")[1]}.\t${signature}`,
    });
  });

  test("refuses a genuine token of another audience, issuer or installation", async () => {
    await forge();
    const other = await startHeadrace({ clock, flags: { mode: "production", publicUrl } });
    const answer = await fetch(`${other.url}/v1/auth/token`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ api_key: other.key }),
    });
    const { access_token } = (await answer.json()) as TokenAnswer;
    await other[Symbol.asyncDispose]();
    await expectRefused({ "same URL, other installation": access_token });
  });

  test("refuses a token signed by our own key with another type, audience or issuer", async () => {
    await forge();
    const privateKey = await signingKey();
    const sign = (payload: JWTPayload, more: Record<string, unknown> = {}) =>
      new SignJWT(payload).setProtectedHeader({ ...header, ...more }).sign(privateKey);
    const without = (name: string) => Object.fromEntries(Object.entries(claims).filter(([claim]) => claim !== name));
    // What is as it should be is taken: the rest fails for its own reason.
    await withToken(await sign({ ...claims, jti: "tok_again" })).models.list();
    const wrong: Record<string, string> = {
      "typ JWT": await sign(claims, { typ: "JWT" }),
      "typ of an ID token": await sign(claims, { typ: "id+jwt" }),
      "no typ": await sign(claims, { typ: undefined }),
      "aud of the issuer": await sign({ ...claims, aud: publicUrl }),
      "aud of another": await sign({ ...claims, aud: "https://other.example/v1" }),
      "iss with a slash": await sign({ ...claims, iss: `${publicUrl}/` }),
      "other environment": await sign({ ...claims, environment: "test" }),
      "other account": await sign({ ...claims, sub: "acct_other" }),
      "no such key": await sign({ ...claims, key_id: "key_none", client_id: "key_none" }),
      "not yet": await sign({ ...claims, nbf: Number(claims.iat) + 600 }),
      "of the future": await sign({ ...claims, iat: Number(claims.iat) + 600, exp: Number(claims.exp) + 600 }),
    };
    for (const name of ["iss", "sub", "aud", "client_id", "scope", "iat", "exp", "jti", "key_id", "environment"]) {
      wrong[`no ${name}`] = await sign(without(name));
    }
    await expectRefused(wrong);
  });

  /** The private half, as whoever has the data directory could get it. */
  async function signingKey() {
    const db = await openDatabase(join(server.dataDir, "headrace.db"));
    const [row]: { sealed_private_jwk: string }[] =
      await db`SELECT sealed_private_jwk FROM signing_keys WHERE id = ${header.kid}`;
    await db.close();
    const sealingKey = deriveKey(loadSecret(server.dataDir, undefined), "signing-key-seal-v1");
    return importJWK(JSON.parse(unseal(row?.sealed_private_jwk ?? "", sealingKey, header.kid ?? "")), "ES256");
  }

  test("refuses a token issued under a former public URL", async () => {
    await forge();
    const { config, key } = server;
    await server.close();
    const moved = await startHeadrace({
      clock,
      dataDir: config.dataDir,
      flags: { mode: "production", publicUrl: "https://new.example.com" },
    });
    const before = genuine;
    server = { ...moved, key };
    genuine = (await tokenOf(key)).access_token;
    await expectRefused({ "former URL": before });
    await moved.close();
  });
});
