// Creates and changes accounts: makes the records and audit events, which a store writes in one step.

import { GatewayError, invalidRequest } from "../../base/errors.ts";
import { shown } from "../../base/text/shown.ts";
import type { Account, AccountChanges, Tier } from "../../domain/account.ts";
import type { AuditEvent } from "../../domain/audit.ts";
import { accountAmounts, byWire } from "../../domain/limits/amounts.ts";
import type { Principal } from "../../domain/principal.ts";
import {
  type AccountWire,
  type CreateAccountRequest,
  defaultTierName,
  type UpdateAccountRequest,
} from "../../wire/accounts.ts";
import { rulesOnWire } from "../../wire/quotas.ts";
import { auditEvent, changedMembers, type Origin } from "../records/audit.ts";
import { requireToolsWithin } from "./delegation.ts";
import { keyName, keyTools, quotaRules } from "./key-values.ts";
import { requireOperator, requireOtherAccount } from "./operator.ts";

export interface TierNames {
  get(name: string): Tier | undefined;
  list(): readonly Pick<Tier, "name">[];
}

export function createAccount(
  principal: Principal,
  request: CreateAccountRequest,
  tiers: TierNames,
  origin: Origin,
): { account: Account; event: AuditEvent } {
  requireOperator(principal);
  const account: Account = {
    id: `acct_${Bun.randomUUIDv7()}`,
    name: keyName(request.name),
    tier: existingTier(request.tier ?? defaultTierName, tiers),
    status: "active",
    overrides: {},
    storeChats: false,
    tools: keyTools(request.tools ?? null),
    createdAt: origin.nowSeconds,
  };
  const detail = attributesToWire(account);
  return { account, event: auditEvent("account.created", principal, origin, about(account, detail)) };
}

/** Creates an account with all settings of a declaration. */
export function declaredAccount(
  principal: Principal,
  id: string,
  { name = "", tier, tools, ...others }: UpdateAccountRequest,
  tiers: TierNames,
  origin: Origin,
): { account: Account; event: AuditEvent } {
  const { account: blank } = createAccount(principal, { name, tier, tools }, tiers, origin);
  const changes = updateAccount(principal, blank, others, tiers, origin)?.changes;
  const overrides = Object.entries(changes?.overrides ?? {}).filter(([, amount]) => amount !== undefined);
  const account: Account = { ...blank, ...changes, id, overrides: Object.fromEntries(overrides) };
  const detail = attributesToWire(account);
  return { account, event: auditEvent("account.created", principal, origin, about(account, detail)) };
}

/** Changes an account. Returns undefined if the request changes nothing. */
export function updateAccount(
  principal: Principal,
  current: Account,
  request: UpdateAccountRequest,
  tiers: TierNames,
  origin: Origin,
): { changes: AccountChanges; event: AuditEvent } | undefined {
  requireOperator(principal);
  if (request.status === "suspended") requireOtherAccount(principal, current);
  const changes: AccountChanges = {};
  const { name, tier, status, store_chats: storeChats } = request;
  if (name !== undefined) changes.name = keyName(name);
  if (tier !== undefined) changes.tier = existingTier(tier, tiers);
  if (status !== undefined) changes.status = status;
  if (storeChats !== undefined) changes.storeChats = storeChats;
  if (request.tools !== undefined) {
    changes.tools = keyTools(request.tools);
    requireToolsWithin(principal, changes.tools);
  }
  const overrides: NonNullable<AccountChanges["overrides"]> = {};
  for (const { name, wire } of accountAmounts) {
    if (request[wire] !== undefined) overrides[name] = overrideOf(request[wire]);
  }
  if (request.quotas !== undefined) overrides.quotas = request.quotas === null ? undefined : quotaRules(request.quotas);
  if (Object.keys(overrides).length > 0) changes.overrides = overrides;
  const before = attributesToWire(current);
  const wanted = { ...current, ...changes, overrides: { ...current.overrides, ...overrides } };
  const detail = changedMembers(before, attributesToWire(wanted));
  if (Object.keys(detail).length === 0) return undefined;
  return { changes, event: auditEvent("account.updated", principal, origin, about(current, detail)) };
}

/** Returns the account. Throws `not_found` if it is undefined. */
export function requireAccount(account: Account | undefined, id: string): Account {
  if (account) return account;
  throw new GatewayError("not_found", `There is no account ${shown(id)}. GET /v1/admin/accounts lists the accounts.`);
}

export function accountToWire(account: Account): AccountWire {
  const { id, organizationId: organization = null, createdAt } = account;
  return { object: "account", id, ...attributesToWire(account), organization, created_at: createdAt };
}

function existingTier(name: string, tiers: TierNames): string {
  if (tiers.get(name)) return name;
  const known = tiers
    .list()
    .map((tier) => tier.name)
    .join(", ");
  throw invalidRequest(`tier: there is no tier of this name; known are ${known}.`);
}

type Override = number | "unlimited" | null;

/**
 * Converts an override from the wire. Null on the wire means the value of the tier, which is undefined in the domain;
 * `unlimited` is null in the domain.
 */
function overrideOf(value: Override): number | null | undefined {
  if (value === null) return undefined;
  return value === "unlimited" ? null : value;
}

function overrideToWire(value: number | null | undefined): Override {
  if (value === undefined) return null;
  return value ?? "unlimited";
}

/** Returns the attributes that a request may set. */
export function attributesToWire(
  account: Pick<Account, "name" | "tier" | "status" | "storeChats" | "tools"> & {
    overrides: AccountChanges["overrides"];
  },
) {
  return {
    name: account.name,
    tier: account.tier,
    status: account.status,
    ...byWire(accountAmounts, ({ name }) => overrideToWire(account.overrides?.[name])),
    quotas: account.overrides?.quotas ? rulesOnWire(account.overrides.quotas) : null,
    store_chats: account.storeChats,
    tools: account.tools && [...account.tools],
  };
}

function about({ id }: Account, detail: Record<string, unknown>) {
  return { accountId: id, targetId: id, detail };
}
