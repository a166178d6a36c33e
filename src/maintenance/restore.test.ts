// `headrace restore`: all of a backup or nothing, nothing deleted, never under a server or a wrong secret, loud about what revives.
import { afterEach, beforeEach, expect, test } from "bun:test";
import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { runCommand } from "../../tests/fixtures/command-line.ts";
import { bookedUsage } from "../../tests/support/booked-usage.ts";
import { type FilledDirectory, filledDirectory } from "../../tests/support/data-directory.ts";
import { startHeadrace } from "../../tests/support/headrace.ts";
import { beginRestore, finishRestore } from "../storage/backup/restore-steps.ts";
import { lockDataDirectory } from "../storage/files/data-directory-lock.ts";
import { openDatabase } from "../storage/sql/database.ts";
import { knownSteps } from "../storage/sql/schema.ts";
import { makeBackup } from "./backup.ts";
import { restoreBackup } from "./restore.ts";

let filled: FilledDirectory;
let dataDir: string;
let root: string;
let backup: string;
const nowSeconds = 1_795_257_219;

beforeEach(async () => {
  filled = await filledDirectory();
  ({ dataDir, root } = filled);
  backup = join(root, "backup");
  await filled.settle("req_before");
  await makeBackup({ dataDir, target: backup, kind: "backup", version: "1.2.3", nowSeconds });
  await filled.db`INSERT INTO tiers (name, environments) VALUES ('since', 'live')`;
  await filled.leave();
});

afterEach(() => filled[Symbol.asyncDispose]());

const restore = (args: string[] = [], env: Record<string, string> = {}) =>
  runCommand(["restore", backup, "--data-dir", dataDir, ...args], { env, nowMs: nowSeconds * 1000 });
const replaced = () => readdirSync(dataDir).filter((name) => name.startsWith("replaced-"));

async function tiersIn(directory: string): Promise<string[]> {
  const db = await openDatabase(join(directory, "headrace.db"));
  const rows: { name: string }[] = await db`SELECT name FROM tiers`;
  await db.close();
  return rows.map(({ name }) => name);
}

/** Everything in the data directory but locks and what SQLite makes to read. */
function content(): Record<string, string> {
  const names = readdirSync(dataDir, { recursive: true, encoding: "utf8", withFileTypes: true });
  const files = names.filter((entry) => entry.isFile() && !/-(shm|wal)$|^\.?server\.lock/.test(entry.name));
  return Object.fromEntries(
    files.map((entry) => {
      const path = join(entry.parentPath, entry.name);
      return [path, Bun.hash(readFileSync(path)).toString()];
    }),
  );
}

function changeManifest(change: (manifest: Record<string, unknown>) => void): void {
  const file = join(backup, "manifest.json");
  const manifest = JSON.parse(readFileSync(file, "utf8"));
  change(manifest);
  writeFileSync(file, JSON.stringify(manifest));
}

// hardening: O3
test("restores the backup with the spool's usage, and moves the present data aside", async () => {
  const outcome = await restore(["--replace"]);
  expect(outcome).toMatchObject({ code: 0, stdout: `Restored into ${dataDir}.\n` });
  expect(outcome.stderr).toContain("made by Headrace 1.2.3");
  expect(await tiersIn(dataDir)).toEqual([]);
  const [aside = ""] = replaced();
  expect(await tiersIn(join(dataDir, aside))).toEqual(["since"]);
  expect(readdirSync(join(dataDir, aside, "spool"))).toEqual(["00000001.spool"]);
  await using server = await startHeadrace({ dataDir });
  expect(bookedUsage(dataDir)).toMatchObject([{ request_id: "req_before", completion_tokens: 5 }]);
  expect(server.logged("ledger_recovered")).toMatchObject([{ settled: 1, interrupted: 0 }]);
});

test("restores into a missing directory without --replace, and asks for the secret", async () => {
  const fresh = join(root, "fresh");
  const { code, stderr } = await runCommand(["restore", backup, "--data-dir", fresh]);
  expect(code).toBe(0);
  expect(stderr).toContain("put the file `secret` into the data directory");
  expect(readdirSync(fresh).sort()).toEqual([".server.lock", "headrace.db", "server.lock", "spool"]);
  for (const name of readdirSync(fresh)) expect(statSync(join(fresh, name)).mode & 0o077).toBe(0);
  cpSync(join(dataDir, "secret"), join(fresh, "secret"));
  await using server = await startHeadrace({ dataDir: fresh });
  expect((await fetch(`${server.url}/readyz`)).status).toBe(200);
});

test("keeps present data without --replace", async () => {
  const before = content();
  expect(await restore()).toMatchObject({ code: 1, stderr: expect.stringContaining("--replace") });
  expect(content()).toEqual(before);
});

// hardening: O3
test("refuses a restore while a server uses the directory", async () => {
  const release = lockDataDirectory(dataDir);
  const before = content();
  expect(await restore(["--replace"])).toMatchObject({ code: 1, stderr: expect.stringContaining("stop it first") });
  release();
  expect(content()).toEqual(before);
});

// hardening: O3
test.each([
  ["a changed byte", () => writeFileSync(join(backup, "spool/00000001.spool"), "x")],
  ["a missing part", () => rmSync(join(backup, "headrace.db"))],
  [
    "a pipe in place of a part",
    () => {
      rmSync(join(backup, "headrace.db"));
      expect(Bun.spawnSync(["mkfifo", join(backup, "headrace.db")]).exitCode).toBe(0);
    },
  ],
  ["a part that would fill the disk", () => truncateSync(join(backup, "headrace.db"), 2 ** 40)],
  [
    "a wrong checksum",
    () => changeManifest(({ parts }) => Object.assign((parts as object[])[0] ?? {}, { sha256: "0".repeat(64) })),
  ],
])("restores nothing from a backup with %s", async (_what, damage) => {
  damage();
  const before = content();
  expect(await restore(["--replace"])).toMatchObject({
    code: 1,
    stderr: expect.stringContaining("nothing was restored"),
  });
  expect(content()).toEqual(before);
});

// hardening: O3
test.each([
  ["has another format", { format_version: 2 }, "restore it with Headrace 1.2.3 or later"],
  ["names a file elsewhere", { parts: [{ name: "../x", bytes: 1, sha256: "0".repeat(64) }] }, "is damaged"],
  ["is no manifest", { format: "tar" }, "is damaged"],
])("refuses a backup that %s, with a remedy", async (_what, change, said) => {
  changeManifest((manifest) => Object.assign(manifest, change));
  const before = content();
  expect(await restore(["--replace"])).toMatchObject({ code: 1, stderr: expect.stringContaining(said) });
  expect(content()).toEqual(before);
});

/** A backup of a database whose steps were changed so. */
async function backUpAfter(change: string): Promise<void> {
  await filled[Symbol.asyncDispose]();
  filled = await filledDirectory();
  ({ dataDir, root } = filled);
  backup = join(root, "backup");
  await filled.db.unsafe(change);
  await makeBackup({ dataDir, target: backup, kind: "backup", version: "1.2.3", nowSeconds });
}

const newerStep = (worksFrom: number) =>
  `INSERT INTO schema_migrations (version, applied_at, works_from) VALUES (${knownSteps + 1}, 0, ${worksFrom})`;

// hardening: O3
test.each([
  [
    "another build's schema",
    "UPDATE schema_migrations SET checksum = 'x' WHERE version = 3",
    "Step 3 of the database's schema",
  ],
  ["a newer schema", newerStep(knownSteps + 1), "restore it with Headrace 1.2.3 or later"],
])("refuses a backup of %s, with a remedy", async (_what, change, said) => {
  await backUpAfter(change);
  const before = content();
  expect(await restore(["--replace"])).toMatchObject({ code: 1, stderr: expect.stringContaining(said) });
  expect(content()).toEqual(before);
});

test("restores a backup of a newer compatible schema", async () => {
  await backUpAfter(newerStep(knownSteps));
  expect(await restore(["--replace"])).toMatchObject({ code: 0 });
});

// hardening: O3
test("restores nothing under another secret, from the variable or the file", async () => {
  const before = content();
  const byVariable = await restore(["--replace"], { HEADRACE_SECRET: "ab".repeat(32) });
  expect(byVariable).toMatchObject({ code: 1, stderr: expect.stringContaining("HEADRACE_SECRET is not the secret") });
  expect(content()).toEqual(before);
  writeFileSync(join(dataDir, "secret"), `${"cd".repeat(32)}\n`);
  const byFile = await restore(["--replace"]);
  expect(byFile.code).toBe(1);
  expect(byFile.stderr).toContain("is not the secret under which");
  expect(byFile.stderr).not.toContain("cdcd");
  expect(replaced()).toEqual([]);
});

test("restores the backup's secret, and moves the present one aside", async () => {
  const right = readFileSync(join(dataDir, "secret"), "utf8");
  const withSecret = join(root, "with-secret");
  await runCommand(["backup", withSecret, "--include-secret", "--data-dir", dataDir]);
  writeFileSync(join(dataDir, "secret"), `${"cd".repeat(32)}\n`);
  const { code } = await runCommand(["restore", withSecret, "--data-dir", dataDir, "--replace"]);
  expect(code).toBe(0);
  expect(readFileSync(join(dataDir, "secret"), "utf8")).toBe(right);
  expect(readFileSync(join(dataDir, replaced()[0] ?? "", "secret"), "utf8")).toStartWith("cdcd");
});

test("warns that a server on a restored copy continues the work of the server that still runs", async () => {
  const { code, stderr } = await restore(["--replace"]);
  expect(code).toBe(0);
  expect(stderr).toMatch(/continues .* notifications, batches, background responses and connections to MCP servers/);
  expect(stderr).toContain("do not start it");
});

// hardening: O3
test("names each revoked credential that a restore makes valid again", async () => {
  const db = await openDatabase(join(dataDir, "headrace.db"));
  const key = (id: string, revoked: number) => ({
    ...{
      id,
      account_id: filled.accountId,
      name: `Key ${id}`,
      environment: "live",
      digest: id,
      prefix: "sk_",
      last4: "abcd",
    },
    ...{ scopes: "chat:write", created_at: 1, limit_id: id, revoked, revoked_at: revoked ? nowSeconds : null },
    suspended_by: null,
  });
  await db`INSERT INTO api_keys ${db([key("key_ended", 0), key("key_before", 1), key("key_goes_on", 0), key("key_held", 0)])}`;
  await db.close();
  rmSync(backup, { recursive: true });
  await makeBackup({ dataDir, target: backup, kind: "backup", version: "1.2.3", nowSeconds });
  const since = await openDatabase(join(dataDir, "headrace.db"));
  await since`UPDATE api_keys SET revoked = 1, revoked_at = ${nowSeconds} WHERE id = 'key_ended'`;
  await since`UPDATE api_keys SET suspended_by = 'operator' WHERE id = 'key_held'`;
  await since`UPDATE accounts SET status = 'suspended' WHERE id = ${filled.accountId}`;
  await since.close();
  const { code, stderr } = await restore(["--replace"]);
  expect(code).toBe(0);
  expect(stderr).toContain("VALID AGAIN");
  expect(stderr).toMatch(/ {2}key_held {2}key {2}Key key_held {2}suspended/);
  expect(stderr).toMatch(new RegExp(`  ${filled.accountId}  account  .+  suspended`));
  expect(stderr).toMatch(/ {2}key_ended {2}key {2}Key key_ended {2}revoked/);
  expect(stderr).not.toMatch(/key_before|key_goes_on/);
  // A second restore goes back, with JSON as its output: nothing was revoked in between.
  const [aside = ""] = replaced();
  expect(await tiersIn(join(dataDir, aside))).toEqual(["since"]);
  const again = JSON.parse((await restore(["--replace", "--json"])).stdout);
  expect(again).toMatchObject({ valid_again: [], secret: "right", data_dir: dataDir, manifest: { headrace: "1.2.3" } });
});

test("reports that revived credentials are unknown after a restore over a damaged database", async () => {
  writeFileSync(join(dataDir, "headrace.db"), "not a database at all".repeat(1000));
  rmSync(join(dataDir, "headrace.db-wal"), { force: true });
  const { code, stderr } = await restore(["--replace"]);
  expect(code).toBe(0);
  expect(stderr).toContain("It is unknown which ones");
  expect(await tiersIn(dataDir)).toEqual([]);
});

test("points to pg_restore for a restore with PostgreSQL", async () => {
  const { code, stderr } = await restore([], { HEADRACE_DATABASE_URL: "postgres://u:p@127.0.0.1:1/x" });
  expect({ code, stderr }).toMatchObject({ code: 1, stderr: expect.stringContaining("pg_restore") });
});

test("starts a restore over after one that died during its copy", async () => {
  const draft = join(dataDir, "restore-draft");
  mkdirSync(draft);
  writeFileSync(join(draft, "left"), "");
  expect(await restore(["--replace"])).toMatchObject({ code: 0 });
  expect(await tiersIn(dataDir)).toEqual([]);
  expect(existsSync(join(dataDir, "left"))).toBe(false);
});

test("changes nothing if a restore is aborted before the exchange", async () => {
  const before = content();
  const controller = new AbortController();
  const restoring = restoreBackup({
    ...{ backup, dataDir, replace: true, secrets: undefined, nowSeconds, signal: controller.signal },
    onProgress: () => controller.abort(new Error("interrupted")),
  });
  await expect(restoring).rejects.toThrow("interrupted");
  expect(content()).toEqual(before);
});

// hardening: O3
test("completes a restore at the next start that was cut off during the exchange, with all old data", async () => {
  // Each step is one rename: a cut after the n-th is a directory in which the first n are done.
  const old = ["headrace.db-wal", "headrace.db-shm", "spool", "headrace.db"];
  const steps: [string, string][] = [
    ["headrace.db-wal", "replaced-x/headrace.db-wal"],
    ["headrace.db-shm", "replaced-x/headrace.db-shm"],
    ["spool", "replaced-x/spool"],
    ["restoring/spool", "spool"],
    ["headrace.db", "replaced-x/headrace.db"],
    ["restoring/headrace.db", "headrace.db"],
  ];
  for (let done = 0; done <= steps.length; done++) {
    const cut = join(root, `cut-${done}`);
    mkdirSync(join(cut, "draft"), { recursive: true });
    for (const name of old) {
      if (name === "spool") for (const at of ["spool", "draft/spool"]) mkdirSync(join(cut, at));
      else writeFileSync(join(cut, name), `old ${name}`);
    }
    writeFileSync(join(cut, "spool", "1"), "old spool");
    writeFileSync(join(cut, "draft", "headrace.db"), "new");
    await beginRestore(cut, join(cut, "draft"), "replaced-x");
    mkdirSync(join(cut, "replaced-x"));
    for (const [from, to] of steps.slice(0, done)) renameSync(join(cut, from), join(cut, to));
    expect(await finishRestore(cut)).toBe(join(cut, "replaced-x"));
    expect(readdirSync(cut).sort()).toEqual(["headrace.db", "replaced-x", "spool"]);
    expect(readFileSync(join(cut, "headrace.db"), "utf8")).toBe("new");
    expect(readdirSync(join(cut, "spool"))).toEqual([]);
    for (const name of old.filter((one) => one !== "spool")) {
      expect(readFileSync(join(cut, "replaced-x", name), "utf8")).toBe(`old ${name}`);
    }
    expect(readFileSync(join(cut, "replaced-x", "spool", "1"), "utf8")).toBe("old spool");
    expect(await finishRestore(cut)).toBeUndefined();
  }
});

test("starts as usual after a restore that was cut off during its final cleanup", async () => {
  mkdirSync(join(dataDir, "restoring"));
  expect(await finishRestore(dataDir)).toBeUndefined();
  expect(existsSync(join(dataDir, "restoring"))).toBe(false);
});

test("completes a cut-off restore at the server's start, and logs that", async () => {
  const draft = join(dataDir, "restore-draft");
  cpSync(backup, draft, { recursive: true });
  await beginRestore(dataDir, draft, "replaced-x");
  await using server = await startHeadrace({ dataDir });
  expect(server.logged("restore_finished")).toMatchObject([{ replaced: join(dataDir, "replaced-x") }]);
  expect(existsSync(join(dataDir, "restoring"))).toBe(false);
  expect(await tiersIn(dataDir)).toEqual([]);
});
