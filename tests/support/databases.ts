// The two databases that stores have to work on alike: a suite is run on each, every test on one that is empty.
import { afterAll, beforeAll, describe, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Database, dialectOf, openDatabase, openPostgres } from "../../src/storage/database.ts";
import type { Dialect } from "../../src/storage/migrations.ts";
import { sharedPostgres } from "./postgres.ts";

export interface TestDatabase {
  dialect: Dialect;
  db: Database;
  /** Of its own for each test: a data directory. */
  directory: string;
  /** As another process would, on connections of its own; closed with the database. */
  openAgain(): Promise<Database>;
  close(): Promise<void>;
}

export interface TestDatabases {
  dialect: Dialect;
  /** One with all tables, and nothing in them but what a new one has. */
  open(): Promise<TestDatabase>;
  /** What it says where a table is not there. */
  missingTable: string;
  /** A test of what only one of them has. */
  only(dialect: Dialect, name: string, run: () => Promise<void>): void;
  /** An expression for a module or another process, by which it opens the database of now. */
  openingCode(): string;
}

/** Runs a suite on SQLite and on PostgreSQL. */
export function onEachDatabase(suite: (databases: TestDatabases) => void): void {
  describe("on SQLite", () => suite(sqliteDatabases()));
  describe("on PostgreSQL", () => suite(postgresDatabases()));
}

const databaseModule = JSON.stringify(join(import.meta.dir, "../../src/storage/database.ts"));

const onlyOn = (own: Dialect) => (dialect: Dialect, name: string, run: () => Promise<void>) => {
  if (dialect === own) test(name, run);
};

export function sqliteDatabases(): TestDatabases {
  let file = "";
  return {
    dialect: "sqlite",
    missingTable: "SQLITE_ERROR",
    only: onlyOn("sqlite"),
    async open() {
      const directory = mkdtempSync(join(tmpdir(), "headrace-database-"));
      file = join(directory, "headrace.db");
      const opened = [await openDatabase(file)];
      return {
        dialect: "sqlite",
        db: opened[0] as Database,
        directory,
        async openAgain() {
          const again = await openDatabase(join(directory, "headrace.db"));
          opened.push(again);
          return again;
        },
        async close() {
          for (const one of opened) await one.close();
          rmSync(directory, { recursive: true, force: true });
        },
      };
    },
    openingCode: () => `(await import(${databaseModule})).openDatabase(${JSON.stringify(file)})`,
  };
}

/** One database for a suite, emptied between its tests: to make one takes a tenth of a second, to empty it a few milliseconds. */
function postgresDatabases(): TestDatabases {
  let url = "";
  let db: Database;
  beforeAll(async () => {
    url = await (await sharedPostgres()).freshDatabase();
    db = await openPostgres(url);
  });
  let isOpen = false;
  let isOver = false;
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
      const directory = mkdtempSync(join(tmpdir(), "headrace-database-"));
      const opened: Database[] = [];
      isOpen = true;
      return {
        dialect: "postgres",
        db,
        directory,
        async openAgain() {
          const again = await openPostgres(url);
          opened.push(again);
          return again;
        },
        async close() {
          for (const one of opened) await one.close();
          rmSync(directory, { recursive: true, force: true });
          isOpen = false;
          if (isOver) await db.close();
          else await empty(db);
        },
      };
    },
    openingCode: () => `(await import(${databaseModule})).openPostgres(${JSON.stringify(url)})`,
  };
}

/** As the migrations leave it; what belongs to others last. */
async function empty(db: Database): Promise<void> {
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
