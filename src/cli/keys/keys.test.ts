// Tests `headrace keys` with a server that answers in the form of the API.
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type ApiServer, fakeKey, now, refusal, startApiServer } from "../../../tests/fixtures/api-server.ts";
import { type CommandOutcome, type CommandSurroundings, runCommand } from "../../../tests/fixtures/command-line.ts";
import { generateApiKey } from "../../domain/api-key.ts";

let api: ApiServer;
let dataDir: string;

beforeEach(async () => {
  api = startApiServer();
  dataDir = await mkdtemp(join(tmpdir(), "headrace-cli-keys-"));
  const credentials = { base_url: api.baseUrl, api_key: api.key };
  await writeFile(join(dataDir, "credentials.json"), JSON.stringify(credentials), { mode: 0o600 });
});

afterEach(async () => {
  await api.stop();
  await rm(dataDir, { recursive: true, force: true });
});

function keys(args: string[], surroundings: CommandSurroundings = {}): Promise<CommandOutcome> {
  return runCommand(["keys", ...args, "--data-dir", dataDir], { nowMs: now * 1000, ...surroundings });
}

const sent = (method: string) => api.seen.filter((request) => request.method === method);
const secretPattern = /sk_live_hr_[0-9A-Za-z]{36}/;

describe("headrace keys list", () => {
  beforeEach(() => {
    api.keys = [
      fakeKey({ name: "ci", last4: "AbC1", last_used_at: now - 200, expires_at: now + 29 * 86_400 }),
      fakeKey({ name: "old", last4: "AbC2", status: "revoked", revoked_at: now - 3 * 86_400 }),
      fakeKey({ name: "web\x1b[2J", last4: "AbC3", revoked_at: now + 7200, scopes: ["chat:read"] }),
    ];
  });

  test("lists keys of all pages as a table, and counts the hidden revoked ones", async () => {
    expect(await keys(["list"])).toEqual({
      code: 0,
      stderr: "1 revoked key is not shown; see --all.\n",
      stdout: [
        "NAME    KEY               STATUS  LAST USED  ENDS              SCOPES                  ID",
        "ci      sk_live_hr_…AbC1  active  3 min ago  in 29 days        chat:write,models:read  key_ci",
        "web[2J  sk_live_hr_…AbC3  active  -          in 2 h (rotated)  chat:read               key_web[2J",
        "",
      ].join("\n"),
    });
  });

  test("lists revoked keys with --all", async () => {
    const { stdout, stderr } = await keys(["list", "--all"]);
    expect(stdout).toMatch(/old +sk_live_hr_…AbC2 +revoked +- +3 days ago/);
    expect(stderr).toBe("");
  });

  test("omits ids, then scopes, on a terminal that is too narrow", async () => {
    const header = async (columns: number) =>
      (await keys(["list"], { isTTY: true, columns, env: { NO_COLOR: "1" } })).stdout.split("\n")[0];
    expect(await header(120)).toEndWith("SCOPES                  ID");
    expect(await header(90)).toEndWith("SCOPES");
    expect(await header(50)).toEndWith("ENDS");
  });

  test("prints all keys as the API returns them with --json", async () => {
    const { stdout } = await keys(["list", "--json"]);
    expect(JSON.parse(stdout)).toEqual(api.keys);
  });

  test("prints the API's words about a missing scope", async () => {
    api.answer = () => refusal(403, "insufficient_scope", "API key lacks required scope: keys:manage");
    const { code, stderr } = await keys(["list"]);
    expect([code, stderr]).toEqual([1, `error: ${api.baseUrl}: API key lacks required scope: keys:manage (403)\n`]);
  });

  test("tells the holder of an ordinary key where to get an operator's key", async () => {
    api.answer = () => refusal(403, "insufficient_scope", "API key lacks required scope: admin:manage");
    expect((await keys(["list"])).stderr).toContain("(403). It takes an operator's key: on the server's machine, ");
  });
});

describe("the key named by an argument", () => {
  beforeEach(() => {
    api.keys.push(
      fakeKey({ id: "key_1", name: "ci", last4: "AbC1" }),
      fakeKey({ id: "key_2", name: "web", last4: "AbC2" }),
      fakeKey({ id: "key_3", name: "web", last4: "AbC3" }),
      fakeKey({ id: "key_4", name: "app", last4: "AbC4", status: "revoked", revoked_at: now - 5 }),
      fakeKey({ id: "key_5", name: "app", last4: "AbC5" }),
      fakeKey({ id: "key_6", name: "key_of_mine", last4: "AbC6" }),
    );
  });

  test.each([
    ["key_2", "key_2"],
    ["ci", "key_1"],
    ["AbC3", "key_3"],
    ["app", "key_5"],
    ["AbC4", "key_4"],
    ["key_of_mine", "key_6"],
  ])("resolves the argument %p to the key %p", async (wanted, id) => {
    expect(JSON.parse((await keys(["show", wanted, "--json"])).stdout).id).toBe(id);
  });

  test("lists the ids of several matching keys", async () => {
    const { code, stdout, stderr } = await keys(["show", "web"]);
    expect([code, stdout]).toEqual([1, ""]);
    expect(stderr).toContain("key_2  sk_live_hr_…AbC2  active  web");
    expect(stderr).toContain("key_3  sk_live_hr_…AbC3  active  web");
  });

  test("does not choose between a key's name and another key's last four characters", async () => {
    api.keys.push(fakeKey({ name: "AbC1" }));
    const { code, stderr } = await keys(["revoke", "AbC1", "--yes"]);
    expect(code).toBe(1);
    expect(stderr).toContain("Several keys match");
    expect(sent("DELETE")).toEqual([]);
  });

  test("reports a missing key and names headrace keys list", async () => {
    const { code, stderr } = await keys(["show", "nobody"]);
    expect(code).toBe(1);
    expect(stderr).toContain("No key matches `nobody`");
    expect(stderr).toContain("headrace keys list --all");
  });

  test("reads the key's name or the whole key from standard input for -, and sends no whole key", async () => {
    const secret = generateApiKey("live");
    api.keys.push(fakeKey({ name: "mine", last4: secret.slice(-4) }));
    const { stdout } = await keys(["show", "-", "--json"], { stdin: `${secret}\n` });
    expect(JSON.parse(stdout).name).toBe("mine");
    expect(JSON.stringify(api.seen)).not.toContain(secret);
    expect((await keys(["show", "-"])).code).toBe(2);
    expect((await keys(["show", "-", "--api-key-stdin"], { stdin: "ci" })).code).toBe(2);
  });

  test.each(["show", "revoke", "rotate", "usage", "create"])(
    "refuses a whole key as an argument of keys %s without repeating it",
    async (command) => {
      const secret = generateApiKey("live");
      const { code, stdout, stderr } = await keys([command, secret]);
      expect(code).toBe(2);
      expect(stderr).toContain("consider rotating that key");
      expect(stdout + stderr).not.toContain(secret.slice(11));
      expect(api.seen).toEqual([]);
    },
  );
});

test("shows everything about a key but the secret", async () => {
  api.keys.push(
    fakeKey({
      name: "ci",
      last4: "AbC1",
      created_by: "key_own",
      last_used_at: now - 180,
      expires_at: now + 29 * 86_400,
      allowed_ips: ["10.0.0.0/8", "2001:db8::1"],
      rate_limit: 100,
      rate_limit_window: 60,
      monthly_tokens: 1_000_000,
      monthly_spend: 20,
      models: ["gpt-*", "tiny"],
      never_leaves: true,
      priority: "low",
      response_cache: "on",
      tags: ["env:prod", "team-a"],
      note: "of the\nnight batch",
    }),
  );
  expect((await keys(["show", "ci"])).stdout).toBe(
    [
      "ci  sk_live_hr_…AbC1  active",
      "",
      "  ID              key_ci",
      "  Environment     live",
      "  Scopes          chat:write, models:read",
      "  Created         2026-11-20 15:30 (3 h ago) with key_own",
      "  Last used       2026-11-20 18:27 (3 min ago)",
      "  Expires         2026-12-19 18:30 (in 29 days)",
      "  Note            of the night batch",
      "  Tags            env:prod, team-a",
      "  Response cache  on",
      "  Models          gpt-*, tiny; only where they are marked as local",
      "  Allowed IPs     10.0.0.0/8, 2001:db8::1",
      "  Priority        at most low",
      "  Rate limit      100 requests in 1 min",
      "  Monthly quota   1,000,000 tokens, $20.00",
      "",
    ].join("\n"),
  );
});

describe("headrace keys create", () => {
  test("prints only the new key to standard output, and instructions to standard error", async () => {
    const { code, stdout, stderr } = await keys(["create", "ci"]);
    expect(code).toBe(0);
    expect(stdout).toMatch(/^sk_live_hr_[0-9A-Za-z]{36}\n$/);
    expect(stderr).toContain('Key "ci" is made');
    expect(stderr).toContain("the only time it is shown: store it now");
    expect(stderr).toContain(`export OPENAI_BASE_URL=${api.baseUrl}`);
    expect(stderr).not.toMatch(secretPattern);
    expect(sent("POST").map(({ body }) => body)).toEqual([{ name: "ci" }]);
  });

  test("prints no instructions for a new key with --quiet", async () => {
    const { stdout, stderr } = await keys(["create", "ci", "--quiet"]);
    expect(stdout).toMatch(/^sk_live_hr_[0-9A-Za-z]{36}\n$/);
    expect(stderr).toBe("");
  });

  test("prints the API's answer for a new key with --json", async () => {
    const { stdout, stderr } = await keys(["create", "ci", "--json"]);
    expect(JSON.parse(stdout)).toMatchObject({ name: "ci", key: expect.stringMatching(secretPattern) });
    expect(stderr).toBe("");
  });

  test("sends every setting of a new key under the API's name", async () => {
    const settings = ["--scopes", "chat:write, usage:read", "--expires", "30d", "--allowed-ips", "10.0.0.0/8,::1"];
    const limits = [
      "--rate-limit",
      "100",
      "--rate-limit-window",
      "1h",
      "--monthly-tokens",
      "5000",
      "--monthly-spend",
      "2.50",
      "--quotas",
      "200 requests per 5h, 2.5 usd per week rolling hard for gpt-* tiny,10 tokens per 12h hard, 5 requests per day for gpt-* tagged team-a,1 usd per hour tagged x",
    ];
    const what = [
      "--models",
      "gpt-*, tiny",
      "--never-leaves",
      "yes",
      "--priority",
      "low",
      "--response-cache",
      "on",
      "--tags",
      "env:prod,team-a",
      "--note",
      "of the batch",
    ];
    expect((await keys(["create", "ci", ...settings, ...limits, ...what])).code).toBe(0);
    expect(sent("POST")[0]?.body).toEqual({
      name: "ci",
      scopes: ["chat:write", "usage:read"],
      expires_in: 2_592_000,
      allowed_ips: ["10.0.0.0/8", "::1"],
      rate_limit: 100,
      rate_limit_window: 3600,
      monthly_tokens: 5000,
      monthly_spend: 2.5,
      quotas: [
        { unit: "requests", amount: 200, per: "5h" },
        { unit: "usd", amount: 2.5, per: "week", window: "rolling", models: ["gpt-*", "tiny"], hard_stop: true },
        { unit: "tokens", amount: 10, per: 43_200, hard_stop: true },
        { unit: "requests", amount: 5, per: "day", models: ["gpt-*"], tag: "team-a" },
        { unit: "usd", amount: 1, per: "hour", tag: "x" },
      ],
      models: ["gpt-*", "tiny"],
      never_leaves: true,
      priority: "low",
      response_cache: "on",
      tags: ["env:prod", "team-a"],
      note: "of the batch",
    });
  });

  test.each([
    ["2026-12-31", { expires_at: Date.UTC(2027, 0, 1) / 1000 }],
    ["2026-12-31T18:00", { expires_at: Date.UTC(2026, 11, 31, 18) / 1000 }],
    ["never", {}],
  ])("accepts %p as the expiry of a new key", async (when, expiry) => {
    await keys(["create", "ci", "--expires", when]);
    expect(sent("POST")[0]?.body).toEqual({ name: "ci", ...expiry });
  });

  test.each([
    ["--expires", "soon"],
    ["--expires", "2026-02-30"],
    ["--rate-limit", "0"],
    ["--rate-limit", "1,000"],
    ["--rate-limit-window", "fast"],
    ["--monthly-tokens", "1e6"],
    ["--quotas", "200 requests a day"],
    ["--monthly-spend", "$5"],
    ["--scopes", ","],
    ["--scopes", "chat:wirte"],
    ["--models", ","],
    ["--never-leaves", "maybe"],
    ["--priority", "urgent"],
    ["--response-cache", "maybe"],
  ])("refuses %s %s for a new key before sending anything", async (flag, value) => {
    const { code, stderr } = await keys(["create", "ci", flag, value]);
    expect(code).toBe(2);
    expect(stderr).toContain(flag);
    expect(api.seen).toEqual([]);
  });

  test("prints the API's reason if creating a key fails", async () => {
    api.answer = () => refusal(403, "permission_denied", "scopes: admin:manage is not among your own.");
    const { code, stdout, stderr } = await keys(["create", "ci", "--scopes", "admin:manage"]);
    expect([code, stdout]).toEqual([1, ""]);
    expect(stderr).toContain("admin:manage is not among your own. (403)");
  });
});

describe("headrace keys update", () => {
  beforeEach(() => {
    api.keys.push(fakeKey({ name: "ci", last4: "AbC1" }));
  });

  test("sends only the named changes of a key", async () => {
    const { code, stdout } = await keys(["update", "ci", "--name", "build", "--rate-limit", "5", "--expires", "1h"]);
    expect(code).toBe(0);
    expect(sent("PATCH")).toMatchObject([
      { path: "/keys/key_ci", body: { name: "build", rate_limit: 5, expires_at: now + 3600 } },
    ]);
    expect(stdout).toContain("build  sk_live_hr_…AbC1  active");
    expect(stdout).toContain("5 requests");
  });

  test("clears a setting of a key with none", async () => {
    const none = ["--rate-limit", "--quotas", "--monthly-tokens", "--monthly-spend", "--allowed-ips"].flatMap(
      (flag) => [flag, "none"],
    );
    const what = ["--models", "all", "--never-leaves", "no", "--priority", "tier", "--tags", "none", "--note", ""];
    await keys(["update", "ci", "--expires", "never", ...none, ...what]);
    expect(sent("PATCH")[0]?.body).toEqual({
      expires_at: null,
      rate_limit: null,
      rate_limit_window: null,
      quotas: null,
      monthly_tokens: null,
      monthly_spend: null,
      allowed_ips: [],
      models: null,
      never_leaves: false,
      priority: null,
      tags: [],
      note: "",
    });
  });

  test("refuses an update of a key without changes", async () => {
    const { code, stderr } = await keys(["update", "ci"]);
    expect(code).toBe(2);
    expect(stderr).toContain("Nothing to change");
  });
});

describe("headrace keys revoke", () => {
  beforeEach(() => {
    api.keys.push(fakeKey({ name: "ci", last4: "AbC1" }));
  });

  test("asks before revoking a key, with its name", async () => {
    const { code, stdout, stderr } = await keys(["revoke", "ci"], { isTTY: true, answers: ["y"] });
    expect(code).toBe(0);
    expect(stderr).toContain('Revoke key "ci" (sk_live_hr_…AbC1)?');
    expect(stderr).toContain("This cannot be undone. [y/N]");
    expect(stdout).toBe('Key "ci" (sk_live_hr_…AbC1) is revoked.\n');
    expect(sent("DELETE").map(({ path }) => path)).toEqual(["/keys/key_ci"]);
  });

  test.each([["n"], [""], ["yeah, no"], []])("revokes no key without a clear yes (%p)", async (...answers) => {
    const { code, stderr } = await keys(["revoke", "ci"], { isTTY: true, answers });
    expect(code).toBe(1);
    expect(stderr).toContain("Nothing was changed.");
    expect(sent("DELETE")).toEqual([]);
  });

  test("refuses to revoke a key without a terminal, and names --yes", async () => {
    const { code, stderr } = await keys(["revoke", "ci"]);
    expect(code).toBe(2);
    expect(stderr).toContain("add --yes");
    expect(sent("DELETE")).toEqual([]);
  });

  test("revokes a key without a question with --yes", async () => {
    const { code, stderr } = await keys(["revoke", "AbC1", "--yes"]);
    expect([code, stderr]).toEqual([0, ""]);
    expect(sent("DELETE")).toHaveLength(1);
  });

  test("warns before revoking the key that the command itself uses", async () => {
    const { stderr } = await keys(["revoke", "own"], { isTTY: true, answers: [] });
    expect(stderr).toContain("It is the key that this command itself uses.");
  });

  test("reports an already revoked key without a question", async () => {
    await keys(["revoke", "ci", "--yes"]);
    const { code, stdout } = await keys(["revoke", "ci"]);
    expect([code, stdout]).toEqual([0, 'Key "ci" (sk_live_hr_…AbC1) was revoked already.\n']);
    expect(sent("DELETE")).toHaveLength(1);
  });
});

describe("headrace keys rotate", () => {
  beforeEach(() => {
    api.keys.push(fakeKey({ name: "ci", last4: "AbC1" }));
  });

  test("prints only the new key, and how long the old one remains valid", async () => {
    const { code, stdout, stderr } = await keys(["rotate", "ci", "--overlap", "12h"]);
    expect(code).toBe(0);
    expect(stdout).toMatch(/^sk_live_hr_[0-9A-Za-z]{36}\n$/);
    expect(stderr).toContain("The old key (sk_live_hr_…AbC1) is valid until 2026-11-21 06:30 (in 12 h).");
    expect(sent("POST")).toMatchObject([{ path: "/keys/key_ci/rotate", body: { overlap_seconds: 43_200 } }]);
  });

  test("sends no overlap by default when rotating a key", async () => {
    const { stderr } = await keys(["rotate", "ci"]);
    expect(sent("POST")[0]?.body).toEqual({});
    expect(stderr).toContain("valid until 2026-11-21 18:30 (in 24 h)");
  });

  test("asks before rotating a key without an overlap", async () => {
    expect((await keys(["rotate", "ci", "--overlap", "0"])).code).toBe(2);
    expect((await keys(["rotate", "ci", "--overlap", "0"], { isTTY: true, answers: ["no"] })).code).toBe(1);
    expect(sent("POST")).toEqual([]);
    const { stderr } = await keys(["rotate", "ci", "--overlap", "0", "--yes"]);
    expect(sent("POST")[0]?.body).toEqual({ overlap_seconds: 0 });
    expect(stderr).toContain("is revoked.");
  });

  test("replaces a rotated key in credentials.json, readable by its owner only", async () => {
    const { stdout, stderr } = await keys(["rotate", "own"]);
    const path = join(dataDir, "credentials.json");
    expect(JSON.parse(await readFile(path, "utf8"))).toEqual({ base_url: api.baseUrl, api_key: stdout.trim() });
    expect((await Bun.file(path).stat()).mode & 0o777).toBe(0o600);
    expect(stderr).toContain(`It was the key of ${path}, which has the new one now.`);
  });

  test("tells where to put the new key if the rotated one came from the environment", async () => {
    const before = await readFile(join(dataDir, "credentials.json"), "utf8");
    const env = { HEADRACE_BASE_URL: api.baseUrl, HEADRACE_API_KEY: api.key };
    const { stderr } = await keys(["rotate", "own"], { env });
    expect(stderr).toContain("from HEADRACE_API_KEY: put the new one there");
    expect(await readFile(join(dataDir, "credentials.json"), "utf8")).toBe(before);
  });
});

test("shows help with examples for every command of keys", async () => {
  for (const command of ["list", "show", "create", "update", "rotate", "revoke", "usage"]) {
    const { code, stdout } = await keys([command, "--help"]);
    expect([command, code]).toEqual([command, 0]);
    expect(stdout).toMatch(new RegExp(`Examples:\\n {2}headrace keys ${command}`));
  }
});
