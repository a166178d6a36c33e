// An organization is a group of accounts that share limits, which operators set.
import type { AccountAmount, ByName } from "./limits/amounts.ts";
import type { QuotaRule } from "./limits/quota-rules.ts";

/**
 * An organization and its limits. Amounts are for all of its accounts together, in each of the environments `live` and
 * `test`. Null means no limit.
 */
export interface Organization extends ByName<AccountAmount, number | null> {
  id: string;
  name: string;
  quotas: readonly QuotaRule[];
  /** Unix seconds. */
  createdAt: number;
  /** Rises whenever an account joins or leaves. */
  membersRevision: number;
}

export type OrganizationChanges = Partial<Omit<Organization, "id" | "createdAt" | "membersRevision">>;
