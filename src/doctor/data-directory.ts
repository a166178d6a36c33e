// Checks the data directory: its owner, who can read it, how fast it can be written, and which process uses it.
import { readdirSync, readFileSync, type Stats, statSync } from "node:fs";
import { open, unlink } from "node:fs/promises";
import { join, relative } from "node:path";
import { reasonOf } from "./examine.ts";
import { type Check, type Finding, failure, ok, skipped, warning } from "./finding.ts";
import type { Subject } from "./subject.ts";

const slowSyncMs = 100;

export function dataDirectoryChecks(subject: Subject): Check[] {
  const { dataDir } = subject;
  if (dataDir === undefined) {
    return [{ name: "directory", run: () => skipped("directory", "not known before the configuration is right") }];
  }
  const stats = statSync(dataDir, { throwIfNoEntry: false });
  if (!stats) return [{ name: "directory", run: () => missing(dataDir) }];
  if (!stats.isDirectory()) return [{ name: "directory", run: () => noDirectory(dataDir) }];
  return [
    { name: "directory", run: () => [directory(dataDir, stats), foreignFiles(dataDir, stats)] },
    { name: "permissions", run: () => permissions(dataDir) },
    { name: "writing", run: () => writing(dataDir) },
    { name: "lock", run: () => lock(subject) },
  ];
}

function missing(dataDir: string): Finding {
  return warning(
    "directory",
    `${dataDir} is not there yet`,
    "Where no server was ever started that is right: headrace serve makes it. Otherwise name the right one: --data-dir or HEADRACE_DATA_DIR.",
  );
}

function noDirectory(dataDir: string): Finding {
  return failure("directory", `${dataDir} is no directory`, "Name another with --data-dir or HEADRACE_DATA_DIR.");
}

function directory(dataDir: string, stats: Stats): Finding {
  const shown = `${dataDir}, ${modeOf(stats)}, of ${userName(stats.uid)}`;
  if ((stats.mode & 0o002) !== 0) {
    return failure("directory", `${shown}: everybody may write there`, `chmod 700 ${quoted(dataDir)}`);
  }
  return ok("directory", shown);
}

/** Reports files of other users. A command that was once run as root leaves files that the server cannot open. */
function foreignFiles(dataDir: string, { uid }: Stats): Finding | undefined {
  if (process.getuid === undefined) return undefined;
  const foreign = ownFiles(dataDir).filter(({ stats }) => stats.uid !== uid);
  const [first] = foreign;
  if (!first) return undefined;
  const others = foreign.length > 1 ? ` and ${foreign.length - 1} more` : "";
  return failure(
    "owner",
    `${relative(dataDir, first.path)}${others} belongs to ${userName(first.stats.uid)}, the directory to ${userName(uid)}`,
    `The server must be able to write them: chown -R ${uid} ${quoted(dataDir)}`,
  );
}

/** Checks that only the owner can read files with secrets or with people's texts. */
function permissions(dataDir: string): Finding {
  const open = ownFiles(dataDir).filter(({ stats }) => (stats.mode & 0o077) !== 0);
  if (open.length === 0) return ok("permissions", "what is secret is for its owner only");
  const shown = open.map(({ path, stats }) => `${relative(dataDir, path)} (${modeOf(stats)})`).join(", ");
  const paths = open.map(({ path }) => quoted(path)).join(" ");
  return failure("permissions", `others may read ${shown}`, `chmod go= ${paths}`);
}

interface OwnFile {
  path: string;
  stats: Stats;
}

const secretFiles =
  /^(secret|credentials(-\w+)?\.json|node\.json|\.?server\.lock|headrace\.db(-wal|-shm)?|spool|backups)$/;

function ownFiles(dataDir: string): OwnFile[] {
  const names = readdirSync(dataDir).filter((name) => secretFiles.test(name));
  const paths = names.map((name) => join(dataDir, name));
  const spool = join(dataDir, "spool");
  const segments = names.includes("spool") ? readdirSync(spool).map((name) => join(spool, name)) : [];
  return [...paths, ...segments].flatMap((path) => {
    // Files may be gone by now, because a running server creates and deletes them.
    const stats = statSync(path, { throwIfNoEntry: false });
    return stats ? [{ path, stats }] : [];
  });
}

/**
 * Measures how long a write with a sync takes, because the ledger waits for such writes: a request is answered only
 * after its usage is on disk.
 */
async function writing(dataDir: string): Promise<Finding> {
  const file = join(dataDir, `.doctor-${process.pid}`);
  let syncMs: number;
  try {
    syncMs = await timedSync(file);
  } catch (error) {
    return cannotWrite(dataDir, error);
  }
  const found = `a file is written and synced in ${syncMs < 10 ? syncMs.toFixed(1) : Math.round(syncMs)} ms`;
  if (syncMs < slowSyncMs) return ok("writing", found);
  return warning(
    "writing",
    found,
    "A disk this slow, or this busy, delays every answer: see iostat -x 1, and put the data directory on a local disk.",
  );
}

/** Returns a finding if the directory cannot be written. */
export async function writeFault(directory: string, name: string): Promise<Finding | undefined> {
  try {
    await timedSync(join(directory, `.doctor-${process.pid}`));
    return undefined;
  } catch (error) {
    return { ...cannotWrite(directory, error), name };
  }
}

/**
 * Returns the milliseconds of a write and sync to disk: the median of three. The sync runs in another thread, so that
 * it does not delay measurements in this one.
 */
async function timedSync(path: string): Promise<number> {
  const file = await open(path, "wx", 0o600);
  try {
    const times: number[] = [];
    for (let turn = 0; turn < 3; turn++) {
      const startedMs = performance.now();
      await file.write("headrace doctor\n");
      await file.sync();
      times.push(performance.now() - startedMs);
    }
    return times.sort((a, b) => a - b)[1] ?? 0;
  } finally {
    await file.close();
    await unlink(path);
  }
}

function cannotWrite(dataDir: string, error: unknown): Finding {
  const code = (error as { code?: string }).code ?? "";
  const found = `nothing can be written in ${dataDir} (${code || reasonOf(error)})`;
  const remedies: Record<string, string> = {
    EROFS:
      "The file system is mounted read-only: mount it read-write, or name another with --data-dir. After an error of the disk, dmesg says why.",
    ENOSPC: `The disk is full: df -h ${quoted(dataDir)} and df -i ${quoted(dataDir)} show it. Usage that cannot be written refuses new requests.`,
    EDQUOT: "The quota of this user is used up.",
  };
  const usual = `Run this as the user that owns it (${userName(statSync(dataDir).uid)}), or chown it to who runs the server.`;
  return failure("writing", found, remedies[code] ?? usual);
}

function lock({ server, lockFault, dataDir }: Subject): Finding {
  if (lockFault !== undefined) {
    return failure(
      "lock",
      `server.lock or .server.lock cannot be opened: ${lockFault}`,
      `See who owns ${dataDir}, and what is there.`,
    );
  }
  if (!server) return ok("lock", "free: no server runs on this directory");
  if (server.pid === undefined) return ok("lock", "held by a server, which this system does not name");
  const user = server.facts?.user;
  return ok("lock", `held by process ${server.pid}${user === undefined ? "" : `, of ${userName(user)}`}`);
}

function modeOf({ mode }: Stats): string {
  return (mode & 0o7777).toString(8).padStart(4, "0");
}

/**
 * Returns the name of a user. Bun's `userInfo` is not used: it reads the environment, which has no name in a container.
 */
function userName(uid: number): string {
  try {
    const name = readFileSync("/etc/passwd", "utf8")
      .split("\n")
      .map((line) => line.split(":"))
      .find(([, , id]) => id === String(uid))?.[0];
    if (name) return name;
  } catch {
    // If the file cannot be read, the user's number is shown instead of a name.
  }
  return uid === 0 ? "root" : `user ${uid}`;
}

export function quoted(path: string): string {
  return /^[\w./-]+$/.test(path) ? path : `'${path.replaceAll("'", "'\\''")}'`;
}
