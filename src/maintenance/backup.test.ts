// `headrace backup`: whole and sound while others write, for its owner alone, and never in the place of anything else.
import { Database as Sqlite } from "bun:sqlite";
import { afterEach, beforeEach, expect, test } from "bun:test";
import {
  chmodSync,
  closeSync,
  cpSync,
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  statSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { join } from "node:path";
import { runCommand } from "../../tests/fixtures/command-line.ts";
import { type FilledDirectory, filledDirectory, silentLog } from "../../tests/support/data-directory.ts";
import { addGatheredUsage } from "../../tests/support/gathered-usage.ts";
import { recoverSpool } from "../ledger/ledger-recovery.ts";
import { openUsageWriter } from "../ledger/usage/usage-writer.ts";
import { draftPath, newBackupPath } from "../storage/backup/backup-folder.ts";
import { readManifest } from "../storage/backup/backup-manifest.ts";
import { openDatabase } from "../storage/sql/database.ts";
import { type BackupOptions, makeBackup } from "./backup.ts";

let filled: FilledDirectory;
let dataDir: string;
let root: string;

beforeEach(async () => {
  filled = await filledDirectory();
  ({ dataDir, root } = filled);
});

afterEach(() => filled[Symbol.asyncDispose]());

const nowSeconds = 1_795_257_219;
const target = () => join(root, "backup");
const make = (more: Partial<BackupOptions> = {}) =>
  makeBackup({ dataDir, target: target(), kind: "backup", version: "1.2.3", nowSeconds, ...more });
const backup = (args: string[], env: Record<string, string> = {}) =>
  runCommand(["backup", ...args, "--data-dir", dataDir], { env, nowMs: nowSeconds * 1000 });

/** Ids of the requests that a start on the backup finds. */
async function requestsIn(path: string): Promise<string[]> {
  const copy = join(root, "started");
  cpSync(path, copy, { recursive: true });
  const db = await openDatabase(join(copy, "headrace.db"));
  const writer = await openUsageWriter(db);
  await recoverSpool({ db, writer, directory: join(copy, "spool"), log: silentLog });
  const rows: { request_id: string }[] = await db`SELECT request_id FROM usage_records ORDER BY request_id`;
  const [rolled] = await db`SELECT coalesce(sum(requests), 0) AS n FROM usage_rollups WHERE span = 'hour'`;
  expect(Number(rolled.n)).toBe(rows.length);
  writer.close();
  await db.close();
  return rows.map(({ request_id }) => request_id);
}

/** Modes of all files and folders of a folder, by path. */
function modesIn(path: string): Record<string, string> {
  const names = readdirSync(path, { recursive: true, encoding: "utf8" });
  return Object.fromEntries(
    [".", ...names].map((name) => [name, (statSync(join(path, name)).mode & 0o777).toString(8)]),
  );
}

// hardening: O1
test("backs up settled requests from database and spool, and counts each once", async () => {
  await filled.settle("req_drained");
  await filled.ledger.flush();
  await filled.settle("req_on_spool");
  const made = await make();
  expect(made.manifest).toMatchObject({
    counts: { accounts: 1, requests: 1 },
    headrace: "1.2.3",
    created_at: nowSeconds,
  });
  expect(await requestsIn(made.path)).toEqual(["req_drained", "req_on_spool"]);
});

test("refuses to back up a database that lost its accounts", async () => {
  await filled.leave();
  const db = new Sqlite(join(dataDir, "headrace.db"));
  db.run("PRAGMA foreign_keys = OFF");
  db.run("DELETE FROM accounts");
  db.close();
  await expect(make()).rejects.toThrow(/has no accounts, and .* was used before.*headrace restore/);
  expect(readdirSync(root)).toEqual(["data"]);
});

test("backs up usage whose roll-ups are still unwritten, for the start to write", async () => {
  const ids = await addGatheredUsage(filled.db, filled.accountId);
  const made = await make();
  expect(made.manifest).toMatchObject({ counts: { requests: 300 } });
  expect(await requestsIn(made.path)).toEqual(ids.sort());
});

test("copies the spool before the database, so that no record is missed", async () => {
  await filled.settle("req_1");
  let spool: string[] = [];
  await make({
    onProgress() {
      spool = readdirSync(root)
        .filter((name) => name.endsWith(".draft"))
        .flatMap((name) => readdirSync(join(root, name, "spool")));
    },
  });
  expect(spool).toEqual(["00000001.spool"]);
});

test("reports the copied bytes, never more than expected", async () => {
  const { db } = filled;
  const tiers = Array.from({ length: 3_000 }, (_, i) => ({ name: `tier-${i}`, environments: "live,".repeat(50) }));
  for (let from = 0; from < tiers.length; from += 500) {
    await db`INSERT INTO tiers ${db(tiers.slice(from, from + 500))}`;
  }
  await db`DELETE FROM tiers WHERE rowid % 2 = 0`;
  const copied: { bytes: number; totalBytes: number }[] = [];
  await make({ onProgress: (progress) => void (progress.phase === "copying" && copied.push(progress)) });
  const { bytes, totalBytes } = copied.at(-1) ?? { bytes: 0, totalBytes: 0 };
  expect(bytes).toBe(statSync(join(target(), "headrace.db")).size);
  expect(bytes).toBeLessThan(totalBytes);
});

// hardening: O1
test("backs up one moment while other processes write", async () => {
  const writer = new Sqlite(join(dataDir, "headrace.db"));
  writer.run("PRAGMA busy_timeout = 0");
  writer.run("PRAGMA synchronous = OFF");
  let written = 0;
  const write = () => {
    writer.run("BEGIN IMMEDIATE");
    writer.run("INSERT INTO tiers (name, environments) VALUES (?, 'live')", [`a${written}`]);
    writer.run("INSERT INTO tiers (name, environments) VALUES (?, 'live')", [`b${written++}`]);
    writer.run("COMMIT");
  };
  for (let i = 0; i < 2_000; i++) write();
  const timer = setInterval(write, 0);
  const before = written;
  const made = await make();
  clearInterval(timer);
  expect(written).toBeGreaterThan(before);
  writer.close();
  const copy = new Sqlite(join(made.path, "headrace.db"), { readonly: true });
  const [a, b] = ["a", "b"].map((name) =>
    copy.query(`SELECT count(*) AS n FROM tiers WHERE name GLOB '${name}[0-9]*'`).get(),
  );
  expect(a).toEqual(b);
  copy.close();
});

// hardening: O2
test("restricts a backup to its owner under any umask, without the secret and credentials", async () => {
  const before = process.umask(0o022);
  await filled.settle("req_1");
  const { path } = await make().finally(() => process.umask(before));
  expect(modesIn(path)).toEqual({
    ".": "700",
    "headrace.db": "600",
    "manifest.json": "600",
    spool: "700",
    "spool/00000001.spool": "600",
  });
});

// hardening: O2
test("includes the secret on request, and never another secret than the server's", async () => {
  const { code, stderr } = await backup([target(), "--include-secret"]);
  expect({ code, stderr }).toMatchObject({ code: 0, stderr: expect.stringContaining("It contains the secret") });
  expect(readFileSync(join(target(), "secret"), "utf8")).toBe(readFileSync(join(dataDir, "secret"), "utf8"));
  expect(modesIn(target())).toMatchObject({ secret: "600" });
  const other = await backup([join(root, "other"), "--include-secret"], { HEADRACE_SECRET: "ab".repeat(32) });
  expect(other).toMatchObject({ code: 1, stderr: expect.stringContaining("not the one that the server uses") });
  expect(existsSync(join(root, "other"))).toBe(false);
});

// hardening: O2
test("makes no backup of a damaged database, and leaves nothing behind", async () => {
  for (let i = 0; i < 400; i++) await filled.settle(`req_${i}`);
  await filled.ledger.flush();
  await filled.db.unsafe("PRAGMA wal_checkpoint(TRUNCATE)");
  const file = join(dataDir, "headrace.db");
  const bytes = readFileSync(file);
  const descriptor = openSync(file, "r+");
  for (let page = 0; page < bytes.length; page += 4096) {
    // Only pages of usage.
    if (bytes.subarray(page, page + 4096).includes("req_1"))
      writeSync(descriptor, Buffer.alloc(600, 0x5a), 0, 600, page + 3000);
  }
  closeSync(descriptor);
  await expect(make()).rejects.toThrow(/^The database .* (is damaged|cannot be copied)/);
  expect(readdirSync(root).sort()).toEqual(["data"]);
});

// hardening: O2
test("reports the needed space before writing anything if there is too little", async () => {
  await expect(make({ freeBytes: () => 1_000_000 })).rejects.toThrow(/takes about \d+ MB in .*, where 1 MB are free/);
  expect(readdirSync(root)).toEqual(["data"]);
});

// hardening: O2
test("leaves nothing of an interrupted backup", async () => {
  const controller = new AbortController();
  const making = make({ signal: controller.signal, onProgress: () => controller.abort(new Error("interrupted")) });
  await expect(making).rejects.toThrow("interrupted");
  expect(readdirSync(root)).toEqual(["data"]);
});

test("replaces another backup only with --force, and nothing else ever", async () => {
  expect(await backup([target()])).toMatchObject({ code: 0 });
  writeFileSync(join(target(), "mark"), "");
  expect(await backup([target()])).toMatchObject({ code: 1, stderr: expect.stringContaining("--force") });
  expect(existsSync(join(target(), "mark"))).toBe(true);
  expect(await backup([target(), "--force"])).toMatchObject({ code: 0 });
  expect(existsSync(join(target(), "mark"))).toBe(false);
  const file = join(root, "a file");
  writeFileSync(file, "mine");
  expect(await backup([file, "--force"])).toMatchObject({ code: 2, stderr: expect.stringContaining("is a file") });
  expect(readFileSync(file, "utf8")).toBe("mine");
});

test("deletes only the oldest backups of its own kind with --keep", async () => {
  const folder = join(root, "kept");
  mkdirSync(join(folder, "headrace-20200101T000000Z"), { recursive: true });
  mkdirSync(join(folder, "mine"));
  const at = (day: number) =>
    runCommand(["backup", folder, "--keep", "2", "--json", "--data-dir", dataDir], { nowMs: Date.UTC(2026, 0, day) });
  const paths = [];
  for (const day of [1, 2, 3]) paths.push(JSON.parse((await at(day)).stdout));
  expect(paths.map(({ deleted }) => deleted)).toEqual([[], [], [join(folder, "headrace-20260101T000000Z")]]);
  expect(readdirSync(folder).sort()).toEqual([
    "headrace-20200101T000000Z",
    "headrace-20260102T000000Z",
    "headrace-20260103T000000Z",
    "mine",
  ]);
});

test("never deletes the new backup with --keep, even beside backups with later dates", async () => {
  const folder = join(root, "backups");
  const on = (year: number) =>
    runCommand(["backup", folder, "--keep", "2", "--json", "--data-dir", dataDir], { nowMs: Date.UTC(year, 0, 1) });
  for (const year of [2036, 2037]) expect((await on(year)).code).toBe(0);
  const { code, stdout } = await on(2026);
  expect(code).toBe(0);
  const { path, deleted } = JSON.parse(stdout) as { path: string; deleted: string[] };
  expect(existsSync(join(path, "manifest.json"))).toBe(true);
  expect(deleted).toEqual([join(folder, "headrace-20360101T000000Z")]);
});

test("deletes the remains of a killed backup only after a day", async () => {
  const folder = join(root, "kept");
  mkdirSync(folder);
  const draft = draftPath(join(folder, "x"), "backup");
  mkdirSync(draft);
  const at = (ms: number) => runCommand(["backup", folder, "--data-dir", dataDir], { nowMs: ms });
  await at(Date.now() + 3_600_000);
  expect(existsSync(draft)).toBe(true);
  await at(Date.now() + 90_000_000);
  expect(existsSync(draft)).toBe(false);
});

test("backs up to the data directory by default, under a new name each time", async () => {
  for (let i = 0; i < 2; i++) expect(await backup(["--quiet"])).toMatchObject({ code: 0, stderr: "" });
  const folder = join(dataDir, "backups");
  expect(readdirSync(folder).sort()).toEqual(["headrace-20261121T103339Z", "headrace-20261121T103339Z-2"]);
  expect(newBackupPath(folder, { nowSeconds })).toEndWith("-3");
  expect(readManifest(join(folder, "headrace-20261121T103339Z")).kind).toBe("backup");
});

test("prints everything about a backup with --json", async () => {
  const { code, stdout, stderr } = await backup([target(), "--json"]);
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  const said = JSON.parse(stdout);
  expect(said).toEqual({
    path: target(),
    bytes: expect.any(Number),
    seconds: expect.any(Number),
    manifest: readManifest(target()),
    deleted: [],
  });
  expect(said.bytes).toBe(said.manifest.parts.reduce((sum: number, part: { bytes: number }) => sum + part.bytes, 0));
});

test("points to pg_dump and the spool for a backup with PostgreSQL", async () => {
  const { code, stderr } = await backup([], { HEADRACE_DATABASE_URL: "postgres://u:p@127.0.0.1:1/x" });
  expect(code).toBe(1);
  expect(stderr).toMatch(/pg_dump[\s\S]*`spool`/);
  expect(stderr).not.toContain("u:p");
});

test("names the user to run a backup as if it may not write into its folder", async () => {
  const folder = join(root, "of-another-user");
  mkdirSync(folder);
  await asNobody([root], async () => {
    chmodSync(folder, 0o555);
    await expect(make({ target: join(folder, "backup") })).rejects.toThrow("as the user of the server");
  });
});

/** Runs `work` without the rights of root, who may write anywhere; `paths` and all below them belong to that user then. */
async function asNobody(paths: string[], work: () => Promise<void>): Promise<void> {
  if (process.getuid?.() !== 0) return work();
  await Bun.$`chown -R 65534:65534 ${paths}`;
  process.seteuid?.(65534);
  try {
    await work();
  } finally {
    process.seteuid?.(0);
  }
}

test("reports a data directory without a database, and a missing target folder", async () => {
  await expect(make({ dataDir: join(root, "nothing") })).rejects.toThrow(/There is no database .*--data-dir/);
  await expect(make({ target: join(root, "not", "there") })).rejects.toThrow("make it first");
});
