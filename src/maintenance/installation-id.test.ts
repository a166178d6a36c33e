import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openDatabase } from "../storage/sql/database.ts";
import { claimInstallation, requireDatabaseFile } from "./installation-id.ts";

let dataDir: string;
const database = () => join(dataDir, "headrace.db");
const use = () => writeFileSync(join(dataDir, "credentials.json"), "{}");

beforeEach(() => {
  dataDir = mkdtempSync(join(tmpdir(), "headrace-installation-"));
});

afterEach(() => rmSync(dataDir, { recursive: true, force: true }));

describe("the SQLite database file", () => {
  test("requires the database of a used directory, and creates none", () => {
    requireDatabaseFile(dataDir);
    use();
    expect(() => requireDatabaseFile(dataDir)).toThrow("is missing or empty");
    expect(existsSync(database())).toBe(false);
    writeFileSync(database(), "");
    expect(() => requireDatabaseFile(dataDir)).toThrow("is missing or empty");
    writeFileSync(database(), "SQLite");
    requireDatabaseFile(dataDir);
  });
});

describe("the id of the installation", () => {
  test("refuses an empty database beside a used directory", async () => {
    const db = await openDatabase(database());
    use();
    await expect(claimInstallation(db, dataDir)).rejects.toThrow("The database has no accounts");
    await db.close();
  });

  test("gives an id to a database with accounts that has none, and keeps the id", async () => {
    const db = await openDatabase(database());
    await db`INSERT INTO accounts ${db({ id: "acct_1", name: "One", tier: "free", created_at: 1 })}`;
    use();
    const id = await claimInstallation(db, dataDir);
    expect(id).toStartWith("inst_");
    expect(await claimInstallation(db, dataDir)).toBe(id);
    await db.close();
  });
});
