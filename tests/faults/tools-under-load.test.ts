// Many callers of tools at once, whose calls end in every way: on either database usage is what was granted, to the last nano-USD.
import { describe, expect, test } from "bun:test";
import type { OpenToolUse } from "../../src/domain/tools/tool-use.ts";
import { startHeadrace } from "../support/headrace.ts";
import { freshDatabase } from "../support/postgres.ts";
import { seeded } from "../support/seeded.ts";
import { completed, mcpServerFor, principalOf, toolUseFor } from "../support/tool-uses.ts";

const nanoUsd = 1_234_567;
/** Whole calls that the cap has room for. */
const affordable = 120;
const calls = 400;

const ends: readonly Parameters<OpenToolUse["ended"]>[0][] = [
  completed,
  { ...completed, isError: true },
  { ...completed, outcome: "cancelled" },
  { ...completed, outcome: "failed", code: "upstream_error" },
];

describe.each(["SQLite", "PostgreSQL"])("MCP tools under load on %s", (database) => {
  test("grants no tool call beyond a cap and refuses none below it, each booked once at its price", async () => {
    const url = database === "PostgreSQL" ? await freshDatabase() : undefined;
    const env = url === undefined ? {} : { HEADRACE_DATABASE_URL: url, HEADRACE_SECRET: "cd".repeat(32) };
    await using server = await startHeadrace({ env });
    const spend = Math.ceil((affordable * nanoUsd) / 1_000) / 1e6;
    const made = await (await server.request("/v1/keys", { body: { name: "capped", monthly_spend: spend } })).json();
    const principal = await principalOf(server, made.key);
    const priced = mcpServerFor({ name: "priced", nanoUsdPerCall: nanoUsd, local: false, maxConcurrency: 8 });
    const random = seeded(7);
    let [granted, charged, failed] = [0, 0, 0];
    const call = async () => {
      let open: OpenToolUse;
      try {
        open = await server.tools.toolUses.begin(toolUseFor(principal, { server: priced, name: `t${granted % 5}` }));
      } catch (error) {
        expect(error).toMatchObject({ code: "insufficient_quota" });
        // Only where all that is left is spent or set aside.
        return;
      }
      granted++;
      await Bun.sleep(random() * 3);
      const end = ends[Math.floor(random() * ends.length)] ?? completed;
      if (end.outcome === "failed") failed++;
      else charged++;
      await open.ended(end);
    };
    // The waiting line has room for all of these callers.
    const callers = Array.from({ length: 32 }, async () => {
      for (let i = 0; i < calls / 32; i++) await call();
    });
    await Promise.all(callers);
    while (charged < affordable) await call();
    await expect(server.tools.toolUses.begin(toolUseFor(principal, { server: priced }))).rejects.toMatchObject({
      code: "insufficient_quota",
    });
    expect(charged).toBe(affordable);
    await server.governance.ledger.flush();
    const usage = await (await server.request(`/v1/usage?key=${made.id}`)).json();
    const [row] = usage.data;
    expect([row.requests, row.errors, Math.round(row.cost * 1e9)]).toEqual([
      charged + failed,
      failed,
      affordable * nanoUsd,
    ]);
    expect(server.governance.ledger.figures.open).toBe(0);
  }, 60_000);
});
