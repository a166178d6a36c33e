// Accounts (tenants) and the tiers that say how much they may use.

import type { Environment } from "./api-key.ts";
import type { AuditEvent } from "./audit.ts";
import type { AccountAmount, Amount, ByName } from "./limits/amounts.ts";
import type { QuotaRule } from "./limits/quota-rules.ts";
import type { Priority } from "./models/policies/priority.ts";

/** A tier's amounts are per account and environment; null: no limit. */
export interface Tier extends ByName<Amount, number | null> {
  name: string;
  /** Environments in which the limits hold; in the others there are none. */
  environments: readonly Environment[];
  /** Quotas per window, beside those of a calendar month. */
  quotas?: readonly QuotaRule[];
  /** The highest that requests of its accounts may have, and the one of those that say none; in all environments. */
  priority: Priority;
}

/** What an account may have in place of its tier's. */
export interface AccountOverrides extends Partial<ByName<AccountAmount, number | null>> {
  quotas?: readonly QuotaRule[];
}

/** Development is on one's own machine: it has no limits unless a tier says so. */
export const defaultTierEnvironments: readonly Environment[] = ["live", "test"];

/** The origin of a tier's figures; the configuration file's are read-only. */
export type TierSource = "built-in" | "file" | "database";

export interface Account {
  id: string;
  name: string;
  /** Name of a tier. */
  tier: string;
  status: "active" | "suspended";
  /** Amounts in place of the tier's own; undefined: as the tier says, null: no limit. */
  overrides: AccountOverrides;
  /** Whether chat completions are stored where a request says nothing about it. */
  storeChats: boolean;
  /** Tools that it may use, as in `ToolReach`; null: all that are offered to it. */
  tools: readonly string[] | null;
  /** Unix seconds. */
  createdAt: number;
}

export type AccountChanges = Partial<Pick<Account, "name" | "tier" | "status" | "storeChats" | "tools">> & {
  /** Changes these amounts alone; undefined: as the tier says from now on. */
  overrides?: { [Name in keyof AccountOverrides]?: AccountOverrides[Name] | undefined };
};

export interface AccountStore {
  findAccount(id: string): Promise<Account | undefined>;
  /** Accounts by creation, oldest first; those after `after`. */
  listAccounts(page: { after: string | undefined; limit: number }): Promise<Account[]>;
  /** Both write the event in the same transaction. */
  insertAccount(account: Account, event: AuditEvent): Promise<void>;
  updateAccount(id: string, changes: AccountChanges, event: AuditEvent): Promise<Account | undefined>;
  /** Tiers that were added at run time. */
  listTiers(): Promise<Tier[]>;
  putTier(tier: Tier, event: AuditEvent): Promise<void>;
  /** False where there was none. */
  deleteTier(name: string, event: AuditEvent): Promise<boolean>;
  countAccountsOfTier(name: string): Promise<number>;
}
