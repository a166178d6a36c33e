// The error of a start with an unusable PostgreSQL: it names the variable, the fault and the remedy, and never the
// password.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { SQL } from "bun";
import { startHeadrace } from "../../../tests/support/headrace.ts";
import { type PostgresServer, startPostgres } from "../../../tests/support/postgres.ts";
import { StartError } from "../../base/errors.ts";
import { openExistingPostgres, openPostgres, requireSupported } from "./open-postgres.ts";

let server: PostgresServer;
let url: string;
let admin: SQL;

beforeAll(async () => {
  server = await startPostgres();
  url = await server.emptyDatabase();
  admin = new SQL(server.adminUrlOf(new URL(url).pathname.slice(1)), { max: 1 });
});

afterAll(async () => {
  await admin.close();
  await server[Symbol.asyncDispose]();
});

/** Returns the message of the StartError, after it has checked that no URL's password is in the message. */
async function refusal(given: string, open = openPostgres): Promise<string> {
  const error: unknown = await open(given, { waitMs: 0 }).then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  expect(error).toBeInstanceOf(StartError);
  const { message, stack } = error as StartError;
  for (const one of [url, given]) expect(`${message} ${stack}`).not.toContain(new URL(one).password);
  return message;
}

function changed(parts: Partial<Pick<URL, "hostname" | "port" | "password" | "username" | "pathname" | "search">>) {
  return Object.assign(new URL(url), parts).href;
}

describe("a start on PostgreSQL", () => {
  test("names server and user if PostgreSQL refuses the password", async () => {
    const message = await refusal(changed({ password: "canary-1234" }));
    expect(message).toStartWith(
      `HEADRACE_DATABASE_URL: the server at ${new URL(url).host} does not let the user “headrace” in`,
    );
  });

  test("names a missing PostgreSQL database and how to create it", async () => {
    expect(await refusal(changed({ pathname: "/no%20such" }))).toContain(
      "there is no database “no such” at 127.0.0.1:",
    );
  });

  test("reports that no PostgreSQL server answers", async () => {
    expect(await refusal(changed({ port: "1" }))).toContain("no PostgreSQL answers at 127.0.0.1:1");
  });

  test("reports that PostgreSQL has no connection left, or too few", async () => {
    const { username } = new URL(url);
    await admin.unsafe(`ALTER ROLE ${username} CONNECTION LIMIT 0`);
    try {
      expect(await refusal(url)).toMatch(/has no connection left\. .*max_connections.* \(53300\)$/);
      await admin.unsafe(`ALTER ROLE ${username} CONNECTION LIMIT 1`);
      const env = { HEADRACE_DATABASE_URL: url, HEADRACE_SECRET: "ab".repeat(32) };
      const start = startHeadrace({ env }).then((running) => running[Symbol.asyncDispose]());
      const error: unknown = await start.catch((thrown: unknown) => thrown);
      expect(error).toBeInstanceOf(StartError);
      expect(String(error)).toMatch(/cannot start: .*database.*53300|has no connection left/);
    } finally {
      await admin.unsafe(`ALTER ROLE ${username} CONNECTION LIMIT -1`);
    }
  });

  test("reports that TLS was required and is not available", async () => {
    expect(await refusal(changed({ search: "?sslmode=require" }))).toContain("no TLS connection can be made");
  });

  test("names the missing right to create tables, and needs none if the schema is current", async () => {
    const password = "canary-5678";
    await admin.unsafe(`CREATE ROLE guest LOGIN PASSWORD '${password}'`);
    const guest = changed({ username: "guest", password });
    expect(await refusal(guest)).toContain("the user “guest” may not make tables in the database");
    await (await openPostgres(url)).close();
    await admin.unsafe("GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO guest");
    const db = await openPostgres(guest);
    expect([...(await db`SELECT count(*) AS n FROM accounts`)]).toEqual([{ n: "0" }]);
    await db.close();
  });

  test("waits for a PostgreSQL server that is just starting", async () => {
    await server.stop();
    const opening = openPostgres(url, { waitMs: 20_000 });
    await Bun.sleep(50);
    await server.start();
    await (await opening).close();
    await admin`SELECT 1`.catch(() => {});
  });

  test("ignores PostgreSQL variables of the environment that name another database", async () => {
    const script = `
      const { openPostgres } = await import(${JSON.stringify(`${import.meta.dir}/open-postgres.ts`)});
      const db = await openPostgres(${JSON.stringify(url)});
      console.log((await db\`SELECT current_database() AS name\`)[0].name);
      await db.close();`;
    const env = { PGDATABASE: "postgres", PGHOST: "192.0.2.1", PGPORT: "1" };
    const child = Bun.spawn([process.execPath, "-e", script], { env, stdout: "pipe", stderr: "inherit" });
    expect((await new Response(child.stdout).text()).trim()).toBe(new URL(url).pathname.slice(1));
  });
});

test("does not create tables from a command beside a server, and names the older of the two", async () => {
  const fresh = await server.emptyDatabase();
  const open = (given: string) => openExistingPostgres(given);
  expect(await refusal(fresh, open)).toContain("has schema version 0");
  const db = new SQL(fresh, { max: 1 });
  expect([...(await db`SELECT tablename FROM pg_tables WHERE schemaname = 'public'`)]).toEqual([]);
  await db.close();
});

test("releases a blocked migration soon and repeats it once the table is free", async () => {
  const own = await server.freshDatabase();
  const [holder, watcher] = [new SQL(own, { max: 1 }), new SQL(own, { max: 1 })];
  await holder`ALTER TABLE schema_migrations DROP COLUMN checksum`;
  const opening = await holder.begin(async (tx) => {
    await tx`SELECT count(*) FROM schema_migrations`;
    const opens = openPostgres(own);
    // The migration has given up once by now, and tries again.
    await Bun.sleep(2_600);
    expect([...(await watcher`SELECT count(*) AS n FROM schema_migrations`)]).toHaveLength(1);
    return { opens };
  });
  await (await opening.opens).close();
  await Promise.all([holder.close(), watcher.close()]);
});

describe("unsupported PostgreSQL servers", () => {
  const place = { server: "db.example.com:5432", database: "“headrace”", user: "“headrace”" };
  const fine = { version: "150004", encoding: "UTF8", standby: false };

  test.each([
    [{ version: "140011" }, "the server at db.example.com:5432 is PostgreSQL 14; Headrace needs 15 or later"],
    [{ encoding: "SQL_ASCII" }, "has the encoding SQL_ASCII; Headrace needs UTF8"],
    [{ standby: true }, "is a standby, which takes no writes. Name the primary"],
  ])("refuses a server with %p", (facts, message) => {
    expect(() => requireSupported({ ...fine, ...facts }, place)).toThrow(message);
  });

  test("accepts a server of version 15", () => requireSupported(fine, place));
});
