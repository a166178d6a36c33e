// Tests access tokens: their content, what is refused however it was made, and that a token ends with its key or grant.
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { decodeJwt, decodeProtectedHeader, generateKeyPair, type JWTPayload, SignJWT, UnsecuredJWT } from "jose";
import {
  audience,
  type Credentials,
  issuer,
  openCredentials,
  presented,
  testEvent,
  until,
} from "../../../tests/support/credentials.ts";
import { maxClockDifferenceSeconds } from "../../base/clock.ts";
import { GatewayError } from "../../base/errors.ts";
import type { Principal } from "../../domain/principal.ts";
import { scopes } from "../../domain/scope.ts";
import { AccessTokens } from "./access-tokens.ts";
import type { Authenticator, PresentedCredentials } from "./authenticate.ts";
import { termsOf } from "./kept-key.ts";

const day = 86_400;
let all: Credentials;

beforeEach(async () => {
  all = await openCredentials();
  await all.signingKeys.start();
});

afterEach(() => all.close());

async function outcome(
  token: string,
  parts: Partial<PresentedCredentials> = {},
  by: Authenticator = all.authenticator,
): Promise<string> {
  try {
    await by.authenticate(presented({ authorization: `Bearer ${token}`, ...parts }));
    return "accepted";
  } catch (error) {
    expect(error).toBeInstanceOf(GatewayError);
    const { code, message, detail } = error as GatewayError;
    if (code === "token_expired") expect(message).toBe("Token has expired");
    return code === "invalid_api_key" ? (detail ?? "") : code;
  }
}

async function issue(secret: string, more: { expiresIn?: number; scope?: string } = {}, parts = {}) {
  const principal = await all.authenticator.authenticate(presented({ apiKey: secret, ...parts }));
  const origin = { nowSeconds: all.now.seconds, clientAddress: "203.0.113.9", requestId: "req_1" };
  return await all.tokens.issue({ principal, expiresIn: 3_600, scope: undefined, origin, ...more });
}

const change = (id: string, changes: Parameters<typeof all.keys.updateKey>[1]) =>
  all.keys.updateKey(id, changes, testEvent(all.now.seconds)).then(() => all.authenticator.invalidate());

describe("a token", () => {
  test("issues an RFC 9068 access token with the claims of its key", async () => {
    const { secret, id } = await all.addKey("test");
    const { accessToken, id: jti } = await issue(secret);
    expect(decodeProtectedHeader(accessToken)).toEqual({
      ...{ alg: "ES256", typ: "at+jwt", kid: (await all.signingKeys.signer()).id },
    });
    expect(decodeJwt(accessToken)).toEqual({
      ...{ iss: issuer, sub: all.accountId, aud: audience, client_id: id, key_id: id, environment: "test" },
      ...{ scope: "chat:read chat:write models:read usage:read tools:use keys:manage", jti },
      ...{ iat: all.now.seconds, exp: all.now.seconds + 3_600 },
    });
  });

  test("accepts a token as bearer, with the account, keys and environment of its key", async () => {
    const { secret, record } = await all.addKey("live", { scopes: ["chat:write"] });
    const { accessToken } = await issue(secret);
    const principal = await all.authenticator.authenticate(presented({ authorization: `Bearer ${accessToken}` }));
    const byKey = await all.authenticator.authenticate(presented({ apiKey: secret }));
    const { kid = "" } = decodeProtectedHeader(accessToken);
    expect(principal).toEqual({ ...byKey, tokenExpiresAt: all.now.seconds + 3_600, tokenSignedBy: kid });
    expect([termsOf(principal.keys[0]), principal.account.id]).toEqual([termsOf(record), all.accountId]);
  });

  test("audits an issued token by its id and stores the token nowhere", async () => {
    const { secret, id } = await all.addKey();
    const { accessToken, id: jti } = await issue(secret, { scope: "chat:read" });
    await outcome(accessToken);
    await all.activity.flush();
    const [event] = await all.audit.list({ action: "token.issued" }, { after: undefined, limit: 10 });
    expect(event).toMatchObject({
      ...{ actor: { type: "key", id }, targetId: id, accountId: all.accountId, clientAddress: "203.0.113.9" },
      detail: { jti, scopes: ["chat:read"], expires_at: all.now.seconds + 3_600 },
    });
    expect(JSON.stringify(await all.db`SELECT * FROM audit_log`)).not.toContain(accessToken.slice(-40));
  });

  test("issues no token while the audit log cannot be written", async () => {
    const { secret } = await all.addKey();
    all.auditSwitch.failure = new Error("disk full");
    await expect(issue(secret)).rejects.toMatchObject({ code: "service_unavailable" });
  });

  test("authenticates a cached token without a promise, a store call or a new principal", async () => {
    const { secret } = await all.addKey();
    const { accessToken } = await issue(secret, { scope: "chat:read" });
    const parts = presented({ authorization: `Bearer ${accessToken}` });
    const first = await all.authenticator.authenticate(parts);
    const calls = JSON.stringify([all.keySwitch, all.signingSwitch, all.auditSwitch]);
    for (let i = 0; i < 3; i++) expect(all.authenticator.authenticate(parts)).toBe(first as Principal);
    expect(JSON.stringify([all.keySwitch, all.signingSwitch, all.auditSwitch])).toBe(calls);
  });

  test("verifies a token once for a hundred concurrent requests", async () => {
    const { secret } = await all.addKey();
    const { accessToken } = await issue(secret);
    const { signingKeys, audit, clock } = all;
    let checks = 0;
    const verifier = (id: string) => {
      checks++;
      return signingKeys.verifier(id);
    };
    const counted = { signer: () => signingKeys.signer(), verifier };
    const urls = { issuer: () => issuer, audience: () => audience };
    const tokens = new AccessTokens({ signingKeys: counted, audit, clock, ...urls });
    const other = await all.startProcess({ tokens });
    const many = await Promise.all(Array.from({ length: 100 }, () => outcome(accessToken, {}, other.authenticator)));
    expect(new Set(many)).toEqual(new Set(["accepted"]));
    expect([checks, other.keySwitch.calls["findChainById"]]).toEqual([1, 1]);
  });
});

describe("its scopes", () => {
  test("gives a token the scopes of its key by default, and admin:manage only by name", async () => {
    const { secret } = await all.addKey("live", { scopes });
    expect((await issue(secret)).scope).toBe("chat:read chat:write models:read usage:read tools:use keys:manage");
    expect((await issue(secret, { scope: "admin:manage" })).scope).toBe("admin:manage");
    const operator = await all.addKey("live", { scopes: ["admin:manage"] });
    await expect(issue(operator.secret)).rejects.toMatchObject({ code: "invalid_request" });
  });

  // hardening: K7
  test("limits a token on each route to the scopes that were requested for it", async () => {
    const { secret } = await all.addKey();
    const { accessToken, scope } = await issue(secret, { scope: "models:read  chat:write chat:write" });
    expect(scope).toBe("chat:write models:read");
    const principal = await all.authenticator.authenticate(presented({ authorization: `Bearer ${accessToken}` }));
    expect(principal.scopes).toEqual(new Set(["chat:write", "models:read"]));
  });

  test("refuses a token if a requested scope is unknown or not the key's", async () => {
    const { secret } = await all.addKey("live", { scopes: ["chat:write"] });
    await expect(issue(secret, { scope: "chat:write chat:read" })).rejects.toMatchObject({
      ...{ code: "insufficient_scope", message: "API key lacks required scope: chat:read" },
    });
    for (const scope of ["chat:delete", "", "  ", "chat:write,chat:read", "CHAT:WRITE", "chat:write\tchat:read"]) {
      await expect(issue(secret, { scope })).rejects.toMatchObject({
        ...{ code: "invalid_request", message: expect.stringMatching(/^scope: must be names from chat:read, /) },
      });
    }
  });

  test("narrows a token's scopes with those of its key and of each key above it", async () => {
    const root = await all.addKey();
    const { secret, id } = await all.addKey("live", { parentId: root.id });
    const { accessToken } = await issue(secret);
    const granted = async () => {
      const principal = await all.authenticator.authenticate(presented({ authorization: `Bearer ${accessToken}` }));
      return principal.scopes;
    };
    expect((await granted()).size).toBe(6);
    await change(id, { scopes: ["chat:read", "chat:write"] });
    expect(await granted()).toEqual(new Set(["chat:read", "chat:write"]));
    await change(root.id, { scopes: ["chat:write", "models:read"] });
    expect(await granted()).toEqual(new Set(["chat:write"]));
    await change(id, { scopes });
    expect(await granted()).toEqual(new Set(["chat:write", "models:read"]));
  });
});

describe("a token's lifetime", () => {
  test("expires a token to the second, and reports the expiry only for a genuine token", async () => {
    const { secret } = await all.addKey();
    const { accessToken } = await issue(secret, { expiresIn: 60 });
    all.now.seconds += 59;
    expect(await outcome(accessToken)).toBe("accepted");
    all.now.seconds += 1;
    for (let i = 0; i < 2; i++) expect(await outcome(accessToken)).toBe("token_expired");
    const other = await all.startProcess();
    expect(await outcome(accessToken, {}, other.authenticator)).toBe("token_expired");
    const [head, , signature] = accessToken.split(".");
    const forged = Buffer.from(JSON.stringify({ ...decodeJwt(accessToken), exp: 1 })).toString("base64url");
    expect(await outcome(`${head}.${forged}.${signature}`)).toBe("token_signature");
    all.now.seconds -= 1;
    expect(await outcome(accessToken)).toBe("accepted");
  });

  // hardening: K7
  test("limits a token's lifetime to that of each key in the chain, scheduled revocations included", async () => {
    const at = all.now.seconds;
    const root = await all.addKey("live", { expiresAt: at + 500 });
    const { secret, id } = await all.addKey("live", { parentId: root.id });
    expect(await issue(secret)).toMatchObject({ expiresIn: 500 });
    await change(id, { revokedAt: at + 300 });
    expect(await issue(secret)).toMatchObject({ expiresIn: 300 });
    await change(id, { expiresAt: at + 20 });
    const { accessToken, expiresIn } = await issue(secret, { expiresIn: day });
    expect([expiresIn, decodeJwt(accessToken).exp]).toEqual([20, at + 20]);
  });

  // hardening: K7
  test("ends a token with its key, with any key above it, and with the account", async () => {
    const root = await all.addKey();
    const { secret, id } = await all.addKey("live", { parentId: root.id });
    const token = (await issue(secret)).accessToken;
    expect(await outcome(token)).toBe("accepted");
    await change(id, { expiresAt: all.now.seconds - 1 });
    expect(await outcome(token)).toBe("expired");
    const sibling = await all.addKey("live", { parentId: root.id });
    const second = (await issue(sibling.secret)).accessToken;
    expect(await outcome(second)).toBe("accepted");
    await change(root.id, { revokedAt: all.now.seconds });
    expect(await outcome(second)).toBe("ancestor_revoked");
    const third = (await issue((await all.addKey()).secret)).accessToken;
    await all.accounts.updateAccount(all.accountId, { status: "suspended" }, testEvent());
    all.authenticator.invalidate();
    expect(await outcome(third)).toBe("account_suspended");
  });

  test("ends a token in another process within a second of the key's revocation", async () => {
    const { secret, id } = await all.addKey();
    const { accessToken } = await issue(secret);
    const other = await all.startProcess();
    expect(await outcome(accessToken, {}, other.authenticator)).toBe("accepted");
    await all.keys.updateKey(id, { revokedAt: all.now.seconds }, testEvent(all.now.seconds));
    all.now.ms += 1_000;
    expect(await outcome(accessToken, {}, other.authenticator)).toBe("revoked");
  });

  test("keeps a token valid through a rotation of its key until the old key is revoked", async () => {
    const { secret, id, record } = await all.addKey();
    const { accessToken } = await issue(secret);
    const successor = { ...record, id: "key_new", digest: "d", createdAt: all.now.seconds };
    await all.keys.rotateKey(id, successor, all.now.seconds + 100, testEvent(all.now.seconds));
    all.authenticator.invalidate();
    expect(await outcome(accessToken)).toBe("accepted");
    all.now.seconds += 100;
    expect(await outcome(accessToken)).toBe("revoked");
  });

  test("ends a token whose key is revoked during its lookup", async () => {
    const { secret, id } = await all.addKey();
    const { accessToken } = await issue(secret);
    all.authenticator.invalidate();
    const gate = Promise.withResolvers<void>();
    all.keySwitch.held = gate.promise;
    const { answered } = all.keySwitch;
    const inFlight = outcome(accessToken);
    await until(() => all.keySwitch.answered > answered);
    all.keySwitch.held = undefined;
    await change(id, { revokedAt: all.now.seconds });
    gate.resolve();
    expect(await inFlight).toBe("revoked");
  });

  test("keeps tokens valid through rotations of the signing keys in every process", async () => {
    const { secret } = await all.addKey();
    const other = await all.startProcess();
    await other.signingKeys.start();
    const living: { token: string; until: number; kid: unknown }[] = [];
    for (let hour = 0; hour < 72; hour++) {
      if (hour % 24 === 5) {
        const origin = { nowSeconds: all.now.seconds, clientAddress: null, requestId: null };
        await all.signingKeys.rotate({ type: "operator" }, origin);
      }
      const { accessToken } = await issue(secret, { expiresIn: day });
      const kid = decodeProtectedHeader(accessToken).kid;
      living.push({ token: accessToken, until: all.now.seconds + day, kid });
      all.now.seconds += 3_600;
      await other.signingKeys.maintain();
      // The tokens are checked by a process that has seen none of them, on either side of each change of keys, so that
      // no cache helps.
      const cold = [4, 5, 6].includes(hour % 24) ? await all.startProcess() : other;
      for (const { token, until: end } of living) {
        const expected = all.now.seconds < end ? "accepted" : "token_expired";
        if (end < all.now.seconds - 7_200) continue;
        // The signing key of a token may be gone an hour after its last token has ended.
        if (expected === "accepted") expect(await outcome(token, {}, cold.authenticator)).toBe("accepted");
        expect(await outcome(token, {}, other.authenticator)).toBe(expected);
      }
    }
    expect(new Set(living.map(({ kid }) => kid)).size).toBe(4);
  });
});

test("frees the cached data of a key from before a change although its token is remembered", async () => {
  const { secret } = await all.addKey();
  const outdated: WeakRef<object>[] = [];
  const use = async () => {
    const { accessToken } = await issue(secret);
    const principal = await all.authenticator.authenticate(presented({ authorization: `Bearer ${accessToken}` }));
    outdated.push(new WeakRef(principal.keys[0]));
    all.authenticator.invalidate();
  };
  for (let i = 0; i < 100; i++) await use();
  await Bun.sleep(0);
  Bun.gc(true);
  // Objects that the stack still happens to refer to stay in memory.
  expect(outdated.filter((one) => one.deref() !== undefined).length).toBeLessThan(20);
});

describe("bounds of a token that come from its key", () => {
  // hardening: K7
  test("binds a token to the allowed addresses of its key", async () => {
    const { secret } = await all.addKey("live", { allowedIps: ["10.0.0.0/8"] });
    const { accessToken } = await issue(secret, {}, { clientAddress: "10.1.1.1" });
    expect(await outcome(accessToken, { clientAddress: "10.9.9.9" })).toBe("accepted");
    expect(await outcome(accessToken, { clientAddress: "203.0.113.9" })).toBe("address");
  });

  // hardening: K7
  test("accepts a token of a dev key only for local requests in development mode", async () => {
    const { secret } = await all.addKey("dev");
    const { accessToken } = await issue(secret);
    expect(await outcome(accessToken)).toBe("accepted");
    expect(await outcome(accessToken, { whyNotLocal: () => "it is elsewhere" })).toBe("dev_key_not_local");
    const production = await all.startProcess({ mode: "production" });
    expect(await outcome(accessToken, {}, production.authenticator)).toBe("dev_key_in_production");
  });
});

test("accepts a token issued by a replica whose clock is ahead within the doctor's tolerance", async () => {
  const { secret } = await all.addKey();
  const principal = await all.authenticator.authenticate(presented({ apiKey: secret }));
  const origin = { nowSeconds: all.now.seconds, clientAddress: null, requestId: null };
  const other = await all.startProcess();
  for (const ahead of [20, maxClockDifferenceSeconds]) {
    all.now.seconds += ahead;
    const { accessToken } = await all.tokens.issue({ principal, expiresIn: 3_600, scope: undefined, origin });
    all.now.seconds -= ahead;
    expect(await outcome(accessToken, {}, other.authenticator)).toBe("accepted");
  }
});

describe("invalid tokens, which are never reported as expired", () => {
  const claims = (more: JWTPayload = {}): JWTPayload => ({
    ...{ iss: issuer, sub: all.accountId, aud: audience, client_id: "key_1", key_id: "key_1", environment: "live" },
    ...{ scope: "chat:write", iat: all.now.seconds, exp: all.now.seconds + 600, jti: "tok_1" },
    ...more,
  });

  async function sign(payload: JWTPayload, header: Record<string, unknown> = {}, key?: CryptoKey): Promise<string> {
    const { id, privateKey } = await all.signingKeys.signer();
    const protectedHeader = { alg: "ES256", typ: "at+jwt", kid: id, ...header };
    return await new SignJWT(payload).setProtectedHeader(protectedHeader).sign(key ?? privateKey);
  }

  beforeEach(async () => {
    await all.addKey();
  });

  test("accepts a fully valid token, from which the refused ones derive", async () => {
    expect(await outcome(await sign(claims()))).toBe("accepted");
  });

  test("refuses a token without a signature, never as expired", async () => {
    expect(await outcome(new UnsecuredJWT(claims()).encode())).toBe("malformed");
    const [, body] = (await sign(claims())).split(".");
    for (const alg of ["none", "None", "NONE"]) {
      const head = Buffer.from(JSON.stringify({ alg, typ: "at+jwt" })).toString("base64url");
      expect(await outcome(`${head}.${body}.`)).toBe("malformed");
      expect(await outcome(`${head}.${body}.AAAA`)).toMatch(/^token_algorithm|malformed$/);
    }
  });

  test("refuses a token of another algorithm signed with public data, never as expired", async () => {
    const { id } = await all.signingKeys.signer();
    for (const secret of [
      JSON.stringify(all.signingKeys.jwks().keys[0]),
      all.signingKeys.jwks().keys[0]?.x ?? "",
      id,
    ]) {
      const confused = new SignJWT(claims()).setProtectedHeader({ alg: "HS256", typ: "at+jwt", kid: id });
      expect(await outcome(await confused.sign(new TextEncoder().encode(secret.padEnd(32, "0"))))).toBe(
        "token_algorithm",
      );
    }
    const { privateKey } = await generateKeyPair("EdDSA");
    expect(await outcome(await sign(claims(), { alg: "EdDSA" }, privateKey))).toBe("token_algorithm");
  });

  test("refuses a token of a foreign key under any key id or with its key in the header, never as expired", async () => {
    const { privateKey, publicKey } = await generateKeyPair("ES256", { extractable: true });
    const jwk = await crypto.subtle.exportKey("jwk", publicKey);
    expect(await outcome(await sign(claims(), {}, privateKey))).toBe("token_signature");
    expect(await outcome(await sign(claims({ exp: 1 }), {}, privateKey))).toBe("token_signature");
    expect(await outcome(await sign(claims(), { kid: "other" }, privateKey))).toBe("token_key_unknown");
    expect(await outcome(await sign(claims(), { kid: undefined, jwk }, privateKey))).toBe("token_key_unknown");
    expect(await outcome(await sign(claims(), { kid: "x", jku: "https://evil.example/jwks" }, privateKey))).toBe(
      "token_key_unknown",
    );
  });

  test.each([
    ["iss", { iss: "https://other.example" }],
    ["iss", { iss: `${issuer}/` }],
    ["aud", { aud: issuer }],
    ["aud", { aud: "https://other.example/v1" }],
    ["aud", { aud: [] as string[] }],
    ["aud", { aud: [audience, "https://other.example/v1"] }],
  ])("refuses a token with another %s, never as expired", async (claim, more) => {
    expect(await outcome(await sign(claims(more)))).toBe(`token_claim_${claim}`);
    // The claim counts although the token has expired as well.
    expect(await outcome(await sign(claims({ ...more, exp: 1 })))).toBe(`token_claim_${claim}`);
  });

  test.each(["iss", "sub", "aud", "client_id", "scope", "iat", "exp", "jti", "key_id", "environment"])(
    "refuses a token without %s, never as expired",
    async (claim) => {
      const { [claim]: _, ...others } = claims();
      expect(await outcome(await sign(others))).toBe(`token_claim_${claim}`);
    },
  );

  test("refuses a token whose signing key ends during verification, then and later", async () => {
    const { signingKeys, audit, clock } = all;
    let isPublished = true;
    const ending = {
      signer: () => signingKeys.signer(),
      verifier: (id: string) => {
        isPublished = false;
        return signingKeys.verifier(id);
      },
      isPublished: () => isPublished,
    };
    const urls = { issuer: () => issuer, audience: () => audience };
    const tokens = new AccessTokens({ signingKeys: ending, audit, clock, ...urls });
    const token = await sign(claims());
    for (let i = 0; i < 2; i++) expect(await tokens.verify(token)).toEqual({ fault: "token_key_unknown" });
  });

  test("refuses a token of another type or of none, never as expired", async () => {
    for (const typ of ["JWT", "jwt", undefined, "at+jwt2"]) {
      expect(await outcome(await sign(claims(), { typ }))).toBe("token_claim_other");
    }
  });

  test("refuses a token whose claims contradict each other or the key, never as expired", async () => {
    expect(await outcome(await sign(claims({ client_id: "key_2" })))).toBe("token_claims");
    expect(await outcome(await sign(claims({ environment: "staging" })))).toBe("token_claims");
    expect(await outcome(await sign(claims({ scope: ["chat:write"] })))).toBe("token_claims");
    expect(await outcome(await sign(claims({ environment: "test" })))).toBe("environment");
    expect(await outcome(await sign(claims({ sub: "acct_other" })))).toBe("token_account");
    expect(await outcome(await sign(claims({ key_id: "key_9", client_id: "key_9" })))).toBe("unknown");
  });

  test("refuses a token dated further ahead than clocks of one installation may differ, never as expired", async () => {
    const ahead = all.now.seconds + maxClockDifferenceSeconds;
    expect(await outcome(await sign(claims({ iat: ahead + 1 })))).toBe("token_claim_iat");
    expect(await outcome(await sign(claims({ nbf: all.now.seconds + 6 })))).toBe("token_claim_other");
  });

  test("refuses a valid token with any character changed, never as expired", async () => {
    const token = await sign(claims());
    // The last character is skipped, because it has bits without a meaning.
    for (let i = 0; i < token.length - 1; i += 7) {
      if (token[i] === ".") continue;
      const changed = `${token.slice(0, i)}${token[i] === "A" ? "B" : "A"}${token.slice(i + 1)}`;
      expect(await outcome(changed)).toMatch(/^token_|^malformed$/);
    }
  });

  test.each([
    "a.b.c",
    "e30.e30.e30",
    ".",
    "..",
    "...",
    "a.b",
    "a.b.c.d",
    `${"a".repeat(5_000)}.b.c`,
    "é.b.c",
    "bnVsbA.bnVsbA.AA",
  ])("refuses nonsense as a token, never as expired: %p", async (token) => {
    expect(await outcome(token)).toBe("malformed");
  });
});

test("answers service_unavailable for a token while its signing key or its key cannot be looked up", async () => {
  const { secret } = await all.addKey();
  const { accessToken } = await issue(secret);
  const other = await all.startProcess();
  other.signingSwitch.failure = new Error("disk gone");
  expect(await outcome(accessToken, {}, other.authenticator)).toBe("service_unavailable");
  other.signingSwitch.failure = undefined;
  other.keySwitch.failure = new Error("disk gone");
  all.now.ms += 1_000;
  expect(await outcome(accessToken, {}, other.authenticator)).toBe("service_unavailable");
  other.keySwitch.failure = undefined;
  expect(await outcome(accessToken, {}, other.authenticator)).toBe("accepted");
});
