// Tests `headrace requests` and `headrace requests show`: their requests, and their output at each width.
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { type ApiServer, now, startApiServer } from "../../../tests/fixtures/api-server.ts";
import { type CommandOutcome, type CommandSurroundings, runCommand } from "../../../tests/fixtures/command-line.ts";

let api: ApiServer;
let rows: Record<string, unknown>[];

const idOf = (n: number) => `req_01935a7c-2f10-7c3a-9b1e-${String(n).padStart(12, "0")}`;

function row(n: number, more: Record<string, unknown> = {}): Record<string, unknown> {
  return {
    ...{ object: "request", id: idOf(n), at: now - n, operation: "chat", model: "llama", key: "key_9", app: null },
    ...{ stream: true, outcome: "completed", error_code: null, error_status: null, error_message: null },
    ...{ prompt_tokens: 1_200, completion_tokens: 34, total_tokens: 1_234, estimated: false, capped: false },
    ...{ cost: 0.001, upstream: "up", attempts: 1, queue_ms: 0, first_token_ms: 200, duration_ms: 1_630 },
    ...{ tokens_per_second: 23.1, ...more },
  };
}

const refused = {
  ...{ outcome: "refused", error_code: "rate_limit_exceeded", error_status: 429, attempts: 0, upstream: null },
  ...{ error_message: "The rate limit of the key is reached: 1 request per minute.", total_tokens: 0, duration_ms: 1 },
};

const trail = [
  {
    ...{ server: 1, model: "llama", result: "refused", status: 500, started_ms: 0, duration_ms: 41 },
    ...{ upstream: "gpu-1", upstream_model: "llama", reason: "CUDA error: \u001b[31mout of memory" },
  },
  {
    ...{ server: 2, model: "small", result: "answered", status: null, started_ms: 1_042, duration_ms: 1_630 },
    ...{ upstream: null, upstream_model: null, reason: null },
  },
];

beforeEach(() => {
  api = startApiServer();
  rows = [row(1), row(2, refused)];
  api.answer = (_method, path, url) => {
    const id = /\/requests\/(.+)$/.exec(path)?.[1];
    if (id !== undefined) {
      const found = rows.find((one) => one["id"] === id);
      return found ? Response.json({ ...found, trail: [], chat: null }) : undefined;
    }
    if (!path.endsWith("/requests")) return undefined;
    // Each page has one row.
    const at = Number(url.searchParams.get("cursor") ?? 0);
    const next = at + 1 < rows.length ? String(at + 1) : null;
    return Response.json({ object: "list", data: rows.slice(at, at + 1), next, searched_to: null });
  };
});

afterEach(() => api.stop());

function run(args: string[], surroundings: CommandSurroundings = {}): Promise<CommandOutcome> {
  const env = { HEADRACE_BASE_URL: api.baseUrl, HEADRACE_API_KEY: api.key, ...surroundings.env };
  return runCommand(["requests", ...args, "--data-dir", "/nowhere"], { nowMs: now * 1000, ...surroundings, env });
}

const queries = () =>
  api.seen.filter(({ path }) => path.includes("/requests?")).map(({ path }) => new URL(`http://x${path}`).searchParams);

describe("headrace requests", () => {
  test("lists requests of all pages, one a line, without a terminal", async () => {
    const { stdout, stderr, code } = await run([]);
    expect([code, stderr]).toEqual([0, ""]);
    const lines = stdout.trimEnd().split("\n");
    expect(lines).toHaveLength(3);
    expect(lines[0]).toMatch(/^TIME +OUTCOME +MODEL +TOKENS +DURATION +ID +KEY$/);
    expect(lines[1]).toEndWith(`completed    llama   1,234     1.6 s  ${idOf(1)}  key_9`);
    expect(lines[2]).toEndWith(`refused 429  llama       0      1 ms  ${idOf(2)}  key_9`);
  });

  test("marks answers from the response cache, also in show", async () => {
    rows = [row(1, { from_cache: true, upstream: null, attempts: 0 }), row(2, { from_cache: false })];
    const lines = (await run([])).stdout.split("\n");
    expect([lines[1], lines[2]].map((line) => line?.includes("completed, cached"))).toEqual([true, false]);
    expect((await run(["show", idOf(1)])).stdout).toMatch(/Answered by +the response cache/);
    expect((await run(["show", idOf(2)])).stdout).toMatch(/Answered by +up/);
  });

  test("fits 80 columns with whole ids, and shortens long names where they are alike", async () => {
    const model = "an-organization-with-a-long-name/a-model-with-a-longer-one-70b-instruct";
    rows = [row(1, { model, key: `mbr_${"k".repeat(60)}` }), row(2, { ...refused, model: null })];
    const { stdout } = await run([], { columns: 80, isTTY: true });
    const lines = Bun.stripANSI(stdout).trimEnd().split("\n");
    for (const line of lines) expect(Bun.stringWidth(line)).toBeLessThan(80);
    expect(lines).toHaveLength(5);
    expect(lines[1]).toContain("70b-instruct");
    expect([lines[2], lines[4]].map((line) => line?.trim().split(" ")[0])).toEqual([idOf(1), idOf(2)]);
  });

  test("sends the filters and the limit of requests", async () => {
    await run(
      [
        "--model",
        "m",
        "--key",
        "key_9",
        "--tag",
        "team-a",
        "--app",
        "app_1",
        "--outcome",
        "refused",
        "--stream",
        "false",
      ].concat(["--start", "2026-11-20", "--limit", "1"]),
    );
    expect(queries().map((query) => Object.fromEntries(query))).toEqual([
      {
        ...{ model: "m", key: "key_9", tag: "team-a", app: "app_1", outcome: "refused", stream: "false", limit: "1" },
        start: String(Date.UTC(2026, 10, 20) / 1000),
      },
    ]);
    for (const wrong of [
      ["--limit", "0"],
      ["--outcome", "lost"],
      ["--start", "now"],
      ["--stream", "yes"],
    ]) {
      expect((await run(wrong)).code).toBe(2);
    }
  });

  test("prints requests of all pages as the API returns them with --json", async () => {
    expect(JSON.parse((await run(["--json"])).stdout)).toEqual(rows);
  });

  test("reports that no request matches", async () => {
    rows = [];
    expect(await run([])).toMatchObject({ code: 0, stdout: "", stderr: "No such request.\n" });
  });
});

describe("headrace requests show", () => {
  test("prints the attempts in order with escaped messages of model servers", async () => {
    api.answer = (_method, path) =>
      path.includes("/requests/") ? Response.json({ ...row(1), trail, chat: null }) : undefined;
    const { stdout, code } = await run(["show", idOf(1)]);
    expect(code).toBe(0);
    expect(stdout).toContain("  Answered by   up\n");
    expect(stdout.slice(stdout.indexOf("What was tried"))).toBe(
      [
        "What was tried",
        "   0 ms  gpu-1 (model server 1 of 2): refused with 500, 41 ms",
        "         CUDA error: [31mout of memory",
        "  1.0 s  model server 2 of 2, for small: answered, 1.6 s",
        "",
      ].join("\n"),
    );
  });

  test("reports omitted attempts", async () => {
    const short = trail.map((step, i) => ({ ...step, left_out: i === 1 ? 7 : 0 }));
    api.answer = (_method, path) =>
      path.includes("/requests/") ? Response.json({ ...row(1), trail: short, chat: null }) : undefined;
    const { stdout } = await run(["show", idOf(1)]);
    expect(stdout).toContain("\n         7 steps are left out\n  1.0 s  model server 2");
  });

  test("prints the reason of a refused request without figures", async () => {
    const { stdout } = await run(["show", idOf(2)]);
    expect(stdout).toStartWith(`${idOf(2)}  refused 429\n\nrate_limit_exceeded: ${refused.error_message}\n`);
    expect(stdout).not.toContain("Tokens");
  });

  test("prints the server's own usage report beside the tokens", async () => {
    const details = {
      ...{
        cache_write_1h_tokens: 200,
        input_audio_tokens: 30,
        searches: 3,
        served: ["fast", "us\u001b[31m"],
        billed: 0.0232856,
      },
    };
    rows = [row(1, { cached_tokens: 900, cache_write_tokens: 200, reasoning_tokens: 20, usage_details: details })];
    const { stdout } = await run(["show", idOf(1)]);
    expect(stdout).toContain("1,200 in (900 cached, 200 written to a cache), 34 out (20 of them thought)");
    const shown = stdout.slice(stdout.indexOf("  Among them"), stdout.indexOf("  Cost"));
    expect(shown).toBe(
      [
        "  Among them     200 written to a cache for an hour, 30 audio in",
        "  Searches       3",
        "  Served as      fast, us[31m",
        "  Vendor's bill  $0.023",
        "",
      ].join("\n"),
    );
  });

  test("prints the API's answer with --json, and suggestions for a missing request", async () => {
    expect(JSON.parse((await run(["show", idOf(1), "--json"])).stdout)).toEqual({ ...rows[0], trail: [], chat: null });
    api.answer = () => Response.json({ error: { message: "x", type: "y", code: "not_found" } }, { status: 404 });
    const { code, stderr } = await run(["show", idOf(3)]);
    expect(code).toBe(1);
    expect(stderr).toContain("It may be running still");
  });
});
