// `headrace operator-key` over the data directory of a server that is not running.
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { mkdtempSync, readdirSync, rmSync, unlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { runCommand } from "../../tests/fixtures/command-line.ts";
import { generateApiKey } from "../domain/api-key.ts";
import { scopes } from "../domain/scope.ts";
import { keyDigest } from "../policy/credentials/key-digest.ts";
import { SigningKeys } from "../policy/credentials/signing-keys.ts";
import { auditEvent } from "../policy/records/audit.ts";
import { writeCredentials } from "../storage/files/credentials-file.ts";
import { deriveKey, loadSecret } from "../storage/files/secret-file.ts";
import { type Database, openDatabase } from "../storage/sql/database.ts";
import { SqlAccountStore } from "../storage/tables/account-store.ts";
import { SqlAuditLog } from "../storage/tables/audit-log.ts";
import { SqlKeyStore } from "../storage/tables/key-store.ts";
import { SqlSigningKeyStore } from "../storage/tables/signing-key-store.ts";

const nowMs = 1_800_000_000_000;
const nowSeconds = nowMs / 1000;
const printedKey = /^sk_(live|test|dev)_hr_[0-9A-Za-z]{36}\n$/;

let dataDir: string;
let db: Database;
let firstAccount: string;

/** A data directory as a server leaves it. */
beforeEach(async () => {
  dataDir = mkdtempSync(join(tmpdir(), "headrace-operator-"));
  db = await openDatabase(join(dataDir, "headrace.db"));
  firstAccount = await new SqlAccountStore(db).ensureFirstAccount(nowSeconds);
  await seal(loadSecret(dataDir, undefined));
});

afterEach(async () => {
  await db.close();
  rmSync(dataDir, { recursive: true, force: true });
});

async function seal(secret: Uint8Array): Promise<void> {
  const signingKeys = new SigningKeys({
    store: new SqlSigningKeyStore(db),
    sealingKey: deriveKey(secret, "signing-key-seal-v1"),
    clock: { nowSeconds: () => nowSeconds, monotonicMs: () => 0 },
    log: { info() {}, warn() {}, error() {} },
  });
  await signingKeys.start();
  signingKeys.close();
}

const run = (args: string[] = [], env: Record<string, string> = {}, directory = dataDir) =>
  runCommand(["operator-key", "--data-dir", directory, ...args], { env, nowMs });

async function recordOf(key: string, secret = loadSecret(dataDir, undefined)) {
  const digest = keyDigest(key, deriveKey(secret, "api-key-pepper-v1"));
  const chain = await new SqlKeyStore(db).findChainByDigest(digest);
  return chain?.keys[0];
}

const createdEvents = () => new SqlAuditLog(db).list({ action: "key.created" }, { after: undefined, limit: 100 });

describe("the operator's key", () => {
  test("creates a key with every scope and no bound for the first account, alone on standard output", async () => {
    const { code, stdout, stderr } = await run();
    expect(code).toBe(0);
    expect(stdout).toMatch(printedKey);
    expect(stderr).not.toContain(stdout.trim());
    expect(stderr).toContain("live");
    const record = await recordOf(stdout.trim());
    expect(record).toMatchObject({
      accountId: firstAccount,
      name: "Operator",
      environment: "live",
      createdBy: null,
      parentId: null,
      expiresAt: null,
      createdAt: nowSeconds,
    });
    expect(new Set(record?.scopes)).toEqual(new Set(scopes));
  });

  test("audits the operator's key without its secret, and clears no cache", async () => {
    const before = await new SqlKeyStore(db).credentialRevision();
    const key = (await run(["--name", "Deploy", "--quiet"])).stdout.trim();
    expect(await new SqlKeyStore(db).credentialRevision()).toBe(before);
    const events = await createdEvents();
    expect(events).toMatchObject([
      { actor: { type: "operator" }, accountId: firstAccount, targetId: (await recordOf(key))?.id },
    ]);
    expect(events[0]?.detail).toMatchObject({ name: "Deploy", scopes: [...scopes] });
    expect(JSON.stringify(events)).not.toContain(key.slice(11, 30));
  });

  test("creates a key with the requested name, environment and expiry", async () => {
    const { stdout } = await run(["--name", "Deploy", "--environment", "test", "--expires", "30d", "--json"]);
    const { key, ...record } = JSON.parse(stdout);
    expect(record).toMatchObject({ object: "api_key", name: "Deploy", environment: "test", status: "active" });
    expect(record.expires_at).toBe(nowSeconds + 30 * 86_400);
    expect(await recordOf(key)).toMatchObject({ id: record.id, environment: "test" });
  });

  test("creates a key of the environment in which the server ran last", async () => {
    writeCredentials(dataDir, { base_url: "http://127.0.0.1:1/v1", api_key: generateApiKey("dev") });
    expect((await run(["--quiet"])).stdout).toStartWith("sk_dev_");
    expect((await run(["--quiet", "--environment", "live"])).stdout).toStartWith("sk_live_");
  });

  test("creates a key of an active account, even if the first is suspended", async () => {
    const accounts = new SqlAccountStore(db);
    const origin = { nowSeconds, clientAddress: null, requestId: null };
    const event = () =>
      auditEvent("account.updated", { type: "system" }, origin, { accountId: null, targetId: null, detail: {} });
    await accounts.updateAccount(firstAccount, { status: "suspended" }, event());
    const none = await run();
    expect(none).toMatchObject({ code: 1, stdout: "" });
    expect(none.stderr).toContain("There is no active account");
    const second = { ...(await accounts.findAccount(firstAccount)), id: "acct_z", status: "active" };
    await accounts.insertAccount(second as Parameters<typeof accounts.insertAccount>[0], event());
    expect((await recordOf((await run()).stdout.trim()))?.accountId).toBe("acct_z");
  });
});

describe("the operator's key with --quiet", () => {
  test("prints only the key with --quiet", async () => {
    const { stdout, stderr } = await run(["--quiet"]);
    expect(stdout).toMatch(printedKey);
    expect(stderr).toBe("");
  });
});

describe("the secret of the operator's key", () => {
  const configured = "ab".repeat(32);

  test("uses HEADRACE_SECRET like the server, and creates no file", async () => {
    const bytes = Buffer.from(configured, "hex");
    await db`DELETE FROM signing_keys`;
    await seal(bytes);
    unlinkSync(join(dataDir, "secret"));
    const key = (await run(["--quiet"], { HEADRACE_SECRET: configured })).stdout.trim();
    expect(await recordOf(key, bytes)).toBeDefined();
    const without = await run();
    expect(without).toMatchObject({ code: 1, stdout: "" });
    expect(without.stderr).toContain("set HEADRACE_SECRET");
    expect(readdirSync(dataDir)).not.toContain("secret");
  });

  test("creates no key under another secret than the server's", async () => {
    const { code, stdout, stderr } = await run([], { HEADRACE_SECRET: configured });
    expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
    expect(stderr).toContain("not the one that the server uses");
    expect(stderr).not.toContain(configured);
    expect(await createdEvents()).toEqual([]);
  });

  test("refuses an invalid secret as a usage error", async () => {
    const { code, stderr } = await run([], { HEADRACE_SECRET: "too short" });
    expect(code).toBe(2);
    expect(stderr).toContain("HEADRACE_SECRET: must be 32 bytes");
  });
});

describe("the database of the operator's key", () => {
  test("creates no database, and tells to start the server once", async () => {
    const empty = mkdtempSync(join(tmpdir(), "headrace-operator-empty-"));
    const { code, stderr } = await run([], {}, empty);
    expect(code).toBe(1);
    expect(stderr).toContain("start the server once with `headrace serve`");
    expect(readdirSync(empty)).toEqual([]);
    rmSync(empty, { recursive: true });
  });

  test.each([
    ["older", "DELETE FROM schema_migrations WHERE version > 1", "start the server again with this Headrace"],
    ["newer", "INSERT INTO schema_migrations (version, applied_at) VALUES (999, 0)", "use the newer Headrace"],
  ])("refuses the database of an %s version, and names the right Headrace", async (_which, change, message) => {
    await db.unsafe(change);
    const { code, stderr } = await run();
    expect(code).toBe(1);
    expect(stderr).toContain(message);
    expect(await createdEvents()).toEqual([]);
  });
});

test.each([
  [["--expires", "99999999w"], "--expires: must be at most 100 years from now"],
  [["--expires", "2001-01-01T00:00:00Z"], "expires_at: must be in the future"],
  [["--environment", "prod"], "Allowed choices are live, test, dev"],
  [["--name", "x".repeat(101)], "1 to 100 characters"],
  [["--name", "a\u202Eb"], "printable characters"],
])("refuses the option %j and tells what is allowed", async (args, message) => {
  const { code, stdout, stderr } = await run(args);
  expect(code).toBeGreaterThan(0);
  expect(stdout).toBe("");
  expect(stderr).toContain(message);
});
