// What the ledger of an installation has booked, to the last nano-USD; and a way to keep it on the spool for a while.
import { Database as Sqlite } from "bun:sqlite";
import { join } from "node:path";
import { SQL } from "bun";
import type { Booked } from "./installation.ts";

export interface LedgerSums {
  /** Sums of the records, after a look at whether the roll-ups by hour and by day say the same. */
  booked(): Promise<Booked>;
  /** Ids of the requests, in their order. */
  requestIds(): Promise<string[]>;
  schema(): Promise<number>;
  /** Runs `work` while nobody can write usage into the database. */
  whileShut(work: () => Promise<void>): Promise<void>;
}

type Rows = (query: string) => Promise<Record<string, string>[]>;

export function ledgerSums(place: { dataDir: string } | { databaseUrl: string }): LedgerSums {
  const rows: Rows = (query) =>
    "databaseUrl" in place ? fromPostgres(place.databaseUrl, query) : fromSqlite(place.dataDir, query);
  const sums = (requests: string) =>
    `CAST(${requests} AS TEXT) AS requests, CAST(coalesce(sum(nano_usd), 0) AS TEXT) AS nano_usd`;
  return {
    async booked() {
      // In one statement, as a server may be writing.
      const [records, ...rolled] = await rows(
        `SELECT 'all' AS span, ${sums("count(*)")} FROM usage_records
         UNION ALL SELECT span, ${sums("sum(requests)")} FROM usage_rollups GROUP BY span ORDER BY 1`,
      );
      for (const row of rolled)
        if (!Bun.deepEquals({ ...row, span: "all" }, records)) throw new Error(`Roll-ups: ${JSON.stringify(row)}.`);
      return { requests: Number(records?.["requests"]), nanoUsd: BigInt(records?.["nano_usd"] ?? 0) };
    },
    requestIds: async () =>
      (await rows("SELECT request_id AS id FROM usage_records ORDER BY 1")).map(({ id }) => String(id)),
    schema: async () => Number((await rows("SELECT max(version) AS schema FROM schema_migrations"))[0]?.["schema"]),
    async whileShut(work) {
      if ("databaseUrl" in place) {
        await using db = new SQL(place.databaseUrl, { max: 1 });
        await db.begin(async (tx) => {
          await tx`LOCK TABLE usage_records IN EXCLUSIVE MODE`;
          await work();
        });
        return;
      }
      using db = new Sqlite(join(place.dataDir, "headrace.db"));
      db.run("PRAGMA busy_timeout = 2000");
      db.run("BEGIN IMMEDIATE");
      await work();
      db.run("ROLLBACK");
    },
  };
}

async function fromPostgres(url: string, query: string): Promise<Record<string, string>[]> {
  await using db = new SQL(url, { max: 1 });
  return [...(await db.unsafe(query))];
}

async function fromSqlite(dataDir: string, query: string): Promise<Record<string, string>[]> {
  using db = new Sqlite(join(dataDir, "headrace.db"));
  db.run("PRAGMA busy_timeout = 2000");
  return db.query<Record<string, string>, []>(query).all();
}
