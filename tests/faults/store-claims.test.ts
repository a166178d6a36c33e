// What readiness and answers claim while the store refuses, is replaced, loses syncs or is gone.
import { Database } from "bun:sqlite";
import { afterEach, describe, expect, test } from "bun:test";
import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { SQL } from "bun";
import { startHeadrace, type TestServer, until } from "../support/headrace.ts";
import { sharedPostgres } from "../support/postgres.ts";
import { startUpstream, upstreamYaml } from "../support/scripted-upstream.ts";
import { startServerProcess } from "../support/server-process.ts";

const stack: AsyncDisposable[] = [];
afterEach(async () => {
  for (const part of stack.splice(0).reverse()) await part[Symbol.asyncDispose]();
});

interface Asked {
  url: string;
  key: string;
}

async function readiness({ url }: Pick<Asked, "url">): Promise<{ code: number; status: string; checks: object }> {
  const response = await fetch(`${url}/readyz`);
  return { code: response.status, ...((await response.json()) as { status: string; checks: object }) };
}

async function makeKey({ url, key }: Asked): Promise<{ status: number; text: string }> {
  const response = await fetch(`${url}/v1/keys`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    body: JSON.stringify({ name: "claimed" }),
  });
  return { status: response.status, text: await response.text() };
}

async function chat({ url, key }: Asked): Promise<{ status: number; id: string }> {
  const response = await fetch(`${url}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    body: JSON.stringify({ model: "upstream-model", messages: [{ role: "user", content: "x" }] }),
  });
  await response.text();
  return { status: response.status, id: response.headers.get("x-request-id") ?? "" };
}

function booked(dataDir: string): string[] {
  using db = new Database(join(dataDir, "headrace.db"), { readonly: true });
  return db
    .query<{ request_id: string }, []>("SELECT request_id FROM usage_records")
    .all()
    .map((row) => row.request_id);
}

async function start(options: Parameters<typeof startHeadrace>[0] = {}): Promise<TestServer> {
  const upstream = await startUpstream();
  stack.push(upstream);
  const server = await startHeadrace({ yaml: upstreamYaml(upstream), ...options });
  stack.push(server);
  return server;
}

describe("the database file while the server runs", () => {
  const aside = (dataDir: string, name: string) => {
    renameSync(join(dataDir, name), join(dataDir, `${name}.aside`));
    return () => renameSync(join(dataDir, `${name}.aside`), join(dataDir, name));
  };

  test.each<[string, (dataDir: string) => () => void]>([
    ["renamed", (dataDir) => aside(dataDir, "headrace.db")],
    [
      "replaced",
      (dataDir) => {
        const back = aside(dataDir, "headrace.db");
        cpSync(join(dataDir, "headrace.db.aside"), join(dataDir, "headrace.db"));
        return back;
      },
    ],
    ["without its log", (dataDir) => aside(dataDir, "headrace.db-wal")],
  ])("changes nothing, is not ready and keeps usage waiting with the database file %s", async (_, displace) => {
    const server = await start();
    expect((await makeKey(server)).status).toBe(200);
    await server.governance.ledger.flush();
    const back = displace(server.dataDir);
    expect(await readiness(server)).toMatchObject({ code: 503, status: "not_ready", checks: { database: "failed" } });
    const refused = await makeKey(server);
    expect(refused.status).toBe(503);
    expect(refused.text).toContain("moved, deleted or replaced");
    const { status, id } = await chat(server);
    expect(status).toBe(200);
    await until(() => server.logged("usage_write_failed").length > 0, "the log says so");
    back();
    await until(async () => (await readiness(server)).status === "ready", "it is ready again", 15_000);
    expect((await makeKey(server)).status).toBe(200);
    await until(() => booked(server.dataDir).includes(id), "its usage is booked", 15_000);
  });
});

describe("a read-only PostgreSQL", () => {
  test("reports a read-only PostgreSQL by readiness and doctor until it accepts writes", async () => {
    const postgres = await sharedPostgres();
    const url = await postgres.freshDatabase();
    const name = new URL(url).pathname.slice(1);
    const admin = new SQL(postgres.adminUrlOf(name), { max: 1 });
    const { writeRefusal } = await import("../../src/storage/sql/open-to-read.ts");
    try {
      const server = await start({ env: { HEADRACE_DATABASE_URL: url, HEADRACE_SECRET: "6b".repeat(32) } });
      await until(async () => (await readiness(server)).status === "ready", "it is ready");
      expect(await writeRefusal(url)).toBeUndefined();
      const readOnly = async (value: "on" | "off") => {
        await admin.unsafe(`ALTER DATABASE ${name} SET default_transaction_read_only = ${value}`);
        await admin`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = ${name} AND pid <> pg_backend_pid()`;
      };
      await readOnly("on");
      await until(async () => (await readiness(server)).status === "degraded", "it is degraded", 15_000);
      expect((await readiness(server)).checks).toMatchObject({ database: "failed" });
      expect((await makeKey(server)).status).toBe(503);
      expect(await writeRefusal(url)).toContain("read-only");
      await readOnly("off");
      await until(async () => (await readiness(server)).status === "ready", "it is ready again", 15_000);
    } finally {
      await admin.close();
    }
  });
});

test("reports a database that becomes an older copy, in which revoked keys are valid again", async () => {
  const server = await start();
  const made = JSON.parse((await makeKey(server)).text) as { id: string; key: string };
  using db = new Database(join(server.dataDir, "headrace.db"));
  const tables = ["api_keys", "credential_revision"];
  for (const table of tables) db.run(`CREATE TEMP TABLE old_${table} AS SELECT * FROM ${table}`);
  expect((await server.request(`/v1/keys/${made.id}`, { method: "DELETE" })).status).toBe(200);
  expect((await chat({ url: server.url, key: made.key })).status).toBe(401);
  // The server looks for changes twice a second.
  await Bun.sleep(2_000);
  // Stands for a failover to a standby that lacks the last commits.
  db.transaction(() => {
    for (const table of tables) db.run(`DELETE FROM ${table}`);
    for (const table of tables) db.run(`INSERT INTO ${table} SELECT * FROM old_${table}`);
  })();
  await until(() => server.logged("database_went_back").length > 0, "the log says so");
  expect((await chat({ url: server.url, key: made.key })).status).toBe(200);
});

test("reports an SQLite database locked by another program by readiness until it is free", async () => {
  const server = await start();
  using other = new Database(join(server.dataDir, "headrace.db"));
  other.run("BEGIN IMMEDIATE");
  await until(async () => (await readiness(server)).status === "degraded", "it is degraded", 15_000);
  other.run("ROLLBACK");
  await until(async () => (await readiness(server)).status === "ready", "it is ready again", 15_000);
});

describe("a disk that loses fsync", () => {
  test("refuses key changes truthfully while fsync fails, is degraded, and accepts them afterwards", async () => {
    const upstream = await startUpstream();
    stack.push(upstream);
    const directory = mkdtempSync(join(tmpdir(), "headrace-sync-"));
    const dataDir = join(directory, "data");
    const config = join(directory, "headrace.yaml");
    writeFileSync(config, upstreamYaml(upstream));
    await using server = await startServerProcess({ dataDir, config });
    const key = String(JSON.parse(readFileSync(join(dataDir, "credentials.json"), "utf8")).api_key);
    const asked = { url: server.url, key };
    expect((await makeKey(asked)).status).toBe(200);
    const fault = Bun.spawn(
      ["strace", "-f", "-qq", "-o", "/dev/null", "-p", String(server.process.pid)].concat([
        "-e",
        "trace=fsync,fdatasync",
        "-e",
        "inject=fsync,fdatasync:error=EIO",
      ]),
      { stdin: "ignore", stdout: "ignore", stderr: "pipe" },
    );
    try {
      const first = await until(async () => {
        const made = await makeKey(asked);
        return made.status === 503 ? made : undefined;
      }, "a key is refused");
      expect(first.text).toContain("a power cut may undo it");
      const next = await makeKey(asked);
      expect([next.status, next.text.includes("nothing is changed")]).toEqual([503, true]);
      expect(await readiness(asked)).toMatchObject({ status: "degraded", checks: { database: "failed" } });
      expect((await chat(asked)).status).toBe(200);
      await until(async () => {
        const { checks } = await readiness(asked);
        return (checks as { spool?: string }).spool === "degraded";
      }, "the spool is told too");
    } finally {
      fault.kill("SIGTERM");
      await fault.exited;
    }
    await until(async () => (await readiness(asked)).status === "ready", "it is ready again", 15_000);
    expect((await makeKey(asked)).status).toBe(200);
    rmSync(directory, { recursive: true });
  });
});

describe("a data directory without its database", () => {
  const emptied: [string, (file: string) => void][] = [
    ["missing", (file) => rmSync(file)],
    ["of 0 bytes", (file) => truncateSync(file)],
    [
      "without accounts",
      (file) => {
        using db = new Database(file);
        db.run("PRAGMA foreign_keys = OFF");
        for (const { name } of db
          .query<{ name: string }, []>("SELECT name FROM sqlite_master WHERE type = 'table'")
          .all()) {
          if (!/^(sqlite_|schema_)/.test(name)) db.run(`DELETE FROM ${name}`);
        }
      },
    ],
  ];

  test.each(emptied.flatMap(([how, empty]) => [false, true].map((isNamed) => [how, isNamed, empty] as const)))(
    "refuses to start as new with a database %s (named before: %s)",
    async (_how, isNamed, empty) => {
      const directory = mkdtempSync(join(tmpdir(), "headrace-emptied-"));
      const dataDir = join(directory, "data");
      let id = "";
      {
        await using first = await startHeadrace({ dataDir });
        id = first.firstKey.record.id;
      }
      for (const name of ["headrace.db-wal", "headrace.db-shm"]) rmSync(join(dataDir, name), { force: true });
      const file = join(dataDir, "headrace.db");
      cpSync(file, `${file}.kept`);
      // The spool is empty, and an earlier version named no database: the first key alone says that there was one.
      if (!isNamed) rmSync(join(dataDir, "installation"));
      const [secret, credentials] = ["secret", "credentials.json"].map((name) =>
        readFileSync(join(dataDir, name), "utf8"),
      );
      empty(file);
      await expect(startHeadrace({ dataDir })).rejects.toThrow(/was used before.*headrace restore/s);
      expect(readFileSync(join(dataDir, "secret"), "utf8")).toBe(secret ?? "");
      expect(readFileSync(join(dataDir, "credentials.json"), "utf8")).toBe(credentials ?? "");
      for (const name of ["", "-wal", "-shm"]) rmSync(`${file}${name}`, { force: true });
      renameSync(`${file}.kept`, file);
      await using again = await startHeadrace({ dataDir });
      expect(again.firstKey.record.id).toBe(id);
      rmSync(directory, { recursive: true });
    },
  );

  test.each<[string, (dataDir: string) => void]>([
    [
      "of an earlier version, which named no database",
      (dataDir) => {
        rmSync(join(dataDir, "installation"));
        using db = new Database(join(dataDir, "headrace.db"));
        db.run("DELETE FROM installation WHERE name = 'id'");
      },
    ],
    ["whose file of the name is empty", (dataDir) => writeFileSync(join(dataDir, "installation"), "")],
  ])("starts on a data directory %s", async (_, change) => {
    const directory = mkdtempSync(join(tmpdir(), "headrace-unnamed-"));
    const dataDir = join(directory, "data");
    let id = "";
    {
      await using first = await startHeadrace({ dataDir });
      id = first.firstKey.record.id;
    }
    change(dataDir);
    await using again = await startHeadrace({ dataDir });
    expect(again.firstKey.record.id).toBe(id);
    expect(readFileSync(join(dataDir, "installation"), "utf8")).toStartWith("inst_");
    rmSync(directory, { recursive: true });
  });

  test.each([
    [
      "its rows are deleted",
      "CREATE TABLE kept AS TABLE installation; DELETE FROM installation",
      "INSERT INTO installation SELECT * FROM kept ON CONFLICT (name) DO UPDATE SET value = excluded.value",
    ],
    [
      "its schema is dropped",
      "ALTER SCHEMA public RENAME TO kept; CREATE SCHEMA public; DROP SCHEMA public CASCADE",
      "ALTER SCHEMA kept RENAME TO public",
    ],
  ])("reports a PostgreSQL emptied at runtime by readiness if %s", async (_, empty, putBack) => {
    const postgres = await sharedPostgres();
    const url = await postgres.freshDatabase();
    const server = await start({ env: { HEADRACE_SECRET: "6b".repeat(32), HEADRACE_DATABASE_URL: url } });
    expect((await readiness(server)).status).toBe("ready");
    await using db = new SQL(url, { max: 1 });
    // The schema of a server that was started for the first time, on this database.
    await db.unsafe(empty);
    await until(async () => (await readiness(server)).code === 503, "readiness without the database");
    expect((await readiness(server)).checks).toMatchObject({ database: "failed", secret: "ok" });
    await until(async () => {
      await readiness(server);
      return server.logged("database_replaced").length === 1;
    }, "the log that the database was replaced");
    await db.unsafe(putBack);
    await until(async () => (await readiness(server)).status === "ready", "readiness with the database");
  });

  test("binds a data directory to one PostgreSQL database, and starts on no other", async () => {
    const postgres = await sharedPostgres();
    const directory = mkdtempSync(join(tmpdir(), "headrace-other-"));
    const dataDir = join(directory, "data");
    const env = { HEADRACE_SECRET: "6b".repeat(32), HEADRACE_DATABASE_URL: await postgres.freshDatabase() };
    {
      await using _first = await startHeadrace({ dataDir, env });
    }
    const other = { ...env, HEADRACE_DATABASE_URL: await postgres.freshDatabase() };
    await expect(startHeadrace({ dataDir, env: other })).rejects.toThrow(/was used before/);
    {
      await using _elsewhere = await startHeadrace({ dataDir: join(directory, "elsewhere"), env: other });
    }
    await expect(startHeadrace({ dataDir, env: other })).rejects.toThrow(/belongs to another database/);
    await using _again = await startHeadrace({ dataDir, env });
    rmSync(directory, { recursive: true });
  });
});

test("reports a damaged database at start with a remedy", async () => {
  const directory = mkdtempSync(join(tmpdir(), "headrace-damaged-"));
  const dataDir = join(directory, "data");
  mkdirSync(dataDir);
  const file = join(dataDir, "headrace.db");
  writeFileSync(file, "no database of SQLite ".repeat(400));
  const before = statSync(file).size;
  await expect(startHeadrace({ dataDir })).rejects.toThrow(/damaged.*headrace restore/s);
  expect(statSync(file).size).toBe(before);
  rmSync(directory, { recursive: true });
});
