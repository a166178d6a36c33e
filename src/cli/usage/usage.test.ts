// Tests `headrace usage` and `headrace keys usage`: the period that they request, and their output.
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { type ApiServer, fakeKey, now, refusal, startApiServer } from "../../../tests/fixtures/api-server.ts";
import { type CommandOutcome, type CommandSurroundings, runCommand } from "../../../tests/fixtures/command-line.ts";
import { bar } from "./usage-table.ts";

const day = Date.UTC(2026, 10, 20) / 1000;

let api: ApiServer;
let rows: Record<string, unknown>[];

function row(daysAgo: number, requests: number, more: Record<string, unknown> = {}): Record<string, unknown> {
  const start = day - daysAgo * 86_400;
  const tokens = { prompt_tokens: requests * 1000, completion_tokens: requests * 10, total_tokens: requests * 1010 };
  return { start, end: start + 86_400, requests, ...tokens, cost: requests * 0.0015, errors: 0, ...more };
}

beforeEach(() => {
  api = startApiServer();
  rows = [row(1, 2), row(0, 10, { errors: 1 })];
  api.answer = (_method, path, url) => {
    if (!path.endsWith("/usage")) return undefined;
    // Each page has one row.
    const at = Number(url.searchParams.get("cursor") ?? 0);
    const next = at + 1 < rows.length ? String(at + 1) : null;
    return Response.json({ object: "list", data: rows.slice(at, at + 1), next });
  };
});

afterEach(() => api.stop());

function run(args: string[], surroundings: CommandSurroundings = {}): Promise<CommandOutcome> {
  const env = { HEADRACE_BASE_URL: api.baseUrl, HEADRACE_API_KEY: api.key, ...surroundings.env };
  return runCommand([...args, "--data-dir", "/nowhere"], { nowMs: now * 1000, ...surroundings, env });
}

const asked = () => Object.fromEntries(new URL(`http://x${api.seen.at(-1)?.path}`).searchParams);

test("prints usage of all pages as a table with a sum, by UTC days", async () => {
  expect(await run(["usage"])).toEqual({
    code: 0,
    stderr: "",
    stdout: [
      "DAY (UTC)   REQUESTS  PROMPT  COMPLETION  TOKENS     COST  ERRORS",
      "2026-11-19         2   2,000          20   2,020  $0.0030       0",
      "2026-11-20        10  10,000         100  10,100  $0.0150       1",
      "total             12  12,000         120  12,120  $0.0180       1",
      "",
    ].join("\n"),
  });
});

test("prints percentiles of all rows together, and of each row if the terminal is wide enough", async () => {
  const times = (bound: number) => ({ p50: 1, p95: 1, p99: 1, counts: [{ up_to_ms: bound, answers: 10 }] });
  rows = [
    row(1, 10, { percentiles: { first_token_ms: null, total_ms: times(200) } }),
    row(0, 10, { percentiles: { first_token_ms: times(20), total_ms: times(2_000) } }),
  ];
  const sentence = "p50/p95/p99: first token 10/19/20 ms, whole answer 200/1,913/1,983 ms";
  const narrow = await run(["usage"], { isTTY: true, columns: 80, env: {} });
  expect(narrow.stdout).not.toContain("WHOLE ANSWER");
  expect(narrow.stdout).toContain(sentence);
  const wide = await run(["usage"], { isTTY: true, columns: 160, env: {} });
  expect(wide.stdout).toMatch(/^2026-11-19 .* - +156\/196\/199 ms/m);
  expect(wide.stdout).toMatch(/^2026-11-20 .* 10\/19\/20 ms +1,563\/1,956\/1,991 ms/m);
});

test("counts a request with several tags in each row by tag, and once in the total", async () => {
  const [two, ten] = [row(0, 2, { tag: "team-a" }), row(0, 10, { tag: null })];
  const { answer } = api;
  api.answer = (method, path, url) => {
    rows = url.searchParams.has("group_by") ? [two, { ...two, tag: "x" }, ten] : [row(0, 12)];
    return answer?.(method, path, url);
  };
  const { stdout } = await run(["usage", "--group-by", "tag", "--tag", "team-a"]);
  const lines = stdout
    .trimEnd()
    .split("\n")
    .map((line) => line.split(/ {2,}/).slice(0, 3).join(" | "));
  const date = "2026-11-20";
  expect(lines).toEqual([
    "DAY (UTC) | TAG | REQUESTS",
    ...[`${date} | team-a | 2`, `${date} | x | 2`, `${date} | - | 10`],
    "total | 12 | 12,000",
  ]);
  expect(asked()).toEqual({ tag: "team-a" });
});

test("prints usage rows of all pages as the API returns them with --json", async () => {
  expect(JSON.parse((await run(["usage", "--json"])).stdout)).toEqual(rows);
});

test("prints the API's CSV byte for byte with --csv", async () => {
  const csv = "start,end\r\n2026-11-20T00:00:00Z,2026-11-21T00:00:00Z\r\n";
  api.answer = () => new Response(csv);
  expect((await run(["usage", "--csv"])).stdout).toBe(csv);
  expect(api.seen[0]?.accept).toBe("text/csv");
  expect((await run(["usage", "--csv", "--json"])).code).toBe(2);
});

test("marks models without a price in usage by model, and names those missing from the cost", async () => {
  rows = [
    row(0, 2, { model: "tiny-demo", cost: 0 }),
    row(0, 10, { model: "gpt" }),
    row(0, 1, { model: "free", cost: 0 }),
  ];
  const usage = api.answer;
  const price = { input: 0, output: 0 };
  const models = [{ id: "tiny-demo" }, { id: "gpt", price }, { id: "free", price }, { id: "fast", alias_of: "gpt" }];
  api.answer = (method, path, url) =>
    path === "/models" ? Response.json({ object: "list", data: models }) : usage?.(method, path, url);
  const { stdout, stderr } = await run(["usage", "--group-by", "model"]);
  const costs = stdout.split("\n").map((line) => / (no price|\$[\d.]+) +\d+$/.exec(line)?.[1]);
  expect(costs).toEqual([undefined, "no price", "$0.015", "$0.000", "$0.015", undefined]);
  expect(stderr).toBe("These models have no price, so the cost does not include them: tiny-demo.\n");
  api.answer = (method, path, url) =>
    path === "/models" ? refusal(403, "insufficient_scope", "models:read") : usage?.(method, path, url);
  expect((await run(["usage", "--group-by", "model"])).stdout).not.toContain("no price");
});

describe("headrace usage --top", () => {
  const byKey = () => [
    row(1, 4, { key: "key_a" }),
    row(1, 1, { key: "key_b" }),
    row(0, 3, { key: "key_b" }),
    row(0, 5, { key: "key_c" }),
    row(0, 2, { key: "key_d" }),
  ];

  test("prints one row for each of the most expensive groups over the whole time, and one for the others", async () => {
    rows = byKey();
    const { stdout } = await run(["usage", "--group-by", "key", "--top", "2"]);
    expect(api.seen[0]?.path).toBe("/usage?bucket=month&group_by=key");
    expect(stdout.split("\n").map((line) => line.split(/ {2,}/).slice(0, 2).join(" "))).toEqual([
      ...["KEY REQUESTS", "key_c 5", "key_a 4", "2 others 6", "total 15", ""],
    ]);
  });

  test("prints the same rows with --json", async () => {
    rows = byKey();
    const printed = JSON.parse((await run(["usage", "--group-by", "key", "--top", "3", "--json"])).stdout);
    expect(printed.map((one: Record<string, unknown>) => [one["key"], one["requests"], one["cost"]])).toEqual([
      ...[
        ["key_c", 5, 0.0075],
        ["key_a", 4, 0.006],
        ["key_b", 4, 0.006],
        ["1 others", 2, 0.003],
      ],
    ]);
  });

  test.each([[["--top", "3"]], [["--top", "3", "--group-by", "key", "--bucket", "day"]], [["--top", "3", "--csv"]]])(
    "refuses %p before sending anything",
    async (args) => {
      expect((await run(["usage", ...args])).code).toBe(2);
      expect(api.seen).toEqual([]);
    },
  );
});

test("leaves out columns of a table that is wider than the terminal, and breaks no figure", async () => {
  rows = [6, 5, 4].map((days) =>
    row(days, 12_345_678, { key: "key_01a1fa87-aec2-73b0-a423", cached_tokens: 987_654_321, cost: 117_859.4 }),
  );
  const { stdout } = await run(["usage", "--group-by", "key"], { isTTY: true, columns: 80 });
  const [header = "", first = ""] = Bun.stripANSI(stdout).split("\n");
  expect(header.split(/ {2,}/)).toEqual(["DAY (UTC)", "KEY", "REQUESTS", "TOKENS", "COST"]);
  expect(first).toBe("2026-11-14  key_01a1fa87-aec2-73b0-a423  12,345,678  12,469,134,780  $117,859.40");
  expect(Math.max(...stdout.split("\n").map((line) => Bun.stringWidth(line)))).toBeLessThanOrEqual(80);
});

test("reports a time without usage", async () => {
  api.answer = () => Response.json({ object: "list", data: [], next: null });
  expect(await run(["usage"])).toEqual({ code: 0, stdout: "", stderr: "Nothing was used in that time.\n" });
});

describe("the time of headrace usage", () => {
  test("leaves the time to the API by default", async () => {
    rows = [row(0, 1)];
    await run(["usage"]);
    expect(asked()).toEqual({});
  });

  test("includes today in --days", async () => {
    rows = [row(0, 1)];
    await run(["usage", "--days", "7"]);
    expect(asked()).toEqual({ start: String(day - 6 * 86_400) });
  });

  test("reads dates as whole days, the last one included", async () => {
    rows = [row(0, 1)];
    await run(["usage", "--start", "2026-11-01", "--end", "2026-11-20", "--bucket", "month"]);
    const expected = { start: String(Date.UTC(2026, 10, 1) / 1000), end: String(day + 86_400), bucket: "month" };
    expect(asked()).toEqual(expected);
  });

  test("accepts times to the minute", async () => {
    rows = [row(0, 1)];
    await run(["usage", "--start", "2026-11-20T16:00Z", "--end", "2026-11-20T18:00Z"]);
    expect(asked()).toEqual({ start: String(day + 16 * 3600), end: String(day + 18 * 3600) });
  });

  test.each([
    [["--days", "0"]],
    [["--days", "7", "--start", "2026-11-01"]],
    [["--start", "yesterday"]],
    [["--start", "2026-11-02", "--end", "2026-11-01"]],
    [["--bucket", "week"]],
    [["--group-by", "model,weather"]],
  ])("refuses the time or rows %p before sending anything", async (args) => {
    expect((await run(["usage", ...args])).code).toBe(2);
    expect(api.seen).toEqual([]);
  });
});

describe("groups of headrace usage", () => {
  beforeEach(() => {
    api.keys = [fakeKey({ name: "ci", last4: "AbC1" })];
    rows = [row(0, 3, { model: "qwen", key: "key_ci" }), row(0, 2, { model: "tiny", key: "key_gone", app: null })];
  });

  test("prints a column for each group, with known keys by name", async () => {
    const { stdout } = await run(["usage", "--group-by", "model,key"]);
    expect(stdout).toMatch(/^2026-11-20 {2}qwen {3}ci \(AbC1\) +3 /m);
    expect(stdout).toMatch(/^2026-11-20 {2}tiny {3}key_gone +2 /m);
    expect(api.seen[0]?.path).toBe("/usage?group_by=model%2Ckey");
  });

  test("prints ids of keys if the key may not list them", async () => {
    const usage = api.answer;
    api.answer = (method, path, url) =>
      path === "/keys" ? refusal(403, "insufficient_scope", "no") : usage(method, path, url);
    const { code, stdout } = await run(["usage", "--group-by", "key"]);
    expect(code).toBe(0);
    expect(stdout).toContain("key_ci");
  });
});

describe("names in headrace usage", () => {
  const member = "mbr_1_live";
  const listOf = (data: unknown[]) => Response.json({ object: "list", data, has_more: false });
  const app = (id: string, name: string) => ({
    ...{ id, name, type: "public", redirect_uris: [], scopes: [], environment: "live", require_pkce: true },
    ...{ created_at: now, secrets: [] },
  });
  let lists: Record<string, unknown[]>;

  beforeEach(() => {
    lists = {
      "/apps": [app("app_own", "Notes")],
      "/members": [{ id: "mbr_1", email: "ada@example.com" }],
      "/authorizations": [{ app: { id: "app_other", name: "Maps" } }],
    };
    rows = [
      row(0, 5, { key: member, app: null }),
      row(0, 4, { key: "mbr_2_test", app: null }),
      row(0, 3, { key: "grt_1", app: "app_own" }),
      row(0, 2, { key: "grt_2", app: "app_other" }),
      row(0, 1, { key: "grt_3", app: "headrace-cli" }),
      row(0, 1, { key: "grt_4", app: "app_gone" }),
    ];
    const usage = api.answer;
    api.answer = (method, path, url) => {
      const list = lists[path];
      if (list) return listOf(list);
      const groups = url.searchParams.get("group_by")?.split(",") ?? [];
      if (path !== "/usage" || groups.length === 2) return usage(method, path, url);
      const data = rows.map(({ key, app, ...rest }) => ({ ...rest, ...(groups[0] === "key" ? { key } : { app }) }));
      return Response.json({ object: "list", data, next: null });
    };
  });

  /** Returns the columns of the groups, row by row. */
  async function shown(groupBy: string): Promise<string[]> {
    const { code, stdout } = await run(["usage", "--group-by", groupBy]);
    expect(code).toBe(0);
    const lines = stdout.split("\n").filter((line) => line.startsWith("2026-11-20"));
    return lines.map((line) => /^2026-11-20 {2}(.+?) +\d+ +\d+,000 /.exec(line)?.[1] ?? line);
  }

  test("prints names of apps beside their ids, and names the command-line tool", async () => {
    expect(await shown("app")).toEqual([
      ...["-", "-", "Notes (app_own)", "Maps (app_other)", "command line", "app_gone"],
    ]);
    expect(api.seen.map(({ path }) => path.replace(/\?.*/, ""))).toEqual(["/usage", "/apps", "/authorizations"]);
  });

  test("prints names of members and grants beside their keys, without a column of apps too", async () => {
    const named = [
      ...[
        "ada@example.com (mbr_1_live)",
        "mbr_2_test",
        "Notes (grt_1)",
        "Maps (grt_2)",
        "command line (grt_3)",
        "grt_4",
      ],
    ];
    expect(await shown("key")).toEqual(named);
    const both = await shown("key,app");
    expect(both.map((line) => line.split(/ {2,}/)[0])).toEqual(named);
  });

  test("omits names that the credential may not read", async () => {
    const usage = api.answer;
    api.answer = (method, path, url) =>
      lists[path] ? refusal(403, "permission_denied", "no") : usage(method, path, url);
    expect(await shown("key")).toEqual([member, "mbr_2_test", "grt_1", "grt_2", "command line (grt_3)", "grt_4"]);
  });

  test("prints names only in tables, and requests none for JSON and CSV", async () => {
    rows = [row(0, 1, { key: "grt_1", app: "app_own" })];
    expect(JSON.parse((await run(["usage", "--json", "--group-by", "key,app"])).stdout)).toEqual(rows);
    await run(["usage", "--csv", "--group-by", "key,app"]);
    expect(api.seen).toHaveLength(2);
  });
});

describe("bars of headrace usage", () => {
  test("draws bars on a terminal that is wide enough", async () => {
    const { stdout } = await run(["usage"], { isTTY: true, columns: 100, env: { NO_COLOR: "1" } });
    const [, small = "", large = ""] = stdout.split("\n");
    expect(large).toEndWith(`  ${"█".repeat(30)}`);
    expect(small).toEndWith(`  ${"█".repeat(6)}`);
  });

  test("breaks no figure or date of a table wider than the terminal", async () => {
    const { stdout } = await run(["usage", "--days", "7", "--group-by", "key,model"], { isTTY: true, columns: 60 });
    const wide = (await run(["usage", "--days", "7", "--group-by", "key,model"])).stdout.split(/\s+/);
    const figures = stdout.split(/\s+/).filter((word) => /^[\d$.,:-]*\d[\d$.,:-]*$/.test(word));
    expect(figures.length).toBeGreaterThan(5);
    for (const figure of figures) expect(wide).toContain(figure);
  });

  test.each([
    ["narrow", { isTTY: true, columns: 70 }],
    ["ASCII", { isTTY: true, columns: 100, env: { LANG: "C" } }],
    ["no", { isTTY: false, columns: 100 }],
  ])("draws no bars on %s terminal", async (_, surroundings) => {
    expect((await run(["usage"], surroundings)).stdout).not.toContain("█");
  });

  test("draws bars exact to an eighth, at least one for a positive value", () => {
    expect([bar(0, 10), bar(0.0001, 10), bar(0.5, 3), bar(1, 3)]).toEqual(["", "▏", "█▌", "███"]);
  });
});

test("requests the usage of one key", async () => {
  api.keys.push(fakeKey({ id: "key_7", name: "ci", last4: "AbC1" }));
  const { code, stdout } = await run(["keys", "usage", "ci", "--days", "1"]);
  expect(code).toBe(0);
  expect(stdout).toContain("2026-11-20");
  expect(api.seen.at(-1)?.path).toStartWith("/keys/key_7/usage?");
});
