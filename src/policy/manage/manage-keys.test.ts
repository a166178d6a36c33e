// Tests how keys are created, changed, rotated and revoked, and the audit event of each action.
import { describe, expect, test } from "bun:test";
import { accountFor, keyRecordFor, principalFor } from "../../../tests/support/principal.ts";
import { GatewayError } from "../../base/errors.ts";
import { parseApiKey } from "../../domain/api-key.ts";
import type { Role } from "../../domain/people/role.ts";
import type { ApiKeyRecord, KeyChain, Principal } from "../../domain/principal.ts";
import { accountScopes, scopes } from "../../domain/scope.ts";
import type { CreateKeyRequest, UpdateKeyRequest } from "../../wire/keys.ts";
import { keyDigest } from "../credentials/key-digest.ts";
import {
  createKey,
  createKeyAsOperator,
  requireKey,
  revokeKey,
  revokeKeyAsOperator,
  rotateKey,
  toWire,
  updateKey,
} from "./manage-keys.ts";

const now = 1_800_000_000;
const pepper = new Uint8Array(32).fill(7);
const origin = { nowSeconds: now, clientAddress: "192.0.2.9", requestId: "req_1" };
const context = { pepper, origin };
const account = accountFor();
const key = (id: string, more: Partial<ApiKeyRecord> = {}) => keyRecordFor({ id, name: id, ...more });

type Keys = readonly [ApiKeyRecord, ...ApiKeyRecord[]];
const chain = (...keys: Keys): KeyChain => ({ account, keys });

const as = (...keys: Keys) => principalFor({ keys, scopes: new Set(keys[0].scopes) });

function refusal(attempt: () => unknown): string {
  try {
    attempt();
    return "none";
  } catch (error) {
    return error instanceof GatewayError ? `${error.code}: ${error.message}` : `not ours: ${error}`;
  }
}

describe("creating a key", () => {
  const make = (request: Partial<CreateKeyRequest>, principal = as(key("key_1"))) =>
    createKey(principal, { name: "Shop", ...request }, context);

  test("creates a key of the maker's account and environment, and stores only its digest", () => {
    const { key: secret, record } = make({ scopes: ["usage:read"] });
    expect(parseApiKey(secret)).toBe("live");
    expect(record).toEqual(
      key(record.id, {
        name: "Shop",
        digest: keyDigest(secret, pepper),
        last4: secret.slice(-4),
        scopes: ["usage:read"],
        createdBy: "key_1",
        parentId: "key_1",
        createdAt: now,
      }),
    );
    expect(record.id).toMatch(/^key_[0-9a-f-]{36}$/);
    expect(make({}).record.id).not.toBe(record.id);
  });

  test("audits a new key with every attribute, without the secret or the digest", () => {
    const { key: secret, record, event } = make({ monthly_spend: 2.5 });
    expect(event).toMatchObject({
      at: now,
      action: "key.created",
      actor: { type: "key", id: "key_1" },
      accountId: "acct_1",
      targetId: record.id,
      clientAddress: "192.0.2.9",
      requestId: "req_1",
      detail: { name: "Shop", environment: "live", parent_id: "key_1", monthly_spend: 2.5, expires_at: null },
    });
    expect(event.id).toMatch(/^audit_[0-9a-f-]{36}$/);
    for (const hidden of [secret, record.digest]) expect(JSON.stringify(event)).not.toContain(hidden);
  });

  test("normalizes the name, scopes and addresses of a new key", () => {
    const { record } = make({
      name: "  Ünï shop 🛒 ",
      scopes: ["chat:read", "chat:read"],
      allowed_ips: ["192.0.2.77/24", " ::FFFF:192.0.2.1 ", "2001:DB8:0:0::1", "192.0.2.1"],
    });
    expect(record.name).toBe("Ünï shop 🛒");
    expect(record.scopes).toEqual(["chat:read"]);
    expect(record.allowedIps).toEqual(["192.0.2.0/24", "192.0.2.1", "2001:db8::1"]);
  });

  test("refuses a model or tool name that cannot be shown, anywhere in the list", () => {
    for (const [at, models] of [
      ["bad\u0007", "m"],
      ["m", "bad\u0007"],
    ].entries()) {
      expect(refusal(() => make({ models }))).toStartWith(`invalid_request: models[${at}]: must be printable`);
      expect(refusal(() => make({ tools: models }))).toStartWith(`invalid_request: tools[${at}]: must be printable`);
    }
  });

  test("inherits the maker's expiry and addresses into a new key, but not its limits", () => {
    const maker = key("key_1", { expiresAt: now + 99, allowedIps: ["10.0.0.0/8"], rateLimit: 5, rateLimitWindow: 60 });
    for (const request of [{}, { expires_at: null, allowed_ips: [] }]) {
      const { record } = make(request, as(maker));
      expect(record).toMatchObject({ expiresAt: now + 99, allowedIps: ["10.0.0.0/8"], rateLimit: null });
    }
    expect(make({ expires_in: 98, allowed_ips: ["10.1.0.0/16"] }, as(maker)).record).toMatchObject({
      expiresAt: now + 98,
      allowedIps: ["10.1.0.0/16"],
    });
    expect(refusal(() => make({ expires_in: 100 }, as(maker)))).toBe(
      `permission_denied: expires_at: must be at most ${now + 99}, the expiry of the key that makes it.`,
    );
  });

  test("gives a new key the maker's default scopes, and refuses an empty list", () => {
    expect(make({}).record.scopes).toEqual(["chat:read", "chat:write", "models:read"]);
    expect(make({}, as(key("key_1", { scopes: ["keys:manage", "models:read"] }))).record.scopes).toEqual([
      "models:read",
    ]);
    expect(refusal(() => make({}, as(key("key_1", { scopes: ["keys:manage"] }))))).toStartWith(
      "invalid_request: scopes:",
    );
  });

  test("gives admin:manage only from a key that has it", () => {
    expect(refusal(() => make({ scopes: ["admin:manage"] }))).toBe(
      "insufficient_scope: API key lacks required scope: admin:manage",
    );
    expect(make({ scopes: ["admin:manage"] }, as(key("key_1", { scopes }))).record.scopes).toEqual(["admin:manage"]);
  });

  test("defaults the window of a new limit to a minute, and refuses a window without a limit", () => {
    expect(make({ rate_limit: 5 }).record).toMatchObject({ rateLimit: 5, rateLimitWindow: 60 });
    expect(make({ rate_limit: 5, rate_limit_window: 10 }).record).toMatchObject({ rateLimit: 5, rateLimitWindow: 10 });
    expect(refusal(() => make({ rate_limit_window: 10 }))).toStartWith("invalid_request: rate_limit_window:");
  });

  test.each<[string, Partial<CreateKeyRequest>, string]>([
    ["a blank name", { name: "   " }, "name: must be 1 to 100 printable characters"],
    ["a line break in the name", { name: "a\nb" }, "name:"],
    ["text that runs backwards", { name: "a\u202eb" }, "name:"],
    ["two expiries", { expires_at: now + 9, expires_in: 9 }, "expires_in: send either"],
    ["an expiry that is now", { expires_at: now }, `expires_at: must be in the future, in Unix seconds after ${now}`],
    ["a host name", { allowed_ips: ["::1", "example.com"] }, "allowed_ips[1]: must be an IPv4 or IPv6 address"],
    ["a prefix that is too long", { allowed_ips: ["10.0.0.0/33"] }, "allowed_ips[0]:"],
  ])("refuses to create a key with %s", (_what, request, message) => {
    expect(refusal(() => make(request))).toStartWith(`invalid_request: ${message}`);
  });

  test("lets an operator create a key for any account and environment, without a parent", () => {
    const operator = as(key("key_op", { scopes: ["admin:manage"], expiresAt: now + 5, allowedIps: ["::1"] }));
    const place = { accountId: "acct_2", environment: "test" } as const;
    const { record, event } = createKeyAsOperator(operator, { name: "Theirs" }, place, context);
    expect(record).toMatchObject({ ...place, parentId: null, createdBy: "key_op", expiresAt: null, allowedIps: [] });
    expect(record.scopes).toEqual(["chat:read", "chat:write", "models:read"]);
    expect(event).toMatchObject({ accountId: "acct_2", actor: { type: "key", id: "key_op" } });
    const nobody = () => createKeyAsOperator(as(key("key_1")), { name: "Theirs" }, place, context);
    expect(refusal(nobody)).toBe("insufficient_scope: API key lacks required scope: admin:manage");
  });
});

describe("changing a key", () => {
  const change = (request: UpdateKeyRequest, target = chain(key("key_2")), principal = as(key("key_1"))) =>
    updateKey(principal, target, request, origin);

  test("writes only the differing members of a changed key, and audits before and after", () => {
    const target = chain(key("key_2", { rateLimit: 5, rateLimitWindow: 10 }));
    const update = change({ name: "key_2", scopes: ["chat:read"], rate_limit: 6, expires_at: null }, target);
    expect(update?.changes).toEqual({ scopes: ["chat:read"], rateLimit: 6, rateLimitWindow: 10 });
    expect(update?.event).toMatchObject({
      action: "key.updated",
      targetId: "key_2",
      actor: { type: "key", id: "key_1" },
    });
    expect(update?.event.detail).toEqual({
      scopes: { before: [...accountScopes], after: ["chat:read"] },
      rate_limit: { before: 5, after: 6 },
    });
    expect(change({ name: "key_2", scopes: [...accountScopes].reverse() }, target)).toBeUndefined();
    expect(change({})).toBeUndefined();
  });

  test("clears members with null: a limit with its window, a window back to a minute", () => {
    const target = chain(
      key("key_2", { expiresAt: now + 9, allowedIps: ["::1"], rateLimit: 5, rateLimitWindow: 10, monthlyTokens: 1 }),
    );
    expect(
      change({ expires_at: null, allowed_ips: null, rate_limit: null, monthly_tokens: null }, target)?.changes,
    ).toEqual({
      expiresAt: null,
      allowedIps: [],
      rateLimit: null,
      rateLimitWindow: null,
      monthlyTokens: null,
    });
    expect(change({ rate_limit_window: null }, target)?.changes).toEqual({ rateLimit: 5, rateLimitWindow: 60 });
    expect(refusal(() => change({ rate_limit: null, rate_limit_window: 5 }, target))).toContain("rate_limit_window:");
  });

  test("lets a key narrow and rename itself, but never widen itself", () => {
    const own = key("key_1", {
      scopes: ["keys:manage", "chat:read"],
      expiresAt: now + 100,
      allowedIps: ["10.0.0.0/8"],
      rateLimit: 5,
      rateLimitWindow: 60,
      monthlyTokens: 1_000,
    });
    const self = (request: UpdateKeyRequest) => change(request, chain(own), as(own));
    const narrower = {
      name: "me",
      scopes: ["chat:read" as const],
      expires_at: now + 9,
      allowed_ips: ["10.1.1.1"],
      rate_limit: 4,
    };
    expect(self(narrower)?.changes).toMatchObject({ name: "me", expiresAt: now + 9, rateLimit: 4 });
    const wider: UpdateKeyRequest[] = [
      { scopes: ["keys:manage", "chat:read", "chat:write"] },
      { expires_at: now + 101 },
      { expires_at: null },
      { allowed_ips: null },
      { allowed_ips: ["::1"] },
      { rate_limit: 6 },
      { rate_limit: null },
      { rate_limit_window: 59 },
      { monthly_tokens: 1_001 },
      { monthly_tokens: null },
    ];
    for (const request of wider)
      expect(refusal(() => self(request))).toMatch(/^(permission_denied|insufficient_scope): /);
  });

  test("leaves members alone that already exceed the bounds of the key that changes them", () => {
    const maker = key("key_1", { expiresAt: now + 9 });
    const made = chain(key("key_2", { expiresAt: null }), maker);
    expect(change({ name: "b", expires_at: null }, made, as(maker))?.changes).toEqual({ name: "b" });
    expect(refusal(() => change({ expires_at: now + 10 }, made, as(maker)))).toContain("expires_at");
  });

  test("refuses even to rename a wider key", () => {
    const wider = chain(key("key_2", { scopes }));
    expect(refusal(() => change({ name: "b" }, wider))).toStartWith("insufficient_scope");
    const short = as(key("key_1", { expiresAt: now + 9 }));
    expect(refusal(() => change({ name: "b" }, chain(key("key_2")), short))).toStartWith("permission_denied");
  });

  test("refuses to change a key that has ended, or whose maker has", () => {
    const dead = key("key_1", { revokedAt: now });
    const targets = [chain(dead), chain(key("key_2", { expiresAt: now })), chain(key("key_3"), dead)];
    for (const target of targets) {
      expect(refusal(() => change({ name: "b" }, target, as(key("key_9"))))).toMatch(
        /^invalid_request: This key is (revoked|expired), which is final/,
      );
    }
  });
});

describe("revoking a key", () => {
  test("revokes a key at once, and only once", () => {
    const { changes, event } = revokeKey(as(key("key_1")), chain(key("key_2", { revokedAt: now + 60 })), origin) ?? {};
    expect(changes).toEqual({ revokedAt: now });
    expect(event).toMatchObject({ action: "key.revoked", detail: { revoked_at: { before: now + 60, after: now } } });
    for (const ended of [{ revokedAt: now, revoked: true }, { expiresAt: now }]) {
      expect(revokeKey(as(key("key_1")), chain(key("key_2", ended)), origin)).toBeUndefined();
    }
  });

  test("makes a due revocation final", () => {
    const due = chain(key("key_2", { revokedAt: now - 5 }), key("key_1"));
    expect(revokeKey(as(key("key_1")), due, origin)?.changes).toEqual({ revokedAt: now });
  });

  test("refuses to revoke a wider key, except for an operator", () => {
    const wide = key("key_2", { accountId: "acct_2", scopes });
    expect(refusal(() => revokeKey(as(key("key_1")), chain(wide), origin))).toStartWith("insufficient_scope");
    expect(refusal(() => revokeKeyAsOperator(as(key("key_1")), wide, origin))).toStartWith("insufficient_scope");
    const operator = as(key("key_op", { scopes: ["admin:manage"] }));
    expect(revokeKeyAsOperator(operator, wide, origin)?.event).toMatchObject({
      accountId: "acct_2",
      targetId: "key_2",
    });
  });
});

describe("rotating a key", () => {
  const old = key("key_2", {
    parentId: "key_0",
    limitId: "key_5",
    expiresAt: now + 9_999,
    rateLimit: 3,
    lastUsedAt: 5,
  });

  test("gives a rotated key a new secret with the same attributes and budget, and ends the old key", () => {
    const {
      successor,
      key: secret,
      revokeAt,
      event,
    } = rotateKey(as(key("key_1")), chain(old, key("key_1")), 60, context);
    expect(parseApiKey(secret)).toBe("live");
    expect(successor).toEqual({
      ...old,
      id: successor.id,
      digest: keyDigest(secret, pepper),
      last4: secret.slice(-4),
      createdBy: "key_1",
      createdAt: now,
      lastUsedAt: null,
    });
    expect(successor.id).not.toBe(old.id);
    expect(rotateKey(as(old), chain(old, key("key_1")), 60, context).successor.createdBy).toBe(old.createdBy);
    expect(revokeAt).toBe(now + 60);
    expect(event).toMatchObject({
      action: "key.rotated",
      targetId: "key_2",
      detail: { successor_id: successor.id, overlap_seconds: 60, revoked_at: now + 60 },
    });
    expect(JSON.stringify(event)).not.toContain(secret);
  });

  test("refuses to rotate a key that has ended or was already rotated", () => {
    for (const ended of [{ revokedAt: now }, { expiresAt: now }]) {
      const attempt = () => rotateKey(as(key("key_1")), chain(key("key_2", ended), key("key_1")), 60, context);
      expect(refusal(attempt)).toMatch(/^invalid_request: .*Create a new key instead/);
    }
    const overlapping = key("key_2", { revokedAt: now + 60 });
    expect(refusal(() => rotateKey(as(overlapping), chain(overlapping), 60, context))).toMatch(
      /^invalid_request: .*rotate its successor/,
    );
    // The rotated key cannot rotate its successor either.
    expect(refusal(() => rotateKey(as(overlapping), chain(key("key_3")), 60, context))).toStartWith(
      "permission_denied",
    );
  });
});

test("reports a key of another account or environment as not found", () => {
  const principal = as(key("key_1"));
  expect(requireKey(principal, chain(key("key_2")), "key_2").keys[0].id).toBe("key_2");
  const foreign = [
    undefined,
    chain(key("key_2", { accountId: "acct_2" })),
    chain(key("key_2", { environment: "test" })),
  ];
  const messages = foreign.map((found) => refusal(() => requireKey(principal, found, "key_2")));
  expect(new Set(messages).size).toBe(1);
  expect(messages[0]).toStartWith("not_found: There is no API key key_2.");
});

test("omits the digest from the API and reports the status by the key and its makers", () => {
  const wire = toWire(key("key_1", { revokedAt: now + 60 }), [], now);
  expect(wire).toMatchObject({
    object: "api_key",
    id: "key_1",
    status: "active",
    revoked_at: now + 60,
    allowed_ips: [],
  });
  expect(wire).not.toHaveProperty("digest");
  expect(wire).not.toHaveProperty("key");
  expect(toWire(key("key_1", { expiresAt: now }), [], now).status).toBe("expired");
  expect(toWire(key("key_1"), [key("key_0"), key("key_9", { revokedAt: 5 })], now).status).toBe("revoked");
});

describe("keys of users", () => {
  const membership = key("mbr_1_live", { kind: "membership", personId: "usr_1", role: "member" });
  const login = key("grt_1", { kind: "grant", personId: "usr_1", appId: "headrace-cli", parentId: membership.id });
  const signedIn = (role: Role, keys: Keys = [membership], more: Partial<Principal> = {}) =>
    principalFor({
      keys,
      scopes: new Set(keys[0].scopes),
      person: { id: "usr_1", role, isOperator: false, sessionId: "ses_1" },
      ...more,
    });
  const make = (principal: Principal, request: Partial<CreateKeyRequest> = {}) =>
    createKey(principal, { name: "Shop", ...request }, context);

  test("makes a member's keys the member's own, below the membership and not the login", () => {
    for (const keys of [[membership], [login, membership]] as const) {
      const { record, event } = make(signedIn("member", keys, { tokenExpiresAt: now + 60 }));
      expect(record).toMatchObject({
        kind: "key",
        parentId: "mbr_1_live",
        personId: "usr_1",
        createdBy: "usr_1",
        expiresAt: null,
        appId: null,
        role: null,
      });
      expect(event).toMatchObject({ actor: { type: "person", id: "usr_1" }, detail: { parent_id: "mbr_1_live" } });
    }
  });

  test.each(["owner", "admin"] as const)("makes keys that an %s creates the account's, without a parent", (role) => {
    for (const keys of [[membership], [login, membership]] as const) {
      const { record } = make(signedIn(role, keys));
      expect(record).toMatchObject({ parentId: null, personId: null, createdBy: "usr_1" });
    }
  });

  test("makes a key created by a member's key the member's own, below that key", () => {
    const { record } = make(as(key("key_1", { personId: "usr_1", parentId: membership.id }), membership));
    expect(record).toMatchObject({ parentId: "key_1", personId: "usr_1", createdBy: "key_1" });
  });

  test("lets an operator with a member role grant no more than the membership has", () => {
    const operator = signedIn("member", [membership], { scopes: new Set(scopes) });
    expect(refusal(() => make(operator, { scopes: ["admin:manage"] }))).toStartWith("permission_denied: scopes:");
    const owner = signedIn("owner", [membership], { scopes: new Set(scopes) });
    expect(make(owner, { scopes: ["admin:manage"] }).record.scopes).toEqual(["admin:manage"]);
    expect(refusal(() => make(signedIn("owner"), { scopes: ["admin:manage"] }))).toStartWith("insufficient_scope");
  });

  test("lets an app create, change, rotate and revoke no keys, whatever its user's role", () => {
    const app = signedIn("owner", [login, membership], { appId: "app_1" });
    const target = chain(key("key_2"));
    const attempts = [
      () => make(app),
      () => updateKey(app, target, { name: "b" }, origin),
      () => rotateKey(app, target, 0, context),
      () => revokeKey(app, target, origin),
    ];
    for (const attempt of attempts) expect(refusal(attempt)).toStartWith("permission_denied: Apps cannot");
  });

  test("finds only the member's own keys for a member, and no memberships or grants as keys", () => {
    const own = key("key_2", { personId: "usr_1" });
    const others = [key("key_3"), key("key_4", { personId: "usr_2" })];
    const find = (principal: Principal, record: ApiKeyRecord) =>
      refusal(() => requireKey(principal, chain(record), record.id)).split(":")[0];
    const limited = [signedIn("member"), signedIn("member", [login, membership]), as(own, membership)];
    for (const principal of limited) {
      expect(find(principal, own)).toBe("none");
      for (const other of others) expect(find(principal, other)).toBe("not_found");
    }
    for (const principal of [signedIn("owner"), signedIn("admin"), as(key("key_1"))]) {
      for (const record of [own, ...others]) expect(find(principal, record)).toBe("none");
      for (const record of [membership, login]) expect(find(principal, record)).toBe("not_found");
    }
  });

  test("lets a signed-in operator create an account's keys under the operator's own id", () => {
    const operator = signedIn("owner", [membership], { scopes: new Set(scopes) });
    const place = { accountId: "acct_2", environment: "test" } as const;
    const { record } = createKeyAsOperator(operator, { name: "First" }, place, context);
    expect(record).toMatchObject({ accountId: "acct_2", createdBy: "usr_1", parentId: null, personId: null });
    expect(refusal(() => createKeyAsOperator(signedIn("owner"), { name: "First" }, place, context))).toStartWith(
      "insufficient_scope",
    );
  });
});
