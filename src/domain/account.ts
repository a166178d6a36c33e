// Accounts (tenants), and the tiers with their limits.

import type { Environment } from "./api-key.ts";
import type { AuditEvent } from "./audit.ts";
import type { AccountAmount, Amount, ByName } from "./limits/amounts.ts";
import type { QuotaRule } from "./limits/quota-rules.ts";
import type { Priority } from "./models/policies/priority.ts";

/** A tier's amounts are per account and environment; null: no limit. */
export interface Tier extends ByName<Amount, number | null> {
  name: string;
  /** Environments in which the limits apply. Other environments have no limits. */
  environments: readonly Environment[];
  /** Quotas per window, besides those of a calendar month. */
  quotas?: readonly QuotaRule[];
  /** The highest priority that requests of the tier's accounts may have, and their default, in all environments. */
  priority: Priority;
}

/** Amounts that an account may have instead of its tier's. */
export interface AccountOverrides extends Partial<ByName<AccountAmount, number | null>> {
  quotas?: readonly QuotaRule[];
}

/** Development runs on a person's own machine, so it has no limits unless a tier sets them. */
export const defaultTierEnvironments: readonly Environment[] = ["live", "test"];

/** The origin of a tier's figures; the configuration file's are read-only. */
export type TierSource = "built-in" | "file" | "database";

export interface Account {
  id: string;
  name: string;
  /** Name of a tier. */
  tier: string;
  status: "active" | "suspended";
  /** Amounts that replace those of the tier. undefined: the tier's amount; null: no limit. */
  overrides: AccountOverrides;
  /** True if chat completions are stored when a request does not set `store`. */
  storeChats: boolean;
  /** Tools that the account may use, as in `ToolAccess`; null: all that are offered to it. */
  tools: readonly string[] | null;
  /** Unix seconds. */
  createdAt: number;
}

export type AccountChanges = Partial<Pick<Account, "name" | "tier" | "status" | "storeChats" | "tools">> & {
  /** Changes only the amounts that are members here; undefined: the tier's amount from now on. */
  overrides?: { [Name in keyof AccountOverrides]?: AccountOverrides[Name] | undefined };
};

export interface AccountStore {
  findAccount(id: string): Promise<Account | undefined>;
  /** Returns accounts by creation, oldest first, after `after`. */
  listAccounts(page: { after: string | undefined; limit: number }): Promise<Account[]>;
  /** `insertAccount` and `updateAccount` write the event in the same transaction. */
  insertAccount(account: Account, event: AuditEvent): Promise<void>;
  updateAccount(id: string, changes: AccountChanges, event: AuditEvent): Promise<Account | undefined>;
  /** Returns tiers that were added at run time. */
  listTiers(): Promise<Tier[]>;
  putTier(tier: Tier, event: AuditEvent): Promise<void>;
  /** Returns false if there is no such tier. */
  deleteTier(name: string, event: AuditEvent): Promise<boolean>;
  countAccountsOfTier(name: string): Promise<number>;
}
