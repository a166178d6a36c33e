// Looks at the file system of the data directory: its kind, its free space and inodes, and what lies elsewhere.
import { statSync } from "node:fs";
import { statfs } from "node:fs/promises";
import { join } from "node:path";
import { formatBytes } from "../engines/llama/byte-size.ts";
import { quoted } from "./data-directory.ts";
import { type Check, type Finding, type Findings, failure, ok, warning } from "./finding.ts";
import type { Subject } from "./subject.ts";

const minBytes = 100 * 2 ** 20;
const fewBytes = 2 ** 30;
const fewPart = 0.03;
const fewInodes = 1_000;

export function diskChecks({ dataDir }: Subject): Check[] {
  if (dataDir === undefined || !statSync(dataDir, { throwIfNoEntry: false })?.isDirectory()) return [];
  return [{ name: "disk", run: () => disk(dataDir) }];
}

async function disk(dataDir: string): Promise<Findings> {
  const { bavail, bsize, blocks, files, ffree, type } = await statfs(dataDir);
  return [
    space(dataDir, bavail * bsize, blocks * bsize),
    inodes(dataDir, ffree, files),
    kind(type),
    elsewhere(dataDir),
  ];
}

function space(dataDir: string, free: number, all: number): Finding {
  const found = `${formatBytes(free)} of ${formatBytes(all)} free`;
  const remedy = `Make room: du -xh ${quoted(dataDir)} | sort -h | tail. Once it is full, new requests are refused.`;
  if (free < minBytes) return failure("disk", found, remedy);
  return free < Math.min(fewBytes, all * fewPart) ? warning("disk", found, remedy) : ok("disk", found);
}

/** Some file systems have no fixed number of them, and say 0. */
function inodes(dataDir: string, free: number, all: number): Finding | undefined {
  if (all === 0 || free >= fewInodes) return undefined;
  const remedy = `Delete small files that nobody needs: df -i ${quoted(dataDir)} shows the figures.`;
  const found = `only ${free} inodes are left`;
  return free === 0 ? failure("inodes", found, remedy) : warning("inodes", found, remedy);
}

/** Network file systems by their numbers in statfs(2). */
const networked: Readonly<Record<number, string>> = {
  [0x6969]: "NFS",
  [0x517b]: "SMB",
  [0xff534d42]: "CIFS",
  [0xfe534d42]: "SMB",
  [0x01021997]: "9p",
};
const passing: Readonly<Record<number, string>> = {
  [0x794c7630]: "the layer of a container, which is deleted with it",
  [0x01021994]: "memory (tmpfs), which a restart of the machine empties",
};

function kind(type: number): Finding | undefined {
  const network = networked[type];
  if (network !== undefined) {
    return warning(
      "file system",
      `${network}: SQLite and its lock are not safe across a network`,
      "Put the data directory on a local disk, or the records into PostgreSQL: HEADRACE_DATABASE_URL.",
    );
  }
  const lost = passing[type];
  if (lost === undefined) return undefined;
  return warning(
    "file system",
    `the data directory is in ${lost}`,
    "Mount a volume there, unless all of it may be lost.",
  );
}

function elsewhere(dataDir: string): Finding | undefined {
  const { dev } = statSync(dataDir);
  const mounted = ["spool", "models", "headrace.db"].filter((name) => {
    const stats = statSync(join(dataDir, name), { throwIfNoEntry: false });
    return stats !== undefined && stats.dev !== dev;
  });
  if (mounted.length === 0) return undefined;
  return ok("other disks", `${mounted.join(", ")} on another file system: look at its space as well`);
}
