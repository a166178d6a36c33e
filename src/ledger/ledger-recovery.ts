// Takes over what a process that died left on the spool.
import { unlinkSync } from "node:fs";
import type { Log } from "../base/log.ts";
import type { UsageBegin, UsageRecord } from "../domain/usage/usage.ts";
import type { Database } from "../storage/sql/database.ts";
import { syncCommits } from "../storage/sql/durable-commits.ts";
import { batchSize } from "./pending-usage.ts";
import { interruptedRecord, type SpoolLine, type UsageProgress } from "./spool-format.ts";
import { listSegments, readSegment } from "./spool-reader.ts";
import { catchUp, type UsageWriter } from "./usage/usage-rows.ts";

interface Unsettled {
  begin: UsageBegin;
  progress: UsageProgress | undefined;
}

export interface RecoveryOptions {
  db: Database;
  writer: UsageWriter;
  directory: string;
  log: Log;
  /** The process whose segments are taken over; undefined: those of all. */
  of?: number | undefined;
  /** Told of each request, whether it had ended or not, once at least: before it is in the database and gone from the spool. */
  onRecords?: ((records: readonly UsageRecord[]) => void) | undefined;
}

/** Milliseconds that a start waits for another program's lock on the database. */
const lockWaitMs = 5_000;

const unknownDetail =
  "A newer Headrace wrote them. The files stay: its next start, or its `headrace spool drain`, brings in what is in no database yet, and counts nothing twice.";
const tooOldDetail =
  "They are from before the time from which requests are kept (retention.requests_days), so nobody can tell whether they were counted: they were left out.";

/** Usage that was brought into the database. */
export interface Recovered {
  /** Requests that had ended. */
  settled: number;
  /** Those that were cut off. */
  interrupted: number;
  /** Lines that could not be read. */
  damaged: number;
  /** Lines that a newer version wrote, and that it alone can read: the files were kept for it. */
  unknown: number;
  /** Requests that are older than requests are kept, and were left out. */
  tooOld: number;
  /** The keys whose usage it is: what is counted elsewhere of these, and of what they belong to, may be too little. */
  keyIds: ReadonlySet<string>;
}

/**
 * Brings all segments into the database and deletes them. What began and never ended is settled at its last checkpoint. Where a
 * newer version wrote what cannot be understood, all of them are kept for it, and the requests of those lines are left to it.
 * Where it fails or is cut off nothing is lost: the files stay, and the next try finds what is in the database already.
 */
export async function recoverSpool(options: RecoveryOptions): Promise<Recovered> {
  const { db, writer, directory, log, of, onRecords } = options;
  const segments = listSegments(directory, of);
  const unsettled = new Map<string, Unsettled>();
  let settled: UsageRecord[] = [];
  const keyIds = new Set<string>();
  let records = 0;
  let allDamaged = 0;
  const unknown: string[] = [];
  const tooOldBefore = writer.tooOld;
  const insert = async (enough: number) => {
    while (settled.length >= enough) {
      const batch = settled.splice(0, batchSize);
      for (const { keyId } of batch) keyIds.add(keyId);
      onRecords?.(batch);
      records += await writer.insert(batch, lockWaitMs);
    }
  };
  for (const segment of segments) {
    let damaged = 0;
    for (const chunk of readSegment(segment.path)) {
      damaged += chunk.damaged;
      unknown.push(...chunk.unknown);
      for (const line of chunk.lines) {
        const record = follow(unsettled, line);
        if (record) settled.push(record);
      }
      await insert(batchSize);
    }
    allDamaged += damaged;
    if (damaged > 0) log.warn("ledger_lines_damaged", { segment: segment.number, lines: damaged });
  }
  await insert(1);
  const ended = records;
  for (const id of unknown) unsettled.delete(id);
  settled = [...unsettled.values()].map(({ begin, progress }) => interruptedRecord(begin, progress));
  await insert(1);
  await catchUp(writer, lockWaitMs);
  if (segments.length > 0) await syncCommits(db);
  if (unknown.length === 0) for (const segment of segments) unlinkSync(segment.path);
  else log.warn("usage_of_newer_version", { lines: unknown.length, files: segments.length, detail: unknownDetail });
  if (records > 0) log.info("ledger_recovered", { settled: ended, interrupted: records - ended });
  const tooOld = writer.tooOld - tooOldBefore;
  if (tooOld > 0) log.warn("usage_too_old", { records: tooOld, detail: tooOldDetail });
  return { settled: ended, interrupted: records - ended, damaged: allDamaged, unknown: unknown.length, tooOld, keyIds };
}

/** Ids of the accounts whose usage the spool has. */
export function accountsOf(directory: string): ReadonlySet<string> {
  const ids = new Set<string>();
  for (const { path } of listSegments(directory)) {
    for (const { lines } of readSegment(path)) {
      for (const line of lines) {
        if ("begin" in line) ids.add(line.begin.accountId);
        if ("settle" in line) ids.add(line.settle.accountId);
      }
    }
  }
  return ids;
}

/** Adds a line to what is known; gives a record where it is the last word about its request. */
function follow(unsettled: Map<string, Unsettled>, line: SpoolLine): UsageRecord | undefined {
  if ("settle" in line) {
    unsettled.delete(line.settle.requestId);
    return line.settle;
  }
  if ("begin" in line) {
    // Said again where a request was carried over into a newer segment.
    if (!unsettled.has(line.begin.requestId))
      unsettled.set(line.begin.requestId, { begin: line.begin, progress: undefined });
    return undefined;
  }
  const known = unsettled.get(line.progress.requestId);
  if (known) known.progress = line.progress;
  return undefined;
}
