// Checks the spool: usage that is not in the database yet, and files that cannot be read.
import { relative } from "node:path";
import { formatBytes } from "../engines/llama/byte-size.ts";
import { type SpoolFacts, spoolFacts } from "../ledger/spool-facts.ts";
import { count } from "./configuration.ts";
import { type Check, type Finding, ok, warning } from "./finding.ts";
import type { Subject } from "./subject.ts";

const readMs = 2_000;
/**
 * No request takes this long. If a spool file of a running server is older, the database does not accept the file's
 * content.
 */
const oldMs = 15 * 60_000;
const largeBytes = 512 * 2 ** 20;

export function spoolChecks({ dataDir, server }: Subject): Check[] {
  if (dataDir === undefined) return [];
  const run = async () => {
    const facts = await spoolFacts(dataDir, { isWritten: server !== undefined, budgetMs: readMs });
    return facts && [waiting(facts, server !== undefined), damage(facts, dataDir), ofNewer(facts)];
  };
  return [{ name: "spool", run }];
}

function waiting(
  { segments, bytes, settled, open, unknown, oldestMs, complete }: SpoolFacts,
  isRunning: boolean,
): Finding {
  const least = complete ? "" : "at least ";
  const found = `${count(segments, "file")}, ${formatBytes(bytes)}: ${least}${settled} ended and ${open} open requests`;
  if (!isRunning) {
    const all = settled + open;
    return ok("spool", all === 0 ? "empty" : `${found}; the next start brings them into the database`);
  }
  const ageMs = oldestMs === undefined ? 0 : Date.now() - oldestMs;
  if (bytes < largeBytes && (ageMs < oldMs || segments < 2 || unknown > 0)) return ok("spool", found);
  return warning(
    "spool",
    `${found}; the oldest file is ${Math.round(ageMs / 60_000)} minutes old`,
    "The database does not take what is there: see usage_write_failed in the log, and the database above. Nothing is lost while the disk has room.",
  );
}

function damage({ damaged, damagedFile }: SpoolFacts, dataDir: string): Finding | undefined {
  if (damaged === 0) return undefined;
  const file = damagedFile === undefined ? "" : `, first in ${relative(dataDir, damagedFile)}`;
  return warning(
    "spool files",
    `${count(damaged, "line")} cannot be read${file}: a write that was cut off, or a damaged disk`,
    "The next start skips them. Where there was no crash or loss of power, look at the disk: dmesg, smartctl.",
  );
}

function ofNewer({ unknown }: SpoolFacts): Finding | undefined {
  if (unknown === 0) return undefined;
  return warning(
    "spool version",
    `${count(unknown, "line")} cannot be understood, as of a newer Headrace: the files are kept`,
    "Start the newer Headrace on this directory once, or run its `headrace spool drain`: that brings in the usage, and counts nothing twice.",
  );
}
