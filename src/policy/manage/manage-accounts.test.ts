// Tests what operators may change about accounts and tiers, and the record of each change.
import { describe, expect, test } from "bun:test";
import { accountFor, keyRecordFor, principalFor, tierFor } from "../../../tests/support/principal.ts";
import type { Account } from "../../domain/account.ts";
import type { Principal } from "../../domain/principal.ts";
import { type Scope, scopes } from "../../domain/scope.ts";
import type { TierRequest, UpdateAccountRequest } from "../../wire/accounts.ts";
import { accountToWire, createAccount, updateAccount } from "./manage-accounts.ts";
import { deleteTier, putTier } from "./manage-tiers.ts";
import { requireOtherKey } from "./operator.ts";
import { Tiers } from "./tiers.ts";

const origin = { nowSeconds: 1_800_000_000, clientAddress: "192.0.2.9", requestId: "req_1" };
const operator = principalFor({ scopes: new Set<Scope>(scopes), account: accountFor({ id: "acct_operator" }) });
const figures: TierRequest = { requests_per_minute: 5, tokens_per_minute: null };
const tier = (name: string) => tierFor({ name, requestsPerMinute: 1, tokensPerMinute: 2 });

function tiersOf({ file = [] as string[], database = [] as string[] } = {}): Tiers {
  const tiers = new Tiers();
  tiers.configure(file.map(tier));
  tiers.load(database.map(tier));
  return tiers;
}

const update = (account: Account, request: UpdateAccountRequest, by: Principal = operator) =>
  updateAccount(by, account, request, tiersOf(), origin);

test.each<[string, Principal, string]>([
  ["a key without admin:manage", principalFor(), "API key lacks required scope: admin:manage"],
  ["an app, even one with the scope", { ...operator, appId: "app_1" }, "Apps cannot operate the installation"],
])("refuses operator actions to %s", (_who, principal, message) => {
  const tiers = tiersOf({ database: ["gold"] });
  const attempts = [
    () => createAccount(principal, { name: "A" }, tiers, origin),
    () => update(accountFor(), { name: "A" }, principal),
    () => putTier(principal, "gold", figures, tiers, origin),
    () => deleteTier(principal, "gold", { stored: tier("gold"), accounts: 0 }, tiers, origin),
  ];
  for (const attempt of attempts) expect(attempt).toThrow(message);
});

describe("an operator's own account and key", () => {
  test("does not let an operator suspend the own account", () => {
    const suspension = () => update(operator.account, { status: "suspended" });
    expect(suspension).toThrow("the account of the key in the request cannot be suspended");
    expect(suspension).toThrow(expect.objectContaining({ code: "permission_denied" }));
    expect(update(accountFor({ id: "acct_2" }), { status: "suspended" })?.changes).toEqual({ status: "suspended" });
  });

  test("lets an operator revoke neither the own key nor a key above it", () => {
    const chain = principalFor({ keys: [keyRecordFor({ id: "key_child" }), keyRecordFor({ id: "key_maker" })] });
    for (const id of ["key_child", "key_maker"]) {
      expect(() => requireOtherKey(chain, { id })).toThrow(expect.objectContaining({ code: "permission_denied" }));
    }
    expect(() => requireOtherKey(chain, { id: "key_other" })).not.toThrow();
  });
});

describe("the quotas of an account", () => {
  test.each<[UpdateAccountRequest, object, object]>([
    [{ monthly_tokens: 5 }, { monthlyTokens: 5 }, { before: "unlimited", after: 5 }],
    [{ monthly_tokens: 0 }, { monthlyTokens: 0 }, { before: "unlimited", after: 0 }],
    [{ monthly_tokens: null }, { monthlyTokens: undefined }, { before: "unlimited", after: null }],
  ])("replaces an account's quota by %j and audits the change", (request, overrides, change) => {
    const result = update(accountFor({ overrides: { monthlyTokens: null, monthlySpend: 2.5 } }), request);
    expect(result?.changes).toStrictEqual({ overrides });
    expect(result?.event).toMatchObject({
      action: "account.updated",
      accountId: "acct_1",
      targetId: "acct_1",
      detail: { monthly_tokens: change },
    });
    expect(Object.keys(result?.event.detail ?? {})).toEqual(["monthly_tokens"]);
  });

  test("changes nothing if an account's quotas are sent back as read", () => {
    for (const overrides of [{}, { monthlyTokens: null, monthlySpend: 3 }, { monthlySpend: null }]) {
      const account = accountFor({ overrides });
      const { name, tier, status, monthly_tokens, monthly_spend, store_chats } = accountToWire(account);
      expect(update(account, { name, tier, status, monthly_tokens, monthly_spend, store_chats })).toBeUndefined();
    }
  });
});

test("refuses an unknown tier and names the existing ones", () => {
  const message = "tier: there is no tier of this name; known are free, pro, enterprise.";
  expect(() => createAccount(operator, { name: "A", tier: "gold" }, tiersOf(), origin)).toThrow(message);
  expect(() => update(accountFor(), { tier: "gold" })).toThrow(message);
});

describe("tiers", () => {
  test("keeps tiers of the configuration file read-only, and names the file in the refusal", () => {
    const tiers = tiersOf({ file: ["gold"] });
    const nothingStored = { stored: undefined, accounts: 0 };
    for (const attempt of [
      () => putTier(operator, "gold", figures, tiers, origin),
      () => deleteTier(operator, "gold", nothingStored, tiers, origin),
    ]) {
      expect(attempt).toThrow(expect.objectContaining({ code: "permission_denied" }));
      expect(attempt).toThrow("headrace.yaml");
    }
  });

  test("replaces a tier as a whole, with defaults for omitted members", () => {
    const tiers = tiersOf({ database: ["gold"] });
    expect(putTier(operator, "gold", figures, tiers, origin)?.tier).toEqual(
      tierFor({ name: "gold", requestsPerMinute: 5, environments: ["live", "test"], quotas: [] }),
    );
    const same = { requests_per_minute: 1, tokens_per_minute: 2, environments: ["live", "live"] as "live"[] };
    expect(putTier(operator, "gold", same, tiers, origin)).toBeUndefined();
  });

  test.each(["", "Gold", "-gold", "a".repeat(64), "go ld", "gold\n"])("refuses %j as the name of a tier", (name) => {
    expect(() => putTier(operator, name, figures, tiersOf(), origin)).toThrow("name: must be 1 to 63 lower-case");
  });

  test("deletes only stored tiers, and none whose accounts would be left without a tier", () => {
    const remove = (name: string, stored: boolean, accounts: number, tiers: Tiers) => () =>
      deleteTier(operator, name, { stored: stored ? tier(name) : undefined, accounts }, tiers, origin);
    const own = tiersOf({ database: ["gold", "pro"] });
    expect(remove("gold", true, 2, own)).toThrow("2 accounts have the tier gold");
    expect(remove("gold", true, 0, own)()).toMatchObject({ action: "tier.deleted", targetId: "gold" });
    expect(remove("pro", true, 2, own)()).toMatchObject({ action: "tier.deleted" });
    expect(remove("free", false, 0, own)).toThrow("built in");
    expect(remove("silver", false, 0, own)).toThrow(expect.objectContaining({ code: "not_found" }));
    const both = tiersOf({ database: ["gold"], file: ["gold"] });
    expect(remove("gold", true, 2, both)()).toMatchObject({ action: "tier.deleted" });
  });
});
