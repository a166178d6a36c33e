// The retention of records, and the port that deletes expired records.
import type { AuditEvent } from "../audit.ts";

/**
 * `requests`: single requests; `hourly_usage`: hourly sums, while daily ones stay; `refusals`: counts of refused
 * requests; `refused_requests`: single refused requests; `audit`: the audit log.
 */
export const retainedKinds = ["requests", "hourly_usage", "refusals", "refused_requests", "audit"] as const;
export type RetainedKind = (typeof retainedKinds)[number];

export interface RetentionSetting {
  /** null: kept permanently. */
  days: number | null;
  /** True if the operator has not configured the retention. A default deletes nothing before it was announced. */
  isDefault: boolean;
}

export type RetentionSettings = Readonly<Record<RetainedKind, RetentionSetting>>;

/** Unix seconds from which on records are kept. A kind of which nothing was deleted is missing. */
export type KeptFrom = Readonly<Partial<Record<RetainedKind, number>>>;

/** The position to continue from. Undefined: the beginning. */
export interface PurgeCursor {
  accountId: string;
  environment: string;
}

export interface RetentionStore {
  keptFrom(): Promise<KeptFrom>;
  /**
   * Sets the time before which records are neither kept nor added. Returns false if another process set it before.
   * Writes the event, if there is one, in the same transaction. Never moves back.
   */
  keepFrom(kind: RetainedKind, from: number, event: AuditEvent | undefined): Promise<boolean>;
  hasOlder(kind: "requests" | "refusals", than: number): Promise<boolean>;
  /** Deletes about `limit` rows at most. `next` is null if nothing is left. */
  purge(
    kind: RetainedKind,
    before: number,
    at: { cursor: PurgeCursor | undefined; limit: number },
  ): Promise<{ deleted: number; next: PurgeCursor | undefined | null }>;
  /** Returns the Unix seconds from which on defaults delete. Undefined if no process has set it. */
  defaultsFrom(): Promise<number | undefined>;
  /** Sets the time from which defaults delete, unless it is set already. Returns the time in effect. */
  beginDefaults(from: number): Promise<number>;
}

/** Unix seconds. */
export interface SeenTimes {
  /** The approximate time of the last deletion by the clock. */
  trusted: number;
  /**
   * A clock time far ahead of `trusted`, which may be wrong: since when such a time has been seen, and the last one
   * that was seen.
   */
  doubted: { from: number; seen: number } | undefined;
}

export interface SeenTimesStore {
  /** Returns undefined if no time was recorded. */
  seenTimes(): Promise<SeenTimes | undefined>;
  saveSeenTimes(seen: SeenTimes): Promise<void>;
}
