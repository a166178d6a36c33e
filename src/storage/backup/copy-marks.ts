// Marks of a copy in both databases, so that it can continue and no server uses half of it.
import { z } from "zod";
import { StartError } from "../../base/errors.ts";
import { type Database, writing } from "../sql/database.ts";
import { addInstallation, putInstallation, readInstallation } from "../sql/installation.ts";
import { copyNames } from "../sql/sqlite-source.ts";

const copyState = z.object({
  /** Id of the copied SQLite database. A server that starts on that database removes the id. */
  source: z.string(),
  state: z.enum(["copying", "complete"]),
  /** The progress of each table. `after`: the key of the last copied row, each value as text. */
  tables: z.record(z.string(), z.object({ after: z.array(z.union([z.string(), z.null()])), rows: z.number() })),
});

export type CopyState = z.infer<typeof copyState>;

export async function readCopyState(db: Database): Promise<CopyState | undefined> {
  const text = await readInstallation(db, copyNames.from);
  return text === undefined ? undefined : copyState.parse(JSON.parse(text));
}

/** Stores the progress of a copy. Call it in the transaction that adds the rows. */
export async function writeCopyState(tx: Database, state: CopyState): Promise<void> {
  await putInstallation(tx, copyNames.from, JSON.stringify(state));
}

export async function forgetCopy(tx: Database): Promise<void> {
  await tx`DELETE FROM installation WHERE name = ${copyNames.from}`;
}

/** Returns the id of this SQLite database, which lasts until a server starts on it. */
export async function copyIdOf(db: Database): Promise<string> {
  await addInstallation(db, copyNames.id, crypto.randomUUID());
  return (await readInstallation(db, copyNames.id)) ?? "";
}

/** Records that a copy of this database is complete. `directory` is the location of the copy, without a password. */
export async function markCopied(db: Database, directory: string): Promise<void> {
  await putInstallation(db, copyNames.to, directory);
}

/** Throws a StartError if the database is an incomplete copy. Call it before a server writes anything. */
export async function requireWholeCopy(db: Database): Promise<void> {
  if ((await readCopyState(db))?.state !== "copying") return;
  throw new StartError(
    "The records of SQLite are not all in this database yet. Run `headrace migrate sqlite-to-postgres` again: it goes on where it stopped.",
  );
}

/**
 * Ends copying from this database once a server uses it. Returns the location to which its records were copied before,
 * if any.
 */
export async function beginServing(db: Database): Promise<string | undefined> {
  if ((await readInstallation(db, copyNames.id)) !== undefined) {
    await writing(db, async (tx) => await tx`DELETE FROM installation WHERE name = ${copyNames.id}`);
  }
  return await readInstallation(db, copyNames.to);
}
