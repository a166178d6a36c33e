// Connections to a real PostgreSQL that is restarted, stops answering, or is blocked by a hanging transaction.

import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { join } from "node:path";
import { SQL } from "bun";
import { withinMs } from "../../../tests/support/long.ts";
import { type PostgresServer, startPostgres } from "../../../tests/support/postgres.ts";
import { adding, writing } from "../sql/database.ts";
import { available } from "../sql/outage.ts";
import { lookupsOf, openPool } from "../sql/postgres-pool.ts";
import { SqlAccountStore } from "./account-store.ts";
import { SqlKeyStore } from "./key-store.ts";

/** A tenth of the default bounds. */
const bounds = { readMs: 600, transactionMs: 800, statementMs: 500, lockMs: 400, idleInTransactionMs: 300 };

let server: PostgresServer;
let url: string;
let admin: SQL;
let db: SQL;

beforeAll(async () => {
  server = await startPostgres();
  url = await server.freshDatabase();
});

afterAll(() => server[Symbol.asyncDispose]());

beforeEach(() => {
  admin = new SQL(server.adminUrlOf("postgres"), { max: 1 });
  db = openPool(url, bounds);
});

afterEach(async () => {
  await db.close();
  await admin.close();
});

/** Opens every connection of the pool, and breaks them as a restart of the server would. */
async function breakConnections(): Promise<void> {
  await Promise.all([
    ...Array.from({ length: 8 }, () => db`SELECT pg_sleep(0.2)`),
    ...Array.from({ length: 2 }, () => lookupsOf(db)`SELECT pg_sleep(0.2)`),
  ]);
  const broken = await admin`
    SELECT count(pg_terminate_backend(pid)) AS n FROM pg_stat_activity WHERE application_name = 'headrace'`;
  expect(Number(broken[0].n)).toBe(10);
}

const codeOf = (work: PromiseLike<unknown>): Promise<unknown> =>
  available(work).then(
    () => "done",
    (error) => error.code,
  );

const raise = (on: SQL) => on`UPDATE credential_revision SET revision = revision + 1 WHERE id = 1`;
const revision = async () => Number((await db`SELECT revision FROM credential_revision WHERE id = 1`)[0].revision);

async function took(work: PromiseLike<unknown>): Promise<number> {
  const startedMs = performance.now();
  await work;
  return performance.now() - startedMs;
}

test("looks up credentials at once while reports use every other connection", async () => {
  let ended = 0;
  const reports = Array.from({ length: 30 }, () => codeOf(db`SELECT pg_sleep(0.3)`).then(() => ended++));
  const keys = new SqlKeyStore(db);
  await Promise.all([
    keys.findChainByDigest("none"),
    keys.findChainById("none"),
    keys.credentialRevision(),
    new SqlAccountStore(db).listTiers(),
  ]);
  // If lookups shared the connections of the reports, they would end last.
  expect(ended).toBeLessThan(16);
  await Promise.all(reports);
});

describe("broken connections after a restart of PostgreSQL", () => {
  test("fails no read on broken connections", async () => {
    await breakConnections();
    const reads = [db, lookupsOf(db)].flatMap((on) => Array.from({ length: 30 }, () => codeOf(on`SELECT 1`)));
    expect(new Set(await Promise.all(reads))).toEqual(new Set(["done"]));
  });

  test("fails no transaction on broken connections, and runs none twice", async () => {
    const before = await revision();
    await breakConnections();
    const writes = Array.from({ length: 30 }, () => codeOf(writing(db, (tx) => raise(tx))));
    expect(new Set(await Promise.all(writes))).toEqual(new Set(["done"]));
    expect(await revision()).toBe(before + 30);
  });

  test("does not repeat a transaction that had begun, as it may have been committed", async () => {
    let runs = 0;
    const work = writing(db, async (tx) => {
      runs++;
      await raise(tx);
      await admin`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'headrace'`;
      await raise(tx);
    });
    expect(await codeOf(work)).toBe("service_unavailable");
    expect(runs).toBe(1);
  });

  test("does not repeat a write outside of a transaction", async () => {
    const codes = new Set<unknown>();
    // If the pool saw all connections break before the statement, it uses a new connection, which is no repetition. So
    // the test tries several times.
    for (let round = 0; round < 5 && !codes.has("service_unavailable"); round++) {
      await breakConnections();
      codes.add(await codeOf(raise(db)));
    }
    expect(codes).toContain("service_unavailable");
  });
});

describe("a stopped PostgreSQL server", () => {
  test("reports a stopped server at once, and uses it again as soon as it is back", async () => {
    await db`SELECT 1`;
    await server.stop();
    expect(await took(codeOf(db`SELECT 1`).then((code) => expect(code).toBe("service_unavailable")))).toBeLessThan(
      withinMs(300),
    );
    expect(await codeOf(writing(db, (tx) => raise(tx)))).toBe("service_unavailable");
    await server.start();
    admin = new SQL(server.adminUrlOf("postgres"), { max: 1 });
    expect(await codeOf(db`SELECT 1`)).toBe("done");
  });
});

describe("a PostgreSQL server that stops answering", () => {
  test("bounds the wait for a silent server, and uses it again once it answers", async () => {
    await db`SELECT 1`;
    await server.pause();
    const startedMs = performance.now();
    const waiting = [codeOf(db`SELECT 1`), codeOf(writing(db, (tx) => raise(tx)))];
    expect(await Promise.all(waiting)).toEqual(["service_unavailable", "service_unavailable"]);
    expect(performance.now() - startedMs).toBeLessThan(withinMs(bounds.readMs + 600));
    await server.resume();
    expect(await codeOf(db`SELECT 1`)).toBe("done");
    expect(await codeOf(writing(db, (tx) => raise(tx)))).toBe("done");
  });

  test("commits no transaction later that it reported as failed", async () => {
    const before = await revision();
    const paused = Promise.withResolvers<void>();
    const work = db.begin(async (tx) => {
      await raise(tx);
      await server.pause();
      paused.resolve();
      await tx`SELECT 1`;
    });
    const reported = codeOf(work);
    await paused.promise;
    // Another read finds out that the server does not answer.
    expect(await codeOf(db`SELECT 1`)).toBe("service_unavailable");
    expect(await reported).toBe("service_unavailable");
    await server.resume();
    expect(await revision()).toBe(before);
  });
});

describe("other processes on the same database", () => {
  test("waits only a moment for a process that hangs in a transaction with the writers' lock", async () => {
    const other = openPool(url, bounds);
    const entered = Promise.withResolvers<void>();
    let awake = false;
    const hanging = writing(other, async (tx) => {
      await raise(tx);
      entered.resolve();
      await Bun.sleep(2_000);
      awake = true;
      await raise(tx);
    });
    const reported = codeOf(hanging);
    await entered.promise;
    const before = await revision();
    await writing(db, (tx) => raise(tx));
    expect(awake).toBe(false);
    expect(await reported).toBe("service_unavailable");
    expect(await revision()).toBe(before + 1);
    await other.close();
  });

  test("does not wait for a killed process that had the writers' lock", async () => {
    const script = `
      const { openPool } = await import(${JSON.stringify(join(import.meta.dir, "../sql/postgres-pool.ts"))});
      const { writing } = await import(${JSON.stringify(join(import.meta.dir, "../sql/database.ts"))});
      await writing(openPool(${JSON.stringify(url)}), async (tx) => {
        await tx\`SELECT 1\`;
        console.log("in");
        await new Promise((resolve) => setTimeout(resolve, 60_000));
      });`;
    const child = Bun.spawn([process.execPath, "-e", script], { stdout: "pipe" });
    await child.stdout.getReader().read();
    child.kill("SIGKILL");
    await child.exited;
    expect(await took(writing(db, (tx) => raise(tx)))).toBeLessThan(withinMs(200));
  });

  test("runs prepared statements after a column was added", async () => {
    const own = await server.freshDatabase();
    const [using, migrating] = [openPool(own, bounds), new SQL(own, { max: 1 })];
    const read = (on: SQL) => on`SELECT *, ${"free"} AS asked FROM tiers WHERE name = ${"free"}`;
    const everywhere = <Result>(work: () => PromiseLike<Result>) => Promise.all(Array.from({ length: 30 }, work));
    const readAndWait = async (tx: SQL) => {
      await read(tx);
      await tx`SELECT pg_sleep(0.02)`;
    };
    await everywhere(() => adding(using, readAndWait));
    await migrating`ALTER TABLE tiers ADD COLUMN more BIGINT`;
    expect(new Set(await everywhere(() => codeOf(read(using))))).toEqual(new Set(["done"]));
    await migrating`ALTER TABLE tiers ADD COLUMN still_more BIGINT`;
    expect(new Set(await everywhere(() => codeOf(adding(using, readAndWait))))).toEqual(new Set(["done"]));
    expect(await codeOf(writing(using, (tx) => read(tx)))).toBe("done");
    await Promise.all([using.close(), migrating.close()]);
  });
});

describe("concurrent writers of one process", () => {
  test("leaves connections for reads, however many writers wait", async () => {
    const release = Promise.withResolvers<void>();
    const first = writing(db, async (tx) => {
      for (let i = 0; i < 10; i++) await Promise.all([raise(tx), Bun.sleep(5)]);
      release.resolve();
    });
    const others = Array.from({ length: 200 }, () => writing(db, (tx) => raise(tx)));
    const reads = Array.from({ length: 50 }, () => took(db`SELECT 1`));
    expect(Math.max(...(await Promise.all(reads)))).toBeLessThan(withinMs(300));
    await Promise.all([first, ...others]);
  });

  test("runs the writers of one process one at a time, in order", async () => {
    const order: number[] = [];
    let inside = 0;
    const work = Array.from({ length: 20 }, (_, i) =>
      writing(db, async (tx) => {
        expect(++inside).toBe(1);
        await tx`SELECT 1`;
        order.push(i);
        inside--;
      }),
    );
    await Promise.all(work);
    expect(order).toEqual(Array.from({ length: 20 }, (_, i) => i));
  });
});
