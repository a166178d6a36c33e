// Facts about what waits on a spool, read beside the server that may be writing it.

import { existsSync, statSync } from "node:fs";
import { join } from "node:path";
import { exactMs } from "../base/clock.ts";
import { listSegments, readSegment } from "./spool-reader.ts";

export interface SpoolFacts {
  segments: number;
  bytes: number;
  /** Requests that have ended, and those that have not, as far as was read. */
  settled: number;
  open: number;
  /** Lines that cannot be read. */
  damaged: number;
  /** Lines that a newer version wrote, and that it alone can read. */
  unknown: number;
  /** The first file with a line that cannot be read. */
  damagedFile: string | undefined;
  /** Unix milliseconds of the last write of the oldest file; undefined where there is none. */
  oldestMs: number | undefined;
  /** Whether all of it was read. */
  complete: boolean;
}

export interface SpoolFactsOptions {
  /** Whether a server writes it: the end of its newest file then is a line that is being written. */
  isWritten: boolean;
  /** Milliseconds to read for, about; with a pause now and then for others. */
  budgetMs: number;
}

/** Undefined where there is no spool. */
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
    // The server has brought it into the database meanwhile.
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
