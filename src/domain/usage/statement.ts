// The statement of a month: what was used, in lines that add up to what the ledger has of it.
import type { CredentialKind } from "../principal.ts";
import type { RequestOwner } from "./request-log.ts";
import type { UsageQuery, UsageSums } from "./usage.ts";

/** What a statement may have a line for each of, in the order in which they stand. */
export const statementGroups = ["key", "person", "model", "app", "tag"] as const;
export type StatementGroup = (typeof statementGroups)[number];

/** The speed of answers is no part of it. */
export interface StatementSums
  extends Omit<UsageSums, "nanoUsd" | "timed" | "firstTokenMs" | "generatedTokens" | "generationMs"> {
  /** Whole, however much: the sum of a month may be more than a double holds to the last digit. */
  nanoUsd: bigint;
}

export interface StatementLine extends StatementSums {
  /** Values of the groups that were asked for; null: no person, app or tag. */
  groups: Partial<Record<StatementGroup, string | null>>;
}

/** Whose usage it is, or of which part of it, and what has a line of its own. */
export interface StatementQuery extends Pick<UsageQuery, "environment" | "keyId" | "appId" | "personId" | "tag"> {
  accountId: string;
  /** Unix seconds: a calendar month of UTC. */
  start: number;
  end: number;
  groupBy: readonly StatementGroup[];
}

export interface Statement {
  /** The most expensive first. */
  lines: readonly StatementLine[];
  /** What had no room among the lines, as one; null: everything has. */
  others: StatementSums | null;
  total: StatementSums;
  /** A request may be in several lines, of each of its tags, so that they add up to more than the total. */
  overlaps: boolean;
}

/** Whom or what usage is recorded for: a key, somebody who was signed in, or an app that somebody allowed. */
export interface UsageParty {
  kind: CredentialKind;
  personId: string | null;
  appId: string | null;
  name: string;
  /** The end of a key; empty for others. */
  last4: string;
}

/** Parties stay known when they have ended: what they used is theirs. */
export interface UsageParties {
  /** By the ids that are recorded; those of other accounts and environments are left out. */
  credentials(
    of: Pick<RequestOwner, "accountId" | "environment">,
    ids: readonly string[],
  ): Promise<Map<string, UsageParty>>;
  /** Names of people; of who was deleted, the address by which the account knew them. */
  people(accountId: string, ids: readonly string[]): Promise<Map<string, string>>;
}
