// Copies a server's records from SQLite to PostgreSQL.
import { existsSync } from "node:fs";
import { join } from "node:path";
import { StartError } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import { type Recovered, recoverSpool } from "../ledger/ledger-recovery.ts";
import { openUsageWriter } from "../ledger/usage/usage-writer.ts";
import { copyIdOf, markCopied } from "../storage/backup/copy-marks.ts";
import { type ComparedTable, type CopyProgress, copyRecords } from "../storage/backup/copy-records.ts";
import { lockDataDirectory } from "../storage/files/data-directory-lock.ts";
import { loadSecrets } from "../storage/files/secret-file.ts";
import { type Database, openDatabase } from "../storage/sql/database.ts";
import { schemaState } from "../storage/sql/schema.ts";
import { SqliteSource } from "../storage/sql/sqlite-source.ts";
import { claimSecret, secretInUse } from "./installation-secret.ts";

export interface MoveOptions {
  dataDir: string;
  databaseUrl: string;
  /** The secrets, each as 64 hex digits; undefined to read them from the data directory. */
  secretsHex: readonly string[] | undefined;
  nowSeconds: number;
  log: Log;
  /** Called with the usage that was imported from the spool, before anything is copied. */
  onDrained?(drained: Recovered): void;
  onProgress(progress: CopyProgress): void;
  /** Rows per statement. */
  batchRows?: number;
}

export interface Moved {
  tables: ComparedTable[];
  /** True if both databases have the same records. */
  isSame: boolean;
  /** Path of the secret file for servers that use PostgreSQL; undefined if HEADRACE_SECRET was given. */
  secretFile: string | undefined;
}

/**
 * Copies all records. No server may run on the data directory. Throws a StartError if nothing or not everything was
 * copied.
 */
export async function moveToPostgres(options: MoveOptions): Promise<Moved> {
  const { dataDir, databaseUrl, secretsHex, nowSeconds, log } = options;
  const file = join(dataDir, "headrace.db");
  if (!existsSync(file)) {
    throw new StartError(`There is no database ${file}: name the data directory of the server with --data-dir.`);
  }
  const release = lockDataDirectory(dataDir);
  try {
    const db = await openDatabase(file);
    try {
      await requireOwnSchema(db);
      const secretFile = join(dataDir, "secret");
      if (secretsHex === undefined && !existsSync(secretFile)) {
        throw new StartError(`There is no file ${secretFile}: set HEADRACE_SECRET to what the server is started with.`);
      }
      const secrets = loadSecrets(dataDir, secretsHex);
      const secret = await secretInUse(db, secrets, nowSeconds);
      // Keeps the secret in use, although the secret file may begin with a newer one. A server takes over the newer one
      // at a later start.
      if (!secret || !(await claimSecret(db, [secret, ...secrets], nowSeconds))) throw otherSecret();
      const writer = await openUsageWriter(db);
      try {
        options.onDrained?.(await recoverSpool({ db, writer, directory: join(dataDir, "spool"), log }));
      } finally {
        writer.close();
      }
      const sourceId = await copyIdOf(db);
      const source = new SqliteSource(file);
      let tables: ComparedTable[];
      try {
        const { onProgress, batchRows } = options;
        tables = await copyRecords({
          ...{ source, sourceId, databaseUrl, onProgress },
          ...(batchRows === undefined ? {} : { batchRows }),
        });
      } finally {
        source.close();
      }
      const isSame = tables.every(({ differences }) => differences.length === 0);
      if (isSame) await markCopied(db, addressOf(databaseUrl));
      return { tables, isSame, secretFile: secretsHex === undefined ? secretFile : undefined };
    } finally {
      await db.close();
    }
  } finally {
    release();
  }
}

/** Returns the URL of the database without user and password. */
function addressOf(databaseUrl: string): string {
  const { host, pathname } = new URL(databaseUrl);
  return host + pathname;
}

function otherSecret(): StartError {
  return new StartError(
    "HEADRACE_SECRET is not the secret that the server has used: with another one every key is refused. Set it to what it was, or unset it where the file `secret` in the data directory was used.",
  );
}

/** Throws if the schema is newer than this version: PostgreSQL would get only the tables that this version knows. */
async function requireOwnSchema(db: Database): Promise<void> {
  const { version, known } = await schemaState(db, "sqlite");
  if (version === known) return;
  throw new StartError(
    `The database has schema version ${version}, this Headrace knows ${known} and would leave out the rest: move it with the newer Headrace that wrote it.`,
  );
}
