// Accounts (tenants), and the tiers with their limits.

import type { Environment } from "./api-key.ts";
import type { AuditEvent } from "./audit.ts";
import type { EndUserBudgets } from "./end-users.ts";
import type { AccountAmount, Amount, ByName } from "./limits/amounts.ts";
import type { LimitRaise } from "./limits/limit-requests.ts";
import type { QuotaRule } from "./limits/quota-rules.ts";
import type { Priority } from "./models/policies/priority.ts";
import type { Organization, OrganizationChanges } from "./organization.ts";

/** A tier and its limits. Amounts are for each account and environment. Null means no limit. */
export interface Tier extends ByName<Amount, number | null> {
  name: string;
  /** Environments in which the limits apply. Other environments have no limits. */
  environments: readonly Environment[];
  /** Quotas with a window of their own, in addition to those of a calendar month. */
  quotas?: readonly QuotaRule[];
  /**
   * The highest priority for requests of the tier's accounts, in all environments. It is also the default priority of
   * these requests.
   */
  priority: Priority;
}

/** Amounts of an account, which replace the amounts of the tier. */
export interface AccountOverrides extends Partial<ByName<AccountAmount, number | null>> {
  quotas?: readonly QuotaRule[];
}

/**
 * The environments that limits apply to by default. `dev` is left out, because development runs on a person's own
 * machine.
 */
export const defaultTierEnvironments: readonly Environment[] = ["live", "test"];

/** The place where a tier is defined. Tiers of the configuration file are read-only. */
export type TierSource = "built-in" | "file" | "database";

export interface Account {
  id: string;
  name: string;
  /** Name of a tier. */
  tier: string;
  status: "active" | "suspended";
  /** Amounts that replace those of the tier. Undefined means the tier's amount, null means no limit. */
  overrides: AccountOverrides;
  /** Amounts that were granted for a time to the account and its members. Some may have ended. */
  raises?: readonly LimitRaise[] | undefined;
  /** True if chat completions are stored when a request does not set `store`. */
  storeChats: boolean;
  /**
   * The tools that the account may use, in the syntax of `ToolAccess`. Null means all tools that are offered to the
   * account.
   */
  tools: readonly string[] | null;
  /** Unix seconds. */
  createdAt: number;
  /** The budgets of the users whom the account's requests name. Undefined means none. */
  endUsers?: EndUserBudgets | undefined;
  /** The organization that the account belongs to. Undefined means none. */
  organizationId?: string | undefined;
  /** The organization with its limits. Lists of accounts leave it out. */
  organization?: Organization | undefined;
}

export type AccountChanges = Partial<Pick<Account, "name" | "tier" | "status" | "storeChats" | "tools">> & {
  /** Changes only the amounts that are present. Undefined restores the tier's amount. */
  overrides?: { [Name in keyof AccountOverrides]?: AccountOverrides[Name] | undefined };
};

export interface AccountStore {
  findAccount(id: string): Promise<Account | undefined>;
  /**
   * Returns accounts in the order of creation, beginning with the one that follows the id `after`. With `search`, returns
   * those with this text in their name, in either case, or with this id.
   */
  listAccounts(page: { after: string | undefined; limit: number; search?: string | undefined }): Promise<Account[]>;
  /** `insertAccount` and `updateAccount` also write the audit event, in the same transaction. */
  insertAccount(account: Account, event: AuditEvent): Promise<void>;
  updateAccount(id: string, changes: AccountChanges, event: AuditEvent): Promise<Account | undefined>;
  /** Changes the budgets of end users. `change` gets the current ones and may throw; undefined removes all. */
  changeEndUsers(
    id: string,
    change: (current: EndUserBudgets) => EndUserBudgets | undefined,
    event: AuditEvent,
  ): Promise<void>;
  /** Returns tiers that were added at run time. */
  listTiers(): Promise<Tier[]>;
  putTier(tier: Tier, event: AuditEvent): Promise<void>;
  /** Deletes a tier. Returns false if there is no tier of this name. */
  deleteTier(name: string, event: AuditEvent): Promise<boolean>;
  countAccountsOfTier(name: string): Promise<number>;
}

/** Methods that write also write the audit event, in the same transaction. */
export interface OrganizationStore {
  findOrganization(id: string): Promise<Organization | undefined>;
  /** Returns organizations in the order of creation, beginning with the one that follows the id `after`. */
  listOrganizations(page: { after: string | undefined; limit: number }): Promise<Organization[]>;
  insertOrganization(organization: Organization, event: AuditEvent): Promise<void>;
  updateOrganization(id: string, changes: OrganizationChanges, event: AuditEvent): Promise<Organization | undefined>;
  /** Deletes an organization that has no accounts. Returns whether it was deleted. */
  deleteOrganization(id: string, event: AuditEvent): Promise<boolean>;
  /**
   * Moves the account into an organization, or out of its organization if `organizationId` is null. Returns the
   * organization that the account was in before. Returns undefined if nothing changed: the account or the organization
   * does not exist, or the account was there already.
   */
  moveAccount(
    accountId: string,
    organizationId: string | null,
    event: AuditEvent,
  ): Promise<{ before: Organization | null } | undefined>;
  /** Returns accounts of an organization in the order of creation. */
  listAccountsOf(id: string, page: { after: string | undefined; limit: number }): Promise<Account[]>;
  countAccountsOf(ids: readonly string[]): Promise<ReadonlyMap<string, number>>;
}
