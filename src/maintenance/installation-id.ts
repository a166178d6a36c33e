// Detects that the database of a used data directory is missing or replaced, so that a server does not begin anew by
// accident.
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { StartError } from "../base/errors.ts";
import { listSegments } from "../ledger/spool-reader.ts";
import { installationName } from "../storage/backup/restore-steps.ts";
import { replaceFile } from "../storage/files/durable-file.ts";
import { type Database, databaseName, dialectOf, writing } from "../storage/sql/database.ts";
import { syncCommits } from "../storage/sql/durable-commits.ts";
import { addInstallation, readInstallation } from "../storage/sql/installation.ts";
import { schemaState } from "../storage/sql/schema.ts";

/** Name of the installation's id in the table `installation`. */
const idName = "id";
/** Version of the schema that added the table. */
const namedSince = 8;

/**
 * Reports whether a database was used with this data directory: it has a file `installation`, unwritten usage, or a
 * first key. The last two detect earlier versions, which wrote no file `installation`.
 */
export function wasUsed(dataDir: string): boolean {
  return knownId(dataDir) !== undefined || hasUsage(join(dataDir, "spool")) || hasCredentials(dataDir);
}

/** Throws a StartError if the data directory was used and its SQLite file is missing or empty. */
export function requireDatabaseFile(dataDir: string): void {
  const file = join(dataDir, databaseName);
  const isThere = (statSync(file, { throwIfNoEntry: false })?.size ?? 0) > 0;
  if (!isThere && wasUsed(dataDir)) throw startError(emptied(dataDir, `The database ${file} is missing or empty`));
}

export interface InstallationFault {
  /** Description of the fault, without a final full stop. */
  found: string;
  remedy: string;
}

/** Returns why a server must not start with this database; undefined if it may. Changes nothing. */
export async function installationFault(db: Database, dataDir: string): Promise<InstallationFault | undefined> {
  const { version } = await schemaState(db, dialectOf(db));
  const id = version < namedSince ? undefined : await readInstallation(db, idName);
  if (id === undefined)
    return (version > 0 && (await holdsAccounts(db))) || !wasUsed(dataDir) ? undefined : withoutAccounts(dataDir);
  const known = knownId(dataDir);
  return known === undefined || known === id ? undefined : foreign(dataDir);
}

/** Returns the fault for a used data directory whose database has no account. */
export function withoutAccounts(dataDir: string): InstallationFault {
  return emptied(dataDir, "The database has no accounts");
}

export function startError({ found, remedy }: InstallationFault): StartError {
  return new StartError(`${found}. ${remedy}`);
}

/**
 * Stores the database's id in the file `installation`, and returns it. Throws a StartError if the directory was used
 * with another database, or if the database has lost its content.
 */
export async function claimInstallation(db: Database, dataDir: string): Promise<string | undefined> {
  const known = knownId(dataDir);
  let id = await readInstallation(db, idName);
  if (id === undefined) {
    if (!(await holdsAccounts(db)) && wasUsed(dataDir)) throw startError(withoutAccounts(dataDir));
    const own = known ?? `inst_${Bun.randomUUIDv7()}`;
    // If two replicas start at once, the id of the first one counts.
    await writing(db, (tx) => addInstallation(tx, idName, own));
    id = await readInstallation(db, idName);
  }
  if (known !== undefined && known !== id) throw startError(foreign(dataDir));
  if (known !== undefined || id === undefined) return id;
  await syncCommits(db);
  replaceFile(join(dataDir, installationName), `${id}\n`);
  return id;
}

function knownId(dataDir: string): string | undefined {
  const file = join(dataDir, installationName);
  // The file may be empty after a copy onto a full disk.
  return (existsSync(file) && readFileSync(file, "utf8").trim()) || undefined;
}

function hasUsage(spool: string): boolean {
  return existsSync(spool) && listSegments(spool).some(({ path }) => statSync(path).size > 0);
}

function hasCredentials(dataDir: string): boolean {
  return existsSync(dataDir) && readdirSync(dataDir).some((name) => /^credentials(-\w+)?\.json$/.test(name));
}

async function holdsAccounts(db: Database): Promise<boolean> {
  const rows: unknown[] = await db`SELECT 1 FROM accounts LIMIT 1`;
  return rows.length > 0;
}

function emptied(dataDir: string, what: string): InstallationFault {
  return {
    found: `${what}, and ${dataDir} was used before: every API key would be refused, and usage of before be booked into a new database`,
    remedy: `Put the database back, or restore a backup: headrace restore BACKUP --data-dir ${dataDir}. To begin anew on purpose, move everything else out of ${dataDir} first.`,
  };
}

function foreign(dataDir: string): InstallationFault {
  return {
    found: `The data directory ${dataDir} belongs to another database: usage that waits in it would be booked there, and keys are unknown`,
    remedy: `Name the database that it was used with, or give this one a data directory of its own. If the database was replaced on purpose, delete ${join(dataDir, installationName)}.`,
  };
}
