// The command line tool against a real server: the life of a key, what it used, and what the server says of itself.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { join } from "node:path";
import packageJson from "../../package.json" with { type: "json" };
import { type CommandOutcome, type CommandSurroundings, runCommand } from "../fixtures/command-line.ts";
import { startHeadrace, type TestServer } from "../support/headrace.ts";
import { type ScriptedUpstream, startUpstream, upstreamYaml } from "../support/scripted-upstream.ts";

const secret = /^sk_dev_hr_[0-9A-Za-z]{36}\n$/;
let upstream: ScriptedUpstream;
let server: TestServer;

beforeAll(async () => {
  upstream = await startUpstream();
  server = await startHeadrace({
    yaml: upstreamYaml(
      upstream,
      `models:
  - id: upstream-model
    price: { input: 1000, output: 2000 }
    deployments: [{ upstream: up, model: upstream-model }]
`,
    ),
  });
});

afterAll(async () => {
  await server[Symbol.asyncDispose]();
  await upstream[Symbol.asyncDispose]();
});

function headrace(args: string[], surroundings: CommandSurroundings = {}): Promise<CommandOutcome> {
  return runCommand([...args, "--data-dir", server.dataDir], surroundings);
}

async function shown(name: string): Promise<Record<string, unknown>> {
  return JSON.parse((await headrace(["keys", "show", name, "--json"])).stdout);
}

const chatWith = (key: string) =>
  headrace(["chat", "Hi"], { env: { HEADRACE_BASE_URL: server.baseUrl, HEADRACE_API_KEY: key } });

describe("headrace keys", () => {
  test("creates, uses, changes and revokes a key from the command line", async () => {
    const settings = [
      "--expires",
      "30d",
      "--rate-limit",
      "100",
      "--rate-limit-window",
      "1h",
      "--monthly-tokens",
      "5000",
    ];
    const what = ["--models", "upstream-*", "--tags", "team-a,env:prod", "--note", "of the batch"];
    const made = await headrace([
      "keys",
      "create",
      "ci",
      "--allowed-ips",
      "127.0.0.1,10.0.0.0/8",
      ...settings,
      ...what,
    ]);
    expect(made.stdout).toMatch(secret);
    const key = made.stdout.trim();
    expect((await chatWith(key)).stdout).toBe("Hello world\n");

    const record = await shown("ci");
    expect(record).toMatchObject({
      last4: key.slice(-4),
      allowed_ips: ["127.0.0.1", "10.0.0.0/8"],
      rate_limit: 100,
      rate_limit_window: 3600,
      monthly_tokens: 5000,
      ...{ models: ["upstream-*"], never_leaves: false, tags: ["env:prod", "team-a"], note: "of the batch" },
    });
    expect(Number(record["expires_at"]) - Number(record["created_at"])).toBe(30 * 86_400);

    const cleared = ["--allowed-ips", "--rate-limit", "--monthly-tokens"].flatMap((flag) => [flag, "none"]);
    const others = ["--models", "all", "--tags", "none", "--note", ""];
    const update = ["keys", "update", key.slice(-4), "--name", "build", "--expires", "never", ...cleared, ...others];
    expect((await headrace(update)).code).toBe(0);
    expect(await shown("build")).toMatchObject({
      expires_at: null,
      allowed_ips: [],
      rate_limit: null,
      rate_limit_window: null,
      monthly_tokens: null,
      ...{ models: null, tags: [], note: null },
    });

    expect((await headrace(["keys", "revoke", "build"])).code).toBe(2);
    expect((await headrace(["keys", "revoke", "build"], { isTTY: true, answers: ["y"] })).stdout).toContain(
      "is revoked",
    );
    const refused = await chatWith(key);
    expect(refused.code).toBe(1);
    expect(refused.stderr).toContain("refused the API key from HEADRACE_API_KEY (401)");
    expect((await headrace(["keys", "list"])).stdout).not.toContain("build");
    expect((await headrace(["keys", "list", "--all"])).stdout).toMatch(/build +sk_dev_hr_….{4} +revoked/);
  });

  test("rotates a key with an overlap in which both keys work, or without one", async () => {
    const first = (await headrace(["keys", "create", "app", "--quiet"])).stdout.trim();
    const second = (await headrace(["keys", "rotate", "app", "--overlap", "1h", "--quiet"])).stdout.trim();
    expect((await chatWith(first)).code).toBe(0);
    expect((await chatWith(second)).code).toBe(0);
    const ambiguous = await headrace(["keys", "show", "app"]);
    expect(ambiguous.stderr).toContain("Several keys match");
    const third = await headrace(["keys", "rotate", second.slice(-4), "--overlap", "0", "--yes", "--quiet"]);
    expect(third.stdout).toMatch(secret);
    expect((await chatWith(second)).code).toBe(1);
    expect((await chatWith(third.stdout.trim())).code).toBe(0);
  });

  test("refuses a key wider than its creator and shows the server's reason", async () => {
    const maker = (await headrace(["keys", "create", "maker", "--scopes", "keys:manage", "-q"])).stdout.trim();
    const env = { HEADRACE_BASE_URL: server.baseUrl, HEADRACE_API_KEY: maker };
    const { code, stdout, stderr } = await headrace(["keys", "create", "wide", "--scopes", "chat:write"], { env });
    expect([code, stdout]).toEqual([1, ""]);
    expect(stderr).toContain("lacks required scope: chat:write (403)");
  });

  test("names the missing scope if a key may not list keys", async () => {
    const key = (await headrace(["keys", "create", "chatter", "-q"])).stdout.trim();
    const env = { HEADRACE_BASE_URL: server.baseUrl, HEADRACE_API_KEY: key };
    expect((await headrace(["keys", "list"], { env })).stderr).toContain("lacks required scope: keys:manage");
    const { code, stdout } = await headrace(["status"], { env });
    expect(code).toBe(0);
    expect(stdout).toMatch(/Models +1: upstream-model/);
    expect(stdout).toContain("API key lacks required scope: usage:read");
  });
});

describe("usage", () => {
  test("prints the usage of a key as a table and as CSV", async () => {
    const key = (await headrace(["keys", "create", "metered", "-q"])).stdout.trim();
    for (let request = 0; request < 3; request++) expect((await chatWith(key)).code).toBe(0);
    const table = await headrace(["keys", "usage", "metered", "--days", "2", "--group-by", "model"]);
    expect(table.stdout).toMatch(/upstream-model +3 +21 +6 +27 +\$0\.033 +0/);
    const csv = await headrace(["keys", "usage", "metered", "--csv"]);
    expect(csv.stdout).toMatch(/^start,end,requests,.*\r\n.*,3,21,6,27,0\.033,0,,,0,0,0,0,,,,,,\r\n$/);
    const all = JSON.parse((await headrace(["usage", "--group-by", "key", "--json"])).stdout) as { key: string }[];
    expect(all.length).toBeGreaterThan(0);
    const named = await headrace(["usage", "--group-by", "key"]);
    expect(named.stdout).toContain(`metered (${key.slice(-4)})`);
  });
});

describe("the server", () => {
  test("prints the server's state, the current key and the account", async () => {
    const { code, stdout, stderr } = await headrace(["status"]);
    expect([code, stderr]).toEqual([0, ""]);
    expect(stdout).toContain(`Headrace ${packageJson.version}  ${server.baseUrl}  ready`);
    expect(stdout).toContain(`Key            sk_dev_hr_…${server.key.slice(-4)} "First key"`);
    expect(stdout).toMatch(/Tier +enterprise/);
  });

  test("lists the server's tiers and marks the account's own", async () => {
    const { stdout } = await headrace(["tiers"]);
    expect(stdout).toMatch(/^enterprise +current +1,000 +unlimited/m);
    expect(stdout).toMatch(/^free +10 +10,000/m);
  });
});

test("updates credentials.json when the command line rotates its own key", async () => {
  await using own = await startHeadrace({ yaml: upstreamYaml(upstream) });
  const run = (...args: string[]) => runCommand([...args, "--data-dir", own.dataDir]);
  const { stdout } = await run("keys", "rotate", "First key", "--overlap", "0", "--yes");
  const path = join(own.dataDir, "credentials.json");
  expect(await Bun.file(path).json()).toEqual({ base_url: own.baseUrl, api_key: stdout.trim() });
  expect((await run("keys", "list")).code).toBe(0);
});

test("schedules the rotation of a key and shows what applies", async () => {
  await headrace(["keys", "create", "planned", "--quiet"]);
  const set = await headrace(["keys", "schedule", "planned", "--every", "90d", "--overlap", "7d"]);
  expect(set.stdout).toStartWith(
    'Key "planned" is rotated every 90 days, with an overlap of 168 hours.\nNext rotation: ',
  );
  for (const line of set.stdout.split("\n")) expect(line.length).toBeLessThanOrEqual(80);
  expect((await headrace(["keys", "schedule", "planned", "--off"])).stdout).toBe(
    'Key "planned" has no rotation schedule.\n',
  );
  const refused = await headrace(["keys", "schedule", "planned", "--overlap", "7d"]);
  expect(refused).toMatchObject({ code: 2, stderr: expect.stringContaining("Give --every") });
  expect((await headrace(["keys", "schedule", "planned", "--every", "12h"])).stderr).toContain("Give whole days");
});
