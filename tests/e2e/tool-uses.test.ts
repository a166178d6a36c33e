// Calls of tools on the ledger: what they cost, what bounds them, and what is told of them.
import { Database } from "bun:sqlite";
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { join } from "node:path";
import { Cancellation } from "../../src/base/cancellation.ts";
import type { Principal } from "../../src/domain/principal.ts";
import type { OpenToolUse } from "../../src/domain/tools/tool-use.ts";
import { parseMetrics } from "../support/exposition.ts";
import { startHeadrace, type TestServer, until } from "../support/headrace.ts";
import { completed, mcpServerFor, principalOf, toolUseFor } from "../support/tool-uses.ts";

let server: TestServer;
let principal: Principal;

beforeAll(async () => {
  server = await startHeadrace();
  principal = await principalOf(server, server.key);
});
afterAll(() => server[Symbol.asyncDispose]());

/** The records of the newest requests that match. */
async function requests(query: string): Promise<Record<string, unknown>[]> {
  return (await (await server.request(`/v1/requests?${query}`)).json()).data;
}

async function keyWith(limits: Record<string, unknown>): Promise<{ principal: Principal; id: string }> {
  const made = await (await server.request("/v1/keys", { body: { name: "limited", ...limits } })).json();
  return { principal: await principalOf(server, made.key), id: made.id };
}

describe("a tool call in the ledger", () => {
  test("records a tool call like any request, by server and tool, with bytes, price and caller", async () => {
    const priced = mcpServerFor({ name: "priced", nanoUsdPerCall: 2_500_000 });
    const use = toolUseFor(principal, { server: priced });
    const open = await server.tools.toolUses.begin(use);
    await open.ended(completed);
    const [listed] = await requests("model=priced/search");
    expect(listed).toMatchObject({
      ...{ id: use.requestId, operation: "tool", model: "priced/search", key: server.firstKey.record.id },
      ...{ outcome: "completed", error_code: null, total_tokens: 0, cost: 0.0025, upstream: "priced" },
    });
    const one = await (await server.request(`/v1/requests/${use.requestId}`)).json();
    expect(one.usage_details).toEqual({ bytes_in: 13, bytes_out: 14 });
    const usage = await (await server.request("/v1/usage?group_by=model")).json();
    const row = usage.data.find(({ model }: { model: string }) => model === "priced/search");
    expect(row).toMatchObject({ requests: 1, cost: 0.0025 });
  });

  test("charges no tool call that failed at its server, but charges cancelled ones and tool-level errors", async () => {
    const dear = mcpServerFor({ name: "dear", nanoUsdPerCall: 1_000_000 });
    const end = async (name: string, how: Parameters<OpenToolUse["ended"]>[0]) => {
      const open = await server.tools.toolUses.begin(toolUseFor(principal, { server: dear, name }));
      await open.ended(how);
      return (await requests(`model=dear/${name}`))[0];
    };
    expect(await end("broken", { ...completed, outcome: "failed", code: "upstream_error" })).toMatchObject({
      ...{ outcome: "failed", error_code: "upstream_error", error_status: 502, cost: 0 },
    });
    expect(await end("left", { ...completed, outcome: "cancelled" })).toMatchObject({
      outcome: "cancelled",
      cost: 0.001,
    });
    const wrong = await end("wrong", { ...completed, isError: true });
    expect(wrong).toMatchObject({ outcome: "completed", cost: 0.001 });
    const one = await (await server.request(`/v1/requests/${wrong?.["id"]}`)).json();
    expect(one.usage_details.tool_errors).toBe(1);
  });

  test("books prompts and resources without addresses, and neither lists nor completions", async () => {
    const other = mcpServerFor({ name: "other" });
    for (const [method, name] of [
      ["prompts/get", "review"],
      ["resources/read", "file:///home/somebody/secret"],
      ["tools/list", null],
      ["completion/complete", "review"],
    ] as const) {
      const open = await server.tools.toolUses.begin(toolUseFor(principal, { server: other, method, name }));
      await open.ended(completed);
    }
    const models = (await requests("limit=100")).map(({ model }) => String(model));
    expect(models.filter((model) => model.startsWith("other/")).sort()).toEqual([
      "other/prompts/get/review",
      "other/resources/read",
    ]);
  });

  test("keeps tool names from imitating others or flooding reports", async () => {
    const odd = mcpServerFor({ name: "odd" });
    for (const name of ["sea\u202erch", "n".repeat(5_000), "a\u0000b"]) {
      await (await server.tools.toolUses.begin(toolUseFor(principal, { server: odd, name }))).ended(completed);
    }
    const models = (await requests("limit=100")).map(({ model }) => String(model));
    const names = models.filter((model) => model.startsWith("odd/"));
    expect(names).toHaveLength(3);
    for (const name of names) {
      expect(name.length).toBeLessThanOrEqual(132);
      expect(name).not.toMatch(/\p{C}/u);
    }
  });
});

describe("limits on tool calls", () => {
  test("counts tool calls in a key's request limit, and records refusals like a model's", async () => {
    const { principal: limited, id } = await keyWith({ rate_limit: 2, rate_limit_window: 60 });
    for (let i = 0; i < 2; i++) await (await server.tools.toolUses.begin(toolUseFor(limited))).ended(completed);
    const refused = toolUseFor(limited, { name: "refused" });
    await expect(server.tools.toolUses.begin(refused)).rejects.toMatchObject({
      ...{ code: "rate_limit_exceeded", refusal: "key_requests" },
    });
    // Lists count against nothing, and are not given to who has used up all.
    const list = toolUseFor(limited, { method: "tools/list", name: null });
    await expect(server.tools.toolUses.permit(list)).rejects.toMatchObject({ code: "rate_limit_exceeded" });
    const [noted] = await requests(`key=${id}&outcome=refused&model=github/refused`);
    expect(noted).toMatchObject({ operation: "tool", model: "github/refused", error_code: "rate_limit_exceeded" });
    await server.governance.refusalCounts.flush();
    const refusals = await (await server.request("/v1/refusals")).json();
    expect(refusals.data).toContainEqual(expect.objectContaining({ model: "github/refused", reason: "key_requests" }));
  });

  test("enforces a spend cap on priced tool calls exactly, however many come at once", async () => {
    const { principal: capped, id } = await keyWith({ monthly_spend: 0.01 });
    const priced = mcpServerFor({ name: "capped", nanoUsdPerCall: 1_000_000, local: false, maxConcurrency: 64 });
    const calls = Array.from({ length: 40 }, () => server.tools.toolUses.begin(toolUseFor(capped, { server: priced })));
    const settled = await Promise.allSettled(calls);
    const opened = settled.flatMap((one) => (one.status === "fulfilled" ? [one.value] : []));
    expect(opened).toHaveLength(10);
    for (const one of settled) {
      if (one.status === "rejected") expect(one.reason).toMatchObject({ code: "insufficient_quota" });
    }
    // What failed gives its part back, and no more than that.
    const [first, ...others] = opened;
    await first?.ended({ ...completed, outcome: "failed", code: "upstream_error" });
    for (const open of others) await open.ended(completed);
    await (await server.tools.toolUses.begin(toolUseFor(capped, { server: priced }))).ended(completed);
    await expect(server.tools.toolUses.begin(toolUseFor(capped, { server: priced }))).rejects.toMatchObject({
      code: "insufficient_quota",
    });
    await server.governance.ledger.flush();
    const usage = await (await server.request(`/v1/usage?key=${id}`)).json();
    expect(usage.data.map(({ cost }: { cost: number }) => cost)).toEqual([0.01]);
  });

  test("applies a quota with a pattern only to matching tools", async () => {
    const quotas = [{ unit: "requests", amount: 1, per: "day", models: ["github/*"] }];
    const { principal: limited } = await keyWith({ quotas });
    await (await server.tools.toolUses.begin(toolUseFor(limited))).ended(completed);
    await expect(server.tools.toolUses.begin(toolUseFor(limited))).rejects.toMatchObject({
      code: "insufficient_quota",
    });
    const elsewhere = toolUseFor(limited, { server: mcpServerFor({ name: "elsewhere" }) });
    await (await server.tools.toolUses.begin(elsewhere)).ended(completed);
  });

  test("limits tool lists per key separately", async () => {
    const { principal: asking } = await keyWith({});
    const list = () => server.tools.toolUses.permit(toolUseFor(asking, { method: "tools/list", name: null }));
    let given = 0;
    const ask = async () => {
      // Some come back while it is asked.
      for (; given < 2_400; given++) await list();
    };
    await expect(ask()).rejects.toMatchObject({ code: "rate_limit_exceeded" });
    expect(given).toBeGreaterThanOrEqual(1_200);
  });
});

describe("slots at an MCP server", () => {
  test("limits concurrent calls at a server, and gives the next one the first freed slot", async () => {
    const small = mcpServerFor({ name: "small", maxConcurrency: 1 });
    const first = await server.tools.toolUses.begin(toolUseFor(principal, { server: small }));
    let isIn = false;
    const second = server.tools.toolUses.begin(toolUseFor(principal, { server: small })).then((open) => {
      isIn = true;
      return open;
    });
    await Bun.sleep(50);
    expect(isIn).toBe(false);
    await first.ended(completed);
    await (await second).ended(completed);
  });

  test("refuses a call without a slot in time with a retry time, without charge", async () => {
    const slow = mcpServerFor({ name: "slow", maxConcurrency: 1, timeoutMs: 40, nanoUsdPerCall: 1_000_000 });
    const { principal: capped } = await keyWith({ monthly_spend: 0.002 });
    const first = await server.tools.toolUses.begin(toolUseFor(capped, { server: slow }));
    for (let i = 0; i < 3; i++) {
      await expect(server.tools.toolUses.begin(toolUseFor(capped, { server: slow }))).rejects.toMatchObject({
        ...{ code: "service_unavailable", refusal: "capacity", retryAfterSeconds: 1 },
      });
    }
    await first.ended(completed);
    await (await server.tools.toolUses.begin(toolUseFor(capped, { server: slow }))).ended(completed);
  });

  test("neither refuses nor books a caller that leaves while waiting", async () => {
    const busy = mcpServerFor({ name: "busy", maxConcurrency: 1 });
    const first = await server.tools.toolUses.begin(toolUseFor(principal, { server: busy }));
    const cancellation = new Cancellation();
    const waiting = server.tools.toolUses.begin(toolUseFor(principal, { server: busy, name: "left", cancellation }));
    await Bun.sleep(10);
    cancellation.cancel(new Error("left"));
    await expect(waiting).rejects.toThrow("left");
    await first.ended(completed);
    expect(await requests("model=busy/left")).toEqual([]);
  });
});

describe("stored content of tool calls", () => {
  test("stores arguments and results only if configured, sealed, without credentials, for their owner", async () => {
    const secret = "sk-ant-api03-abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGHIJ";
    const said = { content: () => JSON.stringify({ query: "cheese", key: secret }) };
    const result = { ...completed, content: () => '{"content":[{"type":"text","text":"brie"}]}' };
    const callBy = async (by: Principal) => {
      const use = toolUseFor(by, said);
      await (await server.tools.toolUses.begin(use)).ended(result);
      return use.requestId;
    };
    const read = async (id: string, key = server.key) => {
      const headers = { authorization: `Bearer ${key}` };
      return (await (await server.request(`/v1/requests/${id}`, { headers })).json()).tool_content;
    };
    expect(await read(await callBy(principal))).toBeNull();
    await server.reconfigure("tools: { record: content }\n");
    const id = await callBy(principal);
    const content = await read(id);
    expect(content.result).toBe('{"content":[{"type":"text","text":"brie"}]}');
    expect(content.arguments).toContain("cheese");
    expect(content.arguments).not.toContain(secret);
    // Whoever may see usage alone is not given what was said.
    const usage = await (await server.request("/v1/keys", { body: { name: "usage", scopes: ["usage:read"] } })).json();
    expect(await read(id, usage.key)).toBeNull();
    const stored = await server.governance.toolContents.find(
      { accountId: "another", environment: principal.environment, appId: null, personId: null },
      ...([id, 0] as const),
    );
    expect(stored).toBeUndefined();
    const files = new Database(join(server.dataDir, "headrace.db"), { readonly: true });
    const rows = files.query("SELECT * FROM tool_contents").all();
    files.close();
    expect(rows).toHaveLength(1);
    expect(JSON.stringify(rows)).not.toContain("brie");
    await server.reconfigure("stored_chats: { retention_days: 0 }\ntools: { record: content }\n");
    expect(await read(await callBy(principal))).toBeNull();
    await server.reconfigure("");
  });

  test("truncates stored tool content and deletes it after its retention", async () => {
    await server.reconfigure("tools: { record: content }\n");
    const use = toolUseFor(principal, { content: () => JSON.stringify({ text: "x".repeat(300_000) }) });
    await (await server.tools.toolUses.begin(use)).ended(completed);
    const one = await (await server.request(`/v1/requests/${use.requestId}`)).json();
    expect(one.tool_content.arguments.length).toBeLessThan(65_600);
    expect(one.usage_details.bytes_in).toBeGreaterThan(300_000);
    const { toolContents } = server.governance;
    const later = Math.floor(Date.now() / 1000) + 31 * 86_400;
    const owner = { accountId: principal.account.id, environment: principal.environment, appId: null, personId: null };
    expect(await toolContents.find(owner, use.requestId, later)).toBeUndefined();
    expect(await toolContents.deleteExpired(later, 100)).toBeGreaterThan(0);
    expect(await toolContents.deleteExpired(later, 100)).toBe(0);
    await server.reconfigure("");
  });
});

test("accepts no tool calls while stopping, and books those that end meanwhile", async () => {
  const stopped = await startHeadrace();
  const by = await principalOf(stopped, stopped.key);
  const use = toolUseFor(by);
  const open = await stopped.tools.toolUses.begin(use);
  const closing = stopped.close(0);
  await until(
    () =>
      stopped.tools.toolUses.begin(toolUseFor(by)).then(
        (other) => void other.ended({ ...completed, outcome: "failed" }),
        ({ code }: { code?: string }) => code === "service_unavailable",
      ),
    "it takes no more",
  );
  await open.ended(completed);
  await closing;
  const db = new Database(join(stopped.dataDir, "headrace.db"), { readonly: true });
  const rows = db.query("SELECT outcome FROM usage_records WHERE request_id = ?").all(use.requestId);
  db.close();
  expect(rows).toEqual([{ outcome: "completed" }]);
  await stopped[Symbol.asyncDispose]();
});

test("counts tool calls by server, method and outcome, and leaves none open in the ledger", async () => {
  const metrics = parseMetrics(await (await fetch(`${server.url}/metrics`)).text());
  const reported = (outcome: string, server: string) => metrics.get("headrace_tool_calls_total", { server, outcome });
  expect([reported("completed", "priced"), reported("tool_error", "dear"), reported("cancelled", "dear")]).toEqual([
    1, 1, 1,
  ]);
  expect(reported("refused", "slow")).toBe(3);
  expect(metrics.get("headrace_tool_call_duration_seconds_count", { server: "priced" })).toBe(1);
  await until(() => server.governance.ledger.figures.open === 0, "nothing is open");
});
