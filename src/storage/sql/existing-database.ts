// Opens a server's database for another command: never creates it, never migrates it.
import { existsSync } from "node:fs";
import { SQL } from "bun";
import { StartError } from "../../base/errors.ts";
import type { Database } from "./database.ts";
import { requireCurrent } from "./schema.ts";

/**
 * Opens the database. Throws a StartError if it is missing or has another schema version, because a migration would
 * break a running server.
 */
export async function openExistingDatabase(file: string): Promise<Database> {
  if (!existsSync(file)) {
    throw new StartError(
      `There is no database ${file} yet: start the server once with \`headrace serve\`, or name its data directory with --data-dir.`,
    );
  }
  const db = new SQL({ adapter: "sqlite", filename: file, create: false });
  try {
    await db.unsafe("PRAGMA busy_timeout = 5000");
    await requireCurrent(db, "sqlite");
    return db;
  } catch (error) {
    await db.close();
    if (!(error instanceof SQL.SQLiteError)) throw error;
    throw new StartError(`The database ${file} cannot be read: ${error.message}`, { cause: error });
  }
}
