// What the account and tier endpoints say of limits, of what is left, and of the month's usage.
import { describe, expect, test } from "bun:test";
import type { environments } from "../../src/domain/api-key.ts";
import type { Ledger } from "../../src/domain/usage/usage.ts";
import { accountRoutes } from "../../src/http/api/account-routes.ts";
import { MemoryLimits } from "../../src/limits/memory/memory-limits.ts";
import { limitsOf } from "../../src/policy/limits-of.ts";
import { Tiers } from "../../src/policy/manage/tiers.ts";
import { exchangeFor, incoming, responseOf } from "../support/exchange.ts";
import { manualClock } from "../support/manual-clock.ts";
import { accountFor, keyRecordFor, principalFor, tierFor } from "../support/principal.ts";

const september = Date.UTC(2026, 8, 1) / 1000;
const october = Date.UTC(2026, 9, 1) / 1000;
const readTotals: Ledger["readTotals"] = async ({ since }, use) =>
  use({
    ...{ requests: 0, firstAt: undefined },
    ...(since === september ? { tokens: 1_200, nanoUsd: 250_000_001 } : { tokens: 0, nanoUsd: 0 }),
  });

interface Setting {
  account?: Parameters<typeof accountFor>[0];
  environment?: (typeof environments)[number];
  key?: Parameters<typeof keyRecordFor>[0];
}

function start({ account: ofAccount, environment = "live", key: ofKey }: Setting = {}) {
  const clock = manualClock(september + 86_400);
  const limits = new MemoryLimits({ clock, ledger: { readTotals } });
  const tiers = new Tiers();
  const account = accountFor(ofAccount);
  const key = keyRecordFor({ environment, ...ofKey });
  const tier = tiers.find(account.tier);
  const principal = principalFor({
    account,
    keys: [key],
    environment,
    limits: limitsOf({ keys: [key], account, environment, tier }),
  });
  const routes = accountRoutes({ limits, tiers, clock, requestLimits: () => ({ bodyBytes: 10_000, depth: 8 }) });
  const get = async (path: string): Promise<unknown> => {
    const exchange = exchangeFor(incoming({ target: path }));
    const route = routes.find((one) => one.path === path);
    return route && (await responseOf(() => route.handle(exchange, principal))).json();
  };
  const access = (path: string) => routes.find((one) => one.path === path)?.access;
  return { get, access, limits, clock, tiers, principal };
}

describe("GET /v1/account", () => {
  test("shows the tier's limits, what remains of them, and the month's usage against the quota", async () => {
    const { get, limits, principal } = start({ account: { overrides: { monthlyTokens: 5_000, monthlySpend: 0.5 } } });
    const admission = await limits.admit(principal.limits, { tokens: 100, nanoUsd: 0, minTokens: 1, minNanoUsd: 0 });
    expect("lease" in admission).toBe(true);
    expect(await get("/v1/account")).toEqual({
      object: "account",
      id: "acct_1",
      name: "An account",
      tier: "pro",
      environment: "live",
      limits: { requests_per_minute: 100, tokens_per_minute: 100_000 },
      rate: {
        requests: { limit: 100, remaining: 99, reset_seconds: 1 },
        tokens: { limit: 100_000, remaining: 99_900, reset_seconds: 1 },
      },
      quota: {
        period_start: september,
        period_end: october,
        usage_of: "account",
        tokens: { limit: 5_000, used: 1_200 },
        spend: { limit: 0.5, used: 0.250_000_001 },
      },
      quotas: [],
      store_chats: false,
    });
  });

  test("shows the usage and reset of each windowed quota that applies to the credential", async () => {
    const quotas = [{ unit: "tokens", amount: 5_000, per: "month", window: "calendar" }] as const;
    const own = [{ unit: "requests", amount: 3, per: "5h", window: "rolling", models: ["m*"] }] as const;
    const { get, limits, principal } = start({ account: { overrides: { quotas } }, key: { quotas: own } });
    const ask = { tokens: 100, nanoUsd: 0, minTokens: 1, minNanoUsd: 0, model: "m1" };
    const admission = await limits.admit(principal.limits, ask);
    if ("lease" in admission) admission.lease.settle(30, 0);
    const from = september + 86_400;
    expect(await get("/v1/account")).toMatchObject({
      quotas: [
        {
          ...{ owner: "account", owner_id: "acct_1", unit: "tokens", amount: 5_000, used: 1_230, per: "month" },
          ...{ window: "calendar", models: null, hard_stop: false, starts_at: september, resets_at: october },
        },
        {
          ...{ owner: "key", owner_id: "key_1", unit: "requests", amount: 3, used: 1, per: "5h" },
          ...{ window: "rolling", models: ["m*"], hard_stop: false, starts_at: from, resets_at: from + 18_000 },
        },
      ],
    });
  });

  test("shows a credential for models all quotas that would refuse it, with remainder and reset", async () => {
    const own = [{ unit: "usd", amount: 0.3, per: "day", window: "calendar", models: ["m*"] }] as const;
    const overrides = { monthlyTokens: 1_000, monthlySpend: 0.5 };
    const { get, limits, principal, access } = start({ account: { overrides }, key: { quotas: own } });
    const ask = { tokens: 100, nanoUsd: 0, minTokens: 1, minNanoUsd: 0, model: "m1" };
    const { requests, tokens, windows } = principal.limits;
    const set = { requests, tokens, quotas: [], windows };
    const admission = await limits.admit(set, ask);
    if ("lease" in admission) admission.lease.settle(30, 100_000_001);
    const month = { per: "month", window: "calendar", starts_at: september, resets_at: october };
    const ofAccount = { reason: "account_quota", ask: "an operator of this server" };
    expect(access("/v1/limits")).toBe("chat:write");
    expect(await get("/v1/limits")).toEqual({
      object: "limits",
      environment: "live",
      rate: {
        requests: { limit: 100, remaining: 99, reset_seconds: 1 },
        tokens: { limit: 100_000, remaining: 99_970, reset_seconds: 1 },
      },
      quotas: [
        {
          ...{ owner: "account", owner_id: "acct_1", unit: "tokens", amount: 1_000, used: 1_200, left: 0 },
          ...{ ...month, models: null, tag: null, hard_stop: false, ...ofAccount },
        },
        {
          ...{ owner: "account", owner_id: "acct_1", unit: "usd", amount: 0.5, used: 0.250_000_001 },
          ...{ left: 0.249_999_999, ...month, models: null, tag: null, hard_stop: false, ...ofAccount },
        },
        {
          ...{ owner: "key", owner_id: "key_1", unit: "usd", amount: 0.3, used: 0.100_000_001, left: 0.199_999_999 },
          ...{ per: "day", window: "calendar", models: ["m*"], tag: null, hard_stop: false },
          ...{ starts_at: september + 86_400, resets_at: september + 172_800 },
          ...{ reason: "key_quota", ask: "the owner of the key" },
        },
      ],
    });
  });

  test("shows null limits if the tier does not apply, and counts usage anyway", async () => {
    const { get } = start({ environment: "dev" });
    expect(await get("/v1/account")).toMatchObject({
      environment: "dev",
      limits: { requests_per_minute: null, tokens_per_minute: null },
      rate: { requests: null, tokens: null },
      quota: { tokens: { limit: null, used: 1_200 }, spend: { limit: null, used: 0.250_000_001 } },
    });
  });

  test("shows the key's own limit if it is the tighter one", async () => {
    const { get } = start({ key: { rateLimit: 5, rateLimitWindow: 1 } });
    expect(await get("/v1/account")).toMatchObject({
      limits: { requests_per_minute: 100 },
      rate: { requests: { limit: 5, remaining: 5, reset_seconds: 0 } },
    });
  });

  test("shows token debt as zero remaining with a wait time, never as a negative figure", async () => {
    const { get, limits, principal } = start();
    const admission = await limits.admit(principal.limits, { tokens: 1, nanoUsd: 0, minTokens: 1, minNanoUsd: 0 });
    if ("lease" in admission) admission.lease.settle(200_000, 0);
    expect(await get("/v1/account")).toMatchObject({ rate: { tokens: { remaining: 0, reset_seconds: 120 } } });
  });

  test("does not count reads of GET /v1/account against limits", async () => {
    const { get } = start();
    const first = await get("/v1/account");
    for (let i = 0; i < 200; i++) await get("/v1/account");
    expect(await get("/v1/account")).toEqual(first);
  });
});

describe("GET /v1/tiers", () => {
  const team = tierFor({ name: "team", tokensPerMinute: 7, monthlyTokens: 9, monthlySpend: 1.5 });

  test("lists tiers with their source and the account's own marked, without tiers of other accounts", async () => {
    const { get, tiers } = start();
    tiers.load([team]);
    const list = (await get("/v1/tiers")) as { data: unknown[] };
    expect(list).toMatchObject({
      object: "list",
      data: [
        { object: "tier", name: "free", requests_per_minute: 10, tokens_per_minute: 10_000, current: false },
        { name: "pro", requests_per_minute: 100, tokens_per_minute: 100_000, source: "built-in", current: true },
        {
          name: "enterprise",
          requests_per_minute: 1_000,
          tokens_per_minute: null,
          quotas: [],
          monthly_tokens: null,
          current: false,
        },
      ],
    });
    expect(list.data).toHaveLength(3);
  });

  test("lists an operator's tier if it is the account's own", async () => {
    const { get, tiers } = start({ account: { tier: "team" } });
    tiers.load([team]);
    const { data } = (await get("/v1/tiers")) as { data: unknown[] };
    expect(data.at(-1)).toMatchObject({
      name: "team",
      requests_per_minute: null,
      tokens_per_minute: 7,
      quotas: [],
      monthly_tokens: 9,
      monthly_spend: 1.5,
      environments: ["live"],
      source: "database",
      current: true,
    });
  });
});
