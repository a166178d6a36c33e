import { afterAll, beforeAll, expect, test } from "bun:test";
import { SQL } from "bun";
import { until } from "../../../tests/support/headrace.ts";
import { sharedPostgres } from "../../../tests/support/postgres.ts";
import type { LogFields } from "../../base/log.ts";
import { concurrentIndexes, migrationsFor } from "./migrations.ts";
import { openPostgres } from "./open-postgres.ts";
import { buildIndexes } from "./postgres-indexes.ts";
import { bringUpToDate } from "./schema.ts";

const names = [...concurrentIndexes().keys()].sort();
const before = migrationsFor("postgres").findIndex((step) => step.some((text) => text.includes("suspended_at")));
let url: string;
let admin: SQL;

beforeAll(async () => {
  const postgres = await sharedPostgres();
  url = await postgres.emptyDatabase();
  admin = new SQL(postgres.adminUrlOf(new URL(url).pathname.slice(1)), { max: 1 });
});
afterAll(() => admin.close());

async function valid(): Promise<string[]> {
  const rows: { name: string }[] = await admin`
    SELECT relname AS name FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid WHERE indisvalid ORDER BY relname`;
  return rows.map(({ name }) => name).filter((name) => names.includes(name));
}

test("builds missing and interrupted indexes beside writers, each once", async () => {
  const events: [string, LogFields | undefined][] = [];
  const note = (event: string, fields?: LogFields) => void events.push([event, fields]);
  const log = { info: note, warn: note, error: note };
  const old = new SQL(url, { max: 1 });
  await old.begin((tx) => bringUpToDate(tx, "postgres", before));
  await old.close();
  const db = await openPostgres(url);
  expect(await valid()).toEqual([]);
  const first = buildIndexes(url, log);
  await until(async () => (await valid()).length === names.length, "all indexes are built");
  first.close();
  expect(await valid()).toEqual(names);

  // The state after a build that was killed.
  await admin`UPDATE pg_index SET indisvalid = false WHERE indexrelid = to_regclass('usage_records_by_model')`;
  events.length = 0;
  const second = buildIndexes(url, log);
  await until(async () => (await valid()).length === names.length, "the index is built again");
  await until(() => events.length === 2, "the build is logged");
  second.close();
  const fields = { index: "usage_records_by_model" };
  expect(events).toEqual([
    ["index_build_started", fields],
    ["index_built", fields],
  ]);
  await db.close();
});

test("gives a new database all indexes at once", async () => {
  const fresh = await (await sharedPostgres()).emptyDatabase();
  const db = await openPostgres(fresh);
  const rows: { indexname: string }[] = await db`SELECT indexname FROM pg_indexes WHERE tablename = 'usage_records'`;
  expect(rows.map(({ indexname }) => indexname)).toEqual(expect.arrayContaining(names));
  await db.close();
});

test("leaves a build to another process, and continues once that process is gone", async () => {
  const fresh = await (await sharedPostgres()).emptyDatabase();
  const db = await openPostgres(fresh);
  await db`DROP INDEX usage_records_by_model`;
  const other = new SQL(fresh, { max: 1 });
  await other`SELECT pg_advisory_lock(${0x6865_6103})`;
  const events: string[] = [];
  const note = (event: string) => void events.push(event);
  const sessions = async () => {
    const [row]: { n: number }[] = await db`
      SELECT sessions::int AS n FROM pg_stat_database WHERE datname = current_database()`;
    return row?.n ?? 0;
  };
  const before = await sessions();
  const building = buildIndexes(fresh, { info: note, warn: note, error: note }, 50);
  await until(async () => (await sessions()) >= before + 3, "it has tried three times");
  expect(events).toEqual([]);
  await other.close();
  await until(() => events.includes("index_built"), "it builds the index");
  expect(events).toEqual(["index_build_started", "index_built"]);
  building.close();
  await db.close();
});
