// Imports the spool of a process that has died into the database.
import { unlinkSync } from "node:fs";
import type { Log } from "../base/log.ts";
import { isEndUserTag } from "../domain/end-users.ts";
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
  /** Number of the process whose segments are imported; undefined for all. */
  of?: number | undefined;
  /** Called with each request, ended or not, before it is in the database. A request may be passed more than once. */
  onRecords?: ((records: readonly UsageRecord[]) => void) | undefined;
}

/** Milliseconds for which a start waits for another program's database lock. */
const lockWaitMs = 5_000;

const unknownDetail =
  "A newer Headrace wrote them. The files stay: its next start, or its `headrace spool drain`, brings in what is in no database yet, and counts nothing twice.";
const tooOldDetail =
  "They are from before the time from which requests are kept (retention.requests_days), so nobody can tell whether they were counted: they were left out.";

/** The result of importing a spool into the database. */
export interface Recovered {
  /** The number of requests that had ended. */
  settled: number;
  /** Number of requests without an end, because the process died. */
  interrupted: number;
  /** The number of lines that could not be read. */
  damaged: number;
  /** Number of lines that only a newer version can read; the files are kept for it. */
  unknown: number;
  /** Number of requests beyond their retention, which were left out. */
  tooOld: number;
  /** Ids of the affected keys. Limit counters of these keys and their owners may be too low. */
  keyIds: ReadonlySet<string>;
  /** The tags of the end users in the affected requests, by the id of the key. */
  endUsers: ReadonlyMap<string, ReadonlySet<string>>;
}

/**
 * Imports all segments into the database and deletes them. Requests without an end are settled at their last
 * checkpoint. If a newer version wrote lines that are unreadable here, all files are kept for that version. After a
 * failure the files stay, and the next attempt skips records that the database already has.
 */
export async function recoverSpool(options: RecoveryOptions): Promise<Recovered> {
  const { db, writer, directory, log, of, onRecords } = options;
  const segments = listSegments(directory, of);
  const unsettled = new Map<string, Unsettled>();
  let settled: UsageRecord[] = [];
  const keyIds = new Set<string>();
  const endUsers = new Map<string, Set<string>>();
  let records = 0;
  let allDamaged = 0;
  const unknown: string[] = [];
  const tooOldBefore = writer.tooOld;
  const insert = async (enough: number) => {
    while (settled.length >= enough) {
      const batch = settled.splice(0, batchSize);
      for (const { keyId, tags = [] } of batch) {
        keyIds.add(keyId);
        for (const tag of tags.filter(isEndUserTag)) {
          const known = endUsers.get(keyId);
          if (known) known.add(tag);
          else endUsers.set(keyId, new Set([tag]));
        }
      }
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
  const counts = { settled: ended, interrupted: records - ended, damaged: allDamaged, unknown: unknown.length, tooOld };
  return { ...counts, keyIds, endUsers };
}

/** Returns the ids of accounts with usage in the spool. */
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

/** Applies a line to the open requests. Returns the record if the line ends its request. */
function follow(unsettled: Map<string, Unsettled>, line: SpoolLine): UsageRecord | undefined {
  if ("settle" in line) {
    unsettled.delete(line.settle.requestId);
    return line.settle;
  }
  if ("begin" in line) {
    // If an open request was copied to a newer segment, its first line occurs again. The earlier line is kept.
    if (!unsettled.has(line.begin.requestId))
      unsettled.set(line.begin.requestId, { begin: line.begin, progress: undefined });
    return undefined;
  }
  const known = unsettled.get(line.progress.requestId);
  if (known) known.progress = line.progress;
  return undefined;
}
