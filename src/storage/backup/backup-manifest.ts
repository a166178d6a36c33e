// The manifest of a backup: its parts with their checksums, the schema of its database, and counts of its content.
import { existsSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { StartError } from "../../base/errors.ts";

export const manifestName = "manifest.json";
export const backupDatabase = "headrace.db";
export const backupSecret = "secret";
export const backupSpool = "spool";

/** The names of a backup's parts. Only files with these names are read from a backup or written by a restore. */
const partName = z.union([
  z.literal(backupDatabase),
  z.literal(backupSecret),
  z.string().regex(new RegExp(`^${backupSpool}/\\d{1,15}\\.spool$`)),
]);

const manifestShape = z.object({
  format: z.literal("headrace-backup"),
  format_version: z.int().min(1),
  /** `upgrade`: made automatically before the schema was changed. */
  kind: z.enum(["backup", "upgrade"]),
  /** Version of the program that made the backup. */
  headrace: z.string(),
  /** Number of migration steps of the database. */
  schema: z.int().min(1),
  /** Unix seconds when the backup began. The backup contains all usage that was settled before. */
  created_at: z.int().min(0),
  /** Identifies the state of the copied file, so that another start recognizes a backup of the same state. */
  source: z.string().optional(),
  counts: z.record(z.string(), z.int().min(0)),
  parts: z
    .array(z.object({ name: partName, bytes: z.int().min(0), sha256: z.string().regex(/^[0-9a-f]{64}$/) }))
    .refine((parts) => parts.some(({ name }) => name === backupDatabase))
    .refine((parts) => new Set(parts.map(({ name }) => name)).size === parts.length),
});

export type BackupManifest = z.infer<typeof manifestShape>;
export type BackupPart = BackupManifest["parts"][number];

export const formatVersion = 1;

/** Throws a StartError if the folder is not a readable backup. */
export function readManifest(folder: string): BackupManifest {
  const file = join(folder, manifestName);
  if (!existsSync(file) || !statSync(file).isFile()) {
    throw new StartError(
      `There is no backup in ${folder}: it has no ${manifestName}. Name the folder that \`headrace backup\` made.`,
    );
  }
  let manifest: BackupManifest;
  try {
    manifest = manifestShape.parse(JSON.parse(readFileSync(file, "utf8")));
  } catch {
    throw new StartError(
      `${file} is damaged, or of a newer Headrace: nothing can be restored from this backup. Use another one.`,
    );
  }
  if (manifest.format_version <= formatVersion) return manifest;
  throw new StartError(
    `The backup ${folder} has the format ${manifest.format_version}, this Headrace knows ${formatVersion}: restore it with Headrace ${manifest.headrace} or later.`,
  );
}

/** Reads the manifest of a backup. Returns undefined if the folder is no backup of Headrace. */
export function findManifest(folder: string): BackupManifest | undefined {
  try {
    return readManifest(folder);
  } catch (error) {
    if (error instanceof StartError) return undefined;
    throw error;
  }
}

export function bytesOf({ parts }: Pick<BackupManifest, "parts">): number {
  return parts.reduce((sum, { bytes }) => sum + bytes, 0);
}
