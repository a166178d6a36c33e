// Tests `headrace status`, `headrace limits` and `headrace tiers`.
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { type ApiServer, now, refusal, startApiServer } from "../../../tests/fixtures/api-server.ts";
import { type CommandOutcome, type CommandSurroundings, runCommand } from "../../../tests/fixtures/command-line.ts";

const account = {
  object: "account",
  id: "acct_1",
  name: "Default",
  tier: "Pro",
  environment: "live",
  limits: { requests_per_minute: 100, tokens_per_minute: null },
  rate: { requests: { limit: 100, remaining: 97, reset_seconds: 2 }, tokens: null },
  quota: {
    period_start: Date.UTC(2026, 10, 1) / 1000,
    period_end: Date.UTC(2026, 11, 1) / 1000,
    tokens: { limit: 5_000_000, used: 1_250_000 },
    spend: { limit: null, used: 12.3 },
  },
  store_chats: false,
};
const limits = {
  object: "limits",
  environment: "live",
  rate: account.rate,
  quotas: [
    {
      ...{ owner: "key", owner_id: "key_1", unit: "requests", amount: 200, used: 50, left: 150, per: "5h" },
      ...{ window: "rolling", models: null, starts_at: now - 60, resets_at: now + 3_600 },
    },
    {
      ...{ owner: "account", owner_id: "acct_1", unit: "usd", amount: 5, used: 5.5, left: 0, per: "month" },
      ...{ window: "calendar", models: ["gpt-*"], starts_at: null, resets_at: null, later: "kept" },
    },
  ],
};
const tier = { object: "tier", monthly_spend: null, environments: ["live", "test"], source: "built-in", later: "kept" };
const tiers = [
  {
    ...tier,
    name: "Free",
    requests_per_minute: 10,
    tokens_per_minute: 10_000,
    monthly_tokens: 500_000,
    current: false,
  },
  {
    ...{ ...tier, name: "Pro", requests_per_minute: 100, tokens_per_minute: null, monthly_tokens: null },
    ...{ priority: "high", current: true },
  },
];

const none = { low: 0, normal: 0, high: 0 };
const statuses = [
  {
    id: "qwen",
    deployments: [{ upstream: "vllm", waiting: 0, waiting_by_priority: none, expected_wait_ms: none, later: "kept" }],
  },
];

let api: ApiServer;
let answers: Record<string, () => Response>;

beforeEach(() => {
  api = startApiServer();
  answers = {
    "/readyz": () => Response.json({ status: "ready", checks: { database: "ok", engines: "ok" } }),
    "/openapi.json": () => Response.json({ openapi: "3.1.0", info: { version: "0.2.0" } }),
    "/account": () => Response.json(account),
    "/tiers": () => Response.json({ object: "list", data: tiers }),
    "/model-status": () => Response.json({ object: "list", data: statuses }),
    "/models": () => Response.json({ object: "list", data: [{ id: "qwen" }, { id: "tiny-demo" }] }),
  };
  api.answer = (_method, path) => answers[path]?.();
});

afterEach(() => api.stop());

function run(args: string[], surroundings: CommandSurroundings = {}): Promise<CommandOutcome> {
  const env = { HEADRACE_BASE_URL: api.baseUrl, HEADRACE_API_KEY: api.key, ...surroundings.env };
  return runCommand([...args, "--data-dir", "/nowhere"], { nowMs: now * 1000, ...surroundings, env });
}

describe("headrace status", () => {
  test("shows server, key, account, limits and quota", async () => {
    expect(await run(["status"])).toEqual({
      code: 0,
      stderr: "",
      stdout: [
        `Headrace 0.2.0  ${api.baseUrl}  ready`,
        "",
        "  Checks         database ok, engines ok",
        "  Models         2: qwen, tiny-demo",
        "  Waiting        none",
        `  Key            sk_live_hr_…${api.key.slice(-4)} "own", from HEADRACE_API_KEY`,
        "  Scopes         chat:write, keys:manage, usage:read",
        "  Expires        never",
        "  Account        Default (acct_1)",
        "  Tier           Pro",
        "  Environment    live",
        "  Requests       97 of 100 left, full again in 2 s",
        "  Tokens         unlimited",
        "  Month, tokens  █████░░░░░░░░░░░░░░░ 25 %, 1,250,000 of 5,000,000",
        "  Month, spend   $12.30 used, unlimited",
        "  Month ends     2026-12-01 00:00 (in 10 days)",
        "",
      ].join("\n"),
    });
  });

  test("shows each model's waiting requests by priority, and the expected wait", async () => {
    const busy = {
      waiting_by_priority: { low: 0, normal: 9, high: 2 },
      expected_wait_ms: { low: null, normal: 8_600, high: 400 },
    };
    const deployments = [
      { upstream: "vllm", waiting: 11, ...busy },
      { upstream: "before", waiting: 12 },
    ];
    answers["/model-status"] = () => Response.json({ object: "list", data: [{ id: "qwen", deployments }] });
    const { stdout } = await run(["status"]);
    expect(stdout).toContain("  Waiting        qwen at before: 12\n");
    expect(stdout).toContain("qwen at vllm: 11 (2 high, about 1 s; 9 normal, about 9 s)\n");
  });

  test("shows each quota window with its use, models and reset", async () => {
    const quota = { owner: "account", owner_id: "acct_1", unit: "requests", amount: 200, used: 50, models: null };
    const quotas = [
      { ...quota, per: "5h", window: "rolling", starts_at: now - 60, resets_at: now + 3_600 },
      { ...quota, owner: "key", unit: "usd", amount: 5, used: 5, per: "day", models: ["gpt-*"], resets_at: now + 60 },
      { ...quota, owner: "member", per: 90, used: 0, window: "rolling", starts_at: null, resets_at: null },
    ];
    answers["/account"] = () => Response.json({ ...account, quotas });
    const { stdout } = await run(["status"]);
    expect(stdout).toContain(
      "  Account, 5 hours    █████░░░░░░░░░░░░░░░ 25 %, 50 of 200 requests, 150 left, resets in 1",
    );
    expect(stdout).toContain(
      "  Key, day            ████████████████████ 100 %, $5.00 of $5.00 for gpt-*, $0.00 left, resets in 1 min\n",
    );
    expect(stdout).toContain("  Member, 90 seconds  ░░░░░░░░░░░░░░░░░░░░ 0 %, 0 of 200 requests, 200 left\n");
  });

  test("sends no key where none is needed", async () => {
    await run(["status"]);
    const without = api.seen.filter(({ authorization }) => authorization === null).map(({ path }) => path);
    expect(without.toSorted()).toEqual(["/openapi.json", "/readyz"]);
  });

  test("prints one object with the API's answers with --json", async () => {
    expect(JSON.parse((await run(["status", "--json"])).stdout)).toEqual({
      base_url: api.baseUrl,
      reachable: true,
      ready: true,
      checks: { database: "ok", engines: "ok" },
      version: "0.2.0",
      key_accepted: true,
      account,
      limits: null,
      key: api.keys[0],
      models: ["qwen", "tiny-demo"],
      queues: [{ model: "qwen", upstream: "vllm", waiting: 0, waiting_by_priority: none, expected_wait_ms: none }],
      missing: [],
    });
  });

  test("shows the rest if a scope is missing, and names the scope", async () => {
    const missing = (scope: string) => () =>
      refusal(403, "insufficient_scope", `API key lacks required scope: ${scope}`);
    answers["/account"] = missing("usage:read");
    answers["/keys"] = missing("keys:manage");
    const { code, stdout } = await run(["status"]);
    expect(code).toBe(0);
    expect(stdout).toMatch(/Models +2: qwen, tiny-demo/);
    expect(stdout).toContain("Not shown: account, limits and quota (API key lacks required scope: usage:read).");
    expect(stdout).toContain("Not shown: scopes and end of the key (API key lacks required scope: keys:manage).");
    expect(stdout).not.toContain("Tier");
  });

  test("shows the limits of a key without usage:read, without the account", async () => {
    answers["/account"] = () => refusal(403, "insufficient_scope", "API key lacks required scope: usage:read");
    answers["/limits"] = () => Response.json(limits);
    const { stdout } = await run(["status"]);
    expect(stdout).toContain("  Requests        97 of 100 left, full again in 2 s\n");
    expect(stdout).toContain(
      "  Key, 5 hours    █████░░░░░░░░░░░░░░░ 25 %, 50 of 200 requests, 150 left, resets in 1 h\n",
    );
    expect(stdout).toContain("Not shown: account and tier (API key lacks required scope: usage:read).");
    expect(JSON.parse((await run(["status", "--json"])).stdout)).toMatchObject({ account: null, limits });
  });

  test("exits with 1 if the server is not ready, and names the reason", async () => {
    const checks = { database: "ok", engines: "starting" };
    answers["/readyz"] = () => Response.json({ status: "not_ready", checks }, { status: 503 });
    const { code, stdout, stderr } = await run(["status"]);
    expect(code).toBe(1);
    expect(stdout).toContain(`${api.baseUrl}  not ready`);
    expect(stderr).toContain("The server is not ready: engines is starting.");
  });

  test("exits with 1 if the key is refused, and still shows the server", async () => {
    const { code, stdout, stderr } = await run(["status"], { env: { HEADRACE_API_KEY: "sk_live_hr_wrong" } });
    expect(code).toBe(1);
    expect(stdout).toContain("ready");
    expect(stdout).toContain("refused, from HEADRACE_API_KEY");
    expect(stderr).toContain("refused the API key from HEADRACE_API_KEY (401)");
    expect(stdout + stderr).not.toContain("sk_live_hr_wrong");
  });

  test("exits with 1 if no server answers, with --json too", async () => {
    await api.stop();
    const { code, stdout, stderr } = await run(["status", "--json"]);
    expect(code).toBe(1);
    expect(JSON.parse(stdout)).toMatchObject({ reachable: false, ready: false, key_accepted: null });
    expect(stderr).toContain("headrace serve");
  });
});

describe("headrace tiers", () => {
  test("lists tiers as a table with the account's own marked", async () => {
    expect((await run(["tiers"])).stdout).toBe(
      [
        "TIER           REQUESTS/MIN  TOKENS/MIN  TOKENS/MONTH  SPEND/MONTH  PRIORITY  LIMITS APPLY TO",
        "Free                     10      10,000       500,000    unlimited  -         live, test",
        "Pro   current           100   unlimited     unlimited    unlimited  high      live, test",
        "",
      ].join("\n"),
    );
  });

  test("prints tiers as the API returns them with --json", async () => {
    expect(JSON.parse((await run(["tiers", "--json"])).stdout)).toEqual(tiers);
  });

  test("reports an answer that is no list of tiers", async () => {
    answers["/tiers"] = () => Response.json({ object: "list", data: [{ name: 7 }] });
    const { code, stderr } = await run(["tiers"]);
    expect(code).toBe(1);
    expect(stderr).toContain("JSON that is no list of tiers (at name)");
  });
});

describe("headrace limits", () => {
  beforeEach(() => {
    answers["/limits"] = () => Response.json(limits);
  });

  test("shows use, remainder and reset of each quota as a table", async () => {
    const { code, stdout } = await run(["limits"]);
    expect(code).toBe(0);
    expect(stdout.split("\n")).toEqual([
      "  Environment  live",
      "  Requests     97 of 100 left, full again in 2 s",
      "  Tokens       unlimited",
      "",
      "OF       QUOTA                                                            USED   LEFT  OPENS",
      "key      200 requests per 5h rolling         █████░░░░░░░░░░░░░░░ 25 %      50    150  2026-11-20 19:30 (in 1 h)",
      "account  5 usd per month calendar for gpt-*  ████████████████████ 100 %  $5.50  $0.00  with the next use",
      "",
    ]);
  });

  test("prints the API's answer with --json, and tells if there is no quota", async () => {
    expect(JSON.parse((await run(["limits", "--json"])).stdout)).toEqual(limits);
    answers["/limits"] = () => Response.json({ ...limits, quotas: [] });
    expect((await run(["limits"])).stdout).toContain("No quota holds for this key.");
  });
});
