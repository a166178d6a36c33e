// The process that checks a SQLite file: prints the results of `PRAGMA quick_check`, one per line.
import { Database } from "bun:sqlite";

const maxComplaints = 3;

/** Checks the file that the command line names. */
export async function checkDatabase([file]: readonly string[]): Promise<void> {
  const db = new Database(file, { readonly: true });
  for (const [line] of db.prepare(`PRAGMA quick_check(${maxComplaints})`).values()) process.stdout.write(`${line}\n`);
  db.close();
}
