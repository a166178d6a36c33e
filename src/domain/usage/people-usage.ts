// The usage of people, for lists of them.
import type { Environment } from "../api-key.ts";

export interface PersonUsage {
  /** Cost in nano-USD. */
  nanoUsd: number;
  /** Unix seconds; null if no credential of the person was used. */
  lastUsedAt: number | null;
}

export interface PeopleUsageQuery {
  /** The account whose credentials count. Null: all accounts. */
  accountId: string | null;
  /** The environment whose costs count. The last use covers all environments. */
  environment: Environment;
  /** The day (UTC) from whose start costs count, in Unix seconds. */
  since: number;
}

export interface PeopleUsage {
  /**
   * Returns the usage by person: of memberships, own keys and allowed apps, ended ones included. A person without
   * credentials is left out.
   */
  of(personIds: readonly string[], query: PeopleUsageQuery): Promise<ReadonlyMap<string, PersonUsage>>;
}
