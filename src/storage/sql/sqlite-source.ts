// Reads a SQLite database for a copy: its tables in an order that satisfies references, and their rows.
import { type SQLQueryBindings, Database as Sqlite } from "bun:sqlite";
import { StartError } from "../../base/errors.ts";

export interface SourceTable {
  name: string;
  columns: readonly SourceColumn[];
  /** Columns that identify the table's rows and order them. */
  key: readonly string[];
  /** A condition that leaves out rows that belong only to this database; may be empty. */
  condition: string;
}

export interface SourceColumn {
  name: string;
  kind: "text" | "whole" | "real";
}

export type Value = string | number | bigint | null;
export type Row = Readonly<Record<string, Value>>;

/** Tables about running processes or the schema. The target of a copy has its own. */
const tablesLeftOut: ReadonlySet<string> = new Set(["schema_migrations", "replicas", "node_connections"]);

/** Names in the table `installation` that describe a copy. */
export const copyNames = { from: "copied_from", to: "copied_to", id: "copy_id" } as const;

const conditions: Readonly<Record<string, string>> = {
  installation: `name NOT IN ('${Object.values(copyNames).join("', '")}')`,
};

/** A snapshot of the database. Later writes are not visible. */
export class SqliteSource {
  readonly tables: readonly SourceTable[];
  readonly #db: Sqlite;

  /** Throws a StartError if rows refer to missing ones. */
  constructor(file: string) {
    this.#db = new Sqlite(file, { readonly: true, safeIntegers: true });
    try {
      this.#db.run("PRAGMA busy_timeout = 5000");
      this.#db.run("BEGIN");
      this.tables = inOrder(this.#db);
      this.#requireWhole();
    } catch (error) {
      this.#db.close();
      throw error;
    }
  }

  close(): void {
    this.#db.close();
  }

  /** Returns exact values as text, in the order of `expressions`. */
  aggregate(table: SourceTable, expressions: readonly string[]): (string | null)[] {
    const asText = expressions.map((expression) => `CAST(${expression} AS TEXT)`);
    const [row = []] = this.#db.prepare(`SELECT ${asText.join(", ")} FROM ${fromTable(table)}`).values();
    return row as (string | null)[];
  }

  count(table: SourceTable): number {
    return Number(this.aggregate(table, ["count(*)"])[0]);
  }

  /** Yields up to `limit` rows after the given key, in key order. */
  *rows(table: SourceTable, after: readonly Value[] | undefined, limit: number): Generator<Row> {
    const key = table.key.map(quoted).join(", ");
    const placeholders = table.key.map(() => "?").join(", ");
    const later = after === undefined ? "" : `(${key}) > (${placeholders})`;
    const where = [table.condition, later].filter((part) => part !== "").join(" AND ");
    const columns = table.columns.map(({ name }) => quoted(name)).join(", ");
    const statement = this.#db.prepare<Row, SQLQueryBindings[]>(
      `SELECT ${columns} FROM ${quoted(table.name)}${where && ` WHERE ${where}`} ORDER BY ${key} LIMIT ${limit}`,
    );
    try {
      yield* statement.iterate(...(after ?? []));
    } finally {
      statement.finalize();
    }
  }

  /** Throws if a row refers to a missing one, because PostgreSQL would refuse that row in the middle of the copy. */
  #requireWhole(): void {
    const [row] = this.#db.prepare("PRAGMA foreign_key_check").values();
    if (!row) return;
    throw new StartError(
      `The database is damaged: a row of ${row[0]} belongs to one of ${row[2]} that is not there. Restore a backup, or have it looked at: sqlite3 headrace.db 'PRAGMA foreign_key_check'`,
    );
  }
}

export function fromTable({ name, condition }: SourceTable): string {
  return quoted(name) + (condition && ` WHERE ${condition}`);
}

/** Quotes a name as an SQL identifier. Names come from the schema. */
export function quoted(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}

/** Returns the tables in an order in which each table follows the tables that it refers to. */
function inOrder(db: Sqlite): SourceTable[] {
  const names = db
    .prepare(
      "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY name",
    )
    .values()
    .map(([name]) => String(name))
    .filter((name) => !tablesLeftOut.has(name));
  const done = new Set<string>();
  const add = (name: string) => {
    if (done.has(name)) return;
    const others = db.prepare(`SELECT "table" FROM pragma_foreign_key_list(?)`).values(name);
    for (const [other] of others) if (other !== name) add(String(other));
    done.add(name);
  };
  for (const name of names) add(name);
  return [...done].map((name) => tableOf(db, name));
}

function tableOf(db: Sqlite, name: string): SourceTable {
  const columns = db
    .prepare<{ name: string; type: string; pk: bigint }, string>("SELECT name, type, pk FROM pragma_table_info(?)")
    .all(name);
  const key = columns.filter(({ pk }) => pk > 0n).sort((a, b) => Number(a.pk - b.pk));
  return {
    name,
    columns: columns.map((column) => ({ name: column.name, kind: kindOf(column.type) })),
    key: key.map((column) => column.name),
    condition: conditions[name] ?? "",
  };
}

function kindOf(type: string): SourceColumn["kind"] {
  if (/INT/.test(type)) return "whole";
  return /DOUBLE|REAL/.test(type) ? "real" : "text";
}
