// `headrace setup-link` over the data directory of a server that is not running.
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { mkdtempSync, readdirSync, rmSync, unlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { runCommand } from "../../tests/fixtures/command-line.ts";
import { linkDigest } from "../accounts/link-token.ts";
import { writeCredentials } from "../storage/files/credentials-file.ts";
import { type Database, openDatabase } from "../storage/sql/database.ts";
import { SqlAuditLog } from "../storage/tables/audit-log.ts";
import { SqlPersonStore } from "../storage/tables/people/person-store.ts";

const nowMs = 1_800_000_000_000;
const nowSeconds = nowMs / 1000;
const printedLink = /^https:\/\/ai\.example\.com\/setup\/([\w-]{43})\n$/;

let dataDir: string;
let db: Database;

beforeEach(async () => {
  dataDir = mkdtempSync(join(tmpdir(), "headrace-setup-"));
  db = await openDatabase(join(dataDir, "headrace.db"));
  writeCredentials(dataDir, { base_url: "https://ai.example.com/v1", api_key: "sk_live_hr_x" });
});

afterEach(async () => {
  await db.close();
  rmSync(dataDir, { recursive: true, force: true });
});

const run = (args: string[] = [], directory = dataDir, env: Record<string, string> = {}) =>
  runCommand(["setup-link", "--data-dir", directory, ...args], { nowMs, env });
const linkOf = (stdout: string) => {
  const [, token = ""] = /\/setup\/(.*)\n/.exec(stdout) ?? [];
  return new SqlPersonStore(db).findLink(linkDigest(token) ?? "");
};
const events = () => new SqlAuditLog(db).list({ action: "setup_link.created" }, { after: undefined, limit: 10 });

describe("the setup link of the command", () => {
  test("prints a link at the server's public address, alone, valid once for 24 hours", async () => {
    const { code, stdout, stderr } = await run();
    expect(code).toBe(0);
    expect(stdout).toMatch(printedLink);
    expect(stderr).toContain("It works once, until ");
    expect(stderr).not.toContain("/setup/");
    expect(await linkOf(stdout)).toMatchObject({
      purpose: "setup",
      createdAt: nowSeconds,
      expiresAt: nowSeconds + 86_400,
      usedAt: null,
      createdBy: null,
    });
  });

  test("ends earlier setup links", async () => {
    const before = (await run()).stdout;
    expect(await linkOf((await run()).stdout)).toBeDefined();
    expect(await linkOf(before)).toBeUndefined();
  });

  test("audits the setup link as the operator's action, without its token", async () => {
    const { stdout } = await run();
    const [event, ...others] = await events();
    expect([event?.actor, others]).toEqual([{ type: "operator" }, []]);
    expect(JSON.stringify(event)).not.toContain(printedLink.exec(stdout)?.[1] ?? "no link");
  });

  test("prints the link at a given address", async () => {
    const { stdout } = await run(["--quiet", "--base-url", "http://127.0.0.1:7545/v1/"]);
    expect(stdout).toStartWith("http://127.0.0.1:7545/setup/");
  });

  test("uses HEADRACE_PUBLIC_URL at a replica without credentials.json", async () => {
    unlinkSync(join(dataDir, "credentials.json"));
    const { stdout } = await run(["--quiet"], dataDir, { HEADRACE_PUBLIC_URL: "https://public.example.com/" });
    expect(stdout).toStartWith("https://public.example.com/setup/");
  });

  test("prints only the link with --quiet, and an object with --json", async () => {
    expect(await run(["--quiet"])).toMatchObject({ stderr: "", stdout: expect.stringMatching(printedLink) });
    const { stdout, stderr } = await run(["--json"]);
    expect([JSON.parse(stdout), stderr]).toEqual([
      { url: expect.stringContaining("https://ai.example.com/setup/"), expires_at: nowSeconds + 86_400 },
      "",
    ]);
  });
});

describe("refusals of the setup link", () => {
  test("creates no link without the server's address, and tells how to name it", async () => {
    unlinkSync(join(dataDir, "credentials.json"));
    const { code, stdout, stderr } = await run();
    expect([code, stdout, await events()]).toEqual([1, "", []]);
    expect(stderr).toContain("Name it with HEADRACE_PUBLIC_URL or --base-url https://ai.example.com/v1");
  });

  test.each(["ftp://ai.example.com", "https://ada:pw@ai.example.com/v1", "ai.example.com"])(
    "creates no link at %s",
    async (address) => {
      const { code, stdout, stderr } = await run(["--base-url", address]);
      expect([code, stdout]).toEqual([2, ""]);
      expect(stderr).toContain("--base-url must be an http or https address");
    },
  );

  test("creates no link before any server ran, and leaves the directory unchanged", async () => {
    const empty = mkdtempSync(join(tmpdir(), "headrace-setup-empty-"));
    const { code, stderr } = await run([], empty);
    expect([code, readdirSync(empty)]).toEqual([1, []]);
    expect(stderr).toContain("start the server once with `headrace serve`");
    rmSync(empty, { recursive: true });
  });
});
