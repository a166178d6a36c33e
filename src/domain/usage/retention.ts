// How long records are kept, and what deletes those that are past it.
import type { AuditEvent } from "../audit.ts";

/**
 * `requests`: single requests; `hourly_usage`: the sums by hour, those by day stay; `refusals`: their counts;
 * `refused_requests`: those themselves; `audit`: the log.
 */
export const retainedKinds = ["requests", "hourly_usage", "refusals", "refused_requests", "audit"] as const;
export type RetainedKind = (typeof retainedKinds)[number];

export interface RetentionSetting {
  /** null: for good. */
  days: number | null;
  /** Nobody asked for it: it deletes nothing before that was announced. */
  isDefault: boolean;
}

export type RetentionSettings = Readonly<Record<RetainedKind, RetentionSetting>>;

/** Unix seconds from which on records are kept; a kind of which nothing was ever deleted is missing. */
export type KeptFrom = Readonly<Partial<Record<RetainedKind, number>>>;

/** The place to go on from; undefined: from the beginning. */
export interface PurgeCursor {
  accountId: string;
  environment: string;
}

export interface RetentionStore {
  keptFrom(): Promise<KeptFrom>;
  /**
   * Sets the time before which nothing is kept, or added. False where another process said so before. The event, where
   * there is one, is written with it. Never moves back.
   */
  keepFrom(kind: RetainedKind, from: number, event: AuditEvent | undefined): Promise<boolean>;
  hasOlder(kind: "requests" | "refusals", than: number): Promise<boolean>;
  /** Deletes some `limit` rows at most; `next` is null once there is nothing more. */
  purge(
    kind: RetainedKind,
    before: number,
    at: { cursor: PurgeCursor | undefined; limit: number },
  ): Promise<{ deleted: number; next: PurgeCursor | undefined | null }>;
  /** Unix seconds from which on defaults delete; undefined where nobody has said it yet. */
  defaultsFrom(): Promise<number | undefined>;
  /** Unless somebody has; gives what holds. */
  beginDefaults(from: number): Promise<number>;
}

/** Unix seconds. */
export interface SeenTimes {
  /** When records were last deleted by the clock, about. */
  believed: number;
  /** A time far ahead of that: since when it is seen, and when it last was. */
  doubted: { from: number; seen: number } | undefined;
}

export interface SeenTimesStore {
  /** Undefined: nobody has seen any. */
  seenTimes(): Promise<SeenTimes | undefined>;
  saveSeenTimes(seen: SeenTimes): Promise<void>;
}
