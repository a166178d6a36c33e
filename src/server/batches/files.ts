// Composes the files of clients: storage, records, and the deletion of expired ones.
import { join } from "node:path";
import type { Clock } from "../../base/clock.ts";
import type { Log } from "../../base/log.ts";
import type { Config } from "../../config/config.ts";
import type { ObjectStore } from "../../domain/files/object-store.ts";
import { StoredFiles } from "../../files/stored-files.ts";
import { DiskObjects } from "../../storage/objects/disk-objects.ts";
import { S3Objects } from "../../storage/objects/s3-objects.ts";
import type { Database } from "../../storage/sql/database.ts";
import { ExpirySweep } from "../../storage/tables/expiry-sweep.ts";
import { SqlFileStore } from "../../storage/tables/files/file-store.ts";
import { SqlUploadStore } from "../../storage/tables/files/upload-store.ts";
import type { Opened } from "../opened.ts";

export interface FilesOptions {
  db: Database;
  config: Config;
  clock: Clock;
  deletionClock: { nowSeconds(): Promise<number> };
  log: Log;
  opened: Opened;
}

export interface Files {
  files: SqlFileStore;
  uploads: SqlUploadStore;
  objects: ObjectStore;
  storedFiles: StoredFiles;
  fileSweep: ExpirySweep;
}

export async function openFiles({ db, config, clock, deletionClock, log, opened }: FilesOptions): Promise<Files> {
  const files = new SqlFileStore(db);
  const uploads = new SqlUploadStore(db);
  const objects = await openObjects(config, { files, clock, log });
  const storedFiles = new StoredFiles({ files, uploads, objects, bounds: config.files, clock });
  const fileSweep = opened.add(new ExpirySweep({ what: "file", store: storedFiles, deletionClock, log }));
  return { files, uploads, objects, storedFiles, fileSweep };
}

async function openObjects(
  { files: { s3, directory }, dataDir }: Config,
  { files, clock, log }: Pick<FilesOptions, "clock" | "log"> & { files: SqlFileStore },
): Promise<ObjectStore> {
  if (s3) return new S3Objects(s3);
  const disk = new DiskObjects(directory ?? join(dataDir, "files"));
  if (directory !== undefined && !disk.wasUsed() && (await files.hasAny())) {
    // Do not create the directory: if its disk is not mounted, all files would look deleted.
    const remedy = `Mount its disk, or make the directory ${join(directory, "incoming")} to go on without these files.`;
    log.error("files_directory_empty", {
      detail: `The database knows files, and ${directory} has none: /v1/files and batches answer 503. ${remedy}`,
    });
    return disk;
  }
  await disk.open(clock.nowSeconds() * 1_000);
  return disk;
}
