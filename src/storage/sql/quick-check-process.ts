// The process in which a SQLite file is checked: prints what `PRAGMA quick_check` says, a line each.
import { Database } from "bun:sqlite";

const maxComplaints = 3;

/** `<file>` */
export async function checkDatabase([file]: readonly string[]): Promise<void> {
  const db = new Database(file, { readonly: true });
  for (const [line] of db.prepare(`PRAGMA quick_check(${maxComplaints})`).values()) process.stdout.write(`${line}\n`);
  db.close();
}
