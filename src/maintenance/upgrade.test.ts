// A start that changes the schema keeps a copy from before, or says why it does not begin; the way back is a restore.
import { Database as Sqlite } from "bun:sqlite";
import { afterEach, beforeEach, expect, test } from "bun:test";
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { SQL } from "bun";
import { runCommand } from "../../tests/fixtures/command-line.ts";
import { makeOldDatabase } from "../../tests/support/data-directory.ts";
import { startHeadrace } from "../../tests/support/headrace.ts";
import { StartError } from "../base/errors.ts";
import type { LogFields } from "../base/log.ts";
import { draftPath } from "../storage/backup/backup-folder.ts";
import { readManifest } from "../storage/backup/backup-manifest.ts";
import { bringUpToDate, knownSteps } from "../storage/sql/schema.ts";
import { openUpToDate, type UpgradeOptions } from "./upgrade.ts";

let dataDir: string;
let file: string;
let logged: { event: string; fields: LogFields }[];

beforeEach(() => {
  dataDir = mkdtempSync(join(tmpdir(), "headrace-upgrade-"));
  file = join(dataDir, "headrace.db");
  logged = [];
});

afterEach(() => rmSync(dataDir, { recursive: true, force: true }));

const note = (event: string, fields: LogFields = {}) => void logged.push({ event, fields });
const log = { info: note, warn: note, error: note };
let nowSeconds = 1_795_257_219;
const open = (more: Partial<UpgradeOptions> = {}) =>
  openUpToDate({ config: { dataDir, backupBeforeUpgrade: true }, log, version: "2.0.0", nowSeconds, ...more });
const events = () => logged.map(({ event }) => event);
const backups = () => (existsSync(join(dataDir, "backups")) ? readdirSync(join(dataDir, "backups")).sort() : []);
const old = knownSteps - 1;

function schemaOf(path: string): number {
  const db = new Sqlite(path, { readonly: true });
  const row = db.query<{ n: number }, []>("SELECT max(version) AS n FROM schema_migrations").get();
  db.close();
  return row?.n ?? 0;
}

/** Does at a start what a Headrace does that knows only so many steps. */
async function startAsOld(path: string, steps: number): Promise<void> {
  expect(schemaOf(path)).toBe(steps);
  const db = new SQL({ adapter: "sqlite", filename: path, create: false });
  await db.begin((tx) => bringUpToDate(tx, "sqlite", steps));
  expect(schemaOf(path)).toBe(steps);
  await db.close();
}

// hardening: O4
test.each(Array.from({ length: knownSteps - 1 }, (_, i) => i + 1))(
  "upgrades from schema %i without loss, with a backup for the earlier Headrace",
  async (steps) => {
    await makeOldDatabase(file, steps);
    const db = await open();
    expect([...(await db`SELECT name, tier FROM accounts`)]).toEqual([{ name: "From before", tier: "pro" }]);
    await db.close();
    expect(schemaOf(file)).toBe(knownSteps);
    const [name = ""] = backups();
    const backup = join(dataDir, "backups", name);
    expect(readManifest(backup)).toMatchObject({
      kind: "upgrade",
      schema: steps,
      headrace: "2.0.0",
      counts: { accounts: 1 },
    });
    expect(logged.find(({ event }) => event === "upgrade_backup_made")?.fields).toMatchObject({
      way_back: expect.stringContaining(`headrace restore ${backup} --data-dir ${dataDir} --replace`),
    });
    const restored = await runCommand(["restore", backup, "--data-dir", dataDir, "--replace"]);
    expect(restored.code).toBe(0);
    await startAsOld(file, steps);
  },
);

test("upgrades neither a new nor a current database", async () => {
  await (await open()).close();
  await (await open()).close();
  expect({ backups: backups(), events: events() }).toEqual({ backups: [], events: [] });
});

test("refuses a database of a newer Headrace or another build before copying anything", async () => {
  await makeOldDatabase(file, old);
  const db = new Sqlite(file);
  db.run("UPDATE schema_migrations SET checksum = 'x' WHERE version = 2");
  await expect(open()).rejects.toThrow("Step 2 of the database's schema");
  db.run(`INSERT INTO schema_migrations (version, applied_at) VALUES (${knownSteps + 1}, 0)`);
  db.close();
  await expect(open()).rejects.toThrow("start the newer Headrace");
  expect(backups()).toEqual([]);
});

// hardening: O4
test("does not upgrade without room for a backup, unless an option allows that", async () => {
  await makeOldDatabase(file, old);
  const failed = open({ freeBytes: () => 1_000_000 });
  await expect(failed).rejects.toThrow(StartError);
  await expect(failed).rejects.toThrow(/takes about \d+ MB .* 1 MB are free.*--no-backup-before-upgrade/);
  expect({ schema: schemaOf(file), backups: backups() }).toEqual({ schema: old, backups: [] });
  const config = { dataDir, backupBeforeUpgrade: false };
  await (await open({ config, freeBytes: () => 0 })).close();
  expect({ schema: schemaOf(file), backups: backups() }).toEqual({ schema: knownSteps, backups: [] });
  expect(events()).toEqual(["upgrade_backup", "upgrade_without_backup", "database_upgraded"]);
});

// hardening: O4
test("leaves the database unchanged if a step fails, names the backup, and reuses it", async () => {
  await makeOldDatabase(file, 1);
  const db = new Sqlite(file);
  // Stands in the way of a later step.
  db.run("CREATE TABLE audit_log (x INTEGER)");
  db.close();
  const failed = open();
  await expect(failed).rejects.toThrow(StartError);
  await expect(failed).rejects.toThrow(
    /from schema 1 to \d+ \(.*audit_log.*\)\. It is unchanged.* backup from before is at /,
  );
  expect(schemaOf(file)).toBe(1);
  expect(backups()).toHaveLength(1);
  nowSeconds += 10;
  await expect(open()).rejects.toThrow(join(dataDir, "backups", backups()[0] ?? "?"));
  expect(backups()).toHaveLength(1);
  const removed = new Sqlite(file);
  removed.run("DROP TABLE audit_log");
  removed.close();
  nowSeconds += 10;
  await (await open()).close();
  // The second start has a copy of its own, as the database was changed in between.
  expect(backups()).toHaveLength(2);
});

test("keeps the newest three backups of upgrades, and deletes drafts of killed starts", async () => {
  mkdirSync(join(dataDir, "backups"));
  for (let i = 0; i < 5; i++) {
    for (const name of ["headrace.db", "headrace.db-wal", "headrace.db-shm"])
      rmSync(join(dataDir, name), { force: true });
    await makeOldDatabase(file, old);
    mkdirSync(draftPath(join(dataDir, "backups", "x"), "upgrade"));
    nowSeconds += 60;
    await (await open()).close();
  }
  expect(readdirSync(join(dataDir, "backups")).filter((name) => name.startsWith("."))).toEqual([]);
  expect(backups()).toHaveLength(3);
  const times = backups().map((name) => readManifest(join(dataDir, "backups", name)).created_at);
  expect(times).toEqual([nowSeconds - 120, nowSeconds - 60, nowSeconds]);
});

test("includes the earlier version's spool in the backup", async () => {
  await makeOldDatabase(file, old);
  mkdirSync(join(dataDir, "spool"));
  await Bun.write(join(dataDir, "spool", "00000007.spool"), "#");
  await (await open()).close();
  const [name = ""] = backups();
  expect(readdirSync(join(dataDir, "backups", name, "spool"))).toEqual(["00000007.spool"]);
});

test("upgrades at the server's start, serves, and logs the way back", async () => {
  await makeOldDatabase(file, old);
  cpSync(file, join(dataDir, "before.db"));
  await using server = await startHeadrace({ dataDir });
  expect((await fetch(`${server.url}/readyz`)).status).toBe(200);
  expect(server.logged("database_upgraded")).toMatchObject([
    { schema: knownSteps, old_schema: old, backup: join(dataDir, "backups", backups()[0] ?? "?") },
  ]);
});
