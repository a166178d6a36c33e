// The statement of a month: lines of usage whose sum is the ledger's total.
import type { CredentialKind } from "../principal.ts";
import type { RequestOwner } from "./request-log.ts";
import type { UsageQuery, UsageSums } from "./usage.ts";

/** The ways to group a statement's lines, in the order of their columns. */
export const statementGroups = ["key", "person", "model", "app", "tag"] as const;
export type StatementGroup = (typeof statementGroups)[number];

/** The sums of a statement. Speeds of answers are left out. */
export interface StatementSums
  extends Omit<UsageSums, "nanoUsd" | "timed" | "firstTokenMs" | "generatedTokens" | "generationMs"> {
  /** Whole nano-USD, as a bigint: a month's sum may exceed what a double holds exactly. */
  nanoUsd: bigint;
}

export interface StatementLine extends StatementSums {
  /** The line's value for each requested group. Null means no person, app or tag. */
  groups: Partial<Record<StatementGroup, string | null>>;
}

/** The usage that a statement covers, and how its lines are grouped. */
export interface StatementQuery extends Pick<UsageQuery, "environment" | "keyId" | "appId" | "personId" | "tag"> {
  accountId: string;
  /** A calendar month (UTC) in Unix seconds. */
  start: number;
  end: number;
  groupBy: readonly StatementGroup[];
}

export interface Statement {
  /** Lines, the most expensive first. */
  lines: readonly StatementLine[];
  /** The sum of lines that the statement has no room for. Null if there are none. */
  others: StatementSums | null;
  total: StatementSums;
  /** True if a request with several tags is in several lines, so that the lines add up to more than the total. */
  overlaps: boolean;
}

/** The party that usage is recorded for: a key, a signed-in person, or an app that a person allowed. */
export interface UsageParty {
  kind: CredentialKind;
  personId: string | null;
  appId: string | null;
  name: string;
  /** The last 4 characters of a key; empty for other parties. */
  last4: string;
}

/**
 * Finds who usage is recorded for. Keys, people and apps can be found after they have ended, because their usage
 * remains.
 */
export interface UsageParties {
  /** Returns the keys, people and apps with these ids. Those of other accounts and environments are left out. */
  credentials(
    of: Pick<RequestOwner, "accountId" | "environment">,
    ids: readonly string[],
  ): Promise<Map<string, UsageParty>>;
  /** Returns the names of accounts, credentials, people and apps by id, whatever account they belong to. */
  names(ids: readonly string[]): Promise<Record<string, string>>;
  /** Returns the names of people. For a deleted person, returns the address by which the account knew them. */
  people(accountId: string, ids: readonly string[]): Promise<Map<string, string>>;
}
