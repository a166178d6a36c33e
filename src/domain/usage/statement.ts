// The statement of a month: lines of usage that add up to the ledger's total.
import type { CredentialKind } from "../principal.ts";
import type { RequestOwner } from "./request-log.ts";
import type { UsageQuery, UsageSums } from "./usage.ts";

/** The groups of a statement's lines, in the order of their columns. */
export const statementGroups = ["key", "person", "model", "app", "tag"] as const;
export type StatementGroup = (typeof statementGroups)[number];

/** Statements leave out the speed of answers. */
export interface StatementSums
  extends Omit<UsageSums, "nanoUsd" | "timed" | "firstTokenMs" | "generatedTokens" | "generationMs"> {
  /** Whole nano-USD: the sum of a month may exceed what a double holds exactly. */
  nanoUsd: bigint;
}

export interface StatementLine extends StatementSums {
  /** Values of the requested groups; null: no person, app or tag. */
  groups: Partial<Record<StatementGroup, string | null>>;
}

/** The owner or part of a statement, and the groups of its lines. */
export interface StatementQuery extends Pick<UsageQuery, "environment" | "keyId" | "appId" | "personId" | "tag"> {
  accountId: string;
  /** Unix seconds: a calendar month of UTC. */
  start: number;
  end: number;
  groupBy: readonly StatementGroup[];
}

export interface Statement {
  /** Lines, the most expensive first. */
  lines: readonly StatementLine[];
  /** The sum of further lines for which the statement has no room; null: there are none. */
  others: StatementSums | null;
  total: StatementSums;
  /** True if a request is in the line of each of its tags, so that the lines exceed the total. */
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

/** Parties stay known after they end, because their usage remains. */
export interface UsageParties {
  /** Returns parties by the recorded ids, without those of other accounts and environments. */
  credentials(
    of: Pick<RequestOwner, "accountId" | "environment">,
    ids: readonly string[],
  ): Promise<Map<string, UsageParty>>;
  /** Returns names of people; for deleted people, the address by which the account knew them. */
  people(accountId: string, ids: readonly string[]): Promise<Map<string, string>>;
}
