// Tests authentication: which credentials are valid, how long a cached one is trusted, and the effect of a revocation
// by any process.
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { type Credentials, openCredentials, presented, testEvent, until } from "../../../tests/support/credentials.ts";
import { withinMs } from "../../../tests/support/long.ts";
import { GatewayError } from "../../base/errors.ts";
import { invalidApiKeyMessage } from "../../base/invalid-api-key.ts";
import { generateApiKey } from "../../domain/api-key.ts";
import type { ApiKeyRecord, Principal } from "../../domain/principal.ts";
import { accountScopes, type Scope, scopes } from "../../domain/scope.ts";
import type { GrantTokenRequest } from "./access-tokens.ts";
import type { Authenticator, PresentedCredentials } from "./authenticate.ts";
import { termsOf } from "./kept-key.ts";

let all: Credentials;

beforeEach(async () => {
  all = await openCredentials();
});

afterEach(() => all.close());

const messageOf = (reason: string) => `Invalid API key provided. Incorrect API key provided: ${reason}.`;

/** Returns the reason of a refusal as in the log, the code of any other error, or "accepted". */
async function outcome(parts: Partial<PresentedCredentials>, by: Authenticator = all.authenticator): Promise<string> {
  try {
    await by.authenticate(presented(parts));
    return "accepted";
  } catch (error) {
    expect(error).toBeInstanceOf(GatewayError);
    const { code, message, detail } = error as GatewayError;
    if (code !== "invalid_api_key") return code;
    // Only the owner of a genuine key learns that the request comes from the wrong place, or what is suspended.
    if (detail === "dev_key_not_local") expect(message).toBe(messageOf("it is elsewhere"));
    else if (detail?.endsWith("_suspended")) expect(message).toContain(" suspended; ask ");
    else expect(message).toBe(invalidApiKeyMessage);
    return detail ?? "";
  }
}

const reads = () => all.keySwitch.calls["findChainByDigest"] ?? 0;

/** Revokes a key as another process would, without a notification to this one. */
const revoke = (id: string, revokedAt = all.now.seconds) =>
  all.keys.updateKey(id, { revokedAt }, testEvent(all.now.seconds));

describe("credentials", () => {
  test("accepts a key as bearer and as X-API-Key, and returns its account, keys, environment and scopes", async () => {
    const { secret, record } = await all.addKey("live", { scopes: ["chat:write"] });
    for (const parts of [
      { authorization: `Bearer ${secret}` },
      { apiKey: secret },
      { authorization: `bearer   ${secret} ` },
      { authorization: `Bearer ${secret}`, apiKey: secret },
    ]) {
      const principal = await all.authenticator.authenticate(presented(parts));
      expect(principal).toEqual({
        account: expect.objectContaining({ id: all.accountId, tier: "enterprise" }),
        keys: [expect.objectContaining({ id: record.id, limitId: record.limitId, ...termsOf(record) })],
        environment: "live",
        scopes: new Set(["chat:write"]),
        priority: "normal",
        appId: null,
        limits: { requests: [], tokens: [], quotas: [] },
      });
    }
  });

  test("gives every refusal the same message, and its reason only to the log", async () => {
    const { secret } = await all.addKey();
    expect(await outcome({})).toBe("missing");
    expect(await outcome({ apiKey: "" })).toBe("missing");
    expect(await outcome({ authorization: `Basic ${secret}` })).toBe("authorization_not_bearer");
    expect(await outcome({ authorization: "" })).toBe("authorization_not_bearer");
    expect(await outcome({ apiKey: "nonsense" })).toBe("malformed");
    expect(await outcome({ authorization: "Bearer nonsense" })).toBe("malformed");
    expect(await outcome({ apiKey: generateApiKey("live") })).toBe("unknown");
    expect(await outcome({ apiKey: (await all.addKey("live", { revokedAt: 1 })).secret })).toBe("revoked");
    expect(await outcome({ apiKey: (await all.addKey("live", { expiresAt: 1 })).secret })).toBe("expired");
  });

  test("refuses two different credentials even if both are valid, and a token as X-API-Key", async () => {
    const [one, two] = [await all.addKey(), await all.addKey()];
    expect(await outcome({ authorization: `Bearer ${one.secret}`, apiKey: two.secret })).toBe("two_credentials");
    expect(await outcome({ apiKey: "e30.e30.e30" })).toBe("token_as_api_key");
    expect(await outcome({ authorization: "Bearer e30.e30.e30", apiKey: "e30.e30.e30" })).toBe("token_as_api_key");
  });

  test("refuses a malformed key without a store lookup", async () => {
    await outcome({ apiKey: "sk_live_hr_nonsense" });
    await outcome({ apiKey: `${generateApiKey("live").slice(0, -1)}!` });
    await outcome({ apiKey: `${generateApiKey("live").slice(0, -1)}` });
    expect(reads()).toBe(0);
  });

  test("treats a key whose digest was made with another pepper as unknown", async () => {
    const { secret } = await all.addKey();
    const other = await all.startProcess({ pepper: new Uint8Array(32).fill(8) });
    expect(await outcome({ apiKey: secret }, other.authenticator)).toBe("unknown");
  });
});

describe("the rights of a request in progress", () => {
  test("grants no more scopes than the request was admitted with, however wide its key is", async () => {
    const { secret } = await all.addKey("live", { scopes: ["chat:write", "chat:read", "keys:manage"] });
    const principal = await all.authenticator.authenticate(presented({ apiKey: secret }));
    const narrow: Principal = { ...principal, scopes: new Set<Scope>(["chat:write", "usage:read"]) };
    expect([...(await all.authenticator.still(narrow)).scopes]).toEqual(["chat:write"]);
    expect([...(await all.authenticator.still(principal)).scopes]).toEqual([...principal.scopes]);
  });

  test("ends the rights of a request once its key has expired", async () => {
    const { secret } = await all.addKey("live", { expiresAt: all.now.seconds + 1_000 });
    const principal = await all.authenticator.authenticate(presented({ apiKey: secret }));
    await all.authenticator.still(principal);
    all.now.seconds += 1_000;
    await expect(all.authenticator.still(principal)).rejects.toMatchObject({
      ...{ code: "invalid_api_key", detail: "expired" },
    });
  });

  test("ends the rights of a request once its token's signing key is withdrawn", async () => {
    const origin = { nowSeconds: all.now.seconds, clientAddress: null, requestId: null };
    const principal = await all.authenticator.authenticate(presented({ apiKey: (await all.addKey()).secret }));
    const { accessToken } = await all.tokens.issue({ principal, expiresIn: 600, scope: undefined, origin });
    const ofToken = await all.authenticator.authenticate(presented({ authorization: `Bearer ${accessToken}` }));
    await all.signingKeys.rotate({ type: "operator" }, origin);
    await all.authenticator.still(ofToken);
    await all.signingKeys.replace({ type: "operator" }, origin);
    await expect(all.authenticator.still(ofToken)).rejects.toMatchObject({
      ...{ code: "invalid_api_key", detail: "token_key_unknown" },
    });
    await all.authenticator.still(principal);
  });
});

describe("the owner of a credential for work without its client", () => {
  const detail = (work: Promise<unknown>) =>
    work.then(
      () => "accepted",
      (error: GatewayError) => error.detail,
    );

  // long-lived: batch.credential
  test("rejects work in the name of a revoked key", async () => {
    const { record } = await all.addKey("live");
    expect(await detail(all.authenticator.behind(record.id))).toBe("accepted");
    await revoke(record.id);
    all.authenticator.invalidate();
    expect(await detail(all.authenticator.behind(record.id))).toBe("revoked");
  });

  test("rejects work in the name of an expired key", async () => {
    const { record } = await all.addKey("live", { expiresAt: all.now.seconds + 10 });
    all.now.seconds += 10;
    expect(await detail(all.authenticator.behind(record.id))).toBe("expired");
  });

  test("rejects work in the name of a suspended account or an unknown id", async () => {
    const { record } = await all.addKey("live");
    await all.accounts.updateAccount(all.accountId, { status: "suspended" }, testEvent(all.now.seconds));
    all.authenticator.invalidate();
    expect(await detail(all.authenticator.behind(record.id))).toBe("account_suspended");
    expect(await detail(all.authenticator.behind("key_nobody"))).toBe("unknown");
  });
});

describe("environments", () => {
  test("accepts a dev key for local requests only, cached or not, and other keys everywhere", async () => {
    const remote = { whyNotLocal: () => "it is elsewhere" };
    const { secret } = await all.addKey("dev");
    expect(await outcome({ apiKey: secret, ...remote })).toBe("dev_key_not_local");
    expect(await outcome({ apiKey: secret })).toBe("accepted");
    expect(await outcome({ apiKey: secret, ...remote })).toBe("dev_key_not_local");
    expect(await outcome({ apiKey: (await all.addKey("live")).secret, ...remote })).toBe("accepted");
    expect(await outcome({ apiKey: (await all.addKey("test")).secret, ...remote })).toBe("accepted");
  });

  test("does not reveal where a dev key works if it is unknown, expired or revoked", async () => {
    const remote = { whyNotLocal: () => "it is elsewhere" };
    const ended = await all.addKey("dev", { expiresAt: 1 });
    expect(await outcome({ apiKey: generateApiKey("dev"), ...remote })).toBe("unknown");
    expect(await outcome({ apiKey: ended.secret, ...remote })).toBe("expired");
    expect(await outcome({ apiKey: (await all.addKey("dev", { revokedAt: 1 })).secret, ...remote })).toBe("revoked");
  });

  test("refuses a dev key in production even locally, without a store lookup", async () => {
    const production = await all.startProcess({ mode: "production" });
    const { secret } = await all.addKey("dev");
    expect(await outcome({ apiKey: secret }, production.authenticator)).toBe("dev_key_in_production");
    expect(production.keySwitch.calls["findChainByDigest"]).toBeUndefined();
    expect(await outcome({ apiKey: (await all.addKey()).secret }, production.authenticator)).toBe("accepted");
  });

  test("refuses a key whose record has another environment than its prefix", async () => {
    const { secret, id } = await all.addKey("test");
    await all.db`UPDATE api_keys SET environment = 'live' WHERE id = ${id}`;
    expect(await outcome({ apiKey: secret })).toBe("environment");
  });
});

describe("the chain of keys above a key", () => {
  test("limits a key's scopes to those of each key above it, also after one loses a scope", async () => {
    const root = await all.addKey("live", { scopes: ["chat:read", "chat:write", "keys:manage"] });
    const middle = await all.addKey("live", { parentId: root.id, scopes: ["chat:read", "chat:write", "models:read"] });
    const leaf = await all.addKey("live", { parentId: middle.id, scopes });
    const principal = await all.authenticator.authenticate(presented({ apiKey: leaf.secret }));
    expect(principal.scopes).toEqual(new Set(["chat:read", "chat:write"]));
    expect(principal.keys.map(({ id }) => id)).toEqual([leaf.id, middle.id, root.id]);
  });

  test("combines the model lists, never_leaves and tags of all keys in a chain", async () => {
    const root = await all.addKey("live", { models: ["gpt-*"], tags: ["a", "b"] });
    const middle = await all.addKey("live", { parentId: root.id, neverLeaves: true, tools: ["github", "crm"] });
    const leaf = await all.addKey("live", { parentId: middle.id, models: ["gpt-6"], tags: ["c", "a"] });
    const [ofLeaf, ofRoot, ofOther] = await Promise.all(
      [leaf, root, await all.addKey()].map(({ secret }) =>
        all.authenticator.authenticate(presented({ apiKey: secret })),
      ),
    );
    expect(ofLeaf?.modelAccess).toEqual({ models: [["gpt-6"], ["gpt-*"]], neverLeaves: true });
    expect(ofLeaf?.tools).toEqual({ lists: [["github", "crm"]] });
    expect(ofLeaf?.tags).toEqual(["c", "a", "b"]);
    expect(ofRoot?.tools).toBeUndefined();
    expect(ofRoot?.modelAccess).toEqual({ models: [["gpt-*"]], neverLeaves: false });
    expect([ofOther?.modelAccess, ofOther?.tags]).toEqual([undefined, undefined]);
  });

  test("applies a changed tool list of the account to all of its keys, beside their own lists", async () => {
    const key = await all.addKey("live", { tools: ["crm"] });
    const lists = async () => (await all.authenticator.authenticate(presented({ apiKey: key.secret }))).tools?.lists;
    expect(await lists()).toEqual([["crm"]]);
    await all.accounts.updateAccount(all.accountId, { tools: ["git*"] }, testEvent());
    all.authenticator.invalidate();
    expect(await lists()).toEqual([["crm"], ["git*"]]);
    await all.accounts.updateAccount(all.accountId, { tools: null }, testEvent());
    all.authenticator.invalidate();
  });

  test("ends a key with any key above it", async () => {
    const root = await all.addKey("live", { expiresAt: all.now.seconds + 100 });
    const middle = await all.addKey("live", { parentId: root.id });
    const leaf = await all.addKey("live", { parentId: middle.id });
    expect(await outcome({ apiKey: leaf.secret })).toBe("accepted");
    all.now.seconds += 100;
    expect(await outcome({ apiKey: leaf.secret })).toBe("ancestor_expired");
    all.now.seconds -= 1;
    await revoke(middle.id);
    all.authenticator.invalidate();
    expect(await outcome({ apiKey: leaf.secret })).toBe("ancestor_revoked");
    expect(await outcome({ apiKey: middle.secret })).toBe("revoked");
    expect(await outcome({ apiKey: root.secret })).toBe("accepted");
  });

  test("requires one account and environment in a chain, and an active account", async () => {
    const root = await all.addKey();
    const leaf = await all.addKey("live", { parentId: root.id });
    await all.db`UPDATE api_keys SET environment = 'test' WHERE id = ${root.id}`;
    expect(await outcome({ apiKey: leaf.secret })).toBe("chain_inconsistent");
    const { secret } = await all.addKey();
    await all.accounts.updateAccount(all.accountId, { status: "suspended" }, testEvent());
    expect(await outcome({ apiKey: secret })).toBe("account_suspended");
  });

  test("refuses a suspended key and the keys that it made, and accepts them again once it is resumed", async () => {
    const root = await all.addKey();
    const leaf = await all.addKey("live", { parentId: root.id });
    for (const { secret } of [root, leaf]) expect(await outcome({ apiKey: secret })).toBe("accepted");
    for (const [isSuspended, expected] of [
      [true, "key_suspended"],
      [false, "accepted"],
    ] as const) {
      await all.keys.setSuspended(root.id, { by: "account", isSuspended }, testEvent());
      all.authenticator.invalidate();
      for (const { secret } of [root, leaf]) expect(await outcome({ apiKey: secret })).toBe(expected);
    }
  });
});

describe("allowed addresses", () => {
  test.each([
    ["203.0.113.9", "accepted"],
    ["::ffff:203.0.113.9", "accepted"],
    ["10.255.0.1", "accepted"],
    ["2001:db8::5", "accepted"],
    ["203.0.113.10", "address"],
    ["11.0.0.1", "address"],
    ["2001:db9::5", "address"],
    ["", "address"],
    ["unknown", "address"],
  ])("applies the allowed addresses of a key: %p is %s, cached or not", async (clientAddress, expected) => {
    const { secret } = await all.addKey("live", { allowedIps: ["203.0.113.9", "10.0.0.0/8", "2001:db8::/32"] });
    expect(await outcome({ apiKey: secret, clientAddress })).toBe(expected);
    expect(await outcome({ apiKey: secret, clientAddress })).toBe(expected);
  });

  test("requires the client's address in the list of each key in the chain", async () => {
    const root = await all.addKey("live", { allowedIps: ["10.0.0.0/8"] });
    const leaf = await all.addKey("live", { parentId: root.id, allowedIps: ["10.1.0.0/16", "192.0.2.1"] });
    expect(await outcome({ apiKey: leaf.secret, clientAddress: "10.1.2.3" })).toBe("accepted");
    expect(await outcome({ apiKey: leaf.secret, clientAddress: "192.0.2.1" })).toBe("address");
    expect(await outcome({ apiKey: leaf.secret, clientAddress: "10.2.0.1" })).toBe("address");
    const open = await all.addKey("live", { parentId: root.id });
    expect(await outcome({ apiKey: open.secret, clientAddress: "192.0.2.1" })).toBe("address");
  });

  test("allows no address if the list cannot be parsed", async () => {
    const { secret } = await all.addKey("live", { allowedIps: ["somewhere"] });
    expect(await outcome({ apiKey: secret })).toBe("address");
  });
});

describe("a cached key", () => {
  test("authenticates a cached key without a promise or a store call, and builds its principal once", async () => {
    let composed = 0;
    const limits = { requests: [], tokens: [], quotas: [] };
    const { authenticator, keySwitch } = await all.startProcess({
      limitsOf: () => {
        composed++;
        return limits;
      },
    });
    const { secret } = await all.addKey();
    const first = await authenticator.authenticate(presented({ apiKey: secret }));
    const calls = { ...keySwitch.calls };
    for (all.now.ms of [1, 250, 499, 999]) {
      expect(authenticator.authenticate(presented({ apiKey: secret }))).toBe(first as Principal);
    }
    expect(keySwitch.calls).toEqual(calls);
    expect([composed, first.limits]).toEqual([1, limits]);
  });

  test("refuses a cached key in a wrong form or place or beside another credential", async () => {
    const { authenticator } = await all.startProcess();
    const [{ secret }, dev] = [await all.addKey(), await all.addKey("dev")];
    const judged = (parts: Parameters<typeof presented>[0]) => outcome(parts, authenticator);
    const right = [
      { authorization: `Bearer ${secret}` },
      { authorization: `bearer   ${secret}  ` },
      { apiKey: secret },
    ];
    const wrong: [string, Parameters<typeof presented>[0]][] = [
      ["authorization_not_bearer", { authorization: secret }],
      ["authorization_not_bearer", { authorization: `Basic ${secret}` }],
      ["authorization_not_bearer", { authorization: `Basic ${secret}`, apiKey: secret }],
      ["two_credentials", { authorization: `Bearer ${secret}`, apiKey: dev.secret }],
      ["malformed", { authorization: `Bearer ${secret}x` }],
      ["malformed", { apiKey: `${secret} ` }],
      ["dev_key_not_local", { apiKey: dev.secret, whyNotLocal: () => "it is elsewhere" }],
    ];
    for (let round = 0; round < 2; round++) {
      for (const parts of [...right, { authorization: `Bearer ${secret}`, apiKey: secret }, { apiKey: dev.secret }]) {
        expect(await judged(parts)).toBe("accepted");
      }
      for (const [reason, parts] of wrong) expect([reason, await judged(parts)]).toEqual([reason, reason]);
    }
  });

  test("reads a key again after 100 other keys passed through a cache of 10", async () => {
    const { authenticator, keySwitch } = await all.startProcess({ capacity: 10 });
    const { secret } = await all.addKey();
    const busy = await all.addKey();
    expect(await outcome({ apiKey: secret }, authenticator)).toBe("accepted");
    for (let i = 0; i < 100; i++) {
      await outcome({ apiKey: (await all.addKey()).secret }, authenticator);
      await outcome({ apiKey: busy.secret }, authenticator);
    }
    // The busy key never left the cache.
    expect(keySwitch.calls["findChainByDigest"]).toBe(102);
    expect(await outcome({ apiKey: secret }, authenticator)).toBe("accepted");
    expect(keySwitch.calls["findChainByDigest"]).toBe(103);
  });

  test("reads an uncached key once for a hundred concurrent requests", async () => {
    const { secret } = await all.addKey();
    const outcomes = await Promise.all(Array.from({ length: 100 }, () => outcome({ apiKey: secret })));
    expect(new Set(outcomes)).toEqual(new Set(["accepted"]));
    expect(reads()).toBe(1);
  });

  test("does not cache unknown keys, so a key works as soon as it is stored", async () => {
    const { secret, record } = await all.addKey();
    await all.db`DELETE FROM api_keys`;
    expect(await outcome({ apiKey: secret })).toBe("unknown");
    await all.keys.insertKey(record, testEvent());
    expect(await outcome({ apiKey: secret })).toBe("accepted");
  });
});

describe("a revocation", () => {
  test("applies a revocation in the same process at once", async () => {
    const { secret, id } = await all.addKey();
    expect(await outcome({ apiKey: secret })).toBe("accepted");
    await revoke(id);
    all.authenticator.invalidate();
    expect(await outcome({ apiKey: secret })).toBe("revoked");
  });

  test("applies a revocation by another process within a second, however busy the key is", async () => {
    const other = await all.startProcess();
    const { secret, id } = await all.addKey();
    expect(await outcome({ apiKey: secret }, other.authenticator)).toBe("accepted");
    await revoke(id);
    for (all.now.ms = 0; all.now.ms < 1_000; all.now.ms += 50) await outcome({ apiKey: secret }, other.authenticator);
    expect(await outcome({ apiKey: secret }, other.authenticator)).toBe("revoked");
  });

  test("notices a revocation by another process in the background, without a request", async () => {
    const other = await all.startProcess({ pollMs: 5 });
    other.authenticator.start();
    const { secret, id } = await all.addKey();
    expect(await outcome({ apiKey: secret }, other.authenticator)).toBe("accepted");
    await revoke(id);
    // The test's clock stands still, so only the background poll can notice the change.
    await until(async () => (await outcome({ apiKey: secret }, other.authenticator)) === "revoked");
  });

  // hardening: K8
  test("applies a revocation that happens during the key's lookup", async () => {
    const { secret, id } = await all.addKey();
    expect(await outcome({ apiKey: (await all.addKey()).secret })).toBe("accepted");
    const gate = Promise.withResolvers<void>();
    all.keySwitch.held = gate.promise;
    const { answered } = all.keySwitch;
    const inFlight = outcome({ apiKey: secret });
    // The database has answered with the key as it was, but the answer has not arrived yet.
    await until(() => all.keySwitch.answered > answered);
    all.keySwitch.held = undefined;
    await revoke(id);
    all.authenticator.invalidate();
    const later = outcome({ apiKey: secret });
    gate.resolve();
    expect([await inFlight, await later]).toEqual(["revoked", "revoked"]);
    expect(await outcome({ apiKey: secret })).toBe("revoked");
  });

  test("applies a revocation by another process that happens during the key's lookup", async () => {
    const other = await all.startProcess();
    const { secret, id } = await all.addKey();
    expect(await outcome({ apiKey: (await all.addKey()).secret }, other.authenticator)).toBe("accepted");
    const gate = Promise.withResolvers<void>();
    other.keySwitch.held = gate.promise;
    const { answered } = other.keySwitch;
    const inFlight = outcome({ apiKey: secret }, other.authenticator);
    await until(() => other.keySwitch.answered > answered);
    other.keySwitch.held = undefined;
    await revoke(id);
    // Another request notices the change, because the last poll was a second ago.
    all.now.ms += 1_000;
    const finder = outcome({ apiKey: generateApiKey("live") }, other.authenticator);
    expect(await finder).toBe("unknown");
    gate.resolve();
    expect(await inFlight).toBe("revoked");
  });

  test("applies a scheduled revocation to the second", async () => {
    const { secret, id } = await all.addKey();
    await revoke(id, all.now.seconds + 10);
    expect(await outcome({ apiKey: secret })).toBe("accepted");
    all.now.seconds += 9;
    expect(await outcome({ apiKey: secret })).toBe("accepted");
    all.now.seconds += 1;
    expect(await outcome({ apiKey: secret })).toBe("revoked");
    expect(reads()).toBe(1);
  });

  test.each([3_600, 86_400])("keeps a revocation when the clock is set back by %i seconds", async (seconds) => {
    const { secret, id } = await all.addKey();
    await revoke(id);
    expect(await outcome({ apiKey: secret })).toBe("revoked");
    all.now.seconds -= seconds;
    expect(await outcome({ apiKey: secret })).toBe("revoked");
    all.authenticator.invalidate();
    expect(await outcome({ apiKey: secret })).toBe("revoked");
  });

  test("retries an unavailable store at most once a second for a due revocation", async () => {
    const { secret, id } = await all.addKey();
    expect(await outcome({ apiKey: secret })).toBe("accepted");
    await revoke(id, all.now.seconds + 5);
    all.authenticator.invalidate();
    expect(await outcome({ apiKey: secret })).toBe("accepted");
    all.now.seconds += 10;
    all.keySwitch.failure = new Error("away");
    for (let i = 0; i < 3; i++) expect(await outcome({ apiKey: secret })).toBe("revoked");
    expect(all.keySwitch.calls["endDue"]).toBe(1);
    all.now.ms += 1_000;
    all.keySwitch.failure = undefined;
    expect(await outcome({ apiKey: secret })).toBe("revoked");
    expect(all.keySwitch.calls["endDue"]).toBe(2);
  });

  test("notices a revocation although the wall clock jumps", async () => {
    const other = await all.startProcess();
    const { secret, id } = await all.addKey();
    expect(await outcome({ apiKey: secret }, other.authenticator)).toBe("accepted");
    await revoke(id, all.now.seconds - 90_000);
    all.now.seconds -= 86_400;
    all.now.ms += 1_000;
    expect(await outcome({ apiKey: secret }, other.authenticator)).toBe("revoked");
  });
});

// hardening: L5
test("keeps a key without expiry valid when the clock jumps an hour or a day", async () => {
  const { secret } = await all.addKey();
  for (const seconds of [3_600, -3_600, 86_400, -86_400]) {
    all.now.seconds += seconds;
    expect(await outcome({ apiKey: secret })).toBe("accepted");
  }
});

test("applies an expiry to the second, cached or not", async () => {
  const { secret } = await all.addKey("live", { expiresAt: all.now.seconds + 1 });
  expect(await outcome({ apiKey: secret })).toBe("accepted");
  all.now.seconds += 1;
  expect(await outcome({ apiKey: secret })).toBe("expired");
  expect(reads()).toBe(1);
});

describe("an unavailable store", () => {
  const fail = () => {
    all.keySwitch.failure = new Error("disk gone");
  };

  test("keeps a cached key working for the grace period, but no longer than its expiry or revocation", async () => {
    const { secret } = await all.addKey();
    const expiring = await all.addKey("live", { expiresAt: all.now.seconds + 100 });
    const ending = await all.addKey("live", { revokedAt: all.now.seconds + 200 });
    for (const { secret: key } of [expiring, ending, { secret }])
      expect(await outcome({ apiKey: key })).toBe("accepted");
    fail();
    for (const seconds of [1, 99, 100, 200, 300]) {
      all.now.seconds = 1_800_000_000 + seconds;
      all.now.ms = seconds * 1000;
      expect(await outcome({ apiKey: secret })).toBe("accepted");
      expect(await outcome({ apiKey: expiring.secret })).toBe(seconds < 100 ? "accepted" : "expired");
      expect(await outcome({ apiKey: ending.secret })).toBe(seconds < 200 ? "accepted" : "revoked");
    }
    all.now.ms += 1;
    expect(await outcome({ apiKey: secret })).toBe("service_unavailable");
    all.keySwitch.failure = undefined;
    expect(await outcome({ apiKey: secret })).toBe("accepted");
  });

  test("applies the configured grace period", async () => {
    const { secret } = await all.addKey();
    const other = await all.startProcess({ graceSeconds: 10 });
    expect(await outcome({ apiKey: secret }, other.authenticator)).toBe("accepted");
    other.keySwitch.failure = new Error("disk gone");
    all.now.ms = 10_000;
    expect(await outcome({ apiKey: secret }, other.authenticator)).toBe("accepted");
    all.now.ms = 10_001;
    expect(await outcome({ apiKey: secret }, other.authenticator)).toBe("service_unavailable");
  });

  test("answers an uncached key with service_unavailable while the store is unavailable", async () => {
    const { secret } = await all.addKey();
    fail();
    expect(await outcome({ apiKey: secret })).toBe("service_unavailable");
    expect(await outcome({ apiKey: generateApiKey("live") })).toBe("service_unavailable");
    const error = await Promise.resolve(all.authenticator.authenticate(presented({ apiKey: secret }))).catch((e) => e);
    expect(error).toMatchObject({ retryAfterSeconds: 1, message: expect.stringContaining("cannot be reached") });
  });

  test("does not use a cached key from before a known change while the store is unavailable", async () => {
    const { secret, id } = await all.addKey();
    expect(await outcome({ apiKey: secret })).toBe("accepted");
    await revoke(id);
    all.authenticator.invalidate();
    fail();
    expect(await outcome({ apiKey: secret })).toBe("service_unavailable");
  });

  test("drops only the credentials that a reported change affects", async () => {
    const maker = await all.addKey();
    const child = await all.addKey("live", { parentId: maker.id });
    const other = await all.addKey();
    const chains = [maker, child, other];
    for (const { secret } of chains) expect(await outcome({ apiKey: secret })).toBe("accepted");
    fail();
    all.now.ms += 10;
    await all.authenticator.hint([maker.id, "grant_of_somebody_else"]);
    const outcomes = async () => Promise.all(chains.map(({ secret }) => outcome({ apiKey: secret })));
    expect(await outcomes()).toEqual(["service_unavailable", "service_unavailable", "accepted"]);
    expect(await all.authenticator.checkStore()).toBe("away");
    all.now.ms += 10;
    await all.authenticator.hint([other.record.accountId]);
    expect(await outcomes()).toEqual(Array(3).fill("service_unavailable"));
    // No cached credential is left.
    expect(await all.authenticator.checkStore()).toBe("gone");
  });

  test("drops every credential after a reported change without ids", async () => {
    const { secret } = await all.addKey();
    expect(await outcome({ apiKey: secret })).toBe("accepted");
    fail();
    all.now.ms += 10;
    await all.authenticator.hint();
    expect(await outcome({ apiKey: secret })).toBe("service_unavailable");
    expect(all.authenticator.storeStatus).toBe("gone");
  });

  test("applies new limits to cached keys while the store is unavailable", async () => {
    let limit = 1;
    const requests = () => [{ id: "key:x", owner: "key" as const, limit, windowSeconds: 60 }];
    const it = await all.startProcess({ limitsOf: () => ({ requests: requests(), tokens: [], quotas: [] }) });
    const { secret } = await all.addKey();
    const authenticated = async () => it.authenticator.authenticate(presented({ apiKey: secret }));
    expect((await authenticated()).limits.requests).toMatchObject([{ limit: 1 }]);
    it.keySwitch.failure = new Error("disk gone");
    await it.authenticator.checkStore();
    limit = 2;
    it.authenticator.limitsChanged();
    expect((await authenticated()).limits.requests).toMatchObject([{ limit: 2 }]);
  });

  test("applies revocations as soon as the store is back, and logs its loss and return once", async () => {
    const other = await all.startProcess({ pollMs: 2 });
    const events = () => other.log.lines.map(({ event }) => event);
    const { secret, id } = await all.addKey();
    expect(await outcome({ apiKey: secret }, other.authenticator)).toBe("accepted");
    other.keySwitch.failure = new Error("disk gone");
    await revoke(id);
    all.now.ms = 60_000;
    other.authenticator.start();
    await until(() => events().length > 0 && (other.keySwitch.calls["credentialRevision"] ?? 0) > 5);
    expect(await outcome({ apiKey: secret }, other.authenticator)).toBe("accepted");
    other.keySwitch.failure = undefined;
    await until(() => events().length > 1);
    expect(await outcome({ apiKey: secret }, other.authenticator)).toBe("revoked");
    expect(events()).toEqual(["key_store_unreachable", "key_store_reachable"]);
  });

  test("delays a cached key once, and less than two seconds, if the store never answers", async () => {
    const { secret } = await all.addKey();
    expect(await outcome({ apiKey: secret })).toBe("accepted");
    const gate = Promise.withResolvers<void>();
    all.keySwitch.held = gate.promise;
    all.now.ms = 1_000;
    const startedMs = performance.now();
    expect(await outcome({ apiKey: secret })).toBe("accepted");
    expect(performance.now() - startedMs).toBeLessThan(withinMs(2_000));
    expect(all.authenticator.authenticate(presented({ apiKey: secret }))).not.toBeInstanceOf(Promise);
    gate.resolve();
  });

  test("bounds the concurrent lookups of a flood of made-up keys and answers 503 beyond the queue", async () => {
    expect(await outcome({ apiKey: (await all.addKey()).secret })).toBe("accepted");
    const gate = Promise.withResolvers<void>();
    all.keySwitch.held = gate.promise;
    const flood = Array.from({ length: 3_000 }, () => outcome({ apiKey: generateApiKey("live") }));
    await until(() => reads() >= 1 + 32);
    expect(reads()).toBe(1 + 32);
    gate.resolve();
    const outcomes = await Promise.all(flood);
    expect(outcomes.filter((code) => code === "unknown")).toHaveLength(2_032);
    expect(outcomes.filter((code) => code === "service_unavailable")).toHaveLength(968);
    expect(await outcome({ apiKey: (await all.addKey()).secret })).toBe("accepted");
  });
});

describe("users and apps", () => {
  const person = { id: "usr_1", isOperator: false, sessionId: "ses_1" };
  const addMembership = (more: Partial<ApiKeyRecord> = {}) =>
    all.addKey("live", { id: "mbr_1_live", kind: "membership", personId: "usr_1", role: "member", ...more });
  const addGrant = (appId: string, more: Partial<ApiKeyRecord> = {}) =>
    all.addKey("live", { id: "grt_1", kind: "grant", personId: "usr_1", appId, parentId: "mbr_1_live", ...more });
  const tokenOf = async (
    appId: string,
    more: Partial<GrantTokenRequest["grant"] & { personId: string }> = {},
    granted: readonly Scope[] = accountScopes,
  ) => {
    const grant = { id: "grt_1", personId: "usr_1", accountId: all.accountId, environment: "live" as const, ...more };
    const resources = ["/v1"];
    const request = { grant, personId: grant.personId, appId, scopes: granted, resources, expiresIn: 600 };
    return `Bearer ${(await all.tokens.issueForGrant(request)).accessToken}`;
  };
  const asMember = (who = person, id = "mbr_1_live", environment: "live" | "dev" = "live", isLocal = true) =>
    all.authenticator.member(
      id,
      environment,
      who,
      presented({ whyNotLocal: () => (isLocal ? undefined : "it is elsewhere") }),
    );
  const reasonOf = (attempt: Promise<unknown>) =>
    attempt.then(
      () => "accepted",
      (error) => error.detail,
    );

  test("gives a signed-in member the membership's role and scopes, and admin:manage to operators only", async () => {
    await addMembership();
    const member = await asMember();
    expect(member).toMatchObject({ appId: null, person: { ...person, role: "member" } });
    expect([...member.scopes]).toEqual([...accountScopes]);
    const operator = await asMember({ ...person, isOperator: true });
    expect([...operator.scopes]).toEqual([...accountScopes, "admin:manage"]);
    // The rights of one request are not kept for the next.
    expect((await asMember()).scopes.has("admin:manage")).toBe(false);
  });

  test("rejects another user's membership, a key's id as membership, and a membership elsewhere", async () => {
    await addMembership();
    await addMembership({ id: "mbr_1_dev", environment: "dev" });
    const { id } = await all.addKey("live");
    expect(await reasonOf(asMember({ ...person, id: "usr_2" }))).toBe("no_member");
    expect(await reasonOf(asMember(person, id))).toBe("no_member");
    expect(await reasonOf(asMember(person, "mbr_none"))).toBe("unknown");
    expect(await reasonOf(asMember(person, "mbr_1_dev"))).toBe("environment");
    expect(await reasonOf(asMember(person, "mbr_1_dev", "dev", false))).toBe("dev_key_not_local");
    expect(await reasonOf(asMember(person, "mbr_1_dev", "dev"))).toBe("accepted");
    await revoke("mbr_1_live");
    all.authenticator.invalidate();
    expect(await reasonOf(asMember())).toBe("revoked");
  });

  test("lets a CLI token act for its user without operator rights, and any other app's token for the app", async () => {
    await addMembership({ scopes: ["chat:read", "models:read"] });
    await addGrant("headrace-cli");
    await addGrant("app_1", { id: "grt_2" });
    const authenticate = async (authorization: string) => all.authenticator.authenticate(presented({ authorization }));
    const login = await authenticate(await tokenOf("headrace-cli", {}, scopes));
    expect(login).toMatchObject({ appId: null, person: { id: "usr_1", role: "member", isOperator: false } });
    expect([...login.scopes]).toEqual(["chat:read", "models:read"]);
    const app = await authenticate(await tokenOf("app_1", { id: "grt_2" }));
    expect([app.appId, app.person, [...app.scopes]]).toEqual(["app_1", undefined, ["chat:read", "models:read"]]);
  });

  test("binds a token to the app, account and environment of its grant, and ends it with either", async () => {
    await addMembership();
    await addGrant("app_1");
    const accepted = async (...of: Parameters<typeof tokenOf>) => outcome({ authorization: await tokenOf(...of) });
    expect(await accepted("app_1")).toBe("accepted");
    expect(await accepted("headrace-cli")).toBe("token_app");
    expect(await accepted("app_1", { accountId: "acct_2" })).toBe("token_account");
    expect(await accepted("app_1", { environment: "test" })).toBe("environment");
    expect(await accepted("app_1", { personId: "usr_2" })).toBe("token_person");
    // The token of a grant does not count for the membership behind it, nor for a key.
    expect(await accepted("app_1", { id: "mbr_1_live" })).toBe("token_app");
    expect(await accepted("app_1", { id: (await all.addKey("live")).id })).toBe("token_app");
    await revoke("mbr_1_live");
    all.authenticator.invalidate();
    expect(await accepted("app_1")).toBe("ancestor_revoked");
    await revoke("grt_1");
    all.authenticator.invalidate();
    expect(await accepted("app_1")).toBe("revoked");
  });
});
