// A principal and what it is made of, for unit tests; each test changes what it is about.
import type { Account, Tier } from "../../src/domain/account.ts";
import { amounts, byName } from "../../src/domain/limits/amounts.ts";
import { type ApiKeyRecord, newAndUnbounded, type Principal } from "../../src/domain/principal.ts";
import { accountScopes } from "../../src/domain/scope.ts";

export function accountFor(changes: Partial<Account> = {}): Account {
  return {
    id: "acct_1",
    name: "An account",
    tier: "pro",
    status: "active",
    overrides: {},
    storeChats: false,
    tools: null,
    createdAt: 1,
    ...changes,
  };
}

/** Without limits unless told. */
export function tierFor(changes: Partial<Tier> = {}): Tier {
  return { name: "small", ...byName(amounts, () => null), environments: ["live"], priority: "normal", ...changes };
}

export function keyRecordFor(changes: Partial<ApiKeyRecord> = {}): ApiKeyRecord {
  const id = changes.id ?? "key_1";
  return {
    id,
    kind: "key",
    personId: null,
    appId: null,
    role: null,
    accountId: "acct_1",
    name: "A key",
    environment: "live",
    digest: `digest of ${id}`,
    prefix: "sk_live_hr_",
    last4: "abcd",
    scopes: accountScopes,
    createdBy: null,
    parentId: null,
    limitId: id,
    createdAt: 1,
    ...newAndUnbounded,
    ...changes,
  };
}

export function principalFor(changes: Partial<Principal> = {}): Principal {
  const key = keyRecordFor();
  return {
    account: accountFor(),
    keys: [key],
    environment: key.environment,
    scopes: new Set(key.scopes),
    appId: null,
    limits: { requests: [], tokens: [], quotas: [] },
    ...changes,
  };
}

/** A server whose requests have keys alone. */
export const noSessions = {
  applies: () => false,
  find: () => Promise.reject(new Error("There are no sessions.")),
};
