// Refresh tokens under attack: stolen, replayed, many at once, or while a store fails.
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { commandLineAppId } from "../../src/domain/people/app.ts";
import { tokenDigest } from "../../src/policy/credentials/opaque-token.ts";
import { testEvent } from "../support/credentials.ts";
import {
  basic,
  invalidGrant,
  type OAuthServer,
  refusal,
  secretOf,
  startOAuth,
  times,
  verifier,
} from "../support/oauth.ts";

let server: OAuthServer;

beforeEach(async () => {
  server = await startOAuth();
});

afterEach(() => server.close());

const rotate = (...args: Parameters<OAuthServer["rotate"]>) => server.rotate(...args);

async function signIn(): Promise<Record<string, unknown>> {
  const { status, body } = await server.redeem(await server.code());
  expect(status).toBe(200);
  return body;
}

describe("a refresh token", () => {
  // hardening: A9
  test("repeats the answer to the same refresh request for ten seconds", async () => {
    const { refresh_token: token } = await signIn();
    const first = await rotate(token, { scope: "models:read" });
    server.now.seconds += 9;
    const second = await rotate(token, { scope: "models:read" });
    expect(second.body).toEqual(first.body);
    expect((await rotate(first.body["refresh_token"])).status).toBe(200);
    // Its successor was used meanwhile: the answer still is the same.
    expect((await rotate(token, { scope: "models:read" })).body).toEqual(first.body);
    expect(await server.liveGrants()).toHaveLength(1);
  });

  // hardening: A9
  test("ends the whole grant if a refresh token is used again after ten seconds", async () => {
    const { refresh_token: token, access_token: access } = await signIn();
    const others = await signIn();
    const { body } = await rotate(token);
    for (const alive of [access, body["access_token"]]) expect(await server.probe(alive)).toBe(200);
    server.now.seconds += 10;
    expect(refusal(await rotate(token))).toEqual(invalidGrant);
    for (const dead of [access, body["access_token"]]) expect(await server.probe(dead)).toBe(401);
    expect(refusal(await rotate(body["refresh_token"]))).toEqual(invalidGrant);
    expect((await rotate(others["refresh_token"])).status).toBe(200);
    const replay = (await server.grantEvents()).find(({ action }) => action === "grant.replayed");
    expect(replay).toMatchObject({ actor: { type: "app", id: "web" }, detail: { reason: "refresh_token_used_again" } });
  });

  // hardening: A9
  test.each([
    { scope: "chat:write" },
    { scope: "models:read chat:write" },
    { scope: "usage:read" },
    { resource: "https://headrace.example/v1" },
  ])("ends the whole grant if a refresh token is used for another request: %j", async (other) => {
    const { refresh_token: token } = await signIn();
    const { body } = await rotate(token);
    expect(refusal(await rotate(token, other))).toEqual(invalidGrant);
    expect(await server.probe(body["access_token"])).toBe(401);
  });

  test("repeats no old refresh answer after the clock was set back", async () => {
    const { refresh_token: token } = await signIn();
    await rotate(token);
    server.now.seconds -= 3_600;
    expect(refusal(await rotate(token))).toEqual(invalidGrant);
    expect(await server.liveGrants()).toEqual([]);
  });

  // hardening: A9
  test("gives 50 concurrent uses of a refresh token the same answer", async () => {
    const { refresh_token: token } = await signIn();
    const answers = await Promise.all(times(50, () => rotate(token)));
    expect(answers.every(({ status }) => status === 200)).toBeTrue();
    expect(new Set(answers.map(({ body }) => body["refresh_token"])).size).toBe(1);
    expect((await rotate(answers[0]?.body["refresh_token"])).status).toBe(200);
    expect(await server.liveGrants()).toHaveLength(1);
  });

  test("answers one of several different concurrent uses of a refresh token, and then none", async () => {
    const { refresh_token: token } = await signIn();
    const answers = await Promise.all(times(20, (n) => rotate(token, n % 2 === 0 ? {} : { scope: "models:read" })));
    const given = answers.filter(({ status }) => status === 200);
    expect(new Set(given.map(({ body }) => body["refresh_token"])).size).toBe(1);
    expect(answers.some(({ status }) => status === 400)).toBeTrue();
    expect(await server.probe(given[0]?.body["access_token"])).toBe(401);
    expect(await server.liveGrants()).toEqual([]);
  });

  // hardening: A9
  test("refuses another app's refresh token, which stays valid", async () => {
    const { refresh_token: token } = await signIn();
    expect(refusal(await rotate(token, {}, basic("other")))).toEqual(invalidGrant);
    expect(refusal(await rotate(token, { client_id: "native" }, {}))).toEqual(invalidGrant);
    expect((await rotate(token)).status).toBe(200);
    // Another app does not end a family either with a token that was used.
    server.now.seconds += 60;
    expect(refusal(await rotate(token, {}, basic("other")))).toEqual(invalidGrant);
    expect(await server.liveGrants()).toHaveLength(1);
  });

  // hardening: A9
  test.each(["usage:read", "keys:manage", "admin:manage", "nonsense", "models:read nonsense"])(
    "grants no scope on refresh that was not allowed, and keeps the token valid: %s",
    async (scope) => {
      const { refresh_token: token } = await signIn();
      expect(refusal(await rotate(token, { scope }))).toEqual([400, "invalid_scope"]);
      expect((await rotate(token)).status).toBe(200);
    },
  );

  test("keeps a refresh token for 30 days since its last use", async () => {
    let { refresh_token: token } = await signIn();
    for (let n = 0; n < 2; n++) {
      server.now.seconds += 30 * 86_400 - 1;
      ({ refresh_token: token } = (await rotate(token)).body);
    }
    server.now.seconds += 30 * 86_400;
    expect(refusal(await rotate(token))).toEqual(invalidGrant);
  });

  test("does not accept a refresh token as an access token, or the reverse", async () => {
    const { refresh_token: token, access_token: access } = await signIn();
    expect(await server.probe(token)).toBe(401);
    expect(refusal(await rotate(access))).toEqual(invalidGrant);
    expect(refusal(await server.redeem(String(token)))).toEqual(invalidGrant);
  });

  test("refuses a refresh for a person with a suspended account, and keeps the token valid", async () => {
    const nowSeconds = () => server.now.seconds;
    const code = await server.code(commandLineAppId);
    const asCommandLine = { client_id: commandLineAppId };
    const { body } = await server.redeem(code, asCommandLine, {});
    const token = body["refresh_token"];
    await server.accounts.updateAccount(server.accountId, { status: "suspended" }, testEvent(nowSeconds()));
    expect(refusal(await rotate(token, asCommandLine, {}))).toEqual(invalidGrant);
    await server.accounts.updateAccount(server.accountId, { status: "active" }, testEvent(nowSeconds()));
    expect((await rotate(token, asCommandLine, {})).status).toBe(200);
    // The answer of a moment ago is not given once more either.
    await server.accounts.updateAccount(server.accountId, { status: "suspended" }, testEvent(nowSeconds()));
    expect(refusal(await rotate(token, asCommandLine, {}))).toEqual(invalidGrant);
  });

  test("ends a refresh token with its account and membership", async () => {
    const { refresh_token: token } = await signIn();
    await server.accounts.updateAccount(server.accountId, { status: "suspended" }, testEvent(server.now.seconds));
    // The app is one of the same account.
    expect(refusal(await rotate(token))).toEqual([401, "invalid_client"]);
    await server.accounts.updateAccount(server.accountId, { status: "active" }, testEvent(server.now.seconds));
    expect((await rotate(token)).status).toBe(200);
    await server.keys.updateKey("mbr_1_live", { revokedAt: server.now.seconds }, testEvent(server.now.seconds));
    expect(refusal(await rotate(token))).toEqual(invalidGrant);
  });
});

describe("refresh under faults", () => {
  test("uses up no refresh token while the audit log or database cannot be written", async () => {
    const code = await server.code();
    await server.db`ALTER TABLE audit_log RENAME TO audit_log_away`;
    const failed = await server.redeem(code);
    expect(failed.status).toBeGreaterThanOrEqual(500);
    await server.db`ALTER TABLE audit_log_away RENAME TO audit_log`;
    const { status, body } = await server.redeem(code);
    expect(status).toBe(200);
    await server.db.unsafe("PRAGMA query_only = ON");
    const away = await rotate(body["refresh_token"]);
    expect(refusal(away)).toEqual([503, "temporarily_unavailable"]);
    expect(Number(away.headers.get("retry-after"))).toBeGreaterThan(0);
    await server.db.unsafe("PRAGMA query_only = OFF");
    expect((await rotate(body["refresh_token"])).status).toBe(200);
  });

  // hardening: A7
  test("writes no code, token, secret or verifier to log, audit log or database", async () => {
    const code = await server.code();
    const { body } = await server.redeem(code);
    const { body: rotated } = await rotate(body["refresh_token"]);
    await server.redeem(code);
    await rotate(body["refresh_token"], { scope: String(body["refresh_token"]) });
    await server.token({}, basic("web", `${secretOf("web")}!`));
    const device = await server.post("/oauth/device_authorization", { client_id: commandLineAppId });
    await server.refusals.flush();
    const tables = ["audit_log", "authorization_codes", "refresh_tokens", "device_codes", "api_keys"];
    const rows = await Promise.all(
      tables.map(async (table) => [...(await server.db.unsafe(`SELECT * FROM ${table}`))]),
    );
    const written = JSON.stringify([server.log.lines, rows]);
    expect(written).toContain(tokenDigest(String(body["refresh_token"])));
    const secrets = [
      ...[body["access_token"], body["refresh_token"], rotated["access_token"], rotated["refresh_token"]],
      ...[device.body["device_code"], verifier, secretOf("web")],
    ];
    for (const secret of secrets) expect(written).not.toContain(String(secret).slice(-30));
    expect(written).not.toContain(`"${code}"`);
  });
});
