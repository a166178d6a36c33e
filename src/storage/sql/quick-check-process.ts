// The process in which a SQLite file is checked: prints what `PRAGMA quick_check` says, a line each.
import { Database } from "bun:sqlite";

const mostComplaints = 3;

const db = new Database(process.argv[2], { readonly: true });
for (const [line] of db.prepare(`PRAGMA quick_check(${mostComplaints})`).values()) process.stdout.write(`${line}\n`);
db.close();
