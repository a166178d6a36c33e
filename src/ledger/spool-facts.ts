// Reads facts about a spool, even while a server writes it.

import { existsSync, statSync } from "node:fs";
import { join } from "node:path";
import { exactMs } from "../base/clock.ts";
import { listSegments, readSegment } from "./spool-reader.ts";

export interface SpoolFacts {
  segments: number;
  bytes: number;
  /** Number of ended and of open requests in the part that was read. */
  settled: number;
  open: number;
  /** Number of unreadable lines. */
  damaged: number;
  /** The number of lines that only a newer version can read. */
  unknown: number;
  /** The first file with an unreadable line. */
  damagedFile: string | undefined;
  /** Time of the last write to the oldest file, in Unix milliseconds; undefined without files. */
  oldestMs: number | undefined;
  /** True if the whole spool was read. */
  complete: boolean;
}

export interface SpoolFactsOptions {
  /** True if a server is writing the spool, so that its newest file may end with an incomplete line. */
  isWritten: boolean;
  /** Approximate milliseconds after which reading ends, including pauses. */
  budgetMs: number;
}

/** Reads facts about the spool. Returns undefined if there is no spool. */
export async function spoolFacts(
  dataDir: string,
  { isWritten, budgetMs }: SpoolFactsOptions,
): Promise<SpoolFacts | undefined> {
  const directory = join(dataDir, "spool");
  if (!existsSync(directory)) return undefined;
  const facts: SpoolFacts = {
    ...{ segments: 0, bytes: 0, settled: 0, open: 0, damaged: 0, unknown: 0 },
    ...{ damagedFile: undefined, oldestMs: undefined, complete: true },
  };
  const begun = new Set<string>();
  const ended = new Set<string>();
  const untilMs = exactMs() + budgetMs;
  const segments = listSegments(directory);
  for (const { path } of segments) {
    const stats = statSync(path, { throwIfNoEntry: false });
    // The server has written the file's records to the database and deleted the file.
    if (!stats) continue;
    facts.segments++;
    facts.bytes += stats.size;
    facts.oldestMs = Math.min(facts.oldestMs ?? stats.mtimeMs, stats.mtimeMs);
    if (!facts.complete) continue;
    for (const { lines, damaged, unknown } of readSegment(path)) {
      facts.unknown += unknown.length;
      for (const line of lines) {
        if ("begin" in line) begun.add(line.begin.requestId);
        else if ("settle" in line) ended.add(line.settle.requestId);
      }
      if (damaged > 0 && !(isWritten && path === segments.at(-1)?.path)) {
        facts.damaged += damaged;
        facts.damagedFile ??= path;
      }
      await Bun.sleep(0);
      facts.complete = exactMs() < untilMs;
      if (!facts.complete) break;
    }
  }
  facts.settled = ended.size;
  facts.open = begun.difference(ended).size;
  return facts;
}
