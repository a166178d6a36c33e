// Opens a server's database for a command, even while the server runs.
import { join } from "node:path";
import { GatewayError, StartError } from "../base/errors.ts";
import type { Database } from "../storage/sql/database.ts";
import { openExistingDatabase } from "../storage/sql/existing-database.ts";
import { openExistingPostgres } from "../storage/sql/open-postgres.ts";

export interface DatabaseLocation {
  dataDir: string;
  /** URL of PostgreSQL; undefined for SQLite in the data directory. */
  databaseUrl: string | undefined;
}

/** Opens the database and runs `work`. Rejects with a StartError if that is impossible. */
export async function withDatabaseOf<Result>(
  { dataDir, databaseUrl }: DatabaseLocation,
  work: (db: Database) => Promise<Result>,
): Promise<Result> {
  const db =
    databaseUrl === undefined
      ? await openExistingDatabase(join(dataDir, "headrace.db"))
      : await openExistingPostgres(databaseUrl);
  try {
    return await work(db);
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error;
    throw new StartError(error.detail === undefined ? error.message : `${error.message} (${error.detail})`);
  } finally {
    await db.close();
  }
}
