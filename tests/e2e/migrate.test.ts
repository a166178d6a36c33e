// Records move from SQLite to PostgreSQL, whole: by the command, over a data directory as a server leaves it.
import { Database as Sqlite } from "bun:sqlite";
import { afterAll, beforeAll, expect, test } from "bun:test";
import { cpSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { SQL } from "bun";
import { openDatabase } from "../../src/storage/sql/database.ts";
import { runCommand } from "../fixtures/command-line.ts";
import { type DashboardWorld, openDashboardWorld } from "../support/dashboard-world.ts";
import { addGatheredUsage } from "../support/gathered-usage.ts";
import { startHeadrace, until } from "../support/headrace.ts";
import { makeOperatorKey } from "../support/operator-key.ts";
import { freshDatabase, sharedPostgres } from "../support/postgres.ts";

let directory: string;
/** A data directory as a server leaves it that was stopped. */
let stopped: string;
/** A data directory of a server whose power was cut: usage is still on the spool. */
let cut: string;
let world: DashboardWorld;

beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), "headrace-migrate-"));
  [stopped, cut] = [join(directory, "stopped"), join(directory, "cut")];
  world = await openDashboardWorld({ dataDir: stopped });
  await world.fill({ keys: 40, requests: 3_000, chats: 20, events: 40 });
  await world.browser.ask("/v1/admin/models", { method: "POST", body: declared });
  await world.server.governance.ledger.flush();
  expect((await ask(world.server.url)).status).toBe(200);
  cpSync(stopped, cut, { recursive: true });
  await world.server.close();
});

afterAll(async () => {
  await world[Symbol.asyncDispose]();
  rmSync(directory, { recursive: true, force: true });
});

const declared = {
  ...{ id: "team/alias", price: { input: 1, output: 2 }, deployments: [{ upstream: "built-in" }] },
  policies: { continuation: true, split: [{ model: "other", percent: 2.5 }] },
};
const ask = (url: string) =>
  fetch(`${url}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${world.server.key}`, "content-type": "application/json" },
    body: JSON.stringify({ model: "aurora-mini", messages: [{ role: "user", content: "Hello" }] }),
  });

let copies = 0;
/** Each test moves a data directory of its own. */
function copyOf(dataDir: string): string {
  const copy = join(directory, `copy-${++copies}`);
  cpSync(dataDir, copy, { recursive: true });
  return copy;
}

const emptyDatabase = async () => (await sharedPostgres()).emptyDatabase();
const migrate = (dataDir: string, databaseUrl: string, args: string[] = [], env: Record<string, string> = {}) =>
  runCommand(["migrate", "sqlite-to-postgres", "--data-dir", dataDir, ...args], {
    env: { HEADRACE_DATABASE_URL: databaseUrl, ...env },
    nowMs: Date.now(),
  });
const secretOf = (dataDir: string) => readFileSync(join(dataDir, "secret"), "utf8").trim();
/** Keeps its spool in a directory of its own. */
const serveFrom = (databaseUrl: string, dataDir: string) =>
  startHeadrace({
    yaml: world.models.yaml,
    env: { HEADRACE_DATABASE_URL: databaseUrl, HEADRACE_SECRET: secretOf(dataDir) },
  });

function rowsOf(dataDir: string, table: string): number {
  const db = new Sqlite(join(dataDir, "headrace.db"), { readonly: true });
  try {
    return db.prepare<{ rows: number }, []>(`SELECT count(*) AS rows FROM ${table}`).get()?.rows ?? 0;
  } finally {
    db.close();
  }
}

async function inPostgres<Result>(url: string, work: (db: SQL) => Promise<Result>): Promise<Result> {
  const db = new SQL(url, { max: 1 });
  try {
    return await work(db);
  } finally {
    await db.close();
  }
}

// hardening: O5
test("migrates all records, and a server on the new database accepts the key and knows them", async () => {
  const [dataDir, url] = [copyOf(stopped), await emptyDatabase()];
  const { code, stdout, stderr } = await migrate(dataDir, url);
  expect(stderr).not.toContain("not");
  expect(code).toBe(0);
  expect(stdout).toMatch(/^usage_records +3.001 +3.001 +the same$/m);
  expect(stdout).toMatch(/^usage_tag_rollups +([1-9]\S*) +\1 +the same$/m);
  expect(stdout).toMatch(/Tokens of all requests: ([^;]+?) and \1; spend: (\S+) and \2\./);
  expect(stdout).toContain(`export HEADRACE_SECRET="$(cat ${join(dataDir, "secret")})"`);
  for (const secret of [secretOf(dataDir), new URL(url).password]) expect(stdout + stderr).not.toContain(secret);

  await using server = await serveFrom(url, dataDir);
  expect((await ask(server.url)).status).toBe(200);
  await server.governance.ledger.flush();
  const counts = await inPostgres(url, async (db) => {
    const [row] =
      await db`SELECT (SELECT count(*) FROM usage_records) AS usage, (SELECT count(*) FROM stored_chats) AS chats`;
    return { usage: Number(row.usage), chats: Number(row.chats) };
  });
  expect(counts).toEqual({ usage: 3_002, chats: rowsOf(dataDir, "stored_chats") });
  expect(counts.chats).toBeGreaterThan(10);
  const keys = async (at: string) => {
    const answer = await fetch(`${at}/v1/keys?limit=100`, {
      headers: { authorization: `Bearer ${world.server.key}` },
    });
    return ((await answer.json()) as { data: { id: string }[] }).data.map(({ id }) => id);
  };
  expect((await keys(server.url)).length).toBeGreaterThan(30);
  const operator = await makeOperatorKey(dataDir, [], {
    HEADRACE_DATABASE_URL: url,
    HEADRACE_SECRET: secretOf(dataDir),
  });
  const model = await fetch(`${server.url}/v1/admin/models/team/alias`, {
    headers: { authorization: `Bearer ${operator}` },
  });
  expect(await model.json()).toMatchObject({
    ...{ id: "team/alias", source: "database", price: declared.price },
    settings: { policies: declared.policies },
  });
});

test("migrates usage that was in the spool at a power cut, once", async () => {
  const [dataDir, url] = [copyOf(cut), await emptyDatabase()];
  const { code, stdout } = await migrate(dataDir, url, ["--json"]);
  expect(code).toBe(0);
  const lines = stdout
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line));
  expect(lines[0]).toMatchObject({ event: "spool", settled: 3_001 - rowsOf(cut, "usage_records") });
  const { event, tables } = lines.at(-1);
  expect(event).toBe("done");
  const usage = tables.find(({ table }: { table: string }) => table === "usage_records");
  expect(usage).toMatchObject({ rows: [3_001, 3_001], differences: [] });
  expect(usage.sums.prompt_tokens[0]).toBe(usage.sums.prompt_tokens[1]);
});

test("migrates roll-ups that a killed server had not written yet", async () => {
  const [dataDir, url] = [copyOf(stopped), await emptyDatabase()];
  const source = await openDatabase(join(dataDir, "headrace.db"));
  await addGatheredUsage(source, "acct_any");
  await source.close();
  expect(rowsOf(dataDir, "usage_unrolled")).toBe(1);
  const { code, stdout } = await migrate(dataDir, url);
  expect([code, stdout]).toEqual([0, expect.stringMatching(/^usage_records +3.301 +3.301 +the same$/m)]);
  expect(rowsOf(dataDir, "usage_unrolled")).toBe(0);
  await inPostgres(url, async (db) => {
    const [row] = await db`SELECT sum(requests) AS requests FROM usage_rollups WHERE span = 'day'`;
    expect(Number(row.requests)).toBe(3_301);
  });
});

test("migrates a database with a newer schema only with the newer program", async () => {
  const [dataDir, url] = [copyOf(stopped), await emptyDatabase()];
  const db = new Sqlite(join(dataDir, "headrace.db"));
  db.run("INSERT INTO schema_migrations (version, applied_at, works_from) VALUES (999, 0, 1)");
  db.close();
  const { code, stderr } = await migrate(dataDir, url);
  expect([code, stderr]).toEqual([1, expect.stringContaining("move it with the newer Headrace that wrote it")]);
});

// hardening: O5
test("resumes a migration killed at any moment, and starts no server before it is complete", async () => {
  const [dataDir, url] = [copyOf(stopped), await emptyDatabase()];
  let reached = 0;
  for (const killAt of [100, 700, 2_000]) {
    const script = join(import.meta.dir, "../fixtures/move-slowly.ts");
    const child = Bun.spawn([process.execPath, script, dataDir, "5"], {
      env: { ...process.env, HEADRACE_DATABASE_URL: url },
      stdout: "pipe",
    });
    let text = "";
    for await (const bytes of child.stdout) {
      text += Buffer.from(bytes).toString();
      if (Number(text.trimEnd().split("\n").at(-1)) >= killAt) child.kill("SIGKILL");
    }
    await child.exited;
    const steps = text.split("\n").map(Number);
    expect(text).not.toContain("the same");
    // What was done before is not done again.
    expect(steps[0]).toBeGreaterThan(reached);
    reached = steps.filter((rows) => rows > 0).at(-1) ?? 0;
    await expect(serveFrom(url, dataDir)).rejects.toThrow("not all in this database yet");
  }
  const { code, stdout } = await migrate(dataDir, url);
  expect(code).toBe(0);
  expect(stdout).toMatch(/^usage_records +3.001 +3.001 +the same$/m);
  await using server = await serveFrom(url, dataDir);
  expect((await ask(server.url)).status).toBe(200);
});

// hardening: O5
test.each<[what: string, planted: string, said: RegExp]>([
  [
    "a figure that is another one",
    "UPDATE usage_records SET nano_usd = coalesce(nano_usd, 0) + 1 WHERE request_id = (SELECT min(request_id) FROM usage_records)",
    /^usage_records .*nano_usd differ/m,
  ],
  ["a row too many", "INSERT INTO drained_upstreams VALUES ('another', 1)", /^drained_upstreams .*rows/m],
  ["a row that is gone", "DELETE FROM audit_log WHERE id = (SELECT max(id) FROM audit_log)", /^audit_log .*rows/m],
  [
    "a text that is longer",
    "UPDATE accounts SET name = name || '!' WHERE id = (SELECT min(id) FROM accounts)",
    /^accounts .*name differ/m,
  ],
])("detects %s in the comparison, and starts no server on the copy", async (_what, planted, said) => {
  const [dataDir, url] = [copyOf(stopped), await emptyDatabase()];
  expect((await migrate(dataDir, url)).code).toBe(0);
  await inPostgres(url, async (db) => {
    await db.unsafe(planted);
    // The mark stands as if it had been there before the end.
    await db`UPDATE installation SET value = replace(value, 'complete', 'copying') WHERE name = 'copied_from'`;
  });
  const { code, stdout, stderr } = await migrate(dataDir, url);
  expect(code).toBe(1);
  expect(stdout).toMatch(said);
  expect(stderr).toContain("The databases differ");
  await expect(serveFrom(url, dataDir)).rejects.toThrow("not all in this database yet");
});

test("refuses a database that is not empty or is in use, and leaves it unchanged", async () => {
  const dataDir = copyOf(stopped);
  const used = await freshDatabase();
  await inPostgres(used, (db) => db`INSERT INTO tiers (name, environments) VALUES ('theirs', '["live"]')`);
  const refused = await migrate(dataDir, used);
  expect(refused).toMatchObject({ code: 1, stderr: expect.stringContaining("there are rows in tiers") });
  await inPostgres(used, (db) => db`DELETE FROM tiers`);
  await inPostgres(
    used,
    (db) => db`INSERT INTO replicas VALUES ('rep_1', NULL, '0', 1, extract(epoch FROM now())::bigint)`,
  );
  const served = await migrate(dataDir, used);
  expect(served).toMatchObject({ code: 1, stderr: expect.stringContaining("A server uses this database") });
  await inPostgres(used, (db) => db`DELETE FROM replicas`);
  expect((await migrate(dataDir, used)).code).toBe(0);
});

test("tells what to do about a running server, another secret or no named database", async () => {
  const [dataDir, url] = [copyOf(stopped), await emptyDatabase()];
  const missing = await runCommand(["migrate", "sqlite-to-postgres", "--data-dir", dataDir], {});
  expect(missing).toMatchObject({ code: 2, stderr: expect.stringContaining("Set HEADRACE_DATABASE_URL") });
  const other = await migrate(dataDir, url, [], { HEADRACE_SECRET: "ab".repeat(32) });
  expect(other).toMatchObject({ code: 1, stderr: expect.stringContaining("HEADRACE_SECRET is not the secret") });
  await using _server = await startHeadrace({ dataDir });
  const running = await migrate(dataDir, url);
  expect(running).toMatchObject({
    code: 1,
    stderr: expect.stringContaining("Another Headrace uses the data directory"),
  });
});

test("warns of a server on the old records, and does not resume an earlier copy from there", async () => {
  const [dataDir, url] = [copyOf(stopped), await emptyDatabase()];
  expect((await migrate(dataDir, url)).code).toBe(0);
  for (let starts = 0; starts < 2; starts++) {
    await using server = await startHeadrace({ dataDir });
    const [warning] = server.logged("records_moved");
    expect(warning?.["detail"]).toContain(`copied to PostgreSQL at ${new URL(url).host}`);
    expect(server.logText()).not.toContain(new URL(url).password);
  }
  const again = await migrate(dataDir, url);
  expect(again).toMatchObject({
    code: 1,
    stderr: expect.stringContaining("a server has run on the SQLite database since"),
  });
});

test("names a PostgreSQL server that disappears during the copy, and loses no copied records", async () => {
  const [dataDir, url] = [copyOf(stopped), await emptyDatabase()];
  const script = join(import.meta.dir, "../fixtures/move-slowly.ts");
  const child = Bun.spawn([process.execPath, script, dataDir, "5"], {
    env: { ...process.env, HEADRACE_DATABASE_URL: url },
    ...{ stdout: "pipe", stderr: "pipe" },
  });
  const admin = (await sharedPostgres()).adminUrlOf("postgres");
  // Within a transaction: between two of them another connection would take its place, and nobody would notice.
  const ended = await until(
    () =>
      inPostgres(admin, async (db) => {
        const name = new URL(url).pathname.slice(1);
        const rows = await db`
          SELECT pg_terminate_backend(pid) FROM pg_stat_activity
          WHERE datname = ${name} AND application_name = 'headrace migrate' AND query LIKE 'INSERT%' AND state <> 'idle'`;
        return rows.length > 0;
      }),
    "the copy is under way",
  );
  expect(ended).toBe(true);
  expect(await new Response(child.stderr).text()).toContain("run the same command again");
  expect(await child.exited).not.toBe(0);
  expect((await migrate(dataDir, url)).code).toBe(0);
});
