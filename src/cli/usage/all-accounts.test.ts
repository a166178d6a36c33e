// Tests `--all-accounts` of the commands for requests and usage, and `headrace top`.
import { afterEach, beforeEach, expect, test } from "bun:test";
import { type ApiServer, now, startApiServer } from "../../../tests/fixtures/api-server.ts";
import { type CommandSurroundings, runCommand } from "../../../tests/fixtures/command-line.ts";

let api: ApiServer;

const names = { acct_1: "Acme", key_1: "ci", acct_2: "Bolt", key_2: "batch", key_loud: "loud" };
const request = {
  ...{ object: "request", id: "req_1", at: now, operation: "chat", model: "llama", account: "acct_1", key: "key_1" },
  ...{ app: null, stream: true, outcome: "failed", error_code: "upstream_error", error_status: 502, total_tokens: 5 },
  ...{ prompt_tokens: 5, completion_tokens: 0, estimated: false, cost: 0, upstream: null, attempts: 1, queue_ms: 0 },
  ...{ first_token_ms: null, duration_ms: 30, tokens_per_second: null },
};
const figures = { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15, errors: 0, tokens_per_second: 20 };
const minutes = [
  { account: "acct_1", key: "key_1", model: "llama", requests: 4, cost: 0.25, first_token_ms: 100 },
  { account: "acct_2", key: "key_2", model: "slow", requests: 9, cost: 0.5, first_token_ms: 900 },
  { account: "acct_1", key: "key_1", model: "llama", requests: 2, cost: 0.25, first_token_ms: 400 },
].map((row, i) => ({
  ...{ start: now + 60 * i, end: now + 60 * (i + 1), ...figures, ...row },
  percentiles: {
    first_token_ms: null,
    total_ms: { counts: [{ up_to_ms: row.model === "slow" ? 2_000 : 200, answers: 10 }] },
  },
}));

const refused = [
  { key: "key_loud", account: "acct_1", requests: 19, last_at: now - 10 },
  { key: "key_1", account: "acct_1", requests: 40, last_at: now - 3_000 },
];

beforeEach(() => {
  api = startApiServer();
  api.answer = (_method, path) => {
    if (path === "/admin/requests/req_1") return Response.json({ ...request, trail: [], names });
    if (path === "/admin/requests") return Response.json({ data: [request], next: null, searched_to: null, names });
    if (path === "/admin/usage") return Response.json({ data: minutes, next: null, names });
    if (path === "/admin/refusals") return Response.json({ data: refused, names });
    if (path === "/admin/accounts/acct_1") return Response.json({ id: "acct_1" });
    return path === "/account" ? Response.json({ id: "acct_own" }) : undefined;
  };
});

afterEach(() => api.stop());

function run(args: string[], surroundings: CommandSurroundings = {}) {
  const env = { HEADRACE_BASE_URL: api.baseUrl, HEADRACE_API_KEY: api.key };
  return runCommand([...args, "--data-dir", "/nowhere"], { nowMs: now * 1000, ...surroundings, env });
}

const seen = () => api.seen.map(({ path }) => path);

test("lists the requests of all accounts with the account before the key", async () => {
  const { stdout, stderr, code } = await run([
    "requests",
    "--all-accounts",
    "--upstream",
    "gpu-1",
    "--account",
    "acct_1",
  ]);
  expect([code, stderr]).toEqual([0, ""]);
  expect(stdout).toMatch(/failed 502 +llama .* req_1 +Acme \/ ci$/m);
  expect(seen()).toEqual(["/admin/accounts/acct_1", "/admin/requests?account=acct_1&upstream=gpu-1&limit=20"]);
});

test("shows one request of any account", async () => {
  const { stdout, code } = await run(["requests", "show", "req_1", "--all-accounts"]);
  expect(code).toBe(0);
  expect(stdout).toContain("Acme / ci");
  expect(seen()).toEqual(["/admin/requests/req_1"]);
});

test("prints a column of account names in the usage of all accounts", async () => {
  const { stdout, code } = await run(["usage", "--all-accounts", "--group-by", "account"]);
  expect(code).toBe(0);
  expect(stdout).toMatch(/^\S+ +Bolt +9 /m);
  expect(seen()[0]).toBe("/admin/usage?group_by=account");
});

test.each([
  [["usage", "--group-by", "account"]],
  [["usage", "--person", "usr_1"]],
  [["requests", "--upstream", "gpu-1"]],
  [["requests", "--account", "acct_1"]],
])("refuses %p without --all-accounts before sending anything", async (args) => {
  const { code, stderr } = await run(args);
  expect(code).toBe(2);
  expect(stderr).toContain("needs --all-accounts");
  expect(seen()).toEqual([]);
});

test("shows the busiest keys and the slowest models of five minutes in 80 columns", async () => {
  const { stdout, code } = await run(["top", "--all-accounts", "--once"], { isTTY: true, columns: 80, env: {} });
  expect(code).toBe(0);
  const lines = stdout.split("\n");
  expect(lines[0]).toContain("15 requests, 0 failed (0.0 %), 45 tokens, $1.00");
  expect(lines[1]).toBe("p50/p95/p99: first token -, whole answer 178/1,869/1,974 ms");
  const at = (text: string) => lines.findIndex((line) => line.startsWith(text));
  expect(at("Bolt / batch")).toBeLessThan(at("Acme / ci"));
  expect(lines[at("Acme / ci")]).toMatch(/ 6 +0 +0 +\d+ +\$0\.5000$/);
  // A key without a request that ended is first for its refusals of the last minutes; earlier ones do not count.
  expect(lines[at("Acme / loud")]).toMatch(/ 0 +0 +19 +0 +\$0\.0000$/);
  expect(at("Acme / loud")).toBeLessThan(at("Bolt / batch"));
  expect(stdout).toContain("  key_loud  Acme / loud");
  expect(at("slow")).toBeLessThan(at("llama"));
  expect(Math.max(...lines.map((line) => Bun.stringWidth(line)))).toBeLessThanOrEqual(80);
  const path = seen().find((one) => one.startsWith("/admin/usage"));
  expect(new URL(`http://x${path}`).searchParams.get("start")).toBe(String(now - 300));
});

test("shows only the key's own account in top without --all-accounts", async () => {
  expect((await run(["top", "--once"])).code).toBe(0);
  expect(seen()[0]).toBe("/account");
  for (const path of seen().slice(1)) expect(new URL(`http://x${path}`).searchParams.get("account")).toBe("acct_own");
});
