// Tests tiers from their three sources, and the limits that follow from a tier, an account and its keys.
import { describe, expect, test } from "bun:test";
import { accountFor, keyRecordFor, tierFor } from "../../../tests/support/principal.ts";
import { byName, optionalAmounts } from "../../domain/limits/amounts.ts";
import { limitsOf } from "../limits-of.ts";
import { Tiers } from "./tiers.ts";

const small = tierFor({ requestsPerMinute: 5, tokensPerMinute: 500, monthlyTokens: 10_000, monthlySpend: 1.5 });

describe("tiers", () => {
  test("starts with the built-in tier limits, without quotas, in live and test", () => {
    const rows = new Tiers().list().map((tier) => [tier.name, tier.requestsPerMinute, tier.tokensPerMinute]);
    expect(rows).toEqual([
      ["free", 10, 10_000],
      ["pro", 100, 100_000],
      ["enterprise", 1_000, null],
    ]);
    for (const tier of new Tiers().list()) {
      expect(tier).toMatchObject({
        ...byName(optionalAmounts, () => null),
        environments: ["live", "test"],
        source: "built-in",
      });
    }
  });

  test("prefers tiers of the configuration file to stored ones, and stored ones to built-in ones", () => {
    const tiers = new Tiers();
    tiers.load([small, { ...small, name: "pro", requestsPerMinute: 6 }]);
    expect(tiers.find("pro")).toMatchObject({ requestsPerMinute: 6, source: "database" });
    tiers.configure([{ ...small, name: "pro", requestsPerMinute: 7 }]);
    expect(tiers.find("pro")).toMatchObject({ requestsPerMinute: 7, source: "file" });
    expect(tiers.find("small")).toMatchObject({ requestsPerMinute: 5, source: "database" });
    tiers.configure([]);
    tiers.load([]);
    expect(tiers.find("pro")).toMatchObject({ requestsPerMinute: 100, source: "built-in" });
    expect(tiers.list().map(({ name }) => name)).toEqual(["free", "pro", "enterprise"]);
  });

  test("gives a tier that no longer exists the limits of free", () => {
    const tiers = new Tiers();
    expect(tiers.get("gone")).toBeUndefined();
    expect(tiers.find("gone")).toMatchObject({ requestsPerMinute: 10, tokensPerMinute: 10_000 });
  });
});

describe("limits of a principal", () => {
  const account = accountFor({ id: "acct_1" });
  const key = keyRecordFor({ id: "key_1" });

  test("adds the shared quotas of the account's organization in live and test", () => {
    const organization = {
      ...{ id: "org_1", name: "Group", createdAt: 0, membersRevision: 3, monthlyTokens: 900, monthlySpend: null },
      quotas: [{ unit: "usd", amount: 2, per: "day", window: "calendar" }] as const,
    };
    const member = accountFor({ id: "acct_1", organizationId: "org_1", organization });
    const tier = new Tiers().find("pro");
    const { quotas, groups, windows } = limitsOf({ keys: [key], account: member, environment: "test", tier });
    const shared = { owner: "organization", ownerId: "org_1", environment: "test" };
    expect(quotas.map(({ id }) => id)).toEqual(["account:acct_1:test", "organization:org_1:test", "key:key_1"]);
    expect(groups.map(({ id }) => id)).toEqual(quotas.map(({ id }) => id));
    expect(quotas[1]).toMatchObject({ ...shared, tokens: 900, nanoUsd: null, membersRevision: 3 });
    expect(windows).toMatchObject([{ ...shared, id: "organization:org_1:test day calendar", nanoUsd: 2e9 }]);
    const inDev = limitsOf({ keys: [key], account: member, environment: "dev", tier });
    expect(inDev.quotas[1]).toMatchObject({ owner: "organization", tokens: null, nanoUsd: null });
    expect(inDev.windows).toBeUndefined();
  });

  test("applies the tier's limits per account and environment, and counts usage without a quota", () => {
    const found = limitsOf({ keys: [key], account, environment: "live", tier: new Tiers().find("pro") });
    const { requests, tokens, quotas, windows } = found;
    expect({ requests, tokens, quotas, windows }).toEqual({
      requests: [{ id: "account:acct_1:live", owner: "account", limit: 100, windowSeconds: 60 }],
      tokens: [{ id: "account:acct_1:live", owner: "account", limit: 100_000, windowSeconds: 60 }],
      quotas: [
        {
          id: "account:acct_1:live",
          owner: "account",
          ownerId: "acct_1",
          environment: "live",
          tokens: null,
          nanoUsd: null,
        },
        { id: "key:key_1", owner: "key", ownerId: "key_1", environment: "live", tokens: null, nanoUsd: null },
      ],
      windows: undefined,
    });
  });

  test("makes one quota for each window and model filter of the account and of each key", () => {
    const day = { per: "day", window: "calendar" } as const;
    const tier = tierFor({
      quotas: [
        { unit: "tokens", amount: 9, ...day },
        { unit: "usd", amount: 0.1 + 0.2, ...day },
        { unit: "requests", amount: 3, ...day, models: ["a*"] },
      ],
    });
    const member = keyRecordFor({
      ...{ id: "mbr_1", kind: "membership", quotas: [{ unit: "requests", amount: 1, per: "5h", window: "rolling" }] },
    });
    const limits = limitsOf({ keys: [key, member], account, environment: "live", tier });
    const ofAccount = { owner: "account", ownerId: "acct_1", environment: "live", called: undefined };
    expect(limits.windows).toMatchObject([
      { ...ofAccount, id: "account:acct_1:live day calendar", requests: null, tokens: 9, nanoUsd: 300_000_000 },
      { ...ofAccount, requests: 3, tokens: null, nanoUsd: null, filter: { models: ["a*"] } },
      { owner: "key", called: "member", ownerId: "mbr_1", requests: 1, window: { per: "5h", seconds: 18_000 } },
    ]);
    const own = accountFor({ id: "acct_1", overrides: { quotas: [] } });
    expect(limitsOf({ keys: [key], account: own, environment: "live", tier }).windows).toBeUndefined();
    expect(limitsOf({ keys: [key], account, environment: "test", tier }).windows).toBeUndefined();
  });

  test("applies no limit for an unlimited figure, and none in an environment outside the tier", () => {
    const enterprise = new Tiers().find("enterprise");
    expect(limitsOf({ keys: [key], account, environment: "live", tier: enterprise }).tokens).toEqual([]);
    const overridden = accountFor({ overrides: { monthlyTokens: 1 } });
    const test = limitsOf({ keys: [key], account: overridden, environment: "test", tier: small });
    expect(test).toMatchObject({ requests: [], tokens: [] });
    expect(test.quotas.map(({ tokens, nanoUsd }) => [tokens, nanoUsd])).toEqual([
      [null, null],
      [null, null],
    ]);
  });

  test("takes quotas from the tier unless the account overrides them, in whole nano-USD", () => {
    const quota = (overrides: { monthlyTokens?: number | null; monthlySpend?: number | null }) =>
      limitsOf({ keys: [key], account: accountFor({ overrides }), environment: "live", tier: small }).quotas[0];
    expect(quota({})).toMatchObject({ tokens: 10_000, nanoUsd: 1_500_000_000 });
    expect(quota({ monthlyTokens: 7 })).toMatchObject({ tokens: 7, nanoUsd: 1_500_000_000 });
    expect(quota({ monthlyTokens: null, monthlySpend: 0.1 + 0.2 })).toMatchObject({
      tokens: null,
      nanoUsd: 300_000_000,
    });
  });

  test("adds the limit and quota of every key in the chain under its rotation-proof id", () => {
    const child = keyRecordFor({ id: "key_2", limitId: "key_0", rateLimit: 3, rateLimitWindow: 10 });
    const parent = keyRecordFor({ id: "key_1", rateLimit: 50, monthlySpend: 2 });
    const { requests, quotas } = limitsOf({ keys: [child, parent], account, environment: "live", tier: small });
    expect(requests.slice(1)).toEqual([
      { id: "key:key_0", owner: "key", limit: 3, windowSeconds: 10 },
      { id: "key:key_1", owner: "key", limit: 50, windowSeconds: 60 },
    ]);
    expect(quotas.slice(1)).toEqual([
      { id: "key:key_0", owner: "key", ownerId: "key_0", environment: "live", tokens: null, nanoUsd: null },
      { id: "key:key_1", owner: "key", ownerId: "key_1", environment: "live", tokens: null, nanoUsd: 2_000_000_000 },
    ]);
  });
});
