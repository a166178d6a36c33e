// The two databases that stores have to work on alike: a suite is run on each, every test on one that is empty.
import { Database as Sqlite } from "bun:sqlite";
import { afterAll, beforeAll, describe, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { SQL } from "bun";
import { type Database, dialectOf, openDatabase, openPostgres } from "../../src/storage/sql/database.ts";
import type { Dialect } from "../../src/storage/sql/migrations.ts";
import { sharedPostgres } from "./postgres.ts";

export interface TestDatabase {
  dialect: Dialect;
  db: Database;
  /** A data directory of its own for each test. */
  directory: string;
  /** An expression that opens the same in another process. */
  openingCode: string;
  /** Opens it as another process would, on connections of its own; closed with the database. */
  openAgain(): Promise<Database>;
  /** No usage is written from here on, until what it gives is called. */
  refuseUsage(): Promise<() => Promise<void>>;
  close(): Promise<void>;
}

/** One in which nothing was ever made. */
export interface EmptyDatabase {
  openingCode: string;
  run(statement: string): Promise<unknown>;
  tables(): Promise<string[]>;
  /** Makes all tables. */
  open(): Promise<Database>;
}

export interface TestDatabases {
  dialect: Dialect;
  /** What it says where a table is not there. */
  missingTable: string;
  /** A test of what only one of them has. */
  only(dialect: Dialect, name: string, run: () => Promise<void>): void;
  /** One with all tables, and nothing in them but what a new one has. */
  open(): Promise<TestDatabase>;
  /** The same for a test that changes tables: nobody else ever uses it. */
  openOwn(): Promise<TestDatabase>;
  empty(): Promise<EmptyDatabase>;
}

/** Runs a suite on SQLite and on PostgreSQL. */
export function onEachDatabase(suite: (databases: TestDatabases) => void): void {
  describe("limits on SQLite", () => suite(sqliteDatabases()));
  describe("limits on PostgreSQL", () => suite(postgresDatabases()));
}

export function sqliteDatabases(): TestDatabases {
  const open = async () => {
    const directory = newDirectory();
    const file = join(directory, "headrace.db");
    return testDatabase(directory, await openDatabase(file), {
      openingCode: opening("openDatabase", file),
      openAgain: () => openDatabase(file),
      refuseUsage: async () => {
        const other = new Sqlite(file);
        other.run("BEGIN IMMEDIATE");
        return async () => other.close();
      },
    });
  };
  return {
    dialect: "sqlite",
    missingTable: "SQLITE_ERROR",
    only: onlyOn("sqlite"),
    open,
    openOwn: open,
    async empty() {
      const file = join(newDirectory(), "empty.db");
      const plain = new SQL({ adapter: "sqlite", filename: file });
      return {
        openingCode: opening("openDatabase", file),
        run: (statement) => plain.unsafe(statement),
        tables: async () => namesOf(await plain`SELECT name FROM sqlite_schema WHERE type = 'table'`),
        open: () => openDatabase(file),
      };
    },
  };
}

/** One database for a suite, emptied between its tests: to make one takes a tenth of a second, to empty it a few milliseconds. */
function postgresDatabases(): TestDatabases {
  let url = "";
  let db: Database;
  let isOpen = false;
  let isOver = false;
  beforeAll(async () => {
    url = await (await sharedPostgres()).freshDatabase();
    db = await openPostgres(url);
  });
  afterAll(async () => {
    isOver = true;
    // A suite may use one database for all of its tests, and close it after this.
    if (!isOpen) await db.close();
  });
  return {
    dialect: "postgres",
    missingTable: "42P01",
    only: onlyOn("postgres"),
    async open() {
      isOpen = true;
      return testDatabase(newDirectory(), db, postgresWays(url, db), async () => {
        isOpen = false;
        await (isOver ? db.close() : emptyTables(db));
      });
    },
    async openOwn() {
      const own = await (await sharedPostgres()).freshDatabase();
      const ownDb = await openPostgres(own);
      return testDatabase(newDirectory(), ownDb, postgresWays(own, ownDb));
    },
    async empty() {
      const own = await (await sharedPostgres()).emptyDatabase();
      const plain = new SQL(own, { max: 1 });
      return {
        openingCode: opening("openPostgres", own),
        run: (statement) => plain.unsafe(statement),
        tables: async () => namesOf(await plain`SELECT tablename AS name FROM pg_tables WHERE schemaname = 'public'`),
        open: () => openPostgres(own),
      };
    },
  };
}

type Ways = Pick<TestDatabase, "openingCode" | "openAgain" | "refuseUsage">;

function postgresWays(url: string, db: Database): Ways {
  return {
    openingCode: opening("openPostgres", url),
    openAgain: () => openPostgres(url),
    async refuseUsage() {
      await db.unsafe("ALTER TABLE usage_records RENAME TO out_of_reach");
      return async () => void (await db.unsafe("ALTER TABLE IF EXISTS out_of_reach RENAME TO usage_records"));
    },
  };
}

function testDatabase(
  directory: string,
  db: Database,
  { openingCode, openAgain, refuseUsage }: Ways,
  closeDatabase = () => db.close(),
): TestDatabase {
  const others: Database[] = [];
  return {
    dialect: dialectOf(db),
    db,
    directory,
    openingCode,
    refuseUsage,
    async openAgain() {
      const other = await openAgain();
      others.push(other);
      return other;
    },
    async close() {
      for (const other of others) await other.close();
      await closeDatabase();
      rmSync(directory, { recursive: true, force: true });
    },
  };
}

function onlyOn(own: Dialect): TestDatabases["only"] {
  return (dialect, name, run) => {
    if (dialect === own) test(name, run);
  };
}

function opening(name: "openDatabase" | "openPostgres", argument: string): string {
  const module = join(import.meta.dir, "../../src/storage/sql/database.ts");
  return `(await import(${JSON.stringify(module)})).${name}(${JSON.stringify(argument)})`;
}

function newDirectory(): string {
  return mkdtempSync(join(tmpdir(), "headrace-database-"));
}

function namesOf(rows: readonly { name: string }[]): string[] {
  return rows.map(({ name }) => name);
}

/** Leaves the tables as the migrations do; what belongs to others last. */
async function emptyTables(db: Database): Promise<void> {
  const tables: { name: string }[] = await db`
    SELECT relname AS name FROM pg_class
    WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace AND relname <> 'schema_migrations'
    ORDER BY relname IN ('accounts', 'people', 'apps'), relname IN ('accounts', 'people')`;
  const emptyAll = tables.map(({ name }) => `DELETE FROM ${name};`).join(" ");
  await db.unsafe(`${emptyAll} INSERT INTO credential_revision (id, revision) VALUES (1, 1), (2, 1)`).simple();
}

/** Has the database refuse the usage record of this id, until what it gives is called. */
export async function refuseRecord(db: Database, requestId: string): Promise<() => Promise<void>> {
  const isSqlite = dialectOf(db) === "sqlite";
  if (!isSqlite) {
    await db.unsafe(
      "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'refused'; END $$",
    );
  }
  await db.unsafe(
    isSqlite
      ? `CREATE TRIGGER refuse BEFORE INSERT ON usage_records WHEN NEW.request_id = '${requestId}' BEGIN SELECT RAISE(ABORT, 'refused'); END`
      : `CREATE TRIGGER refuse BEFORE INSERT ON usage_records FOR EACH ROW WHEN (NEW.request_id = '${requestId}') EXECUTE FUNCTION refuse()`,
  );
  return async () => void (await db.unsafe(isSqlite ? "DROP TRIGGER refuse" : "DROP FUNCTION refuse CASCADE"));
}
