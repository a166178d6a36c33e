// Copies all records from SQLite to PostgreSQL in batches, continues earlier attempts, and compares the two.
import { SQL } from "bun";
import { StartError } from "../../base/errors.ts";
import { replicaGoneSeconds } from "../../domain/replica.ts";
import { databaseSeconds, openPostgres } from "../sql/database.ts";
import { isPostgresOutage, postgresCode } from "../sql/postgres-errors.ts";
import { bringUpToDate } from "../sql/schema.ts";
import {
  fromTable,
  quoted,
  type Row,
  type SourceColumn,
  type SourceTable,
  type SqliteSource,
  type Value,
} from "../sql/sqlite-source.ts";
import { type CopyState, forgetCopy, readCopyState, writeCopyState } from "./copy-marks.ts";

export interface CopyProgress {
  table: string;
  /** Copied rows of all tables so far. */
  rows: number;
  totalRows: number;
}

export interface CopyOptions {
  source: SqliteSource;
  /** Id of the source database, from `copyIdOf`. */
  sourceId: string;
  databaseUrl: string;
  onProgress(progress: CopyProgress): void;
  /** Maximum rows of one INSERT. */
  batchRows?: number;
}

export interface ComparedTable {
  table: string;
  rows: [source: number, target: number];
  /** The sum of each column; for a text column, of the lengths in bytes. */
  sums: Record<string, [source: string, target: string]>;
  /** Names of the columns that differ, and `rows` if the numbers of rows do. */
  differences: string[];
}

const defaultBatchRows = 5_000;
/** Maximum text of a statement: a stored chat may have megabytes. */
const batchBytes = 8_000_000;
/** Number of the advisory lock that a copy holds in Headrace's database. */
const copyLock = 0x6865_6103;
/** Milliseconds to wait for the lock. Long enough for PostgreSQL to notice that a killed process has left it. */
const copyLockWaitMs = 10_000;

/**
 * Copies all records and compares both databases. Without differences, a server may use the target. Throws a StartError
 * with a remedy.
 */
export async function copyRecords(options: CopyOptions): Promise<ComparedTable[]> {
  await (await openPostgres(options.databaseUrl)).close();
  const target = new SQL(options.databaseUrl, {
    ...{ max: 1, connectionTimeout: 5, idleTimeout: 0, maxLifetime: 0 },
    // Commits need no sync: if the server crashes and loses a batch, it also loses the batch's checkpoint.
    connection: {
      application_name: "headrace migrate",
      statement_timeout: 0,
      synchronous_commit: "off",
      client_encoding: "UTF8",
    },
  });
  try {
    const state = await prepare(target, options);
    if (state.state === "copying") await copyAll(target, options, state);
    const compared = await compare(target, options.source);
    if (state.state === "copying" && compared.every(({ differences }) => differences.length === 0)) {
      await target.unsafe("SET synchronous_commit = on");
      await writeCopyState(target, { ...state, state: "complete" });
    }
    return compared;
  } catch (error) {
    const code = postgresCode(error);
    if (code === undefined || !isPostgresOutage(code)) throw error;
    throw new StartError(
      `HEADRACE_DATABASE_URL: PostgreSQL ended the copy (${code}). Nothing is lost: run the same command again, and it goes on where it stopped.`,
      { cause: error },
    );
  } finally {
    await target.close({ timeout: 0 });
  }
}

/** Returns the progress from which the copy continues. On the first run, the target must be unused. */
async function prepare(target: SQL, { source, sourceId }: CopyOptions): Promise<CopyState> {
  await target.unsafe(`SET lock_timeout = ${copyLockWaitMs}`);
  try {
    await target`SELECT pg_advisory_lock(${copyLock})`;
  } catch (error) {
    if (postgresCode(error) !== "55P03") throw error;
    throw new StartError("Another `headrace migrate` is copying into this database. Wait for its end.");
  }
  const known = await readCopyState(target);
  if (known && known.source !== sourceId) {
    throw new StartError(
      "The database has records of another copy, or a server has run on the SQLite database since. Make a new, empty database (dropdb, createdb), and run the command again.",
    );
  }
  if (!known) await requireEmpty(target, source.tables);
  const state = known ?? { source: sourceId, state: "copying", tables: {} };
  if (!known) {
    await target.begin(async (tx) => {
      // Deletes the rows that migration steps inserted, because the source has them too.
      for (const [table] of await rowsOfNewDatabase()) await tx.unsafe(`DELETE FROM ${quoted(table)}`);
      await writeCopyState(tx, state);
    });
  }
  // This check follows the write of the mark, because a starting server adds its row first and checks the mark then.
  const living: unknown[] = await target`
    SELECT id FROM replicas WHERE seen_at > ${databaseSeconds(target)} - ${replicaGoneSeconds}`;
  if (living.length === 0) return state;
  if (!known) await target.begin(undo);
  throw new StartError(
    `A server uses this database already. Stop it, wait ${replicaGoneSeconds} s, and run the command again.`,
  );
}

async function undo(tx: SQL): Promise<void> {
  await forgetCopy(tx);
  for (const [, statements] of await rowsOfNewDatabase())
    for (const statement of statements) await tx.unsafe(statement);
}

async function requireEmpty(target: SQL, tables: readonly SourceTable[]): Promise<void> {
  const atFirst = await rowsOfNewDatabase();
  for (const { name } of tables) {
    const [row] = await target.unsafe(
      `SELECT count(*) AS rows FROM (SELECT 1 FROM ${quoted(name)} LIMIT 1000) AS first_rows`,
    );
    if (Number(row.rows) === (atFirst.get(name)?.length ?? 0)) continue;
    throw new StartError(
      `The database is not empty: there are rows in ${name}. Headrace adds nothing to records of others. Name an empty database: createdb headrace`,
    );
  }
}

/** Returns the tables into which migration steps insert rows, each with the INSERT statements of these rows. */
async function rowsOfNewDatabase(): Promise<Map<string, string[]>> {
  const db = new SQL({ adapter: "sqlite", filename: ":memory:" });
  try {
    await bringUpToDate(db, "sqlite");
    const tables: { name: string }[] = await db`
      SELECT name FROM sqlite_master WHERE type = 'table' AND name <> 'schema_migrations'`;
    const found = new Map<string, string[]>();
    for (const { name } of tables) {
      const rows: Row[] = await db.unsafe(`SELECT * FROM ${quoted(name)}`);
      if (rows.length > 0)
        found.set(
          name,
          rows.map((row) => insertOf(name, Object.keys(row), `[${encodedRow(row)}]`)),
        );
    }
    return found;
  } finally {
    await db.close();
  }
}

async function copyAll(target: SQL, options: CopyOptions, state: CopyState): Promise<void> {
  const { source, onProgress, batchRows = defaultBatchRows } = options;
  const totalRows = source.tables.reduce((sum, table) => sum + source.count(table), 0);
  let rows = Object.values(state.tables).reduce((sum, table) => sum + table.rows, 0);
  for (const table of source.tables) {
    for (;;) {
      const before = state.tables[table.name];
      const batch = read(source, table, before?.after, batchRows);
      if (batch.rows === 0) break;
      const next = { after: batch.last, rows: (before?.rows ?? 0) + batch.rows };
      state.tables[table.name] = next;
      await target.begin(async (tx) => {
        const names = table.columns.map(({ name }) => name);
        await tx.unsafe(insertOf(table.name, names, "$1"), [batch.json]);
        await writeCopyState(tx, state);
      });
      rows += batch.rows;
      onProgress({ table: table.name, rows, totalRows });
    }
  }
  await target.unsafe("ANALYZE");
}

interface Batch {
  rows: number;
  /** A JSON array of objects. */
  json: string;
  /** Key of the last row. */
  last: (string | null)[];
}

function read(
  source: SqliteSource,
  table: SourceTable,
  after: CopyState["tables"][string]["after"] | undefined,
  limit: number,
): Batch {
  const kinds = new Map(table.columns.map(({ name, kind }) => [name, kind]));
  const from = after?.map((text, index) => parsed(text, kinds.get(table.key[index] ?? "")));
  const encoded: string[] = [];
  let bytes = 0;
  let last: Row | undefined;
  for (const row of source.rows(table, from, limit)) {
    const text = encodedRow(row);
    encoded.push(text);
    last = row;
    bytes += text.length;
    if (bytes > batchBytes) break;
  }
  return {
    rows: encoded.length,
    json: `[${encoded.join(",")}]`,
    last: table.key.map((name) => (last?.[name] == null ? null : String(last[name]))),
  };
}

function parsed(text: string | null, kind: SourceColumn["kind"] | undefined): Value {
  if (text === null || kind === "text") return text;
  return kind === "whole" ? BigInt(text) : Number(text);
}

/** Returns a row as JSON with all digits of whole numbers, which may exceed JavaScript's exact range. */
function encodedRow(row: Row): string {
  const members = Object.entries(row).map(([name, value]) => {
    return `${JSON.stringify(name)}:${typeof value === "bigint" ? value : JSON.stringify(value)}`;
  });
  return `{${members.join(",")}}`;
}

/**
 * Returns one INSERT for the rows of a JSON array, with the types of the table. `json` is a parameter, or JSON itself.
 */
function insertOf(table: string, columns: readonly string[], json: string): string {
  const names = columns.map(quoted).join(", ");
  const given = json === "$1" ? json : `'${json.replaceAll("'", "''")}'`;
  return `INSERT INTO ${quoted(table)} (${names})
    SELECT ${names} FROM json_populate_recordset(NULL::${quoted(table)}, ${given}::text::json)`;
}

async function compare(target: SQL, source: SqliteSource): Promise<ComparedTable[]> {
  const compared: ComparedTable[] = [];
  for (const table of source.tables) {
    const inSource = source.aggregate(table, [
      "count(*)",
      ...table.columns.flatMap((column) => sumsOf(column, "sqlite")),
    ]);
    const expressions = ["count(*)", ...table.columns.flatMap((column) => sumsOf(column, "postgres"))];
    const asText = expressions.map((expression) => `CAST(${expression} AS TEXT)`);
    const [inTarget = []] = (await target.unsafe(`SELECT ${asText.join(", ")} FROM ${fromTable(table)}`).values()) as (
      | string
      | null
    )[][];
    compared.push(comparisonOf(table, inSource, inTarget));
  }
  return compared;
}

/** Counts and sums of columns. Whole numbers are summed in two halves, because SQLite's sums overflow at 63 bits. */
function sumsOf(
  { name, kind }: SourceColumn,
  dialect: "sqlite" | "postgres",
): [count: string, high: string, low: string] {
  const column = quoted(name);
  const count = `count(${column})`;
  if (kind === "whole") return [count, `sum(${column} / ${half})`, `sum(${column} % ${half})`];
  if (kind === "real") return [count, `sum(${column})`, "0"];
  return [count, "0", dialect === "sqlite" ? `sum(length(CAST(${column} AS BLOB)))` : `sum(octet_length(${column}))`];
}

const half = 4_294_967_296n;

/** Compares counts and sums from both databases, in the order of the table's columns. */
export function comparisonOf(
  table: SourceTable,
  inSource: readonly (string | null)[],
  inTarget: readonly (string | null)[],
): ComparedTable {
  const rows: [number, number] = [Number(inSource[0]), Number(inTarget[0])];
  const sums: ComparedTable["sums"] = {};
  const differences = rows[0] === rows[1] ? [] : ["rows"];
  for (const [index, { name, kind }] of table.columns.entries()) {
    const at = 1 + index * 3;
    const both = [inSource, inTarget].map((all) => sumOf(kind, all[at + 1] ?? "0", all[at + 2] ?? "0")) as [
      string,
      string,
    ];
    sums[name] = both;
    if (inSource[at] !== inTarget[at] || !isSame(kind, both)) differences.push(name);
  }
  return { table: table.name, rows, sums, differences };
}

function sumOf(kind: SourceColumn["kind"], high: string, low: string): string {
  return kind === "real" ? high : String(BigInt(high) * half + BigInt(low));
}

/** Compares two sums. Sums of fractions may differ slightly, because they depend on the order. */
function isSame(kind: SourceColumn["kind"], [one, other]: readonly [string, string]): boolean {
  if (kind !== "real") return one === other;
  return Math.abs(Number(one) - Number(other)) <= 1e-9 * Math.max(1, Math.abs(Number(one)));
}
