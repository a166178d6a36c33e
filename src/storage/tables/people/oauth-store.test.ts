// Codes, tokens and grants in real databases of both kinds: a code works once for any number of concurrent callers, and
// an ended grant stays ended.
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { testEvent } from "../../../../tests/support/credentials.ts";
import { onEachDatabase, type TestDatabase } from "../../../../tests/support/databases.ts";
import { accountFor, keyRecordFor } from "../../../../tests/support/principal.ts";
import { explained } from "../../../../tests/support/query-plans.ts";
import { storedDeviceCode } from "../../../../tests/support/stored-devices.ts";
import type { AuditAction, AuditEvent } from "../../../domain/audit.ts";
import { commandLineAppId } from "../../../domain/people/app.ts";
import type { Authorization, AuthorizationCode, DeviceCode, RefreshToken } from "../../../domain/people/oauth.ts";
import { membershipCredentialId } from "../../../domain/people/person.ts";
import type { ApiKeyRecord } from "../../../domain/principal.ts";
import type { Database } from "../../sql/database.ts";
import { SqlAccountStore } from "../account-store.ts";
import { SqlAuditLog } from "../audit-log.ts";
import { SqlKeyStore } from "../key-store.ts";
import { readLiveGrants } from "./allowed-apps.ts";
import { SqlAppStore } from "./app-store.ts";
import { addGrant } from "./grants.ts";
import { SqlOAuthStore } from "./oauth-store.ts";

const now = 1_800_000_000;
const day = 86_400;

let opened: TestDatabase;
let db: Database;
let oauth: SqlOAuthStore;
let apps: SqlAppStore;
let keys: SqlKeyStore;
let accounts: SqlAccountStore;
let accountId: string;

onEachDatabase((databases) => {
  beforeEach(async () => {
    opened = await databases.open();
    ({ db } = opened);
    oauth = new SqlOAuthStore(db);
    apps = new SqlAppStore(db);
    keys = new SqlKeyStore(db);
    accounts = new SqlAccountStore(db);
    accountId = await accounts.ensureFirstAccount(now);
    await keys.insertKey(membership(), testEvent(now));
    await addApp("app_1");
  });

  afterEach(async () => {
    await opened.close();
  });

  const membershipId = "mbr_1";
  const membership = () =>
    keyRecordFor({
      ...{ id: membershipCredentialId(membershipId, "live"), kind: "membership", accountId, personId: "usr_1" },
      role: "member",
    });

  function addApp(id: string): Promise<void> {
    const app = {
      id,
      accountId,
      personId: null,
      name: `App ${id}`,
      homepageUrl: "https://app.example",
      createdBy: null,
    };
    const registered = {
      type: "public",
      redirectUris: [],
      scopes: [],
      environment: "live",
      tools: null,
      requirePkce: true,
      suspendedBy: null,
    } as const;
    return apps.insertApp({ ...app, ...registered, secrets: [], createdAt: now }, event("app.created"));
  }

  function event(action: AuditAction = "grant.created", at = now): AuditEvent {
    return { ...testEvent(at), action, accountId };
  }

  const authorization = (more: Partial<Authorization> = {}): Authorization => ({
    ...{ appId: "app_1", personId: "usr_1", accountId, membershipId, environment: "live" },
    scopes: ["chat:write", "models:read"],
    tools: null,
    quotas: null,
    ...more,
  });

  const code = (more: Partial<AuthorizationCode> = {}): AuthorizationCode => ({
    ...authorization(),
    resources: ["/v1", "/mcp"],
    ...{ digest: "code", redirectUri: "https://app.example/callback?a=1", codeChallenge: "challenge" },
    ...{ createdAt: now, expiresAt: now + 60, grantId: null },
    ...more,
  });

  const refreshToken = (grantId: string, more: Partial<RefreshToken> = {}): RefreshToken => ({
    ...{ digest: `token of ${grantId}`, grantId, createdAt: now, expiresAt: now + 30 * day },
    ...{ resources: ["/mcp/github"], usedAt: null, sealedAnswer: null },
    ...more,
  });

  const deviceCode = (more: Partial<DeviceCode> = {}): DeviceCode => ({
    ...{ digest: "device", userCode: "BCDFGHJK", appId: commandLineAppId, environment: "live", scopes: ["chat:write"] },
    ...{ tools: null, quotas: null, resources: ["/v1"] },
    ...{ createdAt: now, expiresAt: now + 600, intervalSeconds: 5, polledAt: null, state: "pending" },
    ...{ personId: null, accountId: null, membershipId: null, grantId: null },
    ...more,
  });

  function issued(id: string, more: Partial<ApiKeyRecord> = {}) {
    const parentId = membershipCredentialId(membershipId, "live");
    const grant = keyRecordFor({
      ...{ id, kind: "grant", accountId, appId: "app_1", personId: "usr_1", parentId, createdAt: now },
      ...{ digest: id, scopes: ["chat:write", "models:read"] },
      ...more,
    });
    return { grant, refreshToken: refreshToken(id) };
  }

  async function redeemed(id: string, more: Partial<ApiKeyRecord> = {}, at = now): Promise<void> {
    await oauth.insertCode(code({ digest: `code of ${id}`, appId: more.appId ?? "app_1" }), event());
    const events = { issued: event("grant.created", at), replayed: event("grant.replayed", at) };
    expect(await oauth.redeemCode(`code of ${id}`, issued(id, more), events)).toBe("issued");
  }

  const actions = async () =>
    (await new SqlAuditLog(db).list({}, { after: undefined, limit: 100 })).map((e) => e.action);
  const isRevoked = async (id: string) => (await keys.findChainById(id))?.keys[0].revoked;
  const times = <Value>(count: number, make: (n: number) => Value) => Array.from({ length: count }, (_, n) => make(n));

  describe("a stored authorization code", () => {
    test("finds a code as stored", async () => {
      await oauth.insertCode(code(), event());
      await oauth.insertCode(code({ digest: "bare", redirectUri: null, codeChallenge: null, scopes: [] }), event());
      expect(await oauth.findCode("code")).toEqual(code());
      expect(await oauth.findCode("bare")).toEqual(
        code({ digest: "bare", redirectUri: null, codeChallenge: null, scopes: [] }),
      );
      expect(await oauth.findCode("none")).toBeUndefined();
    });

    // hardening: A8
    test("redeems a code once for 50 concurrent redemptions, and ends the grant as replayed", async () => {
      await oauth.insertCode(code(), event());
      const before = await keys.credentialRevision();
      const outcomes = await Promise.all(
        times(50, (n) => {
          const events = { issued: event(), replayed: event("grant.replayed") };
          return oauth.redeemCode("code", issued(`grt_${n}`), events);
        }),
      );
      expect(outcomes.filter((outcome) => outcome === "issued")).toHaveLength(1);
      expect(outcomes.filter((outcome) => outcome === "replayed")).toHaveLength(49);
      const [grant, ...others]: { id: string }[] = await db`SELECT id FROM api_keys WHERE kind = 'grant'`;
      expect(others).toEqual([]);
      expect(await isRevoked(grant?.id ?? "")).toBeTrue();
      expect(await keys.credentialRevision()).toBe(before + 1);
      const reported = await new SqlAuditLog(db).list({}, { after: undefined, limit: 100 });
      expect(reported.filter(({ action }) => action === "grant.created")).toHaveLength(1);
      const replays = reported.filter(({ action }) => action === "grant.replayed");
      expect(replays.map(({ targetId }) => targetId)).toEqual([grant?.id ?? ""]);
    });

    test("refuses a code if the app, the membership or the account is gone", async () => {
      await oauth.insertCode(code(), event());
      const redeem = (more: Partial<ApiKeyRecord> = {}) =>
        oauth.redeemCode("code", issued("grt_1", more), { issued: event(), replayed: event() });
      expect(await redeem({ appId: "app_unknown" })).toBe("refused");
      expect(await redeem({ parentId: "mbr_unknown_live" })).toBe("refused");
      expect(await redeem({ personId: "usr_2" })).toBe("refused");
      expect(await redeem({ environment: "dev" })).toBe("refused");
      await accounts.updateAccount(accountId, { status: "suspended" }, event());
      expect(await redeem()).toBe("refused");
      await accounts.updateAccount(accountId, { status: "active" }, event());
      expect(await oauth.findCode("code")).toEqual(code());
      const publisher = accountFor({ id: "acct_publisher", tier: "enterprise", status: "suspended" });
      await accounts.insertAccount(publisher, event("account.created"));
      await db`UPDATE apps SET account_id = ${publisher.id} WHERE id = 'app_1'`;
      expect(await redeem()).toBe("refused");
      await db`UPDATE apps SET account_id = ${accountId} WHERE id = 'app_1'`;
      await keys.updateKey(membership().id, { revokedAt: now }, event());
      expect(await redeem()).toBe("refused");
      expect(await oauth.findCode("code")).toEqual(code());
    });
  });

  describe("a user's consent", () => {
    const approval = () =>
      oauth.decideDeviceCode("BCDFGHJK", { state: "approved", authorization: authorization() }, event());
    const stored = async () => [await oauth.findCode("code"), (await storedDeviceCode(db, "device"))?.state];

    beforeEach(() => oauth.insertDeviceCode(deviceCode({ appId: "app_1" })));

    test.each<[string, () => Promise<unknown>]>([
      ["the membership has ended", () => keys.updateKey(membership().id, { revokedAt: now }, event())],
      ["the account is suspended", () => accounts.updateAccount(accountId, { status: "suspended" }, event())],
      ["the app is deleted", () => db`DELETE FROM apps WHERE id = 'app_1'`],
    ])("does not store a consent if %s meanwhile", async (_, end) => {
      await end();
      expect(await oauth.insertCode(code(), event())).toBeFalse();
      expect(await approval()).toBeFalse();
      expect(await stored()).toEqual([undefined, "pending"]);
    });

    test("stores a consent only for the user's own membership", async () => {
      const ofAnother = { personId: "usr_2" };
      expect(await oauth.insertCode(code(ofAnother), event())).toBeFalse();
      const approved = { state: "approved", authorization: authorization(ofAnother) } as const;
      expect(await oauth.decideDeviceCode("BCDFGHJK", approved, event())).toBeFalse();
      expect(await stored()).toEqual([undefined, "pending"]);
      expect(await oauth.insertCode(code(), event())).toBeTrue();
      expect(await approval()).toBeTrue();
      expect(await stored()).toEqual([code(), "approved"]);
    });
  });

  describe("a stored refresh token", () => {
    const used = { at: now + 10, sealedAnswer: "sealed" };
    const successor = (n = 0) => refreshToken("grt_1", { digest: `next ${n}`, createdAt: now + 10 });

    test("returns a refresh token with its grant and the chain above it", async () => {
      await redeemed("grt_1");
      const found = await oauth.findRefreshToken("token of grt_1");
      expect(found?.token).toEqual(refreshToken("grt_1"));
      expect(found?.grant.keys.map(({ id }) => id)).toEqual(["grt_1", "mbr_1_live"]);
    });

    test("rotates a refresh token once for 50 concurrent uses, and shows the others the same answer", async () => {
      await redeemed("grt_1");
      const outcomes = await Promise.all(
        times(50, (n) => {
          const answer = { at: now + 10, sealedAnswer: `sealed ${n}` };
          return oauth.rotateRefreshToken("token of grt_1", successor(n), answer, event("grant.refreshed"));
        }),
      );
      const winner = outcomes.indexOf("rotated");
      expect(outcomes.filter((outcome) => outcome === "rotated")).toHaveLength(1);
      const seen = { ...refreshToken("grt_1"), usedAt: now + 10, sealedAnswer: `sealed ${winner}` };
      for (const outcome of outcomes) if (outcome !== "rotated") expect(outcome).toEqual(seen);
      const tokens = await db`SELECT digest FROM refresh_tokens ORDER BY digest`;
      expect([...tokens]).toEqual([{ digest: `next ${winner}` }, { digest: "token of grt_1" }]);
    });

    test("does not use up a refresh token whose grant has ended or whose member has left", async () => {
      await redeemed("grt_1");
      await redeemed("grt_2");
      expect(await oauth.revokeGrant("grt_1", event("grant.revoked"))).toBeTrue();
      expect(await oauth.revokeGrant("grt_1", event("grant.revoked"))).toBeFalse();
      expect(await oauth.revokeGrant("grt_unknown", event("grant.revoked"))).toBeFalse();
      const rotate = (digest: string) => oauth.rotateRefreshToken(digest, successor(), used, event());
      expect(await rotate("token of grt_1")).toEqual(refreshToken("grt_1"));
      await keys.updateKey(membership().id, { revokedAt: now }, event());
      expect(await rotate("token of grt_2")).toEqual(refreshToken("grt_2"));
      expect(await rotate("token of nobody")).toBeUndefined();
      expect(await oauth.findRefreshToken("next 0")).toBeUndefined();
    });

    test("keeps the sealed answer of a refresh token little longer than it may be repeated", async () => {
      await redeemed("grt_1");
      const next = (n: number, at: number) =>
        oauth.rotateRefreshToken(
          n === 0 ? "token of grt_1" : `next ${n - 1}`,
          refreshToken("grt_1", { digest: `next ${n}` }),
          { at, sealedAnswer: `sealed ${n}` },
          event(),
        );
      await next(0, now);
      await next(1, now + 5);
      const answers = async () =>
        [...(await db`SELECT sealed_answer FROM refresh_tokens ORDER BY used_at NULLS LAST`)].map(
          (row) => row.sealed_answer,
        );
      expect(await answers()).toEqual(["sealed 0", "sealed 1", null]);
      await next(2, now + 65);
      expect(await answers()).toEqual([null, null, "sealed 2", null]);
    });

    test("does not revoke a membership as a grant", async () => {
      expect(await oauth.revokeGrant(membership().id, event("grant.revoked"))).toBeFalse();
    });
  });

  test("ends the oldest of more than 50 grants for an app or 20 logins, and returns them", async () => {
    for (let n = 0; n < 52; n++) await redeemed(`grt_${n}`, { createdAt: now + n });
    for (let n = 0; n < 21; n++) await redeemed(`login_${n}`, { appId: commandLineAppId, createdAt: now + n });
    const live: { id: string }[] = await db`
    SELECT id FROM api_keys WHERE kind = 'grant' AND revoked = 0 ORDER BY created_at`;
    const ids = live.map(({ id }) => id);
    expect(ids).toHaveLength(70);
    for (const ended of ["grt_0", "grt_1", "login_0"]) expect(ids).not.toContain(ended);
    expect((await actions()).filter((action) => action === "grant.revoked")).toHaveLength(3);
  });

  describe("a stored device code", () => {
    const approve = (more: Partial<Authorization> = {}, at = now) =>
      oauth.decideDeviceCode(
        "BCDFGHJK",
        { state: "approved", authorization: authorization({ appId: commandLineAppId, ...more }) },
        event("device.approved", at),
      );

    test("finds a device code as stored, by its user code only while it is pending and valid", async () => {
      expect(await oauth.insertDeviceCode(deviceCode())).toBeTrue();
      expect(await storedDeviceCode(db, "device")).toEqual(deviceCode());
      expect(await oauth.findByUserCode("BCDFGHJK", now + 599)).toEqual(deviceCode());
      expect(await oauth.findByUserCode("BCDFGHJK", now + 600)).toBeUndefined();
      expect(await oauth.findByUserCode("ZZZZZZZZ", now)).toBeUndefined();
      await approve();
      expect(await oauth.findByUserCode("BCDFGHJK", now)).toBeUndefined();
    });

    test("never stores two pending device codes with the same user code", async () => {
      await oauth.insertDeviceCode(deviceCode());
      expect(await oauth.insertDeviceCode(deviceCode({ digest: "other" }))).toBeFalse();
      await approve();
      expect(await oauth.insertDeviceCode(deviceCode({ digest: "other" }))).toBeTrue();
    });

    // hardening: A12
    test("adds five seconds to the polling interval for each early poll of a device code", async () => {
      await oauth.insertDeviceCode(deviceCode());
      const poll = async (at: number) => {
        const polled = await oauth.pollDeviceCode("device", at);
        return [polled?.tooEarly, polled?.code.intervalSeconds];
      };
      expect(await poll(now)).toEqual([false, 5]);
      expect(await poll(now + 5)).toEqual([false, 5]);
      expect(await poll(now + 9)).toEqual([true, 10]);
      expect(await poll(now + 18)).toEqual([true, 15]);
      expect(await poll(now + 33)).toEqual([false, 15]);
      // After a clock was set back, a poll is not treated as too early.
      expect(await poll(now - 3_600)).toEqual([false, 15]);
      expect(await poll(now - 3_590)).toEqual([true, 20]);
      expect(await oauth.pollDeviceCode("unknown", now)).toBeUndefined();
    });

    test("decides a device code once, in time, and for its own app", async () => {
      await oauth.insertDeviceCode(deviceCode());
      expect(await approve({}, now + 600)).toBeFalse();
      expect(await approve({ appId: "app_1" })).toBeFalse();
      const outcomes = await Promise.all([approve(), approve()]);
      expect(outcomes.toSorted()).toEqual([false, true]);
      expect(await oauth.decideDeviceCode("BCDFGHJK", { state: "denied" }, event("device.denied"))).toBeFalse();
      expect(await storedDeviceCode(db, "device")).toEqual(
        deviceCode({
          ...{ state: "approved", personId: "usr_1", accountId, membershipId, scopes: ["chat:write", "models:read"] },
        }),
      );
      await oauth.insertDeviceCode(deviceCode({ digest: "denied" }));
      expect(await oauth.decideDeviceCode("BCDFGHJK", { state: "denied" }, event("device.denied"))).toBeTrue();
      expect((await storedDeviceCode(db, "denied"))?.state).toBe("denied");
      expect((await actions()).filter((action) => action.startsWith("device."))).toEqual([
        "device.denied",
        "device.approved",
      ]);
    });

    test("redeems an approved device code once for 20 concurrent redemptions", async () => {
      await oauth.insertDeviceCode(deviceCode());
      const redeem = (n: number, more: Partial<ApiKeyRecord> = {}) =>
        oauth.redeemDeviceCode("device", issued(`grt_${n}`, { appId: commandLineAppId, ...more }), event());
      expect(await redeem(0)).toBeFalse();
      await approve();
      expect(await redeem(0, { personId: "usr_2" })).toBeFalse();
      const outcomes = await Promise.all(times(20, redeem));
      expect(outcomes.filter(Boolean)).toHaveLength(1);
      const [grants] = await db`SELECT count(*) AS n FROM api_keys WHERE kind = 'grant'`;
      expect(Number(grants.n)).toBe(1);
      expect((await storedDeviceCode(db, "device"))?.state).toBe("redeemed");
    });
  });

  describe("apps that a user allowed", () => {
    databases.only("sqlite", "reads current grants alone, however many have ended", async () => {
      const plans = new Set<string>();
      await addGrant(explained(db, plans), issued("grt_1"), event());
      expect(await readLiveGrants(explained(db, plans), "usr_1", now)).toHaveLength(1);
      const reads = [...plans].filter((step) => /(?:api_keys|\bg) USING INDEX/.test(step));
      const isBounded = (step: string) =>
        step.includes("api_keys_live_grants (person_id=?") ||
        step.includes("api_keys_ended_grants (person_id=? AND app_id=? AND account_id=? AND environment=?)");
      expect(reads.filter((step) => !isBounded(step))).toEqual([]);
      expect([...plans].filter((step) => step.includes("TEMP B-TREE") && step.includes("LAST"))).toEqual([]);
      expect(reads.length).toBeGreaterThan(0);
    });

    test("lists each allowed app with an active grant once for an account", async () => {
      await addApp("app_2");
      await addApp("app_3");
      await redeemed("grt_1", { lastUsedAt: now + 7 });
      await redeemed("grt_2", { scopes: ["usage:read"], createdAt: now + 1 });
      await redeemed("grt_3", { appId: commandLineAppId, scopes: ["keys:manage"], createdAt: now + 2 });
      await redeemed("grt_4", { appId: "app_2", createdAt: now + 3 });
      await redeemed("grt_5", { appId: "app_3", createdAt: now + 4 });
      await oauth.revokeGrant("grt_5", event("grant.revoked"));
      const account = await accounts.findAccount(accountId);
      const common = { accountId, accountName: account?.name, environment: "live", tools: null, quotas: [] };
      const found = await oauth.listAllowedApps("usr_1", now);
      expect(found[0]).toEqual({
        ...{ ...common, appId: "app_1", appName: "App app_1", publisher: account?.name, allowedAt: now },
        ...{ homepageUrl: "https://app.example", scopes: ["chat:write", "models:read", "usage:read"] },
        ...{ lastUsedAt: now + 7, limitId: found[0]?.limitId },
      } as never);
      expect(found[1]).toEqual({
        ...{ ...common, appId: commandLineAppId, appName: "Headrace command line", publisher: "Headrace" },
        ...{ homepageUrl: null, scopes: ["keys:manage"], allowedAt: now + 2, lastUsedAt: null },
        limitId: found[1]?.limitId,
      } as never);
      expect(found.map(({ limitId }) => limitId.slice(0, 4))).toEqual(["grt_", "grt_", "grt_"]);
      expect(found.map(({ appId }) => appId)).toEqual(["app_1", commandLineAppId, "app_2"]);
      expect(await oauth.listAllowedApps("usr_2", now)).toEqual([]);
      expect(await oauth.listAllowedApps("usr_1", now + 30 * day)).toEqual([]);
      expect((await oauth.allowedBefore(authorization(), now)).scopes).toEqual([
        "chat:write",
        "models:read",
        "usage:read",
      ]);
      for (const other of [{ appId: "app_4" }, { personId: "usr_2" }, { membershipId: "mbr_2" }] as const) {
        expect((await oauth.allowedBefore(authorization(other), now)).scopes).toEqual([]);
      }
      expect((await oauth.allowedBefore(authorization({ environment: "dev" }), now)).scopes).toEqual([]);
      await keys.updateKey(membership().id, { revokedAt: now }, event());
      expect(await oauth.listAllowedApps("usr_1", now)).toEqual([]);
    });

    test("removes allowed apps with all grants and unredeemed codes", async () => {
      await addApp("app_2");
      await redeemed("grt_1");
      await redeemed("grt_2");
      await redeemed("grt_3", { appId: "app_2" });
      await oauth.insertCode(code(), event());
      await oauth.insertDeviceCode(deviceCode({ appId: "app_1" }));
      await oauth.decideDeviceCode("BCDFGHJK", { state: "approved", authorization: authorization() }, event());
      const revoke = (account: string | undefined) =>
        oauth.revokeAllowedApp("usr_1", "app_1", account, event("grant.revoked"));
      expect(await revoke("acct_other")).toBe(0);
      expect(await oauth.findCode("code")).toBeDefined();
      const before = await keys.credentialRevision();
      expect(await revoke(accountId)).toBe(2);
      expect(await keys.credentialRevision()).toBe(before + 1);
      expect(await revoke(undefined)).toBe(0);
      expect(await Promise.all(["grt_1", "grt_2", "grt_3"].map(isRevoked))).toEqual([true, true, false]);
      expect(await oauth.findCode("code")).toBeUndefined();
      expect(await storedDeviceCode(db, "device")).toBeUndefined();
      // A redeemed code is kept, so that a replay is still recognized.
      expect(await oauth.findCode("code of grt_1")).toBeDefined();
    });
  });

  test("deletes what ended long ago, and ends a grant that was unused for that long", async () => {
    await redeemed("grt_1");
    await redeemed("grt_2");
    await oauth.insertDeviceCode(deviceCode());
    const successor = refreshToken("grt_2", { digest: "next", expiresAt: now + 40 * day });
    await oauth.rotateRefreshToken("token of grt_2", successor, { at: now, sealedAnswer: "sealed" }, event());
    const counts = async () => {
      const [row] = await db`SELECT (SELECT count(*) FROM authorization_codes) AS codes,
      (SELECT count(*) FROM device_codes) AS devices, (SELECT count(*) FROM refresh_tokens) AS tokens`;
      return [row.codes, row.devices, row.tokens].map(Number);
    };
    await oauth.prune(now + 600 + 3_599);
    expect(await counts()).toEqual([2, 1, 3]);
    await oauth.prune(now + 600 + 3_600);
    expect(await counts()).toEqual([2, 0, 3]);
    await oauth.prune(now + 60 + day);
    expect(await counts()).toEqual([0, 0, 3]);
    await oauth.prune(now + 31 * day - 1);
    expect(await counts()).toEqual([0, 0, 3]);
    expect(await isRevoked("grt_1")).toBeFalse();
    await oauth.prune(now + 31 * day);
    expect(await counts()).toEqual([0, 0, 1]);
    expect([await isRevoked("grt_1"), await isRevoked("grt_2")]).toEqual([true, false]);
  });

  test("unites the tools of a user's grants for an app, and stores one list at a change", async () => {
    const scopes = ["tools:use"] as const;
    const tools = async () => (await oauth.listAllowedApps("usr_1", now)).map((one) => one.tools);
    await redeemed("grt_1", { scopes, tools: ["crm/read", "git*"] });
    await redeemed("grt_2", { scopes, tools: ["crm", "github"], createdAt: now + 1 });
    await redeemed("grt_3", { createdAt: now + 2 });
    expect(await tools()).toEqual([["crm", "git*"]]);
    expect((await oauth.allowedBefore(authorization(), now)).tools).toEqual(["crm", "git*"]);
    const of = { personId: "usr_1", appId: "app_1", accountId };
    expect(await oauth.limitAllowedApp(of, { tools: ["github"] }, event("grant.limited"))).toBe(3);
    expect(await tools()).toEqual([["github"]]);
    await redeemed("grt_4", { scopes, createdAt: now + 3 });
    expect(await tools()).toEqual([null]);
  });

  test("gives a grant the budget of the app's other grants in the same environment", async () => {
    const parentId = membershipCredentialId(membershipId, "dev");
    const membership = { id: parentId, digest: parentId, kind: "membership", accountId, personId: "usr_1" } as const;
    await keys.insertKey(keyRecordFor({ ...membership, environment: "dev" }), event());
    await redeemed("grt_1");
    const of = { personId: "usr_1", appId: "app_1", accountId };
    const quotas = [{ per: "month", tokens: 5 }] as never;
    expect(await oauth.limitAllowedApp(of, { quotas }, event("grant.limited"))).toBe(1);
    await redeemed("grt_2", { createdAt: now + 1 });
    await redeemed("grt_3", { environment: "dev", parentId, createdAt: now + 2, limitId: "grt_3" });
    const limitOf = async (id: string) => (await keys.findChainById(id))?.keys[0].limitId;
    expect(await limitOf("grt_2")).toBe((await limitOf("grt_1")) ?? "");
    expect(await limitOf("grt_3")).toBe("grt_3");
  });

  test("keeps the cap and the budget of an app that ends its grants and asks again", async () => {
    const limitsOf = async (id: string) => {
      const key = (await keys.findChainById(id))?.keys[0];
      return { quotas: key?.quotas, limitId: key?.limitId };
    };
    const of = { personId: "usr_1", appId: "app_1", accountId };
    const quotas = [{ per: "month", usd: 5 }] as never;
    await redeemed("grt_1");
    await oauth.limitAllowedApp(of, { quotas }, event("grant.limited"));
    const capped = await limitsOf("grt_1");
    await oauth.revokeGrant("grt_1", event("grant.revoked", now + 1));
    await redeemed("grt_2", { createdAt: now + 2 });
    expect(await limitsOf("grt_2")).toEqual(capped);
    await oauth.revokeGrant("grt_2", event("grant.revoked", now + 3));
    const raised = [{ per: "month", usd: 9 }] as never;
    await redeemed("grt_3", { createdAt: now + 4, quotas: raised });
    expect(await limitsOf("grt_3")).toEqual({ ...capped, quotas: raised });
    // A cap that the person removed does not come back.
    await oauth.limitAllowedApp(of, { quotas: [] }, event("grant.limited"));
    await redeemed("grt_4", { createdAt: now + 5 });
    expect((await limitsOf("grt_4")).quotas).toEqual([]);
    for (const id of ["grt_3", "grt_4"]) await oauth.revokeGrant(id, event("grant.revoked", now + 6));
    await redeemed("grt_5", { createdAt: now + 7 });
    expect((await limitsOf("grt_5")).quotas).toEqual([]);
  });

  test("limits a grant to the app's present tools, whatever was allowed", async () => {
    const toolsOf = async (id: string) => (await keys.findChainById(id))?.keys[0].tools;
    await redeemed("grt_1", { tools: ["crm", "github"] });
    await redeemed("grt_2", { createdAt: now + 1 });
    await apps.updateApp("app_1", { tools: ["crm/read"] }, event("app.updated"));
    expect([await toolsOf("grt_1"), await toolsOf("grt_2")]).toEqual([["crm/read"], ["crm/read"]]);
    await apps.updateApp("app_1", { tools: null }, event("app.updated"));
    expect([await toolsOf("grt_1"), await toolsOf("grt_2")]).toEqual([["crm", "github"], null]);
  });

  test("deletes any number of ended codes at once", async () => {
    await oauth.insertCode(code({ digest: "old 0" }), event());
    await db`
    WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1200)
    INSERT INTO authorization_codes
    SELECT 'old ' || i, app_id, person_id, account_id, membership_id, environment, scopes, redirect_uri, code_challenge,
      created_at, expires_at, grant_id, resources, tools, quotas
    FROM n, authorization_codes`;
    await oauth.insertCode(code({ digest: "new", expiresAt: now + day + 61 }), event());
    await oauth.prune(now + 60 + day);
    expect([...(await db`SELECT digest FROM authorization_codes`)]).toEqual([{ digest: "new" }]);
  });
});
