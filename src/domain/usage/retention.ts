// The time that records are kept, and the port that deletes expired records.
import type { AuditEvent } from "../audit.ts";

/**
 * Kinds of records. `requests`: single requests. `hourly_usage`: hourly sums (daily sums stay). `refusals`: counts of
 * refused requests. `refused_requests`: single refused requests. `audit`: the audit log.
 */
export const retainedKinds = ["requests", "hourly_usage", "refusals", "refused_requests", "audit"] as const;
export type RetainedKind = (typeof retainedKinds)[number];

export interface RetentionSetting {
  /** Days to keep records. Null means forever. */
  days: number | null;
  /** True if the operator has not set the days. Before default retention deletes anything, operators are notified. */
  isDefault: boolean;
}

export type RetentionSettings = Readonly<Record<RetainedKind, RetentionSetting>>;

/**
 * For each kind, the Unix seconds from which on records are kept. A kind is missing if none of its records were
 * deleted.
 */
export type KeptFrom = Readonly<Partial<Record<RetainedKind, number>>>;

/** The position at which a deletion continues. Undefined means at the beginning. */
export interface PurgeCursor {
  accountId: string;
  environment: string;
}

export interface RetentionStore {
  keptFrom(): Promise<KeptFrom>;
  /**
   * Sets the time before which records are deleted and no longer added. It never moves back: returns false if another
   * process set this time or a later one. Writes the event, if given, in the same transaction.
   */
  keepFrom(kind: RetainedKind, from: number, event: AuditEvent | undefined): Promise<boolean>;
  hasOlder(kind: "requests" | "refusals", than: number): Promise<boolean>;
  /** Deletes up to about `limit` rows. `next` is null if nothing is left to delete. */
  purge(
    kind: RetainedKind,
    before: number,
    at: { cursor: PurgeCursor | undefined; limit: number },
  ): Promise<{ deleted: number; next: PurgeCursor | undefined | null }>;
  /** Returns when default retention begins to delete records, in Unix seconds. Undefined if this was never set. */
  defaultsFrom(): Promise<number | undefined>;
  /**
   * Sets when default retention begins to delete records, unless this is set already. Returns the time that applies.
   */
  beginDefaults(from: number): Promise<number>;
}

/** Unix seconds. */
export interface SeenTimes {
  /** The approximate clock time of the last deletion. */
  trusted: number;
  /**
   * Set if the clock shows a time far after `trusted`, and so may be wrong. `from`: when the first such time was seen.
   * `seen`: the last such time.
   */
  doubted: { from: number; seen: number } | undefined;
}

export interface SeenTimesStore {
  /** Returns the recorded times, or undefined. */
  seenTimes(): Promise<SeenTimes | undefined>;
  saveSeenTimes(seen: SeenTimes): Promise<void>;
}
