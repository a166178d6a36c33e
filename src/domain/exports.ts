// The export of audit events and requests to receivers outside, such as a collector or an object store.
import type { AuditEvent } from "./audit.ts";
import type { UsageRecord } from "./usage/usage.ts";

export const exportedKinds = ["audit", "requests"] as const;
export type ExportedKind = (typeof exportedKinds)[number];

/** A record with its number in the order of the export. `record` is null if it was deleted before it was sent. */
export type ExportedRecord = { seq: number; id: string } & (
  | { kind: "audit"; record: AuditEvent | null }
  | { kind: "requests"; record: UsageRecord | null }
);

/** Consecutive records. A repeated attempt sends the same batch. */
export interface ExportBatch {
  /** Sequence number of the last record. */
  end: number;
  records: readonly ExportedRecord[];
}

export interface ExportSinkState {
  name: string;
  /** The receiver has all records up to this sequence number. */
  sentSeq: number;
  /** Unix seconds of the last answer that accepted records; null: none yet. */
  sentAt: number | null;
  /** Unix seconds at which a process that exports to the receiver was last alive. */
  seenAt: number;
  /** Unix seconds since which each attempt failed; null: the last one succeeded. */
  failingSince: number | null;
  error: string | null;
  /** Number of records that the receiver lacks, and the seconds for which the oldest has waited. */
  waiting: number;
  lagSeconds: number;
}

/** Returns a lag in words, such as `3 min`. */
export function shownLag(seconds: number): string {
  if (seconds < 120) return `${seconds} s`;
  return seconds < 7_200 ? `${Math.floor(seconds / 60)} min` : `${Math.floor(seconds / 3_600)} h`;
}

export interface ExportStore {
  /**
   * Adds receivers. A new receiver gets the records from now on; a known one continues where it stopped. Changes are
   * refused while a receiver of audit events has failed for `maxAuditLag` seconds; null means never.
   */
  register(
    names: readonly string[],
    wanted: { kinds: readonly ExportedKind[]; maxAuditLag: number | null },
  ): Promise<void>;
  /**
   * Takes or renews the lease for exporting, and marks the receivers as in use. Returns false while another process has
   * the lease. If `isAlone` is true, no other process may use the database, so a lease of an earlier process is
   * ignored.
   */
  hold(
    holder: string,
    sinks: readonly string[],
    lease: { seconds: number; isAlone: boolean; maxAuditLag: number | null },
  ): Promise<boolean>;
  /** Stops refusing changes because of this receiver, unless another process exports to the receiver. */
  unrequire(sink: string): Promise<void>;
  release(holder: string): Promise<void>;
  /** Returns the next batch of a receiver. Undefined if no record waits, or the lease was lost. */
  next(holder: string, sink: string, limit: number): Promise<ExportBatch | undefined>;
  /**
   * Moves the receiver's cursor behind the batch. Returns false if the lease was lost; the next process then sends the
   * batch again.
   */
  sent(holder: string, sink: string, end: number): Promise<boolean>;
  failed(holder: string, sink: string, error: string): Promise<void>;
  states(): Promise<ExportSinkState[]>;
}
