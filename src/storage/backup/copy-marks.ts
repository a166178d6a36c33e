// Marks of a copy in both databases, so that it can continue and no server uses half of it.
import { z } from "zod";
import { StartError } from "../../base/errors.ts";
import { type Database, writing } from "../sql/database.ts";
import { addInstallation, putInstallation, readInstallation } from "../sql/installation.ts";
import { copyNames } from "../sql/sqlite-source.ts";

const copyState = z.object({
  /** Id of the SQLite database. A server that starts on it removes the id. */
  source: z.string(),
  state: z.enum(["copying", "complete"]),
  /** The progress of each table. `after`: the key of the last row, each value as text. */
  tables: z.record(z.string(), z.object({ after: z.array(z.union([z.string(), z.null()])), rows: z.number() })),
});

export type CopyState = z.infer<typeof copyState>;

export async function readCopyState(db: Database): Promise<CopyState | undefined> {
  const text = await readInstallation(db, copyNames.from);
  return text === undefined ? undefined : copyState.parse(JSON.parse(text));
}

/** Call it in the transaction that adds the rows. */
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

/** `directory` names the complete copy, without a password. */
export async function markCopied(db: Database, directory: string): Promise<void> {
  await putInstallation(db, copyNames.to, directory);
}

/** Checked before a server writes anything: throws a StartError for an incomplete copy. */
export async function requireWholeCopy(db: Database): Promise<void> {
  if ((await readCopyState(db))?.state !== "copying") return;
  throw new StartError(
    "The records of SQLite are not all in this database yet. Run `headrace migrate sqlite-to-postgres` again: it goes on where it stopped.",
  );
}

/** Ends copying once a server uses this database. Returns where its records were copied to before, if so. */
export async function beginServing(db: Database): Promise<string | undefined> {
  if ((await readInstallation(db, copyNames.id)) !== undefined) {
    await writing(db, async (tx) => await tx`DELETE FROM installation WHERE name = ${copyNames.id}`);
  }
  return await readInstallation(db, copyNames.to);
}
