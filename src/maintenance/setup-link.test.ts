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

describe("the link", () => {
  test("the link is at the server's public address, works once for 24 hours, and is alone on standard output", async () => {
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

  test("the link ends those made before", async () => {
    const before = (await run()).stdout;
    expect(await linkOf((await run()).stdout)).toBeDefined();
    expect(await linkOf(before)).toBeUndefined();
  });

  test("the link is in the audit log as the operator's doing, without its token", async () => {
    const { stdout } = await run();
    const [event, ...others] = await events();
    expect([event?.actor, others]).toEqual([{ type: "operator" }, []]);
    expect(JSON.stringify(event)).not.toContain(printedLink.exec(stdout)?.[1] ?? "no link");
  });

  test("the link is at another address where one is named", async () => {
    const { stdout } = await run(["--quiet", "--base-url", "http://127.0.0.1:7545/v1/"]);
    expect(stdout).toStartWith("http://127.0.0.1:7545/setup/");
  });

  test("takes its address from HEADRACE_PUBLIC_URL at a replica that has no credentials.json", async () => {
    unlinkSync(join(dataDir, "credentials.json"));
    const { stdout } = await run(["--quiet"], dataDir, { HEADRACE_PUBLIC_URL: "https://public.example.com/" });
    expect(stdout).toStartWith("https://public.example.com/setup/");
  });

  test("the link is all that is printed with --quiet, and an object with --json", async () => {
    expect(await run(["--quiet"])).toMatchObject({ stderr: "", stdout: expect.stringMatching(printedLink) });
    const { stdout, stderr } = await run(["--json"]);
    expect([JSON.parse(stdout), stderr]).toEqual([
      { url: expect.stringContaining("https://ai.example.com/setup/"), expires_at: nowSeconds + 86_400 },
      "",
    ]);
  });
});

describe("there is none", () => {
  test("there is no link where nobody knows the server's address", async () => {
    unlinkSync(join(dataDir, "credentials.json"));
    const { code, stdout, stderr } = await run();
    expect([code, stdout, await events()]).toEqual([1, "", []]);
    expect(stderr).toContain("Name it with HEADRACE_PUBLIC_URL or --base-url https://ai.example.com/v1");
  });

  test.each(["ftp://ai.example.com", "https://ada:pw@ai.example.com/v1", "ai.example.com"])(
    "there is no link at %s",
    async (address) => {
      const { code, stdout, stderr } = await run(["--base-url", address]);
      expect([code, stdout]).toEqual([2, ""]);
      expect(stderr).toContain("--base-url must be an http or https address");
    },
  );

  test("there is no link where no server ever ran, and the directory is left as it was", async () => {
    const empty = mkdtempSync(join(tmpdir(), "headrace-setup-empty-"));
    const { code, stderr } = await run([], empty);
    expect([code, readdirSync(empty)]).toEqual([1, []]);
    expect(stderr).toContain("start the server once with `headrace serve`");
    rmSync(empty, { recursive: true });
  });
});
