// Copies a SQLite database during writes, and checks the copy. Runs in a thread of its own.
import { Database as Sqlite } from "bun:sqlite";
import { closeSync, openSync, readSync } from "node:fs";

export interface CopyRequest {
  source: string;
  /** Path of the copy: a file that is empty or missing. */
  target: string;
  /** True if the copy should give way to other work. */
  gently: boolean;
}

export interface CheckedDatabase {
  schema: number;
  counts: Record<string, number>;
}

export interface CopiedDatabase extends CheckedDatabase {
  sha256: string;
}

export type CopyAnswer =
  /** The copy is being checked. */
  | { state: "copied" }
  | { state: "done"; copied: CopiedDatabase }
  /**
   * `code` is SQLite's error code, such as SQLITE_FULL. If it is undefined, `message` describes the fault of the
   * database.
   */
  | { state: "failed"; code: string | undefined; message: string };

/** The counts by which people recognize their installation. */
const counted: Readonly<Record<string, string>> = {
  accounts: "accounts",
  keys: "api_keys WHERE kind = 'key'",
  people: "people",
  apps: "apps",
  requests: "usage_records",
  chats: "stored_chats",
  responses: "stored_responses",
  events: "audit_log",
};
const waitMs = 10_000;
const chunkBytes = 1024 * 1024;

/**
 * Copies a snapshot of the database without blocking writers. Later writes and deleted content are not in the copy. The
 * write-ahead log cannot restart meanwhile, so it grows.
 */
export function copyDatabase({ source, target }: Pick<CopyRequest, "source" | "target">): void {
  const db = new Sqlite(source, { readonly: true });
  try {
    db.run(`PRAGMA busy_timeout = ${waitMs}`);
    db.run("VACUUM INTO ?", [target]);
  } finally {
    db.close();
  }
}

/** Checks a database and counts what it contains. Throws if it is damaged. */
export function checkDatabase(file: string): CheckedDatabase {
  const db = new Sqlite(file, { readonly: true });
  try {
    const said = db.prepare<{ integrity_check: string }, []>("PRAGMA integrity_check(3)").all();
    const wrong = said.map((row) => row.integrity_check).filter((line) => line !== "ok");
    if (wrong.length > 0) throw new DamagedDatabase(wrong.join("; "));
    const number = (sql: string) => db.prepare<{ n: number | null }, []>(sql).get()?.n ?? 0;
    const tables = new Set(
      db
        .prepare<{ name: string }, []>("SELECT name FROM sqlite_master WHERE type = 'table'")
        .all()
        .map(({ name }) => name),
    );
    // A database of another version may lack tables or columns.
    const counts = Object.entries(counted).flatMap(([name, from]) => {
      if (!tables.has(from.split(" ")[0] ?? "")) return [];
      try {
        return [[name, number(`SELECT count(*) AS n FROM ${from}`)] as const];
      } catch {
        return [];
      }
    });
    const schema = tables.has("schema_migrations") ? number("SELECT max(version) AS n FROM schema_migrations") : 0;
    return { schema, counts: Object.fromEntries(counts) };
  } finally {
    db.close();
  }
}

export class DamagedDatabase extends Error {
  override readonly name = "DamagedDatabase";
}

/**
 * Returns the approximate bytes of a copy, which leaves out free pages and includes pages that only the write-ahead log
 * has.
 */
export function bytesOfCopy(file: string): number {
  const db = new Sqlite(file, { readonly: true });
  try {
    db.run(`PRAGMA busy_timeout = ${waitMs}`);
    const pragma = (name: string) => Number(db.prepare(`PRAGMA ${name}`).values()[0]?.[0] ?? 0);
    return (pragma("page_count") - pragma("freelist_count")) * pragma("page_size");
  } finally {
    db.close();
  }
}

/** Returns the SHA-256 of a file in hex. */
export function digestOf(file: string): string {
  const hasher = new Bun.CryptoHasher("sha256");
  const chunk = Buffer.allocUnsafe(chunkBytes);
  const fd = openSync(file, "r");
  try {
    for (let length = -1; length !== 0; ) {
      length = readSync(fd, chunk, 0, chunkBytes, null);
      hasher.update(chunk.subarray(0, length));
    }
  } finally {
    closeSync(fd);
  }
  return hasher.digest("hex");
}
