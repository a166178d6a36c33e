// Checks the file system of the data directory: its kind, free space and inodes. Also checks the other disks that the
// server writes to.
import { statSync } from "node:fs";
import { readdir, stat, statfs } from "node:fs/promises";
import { join } from "node:path";
import { formatBytes } from "../engines/llama/byte-size.ts";
import { quoted, writeFault } from "./data-directory.ts";
import { type Check, type Finding, type Findings, failure, ok, warning } from "./finding.ts";
import type { Subject } from "./subject.ts";

const minBytes = 100 * 2 ** 20;
const fewBytes = 2 ** 30;
const fewPart = 0.03;
const fewInodes = 1_000;

export function diskChecks(subject: Subject): Check[] {
  const { dataDir } = subject;
  if (dataDir === undefined || !statSync(dataDir, { throwIfNoEntry: false })?.isDirectory()) return [];
  return [
    { name: "disk", run: () => disk(dataDir) },
    { name: "other disks", run: () => otherDisks(subject, dataDir) },
  ];
}

async function disk(dataDir: string): Promise<Findings> {
  const { bavail, bsize, blocks, files, ffree, type } = await statfs(dataDir);
  const refused = "Once it is full, new requests are refused.";
  const found = space("disk", { path: dataDir, refused }, bavail * bsize, blocks * bsize);
  const remedy = found.level === "ok" ? undefined : await removableText(dataDir);
  return [
    remedy === undefined ? found : { ...found, remedy: `${remedy} ${found.remedy}` },
    inodes(dataDir, ffree, files),
    kind(type),
  ];
}

/**
 * Folders that an operator may delete to free space, by the start of their names, and how to delete each. The spool and
 * the secret must never be deleted.
 */
const removable = [
  ["models", "`headrace list` and `headrace rm` delete pulled models"],
  ["backups", "delete the older copies"],
  ["replaced-", "after `headrace spool drain`, delete what a restore moved aside"],
] as const;

/**
 * Returns a text that names the folders that may be deleted, their sizes and how to delete them. Undefined if there is
 * none.
 */
export async function removableText(dataDir: string): Promise<string | undefined> {
  const names = await readdir(dataDir).catch(() => []);
  const parts = await Promise.all(
    removable.map(async ([start, how]) => {
      const folders = names.filter((name) => name.startsWith(start));
      const sizes = await Promise.all(folders.map((name) => bytesBelow(join(dataDir, name))));
      const bytes = sizes.reduce((sum, size) => sum + size, 0);
      return bytes === 0
        ? []
        : [`${folders.join(", ")} ${folders.length > 1 ? "have" : "has"} ${formatBytes(bytes)}: ${how}.`];
    }),
  );
  return parts.flat().join(" ") || undefined;
}

async function bytesBelow(folder: string): Promise<number> {
  const names = await readdir(folder, { recursive: true }).catch(() => []);
  const sizes = await Promise.all(names.map((name) => stat(join(folder, name)).catch(() => undefined)));
  return sizes.reduce((sum, stats) => sum + (stats?.isFile() ? stats.size : 0), 0);
}

interface Folder {
  path: string;
  /** Tells what the server refuses while the disk is full, as a sentence. */
  refused: string;
}

function space(name: string, { path, refused }: Folder, free: number, all: number): Finding {
  const found = `${formatBytes(free)} of ${formatBytes(all)} free`;
  const remedy = `Make room: du -xh ${quoted(path)} | sort -h | tail. ${refused}`;
  if (free < minBytes) return failure(name, found, remedy);
  return free < Math.min(fewBytes, all * fewPart) ? warning(name, found, remedy) : ok(name, found);
}

/** Checks the free inodes. File systems without a fixed number of inodes report 0. */
function inodes(dataDir: string, free: number, all: number): Finding | undefined {
  if (all === 0 || free >= fewInodes) return undefined;
  const remedy = `Delete small files that nobody needs: df -i ${quoted(dataDir)} shows the figures.`;
  const found = `only ${free} inodes are left`;
  return free === 0 ? failure("inodes", found, remedy) : warning("inodes", found, remedy);
}

/** Names of network file systems by the number that statfs(2) reports as the type. */
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

/** Checks the other disks that the server writes to. */
async function otherDisks({ config, server }: Subject, dataDir: string): Promise<Findings> {
  const files = config?.files.directory;
  const filesFolder = {
    path: files ?? join(dataDir, "files"),
    refused: "Once it is full, uploads are refused and batches wait.",
  };
  const folders: Record<string, Folder> = {
    spool: { path: join(dataDir, "spool"), refused: "Once it is full, new requests are refused." },
    ...(config?.files.s3 === undefined ? { files: filesFolder } : {}),
    models: { path: join(dataDir, "models"), refused: "Once it is full, no model can be pulled." },
    "headrace.db": { path: join(dataDir, "headrace.db"), refused: "Once it is full, changes are refused." },
  };
  const { dev } = statSync(dataDir);
  const findings = Object.entries(folders).map(async ([name, folder]): Promise<Finding | undefined> => {
    const stats = statSync(folder.path, { throwIfNoEntry: false });
    if (!stats) return name === "files" && files !== undefined && server ? notMounted(files) : undefined;
    if (stats.dev === dev) return undefined;
    const { bavail, bsize, blocks } = await statfs(folder.path);
    const found = space(`disk of ${name}`, folder, bavail * bsize, blocks * bsize);
    const canWrite = found.level !== "failure" && stats.isDirectory();
    const worst = (canWrite ? await writeFault(folder.path, found.name) : undefined) ?? found;
    // The server only reads existing models, so a full or read-only disk of models is only a warning.
    if (name !== "models" || worst.level !== "failure") return worst;
    const remedy = "To pull other models, make room, or mount the disk read-write. Models that are there are served.";
    return warning(worst.name, worst.found, remedy);
  });
  return await Promise.all(findings);
}

function notMounted(directory: string): Finding {
  return failure(
    "disk of files",
    `${directory}, which files.directory names, is not there`,
    "Mount its disk. Until then uploads are refused and batches wait.",
  );
}
